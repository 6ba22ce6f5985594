// What the tests share; see support.h.
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hash.h"

struct weir_options options_at(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){tokens, period_ns, burst};
    options.clock = WEIR_CLOCK_CALLER;
    options.capacity_keys = 256;
    options.shards = 1;
    return options;
}

struct weir *create(const struct weir_options *options) {
    struct weir *w = NULL;
    struct weir_error error = {{0}};
    if (weir_create(&w, options, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
    return w;
}

struct weir *create_at(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    const struct weir_options options = options_at(tokens, period_ns, burst);
    struct weir *w = create(&options);
    (void)ask_at(w, WEIR_PEEK, "epoch", 0, 0);
    return w;
}

struct outcome weighted_at(struct weir *w, enum weir_kind kind, const char *key, uint64_t cost,
                           struct weir_weight weight, int64_t now_ns) {
    struct outcome o = {0, WEIR_ANSWER_INIT};
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str(key);
    ask.kind = kind;
    ask.cost = cost;
    ask.weight = weight;
    ask.now_ns = now_ns;
    o.result = weir_do(w, &ask, &o.answer);
    return o;
}

struct outcome ask_at(struct weir *w, enum weir_kind kind, const char *key, uint64_t cost,
                      int64_t now_ns) {
    return weighted_at(w, kind, key, cost, (struct weir_weight){0, 0}, now_ns);
}

int take_at(struct weir *w, const char *key, uint64_t cost, int64_t now_ns) {
    return weir_take_at(w, weir_str(key), cost, now_ns, NULL);
}

int set_limit_at(struct weir *w, uint64_t tokens, uint64_t period_ns, uint64_t burst,
                 int64_t now_ns) {
    const struct weir_limit limit = {tokens, period_ns, burst};
    return weir_set_limit_at(w, &limit, now_ns, NULL);
}

uint64_t remaining_at(struct weir *w, const char *key, int64_t now_ns) {
    return ask_at(w, WEIR_PEEK, key, 0, now_ns).answer.remaining;
}

struct weir_stats stats_of(const struct weir *w) {
    struct weir_stats stats;
    assert_int_equal(weir_stats(w, &stats, sizeof stats), WEIR_GRANTED);
    return stats;
}

uint64_t granted_of(struct weir *w, const char *key, uint64_t asks, int64_t from_ns,
                    uint64_t step_ns) {
    uint64_t granted = 0;
    for (uint64_t i = 0; i < asks; i++)
        granted += take_at(w, key, 1, from_ns + (int64_t)(i * step_ns)) == WEIR_GRANTED;
    return granted;
}

uint64_t hash_of(struct weir *w, struct weir_key key) {
    return wr_hash(w, key);
}

struct wr_place place_of(struct weir *w, struct weir_key key) {
    return wr_place_of(&w->geometry, hash_of(w, key));
}

unsigned live_ways(struct weir *w, struct weir_key key, struct wr_pair *slot) {
    const struct wr_place place = place_of(w, key);
    unsigned live = 0;
    for (unsigned i = 0; i < WR_WAYS; i++) {
        const struct wr_pair seen =
            wr_u128_load(&place.line[i / WR_LINE_WAYS]->slots[i % WR_LINE_WAYS]);
        if (!wr_slot_is(seen, place.fingerprint, WR_STATE_LIVE)) continue;
        if (slot != NULL) *slot = seen;
        live++;
    }
    return live;
}

struct wr_pair *all_slots(struct weir *w, uint64_t shard, uint64_t *count) {
    unsigned char *base = w->geometry.base + shard * w->geometry.shard_bytes;
    *count = w->geometry.lines_per_shard * WR_LINE_WAYS;
    return (struct wr_pair *)(void *)(base + sizeof(struct wr_shard));
}

uint64_t random_next(struct random *r) {
    uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t random_below(struct random *r, uint64_t n) {
    return wr_mul_high(random_next(r), n);
}

bool seed_from_environment(uint64_t *seed) {
    const char *text = getenv("WEIR_SEED");
    if (text == NULL) return false;
    *seed = strtoull(text, NULL, 0);
    return true;
}

double stress_seconds(double standard) {
    const char *text = getenv("WEIR_STRESS_SECONDS");
    return text == NULL ? standard : strtod(text, NULL);
}

uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

static void *counted_map(void *context, size_t bytes, size_t align) {
    struct counted *c = context;
    if (++c->maps == c->refuse_at) {
        c->maps--;
        c->refuse_at = 0;
        return NULL;
    }
    void *memory = NULL;
    if (posix_memalign(&memory, align, bytes) != 0) return NULL;
    c->misaligned = c->misaligned || (uintptr_t)memory % align != 0;
    c->bytes += bytes;
    return memset(memory, 0, bytes);
}

static void counted_unmap(void *context, void *memory, size_t bytes) {
    struct counted *c = context;
    c->unmaps++;
    c->bytes -= bytes;
    free(memory);
}

void counted_init(struct counted *counted) {
    *counted = (struct counted){0};
    counted->allocator = (struct weir_allocator){counted_map, counted_unmap, counted};
}
