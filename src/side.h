// What lies beside a synced limiter's slots, and the part of it that the ordinary decision runs.
//
//   slot   the tag of a LIVE slot has room that the table does not use: whether the key's name was
//          handed over, whether its charge multiplier is 1 (a plain key) and from which count on
//          its early threshold must be looked at, and how many tokens were granted and not yet
//          frozen by the sync thread. So a grant is counted by the very compare-and-swap that makes
//          it: none is lost or counted for another key, and it costs nothing. The grants of a plain
//          key read nothing of its side: over a million keys that second line is another miss.
//   side   32 bytes a slot: the charge multiplier m and the early threshold, which the sync thread
//          writes; denials, the time of the first grant, and the rare grants that the tag has no
//          room for (weights, costs beyond 2^18 tokens), which decisions write
//   marks  two bits a line of slots: touched since the last scan; urgent
// The argument, and the tags, are in synced.c: P1, R1, R2 and S1 are defined in synced.c.
#pragma once

#include "live.h"
#include "synced.h"

#define WR_NAMED (UINT64_C(1) << 42)
#define WR_SPILLED (UINT64_C(1) << 43) // the side's granted_units has something of this key
#define WR_PLAIN_SHIFT 44              // two bits: how plain the key is, see wr_plain_of
#define WR_PLAIN_MASK (UINT64_C(3) << WR_PLAIN_SHIFT)
#define WR_COUNT_SHIFT 46
#define WR_COUNT_MAX ((UINT64_C(1) << 18) - 1)
#define WR_COUNT_FULL (UINT64_C(1) << 17) // urgent from here on, before there is no room
#define WR_UNREPORTED_MASK (WR_SPILLED | WR_COUNT_MAX << WR_COUNT_SHIFT)
#define WR_SYNC_BITS (WR_NAMED | WR_PLAIN_MASK | WR_UNREPORTED_MASK)

// struct wr_node_side, as decisions and the sync thread share it.
struct wr_side {
    _Atomic uint64_t granted_units;
    _Atomic int64_t first_us;
    _Atomic uint32_t denied_tokens;
    _Atomic uint32_t m_q16;
    _Atomic uint32_t early_tokens;
    _Atomic uint32_t synced_ms;
};
_Static_assert(sizeof(struct wr_side) == 32, "two sides a cache line");

// A place in a ring: claimed by a decision, filled, then emptied by the sync thread.
enum { WR_CELL_FREE, WR_CELL_CLAIMED, WR_CELL_READY };
#define WR_SPILLS 1024

struct wr_synced {
    // Read by decisions; written at attach.
    unsigned char *sides; // of the slot at geometry.base
    _Atomic uint64_t *touched;
    _Atomic uint64_t *urgent;
    struct wr_node_rules rules;
    struct wr_node_limit charging; // only unit_tokens and max_debt_units are right
    uint64_t epoch_ns;             // of the limiter's clock
    uint64_t marks;                // words of each of the two
    uint32_t names;
    _Atomic uint32_t *name_states;
    struct wr_synced_name *name_cells;
    _Atomic uint32_t *spill_states;
    struct wr_synced_spill *spill_cells;
    uint64_t bytes;          // of all of this
    struct wr_synced *older; // of earlier attaches, under other rules: freed with the limiter
    _Atomic uint32_t outage;
    // Written by decisions, seldom.
    _Alignas(64) _Atomic uint64_t unnamed;
    _Atomic uint64_t lost_tokens;
    _Atomic uint64_t local_refund_tokens;
    // The sync thread's own.
    _Alignas(64) uint32_t name_cursor;
    uint32_t spill_cursor;
};

// Ends decide's loop for a synced limiter: judges, charges, counts. A result or WR_AGAIN.
int wr_synced_decide(struct weir *w, struct wr_synced *s, const struct wr_ask *ask,
                     struct wr_pair *way, struct wr_pair seen, const struct wr_now *now,
                     int64_t level, const struct wr_verdict *v, struct weir_answer *answer);
// The same for the activation of FRESH.
int wr_synced_activate(struct weir *w, struct wr_synced *s, const struct wr_ask *ask,
                       struct wr_pair *way, struct wr_pair fresh, const struct wr_now *now,
                       int64_t level, struct weir_answer *answer);
