// The keys that are asked about: the same texts in the same order for every limiter.
//
// A key is "user:" and its number, "user:1234567". A row over many keys walks along a sequence of
// asks made beforehand: records of 16 bytes, one after the other, which hold the text itself. So
// the text of the next key is in the cache, as it is in a worker that has just read it from a
// request; what misses is the limiter's own memory. A walk costs about a nanosecond (row key/walk).
// The order is random: uniform, or Zipf with exponent 0.99. bench/go/rival.go makes the same
// uniform sequence.
//
// A never-seen key is made by counting up in its text (row key/fresh); no text comes twice.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_key {
    char text[15];
    uint8_t length;
};

// One thread's place in a sequence.
struct bench_walk {
    _Alignas(64) const struct bench_key *keys;
    uint64_t mask;
    uint64_t at;
};

// One thread's never-seen keys: "user:", three digits of thread, ten that count.
struct bench_fresh {
    _Alignas(64) char text[32];
};

#define BENCH_FRESH_LENGTH 18

void bench_key_format(struct bench_key *key, uint64_t number);

// A random number for each `index`: splitmix64.
static inline uint64_t bench_random(uint64_t index) {
    uint64_t z = (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

// The walks of threads 0 to `threads` - 1 over `keys` keys, in an array. Threads start at different
// places, and a walk goes on where it was left. For one thread to call; made once and kept.
struct bench_walk *bench_walks(uint64_t keys, bool zipf, unsigned threads);

// The supplies of never-seen keys of threads 0 to `threads` - 1. They go on over the whole program.
struct bench_fresh *bench_freshes(unsigned threads);

static inline const struct bench_key *bench_walk_next(struct bench_walk *walk) {
    return &walk->keys[walk->at++ & walk->mask];
}

static inline const char *bench_fresh_next(struct bench_fresh *fresh) {
    char *digit = fresh->text + BENCH_FRESH_LENGTH - 1;
    while (*digit == '9') *digit-- = '0';
    ++*digit;
    return fresh->text;
}
