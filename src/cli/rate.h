// rate.h - rates, counts and durations as people write them, to exact integers and back.
//
//     rate      5/s 300/m 1/d 10k/s 1.5M/s 0.5/s 3/10s 7/13s 100/1.5s unlimited 0
//     count     20 10k 1.5M
//     duration  20ms 1.5s 2d 0
//
// Suffixes: k is 10^3, M 10^6, G 10^9. Units: ns us ms s m h d w. Nothing is rounded: what cannot
// be had exactly in tokens and nanoseconds is refused. One line of words says which part is wrong
// and shows one that is right.
#ifndef WR_RATE_H
#define WR_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

// `tokens` every `period_ns`. The period is kept as written (300/m is 300 in 60 s, not 5 in 1 s),
// except that a fraction of a token makes it longer: 0.5/s is 1 in 2 s.
// Unlimited: tokens is WEIR_UNLIMITED_TOKENS and the period 1. "0": no tokens in 1 s.
struct wr_rate {
    uint64_t tokens;
    uint64_t period_ns; // 1 up to 2^63-1
};

// The period of "0" may be written too: 0/s.
bool wr_rate_parse(const char *text, struct wr_rate *rate, struct wr_fault *fault);

// A whole number below 2^63. `what` is what the words call it: "burst".
bool wr_count_parse(const char *text, const char *what, uint64_t *count, struct wr_fault *fault);

// 0 up to 2^63-1 ns.
bool wr_duration_parse(const char *text, const char *what, uint64_t *ns, struct wr_fault *fault);

// Room for what the following write.
#define WR_UNIT_TEXT 64

// Exact, and read back by the parsers: "300/m", "3/10s", "1500ms".
void wr_rate_text(const struct wr_rate *rate, char text[WR_UNIT_TEXT]);
void wr_duration_text(uint64_t ns, char text[WR_UNIT_TEXT]);

// For reading: the two largest units, rounded down: "2d 23h", "12.345ms".
void wr_span_text(uint64_t ns, char text[WR_UNIT_TEXT]);

#endif
