// The sync thread's side of a limiter. The argument is in synced.c, where R1, R2, S1 and C1 are
// defined.
#include "side.h"

// The next READY cell from a cursor on; -1: none in `left` cells. The count is what ends a turn:
// decisions may fill cells as fast as they are emptied.
static int64_t ready_cell(_Atomic uint32_t *states, uint32_t count, uint32_t *cursor,
                          uint32_t *left) {
    if (*left > count) *left = count;
    for (; *left > 0; --*left) {
        const uint32_t at = *cursor;
        *cursor = at + 1 < count ? at + 1 : 0;
        if (atomic_load_explicit(&states[at], memory_order_acquire) == WR_CELL_READY) { // C1
            --*left;
            return at;
        }
    }
    return -1;
}

bool wr_synced_name_next(struct wr_synced *s, struct wr_synced_name *name, uint32_t *left) {
    const int64_t cell = ready_cell(s->name_states, s->names, &s->name_cursor, left);
    if (cell < 0) return false;
    *name = s->name_cells[cell];
    atomic_store_explicit(&s->name_states[cell], WR_CELL_FREE, memory_order_release); // C1
    return true;
}

bool wr_synced_spill_next(struct wr_synced *s, struct wr_synced_spill *spill, uint32_t *left) {
    const int64_t cell = ready_cell(s->spill_states, WR_SPILLS, &s->spill_cursor, left);
    if (cell < 0) return false;
    *spill = s->spill_cells[cell];
    atomic_store_explicit(&s->spill_states[cell], WR_CELL_FREE, memory_order_release); // C1
    return true;
}

bool weir_private_name_next(struct weir *w, struct wr_synced_name *name, uint32_t *left) {
    struct wr_synced *s = wr_synced_of(w);
    return s != NULL && wr_synced_name_next(s, name, left);
}

bool weir_private_spill_next(struct weir *w, struct wr_synced_spill *spill, uint32_t *left) {
    struct wr_synced *s = wr_synced_of(w);
    return s != NULL && wr_synced_spill_next(s, spill, left);
}

static struct wr_pair *way_of(const struct weir *w, uint64_t slot) {
    return (struct wr_pair *)(void *)w->geometry.base + slot;
}

// What a slot holds, if it is this key's.
static bool look(const struct weir *w, uint64_t slot, uint64_t fingerprint, struct wr_pair *seen) {
    *seen = wr_u128_load(way_of(w, slot)); // S1
    return wr_slot_is(*seen, fingerprint, WR_STATE_LIVE);
}

static bool is_touched(const struct wr_side *side, struct wr_pair seen) {
    return (seen.tag & WR_UNREPORTED_MASK) != 0 ||
           atomic_load_explicit(&side->denied_tokens, memory_order_seq_cst) != 0 || // S1
           atomic_load_explicit(&side->granted_units, memory_order_seq_cst) != 0; // S1
}

static void scan_line(struct weir *w, struct wr_synced *s, uint64_t line, bool urgent,
                      wr_synced_visit *visit, void *context) {
    for (uint64_t i = 0; i < WR_LINE_WAYS; i++) {
        const uint64_t slot = line * WR_LINE_WAYS + i;
        struct wr_pair *way = way_of(w, slot);
        const struct wr_pair seen = wr_u128_load(way); // S1
        if (!wr_slot_state_is(seen, WR_STATE_LIVE)) continue;
        if (!is_touched(wr_side_of(w, s, way), seen)) continue;
        visit(context, slot, seen.tag & WR_FINGERPRINT_MASK, (seen.tag & WR_NAMED) != 0, urgent);
    }
}

void weir_private_scan(struct weir *w, wr_synced_visit *visit, void *context) {
    struct wr_synced *s = wr_synced_of(w);
    if (s == NULL) return;
    for (uint64_t i = 0; i < s->marks; i++) {
        if (atomic_load_explicit(&s->touched[i], memory_order_relaxed) == 0) continue; // S1
        uint64_t bits = atomic_exchange_explicit(&s->touched[i], 0, memory_order_seq_cst); // S1
        // Of these alone: another line's urgent mark may be waiting for its touched one.
        const uint64_t urgent =
            atomic_fetch_and_explicit(&s->urgent[i], ~bits, memory_order_seq_cst); // S1
#if !defined(__x86_64__)
        atomic_thread_fence(memory_order_seq_cst); // S1
#endif
        for (; bits != 0; bits &= bits - 1) {
            const unsigned bit = (unsigned)__builtin_ctzll(bits);
            scan_line(w, s, i * 64 + bit, (urgent >> bit & 1) != 0, visit, context);
        }
    }
}

