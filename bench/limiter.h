// What a limiter must bring to be measured, and the loops in which it is asked.
//
// A file limiter_*.c describes one way of asking, ends with BENCH_LIMITER(description), and gets
// all the rows of bench_take.c for which it has a function. The loops are written once, below, and
// compiled with each limiter's ask in line, so that none pays for a call through a pointer.
#pragma once

#include "keys.h"
#include "weir.h"

struct bench_limiter {
    const char *name;    // first in the names of its rows: "take", "mutex"
    const char *variant; // last in them: "", "/answer", "/batch:32"
    bool bounded;        // its memory does not grow with the keys it has seen
    // A limiter that holds `limit`, sized for `keys` busy keys. Ends the program where it cannot.
    void *(*create)(const struct weir_limit *limit, uint64_t keys);
    void (*destroy)(void *limiter);
    bool (*ask)(void *limiter, const char *text, size_t length, uint64_t cost);
    // Ask n times for one token and return how many were granted: of the same key, along a walk, of
    // never-seen keys. NULL where the limiter has no such row.
    uint64_t (*same)(void *limiter, const struct bench_key *key, uint64_t n);
    uint64_t (*walk)(void *limiter, struct bench_walk *walk, uint64_t n);
    uint64_t (*fresh)(void *limiter, struct bench_fresh *fresh, uint64_t n);
};

// The limiters linked into the program, ended by NULL.
const struct bench_limiter *const *bench_limiters(void);
void bench_add_limiter(const struct bench_limiter *limiter);

#define BENCH_LIMITER(limiter)                                                                     \
    __attribute__((constructor)) static void add_##limiter(void) {                                 \
        bench_add_limiter(&limiter);                                                               \
    }

typedef bool bench_ask(void *limiter, const char *text, size_t length, uint64_t cost);

__attribute__((always_inline)) static inline uint64_t
bench_ask_same(bench_ask *ask, void *limiter, const struct bench_key *key, uint64_t n) {
    uint64_t granted = 0;
    for (uint64_t i = 0; i < n; i++) granted += ask(limiter, key->text, key->length, 1);
    return granted;
}

__attribute__((always_inline)) static inline uint64_t
bench_ask_walk(bench_ask *ask, void *limiter, struct bench_walk *walk, uint64_t n) {
    uint64_t granted = 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct bench_key *key = bench_walk_next(walk);
        granted += ask(limiter, key->text, key->length, 1);
    }
    return granted;
}

__attribute__((always_inline)) static inline uint64_t
bench_ask_fresh(bench_ask *ask, void *limiter, struct bench_fresh *fresh, uint64_t n) {
    uint64_t granted = 0;
    for (uint64_t i = 0; i < n; i++)
        granted += ask(limiter, bench_fresh_next(fresh), BENCH_FRESH_LENGTH, 1);
    return granted;
}

// Defines ask##_same, ask##_walk and ask##_fresh for a static function `ask`.
#define BENCH_LOOPS(ask)                                                                           \
    BENCH_LOOP(ask, same, const struct bench_key)                                                  \
    BENCH_LOOP(ask, walk, struct bench_walk)                                                       \
    BENCH_LOOP(ask, fresh, struct bench_fresh)
#define BENCH_LOOP(ask, loop, source_type)                                                         \
    __attribute__((unused)) static uint64_t ask##_##loop(void *limiter, source_type *source,       \
                                                         uint64_t n) {                             \
        return bench_ask_##loop(ask, limiter, source, n);                                          \
    }
