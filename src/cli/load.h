// load.h - a load on a limiter of this machine, measured: what `weir bench` and `weir tune` run.
#ifndef WR_LOAD_H
#define WR_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "text.h"

#define WR_LOAD_THREADS_MAX 1024

struct wr_load {
    uint64_t keys;     // different ones, all of them busy
    bool zipf;         // the i-th in proportion to 1 / i; else all alike
    uint32_t threads;
    uint32_t batch;    // asks a call; 1: weir_take
    uint64_t span_ns;  // to measure for, after a warm-up
    uint64_t seed;
};

struct wr_load_result {
    uint64_t asks;
    uint64_t granted;
    uint64_t elapsed_ns;
};

// A limiter for such loads: `capacity` keys, each with the limit; 0 shards: weir's default. Every
// key up to `keys` has a bucket already, so later no page of the table is touched the first time.
bool wr_load_create(struct weir **limiter, const struct weir_limit *limit, uint64_t capacity,
                    uint64_t keys, uint32_t shards, struct wr_fault *fault);

// False where a thread or memory cannot be had.
bool wr_load_run(struct weir *limiter, const struct wr_load *load, struct wr_load_result *result,
                 struct wr_fault *fault);

// Nanoseconds of a thread for an ask: threads * elapsed / asks.
double wr_load_ns(const struct wr_load *load, const struct wr_load_result *result);

// Medians: sorts `values`.
struct wr_spread {
    double low; // the lower quartile
    double median;
    double high; // the upper quartile
};
struct wr_spread wr_spread_of(double *values, unsigned count);

#endif
