// struct weir: the handle of one process on a limiter's region. Never changes after creation.
#pragma once

#include "table.h"

struct wr_synced;

struct weir {
    // What a decision reads, in its first lines.
    struct wr_geometry geometry;
    struct wr_versions *versions;
    struct wr_count_line *counts;
    const uint8_t *secret;
    struct wr_time_source source;
    struct wr_scale scale;
    enum weir_full_policy full_policy;
    bool dry_run;
    bool not_plain;          // a caller's clock or a dry run: weir_take goes the whole way
    _Atomic uint64_t cost_max_plain; // what weir_take may try the short way: 0 if not_plain or
                                     //   synced, else cost_max
    int64_t relic_level;     // -horizon
    uint64_t two_us_units;   // what max_rate makes in 2 us: a refusal as close is looked at again
    _Atomic(struct wr_synced *) synced; // NULL: under no sync
    // The rest.
    struct wr_synced *synced_memory;    // of this and of earlier attaches
    struct wr_region *region;
    struct weir_allocator allocator;
    char name[64];
};

// Frees what attaches to syncs took.
void wr_synced_free(struct weir *w);

// A caller's reading, since the first one. (R1 is defined in weir.c.)
static inline int64_t wr_caller_time(struct weir *w, int64_t now_ns) {
    int64_t epoch = atomic_load_explicit(&w->region->epoch_ns, memory_order_relaxed); // R1
    if (WR_UNLIKELY(epoch == INT64_MIN)) {
        // The first reading is the epoch, whoever wins.
        if (atomic_compare_exchange_strong_explicit(&w->region->epoch_ns, &epoch, now_ns, // R1
                                                    memory_order_relaxed,                 // R1
                                                    memory_order_relaxed))                // R1
            epoch = now_ns;
    }
    int64_t since;
    if (__builtin_sub_overflow(now_ns, epoch, &since))
        since = now_ns < epoch ? INT64_MIN : INT64_MAX;
    const int64_t most = wr_time_max(w->scale.shift);
    return wr_max_i64(-most, wr_min_i64(since, most));
}
