// Putting a limiter under a sync, and the argument for what decisions and the sync thread share.
//
// Shared words
//   slot tag      NAMED, SPILLED, how plain, and the count of a LIVE slot (side.h): changed with
//                 the slot, by CAS
//   side          m, early, synced: written by the sync thread (and once by whoever activates a
//                 key), read by decisions; denied, first, granted: written by decisions, taken by
//                 the thread
//   marks         a bit is set by decisions after what it announces, cleared by the thread before
//                 it looks
//   cells         names and spills on their way to the thread
//   w->synced     NULL: decisions leave nothing behind
//
// I1 A grant of whole tokens is in the count of its own slot from the CAS that made it to the CAS
//    that takes it (a freeze, a drop, a reset): it is counted once, for its own key.
// I2 A grant with no room in the count is added to the side after its CAS, with SPILLED in the tag,
//    and what had been counted (under 2^18 tokens) with it. Where a freeze or a drop comes in
//    between, it may count for the slot's next key, as what that adds may for the last where the
//    freeze or drop sleeps between its CAS and the side: once a thread at most.
// I3 What is counted is seen: see S1. So at rest, after a scan and freezes, nothing is left over,
//    but for what waits by I2 in the side of a slot for its next key. A grant that finds a count
//    leaves the mark to the one that found none: one killed before its mark leaves the slot unseen
//    until the count comes to its early threshold, a denial, a drop, or the sweep of records.
// I4 A thread killed anywhere holds nobody up: a cell it had claimed is lost, and others pass it
//    by.
// I5 A late or torn look at a side (m of the slot's last key, an early threshold just replaced)
//    charges one ask a thread by the wrong multiplier. What is granted is counted exactly all the
//    same, and the next answer from Redis puts the level right.
// I6 Urgent is marked before touched; the thread takes touched, then of the urgent marks those of
//    the lines it took. So where it finds a line touched by a decision, it finds whether that was
//    urgent.
// I7 A slot says NAMED once its key's name is READY in the ring; the thread looks into the ring
//    again, a whole turn, before it thinks that a NAMED slot, or a spill, has no record. Where a
//    record was forgotten all the same, or never had memory, the name is asked for anew and what
//    was counted stays; only a spill of such a key is counted as lost.
//
// P1 w->synced is stored after all that it points to is filled in; it is never freed before the
//    limiter. Attach and detach may overlap decisions: one that read the pointer before goes by
//    what it read.
// S1 Both sides write, then read what the other writes: a decision its count, then the mark
//    (skipping the write where the bit is set); the thread the mark (to 0), then the counts. Each
//    write and each read is sequentially consistent or a locked CAS, so one of the two sees the
//    other: either the decision finds the bit cleared and sets it again, or the scan finds the
//    count. (The load of a slot is acquire only: off x86-64 a fence stands between.)
// C1 A cell is FREE, CLAIMED by one decision, READY, and FREE again by the sync thread: acquire
//    where it is entered, release where it is left.
// R1 Words of a side that one party writes and the other looks at: I5. first_us is stored behind
//    the CAS that counts; one that is from before the last freeze counts as none.
// R2 Counters and sampled denials.
// R3 Which of the two ways weir_take tries first: nothing is read by way of it.
//
// Checked by tests/model/synced.pml (I1, I3, I6, I7, S1, the rings: each part is needed, the model
// fails without it), tests/test_synced.c (single steps, twice each by a plain limiter) and
// tests/stress_synced.c (conservation with attach and detach under load, and urgent marks).
#include "side.h"

#include <inttypes.h>
#include <string.h>

#include "memory.h"

static uint64_t slots_of(const struct weir *w) {
    return w->geometry.shards * w->geometry.shard_bytes / sizeof(struct wr_pair);
}

static uint64_t round_line(uint64_t bytes) {
    return (bytes + 63) & ~UINT64_C(63);
}

