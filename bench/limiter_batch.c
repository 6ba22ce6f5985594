// weir asked in batches: the asks are gathered in an array, as a worker does that has read many
// requests, and gathering them is part of what is measured.
#include "limiter_weir.h"

#define BATCH_MAX 64

static uint64_t granted_of(void *limiter, const struct weir_ask *asks, size_t count) {
    int results[BATCH_MAX];
    if (weir_do_batch(limiter, asks, count, results, NULL) == WEIR_GRANTED) return count;
    uint64_t granted = 0;
    for (size_t i = 0; i < count; i++) granted += results[i] == WEIR_GRANTED;
    return granted;
}

__attribute__((always_inline)) static inline uint64_t
walk_in_batches(void *limiter, struct bench_walk *walk, uint64_t n, size_t batch) {
    struct weir_ask asks[BATCH_MAX];
    for (size_t i = 0; i < batch; i++) asks[i] = (struct weir_ask)WEIR_ASK_INIT;
    uint64_t granted = 0;
    for (uint64_t done = 0; done < n;) {
        const size_t count = n - done < batch ? (size_t)(n - done) : batch;
        for (size_t i = 0; i < count; i++) {
            const struct bench_key *key = bench_walk_next(walk);
            asks[i].key = weir_bytes(key->text, key->length);
        }
        granted += granted_of(limiter, asks, count);
        done += count;
    }
    return granted;
}

static uint64_t walk_by_32(void *limiter, struct bench_walk *walk, uint64_t n) {
    return walk_in_batches(limiter, walk, n, 32);
}

static uint64_t walk_by_64(void *limiter, struct bench_walk *walk, uint64_t n) {
    return walk_in_batches(limiter, walk, n, 64);
}

static const struct bench_limiter by_32 = {
    .name = "take", .variant = "/batch:32", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .walk = walk_by_32};
BENCH_LIMITER(by_32)

static const struct bench_limiter by_64 = {
    .name = "take", .variant = "/batch:64", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .walk = walk_by_64};
BENCH_LIMITER(by_64)
