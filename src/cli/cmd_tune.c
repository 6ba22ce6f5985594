// cmd_tune.c - `weir tune`: which shard count to use here, or that it makes no difference.
//
// Every shard count is measured in every round, in turn, so that a machine that slows down for a
// while slows all of them. The verdict compares the best with weir's default by the medians of the
// rounds, and is "no difference" where their quartiles overlap or the gain is under 3 %.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "commands.h"
#include "json_list.h"
#include "load.h"
#include "output.h"
#include "plot.h"
#include "rate.h"

#define SHARDS_TRIED 16
#define THREADS_TRIED 12
#define ROUNDS_MAX 101
#define GAIN_LEAST 1.03

struct job {
    uint64_t capacity;
    uint64_t threads;
    uint64_t shards_most;
    uint64_t rounds;
    uint64_t span_ns;
    uint32_t shards[SHARDS_TRIED];
    unsigned shard_counts;
    unsigned standard; // index of weir's default in shards[]
    uint32_t thread_counts[THREADS_TRIED];
    unsigned thread_count_count;
    bool json;
    const char *plot;
};

// ns[shards][threads][skew][round]
static double samples[SHARDS_TRIED][THREADS_TRIED][2][ROUNDS_MAX];
static struct wr_spread spreads[SHARDS_TRIED][THREADS_TRIED][2];

static const char *const skews[2] = {"all alike", "zipf"};

static void print_help(void) {
    printf("weir tune - which shard count to use on this machine, or that it makes no difference\n"
           "\n"
           "    weir tune --capacity 1M --threads 16\n"
           "    weir tune --capacity 100k --plot shards.svg\n"
           "    weir tune --json > tune.json\n\n"
           "Sweeps shards x threads x skew, prints nanoseconds a decision, and says in one line\n"
           "what to put into weir_options.shards for the capacity and the highest thread count.\n\n"
           "Options:\n"
           "    --capacity N   busy keys, as many as are asked for (1M)\n"
           "    --threads N    the most threads (one a CPU)\n"
           "    --shards N     the most shards to try (64, or 4 a thread)\n"
           "    --rounds N     1 to 101 (5)\n"
           "    --span TIME    to measure for, each point and round (50ms)\n"
           "    --plot FILE    .svg or .png, by gnuplot\n"
           "    --json         for programs\n"
           "    -h, --help     this\n");
}

enum option_id { CAPACITY = 256, THREADS, SHARDS, ROUNDS, SPAN, PLOT, JSON };

