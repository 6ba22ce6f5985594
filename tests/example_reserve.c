// Reservations: a scheduler books the time of each reminder beforehand, and may call one off.
#include "example.h"
#include "weir.h"

#define REMINDERS 5

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_MINUTE, .burst = 1};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    const struct weir_key user = weir_str("user:7");

    // Each is due a minute after the one before; a timer would be set to that.
    struct weir_answer answer = WEIR_ANSWER_INIT;
    uint64_t due_s[REMINDERS];
    for (int i = 0; i < REMINDERS; i++) {
        expect(weir_reserve(limiter, user, 1, WEIR_HOUR, &answer) == WEIR_GRANTED, "booked");
        due_s[i] = (answer.retry_after_ns + WEIR_SECOND - 1) / WEIR_SECOND;
        printf("reminder %d in %d s\n", i, (int)due_s[i]);
    }
    expect(due_s[0] == 0, "the first one is due now");
    for (int i = 1; i < REMINDERS; i++)
        expect(due_s[i] > due_s[i - 1] && due_s[i] <= 60 * (uint64_t)i, "a minute apart");

    // Nothing is booked that would come too late.
    expect(weir_reserve(limiter, user, 1, WEIR_MINUTE, &answer) == WEIR_DENIED, "not in a minute");
    // The last one is called off, and its time is the next one's.
    expect(weir_cancel(limiter, user, 1, NULL) == WEIR_GRANTED, "called off");
    expect(weir_reserve(limiter, user, 1, WEIR_HOUR, &answer) == WEIR_GRANTED, "booked again");
    expect(answer.retry_after_ns <= due_s[4] * WEIR_SECOND, "at that time");

    // A thread may also sleep until its turn. This user has 6,000 times the limit: 100 a second.
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str("user:8");
    ask.weight = (struct weir_weight){.num = 6000, .den = 1};
    ask.cost = 6000; // all that was saved up
    expect(weir_do(limiter, &ask, NULL) == WEIR_GRANTED, "the burst");
    ask.cost = 1;
    for (int i = 0; i < 3; i++)
        expect(weir_do_wait(limiter, &ask, WEIR_MINUTE, NULL) == WEIR_GRANTED, "its turn came");
    weir_destroy(limiter);
    return 0;
}
