// pool_arguments.c - the options of `weir pool`, and what they leave to each other.
#include "pool_arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir_lot.h>

#include "arguments.h"
#include "commands.h"
#include "plot.h"

#define WORKERS_MAX 1024
#define QUEUE_MAX (UINT64_C(1) << 20)
#define DURATION_MAX_NS (24 * WEIR_HOUR)
#define DURATION_MIN_NS (100 * WEIR_MILLISECOND)
#define SPEED_MAX 1000000

static void print_help(void) {
    printf(
        "weir pool - a limiter in front of workers and a provider, running\n\n"
        "A flash sale against a provider whose capacity drops and comes back, while a valve finds\n"
        "out by itself how much may be sent:\n"
        "    weir pool\n"
        "The same events with no limit, with fixed ones too low and too high, and with the valve:\n"
        "    weir pool --compare\n"
        "Your provider: 300 calls a second, 50 ms each, 429 above that, an outage after 10 s:\n"
        "    weir pool --downstream capacity=300/s,latency=50ms±10,error429,outage=3s@10s\n"
        "Each user 5 a second, 20 at once, in front of it; what is denied comes back later:\n"
        "    weir pool --source typing --rate 5/s --burst 20 --park\n"
        "Your log, ten times as fast, a fixed limit for the provider, numbers at /metrics:\n"
        "    weir pool --source access.log --speed 10 --mode fixed --provider-rate 400/s \\\n"
        "        --listen 127.0.0.1:9464\n\n"
        "An event goes: source -> limit of its key -> limit of the provider -> queue -> worker ->\n"
        "provider. What the provider's limit denies, or the provider refuses, is parked and tried\n"
        "again; it is never just dropped. The balance at the end says where each event is.\n\n"
        "Events:\n"
        "    --source WORD|FILE   flash-sale, steady, attack, typing, or a log that weir replay\n"
        "                         reads, - for standard input (flash-sale)\n"
        "    --arrivals RATE      of made-up events in quiet times (60/s; typing: 5/s a user)\n"
        "    --seed N             other made-up events (1)\n"
        "    --speed N            a log runs so many times as fast as it was written (1)\n"
        "    --duration TIME      how long events come (30s)\n"
        "The limit of each key (none, unless --rate is given):\n"
        "    -r, --rate RATE      5/s 300/m 1/d 3/10s\n"
        "    -b, --burst N        tokens saved up at most (the tokens of one period)\n"
        "    -k, --key FIELDS     what a key is: of a log, its fields; else user or path (user)\n"
        "    --park               what it denies is parked and comes back; else denied for good\n"
        "The limit of the provider:\n"
        "    --mode WORD          none, fixed or adaptive (adaptive)\n"
        "    --provider-rate RATE for fixed (200/s)\n"
        "    --valve SETTINGS     for adaptive (min=20,max=5000,base=150); also low, high (marks\n"
        "                         of the queue), grow, shrink, overload (factors), interval,\n"
        "                         smoothing, settle (times)\n"
        "    --compare            none, fixed 200/s, fixed 1000/s (or --provider-rate), adaptive\n"
        "Workers and provider:\n"
        "    -w, --workers N      threads, each with one call at a time (32)\n"
        "    --queue N            events that wait for a worker at most, rounded up to a power of\n"
        "                         two less 1 (1023)\n"
        "    --downstream SPEC    the provider: capacity=RATE[@TIME], latency=TIME±TIME, error429\n"
        "                         (it refuses what is above; else it is slow), timeout=TIME,\n"
        "                         outage=TIME@TIME (500/s, 200/s for the middle third, 500/s\n"
        "                         again, 20ms±5, error429)\n"
        "    --lot N              events parked at most (65536)\n"
        "    --retry TIME         after a 429, a 503 or no answer (100ms)\n"
        "    --max-tries N        then it is dead-lettered (0: never)\n"
        "    --max-age TIME       the same, by its age (0: never)\n"
        "    --drain TIME         at the end, for what is in the queue (2s)\n"
        "What comes out:\n"
        "    --json               the report as JSON\n"
        "    -o, --output FILE    the report goes there (-)\n"
        "    --plot FILE          a picture, .svg or .png, by gnuplot\n"
        "    --listen ADDRESS     /metrics over HTTP while it runs, as 127.0.0.1:9464 or 9464\n"
        "    -h, --help           this\n"
        "Ctrl-C ends the arrivals, drains, and still prints the balance; twice ends at once.\n"
        "Exit: 0 fine, 1 data or the system stopped it, 2 wrong usage.\n");
}

