// A connection of a strict limiter: open it, load the script, one call at a time.
//
// A call that is not answered in time gives up its connection: Redis then answers the repeated
// call, of the same number, on another one.
#include "drive_lane.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define BACKOFF_MIN_US INT64_C(20000)
#define BACKOFF_MAX_US INT64_C(1000000)
#define CONFIG_WAIT_US INT64_C(2000000)
#define AGAIN_US INT64_C(5000)
#define HOPS_MAX 5

enum { LOAD = 1, CALL, ASKING };

static struct wr_drive_lane *lane_of(struct wr_drive *drive, uint32_t group) {
    return &drive->lanes[group];
}

static void remember(struct wr_drive *drive, const char *what, const char *words) {
    pthread_mutex_lock(&drive->sync->lock);
    wr_sync_remember(drive->sync, "%s (strict limit %s: %.90s)", what, drive->name, words);
    pthread_mutex_unlock(&drive->sync->lock);
}

void wr_lane_drop(struct wr_drive *drive, uint32_t group) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    if (lane->conn != NULL) {
        wr_strict_count(&drive->counts.bytes_out, wr_conn_bytes_out(lane->conn));
        wr_strict_count(&drive->counts.bytes_in, wr_conn_bytes_in(lane->conn));
    }
    wr_conn_close(lane->conn);
    lane->conn = NULL;
    lane->phase = WR_DRIVE_CLOSED;
    lane->asking = false;
    wr_strict_lost(drive->strict, group);
}

static void hold(struct wr_drive *drive, struct wr_drive_lane *lane, int64_t wait_us) {
    const int64_t half = wait_us / 2;
    const uint32_t random = wr_sync_random(drive->sync);
    lane->hold_us = wr_sync_now_us() + half + (int64_t)((uint64_t)half * (random >> 8) >> 24);
}

static void back_off(struct wr_drive *drive, struct wr_drive_lane *lane) {
    const uint32_t doublings = lane->failures < 6 ? lane->failures : 6;
    lane->failures++;
    hold(drive, lane, wr_min_i64(BACKOFF_MIN_US << doublings, BACKOFF_MAX_US));
}

static void fail(struct wr_drive *drive, uint32_t group, int64_t wait_us) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    wr_lane_drop(drive, group);
    if (wait_us != 0) hold(drive, lane, wait_us);
    else back_off(drive, lane);
}

static void open_to(struct wr_drive *drive, uint32_t group, const char *host, uint16_t port) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    struct weir_error error = {""};
    wr_lane_drop(drive, group);
    lane->conn = wr_conn_open(&drive->sync->url, host, port, &error);
    lane->phase = WR_DRIVE_OPENING;
    lane->since_us = wr_sync_now_us();
    if (lane->conn != NULL) return;
    wr_strict_count(&drive->counts.disconnects, 1);
    remember(drive, "no connection to Redis", error.text);
    fail(drive, group, 0);
}

static void load(struct wr_drive_lane *lane, int64_t now_us) {
    const char *words[] = {"SCRIPT", "LOAD", wr_strict_script};
    const size_t bytes[] = {6, 4, wr_strict_script_bytes};
    wr_conn_send_words(lane->conn, words, bytes, 3, (struct wr_conn_tag){LOAD, 0, now_us});
    wr_conn_work(lane->conn, 0);
    lane->phase = WR_DRIVE_LOADING;
    lane->since_us = now_us;
}

static void call(struct wr_drive *drive, uint32_t group, int64_t now_us) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    char *pack = drive->sync->pack;
    _Static_assert(WR_STRICT_COMMAND_MAX <= WR_SYNC_PACK_BYTES, "a call fits");
    if (!wr_strict_want(drive->strict, group)) return;
    const size_t bytes =
        wr_strict_pack(drive->strict, group, lane->sha, now_us, pack, WR_SYNC_PACK_BYTES);
    if (bytes == 0) return;
    if (lane->asking)
        wr_conn_send_words(lane->conn, (const char *[]){"ASKING"}, (const size_t[]){6}, 1,
                           (struct wr_conn_tag){ASKING, 0, now_us});
    wr_conn_send(lane->conn, pack, bytes, (struct wr_conn_tag){CALL, 0, now_us});
    wr_conn_work(lane->conn, 0);
    lane->phase = WR_DRIVE_SENT;
    lane->since_us = now_us;
}

static int64_t patience_us(const struct wr_drive *drive, enum wr_drive_phase phase) {
    if (phase == WR_DRIVE_OPENING) return drive->sync->connect_timeout_us;
    return drive->sync->answer_timeout_us;
}

void wr_lane_tick(struct wr_drive *drive, uint32_t group, int64_t now_us) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    switch (lane->phase) {
    case WR_DRIVE_CLOSED:
        if (now_us >= lane->hold_us) open_to(drive, group, NULL, 0);
        break;
    case WR_DRIVE_OPENING:
    case WR_DRIVE_LOADING:
    case WR_DRIVE_SENT:
        if (now_us - lane->since_us <= patience_us(drive, lane->phase)) break;
        wr_strict_count(&drive->counts.timeouts, 1);
        remember(drive, "Redis did not answer in time", "its connection is given up");
        fail(drive, group, 0);
        break;
    case WR_DRIVE_READY:
        if (now_us >= lane->hold_us) call(drive, group, now_us);
        break;
    }
}

