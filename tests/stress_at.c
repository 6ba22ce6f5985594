// A caller's readings in no order, over drops: the bound holds over every window of them.
//
// Each thread asks at readings up to a few bursts' time back, so that a bucket is found idle at a
// late reading, dropped, and asked for again at an early one. Every grant is written down with its
// reading; afterwards, key by key, every window [a, b] of readings is judged:
//     granted in [a, b] <= burst + rate * (b - a) + 1 ns of the rate
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

#define THREADS 4
#define KEYS 24
#define BURST 20
#define TOKEN_NS 1000 // a token a microsecond
#define BACK_NS (5 * BURST * TOKEN_NS)
#define GRANTS 400000 // a thread a round

struct grant {
    int64_t at_ns;
    uint32_t key;
    uint32_t tokens;
};

struct worker {
    struct weir *w;
    struct random random;
    int64_t from_ns; // of the round
    size_t count;
    uint64_t asked, surprises;
    struct grant *grants;
};

// The keys asked for move on with time, so that one rests, is dropped, and is asked for once more
// by those who are behind.
static uint32_t key_about(struct worker *t, int64_t i) {
    const uint64_t when = (uint64_t)i + 20000 - random_below(&t->random, 20000);
    return (uint32_t)((when / 8000 * 4 + random_below(&t->random, 8)) % KEYS);
}

static void *work(void *at) {
    struct worker *t = at;
    t->count = 0;
    for (int64_t i = 0; i < 150000 && t->count < GRANTS; i++) {
        // The round's time goes on by 10 ns an ask; readings lie behind it.
        int64_t now = t->from_ns + 10 * i;
        if (random_below(&t->random, 3) != 0) now -= (int64_t)random_below(&t->random, BACK_NS);
        const uint32_t key = key_about(t, i);
        const uint32_t cost = 1 + (uint32_t)random_below(&t->random, BURST);
        const int result = weir_take_at(t->w, weir_id(key), cost, now, NULL);
        t->asked++;
        t->surprises += result < 0 || result == WEIR_NEVER;
        if (result == WEIR_GRANTED) t->grants[t->count++] = (struct grant){now, key, cost};
    }
    return NULL;
}

static int by_key_and_reading(const void *a, const void *b) {
    const struct grant *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

// The most by which any window of a key's grants is beyond the bound, in thousandths of a token.
static int64_t worst_excess(const struct grant *grants, size_t count) {
    int64_t worst = INT64_MIN, before = 0, best_start = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        // A window may start at this reading: what was granted before it does not count.
        best_start = wr_max_i64(best_start, grants[i].at_ns - before);
        before += (int64_t)grants[i].tokens * TOKEN_NS;
        worst = wr_max_i64(worst, before - grants[i].at_ns + best_start - BURST * TOKEN_NS);
    }
    return worst;
}

static void judge(struct grant *all, size_t count, uint64_t round) {
    qsort(all, count, sizeof *all, by_key_and_reading);
    for (size_t from = 0, to = 0; from < count; from = to) {
        while (to < count && all[to].key == all[from].key) to++;
        const int64_t excess = worst_excess(all + from, to - from);
        if (excess > 1)
            fail_msg("round %" PRIu64 ", key %" PRIu32 ": %" PRId64 " ns beyond the bound", round,
                     all[from].key, excess);
    }
}

static void the_bound_holds_over_every_window(uint64_t capacity, double seconds) {
    static struct worker workers[THREADS];
    struct grant *all = malloc(sizeof *all * THREADS * GRANTS);
    assert_non_null(all);
    struct weir_options options = options_at(1, TOKEN_NS, BURST);
    options.capacity_keys = capacity;
    options.shards = capacity == 8 ? 2 : 1;
    options.full_policy = WEIR_FULL_DENY; // displacing forgives, this does not
    struct weir *w = create(&options);
    (void)weir_take_at(w, weir_id(0), 0, 0, NULL);
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(seconds * 1e9);
    int64_t from_ns = BACK_NS;
    uint64_t granted = 0;
    for (uint64_t round = 0; round < 2 || monotonic_ns() < until_ns; round++) {
        pthread_t threads[THREADS];
        size_t count = 0;
        for (unsigned i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.w = w, .random = {round * THREADS + i},
                                         .from_ns = from_ns, .grants = all + i * GRANTS};
            assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(workers[i].surprises, 0);
            for (size_t g = 0; g < workers[i].count; g++) all[count++] = workers[i].grants[g];
        }
        granted += count;
        judge(all, count, round);
        from_ns += 10 * 150000 + 2 * BACK_NS; // no reading of one round is one of another
    }
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.granted, granted + 1); // and the first, of 0
    assert_int_equal(s.displaced + s.relics, 0);
    if (capacity < KEYS) assert_true(s.inserted > KEYS); // drops there were
    weir_destroy(w);
    free(all);
}

static void in_a_table_of_eight_places(void **state) {
    (void)state;
    the_bound_holds_over_every_window(1, stress_seconds(1));
}

static void in_a_table_of_two_shards(void **state) {
    (void)state;
    the_bound_holds_over_every_window(8, stress_seconds(1));
}

static void in_a_table_with_room(void **state) {
    (void)state;
    the_bound_holds_over_every_window(200, stress_seconds(0.5));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_table_of_eight_places),
        cmocka_unit_test(in_a_table_of_two_shards),
        cmocka_unit_test(in_a_table_with_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
