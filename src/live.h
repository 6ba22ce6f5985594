// The protocol's ordinary case: a take of a key that has a bucket, judged at a reading.
//
// Whatever is not ordinary - a relic, cost 0, a cost above the burst, a refusal too close to be sure
// of, a lost CAS - leaves no trace and returns WR_AGAIN: the caller goes the whole way (decide.c, where
// the argument is; L1 is defined in decide.c).
#pragma once

#include "ask.h"

static inline __attribute__((always_inline)) int wr_take_live(
    const struct weir *w, struct wr_pair *way, struct wr_pair seen, const struct wr_now *now,
    uint64_t units, uint64_t cost, struct wr_verdict *v) {
    const int64_t uncapped = (int64_t)(now->v - seen.word);
    if (WR_UNLIKELY(uncapped < -(int64_t)w->scale.horizon_units)) return WR_AGAIN;
    if (WR_UNLIKELY(units - 1 >= (uint64_t)now->burst)) return WR_AGAIN;
    const int64_t level = wr_min_i64(uncapped, now->ramp);
    const int64_t after = level - (int64_t)units;
    if (after < 0) {
        *v = (struct wr_verdict){WEIR_DENIED, level, 0, (int64_t)units};
        return WR_UNLIKELY((uint64_t)-after <= w->two_us_units) ? WR_AGAIN : WEIR_DENIED;
    }
    *v = (struct wr_verdict){WEIR_GRANTED, after, cost, 0};
    const struct wr_pair next = {seen.tag, now->v - (uint64_t)after};
    return WR_LIKELY(wr_u128_cas(way, seen, next)) ? WEIR_GRANTED : WR_AGAIN; // L1
}

// Counts an ordinary take of weight 1.
static inline void wr_count_take(struct weir *w, struct weir_key key, int result, uint64_t cost) {
    if (result == WEIR_DENIED) {
        wr_count_refused(w, WR_denied, key);
        return;
    }
    const uint32_t line = wr_thread_line();
    struct wr_count_line *counts = &w->counts[line];
    const bool own = line < WR_THREAD_OWN;
    wr_add(&counts->counters[WR_granted], own, 1);
    if (WR_UNLIKELY(cost != 1)) wr_add(&counts->counters[WR_tokens], own, cost - 1);
}
