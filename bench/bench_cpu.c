// What a decision is made of, each alone: clocks, counting, the hash, the 128-bit compare-and-swap,
// and the making of keys.
//
//   clock/ticks     the CPU's counter as the library reads it, not turned into time
//   clock/fenced    the same, held behind the loads before it
//   clock/library   counter to nanoseconds, as a decision has them
//   clock/gettime, clock/coarse   the system's
//   clock/counted   clock/library, and the counting of a granted ask beside it
//   cas16/own       a load and a cmpxchg16b on a line that this thread alone uses
//   cas16/shared    the same on one line for all threads; `lost` is the share that failed
//   hash/xxh3       XXH3 of "user:1234567", with a secret, as the library does it
//   key/walk, key/fresh   what the keys of the take rows cost by themselves
#include <stdio.h>
#include <stdlib.h>

#include "../src/count.h"
#include "../src/hash.h"
#include "../src/u128.h"
#include "bench.h"
#include "keys.h"
#include "library_clock.h"

static void *no_state(const struct bench_row *row, unsigned threads) {
    (void)threads;
    return (void *)(uintptr_t)row; // not used
}

static void *clock_setup(const struct bench_row *row, unsigned threads) {
    if (!wr_clock_init()) bench_fail("%s: this CPU promises no invariant counter", row->name);
    return no_state(row, threads);
}

#define CLOCK_RUN(name, reading)                                                                   \
    static uint64_t name(const struct bench_row *row, void *state, uint64_t iterations,            \
                         unsigned thread) {                                                        \
        (void)row, (void)state, (void)thread;                                                      \
        for (uint64_t i = 0; i < iterations; i++) bench_keep(reading);                             \
        return 0;                                                                                  \
    }
CLOCK_RUN(run_ticks, wr_ticks())
CLOCK_RUN(run_fenced, wr_ticks_fenced())
CLOCK_RUN(run_library, bench_library_ns(wr_ticks()))
CLOCK_RUN(run_gettime, wr_clock_monotonic_ns())
CLOCK_RUN(run_coarse, wr_clock_coarse_ns())

static uint64_t run_counted(const struct bench_row *row, void *state, uint64_t iterations,
                            unsigned thread) {
    (void)row, (void)state, (void)thread;
    static struct wr_counts counts;
    for (uint64_t i = 0; i < iterations; i++) {
        bench_keep(bench_library_ns(wr_ticks()));
        // As count_kind in src/answer.c: each counter finds the thread's line by itself.
        uint32_t line = wr_thread_line();
        wr_add(&counts.lines[line].counters[WR_granted], line < WR_THREAD_OWN, 1);
        line = wr_thread_line();
        wr_add(&counts.lines[line].counters[WR_tokens], line < WR_THREAD_OWN, 1);
    }
    return 0;
}

struct own_line {
    _Alignas(128) struct wr_pair slot;
};
static struct own_line lines[BENCH_THREADS_MAX];

static void *cas_setup(const struct bench_row *row, unsigned threads) {
    wr_u128_init();
    return no_state(row, threads);
}

// Every success adds one, so what is added up at the end is what was done.
static uint64_t swap(struct wr_pair *slot, uint64_t iterations) {
    uint64_t lost = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        const struct wr_pair old = wr_u128_load(slot);
        lost += !wr_u128_cas(slot, old, (struct wr_pair){old.tag, old.word + 1});
    }
    return lost;
}

static uint64_t run_cas_own(const struct bench_row *row, void *state, uint64_t iterations,
                            unsigned thread) {
    (void)row, (void)state;
    return swap(&lines[thread].slot, iterations);
}

static uint64_t run_cas_shared(const struct bench_row *row, void *state, uint64_t iterations,
                               unsigned thread) {
    (void)row, (void)state;
    const uint64_t lost = swap(&lines[0].slot, iterations);
    if (thread == 0) bench_report("lost", (double)lost / (double)iterations);
    return 0;
}

static uint64_t run_hash(const struct bench_row *row, void *state, uint64_t iterations,
                         unsigned thread) {
    (void)row, (void)state, (void)thread;
    static uint8_t secret[WR_SECRET_BYTES] = {1, 2, 3};
    static struct bench_key keys[64];
    for (uint64_t i = 0; i < 64; i++) bench_key_format(&keys[i], 1234567 + i);
    struct bench_walk walk = {keys, 63, 0};
    for (uint64_t i = 0; i < iterations; i++) {
        const struct bench_key *key = bench_walk_next(&walk);
        bench_keep(XXH3_64bits_withSecret(key->text, key->length, secret, sizeof secret));
    }
    return 0;
}

static void *walk_setup(const struct bench_row *row, unsigned threads) {
    return bench_walks(row->size, false, threads);
}

static uint64_t run_walk(const struct bench_row *row, void *state, uint64_t iterations,
                         unsigned thread) {
    (void)row;
    struct bench_walk *walk = (struct bench_walk *)state + thread;
    for (uint64_t i = 0; i < iterations; i++) {
        const struct bench_key *key = bench_walk_next(walk);
        bench_keep((uint64_t)key->text[5] + key->length);
    }
    return 0;
}

static void *fresh_setup(const struct bench_row *row, unsigned threads) {
    (void)row;
    return bench_freshes(threads);
}

static uint64_t run_fresh(const struct bench_row *row, void *state, uint64_t iterations,
                          unsigned thread) {
    (void)row;
    struct bench_fresh *fresh = (struct bench_fresh *)state + thread;
    for (uint64_t i = 0; i < iterations; i++) bench_keep((uintptr_t)bench_fresh_next(fresh));
    return 0;
}

static void rows(const struct bench_settings *settings) {
    const struct bench_row fixed[] = {
        {.name = "clock/ticks", .setup = clock_setup, .run = run_ticks},
        {.name = "clock/fenced", .setup = clock_setup, .run = run_fenced},
        {.name = "clock/library", .setup = clock_setup, .run = run_library},
        {.name = "clock/gettime", .setup = no_state, .run = run_gettime},
        {.name = "clock/coarse", .setup = no_state, .run = run_coarse},
        {.name = "clock/counted", .setup = clock_setup, .run = run_counted},
        {.name = "cas16/own", .setup = cas_setup, .run = run_cas_own},
        {.name = "cas16/shared", .setup = cas_setup, .run = run_cas_shared},
        {.name = "hash/xxh3", .setup = no_state, .run = run_hash, .one_thread = true},
        {.name = "key/fresh", .setup = fresh_setup, .run = run_fresh},
    };
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) bench_add(&fixed[i]);
    for (size_t k = 0; k < settings->key_counts; k++) {
        struct bench_row row = {.size = settings->keys[k], .setup = walk_setup, .run = run_walk};
        char count[24];
        bench_format_count(count, sizeof count, row.size);
        snprintf(row.name, sizeof row.name, "key/walk/keys:%s", count);
        bench_add(&row);
    }
}
BENCH_ROWS(rows)
