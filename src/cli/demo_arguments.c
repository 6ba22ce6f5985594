// demo_arguments.c - the words of the command line, and the help about them.
#include "demo_arguments.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "arguments.h"
#include "commands.h"
#include "plot.h"

#define DURATION_MIN_NS (100 * WEIR_MILLISECOND)
#define INTERVAL_MIN_NS (5 * WEIR_MILLISECOND)
#define INTERVAL_MAX_NS (10 * WEIR_SECOND)
#define DEMAND_MAX 1000.0
#define ASKS_MAX_PER_S 1e6 // of all processes

static void print_what(void) {
    printf("weir sync-demo - one limit over several processes, by Redis, and its faults\n\n"
           "Eight processes that together ask for three times the limit:\n"
           "    weir sync-demo --processes 8 --rate 500/s --burst 500 --demand 3x\n"
           "Nobody asks, then all at once ten times the rate each:\n"
           "    weir sync-demo --pattern flood\n"
           "Redis is gone for 5 s; then it forgets everything; then a process is killed:\n"
           "    weir sync-demo --fault outage=5s@5s --fault flush@12s --fault kill-node@15s\n"
           "A Redis of yours (names of its own, which expire), 200 ms away, with a picture:\n"
           "    weir sync-demo --redis redis://127.0.0.1 --fault latency=200ms --plot out.svg\n\n"
           "Each process decides by itself and reports to Redis every interval; none waits.\n"
           "Without --redis it starts a redis-server of its own on a unix socket, and ends it\n"
           "always. What is granted on all processes together is set against b + r*t, over the\n"
           "whole run and over any window of it (in steps of 20 ms), and against the bound of\n"
           "the sync.\n\n");
}

static void print_options(void) {
    printf("Options:\n"
           "    --processes N    1 to 64 (8)\n"
           "    -r, --rate RATE  of a key, on all processes together (500/s)\n"
           "    -b, --burst N    (the tokens of one period)\n"
           "    --keys N         1 to 16, asked for alike (1)\n"
           "    --demand Nx      what all ask for, times the rate (3x)\n"
           "    --pattern WORD   even: all processes alike (this is the default); one: one asks\n"
           "                     for all of it; jump: the same, another process every 2 s; flood:\n"
           "                     nobody for a quarter of the time, 2 s at most, then each 10\n"
           "                     times the rate for 1 s, then even\n"
           "    --duration TIME  100ms to 10m (20s)\n"
           "    --interval TIME  between two reports of a process, 5ms to 10s (100ms)\n"
           "    --seed N         other random times of the asks (1)\n"
           "    --redis URL      redis://[user:password@]host[:port][/database], or\n"
           "                     unix:/path[?db=1&user=..&password=..] (a server of its own)\n"
           "    --fault WHAT     up to 8 of them, at times since the start:\n"
           "                     outage=10s@10s   all between the processes and Redis is lost\n"
           "                     latency=200ms    to each round trip; latency=200ms@5s: from then\n"
           "                     kill-node@5s     kill -9 of one that asks; others take over\n"
           "                     and, only with its own server,\n"
           "                     flush@5s         FLUSHALL\n"
           "                     script-flush@5s  SCRIPT FLUSH\n"
           "                     kill-redis@5s    kill -9, back after 1 s\n"
           "    --json           the report as JSON\n"
           "    -o, --output FILE  where it goes (-)\n"
           "    --plot FILE      a picture, .svg or .png, by gnuplot\n"
           "    -h, --help       this\n\n");
}

static void print_bound(void) {
    printf("The bound, in tokens of a key over b + r*t in any window, with the round trip RTT and\n"
           "d' = 1.1 * interval + RTT (two round trips more with script-flush), N processes:\n"
           "    r * (d' + RTT/2)                    granted while nobody hears\n"
           "  + what the others asked in 2d'        each at most b + 2r*d'\n"
           "    or, instead of these two, excess_bound_tokens of a process, if that is more and\n"
           "    there is no outage (it would count the outage again)\n"
           "  + debt above max_debt (the burst)     at the start, and at each jump\n"
           "and by its faults:\n"
           "  + outage, of O with the reconnecting  what was asked in it above r*O, at most\n"
           "                                        (N-1) * (b + r*O); shares stay far below\n"
           "  + flush, kill-redis                   b and the first two terms: full buckets again\n"
           "  + kill-redis                          an outage of 1 s beside\n"
           "  + kill-node                           what it granted in its last d'\n"
           "A latency is in the round trip.\n\n"
           "Ctrl-C ends it early, with its report; twice ends it at once.\n"
           "Exit: 0 within the bound, 1 not, or the system stopped it, 2 wrong usage.\n");
}