void weir_private_touch(struct weir *w, uint64_t slot, bool urgent) {
    struct wr_synced *s = wr_synced_of(w);
    if (s == NULL) return;
    if (urgent) wr_mark_urgent(s, slot);
    else wr_mark(s->touched, slot);
}

bool weir_private_freeze(struct weir *w, uint64_t slot, uint64_t fingerprint, int64_t last_us,
                         struct wr_node_side *taken) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_pair seen;
    if (s == NULL) return false;
    struct wr_pair *way = way_of(w, slot);
    struct wr_side *side = wr_side_of(w, s, way);
    int64_t first_us;
    for (;;) {
        if (!look(w, slot, fingerprint, &seen)) return false;
        first_us = atomic_load_explicit(&side->first_us, memory_order_relaxed); // R1
        if ((seen.tag & WR_UNREPORTED_MASK) == 0) break;
        const struct wr_pair bare = {seen.tag & ~WR_UNREPORTED_MASK, seen.word};
        if (wr_u128_cas(way, seen, bare)) break; // S1
    }
    *taken = wr_side_read(side);
    taken->granted_units = (seen.tag >> WR_COUNT_SHIFT) * w->scale.unit_tokens;
    if (atomic_load_explicit(&side->granted_units, memory_order_relaxed) != 0) // R2
        taken->granted_units +=
            atomic_exchange_explicit(&side->granted_units, 0, memory_order_seq_cst); // S1
    taken->denied_tokens =
        atomic_exchange_explicit(&side->denied_tokens, 0, memory_order_seq_cst); // S1
    // From before the last freeze: its store is still on the way. The report is not dated back
    // then.
    const int64_t now_us = weir_private_now_us(w);
    taken->first_us = first_us < last_us || first_us > now_us ? now_us : first_us;
    return true;
}

bool weir_private_unfreeze(struct weir *w, uint64_t slot, uint64_t fingerprint,
                           const struct wr_node_side *back) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_pair seen;
    if (s == NULL) return false;
    struct wr_pair *way = way_of(w, slot);
    struct wr_side *side = wr_side_of(w, s, way);
    if (back->granted_units != 0) {
        // First the flag: a drop that comes between finds nothing in the side, and what is added
        // then is left to the slot's next key (I2 of synced.c).
        struct wr_pair with;
        do {
            if (!look(w, slot, fingerprint, &seen)) return false;
            with = (struct wr_pair){seen.tag | WR_SPILLED, seen.word};
        } while (!wr_u128_cas(way, seen, with)); // S1
        if ((seen.tag & WR_UNREPORTED_MASK) == 0 ||
            back->first_us < atomic_load_explicit(&side->first_us, memory_order_relaxed)) // R1
            atomic_store_explicit(&side->first_us, back->first_us, memory_order_relaxed); // R1
        atomic_fetch_add_explicit(&side->granted_units, back->granted_units, // S1
                                  memory_order_seq_cst);                     // S1
    } else if (!look(w, slot, fingerprint, &seen)) {
        return false;
    }
    if (back->denied_tokens != 0)
        atomic_fetch_add_explicit(&side->denied_tokens, back->denied_tokens, // S1
                                  memory_order_seq_cst);                     // S1
    wr_mark(s->touched, slot);
    return true;
}

