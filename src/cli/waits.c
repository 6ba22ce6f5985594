// waits.c - the ranges of waits.
#include "waits.h"

const struct wr_wait_range wr_wait_ranges[WR_WAIT_COUNT] = {
#define WAIT_RANGE(name, longest_ns, words) {longest_ns, words},
    WR_WAITS(WAIT_RANGE)
#undef WAIT_RANGE
};

enum wr_wait wr_wait_of(uint64_t retry_after_ns) {
    enum wr_wait wait = WR_WAIT_MS_1;
    while (retry_after_ns > wr_wait_ranges[wait].longest_ns) wait++;
    return wait;
}
