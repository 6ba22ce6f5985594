// The table: one contiguous, pointer-free region, and where a key's two lines lie in it.
//
//   region   header (its geometry, the hash secret)
//            versions of the limit
//            counters, a line a thread
//            the most denied keys, with their names
//            shards: each a head line, then its lines of four slots
// Everything a limiter remembers is here; struct weir (the handle) holds only copies of what never
// changes, and pointers into the region that are of this process.
#pragma once

#include <stddef.h>

#include "count.h"
#include "slot.h"
#include "top.h"
#include "version.h"

#define WR_REGION_MAGIC UINT64_C(0x3152494557) // "WEIR1"
#define WR_SECRET_BYTES 192
#define WR_SHARDS_MAX 4096
#define WR_CAPACITY_MAX (UINT64_C(1) << 32)
#define WR_CAPACITY_DEFAULT UINT64_C(65536)
#define WR_HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct wr_shard {
    // A value of V: the latest at which a bucket was dropped from this shard. Only grows.
    _Alignas(64) _Atomic uint64_t dropped_at;
};

struct wr_region {
    uint64_t magic;
    uint64_t region_bytes;
    uint64_t capacity_keys;
    uint64_t lines_per_shard;
    uint64_t shard_bytes;
    uint64_t shards_offset;
    uint32_t shards;
    uint32_t unused;
    struct wr_scale scale;
    _Alignas(64) uint8_t secret[WR_SECRET_BYTES];
    _Alignas(64) _Atomic int64_t epoch_ns; // of a caller's clock: its first reading
    _Atomic uint32_t closed;
    _Atomic uint32_t wake; // counts what sleepers must look at: a change of limit, close
    struct wr_versions versions;
    struct wr_counts counts;
    struct wr_top top;
};

// Where a key lives.
struct wr_place {
    uint64_t fingerprint;
    struct wr_shard *shard;
    struct wr_line_of_slots *line[2];
};

struct wr_geometry {
    uint64_t shards;
    uint64_t lines_per_shard;
    uint64_t shard_bytes;
    unsigned char *base; // the first shard
};

// Sizes for a capacity: two slots a key in all, at least two lines a shard.
void wr_region_plan(struct wr_region *plan, uint64_t capacity_keys, uint32_t shards);
uint32_t wr_default_shards(uint64_t capacity_keys, long cpus);

// Multiplications instead of powers of two: any size. The shard and the first line come from the
// high bits of the hash, the fingerprint from its low 40, the second line from all of them.
static inline struct wr_place wr_place_find(const struct wr_geometry *g, uint64_t hash) {
    const wr_u128 wide = (wr_u128)hash * g->shards;
    unsigned char *shard = g->base + (uint64_t)(wide >> 64) * g->shard_bytes;
    struct wr_line_of_slots *lines =
        (struct wr_line_of_slots *)(void *)(shard + sizeof(struct wr_shard));
    const uint64_t first = wr_mul_high((uint64_t)wide, g->lines_per_shard);
    const uint64_t step =
        1 + wr_mul_high(hash * UINT64_C(0x9E3779B97F4A7C15), g->lines_per_shard - 1);
    const uint64_t wrap = first + step >= g->lines_per_shard ? g->lines_per_shard : 0;
    return (struct wr_place){hash & WR_FINGERPRINT_MASK,
                             (struct wr_shard *)(void *)shard,
                             {lines + first, lines + (first + step - wrap)}};
}

// And asks for both lines at once, so that a key in the second one costs no second miss: finding
// one of a million keys takes 136 ns so, 146 with the first alone, 157 without (EPYC, one thread;
// two: 119, 111, 149; choice/prefetch of bench). A batch knows better (batch.c).
static inline struct wr_place wr_place_of(const struct wr_geometry *g, uint64_t hash) {
    const struct wr_place place = wr_place_find(g, hash);
    __builtin_prefetch(place.line[0]);
    __builtin_prefetch(place.line[1]);
    return place;
}
