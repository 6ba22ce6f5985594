// tally.h - amounts added up by name.
#ifndef WR_TALLY_H
#define WR_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

struct wr_tallied {
    uint64_t amount; // 2^63-1 at most, where it stops
    uint64_t times;  // that something was added
    struct wr_text name;
};

struct wr_tally {
    void *tree; // of <search.h>, by name
    struct wr_tallied **all;
    size_t count;
    size_t room;
};
#define WR_TALLY_INIT {NULL, NULL, 0, 0}

// Adds to what stands under a name, which is copied. NULL: no memory.
const struct wr_tallied *wr_tally_add(struct wr_tally *tally, struct wr_text name, uint64_t amount);
// NULL: nothing was added under that name.
const struct wr_tallied *wr_tally_find(const struct wr_tally *tally, struct wr_text name);
// Puts all[] in order: the greatest amount first, equal ones by name.
void wr_tally_sort(struct wr_tally *tally);
void wr_tally_fini(struct wr_tally *tally);

#endif
