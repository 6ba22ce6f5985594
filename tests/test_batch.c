// weir_do_batch: what weir_do would have answered to one ask after the other.
#include <stdio.h>
#include <string.h>

#include "support.h"

#define KEYS 12
#define MOST 100 // more than three times what is done together

static const int64_t second = (int64_t)WEIR_SECOND;

// Two limiters alike, each on the whole sequence: one by batches, one ask by ask.
struct twins {
    struct weir *batch, *single;
    struct weir_prepared prepared[2][KEYS];
    char names[KEYS][8];
};

static void twins_init(struct twins *t, const struct weir_options *options) {
    t->batch = create(options);
    t->single = create(options);
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(t->names[i], sizeof t->names[i], "key %u", i);
        weir_prepare(t->batch, weir_str(t->names[i]), &t->prepared[0][i]);
        weir_prepare(t->single, weir_str(t->names[i]), &t->prepared[1][i]);
    }
}

static void twins_fini(struct twins *t) {
    weir_destroy(t->batch);
    weir_destroy(t->single);
}

static struct weir_key key_of(const struct twins *t, unsigned twin, struct random *random) {
    const uint64_t key = random_below(random, KEYS);
    switch (random_below(random, 3)) {
    case 0: return weir_str(t->names[key]);
    case 1: return weir_id(key);
    default: return weir_prepared_key(&t->prepared[twin][key]);
    }
}

// A random ask, for one of the twins; `random` is at the same point for the other.
static struct weir_ask random_ask(const struct twins *t, unsigned twin, struct random *random,
                                  int64_t now) {
    static const struct weir_weight weights[] = {{0, 0}, {1, 1}, {2, 1}, {1, 2}, {3, 0}};
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = key_of(t, twin, random);
    ask.cost = random_below(random, 10) == 0 ? random_below(random, 30) : random_below(random, 4);
    ask.weight = weights[random_below(random, 2) == 0 ? 0 : random_below(random, 5)];
    ask.kind = random_below(random, 2) == 0 ? WEIR_TAKE : (enum weir_kind)random_below(random, 8);
    ask.now_ns = now;
    ask.max_wait_ns = random_below(random, 2) * WEIR_SECOND;
    if (random_below(random, 50) == 0) ask.size = 3;
    return ask;
}

static void assert_same_answer(const struct weir_answer *a, const struct weir_answer *b) {
    assert_int_equal(a->granted_tokens, b->granted_tokens);
    assert_int_equal(a->remaining, b->remaining);
    assert_int_equal(a->debt, b->debt);
    assert_int_equal(a->retry_after_ns, b->retry_after_ns);
    assert_int_equal(a->full_after_ns, b->full_after_ns);
    assert_int_equal(a->untracked, b->untracked);
    assert_int_equal(a->would_deny, b->would_deny);
}

static void run_one(struct twins *t, struct random *random, int64_t now) {
    struct weir_ask asks[2][MOST];
    int results[MOST];
    struct weir_answer answers[MOST];
    const size_t count = 1 + random_below(random, MOST);
    const bool answered = random_below(random, 3) > 0;
    for (size_t i = 0; i < count; i++) {
        struct random again = *random;
        asks[0][i] = random_ask(t, 0, random, now);
        asks[1][i] = random_ask(t, 1, &again, now);
        answers[i] = (struct weir_answer)WEIR_ANSWER_INIT;
        results[i] = 77;
        now += (int64_t)random_below(random, WEIR_SECOND / 50);
    }
    asks[0][0].size = asks[1][0].size = sizeof(struct weir_ask); // the step to the next
    const int returned =
        weir_do_batch(t->batch, asks[0], count, results, answered ? answers : NULL);
    int first = WEIR_GRANTED;
    for (size_t i = 0; i < count; i++) {
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const int result = weir_do(t->single, &asks[1][i], answered ? &answer : NULL);
        assert_int_equal(results[i], result);
        if (answered) assert_same_answer(&answers[i], &answer);
        if (first == WEIR_GRANTED) first = result;
    }
    assert_int_equal(returned, first);
}

