// Leases of one key on several threads, beside plain takers: at saturation what was spent reaches
// the bound and does not pass it, and what was debited is what was spent, to the token.
//
// WEIR_STRESS_SECONDS prolongs it. The number of asks is given by time, nothing asserted is.
#include <pthread.h>

#include "support.h"

#define LEASES 3
#define PLAIN 2
#define THREADS (LEASES + PLAIN)
#define BURST 20000000 // does not fill in the time there is

struct worker {
    struct weir *w;
    struct random random;
    uint64_t until_ns, spent, surprises;
    pthread_t thread;
};

static uint64_t v_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true).v;
}

static uint64_t zero_of(struct weir *w) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_str("hot"), &slot), 1);
    return slot.word;
}

static void note(struct worker *t, int result, uint64_t cost) {
    if (result == WEIR_GRANTED) t->spent += cost;
    else t->surprises += result != WEIR_DENIED;
}

static void *lease_tokens(void *at) {
    struct worker *t = at;
    struct weir_lease_options options = WEIR_LEASE_OPTIONS_INIT;
    options.chunk_max_tokens = 1 + random_below(&t->random, 64);
    options.age_max_ns = WEIR_MILLISECOND;
    while (monotonic_ns() < t->until_ns) {
        struct weir_lease lease;
        t->surprises += weir_lease_init(&lease, t->w, weir_str("hot"), &options) != WEIR_GRANTED;
        for (int i = 0; i < 5000; i++) {
            const uint64_t cost = 1 + random_below(&t->random, 3);
            note(t, weir_lease_take(&lease, cost, NULL), cost);
            if (random_below(&t->random, 100) == 0) weir_lease_tick(&lease);
        }
        weir_lease_fini(&lease);
    }
    return NULL;
}

static void *take_tokens(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) {
            const uint64_t cost = 1 + random_below(&t->random, 3);
            note(t, weir_take(t->w, weir_str("hot"), cost, NULL), cost);
        }
    return NULL;
}

static void *change_limits(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns) {
        const struct weir_limit limit = {100000 + random_below(&t->random, 100000), WEIR_SECOND,
                                         BURST};
        const int result = weir_set_limit(t->w, &limit, NULL);
        t->surprises += result != WEIR_GRANTED && result != WEIR_EBUSY;
    }
    return NULL;
}

static uint64_t run(struct weir *w, bool changing) {
    static struct worker workers[THREADS + 1];
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(0.7) * 1e9);
    const uint64_t threads = THREADS + changing;
    uint64_t spent = 0;
    for (uint64_t i = 0; i < threads; i++) {
        workers[i] = (struct worker){.w = w, .random = {i + 1}, .until_ns = until_ns};
        assert_int_equal(pthread_create(&workers[i].thread, NULL,
                                        i < LEASES    ? lease_tokens
                                        : i < THREADS ? take_tokens
                                                      : change_limits,
                                        &workers[i]),
                         0);
    }
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].surprises, 0);
        spent += workers[i].spent;
    }
    return spent;
}

// The bucket's own word tells the reading of the first grant, which empties it.
static void spends_the_bound_and_no_more(uint64_t tokens, bool changing) {
    struct weir_options options = options_at(tokens, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    options.max_rate_tokens = tokens;
    options.max_rate_period_ns = WEIR_SECOND;
    struct weir *w = create(&options);
    const uint64_t unit = w->scale.unit_tokens;
    assert_int_equal(weir_take(w, weir_str("hot"), BURST, NULL), WEIR_GRANTED);
    const uint64_t first = zero_of(w);
    uint64_t spent = run(w, changing);
    assert_true(zero_of(w) - first == spent * unit); // all that was not spent is back
    struct weir_answer rest = WEIR_ANSWER_INIT;
    if (weir_take_some(w, weir_str("hot"), BURST, &rest) == WEIR_GRANTED)
        spent += rest.granted_tokens;
    assert_int_equal(rest.remaining, 0); // all of the bound is spent
    const uint64_t end = v_of(w);
    assert_true(spent * unit <= end - first);
    assert_true(zero_of(w) - first == spent * unit);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.tokens - s.refunded_tokens, spent + BURST);
    assert_true(spent > 0);
    weir_destroy(w);
}

static void leases_and_takers_reach_the_bound_and_do_not_pass_it(void **state) {
    (void)state;
    spends_the_bound_and_no_more(200000, false);
}

static void so_at_a_rate_near_that_of_the_asks(void **state) {
    (void)state;
    spends_the_bound_and_no_more(3000000, false);
}

static void so_while_limits_change(void **state) {
    (void)state;
    spends_the_bound_and_no_more(200000, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_and_takers_reach_the_bound_and_do_not_pass_it),
        cmocka_unit_test(so_at_a_rate_near_that_of_the_asks),
        cmocka_unit_test(so_while_limits_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
