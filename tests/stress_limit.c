// The limit changed by several threads while others ask: nothing is minted, nothing is torn.
//
// Watchers read V and the effective burst e. For two readings of one thread, one after the other:
//     V does not fall; V rises by at most max_rate * elapsed; e rises by at most what V does
// and for a hot key, `zero` moves by at least what was granted and is never ahead of V.
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "support.h"

#define MAX_RATE UINT64_C(1000000)
#define MAX_BURST UINT64_C(1000)
#define TAKERS 2
#define WATCHERS 1

struct shared {
    struct weir *w;
    uint64_t until_ns;
    bool unlimited_too;
};

struct worker {
    struct shared *shared;
    struct random random;
    uint64_t count;   // changes made, or readings
    uint64_t busy;    // changes refused
    uint64_t granted; // tokens
    const char *wrong;
};

static struct wr_now now_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true);
}

static struct weir_limit any_limit(struct worker *t) {
    if (t->shared->unlimited_too && random_below(&t->random, 8) == 0) return weir_unlimited();
    // Fast and slow, large and small: two of a kind in a row are rare.
    struct weir_limit limit = {random_below(&t->random, 2) ? MAX_RATE : random_below(&t->random, 3),
                               WEIR_SECOND, random_below(&t->random, MAX_BURST + 1)};
    if (random_below(&t->random, 8) == 0) limit.burst = 0;
    return limit;
}

static void *change(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->shared->until_ns) {
        const struct weir_limit limit = any_limit(t);
        const int result = weir_set_limit(t->shared->w, &limit, NULL);
        t->count += result == WEIR_GRANTED;
        t->busy += result == WEIR_EBUSY;
        if (result != WEIR_GRANTED && result != WEIR_EBUSY) t->wrong = "a change was refused";
    }
    return NULL;
}

static void *take(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->shared->until_ns)
        for (int i = 0; i < 100; i++) {
            struct weir_answer a = WEIR_ANSWER_INIT;
            const uint64_t cost = 1 + random_below(&t->random, 3);
            const int result = weir_take(t->shared->w, weir_id(0), cost, &a);
            if (result < 0) t->wrong = "an ask failed";
            if (result == WEIR_GRANTED && !a.untracked) t->granted += a.granted_tokens;
        }
    return NULL;
}

static void *watch(void *at) {
    struct worker *t = at;
    struct weir *w = t->shared->w;
    uint64_t before_ns = monotonic_ns();
    struct wr_now last = now_of(w);
    while (before_ns < t->shared->until_ns) {
        const uint64_t started_ns = monotonic_ns();
        const struct wr_now now = now_of(w);
        const uint64_t ended_ns = monotonic_ns();
        const int64_t made = (int64_t)(now.v - last.v);
        const wr_u128 most = (wr_u128)(ended_ns - before_ns) * w->scale.max_per_ns;
        if (made < 0) t->wrong = "V fell";
        else if ((uint64_t)made > (uint64_t)(most >> w->scale.shift) + 1)
            t->wrong = "V rose by more than max_rate makes";
        if (now.ramp > now.burst && !now.unlimited)
            t->wrong = "the effective burst is above the burst";
        if (now.ramp - last.ramp > made) t->wrong = "the effective burst rose by more than V";
        t->count++;
        last = now;
        before_ns = started_ns;
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), struct worker *worker,
                  struct shared *shared, uint64_t seed) {
    *worker = (struct worker){.shared = shared, .random = {seed}};
    assert_int_equal(pthread_create(thread, NULL, run, worker), 0);
}

static void join(pthread_t *threads, struct worker *workers, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].wrong != NULL) fail_msg("%s", workers[i].wrong);
    }
}

static struct weir *create_for(enum weir_clock clock) {
    struct weir_options options = options_at(MAX_RATE, WEIR_SECOND, MAX_BURST);
    options.clock = clock;
    return create(&options);
}

