// Taking, peeking, charging, refunding, weights and keys: weir.h sentence by sentence.
#include <string.h>

#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

static void grants_the_burst_and_then_the_rate(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    for (int i = 0; i < 20; i++) assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, second / 5 - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, second / 5), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 5, second + second / 5 - 1), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 5, second + second / 5), WEIR_GRANTED);
    weir_destroy(w);
}

static void keys_have_buckets_of_their_own(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 1);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "b", 1, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "", 1, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_DENIED);
    assert_int_equal(take_at(w, "", 1, 0), WEIR_DENIED);
    weir_destroy(w);
}

static void the_answer_to_a_grant_says_what_is_left(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 3, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.size, sizeof o.answer);
    assert_int_equal(o.answer.granted_tokens, 3);
    assert_int_equal(o.answer.remaining, 17);
    assert_int_equal(o.answer.debt, 0);
    assert_int_equal(o.answer.retry_after_ns, 0);
    assert_int_equal(o.answer.full_after_ns, 600 * WEIR_MILLISECOND);
    assert_false(o.answer.untracked);
    assert_false(o.answer.would_deny);
    weir_destroy(w);
}

static void the_answer_to_a_denial_says_when_to_ask_again(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 18, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 7, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(o.answer.remaining, 2);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND);
    assert_int_equal(o.answer.full_after_ns, 18 * WEIR_SECOND / 5);
    weir_destroy(w);
}

static void never_when_the_cost_is_above_the_burst(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 20, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 21, 0);
    assert_int_equal(o.result, WEIR_NEVER);
    assert_true(o.answer.retry_after_ns == WEIR_FOREVER);
    assert_int_equal(ask_at(w, WEIR_TAKE, "a", UINT64_MAX, 0).result, WEIR_NEVER);
    assert_int_equal(ask_at(w, WEIR_TAKE, "b", 21, 0).result, WEIR_NEVER);
    assert_int_equal(remaining_at(w, "b", 0), 20);
    weir_destroy(w);
}

static void a_cost_of_0_is_only_a_question(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 2);
    assert_int_equal(take_at(w, "a", 0, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 0, 0), WEIR_GRANTED); // empty, not in debt
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 1, 0).result, WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "a", 0, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND / 5);
    assert_int_equal(set_limit_at(w, 5, WEIR_SECOND, 0, second), WEIR_GRANTED);
    assert_int_equal(take_at(w, "b", 0, second), WEIR_DENIED); // burst 0
    weir_destroy(w);
}

static void assert_same_answer(const struct weir_answer *a, const struct weir_answer *b) {
    assert_int_equal(a->granted_tokens, b->granted_tokens);
    assert_int_equal(a->remaining, b->remaining);
    assert_int_equal(a->debt, b->debt);
    assert_true(a->retry_after_ns == b->retry_after_ns);
    assert_int_equal(a->full_after_ns, b->full_after_ns);
    assert_int_equal(a->untracked, b->untracked);
    assert_int_equal(a->would_deny, b->would_deny);
}

static void peek_answers_as_take_would_and_changes_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    for (uint64_t cost = 0; cost <= 21; cost++) {
        const struct weir_stats before = stats_of(w);
        const struct outcome peek = ask_at(w, WEIR_PEEK, "a", cost, 0);
        const struct weir_stats after = stats_of(w);
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(live_ways(w, weir_str("a"), NULL), cost == 0 ? 0 : cost > 1);
        const struct outcome take = ask_at(w, WEIR_TAKE, "a", cost, 0);
        assert_int_equal(peek.result, take.result);
        assert_same_answer(&peek.answer, &take.answer);
        assert_int_equal(ask_at(w, WEIR_REFUND, "a", 20, 0).result, WEIR_GRANTED);
    }
    weir_destroy(w);
}

static void charge_debits_whatever_the_level(void **state) {
    (void)state;
    struct weir_options options = options_at(5, WEIR_SECOND, 20);
    options.max_debt_tokens = 7;
    struct weir *w = create(&options);
    struct outcome o = ask_at(w, WEIR_CHARGE, "a", 22, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 22);
    assert_int_equal(o.answer.remaining, 0);
    assert_int_equal(o.answer.debt, 2);
    o = ask_at(w, WEIR_CHARGE, "a", 100, 0);
    assert_int_equal(o.answer.granted_tokens, 5); // clipped at max_debt
    assert_int_equal(o.answer.debt, 7);
    o = ask_at(w, WEIR_CHARGE, "a", UINT64_MAX, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 0);
    o = ask_at(w, WEIR_TAKE, "a", 1, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.retry_after_ns, 8 * WEIR_SECOND / 5);
    const struct weir_stats stats = stats_of(w);
    assert_int_equal(stats.tokens, 27);
    assert_true(stats.clipped_tokens == 95 + UINT64_MAX);
    weir_destroy(w);
}

static void the_debt_allowed_is_the_burst_by_default(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 1000, 0).answer.granted_tokens, 40);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "b", 1000, 0).answer.debt, 20);
    weir_destroy(w);
}