static void assert_same_counters(const struct twins *t) {
    const struct weir_stats a = stats_of(t->batch), b = stats_of(t->single);
    assert_int_equal(a.granted, b.granted);
    assert_int_equal(a.denied, b.denied);
    assert_int_equal(a.never, b.never);
    assert_int_equal(a.tokens, b.tokens);
    assert_int_equal(a.refunded_tokens, b.refunded_tokens);
    assert_int_equal(a.clipped_tokens, b.clipped_tokens);
    assert_int_equal(a.inserted, b.inserted);
    assert_true(a.denied > 100 && a.granted > 100 && a.never > 10);
}

static uint64_t seed_of(uint64_t standard) {
    uint64_t seed = standard;
    (void)seed_from_environment(&seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static void batches_answer_as_one_ask_after_the_other(void **state) {
    (void)state;
    struct twins t;
    struct random random = {seed_of(21)};
    const struct weir_options options = options_at(5, WEIR_SECOND, 20);
    twins_init(&t, &options);
    for (int64_t i = 0; i < 300; i++) run_one(&t, &random, i * second / 2);
    assert_same_counters(&t);
    twins_fini(&t);
}

// On a clock of its own, where the reading is shared. Nothing comes back, so levels do not depend
// on when; buckets are filled now and then.
static void so_they_do_with_a_shared_reading(void **state) {
    (void)state;
    struct twins t;
    struct random random = {seed_of(22)};
    struct weir_options options = options_at(0, WEIR_SECOND, 20);
    options.max_rate_tokens = options.max_rate_period_ns = 1;
    options.clock = WEIR_CLOCK_AUTO;
    twins_init(&t, &options);
    for (int i = 0; i < 1000; i++) run_one(&t, &random, 0);
    assert_same_counters(&t);
    twins_fini(&t);
}

static void so_does_a_dry_run(void **state) {
    (void)state;
    struct twins t;
    struct random random = {seed_of(23)};
    struct weir_options options = options_at(0, WEIR_SECOND, 20);
    options.max_rate_tokens = options.max_rate_period_ns = 1;
    options.clock = WEIR_CLOCK_AUTO;
    options.dry_run = true;
    twins_init(&t, &options);
    for (int i = 0; i < 300; i++) run_one(&t, &random, 0);
    assert_int_equal(stats_of(t.batch).would_deny, stats_of(t.single).would_deny);
    assert_true(stats_of(t.batch).would_deny > 100);
    twins_fini(&t);
}

static struct weir_ask take_of(const char *key, uint64_t cost) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str(key);
    ask.cost = cost;
    return ask;
}

static void the_same_key_is_judged_in_order(void **state) {
    (void)state;
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_CALLER};
    for (int c = 0; c < 2; c++) {
        struct weir_options options = options_at(1, WEIR_DAY, 10);
        options.clock = clocks[c];
        struct weir *w = create(&options);
        struct weir_ask asks[70];
        struct weir_answer answers[70];
        int results[70];
        for (size_t i = 0; i < 70; i++) {
            asks[i] = take_of(i % 2 == 0 ? "a" : "b", 1);
            answers[i] = (struct weir_answer)WEIR_ANSWER_INIT;
        }
        assert_int_equal(weir_do_batch(w, asks, 70, results, answers), WEIR_DENIED);
        for (size_t i = 0; i < 70; i++) {
            assert_int_equal(results[i], i < 20 ? WEIR_GRANTED : WEIR_DENIED);
            assert_int_equal(answers[i].remaining, i < 20 ? 9 - i / 2 : 0);
        }
        weir_destroy(w);
    }
}

