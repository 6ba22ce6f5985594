// cmd_top.c - `weir top`: the busiest keys of a limit over many hosts, from what stands in Redis.
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

#include "arguments.h"
#include "commands.h"
#include "json_list.h"
#include "output.h"
#include "rate.h"
#include "top_scan.h"

#define TIMEOUT_NS (5 * WEIR_SECOND)
#define WATCH_MIN_NS (100 * WEIR_MILLISECOND)
#define LIMIT_TEXT (WR_UNIT_TEXT + 40)

struct job {
    struct wr_url url;
    const char *url_text, *prefix, *output;
    enum wr_top_by by;
    uint64_t rows, watch_ns; // 0: once
    bool json;
};

static void print_help(void) {
    printf("weir top - the busiest keys of a limit over many hosts, as Redis knows them\n\n"
           "The 20 keys that are asked for most on all nodes together:\n"
           "    weir top --redis redis://127.0.0.1:6379\n"
           "Every two seconds, until Ctrl-C:\n"
           "    weir top --redis redis://127.0.0.1:6379 --watch 2s\n"
           "The keys whose buckets take longest to be full again (a bucket deep in debt is far\n"
           "behind), for a program:\n"
           "    weir top --redis unix:/run/redis/redis.sock --by behind -n 100 --json\n"
           "The keys that were refused most, on all nodes together:\n"
           "    weir top --redis redis://127.0.0.1:6379 --by denied\n\n"
           "It reads by SCAN, a page of about 1000 names at a time, never by KEYS: Redis goes on\n"
           "serving. Buckets that SCAN shows twice are counted twice; what comes meanwhile may be\n"
           "missed. On a cluster it sees the one master that the URL names. Names of the prefix\n"
           "that weir would not write, or with another type of value, are counted and left alone.\n"
           "\n"
           "Columns: denied, asks refused since the nodes started, as the nodes publish it (the\n"
           "32 keys of a limiter that each denied most, a few per cent off; - is a key that none\n"
           "lists); demand/s, tokens asked for over the last epoch; behind, the time until the\n"
           "bucket is full; gen, the generation of the limit. A limiter's nodes are those alive,\n"
           "and only their limits are compared; its granted, denied and tokens are what they\n"
           "published since they started, and what nodes did that have stopped: it stays 10 s.\n\n"
           "Options:\n"
           "    --redis URL      redis://[user:password@]host[:port][/database], or\n"
           "                     unix:/path[?db=1&user=..&password=..] (redis://127.0.0.1:6379)\n"
           "    --prefix TEXT    of the sync's names (weir:)\n"
           "    --by WORD        demand, behind or denied (demand)\n"
           "    -n, --top N      keys listed, 0 to 1000 (20)\n"
           "    --watch TIME     again and again; with --json, one line each\n"
           "    --json           for programs\n"
           "    -o, --output FILE  where it goes (-)\n"
           "    -h, --help       this\n"
           "Exit: 0 fine, 1 Redis cannot be asked, 2 wrong usage.\n");
}

// Arguments -----------------------------------------------------------------------------------

enum option_id { REDIS = 256, PREFIX, BY, WATCH, JSON };

