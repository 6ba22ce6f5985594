// Leases: what weir.h says of them. Limits whose rate is slow, so that every level is known.
#include <string.h>

#include "support.h"

static uint64_t v_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true).v;
}

static uint64_t zero_of(struct weir *w) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_str("a"), &slot), 1);
    return slot.word;
}

// A limiter at rate 0, of whose key "a" one token is gone.
static struct weir_options rate_0(uint64_t burst) {
    struct weir_options options = options_at(0, WEIR_SECOND, burst);
    options.max_rate_tokens = 1000000;
    options.max_rate_period_ns = WEIR_SECOND;
    options.clock = WEIR_CLOCK_AUTO;
    return options;
}

static struct weir *create_touched(uint64_t burst) {
    const struct weir_options options = rate_0(burst);
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), 1, NULL), WEIR_GRANTED);
    return w;
}

static uint64_t left_of(struct weir *w) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    assert_true(weir_peek(w, weir_str("a"), 0, &answer) >= 0);
    return answer.remaining;
}

// An age of an hour: "fast" and "too old" do not depend on how fast the test runs.
static struct weir_lease lease_of(struct weir *w, uint64_t chunk_max_tokens, uint64_t age_max_ns) {
    struct weir_lease lease;
    struct weir_lease_options options = WEIR_LEASE_OPTIONS_INIT;
    options.chunk_max_tokens = chunk_max_tokens;
    options.age_max_ns = age_max_ns;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), &options), WEIR_GRANTED);
    return lease;
}

static void set_limit(struct weir *w, uint64_t tokens, uint64_t burst) {
    const struct weir_limit limit = {tokens, WEIR_SECOND, burst};
    assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
}

static uint64_t take_until_denied(struct weir_lease *lease) {
    uint64_t spent = 0;
    while (weir_lease_take(lease, 1, NULL) == WEIR_GRANTED) spent++;
    return spent;
}

static void the_chunk_doubles_while_hot_up_to_its_most(void **state) {
    (void)state;
    static const uint64_t debits[] = {1, 2, 4, 8, 8, 8};
    struct weir *w = create_touched(1001);
    struct weir_lease lease = lease_of(w, 8, WEIR_HOUR);
    uint64_t left = 1000;
    for (size_t i = 0; i < sizeof debits / sizeof debits[0]; i++) {
        for (uint64_t n = 0; n < debits[i]; n++) {
            assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
            assert_int_equal(left_of(w), left - debits[i]); // debited by the first of them
        }
        left -= debits[i];
    }
    weir_lease_fini(&lease);
    assert_int_equal(left_of(w), left);
    weir_destroy(w);
}

static void the_chunk_is_1024_tokens_at_most_without_options(void **state) {
    (void)state;
    struct weir *w = create_touched(9001);
    struct weir_lease lease;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), NULL), WEIR_GRANTED);
    uint64_t most = 0;
    for (uint64_t spent = 1; spent <= 8800; spent++) {
        assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
        const uint64_t stash = 9000 - left_of(w) - spent;
        most = stash > most ? stash : most;
    }
    assert_true(most <= 1023);
    weir_lease_fini(&lease);
    assert_int_equal(left_of(w), 200);
    weir_destroy(w);
}

static void the_chunk_halves_when_the_bucket_runs_dry(void **state) {
    (void)state;
    struct weir *w = create_touched(21);
    struct weir_lease lease = lease_of(w, 8, WEIR_HOUR);
    assert_int_equal(take_until_denied(&lease), 20); // 1, 2, 4, 8, and 5 of 8: then 4, then 2
    assert_int_equal(left_of(w), 0);
    assert_int_equal(weir_reset(w, weir_str("a")), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_int_equal(left_of(w), 19);
    weir_lease_fini(&lease);
    assert_int_equal(left_of(w), 20);
    weir_destroy(w);
}

static void what_was_debited_is_spent_or_given_back(void **state) {
    (void)state;
    struct weir *w = create_touched(1000001);
    struct weir_lease leases[4];
    struct random random = {5};
    const uint64_t zero = zero_of(w);
    uint64_t spent = 0;
    for (size_t i = 0; i < 4; i++)
        leases[i] = lease_of(w, 1 + random_below(&random, 100), WEIR_HOUR);
    for (int i = 0; i < 20000; i++) {
        const uint64_t cost = random_below(&random, 5);
        assert_int_equal(weir_lease_take(&leases[random_below(&random, 4)], cost, NULL),
                         WEIR_GRANTED);
        spent += cost;
        assert_true(spent * w->scale.unit_tokens <= zero_of(w) - zero);
    }
    for (size_t i = 0; i < 4; i++) weir_lease_fini(&leases[i]);
    assert_true(zero_of(w) - zero == spent * w->scale.unit_tokens);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.tokens - s.refunded_tokens, spent + 1);
    weir_lease_fini(&leases[0]); // again: there is nothing left
    assert_int_equal(left_of(w), 1000000 - spent);
    weir_destroy(w);
}

