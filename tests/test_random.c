// Random sequences of asks, judged by the exact model: costs, weights, changes of limit and burst,
// readings that step back, several keys, every kind of weir_do.
//
// Each seed makes a limiter of its own and a few hundred asks. WEIR_SEED=n runs that one alone, and
// says what it does.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exact.h"
#include "support.h"

#define SEEDS 2500
#define STEPS 240
#define KEYS 6

// Seeds that once failed, and what they had found.
static const uint64_t failed_once[] = {
    23,  // take_some with a weight that does not divide: tokens for nothing
    45,  // the same
    111, // take_some of less than a token of such a weight: a wait of 0
    37,  // a reservation at a reading before the start of rate 0: a wait that ends
};

// Periods with a common multiple that leaves room for weights.
struct family {
    uint64_t periods_ns[3];
    uint64_t parts;
    uint32_t most_num; // weights' nums are divisors of 144 up to this
};

static const struct family families[] = {
    {{WEIR_SECOND, WEIR_SECOND, WEIR_SECOND}, 144 * WEIR_SECOND, 16},
    {{WEIR_SECOND, 3 * WEIR_SECOND, 10 * WEIR_SECOND}, 144 * 30 * WEIR_SECOND, 16},
    {{7 * WEIR_SECOND, 13 * WEIR_SECOND, WEIR_SECOND}, 144 * 91 * WEIR_SECOND, 16},
    {{WEIR_MILLISECOND, WEIR_SECOND, WEIR_MINUTE}, 144 * WEIR_MINUTE, 16},
    {{WEIR_DAY, WEIR_HOUR, WEIR_DAY}, 144 * WEIR_DAY, 16},
    {{365 * WEIR_DAY, 365 * WEIR_DAY, 365 * WEIR_DAY}, 365 * WEIR_DAY, 1},
    {{1, 3, 7}, 144 * 21, 16},
};

struct scene {
    struct random random;
    const struct family *family;
    struct weir *w;
    struct exact exact;
    struct weir_limit max_rate;
    struct weir_limit limit; // in force
    uint64_t burst_most;
    int64_t base_ns; // the first reading
    int64_t now_ns;  // since then
    int64_t newest_ns;
    bool talk;
};

static uint64_t below(struct scene *s, uint64_t n) {
    return random_below(&s->random, n);
}

static bool one_in(struct scene *s, uint64_t n) {
    return below(s, n) == 0;
}

// 0 to most, small numbers as likely as large ones.
static uint64_t any_size(struct scene *s, uint64_t most) {
    unsigned bits = 0;
    while (bits < 64 && most >> bits != 0) bits++;
    const uint64_t kept = below(s, bits + 1);
    return kept == 0 ? 0 : wr_min_u64(random_next(&s->random) >> (64 - kept), most);
}

static struct weir_limit choose_rate(struct scene *s) {
    struct weir_limit limit = {0, s->family->periods_ns[below(s, 3)], 0};
    limit.tokens = 1 + any_size(s, wr_min_u64(16 * limit.period_ns, UINT64_C(1) << 50) - 2);
    return limit;
}

static bool faster(struct weir_limit a, struct weir_limit b) {
    return (wr_u128)a.tokens * b.period_ns > (wr_u128)b.tokens * a.period_ns;
}

static struct weir_limit choose_limit(struct scene *s) {
    if (one_in(s, 20)) return weir_unlimited();
    struct weir_limit limit = choose_rate(s);
    if (one_in(s, 3)) limit = s->max_rate;
    if (faster(limit, s->max_rate)) {
        limit.tokens = (uint64_t)((wr_u128)s->max_rate.tokens * limit.period_ns /
                                  s->max_rate.period_ns);
        limit.tokens -= any_size(s, limit.tokens);
    }
    if (one_in(s, 20)) limit.tokens = 0;
    limit.burst = one_in(s, 15) ? 0 : 1 + any_size(s, s->burst_most - 1);
    return limit;
}

static void make(struct scene *s) {
    struct weir_options options = options_at(1, 1, 1);
    s->family = &families[below(s, sizeof families / sizeof families[0])];
    s->max_rate = choose_rate(s);
    // Units a token, at most; the bounds below leave them room.
    const uint64_t units = 4 * s->max_rate.period_ns / s->max_rate.tokens + 4;
    s->burst_most = wr_min_u64(UINT64_C(1) << 40, (UINT64_C(1) << 59) / units);
    if (s->burst_most == 0) s->burst_most = 1;
    const bool small = one_in(s, 2);
    if (small) s->burst_most = wr_min_u64(s->burst_most, 20);
    options.limit = s->limit = choose_limit(s);
    options.max_rate_tokens = s->max_rate.tokens;
    options.max_rate_period_ns = s->max_rate.period_ns;
    options.max_debt_tokens = 1 + any_size(s, s->burst_most - 1);
    options.max_ahead_tokens = 1 + any_size(s, s->burst_most - 1);
    options.capacity_keys = 4096;
    s->w = create(&options);
    exact_init(&s->exact, s->family->parts, &s->limit, &s->max_rate, options.max_debt_tokens,
               options.max_ahead_tokens);
    s->base_ns = (int64_t)random_next(&s->random) / 4;
    (void)ask_at(s->w, WEIR_PEEK, "epoch", 0, s->base_ns);
}

