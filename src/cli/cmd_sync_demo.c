// cmd_sync_demo.c - `weir sync-demo`: a run, and what becomes of it.
#include <stdio.h>

#include "commands.h"
#include "demo_arguments.h"
#include "demo_report.h"
#include "demo_view.h"
#include "output.h"

// What is open while it runs; plot NULL: not asked for.
struct results {
    struct wr_output *report;
    struct wr_plot *plot;
};

static bool open_results(const struct wr_demo_job *job, struct results *results,
                         struct wr_fault *fault) {
    if (job->plot != NULL &&
        !wr_plot_open(&results->plot, job->plot, WR_DEMO_PLOT_WIDTH, WR_DEMO_PLOT_HEIGHT, fault))
        return false;
    return wr_output_open(&results->report, job->output, fault);
}

static bool write_results(const struct wr_demo_job *job, const struct results *results,
                          const struct wr_demo_run *run, const struct wr_demo_verdict *verdict,
                          struct wr_fault *fault) {
    FILE *out = wr_output_file(results->report);
    if (results->plot != NULL) wr_demo_plot(results->plot, run, verdict);
    if (results->plot != NULL && !wr_plot_draw(results->plot, fault)) return false;
    if (!job->json) wr_demo_report_write(out, run, verdict);
    else if (!wr_demo_report_write_json(out, run, verdict))
        return wr_fault(fault, "the report cannot be written");
    return wr_output_close(results->report, fault) &&
           (results->plot == NULL || wr_plot_publish(results->plot, fault)) &&
           wr_output_publish(results->report, fault);
}

static bool run_all(const struct wr_demo_job *job, struct wr_demo_run *run,
                    struct wr_fault *fault) {
    struct wr_demo_view view;
    wr_demo_view_init(&view, true);
    wr_demo_run_catch(run);
    const bool good = wr_demo_run_open(run, &job->options, fault) &&
                      wr_demo_run_go(run, wr_demo_view_show, &view, fault);
    wr_demo_run_close(run);
    wr_demo_run_restore();
    wr_demo_view_end(&view);
    return good;
}

static bool check(const struct wr_demo_verdict *verdict, struct wr_fault *fault) {
    const struct wr_demo_key *key = &verdict->keys[verdict->key];
    if (!verdict->adds_up)
        return wr_fault(fault, "the counts of a process do not add up; please report it");
    return verdict->within ||
           wr_fault(fault,
                    "%.1f tokens over the limit, where %.1f are the bound; please report it "
                    "with the --json of the run",
                    key->worst, key->bound.all);
}

int wr_cmd_sync_demo(int argc, char **argv) {
    static struct wr_demo_run run; // large
    static struct wr_demo_verdict verdict;
    struct wr_demo_job job;
    struct results results = {NULL, NULL};
    struct wr_fault fault = {""};
    const int code = wr_demo_arguments(argc, argv, &job);
    if (code >= 0) return code;
    bool good = open_results(&job, &results, &fault) && run_all(&job, &run, &fault);
    if (good) {
        wr_demo_judge(&run, &verdict);
        good = write_results(&job, &results, &run, &verdict, &fault) && check(&verdict, &fault);
    }
    if (!good) fprintf(stderr, "weir sync-demo: %s\n", fault.text);
    wr_demo_board_destroy(run.board);
    wr_plot_destroy(results.plot);
    wr_output_destroy(results.report);
    return good ? WR_EXIT_FINE : WR_EXIT_TROUBLE;
}
