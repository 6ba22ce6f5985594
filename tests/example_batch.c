// A batch: a proxy reads many requests from a socket at once, and asks for all of them in one call.
// A paying customer has twice the limit of the others.
#include <string.h>

#include "example.h"
#include "weir.h"

#define REQUESTS 12

static const struct weir_weight paying = {.num = 2, .den = 1};

// Requests of two customers in turn, ann's being the even ones.
static void read_requests(struct weir_ask *asks, struct weir_key ann, struct weir_key bob) {
    for (int i = 0; i < REQUESTS; i++) {
        asks[i] = (struct weir_ask)WEIR_ASK_INIT;
        asks[i].key = i % 2 == 0 ? ann : bob;
        if (i % 2 == 0) asks[i].weight = paying;
    }
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = 2};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");

    // A connection's customer stays the same: the key is hashed once.
    struct weir_prepared ann, bob;
    weir_prepare(limiter, weir_str("ann"), &ann);
    weir_prepare(limiter, weir_str("bob"), &bob);
    struct weir_ask asks[REQUESTS];
    int results[REQUESTS];
    read_requests(asks, weir_prepared_key(&ann), weir_prepared_key(&bob));
    const int first_no = weir_do_batch(limiter, asks, REQUESTS, results, NULL);
    expect(first_no == WEIR_DENIED, "not all of them pass");
    int passed[2] = {0, 0};
    for (int i = 0; i < REQUESTS; i++) {
        if (results[i] == WEIR_GRANTED) passed[i % 2]++;
        else printf("request %d: %s\n", i, weir_strerror(results[i]));
    }
    expect(passed[0] == 4 && passed[1] == 2, "twice as many for whoever pays");

    // The same limiter one ask at a time, with the name instead of what was prepared.
    struct weir_ask ask = WEIR_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    ask.key = weir_str("ann");
    ask.weight = paying;
    expect(weir_do(limiter, &ask, &answer) == WEIR_DENIED, "it is the same key");
    expect(answer.retry_after_ns <= WEIR_HOUR / 2, "and hers comes back twice as fast");
    ask.weight.den = 0;
    const int result = weir_do(limiter, &ask, NULL);
    expect(result < 0 && strlen(weir_strerror(result)) > 0, "a mistake has words");
    weir_destroy(limiter);
    return 0;
}
