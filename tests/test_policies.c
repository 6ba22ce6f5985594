// What happens to a new key whose eight places are all taken by busy ones.
#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

// One shard of two lines: every key has all eight ways.
static struct weir *create_tiny(enum weir_full_policy policy) {
    struct weir_options options = options_at(1, WEIR_SECOND, 100);
    options.capacity_keys = 1;
    options.full_policy = policy;
    struct weir *w = create(&options);
    (void)ask_at(w, WEIR_PEEK, "epoch", 0, 0);
    return w;
}

static const char *names[WR_WAYS] = {"0", "1", "2", "3", "4", "5", "6", "7"};

// Eight busy keys: key i has spent costs[i].
static void fill(struct weir *w, const uint64_t *costs) {
    for (int i = 0; i < WR_WAYS; i++)
        assert_int_equal(take_at(w, names[i], costs[i], 0), WEIR_GRANTED);
}

static const uint64_t costs[WR_WAYS] = {50, 41, 62, 33, 74, 95, 26, 87};

static void the_bucket_nearest_to_full_goes(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    fill(w, costs);
    static const uint64_t owed[] = {26, 33, 41, 50};
    static const char *gone[] = {"6", "3", "1", "0"};
    uint64_t forgiven = 0;
    for (uint64_t i = 0; i < 4; i++) {
        const uint64_t id = 1000 + i;
        // A heavy newcomer, so that it is not the nearest to full itself.
        assert_int_equal(weir_take_at(w, weir_id(id), 99, 0, NULL), WEIR_GRANTED);
        assert_int_equal(live_ways(w, weir_str(gone[i]), NULL), 0);
        forgiven += owed[i];
        assert_int_equal(stats_of(w).displaced, i + 1);
        assert_int_equal(stats_of(w).forgiven_tokens, forgiven);
        assert_int_equal(remaining_at(w, gone[i], 0), 100); // absent is full
    }
    for (int i = 0; i < WR_WAYS; i++)
        if (costs[i] > 50) assert_int_equal(remaining_at(w, names[i], 0), 100 - costs[i]);
    weir_destroy(w);
}

static void a_flood_of_new_keys_cannot_wash_out_a_heavy_hitter(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    assert_int_equal(take_at(w, "heavy", 100, 0), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "heavy", 50, 0).result, WEIR_GRANTED);
    for (uint64_t id = 0; id < 100000; id++)
        assert_int_equal(weir_take_at(w, weir_id(id), 1 + id % 50, (int64_t)id * 1000, NULL),
                         WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_PEEK, "heavy", 0, 0).answer.debt, 50);
    assert_true(stats_of(w).displaced > 90000);
    weir_destroy(w);
}

static void what_is_forgiven_is_counted_rounded_up(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    fill(w, costs);
    // Half a token has come back meanwhile: key 6 owes 25.5.
    assert_int_equal(take_at(w, "new", 99, second / 2), WEIR_GRANTED);
    assert_int_equal(stats_of(w).forgiven_tokens, 26);
    weir_destroy(w);
}

static void idle_buckets_and_announcements_make_room_first(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    fill(w, costs);
    const int64_t now = 26 * second; // key 6 is full again
    assert_int_equal(take_at(w, "new", 99, now), WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_str("6"), NULL), 0);
    assert_int_equal(stats_of(w).displaced, 0);
    assert_int_equal(stats_of(w).forgiven_tokens, 0);
    // Another's announcement goes before a bucket does.
    uint64_t count = 0;
    struct wr_pair *slots = all_slots(w, 0, &count);
    const uint64_t mine = place_of(w, weir_str("new")).fingerprint;
    for (uint64_t i = 0; i < count; i++) {
        struct wr_pair slot = wr_u128_load(&slots[i]);
        if (!wr_slot_is(slot, mine, WR_STATE_LIVE)) continue;
        const uint64_t other = place_of(w, weir_str("other")).fingerprint;
        assert_true(wr_u128_cas(&slots[i], slot, (struct wr_pair){other | WR_STATE_FRESH, 7}));
    }
    assert_int_equal(take_at(w, "newer", 99, now), WEIR_GRANTED);
    assert_int_equal(stats_of(w).displaced, 0);
    for (int i = 0; i < WR_WAYS; i++)
        if (i != 6) assert_int_equal(live_ways(w, weir_str(names[i]), NULL), 1);
    weir_destroy(w);
}

