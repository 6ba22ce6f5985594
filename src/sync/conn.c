// A connection to a Redis: the only file that includes hiredis, for connecting and for its reader.
//
// Bytes are sent and received here and not by hiredis: so that a closed connection raises no
// SIGPIPE in a program that did not ask for it, and that what comes is counted and bounded.
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "say.h"

#define READ_BYTES 16384
#define READ_ROUNDS 16
#define REPLY_BYTES_MAX (1 << 20) // far more than any answer that is asked for

struct wr_conn {
    redisContext *context;
    redisReplyObjectFunctions functions; // the reader's, without lists: none is ever asked for
    redisReply *reply;                   // the last one given out
    char host[256];
    char words[256];
    bool connected; // TCP, or the socket
    bool opened;    // OPENED was said
    bool lost;
    unsigned opening; // replies to AUTH and SELECT that are to come
    char *out;
    size_t out_length;
    size_t out_sent;
    size_t out_room;
    struct wr_conn_tag *tags; // a ring, of what is not answered
    size_t tags_first;
    size_t tags_count;
    size_t tags_room; // a power of two, or 0
    uint64_t bytes_out;
    uint64_t bytes_in;
};

static void lose(struct wr_conn *conn, const char *words) {
    if (conn->lost) return;
    conn->lost = true;
    (void)snprintf(conn->words, sizeof conn->words, "%s", words);
}

static void *no_list(const redisReadTask *task, int elements) {
    (void)task;
    (void)elements;
    return NULL;
}

static bool reserve_out(struct wr_conn *conn, size_t count) {
    if (conn->out_sent == conn->out_length) conn->out_sent = conn->out_length = 0;
    if (conn->out_room - conn->out_length >= count) return true;
    size_t room = conn->out_room != 0 ? conn->out_room : 4096;
    while (room - conn->out_length < count) room *= 2;
    char *out = realloc(conn->out, room);
    if (out == NULL) return false;
    conn->out = out;
    conn->out_room = room;
    return true;
}

static bool reserve_tag(struct wr_conn *conn) {
    if (conn->tags_count < conn->tags_room) return true;
    const size_t room = conn->tags_room != 0 ? 2 * conn->tags_room : 16;
    struct wr_conn_tag *tags = malloc(room * sizeof *tags);
    if (tags == NULL) return false;
    for (size_t i = 0; i < conn->tags_count; i++)
        tags[i] = conn->tags[(conn->tags_first + i) & (conn->tags_room - 1)];
    free(conn->tags);
    conn->tags = tags;
    conn->tags_first = 0;
    conn->tags_room = room;
    return true;
}

static void put_tag(struct wr_conn *conn, struct wr_conn_tag tag) {
    conn->tags[(conn->tags_first + conn->tags_count++) & (conn->tags_room - 1)] = tag;
}

static struct wr_conn_tag take_tag(struct wr_conn *conn) {
    const struct wr_conn_tag tag = conn->tags[conn->tags_first];
    conn->tags_first = (conn->tags_first + 1) & (conn->tags_room - 1);
    conn->tags_count--;
    return tag;
}

void wr_conn_send(struct wr_conn *conn, const void *bytes, size_t count, struct wr_conn_tag tag) {
    if (conn->lost) return;
    if (!reserve_out(conn, count) || !reserve_tag(conn)) {
        lose(conn, "no memory to send to Redis");
        return;
    }
    memcpy(conn->out + conn->out_length, bytes, count);
    conn->out_length += count;
    put_tag(conn, tag);
}

void wr_conn_send_words(struct wr_conn *conn, const char *const *words, const size_t *bytes,
                        size_t count, struct wr_conn_tag tag) {
    char *command = NULL;
    const int length = redisFormatCommandArgv(&command, (int)count, (const char **)words, bytes);
    if (length < 0) {
        lose(conn, "no memory to send to Redis");
        return;
    }
    wr_conn_send(conn, command, (size_t)length, tag);
    redisFreeCommand(command);
}

static void open_with(struct wr_conn *conn, const char *const *words, size_t count) {
    size_t bytes[3];
    for (size_t i = 0; i < count; i++) bytes[i] = strlen(words[i]);
    wr_conn_send_words(conn, words, bytes, count, (struct wr_conn_tag){0});
    conn->opening++;
}

static void log_in(struct wr_conn *conn, const struct wr_url *url) {
    if (url->user[0] != '\0')
        open_with(conn, (const char *[]){"AUTH", url->user, url->password}, 3);
    else if (url->password[0] != '\0') open_with(conn, (const char *[]){"AUTH", url->password}, 2);
    if (url->database != 0) {
        char number[16];
        (void)snprintf(number, sizeof number, "%u", url->database);
        open_with(conn, (const char *[]){"SELECT", number}, 2);
    }
}

static redisContext *begin(const struct wr_url *url, const char *host, uint16_t port) {
    if (host == NULL && url->path[0] != '\0') return redisConnectUnixNonBlock(url->path);
    return redisConnectNonBlock(host != NULL ? host : url->host, host != NULL ? port : url->port);
}

struct wr_conn *wr_conn_open(const struct wr_url *url, const char *host, uint16_t port,
                             struct weir_error *error) {
    struct wr_conn *conn = calloc(1, sizeof *conn);
    redisContext *context = conn != NULL ? begin(url, host, port) : NULL;
    if (context == NULL || context->err != 0) {
        wr_sync_say(error, "%s", context != NULL ? context->errstr : "no memory");
        if (context != NULL) redisFree(context);
        free(conn);
        return NULL;
    }
    conn->context = context;
    (void)fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    if (context->connection_type == REDIS_CONN_TCP) (void)redisEnableKeepAlive(context);
    conn->functions = *context->reader->fn;
    conn->functions.createArray = no_list;
    context->reader->fn = &conn->functions;
    (void)snprintf(conn->host, sizeof conn->host, "%s", host != NULL ? host : url->host);
    log_in(conn, url);
    return conn;
}

