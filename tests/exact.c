// An exact model of a limiter; see exact.h.
#include "exact.h"

static exact_wide min_wide(exact_wide a, exact_wide b) {
    return a < b ? a : b;
}

static exact_wide max_wide(exact_wide a, exact_wide b) {
    return a > b ? a : b;
}

static exact_wide floor_div(exact_wide a, exact_wide b) {
    return a / b - (a % b < 0);
}

static exact_wide ceil_div(exact_wide a, exact_wide b) {
    return -floor_div(-a, b);
}

static struct exact_version version_of(const struct exact *e, const struct weir_limit *limit) {
    struct exact_version v = {0};
    v.unlimited = limit->tokens == WEIR_UNLIMITED_TOKENS;
    if (v.unlimited) {
        v.burst = (exact_wide)1 << 124; // more than any bucket holds
        return v;
    }
    v.per_ns = (exact_wide)limit->tokens * (e->parts / (exact_wide)limit->period_ns);
    v.burst = (exact_wide)limit->burst * e->parts;
    return v;
}

void exact_init(struct exact *e, uint64_t parts, const struct weir_limit *limit,
                const struct weir_limit *max_rate, uint64_t max_debt_tokens,
                uint64_t max_ahead_tokens) {
    *e = (struct exact){.parts = (exact_wide)parts};
    e->early = version_of(e, max_rate).per_ns;
    e->max_debt = (exact_wide)max_debt_tokens * e->parts;
    e->max_ahead = (exact_wide)max_ahead_tokens * e->parts;
    e->now = version_of(e, limit);
    e->now.ramp = e->now.burst;
    e->before = (struct exact_version){.burst = e->now.burst, .ramp = e->now.burst};
}

static exact_wide made_by(const struct exact_version *v, int64_t now_ns) {
    const exact_wide elapsed = (exact_wide)now_ns - v->start_ns;
    return elapsed > 0 ? v->per_ns * elapsed : 0;
}

// Parts made up to a moment. Before the version before last there is nothing but its start.
static exact_wide made_at(const struct exact *e, int64_t now_ns) {
    const struct exact_version *v = now_ns >= e->now.start_ns ? &e->now : &e->before;
    return v->made + made_by(v, now_ns);
}

// The burst in effect: after a change it grows no faster than the rate.
static exact_wide ramp_at(const struct exact *e, int64_t now_ns) {
    const struct exact_version *v = now_ns >= e->now.start_ns ? &e->now : &e->before;
    const exact_wide ramp = min_wide(v->burst, v->ramp + made_by(v, now_ns));
    return min_wide(ramp, e->now.burst);
}

void exact_set_limit(struct exact *e, const struct weir_limit *limit, int64_t now_ns) {
    struct exact_version v = version_of(e, limit);
    v.start_ns = now_ns > e->now.start_ns ? now_ns : e->now.start_ns;
    v.made = made_at(e, v.start_ns);
    v.ramp = min_wide(v.burst, ramp_at(e, v.start_ns));
    e->before = e->now;
    e->now = v;
}

exact_wide exact_level(const struct exact *e, unsigned key, int64_t now_ns) {
    const struct exact_bucket *b = &e->buckets[key];
    const exact_wide ramp = ramp_at(e, now_ns);
    return b->touched ? min_wide(ramp, b->level + made_at(e, now_ns) - b->made) : ramp;
}

static struct weir_weight whole_weight(struct weir_weight weight) {
    return weight.num == 0 ? (struct weir_weight){1, 1} : weight;
}

exact_wide exact_tokens(const struct exact *e, exact_wide level, struct weir_weight weight) {
    const struct weir_weight w = whole_weight(weight);
    return floor_div(level * w.num, e->parts * w.den);
}

static exact_wide tokens_up(const struct exact *e, exact_wide level, struct weir_weight weight) {
    const struct weir_weight w = whole_weight(weight);
    return ceil_div(level * w.num, e->parts * w.den);
}

static exact_wide cost_parts(const struct exact *e, uint64_t tokens, struct weir_weight weight) {
    const struct weir_weight w = whole_weight(weight);
    if (tokens > UINT64_C(1) << 44) return (exact_wide)1 << 125; // more than any burst
    return (exact_wide)tokens * (e->parts * w.den / w.num);
}

