// A simulation: what would this limit, and a change of it at noon, have done to a day? The limiter
// has no clock of its own; every call says what time it is. A day takes some milliseconds.
#include "example.h"
#include "weir.h"

static struct weir *create(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.clock = WEIR_CLOCK_CALLER;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_MINUTE, .burst = 1};
    options.max_rate_tokens = 10; // the fastest that it will be changed to
    options.max_rate_period_ns = WEIR_MINUTE;
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    return limiter;
}

// One message every ten seconds from `from_h` to `to_h` o'clock. Returns how many passed.
static int simulate(struct weir *limiter, int from_h, int to_h) {
    int passed = 0;
    const int64_t end_ns = to_h * (int64_t)WEIR_HOUR, step_ns = 10 * (int64_t)WEIR_SECOND;
    for (int64_t now_ns = from_h * (int64_t)WEIR_HOUR; now_ns < end_ns; now_ns += step_ns)
        passed += weir_take_at(limiter, weir_str("user:7"), 1, now_ns, NULL) == WEIR_GRANTED;
    return passed;
}

static bool count(const struct weir_slot *slot, void *context) {
    *(uint64_t *)context = slot->full_after_ns;
    return true;
}

int main(void) {
    struct weir *limiter = create();
    const int64_t noon_ns = 12 * (int64_t)WEIR_HOUR, evening_ns = 24 * (int64_t)WEIR_HOUR;
    const int morning = simulate(limiter, 0, 12);
    const struct weir_limit faster = {.tokens = 3, .period_ns = WEIR_MINUTE, .burst = 3};
    expect(weir_set_limit_at(limiter, &faster, noon_ns, NULL) == WEIR_GRANTED, "it is changed");
    const int afternoon = simulate(limiter, 12, 24);
    printf("passed: %d before noon, %d after\n", morning, afternoon);
    expect(morning == 12 * 60, "one a minute");
    expect(afternoon == 12 * 60 * 3, "then three");

    // What is left of it: a bucket that will be full soon, and then is in no table any more.
    uint64_t full_after_ns = 0;
    expect(weir_each_at(limiter, evening_ns, count, &full_after_ns) == 1, "one is not full");
    const int64_t full_ns = evening_ns + (int64_t)full_after_ns;
    expect(weir_each_at(limiter, full_ns, count, &full_after_ns) == 0, "until then");
    weir_destroy(limiter);
    return 0;
}
