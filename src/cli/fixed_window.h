// fixed_window.h - the naive limiter, to compare with: a counter per key that starts at 0 again in
// every window of a fixed grid.
//
// It gets the same limit: up to `burst` tokens a window, which is as long as the rate takes for
// them (5/s with a burst of 20: 20 in each 4 s; 5/s with 5: 5 in each second). So in the long run
// it lets through as much as the bucket; but around the edge of two windows it lets twice the burst
// through at once. The excess is what it lets through beyond burst + rate * time, in the worst
// stretch of time of any length: the bucket's is 0 by construction.
#ifndef WR_FIXED_WINDOW_H
#define WR_FIXED_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "rate.h"

__extension__ typedef unsigned __int128 wr_wide;

struct wr_fixed_window_key {
    int64_t window;  // its number on the grid
    uint64_t used;   // tokens of it
    wr_wide ahead;   // granted beyond rate * time, in tokens * period_ns
    int64_t at_ns;   // when `ahead` was right
    int64_t from_ns; // when it last rose from 0
    uint64_t tokens; // granted since then
};

// The stretch with the greatest excess.
struct wr_fixed_window_worst {
    wr_wide excess; // in tokens * period_ns
    uint64_t tokens;
    int64_t from_ns;
    int64_t to_ns;
};

struct wr_fixed_window {
    struct wr_rate rate;
    uint64_t burst;
    struct wr_fixed_window_key *keys;
    struct wr_fixed_window_worst worst;
};

// For key numbers below `keys`. The rate is not unlimited.
bool wr_fixed_window_init(struct wr_fixed_window *counters, const struct wr_rate *rate,
                          uint64_t burst, uint32_t keys);
void wr_fixed_window_fini(struct wr_fixed_window *counters);

// Whether the counter grants. Times are since 1970 and never go back. `worst` is set to true when
// the excess is the greatest so far.
bool wr_fixed_window_take(struct wr_fixed_window *counters, uint32_t key, int64_t now_ns,
                          uint64_t cost, bool *worst);

// Whether the key's counter is as good as none.
bool wr_fixed_window_is_idle(struct wr_fixed_window *counters, uint32_t key, int64_t now_ns);
void wr_fixed_window_forget(struct wr_fixed_window *counters, uint32_t key);

// The tokens that burst + rate * time allows in the worst stretch.
uint64_t wr_fixed_window_allowed(const struct wr_fixed_window *counters);

#endif
