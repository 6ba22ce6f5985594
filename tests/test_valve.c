// test_valve.c - the valve's step, one sample at a time, and the settings it refuses.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory.h"
#include "valve.h"

#define INTERVAL (100 * WEIR_MILLISECOND)

static struct weir_valve_settings settings;
static struct weir_valve *valve;

static int set_up(void **state) {
    (void)state;
    const struct weir_valve_settings standard = WEIR_VALVE_SETTINGS_INIT;
    settings = standard;
    settings.min_per_s = 20;
    settings.base_per_s = 150;
    settings.max_per_s = 5000;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    assert_int_equal(weir_valve_destroy(valve), WEIR_GRANTED);
    valve = NULL;
    return 0;
}

static void make(void) {
    struct weir_error error = {""};
    if (weir_valve_create(&valve, &settings, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
}

static struct weir_valve_stats stats(void) {
    struct weir_valve_stats s;
    assert_int_equal(weir_valve_stats(valve, &s, sizeof s), WEIR_GRANTED);
    return s;
}

static double rate(void) {
    return stats().rate_per_s;
}

static int step_with(double depth, uint64_t overloads, uint64_t granted, uint64_t dt_ns) {
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    sample.depth = depth;
    sample.overloads = overloads;
    sample.granted_tokens = granted;
    return weir_valve_step(valve, &sample, dt_ns, NULL);
}

static double step(double depth, uint64_t overloads) {
    assert_int_equal(step_with(depth, overloads, WEIR_UNKNOWN, INTERVAL), WEIR_GRANTED);
    return rate();
}

static void assert_near(double x, double wanted) {
    if (!(fabs(x - wanted) <= 1e-9 * fabs(wanted))) fail_msg("%.12g is not %.12g", x, wanted);
}

static void begins_at_its_base_in_thousandths_of_a_token(void **state) {
    (void)state;
    struct weir_limit limit;
    settings.base_per_s = 150.1234;
    make();
    weir_valve_limit(valve, &limit);
    assert_int_equal(limit.tokens, 150123);
    assert_int_equal(limit.period_ns, 1000 * WEIR_SECOND);
    assert_int_equal(limit.burst, 3); // 20 ms of it
    weir_valve_destroy(valve);
    settings.least_burst_tokens = 7;
    make();
    weir_valve_limit(valve, &limit);
    assert_int_equal(limit.burst, 7);
}

static void grows_below_the_low_mark_and_no_further_than_its_maximum(void **state) {
    (void)state;
    make();
    assert_near(step(15.9, 0), 150 * 1.2);
    assert_near(step(15.9, 0), 150 * 1.2 * 1.2);
    for (unsigned i = 0; i < 100; i++) step(0, 0);
    assert_near(rate(), 5000);
    assert_int_equal(stats().lowered, 0);
    assert_in_range(stats().raised, 20, 21);
}

static void shrinks_above_the_high_mark_and_no_further_than_its_minimum(void **state) {
    (void)state;
    make();
    assert_near(step(64.1, 0), 150 * 0.8);
    assert_near(step(64.1, 0), 150 * 0.8 * 0.8);
    for (unsigned i = 0; i < 100; i++) step(64.1, 0);
    assert_near(rate(), 20);
}

static void holds_between_the_marks(void **state) {
    (void)state;
    make();
    for (unsigned i = 0; i < 100; i++) assert_near(step(16 + (64 - 16) * i / 100.0, 0), 150);
    assert_int_equal(stats().raised + stats().lowered, 0);
}

static void the_depth_is_smoothed_with_its_time_constant(void **state) {
    (void)state;
    settings.smoothing_ns = WEIR_SECOND;
    make();
    step(40, 0);
    assert_near(stats().depth, 40); // the first sample is all it knows
    for (unsigned i = 0; i < 10; i++) step(0, 0);
    assert_near(stats().depth, 40 * exp(-1));
}

static void factors_are_an_interval_however_long_the_step(void **state) {
    (void)state;
    make();
    step_with(0, 0, WEIR_UNKNOWN, INTERVAL / 2);
    assert_near(rate(), 150 * sqrt(1.2));
    step_with(0, 0, WEIR_UNKNOWN, INTERVAL / 2);
    assert_near(rate(), 150 * 1.2);
    step_with(0, 0, WEIR_UNKNOWN, 0);
    assert_near(rate(), 150 * 1.2);
    step_with(0, 0, WEIR_UNKNOWN, WEIR_HOUR); // a silence of an hour tells nothing of it
    assert_near(rate(), 150 * 1.2 * 1.2 * 1.2);
}

static void an_overload_shrinks_at_once_whatever_the_depth_says(void **state) {
    (void)state;
    make();
    for (unsigned i = 0; i < 6; i++) step(0, 0);
    const double before = rate(); // about 448: 45 an interval
    assert_near(step(0, 9), (before - 90) * 0.95);
    assert_int_equal(stats().overloaded, 1);
    assert_int_equal(stats().lowered, 0); // told apart from the depth
    assert_int_equal(stats().overloads, 9);
}

static void answers_to_what_was_sent_before_an_overload_shrink_nothing_more(void **state) {
    (void)state;
    make();
    const double after = step(0, 3);
    assert_near(step(0, 3), after); // within 200 ms
    assert_true(step(0, 3) < after);
    assert_int_equal(stats().overloads, 9);
    assert_int_equal(stats().overloaded, 2);
}

static void one_overload_takes_at_most_half(void **state) {
    (void)state;
    make();
    assert_near(step(0, 1000000), 150 * 0.5 * 0.95);
}

// Each call ends after the same 5000 ms, in a timeout: nothing about the latency changes.
static void calls_that_all_time_out_shrink_it_to_the_minimum(void **state) {
    (void)state;
    enum { DELAY = 50 };
    double sent[DELAY] = {0};
    make();
    for (unsigned i = 0; i < 200; i++) { // a worker for each call: no queue
        const double timeouts = sent[i % DELAY];
        sent[i % DELAY] = rate() / 10;
        step(0, (uint64_t)timeouts);
    }
    assert_near(rate(), 20);
    weir_valve_destroy(valve);
    make();
    double depth = 0;
    for (unsigned i = 0; i < 200; i++) { // five workers: one timeout a second, and a queue
        depth += rate() / 10 - 0.1;
        step(depth, i >= DELAY && i % 10 == 0);
    }
    assert_near(rate(), 20);
}

static void climbs_back_from_the_minimum_within_its_bound(void **state) {
    (void)state;
    settings.base_per_s = 5000;
    make();
    for (unsigned i = 0; i < 40; i++) step(0, 1000);
    assert_near(rate(), 20);
    unsigned intervals = 0;
    while (rate() < 5000 && intervals < 1000) {
        step(0, 0);
        intervals++;
    }
    assert_in_range(intervals, 1, (unsigned)(log(5000.0 / 20) / log(1.2)) + 1 + 10 + 2);
}

static void climbs_back_when_nothing_is_sent_at_all(void **state) {
    (void)state;
    make();
    for (unsigned i = 0; i < 40; i++) step(0, 1000);
    assert_near(rate(), 20);
    for (unsigned i = 0; i < 40; i++) step_with(0, 0, 0, INTERVAL);
    assert_near(rate(), 150); // to its base, ready for the next
}

static void a_rate_that_is_not_used_is_not_raised(void **state) {
    (void)state;
    make();
    for (unsigned i = 0; i < 100; i++) step_with(0, 0, 10, INTERVAL); // 100/s
    assert_near(rate(), 200);
    for (unsigned i = 0; i < 100; i++) step_with(0, 0, 0, INTERVAL);
    assert_near(rate(), 200);
    step_with(0, 0, 20, INTERVAL);
    assert_near(rate(), 240);
}

static void feels_its_way_to_where_it_was_refused(void **state) {
    (void)state;
    settings.overload_factor = 0.5;
    make();
    for (unsigned i = 0; i < 8; i++) step(0, 0);
    const double capacity = step(0, 3) / 0.5;
    step(0, 0); // settling
    assert_near(rate(), capacity * 0.5);
    while (rate() * 1.2 < 0.95 * capacity) step(0, 0); // fast up to 95 %
    assert_near(step(0, 0), 0.95 * capacity);
    double wanted = 0.95 * capacity;
    for (double probe = 0.01; probe < 0.2; probe *= 1.5) {
        wanted *= 1 + probe;
        assert_near(step(0, 0), wanted);
    }
    assert_near(step(0, 0), wanted * 1.2); // and then as if nothing had been
}

static void is_pure(void **state) {
    (void)state;
    double rates[300];
    for (unsigned run = 0; run < 2; run++) {
        make();
        for (unsigned i = 0; i < 300; i++) {
            step(i * 37 % 101, i % 17 == 0);
            if (run == 0) rates[i] = rate();
            else assert_true(rates[i] == rate());
        }
        weir_valve_destroy(valve);
    }
    valve = NULL;
}

static void nonsense_is_counted_and_the_rate_stays(void **state) {
    (void)state;
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    const double depths[] = {NAN, -1, HUGE_VAL, -HUGE_VAL, 1e16};
    make();
    step(10, 0);
    const double before = rate();
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(step_with(depths[i], 1000, 0, INTERVAL), WEIR_EINVAL);
    sample.size = 1;
    assert_int_equal(weir_valve_step(valve, &sample, INTERVAL, NULL), WEIR_ESIZE);
    assert_near(rate(), before);
    assert_near(stats().depth, 10);
    assert_int_equal(stats().nonsense, 6);
    assert_int_equal(stats().overloads, 0);
    assert_near(step(10, 0), before * 1.2); // and it goes on
}

static void extreme_samples_leave_it_finite(void **state) {
    (void)state;
    for (unsigned form = 0; form < 2; form++) {
        settings.form = (enum weir_valve_form)form;
        make();
        for (unsigned i = 0; i < 2000; i++) {
            const uint64_t huge[] = {0, 1, UINT64_MAX - 1, UINT64_MAX};
            const double depths[] = {0, 1e-300, 1e15, 64};
            step_with(depths[i % 4], huge[i / 4 % 4], huge[i / 16 % 4], huge[i / 64 % 4]);
            assert_true(isfinite(rate()) && rate() >= 20 && rate() <= 5000);
            assert_true(isfinite(stats().depth));
        }
        for (unsigned i = 0; i < 3000; i++) step_with(0, 0, WEIR_UNKNOWN, INTERVAL);
        assert_near(rate(), 5000);
        weir_valve_destroy(valve);
    }
    valve = NULL;
}

// -- PID --

static void pid_follows_its_formula(void **state) {
    (void)state;
    settings.form = WEIR_VALVE_PID;
    settings.smoothing_ns = 0;
    settings.kd = 0.5;
    make();
    double integral = 150;
    integral += 4 * (32 - 20) * 0.1;
    assert_near(step(20, 0), 150 + 4 * (32 - 20)); // the integral as it was before
    assert_near(step(25, 0), integral + 4 * (32 - 25) - 0.5 * (25 - 20) / 0.1);
}

static void pid_does_not_wind_up_at_a_bound(void **state) {
    (void)state;
    settings.form = WEIR_VALVE_PID;
    make();
    for (unsigned i = 0; i < 5000; i++) step(0, 0);
    assert_near(rate(), 5000);
    unsigned intervals = 0;
    while (rate() > 4000 && intervals < 1000) {
        step(500, 0);
        intervals++;
    }
    assert_in_range(intervals, 1, 10); // at once; wound up it would take minutes
}

static void pid_moves_no_faster_than_its_slew_limit(void **state) {
    (void)state;
    settings.form = WEIR_VALVE_PID;
    settings.slew_per_s2 = 100;
    make();
    for (unsigned i = 0; i < 200; i++) {
        const double before = rate();
        step(i % 50 < 40 ? 0 : 1000, 0);
        assert_true(fabs(rate() - before) <= 10 + 1e-9);
    }
    const double before = rate();
    assert_true(before > 40);
    step(0, 1000);
    assert_near(rate(), before * 0.5 * 0.95); // an overload is not held up by it
}

// -- settings --

static void refuse(const char *words) {
    struct weir_error error = {""};
    assert_int_equal(weir_valve_create(&valve, &settings, &error), WEIR_EINVAL);
    assert_null(valve);
    if (strstr(error.text, words) == NULL) fail_msg("'%s' is not in: %s", words, error.text);
    set_up(NULL);
}

#define REFUSE(field, value, words) (settings.field = (value), refuse(words))

static void wrong_settings_are_refused_with_the_reason(void **state) {
    (void)state;
    REFUSE(min_per_s, 0, "min_per_s is 0");
    REFUSE(min_per_s, NAN, "min_per_s is nan");
    REFUSE(min_per_s, -3, "min_per_s is -3");
    REFUSE(min_per_s, 6000, "above max_per_s");
    REFUSE(max_per_s, HUGE_VAL, "max_per_s is inf");
    REFUSE(max_per_s, NAN, "max_per_s is nan");
    REFUSE(base_per_s, 19, "base_per_s is 19");
    REFUSE(base_per_s, 5001, "to max_per_s, 5000");
    REFUSE(base_per_s, NAN, "base_per_s is nan");
    REFUSE(interval_ns, 0, "interval_ns is 0");
    REFUSE(interval_ns, 2 * WEIR_HOUR, "give 1 ms (1000000) to 1 h");
    REFUSE(smoothing_ns, 2 * WEIR_HOUR, "smoothing_ns");
    REFUSE(burst_ns, 2 * WEIR_HOUR, "burst_ns");
    REFUSE(least_burst_tokens, 0, "least_burst_tokens is 0");
    REFUSE(settle_ns, 2 * WEIR_HOUR, "settle_ns");
    REFUSE(overload_factor, 1, "overload_factor is 1");
    REFUSE(overload_factor, 0, "between 0 and 1");
    REFUSE(low_depth, 64, "low_depth is 64, not below high_depth, 64");
    REFUSE(low_depth, 0, "the rate would never grow");
    REFUSE(low_depth, -1, "finite depths");
    REFUSE(low_depth, NAN, "finite depths");
    REFUSE(high_depth, HUGE_VAL, "finite depths");
    REFUSE(grow_factor, 1, "grow_factor is 1");
    REFUSE(grow_factor, 0.8, "above 1");
    REFUSE(grow_factor, 11, "at most 10");
    REFUSE(shrink_factor, 1.2, "shrink_factor is 1.2");
    REFUSE(shrink_factor, 0, "between 0 and 1");
    REFUSE(form, (enum weir_valve_form)7, "enum weir_valve_form");
}

static void wrong_pid_settings_are_refused_with_the_reason(void **state) {
    (void)state;
#define REFUSE_PID(field, value, words)                                                            \
    (settings.form = WEIR_VALVE_PID, REFUSE(field, value, words))
    REFUSE_PID(set_point_depth, 0, "set_point_depth is 0");
    REFUSE_PID(set_point_depth, NAN, "set_point_depth is nan");
    REFUSE_PID(kp_per_s, 0, "kp_per_s is 0");
    REFUSE_PID(kp_per_s, 11, "at most 1 an interval (10)");
    REFUSE_PID(ki_per_s2, 0, "makes good what an overload took");
    REFUSE_PID(ki_per_s2, -1, "ki_per_s2 is -1");
    REFUSE_PID(ki_per_s2, 20, "no queue is steady from 13.3333 on");
    REFUSE_PID(kd, -1, "kd is -1");
    REFUSE_PID(slew_per_s2, NAN, "slew_per_s2 is nan");
    settings.form = WEIR_VALVE_PID;
    settings.low_depth = 100; // the other form's settings do not matter
    make();
}

static void sizes_that_are_not_known_are_refused(void **state) {
    (void)state;
    struct weir_error error = {""};
    struct weir_valve_stats s;
    settings.size = 8;
    assert_int_equal(weir_valve_create(&valve, &settings, &error), WEIR_ESIZE);
    assert_non_null(strstr(error.text, "WEIR_VALVE_SETTINGS_INIT"));
    assert_int_equal(weir_valve_create(NULL, &settings, NULL), WEIR_EINVAL);
    set_up(NULL);
    make();
    assert_int_equal(weir_valve_stats(valve, &s, 8), WEIR_ESIZE);
    assert_int_equal(weir_valve_stats(valve, &s, sizeof s + 8), WEIR_ESIZE);
}

static unsigned maps_out;

static void *map_nothing(void *context, size_t bytes, size_t align) {
    (void)context, (void)bytes, (void)align;
    return NULL;
}

static void *map(void *context, size_t bytes, size_t align) {
    maps_out++;
    return wr_mmap_allocator.map(context, bytes, align);
}

static void unmap(void *context, void *memory, size_t bytes) {
    maps_out--;
    wr_mmap_allocator.unmap(context, memory, bytes);
}

static void memory_comes_from_the_allocator_and_goes_back(void **state) {
    (void)state;
    const struct weir_allocator none = {map_nothing, unmap, NULL};
    const struct weir_allocator some = {map, unmap, NULL};
    struct weir_error error = {""};
    settings.allocator = &none;
    assert_int_equal(weir_valve_create(&valve, &settings, &error), WEIR_ENOMEM);
    assert_null(valve);
    settings.allocator = &some;
    make();
    assert_int_equal(maps_out, 1);
    assert_int_equal(weir_valve_destroy(valve), WEIR_GRANTED);
    assert_int_equal(maps_out, 0);
    assert_int_equal(weir_valve_destroy(NULL), WEIR_GRANTED);
    valve = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(begins_at_its_base_in_thousandths_of_a_token),
        TEST(grows_below_the_low_mark_and_no_further_than_its_maximum),
        TEST(shrinks_above_the_high_mark_and_no_further_than_its_minimum),
        TEST(holds_between_the_marks),
        TEST(the_depth_is_smoothed_with_its_time_constant),
        TEST(factors_are_an_interval_however_long_the_step),
        TEST(an_overload_shrinks_at_once_whatever_the_depth_says),
        TEST(answers_to_what_was_sent_before_an_overload_shrink_nothing_more),
        TEST(one_overload_takes_at_most_half),
        TEST(calls_that_all_time_out_shrink_it_to_the_minimum),
        TEST(climbs_back_from_the_minimum_within_its_bound),
        TEST(climbs_back_when_nothing_is_sent_at_all),
        TEST(a_rate_that_is_not_used_is_not_raised),
        TEST(feels_its_way_to_where_it_was_refused),
        TEST(is_pure),
        TEST(nonsense_is_counted_and_the_rate_stays),
        TEST(extreme_samples_leave_it_finite),
        TEST(pid_follows_its_formula),
        TEST(pid_does_not_wind_up_at_a_bound),
        TEST(pid_moves_no_faster_than_its_slew_limit),
        TEST(wrong_settings_are_refused_with_the_reason),
        TEST(wrong_pid_settings_are_refused_with_the_reason),
        TEST(sizes_that_are_not_known_are_refused),
        TEST(memory_comes_from_the_allocator_and_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
