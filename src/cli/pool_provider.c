// pool_provider.c - a bucket of calls, filled at the capacity of the present phase.
#include "pool_provider.h"

#define CALL INT64_C(1000000000) // one, as the level counts
#define AT_ONCE_NS (20 * WEIR_MILLISECOND)

__extension__ typedef unsigned __int128 wide;

static const struct wr_rate *capacity(const struct wr_provider *provider) {
    return &provider->downstream.phases[provider->phase].capacity;
}

// What the capacity makes in `span_ns`, in 10^-9 calls; at most an hour of it is asked for.
static wide made_in(const struct wr_rate *rate, uint64_t span_ns) {
    return (wide)rate->tokens * (uint64_t)CALL * span_ns;
}

static int64_t level_max(const struct wr_rate *rate) {
    const wide most = made_in(rate, AT_ONCE_NS) / rate->period_ns + (wide)CALL;
    return most > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)most;
}

static void fill(struct wr_provider *provider, uint64_t until_ns) {
    const struct wr_rate *rate = capacity(provider);
    const uint64_t span_ns = until_ns - provider->now_ns;
    const wide made = made_in(rate, span_ns < WEIR_HOUR ? span_ns : WEIR_HOUR) + provider->rest;
    const wide whole = made / rate->period_ns;
    const int64_t most = level_max(rate);
    provider->rest = (uint64_t)(made % rate->period_ns);
    provider->level = whole > (wide)INT64_MAX / 2 || provider->level + (int64_t)whole > most
                          ? most
                          : provider->level + (int64_t)whole;
    provider->now_ns = until_ns;
}

// Fills the bucket phase by phase.
static void advance(struct wr_provider *provider, uint64_t now_ns) {
    const struct wr_downstream *d = &provider->downstream;
    if (now_ns <= provider->now_ns) return;
    for (size_t next; (next = provider->phase + 1) < d->phase_count;) {
        if (d->phases[next].from_ns > now_ns) break;
        fill(provider, d->phases[next].from_ns);
        provider->phase = next;
        provider->rest = 0;
    }
    fill(provider, now_ns);
}

void wr_provider_init(struct wr_provider *provider, const struct wr_downstream *downstream,
                      uint64_t seed) {
    *provider = (struct wr_provider){.downstream = *downstream, .random = wr_random_init(seed)};
    pthread_mutex_init(&provider->mutex, NULL);
    provider->level = level_max(capacity(provider));
}

void wr_provider_fini(struct wr_provider *provider) {
    pthread_mutex_destroy(&provider->mutex);
}

static uint64_t draw_latency_ns(struct wr_provider *provider) {
    const struct wr_downstream *d = &provider->downstream;
    return d->latency_ns - d->spread_ns + wr_random_below(&provider->random, 2 * d->spread_ns + 1);
}

// How long until the bucket has one call; UINT64_MAX: longer than the timeout.
static uint64_t turn_ns(const struct wr_provider *provider) {
    const struct wr_rate *rate = capacity(provider);
    const int64_t lack = CALL - provider->level;
    if (lack <= 0) return 0;
    const wide per_ns = (wide)rate->tokens * (uint64_t)CALL;
    if (per_ns == 0) return UINT64_MAX;
    const wide wait = ((wide)lack * rate->period_ns + per_ns - 1) / per_ns;
    return wait > provider->downstream.timeout_ns ? UINT64_MAX : (uint64_t)wait;
}

static struct wr_pool_reply reply_at(struct wr_provider *provider) {
    struct wr_pool_reply reply = {WR_POOL_OK, draw_latency_ns(provider)};
    if (wr_downstream_is_out(&provider->downstream, provider->now_ns)) {
        reply.status = WR_POOL_UNAVAILABLE;
        return reply;
    }
    if (capacity(provider)->tokens == WEIR_UNLIMITED_TOKENS) return reply;
    const uint64_t turn = turn_ns(provider);
    if (turn > 0 && provider->downstream.refuses) {
        reply.status = WR_POOL_TOO_MANY;
    } else if (turn == UINT64_MAX) {
        reply = (struct wr_pool_reply){WR_POOL_TIMEOUT, provider->downstream.timeout_ns};
    } else {
        provider->level -= CALL;
        reply.after_ns += turn;
    }
    return reply;
}

struct wr_pool_reply wr_provider_call(struct wr_provider *provider, uint64_t now_ns) {
    pthread_mutex_lock(&provider->mutex);
    advance(provider, now_ns);
    const struct wr_pool_reply reply = reply_at(provider);
    pthread_mutex_unlock(&provider->mutex);
    return reply;
}
