// The slot protocol, second half: a key that has no bucket. The argument stands in decide.c.
//
// L1 The announcement: nothing is consumed.
// L2 A grant on an absent key: the CAS from FRESH(key, nonce) to LIVE(key, zero).
// R1 dropped_at is read after the last load of the second scan: acquire loads keep their order. It
//    is raised before the CAS that drops a bucket; that CAS is a release, so whoever sees the way
//    dropped sees the raise. A raise whose drop then fails has only raised it: harmless.
// F1 The announcing CAS precedes the loads of the second scan. On x86-64 a locked instruction is a
//    full barrier; elsewhere the fence says so. Without it two threads could each scan before the
//    other's announcement is visible, and both activate.
#include "side.h"

// Snapshot of the eight ways, in the key's order.
struct ways {
    struct wr_pair *way[WR_WAYS];
    struct wr_pair seen[WR_WAYS];
};

static void scan(const struct wr_place *place, struct ways *s) {
    for (unsigned i = 0; i < WR_WAYS; i++) {
        s->way[i] = &place->line[i / WR_LINE_WAYS]->slots[i % WR_LINE_WAYS];
        s->seen[i] = wr_u128_load(s->way[i]); // L1
    }
}

static int find(const struct ways *s, uint64_t fingerprint, uint64_t state) {
    for (int i = 0; i < WR_WAYS; i++)
        if (wr_slot_is(s->seen[i], fingerprint, state)) return i;
    return -1;
}

// How far `dropped` lies ahead of a reading, in units; negative: behind.
static int64_t lead_of(uint64_t dropped, const struct wr_now *now) {
    return (int64_t)(dropped - now->v);
}

// More than an hour's tokens ahead is a relic: ignored, replaced, counted.
static void drop_relic(struct weir *w, struct wr_shard *shard, uint64_t dropped,
                       const struct wr_now *now) {
    if (atomic_compare_exchange_strong_explicit(&shard->dropped_at, &dropped, now->v, // R1
                                                memory_order_release,                 // R1
                                                memory_order_relaxed))                // R1
        wr_count(w, WR_relics, 1);
}

// Reads clock and limit, then dropped_at, and says how full the absent bucket is: a drop that lies
// ahead of the reading lowers it. Where the clock is the limiter's own, such a drop was made by a
// thread that read it later than we did; then we read it again, behind it.
static int64_t absent_level(struct weir *w, const struct wr_ask *ask, bool fenced,
                            struct wr_now *now) {
    struct wr_shard *shard = ask->place.shard;
    *now = wr_now_read(w->versions, &w->source, w->scale.shift, ask->at, fenced);
    const uint64_t dropped = atomic_load_explicit(&shard->dropped_at, memory_order_acquire); // R1
    int64_t lead = lead_of(dropped, now);
    if (WR_LIKELY(lead <= 0)) return now->ramp;
    if (w->source.kind != WEIR_CLOCK_CALLER) {
        *now = wr_now_read(w->versions, &w->source, w->scale.shift, ask->at, true);
        lead = lead_of(dropped, now);
    }
    if (lead > (int64_t)w->scale.hour_units) drop_relic(w, shard, dropped, now);
    else if (lead > 0) return now->ramp - lead;
    return now->ramp;
}

// Before a LIVE way is dropped: its key must not be full again before the V at which it was full.
static void raise_dropped_at(struct wr_shard *shard, const struct wr_now *now,
                             uint64_t zero) {
    const int64_t level = (int64_t)(now->v - zero);
    const uint64_t full_at = level >= now->ramp ? zero + (uint64_t)now->ramp : now->v;
    uint64_t dropped = atomic_load_explicit(&shard->dropped_at, memory_order_relaxed); // R1
    while ((int64_t)(full_at - dropped) > 0) {
        if (atomic_compare_exchange_weak_explicit(&shard->dropped_at, &dropped, full_at, // R1
                                                  memory_order_release,                  // R1
                                                  memory_order_relaxed))                 // R1
            break;
    }
}

// What a way is worth to a new key.
// UNREPORTED is full, but a sync has not yet taken what it granted, which goes to the spills' ring.
enum worth { TAKEN, BUSY, UNREPORTED, EVICTABLE, IDLE, EMPTY };

