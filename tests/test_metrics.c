// The OpenMetrics text: read back by a strict reader, every number against the limiter's own.
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openmetrics.h"
#include "support.h"

static struct om_text om;
static char text[1 << 18];

static struct weir *create_named(const char *name) {
    struct weir_options options = options_at(1, 30 * WEIR_DAY, 1);
    options.name = name;
    return create(&options);
}

// Writes and reads back.
static void read_all(const struct weir *const *limiters, size_t count) {
    size_t length = 0;
    assert_int_equal(weir_metrics(limiters, count, text, sizeof text, &length), WEIR_GRANTED);
    const char *wrong = om_read(&om, text, length);
    if (wrong != NULL) fail_msg("line %zu: %s\n%s", om.line, wrong, text);
}

static void read_one(const struct weir *w) {
    read_all(&w, 1);
}

static void refuse(struct weir *w, struct weir_key key, unsigned times) {
    for (unsigned i = 0; i <= times; i++) (void)weir_take_at(w, key, 1, 0, NULL);
}

static void assert_number(const char *name, const char *limiter, uint64_t expected) {
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, expected);
    assert_string_equal(om_number(&om, name, limiter, NULL, NULL), number);
}

static const char *words_of(const char *read) {
    const char *wrong = om_read(&om, read, strlen(read));
    return wrong != NULL ? wrong : "right";
}

static void the_reader_of_these_tests_is_strict(void **state) {
    (void)state;
    static const char *const right[] = {
        "# EOF\n",
        "# TYPE a counter\na_total{l=\"x\"} 1\n# EOF\n",
        "# TYPE a_s gauge\n# UNIT a_s s\n# HELP a_s b \\n c\na_s{l=\"\\\"\\\\\\n\"} +Inf\n# EOF\n",
        ("# TYPE h histogram\nh_bucket{le=\"1e-05\"} 0\nh_bucket{le=\"0.25\"} 2\n"
         "h_bucket{le=\"+Inf\"} 2\n# EOF\n"),
    };
    static const char *const wrong[] = {
        "",
        "# EOF",
        "# EOF\n\n",
        "a 1\n# EOF\n",
        "# TYPE a gauge\na 1\n",
        "# TYPE a gauge\na 1 \n# EOF\n",
        "# TYPE a gauge\na  1\n# EOF\n",
        "# TYPE a gauge\na 1,5\n# EOF\n",
        "# TYPE a gauge\na .5\n# EOF\n",
        "# TYPE a gauge\na\n# EOF\n",
        "# TYPE a gauge\n\na 1\n# EOF\n",
        "# TYPE a gauge\r\n# EOF\n",
        "# TYPE a thing\n# EOF\n",
        "# TYPE a gauge\n# TYPE a gauge\n# EOF\n",
        "# words\n# EOF\n",
        "# HELP a b\n# TYPE a gauge\n# EOF\n",
        "# TYPE a gauge\na 1\n# HELP a b\n# EOF\n",
        "# TYPE a gauge\n# HELP a b\n# UNIT a a\n# EOF\n",
        "# TYPE a gauge\n# UNIT a s\n# EOF\n",
        "# TYPE as gauge\n# UNIT as s\n# EOF\n",
        "# TYPE a gauge\n# HELP b b\n# EOF\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE a counter\na_total 1.5\n# EOF\n",
        "# TYPE a gauge\na_total 1\n# EOF\n",
        "# TYPE a gauge\nb 1\n# EOF\n",
        "# TYPE a gauge\na 1\na 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"x\"} 1\na{l=\"x\"} 2\n# EOF\n",
        "# TYPE a gauge\na{l=\"x\",l=\"y\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"x\" } 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"x\",} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\"\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\\x41\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\n\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\xFF\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\xC0\x80\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\xED\xA0\x80\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=\"\x07\"} 1\n# EOF\n",
        "# TYPE a gauge\na{_l=\"x\"} 1\n# EOF\n",
        "# TYPE a gauge\na{l=x} 1\n# EOF\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\na{l=\"x\"} 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"1.0\"} 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"0.10\"} 1\nh_bucket{le=\"+Inf\"} 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"0.00001\"} 1\nh_bucket{le=\"+Inf\"} 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"2.0\"} 1\nh_bucket{le=\"1.5\"} 1\nh_bucket{le=\"+Inf\"} "
        "1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"2.0\"} 3\nh_bucket{le=\"+Inf\"} 2\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_count 2\n# EOF\n",
        "# TYPE h histogram\nh_bucket{a=\"1\",le=\"+Inf\"} 2\nh_bucket{a=\"2\",le=\"+Inf\"} 2\n"
        "h_bucket{a=\"1\",le=\"1.0\"} 2\n# EOF\n",
        "# TYPE h histogram\nh_bucket{a=\"1\",le=\"1.0\"} 2\nh_bucket{a=\"2\",le=\"+Inf\"} 2\n# "
        "EOF\n",
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_string_equal(words_of(right[i]), "right");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (strcmp(words_of(wrong[i]), "right") == 0) fail_msg("passed: %s", wrong[i]);
    assert_non_null(om_read(&om, "# EOF\n\0", 7));
}

static void every_counter_has_the_number_of_the_stats(void **state) {
    (void)state;
    struct weir *w = create_named("sms");
    refuse(w, weir_str("k"), 40);
    (void)ask_at(w, WEIR_TAKE, "k", 2, 0);
    (void)ask_at(w, WEIR_CHARGE, "k", 5, 0);
    (void)ask_at(w, WEIR_REFUND, "k", 1, 0);
    read_one(w);
    const struct weir_stats stats = stats_of(w);
    assert_int_equal(stats.clipped_tokens, 4);
#define CHECK(name) assert_number("weir_" #name "_total", "sms", stats.name);
    WR_COUNTERS(CHECK)
    CHECK(clock_fallbacks)
#undef CHECK
    assert_number("weir_capacity_keys", "sms", stats.capacity_keys);
    assert_number("weir_memory_bytes", "sms", stats.memory_bytes);
    assert_number("weir_shards", "sms", stats.shards);
    weir_destroy(w);
}

static void the_waits_are_a_histogram_of_what_was_handed_out(void **state) {
    (void)state;
    static const uint64_t waits_ns[] = {1,
                                        16384,
                                        16385,
                                        WEIR_MILLISECOND,
                                        WEIR_SECOND,
                                        WEIR_HOUR,
                                        UINT64_C(1) << 44,
                                        (UINT64_C(1) << 44) + 1};
    static const struct {
        const char *le;
        uint64_t count;
    } buckets[] = {
        {"1.6384e-05", 2},     {"3.2768e-05", 3},      {"0.000131072", 3},
        {"0.001048576", 4},    {"1.073741824", 5},     {"2.147483648", 5},
        {"4398.046511104", 6}, {"17592.186044416", 7}, {"+Inf", 8},
    };
    struct weir_options options = options_at(1, 1, 30000);
    options.name = "w";
    options.limit = (struct weir_limit){1, 1, UINT64_C(1) << 45};
    struct weir *w = create(&options);
    (void)ask_at(w, WEIR_TAKE, "k", UINT64_C(1) << 45, 0);
    for (size_t i = 0; i < sizeof waits_ns / sizeof waits_ns[0]; i++)
        assert_int_equal(ask_at(w, WEIR_TAKE, "k", waits_ns[i], 0).answer.retry_after_ns,
                         waits_ns[i]);
    read_one(w);
    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        const char *number = om_number(&om, "weir_wait_seconds_bucket", "w", "le", buckets[i].le);
        assert_int_equal(strtoull(number, NULL, 10), buckets[i].count);
        assert_true(number[0] != '\0');
    }
    weir_destroy(w);
}