static void several_leases_spend_the_burst_and_no_more(void **state) {
    (void)state;
    struct weir *w = create_touched(501);
    struct weir_lease leases[5];
    uint64_t spent = 0;
    for (size_t i = 0; i < 5; i++) leases[i] = lease_of(w, 64, WEIR_HOUR);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < 5; i++) {
            const bool granted = weir_lease_take(&leases[i], 1, NULL) == WEIR_GRANTED;
            more = more || granted;
            spent += granted;
            assert_true(spent <= 500);
        }
    }
    assert_int_equal(spent, 500);
    for (size_t i = 0; i < 5; i++) weir_lease_fini(&leases[i]);
    weir_destroy(w);
}

static void what_a_lease_holds_is_denied_to_others_meanwhile(void **state) {
    (void)state;
    struct weir *w = create_touched(5);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED); // and one in the stash
    assert_int_equal(weir_take(w, weir_str("a"), 2, NULL), WEIR_DENIED);
    weir_lease_fini(&lease);
    assert_int_equal(weir_take(w, weir_str("a"), 2, NULL), WEIR_GRANTED);
    weir_destroy(w);
}

// Grows a stash of at least one token; returns what is left in the bucket.
static uint64_t fill_stash(struct weir *w, struct weir_lease *lease) {
    for (;;) {
        const uint64_t before = left_of(w);
        assert_int_equal(weir_lease_take(lease, 1, NULL), WEIR_GRANTED);
        const uint64_t left = left_of(w);
        if (before > left + 1) return left;
    }
}

// The refill after a change debits anew; what was held is back in the bucket first.
static void a_stash_is_void_when_the_limit_has_changed(void **state) {
    (void)state;
    struct weir *w = create_touched(1001);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    const uint64_t zero = zero_of(w);
    uint64_t spent = 0;
    for (; spent < 20; spent++)
        assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_true(zero_of(w) - zero > spent * w->scale.unit_tokens);
    const uint64_t refunded = stats_of(w).refunded_tokens;
    assert_int_equal(refunded, 0);
    set_limit(w, 0, 1002);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_true(stats_of(w).refunded_tokens > 0);
    weir_lease_fini(&lease);
    assert_true(zero_of(w) - zero == (spent + 1) * w->scale.unit_tokens);
    weir_destroy(w);
}

static void after_the_kill_switch_not_one_token_of_a_stash_is_spent(void **state) {
    (void)state;
    for (int n = 0; n < 40; n++) {
        struct weir *w = create_touched(1001);
        struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
        struct weir_answer answer = WEIR_ANSWER_INIT;
        for (int i = 0; i < n; i++)
            assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
        set_limit(w, 0, 0);
        assert_int_equal(weir_lease_take(&lease, 1, &answer), WEIR_DENIED);
        assert_true(answer.retry_after_ns == WEIR_FOREVER);
        assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_DENIED);
        weir_lease_fini(&lease);
        weir_destroy(w);
    }
}

static void a_tick_gives_back_what_is_too_old_and_nothing_younger(void **state) {
    (void)state;
    struct weir *w = create_touched(1000001);
    struct weir_lease young = lease_of(w, 64, WEIR_HOUR);
    const uint64_t left = fill_stash(w, &young);
    for (int i = 0; i < 100; i++) weir_lease_tick(&young);
    assert_int_equal(left_of(w), left);
    weir_lease_fini(&young);
    struct weir_lease old = lease_of(w, 64, WEIR_MILLISECOND);
    const uint64_t before = fill_stash(w, &old);
    while (left_of(w) == before) weir_lease_tick(&old); // until the millisecond is over
    const uint64_t after = left_of(w);
    assert_true(after > before);
    weir_lease_tick(&old); // nothing is given back twice
    weir_lease_fini(&old);
    assert_int_equal(left_of(w), after);
    weir_destroy(w);
}

