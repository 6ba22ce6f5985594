// cmd_trace.c - `weir trace`: its options, and the loop that writes the lines.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>

#include "arguments.h"
#include "commands.h"
#include "output.h"
#include "rate.h"
#include "timestamp.h"
#include "trace.h"
#include "trace_text.h"

// What was asked for, in words; NULL where nothing was.
struct wishes {
    const char *kind;
    const char *format;
    const char *rate;
    const char *duration;
    const char *keys;
    const char *seed;
    const char *start;
    const char *resolution;
    const char *jitter;
    const char *output;
};

struct job {
    struct wr_trace_options options;
    enum wr_trace_format format;
    const char *path;
};

static const char *const kind_words[] = {
#define KIND_WORD(name, word, summary) word,
    WR_TRACE_KINDS(KIND_WORD)
#undef KIND_WORD
};

static const char *const format_words[] = {
#define FORMAT_WORD(name, word) word,
    WR_TRACE_FORMATS(FORMAT_WORD)
#undef FORMAT_WORD
};

static const char *const resolution_words[] = {"s", "ms", "us", "ns"};
static const uint64_t resolutions_ns[] = {WEIR_SECOND, WEIR_MILLISECOND, WEIR_MICROSECOND, 1};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_help(void) {
    printf("weir trace - make up a log, to try a limit on\n\n"
           "The log of a flash sale, and what 5/s with bursts of 20 would have done to it:\n"
           "    weir trace flash-sale -o sale.log\n"
           "    weir replay --rate 5/s --burst 20 sale.log\n"
           "Without a file between them, stamped to the millisecond:\n"
           "    weir trace attack --format ndjson --resolution ms | weir replay --rate 5/s\n"
           "Another day, a busier one of ten minutes, with lines that come up to 2 s late:\n"
           "    weir trace steady --seed 7 --rate 1k/s --duration 10m --jitter 2s\n"
           "People who type, against the limit they are made for:\n"
           "    weir trace typing | weir replay --key user --rate 5/s --burst 20\n\n"
           "Kinds:\n");
#define KIND_HELP(name, word, summary) printf("    %-11s %s\n", word, summary);
    WR_TRACE_KINDS(KIND_HELP)
#undef KIND_HELP
    printf(
        "\nOptions:\n"
        "    -r, --rate RATE     of all users in quiet times (200/s); of each one who types (5/s)\n"
        "    --duration TIME     how long it goes on (60s)\n"
        "    --keys N            how many users (1000; 50 who type)\n"
        "    --seed N            another number, another log; the same, the same bytes (1)\n"
        "    --start TIME        of the first moment (2026-01-01T00:00:00Z)\n"
        "    --resolution UNIT   of the times: s, ms, us or ns (combined s, else ms)\n"
        "    --jitter TIME       lines come up to this much out of order (0)\n"
        "    -f, --format FORMAT combined, csv or ndjson (combined)\n"
        "    -o, --output FILE   whole or not at all; - is standard output (-)\n"
        "    -h, --help          this\n");
}

// Where `word` stands in `words`; -1, with words of refusal, when it does not.
static int choose(const char *what, const char *word, const char *const *words, size_t count,
                  struct wr_fault *fault) {
    char all[128] = "";
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], word) == 0) return (int)i;
        size_t length = strlen(all);
        snprintf(all + length, sizeof(all) - length, "%s%s",
                 i == 0          ? ""
                 : i + 1 < count ? ", "
                                 : " or ",
                 words[i]);
    }
    wr_fault(fault, "there is no %s '%.100s'; it is %s", what, word, all);
    return -1;
}

static bool set_words(struct job *job, const struct wishes *wishes, struct wr_fault *fault) {
    int kind = 0, format = 0, resolution = 0;
    if (wishes->kind != NULL)
        kind = choose("kind", wishes->kind, kind_words, COUNT(kind_words), fault);
    if (kind >= 0 && wishes->format != NULL)
        format = choose("format", wishes->format, format_words, COUNT(format_words), fault);
    if (kind < 0 || format < 0) return false;
    job->options = wr_trace_defaults((enum wr_trace_kind)kind);
    job->format = (enum wr_trace_format)format;
    if (job->format == WR_TRACE_FORMAT_COMBINED) job->options.resolution_ns = WEIR_SECOND;
    if (wishes->resolution == NULL) return true;
    resolution =
        choose("resolution", wishes->resolution, resolution_words, COUNT(resolution_words), fault);
    if (resolution >= 0) job->options.resolution_ns = resolutions_ns[resolution];
    return resolution >= 0;
}

static bool set_start(struct job *job, const char *text, struct wr_fault *fault) {
    int64_t start_ns = 0;
    const char *wrong = wr_time_any(wr_text_of(text), "", &start_ns);
    if (wrong != NULL) return wr_fault(fault, "--start '%.100s': %s", text, wrong);
    if (start_ns < 0)
        return wr_fault(fault, "--start '%.100s': is before 1970; give a later one", text);
    job->options.start_ns = (uint64_t)start_ns;
    return true;
}

