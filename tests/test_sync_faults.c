// libweir-sync where Redis is late, gone, emptied, wrong or none at all: grants go on by the
// policy, and each is charged once when it is back.
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sync_fixture.h"

// A limit that gives nothing back in a test's time.
static struct weir_limit slow(uint64_t burst) {
    return (struct weir_limit){1, WEIR_HOUR, burst};
}

static void assert_error_has(const struct node *node, const char *word) {
    const struct weir_sync_stats stats = node_stats(node);
    if (strstr(stats.last_error, word) == NULL)
        fail_msg("'%s' does not say %s", stats.last_error, word);
    assert_true(stats.last_error_ago_ns < WEIR_FOREVER);
}

static bool has_an_error(const struct node *node) {
    return node_stats(node).last_error[0] != '\0';
}

static bool is_refused(const struct node *node) {
    return node_stats(node).refused > 0;
}

static void redis_started_late_gets_what_was_granted_before(void **state) {
    (void)state;
    test_redis_kill(&redis);
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("late"), 10), 10);
    node_wait(&node, node_is_in_outage, "an outage");
    assert_error_has(&node, "connection");
    assert_int_equal(node_ask(&node, weir_str("late too"), 10), 10);
    test_redis_again(&redis, NULL, NULL);
    node_wait(&node, node_is_connected, "connected");
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 20);
    assert_false(node_is_in_outage(&node));
    node_close(&node);
}

static bool has_timed_out(const struct node *node) {
    return node_stats(node).timeouts > 0;
}

static void an_idle_node_finds_out_that_redis_hangs(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(100), 1000);
    node_wait(&node, node_is_connected, "connected");
    kill(redis.pid, SIGSTOP);
    node_wait(&node, has_timed_out, "a timeout");
    kill(redis.pid, SIGCONT);
    node_wait(&node, node_is_connected, "connected again");
    node_close(&node);
}

// With the patience of ten minutes, it does not wait for an answer either.
static void a_destroy_does_not_wait_for_redis(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.answer_timeout_ns = 600 * WEIR_SECOND;
    struct node node = node_make(&options, slow(100), 1000);
    for (int i = 0; i < 2; i++) { // the second with what a stop left
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        node_wait(&node, node_is_connected, "connected");
        if (i == 0)
            assert_int_equal(weir_sync_stop(node.sync, 600 * WEIR_SECOND), WEIR_GRANTED);
    }
    kill(redis.pid, SIGSTOP);
    node_close(&node);
    kill(redis.pid, SIGCONT);
}

static void missing_rights_to_publish_are_told(void **state) {
    (void)state;
    char narrow[160];
    redisContext *context = test_redis_connect(&redis);
    test_redis_do(context, "ACL SETUSER narrow on >pw ~* +evalsha +script|load +time +mget "
                           "+exists +set +setrange");
    snprintf(narrow, sizeof narrow, "%s?user=narrow&password=pw", url);
    struct node node = node_open_limit(narrow, slow(100), 1000);
    node_wait(&node, is_refused, "a refusal");
    assert_error_has(&node, "publishes");
    assert_int_equal(node_ask(&node, weir_str("narrow"), 3), 3);
    node_wait(&node, node_has_nothing_pending, "reported all the same");
    test_redis_do(context, "ACL DELUSER narrow");
    redisFree(context);
    node_close(&node);
}

static void a_redis_that_is_killed_and_comes_back_empty_goes_on(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(1000), 1000);
    uint64_t granted = 0;
    for (int round = 0; round < 3; round++) {
        node_wait(&node, node_is_connected, "connected");
        granted += node_ask(&node, weir_str("killed"), 20);
        node_wait(&node, node_has_nothing_pending, "reported");
        test_redis_kill(&redis);
        granted += node_ask(&node, weir_str("killed"), 20);
        granted += node_ask(&node, weir_id((uint64_t)round), 5);
        test_redis_again(&redis, NULL, NULL);
        node_wait(&node, node_has_nothing_pending, "reported");
    }
    const struct weir_sync_limiter_stats stats = node_limiter_stats(&node);
    assert_int_equal(granted, 3 * 45);
    assert_int_equal(stats.reported_tokens, granted);
    assert_int_equal(stats.lost_tokens, 0);
    assert_true(node_stats(&node).disconnects >= 3);
    assert_true(node_stats(&node).marker_lost >= 1);
    node_close(&node);
}

