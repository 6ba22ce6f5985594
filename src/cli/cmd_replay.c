// cmd_replay.c - `weir replay`: its options, and the order in which its files come to be.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "commands.h"
#include "decisions.h"
#include "output.h"
#include "plot_replay.h"
#include "replay.h"
#include "report.h"

#define DEFAULT_CAPACITY (UINT64_C(1) << 20)
#define DEFAULT_TOP 10
#define CAPACITY_MAX (UINT64_C(1) << 32)
#define OUTPUT_BUFFER_BYTES ((size_t)256 << 10)

struct job {
    struct wr_replay_options options;
    bool has_rate;
    bool has_burst;
    bool json;
    const char *decisions;
    const char *plot;
    const char *output;
    char **files;
    int file_count;
};

// What is open while the replay runs; NULL: not asked for.
struct results {
    struct wr_output *decisions;
    struct wr_output *report;
    struct wr_plot *plot;
};

static const char help[] =
    "weir replay - what a limit would have done to a log\n\n"
    "5 requests a second and 20 at once, for each client of a web server:\n"
    "    weir replay --rate 5/s --burst 20 access.log\n"
    "By client and path; packed logs, one after the other:\n"
    "    weir replay --rate 300/m --key host,path access.log.2.gz access.log\n"
    "10 MB a minute of traffic for each, by the bytes of the answers:\n"
    "    weir replay --rate 10M/m --burst 20M --cost bytes access.log\n"
    "JSON lines, or a CSV, by their own fields; what was decided, line by line:\n"
    "    weir replay --rate 3/10s --key user.id --time ts --decisions d.csv events.ndjson\n"
    "Against the usual counter that starts again every window, with a picture:\n"
    "    weir replay --rate 5/s --compare fixed-window --plot sale.svg sale.log\n\n"
    "The limit:\n"
    "    -r, --rate RATE     tokens a time, 5/s 300/m 1/d 10k/s 1.5M/s 3/10s; 0; unlimited\n"
    "                        (5/s)\n"
    "    -b, --burst N       tokens saved up at most (those of one period; 20 if no rate is\n"
    "                        given)\n"
    "    -c, --cost N|FIELD  tokens that a line takes (1)\n"
    "    -w, --weight FIELD  a key's share of the limit: 2, 1/3, 0.5 (1)\n"
    "The log:\n"
    "    -k, --key FIELDS    what is limited, joined by commas (host)\n"
    "    -t, --time FIELD    when it was (time)\n"
    "    -f, --format WORD   auto, combined, common, csv or ndjson (auto)\n"
    "    FILE                - or none is standard input; gzip is unpacked\n"
    "    Fields of combined and common logs: host user time method path status bytes referer\n"
    "    agent (the path without its query). Of a CSV: its columns. Of JSON lines: members,\n"
    "    a.b for a nested one. Times: 17/May/2015:10:05:03 +0000, 2015-05-17T10:05:03.5Z, or\n"
    "    a number since 1970 in s, ms, us or ns by its size, or by its name: ts_ms, time_ns.\n"
    "    Time does not go back: a line older than the newest is judged at the newest. Lines\n"
    "    that are broken, or longer than 1 MiB, are skipped and counted.\n"
    "What comes out:\n"
    "    --json              the report as JSON\n"
    "    -o, --output FILE   the report goes there (-)\n"
    "    -n, --top N         how many of the keys most denied to list (10)\n"
    "    --decisions FILE    time_ns,key,cost,granted,retry_after_ns of each line, as CSV: the\n"
    "                        line's own time, and the wait from when it is judged; 0 when\n"
    "                        granted, empty when no wait helps\n"
    "    --plot FILE         a picture, .svg or .png, by gnuplot\n"
    "    --compare fixed-window\n"
    "                        a counter per window of the same burst and rate beside it\n"
    "How:\n"
    "    -j, --threads N     worker threads; what comes out is the same for any number (1)\n"
    "    --capacity N        keys busy at once that the limiter has room for (1048576)\n"
    "    -h, --help          this\n"
    "Exit: 0 fine, 1 data or a file stopped it, 2 wrong usage. Files appear whole or not at\n"
    "all.\n";

static bool set_format(struct job *job, const char *word, struct wr_fault *fault) {
    static const char *const words[] = {
#define FORMAT_WORD(name, word) word,
        WR_LOG_FORMATS(FORMAT_WORD)
#undef FORMAT_WORD
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], word) != 0) continue;
        job->options.reader.format = (enum wr_log_format)i;
        return true;
    }
    return wr_fault(fault, "-f, --format '%.100s': the formats are auto, combined, common, csv, "
                           "ndjson", word);
}

