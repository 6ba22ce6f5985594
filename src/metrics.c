// OpenMetrics 1.0 text of limiters: their counters, waits, limits, and most denied keys.
//
// A family is named once and has a sample of each limiter, so the text goes family by family, and
// asks a limiter for its numbers again in each: no memory is needed that grows with their number.
// All numbers are integers, or exact decimal fractions: no floating point, no locale.
#include "label.h"
#include "limiter.h"

// X(name, help): the counters of struct weir_stats.
#define COUNTERS(X)                                                                                \
    X(granted, "Asks granted.")                                                                    \
    X(denied, "Asks denied: not enough tokens yet.")                                               \
    X(never, "Asks above the burst.")                                                              \
    X(no_room, "Asks that found no room in the table.")                                            \
    X(untracked, "Asks granted without a bucket.")                                                 \
    X(would_deny, "Asks that a dry run would have denied.")                                        \
    X(tokens, "Tokens granted and charged.")                                                       \
    X(refunded_tokens, "Tokens given back.")                                                       \
    X(clipped_tokens, "Tokens charged beyond the debt allowed, and dropped.")                      \
    X(inserted, "Keys put into the table.")                                                        \
    X(displaced, "Busy buckets forgotten for want of room.")                                       \
    X(forgiven_tokens, "Tokens that displaced buckets owed.")                                      \
    X(retried, "Compare-and-swaps lost to another thread.")                                        \
    X(relics, "Words outside the horizon, read as full.")                                          \
    X(clock_fallbacks, "1 once the CPU's counter jumped and CLOCK_MONOTONIC took over.")

// X(name, unit, help): the numbers of it that are no counters.
#define GAUGES(X)                                                                                  \
    X(capacity_keys, "", "Keys that may be busy at the same time.")                                \
    X(shards, "", "Independent parts of the table.")                                               \
    X(memory_bytes, "bytes", "Memory of the limiter.")

struct metrics {
    struct wr_text text;
    const struct weir *const *limiters;
    size_t count;
};

static void put_line(struct wr_text *t, const char *what, const char *name, const char *words) {
    if (*words == '\0') return;
    wr_text_put(t, what);
    wr_text_put(t, name);
    wr_text_byte(t, ' ');
    wr_text_put(t, words);
    wr_text_byte(t, '\n');
}

static void put_family(struct metrics *m, const char *name, const char *type, const char *unit,
                       const char *help) {
    put_line(&m->text, "# TYPE ", name, type);
    put_line(&m->text, "# UNIT ", name, unit);
    put_line(&m->text, "# HELP ", name, help);
}

// The nth of those that look the same; the first goes without.
static void put_nth(struct wr_text *t, const char *label, size_t nth) {
    if (nth == 1) return;
    wr_text_put(t, label);
    wr_text_number(t, nth);
    wr_text_byte(t, '"');
}

// A sample up to its labels, the brace left open.
static void begin_sample(struct metrics *m, const char *name, size_t index) {
    const char *limiter = m->limiters[index]->name;
    const size_t length = strlen(limiter);
    size_t nth = 1;
    for (size_t i = 0; i < index; i++) {
        const char *other = m->limiters[i]->name;
        nth += wr_label_same(limiter, length, other, strlen(other));
    }
    wr_text_put(&m->text, name);
    wr_text_put(&m->text, "{limiter=\"");
    wr_label_put(&m->text, limiter, length);
    wr_text_byte(&m->text, '"');
    put_nth(&m->text, ",nth=\"", nth);
}

static void end_sample(struct metrics *m, uint64_t value) {
    wr_text_put(&m->text, "} ");
    wr_text_number(&m->text, value);
    wr_text_byte(&m->text, '\n');
}

static struct weir_stats stats_of(const struct metrics *m, size_t index) {
    struct weir_stats stats = {0};
    (void)weir_stats(m->limiters[index], &stats, sizeof stats);
    return stats;
}

