// report.c - the report for a person: a column of words, and what there is to say behind each.
#include "report.h"

#include <inttypes.h>

#include "timestamp.h"

__extension__ typedef unsigned __int128 wide;

#define LABEL "%-13s"

static const char *plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

// part / whole as "12.34%".
static void share_text(uint64_t part, uint64_t whole, char text[WR_UNIT_TEXT]) {
    uint64_t hundredths = whole == 0 ? 0 : (uint64_t)((wide)part * 10000 / whole);
    snprintf(text, WR_UNIT_TEXT, "%" PRIu64 ".%02" PRIu64 "%%", hundredths / 100, hundredths % 100);
}

static void moment_text(const struct wr_summary *s, int64_t now_ns, char text[WR_TIME_TEXT]) {
    wr_time_text(s->base_ns + now_ns, text);
}

uint64_t wr_report_fixed_window_ns(const struct wr_summary *summary) {
    const struct wr_rate *rate = &summary->options.rate;
    if (rate->tokens == 0) return WEIR_FOREVER;
    wide length = (wide)summary->options.burst * rate->period_ns / rate->tokens;
    return length < WEIR_FOREVER ? (uint64_t)length : WEIR_FOREVER;
}

static void write_limit(FILE *out, const struct wr_summary *s) {
    const struct wr_reader_options *reader = &s->options.reader;
    char rate[WR_UNIT_TEXT];
    wr_rate_text(&s->options.rate, rate);
    fprintf(out, LABEL "%s", "limit", rate);
    if (s->options.rate.tokens != WEIR_UNLIMITED_TOKENS)
        fprintf(out, ", burst %" PRIu64, s->options.burst);
    fprintf(out, ", by %s", s->key);
    if (reader->cost != NULL) fprintf(out, ", at a cost of %s", reader->cost);
    if (reader->weight != NULL) fprintf(out, ", weighted by %s", reader->weight);
    fputc('\n', out);
}

static void write_log(FILE *out, const struct wr_summary *s) {
    char oldest[WR_TIME_TEXT], newest[WR_TIME_TEXT], span[WR_UNIT_TEXT];
    wr_time_text(s->oldest_ns, oldest);
    wr_time_text(s->newest_ns, newest);
    wr_span_text((uint64_t)(s->newest_ns - s->oldest_ns), span);
    fprintf(out, LABEL "%s", "log", s->file_names[0]);
    if (s->files > 1) fprintf(out, " and %" PRIu32 " more", s->files - 1);
    fprintf(out, " (%s)\n", s->format);
    fprintf(out, LABEL "%s to %s, %s\n", "span", oldest, newest, span);
    fprintf(out, LABEL "%" PRIu64 " read, %" PRIu64 " judged, %" PRIu64 " skipped\n", "lines",
            s->lines, s->events, s->skips->count);
}

static void write_skips(FILE *out, const struct wr_summary *s) {
    for (size_t i = 0; i < s->skips->kept; i++) {
        const struct wr_skip *skip = &s->skips->first[i];
        fprintf(out, LABEL "%s:%" PRIu64 ": %s\n", i == 0 ? "skipped" : "",
                s->file_names[skip->file], skip->line, skip->reason);
    }
    if (s->skips->count > s->skips->kept)
        fprintf(out, LABEL "and %" PRIu64 " more\n", "", s->skips->count - s->skips->kept);
}

static void write_late(FILE *out, const struct wr_summary *s) {
    char late[WR_UNIT_TEXT];
    if (s->late == 0) return;
    wr_span_text(s->late_most_ns, late);
    fprintf(out,
            LABEL "%" PRIu64 " line%s older than the newest before, by up to %s; judged at the "
                  "newest\n",
            "out of order", s->late, plural(s->late), late);
}

static void write_outcome(FILE *out, const struct wr_summary *s) {
    char granted[WR_UNIT_TEXT], denied[WR_UNIT_TEXT];
    const struct wr_totals *t = &s->totals;
    share_text(t->granted, s->events, granted);
    share_text(t->denied, s->events, denied);
    fprintf(out, LABEL "%s%" PRIu64 "\n", "keys", s->keys_exact ? "" : "about ", s->keys);
    fprintf(out, LABEL "%" PRIu64 " (%s), %" PRIu64 " token%s\n", "granted", t->granted, granted,
            t->granted_tokens, plural(t->granted_tokens));
    fprintf(out, LABEL "%" PRIu64 " (%s), %" PRIu64 " token%s\n", "denied", t->denied, denied,
            t->denied_tokens, plural(t->denied_tokens));
    if (t->never > 0)
        fprintf(out, LABEL "%" PRIu64 " of these can never pass: their cost is above the burst\n",
                "", t->never);
}

static void write_window(FILE *out, const struct wr_summary *s) {
    char window[WR_UNIT_TEXT], moment[WR_TIME_TEXT], key[WR_KEY_NAME_BYTES * 4] = "";
    if (s->options.rate.tokens == WEIR_UNLIMITED_TOKENS || s->most.tokens == 0) return;
    wr_duration_text(s->options.rate.period_ns, window);
    moment_text(s, s->most.to_ns, moment);
    wr_text_show(key, sizeof(key), wr_text_of(s->most_key));
    fprintf(out, LABEL "%s%" PRIu64 " token%s in %s%s, bound %" PRIu64 ": %s, up to %s\n",
            "highest", s->most_cut ? "at least " : "", s->most.tokens, plural(s->most.tokens),
            s->options.rate.tokens == 0 ? "all" : "any ", s->options.rate.tokens == 0 ? "" : window,
            s->most_bound, key, moment);
    if (s->most.tokens > s->most_bound)
        fprintf(out, LABEL "above the bound%s\n", "",
                s->displaced > 0 ? ", since buckets were displaced" : ": this is a fault in weir");
}

