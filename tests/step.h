// Included before everything else when the core is compiled for test_interleave: after each
// operation on a slot, the test decides who goes on. (A look at a tag alone is a hint, and decides
// nothing.)
#pragma once

#include <stddef.h>

#include "../src/u128.h"

extern void (*step_hook)(void); // NULL: goes on

static inline void step_taken(void) {
    if (step_hook != NULL) step_hook();
}

static inline struct wr_pair step_load(struct wr_pair *slot) {
    const struct wr_pair seen = wr_u128_load(slot);
    step_taken();
    return seen;
}

static inline bool step_cas(struct wr_pair *slot, struct wr_pair old, struct wr_pair new) {
    const bool swapped = wr_u128_cas(slot, old, new);
    step_taken();
    return swapped;
}

#define wr_u128_load step_load
#define wr_u128_cas step_cas