static const struct option options[] = {{"capacity", required_argument, NULL, CAPACITY},
                                        {"threads", required_argument, NULL, THREADS},
                                        {"shards", required_argument, NULL, SHARDS},
                                        {"rounds", required_argument, NULL, ROUNDS},
                                        {"span", required_argument, NULL, SPAN},
                                        {"plot", required_argument, NULL, PLOT},
                                        {"json", no_argument, NULL, JSON},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static bool count_in(const char *what, uint64_t low, uint64_t high, uint64_t *value,
                     struct wr_fault *fault) {
    if (!wr_count_parse(optarg, what, value, fault)) return false;
    if (*value >= low && *value <= high) return true;
    return wr_fault(fault, "%s is %s; give %" PRIu64 " to %" PRIu64, what, optarg, low, high);
}

static bool set_option(struct job *job, int id, struct wr_fault *fault) {
    switch (id) {
    case CAPACITY:
        return count_in("--capacity", 1, UINT64_C(1) << 32, &job->capacity, fault);
    case THREADS: return count_in("--threads", 1, WR_LOAD_THREADS_MAX, &job->threads, fault);
    case SHARDS: return count_in("--shards", 1, 4096, &job->shards_most, fault);
    case ROUNDS: return count_in("--rounds", 1, ROUNDS_MAX, &job->rounds, fault);
    case SPAN:
        if (!wr_duration_parse(optarg, "--span", &job->span_ns, fault)) return false;
        return (job->span_ns >= WEIR_MILLISECOND && job->span_ns <= WEIR_HOUR) ||
               wr_fault(fault, "--span is %s; give 1ms to 1h", optarg);
    case PLOT:
        job->plot = optarg;
        return wr_plot_is_name(optarg) ||
               wr_fault(fault, "--plot %s: the name must end in .svg or .png", optarg);
    default: job->json = true; return true;
    }
}

// weir's own choice for the capacity, asked of a limiter that is made and thrown away.
static uint32_t standard_shards(uint64_t capacity) {
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *limiter = NULL;
    struct weir_stats stats = {.shards = 1};
    o.limit = (struct weir_limit){1, WEIR_SECOND, 1};
    o.capacity_keys = capacity;
    if (weir_create(&limiter, &o, NULL) == WEIR_GRANTED)
        (void)weir_stats(limiter, &stats, sizeof stats);
    weir_destroy(limiter);
    return stats.shards;
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Powers of two up to the most, and the default among them.
static void plan(struct job *job) {
    if (job->threads == 0) job->threads = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (job->shards_most == 0) job->shards_most = job->threads * 4 > 64 ? job->threads * 4 : 64;
    const uint32_t standard = standard_shards(job->capacity);
    bool listed = false;
    for (uint64_t s = 1; s <= job->shards_most && job->shard_counts < SHARDS_TRIED - 1; s *= 2) {
        listed = listed || s == standard;
        job->shards[job->shard_counts++] = (uint32_t)s;
    }
    if (!listed) job->shards[job->shard_counts++] = standard;
    qsort(job->shards, job->shard_counts, sizeof job->shards[0], compare_u32);
    for (unsigned i = 0; i < job->shard_counts; i++)
        if (job->shards[i] == standard) job->standard = i;
    for (uint64_t t = 1; t < job->threads && job->thread_count_count < THREADS_TRIED - 1; t *= 2)
        job->thread_counts[job->thread_count_count++] = (uint32_t)t;
    job->thread_counts[job->thread_count_count++] = (uint32_t)job->threads;
}

// All points of one shard count in one round.
static bool measure_shards(const struct job *job, unsigned s, uint64_t round,
                           struct wr_fault *fault) {
    struct weir *limiter = NULL;
    const struct weir_limit limit = {1000000000, WEIR_SECOND, 1000000000};
    bool good = wr_load_create(&limiter, &limit, job->capacity, job->capacity, job->shards[s],
                               fault);
    for (unsigned t = 0; good && t < job->thread_count_count; t++) {
        for (unsigned skew = 0; good && skew < 2; skew++) {
            const struct wr_load load = {.keys = job->capacity,
                                         .zipf = skew == 1,
                                         .threads = job->thread_counts[t],
                                         .batch = 1,
                                         .span_ns = job->span_ns,
                                         .seed = round + 1};
            struct wr_load_result result;
            good = wr_load_run(limiter, &load, &result, fault);
            if (good) samples[s][t][skew][round] = wr_load_ns(&load, &result);
        }
    }
    weir_destroy(limiter);
    return good;
}

static bool measure(const struct job *job, struct wr_fault *fault) {
    const bool shown = isatty(STDERR_FILENO) != 0;
    bool good = true;
    for (uint64_t round = 0; good && round < job->rounds; round++) {
        for (unsigned s = 0; good && s < job->shard_counts; s++) {
            if (shown)
                fprintf(stderr, "\r\033[Kround %" PRIu64 " of %" PRIu64 ", %" PRIu32 " shards",
                        round + 1, job->rounds, job->shards[s]);
            good = measure_shards(job, s, round, fault);
        }
    }
    if (shown) fprintf(stderr, "\r\033[K");
    for (unsigned s = 0; good && s < job->shard_counts; s++)
        for (unsigned t = 0; t < job->thread_count_count; t++)
            for (unsigned skew = 0; skew < 2; skew++)
                spreads[s][t][skew] =
                    wr_spread_of(samples[s][t][skew], (unsigned)job->rounds);
    return good;
}

struct verdict {
    unsigned best;
    double gain; // of the default's time
    bool matters;
};

// The best for the highest thread count, over both skews.
static struct verdict judge(const struct job *job) {
    const unsigned t = job->thread_count_count - 1;
    struct verdict v = {job->standard, 0, false};
    double best = 0;
    for (unsigned s = 0; s < job->shard_counts; s++) {
        const double sum = spreads[s][t][0].median + spreads[s][t][1].median;
        if (s == 0 || sum < best) {
            best = sum;
            v.best = s;
        }
    }
    const double standard =
        spreads[job->standard][t][0].median + spreads[job->standard][t][1].median;
    v.gain = standard / best - 1;
    bool apart = false;
    for (unsigned skew = 0; skew < 2; skew++)
        apart = apart || spreads[v.best][t][skew].high < spreads[job->standard][t][skew].low;
    v.matters = v.best != job->standard && apart && standard / best >= GAIN_LEAST;
    return v;
}

static void print_verdict(const struct job *job, const struct verdict *v) {
    if (v->matters)
        printf("use %" PRIu32 " shards for %" PRIu64 " keys and %" PRIu64
               " threads: %.0f%% faster than the default of %" PRIu32 "\n",
               job->shards[v->best], job->capacity, job->threads, 100 * v->gain,
               job->shards[job->standard]);
    else
        printf("leave the default of %" PRIu32 " shards for %" PRIu64 " keys and %" PRIu64
               " threads: the shard count makes no difference here\n",
               job->shards[job->standard], job->capacity, job->threads);
}

static void print_table(const struct job *job) {
    printf("ns a decision, median of %" PRIu64 " rounds (quartiles)\n%-10s", job->rounds, "shards");
    for (unsigned t = 0; t < job->thread_count_count; t++)
        for (unsigned skew = 0; skew < 2; skew++) {
            char head[64];
            snprintf(head, sizeof head, "%" PRIu32 " thread%s %s", job->thread_counts[t],
                     job->thread_counts[t] == 1 ? "," : "s,", skews[skew]);
            printf("  %-22s", head);
        }
    putchar('\n');
    for (unsigned s = 0; s < job->shard_counts; s++) {
        printf("%6" PRIu32 "%-4s", job->shards[s], s == job->standard ? " *" : "");
        for (unsigned t = 0; t < job->thread_count_count; t++)
            for (unsigned skew = 0; skew < 2; skew++) {
                const struct wr_spread *p = &spreads[s][t][skew];
                printf("  %7.1f (%5.1f-%5.1f) ", p->median, p->low, p->high);
            }
        putchar('\n');
    }
    printf("* weir's default\n");
}

static bool print_json(const struct job *job, const struct verdict *v, struct wr_fault *fault) {
    json_t *rows = json_array();
    for (unsigned s = 0; s < job->shard_counts; s++)
        for (unsigned t = 0; t < job->thread_count_count; t++)
            for (unsigned skew = 0; skew < 2; skew++) {
                const struct wr_spread *p = &spreads[s][t][skew];
                wr_json_append(
                    &rows, json_pack("{s:i, s:i, s:b, s:f, s:f, s:f}", "shards",
                                     (int)job->shards[s], "threads", (int)job->thread_counts[t],
                                     "zipf", skew == 1, "ns", p->median, "ns_quartile_low", p->low,
                                     "ns_quartile_high", p->high));
            }
    const uint32_t use = job->shards[v->matters ? v->best : job->standard];
    json_t *root = json_pack("{s:I, s:I, s:i, s:i, s:b, s:f, s:o}", "capacity",
                             (json_int_t)job->capacity, "threads", (json_int_t)job->threads,
                             "use_shards", (int)use, "default_shards",
                             (int)job->shards[job->standard], "makes_a_difference", v->matters,
                             "gain", v->gain, "rows", rows);
    const bool good = root != NULL && json_dumpf(root, stdout, JSON_INDENT(2)) == 0;
    putchar('\n');
    json_decref(root);
    return good || wr_fault(fault, "standard output: the report cannot be written");
}

static bool draw_plot(const struct job *job, struct wr_plot *plot, struct wr_fault *fault) {
    FILE *script = wr_plot_script(plot);
    fprintf(script, "set logscale x 2\nset xlabel 'shards'\nset ylabel 'ns a decision'\n"
                    "set yrange [0:*]\nset key outside\nset grid\n");
    for (unsigned t = 0; t < job->thread_count_count; t++)
        for (unsigned skew = 0; skew < 2; skew++) {
            fprintf(script, "$d%u_%u << END\n", t, skew);
            for (unsigned s = 0; s < job->shard_counts; s++)
                fprintf(script, "%" PRIu32 " %.3f %.3f %.3f\n", job->shards[s],
                        spreads[s][t][skew].median, spreads[s][t][skew].low,
                        spreads[s][t][skew].high);
            fprintf(script, "END\n");
        }
    fprintf(script, "plot ");
    for (unsigned t = 0; t < job->thread_count_count; t++)
        for (unsigned skew = 0; skew < 2; skew++)
            fprintf(script, "%s$d%u_%u using 1:2:3:4 with yerrorlines title '%" PRIu32
                    " threads, %s'", t + skew == 0 ? "" : ", ", t, skew, job->thread_counts[t],
                    skews[skew]);
    fprintf(script, "\n");
    return wr_plot_draw(plot, fault) && wr_plot_publish(plot, fault);
}

static int run(struct job *job) {
    struct wr_fault fault = {""};
    struct wr_plot *plot = NULL;
    bool good = job->plot == NULL || wr_plot_open(&plot, job->plot, 900, 500, &fault);
    plan(job);
    good = good && measure(job, &fault);
    if (good) {
        const struct verdict v = judge(job);
        if (job->json) {
            good = print_json(job, &v, &fault);
        } else {
            print_table(job);
            print_verdict(job, &v);
        }
        good = good && (plot == NULL || draw_plot(job, plot, &fault));
    }
    wr_plot_destroy(plot);
    if (!good) fprintf(stderr, "weir tune: %s\n", fault.text);
    return good ? WR_EXIT_FINE : WR_EXIT_TROUBLE;
}

int wr_cmd_tune(int argc, char **argv) {
    struct job job = {.capacity = 1000000, .rounds = 5, .span_ns = 50 * WEIR_MILLISECOND};
    struct wr_fault fault = {""};
    wr_arguments_begin();
    for (;;) {
        const int id = wr_arguments_next(argc, argv, "h", options);
        if (id == -1) break;
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (set_option(&job, id, &fault)) continue;
        fprintf(stderr, "weir tune: %s\n", fault.text);
        return WR_EXIT_USAGE;
    }
    if (optind < argc) {
        fprintf(stderr, "weir tune: it reads no file (%s)\n", argv[optind]);
        return WR_EXIT_USAGE;
    }
    return run(&job);
}