static void a_new_key_goes_to_the_line_with_fewer_busy_ways(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    uint64_t count = 0;
    struct wr_pair *slots = all_slots(w, 0, &count);
    assert_int_equal(count, WR_WAYS);
    for (uint64_t i = 0; i < WR_WAYS; i++) {
        assert_int_equal(weir_take_at(w, weir_id(i), 1, 0, NULL), WEIR_GRANTED);
        int busy[2] = {0, 0};
        for (uint64_t s = 0; s < count; s++)
            busy[s / WR_LINE_WAYS] += wr_u128_load(&slots[s]).tag != 0;
        assert_in_range(busy[0] - busy[1] + 1, 0, 2);
    }
    weir_destroy(w);
}

static void deny_answers_no_room_and_tells_when_there_is_some(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    fill(w, costs);
    const struct outcome o = ask_at(w, WEIR_TAKE, "new", 1, 0);
    assert_int_equal(o.result, WEIR_NO_ROOM);
    assert_int_equal(o.answer.granted_tokens, 0);
    assert_int_equal(o.answer.retry_after_ns, 26 * WEIR_SECOND);
    assert_int_equal(ask_at(w, WEIR_CHARGE, "new", 1, 0).result, WEIR_NO_ROOM);
    assert_int_equal(ask_at(w, WEIR_REFUND, "new", 1, 0).result, WEIR_GRANTED); // nothing to keep
    assert_int_equal(take_at(w, "new", 0, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "new", 101, 0), WEIR_NEVER);
    assert_int_equal(take_at(w, "5", 5, 0), WEIR_GRANTED); // those inside go on
    assert_int_equal(take_at(w, "new", 1, 26 * second - 1), WEIR_NO_ROOM);
    assert_int_equal(take_at(w, "new", 1, 26 * second), WEIR_GRANTED);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.no_room, 3);
    assert_int_equal(s.displaced, 0);
    weir_destroy(w);
}

static void grant_grants_without_a_bucket_and_counts_it(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_GRANT);
    fill(w, costs);
    for (int i = 0; i < 5; i++) {
        const struct outcome o = ask_at(w, WEIR_TAKE, "new", 60, 0);
        assert_int_equal(o.result, WEIR_GRANTED);
        assert_true(o.answer.untracked);
        assert_int_equal(o.answer.granted_tokens, 60);
        assert_int_equal(o.answer.retry_after_ns, 0);
    }
    assert_int_equal(live_ways(w, weir_str("new"), NULL), 0);
    assert_int_equal(take_at(w, "new", 101, 0), WEIR_NEVER);
    const struct weir_stats s = stats_of(w);
    assert_int_equal(s.untracked, 5);
    assert_int_equal(s.granted, 5 + WR_WAYS);
    assert_int_equal(s.tokens, 300 + 50 + 41 + 62 + 33 + 74 + 95 + 26 + 87);
    assert_int_equal(s.displaced, 0);
    for (int i = 0; i < WR_WAYS; i++)
        assert_int_equal(remaining_at(w, names[i], 0), 100 - costs[i]);
    assert_false(ask_at(w, WEIR_TAKE, "5", 1, 0).answer.untracked);
    weir_destroy(w);
}

static void a_peek_of_a_key_without_room_says_what_a_take_would(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    fill(w, costs);
    const struct outcome peek = ask_at(w, WEIR_PEEK, "new", 1, 0);
    const struct outcome take = ask_at(w, WEIR_TAKE, "new", 1, 0);
    assert_int_equal(take.result, WEIR_NO_ROOM);
    assert_int_equal(peek.result, take.result);
    assert_int_equal(peek.answer.retry_after_ns, take.answer.retry_after_ns);
    weir_destroy(w);
}

// Dropped at a late reading and asked again at an early one: the burst is not given twice.
static void a_bucket_dropped_late_and_asked_early_is_not_full_again(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    for (int i = 0; i < WR_WAYS; i++) assert_int_equal(take_at(w, names[i], 100, 0), WEIR_GRANTED);
    // At 150 s all are full: newcomers take their places, and leave again.
    for (uint64_t id = 0; id < WR_WAYS; id++)
        assert_int_equal(weir_take_at(w, weir_id(id), 100, 150 * second, NULL), WEIR_GRANTED);
    for (uint64_t id = 0; id < WR_WAYS; id++)
        assert_int_equal(weir_reset(w, weir_id(id)), WEIR_GRANTED);
    // By 3 s each had three tokens again, and it was full from 100 s on.
    for (int i = 0; i < WR_WAYS; i++) {
        assert_int_equal(live_ways(w, weir_str(names[i]), NULL), 0);
        assert_int_equal(remaining_at(w, names[i], 3 * second), 3);
        assert_int_equal(take_at(w, names[i], 4, 3 * second), WEIR_DENIED);
        assert_int_equal(take_at(w, names[i], 3, 3 * second), WEIR_GRANTED);
        assert_int_equal(take_at(w, names[i], 1, 3 * second), WEIR_DENIED);
    }
    assert_int_equal(remaining_at(w, "new", 100 * second), 100);
    assert_int_equal(stats_of(w).relics, 0);
    weir_destroy(w);
}