static bool set_count(const char *text, const char *what, uint64_t least, uint64_t most,
                      uint64_t *count, struct wr_fault *fault) {
    if (!wr_count_parse(text, what, count, fault)) return false;
    return (*count >= least && *count <= most) ||
           wr_fault(fault, "%s '%.100s': it is from %" PRIu64 " to %" PRIu64, what, text, least,
                    most);
}

static bool set_small(const char *text, const char *what, uint32_t least, uint32_t most,
                      uint32_t *count, struct wr_fault *fault) {
    uint64_t wide = 0;
    if (!set_count(text, what, least, most, &wide, fault)) return false;
    *count = (uint32_t)wide;
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

static bool set_rate(const char *text, const char *option, struct wr_rate *rate,
                     struct wr_fault *fault) {
    char why[512];
    if (wr_rate_parse(text, rate, fault)) return true;
    snprintf(why, sizeof why, "%.500s", fault->text);
    return wr_fault(fault, "%s: %s", option, why);
}

static bool set_mode(struct wr_pool_job *job, const char *word, struct wr_fault *fault) {
    job->has_mode = true;
    for (int i = 0; i < WR_POOL_MODE_COUNT; i++) {
        job->options.mode = (enum wr_pool_mode)i;
        if (strcmp(wr_pool_mode_word(job->options.mode), word) == 0) return true;
    }
    return wr_fault(fault, "--mode '%.100s': the modes are none, fixed and adaptive", word);
}

static void set_source(struct wr_pool_job *job, const char *word) {
    static const char *const kinds[] = {
#define KIND_WORD(name, word, summary) word,
        WR_TRACE_KINDS(KIND_WORD)
#undef KIND_WORD
    };
    job->options.file = word;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i], word) != 0) continue;
        job->options.kind = (enum wr_trace_kind)i;
        job->options.file = NULL;
    }
}

static bool set_queue(const char *text, uint32_t *queue, struct wr_fault *fault) {
    uint64_t wanted = 0, places = 4;
    if (!set_count(text, "--queue", 1, QUEUE_MAX - 1, &wanted, fault)) return false;
    while (places <= wanted) places *= 2;
    *queue = (uint32_t)(places - 1);
    return true;
}

enum { SOURCE = 256, ARRIVALS, SEED, SPEED, DURATION, PARK, MODE, PROVIDER_RATE, VALVE, COMPARE,
       QUEUE, DOWNSTREAM, LOT, RETRY, MAX_TRIES, MAX_AGE, DRAIN, JSON, PLOT, LISTEN };

