// Changing a limiter and looking at it: the calls that are not decisions.
//
// L1 A slot seen by weir_each is one atomic load.
// R2 Statistics: see count.c and clock.c.
#include <string.h>

#include "ask.h"
#include "wait.h"

static int change(struct weir *w, const struct weir_limit *limit, int64_t at,
                  struct weir_error *error) {
    struct wr_profile profile;
    if (limit == NULL) {
        wr_say(error, "limit must not be NULL");
        return WEIR_EINVAL;
    }
    int result = wr_profile_init(&profile, &w->scale, limit, error);
    if (result != WEIR_GRANTED) return result;
    result = wr_versions_change(w->versions, &w->source, w->scale.shift, at, &profile, limit);
    if (result == WEIR_EBUSY)
        wr_say(error, "more than %d threads are changing the limit; try again", WR_VERSIONS - 2);
    else wr_wake_all(w);
    return result;
}

static int wrong_clock(struct weir_error *error, const char *use) {
    wr_say(error, "this call does not fit the limiter's clock; use %s", use);
    return WEIR_ECLOCK;
}

int weir_set_limit(struct weir *limiter, const struct weir_limit *limit,
                   struct weir_error *error) {
    if (limiter->source.kind == WEIR_CLOCK_CALLER)
        return wrong_clock(error, "weir_set_limit_at");
    return change(limiter, limit, 0, error);
}

int weir_set_limit_at(struct weir *limiter, const struct weir_limit *limit, int64_t now_ns,
                      struct weir_error *error) {
    if (limiter->source.kind != WEIR_CLOCK_CALLER) return wrong_clock(error, "weir_set_limit");
    return change(limiter, limit, wr_caller_time(limiter, now_ns), error);
}

void weir_get_limit(const struct weir *limiter, struct weir_limit *limit) {
    wr_versions_limit(limiter->versions, limiter->scale.unit_tokens, limit);
}

// Whole tokens of a level, rounded down.
static int64_t level_tokens(const struct weir *w, int64_t level) {
    const int64_t unit = (int64_t)w->scale.unit_tokens;
    return level / unit - (level % unit < 0);
}

static struct weir_slot describe(const struct weir *w, const struct wr_now *now,
                                 struct wr_pair seen, int64_t level) {
    const uint64_t missing = (uint64_t)(now->burst - level);
    return (struct weir_slot){
        .size = sizeof(struct weir_slot),
        .fingerprint = seen.tag & WR_FINGERPRINT_MASK,
        .level_tokens = level_tokens(w, level),
        .full_after_ns = wr_wait_ns(&w->scale, now->per_ns, now->frac, missing),
    };
}

// Visits one shard; false when the visitor has had enough.
static bool each_in_shard(struct weir *w, uint64_t shard, const struct wr_now *now,
                          bool (*visit)(const struct weir_slot *slot, void *context),
                          void *context, uint64_t *visited) {
    unsigned char *base = w->geometry.base + shard * w->geometry.shard_bytes;
    struct wr_pair *slots = (struct wr_pair *)(void *)(base + sizeof(struct wr_shard));
    for (uint64_t i = 0; i < w->geometry.lines_per_shard * WR_LINE_WAYS; i++) {
        const struct wr_pair seen = wr_u128_load(&slots[i]); // L1
        if (!wr_slot_state_is(seen, WR_STATE_LIVE)) continue;
        bool relic;
        const int64_t level = wr_level(now, seen.word, w->scale.horizon_units, &relic);
        if (level >= now->ramp) continue;
        ++*visited;
        const struct weir_slot slot = describe(w, now, seen, level);
        if (!visit(&slot, context)) return false;
    }
    return true;
}

static uint64_t each(struct weir *w, int64_t at,
                     bool (*visit)(const struct weir_slot *slot, void *context), void *context) {
    const struct wr_now now = wr_now_read(w->versions, &w->source, w->scale.shift, at, false);
    uint64_t visited = 0;
    for (uint64_t shard = 0; shard < w->geometry.shards; shard++)
        if (!each_in_shard(w, shard, &now, visit, context, &visited)) break;
    return visited;
}

uint64_t weir_each(struct weir *limiter,
                   bool (*visit)(const struct weir_slot *slot, void *context), void *context) {
    return limiter->source.kind == WEIR_CLOCK_CALLER ? 0 : each(limiter, 0, visit, context);
}

uint64_t weir_each_at(struct weir *limiter, int64_t now_ns,
                      bool (*visit)(const struct weir_slot *slot, void *context),
                      void *context) {
    if (limiter->source.kind != WEIR_CLOCK_CALLER) return 0;
    return each(limiter, wr_caller_time(limiter, now_ns), visit, context);
}

// The smallest struct weir_stats ever published: through relics.
#define STATS_LEAST offsetof(struct weir_stats, clock_fallbacks)

int weir_stats(const struct weir *limiter, struct weir_stats *stats, size_t size) {
    if (size < STATS_LEAST || size > sizeof *stats) return WEIR_ESIZE;
    struct weir_stats all = {0};
    wr_counts_sum(&limiter->region->counts, &all);
    if (limiter->source.kind == WEIR_CLOCK_COUNTER)
        all.clock_fallbacks =
            atomic_load_explicit(&wr_process_counter.fallbacks, memory_order_relaxed); // R2
    all.capacity_keys = limiter->region->capacity_keys;
    all.memory_bytes = limiter->region->region_bytes + sizeof *limiter;
    all.shards = limiter->region->shards;
    memcpy(stats, &all, size);
    return WEIR_GRANTED;
}
