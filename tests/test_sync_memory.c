// libweir-sync without memory, and where it forgets: its allocations are counted and fail by order.
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

#include "../src/sync/sync.h"
#include "sync_fixture.h"

// The linker leads the library's calls here (--wrap).

static _Atomic long fail_in; // the so-manieth allocation from now fails; 0: none
static _Atomic long fail_every; // ... and each so many; 0: none
static _Atomic unsigned long made;
static _Atomic long held;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static bool fails(void) {
    const unsigned long number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
    const long every = atomic_load_explicit(&fail_every, memory_order_relaxed);
    if (every != 0) return number % (unsigned long)every == 0;
    return atomic_load_explicit(&fail_in, memory_order_relaxed) != 0 &&
           atomic_fetch_sub_explicit(&fail_in, 1, memory_order_relaxed) == 1;
}

static void *hold(void *memory) {
    if (memory != NULL) atomic_fetch_add_explicit(&held, 1, memory_order_relaxed);
    return memory;
}

void *__wrap_malloc(size_t bytes) {
    return fails() ? NULL : hold(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return fails() ? NULL : hold(__real_calloc(count, bytes));
}

void *__wrap_aligned_alloc(size_t align, size_t bytes) {
    return fails() ? NULL : hold(__real_aligned_alloc(align, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes) {
    if (fails()) return NULL;
    void *moved = __real_realloc(memory, bytes);
    return memory == NULL ? hold(moved) : moved;
}

void __wrap_free(void *memory) {
    if (memory != NULL) atomic_fetch_sub_explicit(&held, 1, memory_order_relaxed);
    __real_free(memory);
}

static long held_now(void) {
    return atomic_load_explicit(&held, memory_order_relaxed);
}

static void order(long in, long every) {
    atomic_store_explicit(&fail_in, in, memory_order_relaxed);
    atomic_store_explicit(&fail_every, every, memory_order_relaxed);
}

static struct weir *limiter_of(const struct weir_allocator *allocator) {
    struct weir *limiter;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){1, WEIR_HOUR, 100};
    options.capacity_keys = 1000;
    options.allocator = allocator;
    assert_int_equal(weir_create(&limiter, &options, NULL), WEIR_GRANTED);
    return limiter;
}

// Creates and attaches, the n-th allocation failing. True: all went well, n was beyond the last.
static bool set_up_without_the_nth(struct weir *limiter, enum weir_sync_mode mode, long n) {
    struct weir_sync *sync = NULL;
    struct weir_error error = {""};
    const struct weir_sync_options options = node_options(url);
    struct weir_sync_limiter_options attached = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    const long before = held_now();
    attached.mode = mode;
    order(n, 0);
    int result = weir_sync_create(&sync, &options, &error);
    if (result == WEIR_GRANTED)
        result = weir_sync_attach(sync, limiter, "mails", &attached, &error);
    const bool all = atomic_load_explicit(&fail_in, memory_order_relaxed) > 0;
    order(0, 0);
    if (result != (all ? WEIR_GRANTED : WEIR_ENOMEM))
        fail_msg("allocation %ld failed: %d %s", n, result, error.text);
    if (!all) assert_non_null(strstr(error.text, "memory"));
    weir_sync_destroy(sync);
    assert_int_equal(held_now(), before);
    return all;
}

static void every_allocation_of_create_and_attach_may_fail(void **state) {
    (void)state;
    for (int mode = WEIR_SYNC_EVENTUAL; mode <= WEIR_SYNC_STRICT; mode++) {
        struct weir *limiter = limiter_of(NULL);
        long n = 1;
        while (!set_up_without_the_nth(limiter, (enum weir_sync_mode)mode, n)) n++;
        assert_true(n > 3); // the sync, its groups, its connections' list, the limiter
        weir_destroy(limiter);
    }
}

static bool maps_fail;

static void *map(void *context, size_t bytes, size_t align) {
    void *memory = NULL;
    (void)context;
    if (maps_fail || posix_memalign(&memory, align, bytes) != 0) return NULL;
    return memset(memory, 0, bytes);
}

static void unmap(void *context, void *memory, size_t bytes) {
    (void)context;
    (void)bytes;
    __real_free(memory);
}

static void the_side_array_may_fail(void **state) {
    (void)state;
    const struct weir_allocator allocator = {.map = map, .unmap = unmap};
    struct weir *limiter = limiter_of(&allocator);
    struct weir_sync *sync;
    struct weir_error error = {""};
    const struct weir_sync_options options = node_options(url);
    const long before = held_now();
    assert_int_equal(weir_sync_create(&sync, &options, NULL), WEIR_GRANTED);
    maps_fail = true;
    assert_int_equal(weir_sync_attach(sync, limiter, "mails", NULL, &error), WEIR_ENOMEM);
    assert_non_null(strstr(error.text, "memory"));
    maps_fail = false;
    assert_int_equal(weir_sync_attach(sync, limiter, "mails", NULL, &error), WEIR_GRANTED);
    weir_sync_destroy(sync);
    assert_int_equal(held_now(), before);
    weir_destroy(limiter);
}

// What has no record stays where it is until there is memory for one.
static void what_is_granted_without_memory_is_reported_later(void **state) {
    (void)state;
    const long before = held_now();
    struct node node = node_open_limit(url, (struct weir_limit){1, WEIR_HOUR, 100}, 10000);
    uint64_t granted = 0;
    node_wait(&node, node_is_connected, "connected");
    order(0, 3);
    for (uint64_t id = 0; id < 500; id++) {
        granted += node_ask(&node, weir_id(id), 2);
        if (id % 50 == 0) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); // load's pace
    }
    for (int i = 0; i < 10; i++) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    order(0, 0);
    const struct weir_sync_limiter_stats without = node_limiter_stats(&node);
    assert_true(without.reported_tokens > 0);
    assert_true(without.pending_tokens > 0);
    assert_int_equal(without.reported_tokens + without.pending_tokens, granted);
    for (int round = 0; round < 90 && !node_has_nothing_pending(&node); round++) {
        for (uint64_t id = 0; id < 500; id++) granted += node_ask(&node, weir_id(id), 1);
        for (int i = 0; i < 10; i++) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    assert_int_equal(weir_sync_stop(node.sync, 20 * WEIR_SECOND), WEIR_GRANTED);
    const struct weir_sync_limiter_stats stats = node_limiter_stats(&node);
    assert_int_equal(stats.lost_tokens, 0);
    assert_int_equal(stats.reported_tokens, granted);
    node_close(&node);
    assert_int_equal(held_now(), before);
}

// Forgetting.

static bool knows_no_key(const struct node *node) {
    return node_stats(node).known_keys == 0;
}

static struct node open_forgetful(int64_t forget_us) {
    const struct weir_sync_options options = node_options(url);
    struct node node = node_make(&options, (struct weir_limit){1, WEIR_HOUR, 10000}, 10000);
    node.sync->forget_us = forget_us;
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    return node;
}

static void quiet_keys_are_forgotten_and_named_again_when_asked(void **state) {
    (void)state;
    struct node node = open_forgetful(20000);
    redisContext *context = test_redis_connect(&redis);
    test_redis_do(context, "FLUSHALL");
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 200; i++)
            assert_int_equal(node_ask(&node, weir_id((uint64_t)i), 2), 2);
        assert_int_equal(node_ask(&node, weir_str("k"), 3), 3);
        node_wait(&node, node_has_nothing_pending, "reported");
        node_wait(&node, knows_no_key, "forgotten");
    }
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 3 * 403);
    assert_int_equal(node_limiter_stats(&node).lost_tokens, 0);
    const long long behind_ms = test_redis_integer(context, "PTTL weir:{0}mails:k");
    assert_in_range(behind_ms, 8990LL * 3600, 9010LL * 3600); // nine hours
    redisFree(context);
    node_close(&node);
}

