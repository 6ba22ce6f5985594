// decisions.c - a line is put together in a buffer: this is written once for each line of the log.
#include "decisions.h"

#include <stdbool.h>
#include <string.h>

#define NUMBERS_BYTES 96

static char *put_number(char *out, uint64_t number) {
    char digits[20];
    size_t length = 0;
    do {
        digits[length++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (length > 0) *out++ = digits[--length];
    return out;
}

static bool needs_quotes(struct wr_text key) {
    for (size_t i = 0; i < key.length; i++)
        if (memchr(",\"\r\n", key.data[i], 4) != NULL) return true;
    return false;
}

static void write_quoted(FILE *out, struct wr_text key) {
    putc_unlocked('"', out);
    for (size_t i = 0; i < key.length; i++) {
        if (key.data[i] == '"') putc_unlocked('"', out);
        putc_unlocked(key.data[i], out);
    }
    putc_unlocked('"', out);
}

void wr_decisions_write_header(FILE *out) {
    fputs("time_ns,key,cost,granted,retry_after_ns\n", out);
}

void wr_decisions_write(FILE *out, const struct wr_event *event) {
    char text[NUMBERS_BYTES];
    char *at = text;
    if (event->time_ns < 0) *at++ = '-';
    at = put_number(at,
                    event->time_ns < 0 ? 0 - (uint64_t)event->time_ns : (uint64_t)event->time_ns);
    *at++ = ',';
    fwrite_unlocked(text, 1, (size_t)(at - text), out);
    if (needs_quotes(event->key)) write_quoted(out, event->key);
    else fwrite_unlocked(event->key.data, 1, event->key.length, out);
    at = text;
    *at++ = ',';
    at = put_number(at, event->cost);
    *at++ = ',';
    *at++ = event->result == WEIR_GRANTED ? '1' : '0';
    *at++ = ',';
    if (event->retry_after_ns != WEIR_FOREVER) at = put_number(at, event->retry_after_ns);
    *at++ = '\n';
    fwrite_unlocked(text, 1, (size_t)(at - text), out);
}
