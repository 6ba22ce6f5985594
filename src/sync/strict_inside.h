// What the strict_*.c files share. strict.h says what it is all for.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "strict.h"
#include "strict_wire.h"

#define CLOSED_STACK UINTPTR_MAX // of the stack's head: nothing may be pushed

// Words of ask->inside. RESULT is shared (strict_ask.c); the others are the sync thread's once
// the ask is on the stack.
enum { INSIDE_RESULT, INSIDE_NEXT, INSIDE_DEADLINE, INSIDE_BUCKET };

// One group: the asks that wait, in order of arrival, and the one call that is held.
struct wr_strict_lane {
    struct weir_sync_ask *first;
    struct weir_sync_ask *last;
    uint64_t seq;         // of the call held, or the last one
    bool on_wire;         // a copy of it is to be answered on this connection
    uint32_t attempts;    // under this number
    int64_t first_sent_us; // the first of them: Redis applied it no earlier
    struct wr_strict_call call; // call.keys 0: none is held
    struct weir_sync_ask *asks[WR_STRICT_ASKS_MAX]; // of the call; NULL: settled meanwhile
};

struct wr_strict_tally {
#define WR_STRICT_TALLIES(X)                                                                       \
    X(submitted) X(granted) X(denied) X(never) X(unsynced) X(calls) X(retries) X(unknown)          \
    X(foreign_keys) X(charged_tokens) X(bridged_tokens) X(keys)
#define WR_STRICT_TALLY(name) _Atomic uint64_t name;
    WR_STRICT_TALLIES(WR_STRICT_TALLY)
#undef WR_STRICT_TALLY
};

struct wr_strict {
    _Alignas(64) _Atomic uintptr_t head; // of the stack
    _Alignas(64) struct wr_strict_options options;
    _Atomic uint32_t generation;
    bool injected; // the clock is the caller's, and so may the limiter's be
    bool dry_run;  // of the limiter
    int64_t wake_us;
    struct wr_strict_tally tally;
    struct wr_strict_lane *lanes; // groups; the sync's thread's
};

static inline int64_t wr_strict_now_us(const struct wr_strict *strict) {
    return strict->options.now_us(strict->options.context);
}

static inline struct weir_sync_ask *wr_strict_next(const struct weir_sync_ask *ask) {
    return (struct weir_sync_ask *)(uintptr_t)ask->inside[INSIDE_NEXT];
}

// strict_ask.c
// Carries out a kind of ask on the limiter's own bucket.
int wr_strict_local(const struct wr_strict *strict, enum weir_kind kind, struct weir_key key,
                    uint64_t cost, struct weir_weight weight, struct weir_answer *answer);
// Publishes the result; the ask is its owner's again when this returns.
void wr_strict_settle(struct wr_strict *strict, struct weir_sync_ask *ask, int result);
// Settles an ask that Redis did not answer, by the outage policy.
void wr_strict_give_up(struct wr_strict *strict, struct weir_sync_ask *ask);
// Moves what is on the stack to the lanes.
void wr_strict_collect(struct wr_strict *strict);
uint32_t wr_strict_generation(const struct wr_strict *strict);

// strict_local.c
// Takes over that Redis' bucket of `key` was full `lag_us` after a moment between the two times.
void wr_strict_learn(struct wr_strict *strict, const struct weir_limit *limit, struct weir_key key,
                     int64_t lag_us, int64_t earliest_us, int64_t latest_us);
