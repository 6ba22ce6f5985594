// Words and numbers; see text.h.
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bench_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void bench_format_count(char *text, size_t bytes, uint64_t count) {
    if (count != 0 && count % 1000000 == 0)
        snprintf(text, bytes, "%lluM", (unsigned long long)(count / 1000000));
    else if (count != 0 && count % 1000 == 0)
        snprintf(text, bytes, "%lluk", (unsigned long long)(count / 1000));
    else
        snprintf(text, bytes, "%llu", (unsigned long long)count);
}

bool bench_parse_count(const char *text, uint64_t *count) {
    char *end;
    const unsigned long long number = strtoull(text, &end, 10);
    if (end == text || text[0] == '-' || number > UINT32_MAX) return false;
    const uint64_t unit = *end == 'M' ? 1000000 : *end == 'k' ? 1000 : 1;
    if (unit != 1) end++;
    *count = number * unit;
    return *end == '\0' && *count != 0;
}

char *bench_option_text(int argc, char **argv, int *i) {
    if (*i + 1 < argc) return argv[++*i];
    fprintf(stderr, "bench: %s needs a value; see --help\n", argv[*i]);
    exit(2);
}

uint64_t bench_option_count(int argc, char **argv, int *i) {
    const char *option = argv[*i];
    const char *value = bench_option_text(argc, argv, i);
    uint64_t count;
    if (bench_parse_count(value, &count)) return count;
    fprintf(stderr, "bench: %s: '%s' is not a number above 0; write it as 500, 10k or 1M\n", option,
            value);
    exit(2);
}
