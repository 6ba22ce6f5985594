// libweir-sync by its public calls, against a real redis-server: what is refused, and that what is
// granted is charged once, whatever becomes of Redis.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sync_fixture.h"

// A limit that gives nothing back in a test's time, so that counts are exact.
static struct weir_limit slow(uint64_t burst) {
    return (struct weir_limit){1, WEIR_HOUR, burst};
}

// Creating and attaching.

static void refuse_create(struct weir_sync_options options, int result, const char *word) {
    struct weir_error error = {""};
    struct weir_sync *sync = (struct weir_sync *)&options;
    assert_int_equal(weir_sync_create(&sync, &options, &error), result);
    assert_null(sync);
    if (strstr(error.text, word) == NULL) fail_msg("'%s' does not say %s", error.text, word);
}

static void options_out_of_range_are_named(void **state) {
    (void)state;
    struct weir_sync_options o = WEIR_SYNC_OPTIONS_INIT;
    o.size = 1;
    refuse_create(o, WEIR_ESIZE, "WEIR_SYNC_OPTIONS_INIT");
    o = node_options("http://x");
    refuse_create(o, WEIR_EINVAL, "url");
    o = node_options(NULL);
    o.prefix = "a{b";
    refuse_create(o, WEIR_EINVAL, "prefix");
    o = node_options(NULL);
    o.node = "";
    refuse_create(o, WEIR_EINVAL, "node");
    o = node_options(NULL);
    o.groups = 65;
    refuse_create(o, WEIR_EINVAL, "groups");
    o = node_options(NULL);
    o.interval_ns = 1;
    refuse_create(o, WEIR_EINVAL, "interval_ns");
    o = node_options(NULL);
    o.epoch_ns = 2 * WEIR_HOUR;
    refuse_create(o, WEIR_EINVAL, "epoch_ns");
    o = node_options(NULL);
    o.names = 63;
    refuse_create(o, WEIR_EINVAL, "names");
    o = node_options(NULL);
    o.outage = (enum weir_sync_outage)7;
    refuse_create(o, WEIR_EINVAL, "outage");
}

static struct weir *plain(struct weir_limit limit, enum weir_clock clock) {
    struct weir *limiter;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = limit;
    options.clock = clock;
    options.max_rate_tokens = limit.tokens == 0 ? 1 : 0;
    options.max_rate_period_ns = limit.tokens == 0 ? WEIR_SECOND : 0;
    assert_int_equal(weir_create(&limiter, &options, NULL), WEIR_GRANTED);
    return limiter;
}

static void refuse_attach(struct node *node, struct weir *limiter, const char *name,
                          enum weir_sync_mode mode, int result) {
    struct weir_error error = {""};
    struct weir_sync_limiter_options options = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    options.mode = mode;
    assert_int_equal(weir_sync_attach(node->sync, limiter, name, &options, &error), result);
    assert_true(error.text[0] != '\0');
}

static void what_cannot_be_attached_is_refused_in_words(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    struct node node = node_make(&options, slow(10), 100);
    struct weir *other = plain(slow(10), WEIR_CLOCK_AUTO);
    struct weir *by_hand = plain(slow(10), WEIR_CLOCK_CALLER);
    struct weir *no_rate = plain((struct weir_limit){0, WEIR_SECOND, 10}, WEIR_CLOCK_AUTO);
    struct weir *short_burst =
        plain((struct weir_limit){100000, WEIR_SECOND, 1}, WEIR_CLOCK_AUTO);
    for (int mode = WEIR_SYNC_EVENTUAL; mode <= WEIR_SYNC_STRICT; mode++) {
        refuse_attach(&node, other, NODE_LIMIT, (enum weir_sync_mode)mode, WEIR_EINVAL);
        refuse_attach(&node, node.limiter, "again", (enum weir_sync_mode)mode, WEIR_EINVAL);
        refuse_attach(&node, other, "a:b", (enum weir_sync_mode)mode, WEIR_EINVAL);
        refuse_attach(&node, other, "nodes", (enum weir_sync_mode)mode, WEIR_EINVAL);
        refuse_attach(&node, by_hand, "other", (enum weir_sync_mode)mode, WEIR_ECLOCK);
        refuse_attach(&node, no_rate, "other", (enum weir_sync_mode)mode, WEIR_ELIMIT);
        refuse_attach(&node, short_burst, "other", (enum weir_sync_mode)mode, WEIR_ELIMIT);
    }
    refuse_attach(&node, other, "other", (enum weir_sync_mode)9, WEIR_EINVAL);
    struct weir_sync_limiter_options sized = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    sized.size = 3;
    assert_int_equal(weir_sync_attach(node.sync, other, "other", &sized, NULL), WEIR_ESIZE);
    assert_int_equal(weir_sync_detach(node.sync, other, 0), WEIR_EINVAL);
    assert_int_equal(weir_sync_attach(node.sync, other, "other", NULL, NULL), WEIR_GRANTED);
    node_close(&node);
    weir_destroy(other);
    weir_destroy(by_hand);
    weir_destroy(no_rate);
    weir_destroy(short_burst);
}

