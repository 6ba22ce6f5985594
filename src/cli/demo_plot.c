// demo_plot.c - two pictures under each other, for gnuplot.
#include "demo_report.h"

#define STEPS 400

static uint64_t granted_in(const struct wr_demo_run *run, size_t slot) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < run->options->processes; i++)
        for (uint32_t key = 0; key < run->options->keys; key++)
            sum += wr_demo_board_slot(run->board, i, key, slot).granted;
    return sum;
}

// seconds granted allowed excess
static void write_data(FILE *out, const struct wr_demo_run *run) {
    const struct wr_demo_options *o = run->options;
    const size_t slots = (size_t)(run->elapsed_ns / WR_DEMO_SLOT_NS), stride = slots / STEPS + 1;
    uint64_t granted = 0;
    fprintf(out, "$run << END\n0 0 %.1f %.1f\n", (double)o->burst * o->keys,
            -(double)o->burst * o->keys);
    for (size_t i = 0; i < slots; i++) {
        const double at_s = (double)(i + 1) * (double)WR_DEMO_SLOT_NS / 1e9;
        const double allowed = o->keys * ((double)o->burst + wr_demo_rate_per_s(o) * at_s);
        granted += granted_in(run, i);
        if ((i + 1) % stride == 0 || i + 1 == slots)
            fprintf(out, "%.3f %.0f %.1f %.1f\n", at_s, (double)granted, allowed,
                    (double)granted - allowed);
    }
    fputs("END\n", out);
}

static void write_faults(FILE *out, const struct wr_demo_run *run) {
    for (size_t i = 0; i < run->options->fault_count; i++) {
        const struct wr_demo_fault *fault = &run->options->faults[i];
        const double at_s = (double)fault->at_ns / 1e9,
                     to_s = at_s + (double)fault->length_ns / 1e9;
        fprintf(out, "set arrow from %.3f, graph 0 to %.3f, graph 1 nohead lc rgb '#d1495b' dt 3\n",
                at_s, at_s);
        if (fault->kind == WR_DEMO_OUTAGE)
            fprintf(out,
                    "set object rectangle from %.3f, graph 0 to %.3f, graph 1 behind "
                    "fc rgb '#f7e0e3' fs noborder\n",
                    at_s, to_s);
    }
}

void wr_demo_plot(struct wr_plot *plot, const struct wr_demo_run *run,
                  const struct wr_demo_verdict *v) {
    FILE *out = wr_plot_script(plot);
    char title[WR_DEMO_TITLE_BYTES];
    double bound = 0;
    for (uint32_t i = 0; i < run->options->keys; i++) bound += v->keys[i].bound.all;
    wr_demo_title(run->options, title);
    write_data(out, run);
    fprintf(out,
            "set xlabel 'seconds'\nset xrange [0:%.3f]\nset grid ytics lc rgb '#dddddd'\n"
            "set key left top\nset multiplot layout 2,1\n",
            v->elapsed_s);
    write_faults(out, run);
    fputs("set title ", out);
    wr_plot_write_text(out, wr_text_of(title), 250);
    fputs("\nset ylabel 'tokens'\n"
          "plot $run using 1:3 with lines dt 2 lc rgb 'black' title 'allowed: b + r*t', "
          "$run using 1:2 with lines lw 2 lc rgb '#4f7cac' title 'granted on all processes'\n",
          out);
    snprintf(title, sizeof title, "excess: %+.1f at the end, %+.1f in the worst window", v->excess,
             v->keys[v->key].worst);
    fputs("set title ", out);
    wr_plot_write_text(out, wr_text_of(title), 250);
    fprintf(out,
            "\nset key right bottom\nset ylabel 'tokens over b + r*t'\n"
            "plot $run using 1:4 with lines lw 2 lc rgb '#d1495b' title 'excess', "
            "%.1f with lines dt 2 lc rgb 'black' title 'bound', "
            "0 with lines lc rgb '#999999' notitle\nunset multiplot\n",
            bound);
}
