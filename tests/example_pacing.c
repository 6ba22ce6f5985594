// Pacing: a mailing goes out evenly, a message every 2 ms, by a worker that sleeps in between.
#include <time.h>

#include "example.h"
#include "weir.h"

#define MESSAGES 26

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 500, .period_ns = WEIR_SECOND, .burst = 1};
    options.max_debt_tokens = 10000;
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    const double start_s = now_s();
    for (int i = 0; i < MESSAGES; i++) {
        const int result = weir_wait(limiter, weir_str("mailing"), 1, 10 * WEIR_SECOND, NULL);
        expect(result == WEIR_GRANTED, "each message gets its turn");
    }
    // 25 gaps of 2 ms; a little less, for two clocks may differ by some parts in ten thousand.
    expect(now_s() - start_s > 0.0499, "none goes out early");

    // Whoever cannot be served in time hears so at once.
    struct weir_answer answer = WEIR_ANSWER_INIT;
    weir_charge(limiter, weir_str("slow"), 10000, NULL); // 20 seconds' worth
    expect(weir_wait(limiter, weir_str("slow"), 1, WEIR_SECOND, &answer) == WEIR_DENIED,
           "not within a second");
    expect(answer.retry_after_ns > WEIR_SECOND, "and hears when");
    weir_close(limiter);
    expect(weir_wait(limiter, weir_str("mailing"), 1, WEIR_FOREVER, NULL) == WEIR_ECLOSED,
           "after close nobody waits");
    weir_destroy(limiter);
    return 0;
}
