// The calls around the asks: limiters on clocks of their own, the short calls, each, stats, words.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

// One token a year and a burst: whatever the real clock does meanwhile, nothing comes back.
static struct weir *create_still(enum weir_clock clock, uint64_t burst) {
    struct weir_options options = options_at(1, 365 * WEIR_DAY, burst);
    options.clock = clock;
    return create(&options);
}

static void the_short_calls_do_what_weir_do_does(void **state) {
    (void)state;
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_MONOTONIC,
                                             WEIR_CLOCK_COARSE};
    for (size_t i = 0; i < 3; i++) {
        struct weir *w = create_still(clocks[i], 20);
        const struct weir_key key = weir_str("user:7");
        struct weir_answer a = WEIR_ANSWER_INIT;
        assert_int_equal(weir_take(w, key, 3, &a), WEIR_GRANTED);
        assert_int_equal(a.remaining, 17);
        assert_int_equal(weir_take(w, key, 2, NULL), WEIR_GRANTED);
        assert_int_equal(weir_peek(w, key, 15, &a), WEIR_GRANTED);
        assert_int_equal(weir_peek(w, key, 16, NULL), WEIR_DENIED);
        assert_int_equal(weir_charge(w, key, 20, &a), WEIR_GRANTED);
        assert_int_equal(a.debt, 5);
        assert_int_equal(weir_take(w, key, 0, NULL), WEIR_DENIED);
        assert_int_equal(weir_take(w, key, 21, NULL), WEIR_NEVER);
        assert_int_equal(weir_refund(w, key, 12, &a), WEIR_GRANTED);
        assert_int_equal(a.remaining, 7);
        assert_int_equal(weir_take_some(w, key, 10, &a), WEIR_GRANTED);
        assert_int_equal(a.granted_tokens, 7);
        assert_int_equal(weir_take(w, key, 1, &a), WEIR_DENIED);
        assert_in_range(a.retry_after_ns, 364 * WEIR_DAY, 365 * WEIR_DAY);
        assert_int_equal(weir_reserve(w, key, 1, WEIR_SECOND, &a), WEIR_DENIED);
        assert_int_equal(weir_reset(w, key), WEIR_GRANTED);
        assert_int_equal(weir_take(w, key, 20, NULL), WEIR_GRANTED);
        assert_int_equal(weir_cancel(w, key, 5, &a), WEIR_GRANTED);
        assert_int_equal(a.granted_tokens, 5);
        weir_destroy(w);
    }
}

static void the_counter_is_refused_only_where_there_is_none(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_SECOND, 1);
    options.clock = WEIR_CLOCK_COUNTER;
    struct weir *w = NULL;
    struct weir_error error = {{0}};
    const int result = weir_create(&w, &options, &error);
    if (result == WEIR_GRANTED) {
        assert_int_equal(weir_take(w, weir_id(1), 1, NULL), WEIR_GRANTED);
        weir_destroy(w);
    } else {
        assert_int_equal(result, WEIR_ECLOCK);
        assert_non_null(strstr(error.text, "WEIR_CLOCK_MONOTONIC"));
    }
}

