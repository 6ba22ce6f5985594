// test_cli_record.c - lines of each format become records: exact times, keys, costs and weights; or
// are refused in words that name the field.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "cli/record.h"
#include "cli/timestamp.h"
#include "cli/values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND INT64_C(1000000000)

// ---------------------------------------------------------------------------------------------
// Times

static void expect_time(const char *text, const char *field, int64_t expected) {
    int64_t time_ns = 0;
    const char *wrong = wr_time_any(wr_text_of(text), field, &time_ns);
    if (wrong != NULL) fail_msg("%s: %s", text, wrong);
    if (time_ns != expected) fail_msg("%s: %lld", text, (long long)time_ns);
}

static void reads_times_to_the_nanosecond(void **state) {
    (void)state;
    int64_t t = 1431857103 * SECOND;
    expect_time("17/May/2015:10:05:03 +0000", "time", t);
    expect_time("17/May/2015:12:35:03 +0230", "time", t);
    expect_time("17/May/2015:05:05:03 -0500", "time", t);
    expect_time("17/May/2015:10:05:03.000000007 +0000", "time", t + 7);
    expect_time("17/May/2015:10:05:03.25 +0000", "time", t + SECOND / 4);
    expect_time("2015-05-17T10:05:03Z", "time", t);
    expect_time("2015-05-17 10:05:03", "time", t);
    expect_time("2015-05-17t10:05:03z", "time", t);
    expect_time("2015-05-17T10:05:03.123456789Z", "time", t + 123456789);
    expect_time("2015-05-17T10:05:03,123456789999+00:00", "time", t + 123456789);
    expect_time("2015-05-17T12:05:03.5+02:00", "time", t + SECOND / 2);
    expect_time("2015-05-17T12:05:03 +0200", "time", t);
    expect_time("2015-05-17T03:05:03-07", "time", t);
    expect_time("1970-01-01T00:00:00Z", "time", 0);
    expect_time("1969-12-31T23:59:59.5Z", "time", -SECOND / 2);
    expect_time("2016-12-31T23:59:60Z", "time", 1483228800 * SECOND);
    expect_time("2017-01-01T00:59:60+01:00", "time", 1483228800 * SECOND);
}

static void reads_numbers_by_their_size_or_their_name(void **state) {
    (void)state;
    int64_t t = 1431857103 * SECOND;
    expect_time("1431857103", "time", t);
    expect_time("1431857103.123456789", "time", t + 123456789);
    expect_time("1431857103123", "time", t + 123000000);
    expect_time("1431857103123.456789", "time", t + 123456789);
    expect_time("1431857103123456", "time", t + 123456000);
    expect_time("1431857103123456.789", "time", t + 123456789);
    expect_time("1431857103123456789", "time", t + 123456789);
    expect_time("0", "time", 0);
    expect_time("-1.5", "time", -SECOND - SECOND / 2);
    expect_time("99999999999", "t_ms", 99999999999 * (SECOND / 1000));
    expect_time("5", "time_ns", 5);
    expect_time("5", "time_us", 5000);
    expect_time("5.25", "time_ms", 5250000);
    expect_time("5000000000", "time_s", 5000000000 * SECOND);
}

static void refuses_times_that_do_not_exist(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } wrong[] = {
        {"31/Feb/2015:10:05:03 +0000", "no such day"},
        {"29/Feb/2015:10:05:03 +0000", "no such day"},
        {"00/Mar/2015:10:05:03 +0000", "no such day"},
        {"31/Apr/2015:10:05:03 +0000", "no such day"},
        {"2015-13-01T00:00:00Z", "no such day"},
        {"2015-00-01T00:00:00Z", "no such day"},
        {"1900-02-29T00:00:00Z", "no such day"},
        {"2015-05-17T24:00:00Z", "no such time of day"},
        {"2015-05-17T10:60:00Z", "no such time of day"},
        {"2015-05-17T10:05:60Z", "no such time of day"},
        {"2015-05-17T10:05:61Z", "no such time of day"},
        {"17/May/2015:10:05:03", "not a time"},
        {"17/Mai/2015:10:05:03 +0000", "not a time"},
        {"17/May/2015:10:05:03 +0000 ", "not a time"},
        {"17/May/2015:10:05:03 +00", ""},
        {"2015-05-17", "not a time"},
        {"2015-05-17T10:05:03.Z", "not a time"},
        {"2015-05-17T10:05:03+2", "not a time"},
        {"2015-05-17T10:05:03+00:60", "not a time"},
        {"", "not a time"},
        {"-", "not a time"},
        {"1.5e9", "not a time"},
        {"1431857103.", "not a time"},
        {"yesterday", "not a time"},
        {"2262-05-17T10:05:03Z", "outside the years"},
        {"1677-05-17T10:05:03Z", "outside the years"},
        {"99999999999999999999", "outside the years"},
        {"9999999999999999999", "outside the years"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        int64_t time_ns;
        const char *says = wr_time_any(wr_text_of(wrong[i].text), "time", &time_ns);
        if ((says == NULL) != (wrong[i].says[0] == '\0') ||
            (says != NULL && strstr(says, wrong[i].says) == NULL))
            fail_msg("'%s' says %s", wrong[i].text, says != NULL ? says : "nothing");
    }
}