static void a_later_small_ask_passes_where_an_earlier_large_one_does_not(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 10);
    const struct weir_ask asks[] = {take_of("a", 6), take_of("a", 11), take_of("a", 5),
                                    take_of("a", 4), take_of("a", 1)};
    int results[5];
    assert_int_equal(weir_do_batch(w, asks, 5, results, NULL), WEIR_NEVER);
    static const int expected[] = {WEIR_GRANTED, WEIR_NEVER, WEIR_DENIED, WEIR_GRANTED,
                                   WEIR_DENIED};
    for (size_t i = 0; i < 5; i++) assert_int_equal(results[i], expected[i]);
    weir_destroy(w);
}

static void an_empty_batch_is_granted(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 10);
    assert_int_equal(weir_do_batch(w, NULL, 0, NULL, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void without_asks_or_results_it_is_refused(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 10);
    const struct weir_ask ask = take_of("a", 1);
    int result = 77;
    assert_int_equal(weir_do_batch(w, NULL, 1, &result, NULL), WEIR_EINVAL);
    assert_int_equal(weir_do_batch(w, &ask, 1, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(result, 77);
    assert_int_equal(remaining_at(w, "a", 0), 10);
    weir_destroy(w);
}

static void unknown_sizes_are_refused_and_nothing_changes(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 10);
    struct weir_ask asks[2] = {take_of("a", 1), take_of("a", 1)};
    struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
    int results[2];
    asks[0].size = 3;
    assert_int_equal(weir_do_batch(w, asks, 2, results, NULL), WEIR_ESIZE);
    asks[0].size = sizeof asks[0] + 8;
    assert_int_equal(weir_do_batch(w, asks, 2, results, NULL), WEIR_ESIZE);
    asks[0].size = sizeof asks[0];
    answers[0].size = 3;
    assert_int_equal(weir_do_batch(w, asks, 2, results, answers), WEIR_ESIZE);
    assert_int_equal(remaining_at(w, "a", 0), 10);
    weir_destroy(w);
}

// Where a later one is not of a known size, it alone fails, as weir_do would; the others go on.
static void a_later_struct_of_an_unknown_size_fails_alone(void **state) {
    (void)state;
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_CALLER};
    for (int c = 0; c < 2; c++) {
        struct weir_options options = options_at(1, WEIR_DAY, 10);
        options.clock = clocks[c];
        struct weir *w = create(&options);
        for (int turn = 0; turn < 2; turn++) { // without a bucket, and with one
            struct weir_ask asks[3] = {take_of("a", 1), take_of("a", 1), take_of("a", 1)};
            struct weir_answer answers[3] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT,
                                             WEIR_ANSWER_INIT};
            int results[3];
            asks[1].size = 3;
            answers[2].size = 4;
            assert_int_equal(weir_do_batch(w, asks, 3, results, answers), WEIR_ESIZE);
            assert_int_equal(results[0], WEIR_GRANTED);
            assert_int_equal(results[1], WEIR_ESIZE);
            assert_int_equal(results[2], WEIR_ESIZE);
            assert_int_equal(answers[2].size, 4);
        }
        assert_int_equal(stats_of(w).tokens, 2);
        weir_destroy(w);
    }
}

// As a caller built against an older header has them: shorter, so the step is shorter.
static void older_structs_are_stepped_over_by_their_own_size(void **state) {
    (void)state;
    enum {
        ask_size = offsetof(struct weir_ask, max_wait_ns),
        answer_size = offsetof(struct weir_answer, full_after_ns),
        count = 40
    };
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_CALLER};
    for (int c = 0; c < 2; c++) {
        struct weir_options options = options_at(1, WEIR_DAY, 10);
        options.clock = clocks[c];
        struct weir *w = create(&options);
        _Alignas(8) unsigned char asks[count * ask_size];
        _Alignas(8) unsigned char answers[count * answer_size + 64];
        int results[count];
        memset(answers, 0xA5, sizeof answers);
        for (size_t i = 0; i < count; i++) {
            struct weir_ask ask = take_of(i % 2 == 0 ? "a" : "b", 1);
            ask.size = ask_size;
            memcpy(asks + i * ask_size, &ask, ask_size);
            ((struct weir_answer *)(void *)(answers + i * answer_size))->size = answer_size;
        }
        assert_int_equal(weir_do_batch(w, (struct weir_ask *)(void *)asks, count, results,
                                       (struct weir_answer *)(void *)answers),
                         WEIR_DENIED);
        for (size_t i = 0; i < count; i++) {
            const struct weir_answer *answer =
                (struct weir_answer *)(void *)(answers + i * answer_size);
            assert_int_equal(results[i], i < 20 ? WEIR_GRANTED : WEIR_DENIED);
            assert_int_equal(answer->size, answer_size);
            assert_int_equal(answer->granted_tokens, i < 20 ? 1 : 0);
            assert_int_equal(answer->remaining, i < 20 ? 9 - i / 2 : 0);
        }
        for (size_t i = count * answer_size; i < sizeof answers; i++)
            assert_int_equal(answers[i], 0xA5);
        weir_destroy(w);
    }
}

