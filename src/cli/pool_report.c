// pool_report.c - the balance, the latencies, the run over time, and the table of a comparison.
#include "pool_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BAR 40
#define ROWS 20

const char *wr_pool_mode_word(enum wr_pool_mode mode) {
    static const char *const words[] = {
#define WORD(name, word, summary) word,
        WR_POOL_MODES(WORD)
#undef WORD
    };
    return words[mode];
}

void wr_pool_name(const struct wr_pool_options *options, char name[WR_POOL_NAME_BYTES]) {
    char rate[WR_UNIT_TEXT];
    wr_rate_text(&options->provider_rate, rate);
    snprintf(name, WR_POOL_NAME_BYTES, "%s%s%s", wr_pool_mode_word(options->mode),
             options->mode == WR_POOL_FIXED ? " " : "",
             options->mode == WR_POOL_FIXED ? rate : "");
}

static void write_bar(FILE *out, double part, int width, char with) {
    const int length = part > 0 ? (int)lround(part * width) : 0;
    for (int i = 0; i < length; i++) fputc(with, out);
}

// What is common to all runs ------------------------------------------------------------------

static const char *source_of(const struct wr_pool_options *options) {
    static const char *const kinds[] = {
#define KIND_WORD(name, word, summary) word,
        WR_TRACE_KINDS(KIND_WORD)
#undef KIND_WORD
    };
    return options->file != NULL ? options->file : kinds[options->kind];
}

static void write_head(FILE *out, const struct wr_pool_runs *runs) {
    const struct wr_pool_options *o = &runs->runs[0]->options;
    char duration[WR_UNIT_TEXT], rate[WR_UNIT_TEXT], ends[WR_UNIT_TEXT];
    wr_duration_text(o->duration_ns, duration);
    fprintf(out, "%s for %s, seed %" PRIu64 ", %" PRIu32 " workers; provider: %s\n", source_of(o),
            duration, o->seed, o->workers, runs->downstream);
    if (o->by_key) {
        wr_rate_text(&o->rate, rate);
        fprintf(out, "each key: %s, burst %" PRIu64 ", what it denies is %s\n", rate, o->burst,
                o->park ? "parked" : "denied for good");
    }
    const struct wr_pool_events *events = runs->runs[0]->events;
    if (events->skips.count > 0)
        fprintf(out, "%" PRIu64 " lines skipped; the first, line %" PRIu64 ": %s\n",
                events->skips.count, events->skips.first[0].line, events->skips.first[0].reason);
    if (!events->ended_early) return;
    wr_span_text(events->all[events->count - 1].due_ns, ends);
    fprintf(out, "the log ends after %s, before the run's %s\n", ends, duration);
}

// One run -------------------------------------------------------------------------------------

static void write_line(FILE *out, const char *what, uint64_t count) {
    fprintf(out, "  %-22s %10" PRIu64 "\n", what, count);
}

static void write_sheet(FILE *out, const struct wr_pool *pool) {
    const struct wr_pool_sheet *sheet = &pool->sheet;
    fprintf(out, "balance\n");
    write_line(out, "arrived", sheet->arrived);
    write_line(out, "delivered", sheet->delivered);
    write_line(out, "denied for good", sheet->denied);
    write_line(out, "dead-lettered", sheet->dead);
    write_line(out, "parked at the end", sheet->parked);
    fprintf(out, "  %-22s %10" PRId64 "\n", "lost", sheet->lost);
    if (!wr_pool_sheet_balances(sheet))
        fprintf(out, "  it does not add up: %" PRIu64 " events without an end, %" PRIu64
                     " with two\n", sheet->unended, sheet->twice);
}

static void write_figures(FILE *out, const struct wr_pool *pool) {
    const struct wr_pool_counts *counts = &pool->counts;
    fprintf(out, "provider\n");
    fprintf(out, "  took %" PRIu64 " of the %.0f events that it could have taken: %.1f%%\n",
            pool->watch.delivered, pool->watch.possible, 100 * wr_pool_watch_share(&pool->watch));
    fprintf(out, "  refused %" PRIu64 " calls as too many, %" PRIu64 " in outages; %" PRIu64
                 " timed out\n", counts->of[WR_POOL_COUNT_TOO_MANY],
            counts->of[WR_POOL_COUNT_UNAVAILABLE], counts->of[WR_POOL_COUNT_TIMEOUT]);
    fprintf(out, "  queue at worst %" PRIu32 " of %" PRIu32 "; %" PRIu64
                 " events held up by a limit, %" PRIu64 " came back from being parked\n",
            pool->worst_depth, pool->options.queue, counts->of[WR_POOL_COUNT_HELD_UP],
            counts->of[WR_POOL_COUNT_RETRIED]);
    if (pool->valve == NULL) return;
    fprintf(out, "  valve at %.0f/s in the end; raised %" PRIu64 " times, lowered %" PRIu64
                 " for the queue and %" PRIu64 " for overload\n", pool->valve_stats.rate_per_s,
            pool->valve_stats.raised, pool->valve_stats.lowered, pool->valve_stats.overloaded);
}

static uint64_t sum_of_octave(const struct wr_latencies *latencies, unsigned octave) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < WR_LATENCY_PARTS; i++)
        sum += latencies->counts[WR_LATENCY_PARTS * octave + i];
    return sum;
}

