// OpenMetrics 1.0 text of a sync and its limiters. Numbers are integers, or decimal fractions cut
// to nine places: no locale has a say in them.
#include "../text.h"
#include "drive.h"

// X(name, field, help)
#define SYNC_COUNTERS(X)                                                                           \
    X(reports, "Reports sent and answered.")                                                       \
    X(keys, "Keys in those reports.")                                                              \
    X(timeouts, "Attempts without an answer in time.")                                             \
    X(disconnects, "Connections lost, or not made.")                                               \
    X(refused, "Error replies.")                                                                   \
    X(garbage, "Answers that were none.")                                                          \
    X(forgotten, "Reports given up: their grants were never charged.")                             \
    X(marker_lost, "Times that Redis had forgotten this node.")                                    \
    X(foreign_keys, "Keys that hold something else in Redis.")                                     \
    X(breaker_opened, "Times that the breaker opened.")

#define SYNC_GAUGES(X)                                                                             \
    X(nodes, "Nodes alive under the prefix.")                                                      \
    X(known_keys, "Keys that the sync remembers.")                                                 \
    X(connected, "1: Redis is connected.")                                                         \
    X(outage, "1: keys go by the outage policy.")                                                  \
    X(forked, "1: this process is a child, and reports nothing.")

#define LIMITER_COUNTERS(X)                                                                        \
    X(reported_tokens, "Tokens granted and charged in Redis.")                                     \
    X(lost_tokens, "Tokens granted and never to be charged.")                                      \
    X(unnamed, "Times that a key's name could not be handed over at once.")                        \
    X(local_refund_tokens, "Tokens given back after they were reported.")                          \
    X(clamped, "Answers clamped to the present limit.")                                            \
    X(unsynced, "Strict asks that were answered WEIR_EUNSYNCED.")                                  \
    X(unknown, "Strict asks given up while Redis was asked, which it may have charged.")

#define LIMITER_GAUGES(X)                                                                          \
    X(pending_tokens, "Tokens granted and not answered yet.")                                      \
    X(generation, "Generation of the limit.")                                                      \
    X(foreign_nodes, "Other nodes alive with this limiter.")

#define LIMITER_REALS(X)                                                                           \
    X(excess_tokens, "The furthest that a key was below zero in Redis.")                           \
    X(excess_bound_tokens, "What that may be.")                                                    \
    X(mint_bound_tokens, "What changes of limit may have given away a key.")

struct metrics {
    struct wr_text text;
    const struct weir_sync *sync;
    struct weir_sync_stats stats;
};

static void put_family(struct metrics *m, const char *name, const char *type, const char *unit,
                       const char *help) {
    const char *const lines[] = {"# TYPE ", "# UNIT ", "# HELP "};
    const char *const words[] = {type, unit, help};
    for (int i = 0; i < 3; i++) {
        if (words[i][0] == '\0') continue;
        wr_text_put(&m->text, lines[i]);
        wr_text_put(&m->text, name);
        wr_text_byte(&m->text, ' ');
        wr_text_put(&m->text, words[i]);
        wr_text_byte(&m->text, '\n');
    }
}

static void put_whole(struct metrics *m, uint64_t value) {
    wr_text_byte(&m->text, ' ');
    wr_text_number(&m->text, value);
    wr_text_byte(&m->text, '\n');
}

// Not negative.
static void put_real(struct metrics *m, double value) {
    if (!(value < 1e18)) value = 1e18;
    const uint64_t whole = (uint64_t)value;
    wr_text_byte(&m->text, ' ');
    wr_text_number(&m->text, whole);
    wr_text_byte(&m->text, '.');
    wr_text_digits(&m->text, (uint64_t)((value - (double)whole) * 1e9), 9);
    wr_text_byte(&m->text, '\n');
}

static void put_seconds(struct metrics *m, const char *sample, uint64_t ns) {
    wr_text_put(&m->text, sample);
    wr_text_byte(&m->text, ' ');
    wr_text_number(&m->text, ns / WEIR_SECOND);
    wr_text_byte(&m->text, '.');
    wr_text_digits(&m->text, ns % WEIR_SECOND, 9);
    wr_text_byte(&m->text, '\n');
}

