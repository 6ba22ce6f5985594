// example_valve.c - a valve: the rate follows what a provider takes, who says "429" above that.
//
// The provider takes 400 a second, then 100, then 400 again; nobody tells the valve. It is stepped
// by hand on a simulated clock, as in a loop of one's own; weir_valve_start does the same in a
// thread, shown at the end. Exits with 1 if the rate does not follow.
#include <stdio.h>
#include <stdlib.h>

#include "weir_valve.h"

#define INTERVAL_NS (100 * WEIR_MILLISECOND)

static void check(bool right, const char *what) {
    if (right) return;
    fprintf(stderr, "example_valve: %s\n", what);
    exit(1);
}

// What came back in an interval in which `sent` calls were made to a provider of that capacity.
static struct weir_sample answers(double sent, double capacity_per_s) {
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    const double taken = capacity_per_s / 10;
    sample.depth = 0; // our workers are quick: nothing waits for them
    sample.overloads = sent > taken ? (uint64_t)(sent - taken + 0.5) : 0;
    sample.granted_tokens = (uint64_t)(sent + 0.5);
    return sample;
}

// Ten seconds of a provider. Returns the mean rate of the last five.
static double ten_seconds(struct weir_valve *valve, double capacity_per_s) {
    double sum_per_s = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct weir_valve_stats now;
        struct weir_limit limit;
        weir_valve_stats(valve, &now, sizeof now);
        const struct weir_sample sample = answers(now.rate_per_s / 10, capacity_per_s);
        weir_valve_step(valve, &sample, INTERVAL_NS, &limit); // and weir_set_limit(limiter, &limit)
        if (i >= 50) sum_per_s += now.rate_per_s;
    }
    printf("capacity %3.0f/s: rate %.0f/s\n", capacity_per_s, sum_per_s / 50);
    return sum_per_s / 50;
}

static int nothing_waits(void *context, struct weir_sample *sample) {
    (void)context;
    sample->depth = 0;
    return 0;
}

static void in_a_thread(struct weir_valve *valve) {
    struct weir *limiter;
    struct weir_error error = {""};
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_SECOND, .burst = 1};
    options.max_rate_tokens = 5000; // at least the valve's max_per_s
    options.max_rate_period_ns = WEIR_SECOND;
    check(weir_create(&limiter, &options, &error) == WEIR_GRANTED, error.text);
    check(weir_valve_start(valve, limiter, nothing_waits, NULL, &error) == WEIR_GRANTED,
          error.text);
    struct weir_limit set;
    struct weir_valve_stats now;
    weir_get_limit(limiter, &set);
    weir_valve_stats(valve, &now, sizeof now);
    check(set.tokens > 1000 && now.running, "the limiter is not driven");
    check(weir_valve_stop(valve) == WEIR_GRANTED, "the callback did not return");
    weir_destroy(limiter);
}

int main(void) {
    struct weir_valve *valve;
    struct weir_error error = {""};
    struct weir_valve_settings settings = WEIR_VALVE_SETTINGS_INIT;
    settings.min_per_s = 20;
    settings.base_per_s = 150;
    settings.max_per_s = 5000;
    check(weir_valve_create(&valve, &settings, &error) == WEIR_GRANTED, error.text);
    const double capacities[] = {400, 100, 400};
    for (unsigned i = 0; i < 3; i++) {
        const double rate_per_s = ten_seconds(valve, capacities[i]);
        check(rate_per_s > 0.85 * capacities[i] && rate_per_s < 1.15 * capacities[i],
              "the rate does not follow the capacity");
    }
    in_a_thread(valve);
    // A mistake is refused in words, and nothing is made.
    settings.shrink_factor = 1.2;
    struct weir_valve *wrong;
    check(weir_valve_create(&wrong, &settings, &error) == WEIR_EINVAL, "a wrong factor was taken");
    printf("%s\n", error.text);
    check(weir_valve_destroy(valve) == WEIR_GRANTED, "the valve is busy");
    return 0;
}
