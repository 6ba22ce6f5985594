// test_cli_replay_bad.c - `weir replay` and bad input: named with file, line and remedy; the exit
// code says whose fault it is; files appear whole or not at all. WEIR_BIN is the command.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli_files.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define GOOD "10.0.0.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 12\n"
#define NO_DAY "10.0.0.1 - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 12\n"
#define NEGATIVE "10.0.0.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 -12\n"

static void write_text(const struct folder *folder, const char *name, const char *text) {
    char path[128];
    write_file(folder_file(folder, name, path), text, strlen(text));
}

static struct folder create_logs(void) {
    struct folder folder = folder_create();
    char path[128];
    write_text(&folder, "good", GOOD GOOD GOOD);
    write_text(&folder, "empty", "");
    write_text(&folder, "blank", "\n\n");
    write_text(&folder, "header", "time,host\n");
    write_text(&folder, "words", "some words\nof a letter\n");
    write_text(&folder, "no_day", GOOD NO_DAY GOOD NEGATIVE);
    write_text(&folder, "only_no_day", NO_DAY);
    write_text(&folder, "no_time.csv", "host,bytes\nh,1\n");
    char *rubbish = malloc(1 << 16);
    for (size_t i = 0; i < 1 << 16; i++) rubbish[i] = (char)(i * i % 251 * (i % 7));
    write_file(folder_file(&folder, "rubbish", path), rubbish, 1 << 16);
    free(rubbish);
    append_gzip(folder_file(&folder, "good.gz", path), GOOD GOOD GOOD, 3 * strlen(GOOD));
    size_t length;
    char *packed = read_whole(path, &length);
    write_file(folder_file(&folder, "cut.gz", path), packed, length - 9);
    packed[length - 5] ^= 1;
    write_file(folder_file(&folder, "broken.gz", path), packed, length);
    free(packed);
    return folder;
}

// Runs `weir replay` with the words; it must fail with `code`, say `says` in one line that begins
// with its name, and write nothing on standard output.
static void expect_refusal(const struct folder *folder, const char *words, int code,
                           const char *says) {
    char command[512], path[128];
    size_t length;
    snprintf(command, sizeof(command), "\"$WEIR\" replay %s", words);
    int got = run_in(folder, command);
    if (got != code) fail_msg("%s ends with %d, not %d", words, got, code);
    assert_true(file_says(folder, "err", says));
    char *said = read_whole(folder_file(folder, "err", path), &length);
    if (strncmp(said, "weir replay: ", 13) != 0 || strchr(said, '\n') != said + length - 1)
        fail_msg("%s says: %s", words, said);
    free(said);
    free(read_whole(folder_file(folder, "out", path), &length));
    assert_int_equal(length, 0);
}

static void names_data_that_stops_it_and_ends_with_1(void **state) {
    (void)state;
    static const struct {
        const char *words;
        const char *says;
    } cases[] = {
        {"missing", "missing: there is no such file; check the name"},
        {"good missing", "missing: there is no such file"},
        {".", ".: is a directory; name the files in it"},
        {"empty", "empty: is empty; there is nothing to replay"},
        {"- <empty", "standard input: is empty"},
        {"blank", "blank: has no records"},
        {"header", "header: has no records"},
        {"words", "words:1: neither a line of a combined or common log, nor a JSON object"},
        {"rubbish", "rubbish:20: binary data (a NUL byte)"},
        {"only_no_day", "only_no_day:1: time '31/Feb/2015:10:05:03 +0000': there is no such day"},
        {"cut.gz", "cut.gz:4: broken gzip: it is cut short; copy it again"},
        {"broken.gz", "broken.gz:4: broken gzip (incorrect data check); test it with gzip -t"},
        {"--key hots good", "good:1: there is no field 'hots'"},
        {"--cost size good", "good:1: there is no field 'size'"},
        {"--time when good", "good:1: there is no field 'when'"},
        {"--format csv no_time.csv", "no_time.csv:1: no field for the time"},
        {"--decisions no/such/folder good", "no/such/folder: cannot be written"},
        {"--decisions /dev/full good", "cannot be written"},
        {"-o . good", ".: cannot be written"},
    };
    struct folder folder = create_logs();
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal(&folder, cases[i].words, 1, cases[i].says);
    folder_remove(&folder);
}