static void write_latencies(FILE *out, const struct wr_latencies *latencies) {
    char p50[WR_UNIT_TEXT], p90[WR_UNIT_TEXT], p99[WR_UNIT_TEXT], end[WR_UNIT_TEXT];
    uint64_t most = 1;
    if (latencies->total == 0) return;
    wr_span_text(wr_latencies_quantile_ns(latencies, 0.5), p50);
    wr_span_text(wr_latencies_quantile_ns(latencies, 0.9), p90);
    wr_span_text(wr_latencies_quantile_ns(latencies, 0.99), p99);
    fprintf(out, "from arrival to delivery: half within %s, 90%% %s, 99%% %s\n", p50, p90, p99);
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS / WR_LATENCY_PARTS; i++)
        if (sum_of_octave(latencies, i) > most) most = sum_of_octave(latencies, i);
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS / WR_LATENCY_PARTS; i++) {
        const uint64_t count = sum_of_octave(latencies, i);
        if (count == 0) continue;
        wr_span_text(wr_latency_bucket_end_ns(WR_LATENCY_PARTS * (i + 1) - 1), end);
        fprintf(out, "  up to %-14s %8" PRIu64 " ", end, count);
        write_bar(out, (double)count / (double)most, BAR, '#');
        fputc('\n', out);
    }
}

static double rate_of(const struct wr_pool_moment *from, const struct wr_pool_moment *to,
                      enum wr_pool_count count) {
    const double span_s = (double)(to->at_ns - from->at_ns) / 1e9;
    return span_s > 0 ? (double)(to->counts.of[count] - from->counts.of[count]) / span_s : 0;
}

// Row i is from one of these moments to the next.
static const struct wr_pool_moment *row(const struct wr_pool_watch *watch, size_t i, size_t rows) {
    return &watch->moments[i * (watch->count - 1) / rows];
}

static double most_per_s(const struct wr_pool_watch *watch, size_t rows) {
    double most = 1;
    for (size_t i = 0; i < rows; i++) {
        const struct wr_pool_moment *from = row(watch, i, rows), *to = row(watch, i + 1, rows);
        most = fmax(most, rate_of(from, to, WR_POOL_COUNT_GRANTED) +
                              rate_of(from, to, WR_POOL_COUNT_HELD_UP));
    }
    return most;
}

static void write_row(FILE *out, const struct wr_pool_moment *from,
                      const struct wr_pool_moment *to, double most) {
    const double granted = rate_of(from, to, WR_POOL_COUNT_GRANTED);
    const double held_up = rate_of(from, to, WR_POOL_COUNT_HELD_UP);
    fprintf(out, "  %5.1fs %8.0f %8.0f ", (double)from->at_ns / 1e9, granted, held_up);
    if (isinf(to->rate_per_s)) fprintf(out, "    none");
    else fprintf(out, "%8.0f", to->rate_per_s);
    fprintf(out, " %5" PRIu32 " %7" PRIu64 " ", to->depth, to->parked);
    write_bar(out, granted / most, BAR, '#');
    write_bar(out, held_up / most, BAR, '.');
    fputc('\n', out);
}

static void write_over_time(FILE *out, const struct wr_pool_watch *watch) {
    if (watch->count < 2) return;
    const size_t rows = watch->count - 1 < ROWS ? watch->count - 1 : ROWS;
    const double most = most_per_s(watch, rows);
    fprintf(out, "over time\n    from granted/s denied/s   rate/s queue  parked  "
                 "#: granted  .: denied at first\n");
    for (size_t i = 0; i < rows; i++)
        write_row(out, row(watch, i, rows), row(watch, i + 1, rows), most);
}

static void write_run(FILE *out, const struct wr_pool *pool) {
    char name[WR_POOL_NAME_BYTES], ran[WR_UNIT_TEXT];
    wr_pool_name(&pool->options, name);
    wr_span_text(pool->ran_ns, ran);
    fprintf(out, "mode %s, %s after %s\n", name, pool->interrupted ? "interrupted" : "ended", ran);
    write_sheet(out, pool);
    write_figures(out, pool);
    write_latencies(out, &pool->latencies);
    write_over_time(out, &pool->watch);
}

// Several -------------------------------------------------------------------------------------

static void write_seconds(char text[WR_UNIT_TEXT], uint64_t ns) {
    snprintf(text, WR_UNIT_TEXT, "%.2fs", (double)ns / 1e9);
}

static void write_table_row(FILE *out, const struct wr_pool *pool) {
    char name[WR_POOL_NAME_BYTES], p50[WR_UNIT_TEXT], p99[WR_UNIT_TEXT];
    wr_pool_name(&pool->options, name);
    write_seconds(p50, wr_latencies_quantile_ns(&pool->latencies, 0.5));
    write_seconds(p99, wr_latencies_quantile_ns(&pool->latencies, 0.99));
    fprintf(out, "%-13s %9" PRIu64 " %8.1f%% %8" PRIu64 " %11" PRIu32 " %8s %8s %8" PRIu64
                 " %5" PRIu64 " %5" PRId64 "\n", name, pool->watch.delivered,
            100 * wr_pool_watch_share(&pool->watch), pool->watch.overloads, pool->worst_depth, p50,
            p99, pool->sheet.parked, pool->sheet.dead, pool->sheet.lost);
}

static void write_table(FILE *out, const struct wr_pool_runs *runs) {
    fprintf(out, "\nmode          delivered  of possible overload worst queue      p50      p99   "
                 "parked  dead  lost\n");
    for (size_t i = 0; i < runs->count; i++) write_table_row(out, runs->runs[i]);
    fprintf(out, "\nof possible: of what the provider could have taken in that run, its capacity "
                 "while anything\n    waited, else what arrived. overload: calls answered 429, 503 "
                 "or not at all. parked: still waiting\n    when the run ended.\n");
}

void wr_pool_report_write(FILE *out, const struct wr_pool_runs *runs) {
    write_head(out, runs);
    if (runs->compare) {
        write_table(out, runs);
        return;
    }
    for (size_t i = 0; i < runs->count; i++) write_run(out, runs->runs[i]);
}
