// published.h - what a node publishes of a limiter under a sync, once a second (sync/announce.c).
#ifndef WR_PUBLISHED_H
#define WR_PUBLISHED_H

#include <weir.h>

#include "redis.h"

struct wr_published {
    uint64_t granted; // asks, since the node started
    uint64_t denied;
    uint64_t tokens;  // granted
    bool has_limit;
    struct weir_limit limit;
    uint32_t generation;
    uint32_t groups;  // of the sync; 0: not said
};

// Asks for it by the name of the hash. One reply.
bool wr_published_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault);
// False: the reply holds no such thing.
bool wr_published_read(const struct wr_redis_reply *reply, struct wr_published *published);

// Of a node that is alive and has the limiter. `found` is false where there is none.
bool wr_published_ask(struct wr_redis *redis, const char *prefix, const char *limiter,
                      int64_t now_us, bool *found, struct wr_published *published,
                      struct wr_fault *fault);

#endif