static void put_sync(struct metrics *m) {
#define COUNTER(field, help)                                                                       \
    put_family(m, "weir_sync_" #field, "counter", "", help);                                       \
    wr_text_put(&m->text, "weir_sync_" #field "_total");                                           \
    put_whole(m, m->stats.field);
#define GAUGE(field, help)                                                                         \
    put_family(m, "weir_sync_" #field, "gauge", "", help);                                         \
    wr_text_put(&m->text, "weir_sync_" #field);                                                    \
    put_whole(m, m->stats.field);
    SYNC_COUNTERS(COUNTER)
    SYNC_GAUGES(GAUGE)
#undef GAUGE
#undef COUNTER
    put_family(m, "weir_sync_out_bytes", "counter", "bytes", "Bytes sent to Redis.");
    wr_text_put(&m->text, "weir_sync_out_bytes_total");
    put_whole(m, m->stats.bytes_out);
    put_family(m, "weir_sync_in_bytes", "counter", "bytes", "Bytes received from Redis.");
    wr_text_put(&m->text, "weir_sync_in_bytes_total");
    put_whole(m, m->stats.bytes_in);
    put_family(m, "weir_sync_memory_bytes", "gauge", "bytes", "Memory of the sync.");
    wr_text_put(&m->text, "weir_sync_memory_bytes");
    put_whole(m, m->stats.memory_bytes);
    put_family(m, "weir_sync_rtt_seconds", "gauge", "seconds", "Round trip of a report, smoothed.");
    put_seconds(m, "weir_sync_rtt_seconds", m->stats.rtt_ns);
    put_family(m, "weir_sync_lag_seconds", "gauge", "seconds",
               "Age of the oldest grant in the last report.");
    put_seconds(m, "weir_sync_lag_seconds", m->stats.lag_ns);
    put_family(m, "weir_sync_cpu_seconds", "counter", "seconds", "CPU time of the thread.");
    put_seconds(m, "weir_sync_cpu_seconds_total", m->stats.cpu_ns);
}

static void begin_sample(struct metrics *m, const char *name, const char *limiter) {
    wr_text_put(&m->text, name);
    wr_text_put(&m->text, "{limiter=\"");
    for (const char *c = limiter; *c != '\0'; c++) { // printable, no more
        if (*c == '"' || *c == '\\') wr_text_byte(&m->text, '\\');
        wr_text_byte(&m->text, *c);
    }
    wr_text_put(&m->text, "\"}");
}

static struct weir_sync_limiter_stats member_sample(struct metrics *m, const char *name,
                                                    const struct wr_member *member) {
    struct weir_sync_limiter_stats stats;
    wr_sync_member_stats(member, &stats);
    begin_sample(m, name, member->name);
    return stats;
}

static struct weir_sync_limiter_stats drive_sample(struct metrics *m, const char *name,
                                                   const struct wr_drive *drive) {
    struct weir_sync_limiter_stats stats;
    wr_sync_drive_stats(drive, &stats);
    begin_sample(m, name, drive->name);
    return stats;
}

static void put_limiters(struct metrics *m) {
#define FAMILY(field, type, suffix, put, help)                                                     \
    put_family(m, "weir_sync_" #field, type, "", help);                                            \
    for (const struct wr_member *member = m->sync->members; member != NULL; member = member->next) \
        if (member->weir != NULL)                                                                  \
            put(m, member_sample(m, "weir_sync_" #field suffix, member).field);                    \
    for (const struct wr_drive *drive = wr_drive_first(m->sync); drive != NULL;                    \
         drive = drive->next)                                                                      \
        if (!drive->left) put(m, drive_sample(m, "weir_sync_" #field suffix, drive).field);
#define COUNTER(field, help) FAMILY(field, "counter", "_total", put_whole, help)
#define GAUGE(field, help) FAMILY(field, "gauge", "", put_whole, help)
#define REAL(field, help) FAMILY(field, "gauge", "", put_real, help)
    LIMITER_COUNTERS(COUNTER)
    LIMITER_GAUGES(GAUGE)
    LIMITER_REALS(REAL)
#undef REAL
#undef GAUGE
#undef COUNTER
#undef FAMILY
}

int weir_sync_metrics(const struct weir_sync *sync, char *buffer, size_t size, size_t *length) {
    if (sync == NULL || (buffer == NULL && size != 0)) return WEIR_EINVAL;
    struct metrics m = {.text = {buffer, size, 0}, .sync = sync};
    pthread_mutex_t *lock = &((struct weir_sync *)(uintptr_t)sync)->lock;
    pthread_mutex_lock(lock);
    wr_sync_stats_read(sync, &m.stats);
    put_sync(&m);
    put_limiters(&m);
    pthread_mutex_unlock(lock);
    wr_text_put(&m.text, "# EOF\n");
    return wr_text_end(&m.text, length);
}