static bool set_compare(struct job *job, const char *word, struct wr_fault *fault) {
    job->options.compare = true;
    return strcmp(word, "fixed-window") == 0 ||
           wr_fault(fault, "--compare '%.100s': write --compare fixed-window", word);
}

static bool set_count(const char *text, const char *what, uint64_t least, uint64_t most,
                      uint64_t *count, struct wr_fault *fault) {
    if (!wr_count_parse(text, what, count, fault)) return false;
    return (*count >= least && *count <= most) ||
           wr_fault(fault, "%s '%.100s': it is from %" PRIu64 " to %" PRIu64, what, text, least,
                    most);
}

static bool set_number(struct job *job, int option, const char *text, struct wr_fault *fault) {
    struct wr_replay_options *options = &job->options;
    uint64_t count = 0;
    switch (option) {
    case 'j':
        if (!set_count(text, "-j, --threads", 1, WR_REPLAY_THREADS_MAX, &count, fault))
            return false;
        options->threads = (unsigned)count;
        return true;
    case 'n':
        if (!set_count(text, "-n, --top", 0, WR_REPLAY_TOP_MAX, &count, fault)) return false;
        options->top = (uint32_t)count;
        return true;
    case 'b':
        job->has_burst = true;
        return wr_count_parse(text, "-b, --burst", &options->burst, fault);
    default: return set_count(text, "--capacity", 1, CAPACITY_MAX, &options->capacity_keys, fault);
    }
}

enum { COMPARE = 256, DECISIONS, PLOT, JSON, CAPACITY };

static bool set_option(struct job *job, int option, const char *value, struct wr_fault *fault) {
    struct wr_reader_options *reader = &job->options.reader;
    switch (option) {
    case 'r': job->has_rate = true; return wr_rate_parse(value, &job->options.rate, fault);
    case 'f': return set_format(job, value, fault);
    case COMPARE: return set_compare(job, value, fault);
    case 'k': reader->key = value; return true;
    case 'c': reader->cost = value; return true;
    case 'w': reader->weight = value; return true;
    case 't': reader->time = value; return true;
    case DECISIONS: job->decisions = value; return true;
    case PLOT: job->plot = value; return true;
    case 'o': job->output = value; return true;
    case JSON: job->json = true; return true;
    default: return set_number(job, option, value, fault);
    }
}

// What one option leaves to another.
static bool complete(struct job *job, struct wr_fault *fault) {
    struct wr_replay_options *options = &job->options;
    bool unlimited = options->rate.tokens == WEIR_UNLIMITED_TOKENS;
    if (!job->has_rate) options->rate = (struct wr_rate){5, WEIR_SECOND};
    if (!job->has_burst) options->burst = job->has_rate ? options->rate.tokens : 20;
    if (unlimited && job->has_burst)
        return wr_fault(fault, "-b, --burst has no meaning at an unlimited rate; leave it away");
    if (job->has_rate && options->rate.tokens == 0 && !job->has_burst)
        return wr_fault(fault, "a rate of 0 gives the burst and no more; say how much: --burst 20");
    if (options->compare && (unlimited || options->reader.weight != NULL))
        return wr_fault(fault,
                        "--compare fixed-window: a counter has a limit, and knows no weights; "
                        "leave %s away",
                        unlimited ? "--rate unlimited" : "-w, --weight");
    if (job->plot != NULL && !wr_plot_is_name(job->plot))
        return wr_fault(fault, "--plot %.200s: a picture's name ends in .svg or .png", job->plot);
    if (job->file_count == 0 && isatty(STDIN_FILENO) == 1)
        return wr_fault(fault, "no FILE, and standard input is a terminal; name a log, or see "
                               "`weir help replay`");
    if (job->decisions != NULL && strcmp(job->decisions, "-") == 0 && job->output == NULL)
        return wr_fault(fault, "--decisions - takes standard output; put the report elsewhere: "
                               "--output FILE");
    options->timeline = job->plot != NULL;
    options->progress = true;
    return true;
}

static bool say(const struct wr_fault *fault) {
    fprintf(stderr, "weir replay: %s\n", fault->text);
    return false;
}

