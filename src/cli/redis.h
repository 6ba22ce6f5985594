// redis.h - the command's one way to Redis: a connection, commands, and what came back.
//
// It waits for its answers; nothing here is for a decision. One thread.
#ifndef WR_REDIS_H
#define WR_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis_url.h"
#include "text.h"

struct wr_redis;
struct wr_redis_reply;

enum wr_redis_kind {
    WR_REDIS_NONE, // there is no such key
    WR_REDIS_TEXT,
    WR_REDIS_INTEGER,
    WR_REDIS_LIST,
    WR_REDIS_ERROR
};

struct wr_redis_value {
    enum wr_redis_kind kind;
    int64_t integer;
    struct wr_text text; // of a text, or of an error
    size_t count;        // of a list
};

// Connects, gives the password and chooses the database; each answer is waited for `timeout_ns`.
bool wr_redis_open(struct wr_redis **redis, const struct wr_url *url, uint64_t timeout_ns,
                   struct wr_fault *fault);
// NULL is allowed.
void wr_redis_close(struct wr_redis *redis);

// Several commands may be sent before their answers are taken, in the same order.
bool wr_redis_send(struct wr_redis *redis, const struct wr_text *words, size_t count,
                   struct wr_fault *fault);
// False: the connection is lost. An error that Redis answered is a reply.
bool wr_redis_next(struct wr_redis *redis, struct wr_redis_reply **reply, struct wr_fault *fault);
void wr_redis_drop(struct wr_redis_reply *reply);

// One command of C strings, up to NULL, whose answer must not be an error; NULL otherwise. The
// second word is the key, if the command has one.
struct wr_redis_reply *wr_redis_ask(struct wr_redis *redis, struct wr_fault *fault,
                                    const char *word, ...) __attribute__((sentinel));

struct wr_redis_value wr_redis_look(const struct wr_redis_reply *reply);
// Of a list; NONE where it has no such place.
struct wr_redis_value wr_redis_look_at(const struct wr_redis_reply *reply, size_t place);
const struct wr_redis_reply *wr_redis_item(const struct wr_redis_reply *reply, size_t place);

// Whether the error says that the key holds another type.
bool wr_redis_is_wrong_type(struct wr_redis_value value);

// What an error means and what helps: fills the fault, and returns false.
bool wr_redis_refused(const struct wr_redis *redis, struct wr_text error, struct wr_fault *fault);

// Redis TIME.
bool wr_redis_time_us(struct wr_redis *redis, int64_t *now_us, struct wr_fault *fault);

// How many nodes of a prefix were seen of late, with this limiter. `limiter` "": with any.
bool wr_redis_nodes(struct wr_redis *redis, const char *prefix, const char *limiter,
                    int64_t now_us, int64_t *nodes, struct wr_fault *fault);

// A whole number from 0 to 2^64-1, in decimal and nothing else. 0 where it is none.
bool wr_redis_whole(struct wr_redis_value value, uint64_t *number);
// A score of a sorted set as a count, rounded down, 2^63-1 at most. False: it is below 1, or none.
bool wr_redis_score(struct wr_redis_value value, uint64_t *count);
// The length of an epoch, in the range that weir has. 0: it is none.
int64_t wr_redis_epoch_us(struct wr_redis_value value);
// The answer to TIME.
bool wr_redis_time_read(const struct wr_redis_reply *reply, int64_t *now_us);

#define WR_REDIS_MS_BYTES 24
// The least score in a set of nodes of one that is alive.
void wr_redis_alive_since(int64_t now_us, char since_ms[WR_REDIS_MS_BYTES]);

// The pattern of names that begin with `text`; room for twice its length and two.
void wr_redis_pattern(const char *text, char *pattern);

#endif
