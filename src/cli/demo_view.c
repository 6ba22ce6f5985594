// demo_view.c - a few lines that are written over themselves, five times a second.
#include "demo_view.h"

#include <inttypes.h>
#include <unistd.h>

#include "demo_report.h"

#define EVERY_NS (200 * WEIR_MILLISECOND)
#define BAR 40
#define ROWS_MAX 16 // of processes; the others are summed up

void wr_demo_view_init(struct wr_demo_view *view, bool wanted) {
    *view = (struct wr_demo_view){.shown = wanted && isatty(STDERR_FILENO) == 1};
}

static void rewind_lines(struct wr_demo_view *view) {
    if (view->lines > 0) fprintf(stderr, "\033[%uA\r\033[J", view->lines);
    view->lines = 0;
}

static void end_line(struct wr_demo_view *view) {
    fputs("\033[K\n", stderr);
    view->lines++;
}

static void write_head(struct wr_demo_view *view, const struct wr_demo_run *run) {
    char title[WR_DEMO_TITLE_BYTES];
    wr_demo_title(run->options, title);
    fprintf(stderr, "%.100s; Ctrl-C ends it", title);
    end_line(view);
    if (!run->options->own_server || run->server.pid == 0) return;
    fprintf(stderr, "meanwhile: weir top --redis unix:%s --watch 1s", run->server.socket);
    end_line(view);
}

static void write_bar(double part) {
    const int length = part >= 1 ? BAR : (int)(part * BAR + 0.5);
    fprintf(stderr, "%.*s%*s", length, "########################################", BAR - length,
            "");
}

// Rates since the view before; the bar is full at the rate of all keys.
static void write_process(struct wr_demo_view *view, const struct wr_demo_run *run,
                          uint32_t process, double span_s) {
    const uint64_t granted = wr_demo_board_granted(run->board, process);
    const uint64_t asked = wr_demo_board_asked(run->board, process);
    const double granted_per_s = (double)(granted - view->granted[process]) / span_s;
    const double asked_per_s = (double)(asked - view->asked[process]) / span_s;
    view->granted[process] = granted;
    view->asked[process] = asked;
    if (process >= ROWS_MAX) return;
    fprintf(stderr, "%4" PRIu32 " ", process);
    write_bar(granted_per_s / (wr_demo_rate_per_s(run->options) * run->options->keys));
    if (run->killed_ns[process] != 0) fprintf(stderr, " killed");
    else fprintf(stderr, " %9.0f/s of %9.0f/s asked", granted_per_s, asked_per_s);
    end_line(view);
}

static void write_bill(struct wr_demo_view *view, const struct wr_demo_run *run, uint64_t now_ns) {
    const struct wr_demo_options *o = run->options;
    uint64_t granted = 0, bound = 0;
    for (uint32_t i = 0; i < o->processes; i++) {
        const uint64_t own = wr_demo_board_figure(run->board, i, WR_DEMO_FIGURE_BOUND_MILLI);
        granted += wr_demo_board_granted(run->board, i);
        if (own > bound) bound = own;
    }
    const double allowed =
        o->keys * ((double)o->burst + wr_demo_rate_per_s(o) * (double)now_ns / 1e9);
    fprintf(stderr, "%5.1fs  granted %" PRIu64 ", allowed %.0f, excess %+.0f, bound %.0f%s",
            (double)now_ns / 1e9, granted, allowed, (double)granted - allowed,
            (double)bound / 1000 * o->keys, o->fault_count > 0 ? " and the faults" : "");
    end_line(view);
}

void wr_demo_view_show(void *context, const struct wr_demo_run *run, uint64_t now_ns) {
    struct wr_demo_view *view = context;
    if (!view->shown || now_ns < view->due_ns) return;
    const double span_s = (double)(now_ns - view->before_ns) / 1e9;
    rewind_lines(view);
    write_head(view, run);
    for (uint32_t i = 0; span_s > 0 && i < run->options->processes; i++)
        write_process(view, run, i, span_s);
    write_bill(view, run, now_ns);
    fflush(stderr);
    view->before_ns = now_ns;
    view->due_ns = now_ns + EVERY_NS;
}

void wr_demo_view_end(struct wr_demo_view *view) {
    if (!view->shown) return;
    rewind_lines(view);
    fflush(stderr);
}
