// What went wrong in other limiters' arithmetic, each as an input with its right answer.
#include <pthread.h>
#include <string.h>

#include "exact.h"
#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

static void a_nearly_full_bucket_fills_after_an_hour(void **state) {
    (void)state;
    // 1 per 3600 s, burst 1. A level of 0.5499 is reached by waiting that part of an hour.
    struct weir *w = create_at(1, WEIR_HOUR, 1);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    const int64_t part = INT64_C(1979657712172); // 0.54990492004805558 of an hour, in ns
    assert_int_equal(take_at(w, "a", 1, part), WEIR_DENIED);
    const struct outcome o = ask_at(w, WEIR_PEEK, "a", 1, part);
    assert_int_equal(o.answer.retry_after_ns, (int64_t)WEIR_HOUR - part);
    assert_int_equal(take_at(w, "a", 1, 100 * (int64_t)WEIR_HOUR), WEIR_GRANTED);
    weir_destroy(w);
}

static void rate_0_burst_1_grants_one_of_a_thousand(void **state) {
    (void)state;
    struct weir_options options = options_at(0, WEIR_SECOND, 1);
    options.max_rate_tokens = options.max_rate_period_ns = 1;
    struct weir *w = create(&options);
    unsigned granted = 0, denied = 0;
    for (int i = 0; i < 1000; i++) {
        const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, i * second);
        granted += o.result == WEIR_GRANTED;
        denied += o.result == WEIR_DENIED && o.answer.retry_after_ns == WEIR_FOREVER;
    }
    assert_int_equal(granted, 1);
    assert_int_equal(denied, 999);
    weir_destroy(w);
}

static _Atomic uint64_t denied_of_8;

static void *ask_1000(void *limiter) {
    uint64_t denied = 0;
    for (unsigned i = 0; i < 1000; i++) denied += take_at(limiter, "a", i % 3, i) == WEIR_DENIED;
    atomic_fetch_add_explicit(&denied_of_8, denied, memory_order_relaxed);
    return NULL;
}

static void burst_0_denies_all_from_8_threads_too(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 0);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) assert_int_equal(pthread_create(&threads[i], NULL, ask_1000, w), 0);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load_explicit(&denied_of_8, memory_order_relaxed), 8000);
    assert_int_equal(stats_of(w).denied, 8000);
    weir_destroy(w);
}

static void a_new_key_is_full_whatever_the_uptime(void **state) {
    (void)state;
    static const int64_t uptimes[] = {0, 1, INT64_C(30000000000), INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof uptimes / sizeof uptimes[0]; i++) {
        const struct weir_options options = options_at(1, 10000 * WEIR_SECOND, 1); // 0.0001/s
        struct weir *w = create(&options);
        assert_int_equal(take_at(w, "a", 1, uptimes[i]), WEIR_GRANTED);
        assert_int_equal(take_at(w, "a", 1, uptimes[i]), WEIR_DENIED);
        weir_destroy(w);
    }
}

// Every nanosecond over the closed span [0, span], against the exact model.
static uint64_t granted_each_ns(uint64_t rate, uint64_t burst, int64_t span) {
    struct weir *w = create_at(rate, WEIR_SECOND, burst);
    const uint64_t granted = granted_of(w, "a", (uint64_t)span + 1, 0, 1);
    weir_destroy(w);
    return granted;
}

static void fast_rates_are_to_the_token_each_nanosecond(void **state) {
    (void)state;
    assert_int_equal(granted_each_ns(300000000, 1000, 1000000), 1000 + 300000);
    assert_int_equal(granted_each_ns(600000000, 1000, 1000000), 1000 + 600000);
    assert_int_equal(granted_each_ns(300000000, 1000, 999999), 1000 + 299999);
}

struct taker {
    struct weir *w;
    struct exact *exact;
    pthread_mutex_t *mutex;
    int64_t *now_ns;
    const char *wrong;
};

