// Reservations and resets: what weir.h says of them.
#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

static void reserve_takes_from_the_future_in_the_order_of_asking(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 2);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).answer.retry_after_ns, 0);
    for (uint64_t i = 1; i <= 10; i++) {
        const struct outcome o = ask_at(w, WEIR_RESERVE, "a", 1, 0);
        assert_int_equal(o.result, WEIR_GRANTED);
        assert_int_equal(o.answer.granted_tokens, 1);
        assert_int_equal(o.answer.retry_after_ns, i * WEIR_SECOND / 5);
    }
    assert_int_equal(take_at(w, "a", 1, 2 * second), WEIR_DENIED); // they are spent
    assert_int_equal(take_at(w, "a", 1, 2 * second + second / 5), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 3, 0).result, WEIR_NEVER);
    weir_destroy(w);
}

static struct outcome reserve_within(struct weir *w, uint64_t cost, uint64_t max_wait_ns,
                                     int64_t now_ns) {
    struct outcome o = {0, WEIR_ANSWER_INIT};
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str("a");
    ask.kind = WEIR_RESERVE;
    ask.cost = cost;
    ask.max_wait_ns = max_wait_ns;
    ask.now_ns = now_ns;
    o.result = weir_do(w, &ask, &o.answer);
    return o;
}

static void a_reservation_due_later_than_max_wait_is_refused_and_takes_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 2);
    assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
    struct outcome o = reserve_within(w, 1, WEIR_SECOND / 5 - 1, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 1, 0).answer.retry_after_ns, WEIR_SECOND / 5);
    o = reserve_within(w, 1, WEIR_SECOND / 5, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND / 5);
    weir_destroy(w);
}

// "The shortest wait after which the same ask would pass", for a reservation with a longest wait.
static void a_refused_reservation_passes_after_exactly_retry_after_ns(void **state) {
    (void)state;
    struct random random = {3};
    for (int i = 0; i < 500; i++) {
        struct weir_options options = options_at(1 + random_below(&random, 1000), WEIR_SECOND, 3);
        options.max_rate_tokens = 1000000007;
        options.max_rate_period_ns = WEIR_SECOND;
        options.max_ahead_tokens = 1000;
        struct weir *w = create(&options);
        assert_int_equal(take_at(w, "a", 3, 0), WEIR_GRANTED);
        const int64_t now = (int64_t)random_below(&random, 1000000);
        const uint64_t most = 1 + random_below(&random, 1000000);
        struct outcome o = reserve_within(w, 2, most, now);
        if (o.result == WEIR_DENIED) {
            const int64_t again = now + (int64_t)o.answer.retry_after_ns;
            assert_int_equal(reserve_within(w, 2, most, again - 1).result, WEIR_DENIED);
            assert_int_equal(reserve_within(w, 2, most, again).result, WEIR_GRANTED);
        }
        weir_destroy(w);
    }
}

static void reservations_go_no_further_than_max_ahead(void **state) {
    (void)state;
    struct weir_options options = options_at(5, WEIR_SECOND, 2);
    options.max_ahead_tokens = 3;
    struct weir *w = create(&options);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).result, WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_RESERVE, "a", 2, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND / 5); // then 3 are ahead
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, second / 5 - 1).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, second / 5).result, WEIR_GRANTED);
    weir_destroy(w);
}

static void reset_fills_the_bucket(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 35, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESET, "a", 1, 0).result, WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", 0), 20);
    assert_int_equal(ask_at(w, WEIR_RESET, "never seen", 1, 0).result, WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_str("never seen"), NULL), 0);
    weir_destroy(w);
}

// weir_reset brings no reading, so a caller's clock may stand anywhere.
static void reset_needs_no_reading(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const int64_t late = 5 * (int64_t)WEIR_HOUR;
    assert_int_equal(take_at(w, "a", 20, late), WEIR_GRANTED);
    assert_int_equal(weir_reset(w, weir_str("a")), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", late), 20);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 40, late + second).result, WEIR_GRANTED);
    assert_int_equal(weir_reset(w, weir_str("a")), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 20, late + second), WEIR_GRANTED);
    assert_int_equal(stats_of(w).relics, 0);
    weir_destroy(w);
}

static void reset_of_an_absent_key_leaves_dropped_at_alone(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 1);
    const struct wr_place place = place_of(w, weir_str("a"));
    const uint64_t dropped = 5 * 3 * 3600 * w->scale.unit_tokens; // V at three hours
    atomic_store_explicit(&place.shard->dropped_at, dropped, memory_order_relaxed);
    assert_int_equal(take_at(w, "b", 1, 3 * (int64_t)WEIR_HOUR), WEIR_GRANTED);
    assert_int_equal(weir_reset(w, weir_str("a")), WEIR_GRANTED);
    assert_true(atomic_load_explicit(&place.shard->dropped_at, memory_order_relaxed) == dropped);
    weir_destroy(w);
}

static void reset_asks_for_no_cost_that_could_fail_to_fit(void **state) {
    (void)state;
    struct weir *w = create_at(3000000000, WEIR_SECOND, 20); // a unit a token
    const struct weir_weight weight = {2, 1};
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 40, weight, 0).result, WEIR_GRANTED);
    assert_int_equal(weighted_at(w, WEIR_RESET, "a", 1, weight, 0).result, WEIR_GRANTED);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 40, weight, 0).result, WEIR_GRANTED);
    weir_destroy(w);
}

// "Granted, and due after retry_after_ns": what never comes is not due.
static void at_rate_0_nothing_is_reserved(void **state) {
    (void)state;
    struct weir_options options = options_at(0, WEIR_SECOND, 2);
    options.max_rate_tokens = 1;
    options.max_rate_period_ns = WEIR_SECOND;
    struct weir *w = create(&options);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 1, 0).result, WEIR_DENIED);
    weir_destroy(w);
}

// Before rate 0 starts there are still the old rate's tokens; after it nothing is due any more.
static void a_reservation_from_before_rate_0_is_for_what_comes_until_then(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_SECOND, 2);
    options.max_ahead_tokens = 1;
    struct weir *w = create(&options);
    assert_int_equal(take_at(w, "a", 2, 10 * second), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 0, WEIR_SECOND, 2, 11 * second), WEIR_GRANTED);
    struct outcome o = ask_at(w, WEIR_RESERVE, "a", 1, 10 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND);
    o = ask_at(w, WEIR_RESERVE, "a", 2, 10 * second);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_true(o.answer.retry_after_ns == WEIR_FOREVER);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 1, 11 * second).result, WEIR_GRANTED);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_takes_from_the_future_in_the_order_of_asking),
        cmocka_unit_test(a_reservation_due_later_than_max_wait_is_refused_and_takes_nothing),
        cmocka_unit_test(a_refused_reservation_passes_after_exactly_retry_after_ns),
        cmocka_unit_test(reservations_go_no_further_than_max_ahead),
        cmocka_unit_test(reset_fills_the_bucket),
        cmocka_unit_test(reset_needs_no_reading),
        cmocka_unit_test(reset_of_an_absent_key_leaves_dropped_at_alone),
        cmocka_unit_test(reset_asks_for_no_cost_that_could_fail_to_fit),
        cmocka_unit_test(at_rate_0_nothing_is_reserved),
        cmocka_unit_test(a_reservation_from_before_rate_0_is_for_what_comes_until_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
