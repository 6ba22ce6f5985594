// The scale and the profile: S, s and M, what is refused, and in which words.
#include <stdlib.h>
#include <string.h>

#include "support.h"

static struct weir_options options_of(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    return options_at(tokens, period_ns, burst);
}

static struct wr_scale scale_of(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    struct wr_scale scale;
    struct weir_error error = {{0}};
    const struct weir_options options = options_of(tokens, period_ns, burst);
    if (wr_scale_init(&scale, &options, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
    return scale;
}

// Rates from one in 365 days to the top.
static const struct weir_limit rates[] = {
    {1, 365 * WEIR_DAY, 1},  {1, WEIR_DAY, 1},          {1, WEIR_HOUR, 1},
    {7, 13 * WEIR_SECOND, 1}, {3, 10 * WEIR_SECOND, 1}, {1, WEIR_SECOND, 1},
    {5, WEIR_SECOND, 1},     {1500, WEIR_SECOND, 1},    {2775, WEIR_SECOND, 1},
    {2776, WEIR_SECOND, 1},  {100000, WEIR_SECOND, 1},  {1000003, WEIR_SECOND, 1},
    {300000000, WEIR_SECOND, 1}, {600000000, WEIR_SECOND, 1}, {1000000001, WEIR_SECOND, 1},
    {2000000000, WEIR_SECOND, 1}, {2000000001, WEIR_SECOND, 1}, {4000000000, WEIR_SECOND, 1},
    {10000000000, WEIR_SECOND, 1}, {15999999999, WEIR_SECOND, 1}, {15, 1, 1},
};
#define RATES (sizeof rates / sizeof rates[0])

static void max_rate_makes_two_to_four_units_a_nanosecond(void **state) {
    (void)state;
    for (size_t i = 0; i < RATES; i++) {
        const struct wr_scale s = scale_of(rates[i].tokens, rates[i].period_ns, 1);
        const wr_u128 made = (wr_u128)rates[i].tokens * s.unit_tokens;
        if (rates[i].tokens > 2 * rates[i].period_ns) {
            assert_int_equal(s.unit_tokens, 1);
            continue;
        }
        assert_true(made >= (wr_u128)2 * rates[i].period_ns);
        assert_true(made < (wr_u128)4 * rates[i].period_ns);
    }
}

static void the_shift_is_62_and_60_at_the_top(void **state) {
    (void)state;
    assert_int_equal(scale_of(1, WEIR_DAY, 1).shift, 62);
    assert_int_equal(scale_of(3999999999, WEIR_SECOND, 1).shift, 62);
    assert_int_equal(scale_of(4000000000, WEIR_SECOND, 1).shift, 60);
    assert_int_equal(scale_of(15999999999, WEIR_SECOND, 1).shift, 60);
}

static void a_rate_is_rounded_up_and_by_less_than_one(void **state) {
    (void)state;
    for (size_t i = 0; i < RATES; i++) {
        const struct wr_scale s = scale_of(rates[i].tokens, rates[i].period_ns, 1);
        struct wr_profile p;
        assert_int_equal(wr_profile_init(&p, &s, &rates[i], NULL), WEIR_GRANTED);
        assert_true(p.per_ns == s.max_per_ns);
        // M * period - tokens * S * 2^s is in [0, period): by remainders modulo 2^128.
        const wr_u128 over = (wr_u128)p.per_ns * rates[i].period_ns -
                             ((wr_u128)rates[i].tokens * s.unit_tokens << s.shift);
        assert_true(over < rates[i].period_ns);
    }
}

static void up_to_2775_a_second_all_weights_to_16_and_their_doubles_divide(void **state) {
    (void)state;
    for (size_t i = 0; i < RATES; i++) {
        if ((wr_u128)rates[i].tokens * WEIR_SECOND > (wr_u128)2775 * rates[i].period_ns) continue;
        const struct wr_scale s = scale_of(rates[i].tokens, rates[i].period_ns, 1);
        assert_int_equal(s.unit_tokens % 1441440, 0);
        const uint64_t times = s.unit_tokens / 1441440;
        assert_int_equal(times & (times - 1), 0);
        for (uint64_t weight = 1; weight <= 16; weight++)
            assert_int_equal(s.unit_tokens % (2 * weight), 0);
    }
}

static unsigned dividing_weights(uint64_t n) {
    unsigned count = 0;
    for (uint64_t weight = 1; weight <= 16; weight++) count += n % weight == 0;
    return count;
}

// By trying every number in the range.
static void above_it_is_the_smallest_number_that_most_weights_divide(void **state) {
    (void)state;
    static const uint64_t tokens[] = {2776, 5000, 33333, 100000, 1000003, 7654321, 300000000,
                                      999999999, 1000000001, 1999999999};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const uint64_t low = (2 * WEIR_SECOND + tokens[i] - 1) / tokens[i];
        const uint64_t high = (4 * WEIR_SECOND + tokens[i] - 1) / tokens[i] - 1;
        uint64_t best = low;
        for (uint64_t n = low; n <= high; n++)
            if (dividing_weights(n) > dividing_weights(best)) best = n;
        assert_int_equal(scale_of(tokens[i], WEIR_SECOND, 1).unit_tokens, best);
    }
}

static void the_bounds_add_up_to_two_to_the_62(void **state) {
    (void)state;
    for (size_t i = 0; i < RATES; i++) {
        const struct wr_scale s = scale_of(rates[i].tokens, rates[i].period_ns, 1);
        assert_true(s.horizon_units == s.debt_units + s.ahead_units + s.hour_units);
        assert_true(s.unit_tokens + s.horizon_units <= WR_UNITS_MAX);
        assert_true(s.burst_max == WR_UNITS_MAX - s.horizon_units);
        assert_int_equal(s.debt_units, s.unit_tokens); // the burst
        // an hour's tokens, at least one burst
        assert_true(s.ahead_units >= s.unit_tokens && s.ahead_units >= s.hour_units);
        const wr_u128 hour = (wr_u128)rates[i].tokens * s.unit_tokens * WEIR_HOUR;
        assert_true((wr_u128)s.hour_units * rates[i].period_ns >= hour);
        assert_true((wr_u128)(s.hour_units - 2) * rates[i].period_ns <= hour);
    }
}

static void defaults_are_cut_to_what_is_left_and_explicit_values_refused(void **state) {
    (void)state;
    // S is 1441440 * 2^k for 1 a day: a burst of 12,000 leaves less than another 12,000.
    struct weir_options options = options_of(1, WEIR_DAY, 12000);
    struct wr_scale s;
    assert_int_equal(wr_scale_init(&s, &options, NULL), WEIR_GRANTED);
    assert_true(s.debt_units < 12000 * s.unit_tokens);
    assert_true(12000 * s.unit_tokens + s.horizon_units <= WR_UNITS_MAX);
    struct weir_error error = {{0}};
    options.max_debt_tokens = 12000;
    assert_int_equal(wr_scale_init(&s, &options, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "max_debt_tokens"));
    assert_non_null(strstr(error.text, "12000"));
    options.max_debt_tokens = 1;
    options.max_ahead_tokens = 12000;
    assert_int_equal(wr_scale_init(&s, &options, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "max_ahead_tokens"));
    options.max_ahead_tokens = 100;
    assert_int_equal(wr_scale_init(&s, &options, NULL), WEIR_GRANTED);
    assert_int_equal(s.debt_units, s.unit_tokens);
    assert_int_equal(s.ahead_units, 100 * s.unit_tokens);
}

// Creates; expects a refusal whose words contain each of `words`.
static void expect_refused(const struct weir_options *options, int result,
                           const char *const words[]) {
    struct weir *w = NULL;
    struct weir_error error = {{0}};
    assert_int_equal(weir_create(&w, options, &error), result);
    assert_null(w);
    for (size_t i = 0; words[i] != NULL; i++)
        if (strstr(error.text, words[i]) == NULL)
            fail_msg("'%s' is not in: %s", words[i], error.text);
    assert_null(strchr(error.text, '\n'));
    assert_int_equal(weir_create(&w, options, NULL), result); // words are not required
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void one_a_day_with_a_burst_of_300000_is_refused_with_its_821_years(void **state) {
    (void)state;
    const struct weir_options options = options_of(1, WEIR_DAY, 300000);
    expect_refused(&options, WEIR_ELIMIT, WORDS("300000", "821 years", "lower the burst"));
}

static void two_tebibytes_a_second_are_refused_with_the_top_rate_and_the_remedy(void **state) {
    (void)state;
    const struct weir_options options = options_of(UINT64_C(2) << 40, WEIR_SECOND, 1 << 30);
    expect_refused(&options, WEIR_ELIMIT, WORDS("2199023255552", "1.6*10^10", "coarser", "KiB"));
}

static void the_top_rate_is_below_16_a_nanosecond(void **state) {
    (void)state;
    struct weir_options options = options_of(16, 1, 100);
    expect_refused(&options, WEIR_ELIMIT, WORDS("1.6*10^10"));
    options = options_of(16 * WEIR_SECOND, WEIR_SECOND, 100);
    expect_refused(&options, WEIR_ELIMIT, WORDS("1.6*10^10"));
    options = options_of(UINT64_MAX - 1, 1, 100);
    expect_refused(&options, WEIR_ELIMIT, WORDS("1.6*10^10"));
    options = options_of(16 * WEIR_SECOND - 1, WEIR_SECOND, 100);
    weir_destroy(create(&options));
}

static void a_period_is_1_to_2_to_the_63_less_1(void **state) {
    (void)state;
    struct weir_options options = options_of(1, 0, 1);
    expect_refused(&options, WEIR_EINVAL, WORDS("period_ns", "0", "2^63-1"));
    options = options_of(1, UINT64_C(1) << 63, 1);
    expect_refused(&options, WEIR_EINVAL, WORDS("period_ns"));
    options = options_of(1, 1, 1);
    weir_destroy(create(&options));
    options = options_of(INT64_MAX, INT64_MAX, 1); // 1 a nanosecond
    weir_destroy(create(&options));
}

static void a_token_of_more_than_73_years_is_refused(void **state) {
    (void)state;
    const struct weir_options options = options_of(1, INT64_MAX, 1);
    expect_refused(&options, WEIR_ELIMIT, WORDS("slow", "73 years"));
}

static void max_rate_is_required_when_the_first_limit_has_none(void **state) {
    (void)state;
    struct weir_options options = options_of(0, WEIR_SECOND, 5);
    expect_refused(&options, WEIR_ELIMIT, WORDS("max_rate is required", "rate 0"));
    options.limit = weir_unlimited();
    expect_refused(&options, WEIR_ELIMIT, WORDS("max_rate is required", "unlimited"));
    options.max_rate_tokens = 10;
    options.max_rate_period_ns = WEIR_SECOND;
    weir_destroy(create(&options));
    options.limit = (struct weir_limit){0, 1, 5};
    weir_destroy(create(&options));
}

static void a_first_limit_faster_than_max_rate_is_refused(void **state) {
    (void)state;
    struct weir_options options = options_of(11, WEIR_SECOND, 5);
    options.max_rate_tokens = 10;
    options.max_rate_period_ns = WEIR_SECOND;
    expect_refused(&options, WEIR_ELIMIT, WORDS("11", "max_rate"));
}

static void a_later_limit_faster_than_max_rate_is_refused_and_changes_nothing(void **state) {
    (void)state;
    struct weir *w = create_at(10, WEIR_SECOND, 5);
    struct weir_error error = {{0}};
    struct weir_limit limit = {10000000001, 1000000000000000000, 5}; // a touch over 10/s
    assert_int_equal(weir_set_limit_at(w, &limit, 1, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "max_rate"));
    limit = (struct weir_limit){15, 1, 5};
    assert_int_equal(weir_set_limit_at(w, &limit, 1, &error), WEIR_ELIMIT);
    limit = (struct weir_limit){1, 0, 5};
    assert_int_equal(weir_set_limit_at(w, &limit, 1, &error), WEIR_EINVAL);
    assert_int_equal(weir_set_limit_at(w, NULL, 1, &error), WEIR_EINVAL);
    limit = (struct weir_limit){10, WEIR_SECOND, UINT64_C(1) << 50};
    assert_int_equal(weir_set_limit_at(w, &limit, 1, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "1125899906842624"));
    weir_get_limit(w, &limit);
    assert_int_equal(limit.tokens, 10);
    assert_int_equal(limit.burst, 5);
    assert_int_equal(set_limit_at(w, 1, WEIR_SECOND / 10, 5, 1), WEIR_GRANTED); // the same rate
    weir_destroy(w);
}

static void two_to_the_40_tokens_of_burst_need_about_1000_a_second(void **state) {
    (void)state;
    struct weir_options options = options_of(1000, WEIR_SECOND, UINT64_C(1) << 40);
    weir_destroy(create(&options));
    options = options_of(100, WEIR_SECOND, UINT64_C(1) << 40);
    expect_refused(&options, WEIR_ELIMIT, WORDS("1099511627776", "years"));
}

static void the_largest_burst_that_the_refusal_names_is_accepted(void **state) {
    (void)state;
    struct weir_options options = options_of(1, WEIR_DAY, 300000);
    struct weir_error error = {{0}};
    struct weir *w = NULL;
    assert_int_equal(weir_create(&w, &options, &error), WEIR_ELIMIT);
    const char *most = strstr(error.text, "the most at this max_rate is ");
    assert_non_null(most);
    options.limit.burst = strtoull(most + strlen("the most at this max_rate is "), NULL, 10);
    w = create(&options);
    weir_destroy(w);
    options.limit.burst++;
    assert_int_equal(weir_create(&w, &options, &error), WEIR_ELIMIT);
}

static void a_cost_is_scaled_exactly_or_rounded_down_by_a_millionth_or_refused(void **state) {
    (void)state;
    const struct wr_scale s = scale_of(3000000000, WEIR_SECOND, 10); // S is 1
    uint64_t units = 0;
    assert_int_equal(wr_cost_units(&s, 6, (struct weir_weight){3, 1}, &units), WEIR_GRANTED);
    assert_int_equal(units, 2);
    assert_int_equal(wr_cost_units(&s, 1, (struct weir_weight){3, 1}, &units), WEIR_EWEIGHT);
    assert_int_equal(wr_cost_units(&s, 3000001, (struct weir_weight){3, 1}, &units), WEIR_GRANTED);
    assert_int_equal(units, 1000000);
    assert_int_equal(wr_cost_units(&s, 2999, (struct weir_weight){3, 1}, &units), WEIR_EWEIGHT);
    assert_int_equal(wr_cost_units(&s, 5, (struct weir_weight){1, 7}, &units), WEIR_GRANTED);
    assert_int_equal(units, 35);
    assert_int_equal(wr_cost_units(&s, 0, (struct weir_weight){3, 1}, &units), WEIR_GRANTED);
    assert_int_equal(units, 0);
    assert_int_equal(wr_cost_units(&s, 5, (struct weir_weight){3, 0}, &units), WEIR_EINVAL);
    assert_int_equal(wr_cost_units(&s, 5, (struct weir_weight){0, 3}, &units), WEIR_EINVAL);
    assert_int_equal(wr_cost_units(&s, 5, (struct weir_weight){0, 0}, &units), WEIR_GRANTED);
    assert_int_equal(units, 5);
}

static void a_cost_too_large_for_any_burst_does_not_wrap(void **state) {
    (void)state;
    const struct weir_weight weights[] = {
        {0, 0}, {1, UINT32_MAX}, {UINT32_MAX, 1}, {2, 3}, {UINT32_MAX, UINT32_MAX - 1}};
    for (size_t r = 0; r < RATES; r++) {
        const struct wr_scale s = scale_of(rates[r].tokens, rates[r].period_ns, 1);
        for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
            uint64_t units = 0;
            const int result = wr_cost_units(&s, UINT64_MAX, weights[i], &units);
            const wr_u128 floor = (wr_u128)UINT64_MAX / (weights[i].num == 0 ? 1 : weights[i].num);
            if (result == WEIR_GRANTED && floor > WR_UNITS_MAX) assert_true(units > WR_UNITS_MAX);
        }
        assert_true(wr_cost_units_plain(&s, UINT64_MAX) > WR_UNITS_MAX);
        assert_true(wr_cost_units_plain(&s, s.cost_max) <= WR_UNITS_MAX);
    }
}

static void a_wait_is_the_shortest_that_makes_the_units(void **state) {
    (void)state;
    struct random random = {7};
    for (size_t r = 0; r < RATES; r++) {
        const struct wr_scale s = scale_of(rates[r].tokens, rates[r].period_ns, 1);
        for (int i = 0; i < 2000; i++) {
            const uint64_t per_ns = s.max_per_ns - random_below(&random, s.max_per_ns);
            // fractions are whole multiples of 2^-shift
            const uint64_t frac = random_next(&random) << (64 - s.shift);
            const uint64_t units = 1 + (random_next(&random) >> (8 + random_below(&random, 54)));
            const uint64_t wait = wr_wait_ns(&s, per_ns, frac, units);
            if (wait > (uint64_t)wr_time_max(s.shift)) continue;
            assert_true(wr_make(wait, per_ns, frac, s.shift).units >= units);
            assert_true(wait == 0 || wr_make(wait - 1, per_ns, frac, s.shift).units < units);
        }
    }
}

static void a_wait_at_rate_0_or_of_584_years_is_for_ever(void **state) {
    (void)state;
    const struct wr_scale s = scale_of(1, WEIR_SECOND, 1);
    assert_int_equal(wr_wait_ns(&s, s.max_per_ns, 0, 0), 0);
    assert_int_equal(wr_wait_ns(&s, 0, 0, 0), 0);
    assert_true(wr_wait_ns(&s, 0, 0, 1) == WEIR_FOREVER);
    assert_true(wr_wait_ns(&s, 1, 0, WR_UNITS_MAX) == WEIR_FOREVER);
}

static void bad_options_are_refused_by_name(void **state) {
    (void)state;
    struct weir_options options = options_of(1, WEIR_SECOND, 1);
    options.size--;
    expect_refused(&options, WEIR_ESIZE, WORDS("options->size", "WEIR_OPTIONS_INIT"));
    options = options_of(1, WEIR_SECOND, 1);
    options.capacity_keys = (UINT64_C(1) << 32) + 1;
    expect_refused(&options, WEIR_EINVAL, WORDS("capacity_keys", "4294967297", "2^32"));
    options = options_of(1, WEIR_SECOND, 1);
    options.shards = 4097;
    expect_refused(&options, WEIR_EINVAL, WORDS("shards", "4097", "4096"));
    options = options_of(1, WEIR_SECOND, 1);
    options.full_policy = (enum weir_full_policy)3;
    expect_refused(&options, WEIR_EINVAL, WORDS("full_policy"));
    options = options_of(1, WEIR_SECOND, 1);
    options.clock = (enum weir_clock)-1;
    expect_refused(&options, WEIR_EINVAL, WORDS("clock"));
    options = options_of(1, WEIR_SECOND, 1);
    const struct weir_allocator half = {NULL, NULL, NULL};
    options.allocator = &half;
    expect_refused(&options, WEIR_EINVAL, WORDS("allocator"));
    struct weir *w = NULL;
    assert_int_equal(weir_create(&w, NULL, NULL), WEIR_EINVAL);
    assert_int_equal(weir_create(NULL, &options, NULL), WEIR_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_rate_makes_two_to_four_units_a_nanosecond),
        cmocka_unit_test(the_shift_is_62_and_60_at_the_top),
        cmocka_unit_test(a_rate_is_rounded_up_and_by_less_than_one),
        cmocka_unit_test(up_to_2775_a_second_all_weights_to_16_and_their_doubles_divide),
        cmocka_unit_test(above_it_is_the_smallest_number_that_most_weights_divide),
        cmocka_unit_test(the_bounds_add_up_to_two_to_the_62),
        cmocka_unit_test(defaults_are_cut_to_what_is_left_and_explicit_values_refused),
        cmocka_unit_test(one_a_day_with_a_burst_of_300000_is_refused_with_its_821_years),
        cmocka_unit_test(two_tebibytes_a_second_are_refused_with_the_top_rate_and_the_remedy),
        cmocka_unit_test(the_top_rate_is_below_16_a_nanosecond),
        cmocka_unit_test(a_period_is_1_to_2_to_the_63_less_1),
        cmocka_unit_test(a_token_of_more_than_73_years_is_refused),
        cmocka_unit_test(max_rate_is_required_when_the_first_limit_has_none),
        cmocka_unit_test(a_first_limit_faster_than_max_rate_is_refused),
        cmocka_unit_test(a_later_limit_faster_than_max_rate_is_refused_and_changes_nothing),
        cmocka_unit_test(two_to_the_40_tokens_of_burst_need_about_1000_a_second),
        cmocka_unit_test(the_largest_burst_that_the_refusal_names_is_accepted),
        cmocka_unit_test(a_cost_is_scaled_exactly_or_rounded_down_by_a_millionth_or_refused),
        cmocka_unit_test(a_cost_too_large_for_any_burst_does_not_wrap),
        cmocka_unit_test(a_wait_is_the_shortest_that_makes_the_units),
        cmocka_unit_test(a_wait_at_rate_0_or_of_584_years_is_for_ever),
        cmocka_unit_test(bad_options_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