// Every day of 400 years and more, against the C library.
static void agrees_with_the_calendar_of_the_c_library(void **state) {
    (void)state;
    for (int64_t day = -106000; day < 106000; day++) {
        time_t second = (time_t)(day * 86400 + 43200);
        struct tm parts;
        char text[64];
        int64_t time_ns;
        gmtime_r(&second, &parts);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
        if (wr_time_any(wr_text_of(text), "time", &time_ns) != NULL ||
            time_ns != (int64_t)second * SECOND)
            fail_msg("%s", text);
        strftime(text, sizeof(text), "%d/%b/%Y:%H:%M:%S +0000", &parts);
        assert_null(wr_time_combined(wr_text_of(text), &time_ns));
        assert_int_equal(time_ns, (int64_t)second * SECOND);
    }
}

static void shows_times_as_iso_8601(void **state) {
    (void)state;
    char text[WR_TIME_TEXT];
    wr_time_text(1431857103 * SECOND, text);
    assert_string_equal(text, "2015-05-17T10:05:03Z");
    wr_time_text(1431857103 * SECOND + 7, text);
    assert_string_equal(text, "2015-05-17T10:05:03.000000007Z");
    wr_time_text(-SECOND / 2, text);
    assert_string_equal(text, "1969-12-31T23:59:59.500000000Z");
}

// ---------------------------------------------------------------------------------------------
// Costs and weights

static void reads_costs_and_weights_exactly(void **state) {
    (void)state;
    uint64_t cost;
    struct weir_weight weight;
    assert_null(wr_cost_value(wr_text_of("0"), &cost));
    assert_null(wr_cost_value(wr_text_of("203023"), &cost));
    assert_int_equal(cost, 203023);
    assert_null(wr_cost_value(wr_text_of("12.00"), &cost));
    assert_int_equal(cost, 12);
    assert_non_null(strstr(wr_cost_value(wr_text_of("-5"), &cost), "negative"));
    assert_non_null(strstr(wr_cost_value(wr_text_of("9999999999999999999"), &cost), "2^63"));
    static const char *const no_costs[] = {"", "-", "x", "1.5", "1e3", "1 ", "1.", "+1"};
    for (size_t i = 0; i < COUNT(no_costs); i++)
        assert_non_null(wr_cost_value(wr_text_of(no_costs[i]), &cost));
    static const struct {
        const char *text;
        uint32_t num, den;
    } weights[] = {{"2", 2, 1},
                   {"1/3", 1, 3},
                   {"0.5", 1, 2},
                   {"4/6", 2, 3},
                   {"4294967295", UINT32_MAX, 1},
                   {"1.25", 5, 4},
                   {"10000000000/20000000000", 1, 2}};
    for (size_t i = 0; i < COUNT(weights); i++) {
        assert_null(wr_weight_value(wr_text_of(weights[i].text), &weight));
        assert_int_equal(weight.num, weights[i].num);
        assert_int_equal(weight.den, weights[i].den);
    }
    static const char *const no_weights[] = {"",    "0",  "1/0",   "0/1",        "-1",          "x",
                                             "1/x", "1.", "1/3/4", "4294967296", "0.0000000001"};
    for (size_t i = 0; i < COUNT(no_weights); i++)
        if (wr_weight_value(wr_text_of(no_weights[i]), &weight) == NULL)
            fail_msg("'%s' is taken", no_weights[i]);
}

