// 128-bit helpers for the token arithmetic. No floating point, no rounding that is not named.
#pragma once

#include <stdint.h>

__extension__ typedef unsigned __int128 wr_u128;

#define WR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WR_UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline uint64_t wr_min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline int64_t wr_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t wr_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline wr_u128 wr_ceil_div(wr_u128 a, uint64_t b) {
    return a / b + (a % b != 0);
}

// High half of a product: scales a uniform 64-bit `a` to 0..b-1.
static inline uint64_t wr_mul_high(uint64_t a, uint64_t b) {
    return (uint64_t)(((wr_u128)a * b) >> 64);
}
