// pool_view.c - one line that is written over itself, under a line of headings.
#include "pool_view.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "pool.h"

#define EVERY_NS (WEIR_SECOND / 2)

void wr_pool_view_init(struct wr_pool_view *view, const char *title) {
    *view = (struct wr_pool_view){.shown = isatty(STDERR_FILENO) == 1};
    snprintf(view->title, sizeof view->title, "%s", title);
}

static void write_headings(const struct wr_pool_view *view) {
    fprintf(stderr, "%s; Ctrl-C drains and sums up\n"
                    "   time arrive/s  grant/s denied/s  parked queue   rate/s busy too-much/s "
                    "     p50      p99\n", view->title);
}

// "1.23s", "45.6ms" in seven columns.
static void write_latency(uint64_t ns) {
    if (ns >= WEIR_SECOND) fprintf(stderr, " %7.2fs", (double)ns / 1e9);
    else fprintf(stderr, " %6.1fms", (double)ns / 1e6);
}

static double per_s(const struct wr_pool_view *view, const struct wr_pool_moment *now,
                    enum wr_pool_count count) {
    const uint64_t span_ns = now->at_ns - view->before.at_ns;
    if (span_ns == 0) return 0;
    return (double)(now->counts.of[count] - view->before.counts.of[count]) * 1e9 / (double)span_ns;
}

static double overloads_per_s(const struct wr_pool_view *view, const struct wr_pool_moment *now) {
    return per_s(view, now, WR_POOL_COUNT_TOO_MANY) +
           per_s(view, now, WR_POOL_COUNT_UNAVAILABLE) + per_s(view, now, WR_POOL_COUNT_TIMEOUT);
}

static void write_line(struct wr_pool_view *view, const struct wr_pool *pool,
                       const struct wr_pool_moment *now) {
    struct wr_latencies latencies, recent;
    wr_latency_read(&pool->latency, &latencies);
    recent = latencies;
    wr_latencies_since(&recent, &view->latencies_before);
    fprintf(stderr, "\r%6.1fs %8.0f %8.0f %8.0f %7" PRIu64 " %5" PRIu32, (double)now->at_ns / 1e9,
            per_s(view, now, WR_POOL_COUNT_ARRIVED), per_s(view, now, WR_POOL_COUNT_GRANTED),
            per_s(view, now, WR_POOL_COUNT_HELD_UP), now->parked, now->depth);
    if (isinf(now->rate_per_s)) fprintf(stderr, "     none");
    else fprintf(stderr, " %8.0f", now->rate_per_s);
    fprintf(stderr, " %4" PRIu32 " %10.0f", now->busy, overloads_per_s(view, now));
    write_latency(wr_latencies_quantile_ns(&recent, 0.5));
    write_latency(wr_latencies_quantile_ns(&recent, 0.99));
    fputs("\033[K", stderr);
    fflush(stderr);
    view->latencies_before = latencies;
}

void wr_pool_view_show(struct wr_pool_view *view, const struct wr_pool *pool, uint64_t now_ns) {
    struct wr_pool_moment now;
    if (!view->shown || now_ns < view->due_ns) return;
    if (view->due_ns == 0) write_headings(view);
    wr_pool_moment_read(pool, now_ns, &now);
    write_line(view, pool, &now);
    view->before = now;
    view->due_ns = now_ns + EVERY_NS;
}

void wr_pool_view_end(struct wr_pool_view *view) {
    if (view->shown && view->due_ns != 0) fputs("\n", stderr);
}
