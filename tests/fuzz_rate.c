// fuzz_rate.c - libFuzzer: whatever the text, a rate is refused or read; and what is read is
// written so that it is read again the same.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "cli/rate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds) {
    if (!holds) abort();
}

static void try_rate(const char *text) {
    struct wr_rate rate, again;
    struct wr_fault fault;
    char written[WR_UNIT_TEXT];
    if (!wr_rate_parse(text, &rate, &fault)) return;
    check(rate.period_ns >= 1 && rate.period_ns <= INT64_MAX);
    check(rate.tokens <= INT64_MAX || rate.tokens == WEIR_UNLIMITED_TOKENS);
    wr_rate_text(&rate, written);
    check(wr_rate_parse(written, &again, &fault));
    check(again.tokens == rate.tokens && again.period_ns == rate.period_ns);
}

static void try_duration(const char *text) {
    uint64_t ns, again;
    struct wr_fault fault;
    char written[WR_UNIT_TEXT];
    if (!wr_duration_parse(text, "duration", &ns, &fault)) return;
    wr_span_text(ns, written);
    wr_duration_text(ns, written);
    check(wr_duration_parse(written, "duration", &again, &fault) && again == ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t count;
    struct wr_fault fault;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    try_rate(text);
    try_duration(text);
    if (wr_count_parse(text, "count", &count, &fault)) check(count <= INT64_MAX);
    else check(fault.text[0] != '\0');
    free(text);
    return 0;
}