// Two threads take turns, so that the model can follow every one of their asks.
static void *take_in_turns(void *at) {
    struct taker *t = at;
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str("a");
    for (int i = 0; i < 100000 && t->wrong == NULL; i++) {
        pthread_mutex_lock(t->mutex);
        *t->now_ns += i % 3 == 0;
        ask.now_ns = *t->now_ns;
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const int result = weir_do(t->w, &ask, &answer);
        t->wrong = exact_judge(t->exact, 0, &ask, result, &answer);
        pthread_mutex_unlock(t->mutex);
    }
    return NULL;
}

static void a_billion_and_one_a_second_on_2_threads_denies_as_the_model_does(void **state) {
    (void)state;
    static struct exact exact;
    const struct weir_limit limit = {1000000001, WEIR_SECOND, 100};
    struct weir *w = create_at(limit.tokens, limit.period_ns, limit.burst);
    exact_init(&exact, WEIR_SECOND, &limit, &limit, 100, 1);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int64_t now_ns = 0;
    const struct taker taker = {w, &exact, &mutex, &now_ns, NULL};
    struct taker takers[2] = {taker, taker};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_in_turns, &takers[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        if (takers[i].wrong != NULL) fail_msg("%s", takers[i].wrong);
    weir_destroy(w);
}

static void one_a_day_with_a_burst_of_10000_works_and_never_wraps(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_DAY, 10000);
    const int64_t day = (int64_t)WEIR_DAY;
    assert_int_equal(take_at(w, "a", 10000, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, day - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, day), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 10000, day).answer.retry_after_ns, 10000 * WEIR_DAY);
    assert_int_equal(remaining_at(w, "a", 10000 * day), 9999);
    assert_int_equal(remaining_at(w, "a", 20000 * day), 10000); // 54 years
    assert_int_equal(take_at(w, "a", 10000, 26000 * day), WEIR_GRANTED); // 71 years
    assert_int_equal(take_at(w, "a", 1, 26000 * day), WEIR_DENIED);
    assert_int_equal(stats_of(w).relics, 0);
    weir_destroy(w);
}

static void fifteen_hundred_a_second_each_100_us_are_1510(void **state) {
    (void)state;
    struct weir *w = create_at(1500, WEIR_SECOND, 10);
    assert_int_equal(granted_of(w, "a", 10001, 0, 100000), 1510);
    weir_destroy(w);
}

static void long_idleness_is_full_and_not_negative(void **state) {
    (void)state;
    static const int64_t idle[] = {12 * (int64_t)WEIR_HOUR, 6 * (int64_t)WEIR_DAY,
                                   3652 * (int64_t)WEIR_DAY};
    struct weir *w = create_at(1000000000, WEIR_SECOND, 1000);
    int64_t now = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(take_at(w, "a", 1000, now), WEIR_GRANTED);
        now += idle[i];
        const struct outcome o = ask_at(w, WEIR_PEEK, "a", 0, now);
        assert_int_equal(o.answer.remaining, 1000);
        assert_int_equal(o.answer.debt, 0);
        assert_int_equal(o.answer.full_after_ns, 0);
    }
    weir_destroy(w);
}

static void two_tebibytes_a_second_are_refused_and_2_to_the_31_kib_limited(void **state) {
    (void)state;
    struct weir_options options = options_at(UINT64_C(2) << 40, WEIR_SECOND, 1 << 20);
    struct weir_error error = {{0}};
    struct weir *w = NULL;
    assert_int_equal(weir_create(&w, &options, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "1.6*10^10"));
    assert_non_null(strstr(error.text, "KiB"));
    const uint64_t top = UINT64_C(1) << 31;
    w = create_at(top, WEIR_SECOND, top);
    assert_int_equal(take_at(w, "a", top, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", top + 1, 0), WEIR_NEVER);
    const struct outcome half = ask_at(w, WEIR_TAKE_SOME, "a", top, second / 2);
    assert_int_equal(half.answer.granted_tokens, top / 2);
    assert_int_equal(take_at(w, "a", top, second + second / 2 - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", top, second + second / 2), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_hundred_a_second_each_ms_are_100_and_not_0(void **state) {
    (void)state;
    struct weir *w = create_at(100, WEIR_SECOND, 1);
    assert_int_equal(granted_of(w, "a", 1000, 0, WEIR_MILLISECOND), 100);
    weir_destroy(w);
}

static void three_taken_at_0_are_due_again_at_exactly_30_s(void **state) {
    (void)state;
    struct weir *w = create_at(1, 10 * WEIR_SECOND, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 3, 25 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.retry_after_ns, 5 * WEIR_SECOND);
    assert_int_equal(take_at(w, "a", 3, 30 * second - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 3, 30 * second), WEIR_GRANTED);
    weir_destroy(w);
}

static void take_some_of_a_debt_takes_nothing_and_leaves_it(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 15, 0).answer.debt, 5);
    const struct outcome o = ask_at(w, WEIR_TAKE_SOME, "a", 3, 0);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(o.answer.debt, 5);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 0).answer.debt, 5);
    weir_destroy(w);
}

