// weir_wait: what weir.h says of it. The clocks are the limiter's own; what is asserted of time is
// only that nobody is early by them.
#include <signal.h>
#include <string.h>

#include "waiters.h"

static struct weir_limit per_second(uint64_t tokens, uint64_t burst) {
    return (struct weir_limit){tokens, WEIR_SECOND, burst};
}

static const struct weir_limit hourly = {1, WEIR_HOUR, 10};

static struct weir_options own_clock(struct weir_limit limit) {
    struct weir_options options = options_at(limit.tokens, limit.period_ns, limit.burst);
    options.clock = WEIR_CLOCK_AUTO;
    options.max_rate_tokens = 1000000;
    options.max_rate_period_ns = WEIR_SECOND;
    options.max_ahead_tokens = 1000;
    return options;
}

// A limiter whose key "a" has just been emptied.
static struct weir *create_empty(struct weir_limit limit) {
    const struct weir_options options = own_clock(limit);
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), limit.burst, NULL), WEIR_GRANTED);
    return w;
}

static void set_limit(struct weir *w, struct weir_limit limit) {
    assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
}

static uint64_t zero_of(struct weir *w) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_str("a"), &slot), 1);
    return slot.word;
}

static struct weir_answer wait_now(struct weir *w, uint64_t cost, uint64_t timeout_ns,
                                   int expected) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    assert_int_equal(weir_wait(w, weir_str("a"), cost, timeout_ns, &answer), expected);
    return answer;
}

static void grants_at_once_what_there_is(void **state) {
    (void)state;
    const struct weir_options options = own_clock(hourly);
    struct weir *w = create(&options);
    const struct weir_answer answer = wait_now(w, 10, 0, WEIR_GRANTED);
    assert_int_equal(answer.granted_tokens, 10);
    assert_int_equal(answer.retry_after_ns, 0);
    assert_int_equal(weir_take(w, weir_str("a"), 1, NULL), WEIR_DENIED);
    weir_destroy(w);
}

static void sleeps_until_its_tokens_are_there_and_not_less(void **state) {
    (void)state;
    struct weir *w = create_empty(per_second(1000, 5));
    for (int i = 0; i < 10; i++) {
        (void)wait_now(w, 3, WEIR_FOREVER, WEIR_GRANTED);
        assert_true((int64_t)(v_of(w) - zero_of(w)) >= 0);
    }
    weir_destroy(w);
}

static void what_is_due_after_the_timeout_is_refused_at_once_and_takes_nothing(void **state) {
    (void)state;
    struct weir *w = create_empty(hourly);
    const uint64_t zero = zero_of(w);
    // Were it not at once, the test would take hours.
    static const uint64_t timeouts_ns[] = {0, 1, WEIR_SECOND, WEIR_HOUR / 2, 3500 * WEIR_SECOND};
    for (size_t i = 0; i < sizeof timeouts_ns / sizeof timeouts_ns[0]; i++) {
        const struct weir_answer answer = wait_now(w, 1, timeouts_ns[i], WEIR_DENIED);
        assert_int_equal(answer.granted_tokens, 0);
        assert_true(answer.retry_after_ns > 0 && answer.retry_after_ns <= WEIR_HOUR);
        assert_true(zero_of(w) == zero);
    }
    weir_destroy(w);
}

// Behind a queue as long as max_ahead there is a place soon, but not before the timeout a token.
static void a_full_queue_does_not_make_it_wait_for_what_comes_too_late(void **state) {
    (void)state;
    struct weir_options options = own_clock(per_second(100, 1));
    options.max_ahead_tokens = 1000000; // 10,000 s
    struct weir *w = create(&options);
    assert_int_equal(weir_set_limit(w, &(struct weir_limit){100, WEIR_SECOND, 1000000}, NULL), 0);
    assert_int_equal(weir_reserve(w, weir_str("a"), 1000000, 0, NULL), WEIR_GRANTED);
    const uint64_t zero = zero_of(w);
    (void)wait_now(w, 10, WEIR_HOUR, WEIR_DENIED);
    assert_true(zero_of(w) == zero);
    weir_destroy(w);
}