// One judgement: what is asked, what the level is, and the words of the first thing that is wrong.
struct judgement {
    struct exact *e;
    unsigned key;
    const struct weir_ask *ask;
    const struct weir_answer *answer;
    int result;
    bool back;        // a reading older than the newest: may be late as well
    bool loose;       // so may its waits
    exact_wide level; // before
    exact_wide cost;
    exact_wide after; // as weir's outcome leaves it
    const char *wrong;
};

static void fail(struct judgement *j, const char *wrong) {
    if (j->wrong == NULL) j->wrong = wrong;
}

static void expect(struct judgement *j, int result, const char *wrong) {
    if (j->result != result) fail(j, wrong);
}

static exact_wide late(const struct judgement *j) {
    return j->back ? j->e->early : 0;
}

// Counts of a weighted key's tokens may be smaller than a unit of weir's.
static exact_wide uncounted(const struct judgement *j) {
    return j->ask->weight.num != j->ask->weight.den ? j->e->early : late(j);
}

// The bucket has `have`; the ask needs `need`. True when weir granted.
static bool judge_enough(struct judgement *j, exact_wide have, exact_wide need) {
    const bool granted = j->result == WEIR_GRANTED;
    if (!granted && j->result != WEIR_DENIED) fail(j, "neither granted nor denied");
    if (granted && have + j->e->early < need) fail(j, "granted more than 1 ns of max_rate early");
    if (!granted && have >= need + late(j)) fail(j, "denied late");
    return granted;
}

// The shortest time from `now_ns` in which `parts` are made: at the old rate up to the start of the
// limit in force, at its own from then on. NEVER at rate 0.
#define NEVER ((exact_wide)1 << 100)

static exact_wide wait_ns(const struct exact *e, int64_t now_ns, exact_wide parts) {
    if (parts <= 0) return 0;
    if (now_ns < e->now.start_ns) {
        const int64_t from_ns = now_ns > e->before.start_ns ? now_ns : e->before.start_ns;
        const exact_wide still = (exact_wide)from_ns - now_ns;
        const exact_wide until_start = e->now.made - made_at(e, now_ns);
        if (parts <= until_start) return still + ceil_div(parts, e->before.per_ns);
        return (exact_wide)e->now.start_ns - now_ns +
               wait_ns(e, e->now.start_ns, parts - until_start);
    }
    return e->now.per_ns == 0 ? NEVER : ceil_div(parts, e->now.per_ns);
}

// The shortest time from `now_ns` until the effective burst is `need`. A larger burst is not there
// before its limit starts, however many parts are made.
static exact_wide ramp_wait_ns(const struct exact *e, int64_t now_ns, exact_wide need) {
    const exact_wide missing = need - ramp_at(e, now_ns);
    if (missing <= 0 || now_ns >= e->now.start_ns) return wait_ns(e, now_ns, missing);
    const exact_wide before_start = ramp_at(e, e->now.start_ns - 1) - ramp_at(e, now_ns);
    if (missing <= before_start) return wait_ns(e, now_ns, missing);
    const exact_wide until_start = (exact_wide)e->now.start_ns - now_ns;
    const exact_wide rest = wait_ns(e, e->now.start_ns, need - e->now.ramp);
    return rest >= NEVER ? NEVER : until_start + rest;
}

static exact_wide level_wait_ns(const struct exact *e, int64_t now_ns, exact_wide level,
                                exact_wide need) {
    return max_wide(wait_ns(e, now_ns, need - level), ramp_wait_ns(e, now_ns, need));
}

// The wait until a level of `need`, from `level` now: exact, or early by what 1 ns of max_rate is.
static void judge_wait(struct judgement *j, uint64_t said_ns, exact_wide level, exact_wide need,
                       const char *wrong) {
    const int64_t now_ns = j->ask->now_ns;
    const exact_wide early = j->e->early;
    const exact_wide most = level_wait_ns(j->e, now_ns, level, need + (j->loose ? early : 0));
    const exact_wide least = level_wait_ns(j->e, now_ns, level, need - early);
    if (least >= NEVER) {
        if (said_ns != WEIR_FOREVER) fail(j, "a wait that ends, at rate 0");
        return;
    }
    if (most > (exact_wide)1 << 61) return; // beyond all readings, or never
    if ((exact_wide)said_ns < least || (exact_wide)said_ns > most) fail(j, wrong);
}

