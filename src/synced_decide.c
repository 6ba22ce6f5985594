// The decisions of a synced limiter that are not the ordinary case. The argument is in synced.c,
// where R1, R2, S1 and C1 are defined; L1 is defined in decide.c, L2 in absent.c (both defined
// there).
#include <string.h>

#include "hash.h"
#include "side.h"

#define PROBES 16

// Claims a free cell near `start`; -1: none.
static int64_t claim_cell(_Atomic uint32_t *states, uint32_t count, uint64_t start) {
    for (uint32_t i = 0; i < PROBES; i++) {
        const uint32_t at = (uint32_t)((start + i) % count);
        uint32_t state = WR_CELL_FREE;
        if (atomic_compare_exchange_strong_explicit(&states[at], &state, WR_CELL_CLAIMED, // C1
                                                    memory_order_acquire,                 // C1
                                                    memory_order_relaxed))                // C1
            return at;
    }
    return -1;
}

static void put_name(struct wr_synced_name *name, struct weir_key key) {
    while (key.data != NULL && key.word == UINT64_MAX) { // prepared
        const struct weir_prepared *prepared = key.data;
        key = (struct weir_key){prepared->data, prepared->word};
    }
    name->is_hash = key.data != NULL && key.word > WR_SYNCED_NAME_MAX;
    if (key.data == NULL) {
        name->bytes = 8;
        for (unsigned i = 0; i < 8; i++) name->name[i] = (unsigned char)(key.word >> 8 * i);
    } else if (name->is_hash) {
        const XXH128_hash_t hash = XXH3_128bits(key.data, (size_t)key.word);
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, hash);
        name->bytes = sizeof canonical;
        memcpy(name->name, &canonical, sizeof canonical);
    } else {
        name->bytes = (uint32_t)key.word;
        memcpy(name->name, key.data, (size_t)key.word);
    }
}

// WR_NAMED once the key's name is in the ring; 0 where that is full: the next ask tries again.
static uint64_t hand_over(struct weir *w, struct wr_synced *s, const struct wr_ask *ask,
                          const struct wr_pair *way) {
    const uint64_t slot = wr_slot_of(w, way);
    const int64_t cell = claim_cell(s->name_states, s->names, wr_top_scatter(slot) >> 32);
    if (cell < 0) {
        atomic_fetch_add_explicit(&s->unnamed, 1, memory_order_relaxed); // R2
        return 0;
    }
    struct wr_synced_name *name = &s->name_cells[cell];
    name->slot = slot;
    name->fingerprint = ask->place.fingerprint;
    put_name(name, ask->key);
    atomic_store_explicit(&s->name_states[cell], WR_CELL_READY, memory_order_release); // C1
    return WR_NAMED;
}

static void lose(struct weir *w, struct wr_synced *s, uint64_t units) {
    const uint64_t tokens = (uint64_t)wr_ceil_div(units, w->scale.unit_tokens);
    atomic_fetch_add_explicit(&s->lost_tokens, tokens, memory_order_relaxed); // R2
}

void wr_synced_dropped(struct weir *w, const struct wr_pair *way, struct wr_pair seen) {
    struct wr_synced *s = wr_synced_of(w);
    if (s == NULL || (seen.tag & WR_UNREPORTED_MASK) == 0) return;
    struct wr_side *side = wr_side_of(w, s, way);
    uint64_t units = (seen.tag >> WR_COUNT_SHIFT) * w->scale.unit_tokens;
    if ((seen.tag & WR_SPILLED) != 0)
        units += atomic_exchange_explicit(&side->granted_units, 0, memory_order_relaxed); // R2
    if (units == 0) return;
    const uint64_t slot = wr_slot_of(w, way);
    const int64_t cell = claim_cell(s->spill_states, WR_SPILLS, wr_top_scatter(seen.word) >> 32);
    if (cell < 0) {
        lose(w, s, units);
        return;
    }
    s->spill_cells[cell] = (struct wr_synced_spill){
        slot, seen.tag & WR_FINGERPRINT_MASK, units,
        atomic_load_explicit(&side->first_us, memory_order_relaxed)}; // R1
    atomic_store_explicit(&s->spill_states[cell], WR_CELL_READY, memory_order_release); // C1
}

// What a grant of `units` adds to a slot's tag, and to the side once the CAS is done.
struct counted {
    uint64_t tag;
    uint64_t side_units;
    uint64_t local_refund_tokens;
};

static struct counted count_grant(const struct weir *w, uint64_t tag, uint64_t units) {
    const uint64_t tokens = units / w->scale.unit_tokens;
    const uint64_t count = tag >> WR_COUNT_SHIFT;
    const bool whole = tokens * w->scale.unit_tokens == units;
    if (WR_LIKELY(whole && tokens <= WR_COUNT_MAX - count))
        return (struct counted){tag + (tokens << WR_COUNT_SHIFT), 0, 0};
    // With all that was counted, so that the next ones have room.
    const uint64_t bare = tag & ~(WR_COUNT_MAX << WR_COUNT_SHIFT);
    return (struct counted){bare | WR_SPILLED, units + count * w->scale.unit_tokens, 0};
}