static void print_help(void) {
    print_what();
    print_options();
    print_bound();
}

static bool set_small(const char *text, const char *what, uint64_t most, uint32_t *out,
                      struct wr_fault *fault) {
    uint64_t value = 0;
    if (!wr_count_parse(text, what, &value, fault)) return false;
    if (value < 1 || value > most)
        return wr_fault(fault, "%s '%.100s': it is from 1 to %" PRIu64, what, text, most);
    *out = (uint32_t)value;
    return true;
}

static bool set_time(const char *text, const char *what, uint64_t least, uint64_t most,
                     uint64_t *ns, struct wr_fault *fault) {
    char low[WR_UNIT_TEXT], high[WR_UNIT_TEXT];
    if (!wr_duration_parse(text, what, ns, fault)) return false;
    wr_duration_text(least, low);
    wr_duration_text(most, high);
    return (*ns >= least && *ns <= most) ||
           wr_fault(fault, "%s '%.100s': it is from %s to %s", what, text, low, high);
}

static bool set_rate(struct wr_demo_options *o, const char *text, struct wr_fault *fault) {
    char why[sizeof fault->text];
    if (!wr_rate_parse(text, &o->rate, fault)) {
        snprintf(why, sizeof why, "%s", fault->text);
        return wr_fault(fault, "-r, --rate: %.500s", why);
    }
    return (o->rate.tokens != 0 && o->rate.tokens != WEIR_UNLIMITED_TOKENS) ||
           wr_fault(fault, "-r, --rate '%.100s': a limit that is synced has a rate above 0, "
                           "such as 500/s", text);
}

static bool set_demand(struct wr_demo_options *o, const char *text, struct wr_fault *fault) {
    char *end;
    o->demand = strtod(text, &end);
    if ((text[0] < '0' || text[0] > '9') || strcmp(end, "x") != 0 || !isfinite(o->demand) ||
        o->demand <= 0 || o->demand > DEMAND_MAX)
        return wr_fault(fault, "--demand '%.100s': times the rate, above 0x up to 1000x, such as "
                               "3x or 0.9x", text);
    return true;
}

static bool set_pattern(struct wr_demo_options *o, const char *word, struct wr_fault *fault) {
    for (int i = 0; i < WR_DEMO_PATTERN_COUNT; i++) {
        o->pattern = (enum wr_demo_pattern)i;
        if (strcmp(wr_demo_pattern_word(o->pattern), word) == 0) return true;
    }
    return wr_fault(fault, "--pattern '%.100s': the patterns are even, one, jump and flood", word);
}

static bool add_fault(struct wr_demo_options *o, const char *text, struct wr_fault *fault) {
    if (o->fault_count == WR_DEMO_FAULTS_MAX)
        return wr_fault(fault, "--fault '%.100s': %d faults are the most", text,
                        WR_DEMO_FAULTS_MAX);
    return wr_demo_fault_parse(text, &o->faults[o->fault_count++], fault);
}

enum option_id { PROCESSES = 256, KEYS, DEMAND, PATTERN, DURATION, INTERVAL, SEED, REDIS, FAULT,
                 JSON, PLOT };

static bool set_option(struct wr_demo_job *job, int id, const char *value,
                       struct wr_fault *fault) {
    struct wr_demo_options *o = &job->options;
    switch (id) {
    case PROCESSES:
        return set_small(value, "--processes", WR_DEMO_PROCESSES_MAX, &o->processes, fault);
    case KEYS: return set_small(value, "--keys", WR_DEMO_KEYS_MAX, &o->keys, fault);
    case 'r': return set_rate(o, value, fault);
    case 'b':
        job->has_burst = true;
        return wr_count_parse(value, "-b, --burst", &o->burst, fault);
    case DEMAND: return set_demand(o, value, fault);
    case PATTERN: return set_pattern(o, value, fault);
    case DURATION:
        return set_time(value, "--duration", DURATION_MIN_NS, WR_DEMO_DURATION_MAX_NS,
                        &o->duration_ns, fault);
    case INTERVAL:
        return set_time(value, "--interval", INTERVAL_MIN_NS, INTERVAL_MAX_NS, &o->interval_ns,
                        fault);
    case SEED: return wr_count_parse(value, "--seed", &o->seed, fault);
    case REDIS:
        o->own_server = false;
        o->url_text = value;
        return wr_redis_url_parse(value, &o->url, fault);
    case FAULT: return add_fault(o, value, fault);
    case 'o': job->output = value; return true;
    case PLOT: job->plot = value; return true;
    default: job->json = true; return true;
    }
}

