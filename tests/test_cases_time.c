// What went wrong in other limiters over time and waiting, each as an input with its right answer.
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

// Takes the place of the system's: the wall clock jumps by days from call to call, and is counted.
static _Atomic unsigned wall_readings;

int clock_gettime(clockid_t id, struct timespec *now) {
    const int result = (int)syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) {
        const unsigned n = atomic_fetch_add_explicit(&wall_readings, 1, memory_order_relaxed);
        now->tv_sec += n % 2 == 0 ? -2 * 86400 : 11;
    }
    return result;
}

static void the_wall_clock_is_never_looked_at(void **state) {
    (void)state;
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_MONOTONIC,
                                             WEIR_CLOCK_COARSE};
    const unsigned before = atomic_load_explicit(&wall_readings, memory_order_relaxed);
    for (size_t i = 0; i < 3; i++) {
        struct weir_options options = options_at(1, WEIR_DAY, 3);
        options.clock = clocks[i];
        struct weir *w = create(&options);
        for (int n = 0; n < 3; n++)
            assert_int_equal(weir_take(w, weir_str("a"), 1, NULL), WEIR_GRANTED);
        assert_int_equal(weir_take(w, weir_str("a"), 1, NULL), WEIR_DENIED);
        weir_destroy(w);
    }
    assert_int_equal(atomic_load_explicit(&wall_readings, memory_order_relaxed), before);
    struct timespec now; // and the stand-in does stand in
    clock_gettime(CLOCK_REALTIME, &now);
    assert_int_equal(atomic_load_explicit(&wall_readings, memory_order_relaxed), before + 1);
}

static void a_step_back_delays_by_at_most_the_step_and_gives_no_token(void **state) {
    (void)state;
    static const int64_t steps[] = {1, 1000, 11 * INT64_C(1000000000), 1800 * INT64_C(1000000000),
                                    3600 * INT64_C(1000000000)};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct weir *w = create_at(1, WEIR_SECOND, 5);
        const int64_t now = 10000 * second;
        assert_int_equal(take_at(w, "a", 5, now), WEIR_GRANTED);
        const int64_t back = now - steps[i];
        assert_int_equal(take_at(w, "a", 1, back), WEIR_DENIED);
        const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, back);
        assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND + (uint64_t)steps[i]);
        assert_int_equal(take_at(w, "a", 1, now + second - 1), WEIR_DENIED);
        assert_int_equal(take_at(w, "a", 1, now + second), WEIR_GRANTED);
        weir_destroy(w);
    }
}

#define READERS 4

struct reader {
    struct weir *w;
    uint64_t seed;
    uint64_t granted;
};

// Readings up to an hour apart, in no order, none later than the newest that the test allows.
static void *ask_at_shuffled_readings(void *at) {
    struct reader *r = at;
    struct random random = {r->seed};
    for (int i = 0; i < 20000; i++) {
        const int64_t now = 4000 * second - (int64_t)random_below(&random, WEIR_HOUR);
        r->granted += take_at(r->w, "a", 1, now) == WEIR_GRANTED;
    }
    return NULL;
}

static void readings_older_than_the_newest_from_many_threads_are_no_gift(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 5);
    struct reader readers[READERS];
    pthread_t threads[READERS];
    for (unsigned i = 0; i < READERS; i++) {
        readers[i] = (struct reader){w, i + 1, 0};
        assert_int_equal(
            pthread_create(&threads[i], NULL, ask_at_shuffled_readings, &readers[i]), 0);
    }
    uint64_t granted = 0;
    for (unsigned i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        granted += readers[i].granted;
    }
    assert_in_range(granted, 5, 3600 + 5); // the whole span's tokens and the burst
    assert_in_range(ask_at(w, WEIR_PEEK, "a", 0, 4000 * second).answer.debt, 0, 0);
    weir_destroy(w);
}

static void eleven_seconds_back_and_forth_within_a_burst_pass(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_MINUTE, 3);
    assert_int_equal(take_at(w, "a", 1, 100 * second), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 111 * second), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 100 * second), WEIR_GRANTED);
    weir_destroy(w);
}

