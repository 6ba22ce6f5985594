// published.h - what a node publishes of a limiter under a sync, once a second (sync/announce.c).
#ifndef WR_PUBLISHED_H
#define WR_PUBLISHED_H

#include <weir.h>

#include "redis.h"

// A field that is no whole number below 2^63 is as good as absent; so is a limit of which a part is
// absent, or that weir does not take.
struct wr_published {
    uint64_t granted; // asks, since the node started
    uint64_t denied;
    uint64_t tokens;  // granted
    bool has_limit;
    struct weir_limit limit; // tokens WEIR_UNLIMITED_TOKENS: none is in force
    uint32_t generation;
    uint32_t groups;  // of the sync, to 64; 0: not said
};

// Asks for it by the name of the hash. One reply.
bool wr_published_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault);
// False: the reply holds no such thing.
bool wr_published_read(const struct wr_redis_reply *reply, struct wr_published *published);

// Whether weir takes such a limit, one that is no unlimited().
bool wr_published_limit_ok(const struct weir_limit *limit);

enum wr_published_by {
    WR_PUBLISHED_NONE,
    WR_PUBLISHED_ALIVE,
    WR_PUBLISHED_GONE // it stopped: what it published lives 10 s more
};

// Of a node that has the limiter and is alive, else of one that is gone; the latter is looked for
// in the first pages of SCAN only.
bool wr_published_ask(struct wr_redis *redis, const char *prefix, const char *limiter,
                      int64_t now_us, enum wr_published_by *by, struct wr_published *published,
                      struct wr_fault *fault);

#endif
