// cmd_pool.c - `weir pool`: its runs, and what becomes of them.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "commands.h"
#include "output.h"
#include "pool_arguments.h"
#include "pool_plot.h"
#include "pool_report.h"
#include "pool_server.h"
#include "pool_view.h"

#define SAME_INTERRUPT_MS 500

// What is open while the pool runs; NULL: not asked for.
struct results {
    struct wr_output *report;
    struct wr_plot *plot;
    struct wr_pool_server *server;
};

static volatile sig_atomic_t interrupted;
static struct sigaction before_int, before_term;
static struct timespec first_interrupt;

static void restore_signals(void) {
    sigaction(SIGINT, &before_int, NULL);
    sigaction(SIGTERM, &before_term, NULL);
}

// The first drains. A further one is the usual end; but one that follows at once is the same again:
// a terminal's, and that of a program such as timeout, which passes it on.
static void interrupt(int signal_number) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupted) first_interrupt = now;
    const long since_ms = (now.tv_sec - first_interrupt.tv_sec) * 1000 +
                          (now.tv_nsec - first_interrupt.tv_nsec) / 1000000;
    interrupted = 1;
    if (since_ms < SAME_INTERRUPT_MS) return;
    restore_signals();
    raise(signal_number);
}

static void catch_interrupts(void) {
    struct sigaction action = {.sa_handler = interrupt};
    interrupted = 0;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, &before_int);
    sigaction(SIGTERM, &action, &before_term);
}

// What the command runs, one after the other.
struct plan {
    struct wr_pool_options runs[WR_POOL_MODE_COUNT + 1];
    size_t count;
};

static void add_run(struct plan *plan, const struct wr_pool_job *job, enum wr_pool_mode mode,
                    struct wr_rate provider_rate) {
    struct wr_pool_options *run = &plan->runs[plan->count++];
    *run = job->options;
    run->mode = mode;
    run->provider_rate = provider_rate;
}

// Between a fixed limit too low for the usual provider and one too high.
static struct plan plan_of(const struct wr_pool_job *job) {
    const struct wr_rate low = {200, WEIR_SECOND}, high = {1000, WEIR_SECOND};
    const struct wr_rate given = job->options.provider_rate;
    struct plan plan = {.count = 0};
    if (!job->compare) {
        add_run(&plan, job, job->options.mode, given);
        return plan;
    }
    add_run(&plan, job, WR_POOL_NONE, given);
    add_run(&plan, job, WR_POOL_FIXED, job->has_provider_rate ? given : low);
    if (!job->has_provider_rate) add_run(&plan, job, WR_POOL_FIXED, high);
    add_run(&plan, job, WR_POOL_ADAPTIVE, given);
    return plan;
}

// Refuses, before the first run, what the last one could not be made of.
static bool check_plan(const struct plan *plan, struct wr_fault *fault) {
    struct wr_pool_events none = {.all = NULL};
    for (size_t i = 0; i < plan->count; i++) {
        struct wr_pool *pool;
        if (!wr_pool_create(&pool, &plan->runs[i], &none, fault)) return false;
        wr_pool_destroy(pool);
    }
    return true;
}

static bool run_one(const struct plan *plan, size_t i, struct wr_pool_runs *runs,
                    struct wr_pool_events *events, struct results *results,
                    struct wr_fault *fault) {
    struct wr_pool *pool = NULL;
    struct wr_pool_view view;
    char name[WR_POOL_NAME_BYTES], title[160];
    if (!wr_pool_create(&pool, &plan->runs[i], events, fault)) return false;
    runs->runs[runs->count++] = pool;
    wr_pool_name(&plan->runs[i], name);
    snprintf(title, sizeof title, plan->count > 1 ? "%s (%zu of %zu)" : "%s", name, i + 1,
             plan->count);
    wr_pool_view_init(&view, title);
    wr_pool_server_show(results->server, pool);
    if (results->server != NULL && i == 0)
        fprintf(stderr, "weir pool: %s\n", wr_pool_server_url(results->server));
    const bool good = wr_pool_run(pool, &view, &interrupted, fault);
    wr_pool_view_end(&view);
    return good;
}

