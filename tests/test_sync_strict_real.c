// Strict limits by libweir-sync's public calls: its own thread, a real redis-server, several syncs.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "sync_fixture.h"

#define NODES 4

static struct weir *limiter_of(struct weir_limit limit) {
    struct weir *limiter;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = limit;
    assert_int_equal(weir_create(&limiter, &options, NULL), WEIR_GRANTED);
    return limiter;
}

static int attach_strict(struct weir_sync *sync, struct weir *limiter, const char *name,
                         struct weir_error *error) {
    struct weir_sync_limiter_options strict = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    strict.mode = WEIR_SYNC_STRICT;
    return weir_sync_attach(sync, limiter, name, &strict, error);
}

static struct node strict_open(struct weir_limit limit, const char *name) {
    struct node node = {limiter_of(limit), NULL};
    const struct weir_sync_options options = node_options(url);
    assert_int_equal(weir_sync_create(&node.sync, &options, NULL), WEIR_GRANTED);
    assert_int_equal(attach_strict(node.sync, node.limiter, name, NULL), WEIR_GRANTED);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    return node;
}

static int take(struct node *node, const char *key, uint64_t timeout_ns) {
    return weir_sync_take(node->sync, node->limiter, weir_str(key), 1, timeout_ns, NULL);
}

struct taker {
    struct node node;
    int64_t until_us;
    uint64_t granted;
    uint64_t denied;
    uint64_t others;
    pthread_t thread;
};

static void *keep_taking(void *argument) {
    struct taker *taker = argument;
    while (test_now_us() < taker->until_us) {
        const int result = take(&taker->node, "k", 5 * WEIR_SECOND);
        taker->granted += result == WEIR_GRANTED;
        taker->denied += result == WEIR_DENIED;
        taker->others += result != WEIR_GRANTED && result != WEIR_DENIED;
        if (result == WEIR_DENIED) nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL); // pace
    }
    return NULL;
}

static void four_syncs_together_never_exceed_the_limit(void **state) {
    (void)state;
    struct taker takers[NODES];
    const int64_t start_us = test_now_us();
    for (int i = 0; i < NODES; i++) {
        takers[i] = (struct taker){.node = strict_open((struct weir_limit){50, WEIR_SECOND, 20},
                                                       "shared"),
                                   .until_us = start_us + 1500000};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, keep_taking, &takers[i]), 0);
    }
    uint64_t granted = 0;
    for (int i = 0; i < NODES; i++) {
        pthread_join(takers[i].thread, NULL);
        granted += takers[i].granted;
        assert_int_equal(takers[i].others, 0);
        assert_int_equal(node_limiter_stats(&takers[i].node).reported_tokens, takers[i].granted);
    }
    const double seconds = (double)(test_now_us() - start_us) / 1e6;
    if ((double)granted > 20 + 50 * seconds)
        fail_msg("%lu granted in %.3f s", (unsigned long)granted, seconds);
    assert_true(granted >= 20); // the burst at least
    for (int i = 0; i < NODES; i++) node_close(&takers[i].node);
}

static int poll_until_answered(const struct weir_sync_ask *ask) {
    const int64_t until_us = test_now_us() + 20000000;
    while (weir_sync_poll(ask) == WEIR_PENDING) {
        assert_true(test_now_us() < until_us);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // for the thread, not for a clock
    }
    return weir_sync_poll(ask);
}

