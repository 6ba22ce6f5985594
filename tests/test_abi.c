// What callers built against an older header see, and what they must not.
#include <stdlib.h>
#include <string.h>

#include "support.h"

// A limiter with one bucket in debt, so that every field of an answer has a value.
static struct weir *create_in_debt(void) {
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "a", 25, 0).result, WEIR_GRANTED);
    return w;
}

static void a_shorter_answer_is_filled_as_far_as_it_goes(void **state) {
    (void)state;
    static const size_t sizes[] = {
        offsetof(struct weir_answer, full_after_ns), offsetof(struct weir_answer, untracked),
        sizeof(struct weir_answer)};
    struct weir *w = create_in_debt();
    for (size_t i = 0; i < 3; i++) {
        unsigned char bytes[sizeof(struct weir_answer) + 8];
        memset(bytes, 0xA5, sizeof bytes);
        struct weir_answer *answer = (struct weir_answer *)(void *)bytes;
        answer->size = sizes[i];
        assert_int_equal(weir_take_at(w, weir_str("a"), 1, 0, answer), WEIR_DENIED);
        assert_int_equal(answer->size, sizes[i]);
        assert_int_equal(answer->granted_tokens, 0);
        assert_int_equal(answer->debt, 5);
        assert_int_equal(answer->retry_after_ns, 6 * WEIR_SECOND / 5);
        for (size_t b = sizes[i]; b < sizeof bytes; b++) assert_int_equal(bytes[b], 0xA5);
    }
    weir_destroy(w);
}

static void a_shorter_answer_works_on_a_clock_of_its_own_too(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_DAY, 3);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *w = create(&options);
    unsigned char bytes[sizeof(struct weir_answer)];
    memset(bytes, 0xA5, sizeof bytes);
    struct weir_answer *answer = (struct weir_answer *)(void *)bytes;
    answer->size = offsetof(struct weir_answer, full_after_ns);
    assert_int_equal(weir_take(w, weir_str("a"), 1, answer), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("a"), 1, answer), WEIR_GRANTED);
    assert_int_equal(answer->remaining, 1);
    for (size_t b = answer->size; b < sizeof bytes; b++) assert_int_equal(bytes[b], 0xA5);
    weir_destroy(w);
}

static void an_answer_of_an_unknown_size_is_refused_and_nothing_changes(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 8, offsetof(struct weir_answer, retry_after_ns),
                                   sizeof(struct weir_answer) + 1, 4096, SIZE_MAX};
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_answer answer = WEIR_ANSWER_INIT, before;
        struct weir_ask ask = WEIR_ASK_INIT;
        answer.size = sizes[i];
        before = answer;
        ask.key = weir_str("a");
        assert_int_equal(weir_take_at(w, ask.key, 1, 0, &answer), WEIR_ESIZE);
        assert_int_equal(weir_do(w, &ask, &answer), WEIR_ESIZE);
        assert_memory_equal(&answer, &before, sizeof answer);
    }
    assert_int_equal(remaining_at(w, "a", 0), 20);
    weir_destroy(w);
}

static void a_shorter_ask_is_read_as_far_as_it_goes(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str("a");
    ask.kind = WEIR_RESERVE;
    ask.cost = 20;
    ask.max_wait_ns = 1; // an older caller's struct ends before this
    ask.size = offsetof(struct weir_ask, max_wait_ns);
    assert_int_equal(weir_do(w, &ask, NULL), WEIR_GRANTED);
    assert_int_equal(weir_do(w, &ask, NULL), WEIR_GRANTED); // any time
    ask.size = sizeof ask;
    assert_int_equal(weir_do(w, &ask, NULL), WEIR_DENIED); // 1 ns
    static const size_t unknown[] = {0, 1, offsetof(struct weir_ask, now_ns), sizeof ask + 1,
                                     SIZE_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ask.size = unknown[i];
        assert_int_equal(weir_do(w, &ask, NULL), WEIR_ESIZE);
    }
    weir_destroy(w);
}

