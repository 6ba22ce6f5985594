// A strict limit: ten coupons for all hosts together, and not one more. Two hosts (in one program
// here) ask Redis, whose URL is the argument or WEIR_REDIS; what a host knows to be too much, it
// refuses itself.
#include <time.h>

#include "example.h"
#include "weir_sync.h"

#define ASKS 8

struct host {
    struct weir_sync *sync;
    struct weir *limiter;
    struct weir_sync_ask asks[ASKS];
};

static void join(struct host *host, const char *url) {
    struct weir_error error = {""};
    struct weir_options limit = WEIR_OPTIONS_INIT;
    limit.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_DAY, .burst = 10};
    expect(weir_create(&host->limiter, &limit, &error) == WEIR_GRANTED, error.text);
    struct weir_sync_options options = WEIR_SYNC_OPTIONS_INIT;
    options.url = url;
    options.prefix = "example_strict:";
    options.outage = WEIR_SYNC_CLOSED; // no Redis, no coupons
    expect(weir_sync_create(&host->sync, &options, &error) == WEIR_GRANTED, error.text);
    struct weir_sync_limiter_options strict = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    strict.mode = WEIR_SYNC_STRICT;
    expect(weir_sync_attach(host->sync, host->limiter, "coupons", &strict, &error) == WEIR_GRANTED,
           error.text);
    expect(weir_sync_start(host->sync, &error) == WEIR_GRANTED, error.text);
}

static void leave(struct host *host) {
    weir_sync_destroy(host->sync); // stops and detaches
    weir_destroy(host->limiter);
}

// Asks without waiting; the answers come later, to be polled for, or by a callback.
static void submit(struct host *host) {
    for (int i = 0; i < ASKS; i++) {
        host->asks[i] = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
        host->asks[i].key = weir_str("spring");
        host->asks[i].timeout_ns = 10 * WEIR_SECOND;
        const int result = weir_sync_submit(host->sync, host->limiter, &host->asks[i]);
        expect(result == WEIR_PENDING || result == WEIR_DENIED, weir_strerror(result));
    }
}

static int count_granted(struct host *host) {
    int granted = 0;
    for (int i = 0; i < ASKS; i++) {
        int result;
        while ((result = weir_sync_poll(&host->asks[i])) == WEIR_PENDING)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        expect(result == WEIR_GRANTED || result == WEIR_DENIED, weir_strerror(result));
        granted += result == WEIR_GRANTED;
    }
    return granted;
}

int main(int count, char **arguments) {
    const char *url = count > 1 ? arguments[1] : getenv("WEIR_REDIS");
    static struct host a, b;
    join(&a, url);
    join(&b, url);
    submit(&a);
    submit(&b);
    const int granted_a = count_granted(&a), granted_b = count_granted(&b);
    printf("a: %d, b: %d\n", granted_a, granted_b);
    expect(granted_a + granted_b == 10, "ten in all");

    // Where a thread has nothing else to do: ask, and sleep until the answer.
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const int result = weir_sync_take(b.sync, b.limiter, weir_str("spring"), 1, 10 * WEIR_SECOND,
                                      &answer);
    expect(result == WEIR_DENIED && answer.retry_after_ns > WEIR_HOUR, "there is no eleventh");
    leave(&a);
    leave(&b);
    return 0;
}
