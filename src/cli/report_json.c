// report_json.c - the same as JSON. A count above 2^63 - 1, which no log reaches, is cut to it.
#include <jansson.h>

#include "json_list.h"
#include "report.h"
#include "timestamp.h"

__extension__ typedef unsigned __int128 wide;

static json_t *number(uint64_t value) {
    return json_integer(value < INT64_MAX ? (json_int_t)value : INT64_MAX);
}

// Whatever bytes they are, they come out as UTF-8.
static json_t *name(struct wr_text text) {
    char shown[2048] = "";
    wr_text_show(shown, sizeof(shown), text);
    return json_string(shown);
}

static json_t *optional_text(const char *text) {
    return text != NULL ? name(wr_text_of(text)) : json_null();
}

static json_t *limit(const struct wr_summary *s) {
    char rate[WR_UNIT_TEXT];
    bool limited = s->options.rate.tokens != WEIR_UNLIMITED_TOKENS;
    wr_rate_text(&s->options.rate, rate);
    return json_pack("{s:s, s:o, s:o, s:o}", "rate", rate, "tokens",
                     limited ? number(s->options.rate.tokens) : json_null(), "period_ns",
                     limited ? number(s->options.rate.period_ns) : json_null(), "burst",
                     limited ? number(s->options.burst) : json_null());
}

static json_t *files(const struct wr_summary *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->files; i++)
        wr_json_append(&list, name(wr_text_of(s->file_names[i])));
    return list;
}

static json_t *skips(const struct wr_summary *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->skips->kept; i++) {
        const struct wr_skip *skip = &s->skips->first[i];
        wr_json_append(
            &list, json_pack("{s:o, s:o, s:o}", "file", optional_text(s->file_names[skip->file]),
                             "line", number(skip->line), "reason", optional_text(skip->reason)));
    }
    return list;
}

static json_t *waits(const struct wr_summary *s) {
    json_t *list = json_array();
    for (int i = 0; i < WR_WAIT_COUNT; i++) {
        bool has_end = i < WR_WAIT_LONGER;
        wr_json_append(
            &list, json_pack("{s:s, s:o, s:o}", "wait", wr_wait_ranges[i].words, "up_to_ns",
                             has_end ? number(wr_wait_ranges[i].longest_ns) : json_null(), "denied",
                             number(s->totals.waits[i])));
    }
    return list;
}

static json_t *top(const struct wr_summary *s) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < s->top_count; i++) {
        const struct wr_key_count *count = s->top[i];
        struct wr_text key = {count->name, count->name_bytes};
        wr_json_append(&list,
                       json_pack("{s:o, s:o, s:o}", "key", name(key), "denied",
                                 number(count->denied), "granted", number(count->granted)));
    }
    return list;
}

static json_t *highest(const struct wr_summary *s) {
    bool whole_log = s->options.rate.tokens == 0;
    if (s->options.rate.tokens == WEIR_UNLIMITED_TOKENS || s->most.tokens == 0) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:b, s:b}", "tokens", number(s->most.tokens),
                     "bound_tokens", number(s->most_bound), "window_ns",
                     whole_log ? json_null() : number(s->options.rate.period_ns), "key",
                     name(wr_text_of(s->most_key)), "until_ns",
                     (json_int_t)(s->base_ns + s->most.to_ns), "exact", !s->most_cut,
                     "within_bound", s->most.tokens <= s->most_bound);
}

static json_t *edge(const struct wr_summary *s) {
    if (s->worst.excess == 0) return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "tokens", number(s->worst.tokens),
                     "allowed_tokens", number(s->worst_allowed), "excess_tokens",
                     number(s->worst.tokens - s->worst_allowed), "key",
                     name(wr_text_of(s->worst_key)), "from_ns", (json_int_t)s->worst.from_ns,
                     "until_ns", (json_int_t)s->worst.to_ns);
}

static json_t *fixed_window(const struct wr_summary *s) {
    const struct wr_totals *t = &s->totals;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "window_ns",
                     number(wr_report_fixed_window_ns(s)), "limit_tokens", number(s->options.burst),
                     "granted", number(t->counter_granted), "granted_tokens",
                     number(t->counter_granted_tokens), "only_fixed_window",
                     number(t->only_counter), "only_bucket", number(t->only_bucket),
                     "highest_tokens", number(s->counter_most.tokens), "highest_exact",
                     !s->counter_most_cut, "worst_edge", edge(s));
}

static json_t *log_part(const struct wr_summary *s) {
    const struct wr_reader_options *reader = &s->options.reader;
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}",
                     "limit", limit(s), "key", optional_text(s->key), "format", s->format, "cost",
                     optional_text(reader->cost), "weight", optional_text(reader->weight), "files",
                     files(s), "lines", number(s->lines), "judged", number(s->events), "skipped",
                     number(s->skips->count), "skipped_first", skips(s), "out_of_order",
                     number(s->late), "oldest_ns", (json_int_t)s->oldest_ns, "newest_ns",
                     (json_int_t)s->newest_ns, "out_of_order_most_ns", number(s->late_most_ns));
}

static json_t *outcome_part(const struct wr_summary *s) {
    const struct wr_totals *t = &s->totals;
    double share = s->events > 0 ? (double)t->denied / (double)s->events : 0.0;
    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "keys",
                     number(s->keys), "keys_exact", s->keys_exact, "granted", number(t->granted),
                     "denied", number(t->denied), "never", number(t->never), "denied_share", share,
                     "granted_tokens", number(t->granted_tokens), "denied_tokens",
                     number(t->denied_tokens), "highest", highest(s), "waits", waits(s),
                     "most_denied", top(s), "most_denied_short_by", number(s->top_short_by));
}

static json_t *run_part(const struct wr_summary *s) {
    uint64_t elapsed_ns = s->elapsed_ns > 0 ? s->elapsed_ns : 1;
    uint64_t speed = (uint64_t)((wide)s->lines * WEIR_SECOND / elapsed_ns);
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "displaced", number(s->displaced),
                     "forgiven_tokens", number(s->forgiven_tokens), "capacity_keys",
                     number(s->options.capacity_keys), "limiter_memory_bytes",
                     number(s->memory_bytes), "threads", (int)s->options.threads, "elapsed_ns",
                     number(s->elapsed_ns), "lines_per_second", number(speed));
}

bool wr_report_write_json(FILE *out, const struct wr_summary *summary) {
    json_t *report = log_part(summary);
    json_t *outcome = outcome_part(summary);
    json_t *run = run_part(summary);
    bool fine = json_object_update(report, outcome) == 0 && json_object_update(report, run) == 0;
    if (fine && summary->options.compare)
        fine = json_object_set_new(report, "fixed_window", fixed_window(summary)) == 0;
    fine = fine && json_dumpf(report, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(report);
    json_decref(outcome);
    json_decref(run);
    return fine;
}
