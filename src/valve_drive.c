// The valve's handle: a lock around the pure step, and the limiter that is driven.
#include <string.h>

#include "limiter.h"
#include "memory.h"
#include "valve.h"

int weir_valve_create(struct weir_valve **valve, const struct weir_valve_settings *settings,
                      struct weir_error *error) {
    if (valve == NULL || settings == NULL) {
        wr_say(error, "valve and settings must not be NULL");
        return WEIR_EINVAL;
    }
    *valve = NULL;
    const int result = wr_valve_check(settings, error);
    if (result != WEIR_GRANTED) return result;
    const struct weir_allocator *allocator =
        settings->allocator != NULL ? settings->allocator : &wr_mmap_allocator;
    struct weir_valve *made = allocator->map(allocator->context, sizeof *made, 64);
    if (made == NULL) {
        wr_say(error, "no memory: the allocator would not give %zu bytes", sizeof *made);
        return WEIR_ENOMEM;
    }
    made->allocator = *allocator;
    wr_valve_init(&made->state, settings);
    pthread_mutex_init(&made->lock, NULL);
    *valve = made;
    return WEIR_GRANTED;
}

int weir_valve_destroy(struct weir_valve *valve) {
    if (valve == NULL) return WEIR_GRANTED;
    const int result = weir_valve_stop(valve);
    if (result != WEIR_GRANTED) return result;
    const struct weir_allocator allocator = valve->allocator;
    pthread_mutex_destroy(&valve->lock);
    allocator.unmap(allocator.context, valve, sizeof *valve);
    return WEIR_GRANTED;
}

static void current_limit(const struct weir_valve *valve, struct weir_limit *limit) {
    wr_valve_limit(&valve->state.settings, valve->state.stats.rate_per_s, limit);
}

void weir_valve_limit(struct weir_valve *valve, struct weir_limit *limit) {
    pthread_mutex_lock(&valve->lock);
    current_limit(valve, limit);
    pthread_mutex_unlock(&valve->lock);
}

int weir_valve_step(struct weir_valve *valve, const struct weir_sample *sample, uint64_t dt_ns,
                    struct weir_limit *limit) {
    pthread_mutex_lock(&valve->lock);
    const int result = wr_valve_step(&valve->state, sample, dt_ns);
    if (limit != NULL) current_limit(valve, limit);
    pthread_mutex_unlock(&valve->lock);
    return result;
}

int weir_valve_fits(struct weir_valve *valve, const struct weir *limiter,
                    struct weir_error *error) {
    struct weir_limit most;
    struct wr_profile profile;
    if (limiter->source.kind == WEIR_CLOCK_CALLER) {
        wr_say(error, "the limiter has a caller's clock; use weir_valve_step and "
               "weir_set_limit_at");
        return WEIR_ECLOCK;
    }
    // A limit in thousandths of a token, a little below max_per_s: what may really be set.
    wr_valve_limit(&valve->state.settings, valve->state.settings.max_per_s, &most);
    struct weir_error why = {""};
    const int result = wr_profile_init(&profile, &limiter->scale, &most, &why);
    if (result != WEIR_GRANTED)
        wr_say(error, "max_per_s is %g: %.200s", valve->state.settings.max_per_s, why.text);
    return result;
}

static bool same(const struct weir_limit *a, const struct weir_limit *b) {
    return a->tokens == b->tokens && a->period_ns == b->period_ns && a->burst == b->burst;
}

int wr_valve_set(struct weir_valve *valve, struct weir *limiter, struct weir_error *error) {
    struct weir_limit limit;
    current_limit(valve, &limit);
    if (same(&limit, &valve->set)) return WEIR_GRANTED;
    const int result = weir_set_limit(limiter, &limit, error);
    if (result == WEIR_GRANTED) valve->set = limit;
    else valve->state.stats.refused++;
    return result;
}

// What the limiter granted since the last drive; unknown at the first one.
static uint64_t granted_since(struct weir_valve *valve, const struct weir *limiter) {
    struct weir_stats stats;
    if (weir_stats(limiter, &stats, sizeof stats) != WEIR_GRANTED) return WEIR_UNKNOWN;
    const uint64_t granted =
        valve->tokens_known ? stats.tokens - valve->last_tokens : WEIR_UNKNOWN;
    valve->last_tokens = stats.tokens;
    valve->tokens_known = true;
    return granted;
}

int wr_valve_drive(struct weir_valve *valve, struct weir *limiter,
                   const struct weir_sample *sample, uint64_t dt_ns) {
    struct weir_sample with_use = *sample;
    const uint64_t granted = granted_since(valve, limiter);
    if (sample->granted_tokens == WEIR_UNKNOWN) with_use.granted_tokens = granted;
    const int stepped = wr_valve_step(&valve->state, &with_use, dt_ns);
    const int set = wr_valve_set(valve, limiter, NULL);
    return stepped != WEIR_GRANTED ? stepped : set;
}

int weir_valve_drive(struct weir_valve *valve, struct weir *limiter,
                     const struct weir_sample *sample, uint64_t dt_ns) {
    pthread_mutex_lock(&valve->lock);
    const int result = wr_valve_drive(valve, limiter, sample, dt_ns);
    pthread_mutex_unlock(&valve->lock);
    return result;
}

// The smallest struct weir_valve_stats ever published.
#define STATS_LEAST (offsetof(struct weir_valve_stats, reading_late) + sizeof(bool))

int weir_valve_stats(struct weir_valve *valve, struct weir_valve_stats *stats, size_t size) {
    if (size < STATS_LEAST || size > sizeof *stats) return WEIR_ESIZE;
    pthread_mutex_lock(&valve->lock);
    struct weir_valve_stats all = valve->state.stats;
    all.running = valve->running;
    all.reading_late = wr_valve_reading_late(valve);
    pthread_mutex_unlock(&valve->lock);
    if (all.reading_late) all.late++;
    memcpy(stats, &all, size);
    return WEIR_GRANTED;
}
