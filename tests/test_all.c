// weir_take_all: from every limiter or from none.
#include <string.h>

#include "support.h"

static struct weir_part part_of(struct weir *w, const char *key, uint64_t cost) {
    struct weir_part part = {w, WEIR_ASK_INIT};
    part.ask.key = weir_str(key);
    part.ask.cost = cost;
    return part;
}

static struct weir *create_dry_run(uint64_t tokens, uint64_t burst) {
    struct weir_options options = options_at(tokens, WEIR_SECOND, burst);
    options.dry_run = true;
    struct weir *w = create(&options);
    (void)ask_at(w, WEIR_PEEK, "epoch", 0, 0);
    return w;
}

static void a_refusal_by_one_takes_from_none(void **state) {
    (void)state;
    struct weir *user = create_at(1, WEIR_DAY, 1), *global = create_at(1, WEIR_DAY, 10);
    for (int order = 0; order < 2; order++) {
        const char *name = order == 0 ? "ann" : "bob";
        struct weir_part parts[2] = {part_of(user, name, 1), part_of(global, "all", 1)};
        if (order == 1) {
            const struct weir_part first = parts[0];
            parts[0] = parts[1];
            parts[1] = first;
        }
        uint64_t granted = 0;
        for (int i = 0; i < 20; i++) {
            size_t refused = 77;
            const int result = weir_take_all(parts, 2, &refused, NULL);
            granted += result == WEIR_GRANTED;
            if (i == 0) assert_int_equal(refused, 2);
            else assert_int_equal(refused, order);
        }
        assert_int_equal(granted, 1);
        assert_int_equal(remaining_at(global, "all", 0), 9 - order);
    }
    assert_int_equal(stats_of(user).denied, 2 * 19); // counted where it was refused
    assert_int_equal(stats_of(global).denied, 0);
    assert_int_equal(stats_of(global).tokens, 2);
    weir_destroy(user);
    weir_destroy(global);
}

static void the_result_and_the_index_are_of_the_first_that_refuses(void **state) {
    (void)state;
    struct weir *small = create_at(5, WEIR_SECOND, 3), *large = create_at(5, WEIR_SECOND, 20);
    size_t refused = 77;
    struct weir_part parts[3] = {part_of(large, "a", 4), part_of(small, "a", 4),
                                 part_of(large, "b", 21)};
    assert_int_equal(weir_take_all(parts, 3, &refused, NULL), WEIR_NEVER);
    assert_int_equal(refused, 1);
    parts[1].ask.cost = 3;
    assert_int_equal(weir_take_all(parts, 3, &refused, NULL), WEIR_NEVER);
    assert_int_equal(refused, 2);
    parts[2].ask.cost = 20;
    assert_int_equal(weir_take_all(parts, 3, NULL, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_all(parts, 3, &refused, NULL), WEIR_DENIED);
    assert_int_equal(refused, 1);
    assert_int_equal(remaining_at(large, "a", 0), 16);
    parts[1].ask.weight = (struct weir_weight){1, 0};
    assert_true(weir_take_all(parts, 3, &refused, NULL) < 0);
    assert_int_equal(refused, 1);
    assert_int_equal(remaining_at(large, "a", 0), 16);
    weir_destroy(small);
    weir_destroy(large);
}

static void each_part_has_its_answer(void **state) {
    (void)state;
    struct weir *small = create_at(5, WEIR_SECOND, 3), *large = create_at(5, WEIR_SECOND, 20);
    const struct weir_part parts[2] = {part_of(large, "a", 5), part_of(small, "a", 2)};
    struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
    assert_int_equal(weir_take_all(parts, 2, NULL, answers), WEIR_GRANTED);
    assert_int_equal(answers[0].granted_tokens, 5);
    assert_int_equal(answers[0].remaining, 15);
    assert_int_equal(answers[1].granted_tokens, 2);
    assert_int_equal(answers[1].remaining, 1);
    assert_int_equal(answers[1].full_after_ns, 2 * WEIR_SECOND / 5);
    size_t refused;
    assert_int_equal(weir_take_all(parts, 2, &refused, answers), WEIR_DENIED);
    assert_int_equal(refused, 1);
    assert_int_equal(answers[1].granted_tokens, 0);
    assert_int_equal(answers[1].retry_after_ns, WEIR_SECOND / 5);
    weir_destroy(small);
    weir_destroy(large);
}

static void shorter_answers_are_filled_as_far_as_they_go(void **state) {
    (void)state;
    enum { old = offsetof(struct weir_answer, full_after_ns) };
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const struct weir_part parts[2] = {part_of(w, "a", 5), part_of(w, "b", 6)};
    _Alignas(8) unsigned char bytes[3 * old];
    memset(bytes, 0xA5, sizeof bytes);
    for (size_t i = 0; i < 2; i++) ((struct weir_answer *)(void *)(bytes + i * old))->size = old;
    assert_int_equal(weir_take_all(parts, 2, NULL, (struct weir_answer *)(void *)bytes),
                     WEIR_GRANTED);
    for (size_t i = 0; i < 2; i++) {
        const struct weir_answer *answer = (struct weir_answer *)(void *)(bytes + i * old);
        assert_int_equal(answer->size, old);
        assert_int_equal(answer->granted_tokens, 5 + i);
        assert_int_equal(answer->remaining, 15 - i);
    }
    for (size_t i = 2 * old; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xA5);
    weir_destroy(w);
}

static void an_answer_of_an_unknown_size_is_refused_and_nothing_changes(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    const struct weir_part parts[2] = {part_of(w, "a", 5), part_of(w, "b", 6)};
    for (size_t bad = 0; bad < 2; bad++) {
        struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
        answers[bad].size = bad == 0 ? 3 : SIZE_MAX;
        assert_int_equal(weir_take_all(parts, 2, NULL, answers), WEIR_ESIZE);
        assert_int_equal(remaining_at(w, "a", 0), 20);
        assert_int_equal(remaining_at(w, "b", 0), 20);
    }
    weir_destroy(w);
}

// The peeks cannot know; the second debit is refused, and the first is given back.
static void the_same_key_twice_needs_the_tokens_of_both(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 5), *other = create_at(5, WEIR_SECOND, 20);
    const struct weir_part parts[3] = {part_of(other, "a", 7), part_of(w, "a", 3),
                                       part_of(w, "a", 3)};
    size_t refused;
    assert_int_equal(weir_take_all(parts, 3, &refused, NULL), WEIR_DENIED);
    assert_int_equal(refused, 2);
    assert_int_equal(remaining_at(w, "a", 0), 5);
    assert_int_equal(remaining_at(other, "a", 0), 20);
    assert_int_equal(stats_of(w).denied, 1);
    const struct weir_part fitting[2] = {part_of(w, "a", 3), part_of(w, "a", 2)};
    assert_int_equal(weir_take_all(fitting, 2, &refused, NULL), WEIR_GRANTED);
    assert_int_equal(refused, 2);
    assert_int_equal(remaining_at(w, "a", 0), 0);
    weir_destroy(w);
    weir_destroy(other);
}

