// Batches beside single asks and changes of limit: what was granted equals, to the token, what the
// buckets lost, and nothing was granted before it was there.
//
// WEIR_STRESS_SECONDS prolongs it. The number of asks is given by time, nothing asserted is.
#include <pthread.h>

#include "support.h"

#define BATCHERS 3
#define THREADS (BATCHERS + 2)
#define HOT 4
#define BURST UINT64_C(200000000) // does not fill in the time there is
#define MOST 80

struct worker {
    struct weir *w;
    struct random random;
    uint64_t until_ns, spent[HOT], granted, denied, surprises;
    pthread_t thread;
};

static uint64_t v_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true).v;
}

static uint64_t zero_of(struct weir *w, uint64_t key) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_id(key), &slot), 1);
    return slot.word;
}

static void note(struct worker *t, int result, uint64_t key, uint64_t tokens) {
    if (result == WEIR_GRANTED) {
        t->spent[key] += tokens;
        t->granted++;
    } else {
        t->denied++;
        t->surprises += result != WEIR_DENIED;
    }
}

// Takes, and now and then a take_some, which goes the long way.
static void one_batch(struct worker *t, const struct weir_prepared *prepared) {
    struct weir_ask asks[MOST];
    struct weir_answer answers[MOST];
    int results[MOST];
    const size_t count = 1 + random_below(&t->random, MOST);
    const bool answered = random_below(&t->random, 2) == 0;
    for (size_t i = 0; i < count; i++) {
        asks[i] = (struct weir_ask)WEIR_ASK_INIT;
        answers[i] = (struct weir_answer)WEIR_ANSWER_INIT;
        const uint64_t key = random_below(&t->random, HOT);
        asks[i].key = i % 2 == 0 ? weir_id(key) : weir_prepared_key(&prepared[key]);
        asks[i].now_ns = (int64_t)key; // not read: the clock is the limiter's
        asks[i].cost = random_below(&t->random, 4);
        if (answered && random_below(&t->random, 10) == 0) asks[i].kind = WEIR_TAKE_SOME;
    }
    (void)weir_do_batch(t->w, asks, count, results, answered ? answers : NULL);
    for (size_t i = 0; i < count; i++)
        note(t, results[i], (uint64_t)asks[i].now_ns,
             answered ? answers[i].granted_tokens : asks[i].cost);
}

static void *work_in_batches(void *at) {
    struct worker *t = at;
    struct weir_prepared prepared[HOT];
    for (uint64_t key = 0; key < HOT; key++) weir_prepare(t->w, weir_id(key), &prepared[key]);
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 20; i++) one_batch(t, prepared);
    return NULL;
}

static void *work_singly(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) {
            const uint64_t key = random_below(&t->random, HOT), cost = random_below(&t->random, 4);
            note(t, weir_take(t->w, weir_id(key), cost, NULL), key, cost);
        }
    return NULL;
}

static void *change_limits(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns) {
        const struct weir_limit limit = {random_below(&t->random, 200000), WEIR_SECOND, BURST};
        const int result = weir_set_limit(t->w, &limit, NULL);
        t->surprises += result != WEIR_GRANTED && result != WEIR_EBUSY;
    }
    return NULL;
}

static void run(struct worker *workers, struct weir *w, bool changing) {
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(0.7) * 1e9);
    for (uint64_t i = 0; i < THREADS; i++) {
        void *(*work)(void *) = i < BATCHERS                    ? work_in_batches
                                : changing && i + 1 == THREADS ? change_limits
                                                               : work_singly;
        workers[i] = (struct worker){.w = w, .random = {i + 1}, .until_ns = until_ns};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
}

static void batches_conserve_tokens(bool changing) {
    struct weir_options options = options_at(200000, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    struct worker workers[THREADS];
    uint64_t before[HOT], granted = 0, denied = 0, total = 0;
    for (uint64_t key = 0; key < HOT; key++) {
        assert_int_equal(weir_take(w, weir_id(key), BURST, NULL), WEIR_GRANTED);
        before[key] = zero_of(w, key);
    }
    run(workers, w, changing);
    const uint64_t v = v_of(w);
    for (uint64_t key = 0; key < HOT; key++) {
        uint64_t spent = 0;
        for (int i = 0; i < THREADS; i++) spent += workers[i].spent[key];
        assert_true(zero_of(w, key) - before[key] == spent * w->scale.unit_tokens);
        assert_true((int64_t)(v - zero_of(w, key)) >= 0);
        total += spent;
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].surprises, 0);
        granted += workers[i].granted;
        denied += workers[i].denied;
    }
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.granted, granted + HOT);
    assert_int_equal(s.denied, denied);
    assert_int_equal(s.tokens, total + HOT * BURST);
    assert_true(granted > 0 && denied > 0);
    weir_destroy(w);
}

static void batches_and_single_asks_conserve_tokens(void **state) {
    (void)state;
    batches_conserve_tokens(false);
}

static void so_they_do_while_limits_change(void **state) {
    (void)state;
    batches_conserve_tokens(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_and_single_asks_conserve_tokens),
        cmocka_unit_test(so_they_do_while_limits_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
