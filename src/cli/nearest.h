// nearest.h - which word was meant by one that is misspelt.
#ifndef WR_NEAREST_H
#define WR_NEAREST_H

#include <stddef.h>

// The word of `words` that is fewest letters (added, dropped, changed or swapped) from `misspelt`,
// or that it begins; NULL when none is near.
const char *wr_nearest(const char *misspelt, const char *const *words, size_t count);

#endif