static void the_plain_calls_do_not_fit_a_callers_clock_nor_the_at_calls_another(void **state) {
    (void)state;
    struct weir_answer a = WEIR_ANSWER_INIT;
    struct weir_error error = {{0}};
    const struct weir_limit limit = {1, WEIR_SECOND, 1};
    struct weir *w = create_at(1, WEIR_SECOND, 5);
    const struct weir_key key = weir_str("a");
    assert_int_equal(weir_take(w, key, 1, NULL), WEIR_ECLOCK);
    assert_int_equal(weir_take(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_take_some(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_peek(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_charge(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_refund(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_reserve(w, key, 1, 0, &a), WEIR_ECLOCK);
    assert_int_equal(weir_cancel(w, key, 1, &a), WEIR_ECLOCK);
    assert_int_equal(weir_set_limit(w, &limit, &error), WEIR_ECLOCK);
    assert_non_null(strstr(error.text, "weir_set_limit_at"));
    const struct weir_stats stats = stats_of(w);
    assert_int_equal(stats.granted + stats.denied, 0);
    weir_destroy(w);
    w = create_still(WEIR_CLOCK_MONOTONIC, 5);
    assert_int_equal(weir_take_at(w, key, 1, 0, &a), WEIR_ECLOCK);
    assert_int_equal(weir_set_limit_at(w, &limit, 0, &error), WEIR_ECLOCK);
    weir_destroy(w);
}

static void a_limiter_on_its_own_clock_takes_a_new_limit(void **state) {
    (void)state;
    struct weir *w = create_still(WEIR_CLOCK_AUTO, 20);
    const struct weir_limit limit = {1, 365 * WEIR_DAY, 5};
    assert_int_equal(weir_take(w, weir_str("a"), 17, NULL), WEIR_GRANTED);
    assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
    struct weir_limit now;
    weir_get_limit(w, &now);
    assert_memory_equal(&now, &limit, sizeof limit);
    assert_int_equal(weir_take(w, weir_str("a"), 4, NULL), WEIR_DENIED);
    assert_int_equal(weir_take(w, weir_str("a"), 3, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("b"), 6, NULL), WEIR_NEVER);
    assert_int_equal(weir_take(w, weir_str("b"), 5, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

// Puts a bucket at a level, by its word.
static void set_level(struct weir *w, struct weir_key key, int64_t units) {
    const struct wr_place place = place_of(w, key);
    const struct wr_now now = wr_now_read(w->versions, &w->source, w->scale.shift, 0, true);
    for (unsigned i = 0; i < WR_WAYS; i++) {
        struct wr_pair *way = &place.line[i / WR_LINE_WAYS]->slots[i % WR_LINE_WAYS];
        const struct wr_pair slot = wr_u128_load(way);
        if (!wr_slot_is(slot, place.fingerprint, WR_STATE_LIVE)) continue;
        assert_true(wr_u128_cas(way, slot, (struct wr_pair){slot.tag, now.v - (uint64_t)units}));
    }
}

// weir_take has a way of its own for the ordinary case. At any level - also of a bucket that has
// been idle for long, or is far in debt - it does what the other way says it would.
static void weir_take_agrees_with_weir_peek_at_any_level(void **state) {
    (void)state;
    struct weir *w = create_still(WEIR_CLOCK_AUTO, 20);
    const struct weir_key key = weir_str("a");
    const int64_t unit = (int64_t)w->scale.unit_tokens;
    struct random random = {20};
    assert_int_equal(weir_take(w, key, 1, NULL), WEIR_GRANTED);
    for (int i = 0; i < 5000; i++) {
        // Half a token off, so that the time between two calls does not matter.
        const int64_t tokens = (int64_t)random_below(&random, i % 4 == 0 ? 90 : 40) - 15;
        const uint64_t cost = random_below(&random, 23);
        struct weir_answer peek = WEIR_ANSWER_INIT, take = WEIR_ANSWER_INIT;
        set_level(w, key, tokens * unit + unit / 2);
        const int expected = weir_peek(w, key, cost, &peek);
        assert_int_equal(weir_take(w, key, cost, i % 2 == 0 ? &take : NULL), expected);
        if (i % 2 == 0) {
            assert_int_equal(take.granted_tokens, peek.granted_tokens);
            assert_int_equal(take.remaining, peek.remaining);
            assert_int_equal(take.debt, peek.debt);
            assert_int_equal(take.retry_after_ns == 0, peek.retry_after_ns == 0);
        }
        (void)weir_peek(w, key, 0, &take);
        assert_int_equal(take.remaining, peek.remaining);
        assert_int_equal(take.debt, peek.debt);
    }
    weir_destroy(w);
}

struct seen {
    uint64_t count, most;
    int64_t level_tokens;
    uint64_t fingerprint, full_after_ns;
    size_t size;
};

static bool note_slot(const struct weir_slot *slot, void *context) {
    struct seen *seen = context;
    seen->count++;
    seen->level_tokens += slot->level_tokens;
    seen->fingerprint = slot->fingerprint;
    seen->full_after_ns = slot->full_after_ns;
    seen->size = slot->size;
    return seen->count < seen->most;
}

static void each_visits_the_buckets_that_are_not_full(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    for (uint64_t id = 0; id < 50; id++)
        assert_int_equal(weir_take_at(w, weir_id(id), 4, 0, NULL), WEIR_GRANTED);
    struct seen seen = {.most = 1000};
    assert_int_equal(weir_each_at(w, 0, note_slot, &seen), 50);
    assert_int_equal(seen.count, 50);
    assert_int_equal(seen.level_tokens, 300);
    assert_int_equal(seen.full_after_ns, 4 * WEIR_SECOND);
    assert_int_equal(seen.size, sizeof(struct weir_slot));
    seen = (struct seen){.most = 1000};
    assert_int_equal(weir_each_at(w, 4 * second - 1, note_slot, &seen), 50);
    assert_int_equal(weir_each_at(w, 4 * second, note_slot, &seen), 0); // full
    seen = (struct seen){.most = 7}; // until it returns false
    assert_int_equal(weir_each_at(w, 0, note_slot, &seen), 7);
    assert_int_equal(seen.count, 7);
    assert_int_equal(weir_each(w, note_slot, &seen), 0); // a caller's clock: weir_each_at
    weir_destroy(w);
}

static void each_rounds_a_level_down_and_tells_the_fingerprint(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_SECOND, 10);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 15, 0).result, WEIR_GRANTED);
    struct seen seen = {.most = 9};
    assert_int_equal(weir_each_at(w, 1, note_slot, &seen), 1);
    assert_int_equal(seen.level_tokens, -5);
    assert_int_equal(seen.fingerprint, place_of(w, weir_str("a")).fingerprint);
    seen = (struct seen){.most = 9};
    assert_int_equal(weir_each_at(w, 7 * second + 1, note_slot, &seen), 1);
    assert_int_equal(seen.level_tokens, 2);
    assert_int_equal(seen.full_after_ns, 8 * WEIR_SECOND - 1);
    weir_destroy(w);
}

static void each_works_on_a_clock_of_its_own(void **state) {
    (void)state;
    struct weir *w = create_still(WEIR_CLOCK_AUTO, 20);
    for (uint64_t id = 0; id < 9; id++)
        assert_int_equal(weir_take(w, weir_id(id), 1, NULL), WEIR_GRANTED);
    struct seen seen = {.most = 100};
    assert_int_equal(weir_each(w, note_slot, &seen), 9);
    assert_int_equal(weir_each_at(w, 0, note_slot, &seen), 0);
    weir_destroy(w);
}

static void stats_count_every_kind_of_answer(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 7, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 0, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 13, 0), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 21, 0), WEIR_NEVER);
    assert_int_equal(ask_at(w, WEIR_TAKE_SOME, "a", 100, 0).answer.granted_tokens, 12);
    assert_int_equal(ask_at(w, WEIR_RESERVE, "a", 2, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 3, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_REFUND, "a", 4, 0).result, WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_RESET, "b", 1, 0).result, WEIR_GRANTED);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.granted, 5); // 3 takes, take_some, reserve
    assert_int_equal(s.denied, 1);
    assert_int_equal(s.never, 1);
    assert_int_equal(s.tokens, 7 + 1 + 12 + 2 + 3);
    assert_int_equal(s.refunded_tokens, 4);
    assert_int_equal(s.clipped_tokens, 0);
    assert_int_equal(s.inserted, 1);
    assert_int_equal(s.displaced + s.forgiven_tokens + s.no_room + s.untracked + s.would_deny, 0);
    assert_int_equal(s.retried + s.relics + s.clock_fallbacks, 0);
    assert_int_equal(s.capacity_keys, 256);
    assert_int_equal(s.shards, 1);
    weir_destroy(w);
}

