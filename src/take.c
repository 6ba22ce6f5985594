// weir_take: the protocol's ordinary case in one straight line, for the hottest path there is.
//
// A key that has a bucket, a limit that has not just changed, weight 1, no dry run: scan, clock,
// judge, compare-and-swap, count (live.h). Whatever is not so goes the whole way (decide.c), and
// hashes the key again there: passing what is known on would cost the ordinary case its registers.
// A synced limiter (cost_max_plain is 0) has a short way of its own. R3 is defined in synced.c.
#include "call.h"
#include "hash.h"
#include "live.h"
#include "side.h"

// WEIR_GRANTED or WEIR_DENIED; WR_AGAIN where the case is not ordinary. `s` is NULL under no sync,
// as the compiler must see. Not for a cost of 0, or above cost_max_plain: a caller's clock, a dry
// run, a synced limiter without its `s`, a cost that cannot fit whatever the burst.
static inline __attribute__((always_inline)) int take_fast(struct weir *w, struct wr_synced *s,
                                                           struct weir_key key, uint64_t cost,
                                                           struct wr_now *now,
                                                           struct wr_verdict *v) {
    const struct wr_place place = wr_place_of(&w->geometry, wr_hash(w, key));
    struct wr_pair seen;
    struct wr_pair *way = wr_find_fast(&place, s == NULL, &seen);
    if (WR_UNLIKELY(way == NULL)) return WR_AGAIN;
    if (WR_UNLIKELY(!wr_now_try(w->versions, &w->source, &w->scale.shift, 0, false, now)))
        return WR_AGAIN;
    return wr_take_live_in(w, s, way, seen, now, cost * w->scale.unit_tokens, cost, v);
}

// The same of a synced limiter, for any cost.
static inline __attribute__((always_inline)) int take_fast_synced(
    struct weir *w, struct wr_synced *s, struct weir_key key, uint64_t cost, struct wr_now *now,
    struct wr_verdict *v) {
    if (WR_UNLIKELY(w->not_plain || cost - 1 >= w->scale.cost_max)) return WR_AGAIN;
    return take_fast(w, s, key, cost, now, v);
}

static int answer_take(struct weir *w, struct weir_key key, uint64_t cost, const struct wr_now *now,
                       const struct wr_verdict *v, struct weir_answer *answer) {
    const struct wr_ask ask = {
        .key = key, .cost = cost, .units = cost * w->scale.unit_tokens, .kind = WEIR_TAKE};
    return wr_answer(w, &ask, now, v, false, answer);
}

// What the short way left: a synced limiter's own short way, or the whole way.
static int take_rest(struct weir *w, struct weir_key key, uint64_t cost)
    __attribute__((noinline));
static int take_rest(struct weir *w, struct weir_key key, uint64_t cost) {
    struct wr_synced *s = wr_synced_of(w);
    if (s == NULL) return wr_ask_plain(w, WEIR_TAKE, key, cost, NULL);
    struct wr_now now;
    struct wr_verdict v;
    const int result = take_fast_synced(w, s, key, cost, &now, &v);
    if (WR_UNLIKELY(result == WR_AGAIN)) return wr_ask_plain(w, WEIR_TAKE, key, cost, NULL);
    wr_count_take(w, key, result, cost);
    return result;
}

// The same with an answer.
static int take_rest_answered(struct weir *w, struct weir_key key, uint64_t cost,
                              struct weir_answer *answer) {
    struct wr_synced *s = wr_synced_of(w);
    struct wr_now now;
    struct wr_verdict v;
    if (s == NULL || answer->size != sizeof *answer ||
        take_fast_synced(w, s, key, cost, &now, &v) == WR_AGAIN)
        return wr_ask_plain(w, WEIR_TAKE, key, cost, answer);
    return answer_take(w, key, cost, &now, &v, answer);
}

static int take_answered(struct weir *w, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer) __attribute__((noinline));
static int take_answered(struct weir *w, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer) {
    struct wr_now now;
    struct wr_verdict v;
    const uint64_t most = atomic_load_explicit(&w->cost_max_plain, memory_order_relaxed); // R3
    if (WR_UNLIKELY(answer->size != sizeof *answer) || WR_UNLIKELY(cost - 1 >= most) ||
        WR_UNLIKELY(take_fast(w, NULL, key, cost, &now, &v) == WR_AGAIN))
        return take_rest_answered(w, key, cost, answer);
    return answer_take(w, key, cost, &now, &v, answer);
}

// Not in line: what weir_take itself only passes on would pay for its registers.
static int take_plain(struct weir *w, struct weir_key key, uint64_t cost)
    __attribute__((noinline));
static int take_plain(struct weir *w, struct weir_key key, uint64_t cost) {
    // Wanted again on rare ways only: two stores instead of two registers, and their six
    // instructions.
    const struct weir_key volatile kept = key;
    struct wr_now now;
    struct wr_verdict v;
    const int result = take_fast(w, NULL, key, cost, &now, &v);
    if (WR_UNLIKELY(result == WR_AGAIN)) return wr_ask_plain(w, WEIR_TAKE, kept, cost, NULL);
    if (result == WEIR_GRANTED) {
        wr_count_granted(w, cost);
        return WEIR_GRANTED;
    }
    const uint64_t before = wr_add_own(w->counts, WR_denied, 1);
    if (WR_UNLIKELY(wr_top_samples(before))) wr_top_note(w, kept, before);
    return WEIR_DENIED;
}

int weir_take(struct weir *limiter, struct weir_key key, uint64_t cost,
              struct weir_answer *answer) {
    if (answer != NULL) return take_answered(limiter, key, cost, answer);
    const uint64_t most =
        atomic_load_explicit(&limiter->cost_max_plain, memory_order_relaxed); // R3
    if (WR_LIKELY(cost - 1 < most)) return take_plain(limiter, key, cost);
    return take_rest(limiter, key, cost);
}
