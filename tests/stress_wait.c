// Waiters under changes of limit, timeouts and close: what they were granted equals, to the token,
// what the bucket lost, and none was granted before its tokens were there.
//
// WEIR_STRESS_SECONDS prolongs it. The number of waits is given by time, nothing asserted is.
#include "waiters.h"

#define WAITERS 200
#define BURST 200000000 // does not fill in the time there is

struct worker {
    struct weir *w;
    struct random random;
    uint64_t granted_tokens, timeouts, surprises;
    bool closed;
    pthread_t thread;
};

static const uint64_t rates[] = {0, 1000, 20000, 200000};

static struct weir *create_empty(uint64_t max_ahead_tokens, struct wr_pair *slot) {
    struct weir_options options = options_at(20000, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    options.max_rate_tokens = 200000;
    options.max_rate_period_ns = WEIR_SECOND;
    options.max_ahead_tokens = max_ahead_tokens;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), BURST, NULL), WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_str("a"), slot), 1);
    return w;
}

// Waits until the limiter is closed; a wait in three has a timeout.
static void *keep_waiting(void *at) {
    struct worker *t = at;
    while (!t->closed) {
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const uint64_t cost = 1 + random_below(&t->random, 3);
        const uint64_t timeout_ns = random_below(&t->random, 3) != 0
                                        ? WEIR_FOREVER
                                        : random_below(&t->random, 20 * WEIR_MILLISECOND);
        const int result = weir_wait(t->w, weir_str("a"), cost, timeout_ns, &answer);
        t->closed = result == WEIR_ECLOSED;
        if (result == WEIR_GRANTED) t->granted_tokens += answer.granted_tokens;
        else if (result == WEIR_DENIED) t->timeouts++;
        else if (!t->closed) t->surprises++;
        t->surprises += answer.granted_tokens != (result == WEIR_GRANTED ? cost : 0);
    }
    return NULL;
}

// Changes the limit once a millisecond, which another limiter tells; then closes.
static uint64_t change_and_close(struct weir *w, double seconds) {
    struct weir_options options = options_at(1000, WEIR_SECOND, 1);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *pace = create(&options);
    struct random random = {99};
    uint64_t surprises = 0;
    for (uint64_t i = 0; i < (uint64_t)(seconds * 1000); i++) {
        surprises += weir_wait(pace, weir_id(0), 1, WEIR_FOREVER, NULL) != WEIR_GRANTED;
        const struct weir_limit limit = {rates[random_below(&random, 4)], WEIR_SECOND, BURST};
        surprises += weir_set_limit(w, &limit, NULL) != WEIR_GRANTED;
    }
    weir_close(w);
    weir_destroy(pace);
    return surprises;
}

static void waits_conserve_tokens(uint64_t max_ahead_tokens) {
    static struct worker workers[WAITERS];
    struct wr_pair before, after;
    struct weir *w = create_empty(max_ahead_tokens, &before);
    for (uint64_t i = 0; i < WAITERS; i++) {
        workers[i] = (struct worker){.w = w, .random = {i + 1}};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, keep_waiting, &workers[i]), 0);
    }
    uint64_t surprises = change_and_close(w, stress_seconds(1)), granted = 0;
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(workers[i].thread, NULL);
        surprises += workers[i].surprises;
        granted += workers[i].granted_tokens;
    }
    const uint64_t v = v_of(w);
    assert_int_equal(surprises, 0);
    assert_int_equal(live_ways(w, weir_str("a"), &after), 1);
    assert_true(after.word - before.word == granted * w->scale.unit_tokens);
    assert_true((int64_t)(v - after.word) >= 0); // every grant was due
    assert_true(granted > WAITERS);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.tokens - s.refunded_tokens, granted + BURST);
    weir_destroy(w);
}

static void waiters_conserve_tokens_while_limits_change(void **state) {
    (void)state;
    waits_conserve_tokens(1000000);
}

static void a_queue_longer_than_max_ahead_conserves_tokens(void **state) {
    (void)state;
    waits_conserve_tokens(20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiters_conserve_tokens_while_limits_change),
        cmocka_unit_test(a_queue_longer_than_max_ahead_conserves_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
