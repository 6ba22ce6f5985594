// timeline.c - each width is a whole number of the one before, so steps are widened by adding up.
#include "timeline.h"

#include <string.h>

#include <weir.h>

static const uint64_t widths_ns[] = {
    1,
    10,
    100,
    WEIR_MICROSECOND,
    10 * WEIR_MICROSECOND,
    100 * WEIR_MICROSECOND,
    WEIR_MILLISECOND,
    10 * WEIR_MILLISECOND,
    100 * WEIR_MILLISECOND,
    WEIR_SECOND,
    5 * WEIR_SECOND,
    10 * WEIR_SECOND,
    30 * WEIR_SECOND,
    WEIR_MINUTE,
    5 * WEIR_MINUTE,
    10 * WEIR_MINUTE,
    30 * WEIR_MINUTE,
    WEIR_HOUR,
    3 * WEIR_HOUR,
    6 * WEIR_HOUR,
    12 * WEIR_HOUR,
    WEIR_DAY,
    7 * WEIR_DAY,
    28 * WEIR_DAY,
    364 * WEIR_DAY, // 2,048 of these are beyond the range of time
};

void wr_timeline_init(struct wr_timeline *timeline) {
    memset(timeline, 0, sizeof(*timeline));
    timeline->whole_seconds = true;
}

uint64_t wr_timeline_width_ns(const struct wr_timeline *timeline) {
    return widths_ns[timeline->width];
}

static void widen(struct wr_timeline *timeline) {
    size_t factor = widths_ns[timeline->width + 1] / widths_ns[timeline->width];
    struct wr_timeline_step *steps = timeline->steps;
    for (size_t i = 0; i < timeline->used; i++) {
        struct wr_timeline_step step = steps[i];
        steps[i] = (struct wr_timeline_step){0, 0};
        steps[i / factor].granted += step.granted;
        steps[i / factor].denied += step.denied;
    }
    timeline->used = (timeline->used + factor - 1) / factor;
    timeline->width++;
}

void wr_timeline_add(struct wr_timeline *timeline, int64_t now_ns, bool granted) {
    uint64_t now = (uint64_t)now_ns;
    while (now / widths_ns[timeline->width] >= WR_TIMELINE_STEPS) widen(timeline);
    size_t at = now / widths_ns[timeline->width];
    if (granted) timeline->steps[at].granted++;
    else timeline->steps[at].denied++;
    if (at >= timeline->used) timeline->used = at + 1;
    if (now % WEIR_SECOND != 0) timeline->whole_seconds = false;
}

void wr_timeline_merge(struct wr_timeline *timeline, struct wr_timeline *from) {
    while (timeline->width < from->width) widen(timeline);
    while (from->width < timeline->width) widen(from);
    for (size_t i = 0; i < from->used; i++) {
        timeline->steps[i].granted += from->steps[i].granted;
        timeline->steps[i].denied += from->steps[i].denied;
    }
    if (from->used > timeline->used) timeline->used = from->used;
    if (!from->whole_seconds) timeline->whole_seconds = false;
}

void wr_timeline_fit(struct wr_timeline *timeline, size_t steps) {
    while (timeline->used > steps ||
           (timeline->whole_seconds && widths_ns[timeline->width] < WEIR_SECOND))
        widen(timeline);
}