static const struct option options[] = {
    {"redis", required_argument, NULL, REDIS}, {"prefix", required_argument, NULL, PREFIX},
    {"by", required_argument, NULL, BY},       {"top", required_argument, NULL, 'n'},
    {"watch", required_argument, NULL, WATCH}, {"json", no_argument, NULL, JSON},
    {"output", required_argument, NULL, 'o'},  {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static bool set_by(struct job *job, const char *word, struct wr_fault *fault) {
    if (strcmp(word, "demand") == 0) job->by = WR_TOP_DEMAND;
    else if (strcmp(word, "behind") == 0) job->by = WR_TOP_BEHIND;
    else if (strcmp(word, "denied") == 0) job->by = WR_TOP_DENIED;
    else return wr_fault(fault, "--by '%.100s': it is demand, behind or denied", word);
    return true;
}

static bool set_option(struct job *job, int id, struct wr_fault *fault) {
    switch (id) {
    case REDIS: job->url_text = optarg; return true;
    case PREFIX: job->prefix = optarg; return true;
    case BY: return set_by(job, optarg, fault);
    case 'n':
        return wr_count_parse(optarg, "-n, --top", &job->rows, fault) &&
               (job->rows <= WR_TOP_ROWS_MAX ||
                wr_fault(fault, "-n, --top '%.100s': at most %d keys are listed", optarg,
                         WR_TOP_ROWS_MAX));
    case WATCH:
        return wr_duration_parse(optarg, "--watch", &job->watch_ns, fault) &&
               (job->watch_ns >= WATCH_MIN_NS ||
                wr_fault(fault, "--watch '%.100s': 100ms is the shortest", optarg));
    case 'o': job->output = optarg; return true;
    default: job->json = true; return true;
    }
}

static bool complete(struct job *job, int argc, char **argv, struct wr_fault *fault) {
    if (optind < argc)
        return wr_fault(fault, "'%.200s' is one word too many; Redis is named by --redis",
                        argv[optind]);
    if (!wr_redis_url_parse(job->url_text, &job->url, fault)) return false;
    if (!wr_wire_prefix_ok(job->prefix))
        return wr_fault(fault, "--prefix '%.100s': 1 to 64 printable characters without "
                               "braces or space",
                        job->prefix);
    return job->watch_ns == 0 || strcmp(job->output, "-") == 0 ||
           wr_fault(fault, "--watch goes on and --output holds one report; leave one away");
}

// -1: go on; else the exit code.
static int read_arguments(struct job *job, int argc, char **argv) {
    struct wr_fault fault = {""};
    int id;
    wr_arguments_begin();
    while ((id = wr_arguments_next(argc, argv, "n:o:h", options)) != -1) {
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (!set_option(job, id, &fault)) break;
    }
    if (id == -1 && complete(job, argc, argv, &fault)) return -1;
    fprintf(stderr, "weir top: %s\n", fault.text);
    return WR_EXIT_USAGE;
}

// Text ----------------------------------------------------------------------------------------

static unsigned groups_of(const struct wr_top_scan *scan) {
    return (unsigned)__builtin_popcountll(scan->groups_seen);
}

static void write_head(FILE *out, const struct wr_top_scan *scan) {
    fprintf(out, "%s  %" PRIu64 " buckets, %" PRIu64 " of them not full, in %u group%s; ",
            scan->prefix, scan->buckets, scan->behind, groups_of(scan),
            groups_of(scan) == 1 ? "" : "s");
    if (scan->nodes_known)
        fprintf(out, "%zu node%s alive\n", scan->nodes.count, scan->nodes.count == 1 ? "" : "s");
    else fprintf(out, "which nodes are alive is not known\n");
    if (scan->foreign > 0)
        fprintf(out, "%" PRIu64 " names of this prefix hold something else; does another program "
                     "use it?\n", scan->foreign);
}

static bool is_unlimited(const struct wr_published *published) {
    return published->has_limit && published->limit.tokens == WEIR_UNLIMITED_TOKENS;
}

static void limit_text(const struct wr_published *last, char text[LIMIT_TEXT]) {
    char rate[WR_UNIT_TEXT];
    const struct wr_rate as_rate = {last->limit.tokens, last->limit.period_ns};
    wr_rate_text(&as_rate, rate);
    if (is_unlimited(last)) snprintf(text, LIMIT_TEXT, "%s", rate);
    else snprintf(text, LIMIT_TEXT, "%s, burst %" PRIu64, rate, last->limit.burst);
}

static void write_limiter(FILE *out, const struct wr_top_limiter *l) {
    char limit[LIMIT_TEXT] = "-";
    if (l->last.has_limit) limit_text(&l->last, limit);
    fprintf(out, "%-24s %10" PRIu64 " %6" PRIu32, l->name, l->buckets, l->nodes);
    if (l->nodes + l->gone == 0) fprintf(out, " %14s %14s %14s", "-", "-", "-");
    else
        fprintf(out, " %14" PRIu64 " %14" PRIu64 " %14" PRIu64, l->granted, l->denied, l->tokens);
    fprintf(out, "  %s\n", limit);
}

static void write_limiters(FILE *out, const struct wr_top_scan *scan) {
    if (scan->limiter_count == 0) return;
    fprintf(out, "\n%-24s %10s %6s %14s %14s %14s  %s\n", "limiter", "buckets", "nodes", "granted",
            "denied", "tokens", "limit");
    for (size_t i = 0; i < scan->limiter_count; i++) write_limiter(out, &scan->limiters[i]);
    for (size_t i = 0; i < scan->limiter_count; i++)
        if (scan->limiters[i].disagree)
            fprintf(out, "the nodes of %s have different limits or numbers of groups: they must be "
                         "alike on all\n", scan->limiters[i].name);
    for (size_t i = 0; i < scan->limiter_count; i++)
        if (scan->limiters[i].gone > 0)
            fprintf(out, "the numbers of %s hold what %" PRIu32 " node%s that stopped counted\n",
                    scan->limiters[i].name, scan->limiters[i].gone,
                    scan->limiters[i].gone == 1 ? "" : "s");
    if (wr_top_hidden(scan) > 0)
        fprintf(out, "%zu more limiter%s not shown\n", wr_top_hidden(scan),
                wr_top_hidden(scan) == 1 ? " is" : "s are");
}

static struct wr_bucket_name parts_of(const struct wr_top_scan *scan,
                                      const struct wr_top_row *row) {
    return wr_bucket_name_parse((struct wr_text){row->name, row->name_bytes}, scan->prefix);
}

static void write_row(FILE *out, const struct wr_top_scan *scan, const struct wr_top_row *row) {
    char key[WR_BUCKET_SHOWN_BYTES], behind[WR_UNIT_TEXT];
    const struct wr_bucket_name parts = parts_of(scan, row);
    const bool cut = parts.what == WR_BUCKET_CUT;
    wr_bucket_key_show(parts.rest, key);
    wr_span_text((uint64_t)row->behind_us * WEIR_MICROSECOND, behind);
    if (row->denied > 0) fprintf(out, "%12" PRIu64, row->denied);
    else fprintf(out, "%12s", "-");
    if (scan->epoch_us[parts.group] > 0 && !row->no_bucket)
        fprintf(out, " %12.1f", row->demand.per_s);
    else fprintf(out, " %12s", "-");
    fprintf(out, " %12s", row->behind_us > 0 ? behind : cut ? "-" : "full");
    if (row->no_bucket) fprintf(out, " %5s", "-");
    else fprintf(out, " %5" PRIu32, row->generation);
    fprintf(out, "  %-16.*s %s%s\n", (int)parts.limiter.length, parts.limiter.data, key,
            cut ? "..." : "");
}

static void write_rows(FILE *out, const struct wr_top_scan *scan) {
    if (scan->count == 0) return;
    fprintf(out, "\n%12s %12s %12s %5s  %-16s %s\n", "denied", "demand/s", "behind", "gen",
            "limiter", "key");
    for (size_t i = 0; i < scan->count; i++) write_row(out, scan, &scan->rows[i]);
}

static void write_text(FILE *out, const struct wr_top_scan *scan) {
    write_head(out, scan);
    if (scan->buckets == 0)
        fprintf(out, "no bucket: all are full, or no node reports under this prefix\n");
    write_limiters(out, scan);
    write_rows(out, scan);
}

// JSON ----------------------------------------------------------------------------------------

static json_t *real_or_null(bool known, double value) {
    return known ? json_real(value) : json_null();
}

static json_t *number_or_null(bool known, uint64_t value) {
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *row_json(const struct wr_top_scan *scan, const struct wr_top_row *row) {
    char key[WR_BUCKET_SHOWN_BYTES];
    const struct wr_bucket_name parts = parts_of(scan, row);
    const bool cut = parts.what == WR_BUCKET_CUT;
    wr_bucket_key_show(parts.rest, key);
    return json_pack(
        "{s:s%, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "limiter", parts.limiter.data,
        parts.limiter.length, "key", key, "truncated", cut, "group",
        number_or_null(!cut, parts.group), "denied", number_or_null(row->denied > 0, row->denied),
        "demand_per_s",
        real_or_null(scan->epoch_us[parts.group] > 0 && !row->no_bucket, row->demand.per_s),
        "full_after_us", number_or_null(!cut, (uint64_t)row->behind_us), "generation",
        number_or_null(!row->no_bucket, row->generation));
}

static json_t *limiter_json(const struct wr_top_limiter *l) {
    const struct wr_published *last = &l->last;
    const bool limited = last->has_limit && !is_unlimited(last);
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:o, s:b}", "name", l->name,
        "buckets", (json_int_t)l->buckets, "nodes", (json_int_t)l->nodes, "nodes_gone",
        (json_int_t)l->gone, "granted", (json_int_t)l->granted, "denied", (json_int_t)l->denied,
        "tokens", (json_int_t)l->tokens, "limit_tokens",
        number_or_null(limited, last->limit.tokens), "limit_period_ns",
        number_or_null(limited, last->limit.period_ns), "limit_burst",
        number_or_null(limited, last->limit.burst), "unlimited", is_unlimited(last), "groups",
        number_or_null(last->groups > 0, last->groups), "disagree", l->disagree);
}

static const char *by_word(enum wr_top_by by) {
    return by == WR_TOP_DEMAND ? "demand" : by == WR_TOP_BEHIND ? "behind" : "denied";
}

static json_t *report_json(const struct wr_top_scan *scan) {
    json_t *rows = json_array(), *limiters = json_array();
    for (size_t i = 0; i < scan->count; i++)
        wr_json_append(&rows, row_json(scan, &scan->rows[i]));
    for (size_t i = 0; i < scan->limiter_count; i++)
        wr_json_append(&limiters, limiter_json(&scan->limiters[i]));
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:o, s:o, s:I, s:o}", "prefix", scan->prefix, "by",
        by_word(scan->by), "redis_time_us", (json_int_t)scan->now_us, "buckets",
        (json_int_t)scan->buckets, "behind", (json_int_t)scan->behind, "foreign",
        (json_int_t)scan->foreign, "groups", (int)groups_of(scan), "nodes",
        number_or_null(scan->nodes_known, scan->nodes.count), "limiters", limiters,
        "limiters_not_shown", (json_int_t)wr_top_hidden(scan), "keys", rows);
}