static void a_dry_run_never_refuses(void **state) {
    (void)state;
    struct weir *dry = create_dry_run(5, 3), *live = create_at(5, WEIR_SECOND, 20);
    const struct weir_part parts[2] = {part_of(dry, "a", 2), part_of(live, "a", 2)};
    struct weir_answer answers[2] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(weir_take_all(parts, 2, NULL, answers), WEIR_GRANTED);
        assert_int_equal(answers[0].would_deny, i > 0);
    }
    assert_int_equal(weir_take_all(parts, 2, NULL, answers), WEIR_DENIED);
    assert_int_equal(remaining_at(dry, "a", 0), 1);
    assert_int_equal(stats_of(dry).would_deny, 9);
    weir_destroy(dry);
    weir_destroy(live);
}

// What was granted without a debit must not be given back: it would be a gift.
static void parts_that_debited_nothing_are_not_refunded(void **state) {
    (void)state;
    struct weir *dry = create_dry_run(5, 3), *twice = create_at(5, WEIR_SECOND, 1);
    struct weir *free_for_all = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(free_for_all, WEIR_CHARGE, "a", 30, 0).result, WEIR_GRANTED);
    const struct weir_limit none = weir_unlimited();
    assert_int_equal(weir_set_limit_at(free_for_all, &none, 0, NULL), WEIR_GRANTED);
    assert_int_equal(take_at(dry, "a", 3, 0), WEIR_GRANTED);
    const struct weir_part parts[4] = {part_of(dry, "a", 2), part_of(free_for_all, "a", 2),
                                       part_of(twice, "a", 1), part_of(twice, "a", 1)};
    size_t refused;
    assert_int_equal(weir_take_all(parts, 4, &refused, NULL), WEIR_DENIED);
    assert_int_equal(refused, 3);
    assert_int_equal(remaining_at(dry, "a", 0), 0);
    assert_int_equal(remaining_at(twice, "a", 0), 1);
    assert_int_equal(stats_of(dry).refunded_tokens, 0);
    assert_int_equal(stats_of(free_for_all).refunded_tokens, 0);
    assert_int_equal(set_limit_at(free_for_all, 5, WEIR_SECOND, 20, 0), WEIR_GRANTED);
    assert_int_equal(ask_at(free_for_all, WEIR_PEEK, "a", 0, 0).answer.debt, 10);
    weir_destroy(dry);
    weir_destroy(twice);
    weir_destroy(free_for_all);
}