static void closed_denies_and_open_grants_while_redis_is_gone(void **state) {
    (void)state;
    test_redis_kill(&redis);
    for (int policy = WEIR_SYNC_OPEN; policy <= WEIR_SYNC_CLOSED; policy++) {
        struct weir_sync_options options = node_options(url);
        options.outage = (enum weir_sync_outage)policy;
        struct node node = node_make(&options, slow(100), 1000);
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        assert_int_equal(node_ask(&node, weir_str("known"), 1), 1);
        node_wait(&node, node_is_in_outage, "an outage");
        const uint64_t granted = policy == WEIR_SYNC_OPEN ? 10 : 0;
        assert_int_equal(node_ask(&node, weir_str("known"), 10), granted);
        assert_int_equal(node_ask(&node, weir_str("new"), 10), granted);
        node_close(&node);
    }
    test_redis_again(&redis, NULL, NULL);
}

static uint64_t granted_of_new_keys(uint32_t expected_nodes, uint64_t keys) {
    struct weir_sync_options options = node_options("unix:/nowhere/at/all");
    options.expected_nodes = expected_nodes;
    struct node node = node_make(&options, slow(3), 10000);
    uint64_t granted = 0;
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    (void)node_ask(&node, weir_str("first"), 1); // there is no outage before something waits
    node_wait(&node, node_is_in_outage, "an outage");
    for (uint64_t id = 0; id < keys; id++) {
        const uint64_t of_key = node_ask(&node, weir_id(id), 100);
        assert_true(of_key <= 3);
        granted += of_key;
    }
    node_close(&node);
    return granted;
}

static void a_limit_of_three_grants_three_or_its_share_while_redis_fails(void **state) {
    (void)state;
    assert_int_equal(granted_of_new_keys(0, 50), 50 * 3);
    assert_int_equal(granted_of_new_keys(1, 50), 50 * 3);
    // A third each: 300 on average, and for chance seven of its deviations.
    assert_in_range(granted_of_new_keys(3, 300), 160, 440);
}

struct outage {
    struct node nodes[2];
    uint64_t granted;
    uint64_t asked;
};

static void flood(struct outage *outage, int64_t us) {
    const int64_t until_us = test_now_us() + us;
    while (test_now_us() < until_us) {
        for (int i = 0; i < 2; i++)
            outage->granted += node_ask(&outage->nodes[i], weir_str("outage"), 1);
        outage->asked += 2;
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL); // the load's own pace
    }
}

static void the_bound_after_an_outage_holds_and_is_no_more_than_what_was_asked(void **state) {
    (void)state;
    const struct weir_limit limit = {500, WEIR_SECOND, 500};
    struct outage outage = {{node_open_limit(url, limit, 100), node_open_limit(url, limit, 100)},
                            0, 0};
    for (int i = 0; i < 2; i++) node_wait(&outage.nodes[i], node_is_connected, "connected");
    const int64_t start_us = test_now_us();
    flood(&outage, 300000);
    test_redis_kill(&redis);
    flood(&outage, 2000000);
    test_redis_again(&redis, NULL, NULL);
    flood(&outage, 500000);
    const double seconds = (double)(test_now_us() - start_us) / 1e6;
    double bound = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_sync_stop(outage.nodes[i].sync, 10 * WEIR_SECOND), WEIR_GRANTED);
        const double own = node_limiter_stats(&outage.nodes[i]).excess_bound_tokens;
        if (own > bound) bound = own;
    }
    // Redis came back empty: a whole burst of what it had heard may have been granted again.
    if ((double)outage.granted > 500 + 500 * seconds + bound + 500)
        fail_msg("%lu granted, bound %.1f", (unsigned long)outage.granted, bound);
    // Own grants and the others' demand, all of it asked for, and what may come in an interval.
    if (bound > (double)outage.asked + 500)
        fail_msg("bound %.1f of %lu asked", bound, (unsigned long)outage.asked);
    for (int i = 0; i < 2; i++) node_close(&outage.nodes[i]);
}

