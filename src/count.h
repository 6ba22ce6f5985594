// Counters: a line a thread, added up on reading. At most 2 ns a decision.
//
// A thread claims one of 112 lines at its first decision in the process and alone adds to it, by a
// load and a store. When they run out, threads share 16 lines, by an atomic add. (R1 and R2 are
// defined in count.c; lines are handed out in thread.c.)
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "thread.h"
#include "weir.h"

// X(name): the counters of struct weir_stats that are kept per thread, in this order. `tokens` is
// kept as what goes beyond one token a granted ask, modulo 2^64: an ask of one adds to one counter.
#define WR_COUNTERS(X)                                                                             \
    X(granted) X(denied) X(never) X(no_room) X(untracked) X(would_deny) X(tokens)                  \
    X(refunded_tokens) X(clipped_tokens) X(inserted) X(displaced) X(forgiven_tokens) X(retried)    \
    X(relics)

enum wr_counter_id {
#define WR_COUNTER_ID(name) WR_##name,
    WR_COUNTERS(WR_COUNTER_ID)
#undef WR_COUNTER_ID
    WR_COUNTERS_END
};

#define WR_WAIT_SHIFT 14 // the first bucket of waits: up to 2^14 ns

struct wr_count_line {
    _Alignas(64) _Atomic uint64_t counters[16];
    _Atomic uint64_t waits[WEIR_WAIT_BUCKETS];
};

_Static_assert(sizeof(struct wr_count_line) == WR_THREAD_STRIDE, "what thread.h counts in");

struct wr_counts {
    struct wr_count_line lines[WR_THREAD_LINES];
};

void wr_counts_sum(const struct wr_counts *counts, struct weir_stats *stats);

// Adds to a counter of the calling thread and returns what it was.
static inline uint64_t wr_add(_Atomic uint64_t *counter, bool exclusive, uint64_t n) {
    if (WR_THREAD_LIKELY(exclusive)) {
        const uint64_t old = atomic_load_explicit(counter, memory_order_relaxed); // R1
        atomic_store_explicit(counter, old + n, memory_order_relaxed);            // R1
        return old;
    }
    return atomic_fetch_add_explicit(counter, n, memory_order_relaxed); // R2
}

// The same where the thread has no line yet, or none of its own. Out of the way of those that have.
uint64_t wr_add_shared(struct wr_count_line *lines, enum wr_counter_id id, uint64_t n)
    __attribute__((noinline, cold));

// Adds to a counter of the calling thread's line and returns what it was.
static inline uint64_t wr_add_own(struct wr_count_line *lines, enum wr_counter_id id, uint64_t n) {
    const uint32_t offset = wr_thread_own_offset; // 0 where there is none yet, or a shared one
    if (WR_THREAD_LIKELY(offset != 0)) {
        unsigned char *line = (unsigned char *)lines + offset - 1;
        return wr_add(&((struct wr_count_line *)(void *)line)->counters[id], true, n);
    }
    return wr_add_shared(lines, id, n);
}

static inline unsigned wr_wait_bucket(uint64_t ns) {
    if (ns <= UINT64_C(1) << WR_WAIT_SHIFT) return 0;
    const unsigned bits = 64 - (unsigned)__builtin_clzll(ns - 1);
    const unsigned bucket = bits - WR_WAIT_SHIFT;
    return bucket < WEIR_WAIT_BUCKETS ? bucket : WEIR_WAIT_BUCKETS - 1;
}
