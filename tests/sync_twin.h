// The server script in a real redis-server and its model, side by side: every call goes to both,
// and they must agree on the answer and on what is stored.
#pragma once

#include <hiredis/hiredis.h>

#include "../src/sync/wire.h"
#include "sync_model.h"
#include "sync_redis.h"

#define TWIN_KEYS 8
#define TWIN_NODES 3
#define TWIN_CAP_US (60 * SECOND_US)
#define SECOND_US INT64_C(1000000)

// In a group of its own.
struct twin {
    redisContext *redis;
    uint32_t group;
    int64_t epoch_us;
    struct sync_bucket buckets[TWIN_KEYS];
    int64_t expiry_max_us[TWIN_KEYS];
    int64_t stored_us[TWIN_KEYS]; // when Redis drops the key
    int64_t markers[TWIN_NODES];
    int64_t redis_us; // of the last answer
    int64_t marker_seq;
    struct wr_node_reply replies[TWIN_KEYS];
    char error[256]; // of the last call; empty: answered
};

extern struct test_redis twin_server;
extern char twin_sha[WR_WIRE_SHA_BYTES + 1];

// Group setup and teardown: the server.
int twin_start_server(void **state);
int twin_stop_server(void **state);
struct twin twin_open(int64_t epoch_us);
void twin_close(struct twin *twin);
void twin_load(redisContext *redis);
void twin_key_name(const struct twin *twin, int key, char *name);
// True if it was answered (then as the model has it); else twin->error is why.
bool twin_report(struct twin *twin, int node, uint64_t seq, const int *keys,
                 const struct sync_report *reports, size_t count);
// Of key 0, which must be answered; returns TAT - TIME.
int64_t twin_report_one(struct twin *twin, int node, uint64_t seq, int64_t cost_us,
                        int64_t cap_us, int64_t age_us, uint32_t demand);
