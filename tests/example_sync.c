// One limit on two hosts. Here both are in one program, which changes nothing: each has a limiter
// and a sync of its own, and they meet in Redis, whose URL is the argument or WEIR_REDIS.
#include <string.h>
#include <time.h>

#include "example.h"
#include "weir_sync.h"

struct host {
    struct weir_sync *sync;
    struct weir *limiter;
};

static struct host join(const char *url) {
    struct host host;
    struct weir_error error = {""};
    struct weir_options limit = WEIR_OPTIONS_INIT;
    limit.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = 100};
    expect(weir_create(&host.limiter, &limit, &error) == WEIR_GRANTED, error.text);
    struct weir_sync_options options = WEIR_SYNC_OPTIONS_INIT;
    options.url = url;
    options.prefix = "example_sync:";
    expect(weir_sync_create(&host.sync, &options, &error) == WEIR_GRANTED, error.text);
    expect(weir_sync_attach(host.sync, host.limiter, "mails", NULL, &error) == WEIR_GRANTED,
           error.text);
    expect(weir_sync_start(host.sync, &error) == WEIR_GRANTED, error.text);
    return host;
}

static void leave(struct host host) {
    expect(weir_sync_stop(host.sync, 5 * WEIR_SECOND) == WEIR_GRANTED, "all is reported");
    expect(weir_sync_detach(host.sync, host.limiter, 0) == WEIR_GRANTED, "detached");
    weir_sync_destroy(host.sync);
    weir_destroy(host.limiter);
}

static uint64_t take(struct host host, int asks) {
    uint64_t granted = 0;
    for (int i = 0; i < asks; i++)
        granted += weir_take(host.limiter, weir_str("user:7"), 1, NULL) == WEIR_GRANTED;
    return granted;
}

// Waits until Redis has heard of all that this host granted.
static void wait_for_report(struct host host, uint64_t tokens) {
    struct weir_sync_limiter_stats stats;
    for (int i = 0; i < 1000; i++) {
        expect(weir_sync_limiter_stats(host.sync, host.limiter, &stats, sizeof stats) ==
                   WEIR_GRANTED, "stats");
        if (stats.reported_tokens == tokens && stats.pending_tokens == 0) return;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    struct weir_sync_stats sync;
    expect(weir_sync_stats(host.sync, &sync, sizeof sync) == WEIR_GRANTED, "stats");
    expect(false, sync.last_error); // what is wrong, and the remedy
}

static void print_metrics(struct weir_sync *sync) {
    static char text[32768];
    size_t length;
    expect(weir_sync_metrics(sync, text, sizeof text, &length) == WEIR_GRANTED, "metrics");
    expect(strstr(text, "weir_sync_reports_total") != NULL, "with the reports");
    fputs(text, stdout);
}

int main(int count, char **arguments) {
    const char *url = count > 1 ? arguments[1] : getenv("WEIR_REDIS");
    struct host a = join(url), b = join(url);
    expect(take(a, 60) == 60, "a decides by itself");
    wait_for_report(a, 60);
    // b knows nothing of that until its first report is answered. Then it has 39 left at most.
    expect(take(b, 1) == 1, "so does b");
    wait_for_report(b, 1);
    const uint64_t more = take(b, 100);
    printf("a: 60, b: 1 and %d\n", (int)more);
    expect(more <= 39, "together they keep the limit");

    // A new limit has the next generation, on every host.
    struct weir_error error = {""};
    const struct weir_limit slower = {.tokens = 1, .period_ns = 2 * WEIR_HOUR, .burst = 50};
    expect(weir_sync_set_limit(a.sync, a.limiter, &slower, 1, &error) == WEIR_GRANTED, error.text);
    expect(weir_sync_set_limit(b.sync, b.limiter, &slower, 1, &error) == WEIR_GRANTED, error.text);
    struct weir_sync_stats stats;
    expect(weir_sync_stats(a.sync, &stats, sizeof stats) == WEIR_GRANTED, "stats");
    expect(stats.connected && stats.reports > 0 && !stats.outage, stats.last_error);
    print_metrics(a.sync);
    leave(a);
    leave(b);
    return 0;
}
