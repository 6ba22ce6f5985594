// A limiter under a sync, seen from the sync thread's side: what decisions leave behind, what is
// taken, and that nothing is lost between. Single-threaded; no Redis.
#include <string.h>

#include "support.h"
#include "side.h"

#define INTERVAL_US 100000

static const struct wr_node_rules rules = {.interval_us = INTERVAL_US, .epoch_us = 1000000,
                                           .hot_memory_us = 60000000, .share_span_us = 10000000};

static struct weir *make(uint64_t burst, uint64_t capacity, enum weir_full_policy policy) {
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.limit = (struct weir_limit){1, WEIR_HOUR, burst};
    o.capacity_keys = capacity;
    o.shards = 1;
    o.full_policy = policy;
    struct weir *w = create(&o);
    const struct wr_synced_options so = {rules, 0, 256};
    assert_int_equal(weir_private_attach(w, &so, NULL), WEIR_GRANTED);
    return w;
}

struct seen {
    uint64_t slot[64], fingerprint[64];
    bool named[64], urgent[64];
    unsigned count;
};

static void visit(void *context, uint64_t slot, uint64_t fingerprint, bool named, bool urgent) {
    struct seen *s = context;
    assert_true(s->count < 64);
    s->slot[s->count] = slot;
    s->fingerprint[s->count] = fingerprint;
    s->named[s->count] = named;
    s->urgent[s->count++] = urgent;
}

static struct seen scan(struct weir *w) {
    struct seen s = {.count = 0};
    weir_private_scan(w, visit, &s);
    return s;
}

static uint64_t tokens_of(struct weir *w, const struct wr_node_side *side) {
    return side->granted_units / weir_private_unit_tokens(w);
}

// Takes what the only touched key has granted.
static struct wr_node_side take_only(struct weir *w, uint64_t *slot, uint64_t *fingerprint) {
    const struct seen s = scan(w);
    assert_int_equal(s.count, 1);
    struct wr_node_side taken;
    assert_true(weir_private_freeze(w, s.slot[0], s.fingerprint[0], 0, &taken));
    if (slot != NULL) *slot = s.slot[0];
    if (fingerprint != NULL) *fingerprint = s.fingerprint[0];
    return taken;
}

static void takes(struct weir *w, const char *key, unsigned times, int result) {
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(weir_take(w, weir_str(key), 1, NULL), result);
}

static bool next_name(struct weir *w, struct wr_synced_name *name) {
    uint32_t left = UINT32_MAX;
    return weir_private_name_next(w, name, &left);
}

static bool next_spill(struct weir *w, struct wr_synced_spill *spill) {
    uint32_t left = UINT32_MAX;
    return weir_private_spill_next(w, spill, &left);
}

static void hands_over_each_name_once(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 3, WEIR_GRANTED);
    struct wr_synced_name name;
    assert_true(next_name(w, &name));
    assert_int_equal(name.bytes, 1);
    assert_memory_equal(name.name, "a", 1);
    assert_false(name.is_hash);
    assert_false(next_name(w, &name));
    const struct seen s = scan(w);
    assert_int_equal(s.count, 1);
    assert_true(s.named[0]);
    assert_int_equal(s.slot[0], name.slot);
    assert_int_equal(s.fingerprint[0], name.fingerprint);
    weir_destroy(w);
}

static void names_ids_by_their_bytes_and_long_keys_by_a_hash(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    struct wr_synced_name name;
    assert_int_equal(weir_take(w, weir_id(0x0102), 1, NULL), WEIR_GRANTED);
    assert_true(next_name(w, &name));
    assert_int_equal(name.bytes, 8);
    assert_memory_equal(name.name, "\x02\x01\0\0\0\0\0\0", 8);
    char text[300];
    memset(text, 'x', sizeof text);
    struct weir_prepared prepared;
    weir_prepare(w, weir_bytes(text, 256), &prepared);
    assert_int_equal(weir_take(w, weir_prepared_key(&prepared), 1, NULL), WEIR_GRANTED);
    assert_true(next_name(w, &name));
    assert_int_equal(name.bytes, 256);
    assert_false(name.is_hash);
    assert_int_equal(weir_take(w, weir_bytes(text, 257), 1, NULL), WEIR_GRANTED);
    assert_true(next_name(w, &name));
    assert_int_equal(name.bytes, 16);
    assert_true(name.is_hash);
    weir_destroy(w);
}