// Sharing.

static void two_syncs_share_one_limit(void **state) {
    (void)state;
    struct node nodes[2] = {node_open(url), node_open(url)};
    uint64_t granted = 0;
    for (int i = 0; i < 2; i++) node_wait(&nodes[i], node_is_connected, "connected");
    const int64_t start_us = test_now_us();
    while (test_now_us() - start_us < 1000000) {
        for (int i = 0; i < 2; i++) granted += node_ask(&nodes[i], weir_str("k"), 5);
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); // the load's own pace
    }
    const double seconds = (double)(test_now_us() - start_us) / 1e6;
    uint64_t reported = 0;
    double bound = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_sync_stop(nodes[i].sync, 10 * WEIR_SECOND), WEIR_GRANTED);
        const struct weir_sync_limiter_stats stats = node_limiter_stats(&nodes[i]);
        reported += stats.reported_tokens;
        assert_int_equal(stats.pending_tokens, 0);
        assert_int_equal(stats.lost_tokens, 0);
        if (stats.excess_bound_tokens > bound) bound = stats.excess_bound_tokens;
    }
    assert_int_equal(reported, granted);
    if ((double)granted > 1000 + 1000 * seconds + bound)
        fail_msg("%lu granted in %.3f s, bound %.1f", (unsigned long)granted, seconds, bound);
    for (int i = 0; i < 2; i++) node_close(&nodes[i]);
}

static uint64_t count_until_denied(struct node *node, const char *key) {
    uint64_t granted = 0;
    while (weir_take(node->limiter, weir_str(key), 1, NULL) == WEIR_GRANTED) granted++;
    return granted;
}

// What one node has reported, another one that asks afterwards is charged for.
static void what_one_node_spent_another_is_denied(void **state) {
    (void)state;
    struct node a = node_open_limit(url, slow(100), 1000);
    assert_int_equal(count_until_denied(&a, "spent"), 100);
    assert_int_equal(weir_sync_stop(a.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    struct node b = node_open_limit(url, slow(100), 1000);
    node_wait(&b, node_is_connected, "connected");
    assert_int_equal(node_ask(&b, weir_str("spent"), 1), 1); // it does not know yet
    assert_int_equal(weir_sync_stop(b.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_ask(&b, weir_str("spent"), 1), 0);
    assert_int_equal(node_ask(&b, weir_str("other"), 100), 100);
    assert_true(node_limiter_stats(&b).excess_tokens >= 0.99);
    node_close(&a);
    node_close(&b);
}

static long long time_to_full_ms(const char *bucket, size_t bytes, int database) {
    redisContext *context = test_redis_connect(&redis);
    test_redis_do(context, "SELECT %d", database);
    redisReply *reply = redisCommand(context, "PTTL %b", bucket, bytes);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    const long long ms = reply->integer;
    freeReplyObject(reply);
    redisFree(context);
    return ms;
}

static void keys_of_any_bytes_and_lengths_have_buckets_of_their_own(void **state) {
    (void)state;
    static const char binary[] = {'a', 0, '\r', '\n', (char)0xff, '}', '{'};
    char lengths[300], name[400];
    struct node node = node_open_limit(url, slow(100), 1000);
    memset(lengths, 'x', sizeof lengths);
    assert_int_equal(node_ask(&node, weir_bytes(binary, sizeof binary), 3), 3);
    assert_int_equal(node_ask(&node, weir_bytes("", 0), 3), 3);
    assert_int_equal(node_ask(&node, weir_id(7), 3), 3);
    assert_int_equal(node_ask(&node, weir_bytes(lengths, 256), 3), 3);
    assert_int_equal(node_ask(&node, weir_bytes(lengths, 257), 3), 3);
    assert_int_equal(node_ask(&node, weir_bytes(lengths, 300), 3), 3);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 18);
    assert_int_equal(node_stats(&node).known_keys, 6);
    const size_t lead = strlen("weir:{0}mails:");
    memcpy(name, "weir:{0}mails:", lead);
    memcpy(name + lead, binary, sizeof binary);
    assert_true(time_to_full_ms(name, lead + sizeof binary, 0) > 0);
    assert_true(time_to_full_ms(name, lead, 0) > 0);
    memcpy(name + lead, "\7\0\0\0\0\0\0", 8);
    assert_true(time_to_full_ms(name, lead + 8, 0) > 0);
    memcpy(name + lead, lengths, 256);
    assert_true(time_to_full_ms(name, lead + 256, 0) > 0);
    node_close(&node);
}

static void the_database_of_the_url_is_used(void **state) {
    (void)state;
    char in_3[160];
    (void)snprintf(in_3, sizeof in_3, "%s?db=3", url);
    struct node node = node_open_limit(in_3, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("db"), 3), 3);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_true(time_to_full_ms("weir:{0}mails:db", 16, 3) > 0);
    assert_true(time_to_full_ms("weir:{0}mails:db", 16, 0) < 0);
    node_close(&node);
}

static void a_small_table_that_displaces_keys_loses_no_grant(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(3), 64);
    uint64_t granted = 0;
    for (uint64_t round = 0; round < 40; round++) {
        for (uint64_t id = 0; id < 200; id++)
            granted += node_ask(&node, weir_id(round * 50 + id), 1);
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); // the load's own pace
    }
    (void)weir_sync_stop(node.sync, 10 * WEIR_SECOND);
    const struct weir_sync_limiter_stats stats = node_limiter_stats(&node);
    assert_int_equal(stats.reported_tokens + stats.lost_tokens + stats.pending_tokens, granted);
    assert_true(stats.reported_tokens > 0);
    node_close(&node);
}