static void above_the_burst_is_never_at_once_with_the_state_untouched(void **state) {
    (void)state;
    const struct weir_options options = own_clock(per_second(5, 5));
    struct weir *w = create(&options);
    const struct weir_answer answer = wait_now(w, 5000, WEIR_FOREVER, WEIR_NEVER);
    assert_true(answer.retry_after_ns == WEIR_FOREVER);
    assert_int_equal(live_ways(w, weir_str("a"), NULL), 0);
    assert_int_equal(weir_take(w, weir_str("a"), 5, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_closed_limiter_makes_nobody_wait(void **state) {
    (void)state;
    struct weir *w = create_empty(hourly);
    weir_close(w);
    weir_close(w);
    const uint64_t zero = zero_of(w);
    assert_int_equal(wait_now(w, 1, WEIR_FOREVER, WEIR_ECLOSED).granted_tokens, 0);
    (void)wait_now(w, 0, 0, WEIR_ECLOSED);
    assert_true(zero_of(w) == zero);
    assert_int_equal(weir_take(w, weir_str("b"), 1, NULL), WEIR_GRANTED); // other calls go on
    weir_destroy(w);
}

static void close_wakes_all_who_sleep_and_gives_their_tokens_back(void **state) {
    (void)state;
    struct weir *w = create_empty(hourly);
    const uint64_t zero = zero_of(w);
    struct waiter waiters[20];
    for (int i = 0; i < 20; i++) waiter_start(&waiters[i], w, 2, WEIR_FOREVER);
    await_debt(w, 40);
    weir_close(w);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(waiter_join(&waiters[i]), WEIR_ECLOSED);
        assert_int_equal(waiters[i].answer.granted_tokens, 0);
    }
    assert_true(zero_of(w) == zero);
    weir_destroy(w);
}

static void close_wakes_those_who_wait_for_a_limit_that_lets_nothing_pass(void **state) {
    (void)state;
    static const struct weir_limit stopped[] = {{0, WEIR_SECOND, 10}, {5, WEIR_SECOND, 0}};
    for (int i = 0; i < 2; i++) {
        struct weir *w = create_empty(hourly);
        struct waiter waiter;
        set_limit(w, stopped[i]);
        waiter_start(&waiter, w, 1, WEIR_FOREVER);
        for (int turn = 0; turn < 100; turn++) {
            sched_yield();
            assert_false(waiter_is_done(&waiter));
        }
        weir_close(w);
        assert_int_equal(waiter_join(&waiter), WEIR_ECLOSED);
        weir_destroy(w);
    }
}

static void a_faster_limit_wakes(void **state) {
    (void)state;
    struct weir *w = create_empty(hourly);
    struct waiter waiter;
    waiter_start(&waiter, w, 3, WEIR_FOREVER);
    await_debt(w, 3);
    set_limit(w, per_second(1000, 10));
    assert_int_equal(waiter_join(&waiter), WEIR_GRANTED);
    assert_int_equal(waiter.answer.granted_tokens, 3);
    assert_true((int64_t)(waiter.v_after - zero_of(w)) >= 0);
    weir_destroy(w);
}

static void no_limit_at_all_lets_the_sleepers_pass(void **state) {
    (void)state;
    struct weir_options options = own_clock(hourly);
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), 10, NULL), WEIR_GRANTED);
    struct waiter waiter;
    waiter_start(&waiter, w, 3, WEIR_FOREVER);
    await_debt(w, 3);
    set_limit(w, weir_unlimited());
    assert_int_equal(waiter_join(&waiter), WEIR_GRANTED);
    assert_true(wait_now(w, 1000000, 0, WEIR_GRANTED).untracked);
    weir_destroy(w);
}

static void at_limit_0_and_at_burst_0_it_sleeps_until_the_limit_changes(void **state) {
    (void)state;
    static const struct weir_limit stopped[] = {{0, WEIR_SECOND, 10}, {5, WEIR_SECOND, 0}};
    for (int i = 0; i < 2; i++) {
        struct weir *w = create_empty(hourly);
        struct waiter waiter;
        set_limit(w, stopped[i]);
        waiter_start(&waiter, w, 1, WEIR_FOREVER);
        for (int turn = 0; turn < 100; turn++) {
            sched_yield();
            assert_false(waiter_is_done(&waiter));
        }
        set_limit(w, stopped[1 - i]); // another limit that lets nothing pass
        sched_yield();
        assert_false(waiter_is_done(&waiter));
        set_limit(w, per_second(1000, 10));
        assert_int_equal(waiter_join(&waiter), WEIR_GRANTED);
        weir_destroy(w);
    }
}

static void at_limit_0_and_at_burst_0_the_timeout_comes_and_nothing_is_taken(void **state) {
    (void)state;
    static const struct weir_limit stopped[] = {{0, WEIR_SECOND, 10}, {5, WEIR_SECOND, 0}};
    for (int i = 0; i < 2; i++) {
        struct weir *w = create_empty(hourly);
        set_limit(w, stopped[i]);
        const uint64_t zero = zero_of(w), start_ns = monotonic_ns();
        const struct weir_answer answer = wait_now(w, 1, 3 * WEIR_MILLISECOND, WEIR_DENIED);
        assert_true(monotonic_ns() - start_ns >= 3 * WEIR_MILLISECOND);
        assert_true(answer.retry_after_ns == WEIR_FOREVER);
        assert_int_equal(answer.granted_tokens, 0);
        assert_true(zero_of(w) == zero);
        weir_destroy(w);
    }
}

