// The rate-limit header fields: their text, their rounding, what is left out, and their grammar.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "wide.h"

#define ALL 15u // every form but the unit
#define CURRENT (WEIR_HTTP_STRUCTURED | WEIR_HTTP_RETRY_AFTER)
#define SF_INTEGER_MAX UINT64_C(999999999999999)

static struct weir *create_named(const char *name, struct weir_limit limit) {
    struct weir_options options = options_at(limit.tokens, limit.period_ns, limit.burst);
    options.name = name;
    if (limit.tokens == 0 || limit.tokens == WEIR_UNLIMITED_TOKENS) {
        options.max_rate_tokens = 1;
        options.max_rate_period_ns = WEIR_SECOND;
    }
    return create(&options);
}

// The fields of an answer made up here, or of a real one.
static const char *fields_of(const struct weir *w, int result, const struct weir_answer *answer,
                             unsigned forms) {
    static char text[WEIR_HTTP_FIELDS_MAX];
    size_t length;
    assert_int_equal(weir_http_fields(w, result, answer, forms, text, sizeof text, &length),
                     WEIR_GRANTED);
    assert_int_equal(strlen(text), length);
    return text;
}

// The number after `before` in a text; UINT64_MAX where it is not there.
static uint64_t number_after(const char *text, const char *before) {
    const char *at = strstr(text, before);
    if (at == NULL) return UINT64_MAX;
    return strtoull(at + strlen(before), NULL, 10);
}

// ---------------------------------------------------------------------------------------------
// A strict reader of a structured field: a list of one string with parameters (RFC 9651).

static const char *read_string(const char *at) {
    if (*at++ != '"') return NULL;
    for (; *at != '"'; at++) {
        if (*at == '\\' && *++at != '"' && *at != '\\') return NULL;
        if (*at < ' ' || *at > '~') return NULL;
    }
    return at + 1;
}

static const char *read_integer(const char *at) {
    const char *start = at;
    while (*at >= '0' && *at <= '9') at++;
    const bool well_formed = at > start && at - start <= 15;
    return well_formed ? at : NULL;
}

static const char *read_parameters(const char *at, const char *names) {
    while (at != NULL && *at == ';') {
        const char *end = strchr(at, '=');
        if (end == NULL) return NULL;
        char name[8] = {0};
        const size_t length = (size_t)(end - at) - 1;
        if (length == 0 || length >= sizeof name - 1) return NULL;
        memcpy(name, at + 1, length);
        name[length] = ' ';
        if (strstr(names, name) == NULL) return NULL;
        at = end[1] == '"' ? read_string(end + 1) : read_integer(end + 1);
    }
    return at;
}

// What one line has after "Name: "; NULL where it is not as its name demands.
static const char *read_value(const char *line, const char *at) {
    if (strncmp(line, "RateLimit-Policy: ", 18) == 0) {
        at = read_string(at);
        return at == NULL ? NULL : read_parameters(at, "q qu w ");
    }
    if (strncmp(line, "RateLimit: ", 11) == 0) {
        at = read_string(at);
        return at == NULL ? NULL : read_parameters(at, "r t ");
    }
    return read_integer(at);
}

static bool is_well_formed(const char *text) {
    while (*text != '\0') {
        const char *value = strstr(text, ": ");
        if (value == NULL) return false;
        for (const char *c = text; c < value; c++)
            if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-", *c)) return false;
        const char *end = read_value(text, value + 2);
        if (end == NULL || strncmp(end, "\r\n", 2) != 0) return false;
        text = end + 2;
    }
    return true;
}

