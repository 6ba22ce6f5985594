// test_cli_rate.c - rates, counts and durations are read exactly, or refused in words.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir.h>

#include "cli/rate.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct {
    const char *text;
    uint64_t tokens;
    uint64_t period_ns;
} rates[] = {
    {"5/s", 5, WEIR_SECOND},
    {"300/m", 300, WEIR_MINUTE},
    {"1/d", 1, WEIR_DAY},
    {"2/w", 2, 7 * WEIR_DAY},
    {"9/h", 9, WEIR_HOUR},
    {"10k/s", 10000, WEIR_SECOND},
    {"1.5M/s", 1500000, WEIR_SECOND},
    {"2G/d", 2000000000, WEIR_DAY},
    {"0.5/s", 1, 2 * WEIR_SECOND},
    {".5/s", 1, 2 * WEIR_SECOND},
    {"2.5/s", 5, 2 * WEIR_SECOND},
    {"0.0001/s", 1, 10000 * WEIR_SECOND},
    {"1.50000000000000000000/s", 3, 2 * WEIR_SECOND},
    {"0.001k/s", 1, WEIR_SECOND},
    {"3/10s", 3, 10 * WEIR_SECOND},
    {"7/13s", 7, 13 * WEIR_SECOND},
    {"100/1.5s", 100, 1500 * WEIR_MILLISECOND},
    {"1/.25ms", 1, 250 * WEIR_MICROSECOND},
    {"10/ns", 10, 1},
    {"5/us", 5, WEIR_MICROSECOND},
    {"0", 0, WEIR_SECOND},
    {"0/s", 0, WEIR_SECOND},
    {"0.0/m", 0, WEIR_MINUTE},
    {"unlimited", WEIR_UNLIMITED_TOKENS, 1},
    {"9223372036854775807/s", INT64_MAX, WEIR_SECOND},
    {"1/9223372036854775807ns", 1, INT64_MAX},
};

static void reads_rates_as_whole_tokens_and_nanoseconds(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rates); i++) {
        struct wr_rate rate;
        struct wr_fault fault;
        if (!wr_rate_parse(rates[i].text, &rate, &fault)) fail_msg("%s", fault.text);
        if (rate.tokens != rates[i].tokens || rate.period_ns != rates[i].period_ns)
            fail_msg("%s is not %llu / %llu ns", rates[i].text, (unsigned long long)rate.tokens,
                     (unsigned long long)rate.period_ns);
    }
}

static void writes_a_rate_as_it_is_read(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(rates); i++) {
        struct wr_rate rate, again;
        struct wr_fault fault;
        char text[WR_UNIT_TEXT];
        assert_true(wr_rate_parse(rates[i].text, &rate, &fault));
        wr_rate_text(&rate, text);
        if (!wr_rate_parse(text, &again, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(again.tokens, rate.tokens);
        assert_int_equal(again.period_ns, rate.period_ns);
    }
}

static void says_which_part_of_a_rate_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } wrong[] = {
        {"", "'' should be a number; write 5/s"},
        {"fast", "'fast' should be a number"},
        {"-5/s", "negative"},
        {"5", "per what time? write 5/s or 5/m"},
        {"5/", "its unit is missing"},
        {"5/x", "'x' is no unit of time; ns us ms s m h d w are, as in 300/m"},
        {"5/S", "'S' is no unit"},
        {"5/s ", "'s ' is no unit"},
        {"5K/s", "'K/s' is no suffix; k, M and G are"},
        {"5 /s", "' /s' is no suffix"},
        {"5/0s", "a period of no time"},
        {"5/-1s", "negative"},
        {"1/0.0000000001s", "finer than a nanosecond"},
        {"1/20000w", "longer than 292 years"},
        {"0.001/20w", "less than one token in 292 years"},
        {"99999999999999999999/s", "too many digits"},
        {"9223372036854775808/s", "2^63 or more"},
        {"10000000000G/s", "2^63 or more"},
        {"0.00000000000000000001/s", "too many digits"},
        {"1e3/s", "'e3/s' is no suffix"},
        {"..5/s", "should be a number"},
        {"unlimited/s", "should be a number"},
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct wr_rate rate;
        struct wr_fault fault = {""};
        if (wr_rate_parse(wrong[i].text, &rate, &fault) ||
            strstr(fault.text, wrong[i].says) == NULL)
            fail_msg("'%s' says '%s', not '%s'", wrong[i].text, fault.text, wrong[i].says);
    }
}

static void reads_counts_that_are_whole(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t count;
    } right[] = {
        {"0", 0},          {"20", 20},         {"10k", 10000}, {"1.5k", 1500},
        {"2.5M", 2500000}, {"1G", 1000000000}, {"3.0", 3},     {"9223372036854775807", INT64_MAX}};
    static const char *const wrong[] = {"", "-1", "1.5", "0.0001k", "1K", "5/s", "x", "1 ", "0x10"};
    uint64_t count;
    struct wr_fault fault;
    for (size_t i = 0; i < COUNT(right); i++) {
        if (!wr_count_parse(right[i].text, "burst", &count, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(count, right[i].count);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (wr_count_parse(wrong[i], "burst", &count, &fault)) fail_msg("'%s' is taken", wrong[i]);
        assert_int_equal(strncmp(fault.text, "burst '", 7), 0);
    }
}

static void reads_durations_of_whole_nanoseconds(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } right[] = {{"20ms", 20 * WEIR_MILLISECOND},
                 {"1.5s", 1500 * WEIR_MILLISECOND},
                 {"2d", 2 * WEIR_DAY},
                 {"0", 0},
                 {"0s", 0},
                 {"1.000000001s", WEIR_SECOND + 1},
                 {"1us", 1000},
                 {"7ns", 7}};
    static const char *const wrong[] = {"", "5", "-1s", "1h30m", "1.5ns", "1e3s", "s", "300000w"};
    uint64_t ns;
    struct wr_fault fault;
    for (size_t i = 0; i < COUNT(right); i++) {
        char text[WR_UNIT_TEXT];
        uint64_t again;
        if (!wr_duration_parse(right[i].text, "window", &ns, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(ns, right[i].ns);
        wr_duration_text(ns, text);
        assert_true(wr_duration_parse(text, "window", &again, &fault));
        assert_int_equal(again, ns);
    }
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (wr_duration_parse(wrong[i], "window", &ns, &fault)) fail_msg("'%s' is taken", wrong[i]);
}

static void shows_spans_in_their_two_largest_units(void **state) {
    (void)state;
    static const struct {
        uint64_t ns;
        const char *text;
    } spans[] = {{0, "0ns"},
                 {7, "7ns"},
                 {1500, "1.500us"},
                 {12345678, "12.345ms"},
                 {WEIR_SECOND, "1s"},
                 {90 * WEIR_SECOND, "1m 30s"},
                 {83 * WEIR_HOUR + 1, "3d 11h"},
                 {UINT64_MAX, "30500w 3d"}};
    for (size_t i = 0; i < COUNT(spans); i++) {
        char text[WR_UNIT_TEXT];
        wr_span_text(spans[i].ns, text);
        assert_string_equal(text, spans[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_rates_as_whole_tokens_and_nanoseconds),
        cmocka_unit_test(writes_a_rate_as_it_is_read),
        cmocka_unit_test(says_which_part_of_a_rate_is_wrong),
        cmocka_unit_test(reads_counts_that_are_whole),
        cmocka_unit_test(reads_durations_of_whole_nanoseconds),
        cmocka_unit_test(shows_spans_in_their_two_largest_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
