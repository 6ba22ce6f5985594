// Lines of counters: claimed by a thread's first decision, given back at its end, and run out.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define MANY 200
#define TAKES 5000

static struct weir *limiter;
static pthread_barrier_t claimed, leave;
static uint32_t line_of[MANY];

static void *claim_and_stay(void *at) {
    uint32_t *line = at;
    (void)take_at(limiter, "a", 1, 0);
    *line = wr_thread_line();
    pthread_barrier_wait(&claimed);
    pthread_barrier_wait(&leave);
    for (int i = 0; i < TAKES; i++) (void)take_at(limiter, "a", 1, 0);
    return NULL;
}

static void *claim(void *at) {
    *(uint32_t *)at = wr_thread_line();
    return NULL;
}

static void start_many(pthread_t *threads, unsigned count) {
    pthread_barrier_init(&claimed, NULL, count + 1);
    pthread_barrier_init(&leave, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_and_stay, &line_of[i]), 0);
    pthread_barrier_wait(&claimed);
}

static void join_many(pthread_t *threads, unsigned count) {
    pthread_barrier_wait(&leave);
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&claimed);
    pthread_barrier_destroy(&leave);
}

static void each_living_thread_has_a_line_of_its_own(void **state) {
    (void)state;
    pthread_t threads[50];
    const uint32_t mine = wr_thread_line();
    start_many(threads, 50);
    bool taken[WR_THREAD_OWN] = {false};
    taken[mine] = true;
    for (int i = 0; i < 50; i++) {
        assert_true(line_of[i] < WR_THREAD_OWN);
        assert_false(taken[line_of[i]]);
        taken[line_of[i]] = true;
    }
    join_many(threads, 50);
    assert_int_equal(wr_thread_line(), mine);
}

static void a_line_is_given_back_when_its_thread_ends(void **state) {
    (void)state;
    uint32_t first = 0, next = 0;
    pthread_t thread;
    for (int i = 0; i < 1000; i++) { // many more than there are lines
        assert_int_equal(pthread_create(&thread, NULL, claim, i == 0 ? &first : &next), 0);
        pthread_join(thread, NULL);
        if (i > 0) assert_int_equal(next, first);
    }
    assert_true(first < WR_THREAD_OWN);
}

static void when_lines_run_out_threads_share_and_nothing_is_lost(void **state) {
    (void)state;
    const struct weir_stats before = stats_of(limiter);
    pthread_t threads[MANY];
    start_many(threads, MANY);
    unsigned own = 0, shared = 0;
    for (int i = 0; i < MANY; i++) {
        assert_true(line_of[i] < WR_THREAD_LINES);
        if (line_of[i] < WR_THREAD_OWN) own++;
        else shared++;
    }
    assert_int_equal(own, WR_THREAD_OWN - 1); // one is this thread's
    assert_int_equal(shared, MANY - own);
    join_many(threads, MANY);
    const struct weir_stats after = stats_of(limiter);
    assert_int_equal(after.granted + after.denied - before.granted - before.denied,
                     MANY * (TAKES + 1));
    // All of them are free again.
    uint32_t line = 0;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, claim, &line), 0);
    pthread_join(thread, NULL);
    assert_true(line < WR_THREAD_OWN);
}

static bool child_says_yes(bool (*ask)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(ask() ? 0 : 1);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint32_t line_before_fork;

static bool still_on_my_line_and_others_free(void) {
    if (wr_thread_line() != line_before_fork) return false;
    // The parent's other threads are not here: their lines are free.
    uint32_t lines[WR_THREAD_OWN - 1];
    pthread_t threads[WR_THREAD_OWN - 1];
    pthread_barrier_init(&claimed, NULL, WR_THREAD_OWN);
    pthread_barrier_init(&leave, NULL, WR_THREAD_OWN);
    for (int i = 0; i < WR_THREAD_OWN - 1; i++)
        if (pthread_create(&threads[i], NULL, claim_and_stay, &lines[i]) != 0) return false;
    pthread_barrier_wait(&claimed);
    pthread_barrier_wait(&leave);
    for (int i = 0; i < WR_THREAD_OWN - 1; i++) {
        pthread_join(threads[i], NULL);
        if (lines[i] >= WR_THREAD_OWN || lines[i] == line_before_fork) return false;
    }
    return true;
}

// ThreadSanitizer ends a child of a threaded process that starts threads.
#if defined(__SANITIZE_THREAD__)
#define CHILD_MAY_START_THREADS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_MAY_START_THREADS 0
#endif
#endif
#if !defined(CHILD_MAY_START_THREADS)
#define CHILD_MAY_START_THREADS 1
#endif

static void after_fork_the_child_has_its_line_and_the_others_are_free(void **state) {
    (void)state;
    if (!CHILD_MAY_START_THREADS) skip();
    pthread_t threads[30];
    line_before_fork = wr_thread_line();
    start_many(threads, 30);
    const bool yes = child_says_yes(still_on_my_line_and_others_free);
    join_many(threads, 30);
    assert_true(yes);
}

static int make_limiter(void **state) {
    (void)state;
    limiter = create_at(1, WEIR_SECOND, 5);
    return 0;
}

static int free_limiter(void **state) {
    (void)state;
    weir_destroy(limiter);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_living_thread_has_a_line_of_its_own),
        cmocka_unit_test(a_line_is_given_back_when_its_thread_ends),
        cmocka_unit_test(when_lines_run_out_threads_share_and_nothing_is_lost),
        cmocka_unit_test(after_fork_the_child_has_its_line_and_the_others_are_free),
    };
    return cmocka_run_group_tests(tests, make_limiter, free_limiter);
}
