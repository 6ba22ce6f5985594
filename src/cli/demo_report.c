// demo_report.c - the processes, the bill, the terms of the bound, the verdict.
#include "demo_report.h"

#include <inttypes.h>

void wr_demo_title(const struct wr_demo_options *options, char title[WR_DEMO_TITLE_BYTES]) {
    char rate[WR_UNIT_TEXT], keys[48] = "";
    wr_rate_text(&options->rate, rate);
    if (options->keys > 1)
        snprintf(keys, sizeof keys, " for each of %" PRIu32 " keys", options->keys);
    snprintf(title, WR_DEMO_TITLE_BYTES,
             "%" PRIu32 " process%s, %s, burst %" PRIu64 "%s, demand %gx %s", options->processes,
             options->processes == 1 ? "" : "es", rate, options->burst, keys, options->demand,
             wr_demo_pattern_word(options->pattern));
}

static void write_faults(FILE *out, const struct wr_demo_run *run) {
    char text[WR_UNIT_TEXT * 2];
    for (size_t i = 0; i < run->options->fault_count; i++) {
        wr_demo_fault_text(&run->options->faults[i], text);
        fprintf(out, "fault %s%s\n", text, run->fault_done[i] ? "" : " (did not come to it)");
    }
}

static void write_processes(FILE *out, const struct wr_demo_run *run) {
    fprintf(out, "\n%7s %10s %10s %10s %8s %6s %8s %9s %9s\n", "process", "asked", "granted",
            "reported", "pending", "lost", "reports", "timeouts", "rtt");
    for (uint32_t i = 0; i < run->options->processes; i++) {
        char rtt[WR_UNIT_TEXT];
        uint64_t f[WR_DEMO_FIGURE_COUNT];
        for (int k = 0; k < WR_DEMO_FIGURE_COUNT; k++)
            f[k] = wr_demo_board_figure(run->board, i, (enum wr_demo_figure)k);
        wr_span_text(f[WR_DEMO_FIGURE_RTT_NS], rtt);
        fprintf(out,
                "%7" PRIu32 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %8" PRIu64 " %6" PRIu64
                " %8" PRIu64 " %9" PRIu64 " %9s%s\n",
                i, wr_demo_board_asked(run->board, i), wr_demo_board_granted(run->board, i),
                f[WR_DEMO_FIGURE_REPORTED], f[WR_DEMO_FIGURE_PENDING], f[WR_DEMO_FIGURE_LOST],
                f[WR_DEMO_FIGURE_REPORTS], f[WR_DEMO_FIGURE_TIMEOUTS], rtt,
                run->killed_ns[i] != 0 ? "  killed" : "");
    }
}

static void write_term(FILE *out, double tokens, const char *words) {
    if (tokens > 0) fprintf(out, "%16.1f  %s\n", tokens, words);
}

static void write_bound(FILE *out, const struct wr_demo_verdict *v) {
    const struct wr_demo_bound *b = &v->keys[v->key].bound;
    fprintf(out, "bound %10.1f  tokens over b + r*t in any window, with d' = %.0f ms:\n", b->all,
            v->gap_s * 1e3);
    write_term(out, b->blind, "granted while nobody hears: r * (d' + RTT/2)");
    write_term(out, b->others, "asked on the other processes in 2d', each at most b + 2r*d'");
    write_term(out, b->usual > b->blind + b->others ? b->usual : 0,
               "instead of these two: excess_bound_tokens, as the processes export it");
    write_term(out, b->forgiven, "debt above max_debt, which is forgiven");
    write_term(out, b->outage, "asked in outages above the rate, or (N-1) * (b + r*O)");
    write_term(out, b->emptied, "Redis forgot all buckets: b and the first terms again");
    write_term(out, b->killed, "granted by a killed process that had not reported it");
}

static void write_bill(FILE *out, const struct wr_demo_verdict *v) {
    const struct wr_demo_key *key = &v->keys[v->key];
    fprintf(out, "\nasked   %8" PRIu64 "  in %.1f s\n", v->asked, v->elapsed_s);
    fprintf(out, "granted %8" PRIu64 "\n", v->granted);
    fprintf(out, "allowed %10.1f  b + r*t\n", v->allowed);
    fprintf(out, "excess  %+10.1f  %+.2f%%\n", v->excess, v->percent);
    fprintf(out, "worst   %+10.1f  in any window (%.2f s to %.2f s)\n", key->worst,
            key->worst_from_s, key->worst_to_s);
}

void wr_demo_report_write(FILE *out, const struct wr_demo_run *run,
                          const struct wr_demo_verdict *v) {
    char title[WR_DEMO_TITLE_BYTES];
    const struct wr_demo_key *key = &v->keys[v->key];
    wr_demo_title(run->options, title);
    fprintf(out, "%s%s\n", title, run->cut_short ? "; interrupted" : "");
    if (!run->options->own_server)
        fprintf(out, "names in Redis begin with %s and expire\n", run->prefix);
    write_faults(out, run);
    write_processes(out, run);
    write_bill(out, v);
    if (run->options->keys > 1)
        fprintf(out, "of the keys, key%" PRIu32 " is closest to its bound\n", v->key);
    write_bound(out, v);
    fprintf(out, "\n%s: %+.1f tokens over the limit at worst, where %.1f are the bound\n",
            v->within ? "within the bound" : "ABOVE THE BOUND", key->worst, key->bound.all);
}
