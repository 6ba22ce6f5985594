// test_cli_bench.c - `weir bench` and `weir tune`: what they print and what they refuse.
//
// WEIR_COMMAND in the environment is the program to run. Spans are as short as may be: nothing is
// said of the figures but that they are there.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>

#include "cli/commands.h"
#include "cli_files.h"

#define BENCH "$WEIR bench --keys 1000 --span 1ms --rounds 1 "
#define TUNE "$WEIR tune --capacity 1000 --threads 2 --shards 4 --span 1ms --rounds 1 "

static struct folder folder;

static json_t *json_of(const char *line) {
    char path[128];
    json_error_t error;
    assert_int_equal(run_in(&folder, line), WR_EXIT_FINE);
    folder_file(&folder, "out", path);
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) fail_msg("line %d: %s", error.line, error.text);
    return root;
}

static double number_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("%s is no number", name);
    return json_number_value(value);
}

static bool flag_of(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_boolean(value)) fail_msg("%s is neither true nor false", name);
    return json_is_true(value);
}

static void assert_refused(const char *line, const char *words) {
    const int code = run_in(&folder, line);
    if (code != WR_EXIT_USAGE) fail_msg("exit code %d: %s", code, line);
    assert_true(file_says(&folder, "err", words));
    char path[128];
    size_t length;
    free(read_whole(folder_file(&folder, "out", path), &length));
    assert_int_equal(length, 0);
}

static void assert_said(const char *words) {
    assert_true(file_says(&folder, "out", words));
}

static void bench_tells_its_figures_as_json(void **state) {
    (void)state;
    json_t *root = json_of(BENCH "--threads 2 --batch 8 --shards 3 --zipf --json");
    const double ns = number_of(root, "ns_per_decision");
    assert_true(ns > 0);
    assert_true(number_of(root, "ns_quartile_low") <= ns);
    assert_true(number_of(root, "ns_quartile_high") >= ns);
    const double per_second = number_of(root, "decisions_per_second");
    assert_true(per_second > 0.999 * 2e9 / ns && per_second < 1.001 * 2e9 / ns); // two threads
    assert_int_equal(number_of(root, "keys"), 1000);
    assert_int_equal(number_of(root, "threads"), 2);
    assert_int_equal(number_of(root, "batch"), 8);
    assert_int_equal(number_of(root, "shards"), 3);
    assert_int_equal(number_of(root, "rounds"), 1);
    assert_true(number_of(root, "memory_bytes") > 32 * 1000);
    assert_true(number_of(root, "granted_share") == 1);
    assert_true(flag_of(root, "zipf"));
    assert_int_equal(json_object_size(root), 12);
    json_decref(root);
}

static void bench_of_a_spent_key_denies(void **state) {
    (void)state;
    json_t *root = json_of(BENCH "--keys 1 --rate 1/h --burst 1 --rounds 2 --json");
    assert_true(number_of(root, "granted_share") < 0.5);
    assert_false(flag_of(root, "zipf"));
    assert_int_equal(number_of(root, "rounds"), 2);
    json_decref(root);
}

static void bench_tells_its_figures_in_words(void **state) {
    (void)state;
    assert_int_equal(run_in(&folder, BENCH "--shards 1"), WR_EXIT_FINE);
    assert_said(" ns a decision (");
    assert_said("1000 keys, all alike; 1 thread, one at a time; 100.0% granted");
    assert_said("1 shard, ");
    assert_said("median and quartiles of 1 rounds");
    assert_int_equal(run_in(&folder, BENCH "--threads 3 --batch 4 --zipf"), WR_EXIT_FINE);
    assert_said("zipf; 3 threads, in batches; 100.0% granted");
}

