// The most denied keys, with their names: a small table that sampled denials are counted in.
//
// A slot of the big table knows only a fingerprint; this one is asked which keys those were. 64
// entries in 8 sets of 8 by hash. A key that has no entry takes the smallest of its set and
// inherits its count as its own error (space saving): one denied more often than that is there.
// A thread line's first 1,024 refusals are all looked at, then one in 16, for 16. The argument for
// the concurrent part is in top.c.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "weir.h"
#include "wide.h"

#define WR_TOP_SETS 8
#define WR_TOP_WAYS 8
#define WR_TOP_NAME_WORDS (WEIR_TOP_NAME_BYTES / 8)
#define WR_TOP_ALL 1024 // the first so many refusals of a thread line are all looked at
#define WR_TOP_SAMPLE_BITS 4

struct wr_top_entry {
    _Alignas(64) _Atomic uint64_t sequence; // odd while one thread rewrites the entry
    _Atomic uint64_t hash;
    _Atomic uint64_t denied; // 0: an entry never used
    _Atomic uint64_t error;
    _Atomic uint64_t shape; // length of the name in bytes, and the flags below
    _Atomic uint64_t name[WR_TOP_NAME_WORDS];
};

#define WR_TOP_IS_ID (UINT64_C(1) << 32)
#define WR_TOP_TRUNCATED (UINT64_C(1) << 33)

struct wr_top {
    struct wr_top_entry entries[WR_TOP_SETS * WR_TOP_WAYS];
};

_Static_assert(sizeof(struct wr_top) == 8192, "what the region's fixed part has room for");
_Static_assert(WEIR_TOP_KEYS == WR_TOP_SETS * WR_TOP_WAYS, "the public number");

// A number that jumps about as `before` counts up: the multiples of the golden ratio. No period of
// the traffic keeps step with them.
static inline uint64_t wr_top_scatter(uint64_t before) {
    return before * UINT64_C(0x9E3779B97F4A7C15);
}

// Is this refusal looked at? `before` is what the thread line had counted before it.
static inline bool wr_top_samples(uint64_t before) {
    return before < WR_TOP_ALL || wr_top_scatter(before) >> (64 - WR_TOP_SAMPLE_BITS) == 0;
}

// Counts a refusal that is looked at. Out of the way of the others.
void wr_top_note(struct weir *w, struct weir_key key, uint64_t before)
    __attribute__((noinline, cold));

// Adds `weight` refusals, or by the high bits of `random` several times as many or none, to the key
// with this hash. Returns how many: none also where another thread was in the way.
uint64_t wr_top_add(struct wr_top *top, uint64_t hash, struct weir_key key, uint64_t weight,
                    uint64_t random);

// weir_top, of a table.
size_t wr_top_list(const struct wr_top *top, struct weir_top_key *keys, size_t max);
