// Strict limits against a real Redis.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "strict_node.h"
#include "sync/strict_wire.h"
#include "sync_redis.h"

static struct test_redis redis;
static redisContext *side; // of the test's own

static int start(void **state) {
    (void)state;
    test_redis_start(&redis);
    side = test_redis_connect(&redis);
    return 0;
}

static int stop(void **state) {
    (void)state;
    redisFree(side);
    test_redis_stop(&redis);
    return 0;
}

static int flush(void **state) {
    (void)state;
    test_redis_do(side, "FLUSHALL");
    return 0;
}

static struct weir_limit limit_of(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    return (struct weir_limit){tokens, period_ns, burst};
}

static void init(struct strict_node *node, struct weir_limit limit, const char *name,
                 bool injected) {
    const struct wr_strict_options options = {.node = name};
    strict_node_init(node, &limit, &options, test_redis_connect(&redis), injected);
}

// The node's clock stands still: what it refuses locally does not depend on how busy this is.
static void node_init(struct strict_node *node, struct weir_limit limit, const char *name) {
    init(node, limit, name, true);
}

static void node_init_live(struct strict_node *node, struct weir_limit limit, const char *name) {
    init(node, limit, name, false);
}

static void submit(struct strict_node *node, struct weir_sync_ask *ask, const char *key,
                   uint64_t cost, int expected) {
    *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
    ask->key = weir_str(key);
    ask->cost = cost;
    ask->timeout_ns = WEIR_HOUR;
    assert_int_equal(weir_sync_submit(strict_node_sync(node), node->limiter, ask), expected);
    assert_int_equal(weir_sync_poll(ask), expected);
}

static void submit_all(struct strict_node *node, struct weir_sync_ask *asks, const char *key,
                       const uint64_t *costs, size_t count) {
    for (size_t i = 0; i < count; i++) submit(node, &asks[i], key, costs[i], WEIR_PENDING);
}

static bool record_of(const char *name, struct wr_wire_record *record) {
    redisReply *reply = redisCommand(side, "GET %s", name);
    assert_non_null(reply);
    const bool found = reply->type == REDIS_REPLY_STRING;
    if (found) assert_true(wr_wire_unpack_record(reply->str, (size_t)reply->len, record));
    freeReplyObject(reply);
    return found;
}

static void grants_a_burst_of_thirds_of_a_second_in_one_call_and_not_one_more(void **state) {
    (void)state;
    struct strict_node node;
    node_init(&node, limit_of(3, WEIR_HOUR, 7), "a"); // 1,200,000,000 us a token
    struct weir_sync_ask asks[8];
    const uint64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    submit_all(&node, asks, "k", ones, 8);
    strict_node_exchange(&node, 0);
    for (int i = 0; i < 7; i++) assert_int_equal(weir_sync_poll(&asks[i]), WEIR_GRANTED);
    assert_int_equal(weir_sync_poll(&asks[7]), WEIR_DENIED);
    assert_true(asks[7].retry_after_ns > 0 && asks[7].retry_after_ns <= 1200 * WEIR_SECOND);
    assert_int_equal(asks[6].remaining, 0);
    strict_node_fini(&node);
}

static void a_cost_of_the_whole_burst_passes_though_a_token_is_no_whole_number_of_us(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(7, WEIR_HOUR, 5), "a"); // 514,285,714.28... us a token
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 5), WEIR_GRANTED);
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 6), WEIR_NEVER);
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 1), WEIR_DENIED);
    struct wr_wire_record record;
    assert_true(record_of("weir:{0}limit:k", &record));
    assert_int_equal(record.current_tokens + record.previous_tokens, 5);
    strict_node_fini(&node);
}

static void each_ask_that_fits_is_granted_in_order(void **state) {
    (void)state;
    struct strict_node node;
    node_init(&node, limit_of(1, WEIR_HOUR, 6), "a");
    struct weir_sync_ask asks[5];
    const uint64_t costs[5] = {2, 5, 1, 4, 3};
    const int results[5] = {WEIR_GRANTED, WEIR_DENIED, WEIR_GRANTED, WEIR_DENIED, WEIR_GRANTED};
    submit_all(&node, asks, "k", costs, 5);
    strict_node_exchange(&node, 0);
    for (int i = 0; i < 5; i++) assert_int_equal(weir_sync_poll(&asks[i]), results[i]);
    strict_node_fini(&node);
}

