// pool_metrics.c - the pool's own families, then those of its limiters.
#include "pool_metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMITERS_TRIES 3
#define OCTAVE_FIRST 15 // buckets up to 1 ms and on, each twice as long
#define OCTAVE_LAST 31

static void write_counts(FILE *out, const struct wr_pool *pool) {
    struct wr_pool_counts counts;
    wr_ledger_read(&pool->ledger, &counts);
    for (int i = 0; i < WR_POOL_COUNT_END; i++) {
        const char *word = wr_pool_count_word((enum wr_pool_count)i);
        fprintf(out, "# TYPE weir_pool_%s counter\n# HELP weir_pool_%s %s\n"
                     "weir_pool_%s_total %" PRIu64 "\n", word, word,
                wr_pool_count_summary((enum wr_pool_count)i), word, counts.of[i]);
    }
}

static void write_gauge(FILE *out, const char *name, const char *help, double value) {
    fprintf(out, "# TYPE weir_pool_%s gauge\n# HELP weir_pool_%s %s\nweir_pool_%s ", name, name,
            help, name);
    if (isinf(value)) fprintf(out, "+Inf\n");
    else fprintf(out, "%.3f\n", value);
}

static void write_gauges(FILE *out, const struct wr_pool *pool) {
    write_gauge(out, "queue_depth", "events that wait for a worker",
                wr_pool_queue_depth(pool->queue));
    write_gauge(out, "workers_busy", "workers that wait for the provider's answer",
                wr_pool_busy(pool));
    write_gauge(out, "workers", "all workers", pool->options.workers);
    write_gauge(out, "parked", "events that wait for their retry",
                (double)wr_pool_parked(pool));
    write_gauge(out, "rate", "the provider's limit, events a second", wr_pool_rate_per_s(pool));
}

static void write_latency(FILE *out, const struct wr_pool *pool) {
    struct wr_latencies latencies;
    uint64_t below = 0;
    unsigned bucket = 0;
    wr_latency_read(&pool->latency, &latencies);
    fprintf(out, "# TYPE weir_pool_delivery_seconds histogram\n# UNIT weir_pool_delivery_seconds "
                 "seconds\n# HELP weir_pool_delivery_seconds from arrival to delivery\n");
    for (unsigned octave = OCTAVE_FIRST; octave <= OCTAVE_LAST; octave++) {
        for (; bucket < WR_LATENCY_PARTS * (octave + 1); bucket++)
            below += latencies.counts[bucket];
        fprintf(out, "weir_pool_delivery_seconds_bucket{le=\"%.9f\"} %" PRIu64 "\n",
                (double)wr_latency_bucket_end_ns(bucket - 1) / 1e9, below);
    }
    fprintf(out, "weir_pool_delivery_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", latencies.total);
}

// Ends in "# EOF".
static void write_limiters(FILE *out, const struct wr_pool *pool) {
    const struct weir *limiters[WR_GATES];
    size_t count = 0, length = 0;
    for (int i = 0; pool != NULL && i < WR_GATES; i++)
        if (pool->gates[i].limiter != NULL) limiters[count++] = pool->gates[i].limiter;
    (void)weir_metrics(limiters, count, NULL, 0, &length);
    for (int i = 0; i < LIMITERS_TRIES; i++) {
        const size_t size = length + 1024; // numbers grow meanwhile
        char *text = malloc(size);
        if (text == NULL) break;
        const int result = weir_metrics(limiters, count, text, size, &length);
        if (result == WEIR_GRANTED) fputs(text, out);
        free(text);
        if (result != WEIR_ENOSPC) return;
    }
    fputs("# EOF\n", out);
}

char *wr_pool_metrics(const struct wr_pool *pool, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (out == NULL) return NULL;
    if (pool != NULL) {
        write_counts(out, pool);
        write_gauges(out, pool);
        write_latency(out, pool);
    }
    write_limiters(out, pool);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