static void bench_refuses_what_it_cannot_do(void **state) {
    (void)state;
    assert_refused(BENCH "--keys 0", "--keys is 0; give 1 to ");
    assert_refused(BENCH "--threads 1025", "--threads is 1025; give 1 to 1024");
    assert_refused(BENCH "--batch 257", "--batch is 257; give 1 to 256");
    assert_refused(BENCH "--rounds 0", "--rounds is 0; give 1 to ");
    assert_refused(BENCH "--shards 4097", "--shards is 4097; give 0 to 4096");
    assert_refused(BENCH "--capacity 0", "--capacity is 0; give 1 to ");
    assert_refused(BENCH "--span 1us", "--span in ns is 1000; give ");
    assert_refused(BENCH "--threads many", "--threads");
    assert_refused(BENCH "--rate fast", "fast");
    assert_refused(BENCH "--no-such-option", "no-such-option");
    assert_refused(BENCH "events.ndjson", "it reads no file (events.ndjson)");
}

static void bench_says_why_a_limit_cannot_be_kept(void **state) {
    (void)state;
    assert_int_equal(run_in(&folder, BENCH "--rate 100G/s"), WR_EXIT_TROUBLE);
    char path[128];
    size_t length;
    free(read_whole(folder_file(&folder, "err", path), &length));
    assert_true(length > 20);
}

static void tune_prints_a_table_and_one_line_of_verdict(void **state) {
    (void)state;
    assert_int_equal(run_in(&folder, TUNE), WR_EXIT_FINE);
    assert_said("ns a decision, median of 1 rounds (quartiles)\nshards ");
    assert_said("1 thread, all alike");
    assert_said("1 thread, zipf");
    assert_said("2 threads, all alike");
    assert_said("2 threads, zipf");
    assert_said("\n     1");
    assert_said("\n     2");
    assert_said("\n     4");
    assert_said(" * ");
    assert_said("* weir's default\n");
    assert_said("for 1000 keys and 2 threads: ");
    char path[128];
    size_t length;
    char *text = read_whole(folder_file(&folder, "out", path), &length);
    const char *verdict = strstr(text, "* weir's default\n") + strlen("* weir's default\n");
    const bool use = strncmp(verdict, "use ", 4) == 0;
    assert_true(use || strncmp(verdict, "leave the default of ", 21) == 0);
    assert_non_null(strstr(verdict, use ? "% faster than the default of "
                                        : "the shard count makes no difference here"));
    assert_ptr_equal(strchr(verdict, '\n'), text + length - 1); // one line, the last
    free(text);
}

struct best {
    double shards, gain;
};

// The shard count with the least time at two threads, over both skews; its gain over `standard`.
static struct best best_of(const json_t *rows, double standard) {
    double sums[4097] = {0}, least = INFINITY;
    struct best best = {0, 0};
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        if (number_of(row, "threads") == 2)
            sums[(int)number_of(row, "shards")] += number_of(row, "ns");
    }
    for (int shards = 1; shards <= 4096; shards++) {
        if (sums[shards] == 0 || sums[shards] >= least) continue;
        least = sums[shards];
        best.shards = shards;
    }
    best.gain = sums[(int)standard] / least - 1;
    return best;
}

static void tune_tells_every_point_as_json(void **state) {
    (void)state;
    json_t *root = json_of(TUNE "--json");
    assert_int_equal(number_of(root, "capacity"), 1000);
    assert_int_equal(number_of(root, "threads"), 2);
    const double standard = number_of(root, "default_shards"), use = number_of(root, "use_shards");
    const bool matters = flag_of(root, "makes_a_difference");
    assert_true(matters == (use != standard)); // no difference: the default
    const json_t *rows = json_object_get(root, "rows");
    const struct best best = best_of(rows, standard);
    assert_true(fabs(number_of(root, "gain") - best.gain) < 1e-9);
    if (matters) assert_true(use == best.shards);
    bool seen[5][3][2] = {{{false}}}, default_seen = false;
    json_t *row;
    size_t i;
    json_array_foreach(rows, i, row) {
        const double ns = number_of(row, "ns"), shards = number_of(row, "shards");
        assert_true(ns > 0 && number_of(row, "ns_quartile_low") <= ns &&
                    number_of(row, "ns_quartile_high") >= ns);
        default_seen = default_seen || shards == standard;
        const int threads = (int)number_of(row, "threads");
        assert_true(threads == 1 || threads == 2);
        if (shards <= 4) seen[(int)shards][threads][flag_of(row, "zipf")] = true;
    }
    assert_true(default_seen);
    for (int shards = 1; shards <= 4; shards *= 2)
        for (int threads = 1; threads <= 2; threads++)
            for (int zipf = 0; zipf < 2; zipf++) assert_true(seen[shards][threads][zipf]);
    json_decref(root);
}

