// A forked child goes on with its own copy of the buckets, whatever the parent's threads were
// doing.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static struct weir *create_own(enum weir_clock clock) {
    struct weir_options options = options_at(1, 365 * WEIR_DAY, 10);
    options.clock = clock;
    return create(&options);
}

// Runs `child` in a child; its answer is the exit status. A child that hangs is ended by the alarm.
static int status_of(int (*child)(struct weir *), struct weir *w) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20);
        _exit(child(w));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int take_the_seven_left(struct weir *w) {
    for (int i = 0; i < 7; i++)
        if (weir_take(w, weir_str("a"), 1, NULL) != WEIR_GRANTED) return 1;
    if (weir_take(w, weir_str("a"), 1, NULL) != WEIR_DENIED) return 2;
    if (weir_take(w, weir_str("only in the child"), 10, NULL) != WEIR_GRANTED) return 3;
    const struct weir_limit limit = {1, 365 * WEIR_DAY, 5};
    if (weir_set_limit(w, &limit, NULL) != WEIR_GRANTED) return 4;
    if (weir_take(w, weir_str("b"), 6, NULL) != WEIR_NEVER) return 5;
    struct weir_stats stats;
    if (weir_stats(w, &stats, sizeof stats) != WEIR_GRANTED || stats.granted != 1 + 7 + 1) return 6;
    weir_destroy(w);
    return 0;
}

static void the_child_goes_on_from_the_parents_level_and_leaves_it_alone(void **state) {
    (void)state;
    static const enum weir_clock clocks[] = {WEIR_CLOCK_AUTO, WEIR_CLOCK_MONOTONIC};
    for (size_t i = 0; i < 2; i++) {
        struct weir *w = create_own(clocks[i]);
        assert_int_equal(weir_take(w, weir_str("a"), 3, NULL), WEIR_GRANTED);
        assert_int_equal(status_of(take_the_seven_left, w), 0);
        assert_int_equal(weir_take(w, weir_str("a"), 7, NULL), WEIR_GRANTED);
        assert_int_equal(weir_take(w, weir_str("only in the child"), 10, NULL), WEIR_GRANTED);
        assert_int_equal(weir_take(w, weir_str("b"), 6, NULL), WEIR_GRANTED);
        weir_destroy(w);
    }
}

static _Atomic bool stop;

static void *keep_asking(void *limiter) {
    struct random random = {(uint64_t)(uintptr_t)&random};
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        (void)weir_take(limiter, weir_id(random_below(&random, 5000)), 1, NULL);
        const struct weir_limit limit = {1, 365 * WEIR_DAY, 10 + random_below(&random, 5)};
        if (random_below(&random, 50) == 0) (void)!weir_set_limit(limiter, &limit, NULL);
    }
    return NULL;
}

// Fresh keys in a table that is all in use, a change of limit, and the clock due to be drawn again.
static int everything_still_works(struct weir *w) {
    uint64_t granted = 0;
    for (uint64_t id = 0; id < 2000; id++)
        granted += weir_take(w, weir_id(1000000 + id), 1, NULL) == WEIR_GRANTED;
    if (granted != 2000) return 1;
    const struct weir_limit limit = {1, 365 * WEIR_DAY, 1};
    if (weir_set_limit(w, &limit, NULL) != WEIR_GRANTED) return 2;
    if (weir_take(w, weir_str("a"), 2, NULL) != WEIR_NEVER) return 3;
    struct weir_options options = options_at(1, WEIR_DAY, 3);
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *another = NULL;
    if (weir_create(&another, &options, NULL) != WEIR_GRANTED) return 4;
    if (weir_take(another, weir_str("a"), 3, NULL) != WEIR_GRANTED) return 5;
    if (weir_take(another, weir_str("a"), 1, NULL) != WEIR_DENIED) return 6;
    weir_destroy(another);
    weir_destroy(w);
    return 0;
}

static void a_child_forked_while_threads_decide_neither_hangs_nor_fails(void **state) {
    (void)state;
    struct weir *w = create_own(WEIR_CLOCK_AUTO);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_asking, w), 0);
    for (int i = 0; i < 40; i++) assert_int_equal(status_of(everything_still_works, w), 0);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    weir_destroy(w);
}

// The parent's drawing thread is not in the child: its try-lock must be open again there.
static int draw_lock_is_open(struct weir *w) {
    (void)w;
    return wr_counter_begin_draw(&wr_process_counter) ? 0 : 1;
}

static void a_clock_being_drawn_at_the_fork_is_drawn_on_in_the_child(void **state) {
    (void)state;
    if (!wr_clock_init()) skip();
    assert_true(wr_counter_begin_draw(&wr_process_counter));
    const int status = status_of(draw_lock_is_open, NULL);
    wr_counter_end_draw(&wr_process_counter);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_goes_on_from_the_parents_level_and_leaves_it_alone),
        cmocka_unit_test(a_child_forked_while_threads_decide_neither_hangs_nor_fails),
        cmocka_unit_test(a_clock_being_drawn_at_the_fork_is_drawn_on_in_the_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
