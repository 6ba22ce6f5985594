// pool_report_json.c - the same as JSON; "lost" comes from the sheet.
#include <jansson.h>
#include <math.h>

#include "json_list.h"
#include "pool_report.h"

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *rate(double per_s) {
    return isinf(per_s) ? json_null() : json_real(per_s);
}

static json_t *balance(const struct wr_pool_sheet *sheet) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:b}", "arrived", number(sheet->arrived),
                     "delivered", number(sheet->delivered), "denied", number(sheet->denied),
                     "dead_lettered", number(sheet->dead), "parked_at_end", number(sheet->parked),
                     "lost", (json_int_t)sheet->lost, "adds_up", wr_pool_sheet_balances(sheet));
}

static json_t *counts(const struct wr_pool_counts *counts) {
    json_t *object = json_object();
    for (int i = 0; i < WR_POOL_COUNT_END; i++)
        wr_json_set(&object, wr_pool_count_word((enum wr_pool_count)i),
                    number(counts->of[i]));
    return object;
}

static json_t *latency(const struct wr_latencies *latencies) {
    json_t *histogram = json_array();
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS; i++)
        if (latencies->counts[i] > 0)
            wr_json_append(&histogram, json_pack("{s:o, s:o}", "below_ns",
                                                 number(wr_latency_bucket_end_ns(i)),
                                                 "count", number(latencies->counts[i])));
    return json_pack("{s:o, s:o, s:o, s:o}", "p50_ns",
                     number(wr_latencies_quantile_ns(latencies, 0.5)), "p90_ns",
                     number(wr_latencies_quantile_ns(latencies, 0.9)), "p99_ns",
                     number(wr_latencies_quantile_ns(latencies, 0.99)), "histogram", histogram);
}

static json_t *timeline(const struct wr_pool_watch *watch) {
    json_t *rows = json_array();
    for (size_t i = 0; i < watch->count; i++) {
        const struct wr_pool_moment *m = &watch->moments[i];
        wr_json_append(
            &rows, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "at_ns",
                             number(m->at_ns), "arrived",
                             number(m->counts.of[WR_POOL_COUNT_ARRIVED]), "granted",
                             number(m->counts.of[WR_POOL_COUNT_GRANTED]), "held_up",
                             number(m->counts.of[WR_POOL_COUNT_HELD_UP]), "delivered",
                             number(m->counts.of[WR_POOL_COUNT_DELIVERED]), "overloads",
                             number(wr_pool_overloads(&m->counts)), "parked", number(m->parked),
                             "queue", number(m->depth), "busy", number(m->busy), "rate_per_s",
                             rate(m->rate_per_s)));
    }
    return rows;
}

static json_t *run(const struct wr_pool *pool) {
    char name[WR_POOL_NAME_BYTES];
    wr_pool_name(&pool->options, name);
    return json_pack("{s:s, s:s, s:o, s:b, s:o, s:o, s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:o, s:o}",
                     "name", name, "mode", wr_pool_mode_word(pool->options.mode), "seed",
                     number(pool->options.seed), "interrupted", pool->interrupted, "ran_ns",
                     number(pool->ran_ns), "balance", balance(&pool->sheet), "counts",
                     counts(&pool->counts), "delivered_in_time", number(pool->watch.delivered),
                     "possible", pool->watch.possible, "share_of_possible",
                     wr_pool_watch_share(&pool->watch), "overloads",
                     number(pool->watch.overloads), "worst_queue", number(pool->worst_depth),
                     "queue_capacity", number(pool->options.queue), "latency",
                     latency(&pool->latencies), "timeline", timeline(&pool->watch));
}

bool wr_pool_report_write_json(FILE *out, const struct wr_pool_runs *runs) {
    const struct wr_pool *first = runs->runs[0];
    json_t *list = json_array();
    int64_t lost = 0;
    for (size_t i = 0; i < runs->count; i++) {
        wr_json_append(&list, run(runs->runs[i]));
        lost += runs->runs[i]->sheet.lost;
    }
    json_t *root = json_pack("{s:o, s:o, s:I, s:b, s:o}", "seed", number(first->options.seed),
                             "downstream", json_string(runs->downstream), "lost",
                             (json_int_t)lost, "source_ended_early", first->events->ended_early,
                             "runs", list);
    const bool good = root != NULL && json_dumpf(root, out, JSON_INDENT(2)) == 0 &&
                      fputc('\n', out) != EOF;
    json_decref(root);
    return good;
}
