// The program `bench`: its options, and the list of rows.
//
//   bench [--quick] [--threads 1,2] [--keys 1M,10M] [--filter REGEX] [--json FILE]
//         [--redis SOCKET] [--benchmark_...]
// What begins with --benchmark_ goes to Google Benchmark as it is.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

#define ROW_FILES_MAX 32
#define ARGUMENTS_MAX 64

static bench_rows_function *row_files[ROW_FILES_MAX];
static size_t row_file_count;
static struct bench_row *rows;
static size_t row_count;
static struct bench_reported reported[BENCH_LIST_MAX];
static size_t reported_count;

void bench_add_rows(bench_rows_function *function) {
    if (row_file_count == ROW_FILES_MAX) bench_fail("more than %d files of rows", ROW_FILES_MAX);
    row_files[row_file_count++] = function;
}

void bench_add(const struct bench_row *row) {
    rows = reallocarray(rows, row_count + 1, sizeof *rows);
    if (rows == NULL) bench_fail("no memory for the list of rows");
    rows[row_count++] = *row;
}

void bench_report(const char *name, double value) {
    for (size_t i = 0; i < reported_count; i++) {
        if (strcmp(reported[i].name, name) == 0) {
            reported[i].value = value;
            return;
        }
    }
    if (reported_count < BENCH_LIST_MAX)
        reported[reported_count++] = (struct bench_reported){name, value};
}

size_t bench_take_reports(struct bench_reported reports[BENCH_LIST_MAX]) {
    const size_t count = reported_count;
    memcpy(reports, reported, count * sizeof *reports);
    reported_count = 0;
    return count;
}

// Reads "1,2,4". Ends the program where it is no such list, or holds a number above `most`.
static size_t parse_list(const char *option, char *text, uint64_t most,
                         uint64_t list[BENCH_LIST_MAX]) {
    size_t count = 0;
    for (char *rest = text, *item; (item = strsep(&rest, ",")) != NULL; count++) {
        if (count == BENCH_LIST_MAX || !bench_parse_count(item, &list[count]) ||
            list[count] > most)
            bench_fail("%s: '%s' is not a number up to %llu; give a list of at most %d, as 1,2",
                       option, item, (unsigned long long)most, BENCH_LIST_MAX);
    }
    return count;
}

static void set_threads(struct bench_settings *settings, char *text) {
    uint64_t list[BENCH_LIST_MAX];
    settings->thread_counts = parse_list("--threads", text, BENCH_THREADS_MAX, list);
    for (size_t i = 0; i < settings->thread_counts; i++) settings->threads[i] = (unsigned)list[i];
}

static void set_keys(struct bench_settings *settings, char *text) {
    // A key's text holds eight digits.
    settings->key_counts = parse_list("--keys", text, 99999999, settings->keys);
}

static void use_quick(struct bench_settings *settings) {
    settings->quick = true;
    settings->keys[0] = 10000;
    settings->keys[1] = 20000;
}

static void usage(FILE *to) {
    fputs("usage: bench [--quick] [--threads 1,2] [--keys 1M,10M] [--filter REGEX]\n"
          "             [--json FILE] [--redis SOCKET] [--benchmark_...]\n"
          "Measures weir and what stands beside it; a row's `each` is the time of one thread for\n"
          "one iteration. --quick shows that the rows run, and measures nothing. REGEX is held\n"
          "against names with the kind of time in them: take/hot/granted/real_time/threads:1.\n",
          to);
}

// Reads the option at *i; false where it is none of ours.
static bool parse_option(struct bench_settings *settings, const char **filter, int argc,
                         char **argv, int *i) {
    const char *option = argv[*i];
    if (strcmp(option, "--quick") == 0) use_quick(settings);
    else if (strcmp(option, "--threads") == 0)
        set_threads(settings, bench_option_text(argc, argv, i));
    else if (strcmp(option, "--keys") == 0) set_keys(settings, bench_option_text(argc, argv, i));
    else if (strcmp(option, "--filter") == 0) *filter = bench_option_text(argc, argv, i);
    else if (strcmp(option, "--json") == 0) settings->json = bench_option_text(argc, argv, i);
    else if (strcmp(option, "--redis") == 0)
        settings->redis_socket = bench_option_text(argc, argv, i);
    else return false;
    return true;
}

// Google Benchmark's arguments: our defaults first, for the last of two wins.
struct arguments {
    char *list[ARGUMENTS_MAX + 1];
    int count;
};

static void push(struct arguments *arguments, const char *option, const char *value) {
    char *text;
    if (arguments->count == ARGUMENTS_MAX || asprintf(&text, "%s%s", option, value) < 0)
        bench_fail("more than %d arguments", ARGUMENTS_MAX);
    arguments->list[arguments->count++] = text;
}

static void push_defaults(struct arguments *arguments, const struct bench_settings *settings,
                          const char *filter) {
    push(arguments, "--benchmark_repetitions=", settings->quick ? "1" : "9");
    push(arguments, "--benchmark_min_time=", settings->quick ? "0.0005" : "0.2");
    push(arguments, "--benchmark_enable_random_interleaving=", "true");
    push(arguments, "--benchmark_display_aggregates_only=", "true");
    push(arguments, "--benchmark_context=weir=", weir_version());
    if (filter != NULL) push(arguments, "--benchmark_filter=", filter);
    if (settings->json != NULL) push(arguments, "--benchmark_out=", settings->json);
}

static void drop(struct arguments *arguments) {
    for (int i = 0; i < arguments->count; i++) free(arguments->list[i]);
}

int main(int argc, char **argv) {
    struct bench_settings settings = {.threads = {1, 2}, .thread_counts = 2,
                                      .keys = {1000000, 10000000}, .key_counts = 2};
    const char *filter = NULL;
    char *theirs[ARGUMENTS_MAX];
    int their_count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (parse_option(&settings, &filter, argc, argv, &i)) continue;
        if (strncmp(argv[i], "--benchmark_", 12) != 0 || their_count == ARGUMENTS_MAX) {
            usage(stderr);
            fprintf(stderr, "bench: '%s' is not an option\n", argv[i]);
            return 2;
        }
        theirs[their_count++] = argv[i];
    }
    for (size_t i = 0; i < row_file_count; i++) row_files[i](&settings);
    struct arguments arguments = {0};
    push(&arguments, "", argv[0]);
    push_defaults(&arguments, &settings, filter);
    for (int i = 0; i < their_count; i++) push(&arguments, "", theirs[i]);
    struct arguments given = arguments; // Google Benchmark takes its own out of the list
    const int status = bench_measure(rows, row_count, &settings, given.count, given.list);
    drop(&arguments);
    free(rows);
    return status;
}
