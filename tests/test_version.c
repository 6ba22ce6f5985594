// Changes of limit: the ring, the start of a version, and V over them.
#include <pthread.h>
#include <stdatomic.h>

#include "support.h"

static struct wr_now now_at(struct weir *w, int64_t at) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, at, false);
}

static uint64_t current_of(const struct weir *w) {
    return atomic_load_explicit(&w->versions->current, memory_order_relaxed);
}

static void v_goes_on_where_it_was_at_a_change(void **state) {
    (void)state;
    struct weir *w = create_at(1000000, WEIR_SECOND, 100);
    struct random random = {11};
    int64_t at = 0;
    for (int i = 0; i < 500; i++) {
        at += (int64_t)random_below(&random, 5000000);
        const struct wr_now before = now_at(w, at);
        assert_int_equal(set_limit_at(w, random_below(&random, 1000000), WEIR_SECOND,
                                      random_below(&random, 200), at),
                         WEIR_GRANTED);
        const struct wr_now after = now_at(w, at);
        assert_true(after.v == before.v);
        assert_true(after.frac == before.frac);
        assert_true(after.ramp <= before.ramp);
        assert_true(after.ramp <= after.burst);
    }
    weir_destroy(w);
}

static void the_new_rate_runs_from_the_change_and_the_old_one_up_to_it(void **state) {
    (void)state;
    struct weir *w = create_at(1000, WEIR_SECOND, 10);
    const int64_t change = (int64_t)(10 * WEIR_SECOND);
    assert_int_equal(set_limit_at(w, 100, WEIR_SECOND, 10, change), WEIR_GRANTED);
    const uint64_t unit = w->scale.unit_tokens;
    assert_int_equal(now_at(w, 0).v / unit, 0);
    assert_int_equal(now_at(w, (int64_t)WEIR_SECOND).v / unit, 1000);
    assert_int_equal(now_at(w, change).v / unit, 10000);
    assert_int_equal(now_at(w, change + (int64_t)WEIR_SECOND).v / unit, 10100);
    // Before the version before this one there is only its start.
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 10, 2 * change), WEIR_GRANTED);
    assert_int_equal(now_at(w, 0).v / unit, 10000);
    assert_int_equal(now_at(w, change + (int64_t)WEIR_SECOND).v / unit, 10100);
    assert_int_equal(now_at(w, 2 * change + (int64_t)WEIR_SECOND).v / unit, 11010);
    weir_destroy(w);
}

static void a_change_at_an_older_reading_starts_where_the_last_one_did(void **state) {
    (void)state;
    struct weir *w = create_at(1000, WEIR_SECOND, 10);
    assert_int_equal(set_limit_at(w, 100, WEIR_SECOND, 10, (int64_t)WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 10, 0), WEIR_GRANTED);
    const uint64_t unit = w->scale.unit_tokens;
    assert_int_equal(now_at(w, (int64_t)WEIR_SECOND).v / unit, 1000);
    assert_int_equal(now_at(w, (int64_t)(2 * WEIR_SECOND)).v / unit, 1010);
    weir_destroy(w);
}

static void nothing_is_lost_over_ten_thousand_changes(void **state) {
    (void)state;
    // 7 per 13 s: a fraction of a unit each nanosecond. Changes to the same limit must not lose it.
    struct weir *w = create_at(7, 13 * WEIR_SECOND, 3);
    struct weir *plain = create_at(7, 13 * WEIR_SECOND, 3);
    struct random random = {5};
    int64_t at = 0;
    for (int i = 0; i < 10000; i++) {
        at += (int64_t)random_below(&random, 1000);
        assert_int_equal(set_limit_at(w, 7, 13 * WEIR_SECOND, 3, at), WEIR_GRANTED);
        assert_true(now_at(w, at).v == now_at(plain, at).v);
        assert_true(now_at(w, at).frac == now_at(plain, at).frac);
    }
    weir_destroy(w);
    weir_destroy(plain);
}