static void flushes_and_lost_scripts_are_survived(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(1000), 1000);
    redisContext *context = test_redis_connect(&redis);
    node_wait(&node, node_is_connected, "connected");
    for (uint64_t round = 1; round <= 3; round++) {
        assert_int_equal(node_ask(&node, weir_str("flush"), 10), 10);
        node_wait(&node, node_has_nothing_pending, "reported");
        test_redis_do(context, "FLUSHALL");
        test_redis_do(context, "SCRIPT FLUSH");
    }
    assert_int_equal(node_ask(&node, weir_str("flush"), 10), 10);
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 40);
    assert_true(node_stats(&node).marker_lost >= 1);
    assert_true(test_redis_integer(context, "EXISTS weir:{0}mails:flush") == 1);
    redisFree(context);
    node_close(&node);
}

static void a_wrong_password_is_said_and_the_right_one_works(void **state) {
    (void)state;
    char with[256];
    test_redis_kill(&redis);
    test_redis_again(&redis, "--requirepass", "p@ss");
    struct node none = node_open_limit(url, slow(100), 1000);
    node_wait(&none, has_an_error, "an error");
    assert_error_has(&none, "password");
    node_close(&none);
    (void)snprintf(with, sizeof with, "%s?password=wrong", url);
    struct node wrong = node_open_limit(with, slow(100), 1000);
    node_wait(&wrong, is_refused, "refused");
    assert_error_has(&wrong, "WRONGPASS");
    node_close(&wrong);
    (void)snprintf(with, sizeof with, "%s?user=default&password=p%%40ss", url);
    struct node right = node_open_limit(with, slow(100), 1000);
    assert_int_equal(node_ask(&right, weir_str("pw"), 3), 3);
    node_wait(&right, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&right).reported_tokens, 3);
    node_close(&right);
    test_redis_kill(&redis);
    test_redis_again(&redis, NULL, NULL);
}

static bool has_a_foreign_key(const struct node *node) {
    return node_stats(node).foreign_keys > 0;
}

static void a_key_of_another_type_does_not_disturb_the_others(void **state) {
    (void)state;
    redisContext *context = test_redis_connect(&redis);
    test_redis_do(context, "LPUSH weir:{0}mails:taken something");
    test_redis_do(context, "SET weir:{0}mails:text something");
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("taken"), 3), 3);
    assert_int_equal(node_ask(&node, weir_str("text"), 3), 3);
    assert_int_equal(node_ask(&node, weir_str("free"), 3), 3);
    node_wait(&node, has_a_foreign_key, "a foreign key");
    assert_error_has(&node, "prefix");
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_EUNSYNCED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 3);
    assert_int_equal(node_limiter_stats(&node).pending_tokens, 6);
    assert_int_equal(node_stats(&node).foreign_keys, 2);
    node_close(&node);
    test_redis_do(context, "FLUSHALL");
    redisFree(context);
}

static void another_epoch_is_said(void **state) {
    (void)state;
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("epoch"), 1), 1);
    node_wait(&node, node_has_nothing_pending, "reported");
    struct weir_sync_options options = node_options(url);
    options.epoch_ns = 7 * WEIR_SECOND;
    struct node other = node_make(&options, slow(100), 1000);
    assert_int_equal(weir_sync_start(other.sync, NULL), WEIR_GRANTED);
    assert_int_equal(node_ask(&other, weir_str("epoch"), 1), 1);
    node_wait(&other, is_refused, "refused");
    assert_error_has(&other, "epoch");
    node_close(&node);
    node_close(&other);
}

// A server that is no Redis: it accepts, and says `words` to everyone, or nothing.
struct impostor {
    int listener;
    const char *words;
    char url[64];
    pthread_t thread;
};

static void *serve(void *argument) {
    const struct impostor *impostor = argument;
    int last = -1;
    for (;;) {
        const int peer = accept(impostor->listener, NULL, NULL);
        if (last >= 0) close(last);
        if (peer < 0) return NULL;
        last = peer;
        if (impostor->words != NULL)
            (void)!write(peer, impostor->words, strlen(impostor->words));
    }
}

static void impostor_start(struct impostor *impostor, const char *words) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    impostor->words = words;
    impostor->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(impostor->listener, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(impostor->listener, 8), 0);
    assert_int_equal(getsockname(impostor->listener, (struct sockaddr *)&address, &bytes), 0);
    (void)snprintf(impostor->url, sizeof impostor->url, "redis://127.0.0.1:%d",
                   ntohs(address.sin_port));
    assert_int_equal(pthread_create(&impostor->thread, NULL, serve, impostor), 0);
}

