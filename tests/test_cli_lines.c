// test_cli_lines.c - lines come out whole, whatever the file is made of, or the trouble is named.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/lines.h"
#include "cli_files.h"

#define MEGABYTE ((size_t)1 << 20)

// Reads all lines into `seen`, each with '|' behind it, and "<long>" for those passed over. True
// unless the file is broken.
static bool read_lines(const char *path, char *seen, size_t room, struct wr_fault *fault) {
    struct wr_lines *lines;
    struct wr_text line;
    enum wr_line what;
    seen[0] = '\0';
    if (!wr_lines_open(&lines, path, fault)) return false;
    while ((what = wr_lines_next(lines, &line, fault)) == WR_LINE_READ ||
           what == WR_LINE_TOO_LONG) {
        size_t used = strlen(seen);
        if (what == WR_LINE_TOO_LONG) line = wr_text_of("<long>");
        if (line.length > 40) line.length = 40;
        snprintf(seen + used, room - used, "%.*s|", (int)line.length, line.data);
    }
    wr_lines_close(lines);
    return what == WR_LINE_END;
}

// The lines of a file with these bytes.
static void expect_lines(const char *bytes, size_t length, const char *expected) {
    struct folder folder = folder_create();
    struct wr_fault fault;
    char path[128], seen[1024];
    write_file(folder_file(&folder, "log", path), bytes, length);
    if (!read_lines(path, seen, sizeof(seen), &fault)) fail_msg("%s", fault.text);
    assert_string_equal(seen, expected);
    unlink(path);
    append_gzip(path, bytes, length);
    if (!read_lines(path, seen, sizeof(seen), &fault)) fail_msg("%s", fault.text);
    assert_string_equal(seen, expected);
    folder_remove(&folder);
}

static void ends_lines_with_lf_or_crlf_or_the_file(void **state) {
    (void)state;
    expect_lines("", 0, "");
    expect_lines("\n", 1, "|");
    expect_lines("a", 1, "a|");
    expect_lines("a\n", 2, "a|");
    expect_lines("a\r\nb\r\n", 6, "a|b|");
    expect_lines("a\n\n\nb", 5, "a|||b|");
    expect_lines("a\rb\n", 4, "a\rb|");
    expect_lines("a\r", 2, "a|");
    expect_lines("\r\n\r", 3, "||");
}

static void passes_over_a_mark_of_utf8(void **state) {
    (void)state;
    expect_lines("\xef\xbb\xbf"
                 "a\nb",
                 6, "a|b|");
    expect_lines("\xef\xbb\xbf", 3, "");
    expect_lines("\xef\xbb", 2, "\xef\xbb|");
}

// A line of `length` letters between two short ones.
static void expect_long_line(size_t length, const char *ending, const char *expected) {
    char *bytes = malloc(length + 16);
    assert_non_null(bytes);
    memcpy(bytes, "a\n", 2);
    memset(bytes + 2, 'x', length);
    strcpy(bytes + 2 + length, ending);
    expect_lines(bytes, 2 + length + strlen(ending), expected);
    free(bytes);
}

static void passes_over_lines_of_more_than_a_mebibyte(void **state) {
    (void)state;
    const char *whole = "a|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx|b|";
    expect_long_line(MEGABYTE, "\nb", whole);
    expect_long_line(MEGABYTE, "\r\nb", whole);
    expect_long_line(MEGABYTE + 1, "\nb", "a|<long>|b|");
    expect_long_line(MEGABYTE + 1, "\r\nb", "a|<long>|b|");
    expect_long_line(10 * MEGABYTE, "\nb\n", "a|<long>|b|");
    expect_long_line(10 * MEGABYTE, "", "a|<long>|");
    expect_long_line(MEGABYTE + (256 << 10), "\n\nb", "a|<long>||b|");
}

static void counts_every_line_once_across_buffer_ends(void **state) {
    (void)state;
    struct folder folder = folder_create();
    struct wr_lines *lines;
    struct wr_text line;
    struct wr_fault fault;
    char path[128], expected[32];
    FILE *file = fopen(folder_file(&folder, "log", path), "wb");
    for (int i = 0; i < 400000; i++) fprintf(file, "line %d%s\n", i, i % 3 == 0 ? "\r" : "");
    fclose(file);
    assert_true(wr_lines_open(&lines, path, &fault));
    for (int i = 0; i < 400000; i++) {
        assert_int_equal(wr_lines_next(lines, &line, &fault), WR_LINE_READ);
        snprintf(expected, sizeof(expected), "line %d", i);
        assert_true(wr_text_is(line, expected));
        assert_int_equal(wr_lines_number(lines), i + 1);
    }
    assert_int_equal(wr_lines_next(lines, &line, &fault), WR_LINE_END);
    wr_lines_close(lines);
    folder_remove(&folder);
}