static void put_stats(struct metrics *m) {
#define FAMILY(field, type, unit, suffix, help)                                                    \
    put_family(m, "weir_" #field, type, unit, help);                                               \
    for (size_t i = 0; i < m->count; i++) {                                                        \
        begin_sample(m, "weir_" #field suffix, i);                                                 \
        end_sample(m, stats_of(m, i).field);                                                       \
    }
#define COUNTER(field, help) FAMILY(field, "counter", "", "_total", help)
#define GAUGE(field, unit, help) FAMILY(field, "gauge", unit, "", help)
    COUNTERS(COUNTER)
    GAUGES(GAUGE)
#undef GAUGE
#undef COUNTER
#undef FAMILY
}

// Exact seconds, as the specification writes the numbers of `le`: a decimal fraction of at least
// one place, below 0.0001 with an exponent.
static void put_seconds(struct wr_text *t, uint64_t ns) {
    uint64_t one = WEIR_SECOND;
    unsigned places = 9;
    if (ns != 0 && ns < WEIR_SECOND / 10000)
        while (one > ns) {
            one /= 10;
            places--;
        }
    const unsigned exponent = 9 - places;
    uint64_t fraction = ns % one;
    while (places > 1 && fraction % 10 == 0) {
        fraction /= 10;
        places--;
    }
    wr_text_number(t, ns / one);
    wr_text_byte(t, '.');
    wr_text_digits(t, fraction, places);
    if (exponent == 0) return;
    wr_text_put(t, "e-");
    wr_text_digits(t, exponent, 2);
}

static void put_waits(struct metrics *m) {
    put_family(m, "weir_wait_seconds", "histogram", "seconds",
               "Times after which a denied ask was told to come again.");
    for (size_t i = 0; i < m->count; i++) {
        const struct weir_stats stats = stats_of(m, i);
        uint64_t cumulative = 0;
        for (unsigned b = 0; b < WEIR_WAIT_BUCKETS; b++) {
            begin_sample(m, "weir_wait_seconds_bucket", i);
            wr_text_put(&m->text, ",le=\"");
            if (b == WEIR_WAIT_BUCKETS - 1) wr_text_put(&m->text, "+Inf");
            else put_seconds(&m->text, UINT64_C(1) << (WR_WAIT_SHIFT + b));
            wr_text_byte(&m->text, '"');
            cumulative += stats.waits[b];
            end_sample(m, cumulative);
        }
    }
}

static void put_limit(struct metrics *m, const char *name, const char *unit, const char *help,
                      size_t offset) {
    put_family(m, name, "gauge", unit, help);
    for (size_t i = 0; i < m->count; i++) {
        struct weir_limit limit;
        uint64_t value;
        weir_get_limit(m->limiters[i], &limit);
        memcpy(&value, (const char *)&limit + offset, sizeof value);
        begin_sample(m, name, i);
        wr_text_put(&m->text, "} ");
        if (offset == offsetof(struct weir_limit, period_ns)) put_seconds(&m->text, value);
        else if (wr_is_unlimited(&limit)) wr_text_put(&m->text, "+Inf");
        else wr_text_number(&m->text, value);
        wr_text_byte(&m->text, '\n');
    }
}

static void put_limits(struct metrics *m) {
    put_limit(m, "weir_limit_tokens", "", "Tokens that the limit gives in its period.",
              offsetof(struct weir_limit, tokens));
    put_limit(m, "weir_limit_period_seconds", "seconds", "The period of the limit.",
              offsetof(struct weir_limit, period_ns));
    put_limit(m, "weir_limit_burst_tokens", "", "Tokens that a key may save up.",
              offsetof(struct weir_limit, burst));
}

static void put_denied_key(struct metrics *m, size_t index, const struct weir_top_key *keys,
                           size_t at) {
    const struct weir_top_key *key = &keys[at];
    size_t nth = 1;
    for (size_t i = 0; i < at; i++)
        nth += wr_label_same(key->name, key->length, keys[i].name, keys[i].length);
    begin_sample(m, "weir_top_denied", index);
    wr_text_put(&m->text, ",key=\"");
    wr_label_put(&m->text, key->name, key->length);
    wr_text_byte(&m->text, '"');
    put_nth(&m->text, ",key_nth=\"", nth);
    end_sample(m, key->denied);
}

static void put_top(struct metrics *m) {
    put_family(m, "weir_top_denied", "gauge", "", "Refusals of the most denied keys, about.");
    for (size_t i = 0; i < m->count; i++) {
        struct weir_top_key keys[WEIR_METRICS_TOP];
        const size_t found = weir_top(m->limiters[i], keys, WEIR_METRICS_TOP);
        size_t shown = 0;
        for (size_t k = 0; k < found; k++) {
            if (keys[k].denied / 2 < keys[k].error) continue;
            keys[shown] = keys[k];
            put_denied_key(m, i, keys, shown++);
        }
    }
}

int weir_metrics(const struct weir *const *limiters, size_t count, char *buffer, size_t size,
                 size_t *length) {
    if ((limiters == NULL && count != 0) || (buffer == NULL && size != 0)) return WEIR_EINVAL;
    for (size_t i = 0; i < count; i++)
        if (limiters[i] == NULL) return WEIR_EINVAL;
    struct metrics m = {{buffer, size, 0}, limiters, count};
    if (count != 0) {
        put_stats(&m);
        put_waits(&m);
        put_limits(&m);
        put_top(&m);
    }
    wr_text_put(&m.text, "# EOF\n");
    return wr_text_end(&m.text, length);
}
