// The clock and the limit, read together: the part of version.c that every decision runs.
//
// The tags P1, P2 and R1 are defined in version.c, which holds the argument.
#pragma once

#include "version.h"

struct wr_instant {
    int64_t ns;     // since the epoch
    uint64_t after; // zero, once the clock has been read: see wr_after
};

static inline struct wr_instant wr_instant_read(const struct wr_time_source *source, int64_t at,
                                                bool fenced) {
    uint64_t ns;
    if (WR_LIKELY(source->kind == WEIR_CLOCK_COUNTER)) {
        const uint64_t ticks = fenced ? wr_ticks_fenced() : wr_ticks();
        const struct wr_line_reading line = wr_counter_read(&wr_process_counter, ticks);
        ns = line.ns;
        if (WR_UNLIKELY(line.due)) ns = line.fallen ? wr_clock_monotonic_ns() : wr_clock_redraw();
    } else if (source->kind == WEIR_CLOCK_CALLER) {
        return (struct wr_instant){at, 0};
    } else {
        ns = source->kind == WEIR_CLOCK_COARSE ? wr_clock_coarse_ns() : wr_clock_monotonic_ns();
    }
    return (struct wr_instant){(int64_t)(ns - source->epoch_ns), wr_after(ns)};
}

// Copies the entry that `current` names. The loads are acquire only to stay before what follows.
static inline struct wr_version_copy wr_version_copy(struct wr_versions *versions,
                                                     uint64_t current) {
    struct wr_version *e = &versions->ring[current % WR_VERSIONS];
    struct wr_version_copy c;
    c.current = current;
    c.ready = atomic_load_explicit(&e->ready, memory_order_acquire);   // P2
    c.t0 = atomic_load_explicit(&e->t0, memory_order_acquire);         // R1
    c.per_ns = atomic_load_explicit(&e->per_ns, memory_order_acquire); // R1
    c.v0 = atomic_load_explicit(&e->v0, memory_order_acquire);         // R1
    c.frac0 = atomic_load_explicit(&e->frac0, memory_order_acquire);   // R1
    c.burst = atomic_load_explicit(&e->burst, memory_order_acquire);   // R1
    c.ramp0 = atomic_load_explicit(&e->ramp0, memory_order_acquire);   // R1
    return c;
}

static inline uint64_t wr_version_current(struct wr_versions *versions) {
    return atomic_load_explicit(&versions->current, memory_order_acquire); // P1
}

// `current` again, by a load that cannot be done before the clock was read.
static inline bool wr_version_still(struct wr_versions *versions, uint64_t current,
                                    uint64_t after) {
    _Atomic uint64_t *word = &versions->current + after;
    return atomic_load_explicit(word, memory_order_acquire) == current; // P1
}

struct wr_made {
    uint64_t units;
    uint64_t frac; // in 2^-64
};

// elapsed * per_ns / 2^shift + frac0 / 2^64. The shift is done as 64 - shift (that is -shift modulo
// 64) places up before the product: `elapsed` is less than 2^shift, by wr_time_max.
static inline struct wr_made wr_make(uint64_t elapsed, uint64_t per_ns, uint64_t frac0,
                                     uint32_t shift) {
    const wr_u128 made = (wr_u128)(elapsed << (-shift & 63)) * per_ns + frac0;
    return (struct wr_made){(uint64_t)(made >> 64), (uint64_t)made};
}

// Effective burst `units` of V after a version started with `ramp0` of its `burst`.
static inline uint64_t wr_ramp(uint64_t burst, uint64_t ramp0, uint64_t units) {
    return ramp0 + wr_min_u64(burst - ramp0, units);
}

// The ordinary case: a limit that is ready, and a reading that is not before its start. False: no.
static inline bool wr_now_try(struct wr_versions *versions, const struct wr_time_source *source,
                              const uint32_t *shift, int64_t at, bool fenced,
                              struct wr_now *now) {
    const uint64_t current = wr_version_current(versions);
    const struct wr_instant instant = wr_instant_read(source, at, fenced);
    const struct wr_version_copy c = wr_version_copy(versions, current);
    const uint64_t elapsed = (uint64_t)instant.ns - c.t0;
    if (WR_UNLIKELY(!wr_version_still(versions, c.current, instant.after) ||
                    c.ready != c.current || (int64_t)elapsed < 0))
        return false;
    const struct wr_made made = wr_make(elapsed, c.per_ns, c.frac0, *shift); // read here, not kept
    const uint64_t units = made.units;
    *now = (struct wr_now){
        .v = c.v0 + units,
        .frac = made.frac,
        .per_ns = c.per_ns,
        .ramp = (int64_t)wr_ramp(c.burst, c.ramp0, units),
        .burst = (int64_t)c.burst,
        .ns = instant.ns,
        .unlimited = false, // such a version is never ready
    };
    return true;
}

static inline struct wr_now wr_now_read(struct wr_versions *versions,
                                        const struct wr_time_source *source, uint32_t shift,
                                        int64_t at, bool fenced) {
    struct wr_now now;
    if (WR_LIKELY(wr_now_try(versions, source, &shift, at, fenced, &now))) return now;
    return wr_now_read_slow(versions, source, shift, at);
}