static enum worth worth_of(const struct weir *w, struct wr_pair seen, const struct wr_now *now) {
    if (wr_slot_state_is(seen, WR_STATE_FRESH)) return EVICTABLE;
    if (!wr_slot_state_is(seen, WR_STATE_LIVE)) return EMPTY;
    bool relic;
    if (wr_level(now, seen.word, w->scale.horizon_units, &relic) < now->ramp) return BUSY;
    const bool unreported = (seen.tag & WR_UNREPORTED_MASK) != 0 && wr_synced_of(w) != NULL;
    return unreported ? UNREPORTED : IDLE;
}

// The best free way of the line with fewer busy ways; the other line if that has none. -1: none.
static int choose_free(const enum worth *worth) {
    unsigned busy[2] = {0, 0};
    int best[2] = {-1, -1};
    for (int i = 0; i < WR_WAYS; i++) {
        const int l = i / WR_LINE_WAYS;
        if (worth[i] < IDLE) busy[l]++;
        else if (best[l] < 0 || worth[i] > worth[best[l]]) best[l] = i;
    }
    const int first = busy[1] < busy[0];
    return best[first] >= 0 ? best[first] : best[1 - first];
}

static int choose_worth(const enum worth *worth, enum worth wanted) {
    for (int i = 0; i < WR_WAYS; i++)
        if (worth[i] == wanted) return i;
    return -1;
}

// The busy bucket nearest to full.
static int choose_displaced(const struct ways *s, const enum worth *worth,
                            const struct wr_now *now) {
    int best = -1;
    for (int i = 0; i < WR_WAYS; i++) {
        if (worth[i] != BUSY) continue;
        if (best < 0 ||
            (int64_t)(now->v - s->seen[i].word) > (int64_t)(now->v - s->seen[best].word))
            best = i;
    }
    return best;
}

// A way for a new key, by rank: free, another's FRESH once a call, by policy a busy one.
static int choose_victim(const struct weir *w, const struct ways *s, const struct wr_now *now,
                         unsigned evictions, enum worth *of) {
    enum worth worth[WR_WAYS];
    for (int i = 0; i < WR_WAYS; i++) worth[i] = worth_of(w, s->seen[i], now);
    int victim = choose_free(worth);
    if (victim < 0 && evictions > 0) victim = choose_worth(worth, EVICTABLE);
    if (victim < 0) victim = choose_worth(worth, UNREPORTED);
    if (victim < 0 && w->full_policy == WEIR_FULL_DISPLACE)
        victim = choose_displaced(s, worth, now);
    if (victim >= 0) *of = worth[victim];
    return victim;
}

// Unique in the region: a thread's line, and how many were announced through it. Always an atomic
// add, so that it stays unique where processes share a region and a line.
static uint64_t new_nonce(struct weir *w) {
    const uint32_t line = wr_thread_line();
    return (uint64_t)line << 56 |
           wr_add(&w->counts[line].counters[WR_inserted], false, 1);
}

static void count_drop(struct weir *w, enum worth of, struct wr_pair seen,
                       const struct wr_now *now) {
    if (of != BUSY) return;
    const uint64_t owed = (uint64_t)(now->ramp - (int64_t)(now->v - seen.word));
    wr_count(w, WR_displaced, 1);
    wr_count(w, WR_forgiven_tokens, (uint64_t)wr_ceil_div(owed, w->scale.unit_tokens));
}

// Puts FRESH(key, new nonce) into a way. False: the way changed meanwhile.
static bool announce(struct weir *w, const struct wr_ask *ask, const struct ways *s, int victim,
                     enum worth of, const struct wr_now *now, struct wr_pair *fresh) {
    const struct wr_pair seen = s->seen[victim];
    if (of == IDLE || of == BUSY || of == UNREPORTED)
        raise_dropped_at(ask->place.shard, now, seen.word);
    *fresh = (struct wr_pair){ask->place.fingerprint | WR_STATE_FRESH, new_nonce(w)};
    if (!wr_u128_cas(s->way[victim], seen, *fresh)) return false; // L1
#if !defined(__x86_64__)
    atomic_thread_fence(memory_order_seq_cst); // F1
#endif
    count_drop(w, of, seen, now);
    if (of == BUSY || of == UNREPORTED) wr_synced_dropped(w, s->way[victim], seen);
    return true;
}

