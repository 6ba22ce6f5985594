// From a limit in words (tokens a period, burst) to the integers a decision runs on.
//
// A limiter counts in units: `unit_tokens` (S) units are one token. S is fixed at creation from
// max_rate, so that max_rate makes 2 to 4 units a nanosecond (one unit a token above 2*10^9/s).
// A rate is `per_ns` (M), units a nanosecond times 2^shift, rounded up: a token is never late, and
// at most one nanosecond's worth of max_rate early, for ever.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wide.h"
#include "weir.h"

// The farthest a level may be from zero, in units; leaves a factor of two to the 64-bit wrap.
#define WR_UNITS_MAX (UINT64_C(1) << 62)

struct wr_scale {
    uint64_t unit_tokens;    // S: units in a token
    uint64_t cost_max;       // tokens: the largest cost that can ever fit
    uint32_t shift;          // s: M is a fixed-point number with this many binary places
    uint64_t max_per_ns;     // M of max_rate
    uint64_t burst_max;      // units: the largest burst a later limit may have
    uint64_t debt_units;     // how far charge may go below zero
    uint64_t ahead_units;    // how far reserve may go below zero
    uint64_t hour_units;     // an hour at max_rate
    uint64_t horizon_units;  // H: a level below -H is a relic, and read as full
};

// A limit ready for decisions.
struct wr_profile {
    uint64_t per_ns;      // M; 0: nothing comes back
    uint64_t burst_units; // burst * S
    bool unlimited;
};

// Fixes the scale from the options. WEIR_GRANTED, or WEIR_ELIMIT/WEIR_EINVAL with words.
int wr_scale_init(struct wr_scale *scale, const struct weir_options *options,
                  struct weir_error *error);

// The profile of a limit on a scale. WEIR_GRANTED, or WEIR_ELIMIT/WEIR_EINVAL with words.
int wr_profile_init(struct wr_profile *profile, const struct wr_scale *scale,
                    const struct weir_limit *limit, struct weir_error *error);

// cost tokens of a key with `weight`, in units; WR_UNITS_MAX + 1 for all that can never fit.
// WEIR_GRANTED, WEIR_EINVAL (half a weight) or WEIR_EWEIGHT.
int wr_cost_units(const struct wr_scale *scale, uint64_t cost, struct weir_weight weight,
                  uint64_t *units);

// The same for weight 1: cheap.
static inline uint64_t wr_cost_units_plain(const struct wr_scale *scale, uint64_t cost) {
    return WR_LIKELY(cost <= scale->cost_max) ? cost * scale->unit_tokens : WR_UNITS_MAX + 1;
}

// Whole tokens of a key with `weight` in so many units, rounded down.
uint64_t wr_units_to_tokens(const struct wr_scale *scale, uint64_t units,
                            struct weir_weight weight);

// The same, rounded up.
uint64_t wr_units_to_tokens_up(const struct wr_scale *scale, uint64_t units,
                               struct weir_weight weight);

// The shortest time in which a rate makes `units`, given the fraction of a unit it has made
// already (frac, in 2^-64): ceil((units * 2^shift - frac') / per_ns), where frac' is frac in whole
// 2^-shift (a product of per_ns has no others). WEIR_FOREVER if never.
static inline uint64_t wr_wait_ns(const struct wr_scale *scale, uint64_t per_ns, uint64_t frac,
                                  uint64_t units) {
    if (units == 0) return 0;
    if (per_ns == 0) return WEIR_FOREVER;
    wr_u128 need = ((wr_u128)units << scale->shift) - (frac >> (64 - scale->shift));
    if ((uint64_t)(need >> 64) >= per_ns) return WEIR_FOREVER; // 584 years and more
#if defined(__x86_64__)
    uint64_t quotient, rest;
    __asm__("divq %4"
            : "=a"(quotient), "=d"(rest)
            : "a"((uint64_t)need), "d"((uint64_t)(need >> 64)), "r"(per_ns)
            : "cc");
    return quotient + (rest != 0);
#else
    return (uint64_t)wr_ceil_div(need, per_ns);
#endif
}

bool wr_is_unlimited(const struct weir_limit *limit);
void wr_say(struct weir_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