static void the_effective_burst_ramps_at_the_rate(void **state) {
    (void)state;
    struct weir *w = create_at(10, WEIR_SECOND, 5);
    const int64_t unit = (int64_t)w->scale.unit_tokens;
    const int64_t second = (int64_t)WEIR_SECOND;
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 100, second), WEIR_GRANTED);
    assert_int_equal(now_at(w, second).ramp, 5 * unit);
    assert_int_equal(now_at(w, 2 * second).ramp, 15 * unit);
    assert_int_equal(now_at(w, 20 * second).ramp, 100 * unit);
    assert_int_equal(now_at(w, 2 * second).burst, 100 * unit);
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 3, 2 * second), WEIR_GRANTED);
    assert_int_equal(now_at(w, 2 * second).ramp, 3 * unit);
    assert_int_equal(now_at(w, second).ramp, 3 * unit); // earlier: the smaller of the two
    weir_destroy(w);
}

static void the_clock_of_its_own_starts_a_version_at_once(void **state) {
    (void)state;
    struct weir_options options = options_at(1000, WEIR_SECOND, 10);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *w = create(&options);
    for (uint64_t i = 0; i < 100; i++) {
        const struct weir_limit limit = {1 + i, WEIR_SECOND, 10};
        assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
        struct wr_version *e = &w->versions->ring[current_of(w) % WR_VERSIONS];
        const uint64_t t0 = atomic_load_explicit(&e->t0, memory_order_relaxed);
        assert_true(t0 >> 61 != 2); // not UNSET
        assert_true(atomic_load_explicit(&e->ready, memory_order_relaxed) == current_of(w));
        assert_int_equal(current_of(w) >> 8, i + 2);
    }
    weir_destroy(w);
}

// As if set_limit had been killed right after it published: the next reader sets the start.
static void a_start_left_unset_is_set_by_the_next_reader(void **state) {
    (void)state;
    struct weir_options options = options_at(1000000000, WEIR_SECOND, 10);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *w = create(&options);
    const struct weir_limit limit = {1, WEIR_DAY, 10};
    const uint64_t before = now_at(w, 0).v;
    assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
    struct wr_version *e = &w->versions->ring[current_of(w) % WR_VERSIONS];
    const uint64_t t0 = atomic_load_explicit(&e->t0, memory_order_relaxed);
    atomic_store_explicit(&e->ready, 0, memory_order_relaxed);
    atomic_store_explicit(&e->t0, WR_UNSET | current_of(w) >> 8, memory_order_relaxed);
    const struct wr_now now = now_at(w, 0);
    const uint64_t set = atomic_load_explicit(&e->t0, memory_order_relaxed);
    assert_true(set >> 61 != 2 && set >= t0);
    assert_true(now.v >= before);
    assert_true(now_at(w, 0).v - now.v < 1000); // the new rate: a unit is 40 us
    weir_destroy(w);
}

static void an_entry_in_force_is_never_claimed_and_none_free_is_busy(void **state) {
    (void)state;
    struct weir *w = create_at(10, WEIR_SECOND, 5);
    const uint64_t in_force = current_of(w) % WR_VERSIONS;
    const uint64_t others = ((UINT64_C(1) << WR_VERSIONS) - 1) & ~(UINT64_C(1) << in_force);
    atomic_store_explicit(&w->versions->claims, others, memory_order_relaxed);
    struct weir_error error = {{0}};
    const struct weir_limit limit = {5, WEIR_SECOND, 5};
    assert_int_equal(weir_set_limit_at(w, &limit, 1, &error), WEIR_EBUSY);
    assert_true(error.text[0] != '\0');
    struct weir_limit still;
    weir_get_limit(w, &still);
    assert_int_equal(still.tokens, 10);
    // One killed writer costs one entry.
    atomic_store_explicit(&w->versions->claims, others & ~UINT64_C(8), memory_order_relaxed);
    assert_int_equal(weir_set_limit_at(w, &limit, 1, NULL), WEIR_GRANTED);
    assert_int_equal(current_of(w) % WR_VERSIONS, 3);
    atomic_store_explicit(&w->versions->claims, UINT64_C(1) << 7, memory_order_relaxed);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_set_limit_at(w, &limit, 1, NULL), WEIR_GRANTED);
        assert_true(current_of(w) % WR_VERSIONS != 7);
        assert_true(atomic_load_explicit(&w->versions->claims, memory_order_relaxed) ==
                    UINT64_C(1) << 7);
    }
    weir_destroy(w);
}

