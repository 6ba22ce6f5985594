// Tiny tables, many keys: where announcements meet, are adopted, dropped and displaced.
//
// Rounds. In a round all readings are the same and a whole number of tokens after the last round's,
// so every level is a whole number of tokens and a ledger balances to the token:
//     missing from the buckets after = missing before + taken and charged - refunded - forgiven
// Between rounds nobody asks, and the whole table is scanned: no key may be LIVE twice. Rounds are
// short, and threads start them together, so that they meet on keys that have no bucket yet.
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "support.h"

#define MOST_THREADS 8
#define MOST_KEYS 64
#define BURST 6

struct table {
    struct weir *w;
    unsigned threads;
    unsigned asks; // a thread a round
    uint64_t keys;
    bool resets; // among the asks: then there is no ledger to balance
    int64_t now_ns;
    bool stop;
    _Atomic uint64_t round;   // written by the first thread: the others may begin it
    _Atomic uint64_t arrived; // threads done, over all rounds
};

struct worker {
    struct table *table;
    struct random random;
    int64_t net[MOST_KEYS]; // tokens debited this round, by key
    uint64_t no_room;
    uint64_t surprises;
};

static struct outcome ask(struct worker *t, enum weir_kind kind, uint64_t key, uint64_t cost) {
    struct outcome o = {0, WEIR_ANSWER_INIT};
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_id(key);
    ask.kind = kind;
    ask.cost = cost;
    ask.now_ns = t->table->now_ns;
    o.result = weir_do(t->table->w, &ask, &o.answer);
    t->no_room += o.result == WEIR_NO_ROOM;
    t->surprises += o.result < 0;
    return o;
}

static void ask_once(struct worker *t) {
    static const enum weir_kind kinds[] = {WEIR_TAKE, WEIR_TAKE, WEIR_TAKE, WEIR_TAKE_SOME,
                                           WEIR_CHARGE, WEIR_REFUND, WEIR_RESERVE, WEIR_PEEK};
    const uint64_t key = random_below(&t->random, t->table->keys);
    const enum weir_kind kind = kinds[random_below(&t->random, 8)];
    if (t->table->resets && random_below(&t->random, 3) == 0)
        t->surprises += weir_reset(t->table->w, weir_id(key)) != WEIR_GRANTED;
    const struct outcome o = ask(t, kind, key, 1 + random_below(&t->random, 3));
    if (o.result != WEIR_GRANTED || kind == WEIR_PEEK) return;
    const int64_t tokens = (int64_t)o.answer.granted_tokens;
    t->net[key] += kind == WEIR_REFUND ? -tokens : tokens;
}

// Waits without sleeping, so that all begin within nanoseconds; lets others run where cores are
// few.
static void wait_for(_Atomic uint64_t *word, uint64_t value) {
    for (unsigned i = 0; atomic_load_explicit(word, memory_order_acquire) < value; i++)
        if (i > 2000) sched_yield();
}

static void do_round(struct worker *t) {
    for (unsigned i = 0; i < t->table->asks; i++) ask_once(t);
    atomic_fetch_add_explicit(&t->table->arrived, 1, memory_order_release);
}

static void *work(void *at) {
    struct worker *t = at;
    for (uint64_t round = 1;; round++) {
        wait_for(&t->table->round, round);
        if (t->table->stop) return NULL;
        do_round(t);
    }
}

// What the LIVE buckets lack of the burst, in tokens. Fails the test where a key is LIVE twice.
static int64_t scan(struct table *table, uint64_t round) {
    const struct wr_now now = wr_now_read(table->w->versions, &table->w->source,
                                          table->w->scale.shift, table->now_ns, false);
    const int64_t unit = (int64_t)table->w->scale.unit_tokens;
    int64_t missing = 0;
    uint64_t count = 0;
    struct wr_pair *slots = all_slots(table->w, 0, &count);
    for (uint64_t i = 0; i < count; i++) {
        const struct wr_pair slot = wr_u128_load(&slots[i]);
        if (!wr_slot_state_is(slot, WR_STATE_LIVE)) continue;
        const int64_t level = wr_min_i64((int64_t)(now.v - slot.word), now.ramp);
        if (level % unit != 0) fail_msg("round %" PRIu64 ": a part of a token", round);
        missing += BURST - level / unit;
        for (uint64_t j = 0; j < i; j++) {
            const struct wr_pair other = wr_u128_load(&slots[j]);
            if (wr_slot_is(other, slot.tag & WR_FINGERPRINT_MASK, WR_STATE_LIVE))
                fail_msg("round %" PRIu64 ": a key is LIVE twice", round);
        }
    }
    return missing;
}

static int64_t forgiven(const struct table *table) {
    return (int64_t)stats_of(table->w).forgiven_tokens;
}

// Adds the round's debits to each key's own; none may have spent beyond burst and rate but by what
// was forgiven in all. `spent` falls by what came back, and a full bucket is 0.
static void check_keys(const struct table *table, struct worker *workers, int64_t *spent,
                       int64_t forgiven_tokens, uint64_t round) {
    int64_t beyond = 0;
    for (uint64_t key = 0; key < table->keys; key++) {
        for (unsigned i = 0; i < table->threads; i++) {
            spent[key] += workers[i].net[key];
            workers[i].net[key] = 0;
        }
        // max_debt and max_ahead are BURST each: takes stop at the burst, these go that far below.
        if (spent[key] > 2 * BURST) beyond += spent[key] - 2 * BURST;
    }
    if (beyond > forgiven_tokens)
        fail_msg("round %" PRIu64 ": %" PRId64 " tokens beyond the bound", round,
                 beyond - forgiven_tokens);
}