static void impostor_stop(struct impostor *impostor) {
    shutdown(impostor->listener, SHUT_RDWR);
    pthread_join(impostor->thread, NULL);
    close(impostor->listener);
}

static bool has_garbage(const struct node *node) {
    return node_stats(node).garbage > 0;
}

static void a_server_that_is_no_redis_is_named(void **state) {
    (void)state;
    static const char *const words[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "+OK\r\n+OK\r\n+OK\r\n",
        "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        "$2000000000\r\n",
        "*2147483647\r\n",
        ":1\r\n",
        "SSH-2.0-OpenSSH_9.2p1\r\n",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct impostor impostor;
        impostor_start(&impostor, words[i]);
        struct weir_sync_options options = node_options(impostor.url);
        options.answer_timeout_ns = 50 * WEIR_MILLISECOND;
        struct node node = node_make(&options, slow(100), 1000);
        assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
        assert_int_equal(node_ask(&node, weir_str("k"), 10), 10);
        if (words[i][0] != '$') {
            node_wait(&node, has_garbage, words[i]);
            assert_error_has(&node, "no Redis");
        }
        node_wait(&node, node_is_in_outage, "an outage");
        assert_int_equal(weir_sync_stop(node.sync, 0), WEIR_EUNSYNCED);
        node_close(&node);
        impostor_stop(&impostor);
    }
}

static void a_server_that_says_nothing_is_given_up(void **state) {
    (void)state;
    struct impostor impostor;
    impostor_start(&impostor, NULL);
    struct weir_sync_options options = node_options(impostor.url);
    options.answer_timeout_ns = 20 * WEIR_MILLISECOND;
    struct node node = node_make(&options, slow(100), 1000);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    assert_int_equal(node_ask(&node, weir_str("k"), 10), 10);
    node_wait(&node, has_timed_out, "a timeout");
    node_wait(&node, node_is_in_outage, "an outage");
    assert_false(node_is_connected(&node));
    node_close(&node);
    impostor_stop(&impostor);
}

static void redis_paused_for_long_counts_every_grant_once(void **state) {
    (void)state;
    struct weir_sync_options options = node_options(url);
    options.answer_timeout_ns = 30 * WEIR_MILLISECOND;
    struct node node = node_make(&options, slow(1000), 1000);
    redisContext *context = test_redis_connect(&redis);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "connected");
    test_redis_do(context, "CLIENT PAUSE 400 ALL");
    assert_int_equal(node_ask(&node, weir_str("paused"), 10), 10);
    node_wait(&node, has_timed_out, "a timeout");
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 10);
    // Ten hours behind, to the second: counted once.
    const long long behind_ms = test_redis_integer(context, "PTTL weir:{0}mails:paused");
    assert_true(behind_ms > 9990LL * 3600 && behind_ms < 10010LL * 3600);
    redisFree(context);
    node_close(&node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redis_started_late_gets_what_was_granted_before),
        cmocka_unit_test(an_idle_node_finds_out_that_redis_hangs),
        cmocka_unit_test(a_destroy_does_not_wait_for_redis),
        cmocka_unit_test(missing_rights_to_publish_are_told),
        cmocka_unit_test(a_redis_that_is_killed_and_comes_back_empty_goes_on),
        cmocka_unit_test(closed_denies_and_open_grants_while_redis_is_gone),
        cmocka_unit_test(a_limit_of_three_grants_three_or_its_share_while_redis_fails),
        cmocka_unit_test(the_bound_after_an_outage_holds_and_is_no_more_than_what_was_asked),
        cmocka_unit_test(flushes_and_lost_scripts_are_survived),
        cmocka_unit_test(a_wrong_password_is_said_and_the_right_one_works),
        cmocka_unit_test(a_key_of_another_type_does_not_disturb_the_others),
        cmocka_unit_test(another_epoch_is_said),
        cmocka_unit_test(a_server_that_is_no_redis_is_named),
        cmocka_unit_test(a_server_that_says_nothing_is_given_up),
        cmocka_unit_test(redis_paused_for_long_counts_every_grant_once),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