// How long the limit in force takes for a token, at least 1 ns.
static uint64_t token_ns(const struct scene *s) {
    if (s->limit.tokens == 0 || s->limit.tokens == WEIR_UNLIMITED_TOKENS) return WEIR_SECOND;
    return s->limit.period_ns / s->limit.tokens + 1;
}

#define LAST_NS (INT64_C(1) << 58)

static void step_clock(struct scene *s) {
    const uint64_t token = token_ns(s);
    uint64_t step = 0;
    switch (below(s, 12)) {
    case 0:
    case 1: break;
    case 2: step = 1; break;
    case 3: step = any_size(s, WEIR_HOUR); break;
    case 4: step = any_size(s, UINT64_C(1) << 55); break;
    case 5: // back, but never more than an hour behind the newest
        s->now_ns -= (int64_t)any_size(s, WEIR_HOUR);
        s->now_ns = wr_max_i64(s->now_ns, s->newest_ns - (int64_t)WEIR_HOUR);
        return;
    case 6: s->now_ns = s->newest_ns; break;
    case 7: step = wr_min_u64(token, UINT64_C(1) << 50) * below(s, 20); break;
    default: step = any_size(s, wr_min_u64(2 * token, UINT64_C(1) << 55));
    }
    s->now_ns = wr_min_i64(s->now_ns + (int64_t)step, LAST_NS);
    s->newest_ns = wr_max_i64(s->newest_ns, s->now_ns);
}

static struct weir_weight choose_weight(struct scene *s) {
    static const uint32_t nums[] = {1, 2, 3, 4, 6, 8, 9, 12, 16};
    if (s->family->most_num == 1 || one_in(s, 2)) return (struct weir_weight){0, 0};
    return (struct weir_weight){nums[below(s, 9)], 1 + (uint32_t)below(s, 5)};
}

static uint64_t choose_cost(struct scene *s) {
    switch (below(s, 10)) {
    case 0: return 0;
    case 1: return s->limit.burst;
    case 2: return s->limit.burst + 1;
    case 3: return one_in(s, 10) ? UINT64_MAX : any_size(s, UINT64_C(1) << 43);
    case 4:
    case 5: return any_size(s, s->limit.burst);
    default: return 1 + below(s, 3);
    }
}

// What the scale makes of a cost: exact, rounded (which the model does not follow), or refused.
enum fit { EXACT, ROUNDED, REFUSED };

static enum fit fit_of(const struct scene *s, uint64_t cost, struct weir_weight weight) {
    if (weight.num == weight.den || cost > UINT64_C(1) << 44) return EXACT;
    const wr_u128 scaled = (wr_u128)cost * s->w->scale.unit_tokens * weight.den;
    const wr_u128 rest = scaled % weight.num;
    if (rest == 0) return EXACT;
    return rest * 1000000 > scaled ? REFUSED : ROUNDED;
}

static void describe(const struct scene *s, unsigned key, const struct weir_ask *ask,
                     const struct outcome *o) {
    static const char *kinds[] = {"take", "some", "peek", "charge", "refund", "reserve", "reset"};
    printf("%" PRId64 " ns: key %u %s %" PRIu64 " (weight %u/%u, max_wait %" PRIu64 ") = %d, "
           "granted %" PRIu64 ", remaining %" PRIu64 ", debt %" PRIu64 ", retry %" PRIu64
           ", full %" PRIu64 "\n",
           s->now_ns, key, kinds[ask->kind], ask->cost, ask->weight.num, ask->weight.den,
           ask->max_wait_ns, o->result, o->answer.granted_tokens, o->answer.remaining,
           o->answer.debt, o->answer.retry_after_ns, o->answer.full_after_ns);
}