static void shorter_stats_are_filled_as_far_as_they_go(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 7, 0), WEIR_GRANTED);
    static const size_t sizes[] = {offsetof(struct weir_stats, clock_fallbacks),
                                   offsetof(struct weir_stats, waits), sizeof(struct weir_stats)};
    for (size_t i = 0; i < 3; i++) {
        unsigned char bytes[sizeof(struct weir_stats) + 8];
        memset(bytes, 0xA5, sizeof bytes);
        struct weir_stats *stats = (struct weir_stats *)(void *)bytes;
        assert_int_equal(weir_stats(w, stats, sizes[i]), WEIR_GRANTED);
        assert_int_equal(stats->granted, 1);
        assert_int_equal(stats->tokens, 7);
        for (size_t b = sizes[i]; b < sizeof bytes; b++) assert_int_equal(bytes[b], 0xA5);
    }
    static const size_t unknown[] = {0, 1, 8, offsetof(struct weir_stats, clock_fallbacks) - 8,
                                     sizeof(struct weir_stats) + 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct weir_stats stats = {0};
        assert_int_equal(weir_stats(w, &stats, unknown[i]), WEIR_ESIZE);
        assert_int_equal(stats.granted, 0);
    }
    weir_destroy(w);
}

static void options_of_an_unknown_size_are_refused(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 8, sizeof(struct weir_options) + 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_options options = options_at(5, WEIR_SECOND, 20);
        struct weir *w = (struct weir *)&options;
        options.size = sizes[i];
        assert_int_equal(weir_create(&w, &options, NULL), WEIR_ESIZE);
        assert_null(w);
    }
}

// A batch steps by the first ask's size, so a size that is none must end it before it is used.
static void a_batch_of_asks_of_an_unknown_size_is_refused(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    static const size_t sizes[] = {0, 1, sizeof(struct weir_ask) + 8, UINT64_C(1) << 40};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_ask *ask = malloc(sizeof *ask); // alone: nothing behind it may be read
        assert_non_null(ask);
        *ask = (struct weir_ask)WEIR_ASK_INIT;
        ask->key = weir_str("a");
        ask->size = sizes[i];
        int results[40] = {0};
        assert_int_equal(weir_do_batch(w, ask, 40, results, NULL), WEIR_ESIZE);
        free(ask);
    }
    assert_int_equal(remaining_at(w, "a", 0), 20);
    weir_destroy(w);
}

// The numbers are part of the ABI: a change here is a change of soname.
static void results_and_enums_keep_their_numbers(void **state) {
    (void)state;
    static const int results[] = {WEIR_GRANTED, WEIR_DENIED,  WEIR_NEVER,  WEIR_NO_ROOM,
                                  WEIR_EINVAL,  WEIR_ENOMEM,  WEIR_ELIMIT, WEIR_ECLOCK,
                                  WEIR_EBUSY,   WEIR_EWEIGHT, WEIR_ESIZE,  WEIR_ECLOSED,
                                  WEIR_ENOSPC,  WEIR_ESYS};
    static const int numbers[] = {0, 1, 2, 3, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10};
    assert_memory_equal(results, numbers, sizeof numbers);
    assert_int_equal(WEIR_TAKE, 0);
    assert_int_equal(WEIR_TAKE_SOME, 1);
    assert_int_equal(WEIR_PEEK, 2);
    assert_int_equal(WEIR_CHARGE, 3);
    assert_int_equal(WEIR_REFUND, 4);
    assert_int_equal(WEIR_RESERVE, 5);
    assert_int_equal(WEIR_RESET, 6);
    assert_int_equal(WEIR_FULL_DISPLACE, 0);
    assert_int_equal(WEIR_FULL_GRANT, 2);
    assert_int_equal(WEIR_CLOCK_AUTO, 0);
    assert_int_equal(WEIR_CLOCK_CALLER, 4);
    assert_int_equal(offsetof(struct weir_answer, size), 0);
    assert_int_equal(offsetof(struct weir_ask, size), 0);
    assert_int_equal(offsetof(struct weir_options, size), 0);
    assert_int_equal(offsetof(struct weir_stats, clock_fallbacks), 14 * sizeof(uint64_t));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shorter_answer_is_filled_as_far_as_it_goes),
        cmocka_unit_test(a_shorter_answer_works_on_a_clock_of_its_own_too),
        cmocka_unit_test(an_answer_of_an_unknown_size_is_refused_and_nothing_changes),
        cmocka_unit_test(a_shorter_ask_is_read_as_far_as_it_goes),
        cmocka_unit_test(shorter_stats_are_filled_as_far_as_they_go),
        cmocka_unit_test(options_of_an_unknown_size_are_refused),
        cmocka_unit_test(results_and_enums_keep_their_numbers),
        cmocka_unit_test(a_batch_of_asks_of_an_unknown_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
