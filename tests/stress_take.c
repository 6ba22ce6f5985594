// Conservation under threads on the limiter's own clock: what was granted equals, to the token,
// what the buckets lost, and the counters equal what the threads counted themselves.
//
// WEIR_STRESS_SECONDS prolongs it. The number of asks is given by time, nothing that is asserted
// is.
#include <pthread.h>
#include <string.h>

#include "support.h"

#define THREADS 4
#define HOT 3

struct tally {
    uint64_t granted, denied, never, tokens, refunded, charged;
};

struct worker {
    struct weir *w;
    struct random random;
    uint64_t until_ns;
    bool all_kinds;
    uint64_t hot; // keys
    struct tally tally;
    uint64_t net[HOT]; // tokens debited from each hot key
    uint64_t surprises; // results that there should not be
};

static void count_take(struct worker *t, int result, const struct weir_answer *a, uint64_t key) {
    if (result == WEIR_GRANTED) {
        t->tally.granted++;
        t->tally.tokens += a->granted_tokens;
        t->net[key] += a->granted_tokens;
    } else if (result == WEIR_DENIED) {
        t->tally.denied++;
    } else if (result == WEIR_NEVER) {
        t->tally.never++;
    } else {
        t->surprises++;
    }
}

static void take_without_answer(struct worker *t, uint64_t key) {
    const int result = weir_take(t->w, weir_id(key), 1, NULL);
    const struct weir_answer one = {.granted_tokens = 1};
    count_take(t, result, &one, key);
}

// A charge, while the key is not far in debt, and the refund of what was charged.
static void charge_and_refund(struct worker *t, uint64_t key) {
    struct weir_answer a = WEIR_ANSWER_INIT;
    t->surprises += weir_peek(t->w, weir_id(key), 0, &a) < 0;
    if (a.debt > 0) return;
    const uint64_t cost = 1 + random_below(&t->random, 5);
    t->surprises += weir_charge(t->w, weir_id(key), cost, &a) != WEIR_GRANTED;
    t->surprises += a.granted_tokens != cost; // never as far as max_debt
    t->tally.charged += cost;
    t->net[key] += cost;
    if (random_below(&t->random, 2) == 0) return;
    t->surprises += weir_refund(t->w, weir_id(key), cost, &a) != WEIR_GRANTED;
    t->tally.refunded += a.granted_tokens;
    t->net[key] -= a.granted_tokens;
}

static void reserve_and_cancel(struct worker *t, uint64_t key) {
    struct weir_answer a = WEIR_ANSWER_INIT;
    const uint64_t cost = 1 + random_below(&t->random, 5);
    const int result = weir_reserve(t->w, weir_id(key), cost, WEIR_MILLISECOND, &a);
    count_take(t, result, &a, key);
    if (result != WEIR_GRANTED || random_below(&t->random, 2) == 0) return;
    t->surprises += weir_cancel(t->w, weir_id(key), cost, &a) != WEIR_GRANTED;
    t->tally.refunded += a.granted_tokens;
    t->net[key] -= a.granted_tokens;
}

static void ask_once(struct worker *t) {
    struct weir_answer a = WEIR_ANSWER_INIT;
    const uint64_t key = random_below(&t->random, t->hot);
    const uint64_t cost = random_below(&t->random, 4);
    switch (random_below(&t->random, t->all_kinds ? 6 : 4)) {
    case 0:
    case 1: take_without_answer(t, key); break;
    case 2: count_take(t, weir_take(t->w, weir_id(key), cost, &a), &a, key); break;
    case 3: count_take(t, weir_take_some(t->w, weir_id(key), 1 + cost, &a), &a, key); break;
    case 4: charge_and_refund(t, key); break;
    default: reserve_and_cancel(t, key);
    }
}

static void *work(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) ask_once(t);
    return NULL;
}

static uint64_t v_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true).v;
}

static struct tally run(struct worker *workers, struct weir *w, uint64_t hot, bool all_kinds,
                        double seconds) {
    pthread_t threads[THREADS];
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(seconds * 1e9);
    struct tally sum = {0};
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.w = w, .random = {i + 1}, .until_ns = until_ns,
                                     .all_kinds = all_kinds, .hot = hot};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].surprises, 0);
        sum.granted += workers[i].tally.granted;
        sum.denied += workers[i].tally.denied;
        sum.never += workers[i].tally.never;
        sum.tokens += workers[i].tally.tokens;
        sum.refunded += workers[i].tally.refunded;
        sum.charged += workers[i].tally.charged;
    }
    return sum;
}

// 200,000 a second, a burst that does not fill in the time there is.
static struct weir *create_hot(enum weir_clock clock) {
    struct weir_options options = options_at(200000, WEIR_SECOND, 200000000);
    options.clock = clock;
    options.capacity_keys = 1000;
    return create(&options);
}

// Empties the hot keys, so that from here on no level is at the burst.
static void drain(struct weir *w, struct wr_pair *slots) {
    for (uint64_t key = 0; key < HOT; key++) {
        assert_int_equal(weir_take(w, weir_id(key), 200000000, NULL), WEIR_GRANTED);
        assert_int_equal(live_ways(w, weir_id(key), &slots[key]), 1);
    }
}

static void check_counters(struct weir *w, const struct tally *sum) {
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.granted, sum->granted + HOT); // and those of drain
    assert_int_equal(s.denied, sum->denied);
    assert_int_equal(s.never, sum->never);
    assert_int_equal(s.tokens, sum->tokens + sum->charged + HOT * UINT64_C(200000000));
    assert_int_equal(s.refunded_tokens, sum->refunded);
    assert_int_equal(s.clipped_tokens + s.displaced + s.no_room + s.relics + s.untracked, 0);
    assert_int_equal(s.inserted, HOT);
}