static void a_full_table_that_grants_is_not_refunded(void **state) {
    (void)state;
    struct weir_options options = options_at(5, WEIR_SECOND, 3);
    options.capacity_keys = 1;
    options.full_policy = WEIR_FULL_GRANT;
    struct weir *full = create(&options), *twice = create_at(5, WEIR_SECOND, 1);
    for (uint64_t i = 0; stats_of(full).untracked == 0; i++)
        assert_int_equal(weir_take_at(full, weir_id(i), 3, 0, NULL), WEIR_GRANTED);
    const struct weir_part parts[3] = {part_of(full, "a", 2), part_of(twice, "a", 1),
                                       part_of(twice, "a", 1)};
    struct weir_answer answers[3] = {WEIR_ANSWER_INIT, WEIR_ANSWER_INIT, WEIR_ANSWER_INIT};
    assert_int_equal(weir_take_all(parts, 3, NULL, answers), WEIR_DENIED);
    assert_int_equal(stats_of(full).refunded_tokens, 0);
    assert_int_equal(remaining_at(twice, "a", 0), 1);
    weir_destroy(full);
    weir_destroy(twice);
}

static void one_part_to_64_and_no_others(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, WEIR_PARTS_MAX);
    struct weir_part parts[WEIR_PARTS_MAX + 1];
    for (size_t i = 0; i <= WEIR_PARTS_MAX; i++) parts[i] = part_of(w, "a", 1);
    size_t refused = 77;
    assert_int_equal(weir_take_all(parts, 0, &refused, NULL), WEIR_EINVAL);
    assert_int_equal(refused, 0);
    assert_int_equal(weir_take_all(parts, WEIR_PARTS_MAX + 1, &refused, NULL), WEIR_EINVAL);
    assert_int_equal(refused, WEIR_PARTS_MAX + 1);
    assert_int_equal(weir_take_all(NULL, 1, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(remaining_at(w, "a", 0), WEIR_PARTS_MAX);
    assert_int_equal(weir_take_all(parts, WEIR_PARTS_MAX, &refused, NULL), WEIR_GRANTED);
    assert_int_equal(refused, WEIR_PARTS_MAX);
    assert_int_equal(remaining_at(w, "a", 0), 0);
    assert_int_equal(ask_at(w, WEIR_REFUND, "a", 63, 0).result, WEIR_GRANTED);
    assert_int_equal(weir_take_all(parts, WEIR_PARTS_MAX, &refused, NULL), WEIR_DENIED);
    assert_int_equal(refused, WEIR_PARTS_MAX - 1); // the 64th: all 63 came back
    assert_int_equal(remaining_at(w, "a", 0), 63);
    weir_destroy(w);
}

static void the_kind_of_a_part_is_not_looked_at(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    struct weir_part part = part_of(w, "a", 5);
    part.ask.kind = WEIR_CHARGE;
    assert_int_equal(weir_take_all(&part, 1, NULL, NULL), WEIR_GRANTED);
    part.ask.cost = 16;
    assert_int_equal(weir_take_all(&part, 1, NULL, NULL), WEIR_DENIED);
    part.ask.kind = (enum weir_kind)99;
    part.ask.cost = 15;
    assert_int_equal(weir_take_all(&part, 1, NULL, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void weights_and_readings_are_each_parts_own(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 10);
    struct weir_part parts[2] = {part_of(w, "a", 20), part_of(w, "b", 10)};
    parts[0].ask.weight = (struct weir_weight){2, 1};
    assert_int_equal(weir_take_all(parts, 2, NULL, NULL), WEIR_GRANTED);
    parts[0].ask.cost = 2;
    parts[1].ask.cost = 1;
    parts[0].ask.now_ns = parts[1].ask.now_ns = (int64_t)WEIR_SECOND / 5 - 1;
    assert_int_equal(weir_take_all(parts, 2, NULL, NULL), WEIR_DENIED);
    parts[0].ask.now_ns = parts[1].ask.now_ns = (int64_t)WEIR_SECOND / 5;
    assert_int_equal(weir_take_all(parts, 2, NULL, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_by_one_takes_from_none),
        cmocka_unit_test(the_result_and_the_index_are_of_the_first_that_refuses),
        cmocka_unit_test(each_part_has_its_answer),
        cmocka_unit_test(shorter_answers_are_filled_as_far_as_they_go),
        cmocka_unit_test(an_answer_of_an_unknown_size_is_refused_and_nothing_changes),
        cmocka_unit_test(the_same_key_twice_needs_the_tokens_of_both),
        cmocka_unit_test(a_dry_run_never_refuses),
        cmocka_unit_test(parts_that_debited_nothing_are_not_refunded),
        cmocka_unit_test(a_full_table_that_grants_is_not_refunded),
        cmocka_unit_test(one_part_to_64_and_no_others),
        cmocka_unit_test(the_kind_of_a_part_is_not_looked_at),
        cmocka_unit_test(weights_and_readings_are_each_parts_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
