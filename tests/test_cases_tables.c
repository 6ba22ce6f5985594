// What went wrong in other limiters' tables, in several limits at once, and in changed limits.
#include <malloc.h>

#include "support.h"

static const int64_t second = (int64_t)WEIR_SECOND;

// Elsewhere 62 million keys were 62 million entries. The number is not needed to see growth.
#define DISTINCT 2000000

static void distinct_keys_without_end_take_the_memory_given_and_no_more(void **state) {
    (void)state;
    struct counted counted;
    counted_init(&counted);
    struct weir_options options = options_at(5, WEIR_SECOND, 20);
    options.allocator = &counted.allocator;
    options.capacity_keys = 1000;
    struct weir *w = create(&options);
    const int64_t maps = counted.maps;
    const struct mallinfo2 before = mallinfo2();
    for (uint64_t id = 0; id < DISTINCT; id++)
        assert_int_equal(weir_take_at(w, weir_id(id), 1, (int64_t)id * 1000, NULL), WEIR_GRANTED);
    const struct mallinfo2 after = mallinfo2();
    assert_int_equal(counted.maps, maps);
    assert_int_equal(after.uordblks, before.uordblks); // bytes in use
    assert_int_equal(after.hblks, before.hblks);       // and mapped
    assert_true(counted.bytes <= 32 * 1000 + 65536 + 8192);
    assert_int_equal(stats_of(w).memory_bytes, counted.bytes);
    weir_destroy(w);
}

// Puts FRESH(key, nonce) into the nth way of a key, as a thread stopped after announcing leaves it.
static void announce(struct weir *w, const char *owner, const char *place_like, unsigned way,
                     uint64_t nonce) {
    const struct wr_place place = place_of(w, weir_str(place_like));
    struct wr_pair *slot = &place.line[way / WR_LINE_WAYS]->slots[way % WR_LINE_WAYS];
    const uint64_t fingerprint = place_of(w, weir_str(owner)).fingerprint;
    assert_true(wr_u128_cas(slot, (struct wr_pair){0, 0},
                            (struct wr_pair){fingerprint | WR_STATE_FRESH, nonce}));
}

// The smallest table: one shard of two lines, where every key has all eight ways.
static struct weir *create_tiny(enum weir_full_policy policy) {
    struct weir_options options = options_at(1, WEIR_SECOND, 3);
    options.capacity_keys = 1;
    options.full_policy = policy;
    struct weir *w = create(&options);
    assert_int_equal(weir_take_at(w, weir_str("epoch"), 0, 0, NULL), WEIR_GRANTED);
    return w;
}

static void an_announcement_left_behind_is_adopted_and_debited_once(void **state) {
    (void)state;
    for (unsigned way = 0; way < WR_WAYS; way++) {
        struct weir *w = create_tiny(WEIR_FULL_DENY);
        announce(w, "a", "a", way, 1000 + way);
        assert_int_equal(remaining_at(w, "a", 0), 3); // nothing is consumed yet
        assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
        assert_int_equal(live_ways(w, weir_str("a"), NULL), 1);
        assert_int_equal(remaining_at(w, "a", 0), 1);
        assert_int_equal(stats_of(w).inserted, 0); // it was announced already
        weir_destroy(w);
    }
}

static void two_announcements_of_a_key_become_one_bucket(void **state) {
    (void)state;
    for (unsigned first = 0; first < WR_WAYS - 1; first++) {
        for (unsigned other = first + 1; other < WR_WAYS; other++) {
            struct weir *w = create_tiny(WEIR_FULL_DENY);
            announce(w, "a", "a", first, 1);
            announce(w, "a", "a", other, 2);
            assert_int_equal(take_at(w, "a", 2, 0), WEIR_GRANTED);
            assert_int_equal(live_ways(w, weir_str("a"), NULL), 1);
            uint64_t count = 0, busy = 0;
            struct wr_pair *slots = all_slots(w, 0, &count);
            for (uint64_t i = 0; i < count; i++) busy += wr_u128_load(&slots[i]).tag != 0;
            assert_int_equal(busy, 1); // the other was taken away
            assert_int_equal(take_at(w, "a", 2, 0), WEIR_DENIED);
            weir_destroy(w);
        }
    }
}

