// test_cli_replay.c - `weir replay` decides as an exact bucket does, line for line, for any number
// of threads; and says what it found. WEIR_BIN is the command.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include <weir.h>

#include "cli/random.h"
#include "cli_files.h"
#include "replay_model.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LINES 30000

struct limit {
    const char *rate;
    uint64_t tokens;
    uint64_t period_ns;
    uint64_t burst;
};

static const struct limit limits[] = {
    {"1/s", 1, WEIR_SECOND, 5},        {"3/10s", 3, 10 * WEIR_SECOND, 4},
    {"7/13s", 7, 13 * WEIR_SECOND, 1}, {"1500/s", 1500, WEIR_SECOND, 2},
    {"1/d", 1, WEIR_DAY, 1},
};

struct line {
    int64_t time_ns;
    uint64_t cost;
    char key[100];
};

// ---------------------------------------------------------------------------------------------
// Decisions against the model

// Reads the next row; the keys here need no quotes.
static void expect_row(FILE *rows, const struct line *line, const struct replay_answer *answer,
                       const struct limit *limit, size_t number) {
    char row[256], begins[200];
    assert_non_null(fgets(row, sizeof(row), rows));
    snprintf(begins, sizeof(begins), "%lld,%s,%llu,%d,", (long long)line->time_ns, line->key,
             (unsigned long long)line->cost, answer->granted);
    if (strncmp(row, begins, strlen(begins)) != 0)
        fail_msg("%s burst %llu, line %zu: %s is not %s", limit->rate,
                 (unsigned long long)limit->burst, number + 1, row, begins);
    const char *retry = row + strlen(begins);
    if (answer->never) {
        assert_string_equal(retry, "\n");
        return;
    }
    // The limiter's wait is exact on its own clock, which is at most 1 ns ahead of the exact one.
    uint64_t wait_ns = strtoull(retry, NULL, 10);
    if (wait_ns > answer->retry_after_ns || wait_ns + 1 < answer->retry_after_ns)
        fail_msg("%s, line %zu: waits %s, exactly %llu", limit->rate, number + 1, retry,
                 (unsigned long long)answer->retry_after_ns);
}

static void expect_decisions(const char *path, const struct line *lines, size_t count,
                             const struct limit *limit) {
    struct replay_model model = replay_model_create(limit->tokens, limit->period_ns, limit->burst);
    char row[256];
    FILE *rows = fopen(path, "r");
    assert_non_null(rows);
    assert_string_equal(fgets(row, sizeof(row), rows), "time_ns,key,cost,granted,retry_after_ns\n");
    for (size_t i = 0; i < count; i++) {
        struct replay_answer answer =
            replay_model_take(&model, lines[i].key, lines[i].cost, lines[i].time_ns);
        expect_row(rows, &lines[i], &answer, limit, i);
    }
    assert_null(fgets(row, sizeof(row), rows));
    fclose(rows);
    replay_model_destroy(&model);
}

static void replay_and_compare(const struct folder *folder, const char *log, const char *options,
                               const struct line *lines, size_t count) {
    char path[128], command[2048];
    for (size_t i = 0; i < COUNT(limits); i++) {
        snprintf(command, sizeof(command),
                 "\"$WEIR\" replay --rate %s --burst %llu --decisions d.csv %s %s", limits[i].rate,
                 (unsigned long long)limits[i].burst, options, log);
        if (run_in(folder, command) != 0) fail_msg("%s failed", command);
        expect_decisions(folder_file(folder, "d.csv", path), lines, count, &limits[i]);
    }
}

// Keys that come often and seldom, gaps from nothing to a day, a tenth of the lines out of order.
static void make_lines(struct line *lines, size_t count, uint64_t seed, int64_t unit_ns) {
    struct wr_random random = wr_random_init(seed);
    int64_t now_ns = INT64_C(1431857103) * 1000000000;
    for (size_t i = 0; i < count; i++) {
        uint64_t gap_ns = UINT64_C(1) << wr_random_below(&random, i % 500 == 0 ? 47 : 32);
        if (wr_random_once_in(&random, 2)) gap_ns = 0;
        now_ns += (int64_t)(gap_ns / (uint64_t)unit_ns) * unit_ns;
        lines[i].time_ns = now_ns;
        if (wr_random_once_in(&random, 10))
            lines[i].time_ns -=
                (int64_t)wr_random_below(&random, 5000000000 / (uint64_t)unit_ns) * unit_ns;
        lines[i].cost = wr_random_below(&random, 4);
        snprintf(lines[i].key, sizeof(lines[i].key), "k%llu",
                 (unsigned long long)wr_random_zipf(&random, 300));
    }
}