// Time goes on by some tokens; or every key is reset, so that all are new again.
static void begin(struct table *table, struct random *random, int64_t *spent) {
    const int64_t passed = (int64_t)(random_below(random, 4) * random_below(random, 4));
    const bool reset = random_below(random, 3) == 0;
    table->now_ns += passed * (int64_t)WEIR_SECOND;
    for (uint64_t key = 0; key < table->keys; key++) {
        spent[key] = reset ? 0 : wr_max_i64(0, spent[key] - passed);
        if (reset) assert_int_equal(weir_reset(table->w, weir_id(key)), WEIR_GRANTED);
    }
}

static void play(struct table *table, struct worker *workers, double seconds) {
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(seconds * 1e9);
    struct random random = {table->keys};
    int64_t spent[MOST_KEYS] = {0};
    for (uint64_t round = 1; round < 50 || monotonic_ns() < until_ns; round++) {
        begin(table, &random, spent);
        const int64_t before = scan(table, round), forgiven_before = forgiven(table);
        atomic_store_explicit(&table->round, round, memory_order_release);
        do_round(&workers[0]);
        wait_for(&table->arrived, round * table->threads);
        int64_t net = 0;
        if (table->resets) {
            (void)scan(table, round);
            continue;
        }
        for (unsigned i = 0; i < table->threads; i++)
            for (uint64_t key = 0; key < table->keys; key++) net += workers[i].net[key];
        const int64_t after = scan(table, round), now_forgiven = forgiven(table) - forgiven_before;
        if (after != before + net - now_forgiven)
            fail_msg("round %" PRIu64 ", %" PRIu64 " keys: the ledger is off by %" PRId64 " tokens",
                     round, table->keys, after - before - net + now_forgiven);
        check_keys(table, workers, spent, forgiven(table), round);
    }
}

static void run(enum weir_full_policy policy, uint64_t capacity, uint64_t keys, unsigned threads,
                bool resets, double seconds) {
    struct weir_options options = options_at(1, WEIR_SECOND, BURST);
    options.capacity_keys = capacity;
    options.full_policy = policy;
    options.max_debt_tokens = options.max_ahead_tokens = BURST;
    static struct table table;
    static struct worker workers[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    table = (struct table){.w = create(&options), .keys = keys, .threads = threads,
                           .resets = resets, .asks = threads == MOST_THREADS ? 40 : 6};
    (void)weir_take_at(table.w, weir_id(0), 0, 0, NULL);
    for (unsigned i = 0; i < threads; i++)
        workers[i] = (struct worker){.table = &table, .random = {keys * 100 + i}};
    for (unsigned i = 1; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, work, &workers[i]), 0);
    play(&table, workers, seconds);
    table.stop = true;
    atomic_store_explicit(&table.round, UINT64_MAX, memory_order_release);
    for (unsigned i = 1; i < threads; i++) pthread_join(ids[i], NULL);
    const struct weir_stats s = stats_of(table.w);
    assert_int_equal(s.relics, 0);
    for (unsigned i = 0; i < threads; i++) {
        assert_int_equal(workers[i].surprises, 0);
        if (policy == WEIR_FULL_DISPLACE) assert_int_equal(workers[i].no_room, 0);
    }
    if (policy == WEIR_FULL_DENY) assert_int_equal(s.displaced, 0);
    weir_destroy(table.w);
}

// Capacities of 1 to 8 keys: 8 to 16 slots. With fewer keys than ways there is always room, with
// many more there never is. Two threads meet on two cores; eight are stopped anywhere.
static void a_key_is_never_live_twice_and_the_ledger_balances(enum weir_full_policy policy) {
    static const uint64_t capacities[] = {1, 8};
    static const uint64_t keys[] = {1, 2, 4, 7, 9, 12, 64};
    for (size_t c = 0; c < 2; c++)
        for (size_t k = 0; k < 7; k++) {
            run(policy, capacities[c], keys[k], 2, false, stress_seconds(2) / 56);
            run(policy, capacities[c], keys[k], MOST_THREADS, false, stress_seconds(2) / 56);
        }
}

static void when_busy_buckets_are_displaced(void **state) {
    (void)state;
    a_key_is_never_live_twice_and_the_ledger_balances(WEIR_FULL_DISPLACE);
}

static void when_new_keys_are_denied(void **state) {
    (void)state;
    a_key_is_never_live_twice_and_the_ledger_balances(WEIR_FULL_DENY);
}

// Places come free in the middle of a scan, so that two threads announce one key in different
// places.
static void when_buckets_vanish_meanwhile(void **state) {
    (void)state;
    static const uint64_t keys[] = {1, 2, 3, 6, 9};
    for (size_t k = 0; k < 5; k++)
        for (unsigned threads = 2; threads <= 4; threads++)
            run(WEIR_FULL_DISPLACE, 1, keys[k], threads, true, stress_seconds(2) / 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_busy_buckets_are_displaced),
        cmocka_unit_test(when_new_keys_are_denied),
        cmocka_unit_test(when_buckets_vanish_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
