// The exchange of one group. batch.h says what it promises.
//
// Invariants
//   keys == 0          <=> no report is held; then on_wire and lost are 0 and its attempts over
//   phase SENT          => keys > 0 and on_wire > 0
//   a report is merged back or loses keys only with on_wire == 0, and merged only with lost == 0
//   seq rises by one with each report filled and is never used for two
#include "batch.h"

#include <string.h>

#define LOADS_MAX 3
#define HOPS_MAX 5

// low + (high - low) * u
static int64_t between(int64_t low_us, int64_t high_us, uint32_t random) {
    return low_us + (int64_t)((wr_u128)(uint64_t)(high_us - low_us) * random >> 32);
}

static int64_t jittered_interval(const struct wr_batch *batch, uint32_t random) {
    const int64_t d = batch->config.interval_us;
    return between(d - d / 10, d + d / 10, random);
}

static void count_outcome(struct wr_batch *batch, bool good, int64_t now_us) {
    if (wr_breaker_count(&batch->breaker, good, now_us)) batch->counts.breaker_opened++;
}

// A wait that doubles with each failure in a row; an open breaker waits the longest at once.
static int64_t backoff_us(const struct wr_batch *batch, int64_t first_us, uint32_t failures) {
    const int64_t most = wr_max_i64(batch->config.backoff_max_us, first_us);
    if (batch->breaker.open) return most;
    const uint32_t doublings = failures > 1 ? failures - 1 : 0;
    if (doublings >= 32 || first_us > most >> doublings) return most;
    return first_us << doublings;
}

static void hold(struct wr_batch *batch, int64_t wait_us, int64_t now_us, uint32_t random) {
    batch->hold_us = now_us + between(wait_us / 2, wait_us, random);
}

static void failed(struct wr_batch *batch, int64_t now_us, uint32_t random) {
    batch->failures++;
    count_outcome(batch, false, now_us);
    hold(batch, backoff_us(batch, batch->config.backoff_min_us, batch->failures), now_us, random);
}

static void done_with_report(struct wr_batch *batch) {
    batch->keys = 0;
    batch->on_wire = 0;
    batch->lost = 0;
    batch->attempts = 0;
    batch->loads = 0;
    batch->hops = 0;
}

static void close_connection(struct wr_batch *batch) {
    batch->lost += batch->on_wire;
    batch->on_wire = 0;
    batch->asking = false;
    batch->phase = WR_BATCH_CLOSED;
}

static void merge_if_certain(struct wr_batch *batch, struct wr_batch_todo *todo) {
    if (batch->keys == 0 || batch->lost > 0) return;
    todo->what |= WR_BATCH_MERGE;
    done_with_report(batch);
}

static bool is_expired(const struct wr_batch *batch, int64_t now_us) {
    return batch->keys > 0 && batch->lost + batch->on_wire > 0 &&
           now_us - batch->filled_us > batch->config.marker_ttl_us / 2;
}

static void forget(struct wr_batch *batch, struct wr_batch_todo *todo) {
    todo->what |= WR_BATCH_FORGET;
    batch->counts.forgotten++;
    done_with_report(batch);
}

static void send_report(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo) {
    todo->what |= WR_BATCH_SEND;
    todo->seq = batch->seq;
    todo->asking = batch->asking;
    batch->attempts++;
    batch->on_wire++;
    batch->sent_us = now_us;
    batch->phase = WR_BATCH_SENT;
}

static void load(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo) {
    todo->what |= WR_BATCH_LOAD;
    batch->sent_us = now_us;
    batch->phase = WR_BATCH_LOADING;
}

static void open_connection(struct wr_batch *batch, unsigned how, int64_t now_us,
                            struct wr_batch_todo *todo) {
    close_connection(batch);
    todo->what |= how;
    batch->sent_us = now_us;
    batch->phase = WR_BATCH_CONNECTING;
}