static void time_of_day(int64_t time_ns, const char *layout, int digits, char *text) {
    time_t second = (time_t)(time_ns / 1000000000);
    struct tm parts;
    char fraction[16];
    gmtime_r(&second, &parts);
    size_t length = strftime(text, 64, layout, &parts);
    snprintf(fraction, sizeof(fraction), ".%09d", (int)(time_ns % 1000000000));
    snprintf(text + length, 64 - length, "%.*s", digits + 1, fraction);
}

static void agrees_with_an_exact_bucket_at_nanosecond_stamps(void **state) {
    (void)state;
    static struct line lines[LINES];
    struct folder folder = folder_create();
    char path[128];
    make_lines(lines, LINES, 11, 1);
    FILE *log = fopen(folder_file(&folder, "log.csv", path), "w");
    fputs("cost,key,time_ns\n", log);
    for (size_t i = 0; i < LINES; i++)
        fprintf(log, "%llu,\"%s\",%lld\n", (unsigned long long)lines[i].cost, lines[i].key,
                (long long)lines[i].time_ns);
    fclose(log);
    replay_and_compare(&folder, "log.csv", "--cost cost --threads 3", lines, LINES);
    folder_remove(&folder);
}

static void agrees_with_an_exact_bucket_at_millisecond_stamps(void **state) {
    (void)state;
    static struct line lines[LINES];
    struct folder folder = folder_create();
    char path[128], when[64];
    make_lines(lines, LINES, 12, 1000000);
    FILE *json = fopen(folder_file(&folder, "log.ndjson", path), "w");
    FILE *combined = fopen(folder_file(&folder, "log", path), "w");
    for (size_t i = 0; i < LINES; i++) {
        time_of_day(lines[i].time_ns, "%Y-%m-%dT%H:%M:%S", 3, when);
        fprintf(json, "{\"ts\":\"%sZ\",\"user\":{\"id\":\"%s\"},\"n\":%llu}\n", when, lines[i].key,
                (unsigned long long)lines[i].cost);
        time_of_day(lines[i].time_ns, "%d/%b/%Y:%H:%M:%S", 3, when);
        fprintf(combined, "%s - - [%s +0000] \"GET / HTTP/1.1\" 200 %llu\n", lines[i].key, when,
                (unsigned long long)lines[i].cost);
    }
    fclose(json);
    fclose(combined);
    replay_and_compare(&folder, "log.ndjson", "--key user.id --cost n", lines, LINES);
    replay_and_compare(&folder, "log", "--cost bytes", lines, LINES);
    folder_remove(&folder);
}

// Beside the repository, where there is one.
static FILE *open_shared_log(char *path) {
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, 1024, "%.*s/../../shared/data/access.log", (int)(slash - __FILE__), __FILE__);
    char *real = realpath(path, NULL);
    if (real == NULL) return NULL;
    snprintf(path, 1024, "%s", real);
    free(real);
    return fopen(path, "r");
}

static void agrees_with_an_exact_bucket_on_a_real_log(void **state) {
    (void)state;
    static struct line lines[LINES];
    static char text[65536];
    char path[1024];
    size_t count = 0;
    FILE *log = open_shared_log(path);
    if (log == NULL) skip();
    for (; fgets(text, sizeof(text), log) != NULL; count++) {
        struct tm when = {0};
        assert_int_equal(sscanf(text, "%99s", lines[count].key), 1);
        assert_non_null(strptime(strchr(text, '[') + 1, "%d/%b/%Y:%H:%M:%S +0000]", &when));
        lines[count].time_ns = timegm(&when) * INT64_C(1000000000);
        lines[count].cost = 1;
    }
    fclose(log);
    struct folder folder = folder_create();
    replay_and_compare(&folder, path, "", lines, count);
    folder_remove(&folder);
}

// ---------------------------------------------------------------------------------------------
// Threads

static void write_sale(const struct folder *folder) {
    assert_int_equal(run_in(folder, "\"$WEIR\" trace flash-sale --jitter 2s --resolution ms "
                                    "--rate 500/s -o sale.log"),
                     0);
}

static void any_number_of_threads_decides_alike_byte_for_byte(void **state) {
    (void)state;
    struct folder folder = folder_create();
    write_sale(&folder);
    assert_int_equal(run_in(&folder,
                            "for n in 1 2 4 7 64; do "
                            "\"$WEIR\" replay --rate 3/2s --key host,path --cost bytes --burst 90k "
                            "--rate 20k/3s --compare fixed-window --threads $n --json -o r$n "
                            "--decisions d$n sale.log || exit; "
                            "sed -i '/threads\\|elapsed\\|per_second/d' r$n; "
                            "cmp d1 d$n || exit; cmp r1 r$n || exit; done"),
                     0);
    assert_true(file_says(&folder, "r1", "\"judged\": 2"));
    folder_remove(&folder);
}