static void a_debt_is_rounded_up_and_what_remains_down(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 22, 0).answer.debt, 2);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 1).answer.debt, 2);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, second / 5).answer.debt, 1);
    assert_int_equal(ask_at(w, WEIR_PEEK, "a", 0, 2 * second / 5).answer.debt, 0);
    assert_int_equal(remaining_at(w, "a", 3 * second / 5 - 1), 0);
    assert_int_equal(remaining_at(w, "a", 3 * second / 5), 1);
    weir_destroy(w);
}

static void refund_gives_back_and_never_beyond_the_burst(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 10, 0), WEIR_GRANTED);
    struct outcome o = ask_at(w, WEIR_REFUND, "a", 4, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 4);
    assert_int_equal(o.answer.remaining, 14);
    o = ask_at(w, WEIR_REFUND, "a", 100, 0);
    assert_int_equal(o.answer.granted_tokens, 6);
    assert_int_equal(o.answer.remaining, 20);
    assert_int_equal(o.answer.full_after_ns, 0);
    o = ask_at(w, WEIR_REFUND, "a", UINT64_MAX, 0);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(stats_of(w).refunded_tokens, 10);
    assert_int_equal(take_at(w, "a", 20, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_DENIED);
    weir_destroy(w);
}

static void a_refund_to_an_absent_key_is_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const struct outcome o = ask_at(w, WEIR_REFUND, "a", 4, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(o.answer.remaining, 20);
    assert_int_equal(live_ways(w, weir_str("a"), NULL), 0);
    assert_int_equal(stats_of(w).inserted, 0);
    weir_destroy(w);
}

static void take_some_takes_the_whole_tokens_there_are(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    struct outcome o = ask_at(w, WEIR_TAKE_SOME, "a", 13, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 13);
    o = ask_at(w, WEIR_TAKE_SOME, "a", 13, second / 10); // 7.5 there
    assert_int_equal(o.answer.granted_tokens, 7);
    assert_int_equal(o.answer.remaining, 0);
    o = ask_at(w, WEIR_TAKE_SOME, "a", 13, second / 10);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND / 10);
    o = ask_at(w, WEIR_TAKE_SOME, "b", UINT64_MAX, 0); // above the burst is no never here
    assert_int_equal(o.answer.granted_tokens, 20);
    weir_destroy(w);
}

// 100,000 a second: 27,720 units a token, of which 13 is no divisor. Whatever it answers to a
// weight of 13, it hands out no more than there is: 26 at first, and 1.3 a microsecond later.
static void take_some_of_a_weight_that_does_not_divide_gives_nothing_away(void **state) {
    (void)state;
    struct weir *w = create_at(100000, WEIR_SECOND, 2);
    const struct weir_weight weight = {13, 1};
    assert_int_equal(weighted_at(w, WEIR_TAKE_SOME, "a", 26, weight, 0).answer.granted_tokens, 26);
    uint64_t got = 0;
    for (uint64_t cost = 26; cost > 0; cost--) {
        const struct outcome o = weighted_at(w, WEIR_TAKE_SOME, "a", cost, weight, 1000);
        if (o.result == WEIR_GRANTED) got += o.answer.granted_tokens;
    }
    assert_in_range(got, 0, 1);
    weir_destroy(w);
}

static void a_weight_of_2_has_twice_the_rate_and_twice_the_burst(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const struct weir_weight two = {2, 1}, half = {1, 2};
    struct outcome o = weighted_at(w, WEIR_TAKE, "a", 40, two, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.granted_tokens, 40);
    o = weighted_at(w, WEIR_TAKE, "a", 10, two, 0);
    assert_int_equal(o.answer.retry_after_ns, WEIR_SECOND);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 41, two, 0).result, WEIR_NEVER);
    o = weighted_at(w, WEIR_TAKE, "b", 10, half, 0);
    assert_int_equal(o.result, WEIR_GRANTED);
    assert_int_equal(o.answer.remaining, 0);
    o = weighted_at(w, WEIR_TAKE, "b", 5, half, 0);
    assert_int_equal(o.answer.retry_after_ns, 2 * WEIR_SECOND);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "b", 11, half, 0).result, WEIR_NEVER);
    weir_destroy(w);
}

static void weights_1_to_16_and_their_doubles_are_exact_up_to_2775_a_second(void **state) {
    (void)state;
    struct weir *w = create_at(2775, WEIR_SECOND, 3);
    for (uint32_t num = 1; num <= 32; num += num < 16 ? 1 : 2) {
        const struct weir_weight weight = {num, 1};
        uint64_t granted = 0;
        while (weighted_at(w, WEIR_TAKE, "a", 1, weight, 0).result == WEIR_GRANTED) granted++;
        assert_int_equal(granted, 3 * num);
        assert_int_equal(ask_at(w, WEIR_RESET, "a", 1, 0).result, WEIR_GRANTED);
    }
    weir_destroy(w);
}