static void groups_spread_keys_over_hash_slots(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.groups = 8;
    struct node node = node_make(&options, slow(10), 1000);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    uint64_t granted = 0;
    for (uint64_t id = 0; id < 500; id++) granted += node_ask(&node, weir_id(id), 2);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, granted);
    assert_true(node_stats(&node).reports >= 8);
    node_close(&node);
}

// Stopping, detaching, forking.

static void stop_reports_what_is_left_and_start_goes_on(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.interval_ns = 30 * WEIR_SECOND; // only the first, cold, report leaves by itself
    options.epoch_ns = WEIR_SECOND;
    struct node node = node_make(&options, slow(1000), 1000);
    for (uint64_t round = 1; round <= 3; round++) {
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        assert_int_equal(node_ask(&node, weir_str("stop"), 7), 7);
        assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
        assert_int_equal(node_limiter_stats(&node).reported_tokens, 7 * round);
        assert_int_equal(node_limiter_stats(&node).pending_tokens, 0);
        assert_false(node_is_connected(&node));
    }
    assert_int_equal(weir_sync_stop(node.sync, 0), WEIR_GRANTED);
    node_close(&node);
}

static void a_limiter_may_be_detached_and_attached_again(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(100), 1000);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(node_ask(&node, weir_str("detach"), 5), 5);
        assert_int_equal(weir_sync_detach(node.sync, node.limiter, 10 * WEIR_SECOND), WEIR_GRANTED);
        assert_int_equal(weir_sync_detach(node.sync, node.limiter, 0), WEIR_EINVAL);
        assert_int_equal(node_ask(&node, weir_str("alone"), 1), 1);
        assert_int_equal(node_stats(&node).known_keys, 0);
        assert_int_equal(weir_sync_attach(node.sync, node.limiter, NODE_LIMIT, NULL, NULL),
                         WEIR_GRANTED);
        assert_int_equal(node_limiter_stats(&node).reported_tokens, 0);
    }
    assert_true(time_to_full_ms("weir:{0}mails:detach", 20, 0) > 14 * 3600 * 1000);
    node_close(&node);
}

static void a_detach_that_cannot_report_says_so(void **state) {
    (void)state;
    struct node node = node_open_limit("unix:/nowhere/at/all", slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("k"), 5), 5);
    assert_int_equal(weir_sync_detach(node.sync, node.limiter, 20 * WEIR_MILLISECOND),
                     WEIR_EUNSYNCED);
    node_close(&node);
}

static bool sees_two_nodes(const struct node *node) {
    return node_stats(node).nodes == 2 && node_limiter_stats(node).foreign_nodes == 1;
}