static void what_another_node_took_is_denied_by_redis_then_locally(void **state) {
    (void)state;
    struct strict_node a, b;
    struct weir_sync_ask ask;
    node_init(&a, limit_of(1, WEIR_HOUR, 1), "a");
    node_init(&b, limit_of(1, WEIR_HOUR, 1), "b");
    assert_int_equal(strict_node_take(&a, &ask, weir_str("k"), 1), WEIR_GRANTED);
    submit(&b, &ask, "k", 1, WEIR_PENDING);
    strict_node_exchange(&b, 0);
    assert_int_equal(weir_sync_poll(&ask), WEIR_DENIED);
    submit(&b, &ask, "k", 1, WEIR_DENIED);
    assert_true(ask.retry_after_ns > 3500 * WEIR_SECOND && ask.retry_after_ns < WEIR_HOUR);
    submit(&a, &ask, "k", 1, WEIR_DENIED);
    submit(&a, &ask, "k", 2, WEIR_NEVER);
    strict_node_fini(&a);
    strict_node_fini(&b);
}

static void a_repeated_call_gets_the_same_answer_and_changes_nothing(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask asks[2];
    const uint64_t costs[2] = {2, 2};
    struct wr_wire_record first, second;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    submit_all(&node, asks, "k", costs, 2);
    assert_true(strict_node_pack(&node, 0));
    redisReply *one = strict_node_send(&node);
    assert_true(record_of("weir:{0}limit:k", &first));
    redisReply *two = strict_node_send(&node);
    assert_true(record_of("weir:{0}limit:k", &second));
    assert_int_equal(one->len, two->len);
    assert_memory_equal(one->str, two->str, (size_t)one->len);
    assert_memory_equal(&first, &second, sizeof first);
    strict_node_hear(&node, 0, 0, one);
    assert_int_equal(weir_sync_poll(&asks[0]), WEIR_GRANTED);
    assert_int_equal(weir_sync_poll(&asks[1]), WEIR_DENIED);
    strict_node_hear(&node, 0, 0, two); // to a call that is done: dropped
    strict_node_fini(&node);
}

