// distinct.c - the k smallest of n hashes: the k-th lies at about k/n of their range (Bar-Yossef
// and others, 2002).
#include "distinct.h"

#include <string.h>

__extension__ typedef unsigned __int128 wide;

// The first place whose hash is not below `hash`.
static size_t find(const struct wr_distinct *distinct, uint64_t hash) {
    size_t low = 0, high = distinct->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (distinct->smallest[middle] < hash) low = middle + 1;
        else high = middle;
    }
    return low;
}

void wr_distinct_add(struct wr_distinct *distinct, uint64_t hash) {
    size_t place = find(distinct, hash);
    if (place == WR_DISTINCT_KEPT) return;
    if (place < distinct->count && distinct->smallest[place] == hash) return;
    if (distinct->count < WR_DISTINCT_KEPT) distinct->count++;
    uint64_t *at = &distinct->smallest[place];
    memmove(at + 1, at, (distinct->count - place - 1) * sizeof(*at));
    *at = hash;
}

uint64_t wr_distinct_estimate(const struct wr_distinct *distinct) {
    if (distinct->count < WR_DISTINCT_KEPT) return distinct->count;
    wide range = ((wide)1 << 64) * (WR_DISTINCT_KEPT - 1);
    wide estimate = range / ((wide)distinct->smallest[WR_DISTINCT_KEPT - 1] + 1);
    return estimate > WR_DISTINCT_KEPT ? (uint64_t)estimate : WR_DISTINCT_KEPT;
}