bool weir_private_settle(struct weir *w, uint64_t slot, uint64_t fingerprint,
                         const struct wr_node_limit *limit, const struct wr_node_heard *heard,
                         int64_t *excess_units) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_pair seen;
    if (s == NULL) return false;
    struct wr_pair *way = way_of(w, slot);
    struct wr_side *side = wr_side_of(w, s, way);
    const uint32_t m_before = atomic_load_explicit(&side->m_q16, memory_order_relaxed); // R1
    struct wr_node_side after = {0};
    wr_node_settle_side(heard, &after);
    for (;;) {
        if (!look(w, slot, fingerprint, &seen)) return false;
        const struct wr_now now = wr_now_read(w->versions, &w->source, w->scale.shift, 0, true);
        bool relic;
        const int64_t level = wr_level(&now, seen.word, w->scale.horizon_units, &relic);
        const uint64_t since =
            (seen.tag >> WR_COUNT_SHIFT) * w->scale.unit_tokens +
            atomic_load_explicit(&side->granted_units, memory_order_relaxed); // R2
        const int64_t settled = wr_min_i64(
            now.ramp, wr_node_settle(limit, heard, level, since, m_before, wr_now_us(s, now.ns)));
        *excess_units = settled < 0 ? -settled : 0;
        const uint64_t tag = wr_tag_plain(seen.tag, &after);
        if (settled == level && !relic && tag == seen.tag) break;
        const struct wr_pair next = {tag, now.v - (uint64_t)settled};
        if (wr_u128_cas(way, seen, next)) break; // S1
    }
    atomic_store_explicit(&side->early_tokens, after.early_tokens, memory_order_relaxed); // R1
    atomic_store_explicit(&side->synced_ms, after.synced_ms, memory_order_relaxed);       // R1
    atomic_store_explicit(&side->m_q16, after.m_q16, memory_order_relaxed);               // R1
    return true;
}

bool weir_private_set_m(struct weir *w, uint64_t slot, uint64_t fingerprint, uint32_t m_q16) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_pair seen;
    if (s == NULL) return false;
    struct wr_pair *way = way_of(w, slot);
    struct wr_side *side = wr_side_of(w, s, way);
    struct wr_node_side copy = wr_side_read(side);
    copy.m_q16 = m_q16;
    for (;;) {
        if (!look(w, slot, fingerprint, &seen)) return false;
        const struct wr_pair next = {wr_tag_plain(seen.tag, &copy), seen.word};
        if (next.tag == seen.tag || wr_u128_cas(way, seen, next)) break; // S1
    }
    atomic_store_explicit(&side->m_q16, m_q16, memory_order_relaxed); // R1
    return true;
}

static bool unname(struct weir *w, uint64_t slot, uint64_t fingerprint, bool even_touched) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_pair seen;
    if (s == NULL) return false;
    struct wr_pair *way = way_of(w, slot);
    for (;;) {
        if (!look(w, slot, fingerprint, &seen)) return false;
        if (!even_touched && is_touched(wr_side_of(w, s, way), seen)) return false;
        // Without a name no key is plain.
        const struct wr_pair next = {seen.tag & ~(WR_NAMED | WR_PLAIN_MASK), seen.word};
        if (wr_u128_cas(way, seen, next)) return true; // S1
    }
}

bool weir_private_unname(struct weir *w, uint64_t slot, uint64_t fingerprint) {
    return unname(w, slot, fingerprint, false);
}

void weir_private_rename(struct weir *w, uint64_t slot, uint64_t fingerprint) {
    (void)unname(w, slot, fingerprint, true);
}

void weir_private_set_outage(struct weir *w, bool outage) {
    struct wr_synced *s = wr_synced_of(w);
    if (s != NULL) atomic_store_explicit(&s->outage, outage ? 1 : 0, memory_order_relaxed); // R1
}

int64_t weir_private_now_us(const struct weir *w) {
    const struct wr_instant instant = wr_instant_read(&w->source, 0, false);
    return (int64_t)(((uint64_t)instant.ns + w->source.epoch_ns) / 1000);
}

uint64_t weir_private_unit_tokens(const struct weir *w) {
    return w->scale.unit_tokens;
}

uint64_t weir_private_max_debt_tokens(const struct weir *w) {
    const struct wr_synced *s = wr_synced_of(w);
    return s == NULL ? 0 : (uint64_t)s->charging.max_debt_units / w->scale.unit_tokens;
}

uint64_t weir_private_limit_version(const struct weir *w) {
    return wr_version_current(w->versions);
}

void weir_private_counts(const struct weir *w, struct wr_synced_counts *counts) {
    const struct wr_synced *s = wr_synced_of(w);
    *counts = (struct wr_synced_counts){0, 0, 0};
    if (s == NULL) return;
    counts->unnamed = atomic_load_explicit(&s->unnamed, memory_order_relaxed);         // R2
    counts->lost_tokens = atomic_load_explicit(&s->lost_tokens, memory_order_relaxed); // R2
    counts->local_refund_tokens =
        atomic_load_explicit(&s->local_refund_tokens, memory_order_relaxed); // R2
}

uint64_t weir_private_side_bytes(const struct weir *w) {
    const struct wr_synced *s = wr_synced_of(w);
    return s == NULL ? 0 : s->bytes;
}