// False: *code is the exit code.
static bool read_arguments(int argc, char **argv, struct job *job, int *code) {
    static const struct option longs[] = {
        {"rate", required_argument, NULL, 'r'},
        {"burst", required_argument, NULL, 'b'},
        {"cost", required_argument, NULL, 'c'},
        {"weight", required_argument, NULL, 'w'},
        {"key", required_argument, NULL, 'k'},
        {"time", required_argument, NULL, 't'},
        {"format", required_argument, NULL, 'f'},
        {"json", no_argument, NULL, JSON},
        {"output", required_argument, NULL, 'o'},
        {"top", required_argument, NULL, 'n'},
        {"decisions", required_argument, NULL, DECISIONS},
        {"plot", required_argument, NULL, PLOT},
        {"compare", required_argument, NULL, COMPARE},
        {"threads", required_argument, NULL, 'j'},
        {"capacity", required_argument, NULL, CAPACITY},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct wr_fault fault;
    int option;
    *code = WR_EXIT_USAGE;
    wr_arguments_begin();
    while ((option = wr_arguments_next(argc, argv, "r:b:c:w:k:t:f:o:n:j:h", longs)) != -1) {
        if (option == '?') return false;
        if (option == 'h') {
            fputs(help, stdout);
            *code = WR_EXIT_FINE;
            return false;
        }
        if (!set_option(job, option, optarg, &fault)) return say(&fault);
    }
    job->files = argv + optind;
    job->file_count = argc - optind;
    return complete(job, &fault) || say(&fault);
}

// All that could be in the way is found out before the log is read.
static bool open_results(const struct job *job, struct results *results, struct wr_fault *fault) {
    const char *report = job->output != NULL ? job->output : "-";
    if (job->plot != NULL && !wr_plot_open(&results->plot, job->plot, WR_PLOT_REPLAY_WIDTH,
                                           WR_PLOT_REPLAY_HEIGHT, fault))
        return false;
    if (!wr_output_open(&results->report, report, fault)) return false;
    if (job->decisions == NULL) return true;
    if (!wr_output_open(&results->decisions, job->decisions, fault)) return false;
    setvbuf(wr_output_file(results->decisions), NULL, _IOFBF, OUTPUT_BUFFER_BYTES);
    wr_decisions_write_header(wr_output_file(results->decisions));
    return true;
}

static void close_results(struct results *results) {
    wr_plot_destroy(results->plot);
    wr_output_destroy(results->decisions);
    wr_output_destroy(results->report);
}

static bool read_files(const struct job *job, struct wr_replay *replay, struct wr_fault *fault) {
    if (job->file_count == 0 && !wr_replay_file(replay, "-", fault)) return false;
    for (int i = 0; i < job->file_count; i++)
        if (!wr_replay_file(replay, job->files[i], fault)) return false;
    return wr_replay_finish(replay, fault);
}

static bool write_report(const struct job *job, FILE *out, const struct wr_summary *summary,
                         struct wr_fault *fault) {
    if (!job->json) wr_report_write(out, summary);
    return !job->json || wr_report_write_json(out, summary) ||
           wr_fault(fault, "the report cannot be written");
}

// Everything is complete before the first file takes its place.
static bool write_results(const struct job *job, struct results *results,
                          struct wr_summary *summary, struct wr_fault *fault) {
    if (results->plot != NULL) wr_plot_replay(results->plot, summary);
    return (results->plot == NULL || wr_plot_draw(results->plot, fault)) &&
           (results->decisions == NULL || wr_output_close(results->decisions, fault)) &&
           write_report(job, wr_output_file(results->report), summary, fault) &&
           wr_output_close(results->report, fault) &&
           (results->plot == NULL || wr_plot_publish(results->plot, fault)) &&
           (results->decisions == NULL || wr_output_publish(results->decisions, fault)) &&
           wr_output_publish(results->report, fault);
}

static bool run(const struct job *job, struct wr_replay *replay, struct results *results,
                struct wr_fault *fault) {
    struct wr_summary summary;
    return read_files(job, replay, fault) && wr_replay_summarise(replay, &summary, fault) &&
           write_results(job, results, &summary, fault);
}

int wr_cmd_replay(int argc, char **argv) {
    struct job job = {
        .options = {.capacity_keys = DEFAULT_CAPACITY, .threads = 1, .top = DEFAULT_TOP}};
    struct results results = {NULL, NULL, NULL};
    struct wr_replay *replay = NULL;
    struct wr_fault fault;
    int code;
    if (!read_arguments(argc, argv, &job, &code)) return code;
    code = WR_EXIT_TROUBLE;
    if (open_results(&job, &results, &fault)) {
        if (results.decisions != NULL) job.options.decisions = wr_output_file(results.decisions);
        code = wr_replay_create(&replay, &job.options, &fault) ? WR_EXIT_TROUBLE : WR_EXIT_USAGE;
    }
    if (replay != NULL && run(&job, replay, &results, &fault)) code = WR_EXIT_FINE;
    if (code != WR_EXIT_FINE) say(&fault);
    wr_replay_destroy(replay);
    close_results(&results);
    return code;
}