static void a_cost_above_the_burst_can_never_fit_and_touches_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 3);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 4, 0);
    assert_int_equal(o.result, WEIR_NEVER);
    assert_true(o.answer.retry_after_ns == WEIR_FOREVER); // no wait is named
    assert_int_equal(o.answer.remaining, 2);
    assert_int_equal(remaining_at(w, "a", 0), 2);
    weir_destroy(w);
}

static void a_share_below_one_token_is_never(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 2);
    const struct weir_weight third = {1, 3};
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 1, third, 0).result, WEIR_NEVER);
    assert_int_equal(weighted_at(w, WEIR_TAKE_SOME, "a", 5, third, 0).result, WEIR_NEVER);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 0, third, 0).result, WEIR_GRANTED);
    weir_destroy(w);
}

static void an_hour_saturated_at_100_a_second_is_360010(void **state) {
    (void)state;
    struct weir *w = create_at(100, WEIR_SECOND, 10);
    assert_int_equal(granted_of(w, "a", 3600001, 0, WEIR_MILLISECOND), 360000 + 10);
    weir_destroy(w);
}

// One thing is asked for again and again: at retry_after_ns it passes, a nanosecond sooner not.
static void check_exact_waits(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    struct weir *w = create_at(tokens, period_ns, burst);
    struct random random = {tokens};
    int64_t now = 0;
    assert_int_equal(take_at(w, "a", burst, now), WEIR_GRANTED);
    for (int i = 0; i < 200; i++) {
        const uint64_t cost = 1 + random_below(&random, burst);
        struct outcome o = ask_at(w, WEIR_TAKE, "a", cost, now);
        if (o.result == WEIR_GRANTED) continue;
        const uint64_t wait = o.answer.retry_after_ns;
        assert_true(wait > 0 && wait != WEIR_FOREVER);
        if ((uint64_t)now + wait > UINT64_C(1) << 60) break;
        if (wait > 3) {
            now += (int64_t)(wait / 3); // asked on the way: as many nanoseconds sooner
            o = ask_at(w, WEIR_TAKE, "a", cost, now);
            assert_int_equal(o.answer.retry_after_ns, wait - wait / 3);
        }
        now += (int64_t)o.answer.retry_after_ns;
        assert_int_equal(ask_at(w, WEIR_TAKE, "a", cost, now - 1).result, WEIR_DENIED);
        assert_int_equal(ask_at(w, WEIR_TAKE, "a", cost, now).result, WEIR_GRANTED);
    }
    weir_destroy(w);
}