static void nodes_see_each_other_and_show_their_numbers(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.prefix = "seen:";
    options.node = "first";
    struct node a = node_make(&options, slow(100), 100);
    options.node = "second";
    struct node b = node_make(&options, slow(100), 100);
    redisContext *context = test_redis_connect(&redis);
    assert_int_equal(weir_sync_start(a.sync, NULL), WEIR_GRANTED);
    assert_int_equal(weir_sync_start(b.sync, NULL), WEIR_GRANTED);
    node_wait(&a, sees_two_nodes, "two nodes");
    node_wait(&b, sees_two_nodes, "two nodes");
    assert_int_equal(test_redis_integer(context, "HEXISTS seen:{0}a:mails:first granted"), 1);
    assert_int_equal(test_redis_integer(context, "HEXISTS seen:{0}a:mails:second denied"), 1);
    assert_true(test_redis_integer(context, "PTTL seen:{0}nodes") > 0);
    assert_string_equal(node_stats(&a).node, "first");
    redisFree(context);
    node_close(&a);
    node_close(&b);
}

static void a_node_that_stops_leaves_its_last_numbers_and_goes(void **state) {
    (void)state;
    static const char long_key[] = "a key that is longer than the eighty-eight bytes which "
                                   "weir_top remembers of it, and goes on";
    struct weir_sync_options options = node_options(url);
    options.prefix = "last:";
    options.node = "me";
    options.groups = 4;
    struct node node = node_make(&options, slow(5), 100);
    redisContext *context = test_redis_connect(&redis);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "a connection");
    assert_int_equal(node_ask(&node, weir_id(7), 12), 5);
    assert_int_equal(node_ask(&node, weir_str("plain"), 6), 5);
    assert_int_equal(node_ask(&node, weir_str(long_key), 8), 5);
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    test_redis_expect(context, "HGET last:{0}a:mails:me granted", "15");
    test_redis_expect(context, "HGET last:{0}a:mails:me denied", "11");
    test_redis_expect(context, "HGET last:{0}a:mails:me reported", "15");
    test_redis_expect(context, "HGET last:{0}a:mails:me burst", "5");
    test_redis_expect(context, "HGET last:{0}a:mails:me groups", "4");
    assert_int_equal(test_redis_integer(context, "ZCARD last:{0}nodes"), 0);
    assert_int_equal(test_redis_integer(context, "ZCARD last:{0}nodes:mails"), 0);
    assert_int_equal(test_redis_integer(context, "ZCARD last:{0}d:mails:me"), 3);
    static const char *const denied[] = {"7", "3", "1"}; // the integer, the long key, "plain"
    redisReply *all = redisCommand(context, "ZREVRANGE last:{0}d:mails:me 0 -1 WITHSCORES");
    for (size_t i = 0; i < 3; i++) {
        const redisReply *name = all->element[2 * i];
        redisReply *bucket = redisCommand(context, "EXISTS %b", name->str, name->len);
        assert_string_equal(all->element[2 * i + 1]->str, denied[i]);
        assert_int_equal(bucket->integer, i != 1);
        freeReplyObject(bucket);
    }
    assert_memory_equal(all->element[2]->str, "last:{0}t:mails:a key", 21);
    assert_int_equal(all->element[2]->len, strlen("last:{0}t:mails:") + WEIR_TOP_NAME_BYTES);
    freeReplyObject(all);
    redisFree(context);
    node_close(&node);
}

static void a_stop_that_waits_for_nothing_tells_whether_all_is_charged(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.prefix = "zero:";
    options.interval_ns = 60 * WEIR_SECOND; // what is asked later stays here until a stop
    struct node node = node_make(&options, slow(100), 1000);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "a connection");
    assert_int_equal(weir_sync_stop(node.sync, 0), WEIR_GRANTED); // nothing was granted
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    assert_int_equal(node_ask(&node, weir_str("zero"), 3), 3); // a new key goes at once
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(weir_sync_stop(node.sync, 0), WEIR_GRANTED);
    assert_int_equal(node_ask(&node, weir_str("zero"), 2), 2);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    assert_int_equal(node_ask(&node, weir_str("zero"), 1), 1);
    assert_int_equal(weir_sync_stop(node.sync, 0), WEIR_EUNSYNCED);
    assert_int_equal(node_limiter_stats(&node).pending_tokens, 3);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 6);
    node_close(&node);
}