static void takes_what_was_granted_and_denied_once(void **state) {
    (void)state;
    struct weir *w = make(10, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 10, WEIR_GRANTED);
    takes(w, "a", 7, WEIR_DENIED);
    uint64_t slot, fingerprint;
    struct wr_node_side taken = take_only(w, &slot, &fingerprint);
    assert_int_equal(tokens_of(w, &taken), 10);
    assert_int_equal(taken.denied_tokens, 7);
    assert_in_range(taken.first_us, 1, weir_private_now_us(w));
    assert_int_equal(scan(w).count, 0);
    assert_true(weir_private_freeze(w, slot, fingerprint, 0, &taken));
    assert_int_equal(taken.granted_units, 0);
    takes(w, "a", 1, WEIR_DENIED); // touched again
    assert_int_equal(scan(w).count, 1);
    weir_destroy(w);
}

static void counts_large_costs_and_weights_in_the_side(void **state) {
    (void)state;
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.limit = (struct weir_limit){1000, WEIR_SECOND, 10000000};
    o.capacity_keys = 64;
    struct weir *w = create(&o);
    const struct wr_synced_options so = {rules, 0, 256};
    assert_int_equal(weir_private_attach(w, &so, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("a"), 3000000, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("a"), 1000000, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("a"), 48000, NULL), WEIR_GRANTED);
    // More than the tag counts.
    assert_int_equal(weir_take(w, weir_str("a"), 600, NULL), WEIR_GRANTED);
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_str("a");
    ask.weight = (struct weir_weight){2, 1};
    assert_int_equal(weir_do(w, &ask, NULL), WEIR_GRANTED); // half a token of the limit's
    const struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(taken.granted_units,
                     UINT64_C(4048600) * w->scale.unit_tokens + w->scale.unit_tokens / 2);
    weir_destroy(w);
}

static void takes_a_refund_off_what_is_not_reported(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 5, WEIR_GRANTED);
    assert_int_equal(weir_refund(w, weir_str("a"), 2, NULL), WEIR_GRANTED);
    struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &taken), 3);
    assert_int_equal(weir_refund(w, weir_str("a"), 2, NULL), WEIR_GRANTED); // was reported
    struct wr_synced_counts counts;
    weir_private_counts(w, &counts);
    assert_int_equal(counts.local_refund_tokens, 2);
    weir_destroy(w);
}

static void puts_back_what_was_not_applied(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 5, WEIR_GRANTED);
    uint64_t slot, fingerprint;
    struct wr_node_side taken = take_only(w, &slot, &fingerprint);
    takes(w, "a", 2, WEIR_GRANTED);
    taken.denied_tokens = 3;
    assert_true(weir_private_unfreeze(w, slot, fingerprint, &taken));
    struct wr_node_side again = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &again), 7);
    assert_int_equal(again.denied_tokens, 3);
    assert_int_equal(again.first_us, taken.first_us);
    weir_destroy(w);
}

static void hands_a_forgotten_name_over_again(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    struct wr_synced_name name;
    takes(w, "a", 2, WEIR_GRANTED);
    assert_true(next_name(w, &name));
    assert_false(weir_private_unname(w, name.slot, name.fingerprint)); // not reported yet
    uint64_t slot, fingerprint;
    (void)take_only(w, &slot, &fingerprint);
    assert_false(weir_private_unname(w, slot, fingerprint ^ 1));
    assert_true(weir_private_unname(w, slot, fingerprint));
    takes(w, "a", 1, WEIR_GRANTED);
    assert_true(next_name(w, &name));
    const struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &taken), 1);
    weir_destroy(w);
}

