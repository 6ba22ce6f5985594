// test_valve_sim.c - the valve against simulated consumers: a step of load, consumers that become
// slow, overload and recovery, noise, and a flash sale with the capacity going down and up again.
// The bounds asserted are those that weir_valve.h and the README may promise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "valve_sim.h"

#define SEEDS 5

static struct weir_valve *make(enum weir_valve_form form) {
    struct weir_valve_settings settings = WEIR_VALVE_SETTINGS_INIT;
    struct weir_error error = {""};
    struct weir_valve *valve;
    settings.form = form;
    settings.min_per_s = 20;
    settings.base_per_s = 150;
    settings.max_per_s = 5000;
    if (weir_valve_create(&valve, &settings, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
    return valve;
}

static struct sim_result run(struct sim_options options, enum weir_valve_form form) {
    struct sim_result result;
    options.valve = make(form);
    sim_run(&options, &result);
    assert_int_equal(weir_valve_destroy(options.valve), WEIR_GRANTED);
    return result;
}

static struct sim_result run_without(struct sim_options options, uint32_t fixed_per_s) {
    struct sim_result result;
    options.fixed_per_s = fixed_per_s;
    sim_run(&options, &result);
    return result;
}

static void assert_between(const char *what, double x, double low, double high, uint64_t seed) {
    if (!(x >= low && x <= high))
        fail_msg("%s is %g, not %g to %g; seed %llu", what, x, low, high,
                 (unsigned long long)seed);
}

static double part(uint64_t a, uint64_t b) {
    return (double)a / (double)b;
}

// Capacity 500, 200, 500/s, of which the settings (20, 5000, 150) know nothing.
static void a_flash_sale_is_delivered_with_few_refusals_while_the_capacity_changes(void **state) {
    (void)state;
    static const uint32_t workers[] = {16, 32, 64}, bursts_ms[] = {2, 20, 100};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (unsigned c = 0; c < 9; c++) {
            struct sim_options options = sim_defaults();
            options.seed = seed;
            options.workers = workers[c % 3];
            options.provider_burst_ms = bursts_ms[c / 3];
            const struct sim_result none = run_without(options, 0);
            const struct sim_result r = run(options, WEIR_VALVE_MARKS);
            assert_between("delivered of possible", part(r.delivered, r.possible), 0.9, 1.05, seed);
            assert_between("refusals of none's", part(r.overloads, none.overloads), 0, 0.05, seed);
            assert_between("worst depth", (double)r.worst_depth, 0, 200, seed);
        }
    }
}

static void a_fixed_limit_is_too_low_or_too_high(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = sim_defaults();
        options.seed = seed;
        const struct sim_result r = run(options, WEIR_VALVE_MARKS);
        const struct sim_result low = run_without(options, 200);
        const struct sim_result high = run_without(options, 1000);
        assert_between("too low: delivered", part(low.delivered, r.delivered), 0, 0.8, seed);
        assert_between("too high: refusals", part(high.overloads, r.overloads), 10, 1000, seed);
    }
}

static void the_pid_form_delivers_the_flash_sale_too(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = sim_defaults();
        options.seed = seed;
        options.workers = 32;
        const struct sim_result none = run_without(options, 0);
        const struct sim_result r = run(options, WEIR_VALVE_PID);
        assert_between("delivered of possible", part(r.delivered, r.possible), 0.9, 1.05, seed);
        assert_between("refusals of none's", part(r.overloads, none.overloads), 0, 0.1, seed);
    }
}

// Consumers that never refuse, only become slower: the depth is the only signal.
static struct sim_options slow_consumers(uint64_t seed) {
    struct sim_options options = sim_defaults();
    options.seed = seed;
    options.refuses = false;
    options.flash_sale = false;
    options.arrivals_per_s = 2000;
    return options;
}

static void slow_consumers_set_the_rate_and_it_swings_within_its_bound(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct sim_result r = run(slow_consumers(seed), WEIR_VALVE_MARKS);
        assert_between("delivered of possible", part(r.delivered, r.possible), 0.93, 1.01, seed);
        assert_between("lowest rate over capacity", r.lowest_ratio, 0.7, 1, seed);
        assert_between("highest rate over capacity", r.highest_ratio, 1, 1.7, seed);
        assert_between("worst depth", (double)r.worst_depth, 0, 250, seed);
        const struct sim_result none = run_without(slow_consumers(seed), 0);
        assert_int_equal(none.worst_depth, 1024); // the queue's whole capacity
    }
}