static void a_cost_above_the_chunk_is_debited_whole(void **state) {
    (void)state;
    struct weir *w = create_touched(101);
    struct weir_lease lease = lease_of(w, 4, WEIR_HOUR);
    for (uint64_t i = 1; i <= 9; i++) {
        assert_int_equal(weir_lease_take(&lease, 10, NULL), WEIR_GRANTED);
        const uint64_t held = 100 - 10 * i - left_of(w);
        assert_true(held < 4);
    }
    weir_lease_fini(&lease);
    assert_int_equal(left_of(w), 10);
    weir_destroy(w);
}

static void a_refusal_takes_nothing_and_tells_the_whole_wait(void **state) {
    (void)state;
    struct weir_options options = rate_0(20);
    options.limit.tokens = 1;
    options.limit.period_ns = WEIR_HOUR;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), 15, NULL), WEIR_GRANTED);
    struct weir_lease lease = lease_of(w, 4, WEIR_HOUR);
    struct weir_answer answer = WEIR_ANSWER_INIT;
    assert_int_equal(weir_lease_take(&lease, 8, &answer), WEIR_DENIED);
    assert_int_equal(answer.granted_tokens, 0);
    assert_int_equal(answer.remaining, 5);
    assert_true(answer.retry_after_ns > 2 * WEIR_HOUR && answer.retry_after_ns <= 3 * WEIR_HOUR);
    assert_int_equal(left_of(w), 5);
    assert_int_equal(stats_of(w).denied, 1);
    for (int i = 0; i < 5; i++) assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, &answer), WEIR_DENIED);
    assert_int_equal(stats_of(w).denied, 2);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

static void a_cost_above_the_burst_is_never(void **state) {
    (void)state;
    struct weir *w = create_touched(21);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    struct weir_answer answer = WEIR_ANSWER_INIT;
    for (uint64_t cost = 22; cost < 100; cost++) {
        assert_int_equal(weir_lease_take(&lease, cost, &answer), WEIR_NEVER);
        assert_true(answer.retry_after_ns == WEIR_FOREVER);
        assert_int_equal(left_of(w), 20);
    }
    assert_int_equal(weir_lease_take(&lease, UINT64_MAX, &answer), WEIR_NEVER);
    assert_int_equal(left_of(w), 20);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

static void a_cost_of_0_is_granted(void **state) {
    (void)state;
    struct weir *w = create_touched(2);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    assert_int_equal(weir_lease_take(&lease, 0, NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_DENIED);
    assert_int_equal(weir_lease_take(&lease, 0, NULL), WEIR_GRANTED);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

static void a_weight_is_the_keys_share_in_a_lease_too(void **state) {
    (void)state;
    struct weir *w = create_touched(101);
    struct weir_lease lease;
    struct weir_lease_options options = WEIR_LEASE_OPTIONS_INIT;
    options.weight = (struct weir_weight){2, 1};
    options.age_max_ns = WEIR_HOUR;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), &options), WEIR_GRANTED);
    assert_int_equal(take_until_denied(&lease), 200);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

static void what_a_lease_cannot_be_is_refused(void **state) {
    (void)state;
    struct weir_lease lease;
    struct weir_lease_options options = WEIR_LEASE_OPTIONS_INIT;
    struct weir *at = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(weir_lease_init(&lease, at, weir_str("a"), NULL), WEIR_ECLOCK);
    weir_destroy(at);
    struct weir *w = create_touched(20);
    options.size = 3;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), &options), WEIR_ESIZE);
    options.size = sizeof options;
    options.chunk_max_tokens = (UINT64_C(1) << 32) + 1;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), &options), WEIR_EINVAL);
    options.chunk_max_tokens = UINT64_C(1) << 32;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("a"), &options), WEIR_GRANTED);
    assert_int_equal(weir_lease_init(NULL, w, weir_str("a"), &options), WEIR_EINVAL);
    assert_int_equal(weir_lease_init(&lease, NULL, weir_str("a"), &options), WEIR_EINVAL);
    weir_destroy(w);
    struct weir_options coarse = rate_0(20);
    coarse.limit.tokens = coarse.max_rate_tokens = 3000000000; // a unit a token
    struct weir *c = create(&coarse);
    options.weight = (struct weir_weight){2, 1};
    assert_int_equal(weir_lease_init(&lease, c, weir_str("a"), &options), WEIR_EWEIGHT);
    weir_destroy(c);
    struct weir_answer answer = WEIR_ANSWER_INIT;
    answer.size = 3;
    struct weir *d = create_touched(2);
    lease = lease_of(d, 4, WEIR_HOUR);
    assert_int_equal(weir_lease_take(&lease, 1, &answer), WEIR_ESIZE);
    assert_int_equal(left_of(d), 1);
    weir_destroy(d);
}