static void begin(struct wr_batch_todo *todo) {
    todo->what = 0;
    todo->bad_count = 0;
}

void wr_batch_init(struct wr_batch *batch, const struct wr_batch_config *config, int64_t now_us,
                   uint32_t random) {
    *batch = (struct wr_batch){.config = *config, .phase = WR_BATCH_CLOSED};
    batch->hold_us = now_us;
    batch->filled_us = now_us - config->urgent_gap_us;
    batch->due_us = now_us + between(0, config->interval_us, random);
    batch->waiting_us = INT64_MIN;
    wr_breaker_init(&batch->breaker, now_us);
    batch->last_error = WR_WIRE_UNKNOWN;
}

static int64_t resend_us(const struct wr_batch *batch) {
    const int64_t patience = wr_max_i64(batch->config.timeout_us, 2 * batch->rtt_us);
    return batch->sent_us + backoff_us(batch, patience, batch->attempts);
}

static void tick_sent(struct wr_batch *batch, int64_t now_us, uint32_t random,
                      struct wr_batch_todo *todo) {
    if (now_us < resend_us(batch)) return;
    batch->counts.timeouts++;
    failed(batch, now_us, random);
    if (now_us - batch->heard_us > batch->config.dead_us)
        open_connection(batch, WR_BATCH_CONNECT, now_us, todo);
    else if (!is_expired(batch, now_us))
        send_report(batch, now_us, todo);
}

static bool is_due(const struct wr_batch *batch, enum wr_batch_want want, int64_t now_us) {
    if (want == WR_BATCH_NOTHING) return false;
    if (want == WR_BATCH_MORE || now_us >= batch->due_us) return true;
    return want == WR_BATCH_URGENT && now_us >= batch->filled_us + batch->config.urgent_gap_us;
}

static void tick_ready(struct wr_batch *batch, int64_t now_us, enum wr_batch_want want,
                       uint32_t random, struct wr_batch_todo *todo) {
    if (now_us < batch->hold_us) return;
    if (batch->keys > 0) {
        send_report(batch, now_us, todo);
    } else if (is_due(batch, want, now_us)) {
        todo->what |= WR_BATCH_FILL;
    } else if (want == WR_BATCH_NOTHING) {
        batch->waiting_us = INT64_MIN;
        if (now_us >= batch->due_us) batch->due_us = now_us + jittered_interval(batch, random);
    }
}

void wr_batch_tick(struct wr_batch *batch, int64_t now_us, enum wr_batch_want want,
                   uint32_t random, struct wr_batch_todo *todo) {
    begin(todo);
    if (batch->phase != WR_BATCH_READY && want != WR_BATCH_NOTHING &&
        batch->waiting_us == INT64_MIN)
        batch->waiting_us = now_us;
    switch (batch->phase) {
    case WR_BATCH_CLOSED:
        if (now_us >= batch->hold_us) open_connection(batch, WR_BATCH_CONNECT, now_us, todo);
        break;
    case WR_BATCH_CONNECTING:
    case WR_BATCH_LOADING:
        if (now_us - batch->sent_us <= batch->config.dead_us) break;
        batch->counts.timeouts++;
        failed(batch, now_us, random);
        close_connection(batch);
        break;
    case WR_BATCH_READY:
        tick_ready(batch, now_us, want, random, todo);
        break;
    case WR_BATCH_SENT:
        tick_sent(batch, now_us, random, todo);
        break;
    }
    if (!is_expired(batch, now_us)) return;
    // A late copy of it must not meet a Redis that has forgotten the marker: leave the connection.
    todo->what &= ~(unsigned)WR_BATCH_SEND;
    forget(batch, todo);
    if (batch->phase == WR_BATCH_SENT) open_connection(batch, WR_BATCH_CONNECT, now_us, todo);
}

void wr_batch_connected(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo) {
    begin(todo);
    batch->heard_us = now_us;
    if (!batch->loaded) {
        load(batch, now_us, todo);
        return;
    }
    batch->phase = WR_BATCH_READY;
    if (batch->keys > 0 && now_us >= batch->hold_us) send_report(batch, now_us, todo);
}

