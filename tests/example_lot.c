// example_lot.c - a limiter and a lot: what is denied waits its turn, and nothing is lost.
//
// Twenty messages to each of three users at once, where a user may have five a second and a burst
// of five. The time is simulated; a real program would read a monotonic clock, and sleep where this
// one moves its clock on. Exits with 1 if an event is lost or a limit broken.
#include <stdio.h>
#include <stdlib.h>

#include "weir_lot.h"

#define MESSAGES 60
#define USERS 3

struct message {
    struct weir_lot_node node; // the lot's part
    unsigned user;
};

static struct weir *limiter;
static struct weir_lot *lot;
static unsigned sent[USERS], dead;

static void check(bool right, const char *what) {
    if (right) return;
    fprintf(stderr, "example_lot: %s\n", what);
    exit(1);
}

// Take, else park, else give up: for new messages and for those that come back.
static void offer(struct message *message, int64_t now_ns) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_id(message->user);
    ask.now_ns = now_ns;
    const int fate = weir_lot_offer(lot, limiter, &ask, &message->node, now_ns, NULL);
    check(fate >= 0, "an offer failed");
    if (fate == WEIR_PARKED) return; // the lot has it
    if (fate == WEIR_SEND) {
        sent[message->user]++;
    } else {
        dead++;
        printf("user %u, after %u tries: %s\n", message->user, message->node.tries,
               weir_fate_words(fate));
    }
}

// Takes what is due, sleeps until more is, and ends when the lot is empty.
static int64_t work_off(int64_t now_ns) {
    struct weir_lot_node *due[16];
    for (;;) {
        const size_t count = weir_lot_take(lot, now_ns, due, 16);
        for (size_t i = 0; i < count; i++)
            offer(WEIR_LOT_EVENT(due[i], struct message, node), now_ns);
        const uint64_t sleep_ns = weir_lot_next_ns(lot, now_ns);
        if (sleep_ns == WEIR_FOREVER) return now_ns;
        now_ns += (int64_t)sleep_ns;
    }
}

int main(void) {
    static struct message messages[MESSAGES];
    struct weir_error error;
    struct weir_options limit = WEIR_OPTIONS_INIT;
    limit.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 5};
    limit.clock = WEIR_CLOCK_CALLER;
    check(weir_create(&limiter, &limit, &error) == WEIR_GRANTED, "no limiter");
    struct weir_lot_options parking = WEIR_LOT_OPTIONS_INIT;
    parking.capacity = 1000;
    parking.max_age_ns = 10 * WEIR_SECOND;
    check(weir_lot_create(&lot, &parking, &error) == WEIR_GRANTED, "no lot");

    for (unsigned i = 0; i < MESSAGES; i++) {
        messages[i].user = i % USERS;
        offer(&messages[i], 0);
    }
    // One more, and it is cancelled before its time: its ticket says which.
    struct message *regretted = malloc(sizeof *regretted);
    check(regretted != NULL, "no memory");
    *regretted = (struct message){WEIR_LOT_NODE_INIT, 0};
    struct weir_lot_ticket ticket;
    check(weir_lot_park(lot, &regretted->node, WEIR_HOUR, 0, &ticket) == WEIR_GRANTED, "no place");
    check(weir_lot_cancel(lot, ticket) == &regretted->node, "it was not there");
    free(regretted); // ours again

    const int64_t end_ns = work_off(0);
    printf("sent %u, %u and %u in %.3f s\n", sent[0], sent[1], sent[2], (double)end_ns / 1e9);
    // 5 at once, then 15 at 5 a second; a message is never early, so this is exact.
    check(sent[0] == 20 && sent[1] == 20 && sent[2] == 20 && dead == 0, "a message was lost");
    check(end_ns == 3 * (int64_t)WEIR_SECOND, "the limit was not kept");
    struct weir_lot_stats s;
    check(weir_lot_stats(lot, &s, sizeof s) == WEIR_GRANTED, "no numbers");
    check(s.held == 0 && s.parked == s.retried + s.cancelled + s.drained, "the balance is wrong");
    weir_lot_destroy(lot);
    weir_destroy(limiter);
    return 0;
}
