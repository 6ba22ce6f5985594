// test_cli_cmd_trace.c - `weir trace` refuses in words, and leaves no half of a file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/commands.h"

// Runs `weir trace` with these words, and gives its exit code; its standard error goes to `said`.
static int run_command(char *said, size_t room, const char *const *words) {
    char copies[16][64];
    char *argv[17] = {copies[0]};
    int argc = 1;
    int kept = dup(STDERR_FILENO);
    FILE *captured = tmpfile();
    assert_non_null(captured);
    snprintf(copies[0], sizeof(copies[0]), "trace");
    for (; words[argc - 1] != NULL; argc++) {
        argv[argc] = copies[argc];
        snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]);
    }
    dup2(fileno(captured), STDERR_FILENO);
    int code = wr_cmd_trace(argc, argv);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(captured);
    said[fread(said, 1, room - 1, captured)] = '\0';
    fclose(captured);
    return code;
}

static void names_what_is_wrong_with_an_option(void **state) {
    (void)state;
    static const struct {
        const char *words[4];
        const char *said;
    } cases[] = {
        {{"flash-sail"}, "there is no kind 'flash-sail'; it is flash-sale, steady, attack or typ"},
        {{"steady", "now"}, "'now' is one word too many"},
        {{"--rate", "5"}, "rate '5': per what time? write 5/s"},
        {{"--rate", "0"}, "the rate is 0"},
        {{"--rate", "-3/s"}, "negative"},
        {{"--rate", "1G/s"}, "above 100M/s"},
        {{"--duration", "60"}, "duration '60'"},
        {{"--duration", "0"}, "the duration is 0"},
        {{"--keys", "0"}, "keys must be 1 to 16777216"},
        {{"--keys", "many"}, "keys 'many'"},
        {{"--seed", "1.5"}, "seed '1.5'"},
        {{"--start", "2026-02-30T00:00:00Z"}, "start '2026-02-30T00:00:00Z'"},
        {{"--start", "1960-01-01T00:00:00Z"}, "before 1970"},
        {{"--resolution", "m"}, "it is s, ms, us or ns"},
        {{"--jitter", "soon"}, "jitter 'soon'"},
        {{"--format", "xml"}, "it is combined, csv or ndjson"},
        {{"--formt", "csv"}, "did you mean --format?"},
        {{"--help=yes"}, "--help takes no value"},
        {{"--rate"}, "'--rate' needs a value"},
        {{"-z"}, "there is no option '-z'"},
    };
    char said[1024];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(run_command(said, sizeof(said), cases[i].words), WR_EXIT_USAGE);
        if (strstr(said, cases[i].said) == NULL || strncmp(said, "weir trace: ", 12) != 0)
            fail_msg("'%s' is not in: %s", cases[i].said, said);
        assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    }
}

static void writes_the_file_whole_or_not_at_all(void **state) {
    (void)state;
    char folder[] = "/tmp/weir-test-XXXXXX";
    char path[64];
    char said[1024];
    struct stat status;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a.csv", folder);
    const char *good[] = {"attack", "--format", "csv", "--duration", "1s", "-o", path, NULL};
    assert_int_equal(run_command(said, sizeof(said), good), WR_EXIT_FINE);
    assert_string_equal(said, "");
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 5000);
    assert_int_equal(unlink(path), 0);
    const char *bad[] = {"-o", "/dev/full", NULL};
    assert_int_equal(run_command(said, sizeof(said), bad), WR_EXIT_TROUBLE);
    assert_non_null(strstr(said, "/dev/full: cannot be written: No space left on device"));
    snprintf(path, sizeof(path), "%s/none/a.csv", folder);
    assert_int_equal(run_command(said, sizeof(said), good), WR_EXIT_TROUBLE);
    assert_non_null(strstr(said, path));
    assert_int_equal(rmdir(folder), 0); // nothing is left in it
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_what_is_wrong_with_an_option),
        cmocka_unit_test(writes_the_file_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