static void judge_refused_by_burst(struct judgement *j) {
    expect(j, WEIR_DENIED, "not denied at burst 0");
    if (j->answer->retry_after_ns != WEIR_FOREVER) fail(j, "a wait that ends, at burst 0");
}

static void judge_never(struct judgement *j) {
    expect(j, WEIR_NEVER, "a cost above the burst is not never");
    if (j->answer->retry_after_ns != WEIR_FOREVER) fail(j, "a wait that ends, for never");
    if (j->answer->granted_tokens != 0) fail(j, "tokens granted with never");
}

static void judge_granted_tokens(struct judgement *j, uint64_t tokens) {
    if (j->answer->granted_tokens != tokens) fail(j, "wrong granted_tokens");
}

static void judge_take(struct judgement *j) {
    if (j->e->now.burst == 0) {
        judge_refused_by_burst(j);
    } else if (j->cost > j->e->now.burst) {
        judge_never(j);
    } else if (judge_enough(j, j->level, j->cost)) {
        judge_granted_tokens(j, j->ask->cost);
        if (j->answer->retry_after_ns != 0) fail(j, "a wait with a grant");
        j->after = j->level - j->cost;
    } else {
        judge_granted_tokens(j, 0);
        judge_wait(j, j->answer->retry_after_ns, j->level, j->cost, "wrong retry_after_ns");
    }
}

static void judge_some(struct judgement *j) {
    const exact_wide one = cost_parts(j->e, 1, j->ask->weight);
    if (j->ask->cost == 0) {
        judge_take(j);
    } else if (j->e->now.burst == 0) {
        judge_refused_by_burst(j);
    } else if (one > j->e->now.burst) {
        judge_never(j);
    } else if (judge_enough(j, j->level, one)) {
        const exact_wide got = (exact_wide)j->answer->granted_tokens;
        const exact_wide most = exact_tokens(j->e, j->level + j->e->early, j->ask->weight);
        const exact_wide least = exact_tokens(j->e, j->level - uncounted(j), j->ask->weight);
        if (got > min_wide(most, (exact_wide)j->ask->cost)) fail(j, "took more than there is");
        if (got < min_wide(least, (exact_wide)j->ask->cost)) fail(j, "took less than there is");
        j->after = j->level - cost_parts(j->e, j->answer->granted_tokens, j->ask->weight);
    } else {
        judge_wait(j, j->answer->retry_after_ns, j->level, one, "wrong retry_after_ns");
    }
}

// `moved` of `cost` went through: all of it, or the whole tokens of it.
static void judge_moved(struct judgement *j, exact_wide moved) {
    expect(j, WEIR_GRANTED, "an ask that cannot fail has");
    if (moved == j->cost) {
        if (j->answer->granted_tokens != j->ask->cost) fail(j, "not all of the cost moved");
        return;
    }
    const exact_wide said = (exact_wide)j->answer->granted_tokens;
    const exact_wide early = j->e->early;
    if (said < exact_tokens(j->e, max_wide(0, moved - early), j->ask->weight) ||
        said > exact_tokens(j->e, moved + early, j->ask->weight))
        // Within what 1 ns may shift, all may have moved after all.
        if (moved + early < j->cost || j->answer->granted_tokens != j->ask->cost)
            fail(j, "wrong number of tokens moved");
}

static void judge_charge(struct judgement *j) {
    j->after = min_wide(j->level, max_wide(j->level - j->cost, -j->e->max_debt));
    judge_moved(j, j->level - j->after);
}

static void judge_refund(struct judgement *j) {
    const exact_wide ramp = ramp_at(j->e, j->ask->now_ns);
    j->after = max_wide(j->level, min_wide(j->level + j->cost, ramp));
    judge_moved(j, j->after - j->level);
}