static void asks_submitted_on_several_syncs_are_granted_a_burst_in_all(void **state) {
    (void)state;
    struct node nodes[NODES];
    struct weir_sync_ask asks[NODES][10];
    int granted = 0, denied = 0;
    for (int i = 0; i < NODES; i++)
        nodes[i] = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "submitted");
    for (int i = 0; i < NODES * 10; i++) {
        struct weir_sync_ask *ask = &asks[i % NODES][i / NODES];
        *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        ask->key = weir_str("k");
        ask->timeout_ns = 20 * WEIR_SECOND;
        const int result = weir_sync_submit(nodes[i % NODES].sync, nodes[i % NODES].limiter, ask);
        assert_true(result == WEIR_PENDING || result == WEIR_DENIED);
        if (result == WEIR_DENIED) {
            denied++;
            ask->size = 0; // answered
        }
    }
    for (int i = 0; i < NODES * 10; i++) {
        const struct weir_sync_ask *ask = &asks[i % NODES][i / NODES];
        if (ask->size == 0) continue;
        const int result = poll_until_answered(ask);
        granted += result == WEIR_GRANTED;
        denied += result == WEIR_DENIED;
    }
    assert_int_equal(granted, 7);
    assert_int_equal(denied, NODES * 10 - 7);
    for (int i = 0; i < NODES; i++) node_close(&nodes[i]);
}

static void a_lost_script_is_loaded_again(void **state) {
    (void)state;
    struct node node = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "script");
    redisContext *context = test_redis_connect(&redis);
    int granted = 0;
    for (int i = 0; i < 9; i++) {
        granted += take(&node, "k", 20 * WEIR_SECOND) == WEIR_GRANTED;
        test_redis_do(context, "SCRIPT FLUSH");
    }
    assert_int_equal(granted, 7);
    redisFree(context);
    node_close(&node);
}

static void a_redis_that_is_gone_answers_unsynced_and_grants_again_once_back(void **state) {
    (void)state;
    struct node node = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "gone");
    assert_int_equal(take(&node, "k", 20 * WEIR_SECOND), WEIR_GRANTED);
    test_redis_kill(&redis);
    const int64_t start_us = test_now_us();
    assert_int_equal(take(&node, "k", 100 * WEIR_MILLISECOND), WEIR_EUNSYNCED);
    assert_int_equal(take(&node, "other", 100 * WEIR_MILLISECOND), WEIR_EUNSYNCED);
    const int64_t waited_us = test_now_us() - start_us;
    if (waited_us < 190000 || waited_us > 10000000) fail_msg("waited %ld us", (long)waited_us);
    test_redis_again(&redis, NULL, NULL);
    assert_int_equal(take(&node, "k", 20 * WEIR_SECOND), WEIR_GRANTED);
    node_close(&node);
}

static void stop_answers_what_waits(void **state) {
    (void)state;
    struct node node = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "stop");
    test_redis_kill(&redis);
    struct weir_sync_ask asks[5];
    for (int i = 0; i < 5; i++) {
        asks[i] = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        asks[i].key = weir_str("k");
        asks[i].timeout_ns = WEIR_HOUR;
        assert_int_equal(weir_sync_submit(node.sync, node.limiter, &asks[i]), WEIR_PENDING);
    }
    (void)weir_sync_stop(node.sync, 20 * WEIR_MILLISECOND);
    for (int i = 0; i < 5; i++) assert_int_equal(weir_sync_poll(&asks[i]), WEIR_EUNSYNCED);
    assert_int_equal(weir_sync_submit(node.sync, node.limiter, &asks[0]), WEIR_ECLOSED);
    test_redis_again(&redis, NULL, NULL);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    assert_int_equal(take(&node, "k", 20 * WEIR_SECOND), WEIR_GRANTED);
    node_close(&node);
}

static void refuse_twice(struct weir_sync *sync, struct weir *limiter) {
    struct weir_error error = {""};
    assert_int_equal(attach_strict(sync, limiter, "b", &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "detach"));
    error.text[0] = '\0';
    assert_int_equal(weir_sync_attach(sync, limiter, "b", NULL, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "detach"));
}

