// Carrying out an exchange: the line, the connection, what comes back. report.c has the report.
#include "group.h"

#include <string.h>

#include "script.h"
#include "sync.h"

void wr_group_init(struct wr_group *group, struct weir_sync *sync, uint32_t index, int64_t now_us) {
    const int64_t d = sync->rules.interval_us;
    const int64_t timeout_us = sync->answer_timeout_us;
    const struct wr_batch_config config = {
        .interval_us = d,
        .urgent_gap_us = 5000,
        .timeout_us = timeout_us,
        .dead_us = 3 * timeout_us,
        .backoff_min_us = 50000,
        .backoff_max_us = 2000000,
        .config_wait_us = 2000000,
        .marker_ttl_us = sync->marker_ttl_us,
    };
    *group = (struct wr_group){.sync = sync, .index = index};
    wr_batch_init(&group->batch, &config, now_us, wr_sync_random(sync));
}

// The line.

static struct wr_line *line_of(struct wr_group *group, const struct wr_record *record) {
    return record->urgent ? &group->urgent : &group->calm;
}

void wr_group_unqueue(struct wr_group *group, struct wr_record *record) {
    struct wr_line *line = line_of(group, record);
    if (!record->queued) return;
    if (record->before != NULL) record->before->after = record->after;
    else line->first = record->after;
    if (record->after != NULL) record->after->before = record->before;
    else line->last = record->before;
    record->queued = false;
    record->member->queued--;
}

void wr_group_queue(struct wr_group *group, struct wr_record *record, bool urgent) {
    if (record->queued && (record->urgent || !urgent)) return;
    wr_group_unqueue(group, record);
    record->urgent = urgent;
    struct wr_line *line = line_of(group, record);
    record->before = line->last;
    record->after = NULL;
    if (line->last != NULL) line->last->after = record;
    else line->first = record;
    line->last = record;
    record->queued = true;
    record->member->queued++;
}

struct wr_record *wr_group_next(struct wr_group *group) {
    struct wr_record *record =
        group->urgent.first != NULL ? group->urgent.first : group->calm.first;
    if (record != NULL) wr_group_unqueue(group, record);
    return record;
}

bool wr_group_is_idle(const struct wr_group *group) {
    return group->urgent.first == NULL && group->calm.first == NULL && group->count == 0;
}

enum wr_batch_want wr_group_want(const struct wr_group *group) {
    if (group->urgent.first == NULL && group->calm.first == NULL) return WR_BATCH_NOTHING;
    if (group->more) return WR_BATCH_MORE;
    if (group->urgent.first != NULL || group->sync->flush.asked) return WR_BATCH_URGENT;
    return WR_BATCH_TOUCHED;
}

// The connection.

static void drop_connection(struct wr_group *group) {
    if (group->conn == NULL) return;
    group->bytes_out += wr_conn_bytes_out(group->conn);
    group->bytes_in += wr_conn_bytes_in(group->conn);
    wr_conn_close(group->conn);
    group->conn = NULL;
    if (group->index == 0) group->sync->announced = 0;
}

// Resolving a name may take its time: without the lock. Only this thread touches groups.
static bool reach(struct wr_group *group, const char *host, uint16_t port) {
    struct weir_sync *sync = group->sync;
    struct weir_error error = {""};
    drop_connection(group);
    pthread_mutex_unlock(&sync->lock);
    struct wr_conn *conn = wr_conn_open(&sync->url, host, port, &error);
    pthread_mutex_lock(&sync->lock);
    group->conn = conn;
    if (conn == NULL)
        wr_sync_remember(sync, "no connection to Redis: %.110s; is it there, and the URL right?",
                         error.text);
    return conn != NULL;
}

static bool open_connection(struct wr_group *group, const struct wr_batch_todo *todo) {
    if ((todo->what & WR_BATCH_FOLLOW) == 0) return reach(group, NULL, 0);
    char host[sizeof todo->redirect.host];
    const char *same = group->conn != NULL ? wr_conn_host(group->conn) : group->sync->url.host;
    strcpy(host, todo->redirect.host[0] != '\0' ? todo->redirect.host : same);
    return reach(group, host, todo->redirect.port);
}