static void a_new_limiter_of_a_name_publishes_its_own_denials(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.prefix = "again:";
    options.node = "me";
    struct node node = node_make(&options, slow(1), 100);
    redisContext *context = test_redis_connect(&redis);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "a connection");
    assert_int_equal(node_ask(&node, weir_str("old"), 9), 1);
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(test_redis_integer(context, "ZCARD again:{0}d:mails:me"), 1);
    assert_int_equal(weir_sync_detach(node.sync, node.limiter, 0), WEIR_GRANTED);
    weir_destroy(node.limiter);
    node.limiter = plain(slow(1), WEIR_CLOCK_AUTO);
    assert_int_equal(weir_sync_attach(node.sync, node.limiter, NODE_LIMIT, NULL, NULL),
                     WEIR_GRANTED);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "a connection");
    assert_int_equal(node_ask(&node, weir_str("new"), 3), 1);
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(test_redis_integer(context, "ZCARD again:{0}d:mails:me"), 1);
    test_redis_expect(context, "ZSCORE again:{0}d:mails:me again:{0}mails:new", "2");
    redisFree(context);
    node_close(&node);
}

// ThreadSanitizer does not let the child of a process with threads make one.
#if defined(__SANITIZE_THREAD__)
#define CHILDREN 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILDREN 0
#endif
#endif
#if !defined(CHILDREN)
#define CHILDREN 5
#endif

static int in_the_child(struct node *node) {
    struct weir_sync_stats stats;
    if (node_ask(node, weir_str("fork"), 5) != 5) return 1;
    if (weir_sync_start(node->sync, NULL) != WEIR_ECLOSED) return 2;
    if (weir_sync_stats(node->sync, &stats, sizeof stats) != WEIR_GRANTED) return 3;
    if (!stats.forked || stats.connected) return 4;
    if (weir_sync_stop(node->sync, WEIR_SECOND) != WEIR_EUNSYNCED) return 5;
    (void)weir_sync_detach(node->sync, node->limiter, WEIR_SECOND);
    struct weir_sync_options options = node_options(url);
    struct node own = {node->limiter, NULL};
    if (weir_sync_create(&own.sync, &options, NULL) != WEIR_GRANTED) return 6;
    if (weir_sync_attach(own.sync, own.limiter, NODE_LIMIT, NULL, NULL) != WEIR_GRANTED) return 7;
    if (weir_sync_start(own.sync, NULL) != WEIR_GRANTED) return 8;
    if (node_ask(&own, weir_str("fork"), 6) != 6) return 9;
    if (weir_sync_stop(own.sync, 10 * WEIR_SECOND) != WEIR_GRANTED) return 10;
    if (node_limiter_stats(&own).reported_tokens != 6) return 11;
    weir_sync_destroy(own.sync);
    weir_sync_destroy(node->sync);
    weir_destroy(node->limiter);
    return 0;
}

static void a_forked_child_decides_and_reports_nothing(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("fork"), 4), 4);
    node_wait(&node, node_has_nothing_pending, "reported");
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(30);
            _exit(in_the_child(&node));
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(node_ask(&node, weir_str("fork"), 3), 3);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 7);
    assert_false(node_stats(&node).forked);
    node_close(&node);
}

static void a_change_of_limit_raises_the_generation(void **state) {
    (void)state;
    struct node node = node_open_limit(url, (struct weir_limit){1000, WEIR_SECOND, 1000}, 1000);
    const struct weir_limit half = {500, WEIR_SECOND, 1000};
    struct weir_error error = {""};
    assert_int_equal(weir_sync_set_limit(node.sync, node.limiter, &half, 0, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "generation"));
    assert_int_equal(weir_sync_set_limit(node.sync, node.limiter, &half, 5, &error), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).generation, 5);
    // A bucket 2 s behind (burst and debt, at the old rate) owed 2,000 tokens, and now 1,000.
    const double minted = node_limiter_stats(&node).mint_bound_tokens;
    assert_true(minted > 999 && minted < 1001);
    assert_true(node_ask(&node, weir_str("gen"), 10) > 0);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    node_close(&node);
}

struct asker {
    struct node *node;
    _Atomic bool *ended;
    uint64_t granted;
    uint64_t keys;
    pthread_t thread;
};

static void *keep_asking(void *argument) {
    struct asker *asker = argument;
    for (uint64_t i = 0; !atomic_load_explicit(asker->ended, memory_order_relaxed); i++) {
        asker->granted += node_ask(asker->node, weir_id(i % asker->keys), 1);
        if (i % 64 == 0) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); // the load's pace
    }
    return NULL;
}