static void a_lost_answer_is_asked_for_again_and_costs_nothing(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    struct wr_wire_record first, second;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    submit(&node, &ask, "k", 2, WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    const uint64_t seq = wr_strict_seq(node.strict, 0);
    assert_false(strict_node_pack(&node, 0)); // one at a time
    freeReplyObject(strict_node_send(&node));
    wr_strict_lost(node.strict, 0);
    assert_true(record_of("weir:{0}limit:k", &first));
    assert_int_equal(weir_sync_poll(&ask), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    assert_int_equal(wr_strict_seq(node.strict, 0), seq);
    strict_node_hear(&node, 0, 0, strict_node_send(&node));
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 1);
    assert_true(record_of("weir:{0}limit:k", &second));
    assert_memory_equal(&first, &second, sizeof first);
    strict_node_fini(&node);
}

static void a_script_that_redis_lost_is_loaded_and_the_call_sent_again(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    test_redis_do(side, "SCRIPT FLUSH");
    submit(&node, &ask, "k", 2, WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    const uint64_t seq = wr_strict_seq(node.strict, 0);
    strict_node_hear(&node, 0, 0, strict_node_send(&node));
    assert_int_equal(weir_sync_poll(&ask), WEIR_PENDING);
    strict_node_exchange(&node, 0);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(wr_strict_seq(node.strict, 0), seq);
    strict_node_fini(&node);
}

static void redis_without_memory_grants_nothing_and_is_asked_again(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    struct wr_wire_record record;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    submit(&node, &ask, "k", 2, WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    test_redis_do(side, "CONFIG SET maxmemory 1");
    redisReply *reply = strict_node_send(&node);
    test_redis_do(side, "CONFIG SET maxmemory 0");
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_int_equal(wr_strict_refused(node.strict, 0, reply->str, (size_t)reply->len),
                     WR_WIRE_WAIT);
    freeReplyObject(reply);
    assert_false(record_of("weir:{0}limit:k", &record));
    assert_int_equal(test_redis_integer(side, "DBSIZE"), 0);
    strict_node_exchange(&node, 0);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    strict_node_fini(&node);
}

static void keys_that_hold_something_else_are_left_out(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask good[2], bad[3];
    struct wr_strict_counts counts;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    test_redis_do(side, "LPUSH weir:{0}limit:list x");
    test_redis_do(side, "SET weir:{0}limit:text short");
    submit(&node, &bad[0], "list", 1, WEIR_PENDING);
    submit(&node, &good[0], "x", 1, WEIR_PENDING);
    submit(&node, &bad[1], "text", 1, WEIR_PENDING);
    submit(&node, &good[1], "y", 1, WEIR_PENDING);
    submit(&node, &bad[2], "list", 1, WEIR_PENDING);
    strict_node_exchange(&node, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(weir_sync_poll(&bad[i]), WEIR_EUNSYNCED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_sync_poll(&good[i]), WEIR_GRANTED);
        assert_int_equal(good[i].remaining, 2);
    }
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.foreign_keys, 2);
    assert_int_equal(counts.unsynced, 3);
    strict_node_fini(&node);
}

static void a_number_that_redis_has_seen_is_passed_over(void **state) {
    (void)state;
    struct strict_node old, fresh;
    struct weir_sync_ask ask;
    const struct weir_limit limit = limit_of(1, WEIR_HOUR, 3);
    node_init_live(&old, limit, "a");
    assert_int_equal(strict_node_take(&old, &ask, weir_str("k"), 1), WEIR_GRANTED);
    strict_node_init(&fresh, &limit, NULL, test_redis_connect(&redis), true); // at 1,000 s
    assert_int_equal(strict_node_take(&fresh, &ask, weir_str("k"), 1), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 1);
    strict_node_fini(&old);
    strict_node_fini(&fresh);
}

static void another_epoch_is_refused(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    test_redis_do(side, "SET weir:{0}e 7");
    submit(&node, &ask, "k", 1, WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    redisReply *reply = strict_node_send(&node);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    assert_int_equal(wr_strict_refused(node.strict, 0, reply->str, (size_t)reply->len),
                     WR_WIRE_CONFIG);
    freeReplyObject(reply);
    strict_node_fini(&node);
    assert_int_equal(weir_sync_poll(&ask), WEIR_EUNSYNCED);
}

static bool exists(const void *key, size_t bytes) {
    redisReply *reply = redisCommand(side, "EXISTS weir:{0}limit:%b", key, bytes);
    assert_non_null(reply);
    const bool is = reply->integer == 1;
    freeReplyObject(reply);
    return is;
}

static void keys_are_named_as_the_eventual_mode_names_them(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    struct weir_prepared prepared;
    char longest[256], longer[257];
    memset(longest, 'x', sizeof longest);
    memset(longer, 'x', sizeof longer);
    node_init(&node, limit_of(1, WEIR_HOUR, 4), "a");
    assert_int_equal(strict_node_take(&node, &ask, weir_id(0x64636261), 1), WEIR_GRANTED);
    assert_int_equal(strict_node_take(&node, &ask, weir_bytes("abcd\0\0\0\0", 8), 1),
                     WEIR_GRANTED);
    weir_prepare(node.limiter, weir_bytes("abcd\0\0\0\0", 8), &prepared);
    assert_int_equal(strict_node_take(&node, &ask, weir_prepared_key(&prepared), 1), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 1);
    assert_int_equal(strict_node_take(&node, &ask, weir_bytes(longest, 256), 1), WEIR_GRANTED);
    assert_int_equal(strict_node_take(&node, &ask, weir_bytes(longer, 257), 1), WEIR_GRANTED);
    assert_int_equal(strict_node_take(&node, &ask, weir_bytes("", 0), 1), WEIR_GRANTED);
    assert_true(exists("abcd\0\0\0\0", 8));
    assert_true(exists(longest, 256));
    assert_int_equal(test_redis_integer(side, "EXISTS weir:{0}limit:"), 1);
    assert_int_equal(test_redis_integer(side, "EXISTS weir:{0}s:limit:a"), 1);
    assert_int_equal(test_redis_integer(side, "DBSIZE"), 4 + 2);
    strict_node_fini(&node);
}

static void groups_are_asked_each_for_itself(void **state) {
    (void)state;
    struct strict_node node;
    const struct wr_strict_options options = {.groups = 4};
    const struct weir_limit limit = limit_of(1, WEIR_HOUR, 1);
    struct weir_sync_ask asks[64];
    strict_node_init(&node, &limit, &options, test_redis_connect(&redis), false);
    for (unsigned i = 0; i < 64; i++) {
        asks[i] = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        asks[i].key = weir_id(i / 2);
        assert_int_equal(weir_sync_submit(strict_node_sync(&node), node.limiter, &asks[i]),
                         WEIR_PENDING);
    }
    for (uint32_t group = 0; group < 4; group++) {
        assert_true(wr_strict_want(node.strict, group));
        strict_node_exchange(&node, group);
    }
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(weir_sync_poll(&asks[i]), i % 2 == 0 ? WEIR_GRANTED : WEIR_DENIED);
    strict_node_fini(&node);
}

static void more_asks_than_one_call_holds_go_in_several(void **state) {
    (void)state;
    enum { ASKS = 700 };
    static struct weir_sync_ask asks[ASKS];
    static char keys[ASKS][160];
    struct strict_node node;
    struct wr_strict_counts counts;
    node_init(&node, limit_of(1, WEIR_HOUR, 1), "a");
    for (int i = 0; i < ASKS; i++) {
        memset(keys[i], 'k', sizeof keys[i]);
        snprintf(keys[i], sizeof keys[i], "%0150d", i);
        submit(&node, &asks[i], keys[i], 1, WEIR_PENDING);
    }
    strict_node_exchange(&node, 0);
    for (int i = 0; i < ASKS; i++) assert_int_equal(weir_sync_poll(&asks[i]), WEIR_GRANTED);
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.granted, ASKS);
    assert_int_equal(counts.calls, (ASKS + 108) / 109); // 109 names of 150 bytes fit into 16,384
    strict_node_fini(&node);
}

static void a_flood_is_refused_locally_after_the_first_call(void **state) {
    (void)state;
    enum { ASKS = 2000 };
    static struct weir_sync_ask asks[ASKS];
    struct strict_node node;
    struct wr_strict_counts counts;
    node_init(&node, limit_of(1, WEIR_HOUR, 2), "a");
    for (int i = 0; i < ASKS; i++) submit(&node, &asks[i], "k", 1, WEIR_PENDING);
    strict_node_exchange(&node, 0);
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.granted, 2);
    assert_int_equal(counts.denied, ASKS - 2);
    assert_int_equal(counts.calls, 1);
    strict_node_fini(&node);
}

static int64_t redis_now_us(void) {
    redisReply *time = redisCommand(side, "TIME");
    const int64_t now_us = atoll(time->element[0]->str) * 1000000 + atoll(time->element[1]->str);
    freeReplyObject(time);
    return now_us;
}

// What the eventual mode reported is there, in the same bucket; and its demand is kept.
static void take_from_an_eventual_bucket(uint32_t epochs_ago) {
    struct strict_node node;
    struct weir_sync_ask ask;
    struct wr_wire_record record;
    const int64_t token_us = INT64_C(3600000000);
    node_init(&node, limit_of(1, WEIR_HOUR, 3), "a");
    const int64_t now_us = redis_now_us();
    unsigned char raw[24] = {0};
    const int64_t tat_us = now_us + 2 * token_us;
    const uint32_t epoch = (uint32_t)(now_us / STRICT_NODE_EPOCH_US) - epochs_ago;
    for (int i = 0; i < 8; i++) raw[i] = (unsigned char)(tat_us >> 8 * i);
    for (int i = 0; i < 4; i++) raw[8 + i] = (unsigned char)(epoch >> 8 * i);
    raw[16] = 40;
    freeReplyObject(redisCommand(side, "SET weir:{0}limit:k %b PX 100000", raw, sizeof raw));
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 1), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 0);
    assert_true(record_of("weir:{0}limit:k", &record));
    assert_true(record.tat_us == tat_us + token_us);
    const uint32_t rolled = record.epoch - epoch;
    if (rolled == 0) assert_int_equal(record.current_tokens, 41);
    if (rolled == 1) assert_int_equal(record.previous_tokens, 40);
    if (rolled > 1) assert_int_equal(record.previous_tokens, 0);
    if (rolled > 0) assert_int_equal(record.current_tokens, 1);
    assert_true(test_redis_integer(side, "PTTL weir:{0}limit:k") > 3 * (token_us / 1000) - 100000);
    strict_node_fini(&node);
}