static void names_wrong_usage_and_ends_with_2(void **state) {
    (void)state;
    static const struct {
        const char *words;
        const char *says;
    } cases[] = {
        {"--rate 5 good", "rate '5': per what time? write 5/s"},
        {"--rate 5/y good", "'y' is no unit of time"},
        {"--rate -5/s good", "is negative"},
        {"--rate 20G/s good", "rate 20000000000/s, burst 20000000000: "},
        {"--rate 1/d --burst 300k good", "rate 1/d, burst 300000: "},
        {"--rate 0 good", "say how much: --burst 20"},
        {"--rate unlimited --burst 5 good", "no meaning at an unlimited rate"},
        {"--burst x good", "burst 'x'"},
        {"--cost -5 good", "cost '-5': is negative"},
        {"--weight 2 good", "the weight is a field of the log"},
        {"--key a,a good", "'a' stands there twice"},
        {"--key '' good", "a field without a name"},
        {"--format xml good", "the formats are auto, combined, common, csv, ndjson"},
        {"--format combined --key hots good", "there is no field 'hots'"},
        {"--compare sliding good", "write --compare fixed-window"},
        {"--compare fixed-window --rate unlimited good", "leave --rate unlimited away"},
        {"--threads 0 good", "threads '0': it is from 1 to 64"},
        {"--threads 65 good", "threads '65'"},
        {"--top 1001 good", "top '1001'"},
        {"--capacity 0 good", "capacity '0'"},
        {"--plot p.pdf good", "--plot p.pdf: a picture's name ends in .svg or .png"},
        {"--decisions - good", "put the report elsewhere: --output FILE"},
        {"--treads 2 good", "did you mean --threads?"},
    };
    struct folder folder = create_logs();
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_refusal(&folder, cases[i].words, 2, cases[i].says);
    folder_remove(&folder);
}

static void goes_on_behind_lines_that_are_broken(void **state) {
    (void)state;
    struct folder folder = create_logs();
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --cost bytes --burst 100 no_day"), 0);
    assert_true(file_says(&folder, "out", "4 read, 2 judged, 2 skipped"));
    assert_true(file_says(&folder, "out",
                          "no_day:2: time '31/Feb/2015:10:05:03 +0000': there is no "
                          "such day; correct the date"));
    assert_true(file_says(&folder, "out", "no_day:4: bytes '-12': a negative cost"));
    assert_int_equal(run_in(&folder, "{ cat good; tr '\\0' x </dev/zero | head -c 10000000; echo; "
                                     "printf 'a\\0b\\n'; cat good; } | \"$WEIR\" replay"),
                     0);
    assert_true(file_says(&folder, "out", "8 read, 6 judged, 2 skipped"));
    assert_true(file_says(&folder, "out", "standard input:4: a line of more than 1 MiB"));
    assert_true(file_says(&folder, "out", "standard input:5: binary data (a NUL byte)"));
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay good empty good"), 0);
    assert_int_equal(
        run_in(&folder, "printf 'time,key\\n1,a\\n3000000000,b\\n2,c\\n' | \"$WEIR\" replay"), 0);
    assert_true(
        file_says(&folder, "out", "standard input:3: more than 73 years from the first line"));
    folder_remove(&folder);
}

static void a_weight_that_a_cost_does_not_divide_by_is_skipped(void **state) {
    (void)state;
    struct folder folder = folder_create();
    write_text(&folder, "log", "time,key,w\n1,a,1\n1,b,4294967291\n1,c,1\n");
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --rate 1M/s --weight w --decisions d log"),
                     0);
    assert_true(file_says(&folder, "out", "2 judged, 1 skipped"));
    assert_true(file_says(&folder, "out", "log:3: weight 4294967291/1 of cost 1: "));
    assert_true(file_says(&folder, "d", ",a,1,1,0\n1000000000,c,1,1,0\n"));
    folder_remove(&folder);
}

static void a_failed_run_leaves_the_old_files_and_no_others(void **state) {
    (void)state;
    struct folder folder = create_logs();
    write_text(&folder, "d", "old");
    write_text(&folder, "r", "old");
    size_t before = folder_count(&folder) + 2; // and out, err
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --decisions d -o r good cut.gz"), 1);
    assert_true(file_says(&folder, "d", "old"));
    assert_true(file_says(&folder, "r", "old"));
    assert_int_equal(folder_count(&folder), before);
    assert_int_equal(run_in(&folder,
                            "chmod 640 d && ln -s d link && "
                            "\"$WEIR\" replay --decisions link -o r good && test -L link && "
                            "test $(stat -c %a d) = 640"),
                     0);
    assert_true(file_says(&folder, "d", "1431857103000000000,10.0.0.1,1,1,0\n"));
    assert_true(file_says(&folder, "r", "3 judged"));
    assert_int_equal(folder_count(&folder), before + 1);
    folder_remove(&folder);
}