static void follow(struct wr_drive *drive, uint32_t group, const struct wr_conn_reply *reply) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    struct wr_wire_redirect to;
    char host[sizeof to.host];
    const bool ask = wr_wire_error_of(reply->text, reply->bytes) == WR_WIRE_ASK;
    if (++lane->hops > HOPS_MAX || !wr_wire_redirect_of(reply->text, reply->bytes, &to)) {
        lane->hops = 0;
        fail(drive, group, 0);
        return;
    }
    strcpy(host, to.host[0] != '\0' ? to.host : wr_conn_host(lane->conn));
    open_to(drive, group, host, to.port);
    lane->asking = ask;
}

static void refused(struct wr_drive *drive, uint32_t group, const struct wr_conn_reply *reply) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    char words[96];
    (void)snprintf(words, sizeof words, "%.*s", (int)(reply->bytes < 95 ? reply->bytes : 95),
                   reply->text);
    const enum wr_wire_error error = wr_wire_error_of(reply->text, reply->bytes);
    wr_strict_count(&drive->counts.refused, 1);
    lane->phase = WR_DRIVE_READY;
    const enum wr_wire_reaction reaction =
        wr_strict_refused(drive->strict, group, reply->text, reply->bytes);
    if (reaction > WR_WIRE_AGAIN) remember(drive, wr_wire_error_text(error), words);
    switch (reaction) {
    case WR_WIRE_LOAD: load(lane, wr_sync_now_us()); break;
    case WR_WIRE_FOLLOW: follow(drive, group, reply); break;
    case WR_WIRE_AGAIN: hold(drive, lane, AGAIN_US); break;
    case WR_WIRE_KEYS: break;
    case WR_WIRE_WAIT: back_off(drive, lane); break;
    case WR_WIRE_RECONNECT: fail(drive, group, 0); break;
    case WR_WIRE_CONFIG: fail(drive, group, CONFIG_WAIT_US); break;
    }
}

// An error to what the connection opens with, or to SCRIPT LOAD.
static void not_opened(struct wr_drive *drive, uint32_t group, const struct wr_conn_reply *reply) {
    char words[96];
    (void)snprintf(words, sizeof words, "%.*s", (int)(reply->bytes < 95 ? reply->bytes : 95),
                   reply->text);
    const enum wr_wire_error error = wr_wire_error_of(reply->text, reply->bytes);
    wr_strict_count(&drive->counts.refused, 1);
    remember(drive, wr_wire_error_text(error), words);
    fail(drive, group, wr_wire_reaction_of(error) == WR_WIRE_CONFIG ? CONFIG_WAIT_US : 0);
}

static void garbled(struct wr_drive *drive, uint32_t group) {
    wr_strict_count(&drive->counts.garbage, 1);
    remember(drive, "what answers at the url is no Redis of this sync", "check its host and port");
    fail(drive, group, CONFIG_WAIT_US);
}

static void answered(struct wr_drive *drive, uint32_t group, const struct wr_conn_reply *reply) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    if (reply->type != WR_CONN_STRING ||
        wr_strict_answer(drive->strict, group, reply->text, reply->bytes, reply->tag.sent_us,
                         wr_sync_now_us()) != WR_WIRE_OK) {
        garbled(drive, group);
        return;
    }
    lane->phase = WR_DRIVE_READY;
    lane->failures = 0;
    lane->hops = 0;
}

static void replied(struct wr_drive *drive, uint32_t group, const struct wr_conn_reply *reply) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    if (reply->tag.kind == ASKING) return;
    if (reply->tag.kind == CALL) {
        if (reply->type == WR_CONN_ERROR) refused(drive, group, reply);
        else answered(drive, group, reply);
    } else if (reply->type == WR_CONN_ERROR) {
        not_opened(drive, group, reply);
    } else if (reply->type != WR_CONN_STRING || reply->bytes != WR_WIRE_SHA_BYTES) {
        garbled(drive, group);
    } else {
        memcpy(lane->sha, reply->text, WR_WIRE_SHA_BYTES);
        lane->loaded = true;
        lane->phase = WR_DRIVE_READY;
    }
}

void wr_lane_work(struct wr_drive *drive, uint32_t group, short ready) {
    struct wr_drive_lane *lane = lane_of(drive, group);
    struct wr_conn_reply reply;
    bool more = true;
    if (lane->conn != NULL) wr_conn_work(lane->conn, ready);
    while (more && lane->conn != NULL) {
        switch (wr_conn_next(lane->conn, &reply)) {
        case WR_CONN_NOTHING: more = false; break;
        case WR_CONN_OPENED:
            lane->phase = WR_DRIVE_READY;
            if (!lane->loaded) load(lane, wr_sync_now_us());
            break;
        case WR_CONN_REPLY: replied(drive, group, &reply); break;
        case WR_CONN_REFUSED: not_opened(drive, group, &reply); break;
        case WR_CONN_LOST:
            wr_strict_count(&drive->counts.disconnects, 1);
            remember(drive, "no connection to Redis", wr_conn_words(lane->conn));
            fail(drive, group, 0);
            break;
        case WR_CONN_GARBLED: garbled(drive, group); break;
        }
    }
    if (lane->phase == WR_DRIVE_READY) wr_lane_tick(drive, group, wr_sync_now_us());
}