// The sync thread's looks into the rings: the next that is ready among the `left` cells after the
// last one, which are then so many fewer; at most a turn of the ring.
bool wr_synced_name_next(struct wr_synced *s, struct wr_synced_name *name, uint32_t *left);
bool wr_synced_spill_next(struct wr_synced *s, struct wr_synced_spill *spill, uint32_t *left);
// A LIVE way was dropped: what it had not reported goes to the ring of spills.
void wr_synced_dropped(struct weir *w, const struct wr_pair *way, struct wr_pair seen);

static inline struct wr_synced *wr_synced_of(const struct weir *w) {
    return atomic_load_explicit(&w->synced, memory_order_acquire); // P1
}

static inline uint64_t wr_slot_of(const struct weir *w, const struct wr_pair *way) {
    return (uint64_t)((const unsigned char *)way - w->geometry.base) / sizeof *way;
}

static inline struct wr_side *wr_side_of(const struct weir *w, const struct wr_synced *s,
                                         const struct wr_pair *way) {
    const uint64_t offset = (uint64_t)((const unsigned char *)way - w->geometry.base);
    return (struct wr_side *)(void *)(s->sides + 2 * offset);
}

// The count from which on a plain key's early threshold is looked at: 4, 128, or never before FULL.
static inline uint64_t wr_plain_checks_at(uint64_t plain) {
    return plain == 1 ? 4 : plain == 2 ? 128 : WR_COUNT_FULL;
}

// How plain a key with this side is: 0 where m is not 1, or its name not handed over.
static inline uint64_t wr_plain_of(uint64_t tag, const struct wr_node_side *side) {
    if ((tag & WR_NAMED) == 0 || side->m_q16 != WR_NODE_M_ONE) return 0;
    for (uint64_t plain = 3; plain > 0; plain--)
        if (wr_min_u64(side->early_tokens, 2 * WR_COUNT_FULL) >= 2 * wr_plain_checks_at(plain))
            return plain;
    return 0;
}

// The tag of a slot whose side will be `side`.
static inline uint64_t wr_tag_plain(uint64_t tag, const struct wr_node_side *side) {
    return (tag & ~WR_PLAIN_MASK) | wr_plain_of(tag, side) << WR_PLAIN_SHIFT;
}

// us of the monotonic clock from a reading of the limiter's.
static inline int64_t wr_now_us(const struct wr_synced *s, int64_t ns) {
    return (int64_t)(((uint64_t)ns + s->epoch_ns) / 1000);
}

static inline void wr_mark(_Atomic uint64_t *marks, uint64_t slot) {
    const uint64_t line = slot / WR_LINE_WAYS;
    const uint64_t bit = UINT64_C(1) << line % 64;
    if ((atomic_load_explicit(&marks[line / 64], memory_order_seq_cst) & bit) == 0) // S1
        atomic_fetch_or_explicit(&marks[line / 64], bit, memory_order_seq_cst); // S1
}

// Urgent first: whoever takes the touched mark then finds the urgent one (weir_private_scan).
static inline void wr_mark_urgent(struct wr_synced *s, uint64_t slot) {
    wr_mark(s->urgent, slot);
    wr_mark(s->touched, slot);
}

// What is_cold needs of a side.
static inline struct wr_node_side wr_side_read(const struct wr_side *side) {
    return (struct wr_node_side){
        .m_q16 = atomic_load_explicit(&side->m_q16, memory_order_relaxed),               // R1
        .early_tokens = atomic_load_explicit(&side->early_tokens, memory_order_relaxed), // R1
        .synced_ms = atomic_load_explicit(&side->synced_ms, memory_order_relaxed),       // R1
    };
}

// Counts a denial: exactly up to WR_NODE_DENIED_EXACT, then seldom.
static inline void wr_side_deny(const struct weir *w, struct wr_synced *s, struct wr_pair *way,
                                const struct wr_now *now, uint64_t cost) {
    struct wr_side *side = wr_side_of(w, s, way);
    uint32_t denied = atomic_load_explicit(&side->denied_tokens, memory_order_relaxed); // R2
    const uint32_t tokens = (uint32_t)wr_min_u64(cost, UINT64_C(1) << 24);
    if (denied < WR_NODE_DENIED_EXACT) {
        const uint32_t before = atomic_fetch_add_explicit(&side->denied_tokens, tokens, // S1
                                                          memory_order_seq_cst);        // S1
        if (before == 0) wr_mark(s->touched, wr_slot_of(w, way));
        return;
    }
    const uint32_t random = (uint32_t)(wr_top_scatter((uint64_t)now->ns) >> 32);
    if (WR_LIKELY((uint64_t)random * denied >> 32 >= WR_NODE_DENIED_EXACT)) return;
    const uint32_t more = wr_node_count_denied(denied, tokens, random);
    (void)atomic_compare_exchange_strong_explicit(&side->denied_tokens, &denied, more, // R2
                                                  memory_order_relaxed,                // R2
                                                  memory_order_relaxed);               // R2
}