static void a_limiter_is_under_one_sync_in_one_mode(void **state) {
    (void)state;
    struct node strict = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "one");
    struct node plain = node_open_limit(url, (struct weir_limit){1, WEIR_HOUR, 7}, 100);
    refuse_twice(strict.sync, strict.limiter);
    refuse_twice(strict.sync, plain.limiter);
    refuse_twice(plain.sync, strict.limiter);
    refuse_twice(plain.sync, plain.limiter);
    assert_int_equal(weir_sync_detach(strict.sync, strict.limiter, WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(weir_sync_attach(plain.sync, strict.limiter, "b", NULL, NULL), WEIR_GRANTED);
    refuse_twice(strict.sync, strict.limiter);
    weir_sync_destroy(plain.sync);
    assert_int_equal(attach_strict(strict.sync, strict.limiter, "b", NULL), WEIR_GRANTED);
    weir_destroy(plain.limiter);
    node_close(&strict);
}

static void the_numbers_of_a_strict_limiter_are_shown(void **state) {
    (void)state;
    static char text[32768];
    struct node node = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "numbers");
    for (int i = 0; i < 9; i++) (void)take(&node, "k", 20 * WEIR_SECOND);
    const struct weir_limit half = {1, 2 * WEIR_HOUR, 7};
    assert_int_equal(weir_sync_set_limit(node.sync, node.limiter, &half, 4, NULL), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 7);
    assert_int_equal(node_limiter_stats(&node).pending_tokens, 0);
    assert_int_equal(node_limiter_stats(&node).generation, 4);
    assert_true(node_stats(&node).reports > 0);
    struct weir_stats stats;
    assert_int_equal(weir_stats(node.limiter, &stats, sizeof stats), WEIR_GRANTED);
    assert_int_equal(stats.granted, 7);
    assert_int_equal(stats.tokens, 7);
    assert_int_equal(stats.denied, 2);
    assert_int_equal(weir_sync_metrics(node.sync, text, sizeof text, NULL), WEIR_GRANTED);
    assert_non_null(strstr(text, "weir_sync_reported_tokens_total{limiter=\"numbers\"} 7\n"));
    assert_non_null(strstr(text, "weir_sync_generation{limiter=\"numbers\"} 4\n"));
    node_wait(&node, node_is_connected, "a connection to announce on");
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    redisContext *context = test_redis_connect(&redis);
    char name[160];
    snprintf(name, sizeof name, "HGET weir:{0}a:numbers:%s denied", node_stats(&node).node);
    test_redis_expect(context, name, "2");
    snprintf(name, sizeof name, "ZSCORE weir:{0}d:numbers:%s weir:{0}numbers:k",
             node_stats(&node).node);
    test_redis_expect(context, name, "2");
    redisFree(context);
    node_close(&node);
}

struct worker {
    struct node *node;
    _Atomic bool *ended;
    uint64_t granted;
    uint64_t wrong;
    pthread_t thread;
};

static void *ask_on(void *argument) {
    struct worker *worker = argument;
    while (!atomic_load_explicit(worker->ended, memory_order_relaxed)) {
        const int result = take(worker->node, "k", 50 * WEIR_MILLISECOND);
        worker->granted += result == WEIR_GRANTED;
        worker->wrong += result != WEIR_GRANTED && result != WEIR_DENIED &&
                         result != WEIR_EUNSYNCED && result != WEIR_EINVAL &&
                         result != WEIR_ECLOSED;
    }
    return NULL;
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL); // the load's own pace
}

static void strict_limiters_come_and_go_beside_another(void **state) {
    (void)state;
    struct node node = strict_open((struct weir_limit){1000, WEIR_SECOND, 1000}, "busy");
    struct weir *others[4];
    _Atomic bool ended = false;
    struct worker worker = {&node, &ended, 0, 0, 0};
    for (int i = 0; i < 4; i++) others[i] = limiter_of((struct weir_limit){1, WEIR_HOUR, 1});
    assert_int_equal(pthread_create(&worker.thread, NULL, ask_on, &worker), 0);
    const uint64_t before = node_stats(&node).memory_bytes;
    const int rounds = 400;
    for (int round = 0; round < rounds; round++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", round % 4);
        assert_int_equal(attach_strict(node.sync, others[round % 4], name, NULL), WEIR_GRANTED);
        if (round % 8 == 0) nap();
        assert_int_equal(weir_sync_detach(node.sync, others[round % 4], 0), WEIR_GRANTED);
    }
    assert_true(node_stats(&node).memory_bytes < before + (uint64_t)rounds * 2048);
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    pthread_join(worker.thread, NULL);
    assert_int_equal(worker.wrong, 0);
    node_close(&node);
    for (int i = 0; i < 4; i++) weir_destroy(others[i]);
}