// The thread's own looks, made by hand while it is held up.

static struct wr_record *record_of(const struct node *node, const char *key) {
    return wr_known_find(&node->sync->members->keys, key, strlen(key));
}

static void a_spill_on_its_way_keeps_its_record(void **state) {
    (void)state;
    struct node node = open_forgetful(3600000000);
    assert_int_equal(node_ask(&node, weir_str("k"), 3), 3);
    node_wait(&node, node_has_nothing_pending, "reported");
    pthread_mutex_lock(&node.sync->lock);
    struct wr_record *record = record_of(&node, "k");
    record->seen_us = INT64_MIN / 2;
    node.sync->forget_us = 20000;
    const uint64_t granted = node_ask(&node, weir_str("k"), 2); // its name is not handed over again
    (void)weir_reset(node.limiter, weir_str("k"));
    wr_member_sweep(node.sync->members, wr_sync_now_us());
    const bool kept = record_of(&node, "k") == record;
    pthread_mutex_unlock(&node.sync->lock);
    assert_int_equal(granted, 2);
    assert_true(kept);
    node_wait(&node, node_has_nothing_pending, "reported");
    node_wait(&node, knows_no_key, "forgotten");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 5);
    assert_int_equal(node_limiter_stats(&node).lost_tokens, 0);
    node_close(&node);
}

