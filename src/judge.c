// What each kind of ask makes of a bucket's level. Pure arithmetic in units; see ask.h.
#include "ask.h"

static struct wr_verdict refuse(int result, int64_t level, int64_t wanted) {
    return (struct wr_verdict){result, level, 0, wanted};
}

static struct wr_verdict judge_some(const struct weir *w, const struct wr_ask *ask,
                                    const struct wr_now *now, int64_t level) {
    if (ask->cost == 0) return wr_judge_take(now, level, 0, 0);
    if (now->burst == 0) return refuse(WEIR_DENIED, level, INT64_MAX);
    uint64_t one = 0; // stays so where one token of this weight is no whole number of units
    const int fits = wr_cost_units(&w->scale, 1, ask->weight, &one);
    if (one > (uint64_t)now->burst) return refuse(WEIR_NEVER, level, 0);
    const uint64_t whole =
        level < 0 ? 0 : wr_units_to_tokens(&w->scale, (uint64_t)level, ask->weight);
    const uint64_t tokens = wr_min_u64(whole, ask->cost);
    if (tokens == 0) return refuse(fits == WEIR_GRANTED ? WEIR_DENIED : fits, level, (int64_t)one);
    uint64_t units = 0;
    const int result = wr_cost_units(&w->scale, tokens, ask->weight, &units);
    if (result != WEIR_GRANTED) return refuse(result, level, 0); // WEIR_EWEIGHT
    return (struct wr_verdict){WEIR_GRANTED, level - (int64_t)units, tokens, 0};
}

// Debits whatever the level, down to the debt bound; what lies below it already stays.
static struct wr_verdict judge_charge(const struct weir *w, const struct wr_ask *ask,
                                      int64_t level) {
    const int64_t floor = -(int64_t)w->scale.debt_units;
    const int64_t want = level - (int64_t)wr_min_u64(ask->units, WR_UNITS_MAX);
    const int64_t after = wr_min_i64(level, wr_max_i64(want, floor));
    const bool whole = after == want && ask->units <= WR_UNITS_MAX;
    const uint64_t tokens =
        whole ? ask->cost
              : wr_units_to_tokens(&w->scale, (uint64_t)(level - after), ask->weight);
    return (struct wr_verdict){WEIR_GRANTED, after, tokens, 0};
}

static struct wr_verdict judge_refund(const struct weir *w, const struct wr_ask *ask,
                                      const struct wr_now *now, int64_t level) {
    const int64_t want = level + (int64_t)wr_min_u64(ask->units, WR_UNITS_MAX);
    const int64_t after = wr_max_i64(level, wr_min_i64(want, now->ramp));
    const uint64_t tokens =
        after == want ? ask->cost
                      : wr_units_to_tokens(&w->scale, (uint64_t)(after - level), ask->weight);
    return (struct wr_verdict){WEIR_GRANTED, after, tokens, 0};
}

// What the rate makes in max_wait from now.
static uint64_t units_within(const struct weir *w, const struct wr_ask *ask,
                             const struct wr_now *now) {
    const uint64_t within = wr_min_u64(ask->max_wait_ns, (uint64_t)wr_time_max(w->scale.shift));
    if (WR_UNLIKELY(now->early))
        return wr_early_units(w->versions, &w->source, w->scale.shift, ask->at, within);
    return wr_make(within, now->per_ns, now->frac, w->scale.shift).units;
}

static struct wr_verdict judge_reserve(const struct weir *w, const struct wr_ask *ask,
                                       const struct wr_now *now, int64_t level) {
    if (now->burst == 0) return refuse(WEIR_DENIED, level, INT64_MAX);
    if (ask->units > (uint64_t)now->burst) return refuse(WEIR_NEVER, level, 0);
    const int64_t after = level - (int64_t)ask->units;
    // At rate 0 what is not there never comes: it cannot be due.
    if (now->per_ns == 0 && after < 0) return refuse(WEIR_DENIED, level, (int64_t)ask->units);
    uint64_t most = w->scale.ahead_units;
    if (ask->max_wait_ns != 0) most = wr_min_u64(most, units_within(w, ask, now));
    const int64_t ahead = (int64_t)most;
    if (after < -ahead) return refuse(WEIR_DENIED, level, (int64_t)ask->units - ahead);
    return (struct wr_verdict){WEIR_GRANTED, after, ask->cost, (int64_t)ask->units};
}

struct wr_verdict wr_judge_other(const struct weir *w, const struct wr_ask *ask,
                                 const struct wr_now *now, int64_t level) {
    switch (ask->kind) {
    case WEIR_TAKE_SOME: return judge_some(w, ask, now, level);
    case WEIR_CHARGE: return judge_charge(w, ask, level);
    case WEIR_REFUND: return judge_refund(w, ask, now, level);
    case WEIR_RESERVE:
        // A dry run makes nobody wait: what would be due later is a would-be denial.
        if (w->dry_run) return wr_judge_take(now, level, ask->units, ask->cost);
        return judge_reserve(w, ask, now, level);
    default: return wr_judge_take(now, level, ask->units, ask->cost); // WEIR_PEEK
    }
}