static bool set_numbers(struct job *job, const struct wishes *wishes, struct wr_fault *fault) {
    struct wr_trace_options *options = &job->options;
    if (wishes->rate != NULL && !wr_rate_parse(wishes->rate, &options->rate, fault)) return false;
    if (wishes->duration != NULL &&
        !wr_duration_parse(wishes->duration, "--duration", &options->duration_ns, fault))
        return false;
    if (wishes->keys != NULL && !wr_count_parse(wishes->keys, "--keys", &options->keys, fault))
        return false;
    if (wishes->seed != NULL && !wr_count_parse(wishes->seed, "--seed", &options->seed, fault))
        return false;
    if (wishes->jitter != NULL &&
        !wr_duration_parse(wishes->jitter, "--jitter", &options->jitter_ns, fault))
        return false;
    return wishes->start == NULL || set_start(job, wishes->start, fault);
}

// WR_EXIT_FINE with the wishes set, or with `done` set when there is nothing more to do.
static int read_wishes(int argc, char **argv, struct wishes *wishes, bool *done) {
    static const struct option longs[] = {
        {"rate", required_argument, NULL, 'r'},
        {"duration", required_argument, NULL, 'd'},
        {"keys", required_argument, NULL, 'k'},
        {"seed", required_argument, NULL, 's'},
        {"start", required_argument, NULL, 't'},
        {"resolution", required_argument, NULL, 'u'},
        {"jitter", required_argument, NULL, 'j'},
        {"format", required_argument, NULL, 'f'},
        {"output", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    wr_arguments_begin();
    while ((option = wr_arguments_next(argc, argv, "r:f:o:h", longs)) != -1) {
        switch (option) {
        case 'r': wishes->rate = optarg; break;
        case 'd': wishes->duration = optarg; break;
        case 'k': wishes->keys = optarg; break;
        case 's': wishes->seed = optarg; break;
        case 't': wishes->start = optarg; break;
        case 'u': wishes->resolution = optarg; break;
        case 'j': wishes->jitter = optarg; break;
        case 'f': wishes->format = optarg; break;
        case 'o': wishes->output = optarg; break;
        case 'h':
            print_help();
            *done = true;
            return WR_EXIT_FINE;
        default: return WR_EXIT_USAGE;
        }
    }
    if (optind < argc) wishes->kind = argv[optind++];
    if (optind == argc) return WR_EXIT_FINE;
    fprintf(stderr, "weir trace: '%s' is one word too many; name one kind, and a file by -o\n",
            argv[optind]);
    return WR_EXIT_USAGE;
}

static bool write_lines(struct wr_trace *trace, const struct job *job, FILE *out,
                        struct wr_fault *fault) {
    struct wr_trace_event event;
    int result = 0;
    wr_trace_write_header(out, job->format);
    while (!ferror(out) && (result = wr_trace_next(trace, &event)) > 0)
        wr_trace_write(out, job->format, job->options.resolution_ns, &event);
    if (result < 0)
        return wr_fault(fault, "no memory for the lines held back; give a shorter --jitter");
    if (!ferror(out)) return true;
    const char *name = out == stdout ? "standard output" : job->path;
    return wr_fault(fault, "%s: cannot be written: %s", name, strerror(errno));
}

static bool write_trace(struct wr_trace *trace, const struct job *job, struct wr_fault *fault) {
    struct wr_output *output = NULL;
    bool written = wr_output_open(&output, job->path, fault) &&
                   write_lines(trace, job, wr_output_file(output), fault) &&
                   wr_output_publish(output, fault);
    wr_output_destroy(output);
    return written;
}

static int refuse(int code, const struct wr_fault *fault) {
    fprintf(stderr, "weir trace: %s\n", fault->text);
    return code;
}

int wr_cmd_trace(int argc, char **argv) {
    struct wishes wishes = {0};
    struct job job = {0};
    struct wr_fault fault = {""};
    struct wr_trace *trace = NULL;
    bool done = false;
    int code = read_wishes(argc, argv, &wishes, &done);
    if (code != WR_EXIT_FINE || done) return code;
    job.path = wishes.output != NULL ? wishes.output : "-";
    if (!set_words(&job, &wishes, &fault) || !set_numbers(&job, &wishes, &fault) ||
        !wr_trace_check(&job.options, &fault))
        return refuse(WR_EXIT_USAGE, &fault);
    bool written =
        wr_trace_create(&trace, &job.options, &fault) && write_trace(trace, &job, &fault);
    wr_trace_destroy(trace);
    return written ? WR_EXIT_FINE : refuse(WR_EXIT_TROUBLE, &fault);
}
