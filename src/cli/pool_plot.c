// pool_plot.c - the commands and data for gnuplot, a picture for each run under the other.
#include "pool_plot.h"

#include <inttypes.h>
#include <math.h>

#define STEPS 150

// seconds granted/s denied/s delivered/s rate/s (NaN: none) queue
static void write_data(FILE *out, const struct wr_pool *pool, size_t number) {
    const struct wr_pool_watch *watch = &pool->watch;
    const size_t stride = watch->count / STEPS + 1;
    fprintf(out, "$run%zu << END\n0 0 0 0 NaN 0\n", number);
    for (size_t i = stride; i < watch->count; i += stride) {
        const struct wr_pool_moment *to = &watch->moments[i], *from = to - stride;
        const double span_s = (double)(to->at_ns - from->at_ns) / 1e9;
        static const enum wr_pool_count kinds[] = {WR_POOL_COUNT_GRANTED, WR_POOL_COUNT_HELD_UP,
                                                   WR_POOL_COUNT_DELIVERED};
        fprintf(out, "%.3f", (double)to->at_ns / 1e9);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            fprintf(out, " %.2f",
                    (double)(to->counts.of[kinds[k]] - from->counts.of[kinds[k]]) / span_s);
        if (isinf(to->rate_per_s)) fprintf(out, " NaN");
        else fprintf(out, " %.2f", to->rate_per_s);
        fprintf(out, " %" PRIu32 "\n", to->depth);
    }
    fputs("END\n", out);
}

static void write_capacity(FILE *out, const struct wr_pool *pool) {
    fputs("$capacity << END\n", out);
    for (int i = 0; i <= STEPS; i++) {
        const uint64_t at_ns = pool->options.duration_ns / STEPS * (uint64_t)i;
        const double per_s = wr_downstream_per_s(&pool->options.downstream, at_ns);
        if (isfinite(per_s)) fprintf(out, "%.3f %.2f\n", (double)at_ns / 1e9, per_s);
        else fprintf(out, "%.3f NaN\n", (double)at_ns / 1e9);
    }
    fputs("END\n", out);
}

static void write_picture(FILE *out, const struct wr_pool *pool, size_t number) {
    char name[WR_POOL_NAME_BYTES], title[256];
    wr_pool_name(&pool->options, name);
    snprintf(title, sizeof title, "%s: %.1f%% of what the provider could take, %" PRIu64
                                  " overload answers, worst queue %" PRIu32,
             name, 100 * wr_pool_watch_share(&pool->watch), pool->watch.overloads,
             pool->worst_depth);
    fputs("set title ", out);
    wr_plot_write_text(out, wr_text_of(title), 250);
    fprintf(out, "\nplot $run%zu using 1:3 with lines lc rgb '#d1495b' title 'denied at first', "
                 "$run%zu using 1:2 with lines lw 2 lc rgb '#4f7cac' title 'granted', "
                 "$run%zu using 1:4 with lines lc rgb '#3c9d6b' title 'delivered', "
                 "$run%zu using 1:5 with lines dt 2 lc rgb 'black' title 'limit', "
                 "$capacity using 1:2 with steps lc rgb '#999999' title 'capacity'\n",
            number, number, number, number);
}

void wr_pool_plot(struct wr_plot *plot, const struct wr_pool_runs *runs) {
    FILE *out = wr_plot_script(plot);
    for (size_t i = 0; i < runs->count; i++) write_data(out, runs->runs[i], i);
    write_capacity(out, runs->runs[0]);
    fprintf(out, "set xlabel 'seconds'\nset ylabel 'events a second'\nset yrange [0:*]\n"
                 "set xrange [0:%.3f]\nset grid ytics lc rgb '#dddddd'\nset key outside\n"
                 "set multiplot layout %zu,1\n",
            (double)runs->runs[0]->options.duration_ns / 1e9, runs->count);
    for (size_t i = 0; i < runs->count; i++) write_picture(out, runs->runs[i], i);
    fputs("unset multiplot\n", out);
}