// Whoever opens a pipe to write waits until it is opened to be read: the command has made its
// files by then. The pipe stays open until the signal has ended it: its own end would end it too.
static void a_run_that_a_signal_ends_leaves_no_file(void **state) {
    (void)state;
    signal(SIGHUP, SIG_DFL); // under nohup(1) it is ignored, and would stay so
    signal(SIGTERM, SIG_DFL);
    struct folder folder = create_logs();
    size_t before = folder_count(&folder) + 3; // and out, err, pipe
    assert_int_equal(run_in(&folder,
                            "mkfifo pipe; for name in TERM HUP; do "
                            "{ exec \"$WEIR\" replay --threads 3 --decisions d pipe; } & "
                            "exec 3>pipe; kill -$name $!; wait $!; echo $?; exec 3>&-; done"),
                     0);
    assert_true(file_says(&folder, "out", "143\n129\n"));
    assert_int_equal(folder_count(&folder), before);
    folder_remove(&folder);
}

// A shell makes its children in the background ignore INT: what is ignored stays so.
static void a_signal_that_was_ignored_stays_so(void **state) {
    (void)state;
    struct folder folder = create_logs();
    size_t before = folder_count(&folder) + 3;
    assert_int_equal(run_in(&folder,
                            "mkfifo pipe; "
                            "{ exec \"$WEIR\" replay --threads 3 --decisions d pipe; } & "
                            "exec 3>pipe; kill -INT $!; exec 3>&-; wait $!; echo $?"),
                     0);
    assert_true(file_says(&folder, "out", "1\n"));
    assert_true(file_says(&folder, "err", "pipe: is empty"));
    assert_int_equal(folder_count(&folder), before);
    folder_remove(&folder);
}

static void says_what_to_install_where_gnuplot_is_missing(void **state) {
    (void)state;
    struct folder folder = create_logs();
    assert_int_equal(run_in(&folder, "PATH=/nonexistent; \"$WEIR\" replay --plot p.svg good"), 1);
    assert_true(file_says(&folder, "err",
                          "p.svg: plots are drawn by gnuplot, which is not in the "
                          "PATH; install it (apt-get install gnuplot-nox)"));
    folder_remove(&folder);
}

static void stops_when_nobody_reads_on(void **state) {
    (void)state;
    struct folder folder = folder_create();
    assert_int_equal(run_in(&folder,
                            "\"$WEIR\" trace steady --duration 600s -o log && "
                            "{ \"$WEIR\" replay --decisions - -o r log; echo $? >code; } | "
                            "head -n 1; test ! -e r"),
                     0);
    assert_true(file_says(&folder, "code", "1"));
    assert_true(file_says(&folder, "out", "time_ns,key,cost,granted,retry_after_ns"));
    folder_remove(&folder);
}

static void help_teaches_by_example(void **state) {
    (void)state;
    struct folder folder = folder_create();
    assert_int_equal(run_in(&folder, "\"$WEIR\" replay --help"), 0);
    assert_true(file_says(&folder, "out", "weir replay --rate 5/s --burst 20 access.log"));
    assert_int_equal(run_in(&folder, "test ! -s err"), 0);
    folder_remove(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_data_that_stops_it_and_ends_with_1),
        cmocka_unit_test(names_wrong_usage_and_ends_with_2),
        cmocka_unit_test(goes_on_behind_lines_that_are_broken),
        cmocka_unit_test(a_weight_that_a_cost_does_not_divide_by_is_skipped),
        cmocka_unit_test(a_failed_run_leaves_the_old_files_and_no_others),
        cmocka_unit_test(a_run_that_a_signal_ends_leaves_no_file),
        cmocka_unit_test(a_signal_that_was_ignored_stays_so),
        cmocka_unit_test(says_what_to_install_where_gnuplot_is_missing),
        cmocka_unit_test(stops_when_nobody_reads_on),
        cmocka_unit_test(help_teaches_by_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
