// Does a limiter keep its limit when threads ask at once? Threads ask for one key as fast as they
// can; what was granted is counted and held against burst + rate x time.
//
//   overgrant [--threads 2] [--rate 2M] [--burst 100k] [--seconds 2] [--json FILE]
// The time is from the first reading of any thread to the last one, each taken outside all of that
// thread's asks, so it is never too short. weir is held against its own clock, which is what it
// promises (it leans towards the system's by at most 500 ppm); the baseline against
// CLOCK_MONOTONIC. bench/go/rival.go puts the same load on Go's limiter.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_clock.h"
#include "limiter.h"
#include "text.h"

#define THREADS_MAX 256
#define ASKS_A_READING 64

struct load {
    unsigned threads;
    uint64_t seconds;
    struct weir_limit limit;
};

struct worker {
    pthread_t thread;
    const struct bench_limiter *of;
    void *limiter;
    uint64_t (*now_ns)(void);
    pthread_barrier_t *start;
    uint64_t run_ns;
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t asked;
    uint64_t granted;
};

static uint64_t library_ns(void) {
    return bench_library_ns(wr_ticks_fenced());
}

static void *work(void *argument) {
    static const struct bench_key key = {"user:1234567", 12};
    struct worker *w = argument;
    pthread_barrier_wait(w->start);
    w->first_ns = w->last_ns = w->now_ns();
    while (w->last_ns - w->first_ns < w->run_ns) {
        w->granted += w->of->same(w->limiter, &key, ASKS_A_READING);
        w->asked += ASKS_A_READING;
        w->last_ns = w->now_ns();
    }
    return NULL;
}

struct outcome {
    uint64_t asked;
    uint64_t granted;
    uint64_t bound;
};

// burst + rate x (time + 1 ns), rounded down: what the limit allows.
static uint64_t bound_of(const struct weir_limit *limit, uint64_t window_ns) {
    __extension__ typedef unsigned __int128 wide;
    return limit->burst + (uint64_t)((wide)limit->tokens * (window_ns + 1) / limit->period_ns);
}

static struct outcome add_up(const struct load *load, const struct worker *workers) {
    struct outcome outcome = {0};
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (unsigned i = 0; i < load->threads; i++) {
        if (workers[i].first_ns < first_ns) first_ns = workers[i].first_ns;
        if (workers[i].last_ns > last_ns) last_ns = workers[i].last_ns;
        outcome.asked += workers[i].asked;
        outcome.granted += workers[i].granted;
    }
    outcome.bound = bound_of(&load->limit, last_ns - first_ns);
    return outcome;
}

static struct outcome measure(const struct load *load, const struct bench_limiter *of) {
    static struct worker workers[THREADS_MAX];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, load->threads);
    void *limiter = of->create(&load->limit, 1000);
    const bool own_clock = wr_clock_init() && strcmp(of->name, "take") == 0;
    for (unsigned i = 0; i < load->threads; i++) {
        workers[i] = (struct worker){.of = of, .limiter = limiter, .start = &start,
                                     .now_ns = own_clock ? library_ns : wr_clock_monotonic_ns,
                                     .run_ns = load->seconds * WEIR_SECOND};
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_fail("cannot start thread %u", i);
    }
    for (unsigned i = 0; i < load->threads; i++) pthread_join(workers[i].thread, NULL);
    of->destroy(limiter);
    pthread_barrier_destroy(&start);
    return add_up(load, workers);
}

static void say(FILE *json, const char *name, const struct outcome *o) {
    const uint64_t over = o->granted > o->bound ? o->granted - o->bound : 0;
    printf("%-8s asked %12llu  granted %10llu  bound %10llu  over %8llu  (%.4f %% of the bound)\n",
           name, (unsigned long long)o->asked, (unsigned long long)o->granted,
           (unsigned long long)o->bound, (unsigned long long)over,
           100 * (double)o->granted / (double)o->bound);
    if (json == NULL) return;
    fprintf(json,
            "{\"name\": \"overgrant/%s\", \"asked\": %llu, \"granted\": %llu, "
            "\"bound\": %llu}\n",
            name, (unsigned long long)o->asked, (unsigned long long)o->granted,
            (unsigned long long)o->bound);
}

int main(int argc, char **argv) {
    struct load load = {2, 2, {2000000, WEIR_SECOND, 100000}};
    FILE *json = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0) {
            load.threads = (unsigned)bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--rate") == 0) {
            load.limit.tokens = bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--burst") == 0) {
            load.limit.burst = bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            load.seconds = bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--json") == 0) {
            if ((json = fopen(bench_option_text(argc, argv, &i), "we")) == NULL)
                bench_fail("cannot write %s", argv[i]);
        } else {
            const bool help = strcmp(argv[i], "--help") == 0;
            fprintf(help ? stdout : stderr, "usage: overgrant [--threads 2] [--rate 2M] "
                                            "[--burst 100k] [--seconds 2] [--json FILE]\n");
            return help ? 0 : 2;
        }
    }
    if (load.threads > THREADS_MAX) bench_fail("at most %d threads", THREADS_MAX);
    for (const struct bench_limiter *const *of = bench_limiters(); *of != NULL; of++) {
        if ((*of)->same == NULL || (*of)->variant[0] != '\0') continue;
        const struct outcome outcome = measure(&load, *of);
        say(json, (*of)->name, &outcome);
    }
    if (json != NULL && fclose(json) != 0) bench_fail("the results could not be written");
    return 0;
}
