// distinct.h - about how many different hashes came by, in fixed memory.
#ifndef WR_DISTINCT_H
#define WR_DISTINCT_H

#include <stddef.h>
#include <stdint.h>

// 64 of these added up are within 2% of the truth (95 of 100 times).
#define WR_DISTINCT_KEPT 256

struct wr_distinct {
    size_t count;
    uint64_t smallest[WR_DISTINCT_KEPT]; // ascending
};

// An empty one is all zeroes. `hash` is evenly spread; a second time it changes nothing.
void wr_distinct_add(struct wr_distinct *distinct, uint64_t hash);

// Exact up to WR_DISTINCT_KEPT.
uint64_t wr_distinct_estimate(const struct wr_distinct *distinct);

#endif