// It reserves within the timeout, then the limit becomes slower: the timeout comes first, and the
// place is free again. Where this thread was held up for longer than the waiter slept, once more.
static void a_waiter_whose_timeout_comes_frees_its_place(void **state) {
    (void)state;
    for (int attempt = 0; attempt < 20; attempt++) {
        struct weir *w = create_empty(per_second(4, 1));
        const uint64_t zero = zero_of(w);
        struct waiter waiter;
        waiter_start(&waiter, w, 1, 260 * WEIR_MILLISECOND);
        while (zero_of(w) == zero && !waiter_is_done(&waiter)) sched_yield();
        set_limit(w, (struct weir_limit){1, WEIR_HOUR, 1});
        const int result = waiter_join(&waiter);
        const bool freed = zero_of(w) == zero;
        weir_destroy(w);
        if (result == WEIR_GRANTED) continue;
        assert_int_equal(result, WEIR_DENIED);
        assert_true(freed);
        assert_int_equal(waiter.answer.granted_tokens, 0);
        return;
    }
    fail_msg("the waiter was never overtaken by its timeout");
}

static void ignore(int number) {
    (void)number;
}

static void signals_do_not_make_it_return_early(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = ignore}, before; // without SA_RESTART
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    struct weir *w = create_empty(per_second(50, 1));
    const uint64_t zero = zero_of(w);
    struct waiter waiter;
    waiter_start(&waiter, w, 1, WEIR_FOREVER);
    while (!waiter_is_done(&waiter)) {
        pthread_kill(waiter.thread, SIGUSR1);
        sched_yield();
    }
    assert_int_equal(waiter_join(&waiter), WEIR_GRANTED);
    assert_true(zero_of(w) == zero + w->scale.unit_tokens);
    assert_true((int64_t)(waiter.v_after - zero_of(w)) >= 0);
    weir_destroy(w);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void signals_do_not_end_a_wait_at_limit_0(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = ignore}, before;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    struct weir *w = create_empty(hourly);
    set_limit(w, (struct weir_limit){0, WEIR_SECOND, 10});
    struct waiter waiter;
    waiter_start(&waiter, w, 1, WEIR_FOREVER);
    for (int i = 0; i < 500; i++) {
        pthread_kill(waiter.thread, SIGUSR1);
        sched_yield();
        assert_false(waiter_is_done(&waiter));
    }
    weir_close(w);
    assert_int_equal(waiter_join(&waiter), WEIR_ECLOSED);
    weir_destroy(w);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void a_dry_run_makes_nobody_wait(void **state) {
    (void)state;
    struct weir_options options = own_clock(hourly);
    options.dry_run = true;
    struct weir *w = create(&options);
    assert_false(wait_now(w, 10, 0, WEIR_GRANTED).would_deny);
    const uint64_t zero = zero_of(w);
    for (int i = 0; i < 3; i++) {
        const struct weir_answer answer = wait_now(w, 1, WEIR_FOREVER, WEIR_GRANTED);
        assert_true(answer.would_deny);
        assert_int_equal(answer.retry_after_ns, 0);
    }
    assert_true(wait_now(w, 11, WEIR_FOREVER, WEIR_GRANTED).would_deny);
    assert_true(zero_of(w) == zero);
    weir_destroy(w);
}

static void what_cannot_be_waited_for_is_refused(void **state) {
    (void)state;
    struct weir *at = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(weir_wait(at, weir_str("a"), 1, 0, NULL), WEIR_ECLOCK);
    weir_destroy(at);
    struct weir *w = create_empty(hourly);
    struct weir_ask ask = WEIR_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    ask.key = weir_str("a");
    for (int kind = WEIR_TAKE_SOME; kind <= WEIR_RESET; kind++) {
        ask.kind = (enum weir_kind)kind;
        assert_int_equal(weir_do_wait(w, &ask, WEIR_FOREVER, NULL), WEIR_EINVAL);
    }
    ask.kind = WEIR_TAKE;
    answer.size = 3;
    assert_int_equal(weir_do_wait(w, &ask, WEIR_FOREVER, &answer), WEIR_ESIZE);
    ask.size = 3;
    assert_int_equal(weir_do_wait(w, &ask, WEIR_FOREVER, NULL), WEIR_ESIZE);
    weir_destroy(w);
}

static void a_weight_counts_in_a_wait_too(void **state) {
    (void)state;
    const struct weir_options options = own_clock(per_second(1000, 10));
    struct weir *w = create(&options);
    struct weir_ask ask = WEIR_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    ask.key = weir_str("a");
    ask.weight = (struct weir_weight){2, 1};
    ask.cost = 20;
    assert_int_equal(weir_do_wait(w, &ask, 0, NULL), WEIR_GRANTED);
    const uint64_t zero = zero_of(w);
    ask.cost = 10;
    assert_int_equal(weir_do_wait(w, &ask, WEIR_FOREVER, &answer), WEIR_GRANTED);
    assert_true(zero_of(w) == zero + 5 * w->scale.unit_tokens);
    assert_true((int64_t)(v_of(w) - zero_of(w)) >= 0);
    ask.cost = 21;
    assert_int_equal(weir_do_wait(w, &ask, WEIR_FOREVER, &answer), WEIR_NEVER);
    weir_destroy(w);
}