void wr_batch_disconnected(struct wr_batch *batch, int64_t now_us, uint32_t random,
                           struct wr_batch_todo *todo) {
    begin(todo);
    batch->counts.disconnects++;
    failed(batch, now_us, random);
    close_connection(batch);
}

void wr_batch_loaded(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo) {
    begin(todo);
    batch->heard_us = now_us;
    batch->loaded = true;
    batch->phase = WR_BATCH_READY;
    if (batch->keys > 0) send_report(batch, now_us, todo);
}

void wr_batch_filled(struct wr_batch *batch, size_t keys, enum wr_batch_want want, int64_t now_us,
                     uint32_t random, struct wr_batch_todo *todo) {
    begin(todo);
    if (want != WR_BATCH_MORE || now_us >= batch->due_us)
        batch->due_us = now_us + jittered_interval(batch, random);
    if (keys == 0) return;
    batch->keys = keys;
    batch->seq++;
    batch->filled_us = now_us;
    if (batch->waiting_us == INT64_MIN) batch->waiting_us = now_us;
    send_report(batch, now_us, todo);
}

static void check_marker(struct wr_batch *batch, int64_t marker_seq) {
    const uint64_t found = marker_seq < 0 ? 0 : (uint64_t)marker_seq;
    if (found < batch->acked_seq) batch->counts.marker_lost++;
    if (found > batch->seq) {
        batch->counts.marker_ahead++;
        batch->seq = found;
    }
}

void wr_batch_answered(struct wr_batch *batch, uint64_t seq, int64_t sent_us, int64_t marker_seq,
                       int64_t now_us, struct wr_batch_todo *todo) {
    begin(todo);
    batch->heard_us = now_us;
    if (batch->keys == 0 || seq != batch->seq) {
        batch->counts.stale++;
        return;
    }
    const int64_t rtt_us = now_us - sent_us;
    batch->rtt_us = batch->rtt_us == 0 ? rtt_us : batch->rtt_us + (rtt_us - batch->rtt_us) / 8;
    check_marker(batch, marker_seq);
    batch->acked_seq = batch->seq;
    batch->counts.answered++;
    batch->failures = 0;
    batch->waiting_us = INT64_MIN;
    count_outcome(batch, true, now_us);
    done_with_report(batch);
    if (batch->phase == WR_BATCH_SENT) batch->phase = WR_BATCH_READY;
    batch->hold_us = now_us;
    todo->what |= WR_BATCH_APPLY;
}