static void drop_reply(struct wr_conn *conn) {
    if (conn->reply != NULL) freeReplyObject(conn->reply);
    conn->reply = NULL;
}

void wr_conn_close(struct wr_conn *conn) {
    if (conn == NULL) return;
    drop_reply(conn);
    redisFree(conn->context);
    free(conn->out);
    free(conn->tags);
    free(conn);
}

void wr_conn_abandon(struct wr_conn *conn) {
    if (conn == NULL || conn->context->fd < 0) return;
    close(conn->context->fd);
    conn->context->fd = -1;
    conn->lost = true;
}

int wr_conn_fd(const struct wr_conn *conn) {
    return conn->context->fd;
}

short wr_conn_events(const struct wr_conn *conn) {
    const bool write = !conn->connected || conn->out_sent < conn->out_length;
    return (short)(POLLIN | (write ? POLLOUT : 0));
}

static void finish_connecting(struct wr_conn *conn, short ready) {
    if ((ready & (POLLOUT | POLLERR | POLLHUP)) == 0) return;
    int code = 0;
    socklen_t bytes = sizeof code;
    if (getsockopt(conn->context->fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) code = errno;
    char words[128];
    if (code != 0) lose(conn, strerror_r(code, words, sizeof words));
    else conn->connected = true;
}

static bool is_for_later(int code) {
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

static void write_out(struct wr_conn *conn) {
    while (!conn->lost && conn->out_sent < conn->out_length) {
        const ssize_t count = send(conn->context->fd, conn->out + conn->out_sent,
                                   conn->out_length - conn->out_sent, MSG_NOSIGNAL);
        char words[128];
        if (count < 0 && !is_for_later(errno)) lose(conn, strerror_r(errno, words, sizeof words));
        if (count <= 0) return;
        conn->out_sent += (size_t)count;
        conn->bytes_out += (uint64_t)count;
    }
}

static void read_in(struct wr_conn *conn) {
    char bytes[READ_BYTES], words[128];
    for (int round = 0; round < READ_ROUNDS && !conn->lost; round++) {
        const ssize_t count = recv(conn->context->fd, bytes, sizeof bytes, 0);
        if (count < 0) {
            if (!is_for_later(errno)) lose(conn, strerror_r(errno, words, sizeof words));
            return;
        }
        if (count == 0) {
            lose(conn, "Redis closed the connection");
            return;
        }
        conn->bytes_in += (uint64_t)count;
        if (redisReaderFeed(conn->context->reader, bytes, (size_t)count) != REDIS_OK) return;
        if ((size_t)count < sizeof bytes) return;
    }
}

void wr_conn_work(struct wr_conn *conn, short ready) {
    if (conn->lost) return;
    if (!conn->connected) finish_connecting(conn, ready);
    if (!conn->connected) return;
    write_out(conn);
    if ((ready & ~POLLOUT) != 0) read_in(conn);
}

static bool read_reply(const redisReply *from, struct wr_conn_reply *reply) {
    static const enum wr_conn_type types[] = {
        [REDIS_REPLY_STRING] = WR_CONN_STRING, [REDIS_REPLY_INTEGER] = WR_CONN_INTEGER,
        [REDIS_REPLY_NIL] = WR_CONN_NIL,       [REDIS_REPLY_STATUS] = WR_CONN_STATUS,
        [REDIS_REPLY_ERROR] = WR_CONN_ERROR,
    };
    if (from->type == REDIS_REPLY_ARRAY || from->type < 1 || from->type > REDIS_REPLY_ERROR)
        return false;
    reply->type = types[from->type];
    reply->text = from->str != NULL ? from->str : "";
    reply->bytes = from->str != NULL ? (size_t)from->len : 0;
    reply->integer = from->integer;
    return true;
}

static enum wr_conn_event garbled(struct wr_conn *conn) {
    lose(conn, "what answers there does not speak Redis' protocol");
    return WR_CONN_GARBLED;
}

enum wr_conn_event wr_conn_next(struct wr_conn *conn, struct wr_conn_reply *reply) {
    void *next = NULL;
    drop_reply(conn);
    for (;;) {
        if (conn->connected && conn->opening == 0 && !conn->opened) {
            conn->opened = true;
            return WR_CONN_OPENED;
        }
        if (conn->context->reader->len > REPLY_BYTES_MAX ||
            redisGetReplyFromReader(conn->context, &next) != REDIS_OK)
            return garbled(conn);
        if (next == NULL) return conn->lost ? WR_CONN_LOST : WR_CONN_NOTHING;
        conn->reply = next;
        if (conn->tags_count == 0 || !read_reply(conn->reply, reply)) return garbled(conn);
        reply->tag = take_tag(conn);
        if (conn->opening == 0) return WR_CONN_REPLY;
        conn->opening--;
        if (reply->type == WR_CONN_ERROR) return WR_CONN_REFUSED;
        drop_reply(conn);
    }
}

const char *wr_conn_host(const struct wr_conn *conn) {
    return conn->host;
}

const char *wr_conn_words(const struct wr_conn *conn) {
    return conn->words;
}

uint64_t wr_conn_bytes_out(const struct wr_conn *conn) {
    return conn->bytes_out;
}

uint64_t wr_conn_bytes_in(const struct wr_conn *conn) {
    return conn->bytes_in;
}

size_t wr_conn_memory_bytes(const struct wr_conn *conn) {
    return sizeof *conn + conn->out_room + conn->tags_room * sizeof *conn->tags;
}