// ---------------------------------------------------------------------------------------------
// The report

static json_t *report_of(const struct folder *folder, const char *options) {
    char command[1024], path[128];
    json_error_t error;
    snprintf(command, sizeof(command), "\"$WEIR\" replay --json %s", options);
    if (run_in(folder, command) != 0) {
        file_says(folder, "err", "what it said");
        fail_msg("%s failed", command);
    }
    json_t *report = json_load_file(folder_file(folder, "out", path), 0, &error);
    if (report == NULL) fail_msg("%s", error.text);
    return report;
}

static void expect_number(const json_t *report, const char *name, long long expected) {
    const json_t *found = json_object_get(report, name);
    if (!json_is_integer(found) || json_integer_value(found) != expected)
        fail_msg("%s is %lld, not %lld", name, (long long)json_integer_value(found), expected);
}

#define EDGE_LOG                                                                                   \
    "time,key\n"                                                                                   \
    "10.999,a\n10.999,a\n10.999,a\n10.999,a\n10.999,a\n10.999,a\n"                                 \
    "11.001,a\n11.001,a\n11.001,a\n11.001,a\n11.001,a\n11.001,a\n10.5,b\nrubbish,c\n"

static void reports_what_it_found(void **state) {
    (void)state;
    struct folder folder = folder_create();
    char path[128];
    write_file(folder_file(&folder, "log", path), EDGE_LOG, strlen(EDGE_LOG));
    json_t *report = report_of(&folder, "--rate 5/s --compare fixed-window log");
    const json_t *highest = json_object_get(report, "highest");
    const json_t *fixed = json_object_get(report, "fixed_window");
    const json_t *edge = json_object_get(fixed, "worst_edge");
    const json_t *top = json_array_get(json_object_get(report, "most_denied"), 0);
    expect_number(report, "lines", 15);
    expect_number(report, "judged", 13);
    expect_number(report, "skipped", 1);
    expect_number(json_array_get(json_object_get(report, "skipped_first"), 0), "line", 15);
    expect_number(report, "out_of_order", 1);
    expect_number(report, "out_of_order_most_ns", 501000000);
    expect_number(report, "keys", 2);
    expect_number(report, "granted", 6);
    expect_number(report, "denied", 7);
    expect_number(report, "displaced", 0);
    expect_number(highest, "tokens", 5);
    expect_number(highest, "bound_tokens", 10);
    expect_number(fixed, "granted", 11);
    expect_number(fixed, "highest_tokens", 10);
    expect_number(fixed, "only_fixed_window", 5);
    expect_number(edge, "tokens", 10);
    expect_number(edge, "allowed_tokens", 5);
    expect_number(edge, "excess_tokens", 5);
    expect_number(top, "denied", 7);
    expect_number(top, "granted", 5);
    json_decref(report);
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 5/s --compare fixed-window log"), 0);
    assert_true(file_says(&folder, "out",
                          "at its worst edge 10 tokens within 2ms, where burst + rate "
                          "* time is 5: 5 too many"));
    assert_true(file_says(&folder, "out", "log:15: time 'rubbish': not a time"));
    assert_int_equal(run_in(&folder, "test ! -s err"), 0);
    folder_remove(&folder);
}

static void counts_displaced_buckets(void **state) {
    (void)state;
    struct folder folder = folder_create();
    char path[128];
    FILE *log = fopen(folder_file(&folder, "log", path), "w");
    fputs("time,key\n", log);
    for (int i = 0; i < 5000; i++) fprintf(log, "1000,%d\n", i);
    fclose(log);
    json_t *report = report_of(&folder, "--rate 1/h --capacity 64 log");
    expect_number(report, "granted", 5000);
    assert_in_range(json_integer_value(json_object_get(report, "displaced")), 4000, 5000);
    json_decref(report);
    report = report_of(&folder, "--rate 1/h --capacity 10k --threads 2 log");
    expect_number(report, "displaced", 0);
    json_decref(report);
    folder_remove(&folder);
}

static void weighs_keys_by_a_field(void **state) {
    (void)state;
    struct folder folder = folder_create();
    char path[128];
    FILE *log = fopen(folder_file(&folder, "log", path), "w");
    fputs("time,key,plan\n", log);
    for (int i = 0; i < 20; i++) fprintf(log, "1000,free,1\n1000,paid,3\n1000,half,1/2\n");
    fputs("1000,odd,1/3\n", log);
    fclose(log);
    json_t *report = report_of(&folder, "--rate 4/s --weight plan log");
    expect_number(report, "granted", 4 + 12 + 2 + 1);
    json_decref(report);
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 4/s --weight plan log"), 0);
    folder_remove(&folder);
}

