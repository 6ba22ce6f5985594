// cmd_bench.c - `weir bench`: a quick figure for this machine and a shape of load.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "commands.h"
#include "load.h"
#include "rate.h"

#define ROUNDS_MAX 1000

struct job {
    struct wr_load load;
    struct wr_rate rate;
    uint64_t burst;
    uint64_t capacity;
    uint64_t shards;
    uint64_t rounds;
    bool json;
};

static void print_help(void) {
    printf("weir bench - how long a decision takes here, for your keys, threads and limit\n\n"
           "A million keys alike, one thread:\n"
           "    weir bench\n"
           "Ten million, a few of them hot, eight threads, in batches of 32:\n"
           "    weir bench --keys 10M --zipf --threads 8 --batch 32\n"
           "One hot key that is denied (a denial only reads):\n"
           "    weir bench --keys 1 --rate 1/h --burst 1 --threads 2\n\n"
           "Options:\n"
           "    --keys N         different keys, all busy (1M)\n"
           "    --zipf           the i-th key in proportion to 1/i; else all alike\n"
           "    --threads N      at the same time, 1 to 1024 (1)\n"
           "    --batch N        asks a call, 1 to 256 (1)\n"
           "    -r, --rate RATE  of each key (1G/s, so that all is granted)\n"
           "    -b, --burst N    of each key (1G)\n"
           "    --capacity N     busy keys the table is made for (as many as keys)\n"
           "    --shards N       of the table (weir's default; see weir tune)\n"
           "    --span TIME      to measure for, each round (200ms)\n"
           "    --rounds N       of which the median is told (7)\n"
           "    --json           for programs\n"
           "    -h, --help       this\n");
}

enum option_id { KEYS = 256, ZIPF, THREADS, BATCH, CAPACITY, SHARDS, SPAN, ROUNDS, JSON };

static bool in_range(uint64_t value, uint64_t low, uint64_t high, const char *what,
                     struct wr_fault *fault) {
    if (value >= low && value <= high) return true;
    return wr_fault(fault, "%s is %" PRIu64 "; give %" PRIu64 " to %" PRIu64, what, value, low,
                    high);
}

