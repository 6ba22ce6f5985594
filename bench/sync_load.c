// A limiter under a sync with so many keys touched a second: what the sync's thread makes of it.
//
//   sync_load URL KEYS_PER_SECOND SECONDS [KEYS]
//
// Asks of KEYS keys (1M) in turn, so many a second, and prints JSON: keys reported a second, their
// lag, the thread's CPU time, bytes a key on the wire, what was granted, reported and lost. One
// worker; the figures are of the sync, not of the decisions.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "weir_sync.h"

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

static int fail(const char *what, const char *why) {
    fprintf(stderr, "sync_load: %s: %s\n", what, why);
    return 1;
}

// Asks at an even rate until the time is over. Returns how many asks were granted.
static uint64_t load(struct weir *limiter, uint64_t keys_per_second, uint64_t seconds,
                     uint64_t keys) {
    const uint64_t start = now_ns();
    uint64_t asked = 0, granted = 0;
    for (uint64_t passed = 0; passed < seconds * WEIR_SECOND; passed = now_ns() - start) {
        const uint64_t due = (uint64_t)((double)passed * 1e-9 * (double)keys_per_second);
        for (; asked < due; asked++)
            granted += weir_take(limiter, weir_id(asked % keys), 1, NULL) == WEIR_GRANTED;
        const struct timespec pause = {0, 200000};
        nanosleep(&pause, NULL);
    }
    return granted;
}

struct figures {
    struct weir_sync_stats before;
    struct weir_sync_stats after;
    struct weir_sync_limiter_stats limiter;
    double seconds;
    uint64_t granted;
    int stopped;
};

static void print(const struct figures *f) {
    const uint64_t keys = f->after.keys - f->before.keys;
    const double each = keys != 0 ? 1 / (double)keys : 0;
    printf("{\"seconds\": %.3f, \"granted\": %" PRIu64 ", \"keys_per_second\": %.0f, "
           "\"keys_per_report\": %.1f, \"lag_ms\": %.1f, \"rtt_ms\": %.2f, \"cpu_percent\": %.1f, "
           "\"cpu_us_per_key\": %.2f, \"bytes_out_per_key\": %.1f, \"bytes_in_per_key\": %.1f, "
           "\"known_keys\": %" PRIu64 ", \"memory_bytes\": %" PRIu64
           ", \"reported_tokens\": %" PRIu64
           ", \"pending_tokens\": %" PRIu64 ", \"lost_tokens\": %" PRIu64
           ", \"excess_bound_tokens\": %.1f, \"unnamed\": %" PRIu64
           ", \"flushed\": %s, \"last_error\": \"%s\"}\n",
           f->seconds, f->granted, (double)keys / f->seconds,
           (double)keys / (double)(f->after.reports - f->before.reports + (keys == 0)),
           (double)f->after.lag_ns * 1e-6, (double)f->after.rtt_ns * 1e-6,
           (double)(f->after.cpu_ns - f->before.cpu_ns) * 1e-7 / f->seconds,
           (double)(f->after.cpu_ns - f->before.cpu_ns) * 1e-3 * each,
           (double)(f->after.bytes_out - f->before.bytes_out) * each,
           (double)(f->after.bytes_in - f->before.bytes_in) * each, f->after.known_keys,
           f->after.memory_bytes, f->limiter.reported_tokens, f->limiter.pending_tokens,
           f->limiter.lost_tokens, f->limiter.excess_bound_tokens, f->limiter.unnamed,
           f->stopped == WEIR_GRANTED ? "true" : "false", f->after.last_error);
}

int main(int argc, char **argv) {
    if (argc < 4 || argc > 5) return fail("usage", "sync_load URL KEYS_PER_SECOND SECONDS [KEYS]");
    const uint64_t rate = strtoull(argv[2], NULL, 10), seconds = strtoull(argv[3], NULL, 10);
    const uint64_t keys = argc == 5 ? strtoull(argv[4], NULL, 10) : 1000000;
    struct weir_error error;
    struct weir *limiter;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){100, WEIR_SECOND, 100};
    options.capacity_keys = keys;
    if (weir_create(&limiter, &options, &error) != WEIR_GRANTED) return fail("limiter", error.text);
    struct weir_sync *sync;
    struct weir_sync_options so = WEIR_SYNC_OPTIONS_INIT;
    so.url = argv[1];
    so.names = 65536;
    if (weir_sync_create(&sync, &so, &error) != WEIR_GRANTED ||
        weir_sync_attach(sync, limiter, "load", NULL, &error) != WEIR_GRANTED ||
        weir_sync_start(sync, &error) != WEIR_GRANTED)
        return fail("sync", error.text);
    struct figures f;
    (void)load(limiter, rate, 2, keys); // names and the first epochs
    (void)weir_sync_stats(sync, &f.before, sizeof f.before);
    const uint64_t start = now_ns();
    f.granted = load(limiter, rate, seconds, keys);
    (void)weir_sync_stats(sync, &f.after, sizeof f.after);
    f.seconds = (double)(now_ns() - start) * 1e-9;
    f.stopped = weir_sync_stop(sync, 30 * WEIR_SECOND);
    (void)weir_sync_limiter_stats(sync, limiter, &f.limiter, sizeof f.limiter);
    print(&f);
    weir_sync_destroy(sync);
    weir_destroy(limiter);
    return 0;
}
