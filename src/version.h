// The limit in force, and the token clock V(t) that it drives, changed without touching a bucket.
//
// V is the number of units the limiter's rate has made since it was created, a pure function of
// monotonic time. Each change of limit is a version: an entry in a small ring, which holds its own
// rate and burst, its start t0, and all that is needed of the version before it. `current` names
// the version and its entry in one word. The protocol is argued in version.c.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "limit.h"

#define WR_VERSIONS 16 // at most 14 threads may be changing the limit at the same moment

// Times are nanoseconds since the limiter's epoch, within 2^(shift - 1) either way: 73 years, and
// 18 for rates of 4*10^9 a second and more. Only a caller's clock can be outside, and is clamped.
static inline int64_t wr_time_max(uint32_t shift) {
    return (INT64_C(1) << (shift - 1)) - 1;
}

struct wr_version {
    // One cache line: all that a decision reads in the ordinary case.
    _Alignas(64) _Atomic uint64_t ready; // the version whose v0, frac0 and ramp0 are filled in
    _Atomic uint64_t t0;                 // start, or UNSET(version)
    _Atomic uint64_t per_ns;             // M
    _Atomic uint64_t v0;                 // V at t0
    _Atomic uint64_t frac0;              // and the fraction of a unit
    _Atomic uint64_t burst;              // units
    _Atomic uint64_t ramp0;              // effective burst at t0
    _Atomic uint64_t unlimited;
    // The version before this one; also read while `ready` is behind, and for readings before t0.
    _Alignas(64) _Atomic uint64_t before_per_ns;
    _Atomic uint64_t before_t0;
    _Atomic uint64_t before_v0;
    _Atomic uint64_t before_frac0;
    _Atomic uint64_t before_burst; // UINT64_MAX when it was unlimited
    _Atomic uint64_t before_ramp0;
    _Atomic uint64_t tokens; // this version's limit in words
    _Atomic uint64_t period_ns;
};

struct wr_versions {
    _Alignas(64) _Atomic uint64_t current; // version << 8 | entry
    _Alignas(64) _Atomic uint64_t claims;  // one bit an entry
    struct wr_version ring[WR_VERSIONS];
};

// What a decision needs of the clock and the limit, both at one moment.
struct wr_now {
    uint64_t v;      // V, in units, modulo 2^64
    uint64_t frac;   // the fraction of a unit beyond it, in 2^-64
    uint64_t per_ns; // M
    int64_t ramp;    // effective burst, units: min(burst, what a change of limit has let it reach)
    int64_t burst;   // units
    int64_t ns;      // of the reading, since the epoch
    bool unlimited;
    bool early;      // the reading is before the start of the limit in force: see wr_early_wait_ns
};

// Where a reading comes from.
struct wr_time_source {
    enum weir_clock kind; // never AUTO
    uint64_t epoch_ns;    // of the machine's clocks; a caller's readings come relative already
};

// A copy of the entry in force, taken between two equal reads of `current`.
struct wr_version_copy {
    uint64_t current;
    uint64_t ready;
    uint64_t t0;
    uint64_t per_ns;
    uint64_t v0;
    uint64_t frac0;
    uint64_t burst;
    uint64_t ramp0;
    uint64_t unlimited;
};

#define WR_UNSET (UINT64_C(1) << 62) // | version: no time within 2^61 of the epoch looks like it

void wr_versions_init(struct wr_versions *versions, const struct wr_profile *profile,
                      const struct weir_limit *limit);

// The rare half of wr_now_read: a version whose start is not set, or not filled in, or after `now`.
struct wr_now wr_now_read_slow(struct wr_versions *versions, const struct wr_time_source *source,
                               uint32_t shift, int64_t at);

// The shortest wait from a reading `at` before the start of the limit in force until a bucket has
// come from level `from` to `to`: at the old rate and within both bursts up to the start, at the
// new from then on.
uint64_t wr_early_wait_ns(struct wr_versions *versions, const struct wr_time_source *source,
                          const struct wr_scale *scale, int64_t at, int64_t from, int64_t to);

// What is made in `ns` from such a reading.
uint64_t wr_early_units(struct wr_versions *versions, const struct wr_time_source *source,
                        uint32_t shift, int64_t at, uint64_t ns);

// Publishes a new limit. WEIR_GRANTED or WEIR_EBUSY.
int wr_versions_change(struct wr_versions *versions, const struct wr_time_source *source,
                       uint32_t shift, int64_t at, const struct wr_profile *profile,
                       const struct weir_limit *limit);

// The limit in force, in words.
void wr_versions_limit(struct wr_versions *versions, uint64_t unit_tokens,
                       struct weir_limit *limit);