static void tune_plots_by_gnuplot(void **state) {
    (void)state;
    if (system("gnuplot --version >/dev/null 2>&1") != 0) skip();
    char path[128];
    size_t length;
    assert_int_equal(run_in(&folder, TUNE "--plot shards.svg"), WR_EXIT_FINE);
    assert_said("* weir's default\n");
    free(read_whole(folder_file(&folder, "shards.svg", path), &length));
    assert_true(length > 1000);
    assert_true(file_says(&folder, "shards.svg", "<svg"));
    assert_true(file_says(&folder, "shards.svg", "2 threads, zipf"));
    assert_true(file_says(&folder, "shards.svg", "ns a decision"));
    assert_int_equal(run_in(&folder, TUNE "--json --plot shards.png"), WR_EXIT_FINE);
    char *png = read_whole(folder_file(&folder, "shards.png", path), &length);
    assert_true(length > 1000 && memcmp(png, "\x89PNG", 4) == 0);
    free(png);
}

static void tune_refuses_what_it_cannot_do(void **state) {
    (void)state;
    assert_refused(TUNE "--capacity 0", "--capacity is 0; give 1 to ");
    assert_refused(TUNE "--threads 0", "--threads is 0; give 1 to 1024");
    assert_refused(TUNE "--shards 4097", "--shards is 4097; give 1 to 4096");
    assert_refused(TUNE "--rounds 102", "--rounds is 102; give 1 to 101");
    assert_refused(TUNE "--span 1us", "--span is 1us; give 1ms to 1h");
    assert_refused(TUNE "--plot shards.pdf", "shards.pdf: the name must end in .svg or .png");
    assert_refused(TUNE "--no-such-option", "no-such-option");
    assert_refused(TUNE "events.ndjson", "it reads no file (events.ndjson)");
}

static void tune_says_where_a_plot_cannot_be_written(void **state) {
    (void)state;
    assert_int_equal(run_in(&folder, TUNE "--plot no/such/folder/shards.svg"), WR_EXIT_TROUBLE);
    assert_true(file_says(&folder, "err", "no/such/folder/shards.svg"));
}

static void each_has_help_with_examples(void **state) {
    (void)state;
    assert_int_equal(run_in(&folder, "$WEIR bench --help"), WR_EXIT_FINE);
    assert_said("\n    weir bench --keys 10M --zipf --threads 8 --batch 32\n");
    assert_int_equal(run_in(&folder, "$WEIR tune -h"), WR_EXIT_FINE);
    assert_said("\n    weir tune --capacity 1M --threads 16\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_tells_its_figures_as_json),
        cmocka_unit_test(bench_of_a_spent_key_denies),
        cmocka_unit_test(bench_tells_its_figures_in_words),
        cmocka_unit_test(bench_refuses_what_it_cannot_do),
        cmocka_unit_test(bench_says_why_a_limit_cannot_be_kept),
        cmocka_unit_test(tune_prints_a_table_and_one_line_of_verdict),
        cmocka_unit_test(tune_tells_every_point_as_json),
        cmocka_unit_test(tune_plots_by_gnuplot),
        cmocka_unit_test(tune_refuses_what_it_cannot_do),
        cmocka_unit_test(tune_says_where_a_plot_cannot_be_written),
        cmocka_unit_test(each_has_help_with_examples),
    };
    const char *command = getenv("WEIR_COMMAND");
    if (command == NULL) {
        fprintf(stderr, "set WEIR_COMMAND to the program to test\n");
        return 1;
    }
    setenv("WEIR_BIN", command, 0);
    folder = folder_create();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    folder_remove(&folder);
    return failed;
}
