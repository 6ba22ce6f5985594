// random.h - random numbers that are the same on every machine.
//
// Integers only: a seed gives the same sequence whatever the compiler, the libm or the CPU. Not for
// secrets.
#ifndef WR_RANDOM_H
#define WR_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct wr_random {
    uint64_t state;
};

struct wr_random wr_random_init(uint64_t seed);

// 64 random bits.
uint64_t wr_random_next(struct wr_random *random);

// 0 up to `bound` - 1; `bound` is at least 1. Off from even by less than bound / 2^64.
uint64_t wr_random_below(struct wr_random *random, uint64_t bound);

// True once in `times`, on average.
bool wr_random_once_in(struct wr_random *random, uint64_t times);

// An exponential variate of mean 1, in units of 2^-32; less than 64.
uint64_t wr_random_exponential_q32(struct wr_random *random);

// 0 up to `count` - 1, where `i` comes up in proportion to 1 / (i + 1): Zipf's law.
uint64_t wr_random_zipf(struct wr_random *random, uint64_t count);

// A bijection of the 64-bit numbers that looks random: different in, different out.
uint64_t wr_random_mix(uint64_t number);

#endif