static void the_bucket_is_that_of_the_eventual_mode(void **state) {
    for (uint32_t epochs_ago = 0; epochs_ago < 3; epochs_ago++) {
        flush(state);
        take_from_an_eventual_bucket(epochs_ago);
    }
}

static void a_new_generation_takes_over_no_more_than_its_own_burst(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    struct weir_error error;
    node_init_live(&node, limit_of(1, WEIR_HOUR, 3), "a");
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 3), WEIR_GRANTED);
    const struct weir_limit shorter = limit_of(1, WEIR_HOUR, 1);
    assert_int_equal(weir_set_limit(node.limiter, &shorter, &error), WEIR_GRANTED);
    wr_strict_set_generation(node.strict, 1);
    struct strict_node fresh; // one that knows nothing locally
    const struct wr_strict_options options = {.node = "b", .generation = 1};
    strict_node_init(&fresh, &shorter, &options, test_redis_connect(&redis), false);
    submit(&fresh, &ask, "k", 1, WEIR_PENDING);
    strict_node_exchange(&fresh, 0);
    assert_int_equal(weir_sync_poll(&ask), WEIR_DENIED);
    assert_true(ask.retry_after_ns <= WEIR_HOUR); // three before
    struct wr_wire_record record;
    assert_true(record_of("weir:{0}limit:k", &record));
    assert_int_equal(record.generation, 1);
    strict_node_fini(&fresh);
    strict_node_fini(&node);
}