// Step 4: nobody else has this key, and nobody else will before our CAS without changing our way.
static bool second_scan(const struct wr_ask *ask, const struct ways *s, int f,
                        struct wr_pair fresh) {
    for (int i = 0; i < WR_WAYS; i++) {
        const struct wr_pair now = wr_u128_load(s->way[i]); // L2
        if (i == f) {
            if (now.tag != fresh.tag || now.word != fresh.word) return false;
        } else if (wr_slot_is(now, ask->place.fingerprint, WR_STATE_LIVE)) {
            return false;
        } else if (wr_slot_is(now, ask->place.fingerprint, WR_STATE_FRESH)) {
            if (i < f) return false;
            if (!wr_u128_cas(s->way[i], now, (struct wr_pair){0, 0})) return false; // L1
        }
    }
    return true;
}

static int activate(struct weir *w, const struct wr_ask *ask, const struct ways *s, int f,
                    struct wr_pair fresh, struct weir_answer *answer) {
    struct wr_now now;
    const int64_t level = absent_level(w, ask, true, &now);
    struct wr_synced *synced = wr_synced_of(w);
    if (WR_UNLIKELY(synced != NULL))
        return wr_synced_activate(w, synced, ask, s->way[f], fresh, &now, level, answer);
    const struct wr_verdict v = wr_judge(w, ask, &now, level);
    if (v.after == level)
        return wr_answer(w, ask, &now, &v, now.unlimited, answer);
    const struct wr_pair live = {ask->place.fingerprint | WR_STATE_LIVE, now.v - (uint64_t)v.after};
    if (wr_u128_cas(s->way[f], fresh, live)) // L2
        return wr_answer(w, ask, &now, &v, false, answer);
    wr_count(w, WR_retried, 1);
    return WR_AGAIN;
}

// Until the first of the eight busy buckets is full, in units.
static int64_t until_room(const struct ways *s, const struct wr_now *now) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < WR_WAYS; i++)
        if (wr_slot_state_is(s->seen[i], WR_STATE_LIVE))
            least = wr_min_i64(least, now->ramp - (int64_t)(now->v - s->seen[i].word));
    return least == INT64_MAX ? 1 : least; // eight announcements: they are about to pass
}

static int no_room(struct weir *w, const struct wr_ask *ask, const struct ways *s,
                   const struct wr_now *now, int64_t level, const struct wr_verdict *granted,
                   struct weir_answer *answer) {
    if (w->full_policy == WEIR_FULL_GRANT) {
        const struct wr_verdict v = {granted->result, level, granted->tokens, 0};
        return wr_answer(w, ask, now, &v, true, answer);
    }
    const struct wr_verdict v = {WEIR_NO_ROOM, level, 0, level + until_room(s, now)};
    return wr_answer(w, ask, now, &v, false, answer);
}

int wr_decide_absent(struct weir *w, const struct wr_ask *ask, unsigned *evictions, bool fenced,
                     struct weir_answer *answer) {
    struct ways s;
    scan(&ask->place, &s);
    if (find(&s, ask->place.fingerprint, WR_STATE_LIVE) >= 0) return WR_AGAIN;
    struct wr_now now;
    const int64_t level = absent_level(w, ask, fenced, &now);
    const struct wr_verdict v = wr_judge(w, ask, &now, level);
    if (!fenced && wr_is_close(w, &now, &v, level)) return WR_AGAIN_FENCED;
    if (v.after == level) return wr_answer(w, ask, &now, &v, now.unlimited, answer);
    int f = find(&s, ask->place.fingerprint, WR_STATE_FRESH);
    const bool announced = f >= 0;
    enum worth of = TAKEN;
    if (!announced) f = choose_victim(w, &s, &now, *evictions, &of);
    if (f < 0) return no_room(w, ask, &s, &now, level, &v, answer);
    if (ask->kind == WEIR_PEEK) return wr_answer(w, ask, &now, &v, false, answer);
    struct wr_pair fresh = s.seen[f];
    if (!announced) {
        if (!announce(w, ask, &s, f, of, &now, &fresh)) {
            wr_count(w, WR_retried, 1);
            return WR_AGAIN;
        }
        if (of == EVICTABLE) (*evictions)--;
    }
    if (!second_scan(ask, &s, f, fresh)) return WR_AGAIN;
    return activate(w, ask, &s, f, fresh, answer);
}