static void asking_again_after_exactly_retry_after_ns_passes_and_1_ns_sooner_not(void **state) {
    (void)state;
    static const struct weir_limit limits[] = {
        {1, 365 * WEIR_DAY, 1},      {3, 365 * WEIR_DAY, 7},      {1, WEIR_DAY, 5},
        {1, WEIR_HOUR, 1},           {7, 13 * WEIR_SECOND, 1},    {3, 10 * WEIR_SECOND, 4},
        {1, WEIR_SECOND, 5},         {5, WEIR_SECOND, 20},        {300, WEIR_MINUTE, 7},
        {1500, WEIR_SECOND, 2},      {2776, WEIR_SECOND, 11},     {99991, WEIR_SECOND, 1000},
        {1000000, WEIR_SECOND, 3},   {123456789, WEIR_SECOND, 9}, {999999999, WEIR_SECOND, 50},
        {1000000001, WEIR_SECOND, 100},  {2000000000, WEIR_SECOND, 100},
        {3999999999, WEIR_SECOND, 1000}, {4000000000, WEIR_SECOND, 1000},
        {7777777777, WEIR_SECOND, 1000}, {10000000000, WEIR_SECOND, 100000},
    };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        check_exact_waits(limits[i].tokens, limits[i].period_ns, limits[i].burst);
}

// A grant at the exact moment a token is due, thirty years on, at every scale.
static void never_late_and_at_most_1_ns_early_over_30_years(void **state) {
    (void)state;
    static const struct weir_limit limits[] = {
        {1, 365 * WEIR_DAY, 1}, {7, 13 * WEIR_SECOND, 1}, {3, WEIR_SECOND, 1},
        {1500, WEIR_SECOND, 2}, {1000000007, WEIR_SECOND, 1}, {2999999999, WEIR_SECOND, 4},
        {9999999999, WEIR_SECOND, 20},
    };
    struct random random = {30};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const struct weir_limit limit = limits[i];
        struct weir *w = create_at(limit.tokens, limit.period_ns, limit.burst);
        for (int n = 0; n < 500; n++) {
            // The kth token since 0 is due at ceil(k * period / tokens).
            const wr_u128 most = (wr_u128)(30 * 365 * WEIR_DAY) * limit.tokens / limit.period_ns;
            const wr_u128 k = 1 + (((wr_u128)random_next(&random) * most) >> 64);
            const int64_t due = (int64_t)((k * limit.period_ns + limit.tokens - 1) / limit.tokens);
            const struct wr_now now =
                wr_now_read(w->versions, &w->source, w->scale.shift, due, false);
            assert_true(now.v >= (uint64_t)(k * w->scale.unit_tokens)); // not late
            if (due < 1) continue;
            const struct wr_now early =
                wr_now_read(w->versions, &w->source, w->scale.shift, due - 2, false);
            assert_true(early.v < (uint64_t)(k * w->scale.unit_tokens)); // at most 1 ns early
        }
        weir_destroy(w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nearly_full_bucket_fills_after_an_hour),
        cmocka_unit_test(rate_0_burst_1_grants_one_of_a_thousand),
        cmocka_unit_test(burst_0_denies_all_from_8_threads_too),
        cmocka_unit_test(a_new_key_is_full_whatever_the_uptime),
        cmocka_unit_test(fast_rates_are_to_the_token_each_nanosecond),
        cmocka_unit_test(a_billion_and_one_a_second_on_2_threads_denies_as_the_model_does),
        cmocka_unit_test(one_a_day_with_a_burst_of_10000_works_and_never_wraps),
        cmocka_unit_test(fifteen_hundred_a_second_each_100_us_are_1510),
        cmocka_unit_test(long_idleness_is_full_and_not_negative),
        cmocka_unit_test(two_tebibytes_a_second_are_refused_and_2_to_the_31_kib_limited),
        cmocka_unit_test(a_hundred_a_second_each_ms_are_100_and_not_0),
        cmocka_unit_test(three_taken_at_0_are_due_again_at_exactly_30_s),
        cmocka_unit_test(take_some_of_a_debt_takes_nothing_and_leaves_it),
        cmocka_unit_test(a_cost_above_the_burst_can_never_fit_and_touches_nothing),
        cmocka_unit_test(a_share_below_one_token_is_never),
        cmocka_unit_test(an_hour_saturated_at_100_a_second_is_360010),
        cmocka_unit_test(asking_again_after_exactly_retry_after_ns_passes_and_1_ns_sooner_not),
        cmocka_unit_test(never_late_and_at_most_1_ns_early_over_30_years),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
