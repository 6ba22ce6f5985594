// Limits that let nothing pass, or everything, and what a change of limit does to buckets.
#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

static void at_rate_0_the_burst_is_all_there_is(void **state) {
    (void)state;
    struct weir_options options = options_at(0, WEIR_SECOND, 2);
    options.max_rate_tokens = 1;
    options.max_rate_period_ns = WEIR_SECOND;
    struct weir *w = create(&options);
    assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, 1000 * (int64_t)WEIR_DAY);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_true(o.answer.retry_after_ns == WEIR_FOREVER);
    assert_true(o.answer.full_after_ns == WEIR_FOREVER);
    weir_destroy(w);
}

static void burst_0_denies_everything_and_starts_empty_afterwards(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 0, 0), WEIR_GRANTED);
    static const uint64_t costs[] = {0, 1, 5, UINT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        const struct outcome o = ask_at(w, WEIR_TAKE, "a", costs[i], second);
        assert_int_equal(o.result, WEIR_DENIED);
        assert_true(o.answer.retry_after_ns == WEIR_FOREVER);
    }
    assert_int_equal(ask_at(w, WEIR_TAKE_SOME, "a", 1, second).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 1, second).result, WEIR_DENIED);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 10, 2 * second), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", 2 * second), 0);
    assert_int_equal(take_at(w, "a", 1, 3 * second - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, 3 * second), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "new", 8 * second), 6);
    assert_int_equal(remaining_at(w, "new", 100 * second), 10);
    weir_destroy(w);
}

static void a_larger_burst_fills_at_the_rate(void **state) {
    (void)state;
    struct weir *w = create_at(2, WEIR_SECOND, 4);
    assert_int_equal(take_at(w, "a", 3, 0), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 2, WEIR_SECOND, 100, 0), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "idle", 0), 4);
    assert_int_equal(remaining_at(w, "a", 0), 1);
    const struct outcome o = ask_at(w, WEIR_TAKE, "idle", 10, 0);
    assert_int_equal(o.result, WEIR_DENIED); // not never
    assert_int_equal(o.answer.retry_after_ns, 3 * WEIR_SECOND);
    assert_int_equal(o.answer.full_after_ns, 48 * WEIR_SECOND);
    assert_int_equal(take_at(w, "idle", 10, 3 * second - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "idle", 10, 3 * second), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_smaller_burst_binds_at_once(void **state) {
    (void)state;
    struct weir *w = create_at(2, WEIR_SECOND, 100);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 2, WEIR_SECOND, 10, 0), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", 0), 10);
    assert_int_equal(remaining_at(w, "idle", 0), 10);
    assert_int_equal(take_at(w, "a", 11, 0), WEIR_NEVER);
    // Lowered and raised again: nothing is minted.
    assert_int_equal(set_limit_at(w, 2, WEIR_SECOND, 100, 0), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", 0), 10);
    assert_int_equal(remaining_at(w, "idle", 0), 10);
    weir_destroy(w);
}

static void a_change_of_rate_keeps_levels(void **state) {
    (void)state;
    struct weir *w = create_at(100, WEIR_SECOND, 50);
    assert_int_equal(take_at(w, "a", 50, 0), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 50, second / 10), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", second / 10), 10);
    assert_int_equal(remaining_at(w, "a", second + second / 10), 11);
    assert_int_equal(set_limit_at(w, 100, WEIR_SECOND, 50, second + second / 10), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", second + second / 5), 21);
    weir_destroy(w);
}

static void unlimited_grants_everything_and_debits_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 15, 0).result, WEIR_GRANTED);
    const struct weir_limit none = weir_unlimited();
    assert_int_equal(weir_set_limit_at(w, &none, 0, NULL), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", UINT64_MAX, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_true(o.answer.untracked);
    assert_true(o.answer.granted_tokens == UINT64_MAX);
    assert_int_equal(o.answer.retry_after_ns, 0);
    assert_int_equal(take_at(w, "b", 1000000, 100 * second), WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_str("b"), NULL), 0);
    // Debts stay as they are meanwhile.
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 10, 100 * second), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 100 * second).answer.debt, 5);
    assert_int_equal(remaining_at(w, "b", 100 * second), 10);
    weir_destroy(w);
}

// "Fills the key's bucket: forgets what it spent and owes."
static void reset_forgets_a_debt_while_there_is_no_limit(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 15, 0).result, WEIR_GRANTED);
    const struct weir_limit none = weir_unlimited();
    assert_int_equal(weir_set_limit_at(w, &none, 0, NULL), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESET, "a", 1, 0).result, WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND, 10, 0), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 0).answer.debt, 0);
    weir_destroy(w);
}

static void an_unlimited_first_limit_becomes_a_limit(void **state) {
    (void)state;
    struct weir_options options = options_at(1, 1, 1);
    options.limit = weir_unlimited();
    options.max_rate_tokens = 10;
    options.max_rate_period_ns = WEIR_SECOND;
    struct weir *w = create(&options);
    assert_int_equal(take_at(w, "a", 12345, 0), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 10, WEIR_SECOND, 5, second), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", second), 5);
    weir_destroy(w);
}

static void a_dry_run_counts_what_it_would_deny_and_grants_it(void **state) {
    (void)state;
    struct weir_options options = options_at(5, WEIR_SECOND, 2);
    options.dry_run = true;
    struct weir *w = create(&options);
    assert_false(ask_at(w, WEIR_TAKE, "a", 2, 0).answer.would_deny);
    struct outcome o = ask_at(w, WEIR_TAKE, "a", 1, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_true(o.answer.would_deny);
    assert_int_equal(o.answer.granted_tokens, 1);
    assert_int_equal(o.answer.remaining, 0);
    o = ask_at(w, WEIR_TAKE, "a", 3, 0); // never, in earnest
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_true(o.answer.would_deny);
    // Its accounting is the real one: the denial debited nothing.
    assert_false(ask_at(w, WEIR_TAKE, "a", 1, second / 5).answer.would_deny);
    const struct weir_stats stats = stats_of(w);
    assert_int_equal(stats.granted, 2);
    assert_int_equal(stats.would_deny, 2);
    assert_int_equal(stats.denied + stats.never, 0);
    assert_int_equal(stats.tokens, 3);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_rate_0_the_burst_is_all_there_is),
        cmocka_unit_test(burst_0_denies_everything_and_starts_empty_afterwards),
        cmocka_unit_test(a_larger_burst_fills_at_the_rate),
        cmocka_unit_test(a_smaller_burst_binds_at_once),
        cmocka_unit_test(a_change_of_rate_keeps_levels),
        cmocka_unit_test(unlimited_grants_everything_and_debits_nothing),
        cmocka_unit_test(reset_forgets_a_debt_while_there_is_no_limit),
        cmocka_unit_test(an_unlimited_first_limit_becomes_a_limit),
        cmocka_unit_test(a_dry_run_counts_what_it_would_deny_and_grants_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
