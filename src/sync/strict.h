// Strict limits: refused locally, granted by Redis alone. One struct wr_strict a strict limiter.
//
// An ask (struct weir_sync_ask, the caller's memory) is pushed on a lock-free stack by any thread.
// The sync's thread sorts it by group, sends up to WR_STRICT_KEYS_MAX keys a call (strict.lua), one
// call of a group under way at a time, and settles each ask exactly once: by Redis' answer, by its
// deadline, or by close. The limiter's own bucket holds what Redis is known to have spent at
// least, so that most refusals need no call: it is only ever fuller than Redis' (strict_local.c).
//
// Why there are never more grants than burst + rate * window, on Redis' clock: strict.lua is atomic
// and grants only what the exact bucket holds; an ask is granted by at most one of its calls
// (strict_wire.c has the arithmetic). A call that is lost or repeated could cost tokens that
// nobody was granted; its number, and the marker in Redis, which keeps the whole last answer, keep
// that from happening while one of its asks is still waiting.
//
// Threads: wr_strict_submit, _open, _counts and _set_generation from any. All the others from one
// at a time, the sync's (`done` is called there).
// Times are us of the clock in the options, which must be that of sent_us and received_us too.
//
// Use, for each group g:
//     if (wr_strict_want(s, g)) bytes = wr_strict_pack(s, g, sha, now, out, cap);  and send it
//     bulk reply       wr_strict_answer(s, g, ...)
//     error reply      reaction = wr_strict_refused(s, g, ...)
//     no reply in time, or the connection lost   wr_strict_lost(s, g): want says yes again
// and at every turn of the loop: wr_strict_expire(s, now), whatever the connection does.
#pragma once

#include "weir_sync.h"
#include "wire.h"

#define WR_STRICT_KEYS_MAX 128  // of one call
#define WR_STRICT_ASKS_MAX 512
#define WR_STRICT_NAMES_MAX 16384 // bytes of keys in one call
// The longest command: wr_strict_pack never needs more room.
#define WR_STRICT_COMMAND_MAX                                                                      \
    (1024 + WR_STRICT_KEYS_MAX * (2 * WR_WIRE_NAME_MAX + 48) + WR_STRICT_NAMES_MAX +               \
     WR_STRICT_ASKS_MAX * 16)
#define WR_STRICT_MARKER_WORD "s" // names in Redis: <prefix>{<group>}s:<limiter>:<node>; so no
                                  // limiter may be called "s"

struct wr_strict;

struct wr_strict_options {
    struct weir *limiter; // must not be given to weir_private_attach: its charges are not reports
    const char *name;     // the limiter's in Redis. This and the next two are not copied
    const char *prefix;
    const char *node;
    uint32_t groups;      // 1 to 64
    uint32_t generation;
    int64_t epoch_us;
    int64_t marker_ttl_ms; // longer than any ask waits, or a repeated call may cost tokens
    // Past its deadline an ask is
    //   CLOSED       answered WEIR_EUNSYNCED
    //   OPEN         decided by the local bucket alone
    //   LOCAL_SHARE  the same, at cost * expected_nodes (what is over the burst as a debt);
    //                as CLOSED where expected_nodes is 0. So the sync's defaults mean CLOSED.
    enum weir_sync_outage outage;
    uint32_t expected_nodes;
    int64_t (*now_us)(void *context); // NULL: CLOCK_MONOTONIC
    void *context;
};

// Allocates. Closed: wr_strict_open before the first ask. WEIR_GRANTED or WEIR_ENOMEM.
int wr_strict_create(struct wr_strict **strict, const struct wr_strict_options *options);
// After wr_strict_close, when no thread can be in wr_strict_submit any more. NULL is allowed.
void wr_strict_destroy(struct wr_strict *strict);

// From now on asks are taken, or no longer: later ones get WEIR_ECLOSED, and those waiting, under
// way or being submitted right now are answered WEIR_EUNSYNCED. May be opened again.
void wr_strict_open(struct wr_strict *strict);
void wr_strict_close(struct wr_strict *strict);
// Once it is closed for good: frees all but what wr_strict_submit and _counts touch. Only they and
// _destroy may be called then.
void wr_strict_shrink(struct wr_strict *strict);
// In the child of a fork: asks get WEIR_ECLOSED. What was waiting is the parent's, and stays.
// Async-signal-safe.
void wr_strict_forked(struct wr_strict *strict);
// Together with the change of limit. (A plain weir_set_limit needs no call here.)
void wr_strict_set_generation(struct wr_strict *strict, uint32_t generation);