// One block: the head, states, cells, marks, and the sides last.
static struct wr_synced *make(struct weir *w, const struct wr_synced_options *o) {
    const uint64_t slots = slots_of(w);
    const uint64_t marks = (slots / WR_LINE_WAYS + 63) / 64;
    const uint64_t parts[] = {
        round_line(sizeof(struct wr_synced)),
        round_line(o->names * sizeof(_Atomic uint32_t)),
        round_line(o->names * sizeof(struct wr_synced_name)),
        round_line(WR_SPILLS * sizeof(_Atomic uint32_t)),
        round_line(WR_SPILLS * sizeof(struct wr_synced_spill)),
        round_line(marks * 8),
        round_line(marks * 8),
        slots * sizeof(struct wr_side),
    };
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) bytes += parts[i];
    const size_t align = bytes >= WR_HUGE_PAGE_BYTES ? WR_HUGE_PAGE_BYTES : 4096;
    unsigned char *at = w->allocator.map(w->allocator.context, bytes, align);
    if (at == NULL) return NULL;
    struct wr_synced *s = (struct wr_synced *)(void *)at;
    s->bytes = bytes;
    s->marks = marks;
    s->names = o->names;
    s->name_states = (_Atomic uint32_t *)(void *)(at += parts[0]);
    s->name_cells = (struct wr_synced_name *)(void *)(at += parts[1]);
    s->spill_states = (_Atomic uint32_t *)(void *)(at += parts[2]);
    s->spill_cells = (struct wr_synced_spill *)(void *)(at += parts[3]);
    s->touched = (_Atomic uint64_t *)(void *)(at += parts[4]);
    s->urgent = (_Atomic uint64_t *)(void *)(at += parts[5]);
    s->sides = at + parts[6];
    return s;
}

// Clears what a sync left in the tags: the short way of a plain limiter finds bare tags only. (One
// that is left by a decision under way goes the whole way until its slot changes hands.) Returns
// the units that they counted.
static uint64_t sweep(struct weir *w) {
    const uint64_t slots = slots_of(w);
    uint64_t units = 0;
    for (uint64_t i = 0; i < slots; i++) {
        const uint64_t offset = i * sizeof(struct wr_pair) % w->geometry.shard_bytes;
        if (offset < sizeof(struct wr_shard)) continue;
        struct wr_pair *way = (struct wr_pair *)(void *)w->geometry.base + i;
        for (;;) {
            const struct wr_pair seen = wr_u128_load(way); // S1
            if (!wr_slot_state_is(seen, WR_STATE_LIVE) || (seen.tag & WR_SYNC_BITS) == 0) break;
            const struct wr_pair bare = {seen.tag & ~WR_SYNC_BITS, seen.word};
            if (!wr_u128_cas(way, seen, bare)) continue; // S1
            units += (seen.tag >> WR_COUNT_SHIFT) * w->scale.unit_tokens;
            break;
        }
    }
    return units;
}

// Empties what is beside the slots, by atomic operations: decisions that read the pointer may still
// be under way. Returns the units that were not taken.
static uint64_t clear(struct weir *w, struct wr_synced *s) {
    struct wr_side *sides = (struct wr_side *)(void *)s->sides;
    const uint64_t slots = slots_of(w);
    struct wr_synced_name name;
    struct wr_synced_spill spill;
    uint64_t units = 0;
    for (uint64_t i = 0; i < slots; i++) {
        units += atomic_exchange_explicit(&sides[i].granted_units, 0, memory_order_relaxed); // R2
        atomic_store_explicit(&sides[i].denied_tokens, 0, memory_order_relaxed);             // R2
        atomic_store_explicit(&sides[i].m_q16, 0, memory_order_relaxed);                     // R1
    }
    uint32_t left = UINT32_MAX;
    while (wr_synced_name_next(s, &name, &left)) continue;
    left = UINT32_MAX;
    while (wr_synced_spill_next(s, &spill, &left)) units += spill.granted_units;
    return units;
}

static bool same_rules(const struct wr_synced *s, const struct wr_synced_options *o,
                       uint64_t max_debt_units) {
    const struct wr_node_rules *a = &s->rules, *b = &o->rules;
    return s->names == o->names && s->charging.max_debt_units == (int64_t)max_debt_units &&
           a->interval_us == b->interval_us && a->epoch_us == b->epoch_us &&
           a->hot_memory_us == b->hot_memory_us && a->share_span_us == b->share_span_us &&
           a->policy == b->policy && a->expected_nodes == b->expected_nodes;
}

