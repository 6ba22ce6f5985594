// A dry run: it counts what would be denied, and grants it; its accounting is the real one.
#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

static struct weir *create_dry_run(uint64_t tokens, uint64_t burst) {
    struct weir_options options = options_at(tokens, WEIR_SECOND, burst);
    options.dry_run = true;
    struct weir *w = create(&options);
    (void)ask_at(w, WEIR_PEEK, "epoch", 0, 0);
    return w;
}

static void a_would_be_denial_is_granted_and_debits_nothing(void **state) {
    (void)state;
    struct weir *w = create_dry_run(5, 3);
    struct outcome o = ask_at(w, WEIR_TAKE, "a", 3, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_false(o.answer.would_deny);
    for (int i = 0; i < 5; i++) {
        o = ask_at(w, WEIR_TAKE, "a", 2, 0);
        assert_int_equal(o.result, WEIR_GRANTED);
        assert_true(o.answer.would_deny);
        assert_int_equal(o.answer.granted_tokens, 2);
        assert_int_equal(o.answer.remaining, 0);
    }
    o = ask_at(w, WEIR_TAKE, "a", 2, 2 * second / 5); // two have come: none was owed
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_false(o.answer.would_deny);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.would_deny, 5);
    assert_int_equal(s.granted, 2);
    assert_int_equal(s.tokens, 5);
    assert_int_equal(s.denied + s.never + s.no_room, 0);
    weir_destroy(w);
}

static void never_and_no_room_are_would_be_denials_too(void **state) {
    (void)state;
    struct weir_options options = options_at(5, WEIR_SECOND, 3);
    options.dry_run = true;
    options.full_policy = WEIR_FULL_DENY;
    options.capacity_keys = 1;
    struct weir *w = create(&options);
    assert_true(ask_at(w, WEIR_TAKE, "a", 4, 0).answer.would_deny);
    assert_int_equal(stats_of(w).would_deny, 1);
    uint64_t id = 0;
    for (struct weir_answer answer = WEIR_ANSWER_INIT; !answer.would_deny; id++)
        assert_int_equal(weir_take_at(w, weir_id(id), 1, 0, &answer), WEIR_GRANTED);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.would_deny, 2);
    assert_int_equal(s.granted, id - 1);
    assert_int_equal(s.denied + s.never + s.no_room, 0);
    weir_destroy(w);
}

static void burst_0_in_a_dry_run_denies_nobody(void **state) {
    (void)state;
    struct weir *w = create_dry_run(5, 3);
    assert_int_equal(set_limit_at(w, 5, WEIR_SECOND, 0, 0), WEIR_GRANTED);
    for (int i = 0; i < 3; i++) assert_true(ask_at(w, WEIR_TAKE, "a", 1, 0).answer.would_deny);
    assert_int_equal(weir_take_at(w, weir_str("a"), 1, 0, NULL), WEIR_GRANTED);
    assert_int_equal(stats_of(w).would_deny, 4);
    weir_destroy(w);
}

// The same asks at the same readings: what the live limiter refuses, the dry run would deny.
static void beside_a_live_limiter_it_would_deny_what_that_denies(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "b", "c", "d", "e"};
    static const enum weir_kind kinds[] = {WEIR_TAKE, WEIR_TAKE, WEIR_TAKE_SOME, WEIR_PEEK,
                                           WEIR_CHARGE, WEIR_REFUND};
    struct weir *live = create_at(10, WEIR_SECOND, 20), *dry = create_dry_run(10, 20);
    struct random random = {11};
    uint64_t refused = 0;
    int64_t now = 0;
    for (int i = 0; i < 50000; i++) {
        now += (int64_t)random_below(&random, WEIR_SECOND / 20);
        const char *key = keys[random_below(&random, 5)];
        const enum weir_kind kind = kinds[random_below(&random, 6)];
        const uint64_t cost = random_below(&random, i % 50 == 0 ? 25 : 6);
        const struct outcome l = ask_at(live, kind, key, cost, now);
        const struct outcome d = ask_at(dry, kind, key, cost, now);
        assert_int_equal(d.result, WEIR_GRANTED);
        assert_int_equal(d.answer.would_deny, l.result != WEIR_GRANTED);
        assert_false(l.answer.would_deny);
        assert_int_equal(d.answer.remaining, l.answer.remaining);
        assert_int_equal(d.answer.debt, l.answer.debt);
        assert_int_equal(d.answer.retry_after_ns, l.answer.retry_after_ns);
        assert_int_equal(d.answer.full_after_ns, l.answer.full_after_ns);
        if (!d.answer.would_deny)
            assert_int_equal(d.answer.granted_tokens, l.answer.granted_tokens);
        refused += kind != WEIR_PEEK && l.result != WEIR_GRANTED;
    }
    const struct weir_stats l = stats_of(live), d = stats_of(dry);
    assert_int_equal(d.would_deny, refused);
    assert_int_equal(d.would_deny, l.denied + l.never);
    assert_int_equal(d.granted, l.granted);
    assert_int_equal(d.tokens, l.tokens);
    assert_int_equal(d.refunded_tokens, l.refunded_tokens);
    assert_int_equal(d.denied + d.never, 0);
    assert_true(l.denied > 1000 && l.never > 10 && l.granted > 1000);
    weir_destroy(live);
    weir_destroy(dry);
}

