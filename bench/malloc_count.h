// Counts this process's calls of malloc and its like, so that "allocates nothing" can be shown.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// False where they cannot be counted: no glibc, or a sanitizer that has put its own in their place.
bool bench_malloc_count(uint64_t *count);
