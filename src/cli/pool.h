// pool.h - the pipeline of `weir pool`, with real threads.
//
//     source -> the limit of the event's key -> the provider's -> queue -> workers -> provider
//                        |        ^              |       ^                    |
//                        +-> lot -+              +> lot -+<------ 429 --------+
//
//     struct wr_pool *pool;
//     if (!wr_pool_create(&pool, &options, &events, &fault)) ...
//     if (!wr_pool_run(pool, view, &interrupted, &fault)) ...
//     ... // read pool->counts, pool->sheet, pool->watch
//     wr_pool_destroy(pool);
//
// An event has one owner at a time: the source, a lot, the queue, a worker or the returner.
#ifndef WR_POOL_H
#define WR_POOL_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir.h>
#include <weir_lot.h>
#include <weir_valve.h>

#include "pool_events.h"
#include "pool_latency.h"
#include "pool_ledger.h"
#include "pool_options.h"
#include "pool_provider.h"
#include "pool_queue.h"
#include "pool_watch.h"

enum { WR_GATE_KEY, WR_GATE_PROVIDER, WR_GATES };

struct wr_gate {
    struct weir *limiter; // NULL: everything passes
    struct weir_lot *lot; // NULL: what it denies is denied for good
};

struct wr_pool {
    struct wr_pool_options options;
    struct wr_pool_events *events;
    struct wr_gate gates[WR_GATES];
    struct weir_valve *valve; // NULL: not adaptive
    struct wr_provider provider;
    struct wr_pool_queue *queue;
    struct wr_ledger ledger;
    struct wr_latency latency;
    uint64_t start_ns;
    // Words shared by the threads: see pool_flow.c
    _Atomic uint32_t busy;
    _Atomic bool closing;
    _Atomic bool arrivals_over;
    uint64_t overloads_told; // to the valve, by its thread
    // Threads
    pthread_t source, returner, *workers;
    uint32_t started; // of source, returner and workers
    // By the thread that runs it
    struct wr_pool_watch watch;
    bool interrupted;
    // When it is over
    uint64_t ran_ns;
    struct wr_pool_counts counts;
    struct wr_pool_sheet sheet;
    struct wr_latencies latencies;
    struct weir_valve_stats valve_stats;
    uint32_t worst_depth;
};

// `events` are shared by several pools, one running at a time.
bool wr_pool_create(struct wr_pool **pool, const struct wr_pool_options *options,
                    struct wr_pool_events *events, struct wr_fault *fault);
void wr_pool_destroy(struct wr_pool *pool);

// Runs until the duration is over, or all events have ended, or *interrupted is not 0; then drains.
// `view` (may be NULL) is called every 5 ms. False: the threads could not be started.
bool wr_pool_run(struct wr_pool *pool, struct wr_pool_view *view,
                 const volatile sig_atomic_t *interrupted, struct wr_fault *fault);

// Nanoseconds since the start of the run.
uint64_t wr_pool_now_ns(const struct wr_pool *pool);

// Of any thread, at any time:
uint64_t wr_pool_parked(const struct wr_pool *pool); // in the lots now
double wr_pool_rate_per_s(const struct wr_pool *pool); // the provider's limit; HUGE_VAL: none
uint32_t wr_pool_busy(const struct wr_pool *pool);

// pool_flow.c: what the threads do.
void *wr_pool_run_source(void *pool);
void *wr_pool_run_returner(void *pool);
void *wr_pool_run_worker(void *pool);
void wr_pool_close(struct wr_pool *pool);
bool wr_pool_arrivals_are_over(const struct wr_pool *pool);

#endif