static bool parse_small(const char *text, const char *what, uint64_t high, uint32_t *out,
                        struct wr_fault *fault) {
    uint64_t value = 0;
    if (!wr_count_parse(text, what, &value, fault) || !in_range(value, 1, high, what, fault))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool set_option(struct job *job, int id, struct wr_fault *fault) {
    switch (id) {
    case KEYS:
        return wr_count_parse(optarg, "--keys", &job->load.keys, fault) &&
               in_range(job->load.keys, 1, UINT64_C(1) << 32, "--keys", fault);
    case ZIPF: job->load.zipf = true; return true;
    case THREADS:
        return parse_small(optarg, "--threads", WR_LOAD_THREADS_MAX, &job->load.threads, fault);
    case BATCH: return parse_small(optarg, "--batch", 256, &job->load.batch, fault);
    case 'r': return wr_rate_parse(optarg, &job->rate, fault);
    case 'b': return wr_count_parse(optarg, "-b, --burst", &job->burst, fault);
    case CAPACITY:
        return wr_count_parse(optarg, "--capacity", &job->capacity, fault) &&
               in_range(job->capacity, 1, UINT64_C(1) << 32, "--capacity", fault);
    case SHARDS:
        return wr_count_parse(optarg, "--shards", &job->shards, fault) &&
               in_range(job->shards, 0, 4096, "--shards", fault);
    case SPAN:
        return wr_duration_parse(optarg, "--span", &job->load.span_ns, fault) &&
               in_range(job->load.span_ns, WEIR_MILLISECOND, WEIR_HOUR, "--span in ns", fault);
    case ROUNDS:
        return wr_count_parse(optarg, "--rounds", &job->rounds, fault) &&
               in_range(job->rounds, 1, ROUNDS_MAX, "--rounds", fault);
    default: job->json = true; return true;
    }
}

static const struct option options[] = {
    {"keys", required_argument, NULL, KEYS},         {"zipf", no_argument, NULL, ZIPF},
    {"threads", required_argument, NULL, THREADS},   {"batch", required_argument, NULL, BATCH},
    {"rate", required_argument, NULL, 'r'},          {"burst", required_argument, NULL, 'b'},
    {"capacity", required_argument, NULL, CAPACITY}, {"shards", required_argument, NULL, SHARDS},
    {"span", required_argument, NULL, SPAN},         {"rounds", required_argument, NULL, ROUNDS},
    {"json", no_argument, NULL, JSON},               {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

// -1: go on; else the exit code.
static int read_arguments(struct job *job, int argc, char **argv) {
    struct wr_fault fault = {""};
    wr_arguments_begin();
    for (;;) {
        const int id = wr_arguments_next(argc, argv, "r:b:h", options);
        if (id == -1) break;
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (set_option(job, id, &fault)) continue;
        fprintf(stderr, "weir bench: %s\n", fault.text);
        return WR_EXIT_USAGE;
    }
    if (optind == argc) return -1;
    fprintf(stderr, "weir bench: it reads no file (%s)\n", argv[optind]);
    return WR_EXIT_USAGE;
}

static void print_text(const struct job *job, const struct weir_stats *stats,
                       const struct wr_spread *ns, double granted) {
    printf("%.1f ns a decision (%.1f to %.1f), %.1f million a second in all\n", ns->median, ns->low,
           ns->high, 1000.0 * job->load.threads / ns->median);
    printf("%" PRIu64 " keys, %s; %" PRIu32 " thread%s, %s; %.1f%% granted\n", job->load.keys,
           job->load.zipf ? "zipf" : "all alike", job->load.threads,
           job->load.threads == 1 ? "" : "s",
           job->load.batch == 1 ? "one at a time" : "in batches", 100 * granted);
    printf("%" PRIu32 " shard%s, %.1f MiB; median and quartiles of %" PRIu64 " rounds\n",
           stats->shards, stats->shards == 1 ? "" : "s", (double)stats->memory_bytes / 1048576,
           job->rounds);
}

static bool print_json(const struct job *job, const struct weir_stats *stats,
                       const struct wr_spread *ns, double granted, struct wr_fault *fault) {
    json_t *root = json_pack(
        "{s:f, s:f, s:f, s:f, s:I, s:b, s:i, s:i, s:i, s:I, s:f, s:i}", "ns_per_decision",
        ns->median, "ns_quartile_low", ns->low, "ns_quartile_high", ns->high,
        "decisions_per_second", 1e9 * job->load.threads / ns->median, "keys",
        (json_int_t)job->load.keys, "zipf", job->load.zipf, "threads", (int)job->load.threads,
        "batch", (int)job->load.batch, "shards", (int)stats->shards, "memory_bytes",
        (json_int_t)stats->memory_bytes, "granted_share", granted, "rounds", (int)job->rounds);
    const bool good = root != NULL && json_dumpf(root, stdout, JSON_INDENT(2)) == 0;
    putchar('\n');
    json_decref(root);
    return good || wr_fault(fault, "standard output: the report cannot be written");
}

static int run(struct job *job) {
    struct weir *limiter = NULL;
    struct wr_fault fault = {""};
    const struct weir_limit limit = {job->rate.tokens, job->rate.period_ns, job->burst};
    if (job->capacity == 0) job->capacity = job->load.keys;
    double *ns = calloc(job->rounds, sizeof *ns);
    struct wr_load_result result = {0};
    bool good = ns != NULL || wr_fault(&fault, "no memory for %" PRIu64 " rounds", job->rounds);
    good = good && wr_load_create(&limiter, &limit, job->capacity, job->load.keys,
                                  (uint32_t)job->shards, &fault);
    for (uint64_t i = 0; good && i < job->rounds; i++) {
        good = wr_load_run(limiter, &job->load, &result, &fault);
        ns[i] = wr_load_ns(&job->load, &result);
    }
    if (good) {
        struct weir_stats stats;
        (void)weir_stats(limiter, &stats, sizeof stats);
        const struct wr_spread spread = wr_spread_of(ns, (unsigned)job->rounds);
        const double granted = (double)result.granted / (double)(result.asks + !result.asks);
        if (job->json) good = print_json(job, &stats, &spread, granted, &fault);
        else print_text(job, &stats, &spread, granted);
    }
    if (!good) fprintf(stderr, "weir bench: %s\n", fault.text);
    weir_destroy(limiter);
    free(ns);
    return good ? WR_EXIT_FINE : WR_EXIT_TROUBLE;
}

int wr_cmd_bench(int argc, char **argv) {
    struct job job = {
        .load = {.keys = 1000000, .threads = 1, .batch = 1, .span_ns = 200 * WEIR_MILLISECOND,
                 .seed = 1},
        .rate = {1000000000, WEIR_SECOND},
        .burst = 1000000000,
        .rounds = 7,
    };
    const int done = read_arguments(&job, argc, argv);
    return done >= 0 ? done : run(&job);
}
