// test_cli_main.c - the command `weir` as its user meets it: help, misspellings, lost output.
//
// WEIR_COMMAND in the environment is the program to run.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <weir.h>

#include "cli/commands.h"
#include "cli/nearest.h"

static char output[65536];

// Runs a script in which $W is the program; what it prints is in `output`. Returns its exit code.
static int run(const char *script) {
    FILE *pipe = popen(script, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_said(const char *words) {
    if (strstr(output, words) == NULL) fail_msg("'%s' is not in:\n%s", words, output);
}

static void help_shows_every_command_with_its_example(void **state) {
    (void)state;
    assert_int_equal(run("$W --help 2>&1"), WR_EXIT_FINE);
#define SHOWN(name, function, summary, example)                                                    \
    assert_said("\n    " name " ");                                                                \
    assert_said(summary);                                                                          \
    assert_said(example);
    WR_COMMANDS(SHOWN)
#undef SHOWN
    assert_int_equal(run("test \"$($W --help)\" = \"$($W help)\""), WR_EXIT_FINE);
    assert_int_equal(run("test \"$($W --help)\" = \"$($W -h)\""), WR_EXIT_FINE);
}

static void each_command_has_help_of_its_own(void **state) {
    (void)state;
#define HELPED(name, function, summary, example)                                                   \
    assert_int_equal(run("$W " name " --help 2>&1"), WR_EXIT_FINE);                                \
    assert_said("    weir " name " ");                                                             \
    assert_int_equal(run("test \"$($W help " name ")\" = \"$($W " name " --help)\""), WR_EXIT_FINE);
    WR_COMMANDS(HELPED)
#undef HELPED
}

static void version_is_the_librarys(void **state) {
    (void)state;
    assert_int_equal(run("$W --version"), WR_EXIT_FINE);
    assert_string_equal(output, "weir " WEIR_VERSION "\n");
}

static void without_a_command_it_shows_the_help_and_fails(void **state) {
    (void)state;
    assert_int_equal(run("$W 2>/dev/null"), WR_EXIT_USAGE);
    assert_string_equal(output, "");
    assert_int_equal(run("$W 2>&1"), WR_EXIT_USAGE);
    assert_said("Commands:");
}

static void a_misspelt_command_is_answered_with_the_nearest(void **state) {
    (void)state;
    assert_int_equal(run("$W replya 2>&1 >/dev/null"), WR_EXIT_USAGE);
    assert_string_equal(output,
                        "weir: there is no command 'replya'; did you mean 'weir replay'?\n");
    assert_int_equal(run("$W help trcae 2>&1"), WR_EXIT_USAGE);
    assert_said("did you mean 'weir trace'?");
    assert_int_equal(run("$W --versoin 2>&1"), WR_EXIT_USAGE);
    assert_said("there is no option '--versoin'; did you mean 'weir --version'?");
    assert_int_equal(run("$W xyzzy 2>&1"), WR_EXIT_USAGE);
    assert_said("`weir --help` lists what there is");
}

// Every refusal begins with the command, and names a short option beside its long one.
static void a_refusal_names_the_command_and_the_option_as_typed(void **state) {
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"bench --keys x", "weir bench: --keys 'x'"},
        {"bench -b x", "weir bench: -b, --burst 'x'"},
        {"bench word", "weir bench: it reads no file (word)"},
        {"bench --wrong", "weir bench: there is no option '--wrong'"},
        {"tune --rounds x", "weir tune: --rounds 'x'"},
        {"tune word", "weir tune: it reads no file (word)"},
        {"trace --keys x", "weir trace: --keys 'x'"},
        {"trace --seed x", "weir trace: --seed 'x'"},
        {"trace --duration x", "weir trace: --duration 'x'"},
        {"trace --jitter x", "weir trace: --jitter 'x'"},
        {"trace --start x", "weir trace: --start 'x'"},
        {"replay -n 5000 /dev/null", "weir replay: -n, --top '5000'"},
        {"replay -j 0 /dev/null", "weir replay: -j, --threads '0'"},
        {"replay -b x /dev/null", "weir replay: -b, --burst 'x'"},
        {"replay -f x /dev/null", "weir replay: -f, --format 'x'"},
        {"replay --capacity x /dev/null", "weir replay: --capacity 'x'"},
        {"replay -k a,a /dev/null", "weir replay: -k, --key: 'a'"},
        {"replay -c '' /dev/null", "weir replay: -c, --cost is empty"},
        {"pool -w 0", "weir pool: -w, --workers '0'"},
        {"pool -r x", "weir pool: -r, --rate: rate 'x'"},
        {"pool -r 5/s -b x", "weir pool: -b, --burst 'x'"},
        {"pool -k user", "weir pool: -k, --key is about"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char script[256];
        snprintf(script, sizeof script, "$W %s 2>&1", cases[i].line);
        run(script);
        if (strncmp(output, cases[i].says, strlen(cases[i].says)) != 0)
            fail_msg("%s: %s", cases[i].line, output);
    }
}

static void nearest_knows_slips_of_the_finger_and_nothing_far(void **state) {
    (void)state;
    static const char *const words[] = {"replay", "trace", "rate", "burst"};
    static const struct {
        const char *misspelt, *meant;
    } cases[] = {
        {"repaly", "replay"},
        {"rplay", "replay"},
        {"replayy", "replay"},
        {"reqlay", "replay"},
        {"re", "replay"},
        {"trave", "trace"},
        {"raet", "rate"},
        {"bur", "burst"},
        {"", NULL},
        {"x", NULL},
        {"sync", NULL},
        {"r", NULL},
        {"a-word-that-is-far-longer-than-any-of-those-that-there-are", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *meant = wr_nearest(cases[i].misspelt, words, 4);
        if (cases[i].meant == NULL) assert_null(meant);
        else assert_string_equal(meant, cases[i].meant);
    }
}

static void a_reader_that_goes_away_is_an_error_in_words(void **state) {
    (void)state;
    assert_int_equal(run("exec 2>&1; { $W trace; echo \"exit $?\" >&2; } | head -c 1 "
                         ">/dev/null"), 0);
    assert_said("weir trace: standard output: cannot be written: Broken pipe\nexit 1\n");
}

static void output_that_cannot_be_written_is_an_error_in_words(void **state) {
    (void)state;
    assert_int_equal(run("exec 2>&1; $W --help >/dev/full"), WR_EXIT_TROUBLE);
    assert_string_equal(output, "weir: cannot write to standard output: No space left on device\n");
    assert_int_equal(run("exec 2>&1; $W trace >/dev/full"), WR_EXIT_TROUBLE);
    assert_string_equal(
        output, "weir trace: standard output: cannot be written: No space left on device\n");
    assert_int_equal(run("exec 2>&1; $W --version >&-"), WR_EXIT_TROUBLE);
    assert_string_equal(output, "weir: cannot write to standard output: Bad file descriptor\n");
}

static void closed_streams_do_not_end_up_in_a_file(void **state) {
    (void)state;
    assert_int_equal(run("f=$(mktemp) && $W trace --seed 3 -o \"$f\" <&- >&- 2>&- && "
                         "$W trace --seed 3 | cmp - \"$f\"; code=$?; rm \"$f\"; exit $code"),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_shows_every_command_with_its_example),
        cmocka_unit_test(each_command_has_help_of_its_own),
        cmocka_unit_test(version_is_the_librarys),
        cmocka_unit_test(without_a_command_it_shows_the_help_and_fails),
        cmocka_unit_test(a_misspelt_command_is_answered_with_the_nearest),
        cmocka_unit_test(a_refusal_names_the_command_and_the_option_as_typed),
        cmocka_unit_test(nearest_knows_slips_of_the_finger_and_nothing_far),
        cmocka_unit_test(a_reader_that_goes_away_is_an_error_in_words),
        cmocka_unit_test(output_that_cannot_be_written_is_an_error_in_words),
        cmocka_unit_test(closed_streams_do_not_end_up_in_a_file),
    };
    const char *command = getenv("WEIR_COMMAND");
    if (command == NULL) {
        fprintf(stderr, "set WEIR_COMMAND to the program to test\n");
        return 1;
    }
    setenv("W", command, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
