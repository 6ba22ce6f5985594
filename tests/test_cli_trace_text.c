// test_cli_trace_text.c - the lines of a trace are what the formats, and `weir replay`, want.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <regex.h>
#include <xxhash.h>

#include <weir.h>

#include "cli/record.h"
#include "numbers.h"
#include "trace_run.h"

static void each_key_has_one_host_and_each_host_one_key(void **state) {
    (void)state;
    enum { HOSTS = 100000 };
    uint64_t *hashes = calloc(HOSTS, sizeof(*hashes));
    char host[WR_TRACE_HOST_BYTES];
    assert_non_null(hashes);
    for (uint64_t i = 0; i < HOSTS; i++) {
        // Users all over the 2^24 that there can be, and attackers.
        struct wr_trace_event event = {.key = (i % 16) << 20 | i / 16, .sender = WR_TRACE_USER};
        if (i >= HOSTS / 2) event.sender = WR_TRACE_ATTACKER;
        wr_trace_host(&event, host);
        hashes[i] = XXH64(host, strlen(host), 0);
    }
    assert_int_equal(distinct(hashes, HOSTS), HOSTS);
    free(hashes);
}

static void combined_lines_are_combined_log_lines(void **state) {
    (void)state;
    static const char pattern[] =
        "^[0-9a-f.:]+ - (-|user[0-9]+) "
        "\\[[0-9]{2}/Jan/2026:00:0[01]:[0-9]{2}\\.[0-9]{3} \\+0000\\] "
        "\"(GET|POST) /[^ \"]* HTTP/1\\.1\" (200|401|404) [0-9]+ \"-\" \"[^\"]+\"$";
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_FLASH_SALE);
    size_t length = 0, lines = 0;
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    options.rate.tokens = 10;
    char *text = text_of(&options, WR_TRACE_FORMAT_COMBINED, &length);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++)
        if (regexec(&regex, line, 0, NULL, 0) != 0) fail_msg("no such line: %s", line);
    assert_true(lines > 4000);
    regfree(&regex);
    free(text);
}

static void csv_lines_have_the_columns_of_the_header(void **state) {
    (void)state;
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_ATTACK);
    size_t length = 0;
    options.rate.tokens = 10;
    char *text = text_of(&options, WR_TRACE_FORMAT_CSV, &length);
    char *line = strtok(text, "\n");
    assert_string_equal(line, "time,host,user,method,path,status,bytes,agent");
    while ((line = strtok(NULL, "\n")) != NULL) {
        size_t commas = 0;
        for (const char *c = line; *c != '\0'; c++) commas += *c == ',';
        if (commas != 7 || strchr(line, '"') != NULL) fail_msg("no such line: %s", line);
    }
    free(text);
}

static void ndjson_lines_are_objects(void **state) {
    (void)state;
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_FLASH_SALE);
    size_t length = 0;
    options.rate.tokens = 5;
    options.resolution_ns = 1;
    char *text = text_of(&options, WR_TRACE_FORMAT_NDJSON, &length);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        if (object == NULL) fail_msg("no JSON: %s", line);
        assert_int_equal(strlen(json_string_value(json_object_get(object, "time"))),
                         strlen("2026-01-01T00:00:00.000000000Z"));
        assert_true(json_integer_value(json_object_get(object, "bytes")) > 0);
        json_decref(object);
    }
    free(text);
}

// Every line of `text` says of `run` what the reader of `weir replay` should find in it.
static void assert_read_back(const struct run *run, char *text) {
    struct wr_reader_options options = {.cost = "bytes"};
    struct wr_reader *reader = NULL;
    struct wr_record record;
    struct wr_fault fault = {""};
    char host[WR_TRACE_HOST_BYTES];
    size_t count = 0;
    assert_true(wr_reader_create(&reader, &options, &fault));
    wr_reader_begin(reader);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        enum wr_read read = wr_reader_read(reader, wr_text_of(line), &record, &fault);
        if (read == WR_READ_NOTHING) continue;
        if (read != WR_READ_RECORD) fail_msg("%s: %s", fault.text, line);
        const struct wr_trace_event *event = &run->events[count++];
        wr_trace_host(event, host);
        assert_int_equal(record.time_ns, event->time_ns);
        assert_true(wr_text_is(record.key, host));
        assert_int_equal(record.cost, event->bytes);
    }
    assert_int_equal(count, run->count);
    wr_reader_destroy(reader);
}

static void replay_reads_back_every_line_of_every_format(void **state) {
    (void)state;
    static const enum wr_trace_format formats[] = {WR_TRACE_FORMAT_COMBINED, WR_TRACE_FORMAT_CSV,
                                                   WR_TRACE_FORMAT_NDJSON};
    static const uint64_t resolutions_ns[] = {1, 1000, 1000000, 1000000000};
    for (unsigned i = 0; i < 12; i++) {
        struct wr_trace_options options =
            wr_trace_defaults(i % 2 == 0 ? WR_TRACE_FLASH_SALE : WR_TRACE_ATTACK);
        options.resolution_ns = resolutions_ns[i / 3];
        options.jitter_ns = WEIR_SECOND;
        options.rate.tokens = 5;
        size_t length = 0;
        struct run run = run_trace(&options);
        char *text = text_of(&options, formats[i % 3], &length);
        assert_read_back(&run, text);
        free(run.events);
        free(text);
    }
}

static const char *first_time(uint64_t time_ns, uint64_t resolution_ns, char line[512]) {
    struct wr_trace_event event = {.time_ns = time_ns};
    FILE *out = fmemopen(line, 512, "w");
    assert_non_null(out);
    wr_trace_write(out, WR_TRACE_FORMAT_CSV, resolution_ns, &event);
    fclose(out);
    *strchr(line, ',') = '\0';
    return line;
}

static void times_are_written_to_the_digit(void **state) {
    (void)state;
    const uint64_t leap_day_ns = UINT64_C(1835481599) * WEIR_SECOND; // 2028-02-29, last second
    char line[512];
    assert_string_equal(first_time(0, WEIR_SECOND, line), "1970-01-01T00:00:00Z");
    assert_string_equal(first_time(leap_day_ns, WEIR_SECOND, line), "2028-02-29T23:59:59Z");
    assert_string_equal(first_time(leap_day_ns + 7 * WEIR_MILLISECOND, WEIR_MILLISECOND, line),
                        "2028-02-29T23:59:59.007Z");
    assert_string_equal(first_time(leap_day_ns + 999999, WEIR_MICROSECOND, line),
                        "2028-02-29T23:59:59.000999Z");
    assert_string_equal(first_time(leap_day_ns + 1, 1, line), "2028-02-29T23:59:59.000000001Z");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_has_one_host_and_each_host_one_key),
        cmocka_unit_test(combined_lines_are_combined_log_lines),
        cmocka_unit_test(csv_lines_have_the_columns_of_the_header),
        cmocka_unit_test(ndjson_lines_are_objects),
        cmocka_unit_test(replay_reads_back_every_line_of_every_format),
        cmocka_unit_test(times_are_written_to_the_digit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
