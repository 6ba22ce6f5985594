// One connection to a Redis: commands go out, replies come in, nothing waits. Only resolving a
// host's name may take time, within wr_conn_open.
//
// A connection opens with AUTH and SELECT where the URL asks for them. Every command has a tag,
// which comes back with its reply: Redis answers in order. One thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "url.h"

struct wr_conn;

struct wr_conn_tag {
    unsigned kind; // the caller's
    uint64_t seq;
    int64_t sent_us;
};

enum wr_conn_type {
    WR_CONN_STATUS,
    WR_CONN_STRING,
    WR_CONN_INTEGER,
    WR_CONN_NIL,
    WR_CONN_ERROR
};

struct wr_conn_reply {
    enum wr_conn_type type;
    const char *text; // until the next wr_conn_next, or wr_conn_close
    size_t bytes;
    int64_t integer;
    struct wr_conn_tag tag;
};

enum wr_conn_event {
    WR_CONN_NOTHING, // for now
    WR_CONN_OPENED,  // once: connected and logged in
    WR_CONN_REPLY,
    WR_CONN_REFUSED, // AUTH or SELECT was answered with an error: reply->text
    WR_CONN_LOST,    // no connection, or it ended: wr_conn_words says why
    WR_CONN_GARBLED  // what came is not Redis' protocol, or nobody asked for it
};

// Begins to connect: to `host` and `port` instead of the URL's where host is not NULL. NULL: it
// failed at once, and `error` has the words.
struct wr_conn *wr_conn_open(const struct wr_url *url, const char *host, uint16_t port,
                             struct weir_error *error);
void wr_conn_close(struct wr_conn *conn); // NULL is allowed

// In the child of a fork: closes its copy of the descriptor. Async-signal-safe.
void wr_conn_abandon(struct wr_conn *conn);

int wr_conn_fd(const struct wr_conn *conn);
short wr_conn_events(const struct wr_conn *conn); // for poll
// Writes and reads what can be now. `ready`: what poll said of the descriptor.
void wr_conn_work(struct wr_conn *conn, short ready);
// What has happened, one at a time, until WR_CONN_NOTHING. After LOST or GARBLED only close it.
enum wr_conn_event wr_conn_next(struct wr_conn *conn, struct wr_conn_reply *reply);

// Appends a command in Redis' protocol. Without memory the connection is lost.
void wr_conn_send(struct wr_conn *conn, const void *bytes, size_t count, struct wr_conn_tag tag);
// The same, of words.
void wr_conn_send_words(struct wr_conn *conn, const char *const *words, const size_t *bytes,
                        size_t count, struct wr_conn_tag tag);

const char *wr_conn_host(const struct wr_conn *conn); // as connected to
const char *wr_conn_words(const struct wr_conn *conn);
uint64_t wr_conn_bytes_out(const struct wr_conn *conn);
uint64_t wr_conn_bytes_in(const struct wr_conn *conn);
size_t wr_conn_memory_bytes(const struct wr_conn *conn);
