// Decisions: one hot key, many keys, never-seen keys; for each limiter linked into the program.
//
//   hot/granted      one key, a rate that some forty leases could not use up: all granted
//   hot/denied       one key whose only token is gone: each ask is denied
//   keys:N/uniform   N keys, all of them busy (not full), asked in random order, all granted
//   keys:N/zipf      the same, skewed: Zipf 0.99
//   never-seen/...   keys that were never seen, over a table for N keys in its steady state:
//     idle           a bucket is full again before its place is wanted: it is simply replaced
//     busy           buckets stay busy: the fullest of eight is displaced, and counted
// The limits are such that what a row is about is true of every single ask; the rows check it.
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "limiter.h"
#include "resident.h"

enum source { SAME, UNIFORM, ZIPF, FRESH };

struct take_case {
    const char *name;  // of the row, up to the number of keys
    const char *after; // behind that number; NULL: the name has none
    enum source source;
    struct weir_limit limit;
    uint64_t spent; // tokens taken of each key beforehand, so that it is busy throughout
    bool granted;
};

// 2^31 of 2^32 tokens spent are 6 hours from full, and the hottest key can spend the other half.
#define ROOMY {100000, WEIR_SECOND, UINT64_C(1) << 32}
#define ROOMY_SPENT (UINT64_C(1) << 31)

static const struct take_case cases[] = {
    {"hot/granted", NULL, SAME, {10000000000, WEIR_SECOND, 1 << 20}, 0, true},
    {"hot/denied", NULL, SAME, {1, WEIR_DAY, 1}, 1, false},
    {"keys:", "/uniform", UNIFORM, ROOMY, ROOMY_SPENT, true},
    {"keys:", "/zipf:0.99", ZIPF, ROOMY, ROOMY_SPENT, true},
    {"never-seen/table:", "/idle", FRESH, {1000000, WEIR_SECOND, 1 << 20}, 0, true},
    {"never-seen/table:", "/busy", FRESH, {1, WEIR_DAY, 10}, 0, true},
};
#define CASES (sizeof cases / sizeof cases[0])

static const struct bench_key hot_key = {"user:1234567", 12};

// A limiter with the keys that the rows ask it about, made once: some rows share one.
struct table {
    struct table *next;
    const struct bench_limiter *of;
    const struct take_case *first; // the case it was made for
    uint64_t keys;
    void *limiter;
    struct bench_walk *walks;
    struct bench_fresh *freshes;
};

static struct table *tables;

static bool may_share(const struct take_case *a, const struct take_case *b) {
    return a == b || ((a->source == UNIFORM || a->source == ZIPF) &&
                      (b->source == UNIFORM || b->source == ZIPF));
}

static void fill(const struct table *table) {
    struct bench_key key;
    for (uint64_t i = 0; i < table->keys; i++) {
        bench_key_format(&key, i);
        if (!table->of->ask(table->limiter, key.text, key.length, table->first->spent))
            bench_fail("key %s was denied while the table was filled", key.text);
    }
}

// Never-seen keys until the table is in its steady state: each place has been taken, most often.
static void churn(const struct table *table) {
    const uint64_t rounds = table->of->bounded ? 4 : 1;
    table->of->fresh(table->limiter, bench_freshes(1), rounds * table->keys);
}

static struct table *make_table(const struct bench_limiter *of, const struct take_case *c,
                                uint64_t keys) {
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL) bench_fail("no memory for a table");
    table->of = of;
    table->first = c;
    table->keys = keys;
    table->limiter = of->create(&c->limit, keys);
    if (c->source == FRESH) churn(table);
    else if (c->source != SAME) fill(table);
    else if (c->spent != 0) of->ask(table->limiter, hot_key.text, hot_key.length, c->spent);
    return table;
}

static struct table *table_of(const struct bench_limiter *of, const struct take_case *c,
                              uint64_t keys) {
    for (struct table *table = tables; table != NULL; table = table->next)
        if (table->of == of && table->keys == keys && may_share(table->first, c)) return table;
    struct table *table = make_table(of, c, keys);
    table->next = tables;
    tables = table;
    return table;
}

static void report_resident(const char *name) {
    struct bench_resident now;
    if (bench_resident_read(&now)) bench_report(name, (double)now.bytes / (1 << 20));
}

static void *setup(const struct bench_row *row, unsigned threads) {
    const struct take_case *c = row->detail;
    struct table *table = table_of(row->subject, c, row->size);
    switch (c->source) {
    case SAME: break;
    case UNIFORM: table->walks = bench_walks(row->size, false, threads); break;
    case ZIPF: table->walks = bench_walks(row->size, true, threads); break;
    case FRESH: {
        table->freshes = bench_freshes(threads);
        report_resident("rss_before_mib");
        break;
    }
    }
    return table;
}

static void teardown(const struct bench_row *row, void *state) {
    (void)state;
    if (((const struct take_case *)row->detail)->source == FRESH) report_resident("rss_after_mib");
}

static uint64_t run(const struct bench_row *row, void *state, uint64_t iterations,
                    unsigned thread) {
    const struct take_case *c = row->detail;
    const struct table *table = state;
    const struct bench_limiter *of = row->subject;
    uint64_t granted = 0;
    switch (c->source) {
    case SAME: granted = of->same(table->limiter, &hot_key, iterations); break;
    case UNIFORM:
    case ZIPF: granted = of->walk(table->limiter, &table->walks[thread], iterations); break;
    case FRESH: granted = of->fresh(table->limiter, &table->freshes[thread], iterations); break;
    }
    return c->granted ? iterations - granted : granted;
}

// A limiter that grows has no steady state: one row of never-seen keys is enough.
static bool has_row(const struct bench_limiter *of, const struct take_case *c) {
    if (c->source == SAME) return of->same != NULL;
    if (c->source != FRESH) return of->walk != NULL;
    return of->fresh != NULL && (of->bounded || c->limit.period_ns == WEIR_DAY);
}

static void add(const struct bench_limiter *of, const struct take_case *c, uint64_t keys) {
    if (!has_row(of, c)) return;
    struct bench_row row = {.subject = of, .detail = c, .size = keys, .setup = setup, .run = run,
                            .teardown = teardown};
    char count[24] = "";
    if (c->after != NULL) bench_format_count(count, sizeof count, keys);
    snprintf(row.name, sizeof row.name, "%s/%s%s%s%s", of->name, c->name, count,
             c->after != NULL ? c->after : "", of->variant);
    bench_add(&row);
}

static void rows(const struct bench_settings *settings) {
    for (const struct bench_limiter *const *of = bench_limiters(); *of != NULL; of++) {
        for (size_t i = 0; i < CASES; i++) {
            if (cases[i].after == NULL) add(*of, &cases[i], 1000);
            for (size_t k = 0; cases[i].after != NULL && k < settings->key_counts; k++)
                add(*of, &cases[i], settings->keys[k]);
        }
    }
}
BENCH_ROWS(rows)