// ---------------------------------------------------------------------------------------------
// Records

// Reads the lines, and shows each as "time_ns key cost num/den", "nothing", "skipped: why" or
// "stop: why".
static void read_all(const struct wr_reader_options *options, const char *const *lines,
                     char (*shown)[512], size_t count) {
    struct wr_reader *reader;
    struct wr_fault fault;
    if (!wr_reader_create(&reader, options, &fault)) fail_msg("%s", fault.text);
    wr_reader_begin(reader);
    for (size_t i = 0; i < count; i++) {
        struct wr_record r;
        switch (wr_reader_read(reader, wr_text_of(lines[i]), &r, &fault)) {
        case WR_READ_RECORD:
            snprintf(shown[i], sizeof(shown[i]), "%lld %.*s %llu %u/%u", (long long)r.time_ns,
                     (int)r.key.length, r.key.data, (unsigned long long)r.cost, r.weight.num,
                     r.weight.den);
            break;
        case WR_READ_NOTHING: strcpy(shown[i], "nothing"); break;
        case WR_READ_SKIPPED:
            snprintf(shown[i], sizeof(shown[i]), "skipped: %.400s", fault.text);
            break;
        case WR_READ_STOP: snprintf(shown[i], sizeof(shown[i]), "stop: %.400s", fault.text); break;
        }
    }
    wr_reader_destroy(reader);
}

// What the last of the lines gives, or how it begins.
static void expect(const struct wr_reader_options *options, const char *const *lines, size_t count,
                   const char *expected) {
    char shown[8][512];
    read_all(options, lines, shown, count);
    if (strncmp(shown[count - 1], expected, strlen(expected)) != 0)
        fail_msg("'%s' gives '%s', not '%s'", lines[count - 1], shown[count - 1], expected);
}

#define EXPECT(options, expected, ...)                                                             \
    expect(&(struct wr_reader_options)options, (const char *const[]){__VA_ARGS__},                 \
           COUNT(((const char *const[]){__VA_ARGS__})), expected)
#define OPTIONS(...)                                                                               \
    { __VA_ARGS__ }

#define AGENT_LINE                                                                                 \
    "10.0.0.1 - ann [17/May/2015:10:05:03 +0000] \"GET /a/b?c=d HTTP/1.1\" 200 203023 "            \
    "\"http://x/\" \"curl \\\"7\\\"\""
#define COMMON_LINE "10.0.0.1 - - [17/May/2015:10:05:03 +0000] \"-\" 408 -"
#define T "1431857103000000000 "

static void reads_combined_and_common_logs(void **state) {
    (void)state;
    EXPECT(OPTIONS(0), T "10.0.0.1 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.format = WR_LOG_COMBINED), T "10.0.0.1 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "user"), T "ann 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "path"), T "/a/b 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "method"), T "GET 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "status"), T "200 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "referer"), T "http://x/ 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.key = "agent"), T "curl \\\"7\\\" 1 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.cost = "bytes"), T "10.0.0.1 203023 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.cost = "7"), T "10.0.0.1 7 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.cost = "1.5k"), T "10.0.0.1 1500 1/1", AGENT_LINE);
    EXPECT(OPTIONS(.cost = "bytes", .key = "method,path"), T "-|- 0 1/1", COMMON_LINE);
    EXPECT(OPTIONS(.key = "agent"), "skipped: no field 'agent' on this line", COMMON_LINE);
    EXPECT(OPTIONS(.weight = "status"), T "10.0.0.1 1 200/1", AGENT_LINE);
    EXPECT(
        OPTIONS(0), T "fe80::1 1 1/1",
        "fe80::1 - a b [17/May/2015:10:05:03 +0000] \"\\x16\\x03\" 400 0 \"-\" \"-\" extra \"x\"");
    EXPECT(OPTIONS(.key = "agent"), T "cut of 1 1/1",
           "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"cut of");
    EXPECT(OPTIONS(.key = "path"), T "/x 1 1/1",
           "h - - [17/May/2015:10:05:03 +0000] \"GET /x\" 200 1");
}