static void the_pid_form_keeps_slow_consumers_near_its_set_point(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct sim_result r = run(slow_consumers(seed), WEIR_VALVE_PID);
        assert_between("delivered of possible", part(r.delivered, r.possible), 0.93, 1.01, seed);
        assert_between("lowest rate over capacity", r.lowest_ratio, 0.9, 1, seed);
        assert_between("highest rate over capacity", r.highest_ratio, 1, 1.1, seed);
        assert_between("worst depth", (double)r.worst_depth, 0, 200, seed);
    }
}

static void noise_of_30_percent_changes_little(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = slow_consumers(seed);
        options.noise_percent = 30;
        const struct sim_result r = run(options, WEIR_VALVE_MARKS);
        assert_between("delivered of possible", part(r.delivered, r.possible), 0.92, 1.01, seed);
        assert_between("lowest rate over capacity", r.lowest_ratio, 0.55, 1, seed);
        assert_between("highest rate over capacity", r.highest_ratio, 1, 2.3, seed);
        assert_between("worst depth", (double)r.worst_depth, 0, 350, seed);
    }
}

// The depth is given, and jitters by 30 % around a mark: nothing follows from it.
static void a_depth_that_jitters_around_a_mark_does_not_twitch_the_rate(void **state) {
    (void)state;
    static const double means[] = {16, 30, 50, 64};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (unsigned m = 0; m < 4; m++) {
            struct weir_valve *valve = make(WEIR_VALVE_MARKS);
            struct weir_sample sample = WEIR_SAMPLE_INIT;
            struct weir_valve_stats before, after;
            uint64_t random = seed;
            for (unsigned i = 0; i < 630; i++) {
                if (i == 30) weir_valve_stats(valve, &before, sizeof before); // it knows the jitter
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                const double noise = 0.6 * (double)(random >> 11) / 9007199254740992.0 - 0.3;
                sample.depth = means[m] * (1 + noise);
                weir_valve_step(valve, &sample, 100 * WEIR_MILLISECOND, NULL);
            }
            weir_valve_stats(valve, &after, sizeof after);
            assert_between("changes in a minute",
                           (double)(after.raised + after.lowered - before.raised - before.lowered),
                           0, 1, seed);
            weir_valve_destroy(valve);
        }
    }
}

static void a_step_of_load_is_met_within_two_seconds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = sim_defaults();
        options.seed = seed;
        options.capacity[1].from_ms = UINT32_MAX;
        options.flash_sale = false;
        options.arrivals_per_s = 3000; // from nothing, with the valve at 150
        options.duration_ms = 3000;
        const struct sim_result r = run(options, WEIR_VALVE_MARKS);
        assert_between("delivered of possible", part(r.delivered, r.possible), 0.8, 1.02, seed);
        assert_between("rate after 3 s", r.last_rate_per_s, 400, 600, seed);
    }
}

static void after_an_outage_the_rate_is_back_within_four_seconds(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_options options = sim_defaults();
        options.seed = seed;
        options.flash_sale = false;
        options.arrivals_per_s = 1000;
        options.capacity[1].from_ms = 10000;
        options.capacity[1].per_s = 0;
        options.capacity[2].from_ms = 15000;
        options.duration_ms = 14900;
        struct sim_result r = run(options, WEIR_VALVE_MARKS);
        assert_between("rate in the outage", r.last_rate_per_s, 20, 30, seed);
        options.duration_ms = 19000;
        r = run(options, WEIR_VALVE_MARKS);
        assert_between("rate 4 s after it", r.last_rate_per_s, 400, 600, seed);
    }
}

// What was denied downstream or upstream is never lost: it waits.
static void every_event_is_delivered_or_waiting(void **state) {
    (void)state;
    struct sim_options options = sim_defaults();
    options.arrivals_per_s = 20;
    options.duration_ms = 60000;
    options.capacity[1].from_ms = 20000;
    options.capacity[2].from_ms = 40000;
    const struct sim_result r = run(options, WEIR_VALVE_MARKS);
    assert_int_equal(r.arrived, r.delivered + r.waiting);
    assert_between("waiting at the end", (double)r.waiting, 0, 30, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flash_sale_is_delivered_with_few_refusals_while_the_capacity_changes),
        cmocka_unit_test(a_fixed_limit_is_too_low_or_too_high),
        cmocka_unit_test(the_pid_form_delivers_the_flash_sale_too),
        cmocka_unit_test(slow_consumers_set_the_rate_and_it_swings_within_its_bound),
        cmocka_unit_test(the_pid_form_keeps_slow_consumers_near_its_set_point),
        cmocka_unit_test(noise_of_30_percent_changes_little),
        cmocka_unit_test(a_depth_that_jitters_around_a_mark_does_not_twitch_the_rate),
        cmocka_unit_test(a_step_of_load_is_met_within_two_seconds),
        cmocka_unit_test(after_an_outage_the_rate_is_back_within_four_seconds),
        cmocka_unit_test(every_event_is_delivered_or_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
