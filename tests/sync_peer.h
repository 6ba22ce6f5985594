// One node and its slot in a test's hands: what the table and the exchange do around node.c, with a
// clock that the test sets and the model of the server.
#pragma once

#include "../src/sync/node.h"
#include "sync_model.h"

#define SECOND_US INT64_C(1000000)
#define START_US (INT64_C(5000) * SECOND_US) // local time
#define REDIS_AHEAD_US INT64_C(1700000000000000)

struct peer {
    struct wr_node_limit limit;
    struct wr_node_rules rules;
    struct wr_node_side side;
    struct wr_node_key key;
    struct wr_node_frozen frozen;
    int64_t level;
    int64_t level_us; // when the level was that
    bool urgent;
    bool outage;
    uint32_t random;
};

// d = 100 ms, E = 1 s, nothing asked yet, the bucket full at START_US.
struct peer peer_new(uint64_t tokens, int64_t period_us, uint64_t burst, uint64_t debt,
                     uint64_t unit_tokens);
void peer_advance(struct peer *peer, int64_t now_us);
bool peer_ask(struct peer *peer, int64_t now_us, uint64_t tokens);
// Asks for one token so many times; how many were granted.
int peer_ask_times(struct peer *peer, int64_t now_us, int times);
void peer_freeze(struct peer *peer, int64_t now_us);
struct sync_report peer_report(const struct peer *peer, int64_t now_us);
void peer_hear(struct peer *peer, struct sync_answer answer, int64_t now_us);
// Freeze, report and hear in no time.
void peer_sync(struct peer *peer, struct sync_bucket *bucket, int64_t now_us);
// The server's time of a local time.
int64_t peer_redis_us(int64_t now_us);
