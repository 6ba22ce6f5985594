// pool_watch.h - what a run looked like over time, and what the provider could have taken.
#ifndef WR_POOL_WATCH_H
#define WR_POOL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pool_ledger.h"
#include "text.h"

struct wr_pool;
struct wr_pool_view; // pool_view.h

struct wr_pool_moment {
    uint64_t at_ns;
    struct wr_pool_counts counts;
    uint64_t parked;
    double rate_per_s; // of the provider's limit; HUGE_VAL: none
    uint32_t depth;
    uint32_t busy;
};

struct wr_pool_watch {
    struct wr_pool_moment *moments;
    size_t count;
    size_t room;
    uint64_t interval_ns;
    uint64_t last_ns;       // of the last tick
    uint64_t last_arrived;
    // Up to the end of the arrivals, before the drain:
    double possible;        // the provider's capacity while anything waits, else what arrives;
                            // never more than has arrived
    uint64_t delivered;
    uint64_t overloads;
};

bool wr_pool_watch_init(struct wr_pool_watch *watch, uint64_t duration_ns, struct wr_fault *fault);
void wr_pool_watch_fini(struct wr_pool_watch *watch);

// Every few milliseconds, while events arrive.
void wr_pool_watch_tick(struct wr_pool_watch *watch, const struct wr_pool *pool, uint64_t now_ns);

void wr_pool_moment_read(const struct wr_pool *pool, uint64_t now_ns,
                         struct wr_pool_moment *moment);

// How much of what the provider could have taken it took, 0 to 1.
double wr_pool_watch_share(const struct wr_pool_watch *watch);

#endif
