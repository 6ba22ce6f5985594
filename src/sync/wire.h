// The bytes of the sync: a report as a Redis command, and what comes back. Pure: buffers in,
// buffers out. Everything received is checked, since the far end may be no Redis of ours at all.
//
// Names in Redis, all of one group in one hash slot:
//   <prefix>{<group>}<limiter>:<key>   a bucket; the key is any bytes
//   <prefix>{<group>}n:<node>          a node's marker
//   <prefix>{<group>}s:<limiter>:<node> a node's marker for a strict limiter
//   <prefix>{<group>}e                 the group's epoch length
//   <prefix>{0}a:<limiter>:<node>, <prefix>{0}nodes, <prefix>{0}nodes:<limiter>   for people
// so a limiter may not be called "a", "n", "nodes" or "s" (wr_wire_limiter_name_ok).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node.h"

#define WR_WIRE_REPORTS_MAX 1024 // of one call, as the script has it
#define WR_WIRE_LIMITS_MAX 128
#define WR_WIRE_NAME_MAX 64      // bytes of a prefix, a limiter's name, a node's name
#define WR_WIRE_KEY_MAX 256      // longer keys go as a hash
#define WR_WIRE_SHA_BYTES 40
#define WR_WIRE_RECORD_BYTES 24  // of a bucket in Redis
#define WR_WIRE_BAD_KEYS_MAX 32

// What a sync does about an error reply. Each means: this attempt was not applied.
enum wr_wire_reaction {
    WR_WIRE_LOAD,      // load the script, send again
    WR_WIRE_FOLLOW,    // send the same to the address named
    WR_WIRE_AGAIN,     // send the same shortly
    WR_WIRE_WAIT,      // Redis is there but cannot now: later, on this connection
    WR_WIRE_RECONNECT, // the wrong server: find the right one
    WR_WIRE_KEYS,      // take the named keys out of the report
    WR_WIRE_CONFIG     // somebody must change something: slowly, on a new connection
};

// kind, first word of the reply, reaction, what it means and what helps
#define WR_WIRE_ERRORS(X)                                                                          \
    X(NOSCRIPT, LOAD, "Redis lost the script (restart or SCRIPT FLUSH); loading it again")         \
    X(MOVED, FOLLOW, "the slot has moved to another master")                                       \
    X(ASK, FOLLOW, "the slot is moving to another master")                                         \
    X(TRYAGAIN, AGAIN, "the slot is half moved")                                                   \
    X(READONLY, RECONNECT, "this Redis is a replica; looking for the primary")                     \
    X(LOADING, WAIT, "Redis is loading its data")                                                  \
    X(BUSY, WAIT, "Redis is busy with a script of someone else")                                   \
    X(OOM, WAIT, "Redis is out of memory (maxmemory); raise it, or let it evict")                  \
    X(MISCONF, WAIT, "Redis refuses writes because it cannot save to disk")                        \
    X(NOREPLICAS, WAIT, "Redis refuses writes because too few replicas are connected")             \
    X(MASTERDOWN, WAIT, "this replica has lost its primary")                                       \
    X(CLUSTERDOWN, WAIT, "the cluster is down, or a slot has no owner")                            \
    X(CROSSSLOT, CONFIG, "keys of two slots in one call; the prefix must have no braces")          \
    X(NOAUTH, CONFIG, "Redis wants a password; put it into the URL")                               \
    X(WRONGPASS, CONFIG, "Redis does not accept this user and password")                           \
    X(NOPERM, CONFIG, "this user may not run EVALSHA, SCRIPT LOAD, or use keys of this prefix")    \
    X(NOPROTO, CONFIG, "the server does not speak this protocol")                                  \
    X(WRONGTYPE, CONFIG, "a key holds another type; use another prefix")                           \
    X(WEIRKEY, KEYS, "keys of this prefix hold something else; use another prefix")                \
    X(WEIREPOCH, CONFIG, "other nodes count demand over another epoch; use the same on all")       \
    X(WEIRARGS, CONFIG, "the server's script is of another version")                               \
    X(ERR, WAIT, "Redis refused the command")                                                      \
    X(UNKNOWN, WAIT, "Redis answered with an error of unknown kind")

