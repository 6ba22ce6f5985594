// Many threads ask a strict limit while the test's own thread drives it against a real Redis, loses
// answers, and closes it now and then. Every ask is answered exactly once, and the counts agree.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "strict_node.h"
#include "sync_redis.h"

#define THREADS 4
#define ROUNDS 2000
#define KEYS 6
#define AT_ONCE 8

static struct strict_node node;
static atomic_uint running;
static atomic_uint called; // of `done`

struct asker {
    pthread_t thread;
    uint64_t random;
    uint64_t pending; // answers to submit
    uint64_t at_once;
    uint64_t closed;
    uint64_t granted; // results of those that were pending
    uint64_t denied;
    uint64_t unsynced;
    uint64_t odd;
};

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void count_result(struct asker *asker, int result) {
    if (result == WEIR_GRANTED) asker->granted++;
    else if (result == WEIR_DENIED) asker->denied++;
    else if (result == WEIR_EUNSYNCED) asker->unsynced++;
    else asker->odd++;
}

static bool is_pending(struct asker *asker, int result) {
    asker->pending += result == WEIR_PENDING;
    asker->closed += result == WEIR_ECLOSED;
    asker->at_once += result == WEIR_DENIED;
    asker->odd += result != WEIR_PENDING && result != WEIR_ECLOSED && result != WEIR_DENIED;
    return result == WEIR_PENDING;
}

// By weir_sync_poll, several at once, from a stack that is used again at once.
static void ask_polling(struct asker *asker) {
    struct weir_sync_ask asks[AT_ONCE];
    bool pending[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        asks[i] = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        asks[i].key = weir_id(next_random(&asker->random) % KEYS);
        asks[i].cost = 1 + next_random(&asker->random) % 3;
        pending[i] = is_pending(
            asker, weir_sync_submit(strict_node_sync(&node), node.limiter, &asks[i]));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        if (!pending[i]) continue;
        while (weir_sync_poll(&asks[i]) == WEIR_PENDING) sched_yield();
        count_result(asker, weir_sync_poll(&asks[i]));
    }
    memset(asks, 0xee, sizeof asks);
}

// By weir_sync_take. Its result alone does not say whether it was pending.
static void ask_sleeping(struct asker *asker) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const uint64_t cost = 1 + next_random(&asker->random) % 3;
    const int result = weir_sync_take(strict_node_sync(&node), node.limiter,
                                      weir_id(next_random(&asker->random) % KEYS), cost,
                                      WEIR_SECOND, &answer);
    if (result == WEIR_ECLOSED) asker->closed++;
    else if (result == WEIR_DENIED) asker->at_once++; // or by Redis
    else {
        asker->pending++;
        count_result(asker, result);
        if (result == WEIR_GRANTED) asker->odd += answer.granted_tokens != cost;
    }
}

static void free_it(struct weir_sync_ask *ask, void *context) {
    (void)context;
    atomic_fetch_add_explicit(&called, 1, memory_order_relaxed);
    free(ask);
}

// By `done`, which frees the ask.
static unsigned ask_and_go(struct asker *asker) {
    struct weir_sync_ask *ask = malloc(sizeof *ask);
    *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
    ask->key = weir_id(KEYS);
    ask->done = free_it;
    const int result = weir_sync_submit(strict_node_sync(&node), node.limiter, ask);
    if (result != WEIR_PENDING) free(ask);
    asker->closed += result == WEIR_ECLOSED;
    return result == WEIR_PENDING;
}

static atomic_uint handed_over;

static void *ask(void *context) {
    struct asker *asker = context;
    for (int i = 0; i < ROUNDS; i++) {
        switch (next_random(&asker->random) % 3) {
        case 0: ask_polling(asker); break;
        case 1: ask_sleeping(asker); break;
        default:
            atomic_fetch_add_explicit(&handed_over, ask_and_go(asker), memory_order_relaxed);
        }
    }
    atomic_fetch_sub_explicit(&running, 1, memory_order_release);
    return NULL;
}

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// One turn of the sync's thread. One answer in ten is lost.
static void turn(uint64_t *random) {
    wr_strict_expire(node.strict, now_us());
    if (!strict_node_pack(&node, 0)) return;
    const int64_t sent_us = now_us();
    redisReply *reply = strict_node_send(&node);
    if (next_random(random) % 10 != 0) {
        strict_node_hear(&node, 0, sent_us, reply);
        return;
    }
    freeReplyObject(reply);
    wr_strict_lost(node.strict, 0);
}

static void every_ask_is_answered_exactly_once(void **state) {
    (void)state;
    struct test_redis redis;
    struct asker askers[THREADS], all = {0};
    struct wr_strict_counts counts;
    uint64_t random = 3;
    const struct weir_limit limit = {50000, WEIR_SECOND, 500};
    test_redis_start(&redis);
    strict_node_init(&node, &limit, NULL, test_redis_connect(&redis), false);
    atomic_store_explicit(&running, THREADS, memory_order_relaxed);
    for (unsigned i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.random = i + 1};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    unsigned left;
    for (unsigned turns = 0;
         (left = atomic_load_explicit(&running, memory_order_acquire)) > 0; turns++) {
        turn(&random);
        if (left < THREADS) wr_strict_close(node.strict); // what is left finds it shut
        else if (turns % 300 == 299) {
            wr_strict_close(node.strict);
            wr_strict_open(node.strict);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(askers[i].thread, NULL);
        all.pending += askers[i].pending;
        all.granted += askers[i].granted;
        all.denied += askers[i].denied;
        all.unsynced += askers[i].unsynced;
        all.odd += askers[i].odd;
    }
    wr_strict_counts(node.strict, &counts);
    const uint64_t dones = atomic_load_explicit(&called, memory_order_relaxed);
    assert_int_equal(all.odd, 0);
    assert_int_equal(all.pending, all.granted + all.denied + all.unsynced);
    assert_int_equal(dones, atomic_load_explicit(&handed_over, memory_order_relaxed));
    assert_int_equal(counts.submitted,
                     counts.granted + counts.denied + counts.never + counts.unsynced);
    assert_true(counts.submitted >= all.pending + dones); // and what takes were denied by Redis
    assert_true(counts.granted >= all.granted && counts.granted <= all.granted + dones);
    assert_true(counts.granted > 0);
    strict_node_fini(&node);
    test_redis_stop(&redis);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_ask_is_answered_exactly_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