static void failures_have_their_results_and_answers_stay(void **state) {
    (void)state;
    struct weir_options options = options_at(3000000000, WEIR_SECOND, 20); // a unit a token
    struct weir *w = create(&options);
    struct weir_ask asks[4] = {take_of("a", 1), take_of("a", 1), take_of("a", 1), take_of("a", 1)};
    struct weir_answer answers[4];
    int results[4];
    for (size_t i = 0; i < 4; i++) {
        answers[i] = (struct weir_answer)WEIR_ANSWER_INIT;
        answers[i].remaining = 777;
    }
    asks[1].kind = (enum weir_kind)99;
    asks[2].weight = (struct weir_weight){2, 1};
    assert_int_equal(weir_do_batch(w, asks, 4, results, answers), WEIR_EINVAL);
    static const int expected[] = {WEIR_GRANTED, WEIR_EINVAL, WEIR_EWEIGHT, WEIR_GRANTED};
    for (size_t i = 0; i < 4; i++) assert_int_equal(results[i], expected[i]);
    assert_int_equal(answers[1].remaining, 777);
    assert_int_equal(answers[2].remaining, 777);
    assert_int_equal(answers[3].remaining, 18);
    weir_destroy(w);
}

static void a_changed_limit_binds_the_next_batch(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_DAY, 10);
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    const struct weir_ask asks[2] = {take_of("a", 1), take_of("b", 1)};
    int results[2];
    const struct weir_limit stop = {1, WEIR_DAY, 0}, none = weir_unlimited();
    assert_int_equal(weir_do_batch(w, asks, 2, results, NULL), WEIR_GRANTED);
    assert_int_equal(weir_set_limit(w, &stop, NULL), WEIR_GRANTED);
    assert_int_equal(weir_do_batch(w, asks, 2, results, NULL), WEIR_DENIED);
    assert_int_equal(results[1], WEIR_DENIED);
    assert_int_equal(weir_set_limit(w, &none, NULL), WEIR_GRANTED);
    struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
    assert_int_equal(weir_do_batch(w, asks, 2, results, answers), WEIR_GRANTED);
    assert_true(answers[0].untracked && answers[1].untracked);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_answer_as_one_ask_after_the_other),
        cmocka_unit_test(so_they_do_with_a_shared_reading),
        cmocka_unit_test(so_does_a_dry_run),
        cmocka_unit_test(the_same_key_is_judged_in_order),
        cmocka_unit_test(a_later_small_ask_passes_where_an_earlier_large_one_does_not),
        cmocka_unit_test(an_empty_batch_is_granted),
        cmocka_unit_test(without_asks_or_results_it_is_refused),
        cmocka_unit_test(unknown_sizes_are_refused_and_nothing_changes),
        cmocka_unit_test(a_later_struct_of_an_unknown_size_fails_alone),
        cmocka_unit_test(older_structs_are_stepped_over_by_their_own_size),
        cmocka_unit_test(failures_have_their_results_and_answers_stay),
        cmocka_unit_test(a_changed_limit_binds_the_next_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