enum wr_wire_error {
#define WR_WIRE_ERROR_ENTRY(name, reaction, text) WR_WIRE_##name,
    WR_WIRE_ERRORS(WR_WIRE_ERROR_ENTRY)
#undef WR_WIRE_ERROR_ENTRY
        WR_WIRE_ERRORS_COUNT
};

struct wr_wire_limit {
    const char *limiter; // its name
    uint64_t cap_us;     // burst + max_debt
    uint64_t burst_us;   // the cap of a backlog
    uint32_t generation;
};

struct wr_wire_report {
    const char *key;
    size_t key_bytes;
    uint64_t cost_us;
    uint32_t age_us;
    uint32_t demand_tokens;
    uint8_t limit; // index
    bool backlog;
};

struct wr_wire_batch {
    const char *sha; // of the script, WR_WIRE_SHA_BYTES characters
    const char *prefix;
    const char *node;
    uint32_t group;
    uint64_t seq;
    int64_t epoch_us;
    int64_t marker_ttl_ms;
    const struct wr_wire_limit *limits;
    size_t limits_count;
    const struct wr_wire_report *reports; // no key twice
    size_t reports_count;
};

// An answer's head; the buckets go to an array of wr_node_reply.
struct wr_wire_answer {
    int64_t redis_us;
    int64_t marker_seq; // as found before this call; -1: none
};

enum wr_wire_fault {
    WR_WIRE_OK,
    WR_WIRE_NOT_OURS, // no answer of the script
    WR_WIRE_LENGTH,   // not as long as asked for
    WR_WIRE_RANGE     // a number that the script cannot answer
};

// A bucket as Redis holds it.
struct wr_wire_record {
    int64_t tat_us;
    uint32_t epoch;
    uint32_t previous_tokens;
    uint32_t current_tokens;
    uint32_t generation;
};

struct wr_wire_redirect {
    uint32_t slot;
    uint16_t port;
    char host[256]; // empty: the host that answered
};

// 1 to WR_WIRE_NAME_MAX printable characters without braces, colon (a prefix may have it) or space.
bool wr_wire_prefix_ok(const char *prefix);
bool wr_wire_limiter_name_ok(const char *name);
// The group of a key: the same on every node.
uint32_t wr_wire_group(const void *key, size_t key_bytes, uint32_t groups);

// Writes the name of a bucket; returns its length, which may be more than out_bytes (then cut).
size_t wr_wire_bucket_name(const char *prefix, uint32_t group, const char *limiter,
                           const void *key, size_t key_bytes, char *out, size_t out_bytes);
// Writes EVALSHA with the batch. Returns its length; if that is over out_bytes, nothing in `out` is
// of use. 0: the batch is out of bounds (counts, a limit's index, a cost).
size_t wr_wire_pack(const struct wr_wire_batch *batch, char *out, size_t out_bytes);

// Reads the bulk string that came back. `replies` has room for `count`, as many as were asked for.
enum wr_wire_fault wr_wire_unpack(const void *bytes, size_t bytes_count, size_t count,
                                  struct wr_wire_answer *answer, struct wr_node_reply *replies);
bool wr_wire_unpack_record(const void *bytes, size_t bytes_count, struct wr_wire_record *record);

// Error replies (without the leading '-').
enum wr_wire_error wr_wire_error_of(const char *text, size_t bytes);
enum wr_wire_reaction wr_wire_reaction_of(enum wr_wire_error error);
const char *wr_wire_error_name(enum wr_wire_error error);
const char *wr_wire_error_text(enum wr_wire_error error);
// MOVED and ASK. False if it is not well formed.
bool wr_wire_redirect_of(const char *text, size_t bytes, struct wr_wire_redirect *redirect);
// WEIRKEY: indices of reports, from 0, rising. Returns how many, at most WR_WIRE_BAD_KEYS_MAX; 0 if
// the marker or the epoch's own key is what is wrong, or the text is not well formed.
size_t wr_wire_bad_keys(const char *text, size_t bytes, size_t count, uint16_t *indices);