static void a_record_forgotten_behind_a_late_name_costs_nothing(void **state) {
    (void)state;
    struct node node = open_forgetful(3600000000);
    assert_int_equal(node_ask(&node, weir_str("k"), 3), 3);
    node_wait(&node, node_has_nothing_pending, "reported");
    pthread_mutex_lock(&node.sync->lock);
    struct wr_record *record = record_of(&node, "k"); // as the name of a slot that it left would:
    wr_known_place(&node.sync->members->keys, record, record->slot ^ 1, record->fingerprint);
    node.sync->forget_us = 20000;
    pthread_mutex_unlock(&node.sync->lock);
    node_wait(&node, knows_no_key, "forgotten");
    uint64_t granted = 3 + node_ask(&node, weir_str("k"), 2);
    for (int i = 0; i < 1000 && !node_has_nothing_pending(&node); i++) { // the name comes again
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        granted += node_ask(&node, weir_str("k"), 1);
    }
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, granted);
    assert_int_equal(node_limiter_stats(&node).lost_tokens, 0);
    node_close(&node);
}

struct asker {
    struct node *node;
    _Atomic bool *ended;
    uint64_t granted;
    pthread_t thread;
};

static void *keep_asking(void *argument) {
    struct asker *asker = argument;
    for (uint64_t i = 0; !atomic_load_explicit(asker->ended, memory_order_relaxed); i++) {
        asker->granted += node_ask(asker->node, weir_id(i * i % 997), 1);
        if (i % 32 == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); // load's pace
    }
    return NULL;
}

static void forgetting_under_load_loses_no_grant(void **state) {
    (void)state;
    struct node node = open_forgetful(1000);
    _Atomic bool ended = false;
    struct asker askers[2];
    for (int i = 0; i < 2; i++) {
        askers[i] = (struct asker){&node, &ended, 0, 0};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, keep_asking, &askers[i]), 0);
    }
    for (int i = 0; i < 150; i++) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); // load
    atomic_store_explicit(&ended, true, memory_order_relaxed);
    for (int i = 0; i < 2; i++) pthread_join(askers[i].thread, NULL);
    node_wait(&node, node_has_nothing_pending, "reported");
    node_wait(&node, knows_no_key, "forgotten");
    const struct weir_sync_limiter_stats stats = node_limiter_stats(&node);
    assert_int_equal(stats.reported_tokens + stats.lost_tokens,
                     askers[0].granted + askers[1].granted);
    assert_int_equal(stats.lost_tokens, 0);
    node_close(&node);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_create_and_attach_may_fail),
        cmocka_unit_test(the_side_array_may_fail),
        cmocka_unit_test(what_is_granted_without_memory_is_reported_later),
        cmocka_unit_test(quiet_keys_are_forgotten_and_named_again_when_asked),
        cmocka_unit_test(a_spill_on_its_way_keeps_its_record),
        cmocka_unit_test(a_record_forgotten_behind_a_late_name_costs_nothing),
        cmocka_unit_test(forgetting_under_load_loses_no_grant),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
