// pool_view.h - the run as it goes, twice a second, on a terminal.
#ifndef WR_POOL_VIEW_H
#define WR_POOL_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "pool_latency.h"
#include "pool_watch.h"

struct wr_pool_view {
    bool shown;          // standard error is a terminal
    char title[80];      // "adaptive (4 of 4)"
    uint64_t due_ns;     // when to write the next line
    struct wr_pool_moment before;
    struct wr_latencies latencies_before;
};

void wr_pool_view_init(struct wr_pool_view *view, const char *title);

// Writes a line when it is time for one. Rates are those since the line before.
void wr_pool_view_show(struct wr_pool_view *view, const struct wr_pool *pool, uint64_t now_ns);

// Leaves the last line where it is.
void wr_pool_view_end(struct wr_pool_view *view);

#endif