static void a_version_number_is_never_used_twice(void **state) {
    (void)state;
    struct weir *w = create_at(10, WEIR_SECOND, 5);
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t version = current_of(w) >> 8;
        assert_int_equal(set_limit_at(w, 1 + i % 10, WEIR_SECOND, 5, (int64_t)i), WEIR_GRANTED);
        assert_int_equal(current_of(w) >> 8, version + 1);
    }
    weir_destroy(w);
}

static void the_limit_in_force_is_read_back_in_words(void **state) {
    (void)state;
    struct weir *w = create_at(10, WEIR_SECOND, 5);
    struct weir_limit limit;
    weir_get_limit(w, &limit);
    assert_int_equal(limit.tokens, 10);
    assert_int_equal(limit.period_ns, WEIR_SECOND);
    assert_int_equal(limit.burst, 5);
    const struct weir_limit unlimited = weir_unlimited();
    assert_int_equal(weir_set_limit_at(w, &unlimited, 0, NULL), WEIR_GRANTED);
    weir_get_limit(w, &limit);
    assert_true(limit.tokens == WEIR_UNLIMITED_TOKENS && limit.burst == UINT64_MAX);
    assert_int_equal(limit.period_ns, 1);
    weir_destroy(w);
}

// A wait that begins before the start of the newest version passes through the old rate first.
static void a_wait_from_before_a_change_counts_the_old_rate(void **state) {
    (void)state;
    const int64_t second = (int64_t)WEIR_SECOND;
    struct weir *w = create_at(1000, WEIR_SECOND, 10);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 10, 0), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 1000, WEIR_SECOND, 10, 100 * second), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 10, 10 * second), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, 10 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    const int64_t again = 10 * second + (int64_t)o.answer.retry_after_ns;
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 1, again - 1).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 1, again).result, WEIR_GRANTED);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND);
    weir_destroy(w);
}

static void a_wait_from_before_the_first_reading_ends_after_it(void **state) {
    (void)state;
    const int64_t second = (int64_t)WEIR_SECOND;
    struct weir *w = create_at(1, WEIR_SECOND, 3);
    assert_int_equal(take_at(w, "a", 3, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, -50 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    const int64_t again = -50 * second + (int64_t)o.answer.retry_after_ns;
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 1, again - 1).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 1, again).result, WEIR_GRANTED);
    weir_destroy(w);
}

// The larger burst is there from the change on, and fills at the rate: until then there is no level
// above the old burst, however many tokens come.
static void a_wait_from_before_a_raise_of_the_burst_counts_the_old_burst(void **state) {
    (void)state;
    const int64_t second = (int64_t)WEIR_SECOND;
    struct weir *w = create_at(10, WEIR_SECOND, 1);
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 5, 100 * second), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 3, 10 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    const int64_t again = 10 * second + (int64_t)o.answer.retry_after_ns;
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 3, again - 1).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 3, again).result, WEIR_GRANTED);
    assert_int_equal(o.answer.retry_after_ns, 90 * WEIR_SECOND + WEIR_SECOND / 5);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v_goes_on_where_it_was_at_a_change),
        cmocka_unit_test(the_new_rate_runs_from_the_change_and_the_old_one_up_to_it),
        cmocka_unit_test(a_change_at_an_older_reading_starts_where_the_last_one_did),
        cmocka_unit_test(nothing_is_lost_over_ten_thousand_changes),
        cmocka_unit_test(the_effective_burst_ramps_at_the_rate),
        cmocka_unit_test(the_clock_of_its_own_starts_a_version_at_once),
        cmocka_unit_test(a_start_left_unset_is_set_by_the_next_reader),
        cmocka_unit_test(an_entry_in_force_is_never_claimed_and_none_free_is_busy),
        cmocka_unit_test(a_version_number_is_never_used_twice),
        cmocka_unit_test(the_limit_in_force_is_read_back_in_words),
        cmocka_unit_test(a_wait_from_before_a_change_counts_the_old_rate),
        cmocka_unit_test(a_wait_from_before_the_first_reading_ends_after_it),
        cmocka_unit_test(a_wait_from_before_a_raise_of_the_burst_counts_the_old_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
