// A limiter under a sync: what decisions leave for the sync thread, and what it leaves for them.
//
// The one way from libweir-sync into a limiter's table. These functions are exported under
// weir_private_ names for that library alone, of the same version; no promise is made about them.
// The argument for the concurrent part is in synced.c.
//
// A key is named here by the number of its slot in the table and by its fingerprint: where a
// slot has changed hands the functions say so by returning false, and change nothing.
#pragma once

#include "weir.h"
#include "sync/node.h"

#define WR_SYNCED_NAME_MAX 256 // longer keys are named by a hash of theirs

// A key's name, handed over once while it keeps its slot.
struct wr_synced_name {
    uint64_t slot;
    uint64_t fingerprint;
    uint32_t bytes;     // of the name below
    bool is_hash;       // the key is longer: `name` is 16 bytes of XXH3-128 of it, canonical
    unsigned char name[WR_SYNCED_NAME_MAX]; // an integer's key is its eight bytes, lowest first
};

// What a bucket had granted and not reported when it was displaced or reset.
struct wr_synced_spill {
    uint64_t slot;
    uint64_t fingerprint;
    uint64_t granted_units;
    int64_t first_us;
};

struct wr_synced_options {
    struct wr_node_rules rules;
    uint64_t max_debt_tokens; // 0: the burst
    uint32_t names;           // room of the ring of names
};

struct wr_synced_counts {
    uint64_t unnamed;             // times the ring of names was full
    uint64_t lost_tokens;         // times the ring of spills was full: what was lost, in tokens
    uint64_t local_refund_tokens; // given back after the report
};

// WEIR_GRANTED, WEIR_EINVAL (under a sync already), WEIR_ECLOCK, WEIR_ELIMIT (max_debt is too large
// to keep exactly), WEIR_ENOMEM. A limiter that was detached may be attached again.
WEIR_API int weir_private_attach(struct weir *limiter, const struct wr_synced_options *options,
                                 struct weir_error *error);
// From then on decisions leave nothing more behind, and what was not frozen before is forgotten:
// freeze first. Returns how much that was, in units. Every call below does nothing then.
WEIR_API uint64_t weir_private_detach(struct weir *limiter);

// Decisions' clock: us of the machine's monotonic clock. The same for all limiters but for the
// drift between clock sources (under 0.1 ms).
WEIR_API int64_t weir_private_now_us(const struct weir *limiter);
WEIR_API uint64_t weir_private_unit_tokens(const struct weir *limiter);
WEIR_API uint64_t weir_private_max_debt_tokens(const struct weir *limiter); // as attached
// The version of the limit in force: changes whenever the limit does.
WEIR_API uint64_t weir_private_limit_version(const struct weir *limiter);

// From here on: one thread, the sync's.

// The oldest of a ring. False: empty.
WEIR_API bool weir_private_name_next(struct weir *limiter, struct wr_synced_name *name,
                                     uint32_t *left);
WEIR_API bool weir_private_spill_next(struct weir *limiter, struct wr_synced_spill *spill,
                                      uint32_t *left);

// Calls `visit` for each slot touched since the last scan: it has granted or denied something not
// yet frozen. `named`: its name has been handed over (before this visit: look into the ring of
// names again before you think otherwise); without one, weir_private_touch it, to see it again.
// `urgent`: a decision found that it cannot wait. One that the thread has not heard of for 2E + 2d
// is urgent as well: decisions do not look after that where the multiplier is 1.
typedef void wr_synced_visit(void *context, uint64_t slot, uint64_t fingerprint, bool named,
                             bool urgent);
WEIR_API void weir_private_scan(struct weir *limiter, wr_synced_visit *visit, void *context);
WEIR_API void weir_private_touch(struct weir *limiter, uint64_t slot, bool urgent);

// Takes what the key granted and denied since the last time into `taken` (granted_units, first_us,
// denied_tokens; the other fields are copies). first_us is between `last_us`, when it was last
// frozen, and now. False: the slot has another key (its grants, if any, come as a spill).
WEIR_API bool weir_private_freeze(struct weir *limiter, uint64_t slot, uint64_t fingerprint,
                                  int64_t last_us, struct wr_node_side *taken);
// Adds granted_units and denied_tokens of `back` again, and touches the slot.
WEIR_API bool weir_private_unfreeze(struct weir *limiter, uint64_t slot, uint64_t fingerprint,
                                    const struct wr_node_side *back);
// wr_node_settle and wr_node_settle_side. *excess_units: how far below zero the bucket now is; or
// 0, where it is not.
WEIR_API bool weir_private_settle(struct weir *limiter, uint64_t slot, uint64_t fingerprint,
                                  const struct wr_node_limit *limit,
                                  const struct wr_node_heard *heard, int64_t *excess_units);
// Forgets that the key's name was handed over, so that the next ask hands it over again. Also false
// where the key has something unreported.
WEIR_API bool weir_private_unname(struct weir *limiter, uint64_t slot, uint64_t fingerprint);
// The same where it has: that stays in the slot, until the name has come.
WEIR_API void weir_private_rename(struct weir *limiter, uint64_t slot, uint64_t fingerprint);
// The charge multiplier alone, for an outage.
WEIR_API bool weir_private_set_m(struct weir *limiter, uint64_t slot, uint64_t fingerprint,
                                 uint32_t m_q16);
// New keys go by the outage policy from now on, or no longer.
WEIR_API void weir_private_set_outage(struct weir *limiter, bool outage);

WEIR_API void weir_private_counts(const struct weir *limiter, struct wr_synced_counts *counts);
WEIR_API uint64_t weir_private_side_bytes(const struct weir *limiter);

// A strict limiter is under no sync in the above sense: its bucket is a lower bound of what Redis
// knows, and what it grants is said by Redis. So asks of its bucket are not counted...
WEIR_API int weir_private_do(struct weir *limiter, const struct weir_ask *ask,
                             struct weir_answer *answer);
// ... and results are, WEIR_GRANTED, _DENIED or _NEVER, as those of any limiter: in weir_stats, in
// the waits and in weir_top.
WEIR_API void weir_private_count(struct weir *limiter, struct weir_key key, uint64_t cost,
                                 int result, uint64_t retry_after_ns);
// Beside that: the grant was one under no limit.
WEIR_API void weir_private_count_untracked(struct weir *limiter);
WEIR_API bool weir_private_is_dry_run(const struct weir *limiter);