static void says_what_is_wrong_with_a_line(void **state) {
    (void)state;
    EXPECT(OPTIONS(0), "skipped: time '31/Feb/2015:10:05:03 +0000': there is no such day",
           "h - - [31/Feb/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1");
    EXPECT(OPTIONS(.cost = "bytes"), "skipped: bytes '-7': a negative cost",
           "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 -7");
    EXPECT(OPTIONS(.weight = "bytes"), "skipped: bytes '0': a weight of nothing",
           "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 0");
    EXPECT(OPTIONS(0), "skipped: neither a line of a combined or common log", "rubbish");
    EXPECT(OPTIONS(.format = WR_LOG_COMMON), "skipped: not a line of the combined log format",
           "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1 200 0");
    EXPECT(OPTIONS(0), "skipped: not a line of the combined or common log format; one looks like",
           AGENT_LINE, "h - - 17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 0");
    EXPECT(OPTIONS(0), "nothing", "");
}

static void reads_the_columns_of_a_csv(void **state) {
    (void)state;
    EXPECT(OPTIONS(0), "nothing", "time,host");
    EXPECT(OPTIONS(0), T "10.0.0.1 1 1/1", "time,host", "2015-05-17T10:05:03Z,10.0.0.1");
    EXPECT(OPTIONS(.key = "x y", .time = "at"), T "k 1 1/1", "at, x y ,z", "1431857103,k,9");
    EXPECT(OPTIONS(.cost = "n"), "5 a,b 3 1/1", "time_ns,key,n", "5,\"a,b\",3");
    EXPECT(OPTIONS(0), "5 a\"b\" 1 1/1", "time_ns,key", "5,\"a\"\"b\"\"\"");
    EXPECT(OPTIONS(.key = "a\"b"), "5 \"\" 1 1/1", "time_ns,\"a\"\"b\"", "5,\"\"\"\"\"\"");
    EXPECT(OPTIONS(0), "5  1 1/1", "time_ns,key", "5,\"\"");
    EXPECT(OPTIONS(0), "5 k 1 1/1", "time_ns,key,z", "5,k,\"not closed");
    EXPECT(OPTIONS(.weight = "w"), "5 k 1 1/3", "time_ns,key,w", "5,k,1/3");
    EXPECT(OPTIONS(0), "skipped: no field 'host' on this line", "time,host", "5");
    EXPECT(OPTIONS(0), "skipped: a quoted field does not end", "time,host", "5,\"k");
    EXPECT(OPTIONS(0), "skipped: text after the closing quote", "time,host", "5,\"k\"x");
    EXPECT(OPTIONS(0), "skipped: time '': not a time", "time,host", "5,k", ",k");
    EXPECT(OPTIONS(0), "skipped: time '': not a time", "time,host", ",k");
    EXPECT(OPTIONS(.cost = "n"), "skipped: n '': not a cost", "time,host,n", "5,k,");
}

static void reads_the_members_of_json_lines(void **state) {
    (void)state;
    EXPECT(OPTIONS(0), T "h 1 1/1", "{\"time\":\"2015-05-17T10:05:03Z\",\"host\":\"h\"}");
    EXPECT(OPTIONS(.time = "t"), "1431857103123456789 h 1 1/1",
           " { \"t\" : 1431857103.123456789 , \"host\" : \"h\" } ");
    EXPECT(OPTIONS(.key = "http.host", .cost = "http.n"), "5 h 7 1/1",
           "{\"time_ns\":5,\"http\":{\"x\":[1,{\"host\":\"no\"}],\"host\":\"h\",\"n\":7}}");
    EXPECT(OPTIONS(.key = "http.host"), "5 h 1 1/1", "{\"time_ns\":5,\"http.host\":\"h\"}");
    EXPECT(OPTIONS(.key = "a.b.c"), "5 h 1 1/1", "{\"time_ns\":5,\"a.b\":{\"c\":\"h\"}}");
    EXPECT(OPTIONS(.key = "k"), "5 true 1 1/1", "{\"time_ns\":5,\"k\":true}");
    EXPECT(OPTIONS(.key = "k"), "5 -1.50 1 1/1", "{\"time_ns\":5,\"k\":-1.50}");
    EXPECT(OPTIONS(.key = "k"), "5 2 1 1/1", "{\"time_ns\":5,\"k\":1,\"k\":2}");
    EXPECT(OPTIONS(.key = "k"), "5 \"\\/\n\xc3\xa9\xf0\x9f\x98\x80 1 1/1",
           "{\"time_ns\":5,\"k\":\"\\\"\\\\\\/\\n\\u00e9\\ud83d\\ude00\"}");
    EXPECT(OPTIONS(.key = "\xc3\xa9"), "5 h 1 1/1", "{\"time_ns\":5,\"\\u00e9\":\"h\"}");
    EXPECT(OPTIONS(.key = "k"), "skipped: no field 'k' on this line", "{\"time_ns\":5,\"k\":null}");
    EXPECT(OPTIONS(.key = "k"), "skipped: no field 'k' on this line", "{\"time_ns\":5,\"k\":{}}");
    EXPECT(OPTIONS(.key = "k"), "skipped: no field", "{\"time_ns\":5,\"k\":1,\"k\":[2]}");
    EXPECT(OPTIONS(.key = "k"), "5 x 1 1/1", "{\"begin\":1}", "{\"time_ns\":5,\"k\":\"x\"}");
}

