// An exact model of a limiter: token buckets in rational arithmetic, to judge weir's answers by.
//
// Real time is in integer nanoseconds. A level is a whole number of parts, `parts` of which are one
// token; `parts` is a common multiple of all periods and weights in use, so nothing is ever
// rounded. A bucket is its level at the moment it was last written, brought to another moment by
// what the limits in force made in between. It knows nothing of units, tables, clocks or versions
// in a ring.
//
// weir may be early by what max_rate makes in one nanosecond, and never late.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

__extension__ typedef __int128 exact_wide;

#define EXACT_KEYS 16

// A limit in force from `start_ns` on.
struct exact_version {
    int64_t start_ns;
    exact_wide made;   // parts made up to the start
    exact_wide ramp;   // effective burst at the start
    exact_wide per_ns; // parts made in a nanosecond
    exact_wide burst;
    bool unlimited;
};

struct exact_bucket {
    bool touched; // else full, and has always been
    exact_wide level;
    exact_wide made; // when it had that level
};

struct exact {
    exact_wide parts;
    exact_wide early; // what max_rate makes in 1 ns
    exact_wide max_debt;
    exact_wide max_ahead;
    struct exact_version before;
    struct exact_version now;
    int64_t newest_ns;
    struct exact_bucket buckets[EXACT_KEYS];
};

// The first limit holds from time 0. `parts` must be a multiple of every period and every weight's
// num that is used, and below 2^56. The bounds are in tokens.
void exact_init(struct exact *e, uint64_t parts, const struct weir_limit *limit,
                const struct weir_limit *max_rate, uint64_t max_debt_tokens,
                uint64_t max_ahead_tokens);

void exact_set_limit(struct exact *e, const struct weir_limit *limit, int64_t now_ns);

// The level of a key, in parts.
exact_wide exact_level(const struct exact *e, unsigned key, int64_t now_ns);

// Whole tokens of a key with `weight` in a level, rounded down.
exact_wide exact_tokens(const struct exact *e, exact_wide level, struct weir_weight weight);

// Judges the result and the answer to an ask (its now_ns counted from the model's time 0), and then
// takes over what weir did. NULL, or what is wrong with them.
const char *exact_judge(struct exact *e, unsigned key, const struct weir_ask *ask, int result,
                        const struct weir_answer *answer);