// Announced by one, dropped to make room by another, and debited all the same.
static void a_drop_between_announcement_and_debit_loses_nothing(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    static const char *keys[] = {"0", "1", "2", "3", "4", "5", "6"};
    for (unsigned i = 0; i < 7; i++) assert_int_equal(take_at(w, keys[i], 3, 0), WEIR_GRANTED);
    uint64_t count = 0;
    struct wr_pair *slots = all_slots(w, 0, &count);
    struct wr_pair *left = NULL;
    for (uint64_t i = 0; i < count; i++)
        if (wr_u128_load(&slots[i]).tag == 0) left = &slots[i];
    assert_non_null(left);
    const struct wr_pair fresh = {place_of(w, weir_str("a")).fingerprint | WR_STATE_FRESH, 99};
    assert_true(wr_u128_cas(left, (struct wr_pair){0, 0}, fresh));
    assert_int_equal(take_at(w, "b", 3, 0), WEIR_GRANTED); // takes the announcement's way
    // What the stopped thread would do now: its nonce is gone.
    assert_false(wr_u128_cas(left, fresh, (struct wr_pair){fresh.tag + WR_STATE_FRESH, 0}));
    assert_int_equal(take_at(w, "a", 1, 0), WEIR_NO_ROOM);
    assert_int_equal(take_at(w, "b", 1, 0), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 2, 3 * second), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", 3 * second), 1);
    weir_destroy(w);
}

static void a_debit_outlives_every_key_that_could_ask_for_its_place(void **state) {
    (void)state;
    struct weir *w = create_tiny(WEIR_FULL_DENY);
    assert_int_equal(take_at(w, "a", 3, 0), WEIR_GRANTED);
    for (uint64_t id = 0; id < 10000; id++)
        (void)weir_take_at(w, weir_id(id), 1, (int64_t)id * 100000, NULL); // a second in all
    assert_int_equal(ask_at(w, WEIR_TAKE, "a", 3, second).answer.retry_after_ns, 2 * WEIR_SECOND);
    weir_destroy(w);
}

static void twenty_asks_of_a_user_of_1_spend_1_of_the_global_10(void **state) {
    (void)state;
    struct weir *user = create_at(1, WEIR_DAY, 1), *global = create_at(1, WEIR_DAY, 10);
    struct weir_part parts[2] = {{global, WEIR_ASK_INIT}, {user, WEIR_ASK_INIT}};
    parts[0].ask.key = weir_str("all");
    parts[1].ask.key = weir_str("user:7");
    unsigned granted = 0;
    for (int i = 0; i < 20; i++) {
        size_t refused = 99;
        const int result = weir_take_all(parts, 2, &refused, NULL);
        granted += result == WEIR_GRANTED;
        assert_int_equal(refused, result == WEIR_GRANTED ? 2 : 1);
    }
    assert_int_equal(granted, 1);
    assert_int_equal(remaining_at(global, "all", 0), 9);
    assert_int_equal(stats_of(global).tokens, 1);
    weir_destroy(user);
    weir_destroy(global);
}

static void a_change_after_idleness_gives_no_fresh_burst(void **state) {
    (void)state;
    struct weir *w = create_at(5, WEIR_SECOND, 20);
    assert_int_equal(take_at(w, "a", 20, 0), WEIR_GRANTED);
    // An hour later "a" is full: 20, not 20 and what a new limit would hand out on top.
    const int64_t hour = (int64_t)WEIR_HOUR;
    assert_int_equal(set_limit_at(w, 5, WEIR_SECOND, 500, hour), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", hour), 20);
    assert_int_equal(remaining_at(w, "idle for ever", hour), 20);
    assert_int_equal(take_at(w, "a", 20, hour), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 5, WEIR_SECOND, 20, hour), WEIR_GRANTED);
    assert_int_equal(remaining_at(w, "a", hour), 0);
    weir_destroy(w);
}

// The limiter was idle at the old rate up to the change; a reader right after it has the new one.
static void ten_billion_a_second_to_a_hundred_million_binds_at_once(void **state) {
    (void)state;
    struct weir *w = create_at(10000000000, WEIR_SECOND, 1000);
    const int64_t now = 12 * (int64_t)WEIR_HOUR;
    assert_int_equal(take_at(w, "a", 1000, now), WEIR_GRANTED);
    assert_int_equal(set_limit_at(w, 100000000, WEIR_SECOND, 1000, now), WEIR_GRANTED);
    assert_int_equal(take_at(w, "a", 1, now + 9), WEIR_DENIED);
    assert_int_equal(take_at(w, "a", 1, now + 10), WEIR_GRANTED);
    assert_int_equal(granted_of(w, "a", 10000, now + 11, 1), 1000);
    weir_destroy(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_keys_without_end_take_the_memory_given_and_no_more),
        cmocka_unit_test(an_announcement_left_behind_is_adopted_and_debited_once),
        cmocka_unit_test(two_announcements_of_a_key_become_one_bucket),
        cmocka_unit_test(a_drop_between_announcement_and_debit_loses_nothing),
        cmocka_unit_test(a_debit_outlives_every_key_that_could_ask_for_its_place),
        cmocka_unit_test(twenty_asks_of_a_user_of_1_spend_1_of_the_global_10),
        cmocka_unit_test(a_change_after_idleness_gives_no_fresh_burst),
        cmocka_unit_test(ten_billion_a_second_to_a_hundred_million_binds_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