// A refund of what was not reported yet comes off the count; the rest stays with this node.
static struct counted count_refund(const struct weir *w, uint64_t tag, uint64_t units) {
    const uint64_t tokens = units / w->scale.unit_tokens;
    const uint64_t off = wr_min_u64(tokens, tag >> WR_COUNT_SHIFT);
    return (struct counted){tag - (off << WR_COUNT_SHIFT), 0, tokens - off};
}

static void after_grant(struct weir *w, struct wr_synced *s, struct wr_pair *way, uint64_t tag,
                        const struct counted *counted, const struct wr_now *now, bool cold) {
    struct wr_side *side = wr_side_of(w, s, way);
    if ((tag & WR_UNREPORTED_MASK) == 0)
        atomic_store_explicit(&side->first_us, wr_now_us(s, now->ns), memory_order_relaxed); // R1
    if (counted->side_units != 0)
        atomic_fetch_add_explicit(&side->granted_units, counted->side_units, // S1
                                  memory_order_seq_cst);                     // S1
    const uint64_t before = tag >> WR_COUNT_SHIFT;
    const uint64_t count = counted->tag >> WR_COUNT_SHIFT;
    const uint64_t early = wr_side_early(side);
    const bool crossed = (before < early && count >= early) ||
                         counted->side_units / w->scale.unit_tokens >= early;
    const uint64_t slot = wr_slot_of(w, way);
    if (cold || crossed) wr_mark_urgent(s, slot);
    else wr_mark(s->touched, slot);
}

int64_t wr_synced_left(const struct weir *w, const struct wr_synced *s, const struct wr_pair *way,
                       uint64_t tag, int64_t now_ns, uint64_t units, int64_t level) {
    const struct wr_node_side copy = wr_side_read(wr_side_of(w, s, way));
    if ((tag & WR_NAMED) == 0) return INT64_MIN;
    if (copy.m_q16 - 1 >= WR_NODE_M_CLOSED - 1) return INT64_MIN; // new, or closed
    if (tag >> WR_COUNT_SHIFT == 0 && wr_node_is_cold(&s->rules, &copy, wr_now_us(s, now_ns)))
        return INT64_MIN;
    return level - wr_side_charge(s, units, copy.m_q16, level);
}

// Has the count come to the early threshold? That of a plain key is looked at when its count
// reaches a power of two, so one that lies before the next counts as reached: early, never late.
static bool is_early(const struct wr_side *side, uint64_t tag, uint64_t count, uint64_t counted) {
    const uint64_t plain = (tag & WR_PLAIN_MASK) >> WR_PLAIN_SHIFT;
    if (plain == 0) return count < wr_side_early(side) && counted >= wr_side_early(side);
    if (counted < wr_plain_checks_at(plain)) return false;
    const unsigned top = 63 - (unsigned)__builtin_clzll(counted);
    return UINT64_C(2) << top > wr_side_early(side);
}

void wr_synced_counted(const struct weir *w, struct wr_synced *s, const struct wr_pair *way,
                       uint64_t tag, uint64_t cost, int64_t now_ns) {
    struct wr_side *side = wr_side_of(w, s, way);
    const uint64_t count = tag >> WR_COUNT_SHIFT;
    const uint64_t slot = wr_slot_of(w, way);
    if (count == 0) // behind the CAS, which would wait for this miss
        atomic_store_explicit(&side->first_us, wr_now_us(s, now_ns), memory_order_relaxed); // R1
    if (is_early(side, tag, count, count + cost)) wr_mark_urgent(s, slot);
    else if (count == 0) wr_mark(s->touched, slot);
}

static void write_side(struct wr_side *side, const struct wr_node_side *from) {
    atomic_store_explicit(&side->early_tokens, from->early_tokens, memory_order_relaxed); // R1
    atomic_store_explicit(&side->synced_ms, from->synced_ms, memory_order_relaxed);       // R1
    atomic_store_explicit(&side->m_q16, from->m_q16, memory_order_relaxed);               // R1
}

// The multiplier and level that a key starts with, from one that the sync has not heard of lately.
static bool warm(const struct weir *w, struct wr_synced *s, const struct wr_now *now,
                 struct wr_node_side *side, int64_t *level) {
    struct wr_node_limit limit = s->charging;
    limit.burst_units = now->ramp;
    const struct wr_node_ask ask = {
        .now_us = wr_now_us(s, now->ns),
        .random = (uint32_t)(wr_top_scatter((uint64_t)now->ns ^ (uintptr_t)w) >> 32),
        .outage = atomic_load_explicit(&s->outage, memory_order_relaxed) != 0, // R1
    };
    return wr_node_warm(&limit, &s->rules, side, level, &ask);
}

