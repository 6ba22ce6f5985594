// One ask, as the slot protocol sees it: where the key lives, what is wanted, how a level answers.
//
// The protocol (decide.c, absent.c) finds the level of a bucket and writes the new one; this file
// alone says what a kind of ask makes of a level. L3 is defined in decide.c.
#pragma once

#include "limiter.h"
#include "now.h"

struct wr_ask {
    struct wr_place place;
    struct weir_key key;       // for its name, should it be refused
    uint64_t cost;             // tokens
    uint64_t units;            // the same in units, weight included; > WR_UNITS_MAX: cannot fit
    struct weir_weight weight; // 0/0 is 1/1
    enum weir_kind kind;
    bool silent;               // not counted: whose it is counts it
    int64_t at;                // a caller's reading, since the epoch
    uint64_t max_wait_ns;      // of a reservation; 0: up to max_ahead
    uint64_t *due;             // where a reservation leaves the V at which it is due; or NULL
};

struct wr_verdict {
    int result;
    int64_t after;      // the level to write; equal to the level where nothing is to be written
    uint64_t tokens;    // granted_tokens of the answer
    int64_t wanted;     // units: the level at which the ask would have passed, or passes when due
};

// The level of a bucket at a moment: V - zero, at most the effective burst. Below the horizon it is
// a relic (a damaged file, a wrapped clock), and read as full.
static inline int64_t wr_level(const struct wr_now *now, uint64_t zero, uint64_t horizon,
                               bool *relic) {
    const int64_t level = (int64_t)(now->v - zero);
    *relic = WR_UNLIKELY(level < -(int64_t)horizon);
    return *relic ? now->ramp : wr_min_i64(level, now->ramp);
}

static inline struct wr_verdict wr_judge_take(const struct wr_now *now, int64_t level,
                                              uint64_t units, uint64_t cost) {
    struct wr_verdict v = {WEIR_DENIED, level, 0, 0};
    if (WR_UNLIKELY(now->burst == 0)) { // the kill switch
        v.wanted = INT64_MAX;
        return v;
    }
    if (WR_UNLIKELY(units > (uint64_t)now->burst)) {
        v.result = WEIR_NEVER;
        return v;
    }
    v.wanted = (int64_t)units;
    const int64_t after = level - (int64_t)units;
    if (after < 0) return v;
    v.result = WEIR_GRANTED;
    v.after = after;
    v.tokens = cost;
    return v;
}

// The verdict for every kind but a plain take.
struct wr_verdict wr_judge_other(const struct weir *w, const struct wr_ask *ask,
                                 const struct wr_now *now, int64_t level);

static inline struct wr_verdict wr_judge(const struct weir *w, const struct wr_ask *ask,
                                         const struct wr_now *now, int64_t level) {
    if (WR_UNLIKELY(now->unlimited)) return (struct wr_verdict){WEIR_GRANTED, level, ask->cost, 0};
    if (WR_LIKELY(ask->kind == WEIR_TAKE)) return wr_judge_take(now, level, ask->units, ask->cost);
    return wr_judge_other(w, ask, now, level);
}

// The LIVE way of a key in one of its lines, if the tags show one.
static inline struct wr_pair *wr_find_in_line(struct wr_line_of_slots *line, uint64_t fingerprint,
                                              struct wr_pair *seen) {
#pragma GCC unroll 4
    for (unsigned i = 0; i < WR_LINE_WAYS; i++) {
        struct wr_pair *way = &line->slots[i];
        if ((wr_u128_tag_hint(way) & WR_KEY_STATE_MASK) != (fingerprint | WR_STATE_LIVE)) continue;
        *seen = wr_u128_load(way); // L3
        if (WR_LIKELY(wr_slot_is(*seen, fingerprint, WR_STATE_LIVE))) return way;
    }
    return NULL;
}

static inline struct wr_pair *wr_find_live(const struct wr_place *place, struct wr_pair *seen) {
    struct wr_pair *way = wr_find_in_line(place->line[0], place->fingerprint, seen);
    return way != NULL ? way : wr_find_in_line(place->line[1], place->fingerprint, seen);
}

// Fills the answer and the counters, and turns a refusal into a grant in a dry run.
int wr_answer(struct weir *w, const struct wr_ask *ask, const struct wr_now *now,
              const struct wr_verdict *v, bool untracked, struct weir_answer *answer);

// Runs the slot protocol for one ask.
int wr_decide(struct weir *w, const struct wr_ask *ask, struct weir_answer *answer);

// Drops the key's bucket.
void wr_reset(struct weir *w, const struct wr_place *place);

// The rest of the protocol: the key has no LIVE way. A result, or what to do:
#define WR_AGAIN 1000        // start again
#define WR_AGAIN_FENCED 1001 // start again, with the clock fenced behind the scan
int wr_decide_absent(struct weir *w, const struct wr_ask *ask, unsigned *evictions, bool fenced,
                     struct weir_answer *answer);

// A refusal that is short by less than the tokens of 2 us may be an artefact of a clock read before
// the slot: it is worth asking the clock again.
static inline bool wr_is_close(const struct weir *w, const struct wr_now *now,
                               const struct wr_verdict *v, int64_t level) {
    const uint64_t two_us = (uint64_t)((wr_u128)2000 * now->per_ns >> w->scale.shift);
    return v->result == WEIR_DENIED && (uint64_t)v->wanted - (uint64_t)level <= two_us;
}

// Counts a refusal that was found by peeking.
void wr_count_refusal(struct weir *w, struct weir_key key, int result);

static inline void wr_count(struct weir *w, enum wr_counter_id id, uint64_t n) {
    (void)wr_add_own(w->counts, id, n);
}

// A compare-and-swap was lost, the n-th in a row of this ask (0: the first): counts it, and pauses
// for 8 turns, doubled each time up to 64. The line is let go for as long as its next owner needs
// it. Two threads on one key, ns a grant of one thread, EPYC (choice/backoff of bench): 48 without,
// 52 from 1 turn on, 25 from 8, 20 from 64; more turns wait longer where the other thread has gone.
void wr_lost(struct weir *w, unsigned n) __attribute__((noinline, cold));

// Counts a refusal, and now and then whose it was.
static inline void wr_count_refused(struct weir *w, enum wr_counter_id id, struct weir_key key) {
    const uint64_t before = wr_add_own(w->counts, id, 1);
    if (WR_UNLIKELY(wr_top_samples(before))) wr_top_note(w, key, before);
}