static bool write_json(FILE *out, const struct job *job, const struct wr_top_scan *scan,
                       struct wr_fault *fault) {
    const size_t style = job->watch_ns != 0 ? JSON_COMPACT : JSON_INDENT(2);
    json_t *root = report_json(scan);
    if (root == NULL) return wr_fault(fault, "the report cannot be made as JSON: no memory for it");
    const bool good = json_dumpf(root, out, style) == 0 && fputc('\n', out) != EOF;
    json_decref(root);
    return good || wr_fault(fault, "%.200s: it cannot be written", job->output);
}

// Running -------------------------------------------------------------------------------------

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
    (void)number;
    interrupted = 1;
}

static bool show(const struct job *job, FILE *out, struct wr_redis *redis,
                 struct wr_fault *fault) {
    struct wr_top_scan scan;
    if (!wr_top_scan_init(&scan, job->prefix, job->by, (size_t)job->rows, fault)) return false;
    bool good = wr_top_scan_run(&scan, redis, fault);
    if (good && job->watch_ns != 0 && !job->json && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", out);
    if (good && !job->json) write_text(out, &scan);
    if (good && job->json) good = write_json(out, job, &scan, fault);
    wr_top_scan_fini(&scan);
    return good;
}

static bool once(const struct job *job, struct wr_redis *redis, struct wr_fault *fault) {
    struct wr_output *output;
    const bool good = wr_output_open(&output, job->output, fault) &&
                      show(job, wr_output_file(output), redis, fault) &&
                      wr_output_close(output, fault) && wr_output_publish(output, fault);
    wr_output_destroy(output);
    return good;
}

// Until an interrupt, or until nobody reads any more.
static bool watch(const struct job *job, struct wr_redis *redis, struct wr_fault *fault) {
    const struct timespec pause = {(time_t)(job->watch_ns / WEIR_SECOND),
                                   (long)(job->watch_ns % WEIR_SECOND)};
    struct sigaction action = {.sa_handler = interrupt};
    interrupted = 0;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    while (!interrupted) {
        if (!show(job, stdout, redis, fault)) return interrupted != 0;
        if (fflush(stdout) != 0) return wr_fault(fault, "standard output: nobody reads it");
        nanosleep(&pause, NULL);
    }
    return true;
}

int wr_cmd_top(int argc, char **argv) {
    struct job job = {.url_text = WR_REDIS_URL_USUAL, .prefix = "weir:", .output = "-",
                      .rows = 20};
    struct wr_redis *redis = NULL;
    struct wr_fault fault = {""};
    const int code = read_arguments(&job, argc, argv);
    if (code >= 0) return code;
    const bool good = wr_redis_open(&redis, &job.url, TIMEOUT_NS, &fault) &&
                      (job.watch_ns != 0 ? watch(&job, redis, &fault) : once(&job, redis, &fault));
    wr_redis_close(redis);
    if (good) return WR_EXIT_FINE;
    fprintf(stderr, "weir top: %s\n", fault.text);
    return WR_EXIT_TROUBLE;
}