static void half_a_weight_or_one_that_does_not_divide_is_refused(void **state) {
    (void)state;
    struct weir *w = create_at(3000000000, WEIR_SECOND, 20);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 1, (struct weir_weight){2, 0}, 0).result,
                     WEIR_EINVAL);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 1, (struct weir_weight){0, 2}, 0).result,
                     WEIR_EINVAL);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 1, (struct weir_weight){2, 1}, 0).result,
                     WEIR_EWEIGHT);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "a", 2, (struct weir_weight){2, 1}, 0).result,
                     WEIR_GRANTED);
    assert_int_equal(weighted_at(w, WEIR_TAKE, "b", 1, (struct weir_weight){3, 3}, 0).result,
                     WEIR_GRANTED);
    weir_destroy(w);
}

static void an_unknown_kind_is_refused(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(w, (enum weir_kind)(WEIR_RESET + 1), "a", 1, 0).result, WEIR_EINVAL);
    assert_int_equal(ask_at(w, (enum weir_kind)-1, "a", 1, 0).result, WEIR_EINVAL);
    weir_destroy(w);
}

static void an_integer_key_is_the_same_as_its_eight_bytes_lowest_first(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 2);
    const unsigned char bytes[8] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
    const struct weir_key id = weir_id(UINT64_C(0x0123456789abcdef));
    assert_int_equal(weir_take_at(w, id, 2, 0, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_at(w, weir_bytes(bytes, 8), 1, 0, NULL), WEIR_DENIED);
    assert_int_equal(weir_take_at(w, weir_id(0), 1, 0, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void keys_of_any_bytes_and_lengths_are_told_apart(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_DAY, 1);
    static char text[100000];
    memset(text, 'x', sizeof text);
    static const size_t lengths[] = {0,  1,  2,  3,  7,   8,   9,    15,
                                     16, 17, 31, 64, 240, 241, 1000, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct weir_key key = weir_bytes(text, lengths[i]);
        assert_int_equal(weir_take_at(w, key, 1, 0, NULL), WEIR_GRANTED);
        assert_int_equal(weir_take_at(w, key, 1, 0, NULL), WEIR_DENIED);
    }
    assert_int_equal(weir_take_at(w, weir_bytes(NULL, 0), 1, 0, NULL), WEIR_DENIED); // as ""
    assert_int_equal(weir_take_at(w, weir_bytes("a\0b", 3), 1, 0, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_at(w, weir_bytes("a\0c", 3), 1, 0, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_prepared_key_is_the_key_it_was_prepared_from(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_DAY, 1);
    static const char *texts[] = {"", "short", "a key that is longer than sixteen bytes"};
    for (size_t i = 0; i < 3; i++) {
        struct weir_prepared prepared;
        weir_prepare(w, weir_str(texts[i]), &prepared);
        assert_int_equal(weir_take_at(w, weir_prepared_key(&prepared), 1, 0, NULL), WEIR_GRANTED);
        assert_int_equal(take_at(w, texts[i], 1, 0), WEIR_DENIED);
    }
    struct weir_prepared prepared;
    weir_prepare(w, weir_id(7), &prepared);
    assert_int_equal(weir_take_at(w, weir_prepared_key(&prepared), 1, 0, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_at(w, weir_id(7), 1, 0, NULL), WEIR_DENIED);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_the_burst_and_then_the_rate),
        cmocka_unit_test(keys_have_buckets_of_their_own),
        cmocka_unit_test(the_answer_to_a_grant_says_what_is_left),
        cmocka_unit_test(the_answer_to_a_denial_says_when_to_ask_again),
        cmocka_unit_test(never_when_the_cost_is_above_the_burst),
        cmocka_unit_test(a_cost_of_0_is_only_a_question),
        cmocka_unit_test(peek_answers_as_take_would_and_changes_nothing),
        cmocka_unit_test(charge_debits_whatever_the_level),
        cmocka_unit_test(the_debt_allowed_is_the_burst_by_default),
        cmocka_unit_test(a_debt_is_rounded_up_and_what_remains_down),
        cmocka_unit_test(refund_gives_back_and_never_beyond_the_burst),
        cmocka_unit_test(a_refund_to_an_absent_key_is_nothing),
        cmocka_unit_test(take_some_takes_the_whole_tokens_there_are),
        cmocka_unit_test(take_some_of_a_weight_that_does_not_divide_gives_nothing_away),
        cmocka_unit_test(a_weight_of_2_has_twice_the_rate_and_twice_the_burst),
        cmocka_unit_test(weights_1_to_16_and_their_doubles_are_exact_up_to_2775_a_second),
        cmocka_unit_test(half_a_weight_or_one_that_does_not_divide_is_refused),
        cmocka_unit_test(an_unknown_kind_is_refused),
        cmocka_unit_test(an_integer_key_is_the_same_as_its_eight_bytes_lowest_first),
        cmocka_unit_test(keys_of_any_bytes_and_lengths_are_told_apart),
        cmocka_unit_test(a_prepared_key_is_the_key_it_was_prepared_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