// They queue one after the other, then the limit becomes fast: none returns before its place.
static void in_the_order_of_arrival(void **state) {
    (void)state;
    enum { waiting = 25 };
    struct weir *w = create_empty((struct weir_limit){1, WEIR_HOUR, 1});
    const uint64_t zero = zero_of(w), unit = w->scale.unit_tokens;
    struct waiter waiters[waiting];
    for (uint64_t i = 0; i < waiting; i++) {
        waiter_start(&waiters[i], w, 1, WEIR_FOREVER);
        await_debt(w, i + 1);
    }
    set_limit(w, per_second(1000, 1));
    for (uint64_t i = 0; i < waiting; i++) {
        assert_int_equal(waiter_join(&waiters[i]), WEIR_GRANTED);
        assert_true((int64_t)(waiters[i].v_after - zero - (i + 1) * unit) >= 0);
    }
    assert_true(zero_of(w) == zero + waiting * unit);
    weir_destroy(w);
}

static void a_hundred_who_come_at_once_are_all_served(void **state) {
    (void)state;
    enum { waiting = 100 };
    struct weir *w = create_empty((struct weir_limit){300 * 200, WEIR_MINUTE, 1});
    const uint64_t zero = zero_of(w);
    struct waiter waiters[waiting];
    for (int i = 0; i < waiting; i++) waiter_start(&waiters[i], w, 1, WEIR_FOREVER);
    for (int i = 0; i < waiting; i++)
        assert_int_equal(waiter_join(&waiters[i]), WEIR_GRANTED);
    // Starting them may have taken longer than filling the bucket of one token.
    assert_true((int64_t)(zero_of(w) - zero - waiting * w->scale.unit_tokens) >= 0);
    assert_true((int64_t)(v_of(w) - zero_of(w)) >= 0);
    weir_destroy(w);
}

// "Waiters for more than max_ahead tokens queue behind those."
static void those_beyond_max_ahead_are_served_too(void **state) {
    (void)state;
    enum { waiting = 40 };
    struct weir_options options = own_clock(per_second(1000, 1));
    options.max_ahead_tokens = 3;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), 1, NULL), WEIR_GRANTED);
    struct waiter waiters[waiting];
    for (int i = 0; i < waiting; i++) waiter_start(&waiters[i], w, 1, WEIR_FOREVER);
    for (int i = 0; i < waiting; i++)
        assert_int_equal(waiter_join(&waiters[i]), WEIR_GRANTED);
    assert_int_equal(stats_of(w).tokens, waiting + 1);
    assert_true((int64_t)(v_of(w) - zero_of(w)) >= 0);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grants_at_once_what_there_is),
        cmocka_unit_test(sleeps_until_its_tokens_are_there_and_not_less),
        cmocka_unit_test(what_is_due_after_the_timeout_is_refused_at_once_and_takes_nothing),
        cmocka_unit_test(a_full_queue_does_not_make_it_wait_for_what_comes_too_late),
        cmocka_unit_test(above_the_burst_is_never_at_once_with_the_state_untouched),
        cmocka_unit_test(a_closed_limiter_makes_nobody_wait),
        cmocka_unit_test(close_wakes_all_who_sleep_and_gives_their_tokens_back),
        cmocka_unit_test(close_wakes_those_who_wait_for_a_limit_that_lets_nothing_pass),
        cmocka_unit_test(a_faster_limit_wakes),
        cmocka_unit_test(no_limit_at_all_lets_the_sleepers_pass),
        cmocka_unit_test(at_limit_0_and_at_burst_0_it_sleeps_until_the_limit_changes),
        cmocka_unit_test(at_limit_0_and_at_burst_0_the_timeout_comes_and_nothing_is_taken),
        cmocka_unit_test(a_waiter_whose_timeout_comes_frees_its_place),
        cmocka_unit_test(signals_do_not_make_it_return_early),
        cmocka_unit_test(signals_do_not_end_a_wait_at_limit_0),
        cmocka_unit_test(a_dry_run_makes_nobody_wait),
        cmocka_unit_test(what_cannot_be_waited_for_is_refused),
        cmocka_unit_test(a_weight_counts_in_a_wait_too),
        cmocka_unit_test(in_the_order_of_arrival),
        cmocka_unit_test(a_hundred_who_come_at_once_are_all_served),
        cmocka_unit_test(those_beyond_max_ahead_are_served_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