static void after_flushall_an_answer_gives_the_local_bucket_back(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_HOUR, 10), "a");
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 9), WEIR_GRANTED);
    submit(&node, &ask, "k", 2, WEIR_DENIED);
    test_redis_do(side, "FLUSHALL");
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 1), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 9);
    assert_int_equal(strict_node_take(&node, &ask, weir_str("k"), 9), WEIR_GRANTED);
    submit(&node, &ask, "k", 1, WEIR_DENIED);
    strict_node_fini(&node);
}

// Random asks of four nodes, against an exact model on Redis' clock.

#define NODES 4
#define KEYS 3

struct model {
    struct weir_limit limit;
    int64_t tat_us[KEYS];
    struct {
        int64_t at_us;
        uint64_t tokens;
    } grants[KEYS][20000];
    size_t count[KEYS];
};

static struct model model;

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static bool model_fits(unsigned key, int64_t now_us, uint64_t tokens) {
    const int64_t lag_us = model.tat_us[key] > now_us ? model.tat_us[key] - now_us : 0;
    const wr_u128 period = model.limit.period_ns;
    return (wr_u128)(uint64_t)lag_us * 1000 * model.limit.tokens + tokens * period <=
           model.limit.burst * period;
}

static void model_call(const struct weir_sync_ask *const *asks, const unsigned char *granted,
                       size_t count, unsigned key, int64_t now_us, int64_t lag_us) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const bool fits = model_fits(key, now_us, sum + asks[i]->cost);
        assert_int_equal(granted[i], fits);
        if (fits) sum += asks[i]->cost;
    }
    const wr_u128 den = (wr_u128)model.limit.tokens * 1000;
    const int64_t cost_us = (int64_t)((sum * (wr_u128)model.limit.period_ns + den - 1) / den);
    if (model.tat_us[key] < now_us) model.tat_us[key] = now_us;
    model.tat_us[key] += cost_us;
    assert_true(lag_us == model.tat_us[key] - now_us);
    if (sum == 0 || model.count[key] == 20000) return;
    model.grants[key][model.count[key]].at_us = now_us;
    model.grants[key][model.count[key]++].tokens = sum;
}

// The bound itself, over every window that begins and ends with a grant.
static void check_windows(unsigned key) {
    for (size_t from = 0; from < model.count[key]; from++) {
        uint64_t sum = 0;
        for (size_t to = from; to < model.count[key] && to < from + 400; to++) {
            sum += model.grants[key][to].tokens;
            const int64_t window_us = model.grants[key][to].at_us - model.grants[key][from].at_us;
            assert_true(sum * (wr_u128)model.limit.period_ns <=
                        model.limit.burst * (wr_u128)model.limit.period_ns +
                            (wr_u128)(uint64_t)window_us * 1000 * model.limit.tokens);
        }
    }
}

// Submits a few; local refusals must be true at a moment before.
static size_t submit_random(struct strict_node *node, struct weir_sync_ask *asks,
                            uint64_t *random) {
    const size_t wanted = 1 + next_random(random) % 5;
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++) {
        struct weir_sync_ask *ask = &asks[count];
        const unsigned key = (unsigned)(next_random(random) % KEYS);
        *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        ask->key = weir_id(key);
        ask->cost = 1 + next_random(random) % 3;
        const int64_t before_us = redis_now_us();
        const int result = weir_sync_submit(strict_node_sync(node), node->limiter, ask);
        if (result == WEIR_PENDING) count++;
        else assert_false(model_fits(key, before_us, ask->cost));
    }
    return count;
}

