// The typing indicator: at most 5 a second of each user, bursts of 20. The events bring their own
// times, as those of a log or a message queue do.
#include "example.h"
#include "weir.h"

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "typing";
    options.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 20};
    options.capacity_keys = 1000000; // users that type at the same time
    options.clock = WEIR_CLOCK_CALLER;
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");

    int64_t now_ns = 0;
    int shown = 0;
    for (int key = 0; key < 50; key++) // somebody leans on the keyboard
        shown += weir_take_at(limiter, weir_id(7), 1, now_ns, NULL) == WEIR_GRANTED;
    expect(shown == 20, "the burst is shown");
    expect(weir_take_at(limiter, weir_id(8), 1, now_ns, NULL) == WEIR_GRANTED, "others' too");

    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_take_at(limiter, weir_id(7), 1, now_ns, &answer) == WEIR_DENIED, "then no more");
    expect(answer.retry_after_ns == 200 * WEIR_MILLISECOND, "but five times a second");
    now_ns += (int64_t)answer.retry_after_ns;
    expect(weir_take_at(limiter, weir_id(7), 1, now_ns, NULL) == WEIR_GRANTED, "to the nanosecond");

    shown = 0;
    for (int ms = 0; ms < 10000; ms++) { // goes on typing for ten seconds, each millisecond
        now_ns += (int64_t)WEIR_MILLISECOND;
        shown += weir_take_at(limiter, weir_id(7), 1, now_ns, NULL) == WEIR_GRANTED;
    }
    expect(shown == 50, "5 a second");
    weir_destroy(limiter);
    return 0;
}
