// A node in the hands of a test.
#include "sync_peer.h"

#include <stdlib.h>

static struct wr_node_rules rules(void) {
    return (struct wr_node_rules){
        .interval_us = 100000,
        .epoch_us = SECOND_US,
        .hot_memory_us = 60 * SECOND_US,
        .share_span_us = 10 * SECOND_US,
        .policy = WR_NODE_LOCAL_SHARE,
    };
}

struct peer peer_new(uint64_t tokens, int64_t period_us, uint64_t burst, uint64_t debt,
                            uint64_t unit_tokens) {
    struct peer peer = {.rules = rules(), .random = UINT32_MAX};
    if (wr_node_limit_init(&peer.limit, tokens, (uint64_t)period_us * 1000, burst, debt,
                           unit_tokens, 1) != WR_NODE_REFUSAL_OK)
        abort();
    peer.level = peer.limit.burst_units;
    peer.level_us = START_US;
    return peer;
}

// Units that come back in so many us; the tests use rates that make whole units.
static int64_t made(const struct peer *peer, int64_t us) {
    return (int64_t)((wr_u128)(uint64_t)us * peer->limit.unit_us_den / peer->limit.unit_us_num);
}

void peer_advance(struct peer *peer, int64_t now_us) {
    peer->level = wr_min_i64(peer->level + made(peer, now_us - peer->level_us),
                             peer->limit.burst_units);
    peer->level_us = now_us;
}

bool peer_ask(struct peer *peer, int64_t now_us, uint64_t tokens) {
    peer_advance(peer, now_us);
    const struct wr_node_ask ask = {
        .now_us = now_us,
        .cost_units = tokens * (uint64_t)peer->limit.unit_tokens,
        .random = peer->random,
        .outage = peer->outage,
    };
    return wr_node_take(&peer->limit, &peer->rules, &peer->side, &peer->level, &ask,
                        &peer->urgent) == WR_NODE_GRANTED;
}

int peer_ask_times(struct peer *peer, int64_t now_us, int times) {
    int granted = 0;
    for (int i = 0; i < times; i++) granted += peer_ask(peer, now_us, 1);
    return granted;
}

void peer_freeze(struct peer *peer, int64_t now_us) {
    const struct wr_node_side taken = peer->side;
    peer->side.granted_units = 0;
    peer->side.denied_tokens = 0;
    wr_node_freeze(&peer->limit, &peer->key, &taken, now_us, &peer->frozen);
}

struct sync_report peer_report(const struct peer *peer, int64_t now_us) {
    return (struct sync_report){
        .cost_us = (int64_t)peer->frozen.cost_us,
        .cap_us = peer->limit.cap_us,
        .burst_us = peer->limit.burst_us,
        .generation = peer->limit.generation,
        .age_us = wr_node_age_us(&peer->frozen, now_us),
        .demand = peer->frozen.demand_tokens,
        .backlog = wr_node_is_backlog(&peer->rules, &peer->frozen, now_us),
    };
}

int64_t peer_redis_us(int64_t now_us) {
    return now_us + REDIS_AHEAD_US;
}

void peer_hear(struct peer *peer, struct sync_answer answer, int64_t now_us) {
    const struct wr_node_reply reply = {
        .rel_us = answer.rel_us == INT64_MIN ? 0 : answer.rel_us,
        .unknown = answer.rel_us == INT64_MIN,
        .previous_tokens = answer.previous,
        .current_tokens = answer.current,
    };
    const struct wr_node_timing timing = {now_us, now_us, peer_redis_us(now_us), peer->random};
    struct wr_node_heard heard;
    peer_advance(peer, now_us);
    wr_node_hear(&peer->limit, &peer->rules, &peer->key, &peer->frozen, &reply, &timing, &heard);
    peer->level = wr_node_settle(&peer->limit, &heard, peer->level, peer->side.granted_units,
                                 peer->side.m_q16, now_us);
    wr_node_settle_side(&heard, &peer->side);
}

void peer_sync(struct peer *peer, struct sync_bucket *bucket, int64_t now_us) {
    peer_freeze(peer, now_us);
    const struct sync_report report = peer_report(peer, now_us);
    const struct sync_answer answer = sync_model_report(
        bucket, &report, true, peer_redis_us(now_us), peer->rules.epoch_us);
    peer_hear(peer, answer, now_us);
}