static void names_where_json_is_broken(void **state) {
    (void)state;
    static const char *const broken[] = {
        "{",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{'a':1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":+1}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"",
        "{\"a\":\"\t\"}",
        "{\"a\":nul}",
        "{\"a\":[1 2]}",
        "{\"a\":[1,]}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\udc00x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":1e}",
        "{,}",
    };
    char deep[200] = "{\"a\":";
    memset(deep + 5, '[', 100);
    for (size_t i = 0; i < COUNT(broken); i++)
        EXPECT(OPTIONS(0), "skipped: not a JSON object: ", "{\"time\":1,\"host\":\"h\"}",
               broken[i]);
    EXPECT(OPTIONS(0), "skipped: not a JSON object: more than 64 levels at byte ",
           "{\"time\":1,\"host\":\"h\"}", deep);
    EXPECT(OPTIONS(0), "skipped: not a JSON object: a missing ',' or '}' at byte 10",
           "{\"time\":1,\"host\":\"h\"}", "{\"time\":1");
}

static void joins_fields_so_that_different_values_stay_different(void **state) {
    (void)state;
    EXPECT(OPTIONS(.key = "a,b"), "5 x|y 1 1/1", "time_ns,a,b", "5,x,y");
    EXPECT(OPTIONS(.key = "a,b"), "5 x\\|y|z 1 1/1", "time_ns,a,b", "5,x|y,z");
    EXPECT(OPTIONS(.key = "a,b"), "5 x|y\\|z 1 1/1", "time_ns,a,b", "5,x,y|z");
    EXPECT(OPTIONS(.key = "a,b"), "5 x\\\\|y 1 1/1", "time_ns,a,b", "5,x\\,y");
    EXPECT(OPTIONS(.key = "a"), "5 x|y 1 1/1", "time_ns,a", "5,x|y");
    EXPECT(OPTIONS(.key = "b,a,time_ns"), "5 y|x|5 1 1/1", "time_ns,a,b", "5,x,y");
}

static void stops_at_fields_that_a_format_does_not_have(void **state) {
    (void)state;
    EXPECT(OPTIONS(.key = "hots"),
           "stop: there is no field 'hots' in a log of the format combined "
           "or common; name one of host, user, time, method, path, status",
           AGENT_LINE);
    EXPECT(OPTIONS(.time = "when"), "stop: there is no field 'when'", AGENT_LINE);
    EXPECT(OPTIONS(.cost = "size"), "stop: there is no field 'size'", AGENT_LINE);
    EXPECT(OPTIONS(.key = "hots"),
           "stop: there is no field 'hots' in a log of the format CSV; name "
           "one of time, host",
           "time,host");
    EXPECT(OPTIONS(.time = "when"), "stop: there is no field 'when' in a log of the format CSV",
           "time,host");
    EXPECT(OPTIONS(.format = WR_LOG_CSV), "stop: no field for the time", "a,b");
    EXPECT(OPTIONS(0), "stop: no field for the key", "time,b");
}

