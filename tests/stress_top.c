// stress_top.c - many threads count refusals of many keys in one table while another lists it:
// every name it sees is whole, and what was counted is all there.
//
// A key's name is made from its number alone, over all of its words, so that a torn one shows. The
// counts of a set only move from key to key: their sum is what the threads were told was added. A
// round starts with an empty table, for a key that has counted much is seldom written; all keys
// fall into two of its sets, so that they fight for the entries.
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define THREADS 4
#define NAMES 40
#define REFUSALS 20000 // of a thread in a round

static struct wr_top *top;
static struct weir *limiter;
static uint64_t first_seed;
static _Atomic unsigned threads_left;
static _Atomic uint64_t added;

static void end_with(const char *what, uint64_t number) {
    fprintf(stderr, "stress_top: %s (%" PRIu64 "); seed %" PRIu64 "\n", what, number, first_seed);
    exit(1);
}

// The name of a number: 8 to 88 bytes, each word of it telling the number.
struct name {
    uint64_t words[WEIR_TOP_NAME_BYTES / 8];
    size_t length;
};

static struct name name_of(uint64_t number) {
    struct name name = {{0}, 8 + number % 11 * 8};
    for (uint64_t i = 0; i < name.length / 8; i++)
        name.words[i] = (number << 32) | (number * 31 + i);
    return name;
}

static uint64_t hash_of_number(uint64_t number) {
    return (number + 1) * UINT64_C(0xD6E8FEB86659FD93) / WR_TOP_SETS * WR_TOP_SETS + number % 2;
}

// Small numbers come often: 0 about every seventh time.
static uint64_t choose(struct random *random) {
    const uint64_t r = random_next(random);
    return r % 2 == 0 ? r / 2 % 4 : r / 2 % NAMES;
}

static void *count_refusals(void *context) {
    struct random random = {first_seed + ((uint64_t)(uintptr_t)context << 40)};
    uint64_t mine = 0;
    for (uint64_t i = 0; i < REFUSALS; i++) {
        const uint64_t number = choose(&random);
        const struct name name = name_of(number);
        const struct weir_key key = weir_bytes(name.words, name.length);
        mine += wr_top_add(top, hash_of_number(number), key, 1, random_next(&random));
        if (i % 64 == 0 && weir_take(limiter, key, 2, NULL) != WEIR_NEVER)
            end_with("a refusal was none", number);
    }
    atomic_fetch_add_explicit(&added, mine, memory_order_relaxed);
    atomic_fetch_sub_explicit(&threads_left, 1, memory_order_release);
    return NULL;
}

static uint64_t number_of(const struct weir_top_key *key) {
    uint64_t first;
    memcpy(&first, key->name, sizeof first);
    return first >> 32;
}

static void check_key(const struct weir_top_key *key) {
    const uint64_t number = number_of(key);
    const struct name name = name_of(number);
    if (number >= NAMES || key->length != name.length || key->truncated || key->is_id ||
        memcmp(key->name, name.words, name.length) != 0)
        end_with("a name is torn", number);
    if (key->error >= key->denied) end_with("nothing is certain of a key", key->error);
}

static void check(size_t count, const struct weir_top_key *keys) {
    for (size_t i = 0; i < count; i++) {
        check_key(&keys[i]);
        if (i > 0 && keys[i].denied > keys[i - 1].denied) end_with("the list is not sorted", i);
    }
}

static bool is_listed(const struct weir_top_key *keys, size_t count, uint64_t number) {
    for (size_t i = 0; i < count; i++)
        if (number_of(&keys[i]) == number) return true;
    return false;
}

static uint64_t sum_of(const struct wr_top *t) {
    uint64_t sum = 0;
    for (size_t i = 0; i < WEIR_TOP_KEYS; i++) {
        if (t->entries[i].sequence % 2 != 0) end_with("an entry was left half written", i);
        sum += t->entries[i].denied;
    }
    return sum;
}

static void start(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){1, WEIR_SECOND, 1};
    if (weir_create(&limiter, &options, NULL) != WEIR_GRANTED) end_with("no limiter", 0);
    top = aligned_alloc(64, sizeof *top);
    if (top == NULL) end_with("no memory", 0);
}

// Returns how often the table was listed meanwhile.
static uint64_t run_round(uint64_t round) {
    struct weir_top_key keys[WEIR_TOP_KEYS];
    pthread_t threads[THREADS];
    memset(top, 0, sizeof *top);
    atomic_store_explicit(&threads_left, THREADS, memory_order_relaxed);
    atomic_store_explicit(&added, 0, memory_order_relaxed);
    for (uint64_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, count_refusals,
                           (void *)(uintptr_t)(round * THREADS + i)) != 0)
            end_with("no thread", i);
    uint64_t lists = 0;
    do {
        check(wr_top_list(top, keys, WEIR_TOP_KEYS), keys);
        check(weir_top(limiter, keys, 10), keys);
        lists++;
    } while (atomic_load_explicit(&threads_left, memory_order_acquire) != 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    if (sum_of(top) != added) end_with("what was counted is not there", sum_of(top) - added);
    if (added * 10 < REFUSALS * THREADS * 9) end_with("a tenth was not counted", added);
    const size_t count = wr_top_list(top, keys, WEIR_TOP_KEYS);
    check(count, keys);
    // Where they stand is an estimate, as far off as their error says; that they are there is not.
    for (uint64_t often = 0; often < 4; often++)
        if (!is_listed(keys, count, often)) end_with("one that comes oftenest is missing", often);
    return lists;
}

int main(void) {
    first_seed = monotonic_ns();
    (void)seed_from_environment(&first_seed);
    start();
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(2) * 1e9);
    uint64_t rounds = 0, lists = 0;
    while (rounds == 0 || monotonic_ns() < until_ns) lists += run_round(rounds++);
    printf("stress_top: %" PRIu64 " rounds, %" PRIu64 " lists\n", rounds, lists);
    (void)sum_of(&limiter->region->top);
    weir_destroy(limiter);
    free(top);
    return 0;
}