static void takes_on_a_clock_of_its_own_are_counted_with_an_answer_and_without(void **state) {
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct weir *w = create_still(WEIR_CLOCK_AUTO, 40);
        struct weir_answer a = WEIR_ANSWER_INIT;
        struct weir_answer *answer = answered ? &a : NULL;
        static const uint64_t costs[] = {1, 3, 0, 10, 1, 20};
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(weir_take(w, weir_str("a"), costs[i], answer), WEIR_GRANTED);
        assert_int_equal(weir_take(w, weir_str("a"), 10, answer), WEIR_DENIED);
        assert_int_equal(weir_take(w, weir_str("a"), 41, answer), WEIR_NEVER);
        const struct weir_stats s = stats_of(w);
        assert_int_equal(s.granted, 6);
        assert_int_equal(s.tokens, 35);
        assert_int_equal(s.denied, 1);
        assert_int_equal(s.never, 1);
        weir_destroy(w);
    }
}

static void the_waits_handed_out_are_counted_by_powers_of_two(void **state) {
    (void)state;
    struct weir *w = create_at(1, WEIR_MILLISECOND, 1000000);
    assert_int_equal(take_at(w, "a", 1000000, 0), WEIR_GRANTED);
    uint64_t expected[WEIR_WAIT_BUCKETS] = {0};
    for (unsigned i = 0; i < 20; i++) {
        const uint64_t wait_ns = (UINT64_C(1) << i) * WEIR_MILLISECOND;
        const struct outcome o = ask_at(w, WEIR_TAKE, "a", UINT64_C(1) << i, 0);
        assert_int_equal(o.answer.retry_after_ns, wait_ns);
        unsigned bucket = 0;
        while (bucket < WEIR_WAIT_BUCKETS - 1 && UINT64_C(1) << (14 + bucket) < wait_ns) bucket++;
        expected[bucket]++;
    }
    struct weir_stats s = stats_of(w);
    assert_memory_equal(s.waits, expected, sizeof expected);
    // The edges: up to 2^14 ns is the first, and for ever the last.
    assert_int_equal(wr_wait_bucket(0), 0);
    assert_int_equal(wr_wait_bucket(UINT64_C(1) << 14), 0);
    assert_int_equal(wr_wait_bucket((UINT64_C(1) << 14) + 1), 1);
    assert_int_equal(wr_wait_bucket(UINT64_C(1) << 15), 1);
    assert_int_equal(wr_wait_bucket(UINT64_C(1) << 44), 30);
    assert_int_equal(wr_wait_bucket((UINT64_C(1) << 44) + 1), 31);
    assert_int_equal(wr_wait_bucket(WEIR_FOREVER), 31);
    weir_destroy(w);
}