// From which count on a key's report is urgent.
static inline uint64_t wr_side_early(const struct wr_side *side) {
    const uint64_t early = atomic_load_explicit(&side->early_tokens, memory_order_relaxed); // R1
    return wr_min_u64(early, WR_COUNT_FULL);
}

// What m makes of a cost at a level that covers it: never less than the cost.
static inline int64_t wr_side_charge(const struct wr_synced *s, uint64_t units, uint32_t m_q16,
                                     int64_t level) {
    if (WR_LIKELY(m_q16 == WR_NODE_M_ONE)) return (int64_t)units;
    return wr_max_i64((int64_t)units, wr_node_charge(&s->charging, units, m_q16, level));
}

// The level that a grant leaves of a key that is not plain; INT64_MIN: not the ordinary case.
int64_t wr_synced_left(const struct weir *w, const struct wr_synced *s, const struct wr_pair *way,
                       uint64_t tag, int64_t now_ns, uint64_t units, int64_t level)
    __attribute__((noinline));
// What a count asks for that has reached another power of two, or whose key is not plain: the time
// of the first grant, and marks.
void wr_synced_counted(const struct weir *w, struct wr_synced *s, const struct wr_pair *way,
                       uint64_t tag, uint64_t cost, int64_t now_ns) __attribute__((noinline));

// wr_take_live of a synced limiter (live.h). What it does for a plain key between powers of two is
// all that a million keys pay: the fewer instructions after the slot's miss, the sooner the next
// one's.
static inline __attribute__((always_inline)) int wr_take_live_synced(
    struct weir *w, struct wr_synced *s, struct wr_pair *way, struct wr_pair seen,
    const struct wr_now *now, uint64_t units, uint64_t cost, struct wr_verdict *v) {
    const int64_t uncapped = (int64_t)(now->v - seen.word);
    const int64_t level = wr_min_i64(uncapped, now->ramp);
    int64_t left = level - (int64_t)units;
    if (left < 0) {
        *v = (struct wr_verdict){WEIR_DENIED, level, 0, (int64_t)units};
        if (!wr_is_plain_denial(w, now, units, uncapped, left)) return WR_AGAIN;
        wr_side_deny(w, s, way, now, cost);
        return WEIR_DENIED;
    }
    if (WR_UNLIKELY((seen.tag & WR_PLAIN_MASK) == 0)) {
        left = wr_synced_left(w, s, way, seen.tag, now->ns, units, level);
        if (left == INT64_MIN) return WR_AGAIN;
    }
    const uint64_t count = seen.tag >> WR_COUNT_SHIFT;
    const uint64_t counted = count + cost;
    if (WR_UNLIKELY(counted > WR_COUNT_MAX)) return WR_AGAIN;
    *v = (struct wr_verdict){WEIR_GRANTED, left, cost, 0};
    const struct wr_pair next = {seen.tag + (cost << WR_COUNT_SHIFT), now->v - (uint64_t)left};
    if (WR_UNLIKELY(!wr_u128_cas(way, seen, next))) { // S1
        wr_lost(w, 0);
        return WR_AGAIN;
    }
    if (WR_UNLIKELY((count ^ counted) > count || (seen.tag & WR_PLAIN_MASK) == 0))
        wr_synced_counted(w, s, way, seen.tag, cost, now->ns);
    return WEIR_GRANTED;
}

// By the one that is right: `s` is NULL under no sync.
static inline __attribute__((always_inline)) int wr_take_live_in(
    struct weir *w, struct wr_synced *s, struct wr_pair *way, struct wr_pair seen,
    const struct wr_now *now, uint64_t units, uint64_t cost, struct wr_verdict *v) {
    return s == NULL ? wr_take_live(w, way, seen, now, units, cost, v)
                     : wr_take_live_synced(w, s, way, seen, now, units, cost, v);
}