static void starts_and_stops_under_load_charge_every_grant_once(void **state) {
    (void)state;
    struct node node = node_open_limit(url, (struct weir_limit){1, WEIR_MINUTE, 1000000}, 4000);
    static char text[32768];
    _Atomic bool ended = false;
    struct asker askers[2];
    for (unsigned i = 0; i < 2; i++) {
        askers[i] = (struct asker){&node, &ended, 0, 50 + i, 0};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, keep_asking, &askers[i]), 0);
    }
    for (int round = 0; round < 20; round++) {
        (void)weir_sync_stop(node.sync, (uint64_t)round % 5 * 10 * WEIR_MILLISECOND);
        (void)node_limiter_stats(&node);
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        assert_int_equal(weir_sync_metrics(node.sync, text, sizeof text, NULL), WEIR_GRANTED);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); // the load's pace
    }
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    for (int i = 0; i < 2; i++) pthread_join(askers[i].thread, NULL);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    const struct weir_sync_limiter_stats stats = node_limiter_stats(&node);
    assert_int_equal(stats.reported_tokens, askers[0].granted + askers[1].granted);
    assert_int_equal(stats.pending_tokens, 0);
    assert_int_equal(stats.lost_tokens, 0);
    node_close(&node);
}

static void attaching_and_detaching_under_load_ends(void **state) {
    (void)state;
    struct node node = node_open_limit(url, (struct weir_limit){1, WEIR_MINUTE, 1000000}, 4000);
    _Atomic bool ended = false;
    struct asker asker = {&node, &ended, 0, 50, 0};
    assert_int_equal(pthread_create(&asker.thread, NULL, keep_asking, &asker), 0);
    for (int round = 0; round < 20; round++) {
        const int result =
            weir_sync_detach(node.sync, node.limiter, (uint64_t)round % 4 * 5 * WEIR_MILLISECOND);
        assert_true(result == WEIR_GRANTED || result == WEIR_EUNSYNCED);
        assert_int_equal(weir_sync_attach(node.sync, node.limiter, NODE_LIMIT, NULL, NULL),
                         WEIR_GRANTED);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); // the load's pace
    }
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    pthread_join(asker.thread, NULL);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    // The ask that ran across the last attach may be counted by the limiter alone.
    assert_true(node_limiter_stats(&node).pending_tokens <= 1);
    node_close(&node);
}

static void metrics_are_whole_or_not_there(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(100), 1000);
    static char text[32768];
    size_t length = 0, again = 0;
    assert_int_equal(weir_sync_metrics(node.sync, NULL, 0, &length), WEIR_ENOSPC);
    assert_int_equal(weir_sync_metrics(node.sync, text, 10, &again), WEIR_ENOSPC);
    assert_string_equal(text, "");
    assert_int_equal(weir_sync_metrics(node.sync, text, sizeof text, &length), WEIR_GRANTED);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, "weir_sync_lost_tokens_total{limiter=\"mails\"} 0\n"));
    assert_string_equal(text + length - 6, "# EOF\n");
    assert_int_equal(weir_sync_stats(node.sync, NULL, 0), WEIR_EINVAL);
    node_close(&node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_out_of_range_are_named),
        cmocka_unit_test(what_cannot_be_attached_is_refused_in_words),
        cmocka_unit_test(two_syncs_share_one_limit),
        cmocka_unit_test(what_one_node_spent_another_is_denied),
        cmocka_unit_test(keys_of_any_bytes_and_lengths_have_buckets_of_their_own),
        cmocka_unit_test(the_database_of_the_url_is_used),
        cmocka_unit_test(a_small_table_that_displaces_keys_loses_no_grant),
        cmocka_unit_test(groups_spread_keys_over_hash_slots),
        cmocka_unit_test(stop_reports_what_is_left_and_start_goes_on),
        cmocka_unit_test(a_limiter_may_be_detached_and_attached_again),
        cmocka_unit_test(a_detach_that_cannot_report_says_so),
        cmocka_unit_test(a_node_that_stops_leaves_its_last_numbers_and_goes),
        cmocka_unit_test(a_stop_that_waits_for_nothing_tells_whether_all_is_charged),
        cmocka_unit_test(a_new_limiter_of_a_name_publishes_its_own_denials),
        cmocka_unit_test(nodes_see_each_other_and_show_their_numbers),
        cmocka_unit_test(a_forked_child_decides_and_reports_nothing),
        cmocka_unit_test(a_change_of_limit_raises_the_generation),
        cmocka_unit_test(starts_and_stops_under_load_charge_every_grant_once),
        cmocka_unit_test(attaching_and_detaching_under_load_ends),
        cmocka_unit_test(metrics_are_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
