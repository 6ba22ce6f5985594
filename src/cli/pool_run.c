// pool_run.c - starts the threads, watches, and brings every event to an end.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool.h"
#include "pool_view.h"

#define TICK_NS (5 * WEIR_MILLISECOND)
#define SOURCE_AND_RETURNER 2
#define BATCH 64

static uint64_t machine_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t wr_pool_now_ns(const struct wr_pool *pool) {
    return machine_now_ns() - pool->start_ns;
}

static void sleep_ns(uint64_t ns) {
    const struct timespec span = {(time_t)(ns / WEIR_SECOND), (long)(ns % WEIR_SECOND)};
    nanosleep(&span, NULL); // a signal ends it early, and is looked at
}

static bool start_thread(struct wr_pool *pool, pthread_t *thread, void *(*run)(void *)) {
    if (pthread_create(thread, NULL, run, pool) != 0) return false;
    pool->started++;
    return true;
}

static bool start_workers(struct wr_pool *pool) {
    for (uint32_t i = 0; i < pool->options.workers; i++)
        if (!start_thread(pool, &pool->workers[i], wr_pool_run_worker)) return false;
    return true;
}

// With all signals blocked in them: the running thread handles those. Workers come first, so that
// no event has arrived yet where one cannot be started.
static bool start_threads(struct wr_pool *pool, struct wr_fault *fault) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool good = start_workers(pool) &&
                      start_thread(pool, &pool->returner, wr_pool_run_returner) &&
                      start_thread(pool, &pool->source, wr_pool_run_source);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good || wr_fault(fault, "only %u of %u threads could be started; fewer: --workers",
                            pool->started, pool->options.workers + SOURCE_AND_RETURNER);
}

static int read_depth(void *context, struct weir_sample *sample) {
    struct wr_pool *pool = context;
    struct wr_pool_counts counts;
    wr_ledger_read(&pool->ledger, &counts);
    const uint64_t overloads = wr_pool_overloads(&counts);
    sample->depth = wr_pool_queue_depth(pool->queue);
    sample->overloads = overloads - pool->overloads_told;
    pool->overloads_told = overloads;
    return 0;
}

static bool start_valve(struct wr_pool *pool, struct wr_fault *fault) {
    struct weir_error error = {""};
    sigset_t all, before;
    if (pool->valve == NULL) return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int result = weir_valve_start(pool->valve, pool->gates[WR_GATE_PROVIDER].limiter,
                                        read_depth, pool, &error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result == WEIR_GRANTED || wr_fault(fault, "--valve: %s", error.text);
}

static bool all_have_ended(const struct wr_pool *pool) {
    struct wr_pool_counts counts;
    wr_ledger_read(&pool->ledger, &counts);
    return wr_pool_arrivals_are_over(pool) &&
           counts.of[WR_POOL_COUNT_ARRIVED] ==
               counts.of[WR_POOL_COUNT_DELIVERED] + counts.of[WR_POOL_COUNT_DENIED] +
                   counts.of[WR_POOL_COUNT_DEAD];
}

static void watch(struct wr_pool *pool, struct wr_pool_view *view,
                  const volatile sig_atomic_t *interrupted) {
    for (;;) {
        const uint64_t now_ns = wr_pool_now_ns(pool);
        wr_pool_watch_tick(&pool->watch, pool, now_ns);
        if (view != NULL) wr_pool_view_show(view, pool, now_ns);
        pool->interrupted = *interrupted != 0;
        if (pool->interrupted || now_ns >= pool->options.duration_ns || all_have_ended(pool))
            return;
        sleep_ns(TICK_NS);
    }
}

// Lets the workers have what is in the queue, for a while.
static void wait_for_queue(const struct wr_pool *pool) {
    const uint64_t until_ns = wr_pool_now_ns(pool) + pool->options.drain_ns;
    while ((wr_pool_queue_depth(pool->queue) > 0 || wr_pool_busy(pool) > 0) &&
           wr_pool_now_ns(pool) < until_ns)
        sleep_ns(TICK_NS);
}

static void drain_lot(struct wr_pool *pool, struct weir_lot *lot) {
    struct weir_lot_node *nodes[BATCH];
    size_t count;
    if (lot == NULL) return;
    while ((count = weir_lot_drain(lot, nodes, BATCH)) > 0)
        for (size_t i = 0; i < count; i++)
            wr_ledger_end(&pool->ledger, WEIR_LOT_EVENT(nodes[i], struct wr_pool_event, node),
                          WR_POOL_PARKED);
}

// The order matters: nothing comes in any more, then nothing is parked any more, then the workers
// finish, and what is left has no other owner.
static void finish(struct wr_pool *pool) {
    const uint32_t workers = pool->options.workers;
    const uint32_t running = pool->started < workers ? pool->started : workers;
    wr_pool_close(pool);
    if (pool->started > workers) pthread_join(pool->returner, NULL);
    if (pool->started > workers + 1) pthread_join(pool->source, NULL);
    for (int i = 0; i < WR_GATES; i++)
        if (pool->gates[i].lot != NULL) weir_lot_close(pool->gates[i].lot);
    wait_for_queue(pool);
    wr_pool_queue_stop(pool->queue, running);
    for (uint32_t i = 0; i < running; i++) pthread_join(pool->workers[i], NULL);
    for (struct wr_pool_event *event; (event = wr_pool_queue_take(pool->queue)) != NULL;)
        wr_ledger_end(&pool->ledger, event, WR_POOL_PARKED);
    for (int i = 0; i < WR_GATES; i++) drain_lot(pool, pool->gates[i].lot);
}

static void sum_up(struct wr_pool *pool) {
    pool->ran_ns = wr_pool_now_ns(pool);
    wr_ledger_read(&pool->ledger, &pool->counts);
    wr_pool_sheet(&pool->ledger, pool->events, &pool->sheet);
    wr_latency_read(&pool->latency, &pool->latencies);
    pool->worst_depth = wr_pool_queue_worst(pool->queue);
    if (pool->valve != NULL)
        (void)weir_valve_stats(pool->valve, &pool->valve_stats, sizeof pool->valve_stats);
}

bool wr_pool_run(struct wr_pool *pool, struct wr_pool_view *view,
                 const volatile sig_atomic_t *interrupted, struct wr_fault *fault) {
    wr_pool_events_reset(pool->events);
    pool->start_ns = machine_now_ns();
    const bool good = start_valve(pool, fault) && start_threads(pool, fault);
    if (good) watch(pool, view, interrupted);
    if (pool->valve != NULL) (void)weir_valve_stop(pool->valve);
    finish(pool);
    sum_up(pool);
    return good;
}