static void a_limit_is_given_as_it_was_set(void **state) {
    (void)state;
    static const struct {
        struct weir_limit limit;
        const char *tokens, *period, *burst;
    } cases[] = {
        {{5, WEIR_SECOND, 20}, "5", "1.0", "20"},
        {{1, WEIR_DAY, 0}, "1", "86400.0", "0"},
        {{0, 1500 * WEIR_MILLISECOND, 7}, "0", "1.5", "7"},
        {{1, 100000, 1}, "1", "0.0001", "1"},
        {{1, 99999, 1}, "1", "9.9999e-05", "1"},
        {{1, 120, 1}, "1", "1.2e-07", "1"},
        {{1, INT64_MAX, 1}, "1", "9223372036.854775807", "1"},
        {{WEIR_UNLIMITED_TOKENS, 1, WEIR_UNLIMITED_TOKENS}, "+Inf", "1.0e-09", "+Inf"},
    };
    struct weir_options options = options_at(1, 1, 1);
    options.name = "w";
    struct weir *w = create(&options);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(weir_set_limit_at(w, &cases[i].limit, 0, NULL), WEIR_GRANTED);
        read_one(w);
        assert_string_equal(om_number(&om, "weir_limit_tokens", "w", NULL, NULL), cases[i].tokens);
        assert_string_equal(om_number(&om, "weir_limit_period_seconds", "w", NULL, NULL),
                            cases[i].period);
        assert_string_equal(om_number(&om, "weir_limit_burst_tokens", "w", NULL, NULL),
                            cases[i].burst);
    }
    weir_destroy(w);
}