static void the_reader_of_these_tests_is_strict(void **state) {
    (void)state;
    assert_true(is_well_formed("RateLimit: \"a\";r=0;t=1\r\nRetry-After: 1\r\n"));
    static const char *const wrong[] = {
        "RateLimit: a;r=0\r\n",
        "RateLimit: \"a\";r=-1\r\n",
        "RateLimit: \"a\";r=0",
        "RateLimit: \"a\\b\";r=0\r\n",
        "RateLimit: \"a\";r=0\n",
        "RateLimit: \"\x80\";r=0\r\n",
        "RateLimit: \"a\"; r=0\r\n",
        "RateLimit: \"a\";x=0\r\n",
        "Retry-After: 1.5\r\n",
        "Retry-After: \r\n",
        "Retry After: 1\r\n",
        "RateLimit: \"a\";r=\r\n",
        "Retry-After: 1000000000000000\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(is_well_formed(wrong[i]));
}

// ---------------------------------------------------------------------------------------------

static void writes_every_form_as_the_header_shows_it(void **state) {
    (void)state;
    struct weir *w = create_named("typing", (struct weir_limit){5, WEIR_SECOND, 20});
    assert_int_equal(take_at(w, "user", 20, 0), WEIR_GRANTED);
    const struct outcome o = ask_at(w, WEIR_TAKE, "user", 1, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_string_equal(fields_of(w, o.result, &o.answer, WEIR_HTTP_STRUCTURED),
                        "RateLimit-Policy: \"typing\";q=20;w=4\r\n"
                        "RateLimit: \"typing\";r=0;t=1\r\n");
    assert_string_equal(fields_of(w, o.result, &o.answer, WEIR_HTTP_SEPARATE),
                        "RateLimit-Limit: 20\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 1\r\n");
    assert_string_equal(
        fields_of(w, o.result, &o.answer, WEIR_HTTP_SEPARATE_X),
        "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1\r\n");
    assert_string_equal(fields_of(w, o.result, &o.answer, WEIR_HTTP_RETRY_AFTER),
                        "Retry-After: 1\r\n");
    assert_string_equal(fields_of(w, o.result, &o.answer, WEIR_HTTP_STRUCTURED | WEIR_HTTP_BYTES),
                        "RateLimit-Policy: \"typing\";q=20;qu=\"content-bytes\";w=4\r\n"
                        "RateLimit: \"typing\";r=0;t=1\r\n");
    assert_string_equal(fields_of(w, o.result, &o.answer, ALL),
                        "RateLimit-Policy: \"typing\";q=20;w=4\r\n"
                        "RateLimit: \"typing\";r=0;t=1\r\n"
                        "RateLimit-Limit: 20\r\nRateLimit-Remaining: 0\r\nRateLimit-Reset: 1\r\n"
                        "X-RateLimit-Limit: 20\r\nX-RateLimit-Remaining: 0\r\n"
                        "X-RateLimit-Reset: 1\r\nRetry-After: 1\r\n");
    assert_string_equal(fields_of(w, o.result, &o.answer, 0), "");
    weir_destroy(w);
}

static void a_grant_tells_what_is_left_and_when_the_bucket_is_full(void **state) {
    (void)state;
    struct weir *w = create_named("typing", (struct weir_limit){5, WEIR_SECOND, 20});
    const struct outcome o = ask_at(w, WEIR_TAKE, "user", 12, 0); // full after 2.4 s
    assert_string_equal(fields_of(w, o.result, &o.answer, CURRENT),
                        "RateLimit-Policy: \"typing\";q=20;w=4\r\n"
                        "RateLimit: \"typing\";r=8;t=3\r\n");
    const struct outcome full = ask_at(w, WEIR_TAKE, "other", 0, 0);
    assert_string_equal(fields_of(w, full.result, &full.answer, WEIR_HTTP_SEPARATE),
                        "RateLimit-Limit: 20\r\nRateLimit-Remaining: 20\r\nRateLimit-Reset: 1\r\n");
    weir_destroy(w);
}

static void retry_after_is_in_whole_seconds_rounded_up_and_never_zero(void **state) {
    (void)state;
    static const struct {
        uint64_t ns, seconds;
    } cases[] = {
        {0, 1},
        {1, 1},
        {200 * WEIR_MILLISECOND, 1},
        {WEIR_SECOND - 1, 1},
        {WEIR_SECOND, 1},
        {WEIR_SECOND + 1, 2},
        {2 * WEIR_SECOND, 2},
        {WEIR_DAY, 86400},
        {WEIR_FOREVER - 1, 18446744074},
    };
    static const int refusals[] = {WEIR_DENIED, WEIR_NO_ROOM};
    struct weir *w = create_named("w", (struct weir_limit){1, WEIR_SECOND, 1});
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t r = 0; r < 2; r++) {
            struct weir_answer answer = WEIR_ANSWER_INIT;
            answer.retry_after_ns = cases[i].ns;
            answer.full_after_ns = WEIR_HOUR;
            const char *text = fields_of(w, refusals[r], &answer, ALL);
            assert_int_equal(number_after(text, "Retry-After: "), cases[i].seconds);
            // The effective window never ends after Retry-After.
            assert_int_equal(number_after(text, ";t="), cases[i].seconds);
            assert_int_equal(number_after(text, "\nRateLimit-Reset: "), cases[i].seconds);
        }
    }
    weir_destroy(w);
}