static void hands_a_lost_name_over_again_with_what_was_granted(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    struct wr_synced_name name;
    takes(w, "a", 3, WEIR_GRANTED);
    assert_true(next_name(w, &name));
    weir_private_rename(w, name.slot, name.fingerprint ^ 1); // of another key: nothing
    assert_true(scan(w).named[0]);
    weir_private_rename(w, name.slot, name.fingerprint);
    weir_private_touch(w, name.slot, false);
    const struct seen s = scan(w);
    assert_int_equal(s.count, 1);
    assert_false(s.named[0]);
    takes(w, "a", 1, WEIR_GRANTED);
    assert_true(next_name(w, &name));
    weir_private_touch(w, name.slot, false);
    const struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &taken), 4);
    weir_destroy(w);
}

static void a_look_at_the_names_ends_after_a_turn(void **state) {
    (void)state;
    struct weir *w = make(100, 4096, WEIR_FULL_DISPLACE);
    struct wr_synced_name name;
    uint32_t left = UINT32_MAX;
    uint64_t id = 0, seen = 0;
    for (; id < 100; id++) (void)weir_take(w, weir_id(id), 1, NULL);
    while (weir_private_name_next(w, &name, &left)) { // as fast as they are taken out
        for (int i = 0; i < 4; i++) (void)weir_take(w, weir_id(id++), 1, NULL);
        assert_true(++seen <= 256);
    }
    assert_true(seen >= 100); // those that were there when it began
    weir_destroy(w);
}

// A decision that has marked one line urgent, and not yet touched.
static void a_scan_leaves_the_urgent_marks_of_others_alone(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 1, WEIR_GRANTED);
    (void)take_only(w, NULL, NULL);
    uint64_t slot, other;
    takes(w, "a", 1, WEIR_GRANTED);
    (void)take_only(w, &slot, NULL);
    takes(w, "a", 1, WEIR_GRANTED);
    struct wr_synced *s = wr_synced_of(w);
    other = slot ^ WR_LINE_WAYS; // of the same word
    wr_mark(s->urgent, other);
    assert_int_equal(scan(w).count, 1);
    const uint64_t bit = UINT64_C(1) << other / WR_LINE_WAYS % 64;
    assert_int_equal(s->urgent[other / WR_LINE_WAYS / 64] & bit, bit);
    weir_destroy(w);
}

static void spills_what_a_reset_or_a_displacement_would_lose(void **state) {
    (void)state;
    struct weir *w = make(100, 8, WEIR_FULL_DISPLACE);
    takes(w, "a", 5, WEIR_GRANTED);
    assert_int_equal(weir_reset(w, weir_str("a")), WEIR_GRANTED);
    struct wr_synced_spill spill;
    assert_true(next_spill(w, &spill));
    assert_int_equal(spill.granted_units, 5 * w->scale.unit_tokens);
    assert_false(next_spill(w, &spill));
    // 200 keys into 16 slots: what was granted is in the slots or was spilled.
    for (uint64_t id = 0; id < 200; id++)
        assert_int_equal(weir_take(w, weir_id(id), 1, NULL), WEIR_GRANTED);
    uint64_t tokens = 0;
    while (next_spill(w, &spill)) tokens += spill.granted_units / w->scale.unit_tokens;
    struct wr_synced_counts counts;
    weir_private_counts(w, &counts);
    assert_int_equal(counts.lost_tokens, 0);
    assert_true(tokens >= 184);
    const struct seen s = scan(w);
    for (unsigned i = 0; i < s.count; i++) {
        struct wr_node_side taken;
        assert_true(weir_private_freeze(w, s.slot[i], s.fingerprint[i], 0, &taken));
        tokens += tokens_of(w, &taken);
    }
    assert_int_equal(tokens, 200);
    weir_destroy(w);
}