static void remember(struct wr_batch *batch, enum wr_wire_error error, const char *text,
                     size_t bytes) {
    const size_t room = sizeof batch->last_words - 1;
    const size_t count = bytes < room ? bytes : room;
    for (size_t i = 0; i < count; i++)
        batch->last_words[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    batch->last_words[count] = 0;
    batch->last_error = error;
    batch->counts.errors[error]++;
}

static void slow_down(struct wr_batch *batch, int64_t now_us, uint32_t random,
                      struct wr_batch_todo *todo) {
    failed(batch, now_us, random);
    hold(batch, batch->config.config_wait_us, now_us, random);
    merge_if_certain(batch, todo);
    close_connection(batch);
}

static void follow(struct wr_batch *batch, bool asking, const char *text, size_t bytes,
                   int64_t now_us, uint32_t random, struct wr_batch_todo *todo) {
    if (++batch->hops > HOPS_MAX || !wr_wire_redirect_of(text, bytes, &todo->redirect)) {
        failed(batch, now_us, random);
        batch->hops = 0;
        close_connection(batch);
        return;
    }
    open_connection(batch, WR_BATCH_FOLLOW, now_us, todo);
    batch->hold_us = now_us;
    batch->asking = asking;
    todo->asking = asking;
}

static void remove_keys(struct wr_batch *batch, const char *text, size_t bytes, int64_t now_us,
                        uint32_t random, struct wr_batch_todo *todo) {
    todo->bad_count = wr_wire_bad_keys(text, bytes, batch->keys, todo->bad);
    if (todo->bad_count == 0) {
        slow_down(batch, now_us, random, todo);
        return;
    }
    todo->what |= WR_BATCH_REMOVE;
    batch->phase = WR_BATCH_READY;
    batch->keys -= todo->bad_count;
    if (batch->keys > 0) send_report(batch, now_us, todo);
    else done_with_report(batch);
}

static void react(struct wr_batch *batch, enum wr_wire_error error, const char *text,
                  size_t bytes, int64_t now_us, uint32_t random, struct wr_batch_todo *todo) {
    batch->phase = WR_BATCH_READY;
    switch (wr_wire_reaction_of(error)) {
    case WR_WIRE_LOAD:
        if (++batch->loads <= LOADS_MAX) {
            load(batch, now_us, todo);
            return;
        }
        batch->loads = 0;
        break;
    case WR_WIRE_FOLLOW:
        follow(batch, error == WR_WIRE_ASK, text, bytes, now_us, random, todo);
        return;
    case WR_WIRE_AGAIN:
        hold(batch, batch->config.backoff_min_us, now_us, random);
        return;
    case WR_WIRE_KEYS:
        remove_keys(batch, text, bytes, now_us, random, todo);
        return;
    case WR_WIRE_CONFIG:
        slow_down(batch, now_us, random, todo);
        return;
    case WR_WIRE_RECONNECT:
        failed(batch, now_us, random);
        merge_if_certain(batch, todo);
        close_connection(batch);
        return;
    case WR_WIRE_WAIT:
        break;
    }
    failed(batch, now_us, random);
    merge_if_certain(batch, todo);
}

void wr_batch_refused(struct wr_batch *batch, uint64_t seq, const char *text, size_t bytes,
                      int64_t now_us, uint32_t random, struct wr_batch_todo *todo) {
    begin(todo);
    batch->heard_us = now_us;
    const enum wr_wire_error error = wr_wire_error_of(text, bytes);
    remember(batch, error, text, bytes);
    if (seq == 0) { // SCRIPT LOAD, or the opening of the connection
        if (wr_wire_reaction_of(error) == WR_WIRE_CONFIG) slow_down(batch, now_us, random, todo);
        else {
            failed(batch, now_us, random);
            close_connection(batch);
        }
        return;
    }
    if (batch->keys == 0 || seq != batch->seq || batch->on_wire == 0) {
        batch->counts.stale++;
        return;
    }
    if (--batch->on_wire > 0) return; // another attempt is still to be answered
    react(batch, error, text, bytes, now_us, random, todo);
}

void wr_batch_garbled(struct wr_batch *batch, int64_t now_us, uint32_t random,
                      struct wr_batch_todo *todo) {
    begin(todo);
    batch->counts.garbage++;
    failed(batch, now_us, random);
    hold(batch, batch->config.config_wait_us, now_us, random);
    close_connection(batch);
}

int64_t wr_batch_wake_us(const struct wr_batch *batch) {
    switch (batch->phase) {
    case WR_BATCH_CONNECTING:
    case WR_BATCH_LOADING:
        return batch->sent_us + batch->config.dead_us + 1;
    case WR_BATCH_SENT:
        return resend_us(batch);
    case WR_BATCH_READY:
        if (batch->keys == 0) return wr_max_i64(batch->hold_us, batch->due_us);
        break;
    case WR_BATCH_CLOSED:
        break;
    }
    return batch->hold_us;
}

bool wr_batch_outage(const struct wr_batch *batch, int64_t now_us) {
    if (batch->breaker.open) return true;
    return batch->waiting_us != INT64_MIN &&
           now_us - batch->waiting_us > 2 * batch->config.interval_us + batch->rtt_us;
}