// Lock-free; no system call (but the clock, where that is not in the vdso). WEIR_DENIED,
// WEIR_NEVER, WEIR_PENDING, WEIR_EINVAL (cost 0), WEIR_ECLOSED. Does not wake the sync's thread.
int wr_strict_submit(struct wr_strict *strict, struct weir_sync_ask *ask);

// True if there is something to send in the group, and no call of it is on the wire. Takes in what
// was submitted.
bool wr_strict_want(struct wr_strict *strict, uint32_t group);
// Writes EVALSHA: the call that is held, as it was, or a new one. `sha` is of wr_strict_script,
// WR_WIRE_SHA_BYTES characters. Returns its bytes; 0: nothing to send (all that waited was refused
// by what the local bucket knows by now), or cap is under WR_STRICT_COMMAND_MAX.
size_t wr_strict_pack(struct wr_strict *strict, uint32_t group, const char *sha, int64_t now_us,
                      char *out, size_t cap);
// The number of the call held, or of the last one, for tests; it is in the answer too.
uint64_t wr_strict_seq(const struct wr_strict *strict, uint32_t group);

// A bulk string came back. WR_WIRE_OK also for an answer to an older call, which is
// dropped. Anything else: the far end is not what we think; the call is still held: close the
// connection and say wr_strict_lost.
enum wr_wire_fault wr_strict_answer(struct wr_strict *strict, uint32_t group, const void *bytes,
                                    size_t count, int64_t sent_us, int64_t received_us);
// An error reply, without its '-'. The call stays held and goes again under the same number, less
// the keys that Redis says hold something else, whose asks are answered as in an outage. Returns
// what the connection should do: WR_WIRE_KEYS and WR_WIRE_AGAIN mean to pack and send again, at
// once and shortly; the others are as in wire.h.
enum wr_wire_reaction wr_strict_refused(struct wr_strict *strict, uint32_t group, const char *text,
                                        size_t count);
// The call of the group, if one is on the wire, will not be answered on this connection.
void wr_strict_lost(struct wr_strict *strict, uint32_t group);

// Settles the asks whose deadline has come, by the outage policy. At least every few ms while
// wr_strict_wake_us is not INT64_MAX, also while there is no connection.
void wr_strict_expire(struct wr_strict *strict, int64_t now_us);
// The first deadline of all asks taken in so far, or somewhat before; INT64_MAX: none waits.
int64_t wr_strict_wake_us(const struct wr_strict *strict);

struct wr_strict_counts {
    uint64_t submitted; // answered WEIR_PENDING, and taken in by the sync's thread
    uint64_t granted;   // of those: submitted = granted + denied + never + unsynced + those waiting
    uint64_t denied;
    uint64_t never;
    uint64_t unsynced;
    uint64_t calls;     // answered
    uint64_t retries;   // calls packed again
    uint64_t unknown;   // asks given up while their call was under way: may have cost tokens
    uint64_t foreign_keys;
    uint64_t keys;      // in the calls answered
    uint64_t charged_tokens; // granted by Redis
    uint64_t bridged_tokens; // granted by the outage policy, and never charged
};
void wr_strict_counts(const struct wr_strict *strict, struct wr_strict_counts *counts);
// Adds to a count that this thread alone changes, and others read.
void wr_strict_count(_Atomic uint64_t *count, uint64_t more);
uint64_t wr_strict_memory_bytes(const struct wr_strict *strict);

// common.lua and strict.lua, and their bytes (without the 0 at the end). SCRIPT LOAD answers with
// the sha.
extern const char wr_strict_script[];
extern const size_t wr_strict_script_bytes;

// Of the sync: the strict limiter's, or NULL if the limiter is not strict or not of this sync.
struct wr_strict *wr_sync_find_strict(struct weir_sync *sync, const struct weir *limiter);
// Wakes the sync's thread now; may make a system call. (weir_sync_take calls it: it sleeps anyway.)
void wr_sync_wake(struct weir_sync *sync);