// Parts made in `ns` from a moment.
static exact_wide made_within(const struct exact *e, int64_t now_ns, uint64_t ns) {
    const uint64_t most_ns = ns < UINT64_C(1) << 60 ? ns : UINT64_C(1) << 60;
    return made_at(e, now_ns + (int64_t)most_ns) - made_at(e, now_ns);
}

static void judge_reserve(struct judgement *j) {
    exact_wide ahead = j->e->max_ahead;
    const exact_wide after = j->level - j->cost;
    const bool bounded = j->ask->max_wait_ns != 0;
    if (bounded) ahead = min_wide(ahead, made_within(j->e, j->ask->now_ns, j->ask->max_wait_ns));
    if (j->e->now.per_ns == 0) ahead = 0; // it would never be due
    if (j->e->now.burst == 0) {
        judge_refused_by_burst(j);
    } else if (j->cost > j->e->now.burst) {
        judge_never(j);
    } else if (judge_enough(j, j->level + ahead, j->cost)) {
        judge_granted_tokens(j, j->ask->cost);
        judge_wait(j, j->answer->retry_after_ns, after, 0, "wrong due time");
        j->after = after;
    } else if (!bounded || j->ask->now_ns >= j->e->now.start_ns) {
        j->loose = j->loose || bounded; // to the nanosecond: see test_reserve.c
        judge_wait(j, j->answer->retry_after_ns, j->level, j->cost - ahead, "wrong retry_after_ns");
    }
}

// What the answer says of the level that is left.
static void judge_rest(struct judgement *j) {
    const struct weir_answer *a = j->answer;
    const exact_wide low = j->after - uncounted(j), high = j->after + j->e->early;
    const struct weir_weight weight = j->ask->weight;
    if ((exact_wide)a->remaining < max_wide(0, exact_tokens(j->e, low, weight)) ||
        (exact_wide)a->remaining > max_wide(0, exact_tokens(j->e, high, weight)))
        fail(j, "wrong remaining");
    if ((exact_wide)a->debt < max_wide(0, tokens_up(j->e, -high, weight)) ||
        (exact_wide)a->debt > max_wide(0, tokens_up(j->e, -low, weight)))
        fail(j, "wrong debt");
    judge_wait(j, a->full_after_ns, j->after, j->e->now.burst, "wrong full_after_ns");
}

static void judge_kind(struct judgement *j) {
    j->after = j->level;
    switch (j->ask->kind) {
    case WEIR_TAKE:
    case WEIR_PEEK: judge_take(j); break;
    case WEIR_TAKE_SOME: judge_some(j); break;
    case WEIR_CHARGE: judge_charge(j); break;
    case WEIR_REFUND: judge_refund(j); break;
    case WEIR_RESERVE: judge_reserve(j); break;
    case WEIR_RESET:
        expect(j, WEIR_GRANTED, "a reset failed");
        break;
    }
}

static void judge_unlimited(struct judgement *j) {
    expect(j, WEIR_GRANTED, "not granted without a limit");
    if (j->answer->remaining != UINT64_MAX) fail(j, "something remains of no limit");
    if (!j->answer->untracked) fail(j, "tracked without a limit");
}

const char *exact_judge(struct exact *e, unsigned key, const struct weir_ask *ask, int result,
                        const struct weir_answer *answer) {
    struct judgement j = {.e = e, .key = key, .ask = ask, .answer = answer, .result = result};
    j.back = j.loose = ask->now_ns < e->newest_ns;
    if (!j.back) e->newest_ns = ask->now_ns;
    if (ask->kind == WEIR_RESET) e->buckets[key] = (struct exact_bucket){0}; // as if never asked
    if (e->now.unlimited) {
        judge_unlimited(&j);
        return j.wrong;
    }
    j.level = exact_level(e, key, ask->now_ns);
    j.cost = cost_parts(e, ask->cost, ask->weight);
    judge_kind(&j);
    judge_rest(&j);
    if (j.after != j.level && ask->kind != WEIR_PEEK)
        e->buckets[key] = (struct exact_bucket){true, j.after, made_at(e, ask->now_ns)};
    return j.wrong;
}