static bool has_lost_a_connection(const struct node *node) {
    const struct weir_sync_stats stats = node_stats(node);
    return stats.disconnects > 1 && !stats.connected;
}

static void the_stats_of_a_sync_tell_of_strict_connections(void **state) {
    (void)state;
    struct node node = strict_open((struct weir_limit){1, WEIR_HOUR, 7}, "lanes");
    assert_int_equal(take(&node, "k", 20 * WEIR_SECOND), WEIR_GRANTED);
    node_wait(&node, node_is_connected, "connected");
    assert_int_equal(node_stats(&node).keys, 1);
    test_redis_kill(&redis);
    node_wait(&node, has_lost_a_connection, "a lost connection");
    test_redis_again(&redis, NULL, NULL);
    node_wait(&node, node_is_connected, "connected again");
    assert_true(node_stats(&node).bytes_in > 0);
    node_close(&node);
}

struct stopper {
    struct weir_sync *sync;
    _Atomic bool *ended;
    pthread_t thread;
};

static void *stop_and_start(void *argument) {
    struct stopper *stopper = argument;
    while (!atomic_load_explicit(stopper->ended, memory_order_relaxed)) {
        (void)weir_sync_stop(stopper->sync, 5 * WEIR_MILLISECOND);
        (void)!weir_sync_start(stopper->sync, NULL);
        nap();
    }
    return NULL;
}

static void attaching_stopping_and_watching_while_workers_ask_answers_every_ask(void **state) {
    (void)state;
    static char text[32768];
    struct node node = strict_open((struct weir_limit){1000, WEIR_SECOND, 1000}, "busy");
    _Atomic bool ended = false;
    struct worker workers[3];
    struct stopper stopper = {node.sync, &ended, 0};
    for (int i = 0; i < 3; i++) {
        workers[i] = (struct worker){&node, &ended, 0, 0, 0};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, ask_on, &workers[i]), 0);
    }
    assert_int_equal(pthread_create(&stopper.thread, NULL, stop_and_start, &stopper), 0);
    for (int round = 0; round < 40; round++) {
        struct weir_sync_limiter_stats stats;
        assert_int_equal(weir_sync_detach(node.sync, node.limiter, 2 * WEIR_MILLISECOND),
                         WEIR_GRANTED);
        assert_int_equal(weir_sync_limiter_stats(node.sync, node.limiter, &stats, sizeof stats),
                         WEIR_EINVAL);
        assert_int_equal(attach_strict(node.sync, node.limiter, "busy", NULL), WEIR_GRANTED);
        assert_int_equal(weir_sync_metrics(node.sync, text, sizeof text, NULL), WEIR_GRANTED);
        (void)node_stats(&node);
        nap();
    }
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    pthread_join(stopper.thread, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_join(workers[i].thread, NULL); // none sleeps on
        assert_int_equal(workers[i].wrong, 0);
    }
    node_close(&node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_syncs_together_never_exceed_the_limit),
        cmocka_unit_test(asks_submitted_on_several_syncs_are_granted_a_burst_in_all),
        cmocka_unit_test(a_lost_script_is_loaded_again),
        cmocka_unit_test(a_redis_that_is_gone_answers_unsynced_and_grants_again_once_back),
        cmocka_unit_test(stop_answers_what_waits),
        cmocka_unit_test(attaching_stopping_and_watching_while_workers_ask_answers_every_ask),
        cmocka_unit_test(strict_limiters_come_and_go_beside_another),
        cmocka_unit_test(the_stats_of_a_sync_tell_of_strict_connections),
        cmocka_unit_test(a_limiter_is_under_one_sync_in_one_mode),
        cmocka_unit_test(the_numbers_of_a_strict_limiter_are_shown),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
