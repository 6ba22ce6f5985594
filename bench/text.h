// Words and numbers for the programs of this folder.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prints "bench: " and the message to standard error and ends the program with 1.
__attribute__((noreturn, format(printf, 1, 2))) void bench_fail(const char *format, ...);

// "1M" for 1000000, "10k" for 10000; and back. False where the text is no such number above 0.
void bench_format_count(char *text, size_t bytes, uint64_t count);
bool bench_parse_count(const char *text, uint64_t *count);

// The value of the option at argv[*i], a number or a text, which *i then points at. Ends the
// program with 2 where there is none.
uint64_t bench_option_count(int argc, char **argv, int *i);
char *bench_option_text(int argc, char **argv, int *i);

#ifdef __cplusplus
}
#endif