static void asking_again_after_the_seconds_told_passes(void **state) {
    (void)state;
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    for (int i = 0; i < 300; i++) {
        const struct weir_limit limit = {1 + random_below(&random, 1000),
                                         1 + random_below(&random, 100 * WEIR_SECOND),
                                         1 + random_below(&random, 50)};
        if (limit.tokens >= limit.period_ns) continue;
        struct weir *w = create_named("w", limit);
        int64_t now_ns = 0;
        for (int k = 0; k < 20; k++) {
            const uint64_t cost = 1 + random_below(&random, limit.burst);
            const struct outcome o = ask_at(w, WEIR_TAKE, "key", cost, now_ns);
            const char *text = fields_of(w, o.result, &o.answer, ALL);
            if (!is_well_formed(text)) fail_msg("seed %" PRIu64 ": %s", seed, text);
            const uint64_t wait_s = number_after(text, "Retry-After: ");
            if ((o.result == WEIR_GRANTED) != (wait_s == UINT64_MAX))
                fail_msg("seed %" PRIu64 ": result %d, %s", seed, o.result, text);
            if (o.result == WEIR_GRANTED) continue;
            now_ns += (int64_t)(wait_s * WEIR_SECOND);
            if (take_at(w, "key", cost, now_ns) != WEIR_GRANTED)
                fail_msg("seed %" PRIu64 ": refused after %" PRIu64 " s", seed, wait_s);
        }
        weir_destroy(w);
    }
}