static void every_result_has_words_and_a_number_that_is_none_has_some_too(void **state) {
    (void)state;
    const char *seen[16];
    size_t count = 0;
#define CHECK(name, value, words)                                                                  \
    assert_int_equal(WEIR_##name, value);                                                          \
    assert_string_equal(weir_strerror(WEIR_##name), words);                                        \
    seen[count++] = weir_strerror(value);
    WEIR_RESULTS(CHECK)
#undef CHECK
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) assert_string_not_equal(seen[i], seen[j]);
    assert_string_equal(weir_strerror(12345), "unknown result");
    assert_string_equal(weir_strerror(INT32_MIN), "unknown result");
}

static void results_tell_yes_from_no_from_failure_by_their_sign(void **state) {
    (void)state;
    assert_int_equal(WEIR_GRANTED, 0);
    assert_true(WEIR_DENIED > 0 && WEIR_NEVER > 0 && WEIR_NO_ROOM > 0);
    assert_true(WEIR_EINVAL < 0 && WEIR_ENOMEM < 0 && WEIR_ECLOSED < 0 && WEIR_ESYS < 0);
}

static void the_version_linked_is_the_headers(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR,
             WEIR_VERSION_PATCH);
    assert_string_equal(WEIR_VERSION, text);
    assert_string_equal(weir_version(), WEIR_VERSION);
}

static void destroy_allows_null_and_close_may_be_repeated(void **state) {
    (void)state;
    weir_destroy(NULL);
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    weir_close(w);
    weir_close(w);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_GRANTED); // other calls go on
    weir_destroy(w);
}

static void errno_is_neither_read_nor_kept(void **state) {
    (void)state;
    struct weir *w = create_still(WEIR_CLOCK_AUTO, 2);
    errno = 77;
    for (int i = 0; i < 5; i++) (void)weir_take(w, weir_str("a"), 1, NULL);
    assert_int_equal(errno, 77);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_short_calls_do_what_weir_do_does),
        cmocka_unit_test(the_counter_is_refused_only_where_there_is_none),
        cmocka_unit_test(the_plain_calls_do_not_fit_a_callers_clock_nor_the_at_calls_another),
        cmocka_unit_test(a_limiter_on_its_own_clock_takes_a_new_limit),
        cmocka_unit_test(weir_take_agrees_with_weir_peek_at_any_level),
        cmocka_unit_test(each_visits_the_buckets_that_are_not_full),
        cmocka_unit_test(each_rounds_a_level_down_and_tells_the_fingerprint),
        cmocka_unit_test(each_works_on_a_clock_of_its_own),
        cmocka_unit_test(stats_count_every_kind_of_answer),
        cmocka_unit_test(takes_on_a_clock_of_its_own_are_counted_with_an_answer_and_without),
        cmocka_unit_test(the_waits_handed_out_are_counted_by_powers_of_two),
        cmocka_unit_test(every_result_has_words_and_a_number_that_is_none_has_some_too),
        cmocka_unit_test(results_tell_yes_from_no_from_failure_by_their_sign),
        cmocka_unit_test(the_version_linked_is_the_headers),
        cmocka_unit_test(destroy_allows_null_and_close_may_be_repeated),
        cmocka_unit_test(errno_is_neither_read_nor_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