static void without_a_limit_all_is_granted_and_nothing_debited(void **state) {
    (void)state;
    struct weir *w = create_touched(5);
    const struct weir_limit none = weir_unlimited();
    assert_int_equal(weir_set_limit(w, &none, NULL), WEIR_GRANTED);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(weir_lease_take(&lease, 1000, NULL), WEIR_GRANTED);
    set_limit(w, 0, 5);
    assert_int_equal(take_until_denied(&lease), 4);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

static void a_dry_run_grants_and_counts_what_would_be_denied(void **state) {
    (void)state;
    struct weir_options options = rate_0(5);
    options.dry_run = true;
    struct weir *w = create(&options);
    struct weir_lease lease = lease_of(w, 64, WEIR_HOUR);
    for (int i = 0; i < 5; i++) assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
    assert_int_equal(stats_of(w).would_deny, 0);
    for (uint64_t i = 1; i <= 20; i++) {
        assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_GRANTED);
        assert_int_equal(stats_of(w).would_deny, i);
    }
    weir_lease_fini(&lease);
    assert_int_equal(left_of(w), 0);
    assert_int_equal(weir_refund(w, weir_str("a"), 2, NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 3, NULL), WEIR_GRANTED); // 2 of 3 are there
    assert_int_equal(stats_of(w).would_deny, 21);
    assert_int_equal(left_of(w), 2);
    weir_lease_fini(&lease);
    weir_destroy(w);
}

// The bucket fills between the refill's debit and the refusal: what is granted then is debited too.
static void at_the_edge_of_a_denial_every_grant_is_debited(void **state) {
    (void)state;
    struct weir_options options = rate_0(1000000000);
    options.limit.tokens = options.max_rate_tokens = 2000000;
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("a"), 1000000000, NULL), WEIR_GRANTED);
    const uint64_t zero = zero_of(w);
    struct weir_lease lease = lease_of(w, 1, WEIR_HOUR);
    uint64_t spent = 0;
    for (int i = 0; i < 300000; i++) spent += weir_lease_take(&lease, 1, NULL) == WEIR_GRANTED;
    weir_lease_fini(&lease);
    assert_true(zero_of(w) - zero == spent * w->scale.unit_tokens);
    assert_true((int64_t)(v_of(w) - zero_of(w)) >= 0);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_chunk_doubles_while_hot_up_to_its_most),
        cmocka_unit_test(the_chunk_is_1024_tokens_at_most_without_options),
        cmocka_unit_test(the_chunk_halves_when_the_bucket_runs_dry),
        cmocka_unit_test(what_was_debited_is_spent_or_given_back),
        cmocka_unit_test(several_leases_spend_the_burst_and_no_more),
        cmocka_unit_test(what_a_lease_holds_is_denied_to_others_meanwhile),
        cmocka_unit_test(a_stash_is_void_when_the_limit_has_changed),
        cmocka_unit_test(after_the_kill_switch_not_one_token_of_a_stash_is_spent),
        cmocka_unit_test(a_tick_gives_back_what_is_too_old_and_nothing_younger),
        cmocka_unit_test(a_cost_above_the_chunk_is_debited_whole),
        cmocka_unit_test(a_refusal_takes_nothing_and_tells_the_whole_wait),
        cmocka_unit_test(a_cost_above_the_burst_is_never),
        cmocka_unit_test(a_cost_of_0_is_granted),
        cmocka_unit_test(a_weight_is_the_keys_share_in_a_lease_too),
        cmocka_unit_test(what_a_lease_cannot_be_is_refused),
        cmocka_unit_test(without_a_limit_all_is_granted_and_nothing_debited),
        cmocka_unit_test(a_dry_run_grants_and_counts_what_would_be_denied),
        cmocka_unit_test(at_the_edge_of_a_denial_every_grant_is_debited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