static void reads_several_gzip_members_as_one(void **state) {
    (void)state;
    struct folder folder = folder_create();
    struct wr_fault fault;
    char path[128], seen[1024];
    append_gzip(folder_file(&folder, "log", path), "a\nb", 3);
    append_gzip(path, "", 0);
    append_gzip(path, "c\nd\n", 4);
    assert_true(read_lines(path, seen, sizeof(seen), &fault));
    assert_string_equal(seen, "a|bc|d|");
    FILE *file = fopen(path, "ab");
    fwrite("\0\0\0\0", 1, 4, file); // as tar pads
    fclose(file);
    assert_true(read_lines(path, seen, sizeof(seen), &fault));
    assert_string_equal(seen, "a|bc|d|");
    folder_remove(&folder);
}

// A gzip file of 3,000 lines; the caller frees it.
static char *gzip_of_many_lines(const struct folder *folder, char *path, size_t *length) {
    gzFile file = gzopen(folder_file(folder, "whole.gz", path), "wb");
    for (int i = 0; i < 3000; i++) gzprintf(file, "line %d %d\n", i, i * i);
    gzclose(file);
    return read_whole(path, length);
}

static void names_the_line_at_which_a_gzip_is_cut_short(void **state) {
    (void)state;
    struct folder folder = folder_create();
    struct wr_fault fault;
    char path[128], begins[160];
    char *seen = malloc(MEGABYTE);
    size_t length;
    char *bytes = gzip_of_many_lines(&folder, path, &length);
    folder_file(&folder, "log.gz", path);
    for (size_t cut = 2; cut < length; cut += cut < 30 ? 1 : 97) {
        write_file(path, bytes, cut);
        assert_false(read_lines(path, seen, MEGABYTE, &fault));
        snprintf(begins, sizeof(begins), "%s:", path);
        assert_int_equal(strncmp(fault.text, begins, strlen(begins)), 0);
        unsigned long named = strtoul(fault.text + strlen(begins), NULL, 10), lines = 0;
        for (const char *at = seen; *at != '\0'; at++) lines += *at == '|';
        assert_int_equal(named, lines + 1);
        assert_non_null(strstr(fault.text, "cut short"));
    }
    free(bytes);
    free(seen);
    folder_remove(&folder);
}

static void names_a_gzip_that_is_broken(void **state) {
    (void)state;
    struct folder folder = folder_create();
    struct wr_fault fault;
    char path[128];
    char *seen = malloc(MEGABYTE);
    size_t length;
    char *bytes = gzip_of_many_lines(&folder, path, &length);
    folder_file(&folder, "log.gz", path);
    bytes[length / 2] ^= 0x55;
    write_file(path, bytes, length);
    assert_false(read_lines(path, seen, MEGABYTE, &fault));
    assert_non_null(strstr(fault.text, "broken gzip"));
    bytes[length / 2] ^= 0x55;
    bytes[length - 6] ^= 0x55; // the checksum
    write_file(path, bytes, length);
    assert_false(read_lines(path, seen, MEGABYTE, &fault));
    assert_non_null(strstr(fault.text, ":3001: broken gzip"));
    bytes[length - 6] ^= 0x55;
    write_file(path, bytes, length);
    FILE *file = fopen(path, "ab");
    fputs("more", file);
    fclose(file);
    assert_false(read_lines(path, seen, MEGABYTE, &fault));
    assert_non_null(strstr(fault.text, ":3001: broken gzip: rubbish after its end"));
    free(bytes);
    free(seen);
    folder_remove(&folder);
}

static void refuses_what_it_cannot_read_in_words(void **state) {
    (void)state;
    struct folder folder = folder_create();
    struct wr_fault fault;
    char path[128], seen[64];
    assert_false(read_lines(folder_file(&folder, "none", path), seen, sizeof(seen), &fault));
    assert_non_null(strstr(fault.text, "/none: there is no such file"));
    assert_false(read_lines(folder.path, seen, sizeof(seen), &fault));
    assert_non_null(strstr(fault.text, "is a directory"));
    write_file(folder_file(&folder, "log.zst", path), "\x28\xb5\x2f\xfd rest", 9);
    assert_false(read_lines(path, seen, sizeof(seen), &fault));
    assert_non_null(strstr(fault.text, "packed with zstd"));
    assert_non_null(strstr(fault.text, "zstdcat"));
    folder_remove(&folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_lines_with_lf_or_crlf_or_the_file),
        cmocka_unit_test(passes_over_a_mark_of_utf8),
        cmocka_unit_test(passes_over_lines_of_more_than_a_mebibyte),
        cmocka_unit_test(counts_every_line_once_across_buffer_ends),
        cmocka_unit_test(reads_several_gzip_members_as_one),
        cmocka_unit_test(names_the_line_at_which_a_gzip_is_cut_short),
        cmocka_unit_test(names_a_gzip_that_is_broken),
        cmocka_unit_test(refuses_what_it_cannot_read_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
