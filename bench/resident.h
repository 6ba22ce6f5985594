// How much memory this process has in use, as the kernel counts it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bench_resident {
    uint64_t bytes;      // resident
    uint64_t huge_bytes; // of these, in huge pages
};

// False where the kernel does not tell (no /proc/self/smaps_rollup).
bool bench_resident_read(struct bench_resident *resident);