static bool set_number(struct wr_pool_job *job, int id, const char *text, struct wr_fault *fault) {
    struct wr_pool_options *o = &job->options;
    switch (id) {
    case 'b':
        job->has_burst = true;
        return wr_count_parse(text, "-b, --burst", &o->burst, fault);
    case SEED: return wr_count_parse(text, "--seed", &o->seed, fault);
    case SPEED:
        job->has_speed = true;
        return set_count(text, "--speed", 1, SPEED_MAX, &o->speed, fault);
    case DURATION:
        return set_time(text, "--duration", DURATION_MIN_NS, DURATION_MAX_NS, &o->duration_ns,
                        fault);
    case 'w': return set_small(text, "-w, --workers", 1, WORKERS_MAX, &o->workers, fault);
    case QUEUE: return set_queue(text, &o->queue, fault);
    case LOT:
        return set_count(text, "--lot", 1, WEIR_LOT_CAPACITY_MAX, &o->lot_capacity, fault);
    case RETRY: return set_time(text, "--retry", 0, WEIR_HOUR, &o->retry_ns, fault);
    case MAX_TRIES: return set_small(text, "--max-tries", 0, UINT32_MAX, &o->max_tries, fault);
    case MAX_AGE: return wr_duration_parse(text, "--max-age", &o->max_age_ns, fault);
    default: return set_time(text, "--drain", 0, WEIR_HOUR, &o->drain_ns, fault);
    }
}

static bool set_option(struct wr_pool_job *job, int id, const char *value, struct wr_fault *fault) {
    struct wr_pool_options *o = &job->options;
    switch (id) {
    case SOURCE: set_source(job, value); return true;
    case ARRIVALS: return set_rate(value, "--arrivals", &o->arrivals, fault);
    case 'r':
        job->has_rate = o->by_key = true;
        return set_rate(value, "-r, --rate", &o->rate, fault);
    case 'k': o->key = value; return true;
    case PARK: o->park = true; return true;
    case MODE: return set_mode(job, value, fault);
    case PROVIDER_RATE:
        job->has_provider_rate = true;
        return set_rate(value, "--provider-rate", &o->provider_rate, fault);
    case VALVE: return wr_pool_valve_parse(value, &o->valve, fault);
    case COMPARE: job->compare = true; return true;
    case DOWNSTREAM:
        job->downstream = value;
        return wr_downstream_parse(value, &o->downstream, fault);
    case JSON: job->json = true; return true;
    case 'o': job->output = value; return true;
    case PLOT: job->plot = value; return true;
    case LISTEN: job->listen = value; return true;
    default: return set_number(job, id, value, fault);
    }
}