static int deny_closed(struct weir *w, const struct wr_ask *ask, const struct wr_now *now,
                       int64_t level, struct weir_answer *answer) {
    const int64_t wanted = wr_max_i64(level, 0) + (int64_t)wr_min_u64(ask->units, WR_UNITS_MAX / 2);
    const struct wr_verdict v = {WEIR_DENIED, level, 0, wanted};
    return wr_answer(w, ask, now, &v, false, answer);
}

static bool spends(enum weir_kind kind) {
    return kind != WEIR_REFUND && kind != WEIR_CHARGE && kind != WEIR_PEEK;
}

// The tag and level of a verdict that changes the bucket.
static struct counted charge(const struct weir *w, struct wr_synced *s, uint64_t tag,
                             uint32_t m_q16, int64_t level, struct wr_verdict *v) {
    if (v->after > level) return count_refund(w, tag, (uint64_t)(v->after - level));
    const uint64_t units = (uint64_t)(level - v->after);
    if (m_q16 == WR_NODE_M_CLOSED) m_q16 = WR_NODE_M_ONE; // a charge: it was spent already
    v->after = level - wr_side_charge(s, units, m_q16, level);
    return count_grant(w, tag, units);
}

int wr_synced_decide(struct weir *w, struct wr_synced *s, const struct wr_ask *ask,
                     struct wr_pair *way, struct wr_pair seen, const struct wr_now *now,
                     int64_t level, const struct wr_verdict *verdict, struct weir_answer *answer) {
    struct wr_side *side = wr_side_of(w, s, way);
    struct wr_node_side copy = wr_side_read(side);
    struct wr_verdict v = *verdict;
    const bool first = (seen.tag & WR_UNREPORTED_MASK) == 0;
    if ((seen.tag & WR_PLAIN_MASK) != 0) copy.m_q16 = WR_NODE_M_ONE;
    const bool cold = first && wr_node_is_cold(&s->rules, &copy, wr_now_us(s, now->ns));
    int64_t start = level;
    if ((cold || copy.m_q16 == 0) && warm(w, s, now, &copy, &start)) {
        const struct wr_pair same = {wr_tag_plain(seen.tag, &copy), now->v - (uint64_t)start};
        if (wr_u128_cas(way, seen, same)) write_side(side, &copy); // L1
        return WR_AGAIN;
    }
    if (copy.m_q16 == WR_NODE_M_CLOSED && spends(ask->kind)) {
        wr_side_deny(w, s, way, now, ask->cost);
        return deny_closed(w, ask, now, level, answer);
    }
    if (v.after == level) {
        if (v.result == WEIR_DENIED) wr_side_deny(w, s, way, now, ask->cost);
        return wr_answer(w, ask, now, &v, now->unlimited, answer);
    }
    uint64_t tag = seen.tag;
    if ((tag & WR_NAMED) == 0) tag = wr_tag_plain(tag | hand_over(w, s, ask, way), &copy);
    const struct counted counted = charge(w, s, tag, copy.m_q16, level, &v);
    const struct wr_pair next = {counted.tag, now->v - (uint64_t)v.after};
    if (!wr_u128_cas(way, seen, next)) { // L1
        wr_count(w, WR_retried, 1);
        return WR_AGAIN;
    }
    if (verdict->after < level) after_grant(w, s, way, seen.tag, &counted, now, cold);
    if (counted.local_refund_tokens != 0)
        atomic_fetch_add_explicit(&s->local_refund_tokens, counted.local_refund_tokens, // R2
                                  memory_order_relaxed);                                // R2
    return wr_answer(w, ask, now, &v, false, answer);
}

int wr_synced_activate(struct weir *w, struct wr_synced *s, const struct wr_ask *ask,
                       struct wr_pair *way, struct wr_pair fresh, const struct wr_now *now,
                       int64_t level, struct weir_answer *answer) {
    struct wr_side *side = wr_side_of(w, s, way);
    struct wr_node_side start = {0};
    (void)warm(w, s, now, &start, &level);
    if (start.m_q16 == WR_NODE_M_CLOSED && spends(ask->kind))
        return deny_closed(w, ask, now, level, answer);
    struct wr_verdict v = wr_judge(w, ask, now, level);
    if (v.after == level) return wr_answer(w, ask, now, &v, now->unlimited, answer);
    const uint64_t named = hand_over(w, s, ask, way);
    const uint64_t tag = wr_tag_plain(ask->place.fingerprint | WR_STATE_LIVE | named, &start);
    const bool spent = v.after < level;
    const struct counted counted = charge(w, s, tag, start.m_q16, level, &v);
    const struct wr_pair live = {counted.tag, now->v - (uint64_t)v.after};
    if (!wr_u128_cas(way, fresh, live)) { // L2
        wr_count(w, WR_retried, 1);
        return WR_AGAIN;
    }
    write_side(side, &start);
    atomic_store_explicit(&side->denied_tokens, 0, memory_order_relaxed); // R1
    if (spent) after_grant(w, s, way, tag, &counted, now, true);
    return wr_answer(w, ask, now, &v, false, answer);
}