static void a_displaced_debt_is_not_given_again_at_an_earlier_reading(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DISPLACE);
    for (int i = 0; i < WR_WAYS; i++) assert_int_equal(take_at(w, names[i], 90, 0), WEIR_GRANTED);
    // At 50 s key 0 owes 40 and is displaced; that much is forgiven, and no more.
    assert_int_equal(take_at(w, "0", 0, 50 * second), WEIR_GRANTED);
    assert_int_equal(ask_at(w, WEIR_REFUND, "0", 1, 50 * second).result, WEIR_GRANTED);
    assert_int_equal(take_at(w, "new", 100, 50 * second), WEIR_GRANTED);
    assert_int_equal(live_ways(w, weir_str("0"), NULL), 0);
    assert_int_equal(stats_of(w).forgiven_tokens, 39);
    // By 0 s it had spent 89 of 100; with 39 forgiven it may have 50 at 0 s.
    assert_int_equal(ask_at(w, WEIR_TAKE, "0", 51, 0).result, WEIR_DENIED);
    assert_int_equal(ask_at(w, WEIR_TAKE, "0", 50, 0).result, WEIR_GRANTED);
    weir_destroy(w);
}

// A word from a damaged file: an hour and more ahead. Ignored, replaced, counted.
static void dropped_at_beyond_the_hour_is_a_relic(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    const struct wr_place place = place_of(w, weir_str("a"));
    const uint64_t hour = 3600 * w->scale.unit_tokens;
    atomic_store_explicit(&place.shard->dropped_at, hour + 2000, memory_order_relaxed);
    assert_int_equal(take_at(w, "a", 100, 0), WEIR_GRANTED);
    assert_true(stats_of(w).relics >= 1);
    assert_int_equal(atomic_load_explicit(&place.shard->dropped_at, memory_order_relaxed), 0);
    atomic_store_explicit(&place.shard->dropped_at, hour / 60, memory_order_relaxed);
    assert_int_equal(take_at(w, "b", 100, 0), WEIR_DENIED); // a minute ahead is honoured
    assert_int_equal(take_at(w, "b", 40, 0), WEIR_GRANTED);
    weir_destroy(w);
}

static void a_bucket_below_the_horizon_is_a_relic_and_read_as_full(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    assert_int_equal(take_at(w, "a", 100, 0), WEIR_GRANTED);
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_str("a"), &slot), 1);
    uint64_t count = 0;
    struct wr_pair *slots = all_slots(w, 0, &count);
    for (uint64_t i = 0; i < count; i++) {
        struct wr_pair damaged = {slot.tag, w->scale.horizon_units + 1};
        (void)wr_u128_cas(&slots[i], slot, damaged);
    }
    assert_int_equal(remaining_at(w, "a", 0), 100);
    assert_int_equal(take_at(w, "a", 100, 0), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_DENIED);
    assert_true(stats_of(w).relics >= 1);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bucket_nearest_to_full_goes),
        cmocka_unit_test(a_flood_of_new_keys_cannot_wash_out_a_heavy_hitter),
        cmocka_unit_test(what_is_forgiven_is_counted_rounded_up),
        cmocka_unit_test(idle_buckets_and_announcements_make_room_first),
        cmocka_unit_test(a_new_key_goes_to_the_line_with_fewer_busy_ways),
        cmocka_unit_test(deny_answers_no_room_and_tells_when_there_is_some),
        cmocka_unit_test(grant_grants_without_a_bucket_and_counts_it),
        cmocka_unit_test(a_peek_of_a_key_without_room_says_what_a_take_would),
        cmocka_unit_test(a_bucket_dropped_late_and_asked_early_is_not_full_again),
        cmocka_unit_test(a_displaced_debt_is_not_given_again_at_an_earlier_reading),
        cmocka_unit_test(dropped_at_beyond_the_hour_is_a_relic),
        cmocka_unit_test(a_bucket_below_the_horizon_is_a_relic_and_read_as_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