static void retry_after_is_left_out_when_waiting_does_not_help(void **state) {
    (void)state;
    struct weir *never = create_named("w", (struct weir_limit){1, WEIR_SECOND, 3});
    struct outcome o = ask_at(never, WEIR_TAKE, "key", 4, 0);
    assert_int_equal(o.result, WEIR_NEVER);
    assert_string_equal(fields_of(never, o.result, &o.answer, CURRENT),
                        "RateLimit-Policy: \"w\";q=3;w=3\r\nRateLimit: \"w\";r=3;t=1\r\n");
    struct weir *rate_0 = create_named("w", (struct weir_limit){0, WEIR_SECOND, 3});
    o = ask_at(rate_0, WEIR_TAKE, "key", 2, 0);
    assert_string_equal(fields_of(rate_0, o.result, &o.answer, CURRENT),
                        "RateLimit-Policy: \"w\";q=3\r\nRateLimit: \"w\";r=1\r\n");
    o = ask_at(rate_0, WEIR_TAKE, "key", 2, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_string_equal(fields_of(rate_0, o.result, &o.answer, ALL),
                        "RateLimit-Policy: \"w\";q=3\r\nRateLimit: \"w\";r=1\r\n"
                        "RateLimit-Limit: 3\r\nRateLimit-Remaining: 1\r\n"
                        "X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 1\r\n");
    struct weir *burst_0 = create_named("w", (struct weir_limit){5, WEIR_SECOND, 0});
    o = ask_at(burst_0, WEIR_TAKE, "key", 1, 0);
    assert_int_equal(o.result, WEIR_DENIED);
    assert_string_equal(fields_of(burst_0, o.result, &o.answer, CURRENT | WEIR_HTTP_SEPARATE),
                        "RateLimit-Policy: \"w\";q=0\r\nRateLimit: \"w\";r=0\r\n"
                        "RateLimit-Limit: 0\r\nRateLimit-Remaining: 0\r\n");
    weir_destroy(never);
    weir_destroy(rate_0);
    weir_destroy(burst_0);
}

static void an_unlimited_limiter_says_nothing(void **state) {
    (void)state;
    struct weir *w = create_named("w", weir_unlimited());
    const struct outcome o = ask_at(w, WEIR_TAKE, "key", 1, 0);
    assert_string_equal(fields_of(w, o.result, &o.answer, ALL), "");
    struct weir_answer earlier = WEIR_ANSWER_INIT; // from before the limit was lifted
    assert_string_equal(fields_of(w, WEIR_DENIED, &earlier, ALL), "");
    weir_destroy(w);
}

static void the_window_is_the_time_to_fill_and_the_quota_what_the_rate_makes_in_it(void **state) {
    (void)state;
    static const struct {
        struct weir_limit limit;
        uint64_t quota, window_s; // UINT64_MAX: left out
    } cases[] = {
        {{5, WEIR_SECOND, 20}, 20, 4},
        {{5, WEIR_SECOND, 1}, 5, 1},
        {{500, WEIR_SECOND, 20}, 500, 1},
        {{1, WEIR_DAY, 1}, 1, 86400},
        {{1, 3 * WEIR_SECOND, 1}, 1, 3},
        {{10, 3 * WEIR_SECOND, 7}, 10, 3},
        {{1, 1500 * WEIR_MILLISECOND, 1}, 1, 2},
        {{1000000000, WEIR_SECOND, 1000000000000}, 1000000000000, 1000},
        {{UINT64_C(1) << 31, WEIR_SECOND, UINT64_C(1) << 31}, UINT64_C(1) << 31, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir *w = create_named("w", cases[i].limit);
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const char *text = fields_of(w, WEIR_GRANTED, &answer, WEIR_HTTP_STRUCTURED);
        assert_int_equal(number_after(text, ";q="), cases[i].quota);
        assert_int_equal(number_after(text, ";w="), cases[i].window_s);
        weir_destroy(w);
    }
}

static void the_quota_is_at_least_the_burst_and_no_more_than_the_rate_gives(void **state) {
    (void)state;
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    unsigned looked_at = 0;
    for (int i = 0; i < 2000; i++) {
        struct weir_options options = options_at(3, 1, 1);
        const struct weir_limit limit = {
            1 + (random_next(&random) >> random_below(&random, 63) >> 1),
            1 + (random_next(&random) >> (2 + random_below(&random, 62))),
            random_next(&random) >> (4 + random_below(&random, 60))};
        options.limit = limit;
        options.max_debt_tokens = options.max_ahead_tokens = 1;
        struct weir *w = NULL;
        if (weir_create(&w, &options, NULL) != WEIR_GRANTED) continue;
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const char *text = fields_of(w, WEIR_GRANTED, &answer, WEIR_HTTP_STRUCTURED);
        const uint64_t q = number_after(text, ";q="), window_s = number_after(text, ";w=");
        const uint64_t burst = wr_min_u64(limit.burst, SF_INTEGER_MAX);
        bool good = is_well_formed(text) && q >= burst && window_s != 0;
        if (window_s == UINT64_MAX) good = good && q == burst && burst == 0;
        else // q tokens take no longer than the window, and one second less does not fill the burst
            good = good &&
                   (wr_u128)q * limit.period_ns <= (wr_u128)window_s * WEIR_SECOND * limit.tokens &&
                   (wr_u128)(window_s - 1) * WEIR_SECOND * limit.tokens <
                       (wr_u128)limit.burst * limit.period_ns;
        if (!good) fail_msg("seed %" PRIu64 ": %s", seed, text);
        looked_at++;
        weir_destroy(w);
    }
    assert_true(looked_at > 100);
}

static void the_name_is_a_structured_string(void **state) {
    (void)state;
    static const struct {
        const char *name, *written;
    } cases[] = {
        {"sms provider", "\"sms provider\""}, {"", "\"\""},
        {"say \"hi\"", "\"say \\\"hi\\\"\""}, {"a\\b", "\"a\\\\b\""},
        {"caf\xC3\xA9", "\"caf%C3%A9\""},     {"a\r\nSet-Cookie: x", "\"a%0D%0ASet-Cookie: x\""},
        {"\x7F~\x1F", "\"%7F~%1F\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir *w = create_named(cases[i].name, (struct weir_limit){1, WEIR_SECOND, 1});
        struct weir_answer answer = WEIR_ANSWER_INIT;
        char expected[128];
        snprintf(expected, sizeof expected,
                 "RateLimit-Policy: %s;q=1;w=1\r\nRateLimit: %s;r=0;t=1\r\n", cases[i].written,
                 cases[i].written);
        const char *text = fields_of(w, WEIR_GRANTED, &answer, WEIR_HTTP_STRUCTURED);
        assert_string_equal(text, expected);
        assert_true(is_well_formed(text));
        weir_destroy(w);
    }
}

static void numbers_have_fifteen_digits_at_most(void **state) {
    (void)state;
    struct weir *w = create_named("w", (struct weir_limit){1, 1, UINT64_C(1) << 55});
    struct weir_answer answer = WEIR_ANSWER_INIT;
    answer.remaining = UINT64_MAX - 1;
    const char *text = fields_of(w, WEIR_GRANTED, &answer, ALL);
    assert_true(is_well_formed(text));
    assert_int_equal(number_after(text, ";q="), SF_INTEGER_MAX);
    assert_int_equal(number_after(text, ";r="), SF_INTEGER_MAX);
    assert_int_equal(number_after(text, "\nRateLimit-Limit: "), SF_INTEGER_MAX);
    assert_int_equal(number_after(text, ";w="), (UINT64_C(1) << 55) / WEIR_SECOND + 1);
    weir_destroy(w);
    // A limit set later may take longer to fill than any number of seconds with fifteen digits.
    w = create_named("w", (struct weir_limit){1, 1, UINT64_C(1) << 55});
    assert_int_equal(set_limit_at(w, 1, INT64_MAX, UINT64_C(1) << 55, 0), WEIR_GRANTED);
    text = fields_of(w, WEIR_GRANTED, &answer, WEIR_HTTP_STRUCTURED);
    assert_int_equal(number_after(text, ";w="), UINT64_MAX);
    weir_destroy(w);
}

static void a_buffer_too_small_stays_empty_and_the_length_is_told(void **state) {
    (void)state;
    struct weir *w = create_named("typing", (struct weir_limit){5, WEIR_SECOND, 20});
    struct weir_answer answer = WEIR_ANSWER_INIT;
    answer.retry_after_ns = 1;
    const size_t whole = strlen(fields_of(w, WEIR_DENIED, &answer, ALL));
    size_t length = 0;
    assert_int_equal(weir_http_fields(w, WEIR_DENIED, &answer, ALL, NULL, 0, &length), WEIR_ENOSPC);
    assert_int_equal(length, whole);
    char buffer[WEIR_HTTP_FIELDS_MAX];
    for (size_t size = 1; size <= whole + 1; size++) {
        memset(buffer, '#', sizeof buffer);
        const int result = weir_http_fields(w, WEIR_DENIED, &answer, ALL, buffer, size, &length);
        assert_int_equal(result, size > whole ? WEIR_GRANTED : WEIR_ENOSPC);
        assert_int_equal(length, whole);
        assert_int_equal(strlen(buffer), size > whole ? whole : 0);
        for (size_t i = size; i < sizeof buffer; i++) assert_int_equal(buffer[i], '#');
    }
    assert_int_equal(weir_http_fields(w, WEIR_DENIED, &answer, ALL, buffer, sizeof buffer, NULL),
                     WEIR_GRANTED);
    weir_destroy(w);
}

static void the_longest_text_fits_the_size_that_the_header_names(void **state) {
    (void)state;
    char name[64];
    memset(name, 0x01, 63);
    name[63] = '\0';
    struct weir *w = create_named(name, (struct weir_limit){1, 1, UINT64_C(1) << 55});
    struct weir_answer answer = WEIR_ANSWER_INIT;
    answer.remaining = UINT64_MAX - 1;
    answer.retry_after_ns = WEIR_FOREVER - 1;
    assert_true(strlen(fields_of(w, WEIR_DENIED, &answer, ALL | WEIR_HTTP_BYTES)) > 650);
    weir_destroy(w);
}

static void refuses_what_is_no_answer(void **state) {
    (void)state;
    struct weir *w = create_named("w", (struct weir_limit){1, WEIR_SECOND, 1});
    struct weir_answer answer = WEIR_ANSWER_INIT;
    char text[256];
    assert_int_equal(weir_http_fields(NULL, 0, &answer, 1, text, 256, NULL), WEIR_EINVAL);
    assert_int_equal(weir_http_fields(w, 0, NULL, 1, text, 256, NULL), WEIR_EINVAL);
    assert_int_equal(weir_http_fields(w, WEIR_ECLOCK, &answer, 1, text, 256, NULL), WEIR_EINVAL);
    assert_int_equal(weir_http_fields(w, 0, &answer, 32, text, 256, NULL), WEIR_EINVAL);
    assert_int_equal(weir_http_fields(w, 0, &answer, 1, NULL, 1, NULL), WEIR_EINVAL);
    answer.size = 3;
    assert_int_equal(weir_http_fields(w, 0, &answer, 1, text, 256, NULL), WEIR_ESIZE);
    answer.size = sizeof answer + 8;
    assert_int_equal(weir_http_fields(w, 0, &answer, 1, text, 256, NULL), WEIR_ESIZE);
    weir_destroy(w);
}

static void an_answer_of_an_older_size_is_read_as_far_as_it_goes(void **state) {
    (void)state;
    struct weir *w = create_named("w", (struct weir_limit){1, WEIR_SECOND, 9});
    struct weir_answer answer = WEIR_ANSWER_INIT;
    answer.size = offsetof(struct weir_answer, full_after_ns);
    answer.remaining = 4;
    answer.retry_after_ns = 7 * WEIR_SECOND;
    answer.full_after_ns = WEIR_HOUR; // not the caller's
    assert_string_equal(fields_of(w, WEIR_DENIED, &answer, CURRENT),
                        "RateLimit-Policy: \"w\";q=9;w=9\r\nRateLimit: \"w\";r=4;t=7\r\n"
                        "Retry-After: 7\r\n");
    assert_string_equal(fields_of(w, WEIR_GRANTED, &answer, CURRENT),
                        "RateLimit-Policy: \"w\";q=9;w=9\r\nRateLimit: \"w\";r=4;t=1\r\n");
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_of_these_tests_is_strict),
        cmocka_unit_test(writes_every_form_as_the_header_shows_it),
        cmocka_unit_test(a_grant_tells_what_is_left_and_when_the_bucket_is_full),
        cmocka_unit_test(retry_after_is_in_whole_seconds_rounded_up_and_never_zero),
        cmocka_unit_test(asking_again_after_the_seconds_told_passes),
        cmocka_unit_test(retry_after_is_left_out_when_waiting_does_not_help),
        cmocka_unit_test(an_unlimited_limiter_says_nothing),
        cmocka_unit_test(the_window_is_the_time_to_fill_and_the_quota_what_the_rate_makes_in_it),
        cmocka_unit_test(the_quota_is_at_least_the_burst_and_no_more_than_the_rate_gives),
        cmocka_unit_test(the_name_is_a_structured_string),
        cmocka_unit_test(numbers_have_fifteen_digits_at_most),
        cmocka_unit_test(a_buffer_too_small_stays_empty_and_the_length_is_told),
        cmocka_unit_test(the_longest_text_fits_the_size_that_the_header_names),
        cmocka_unit_test(refuses_what_is_no_answer),
        cmocka_unit_test(an_answer_of_an_older_size_is_read_as_far_as_it_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