static void charges_by_the_multiplier_and_counts_what_was_granted(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 1, WEIR_GRANTED);
    uint64_t slot, fingerprint;
    (void)take_only(w, &slot, &fingerprint);
    assert_true(weir_private_set_m(w, slot, fingerprint, 10 * WR_NODE_M_ONE));
    // 99 left: nine take 10 each, the tenth what is left, and goes 1 into debt.
    takes(w, "a", 10, WEIR_GRANTED);
    takes(w, "a", 1, WEIR_DENIED);
    struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &taken), 10);
    struct weir_answer a = WEIR_ANSWER_INIT;
    assert_int_equal(weir_peek(w, weir_str("a"), 0, &a), WEIR_DENIED);
    assert_int_equal(a.debt, 1);
    weir_destroy(w);
}

static void denies_while_closed_and_opens_again(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 1, WEIR_GRANTED);
    uint64_t slot, fingerprint;
    (void)take_only(w, &slot, &fingerprint);
    assert_true(weir_private_set_m(w, slot, fingerprint, WR_NODE_M_CLOSED));
    takes(w, "a", 3, WEIR_DENIED);
    struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(taken.denied_tokens, 3);
    assert_true(weir_private_set_m(w, slot, fingerprint, WR_NODE_M_ONE));
    takes(w, "a", 3, WEIR_GRANTED);
    weir_destroy(w);
}

static void settles_to_what_all_nodes_have_spent(void **state) {
    (void)state;
    struct weir *w = make(100, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 10, WEIR_GRANTED);
    uint64_t slot, fingerprint;
    (void)take_only(w, &slot, &fingerprint);
    struct wr_node_limit limit;
    assert_int_equal(wr_node_limit_init(&limit, 1, WEIR_HOUR, 100, 100, w->scale.unit_tokens, 0),
                     WR_NODE_REFUSAL_OK);
    const int64_t hour_us = INT64_C(3600) * 1000000;
    struct wr_node_heard heard = {.base_us = weir_private_now_us(w) + 130 * hour_us,
                                  .m_q16 = 2 * WR_NODE_M_ONE, .early_tokens = 7};
    int64_t excess;
    takes(w, "a", 3, WEIR_GRANTED); // since the freeze: at m = 2 they count for 6
    assert_true(weir_private_settle(w, slot, fingerprint, &limit, &heard, &excess));
    const int64_t unit = (int64_t)w->scale.unit_tokens;
    assert_int_equal((excess + unit - 1) / unit, 36);
    takes(w, "a", 1, WEIR_DENIED);
    heard.base_us = weir_private_now_us(w);
    assert_true(weir_private_settle(w, slot, fingerprint, &limit, &heard, &excess));
    assert_int_equal(excess, 0);
    (void)scan(w); // the first grants were of a cold key
    takes(w, "a", 4, WEIR_GRANTED); // 3 + 4: crosses the early threshold
    assert_true(scan(w).urgent[0]);
    // A key that is warm and in no hurry is touched all the same, once an interval.
    heard.early_tokens = WR_NODE_EARLY_NEVER;
    heard.synced_ms = (uint32_t)(weir_private_now_us(w) / 1000);
    assert_true(weir_private_settle(w, slot, fingerprint, &limit, &heard, &excess));
    struct wr_node_side taken;
    assert_true(weir_private_freeze(w, slot, fingerprint, 0, &taken));
    takes(w, "a", 2, WEIR_GRANTED);
    const struct seen calm = scan(w);
    assert_int_equal(calm.count, 1);
    assert_false(calm.urgent[0]);
    assert_false(weir_private_settle(w, slot, fingerprint ^ 1, &limit, &heard, &excess));
    weir_destroy(w);
}

static void samples_denials_beyond_64_without_bias(void **state) {
    (void)state;
    struct weir *w = make(1, 64, WEIR_FULL_DISPLACE);
    takes(w, "a", 1, WEIR_GRANTED);
    takes(w, "a", 100000, WEIR_DENIED);
    struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_in_range(taken.denied_tokens, 70000, 130000); // sigma is about 4 %
    weir_destroy(w);
}