static void buckets_lose_exactly_what_is_granted(enum weir_clock clock, bool all_kinds) {
    struct weir *w = create_hot(clock);
    struct wr_pair before[HOT], after[HOT];
    struct worker workers[THREADS];
    drain(w, before);
    const uint64_t unit = w->scale.unit_tokens;
    const struct tally sum = run(workers, w, HOT, all_kinds, stress_seconds(0.7));
    const uint64_t v = v_of(w);
    for (uint64_t key = 0; key < HOT; key++) {
        uint64_t net = 0;
        for (int i = 0; i < THREADS; i++) net += workers[i].net[key];
        assert_int_equal(live_ways(w, weir_id(key), &after[key]), 1);
        // To the unit: `zero` moved by what was debited, and by nothing else.
        assert_true(after[key].word - before[key].word == net * unit);
        // Takes alone never go below zero.
        if (!all_kinds) assert_true((int64_t)(v - after[key].word) >= 0);
    }
    check_counters(w, &sum);
    assert_true(sum.granted > 0 && sum.denied > 0);
    weir_destroy(w);
}

static void takes_conserve_tokens_on_the_counter(void **state) {
    (void)state;
    buckets_lose_exactly_what_is_granted(WEIR_CLOCK_AUTO, false);
}

static void takes_conserve_tokens_on_the_monotonic_clock(void **state) {
    (void)state;
    buckets_lose_exactly_what_is_granted(WEIR_CLOCK_MONOTONIC, false);
}

static void all_kinds_conserve_tokens(void **state) {
    (void)state;
    buckets_lose_exactly_what_is_granted(WEIR_CLOCK_AUTO, true);
}

// From a key that has just been emptied to one that has just been denied: rate * elapsed, by the
// limiter's clock, to less than a token. The bucket's own word tells the reading of the first
// grant.
#define BURST 20000000 // does not fill in the time there is

static void at_saturation_the_bound_is_reached_to_the_token(void **state) {
    (void)state;
    struct weir_options options = options_at(200000, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    struct worker workers[THREADS];
    struct wr_pair slot;
    const uint64_t unit = w->scale.unit_tokens, before = v_of(w);
    assert_int_equal(weir_take(w, weir_id(0), BURST, NULL), WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_id(0), &slot), 1);
    const uint64_t first = slot.word; // V when it was taken
    assert_true(first >= before && first <= v_of(w));
    struct tally sum = run(workers, w, 1, false, stress_seconds(0.5));
    while (weir_take(w, weir_id(0), 1, NULL) == WEIR_GRANTED) sum.tokens++;
    const uint64_t end = v_of(w);
    assert_int_equal(live_ways(w, weir_id(0), &slot), 1);
    assert_true(sum.tokens * unit <= end - first);
    assert_true((int64_t)(end - slot.word) >= 0);
    assert_true(slot.word - first == sum.tokens * unit);
    weir_destroy(w);
}

#define COLD 300000

static void *work_cold(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) {
            const uint64_t key = random_below(&t->random, COLD);
            const int result = weir_take(t->w, weir_id(key), 1, NULL);
            t->tally.granted += result == WEIR_GRANTED;
            t->tally.denied += result == WEIR_DENIED;
            t->surprises += result != WEIR_GRANTED && result != WEIR_DENIED;
        }
    return NULL;
}

static bool add_level(const struct weir_slot *slot, void *context) {
    uint64_t *missing = context;
    *missing += (uint64_t)(5 - slot->level_tokens);
    return true;
}

// Nothing comes back, so all that was granted is missing from a bucket, or was forgiven.
static void many_cold_keys_conserve_tokens(void **state) {
    (void)state;
    struct weir_options options = options_at(0, WEIR_SECOND, 5);
    options.max_rate_tokens = options.max_rate_period_ns = 1;
    options.clock = WEIR_CLOCK_AUTO;
    options.capacity_keys = 50000;
    options.shards = 3;
    struct weir *w = create(&options);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(0.7) * 1e9);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.w = w, .random = {i + 77}, .until_ns = until_ns};
        assert_int_equal(pthread_create(&threads[i], NULL, work_cold, &workers[i]), 0);
    }
    uint64_t granted = 0, denied = 0, missing = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].surprises, 0);
        granted += workers[i].tally.granted;
        denied += workers[i].tally.denied;
    }
    (void)weir_each(w, add_level, &missing);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(granted, missing + s.forgiven_tokens);
    assert_int_equal(s.granted, granted);
    assert_int_equal(s.denied, denied);
    weir_destroy(w);
}

// Limiters come and go while others work.
static void *make_and_free(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns) {
        struct weir_options options = options_at(1, WEIR_DAY, 7);
        options.clock = WEIR_CLOCK_AUTO;
        struct weir *w = NULL;
        if (weir_create(&w, &options, NULL) != WEIR_GRANTED) t->surprises++;
        for (int i = 0; i < 10; i++) t->tally.granted += weir_take(w, weir_id(1), 1, NULL) == 0;
        t->tally.tokens += 7;
        weir_destroy(w);
    }
    return NULL;
}

static void limiters_may_be_made_and_freed_meanwhile(void **state) {
    (void)state;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(0.3) * 1e9);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.until_ns = until_ns};
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].surprises, 0);
        assert_int_equal(workers[i].tally.granted, workers[i].tally.tokens);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_conserve_tokens_on_the_counter),
        cmocka_unit_test(takes_conserve_tokens_on_the_monotonic_clock),
        cmocka_unit_test(all_kinds_conserve_tokens),
        cmocka_unit_test(at_saturation_the_bound_is_reached_to_the_token),
        cmocka_unit_test(many_cold_keys_conserve_tokens),
        cmocka_unit_test(limiters_may_be_made_and_freed_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
