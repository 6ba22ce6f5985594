// pool.c - makes the parts of a pool, and takes them apart.
#include "pool.h"

#include <math.h>
#include <stdlib.h>

#define KEYS_MAX (UINT64_C(1) << 20)
#define KEYS_MIN 1024
#define AT_ONCE_PER_S 50 // a fixed limit lets 20 ms of its rate pass at once, as the valve's does
#define MILLI 1000       // a valve's limit is in thousandths of a token a second

static bool create_limiter(struct weir **limiter, const struct weir_options *options,
                           const char *what, struct wr_fault *fault) {
    struct weir_error error = {""};
    return weir_create(limiter, options, &error) == WEIR_GRANTED ||
           wr_fault(fault, "%s: %s", what, error.text);
}

static bool create_lot(struct weir_lot **lot, const struct wr_pool_options *options,
                       uint64_t key_capacity, struct wr_fault *fault) {
    struct weir_lot_options lot_options = WEIR_LOT_OPTIONS_INIT;
    struct weir_error error = {""};
    lot_options.capacity = options->lot_capacity;
    lot_options.key_capacity = key_capacity;
    lot_options.max_tries = options->max_tries;
    lot_options.max_age_ns = options->max_age_ns;
    return weir_lot_create(lot, &lot_options, &error) == WEIR_GRANTED ||
           wr_fault(fault, "--lot: %s", error.text);
}

static bool create_key_gate(struct wr_pool *pool, struct wr_fault *fault) {
    const struct wr_pool_options *o = &pool->options;
    struct wr_gate *gate = &pool->gates[WR_GATE_KEY];
    struct weir_options options = WEIR_OPTIONS_INIT;
    const uint64_t keys = pool->events->count;
    if (!o->by_key) return true;
    options.limit = (struct weir_limit){o->rate.tokens, o->rate.period_ns, o->burst};
    options.capacity_keys = keys < KEYS_MIN ? KEYS_MIN : keys < KEYS_MAX ? keys : KEYS_MAX;
    options.name = "key";
    if (o->rate.tokens == 0) {
        options.max_rate_tokens = 1;
        options.max_rate_period_ns = WEIR_SECOND;
    }
    return create_limiter(&gate->limiter, &options, "-r, --rate", fault) &&
           (!o->park || create_lot(&gate->lot, o, 0, fault));
}

static bool create_valve(struct wr_pool *pool, struct weir_options *options,
                         struct wr_fault *fault) {
    const struct weir_valve_settings *settings = &pool->options.valve;
    struct weir_error error = {""};
    if (weir_valve_create(&pool->valve, settings, &error) != WEIR_GRANTED)
        return wr_fault(fault, "--valve: %s", error.text);
    weir_valve_limit(pool->valve, &options->limit);
    options->max_rate_tokens = (uint64_t)ceil(settings->max_per_s * MILLI);
    options->max_rate_period_ns = MILLI * WEIR_SECOND;
    return true;
}

// The lot is there in any mode: answers of 429 wait in it.
static bool create_provider_gate(struct wr_pool *pool, struct wr_fault *fault) {
    const struct wr_pool_options *o = &pool->options;
    struct wr_gate *gate = &pool->gates[WR_GATE_PROVIDER];
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.capacity_keys = KEYS_MIN;
    options.shards = 1;
    options.name = "provider";
    if (!create_lot(&gate->lot, o, o->lot_capacity, fault)) return false;
    if (o->mode == WR_POOL_NONE) return true;
    if (o->mode == WR_POOL_FIXED) {
        const double per_s = (double)o->provider_rate.tokens * 1e9 /
                             (double)o->provider_rate.period_ns;
        options.limit = (struct weir_limit){o->provider_rate.tokens, o->provider_rate.period_ns,
                                            1 + (uint64_t)(per_s / AT_ONCE_PER_S)};
    } else if (!create_valve(pool, &options, fault)) {
        return false;
    }
    return create_limiter(&gate->limiter, &options,
                          o->mode == WR_POOL_FIXED ? "--provider-rate" : "--valve", fault);
}

static bool create_parts(struct wr_pool *pool, struct wr_fault *fault) {
    const struct wr_pool_options *options = &pool->options;
    pool->workers = calloc(options->workers, sizeof *pool->workers);
    pool->queue = wr_pool_queue_create(options->queue);
    if (pool->workers == NULL || pool->queue == NULL) return wr_fault(fault, "no memory");
    return create_key_gate(pool, fault) && create_provider_gate(pool, fault) &&
           wr_pool_watch_init(&pool->watch, options->duration_ns, fault);
}

bool wr_pool_create(struct wr_pool **pool, const struct wr_pool_options *options,
                    struct wr_pool_events *events, struct wr_fault *fault) {
    struct wr_pool *made = calloc(1, sizeof *made);
    *pool = NULL;
    if (made == NULL) return wr_fault(fault, "no memory");
    made->options = *options;
    made->events = events;
    wr_provider_init(&made->provider, &options->downstream, options->seed);
    if (!create_parts(made, fault)) {
        wr_pool_destroy(made);
        return false;
    }
    *pool = made;
    return true;
}

void wr_pool_destroy(struct wr_pool *pool) {
    if (pool == NULL) return;
    (void)weir_valve_destroy(pool->valve);
    for (int i = 0; i < WR_GATES; i++) {
        weir_lot_destroy(pool->gates[i].lot);
        weir_destroy(pool->gates[i].limiter);
    }
    wr_pool_watch_fini(&pool->watch);
    wr_pool_queue_destroy(pool->queue);
    wr_provider_fini(&pool->provider);
    free(pool->workers);
    free(pool);
}

uint64_t wr_pool_parked(const struct wr_pool *pool) {
    uint64_t parked = 0;
    for (int i = 0; i < WR_GATES; i++) {
        struct weir_lot_stats stats;
        if (pool->gates[i].lot == NULL) continue;
        if (weir_lot_stats(pool->gates[i].lot, &stats, sizeof stats) == WEIR_GRANTED)
            parked += stats.held;
    }
    return parked;
}

double wr_pool_rate_per_s(const struct wr_pool *pool) {
    struct weir_limit limit;
    if (pool->gates[WR_GATE_PROVIDER].limiter == NULL) return HUGE_VAL;
    weir_get_limit(pool->gates[WR_GATE_PROVIDER].limiter, &limit);
    return (double)limit.tokens * 1e9 / (double)limit.period_ns;
}
