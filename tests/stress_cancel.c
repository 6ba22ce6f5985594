// Reservations made and cancelled, charges and refunds, at random on several threads beside takes
// and changes of limit: what is held equals, to the token, what the buckets lost.
//
// WEIR_STRESS_SECONDS prolongs it. The number of asks is given by time, nothing asserted is.
#include <pthread.h>

#include "support.h"

#define THREADS 4
#define HOT 3
#define BURST UINT64_C(200000000) // does not fill in the time there is
#define HELD 50

// Tokens that a thread took, and may give back.
struct holding {
    uint64_t key, cost;
    bool reserved;
};

struct worker {
    struct weir *w;
    struct random random;
    uint64_t until_ns;
    struct holding held[HELD];
    size_t held_count;
    uint64_t net[HOT];
    uint64_t debited, returned, refused, cancelled, surprises;
    pthread_t thread;
};

static uint64_t zero_of(struct weir *w, uint64_t key) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_id(key), &slot), 1);
    return slot.word;
}

static void hold(struct worker *t, uint64_t key, uint64_t tokens, bool reserved) {
    t->net[key] += tokens;
    t->debited += tokens;
    if (t->held_count < HELD)
        t->held[t->held_count++] = (struct holding){key, tokens, reserved};
}

static void reserve(struct worker *t, uint64_t key) {
    struct weir_answer a = WEIR_ANSWER_INIT;
    const uint64_t cost = 1 + random_below(&t->random, 5);
    const uint64_t waits_ns[] = {0, 1, WEIR_MILLISECOND, 10 * WEIR_MILLISECOND};
    const uint64_t max_wait_ns = waits_ns[random_below(&t->random, 4)];
    const int result = weir_reserve(t->w, weir_id(key), cost, max_wait_ns, &a);
    t->surprises += a.granted_tokens != (result == WEIR_GRANTED ? cost : 0);
    t->surprises += result != WEIR_GRANTED && result != WEIR_DENIED;
    // Due within the longest wait, and 1 ns that the arithmetic may round.
    const bool late = max_wait_ns != 0 && a.retry_after_ns > max_wait_ns + 1;
    t->surprises += result == WEIR_GRANTED && late;
    if (result == WEIR_GRANTED) hold(t, key, cost, true);
    else t->refused++;
}

static void charge(struct worker *t, uint64_t key) {
    struct weir_answer a = WEIR_ANSWER_INIT;
    const uint64_t cost = 1 + random_below(&t->random, 5);
    t->surprises += weir_charge(t->w, weir_id(key), cost, &a) != WEIR_GRANTED;
    t->surprises += a.granted_tokens != cost; // never as far as max_debt
    hold(t, key, cost, false);
}

static void take(struct worker *t, uint64_t key) {
    const uint64_t cost = random_below(&t->random, 4);
    const int result = weir_take(t->w, weir_id(key), cost, NULL);
    t->surprises += result != WEIR_GRANTED && result != WEIR_DENIED;
    if (result == WEIR_GRANTED) hold(t, key, cost, false);
    else t->refused++;
}

// Cancels or refunds one of the things held; or, now and then, it stays spent.
static void give_back(struct worker *t) {
    if (t->held_count == 0) return;
    const size_t i = random_below(&t->random, t->held_count);
    const struct holding h = t->held[i];
    struct weir_answer a = WEIR_ANSWER_INIT;
    t->held[i] = t->held[--t->held_count];
    if (random_below(&t->random, 10) == 0) return;
    const int result = h.reserved ? weir_cancel(t->w, weir_id(h.key), h.cost, &a)
                                  : weir_refund(t->w, weir_id(h.key), h.cost, &a);
    t->surprises += result != WEIR_GRANTED || a.granted_tokens != h.cost; // exactly what it took
    t->cancelled += h.reserved;
    t->net[h.key] -= h.cost;
    t->returned += h.cost;
}

static void change_limit(struct worker *t) {
    const struct weir_limit limit = {random_below(&t->random, 20000), WEIR_SECOND, BURST};
    const int result = weir_set_limit(t->w, &limit, NULL);
    t->surprises += result != WEIR_GRANTED && result != WEIR_EBUSY;
}

static void *work(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) {
            const uint64_t key = random_below(&t->random, HOT);
            switch (random_below(&t->random, 8)) {
            case 0:
            case 1: reserve(t, key); break;
            case 2: charge(t, key); break;
            case 3: take(t, key); break;
            default: give_back(t);
            }
            if (random_below(&t->random, 2000) == 0) change_limit(t);
        }
    return NULL;
}

static void run(struct worker *workers, struct weir *w) {
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(1) * 1e9);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.w = w, .random = {i + 1}, .until_ns = until_ns};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
}

static void check_buckets(struct weir *w, const struct worker *workers, const uint64_t *before) {
    for (uint64_t key = 0; key < HOT; key++) {
        uint64_t net = 0;
        for (int i = 0; i < THREADS; i++) net += workers[i].net[key];
        assert_true(zero_of(w, key) - before[key] == net * w->scale.unit_tokens);
    }
}

static void cancels_and_refunds_conserve_tokens(void **state) {
    (void)state;
    struct weir_options options = options_at(10000, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    options.max_rate_tokens = 20000;
    options.max_rate_period_ns = WEIR_SECOND;
    options.max_debt_tokens = BURST;
    options.max_ahead_tokens = 100;
    struct weir *w = create(&options);
    static struct worker workers[THREADS];
    uint64_t before[HOT], debited = 0, returned = 0, refused = 0, cancelled = 0;
    for (uint64_t key = 0; key < HOT; key++) {
        assert_int_equal(weir_take(w, weir_id(key), BURST, NULL), WEIR_GRANTED);
        before[key] = zero_of(w, key);
    }
    run(workers, w);
    check_buckets(w, workers, before);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].surprises, 0);
        debited += workers[i].debited;
        returned += workers[i].returned;
        refused += workers[i].refused;
        cancelled += workers[i].cancelled;
    }
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.tokens, debited + HOT * BURST);
    assert_int_equal(s.refunded_tokens, returned);
    assert_int_equal(s.denied, refused);
    assert_true(refused > 0 && cancelled > 0);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cancels_and_refunds_conserve_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
