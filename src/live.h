// The protocol's ordinary case: a take of a key that has a bucket, judged at a reading.
//
// Whatever is not ordinary - a relic, cost 0, a cost above the burst, a refusal too close to be
// sure of, a lost CAS - leaves no trace and returns WR_AGAIN: the caller goes the whole way
// (decide.c, where the argument is; L1 and L3 are defined in decide.c).
#pragma once

#include "ask.h"

#if defined(WR_U128_VECTOR)

// wr_find_live where a slot is read whole by one instruction: weir.not_plain is set where it is
// not. Under no sync a tag is its fingerprint and state, and nothing else (exact).
static inline __attribute__((always_inline)) struct wr_pair *wr_find_whole(
    struct wr_line_of_slots *line, uint64_t live, bool exact, struct wr_pair *seen) {
#pragma GCC unroll 4
    for (unsigned i = 0; i < WR_LINE_WAYS; i++) {
        *seen = wr_u128_load_vector(&line->slots[i]); // L3
        if ((exact ? seen->tag : seen->tag & WR_KEY_STATE_MASK) == live) return &line->slots[i];
    }
    return NULL;
}

static inline __attribute__((always_inline)) struct wr_pair *wr_find_fast(
    const struct wr_place *place, bool exact, struct wr_pair *seen) {
    const uint64_t live = place->fingerprint | WR_STATE_LIVE;
    struct wr_pair *way = wr_find_whole(place->line[0], live, exact, seen);
    if (way == NULL) way = wr_find_whole(place->line[1], live, exact, seen);
    if (exact) seen->tag = live;
    return way;
}

// One of its lines alone.
static inline __attribute__((always_inline)) struct wr_pair *wr_find_fast_in(
    const struct wr_place *place, unsigned line, bool exact, struct wr_pair *seen) {
    return wr_find_whole(place->line[line], place->fingerprint | WR_STATE_LIVE, exact, seen);
}

#else

static inline struct wr_pair *wr_find_fast_in(const struct wr_place *place, unsigned line,
                                              bool exact, struct wr_pair *seen) {
    (void)exact;
    return wr_find_in_line(place->line[line], place->fingerprint, seen);
}

static inline struct wr_pair *wr_find_fast(const struct wr_place *place, bool exact,
                                           struct wr_pair *seen) {
    (void)exact;
    return wr_find_live(place, seen);
}

#endif

// A level that does not cover a cost of 1 and more: is it an ordinary denial? Not that of a relic,
// of a cost above the burst, nor one so close that a fenced clock may say otherwise. (None of these
// is ever granted by mistake: in each the level, at most the burst, does not cover the cost.)
static inline bool wr_is_plain_denial(const struct weir *w, const struct wr_now *now,
                                      uint64_t units, int64_t uncapped, int64_t after) {
    return WR_LIKELY(uncapped >= w->relic_level) && WR_LIKELY(units <= (uint64_t)now->burst) &&
           WR_LIKELY((uint64_t)-after > w->two_us_units);
}

// Not for a cost of 0, nor for units above WR_UNITS_MAX.
static inline __attribute__((always_inline)) int wr_take_live(
    struct weir *w, struct wr_pair *way, struct wr_pair seen, const struct wr_now *now,
    uint64_t units, uint64_t cost, struct wr_verdict *v) {
    const int64_t uncapped = (int64_t)(now->v - seen.word);
    const int64_t level = wr_min_i64(uncapped, now->ramp);
    const int64_t after = level - (int64_t)units;
    if (after < 0) {
        *v = (struct wr_verdict){WEIR_DENIED, level, 0, (int64_t)units};
        return wr_is_plain_denial(w, now, units, uncapped, after) ? WEIR_DENIED : WR_AGAIN;
    }
    *v = (struct wr_verdict){WEIR_GRANTED, after, cost, 0};
    const struct wr_pair next = {seen.tag, now->v - (uint64_t)after};
    if (WR_LIKELY(wr_u128_cas(way, seen, next))) return WEIR_GRANTED; // L1
    wr_lost(w, 0);
    return WR_AGAIN;
}

static inline void wr_count_granted(struct weir *w, uint64_t cost) {
    wr_count(w, WR_granted, 1);
    if (WR_UNLIKELY(cost != 1)) wr_count(w, WR_tokens, cost - 1);
}

// Counts an ordinary take of weight 1.
static inline void wr_count_take(struct weir *w, struct weir_key key, int result, uint64_t cost) {
    if (result == WEIR_DENIED) {
        wr_count_refused(w, WR_denied, key);
        return;
    }
    wr_count_granted(w, cost);
}