static void load(struct wr_group *group, int64_t now_us) {
    static const char *const start[] = {"SCRIPT", "LOAD"};
    const char *words[] = {start[0], start[1], wr_sync_script};
    const size_t bytes[] = {6, 4, wr_sync_script_bytes};
    wr_conn_send_words(group->conn, words, bytes, 3,
                       (struct wr_conn_tag){WR_GROUP_LOAD, 0, now_us});
    wr_conn_work(group->conn, 0);
}

// Once begun, an exchange asks for one more thing at most: what follows a fill, or a failed
// connection.
static void carry_out(struct wr_group *group, const struct wr_batch_todo *todo, int64_t now_us) {
    struct wr_batch_todo then = {.what = 0};
    const uint32_t random = wr_sync_random(group->sync);
    if (todo->what & WR_BATCH_APPLY) wr_report_apply(group);
    if (todo->what & WR_BATCH_MERGE) wr_report_merge(group);
    if (todo->what & WR_BATCH_REMOVE) wr_report_remove(group, todo, now_us);
    if (todo->what & WR_BATCH_FORGET) wr_report_forget(group);
    if ((todo->what & (WR_BATCH_CONNECT | WR_BATCH_FOLLOW)) && !open_connection(group, todo))
        wr_batch_disconnected(&group->batch, wr_sync_now_us(), random, &then);
    if (todo->what & WR_BATCH_LOAD) load(group, now_us);
    if (todo->what & WR_BATCH_FILL) {
        const enum wr_batch_want want = wr_group_want(group);
        const size_t count = wr_report_fill(group, now_us);
        wr_batch_filled(&group->batch, count, want, now_us, random, &then);
    }
    if (todo->what & WR_BATCH_SEND) wr_report_send(group, todo, now_us);
    if (group->batch.phase == WR_BATCH_CLOSED) drop_connection(group);
    if (then.what != 0) carry_out(group, &then, now_us);
}

// Events.

static void disconnected(struct wr_group *group, int64_t now_us) {
    struct wr_batch_todo todo;
    wr_batch_disconnected(&group->batch, now_us, wr_sync_random(group->sync), &todo);
    carry_out(group, &todo, now_us);
}

static void garbled(struct wr_group *group, int64_t now_us) {
    struct wr_batch_todo todo;
    wr_sync_remember(group->sync,
                     "what answers at the url is no Redis of this sync; check its host "
                     "and port");
    wr_batch_garbled(&group->batch, now_us, wr_sync_random(group->sync), &todo);
    carry_out(group, &todo, now_us);
}

static void refused(struct wr_group *group, uint64_t seq, const struct wr_conn_reply *reply,
                    int64_t now_us) {
    struct wr_batch_todo todo;
    const enum wr_wire_error error = wr_wire_error_of(reply->text, reply->bytes);
    wr_batch_refused(&group->batch, seq, reply->text, reply->bytes, now_us,
                     wr_sync_random(group->sync), &todo);
    if (wr_wire_reaction_of(error) > WR_WIRE_AGAIN)
        wr_sync_remember(group->sync, "%s (%.90s)", wr_wire_error_text(error),
                         group->batch.last_words);
    carry_out(group, &todo, now_us);
}

static void loaded(struct wr_group *group, const struct wr_conn_reply *reply, int64_t now_us) {
    struct wr_batch_todo todo;
    if (reply->type != WR_CONN_STRING || reply->bytes != WR_WIRE_SHA_BYTES) {
        garbled(group, now_us);
        return;
    }
    memcpy(group->sha, reply->text, WR_WIRE_SHA_BYTES);
    wr_batch_loaded(&group->batch, now_us, &todo);
    carry_out(group, &todo, now_us);
}

