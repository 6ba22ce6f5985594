// What the server script and Redis refuse, by kind: nothing is applied then.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sync_twin.h"

static enum wr_wire_error refused(struct twin *twin, uint64_t seq) {
    const int keys[] = {1, 2, 3};
    const struct sync_report reports[3] = {{.cost_us = 5000, .cap_us = TWIN_CAP_US, .demand = 1},
                                           {.cost_us = 6000, .cap_us = TWIN_CAP_US, .demand = 1},
                                           {.cost_us = 7000, .cap_us = TWIN_CAP_US, .demand = 1}};
    if (twin_report(twin, 0, seq, keys, reports, 3)) return WR_WIRE_ERRORS_COUNT;
    return wr_wire_error_of(twin->error, strlen(twin->error));
}

static void expect_nothing_applied(struct twin *twin) {
    char name[64];
    assert_int_equal(
        test_redis_integer(twin->redis, "EXISTS t:{%u}n:a0 t:{%u}e", twin->group, twin->group), 0);
    for (int key = 1; key <= 3; key++) {
        twin_key_name(twin, key, name);
        redisReply *reply = redisCommand(twin->redis, "GET %s", name);
        assert_true(reply->type != REDIS_REPLY_STRING || reply->len != WR_WIRE_RECORD_BYTES);
        freeReplyObject(reply);
    }
}

static void a_wrong_type_is_named_and_nothing_is_written(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    uint16_t bad[WR_WIRE_BAD_KEYS_MAX];
    char name[64];
    twin_key_name(&twin, 2, name);
    test_redis_do(twin.redis, "RPUSH %s x", name);
    twin_key_name(&twin, 3, name);
    test_redis_do(twin.redis, "SET %s %s", name, "somebody's own text");
    assert_int_equal(refused(&twin, 1), WR_WIRE_WEIRKEY);
    assert_int_equal(wr_wire_bad_keys(twin.error, strlen(twin.error), 3, bad), 2);
    assert_int_equal(bad[0], 1);
    assert_int_equal(bad[1], 2);
    expect_nothing_applied(&twin);
    assert_int_equal(test_redis_integer(twin.redis, "STRLEN %s", name), 19);
    twin_close(&twin);
}

static void a_foreign_marker_is_refused(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    uint16_t bad[WR_WIRE_BAD_KEYS_MAX];
    test_redis_do(twin.redis, "SET t:{%u}n:a0 nan", twin.group);
    assert_int_equal(refused(&twin, 1), WR_WIRE_WEIRKEY);
    assert_int_equal(wr_wire_bad_keys(twin.error, strlen(twin.error), 3, bad), 0);
    test_redis_do(twin.redis, "DEL t:{%u}n:a0", twin.group);
    test_redis_do(twin.redis, "HSET t:{%u}e a b", twin.group);
    assert_int_equal(refused(&twin, 1), WR_WIRE_WEIRKEY);
    twin_close(&twin);
}

static void another_epoch_length_is_refused(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    twin_report_one(&twin, 1, 1, 1000, TWIN_CAP_US, 0, 1);
    twin.epoch_us = 2 * SECOND_US;
    assert_int_equal(refused(&twin, 1), WR_WIRE_WEIREPOCH);
    assert_string_equal(twin.error, "WEIREPOCH 1000000 us is the epoch length of this group");
    twin_close(&twin);
}

static void without_memory_nothing_is_applied(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    test_redis_do(twin.redis, "CONFIG SET maxmemory 1");
    assert_int_equal(refused(&twin, 1), WR_WIRE_OOM);
    test_redis_do(twin.redis, "CONFIG SET maxmemory 0");
    expect_nothing_applied(&twin);
    assert_int_equal(refused(&twin, 1), WR_WIRE_ERRORS_COUNT);
    twin_close(&twin);
}

