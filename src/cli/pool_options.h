// pool_options.h - all that a run of `weir pool` is told.
#ifndef WR_POOL_OPTIONS_H
#define WR_POOL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir_valve.h>

#include "pool_spec.h"
#include "rate.h"
#include "trace.h"

// X(name, word, what it does to the provider's limit)
#define WR_POOL_MODES(X)                                                                           \
    X(NONE, "none", "the provider has no limit: events go to the workers as fast as they come")   \
    X(FIXED, "fixed", "the provider's limit is --provider-rate, whatever happens")                 \
    X(ADAPTIVE, "adaptive", "a valve sets the provider's limit by queue depth and 429 answers")

enum wr_pool_mode {
#define WR_POOL_MODE_ENTRY(name, word, summary) WR_POOL_##name,
    WR_POOL_MODES(WR_POOL_MODE_ENTRY)
#undef WR_POOL_MODE_ENTRY
    WR_POOL_MODE_COUNT
};

struct wr_pool_options {
    // Events
    enum wr_trace_kind kind;
    const char *file; // NULL: generated
    const char *key;  // NULL: the usual
    struct wr_rate arrivals; // tokens 0 and period 0: the usual
    uint64_t seed;
    uint64_t speed; // a log is run so many times as fast
    uint64_t duration_ns;
    // The limit by key
    bool by_key;
    struct wr_rate rate;
    uint64_t burst;
    bool park; // what it denies comes back; else it is denied for good
    // The provider's limit
    enum wr_pool_mode mode;
    struct wr_rate provider_rate; // fixed
    struct weir_valve_settings valve;
    // The rest of the pipeline
    uint32_t workers;
    uint32_t queue;        // events that wait for a worker, a power of two less 1
    uint64_t lot_capacity; // events parked
    uint32_t max_tries;    // 0: no end
    uint64_t max_age_ns;   // 0: no end
    uint64_t retry_ns;     // after an answer that means "too much"
    uint64_t drain_ns;     // at the end, for what is in the queue
    struct wr_downstream downstream;
};

const char *wr_pool_mode_word(enum wr_pool_mode mode);

#endif