static void write_displaced(FILE *out, const struct wr_summary *s) {
    fprintf(out, LABEL "%" PRIu64 " bucket%s, for want of room in %" PRIu64 " keys", "displaced",
            s->displaced, plural(s->displaced), s->options.capacity_keys);
    if (s->displaced > 0)
        fprintf(out, "; they were forgiven %" PRIu64 " tokens. Raise --capacity",
                s->forgiven_tokens);
    fputc('\n', out);
}

static void write_waits(FILE *out, const struct wr_summary *s) {
    const char *label = "waits";
    uint64_t most = 1;
    for (int i = 0; i < WR_WAIT_COUNT; i++)
        if (s->totals.waits[i] > most) most = s->totals.waits[i];
    for (int i = 0; i < WR_WAIT_COUNT; i++) {
        uint64_t count = s->totals.waits[i];
        int stars = (int)((wide)count * 40 / most);
        if (count == 0) continue;
        fprintf(out, LABEL "%6s%-6s %10" PRIu64 "  %.*s\n", label,
                i < WR_WAIT_LONGER ? "up to " : "", wr_wait_ranges[i].words, count,
                stars > 0 ? stars : 1, "****************************************");
        label = "";
    }
}

static void write_top(FILE *out, const struct wr_summary *s) {
    if (s->top_count == 0) return;
    fprintf(out, LABEL "%10s %10s %8s  %s\n", "most denied", "denied", "granted", "share", "key");
    for (uint32_t i = 0; i < s->top_count; i++) {
        const struct wr_key_count *count = s->top[i];
        char share[WR_UNIT_TEXT], key[WR_KEY_NAME_BYTES * 4] = "";
        share_text(count->denied, count->denied + count->granted, share);
        wr_text_show(key, sizeof(key), (struct wr_text){count->name, count->name_bytes});
        fprintf(out, LABEL "%10" PRIu64 " %10" PRIu64 " %8s  %s\n", "", count->denied,
                count->granted, share, key);
    }
    if (s->top_short_by > 0)
        fprintf(out,
                LABEL "(more keys than are counted: up to %" PRIu64 " denials of each may be "
                      "missing)\n",
                "", s->top_short_by);
}

static void write_edge(FILE *out, const struct wr_summary *s) {
    char span[WR_UNIT_TEXT], moment[WR_TIME_TEXT], key[WR_KEY_NAME_BYTES * 4] = "";
    uint64_t too_many = s->worst.tokens - s->worst_allowed;
    if (s->worst.excess == 0) {
        fprintf(out, LABEL "at no edge did it let through more than burst + rate * time\n", "");
        return;
    }
    wr_span_text((uint64_t)(s->worst.to_ns - s->worst.from_ns), span);
    wr_time_text(s->worst.to_ns, moment);
    wr_text_show(key, sizeof(key), wr_text_of(s->worst_key));
    fprintf(out,
            LABEL "at its worst edge %" PRIu64
                  " tokens within %s, where burst + rate * time is %" PRIu64 ": %" PRIu64
                  " too many\n" LABEL "(%s, up to %s)\n",
            "", s->worst.tokens, span, s->worst_allowed, too_many, "", key, moment);
}

static void write_fixed_window(FILE *out, const struct wr_summary *s) {
    char length[WR_UNIT_TEXT], period[WR_UNIT_TEXT];
    const struct wr_totals *t = &s->totals;
    if (!s->options.compare) return;
    wr_span_text(wr_report_fixed_window_ns(s), length);
    wr_duration_text(s->options.rate.period_ns, period);
    fprintf(out, LABEL "a counter to %" PRIu64 " that starts again every %s\n", "fixed window",
            s->options.burst, length);
    fprintf(out,
            LABEL "granted %" PRIu64 " lines, %" PRIu64 " tokens; %" PRIu64
                  " lines that the bucket "
                  "denied, not %" PRIu64 " that it granted\n",
            "", t->counter_granted, t->counter_granted_tokens, t->only_counter, t->only_bucket);
    fprintf(out, LABEL "%s%" PRIu64 " tokens in any %s at most; the bucket %" PRIu64 "\n", "",
            s->counter_most_cut ? "at least " : "", s->counter_most.tokens, period, s->most.tokens);
    write_edge(out, s);
}

static void write_speed(FILE *out, const struct wr_summary *s) {
    char elapsed[WR_UNIT_TEXT];
    uint64_t elapsed_ns = s->elapsed_ns > 0 ? s->elapsed_ns : 1;
    wr_span_text(elapsed_ns, elapsed);
    fprintf(out, LABEL "%" PRIu64 " lines a second, %s, %u thread%s\n", "speed",
            (uint64_t)((wide)s->lines * WEIR_SECOND / elapsed_ns), elapsed, s->options.threads,
            plural(s->options.threads));
}

void wr_report_write(FILE *out, const struct wr_summary *summary) {
    write_limit(out, summary);
    write_log(out, summary);
    write_skips(out, summary);
    write_late(out, summary);
    write_outcome(out, summary);
    write_window(out, summary);
    write_displaced(out, summary);
    write_waits(out, summary);
    write_top(out, summary);
    write_fixed_window(out, summary);
    write_speed(out, summary);
}