static void leaves_nothing_behind_once_detached(void **state) {
    (void)state;
    struct weir *w = make(100, 8, WEIR_FULL_DENY);
    takes(w, "a", 5, WEIR_GRANTED);
    assert_int_equal(weir_private_detach(w), 5 * weir_private_unit_tokens(w)); // nobody took them
    assert_int_equal(weir_private_detach(w), 0);
    takes(w, "a", 5, WEIR_GRANTED);
    assert_int_equal(scan(w).count, 0);
    const struct wr_synced_options so = {rules, 0, 256};
    assert_int_equal(weir_private_attach(w, &so, NULL), WEIR_GRANTED);
    assert_int_equal(weir_private_attach(w, &so, NULL), WEIR_EINVAL);
    takes(w, "a", 2, WEIR_GRANTED);
    const struct wr_node_side taken = take_only(w, NULL, NULL);
    assert_int_equal(tokens_of(w, &taken), 2);
    weir_destroy(w);
}

static void refuses_a_callers_clock_and_a_debt_too_large(void **state) {
    (void)state;
    const struct weir_options o = options_at(1, WEIR_SECOND, 10);
    struct weir *w = create(&o);
    struct wr_synced_options so = {rules, 0, 256};
    struct weir_error error;
    assert_int_equal(weir_private_attach(w, &so, &error), WEIR_ECLOCK);
    weir_destroy(w);
    struct weir_options own = WEIR_OPTIONS_INIT;
    own.limit = (struct weir_limit){1, WEIR_SECOND, 10};
    w = create(&own);
    so.max_debt_tokens = UINT64_MAX / 2;
    assert_int_equal(weir_private_attach(w, &so, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "max_debt_tokens"));
    weir_destroy(w);
}

static void decides_as_a_plain_limiter_while_it_is_alone(void **state) {
    (void)state;
    struct weir *synced = make(20, 64, WEIR_FULL_DISPLACE);
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.limit = (struct weir_limit){1, WEIR_HOUR, 20};
    struct weir *plain = create(&o);
    struct random random = {7};
    for (int i = 0; i < 2000; i++) {
        struct weir_ask ask = WEIR_ASK_INIT;
        ask.key = weir_id(random_below(&random, 5));
        ask.cost = random_below(&random, 6);
        ask.kind = (enum weir_kind)random_below(&random, WEIR_REFUND + 1);
        struct weir_answer a = WEIR_ANSWER_INIT, b = WEIR_ANSWER_INIT;
        assert_int_equal(weir_do(synced, &ask, &a), weir_do(plain, &ask, &b));
        assert_int_equal(a.granted_tokens, b.granted_tokens);
        assert_int_equal(a.remaining, b.remaining);
        assert_int_equal(a.debt, b.debt);
        if (random_below(&random, 16) == 0) scan(synced);
    }
    weir_destroy(synced);
    weir_destroy(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hands_over_each_name_once),
        cmocka_unit_test(names_ids_by_their_bytes_and_long_keys_by_a_hash),
        cmocka_unit_test(takes_what_was_granted_and_denied_once),
        cmocka_unit_test(counts_large_costs_and_weights_in_the_side),
        cmocka_unit_test(takes_a_refund_off_what_is_not_reported),
        cmocka_unit_test(puts_back_what_was_not_applied),
        cmocka_unit_test(hands_a_forgotten_name_over_again),
        cmocka_unit_test(hands_a_lost_name_over_again_with_what_was_granted),
        cmocka_unit_test(a_look_at_the_names_ends_after_a_turn),
        cmocka_unit_test(a_scan_leaves_the_urgent_marks_of_others_alone),
        cmocka_unit_test(spills_what_a_reset_or_a_displacement_would_lose),
        cmocka_unit_test(charges_by_the_multiplier_and_counts_what_was_granted),
        cmocka_unit_test(denies_while_closed_and_opens_again),
        cmocka_unit_test(settles_to_what_all_nodes_have_spent),
        cmocka_unit_test(samples_denials_beyond_64_without_bias),
        cmocka_unit_test(leaves_nothing_behind_once_detached),
        cmocka_unit_test(refuses_a_callers_clock_and_a_debt_too_large),
        cmocka_unit_test(decides_as_a_plain_limiter_while_it_is_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
