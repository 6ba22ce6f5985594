// The slot protocol, first half: a key that has a bucket. The second half is absent.c.
//
// Shared words
//   slots       16 bytes each, changed only by a 128-bit CAS: EMPTY, FRESH(key, nonce) or
//               LIVE(key, zero); see slot.h
//   dropped_at  one a shard, a value of V that only grows
//   version and clock words: see version.c and clock.c
//
// The protocol, for take(key, cost). The other kinds differ only in what they make of the level
// (judge.c).
//   1  Scan the key's eight ways in its own order. At the first LIVE(key, zero): read clock and
//      limit, judge; a refusal writes nothing; a grant is
//      CAS(LIVE(key, zero) -> LIVE(key, new zero)).
//   2  No LIVE: judge an absent bucket, which is full: V' = max(V, dropped_at),
//      level = ramp - (V' - V). A refusal writes nothing.
//   3  Else take the lowest FRESH(key) - anyone's - or announce one: CAS an EMPTY or idle way, or,
//      once a call, another key's FRESH, or by the policy a busy one, to FRESH(key, new nonce).
//   4  Second scan, all ways in order: LIVE(key) anywhere, or FRESH(key) lower than ours: start
//      again. FRESH(key) higher than ours: CAS it to EMPTY.
//   5  Read the clock, fenced behind the scan, then dropped_at; judge again;
//      CAS(FRESH(key, nonce) -> LIVE(key, zero)).
//
// Invariants
// I1 (P1 of the design) A key is LIVE in at most one way. Two activations of one key would each
//    have scanned the other's way before its own CAS: the later of the two saw LIVE and started
//    again, or it had removed the other's FRESH, whose CAS then failed, as no nonce is used twice.
// I2 FRESH consumed nothing, so anyone may drop it; a LIVE bucket that is full at some reading is
//    full from then on, and the same as an absent one, so anyone may drop it: with readings in any
//    order, because the dropping thread first raises dropped_at to the value of V at which that
//    bucket became full, and an activation starts from no earlier V.
// I3 (P2, the bound) Every grant is a CAS from the word it was judged on, so a bucket is a sequence
//    of debits; each is within the level at its own reading. Readings in any order are safe while
//    the slot is LIVE, since zero only grows by the cost, and over a drop by I2.
// I4 (P3) A refusal is true at a moment of the call: the clock is read after the scan. A counter
//    read may move up before a slow load; a refusal so close that this could matter (2 us) is
//    judged again with a fenced reading.
// I5 (P4) A CAS fails only because another thread's succeeded, and each success is a step of some
//    call towards its end: a call evicts at most one FRESH of others, so two keys cannot evict each
//    other for ever. A thread stopped anywhere holds nothing: its FRESH may be adopted or dropped.
//
// Linearization
// L1 A grant on a LIVE way: its CAS. (On an absent key: the CAS of step 5, L2 of absent.c.)
// L4 A reset: the CAS that drops the bucket, as if it had been full. Needs no clock, and does not
//    raise dropped_at: the key is full at once, which is what a reset grants beyond the bound.
// L3 A refusal on a LIVE way: the load of that way. On an absent key: the reading of the clock.
//
// Publication: none; a slot's word is the whole state of its bucket, nothing else hangs on it.
//
// Relaxed accesses: the tag loads of the first scan (O2 of u128.h) are hints. What they find is
// loaded again whole (L3), what they do not find is scanned again whole in step 2.
//
// Checked by tests/model/slot.pml (each part is needed: the model fails without it), and by
// tests/stress_take.c.
#include "side.h"

int wr_decide(struct weir *w, const struct wr_ask *ask, struct weir_answer *answer) {
    bool fenced = w->source.kind == WEIR_CLOCK_CALLER; // a reading that does not get later
    unsigned evictions = 1;
    unsigned lost = 0;
    for (;;) {
        struct wr_pair seen;
        struct wr_pair *way = wr_find_live(&ask->place, &seen);
        if (way == NULL) {
            const int result = wr_decide_absent(w, ask, &evictions, fenced, answer);
            if (result < WR_AGAIN) return result;
            fenced = fenced || result == WR_AGAIN_FENCED;
            continue;
        }
        const struct wr_now now =
            wr_now_read(w->versions, &w->source, w->scale.shift, ask->at, fenced);
        bool relic;
        const int64_t level = wr_level(&now, seen.word, w->scale.horizon_units, &relic);
        if (WR_UNLIKELY(relic)) wr_count(w, WR_relics, 1);
        const struct wr_verdict v = wr_judge(w, ask, &now, level);
        if (!fenced && WR_UNLIKELY(wr_is_close(w, &now, &v, level))) {
            fenced = true;
            continue;
        }
        struct wr_synced *synced = ask->kind == WEIR_PEEK ? NULL : wr_synced_of(w);
        if (WR_UNLIKELY(synced != NULL)) {
            const int result =
                wr_synced_decide(w, synced, ask, way, seen, &now, level, &v, answer);
            if (result == WR_AGAIN) continue;
            return result;
        }
        if (v.after == level || ask->kind == WEIR_PEEK)
            return wr_answer(w, ask, &now, &v, now.unlimited, answer);
        const struct wr_pair next = {seen.tag, now.v - (uint64_t)v.after};
        if (WR_LIKELY(wr_u128_cas(way, seen, next))) // L1
            return wr_answer(w, ask, &now, &v, false, answer);
        wr_lost(w, ++lost);
    }
}

void wr_lost(struct weir *w, unsigned n) {
    wr_count(w, WR_retried, 1);
    const unsigned turns = 8u << (n < 3 ? n : 3);
    for (unsigned i = 0; i < turns; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb");
#endif
    }
}

void wr_reset(struct weir *w, const struct wr_place *place) {
    struct wr_pair seen;
    struct wr_pair *way;
    do {
        way = wr_find_live(place, &seen);
    } while (way != NULL && !wr_u128_cas(way, seen, (struct wr_pair){0, 0})); // L4
    if (way != NULL) wr_synced_dropped(w, way, seen);
}
