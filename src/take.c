// weir_take: the protocol's ordinary case in one straight line, for the hottest path there is.
//
// A key that has a bucket, a limit that has not just changed, weight 1, no dry run: scan, clock,
// judge, compare-and-swap, count (live.h). Whatever is not so goes the whole way (decide.c), and
// hashes the key again there: passing what is known on would cost the ordinary case its registers.
#include "call.h"
#include "hash.h"
#include "live.h"

// WEIR_GRANTED or WEIR_DENIED; WR_AGAIN where the case is not ordinary.
static inline __attribute__((always_inline)) int take_fast(struct weir *w, struct weir_key key,
                                                           uint64_t cost, struct wr_now *now,
                                                           struct wr_verdict *v) {
    // A caller's clock, a dry run, a cost that cannot fit whatever the burst.
    if (WR_UNLIKELY(cost > w->cost_max_plain)) return WR_AGAIN;
    const struct wr_place place = wr_place_of(&w->geometry, wr_hash(w, key));
    struct wr_pair seen;
    struct wr_pair *way = wr_find_live(&place, &seen);
    if (WR_UNLIKELY(way == NULL)) return WR_AGAIN;
    if (WR_UNLIKELY(!wr_now_try(w->versions, &w->source, w->scale.shift, 0, false, now)))
        return WR_AGAIN;
    return wr_take_live(w, way, seen, now, cost * w->scale.unit_tokens, cost, v);
}

static int take_answered(struct weir *w, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer) __attribute__((noinline));
static int take_answered(struct weir *w, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer) {
    struct wr_now now;
    struct wr_verdict v;
    if (WR_UNLIKELY(answer->size != sizeof *answer) ||
        WR_UNLIKELY(take_fast(w, key, cost, &now, &v) == WR_AGAIN))
        return wr_ask_plain(w, WEIR_TAKE, key, cost, answer);
    const struct wr_ask ask = {
        .key = key, .cost = cost, .units = cost * w->scale.unit_tokens, .kind = WEIR_TAKE};
    return wr_answer(w, &ask, &now, &v, false, answer);
}

int weir_take(struct weir *limiter, struct weir_key key, uint64_t cost,
              struct weir_answer *answer) {
    if (answer != NULL) return take_answered(limiter, key, cost, answer);
    struct wr_now now;
    struct wr_verdict v;
    const int result = take_fast(limiter, key, cost, &now, &v);
    if (WR_UNLIKELY(result == WR_AGAIN)) return wr_ask_plain(limiter, WEIR_TAKE, key, cost, NULL);
    wr_count_take(limiter, key, result, cost);
    return result;
}