static void a_replica_and_a_lonely_primary_refuse_and_apply_nothing(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    test_redis_do(twin.redis, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(refused(&twin, 1), WR_WIRE_READONLY);
    test_redis_do(twin.redis, "REPLICAOF NO ONE");
    expect_nothing_applied(&twin);
    test_redis_do(twin.redis, "CONFIG SET min-replicas-to-write 1");
    assert_int_equal(refused(&twin, 1), WR_WIRE_NOREPLICAS);
    test_redis_do(twin.redis, "CONFIG SET min-replicas-to-write 0");
    expect_nothing_applied(&twin);
    twin_close(&twin);
}

static void a_flushed_script_is_told(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    test_redis_do(twin.redis, "SCRIPT FLUSH");
    assert_int_equal(refused(&twin, 1), WR_WIRE_NOSCRIPT);
    twin_load(twin.redis);
    assert_int_equal(refused(&twin, 1), WR_WIRE_ERRORS_COUNT);
    twin_close(&twin);
}

static void missing_rights_are_told(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    redisContext *admin = test_redis_connect(&twin_server);
    test_redis_do(admin, "ACL SETUSER narrow on >pw ~other:* +@all");
    test_redis_do(twin.redis, "AUTH narrow pw");
    assert_int_equal(refused(&twin, 1), WR_WIRE_NOPERM);
    twin_close(&twin);
    test_redis_do(admin, "CONFIG SET requirepass secret");
    twin.redis = test_redis_connect(&twin_server);
    assert_int_equal(refused(&twin, 1), WR_WIRE_NOAUTH);
    test_redis_do(admin, "CONFIG SET requirepass %s", "");
    twin_close(&twin);
    redisFree(admin);
}

static void expect_arguments_refused(struct twin *twin, const char *seq, const char *epoch,
                                     const char *ttl, size_t limits, size_t reports) {
    static const char zeros[256];
    redisReply *reply = redisCommand(twin->redis, "EVALSHA %s 3 t:{%u}n:a0 t:{%u}e t:{%u}x "
                                     "%s %s %s %b %b", twin_sha, twin->group, twin->group,
                                     twin->group, seq, epoch, ttl, zeros, limits, zeros, reports);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_int_equal(wr_wire_error_of(reply->str, reply->len), WR_WIRE_WEIRARGS);
    freeReplyObject(reply);
    assert_int_equal(test_redis_integer(twin->redis, "EXISTS t:{%u}x", twin->group), 0);
}

static void malformed_reports_are_refused_before_any_write(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    expect_arguments_refused(&twin, "1", "1000000", "60000", 20, 15);
    expect_arguments_refused(&twin, "1", "1000000", "60000", 20, 17);
    expect_arguments_refused(&twin, "1", "1000000", "60000", 20, 32);
    expect_arguments_refused(&twin, "1", "1000000", "60000", 19, 16);
    expect_arguments_refused(&twin, "1", "1000000", "60000", 0, 16); // names no limit
    expect_arguments_refused(&twin, "nan", "1000000", "60000", 20, 16);
    expect_arguments_refused(&twin, "1.5", "1000000", "60000", 20, 16);
    expect_arguments_refused(&twin, "-1", "1000000", "60000", 20, 16);
    expect_arguments_refused(&twin, "x", "1000000", "60000", 20, 16);
    expect_arguments_refused(&twin, "1", "0", "60000", 20, 16);
    expect_arguments_refused(&twin, "1", "1000000", "0", 20, 16);
    twin_close(&twin);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_type_is_named_and_nothing_is_written),
        cmocka_unit_test(a_foreign_marker_is_refused),
        cmocka_unit_test(another_epoch_length_is_refused),
        cmocka_unit_test(without_memory_nothing_is_applied),
        cmocka_unit_test(a_replica_and_a_lonely_primary_refuse_and_apply_nothing),
        cmocka_unit_test(a_flushed_script_is_told),
        cmocka_unit_test(missing_rights_are_told),
        cmocka_unit_test(malformed_reports_are_refused_before_any_write),
    };
    return cmocka_run_group_tests(tests, twin_start_server, twin_stop_server);
}
