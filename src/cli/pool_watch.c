// pool_watch.c - sampled by the thread that runs the pool.
#include "pool_watch.h"

#include <math.h>
#include <stdlib.h>

#include "pool.h"

#define MOMENTS 600 // a run has about so many, of at least LEAST_INTERVAL_NS
#define LEAST_INTERVAL_NS (50 * WEIR_MILLISECOND)

bool wr_pool_watch_init(struct wr_pool_watch *watch, uint64_t duration_ns,
                        struct wr_fault *fault) {
    const uint64_t interval_ns = duration_ns / MOMENTS;
    *watch = (struct wr_pool_watch){
        .interval_ns = interval_ns > LEAST_INTERVAL_NS ? interval_ns : LEAST_INTERVAL_NS,
        .room = MOMENTS + 2,
    };
    watch->moments = calloc(watch->room, sizeof *watch->moments);
    return watch->moments != NULL || wr_fault(fault, "no memory");
}

void wr_pool_watch_fini(struct wr_pool_watch *watch) {
    free(watch->moments);
}

void wr_pool_moment_read(const struct wr_pool *pool, uint64_t now_ns,
                         struct wr_pool_moment *moment) {
    moment->at_ns = now_ns;
    wr_ledger_read(&pool->ledger, &moment->counts);
    moment->parked = wr_pool_parked(pool);
    moment->rate_per_s = wr_pool_rate_per_s(pool);
    moment->depth = wr_pool_queue_depth(pool->queue);
    moment->busy = wr_pool_busy(pool);
}

// Arrived, not ended, and not being answered by the provider just now.
static bool anything_waits(const struct wr_pool *pool, const struct wr_pool_counts *counts) {
    const uint64_t ended = counts->of[WR_POOL_COUNT_DELIVERED] +
                           counts->of[WR_POOL_COUNT_DENIED] + counts->of[WR_POOL_COUNT_DEAD];
    return counts->of[WR_POOL_COUNT_ARRIVED] > ended + wr_pool_busy(pool);
}

static void note_possible(struct wr_pool_watch *watch, const struct wr_pool *pool,
                          const struct wr_pool_counts *counts, uint64_t now_ns) {
    const uint64_t span_ns = now_ns - watch->last_ns;
    const double per_s =
        wr_downstream_per_s(&pool->options.downstream, watch->last_ns + span_ns / 2);
    const uint64_t arrived = counts->of[WR_POOL_COUNT_ARRIVED];
    if (anything_waits(pool, counts))
        watch->possible += per_s * (double)span_ns / 1e9;
    else
        watch->possible += (double)(arrived - watch->last_arrived);
    watch->possible = fmin(watch->possible, (double)arrived);
    watch->last_arrived = arrived;
    watch->last_ns = now_ns;
}

void wr_pool_watch_tick(struct wr_pool_watch *watch, const struct wr_pool *pool, uint64_t now_ns) {
    struct wr_pool_counts counts;
    wr_ledger_read(&pool->ledger, &counts);
    note_possible(watch, pool, &counts, now_ns);
    watch->delivered = counts.of[WR_POOL_COUNT_DELIVERED];
    watch->overloads = wr_pool_overloads(&counts);
    if (now_ns < watch->count * watch->interval_ns || watch->count == watch->room) return;
    wr_pool_moment_read(pool, now_ns, &watch->moments[watch->count++]);
}

double wr_pool_watch_share(const struct wr_pool_watch *watch) {
    return watch->possible > 0 ? (double)watch->delivered / watch->possible : 1;
}