static void nothing_is_minted(enum weir_clock clock, unsigned changers, bool unlimited_too,
                              double seconds) {
    struct shared shared = {create_for(clock), monotonic_ns() + (uint64_t)(seconds * 1e9),
                            unlimited_too};
    struct weir *w = shared.w;
    const struct wr_now first = now_of(w);
    pthread_t threads[64];
    static struct worker workers[64];
    const unsigned all = changers + TAKERS + WATCHERS;
    for (unsigned i = 0; i < all; i++)
        start(&threads[i], i < changers ? change : i < changers + TAKERS ? take : watch,
              &workers[i], &shared, i + 1);
    join(threads, workers, all);
    uint64_t changes = 0, granted = 0;
    for (unsigned i = 0; i < changers; i++) changes += workers[i].count;
    for (unsigned i = changers; i < changers + TAKERS; i++) granted += workers[i].granted;
    const struct wr_now last = now_of(w);
    const uint64_t unit = w->scale.unit_tokens;
    assert_true(granted * unit <= MAX_BURST * unit + (last.v - first.v)); // the bound
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_id(0), &slot), 1);
    assert_true((int64_t)(last.v - slot.word) >= 0);
    assert_true(slot.word - (first.v - MAX_BURST * unit) >= granted * unit);
    // Each change had a number of its own, and every entry was given back.
    assert_int_equal(atomic_load_explicit(&w->versions->current, memory_order_relaxed) >> 8,
                     1 + changes);
    assert_int_equal(atomic_load_explicit(&w->versions->claims, memory_order_relaxed), 0);
    assert_true(changes > 0);
    weir_destroy(w);
}

static void with_3_threads_changing_it(void **state) {
    (void)state;
    nothing_is_minted(WEIR_CLOCK_MONOTONIC, 3, false, stress_seconds(0.8));
}

static void with_limits_taken_away_and_put_back(void **state) {
    (void)state;
    nothing_is_minted(WEIR_CLOCK_MONOTONIC, 2, true, stress_seconds(0.6));
}

static void with_more_threads_changing_it_than_the_ring_has_places(void **state) {
    (void)state;
    nothing_is_minted(WEIR_CLOCK_MONOTONIC, 20, false, stress_seconds(0.6));
}

static void on_the_counter(void **state) {
    (void)state;
    // The counter's cores may differ by some ticks, and its line is slewed: V may step back a
    // little between threads, but to one that watches alone it does not.
    nothing_is_minted(WEIR_CLOCK_AUTO, 3, false, stress_seconds(0.6));
}

// Two limits in turn: whoever reads them reads one or the other, never a mixture.
static void *alternate(void *at) {
    struct worker *t = at;
    for (uint64_t i = 0; monotonic_ns() < t->shared->until_ns; i++) {
        const uint64_t n = 1 + i % 1000;
        const struct weir_limit limit = {n, n * WEIR_SECOND, n};
        if (weir_set_limit(t->shared->w, &limit, NULL) != WEIR_GRANTED) t->wrong = "refused";
    }
    return NULL;
}

static void *read_limit(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->shared->until_ns) {
        struct weir_limit limit;
        weir_get_limit(t->shared->w, &limit);
        if (limit.period_ns != limit.tokens * WEIR_SECOND || limit.burst != limit.tokens)
            t->wrong = "a mixture of two limits";
    }
    return NULL;
}

static void a_limit_is_read_whole(void **state) {
    (void)state;
    struct weir_options options = options_at(1, WEIR_SECOND, 1);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct shared shared = {create(&options),
                            monotonic_ns() + (uint64_t)(stress_seconds(0.5) * 1e9), false};
    pthread_t threads[3];
    struct worker workers[3];
    for (unsigned i = 0; i < 3; i++)
        start(&threads[i], i < 2 ? alternate : read_limit, &workers[i], &shared, i);
    join(threads, workers, 3);
    weir_destroy(shared.w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_3_threads_changing_it),
        cmocka_unit_test(with_limits_taken_away_and_put_back),
        cmocka_unit_test(with_more_threads_changing_it_than_the_ring_has_places),
        cmocka_unit_test(on_the_counter),
        cmocka_unit_test(a_limit_is_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