// All that could be in the way is found out before the first event.
static int open_results(const struct wr_pool_job *job, const struct plan *plan,
                        struct results *results, struct wr_fault *fault) {
    bool is_usage = false;
    const int height = WR_POOL_PLOT_HEIGHT_EACH * (int)plan->count;
    if (!check_plan(plan, fault)) return WR_EXIT_USAGE;
    if (job->listen != NULL &&
        !wr_pool_server_create(&results->server, job->listen, &is_usage, fault))
        return is_usage ? WR_EXIT_USAGE : WR_EXIT_TROUBLE;
    if (job->plot != NULL &&
        !wr_plot_open(&results->plot, job->plot, WR_POOL_PLOT_WIDTH, height, fault))
        return WR_EXIT_TROUBLE;
    return wr_output_open(&results->report, job->output != NULL ? job->output : "-", fault)
               ? WR_EXIT_FINE
               : WR_EXIT_TROUBLE;
}

static bool write_results(const struct wr_pool_job *job, struct results *results,
                          const struct wr_pool_runs *runs, struct wr_fault *fault) {
    FILE *out = wr_output_file(results->report);
    if (results->plot != NULL) wr_pool_plot(results->plot, runs);
    if (results->plot != NULL && !wr_plot_draw(results->plot, fault)) return false;
    if (!job->json) wr_pool_report_write(out, runs);
    else if (!wr_pool_report_write_json(out, runs))
        return wr_fault(fault, "the report cannot be written");
    return wr_output_close(results->report, fault) &&
           (results->plot == NULL || wr_plot_publish(results->plot, fault)) &&
           wr_output_publish(results->report, fault);
}

// What makes a run that came to its end a bad one.
static bool check(const struct wr_pool_runs *runs, const struct wr_pool_events *events,
                  struct wr_fault *fault) {
    for (size_t i = 0; i < runs->count; i++) {
        const struct wr_pool *pool = runs->runs[i];
        if (!wr_pool_sheet_balances(&pool->sheet))
            return wr_fault(fault, "the balance does not add up: %" PRId64 " events lost, %" PRIu64
                                   " without an end, %" PRIu64 " with two; please report it",
                            pool->sheet.lost, pool->sheet.unended, pool->sheet.twice);
        if (pool->counts.of[WR_POOL_COUNT_FAILED] > 0)
            return wr_fault(fault, "%" PRIu64 " events failed in the limiter or the lot, and were "
                                   "dead-lettered", pool->counts.of[WR_POOL_COUNT_FAILED]);
    }
    return events->broke_off.text[0] == '\0' ||
           wr_fault(fault, "%.540s (what came before was run)", events->broke_off.text);
}

static bool run_all(const struct plan *plan, struct results *results,
                    struct wr_pool_events *events, struct wr_pool_runs *runs,
                    struct wr_fault *fault) {
    bool good = true;
    catch_interrupts();
    for (size_t i = 0; i < plan->count && good && !interrupted; i++)
        good = run_one(plan, i, runs, events, results, fault);
    wr_pool_server_show(results->server, NULL);
    restore_signals();
    return good;
}

// With all of it made: the exit code.
static int carry_out(const struct wr_pool_job *job, const struct plan *plan,
                     struct results *results, struct wr_pool_events *events,
                     struct wr_pool_runs *runs, struct wr_fault *fault) {
    const bool good = wr_pool_events_init(events, &job->options, fault) &&
                      run_all(plan, results, events, runs, fault) &&
                      write_results(job, results, runs, fault) && check(runs, events, fault);
    return good ? WR_EXIT_FINE : WR_EXIT_TROUBLE;
}

int wr_cmd_pool(int argc, char **argv) {
    struct wr_pool_job job;
    struct results results = {NULL, NULL, NULL};
    struct wr_pool_events events = {.all = NULL};
    struct wr_pool_runs runs = {.count = 0};
    struct wr_fault fault = {""};
    int code = wr_pool_arguments(argc, argv, &job);
    if (code >= 0) return code;
    const struct plan plan = plan_of(&job);
    runs.downstream = job.downstream;
    runs.compare = job.compare;
    code = open_results(&job, &plan, &results, &fault);
    if (code == WR_EXIT_FINE) code = carry_out(&job, &plan, &results, &events, &runs, &fault);
    if (code != WR_EXIT_FINE) fprintf(stderr, "weir pool: %s\n", fault.text);
    wr_pool_server_destroy(results.server);
    for (size_t i = 0; i < runs.count; i++) wr_pool_destroy(runs.runs[i]);
    wr_pool_events_fini(&events);
    wr_plot_destroy(results.plot);
    wr_output_destroy(results.report);
    return code;
}