static void answered(struct wr_group *group, const struct wr_conn_reply *reply, int64_t now_us) {
    struct wr_batch_todo todo;
    const bool current = group->count > 0 && reply->tag.seq == group->batch.seq;
    if (current && (reply->type != WR_CONN_STRING ||
                    wr_wire_unpack(reply->text, reply->bytes, group->count, &group->answer,
                                   group->replies) != WR_WIRE_OK)) {
        garbled(group, now_us);
        return;
    }
    group->answered = reply->tag;
    group->answered_us = now_us;
    wr_batch_answered(&group->batch, reply->tag.seq, reply->tag.sent_us, group->answer.marker_seq,
                      now_us, &todo);
    carry_out(group, &todo, now_us);
}

static void replied(struct wr_group *group, const struct wr_conn_reply *reply, int64_t now_us) {
    if (reply->tag.kind == WR_GROUP_ASKING) return;
    if (reply->tag.kind == WR_GROUP_ANNOUNCE) wr_announce_reply(group->sync, reply);
    else if (reply->type == WR_CONN_ERROR) refused(group, reply->tag.seq, reply, now_us);
    else if (reply->tag.kind == WR_GROUP_LOAD) loaded(group, reply, now_us);
    else answered(group, reply, now_us);
}

void wr_group_work(struct wr_group *group, short ready, int64_t now_us) {
    struct wr_conn_reply reply;
    struct wr_batch_todo todo;
    if (group->conn != NULL) wr_conn_work(group->conn, ready);
    while (group->conn != NULL) {
        switch (wr_conn_next(group->conn, &reply)) {
        case WR_CONN_NOTHING: return;
        case WR_CONN_OPENED:
            wr_batch_connected(&group->batch, now_us, &todo);
            carry_out(group, &todo, now_us);
            break;
        case WR_CONN_REPLY: replied(group, &reply, now_us); break;
        case WR_CONN_REFUSED: refused(group, 0, &reply, now_us); break;
        case WR_CONN_LOST:
            wr_sync_remember(group->sync,
                             "no connection to Redis: %.110s; is it there, and the URL right?",
                             wr_conn_words(group->conn));
            disconnected(group, now_us);
            break;
        case WR_CONN_GARBLED: garbled(group, now_us); break;
        }
    }
}

void wr_group_give_up(struct wr_group *group, int64_t now_us) {
    group->batch.counts.timeouts++;
    wr_sync_remember(group->sync, "Redis did not answer in time; its connection is given up");
    disconnected(group, now_us);
}

void wr_group_leave(struct wr_group *group, int64_t now_us) {
    if (group->conn == NULL) return;
    disconnected(group, now_us);
    group->batch.counts.disconnects--; // nobody's fault
}

bool wr_group_has_room(const struct wr_group *group) {
    return group->conn != NULL && group->batch.phase == WR_BATCH_READY && group->count == 0;
}

// Outages.

static bool go_by_policy(void *context, struct wr_record *record) {
    struct wr_group *group = context;
    if (record->group != group->index) return false;
    record->m_q16 = wr_node_outage_m(&group->sync->rules, &record->key, record->m_q16);
    weir_private_set_m(record->member->weir, record->slot, record->fingerprint, record->m_q16);
    return false;
}

static void watch_outage(struct wr_group *group, int64_t now_us) {
    const bool outage = wr_batch_outage(&group->batch, now_us);
    if (outage && !group->outage)
        for (struct wr_member *m = group->sync->members; m != NULL; m = m->next)
            if (m->weir != NULL) wr_known_each(&m->keys, go_by_policy, group);
    group->outage = outage;
}

void wr_group_tick(struct wr_group *group, int64_t now_us) {
    const struct wr_batch *batch = &group->batch;
    struct wr_batch_todo todo;
    if (batch->phase == WR_BATCH_CONNECTING &&
        now_us - batch->sent_us > group->sync->connect_timeout_us) {
        wr_sync_remember(group->sync, "no connection to Redis within connect_timeout_ns");
        disconnected(group, now_us);
    }
    wr_batch_tick(&group->batch, now_us, wr_group_want(group), wr_sync_random(group->sync), &todo);
    carry_out(group, &todo, now_us);
    watch_outage(group, now_us);
}