// A refused ask passes after exactly retry_after_ns, and not one nanosecond sooner: by peeking.
static const char *check_retry(struct scene *s, const struct weir_ask *refused, uint64_t wait_ns) {
    if (wait_ns == WEIR_FOREVER || wait_ns > (uint64_t)LAST_NS || refused->kind == WEIR_RESERVE)
        return NULL;
    struct weir_ask ask = *refused;
    if (ask.kind == WEIR_TAKE_SOME) ask.cost = wr_min_u64(ask.cost, 1);
    ask.kind = WEIR_PEEK;
    ask.now_ns = s->base_ns + s->now_ns + (int64_t)wait_ns;
    if (weir_do(s->w, &ask, NULL) != WEIR_GRANTED) return "asking again after retry_after_ns fails";
    ask.now_ns--;
    if (weir_do(s->w, &ask, NULL) == WEIR_GRANTED) return "asking again 1 ns sooner passes";
    return NULL;
}

static const char *ask_once(struct scene *s) {
    static const char *names[KEYS] = {"a", "b", "c", "d", "e", "f"};
    const unsigned key = (unsigned)below(s, KEYS);
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str(names[key]);
    ask.kind = one_in(s, 2) ? WEIR_TAKE : (enum weir_kind)below(s, WEIR_RESET + 1);
    if (ask.kind == WEIR_RESET && !one_in(s, 4)) ask.kind = WEIR_TAKE;
    ask.cost = choose_cost(s);
    ask.weight = choose_weight(s);
    ask.now_ns = s->base_ns + s->now_ns;
    if (ask.kind == WEIR_RESERVE && one_in(s, 2)) ask.max_wait_ns = 1 + any_size(s, WEIR_DAY);
    const enum fit fit = ask.kind == WEIR_RESET ? EXACT : fit_of(s, ask.cost, ask.weight);
    if (fit == ROUNDED) return NULL;
    struct outcome o = {0, WEIR_ANSWER_INIT};
    o.result = weir_do(s->w, &ask, &o.answer);
    if (s->talk) describe(s, key, &ask, &o);
    if (fit == REFUSED && ask.kind != WEIR_RESET)
        return o.result == WEIR_EWEIGHT ? NULL : "a weight that does not fit was not refused";
    // Some tokens of a weight may not fit either, though the cost does: then it may say so.
    if (o.result == WEIR_EWEIGHT && ask.kind == WEIR_TAKE_SOME && fit_of(s, 1, ask.weight) != EXACT)
        return NULL;
    struct weir_ask relative = ask;
    relative.now_ns = s->now_ns;
    const char *wrong = exact_judge(&s->exact, key, &relative, o.result, &o.answer);
    if (wrong == NULL && o.result == WEIR_DENIED)
        wrong = check_retry(s, &ask, o.answer.retry_after_ns);
    return wrong;
}

static const char *change_limit(struct scene *s) {
    s->limit = choose_limit(s);
    if (s->talk)
        printf("%" PRId64 " ns: limit %" PRIu64 " / %" PRIu64 " ns, burst %" PRIu64 "\n", s->now_ns,
               s->limit.tokens, s->limit.period_ns, s->limit.burst);
    if (weir_set_limit_at(s->w, &s->limit, s->base_ns + s->now_ns, NULL) != WEIR_GRANTED)
        return "a change of limit was refused";
    exact_set_limit(&s->exact, &s->limit, s->now_ns);
    struct weir_limit limit;
    weir_get_limit(s->w, &limit);
    return memcmp(&limit, &s->limit, sizeof limit) == 0 ? NULL : "weir_get_limit differs";
}

static void run(uint64_t seed, bool talk) {
    struct scene s = {.random = {seed}, .talk = talk};
    make(&s);
    if (talk)
        printf("max_rate %" PRIu64 " / %" PRIu64 " ns, first limit %" PRIu64 " / %" PRIu64
               " ns burst %" PRIu64 ", %" PRIu64 " units a token\n",
               s.max_rate.tokens, s.max_rate.period_ns, s.limit.tokens, s.limit.period_ns,
               s.limit.burst, s.w->scale.unit_tokens);
    for (unsigned i = 0; i < STEPS; i++) {
        step_clock(&s);
        const char *wrong = one_in(&s, 25) ? change_limit(&s) : ask_once(&s);
        if (wrong != NULL)
            fail_msg("seed %" PRIu64 ", step %u: %s (WEIR_SEED=%" PRIu64 " shows it)", seed, i,
                     wrong, seed);
    }
    if (stats_of(s.w).relics != 0) fail_msg("seed %" PRIu64 ": relics counted", seed);
    weir_destroy(s.w);
}

static void agrees_with_the_exact_model_on_random_sequences(void **state) {
    (void)state;
    uint64_t seed = 0;
    if (seed_from_environment(&seed)) {
        run(seed, true);
        return;
    }
    for (seed = 1; seed <= SEEDS; seed++) run(seed, false);
}

static void agrees_on_the_seeds_that_once_failed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof failed_once / sizeof failed_once[0]; i++)
        run(failed_once[i], false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_on_the_seeds_that_once_failed),
        cmocka_unit_test(agrees_with_the_exact_model_on_random_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