static const struct option longs[] = {
    {"processes", required_argument, NULL, PROCESSES},
    {"rate", required_argument, NULL, 'r'},
    {"burst", required_argument, NULL, 'b'},
    {"keys", required_argument, NULL, KEYS},
    {"demand", required_argument, NULL, DEMAND},
    {"pattern", required_argument, NULL, PATTERN},
    {"duration", required_argument, NULL, DURATION},
    {"interval", required_argument, NULL, INTERVAL},
    {"seed", required_argument, NULL, SEED},
    {"redis", required_argument, NULL, REDIS},
    {"fault", required_argument, NULL, FAULT},
    {"json", no_argument, NULL, JSON},
    {"output", required_argument, NULL, 'o'},
    {"plot", required_argument, NULL, PLOT},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool check_fault(const struct wr_demo_options *o, const struct wr_demo_fault *what,
                        struct wr_fault *fault) {
    char text[WR_UNIT_TEXT * 2], end[WR_UNIT_TEXT];
    wr_demo_fault_text(what, text);
    wr_duration_text(o->duration_ns, end);
    if (what->at_ns >= o->duration_ns)
        return wr_fault(fault, "--fault %s: the run is over at %s; give a longer --duration", text,
                        end);
    if (!o->own_server && what->kind != WR_DEMO_KILL_NODE && !wr_demo_fault_by_proxy(what))
        return wr_fault(fault, "--fault %s: that is not done to a Redis of yours; leave --redis "
                               "away, and it is done to a server of its own", text);
    return true;
}

static bool complete(struct wr_demo_job *job, struct wr_fault *fault) {
    struct wr_demo_options *o = &job->options;
    uint32_t kills = 0;
    if (!job->has_burst) o->burst = o->rate.tokens;
    if (o->burst == 0)
        return wr_fault(fault, "-b, --burst 0: then nothing is ever granted; 1 is the least");
    const double all_per_s = wr_demo_rate_per_s(o) * o->keys *
                             (o->pattern == WR_DEMO_FLOOD ? 10.0 * o->processes : o->demand);
    if (all_per_s > ASKS_MAX_PER_S)
        return wr_fault(fault, "that is %.0f asks a second, and 1M/s is the most; lower --rate, "
                               "--demand or --keys", all_per_s);
    for (size_t i = 0; i < o->fault_count; i++) {
        if (!check_fault(o, &o->faults[i], fault)) return false;
        kills += o->faults[i].kind == WR_DEMO_KILL_NODE;
    }
    if (kills >= o->processes)
        return wr_fault(fault, "--fault kill-node: one of %" PRIu32 " processes must be left; give "
                               "more --processes", o->processes);
    return job->plot == NULL || wr_plot_is_name(job->plot) ||
           wr_fault(fault, "--plot %.200s: a picture's name ends in .svg or .png", job->plot);
}

int wr_demo_arguments(int argc, char **argv, struct wr_demo_job *job) {
    struct wr_fault fault = {""};
    int id;
    *job = (struct wr_demo_job){
        .options = {.processes = 8, .keys = 1, .rate = {500, WEIR_SECOND}, .demand = 3,
                    .pattern = WR_DEMO_EVEN, .duration_ns = 20 * WEIR_SECOND,
                    .interval_ns = 100 * WEIR_MILLISECOND, .seed = 1, .own_server = true},
        .output = "-",
    };
    wr_arguments_begin();
    while ((id = wr_arguments_next(argc, argv, "r:b:o:h", longs)) != -1) {
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (!set_option(job, id, optarg, &fault)) break;
    }
    if (id == -1 && optind < argc)
        wr_fault(&fault, "'%.200s' is one word too many; all is said by options", argv[optind]);
    else if (id == -1 && complete(job, &fault)) return -1;
    fprintf(stderr, "weir sync-demo: %s\n", fault.text);
    return WR_EXIT_USAGE;
}
