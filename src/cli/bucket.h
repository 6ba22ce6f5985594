// bucket.h - the buckets of a sync as they stand in Redis, for people.
#ifndef WR_BUCKET_H
#define WR_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "../sync/wire.h"
#include "text.h"

#define WR_BUCKET_NAME_BYTES (2 * WR_WIRE_NAME_MAX + WR_WIRE_KEY_MAX + 32) // in Redis
#define WR_BUCKET_SHOWN_BYTES (4 * WR_WIRE_KEY_MAX + 8)
#define WR_BUCKET_GROUPS_MAX 64

// A key as its bytes stand in a bucket's name.
struct wr_bucket_key {
    char bytes[WR_WIRE_KEY_MAX];
    size_t length;
};

// `text` is the key itself, with \xNN for a byte, or id:NUMBER for an integer. Longer keys become
// the hash that stands for them. False: no memory.
bool wr_bucket_key_parse(const char *text, struct wr_bucket_key *key, struct wr_fault *fault);

// The same way round: what is shown is read back as the same key. `out` is of
// WR_BUCKET_SHOWN_BYTES.
void wr_bucket_key_show(struct wr_text key, char *out);

enum wr_bucket_what {
    WR_BUCKET_FOREIGN,
    WR_BUCKET_ITSELF,
    WR_BUCKET_MARKER,    // of a node
    WR_BUCKET_EPOCH,     // a group's epoch length
    WR_BUCKET_NODES,     // a set of nodes by when they were last seen
    WR_BUCKET_AGGREGATE, // what a node counted for a limiter
    WR_BUCKET_DENIED,    // the keys that a node denied most
    WR_BUCKET_CUT,       // in those: the beginning of a key too long to be told whole
};

// A node that was not seen for so long is not alive.
#define WR_BUCKET_NODE_LIFE_MS 10000

// A name in Redis, taken apart. The texts point into it.
struct wr_bucket_name {
    enum wr_bucket_what what;
    uint32_t group;
    struct wr_text limiter; // of a bucket, an aggregate, a set of denied keys, a cut key
    struct wr_text rest;    // the key; of an aggregate and such a set, the node
};

// What weir would not have named so, a limiter's or a node's name that it refuses among it, is
// foreign; so what is told of `limiter` is safe for a terminal and for JSON.
struct wr_bucket_name wr_bucket_name_parse(struct wr_text name, const char *prefix);

// Whether a node may be called so.
bool wr_bucket_is_node(struct wr_text text);

// What was asked for of a key, in tokens, as of `now_us` on Redis' clock.
struct wr_bucket_demand {
    uint32_t last_epoch;
    uint32_t this_epoch;
    double per_s; // over the last epoch_us, as nodes estimate it: all of this epoch and of the one
                  // before the part that is less than an epoch ago
};

// epoch_us 0: not known, and nothing can be said.
struct wr_bucket_demand wr_bucket_demand(const struct wr_wire_record *record, int64_t epoch_us,
                                         int64_t now_us);

#endif