static void at_one_a_second_the_third_is_denied_and_due_by_111_s(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 3);
    assert_int_equal(take_at(w, "a", 1, 100 * second), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 111 * second), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, 100 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_in_range(o.answer.retry_after_ns, 1, 11 * WEIR_SECOND);
    assert_int_equal(take_at(w, "a", 1, 111 * second), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_reading_before_the_limiter_was_made_purges_and_wraps_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 3); // its first reading is 0
    assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
    static const int64_t before[] = {-1, -5 * INT64_C(1000000000), INT64_MIN / 2, INT64_MIN};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        const struct outcome o = ask_at(w, WEIR_PEEK, "a", 0, before[i]);
        assert_int_equal(o.result, WEIR_GRANTED);
        assert_int_equal(o.answer.remaining, 1);
    }
    assert_int_equal(take_at(w, "a", 1, INT64_MIN), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, -second), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, second - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, second), WEIR_GRANTED);
    assert_int_equal(stats_of(w).relics, 0);
    weir_destroy(w);
}

static void readings_beyond_73_years_are_clamped(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_DAY, 3);
    assert_int_equal(take_at(w, "a", 3, INT64_MAX), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, INT64_MAX), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, INT64_MAX - second), WEIR_DENIED);
    weir_destroy(w);
}

static void two_hundred_ms_are_over_after_exactly_200_ms(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 1);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    const int64_t now = 800 * (int64_t)WEIR_MILLISECOND;
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, now);
    assert_int_equal(o.answer.retry_after_ns, 200 * WEIR_MILLISECOND);
    assert_int_equal(take_at(w, "a", 1, now + (int64_t)o.answer.retry_after_ns - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, now + (int64_t)o.answer.retry_after_ns), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_refused_reservation_leaves_the_state_untouched(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_SECOND, 3);
    options.max_ahead_tokens = 4;
    struct weir *w = create(&options);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 3, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 3, 0).result, WEIR_GRANTED);
    struct wr_pair before, after;
    assert_int_equal(live_ways(w, weir_str("a"), &before), 1);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 4, 0).result, WEIR_NEVER);
    assert_int_equal(live_ways(w, weir_str("a"), &after), 1);
    assert_true(before.tag == after.tag && before.word == after.word);
    weir_destroy(w);
}

static void a_cancelled_reservation_gives_back_exactly_what_it_took(void **state) {
    (void)state;
    struct weir *w = create_at(7, 13 * WEIR_SECOND, 5);
    struct wr_pair before, after;
    int64_t now = 0;
    for (uint64_t cost = 1; cost <= 5; cost++) {
        now += second / 3;
        assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 5, now).result, WEIR_GRANTED);
        assert_int_equal(live_ways(w, weir_str("a"), &before), 1);
        assert_int_equal(ask_at(w, WEIR_RESERVE, "a", cost, now).result, WEIR_GRANTED);
        now += second / 7;
        const struct outcome o = ask_at(w, WEIR_REFUND, "a", cost, now);
        assert_int_equal(o.answer.granted_tokens, cost);
        assert_int_equal(live_ways(w, weir_str("a"), &after), 1);
        assert_true(before.word == after.word);
    }
    weir_destroy(w);
}

static void five_thousand_of_a_burst_of_5_are_never_and_at_once(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 5);
    assert_int_equal(ask_at(w, WEIR_TAKE, "a", 5000, 0).result, WEIR_NEVER);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 5000, 0).result, WEIR_NEVER);
    assert_int_equal(remaining_at(w, "a", 0), 5);
    assert_int_equal(live_ways(w, weir_str("a"), NULL), 0);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wall_clock_is_never_looked_at),
        cmocka_unit_test(a_step_back_delays_by_at_most_the_step_and_gives_no_token),
        cmocka_unit_test(readings_older_than_the_newest_from_many_threads_are_no_gift),
        cmocka_unit_test(eleven_seconds_back_and_forth_within_a_burst_pass),
        cmocka_unit_test(at_one_a_second_the_third_is_denied_and_due_by_111_s),
        cmocka_unit_test(a_reading_before_the_limiter_was_made_purges_and_wraps_nothing),
        cmocka_unit_test(readings_beyond_73_years_are_clamped),
        cmocka_unit_test(two_hundred_ms_are_over_after_exactly_200_ms),
        cmocka_unit_test(a_refused_reservation_leaves_the_state_untouched),
        cmocka_unit_test(a_cancelled_reservation_gives_back_exactly_what_it_took),
        cmocka_unit_test(five_thousand_of_a_burst_of_5_are_never_and_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