static void treats_zero_unlimited_and_no_burst_as_what_they_are(void **state) {
    (void)state;
    struct folder folder = folder_create();
    char path[128];
    FILE *log = fopen(folder_file(&folder, "log", path), "w");
    fputs("time,key\n", log);
    for (int i = 0; i < 100; i++) fprintf(log, "%d,k\n", 1000 + 86400 * i);
    fclose(log);
    json_t *report = report_of(&folder, "--rate 0 --burst 7 --decisions d log");
    expect_number(report, "granted", 7);
    expect_number(json_object_get(report, "highest"), "tokens", 7);
    expect_number(json_object_get(report, "highest"), "bound_tokens", 7);
    json_decref(report);
    assert_true(file_says(&folder, "d", ",k,1,0,\n")); // empty: no wait helps
    report = report_of(&folder, "--rate unlimited log");
    expect_number(report, "granted", 100);
    assert_true(json_is_null(json_object_get(report, "highest")));
    json_decref(report);
    report = report_of(&folder, "--rate 5/s --burst 0 log");
    expect_number(report, "granted", 0);
    expect_number(report, "denied", 100);
    json_decref(report);
    folder_remove(&folder);
}

static void reads_logs_from_pipes_gzip_and_several_files(void **state) {
    (void)state;
    struct folder folder = folder_create();
    write_sale(&folder);
    assert_int_equal(
        run_in(&folder, "\"$WEIR\" replay --decisions whole sale.log >/dev/null && "
                        "cat sale.log | \"$WEIR\" replay --decisions piped >/dev/null && "
                        "cmp whole piped && "
                        "dd if=sale.log bs=7 2>/dev/null | \"$WEIR\" replay --decisions - -o r - | "
                        "cmp whole - && "
                        "gzip -k sale.log && \"$WEIR\" replay --decisions packed sale.log.gz "
                        ">/dev/null && cmp whole packed && "
                        "split -n l/3 sale.log part. && \"$WEIR\" replay --decisions parts part.* "
                        ">/dev/null && cmp whole parts && "
                        "tail -n +2 whole | wc -l >a && wc -l <sale.log >b && cmp a b"),
        0);
    folder_remove(&folder);
}

static void quotes_keys_as_csv_needs_and_reads_its_own_decisions(void **state) {
    (void)state;
    static const char log[] = "time_ns,key\n1,\"a,b\"\n2,\"say \"\"hi\"\"\"\n3,plain\n4,\"a,b\"\n";
    struct folder folder = folder_create();
    char path[128];
    write_file(folder_file(&folder, "log", path), log, strlen(log));
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 1/s --decisions d log"), 0);
    assert_true(file_says(&folder, "d",
                          "1,\"a,b\",1,1,0\n2,\"say \"\"hi\"\"\",1,1,0\n3,plain,1,1,0\n"
                          "4,\"a,b\",1,0,999999997\n"));
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 1/s --cost cost --decisions e d && "
                                     "cmp d e"),
                     0);
    folder_remove(&folder);
}

static void draws_a_plot_where_gnuplot_is(void **state) {
    (void)state;
    struct folder folder = folder_create();
    write_sale(&folder);
    if (run_in(&folder, "command -v gnuplot") != 0) skip();
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --plot p.svg sale.log"), 0);
    assert_true(file_says(&folder, "p.svg", "</svg>"));
    assert_true(file_says(&folder, "p.svg", "203.0.113."));
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 1M/s --plot p.png sale.log && "
                                     "head -c 4 p.png | grep -q PNG"),
                     0);
    folder_remove(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_an_exact_bucket_at_nanosecond_stamps),
        cmocka_unit_test(agrees_with_an_exact_bucket_at_millisecond_stamps),
        cmocka_unit_test(agrees_with_an_exact_bucket_on_a_real_log),
        cmocka_unit_test(any_number_of_threads_decides_alike_byte_for_byte),
        cmocka_unit_test(reports_what_it_found),
        cmocka_unit_test(counts_displaced_buckets),
        cmocka_unit_test(weighs_keys_by_a_field),
        cmocka_unit_test(treats_zero_unlimited_and_no_burst_as_what_they_are),
        cmocka_unit_test(reads_logs_from_pipes_gzip_and_several_files),
        cmocka_unit_test(quotes_keys_as_csv_needs_and_reads_its_own_decisions),
        cmocka_unit_test(draws_a_plot_where_gnuplot_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
