// What this node knows of Redis' bucket: a lower bound of its TAT, in the limiter's own bucket.
//
// A refusal by the local bucket must never be false, so the bucket is kept at least as full as
// Redis'. An answer says: at some moment between `earliest` (when the call was first sent) and
// `latest`, Redis' bucket was to be full in `lag`. Later asks of others only make it fuller of
// debt. So at local time t it is full in at least
//     earliest + lag - t, less lag/1024 for clocks that run apart (a clock being slewed: 1/2000),
// and where the local bucket is fuller than that, it is debited. It is full in at most
//     latest + lag - t, and lag/1024,
// unless others were granted since; where the local bucket is further from full than that, Redis
// has given back (a new limit, FLUSHALL, a step of its clock, an outage that was bridged locally),
// and so is it.
//
// The debit is of tokens, not to a level, so time passing between reading the clock and the debit
// would make it too large. A slack is left out for that. Where it took longer still, as when the
// thread was descheduled, the bucket is filled again and the debit made anew, with more slack;
// past SLACK_MAX_US nothing is known for now, and the next ask is Redis' to decide.
//
// A step of Redis' clock, or a flush, is learnt of only by the next answer: until then a cost may
// be refused for as long as the rate takes to make it.
#include "strict_inside.h"

#define SLACK_US 50
#define SLACK_MAX_US 25600
#define SLACK_GROWTH 8
#define ROUNDING_US 2
#define DRIFT_PART 1024
#define FINE (UINT32_C(1) << 20) // parts of a token
#define FINE_MAX_TOKENS (UINT64_C(1) << 40)

// How long until the local bucket is full; rounded up.
static bool local_lag_us(const struct wr_strict *strict, struct weir_key key, int64_t *lag_us) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    (void)wr_strict_local(strict, WEIR_PEEK, key, 0, (struct weir_weight){0, 0}, &answer);
    if (answer.untracked || answer.full_after_ns == WEIR_FOREVER) return false;
    *lag_us = (int64_t)(answer.full_after_ns / 1000) + (answer.full_after_ns % 1000 != 0);
    return true;
}

// What the rate makes in `us`, rounded down: debited in parts of a token where the limiter's units
// allow it, else in whole ones.
static void debit(const struct wr_strict *strict, const struct weir_limit *limit,
                  struct weir_key key, int64_t us) {
    const wr_u128 made = (wr_u128)(uint64_t)us * 1000 * limit->tokens;
    const wr_u128 tokens = made / limit->period_ns;
    const uint64_t rest = (uint64_t)(made % limit->period_ns);
    const uint64_t whole = tokens < UINT64_MAX ? (uint64_t)tokens : UINT64_MAX;
    if (whole < FINE_MAX_TOKENS) {
        const uint64_t parts =
            whole * FINE + (uint64_t)((wr_u128)rest * FINE / limit->period_ns);
        const int result =
            wr_strict_local(strict, WEIR_CHARGE, key, parts, (struct weir_weight){FINE, 1}, NULL);
        if (result != WEIR_EWEIGHT) return;
    }
    if (whole != 0)
        (void)wr_strict_local(strict, WEIR_CHARGE, key, whole, (struct weir_weight){0, 0}, NULL);
}

static void give_back(const struct wr_strict *strict, struct weir_key key) {
    (void)wr_strict_local(strict, WEIR_RESET, key, 0, (struct weir_weight){0, 0}, NULL);
}

// False: it took longer than the slack, and the bucket is full again.
static bool learn(const struct wr_strict *strict, const struct weir_limit *limit,
                  struct weir_key key, int64_t lag_us, int64_t earliest_us, int64_t latest_us,
                  int64_t slack_us) {
    const int64_t drift_us = lag_us / DRIFT_PART + ROUNDING_US;
    int64_t local_us;
    const int64_t before_us = wr_strict_now_us(strict);
    if (!local_lag_us(strict, key, &local_us)) return true;
    if (local_us > latest_us + lag_us + drift_us - before_us) {
        if (local_us == 0) return true;
        give_back(strict, key);
        if (!local_lag_us(strict, key, &local_us)) return true;
    }
    const int64_t now_us = wr_strict_now_us(strict);
    const int64_t least_us = earliest_us + lag_us - drift_us - now_us;
    if (least_us - slack_us <= local_us) return true;
    debit(strict, limit, key, least_us - slack_us - local_us);
    if (wr_strict_now_us(strict) - now_us <= slack_us) return true;
    give_back(strict, key);
    return false;
}

void wr_strict_learn(struct wr_strict *strict, const struct weir_limit *limit, struct weir_key key,
                     int64_t lag_us, int64_t earliest_us, int64_t latest_us) {
    int64_t slack_us = SLACK_US;
    while (!learn(strict, limit, key, lag_us, earliest_us, latest_us, slack_us) &&
           slack_us < SLACK_MAX_US)
        slack_us *= SLACK_GROWTH;
}
