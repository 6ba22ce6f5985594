// timeline.h - granted and denied over time, in a fixed number of steps that widen as time goes on.
#ifndef WR_TIMELINE_H
#define WR_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_TIMELINE_STEPS 2048

struct wr_timeline_step {
    uint64_t granted;
    uint64_t denied;
};

// Step i holds the times from i * width up to the next; times are since the first line.
struct wr_timeline {
    size_t width; // a number in the list of widths
    size_t used;  // steps up to the last one that holds something
    bool whole_seconds;
    struct wr_timeline_step steps[WR_TIMELINE_STEPS];
};

void wr_timeline_init(struct wr_timeline *timeline);

// `now_ns` is 0 or more; any order.
void wr_timeline_add(struct wr_timeline *timeline, int64_t now_ns, bool granted);

// Adds what `from` holds, which may be widened for it.
void wr_timeline_merge(struct wr_timeline *timeline, struct wr_timeline *from);

// Widens until there are at most `steps`, and no step is finer than the times themselves.
void wr_timeline_fit(struct wr_timeline *timeline, size_t steps);

uint64_t wr_timeline_width_ns(const struct wr_timeline *timeline);

#endif