// An earlier attach's memory, if it was under the same rules.
static struct wr_synced *reuse(struct weir *w, const struct wr_synced_options *o,
                               uint64_t max_debt_units) {
    struct wr_synced *s = w->synced_memory;
    while (s != NULL && !same_rules(s, o, max_debt_units)) s = s->older;
    if (s == NULL) return NULL;
    (void)clear(w, s);
    atomic_store_explicit(&s->unnamed, 0, memory_order_relaxed);             // R2
    atomic_store_explicit(&s->lost_tokens, 0, memory_order_relaxed);         // R2
    atomic_store_explicit(&s->local_refund_tokens, 0, memory_order_relaxed); // R2
    return s;
}

static int refuse(struct weir_error *error, int result, const char *words) {
    wr_say(error, "%s", words);
    return result;
}

// The most that a synced bucket may be pushed below zero, in units.
static int debt_units(const struct weir *w, const struct wr_synced_options *o, uint64_t *units,
                      struct weir_error *error) {
    struct weir_limit limit;
    weir_get_limit(w, &limit);
    const uint64_t most = w->scale.horizon_units / w->scale.unit_tokens;
    uint64_t tokens = o->max_debt_tokens;
    if (tokens == 0) tokens = wr_min_u64(limit.burst, most);
    if (tokens > most) {
        wr_say(error, "max_debt_tokens is %" PRIu64 "; the most that this limiter can keep exactly "
               "is %" PRIu64, tokens, most);
        return WEIR_ELIMIT;
    }
    *units = tokens * w->scale.unit_tokens;
    return WEIR_GRANTED;
}

int weir_private_attach(struct weir *w, const struct wr_synced_options *o,
                        struct weir_error *error) {
    if (w->source.kind == WEIR_CLOCK_CALLER)
        return refuse(error, WEIR_ECLOCK, "a limiter with a caller's clock cannot be synced: Redis "
                                          "goes by real time; use another enum weir_clock");
    if (wr_synced_of(w) != NULL)
        return refuse(error, WEIR_EINVAL, "this limiter is under a sync already; detach it first");
    uint64_t units;
    const int result = debt_units(w, o, &units, error);
    if (result != WEIR_GRANTED) return result;
    (void)sweep(w);
    struct wr_synced *s = reuse(w, o, units);
    if (s == NULL) {
        s = make(w, o);
        if (s == NULL)
            return refuse(error, WEIR_ENOMEM, "no memory for the sync's 64 bytes a key");
        s->rules = o->rules;
        s->charging = (struct wr_node_limit){.unit_tokens = (int64_t)w->scale.unit_tokens,
                                             .max_debt_units = (int64_t)units};
        s->epoch_ns = w->source.epoch_ns;
        s->older = w->synced_memory;
        w->synced_memory = s;
    }
    atomic_store_explicit(&s->outage, 0, memory_order_relaxed);          // R1
    atomic_store_explicit(&w->synced, s, memory_order_release);          // P1
    atomic_store_explicit(&w->cost_max_plain, 0, memory_order_relaxed);  // R3
    return WEIR_GRANTED;
}

uint64_t weir_private_detach(struct weir *w) {
    struct wr_synced *s = wr_synced_of(w);
    if (s == NULL) return 0;
    atomic_store_explicit(&w->synced, NULL, memory_order_release); // P1
    if (!w->not_plain)
        atomic_store_explicit(&w->cost_max_plain, w->scale.cost_max, memory_order_relaxed); // R3
    const uint64_t counted = sweep(w);
    return counted + clear(w, s);
}

void wr_synced_free(struct weir *w) {
    while (w->synced_memory != NULL) {
        struct wr_synced *s = w->synced_memory;
        w->synced_memory = s->older;
        w->allocator.unmap(w->allocator.context, s, s->bytes);
    }
}