static void check_reply(const redisReply *reply, struct weir_sync_ask *asks, size_t count) {
    struct wr_strict_reply read;
    uint32_t keys, all;
    assert_int_equal(wr_strict_read(reply->str, (size_t)reply->len, &read, &keys, &all), 0);
    uint32_t bucket = 0, from = 0;
    bool seen[KEYS] = {false};
    for (size_t i = 0; i < count; i++) {
        const unsigned key = (unsigned)asks[i].key.word;
        const struct weir_sync_ask *same[8];
        uint32_t n = 0;
        if (seen[key]) continue;
        seen[key] = true;
        for (size_t j = i; j < count; j++)
            if (asks[j].key.word == key) same[n++] = &asks[j];
        model_call(same, read.granted + from, n, key, read.redis_us,
                   wr_strict_lag_us(&read, bucket++));
        from += n;
    }
    assert_int_equal(from, all);
}

static void run_model(struct weir_limit limit, uint64_t seed, unsigned rounds) {
    struct strict_node nodes[NODES];
    static const char *const names[NODES] = {"a", "b", "c", "d"};
    uint64_t random = seed;
    memset(&model, 0, sizeof model);
    model.limit = limit;
    test_redis_do(side, "FLUSHALL");
    for (unsigned i = 0; i < NODES; i++) node_init_live(&nodes[i], limit, names[i]);
    for (unsigned round = 0; round < rounds; round++) {
        struct strict_node *node = &nodes[next_random(&random) % NODES];
        struct weir_sync_ask asks[8];
        const size_t count = submit_random(node, asks, &random);
        if (count == 0 || !strict_node_pack(node, 0)) continue;
        redisReply *reply = strict_node_send(node);
        assert_int_equal(reply->type, REDIS_REPLY_STRING);
        check_reply(reply, asks, count);
        strict_node_hear(node, 0, INT64_MAX, reply);
        for (size_t i = 0; i < count; i++) assert_true(weir_sync_poll(&asks[i]) != WEIR_PENDING);
    }
    for (unsigned key = 0; key < KEYS; key++) {
        assert_true(model.count[key] > 0);
        check_windows(key);
    }
    for (unsigned i = 0; i < NODES; i++) strict_node_fini(&nodes[i]);
}

static void four_nodes_are_granted_what_the_exact_bucket_holds(void **state) {
    (void)state;
    const uint64_t seed = 20240607;
    print_message("seed %llu\n", (unsigned long long)seed);
    run_model(limit_of(3000, WEIR_SECOND, 3), seed, 1500);             // 333.3 us a token
    run_model(limit_of(7, 3 * WEIR_MILLISECOND, 10), seed + 1, 1500);  // 428.6 us
    run_model(limit_of(1, WEIR_MILLISECOND, 3), seed + 2, 1500);       // whole us
    run_model(limit_of(3000000, WEIR_SECOND, 400), seed + 3, 500);     // a third of a us
    run_model(limit_of(999999999999989, WEIR_DAY, 4000000), seed + 4, 200); // a denominator > 2^50
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, flush)
        TEST(grants_a_burst_of_thirds_of_a_second_in_one_call_and_not_one_more),
        TEST(a_cost_of_the_whole_burst_passes_though_a_token_is_no_whole_number_of_us),
        TEST(each_ask_that_fits_is_granted_in_order),
        TEST(what_another_node_took_is_denied_by_redis_then_locally),
        TEST(a_repeated_call_gets_the_same_answer_and_changes_nothing),
        TEST(a_lost_answer_is_asked_for_again_and_costs_nothing),
        TEST(a_script_that_redis_lost_is_loaded_and_the_call_sent_again),
        TEST(redis_without_memory_grants_nothing_and_is_asked_again),
        TEST(keys_that_hold_something_else_are_left_out),
        TEST(a_number_that_redis_has_seen_is_passed_over),
        TEST(another_epoch_is_refused),
        TEST(keys_are_named_as_the_eventual_mode_names_them),
        TEST(groups_are_asked_each_for_itself),
        TEST(more_asks_than_one_call_holds_go_in_several),
        TEST(a_flood_is_refused_locally_after_the_first_call),
        TEST(the_bucket_is_that_of_the_eventual_mode),
        TEST(a_new_generation_takes_over_no_more_than_its_own_burst),
        TEST(after_flushall_an_answer_gives_the_local_bucket_back),
        TEST(four_nodes_are_granted_what_the_exact_bucket_holds),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