static void refuses_options_without_a_line(void **state) {
    (void)state;
    static const struct {
        struct wr_reader_options options;
        const char *says;
    } wrong[] = {
        {{.key = ""}, "a field without a name"},
        {{.key = "a,,b"}, "a field without a name"},
        {{.key = "a,b,a"}, "'a' stands there twice"},
        {{.key = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"}, "more than 16 fields"},
        {{.cost = "-5"}, "cost '-5': is negative"},
        {{.cost = "1.5"}, "not a whole number"},
        {{.cost = ""}, "--cost is empty"},
        {{.weight = "2"}, "the weight is a field of the log"},
        {{.format = WR_LOG_COMBINED, .key = "hots"}, "there is no field 'hots'"},
        {{.format = WR_LOG_COMMON, .time = "when"}, "there is no field 'when'"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct wr_reader *reader;
        struct wr_fault fault = {""};
        assert_false(wr_reader_create(&reader, &wrong[i].options, &fault));
        assert_null(reader);
        if (strstr(fault.text, wrong[i].says) == NULL) fail_msg("%s", fault.text);
    }
}

static void gives_a_file_up_after_twenty_unknown_lines(void **state) {
    (void)state;
    struct wr_reader *reader;
    struct wr_reader_options options = {0};
    struct wr_record record;
    struct wr_fault fault;
    assert_true(wr_reader_create(&reader, &options, &fault));
    wr_reader_begin(reader);
    for (int i = 0; i < 19; i++)
        assert_int_equal(wr_reader_read(reader, (struct wr_text){"\0\1\2", 3}, &record, &fault),
                         WR_READ_SKIPPED);
    assert_non_null(strstr(fault.text, "binary data (a NUL byte)"));
    assert_int_equal(wr_reader_read(reader, wr_text_of("?"), &record, &fault), WR_READ_STOP);
    wr_reader_begin(reader);
    assert_int_equal(wr_reader_read(reader, wr_text_of("?"), &record, &fault), WR_READ_SKIPPED);
    assert_int_equal(wr_reader_read(reader, wr_text_of(AGENT_LINE), &record, &fault),
                     WR_READ_RECORD);
    assert_int_equal(wr_reader_read(reader, (struct wr_text){"a\0b", 3}, &record, &fault),
                     WR_READ_SKIPPED);
    wr_reader_destroy(reader);
}

static void shows_bytes_that_a_terminal_can_bear(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        const char *shown;
    } texts[] = {{"plain", "plain"},
                 {"a\x1b[2Jb", "a\\x1b[2Jb"},
                 {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                 {"\xff\xc3", "\\xff\\xc3"},
                 {"\xc0\x80", "\\xc0\\x80"},
                 {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
                 {"\xc2\x9b", "\\xc2\\x9b"},
                 {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}};
    for (size_t i = 0; i < COUNT(texts); i++) {
        char shown[64] = "";
        wr_text_show(shown, sizeof(shown), wr_text_of(texts[i].bytes));
        assert_string_equal(shown, texts[i].shown);
    }
    for (size_t room = 8; room < 24; room++) {
        char shown[32] = "";
        wr_text_show(shown, room, wr_text_of("\xe2\x82\xac\x01\xe2\x82\xac\x01\xe2\x82\xac\x01"));
        assert_true(strlen(shown) < room);
        if (room < 22) assert_non_null(strstr(shown, "..."));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_to_the_nanosecond),
        cmocka_unit_test(reads_numbers_by_their_size_or_their_name),
        cmocka_unit_test(refuses_times_that_do_not_exist),
        cmocka_unit_test(agrees_with_the_calendar_of_the_c_library),
        cmocka_unit_test(shows_times_as_iso_8601),
        cmocka_unit_test(reads_costs_and_weights_exactly),
        cmocka_unit_test(reads_combined_and_common_logs),
        cmocka_unit_test(says_what_is_wrong_with_a_line),
        cmocka_unit_test(reads_the_columns_of_a_csv),
        cmocka_unit_test(reads_the_members_of_json_lines),
        cmocka_unit_test(names_where_json_is_broken),
        cmocka_unit_test(joins_fields_so_that_different_values_stay_different),
        cmocka_unit_test(stops_at_fields_that_a_format_does_not_have),
        cmocka_unit_test(refuses_options_without_a_line),
        cmocka_unit_test(gives_a_file_up_after_twenty_unknown_lines),
        cmocka_unit_test(shows_bytes_that_a_terminal_can_bear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