static const struct option longs[] = {
    {"source", required_argument, NULL, SOURCE},
    {"arrivals", required_argument, NULL, ARRIVALS},
    {"seed", required_argument, NULL, SEED},
    {"speed", required_argument, NULL, SPEED},
    {"duration", required_argument, NULL, DURATION},
    {"rate", required_argument, NULL, 'r'},
    {"burst", required_argument, NULL, 'b'},
    {"key", required_argument, NULL, 'k'},
    {"park", no_argument, NULL, PARK},
    {"mode", required_argument, NULL, MODE},
    {"provider-rate", required_argument, NULL, PROVIDER_RATE},
    {"valve", required_argument, NULL, VALVE},
    {"compare", no_argument, NULL, COMPARE},
    {"workers", required_argument, NULL, 'w'},
    {"queue", required_argument, NULL, QUEUE},
    {"downstream", required_argument, NULL, DOWNSTREAM},
    {"lot", required_argument, NULL, LOT},
    {"retry", required_argument, NULL, RETRY},
    {"max-tries", required_argument, NULL, MAX_TRIES},
    {"max-age", required_argument, NULL, MAX_AGE},
    {"drain", required_argument, NULL, DRAIN},
    {"json", no_argument, NULL, JSON},
    {"output", required_argument, NULL, 'o'},
    {"plot", required_argument, NULL, PLOT},
    {"listen", required_argument, NULL, LISTEN},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

// Its capacity falls for the middle third of the run.
static bool set_usual_downstream(struct wr_pool_job *job, struct wr_fault *fault) {
    char first[WR_UNIT_TEXT], second[WR_UNIT_TEXT];
    const uint64_t third_ns = job->options.duration_ns / (3 * WEIR_MILLISECOND) * WEIR_MILLISECOND;
    wr_duration_text(third_ns, first);
    wr_duration_text(2 * third_ns, second);
    snprintf(job->usual_downstream, sizeof job->usual_downstream,
             "capacity=500/s,latency=20ms±5,error429,capacity=200/s@%s,capacity=500/s@%s", first,
             second);
    job->downstream = job->usual_downstream;
    return wr_downstream_parse(job->downstream, &job->options.downstream, fault);
}

static bool check_key(const struct wr_pool_job *job, struct wr_fault *fault) {
    const struct wr_pool_options *o = &job->options;
    if (!job->has_rate && (job->has_burst || o->park || o->key != NULL))
        return wr_fault(fault, "%s is about the limit of a key, and there is none; give --rate 5/s",
                        job->has_burst ? "-b, --burst" : o->park ? "--park" : "-k, --key");
    if (o->file == NULL && o->key != NULL && strcmp(o->key, "user") != 0 &&
        strcmp(o->key, "host") != 0 && strcmp(o->key, "path") != 0)
        return wr_fault(fault, "-k, --key '%.100s': made-up events have user (or host) and "
                               "path", o->key);
    if (o->file == NULL && job->has_speed)
        return wr_fault(fault, "--speed is for a log; made-up events have --arrivals");
    if (o->file != NULL && o->arrivals.period_ns != 0)
        return wr_fault(fault, "--arrivals is for made-up events; a log has --speed");
    return true;
}

// What one option leaves to another.
static bool complete(struct wr_pool_job *job, struct wr_fault *fault) {
    struct wr_pool_options *o = &job->options;
    if (!check_key(job, fault)) return false;
    if (job->compare && job->has_mode)
        return wr_fault(fault, "--compare runs all modes; leave --mode away");
    if (job->has_provider_rate && !job->compare && o->mode != WR_POOL_FIXED)
        return wr_fault(fault, "--provider-rate is for --mode fixed or --compare");
    if (job->plot != NULL && !wr_plot_is_name(job->plot))
        return wr_fault(fault, "--plot %.200s: a picture's name ends in .svg or .png", job->plot);
    if (o->file == NULL && o->arrivals.period_ns == 0 && o->kind != WR_TRACE_TYPING)
        o->arrivals = (struct wr_rate){60, WEIR_SECOND};
    if (job->has_rate && !job->has_burst) o->burst = o->rate.tokens;
    return job->downstream != NULL || set_usual_downstream(job, fault);
}

static int refuse(const struct wr_fault *fault) {
    fprintf(stderr, "weir pool: %s\n", fault->text);
    return WR_EXIT_USAGE;
}

// As if nothing was said.
static void set_usual(struct wr_pool_job *job) {
    *job = (struct wr_pool_job){
        .options = {.kind = WR_TRACE_FLASH_SALE, .seed = 1, .speed = 1,
                    .duration_ns = 30 * WEIR_SECOND, .mode = WR_POOL_ADAPTIVE,
                    .provider_rate = {200, WEIR_SECOND}, .valve = WEIR_VALVE_SETTINGS_INIT,
                    .workers = 32, .queue = 1023, .lot_capacity = 65536,
                    .retry_ns = 100 * WEIR_MILLISECOND, .drain_ns = 2 * WEIR_SECOND},
    };
    job->options.valve.min_per_s = 20;
    job->options.valve.base_per_s = 150;
    job->options.valve.max_per_s = 5000;
}

int wr_pool_arguments(int argc, char **argv, struct wr_pool_job *job) {
    struct wr_fault fault = {""};
    int id;
    set_usual(job);
    wr_arguments_begin();
    while ((id = wr_arguments_next(argc, argv, "r:b:k:w:o:h", longs)) != -1) {
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (!set_option(job, id, optarg, &fault)) return refuse(&fault);
    }
    if (optind < argc) {
        fprintf(stderr, "weir pool: '%.200s' is one word too many; a log is named by --source\n",
                argv[optind]);
        return WR_EXIT_USAGE;
    }
    return complete(job, &fault) ? -1 : refuse(&fault);
}
