// weir_take: the protocol's ordinary case in one straight line, for the hottest path there is.
//
// A key that has a bucket, a limit that has not just changed, weight 1, no dry run: scan, clock,
// judge, compare-and-swap, count (live.h). Whatever is not so goes the whole way (decide.c).
#include "call.h"
#include "hash.h"
#include "live.h"

// WEIR_GRANTED or WEIR_DENIED; WR_AGAIN where the case is not ordinary.
static inline __attribute__((always_inline)) int take_fast(struct weir *w,
                                                           const struct wr_place *place,
                                                           uint64_t units, uint64_t cost,
                                                           struct wr_now *now,
                                                           struct wr_verdict *v) {
    struct wr_pair seen;
    struct wr_pair *way = wr_find_live(place, &seen);
    if (WR_UNLIKELY(way == NULL)) return WR_AGAIN;
    if (WR_UNLIKELY(!wr_now_try(w->versions, &w->source, w->scale.shift, 0, false, now)))
        return WR_AGAIN;
    return wr_take_live(w, way, seen, now, units, cost, v);
}

static int take_slow(struct weir *w, const struct wr_place *place, struct weir_key key,
                     uint64_t units, uint64_t cost, struct weir_answer *answer)
    __attribute__((noinline));
static int take_slow(struct weir *w, const struct wr_place *place, struct weir_key key,
                     uint64_t units, uint64_t cost, struct weir_answer *answer) {
    if (wr_is_caller(w)) return WEIR_ECLOCK;
    const struct wr_ask ask = {
        .place = *place, .key = key, .cost = cost, .units = units, .kind = WEIR_TAKE};
    return wr_run(w, &ask, answer);
}

static int take_answered(struct weir *w, const struct wr_place *place, struct weir_key key,
                         uint64_t units, uint64_t cost, struct weir_answer *answer)
    __attribute__((noinline));
static int take_answered(struct weir *w, const struct wr_place *place, struct weir_key key,
                         uint64_t units, uint64_t cost, struct weir_answer *answer) {
    struct wr_now now;
    struct wr_verdict v;
    if (WR_UNLIKELY(answer->size != sizeof *answer) ||
        WR_UNLIKELY(take_fast(w, place, units, cost, &now, &v) == WR_AGAIN))
        return take_slow(w, place, key, units, cost, answer);
    const struct wr_ask ask = {.key = key, .cost = cost, .units = units, .kind = WEIR_TAKE};
    return wr_answer(w, &ask, &now, &v, false, answer);
}

int weir_take(struct weir *limiter, struct weir_key key, uint64_t cost,
              struct weir_answer *answer) {
    const struct wr_place place = wr_place_of(&limiter->geometry, wr_hash(limiter, key));
    const uint64_t units = wr_cost_units_plain(&limiter->scale, cost);
    if (WR_UNLIKELY(limiter->not_plain)) // a caller's clock, a dry run
        return take_slow(limiter, &place, key, units, cost, answer);
    if (answer != NULL) return take_answered(limiter, &place, key, units, cost, answer);
    struct wr_now now;
    struct wr_verdict v;
    const int result = take_fast(limiter, &place, units, cost, &now, &v);
    if (WR_UNLIKELY(result == WR_AGAIN))
        return take_slow(limiter, &place, key, units, cost, NULL);
    wr_count_take(limiter, key, result, cost);
    return result;
}
