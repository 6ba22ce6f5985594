// demo_view.h - the run as it goes, on a terminal: the processes as bars, and the bill.
#ifndef WR_DEMO_VIEW_H
#define WR_DEMO_VIEW_H

#include "demo_run.h"

struct wr_demo_view {
    bool shown;       // standard error is a terminal
    uint64_t due_ns;
    uint64_t before_ns;
    uint64_t granted[WR_DEMO_PROCESSES_MAX]; // at before_ns
    uint64_t asked[WR_DEMO_PROCESSES_MAX];
    unsigned lines;   // on the terminal
};

void wr_demo_view_init(struct wr_demo_view *view, bool wanted);
// A wr_demo_show; `context` is the view.
void wr_demo_view_show(void *context, const struct wr_demo_run *run, uint64_t now_ns);
// Takes it off again.
void wr_demo_view_end(struct wr_demo_view *view);

#endif
