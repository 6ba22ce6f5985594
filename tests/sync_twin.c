// Redis and the model, side by side.
#include "sync_twin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../src/sync/script.h"

// Redis dates a life from the start of the call, the script from its TIME.
#define CLOCK_SLACK_US 100000

struct test_redis twin_server;
char twin_sha[WR_WIRE_SHA_BYTES + 1];
static uint32_t next_group;

void twin_load(redisContext *redis) {
    redisReply *reply = redisCommand(redis, "SCRIPT LOAD %b", wr_sync_script,
                                     wr_sync_script_bytes);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        fail_msg("the script does not load: %s", reply == NULL ? redis->errstr : reply->str);
    memcpy(twin_sha, reply->str, sizeof twin_sha);
    freeReplyObject(reply);
}

struct twin twin_open(int64_t epoch_us) {
    struct twin twin = {.group = next_group++, .epoch_us = epoch_us};
    twin.redis = test_redis_connect(&twin_server);
    for (int i = 0; i < TWIN_NODES; i++) twin.markers[i] = -1;
    twin_load(twin.redis);
    return twin;
}

void twin_close(struct twin *twin) {
    redisFree(twin->redis);
}

void twin_key_name(const struct twin *twin, int key, char *name) {
    const char digit = (char)('0' + key);
    name[wr_wire_bucket_name("t:", twin->group, "lim", &digit, 1, name, 64)] = 0;
}

static redisReply *call(struct twin *twin, int node, uint64_t seq, const int *keys,
                        const struct sync_report *reports, size_t count) {
    static const char *const nodes[TWIN_NODES] = {"a0", "b1", "c2"};
    static const char *const names[TWIN_KEYS] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    struct wr_wire_limit limits[TWIN_KEYS];
    struct wr_wire_report packed[TWIN_KEYS];
    char command[4096];
    redisReply *reply = NULL;
    for (size_t i = 0; i < count; i++) {
        limits[i] = (struct wr_wire_limit){"lim", (uint64_t)reports[i].cap_us,
                                           (uint64_t)reports[i].burst_us, reports[i].generation};
        packed[i] = (struct wr_wire_report){names[keys[i]], 1, (uint64_t)reports[i].cost_us,
                                            (uint32_t)reports[i].age_us, reports[i].demand,
                                            (uint8_t)i, reports[i].backlog};
    }
    const struct wr_wire_batch batch = {
        .sha = twin_sha,
        .prefix = "t:",
        .node = nodes[node],
        .group = twin->group,
        .seq = seq,
        .epoch_us = twin->epoch_us,
        .marker_ttl_ms = 60000,
        .limits = limits,
        .limits_count = count,
        .reports = packed,
        .reports_count = count,
    };
    const size_t bytes = wr_wire_pack(&batch, command, sizeof command);
    assert_in_range(bytes, 1, sizeof command);
    redisAppendFormattedCommand(twin->redis, command, bytes);
    redisGetReply(twin->redis, (void **)&reply);
    if (reply == NULL) fail_msg("connection lost: %s", twin->redis->errstr);
    return reply;
}

static void expect_stored(struct twin *twin, int key) {
    char name[64];
    struct wr_wire_record record;
    const struct sync_bucket *bucket = &twin->buckets[key];
    twin_key_name(twin, key, name);
    redisReply *reply = redisCommand(twin->redis, "GET %s", name);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_true(wr_wire_unpack_record(reply->str, reply->len, &record));
    freeReplyObject(reply);
    assert_int_equal(record.tat_us, bucket->tat_us);
    assert_int_equal(record.epoch, bucket->epoch);
    assert_int_equal(record.previous_tokens, bucket->previous);
    assert_int_equal(record.current_tokens, bucket->current);
    assert_int_equal(record.generation, bucket->generation);
    const int64_t expiry_us = sync_model_expiry_us(bucket, twin->redis_us, twin->epoch_us);
    const int64_t stored_us = test_redis_integer(twin->redis, "PEXPIRETIME %s", name) * 1000;
    assert_true(stored_us >= expiry_us - CLOCK_SLACK_US);
    // the longest life that was ever asked for, and four epochs
    if (expiry_us > twin->expiry_max_us[key]) twin->expiry_max_us[key] = expiry_us;
    assert_true(stored_us <= twin->expiry_max_us[key] + 4 * twin->epoch_us + CLOCK_SLACK_US);
    twin->stored_us[key] = stored_us;
}

static void expect_model(struct twin *twin, int node, uint64_t seq, const int *keys,
                         const struct sync_report *reports, size_t count) {
    const bool fresh = (int64_t)seq > twin->markers[node];
    assert_int_equal(twin->marker_seq, twin->markers[node]);
    if (fresh) twin->markers[node] = (int64_t)seq;
    for (size_t i = 0; i < count; i++) {
        struct sync_bucket *bucket = &twin->buckets[keys[i]];
        // A machine that slept has let the key expire, as it should.
        if (twin->redis_us > twin->stored_us[keys[i]]) *bucket = (struct sync_bucket){0};
        const struct sync_answer expected = sync_model_report(
            bucket, &reports[i], fresh, twin->redis_us, twin->epoch_us);
        const struct wr_node_reply *reply = &twin->replies[i];
        assert_int_equal(reply->unknown, expected.rel_us == INT64_MIN);
        if (!reply->unknown) assert_int_equal(reply->rel_us, expected.rel_us);
        assert_int_equal(reply->previous_tokens, expected.previous);
        assert_int_equal(reply->current_tokens, expected.current);
        if (fresh) expect_stored(twin, keys[i]);
    }
}

bool twin_report(struct twin *twin, int node, uint64_t seq, const int *keys,
                         const struct sync_report *reports, size_t count) {
    struct wr_wire_answer answer;
    redisReply *reply = call(twin, node, seq, keys, reports, count);
    twin->error[0] = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        strncpy(twin->error, reply->str, sizeof twin->error - 1);
        freeReplyObject(reply);
        return false;
    }
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    assert_int_equal(wr_wire_unpack(reply->str, reply->len, count, &answer, twin->replies),
                     WR_WIRE_OK);
    freeReplyObject(reply);
    twin->redis_us = answer.redis_us;
    twin->marker_seq = answer.marker_seq;
    expect_model(twin, node, seq, keys, reports, count);
    return true;
}

int64_t twin_report_one(struct twin *twin, int node, uint64_t seq, int64_t cost_us, int64_t cap_us,
                      int64_t age_us, uint32_t demand) {
    const int key = 0;
    const struct sync_report one = {.cost_us = cost_us, .cap_us = cap_us, .burst_us = cap_us,
                                    .generation = 1, .age_us = age_us, .demand = demand};
    if (!twin_report(twin, node, seq, &key, &one, 1)) fail_msg("%s", twin->error);
    return twin->replies[0].rel_us;
}

int twin_start_server(void **state) {
    (void)state;
    test_redis_start(&twin_server);
    return 0;
}

int twin_stop_server(void **state) {
    (void)state;
    test_redis_stop(&twin_server);
    return 0;
}
