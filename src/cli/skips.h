// skips.h - lines that were passed over: how many, and why the first ones.
#ifndef WR_SKIPS_H
#define WR_SKIPS_H

#include <stddef.h>
#include <stdint.h>

#include "text.h"

#define WR_SKIPS_KEPT 5

struct wr_skip {
    uint32_t file; // in order of reading
    uint64_t line;
    char reason[384];
};

// An empty one is all zeroes.
struct wr_skips {
    uint64_t count;
    size_t kept;
    struct wr_skip first[WR_SKIPS_KEPT]; // in order of file and line
};

// The lines may come in any order.
void wr_skips_add(struct wr_skips *skips, uint32_t file, uint64_t line, const char *reason);

#endif