static void label_values_are_escaped_and_always_utf8(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"plain", "plain"},
        {"", ""},
        {"a\"b\\c\nd", "a\"b\\c\nd"},
        {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80", "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
        {"\x01\r\t\x7F", "\\x01\\x0d\\x09\\x7f"},
        {"a\xFF\xFE", "a\\xff\\xfe"},
        {"\x80", "\\x80"},
        {"\xC3", "\\xc3"}, // cut off
        {"\xC3(", "\\xc3("},
        {"\xC0\xAF", "\\xc0\\xaf"}, // longer than need be
        {"\xE0\x9F\xBF", "\\xe0\\x9f\\xbf"},
        {"\xF0\x8F\xBF\xBF", "\\xf0\\x8f\\xbf\\xbf"},
        {"\xED\xA0\x80", "\\xed\\xa0\\x80"},          // a surrogate
        {"\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, // beyond the last character
        {"\xF5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
        {"\xEF\xBF\xBF\xF4\x8F\xBF\xBF", "\xEF\xBF\xBF\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir *w = create_named(cases[i].name);
        refuse(w, weir_str(cases[i].name), 3);
        read_one(w);
        assert_number("weir_denied_total", cases[i].value, 3);
        assert_string_equal(
            om_number(&om, "weir_top_denied", cases[i].value, "key", cases[i].value), "3");
        weir_destroy(w);
    }
}

static void random_names_never_break_the_text(void **state) {
    (void)state;
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    for (int i = 0; i < 200; i++) {
        char name[100] = {0};
        static const char bytes[] = "\"\\\n{},= \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\x01x7";
        const uint64_t length = random_below(&random, sizeof name);
        for (uint64_t k = 0; k < length; k++)
            name[k] = bytes[random_below(&random, sizeof bytes - 1)];
        struct weir *w = create_named(name);
        for (int k = 0; k < 6; k++)
            refuse(w, weir_bytes(name + random_below(&random, 50), random_below(&random, 50)), 2);
        const struct weir *const both[] = {w, w};
        size_t written = 0;
        assert_int_equal(weir_metrics(both, 2, text, sizeof text, &written), WEIR_GRANTED);
        const char *wrong = om_read(&om, text, written);
        if (wrong != NULL) fail_msg("seed %" PRIu64 ", line %zu: %s", seed, om.line, wrong);
        weir_destroy(w);
    }
}

static const struct om_sample *sample_with(const char *name, const char *label, const char *value) {
    for (size_t i = 0; i < om.sample_count; i++)
        if (strcmp(om.samples[i].name, name) == 0 &&
            strcmp(om_label(&om.samples[i], label), value) == 0)
            return &om.samples[i];
    return NULL;
}

static void limiters_of_one_name_are_told_apart(void **state) {
    (void)state;
    struct weir *w[4];
    static const char *const names[] = {"a", "b", "a", "a"};
    for (unsigned i = 0; i < 4; i++) {
        w[i] = create_named(names[i]);
        refuse(w[i], weir_str("k"), i + 1);
    }
    read_all((const struct weir *const *)w, 4);
    assert_number("weir_denied_total", "a", 1);
    assert_number("weir_denied_total", "b", 2);
    assert_string_equal(om_number(&om, "weir_denied_total", "a", "nth", "2"), "3");
    assert_string_equal(om_number(&om, "weir_denied_total", "a", "nth", "3"), "4");
    for (unsigned i = 0; i < 4; i++) weir_destroy(w[i]);
}

static void keys_that_look_the_same_are_told_apart(void **state) {
    (void)state;
    struct weir *w = create_named("w");
    refuse(w, weir_id(7), 5);
    refuse(w, weir_str("7"), 9);
    refuse(w, weir_str("\xFF"), 4);
    refuse(w, weir_str("\\xff"), 3);
    read_one(w);
    assert_string_equal(om_number(&om, "weir_top_denied", "w", "key", "7"), "9");
    assert_string_equal(om_number(&om, "weir_top_denied", "w", "key", "\\xff"), "4");
    unsigned second = 0;
    for (size_t i = 0; i < om.sample_count; i++)
        second += strcmp(om_label(&om.samples[i], "key_nth"), "2") == 0;
    assert_int_equal(second, 2);
    assert_string_equal(sample_with("weir_top_denied", "key_nth", "2")->number, "5");
    weir_destroy(w);
}

static void only_the_most_denied_keys_that_are_certain_are_shown(void **state) {
    (void)state;
    struct weir *w = create_named("w");
    refuse(w, weir_str("heavy"), 200);
    for (uint64_t id = 0; id < 640; id++) refuse(w, weir_id(id), 1); // about 10 each for an entry
    read_one(w);
    assert_non_null(sample_with("weir_top_denied", "key", "heavy"));
    struct weir_top_key keys[WEIR_TOP_KEYS];
    size_t certain = 0;
    const size_t found = weir_top(w, keys, WEIR_METRICS_TOP);
    for (size_t i = 0; i < found; i++) certain += keys[i].denied >= 2 * keys[i].error;
    size_t shown = 0;
    for (size_t i = 0; i < om.sample_count; i++)
        shown += strcmp(om.samples[i].name, "weir_top_denied") == 0;
    assert_int_equal(shown, certain);
    assert_true(shown < found);
    weir_destroy(w);
    w = create_named("w");
    for (uint64_t id = 0; id < 40; id++) refuse(w, weir_id(id), 3);
    read_one(w);
    shown = 0;
    for (size_t i = 0; i < om.sample_count; i++)
        shown += strcmp(om.samples[i].name, "weir_top_denied") == 0;
    assert_true(shown <= WEIR_METRICS_TOP && shown > WEIR_METRICS_TOP / 2);
    weir_destroy(w);
}

static void a_buffer_too_small_stays_empty_and_the_length_is_told(void **state) {
    (void)state;
    const struct weir *w = create_named("w");
    size_t whole = 0, length = 0;
    assert_int_equal(weir_metrics(&w, 1, NULL, 0, &whole), WEIR_ENOSPC);
    char *buffer = malloc(whole + 64);
    assert_non_null(buffer);
    for (size_t size = 1; size <= whole + 1; size += size < whole - 64 ? 61 : 1) {
        memset(buffer, '#', whole + 64);
        const int result = weir_metrics(&w, 1, buffer, size, &length);
        assert_int_equal(result, size > whole ? WEIR_GRANTED : WEIR_ENOSPC);
        assert_int_equal(length, whole);
        assert_int_equal(strlen(buffer), size > whole ? whole : 0);
        for (size_t i = size; i < whole + 64; i++) assert_int_equal(buffer[i], '#');
    }
    free(buffer);
    weir_destroy((struct weir *)(uintptr_t)w);
}

static void the_length_is_what_the_header_says(void **state) {
    (void)state;
    struct weir *w =
        create_named("a name of sixty-three bytes, and no longer, is what a limiter ha");
    read_one(w);
    assert_true(strlen(text) < 12 * 1024);
    for (uint64_t id = 0; id < 40; id++) {
        char name[WEIR_TOP_NAME_BYTES];
        memset(name, 0xFF, sizeof name);
        memcpy(name, &id, sizeof id);
        refuse(w, weir_bytes(name, sizeof name), 3);
    }
    read_one(w);
    assert_true(strlen(text) < 20 * 1024);
    weir_destroy(w);
}

static void no_limiters_are_an_empty_text(void **state) {
    (void)state;
    read_all(NULL, 0);
    assert_string_equal(text, "# EOF\n");
}

static void refuses_null_pointers(void **state) {
    (void)state;
    struct weir *w = create_named("w");
    const struct weir *const some[] = {w, NULL};
    assert_int_equal(weir_metrics(NULL, 1, text, sizeof text, NULL), WEIR_EINVAL);
    assert_int_equal(weir_metrics(some, 2, text, sizeof text, NULL), WEIR_EINVAL);
    assert_int_equal(weir_metrics(some, 1, NULL, 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir_metrics(some, 1, text, sizeof text, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

static void no_locale_has_a_say(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", ""};
    struct weir *w = create_named("w");
    read_one(w);
    char *before = strdup(text);
    assert_non_null(before);
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        if (setlocale(LC_ALL, locales[i]) == NULL) continue;
        assert_int_equal(weir_metrics((const struct weir *const *)&w, 1, text, sizeof text, NULL),
                         WEIR_GRANTED);
        assert_string_equal(text, before);
    }
    setlocale(LC_ALL, "C");
    free(before);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reader_of_these_tests_is_strict),
        cmocka_unit_test(every_counter_has_the_number_of_the_stats),
        cmocka_unit_test(the_waits_are_a_histogram_of_what_was_handed_out),
        cmocka_unit_test(a_limit_is_given_as_it_was_set),
        cmocka_unit_test(label_values_are_escaped_and_always_utf8),
        cmocka_unit_test(random_names_never_break_the_text),
        cmocka_unit_test(limiters_of_one_name_are_told_apart),
        cmocka_unit_test(keys_that_look_the_same_are_told_apart),
        cmocka_unit_test(only_the_most_denied_keys_that_are_certain_are_shown),
        cmocka_unit_test(a_buffer_too_small_stays_empty_and_the_length_is_told),
        cmocka_unit_test(the_length_is_what_the_header_says),
        cmocka_unit_test(no_limiters_are_an_empty_text),
        cmocka_unit_test(refuses_null_pointers),
        cmocka_unit_test(no_locale_has_a_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
