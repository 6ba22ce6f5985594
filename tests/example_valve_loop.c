// A valve in a loop of one's own: a program that has a timer already steps it there, with what it
// knows of the provider, and the limiter's rate follows.
#include "example.h"
#include "weir_valve.h"

#define INTERVAL_NS (100 * WEIR_MILLISECOND)

static struct weir *create_limiter(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 100, .period_ns = WEIR_SECOND, .burst = 10};
    options.max_rate_tokens = 1000;
    options.max_rate_period_ns = WEIR_SECOND;
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    return limiter;
}

// Every 100 ms: so much was sent, so many of the answers said "429", and nothing waits. Returns the
// new rate.
static double tick(struct weir_valve *valve, struct weir *limiter, double sent,
                   uint64_t overloads) {
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    sample.granted_tokens = (uint64_t)sent; // not set: as the limiter's counters say
    sample.overloads = overloads;
    sample.depth = 0;
    expect(weir_valve_drive(valve, limiter, &sample, INTERVAL_NS) == WEIR_GRANTED, "a step");
    struct weir_limit limit, set;
    weir_valve_limit(valve, &limit);
    weir_get_limit(limiter, &set);
    expect(limit.tokens == set.tokens && limit.burst == set.burst, "the limiter has the rate");
    return (double)limit.tokens / ((double)limit.period_ns / 1e9);
}

int main(void) {
    struct weir *limiter = create_limiter();
    struct weir_valve_settings settings = WEIR_VALVE_SETTINGS_INIT;
    settings.min_per_s = 20;
    settings.base_per_s = 100;
    settings.max_per_s = 1000;
    struct weir_valve *valve;
    expect(weir_valve_create(&valve, &settings, NULL) == WEIR_GRANTED, "a valve is made");
    struct weir_error error = {""};
    expect(weir_valve_fits(valve, limiter, &error) == WEIR_GRANTED, error.text);

    double rate_per_s = settings.base_per_s;
    for (int i = 0; i < 50; i++) rate_per_s = tick(valve, limiter, rate_per_s / 10, 0);
    expect(rate_per_s > 900, "while all goes well it rises");
    const double before_per_s = rate_per_s;
    rate_per_s = tick(valve, limiter, rate_per_s / 10, 25);
    printf("%.0f/s before an overload, %.0f/s after\n", before_per_s, rate_per_s);
    expect(rate_per_s < before_per_s, "an overload lowers it at once");
    expect(weir_valve_destroy(valve) == WEIR_GRANTED, "the valve is gone");
    weir_destroy(limiter);
    return 0;
}