static void the_short_calls_and_a_clock_of_its_own_do_the_same(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_DAY, 3);
    options.dry_run = true;
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    struct weir_answer answer = WEIR_ANSWER_INIT;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_take(w, weir_str("a"), 1, i % 2 == 0 ? &answer : NULL), WEIR_GRANTED);
        if (i % 2 == 0) assert_int_equal(answer.would_deny, i >= 3);
    }
    assert_int_equal(stats_of(w).would_deny, 2);
    assert_int_equal(stats_of(w).tokens, 3);
    weir_destroy(w);
}

static void a_reservation_is_due_at_once_and_takes_nothing_from_the_future(void **state) {
    (void)state;
    struct weir *w = create_dry_run(5, 3);
    assert_false(ask_at(w, WEIR_RESERVE, "a", 3, 0).answer.would_deny);
    for (int i = 0; i < 5; i++) {
        const struct outcome o = ask_at(w, WEIR_RESERVE, "a", 1, 0);
        assert_int_equal(o.result, WEIR_GRANTED);
        assert_true(o.answer.would_deny);
        assert_int_equal(o.answer.retry_after_ns, 0);
        assert_int_equal(o.answer.debt, 0);
    }
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 0).answer.debt, 0);
    assert_int_equal(stats_of(w).would_deny, 5);
    weir_destroy(w);
}

static void charges_and_refunds_are_those_of_a_live_limiter(void **state) {
    (void)state;
    struct weir *w = create_dry_run(5, 3);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 5, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 0).answer.debt, 2);
    assert_true(ask_at(w, WEIR_TAKE, "a", 0, 0).answer.would_deny); // in debt
    assert_int_equal(ask_at(w, WEIR_REFUND, "a", 3, 0).answer.granted_tokens, 3);
    assert_int_equal(remaining_at(w, "a", 0), 1);
    weir_destroy(w);
}

// The rest: a wait in test_wait.c, a lease in test_lease.c.
static void beside_live_limiters_in_one_take_all_it_decides_nothing(void **state) {
    (void)state;
    struct weir *dry = create_dry_run(5, 2), *live = create_at(5, WEIR_SECOND, 4);
    for (size_t first = 0; first < 2; first++) {
        const char *key = first == 0 ? "a" : "b";
        struct weir_part parts[2] = {{live, WEIR_ASK_INIT}, {live, WEIR_ASK_INIT}};
        parts[first].limiter = dry;
        parts[0].ask.key = parts[1].ask.key = weir_str(key);
        for (int i = 0; i < 6; i++) {
            struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
            size_t refused;
            const int result = weir_take_all(parts, 2, &refused, answers);
            assert_int_equal(result, i < 4 ? WEIR_GRANTED : WEIR_DENIED);
            assert_int_equal(refused, i < 4 ? 2 : 1 - first);
            if (i < 4) assert_int_equal(answers[first].would_deny, i >= 2);
        }
        assert_int_equal(remaining_at(dry, key, 0), 0);
        assert_int_equal(remaining_at(live, key, 0), 0);
    }
    assert_int_equal(stats_of(dry).would_deny, 4);
    weir_destroy(dry);
    weir_destroy(live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_would_be_denial_is_granted_and_debits_nothing),
        cmocka_unit_test(never_and_no_room_are_would_be_denials_too),
        cmocka_unit_test(burst_0_in_a_dry_run_denies_nobody),
        cmocka_unit_test(beside_a_live_limiter_it_would_deny_what_that_denies),
        cmocka_unit_test(the_short_calls_and_a_clock_of_its_own_do_the_same),
        cmocka_unit_test(a_reservation_is_due_at_once_and_takes_nothing_from_the_future),
        cmocka_unit_test(charges_and_refunds_are_those_of_a_live_limiter),
        cmocka_unit_test(beside_live_limiters_in_one_take_all_it_decides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
