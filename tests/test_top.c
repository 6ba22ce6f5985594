// The most denied keys: their order, their names, what counts, how near the counts are, and what a
// thread that was killed inside leaves behind.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static struct weir_top_key keys[WEIR_TOP_KEYS + 1];

// A limiter whose every key has one token and no other ever.
static struct weir *create_dry(void) {
    struct weir_options options = options_at(1, 30 * WEIR_DAY, 1);
    return create(&options);
}

static void refuse(struct weir *w, struct weir_key key, unsigned times) {
    for (unsigned i = 0; i <= times; i++) (void)weir_take_at(w, key, 1, 0, NULL);
}

static const struct weir_top_key *find(size_t count, const void *name, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (keys[i].length == length && memcmp(keys[i].name, name, length) == 0) return &keys[i];
    return NULL;
}

static const struct weir_top_key *only(const struct weir *w) {
    assert_int_equal(weir_top(w, keys, WEIR_TOP_KEYS), 1);
    return &keys[0];
}

static void lists_the_most_denied_first(void **state) {
    (void)state;
    struct weir *w = create_dry();
    assert_int_equal(weir_top(w, keys, WEIR_TOP_KEYS), 0);
    refuse(w, weir_str("some"), 3);
    refuse(w, weir_str("never refused"), 0);
    refuse(w, weir_str("many"), 50);
    refuse(w, weir_str("few"), 1);
    assert_int_equal(weir_top(w, keys, WEIR_TOP_KEYS), 3);
    static const char *const names[] = {"many", "some", "few"};
    static const uint64_t counts[] = {50, 3, 1};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(keys[i].name, names[i]);
        assert_int_equal(keys[i].denied, counts[i]);
        assert_int_equal(keys[i].error, 0);
        assert_false(keys[i].is_id || keys[i].truncated);
    }
    weir_destroy(w);
}

static void gives_no_more_than_asked_for(void **state) {
    (void)state;
    struct weir *w = create_dry();
    char name[8];
    for (unsigned i = 1; i <= WR_TOP_WAYS; i++) { // as many as surely find a place
        snprintf(name, sizeof name, "%u", i * 5 % 9);
        refuse(w, weir_str(name), i * 5 % 9);
    }
    const size_t all = weir_top(w, keys, WEIR_TOP_KEYS);
    for (size_t max = 0; max <= all; max++) {
        memset(keys, 0xA5, sizeof keys);
        assert_int_equal(weir_top(w, keys, max), max);
        for (size_t i = 1; i < max; i++) assert_true(keys[i - 1].denied >= keys[i].denied);
        if (max != 0) assert_string_equal(keys[0].name, "8");
        assert_int_equal((unsigned char)keys[max].name[0], 0xA5);
    }
    assert_int_equal(weir_top(w, NULL, 5), 0);
    weir_destroy(w);
}

static void a_name_is_the_bytes_of_the_key(void **state) {
    (void)state;
    char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 37);
    static const size_t lengths[] = {0, 1, 7, 8, 9, 16, 17, 87, 88, 89, 200};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct weir *w = create_dry();
        refuse(w, weir_bytes(bytes, lengths[i]), 2);
        const size_t kept = lengths[i] < WEIR_TOP_NAME_BYTES ? lengths[i] : WEIR_TOP_NAME_BYTES;
        const struct weir_top_key *key = only(w);
        assert_int_equal(key->length, kept);
        assert_memory_equal(key->name, bytes, kept);
        assert_int_equal(key->name[kept], '\0');
        assert_int_equal(key->truncated, lengths[i] > WEIR_TOP_NAME_BYTES);
        assert_false(key->is_id);
        weir_destroy(w);
    }
}

static void an_integer_is_named_in_decimal(void **state) {
    (void)state;
    static const uint64_t ids[] = {0, 7, UINT64_C(1234567890123456789), UINT64_MAX};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct weir *w = create_dry();
        refuse(w, weir_id(ids[i]), 2);
        const struct weir_top_key *key = only(w);
        char name[24];
        snprintf(name, sizeof name, "%" PRIu64, ids[i]);
        assert_string_equal(key->name, name);
        assert_int_equal(key->length, strlen(name));
        assert_true(key->is_id);
        assert_int_equal(key->id, ids[i]);
        weir_destroy(w);
    }
}

static void a_prepared_key_has_the_name_of_what_was_prepared(void **state) {
    (void)state;
    struct weir *w = create_dry();
    struct weir_prepared by_name, by_id, twice;
    weir_prepare(w, weir_str("user:7"), &by_name);
    weir_prepare(w, weir_id(UINT64_MAX), &by_id);
    weir_prepare(w, weir_prepared_key(&by_name), &twice);
    refuse(w, weir_prepared_key(&by_name), 4);
    refuse(w, weir_prepared_key(&twice), 4);
    refuse(w, weir_str("user:7"), 4);
    refuse(w, weir_prepared_key(&by_id), 2);
    assert_int_equal(weir_top(w, keys, WEIR_TOP_KEYS), 2);
    assert_string_equal(keys[0].name, "user:7");
    assert_int_equal(keys[0].denied, 14); // the second and third found it spent
    assert_string_equal(keys[1].name, "18446744073709551615");
    assert_true(keys[1].is_id);
    weir_destroy(w);
    w = create_dry();
    weir_prepare(w, weir_str("user:7"), &by_name);
    weir_prepare(w, weir_prepared_key(&by_name), &twice);
    refuse(w, weir_prepared_key(&twice), 1);
    assert_string_equal(only(w)->name, "user:7");
    weir_destroy(w);
}

static void every_kind_of_refusal_counts_and_a_peek_does_not(void **state) {
    (void)state;
    struct weir *w = create_dry();
    (void)take_at(w, "k", 1, 0);
    static const struct {
        enum weir_kind kind;
        uint64_t cost;
        bool counts;
    } asks[] = {
        {WEIR_TAKE, 1, true},    {WEIR_TAKE, 2, true},    {WEIR_TAKE_SOME, 5, true},
        {WEIR_RESERVE, 2, true}, {WEIR_PEEK, 1, false},   {WEIR_PEEK, 2, false},
        {WEIR_REFUND, 0, false}, {WEIR_CHARGE, 0, false},
    };
    uint64_t expected = 0;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        (void)ask_at(w, asks[i].kind, "k", asks[i].cost, 0);
        expected += asks[i].counts;
        if (expected != 0) assert_int_equal(only(w)->denied, expected);
    }
    const struct weir_part part = {
        w, {sizeof(struct weir_ask), weir_str("k"), 1, {0, 0}, WEIR_TAKE, 0, 0}};
    assert_int_equal(weir_take_all(&part, 1, NULL, NULL), WEIR_DENIED);
    assert_int_equal(only(w)->denied, ++expected);
    int result;
    assert_int_equal(weir_do_batch(w, &part.ask, 1, &result, NULL), WEIR_DENIED);
    assert_int_equal(only(w)->denied, ++expected);
    const struct weir_stats stats = stats_of(w);
    assert_int_equal(stats.denied + stats.never, expected);
    weir_destroy(w);
}

static void the_fast_paths_count_too(void **state) {
    (void)state;
    struct weir_options options = options_at(1, 30 * WEIR_DAY, 1);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *w = create(&options);
    struct weir_answer answer = WEIR_ANSWER_INIT;
    struct weir_ask asks[3] = {WEIR_ASK_INIT, WEIR_ASK_INIT, WEIR_ASK_INIT};
    int results[3];
    for (int i = 0; i < 3; i++) asks[i].key = weir_str("k");
    assert_int_equal(weir_take(w, weir_str("k"), 1, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take(w, weir_str("k"), 1, NULL), WEIR_DENIED);
    assert_int_equal(weir_take(w, weir_str("k"), 1, &answer), WEIR_DENIED);
    assert_int_equal(weir_do_batch(w, asks, 3, results, NULL), WEIR_DENIED);
    struct weir_lease lease;
    assert_int_equal(weir_lease_init(&lease, w, weir_str("k"), NULL), WEIR_GRANTED);
    assert_int_equal(weir_lease_take(&lease, 1, NULL), WEIR_DENIED);
    weir_lease_fini(&lease);
    assert_string_equal(only(w)->name, "k");
    assert_int_equal(only(w)->denied, stats_of(w).denied);
    assert_int_equal(only(w)->denied, 6);
    weir_destroy(w);
}

static void each_call_names_the_key_that_it_was_given(void **state) {
    (void)state;
    struct weir_options options = options_at(1, 30 * WEIR_DAY, 1);
    options.clock = WEIR_CLOCK_MONOTONIC;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_str("take"), 2, NULL), WEIR_NEVER);
    assert_int_equal(weir_take_some(w, weir_str("some"), 1, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_some(w, weir_str("some"), 1, NULL), WEIR_DENIED);
    assert_int_equal(weir_reserve(w, weir_str("reserve"), 2, 0, NULL), WEIR_NEVER);
    assert_int_equal(weir_wait(w, weir_str("wait"), 2, 0, NULL), WEIR_NEVER);
    const size_t count = weir_top(w, keys, WEIR_TOP_KEYS);
    assert_int_equal(count, 4);
    assert_non_null(find(count, "take", 4));
    assert_non_null(find(count, "some", 4));
    assert_non_null(find(count, "reserve", 7));
    assert_non_null(find(count, "wait", 4));
    weir_destroy(w);
}

static void no_room_and_a_dry_run_count_too(void **state) {
    (void)state;
    struct weir_options options = options_at(1, 30 * WEIR_DAY, 1);
    options.capacity_keys = 1; // 8 places
    options.full_policy = WEIR_FULL_DENY;
    struct weir *w = create(&options);
    for (uint64_t id = 0; id < 8; id++) (void)weir_take_at(w, weir_id(id), 1, 0, NULL);
    assert_int_equal(weir_take_at(w, weir_str("late"), 1, 0, NULL), WEIR_NO_ROOM);
    assert_string_equal(only(w)->name, "late");
    weir_destroy(w);
    options.dry_run = true;
    options.full_policy = WEIR_FULL_DISPLACE;
    w = create(&options);
    assert_int_equal(weir_take_at(w, weir_str("dry"), 1, 0, NULL), WEIR_GRANTED);
    assert_int_equal(weir_take_at(w, weir_str("dry"), 1, 0, NULL), WEIR_GRANTED);
    assert_int_equal(stats_of(w).would_deny, 1);
    assert_string_equal(only(w)->name, "dry");
    weir_destroy(w);
}

static void assert_near(uint64_t value, uint64_t truth, unsigned per_cent) {
    const uint64_t off = value > truth ? value - truth : truth - value;
    if (off * 100 > truth * per_cent)
        fail_msg("%" PRIu64 " is not within %u %% of %" PRIu64, value, per_cent, truth);
}

static void counts_stay_near_when_they_are_sampled(void **state) {
    (void)state;
    struct weir *w = create_dry();
    refuse(w, weir_str("k"), 1023);
    assert_int_equal(only(w)->denied, 1023);
    refuse(w, weir_str("k"), 1000000 - 1023);
    assert_near(only(w)->denied, stats_of(w).denied, 6);
    assert_int_equal(only(w)->error, 0);
    weir_destroy(w);
}

static void traffic_with_a_period_is_not_seen_askew(void **state) {
    (void)state;
    static const unsigned periods[] = {2, 3, 4, 7, 8, 13, 16, 21, 32, 34, 48, 55, 64};
    for (size_t p = 0; p < sizeof periods / sizeof periods[0]; p++) {
        struct weir *w = create_dry();
        const unsigned period = periods[p];
        for (unsigned i = 0; i < period * 20000; i++)
            (void)weir_take_at(w, weir_id(i % period == 0 ? 1 : 2), 1, 0, NULL);
        const size_t count = weir_top(w, keys, WEIR_TOP_KEYS);
        const struct weir_top_key *first = find(count, "1", 1), *rest = find(count, "2", 1);
        assert_non_null(first);
        assert_non_null(rest);
        assert_near(first->denied, 20000, 20);
        assert_near(rest->denied, 20000 * (period - 1), 20);
        weir_destroy(w);
    }
}

static struct wr_top *empty_top(void) {
    struct wr_top *top = aligned_alloc(64, sizeof *top);
    assert_non_null(top);
    return memset(top, 0, sizeof *top);
}

// Space saving against exact counts: keys with the odds of Zipf's law, each refusal looked at.
static void what_is_certain_is_true_and_who_is_often_denied_is_there(void **state) {
    (void)state;
    enum { NAMES = 2000, DRAWS = 25000 };
    static uint64_t truth[NAMES], hashes[NAMES];
    uint64_t of_set[WR_TOP_SETS] = {0};
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    struct wr_top *top = empty_top();
    memset(truth, 0, sizeof truth);
    for (unsigned i = 0; i < NAMES; i++) hashes[i] = random_next(&random);
    for (unsigned i = 0; i < DRAWS; i++) {
        unsigned name = (unsigned)(NAMES / (1 + random_below(&random, NAMES))) - 1;
        if (random_below(&random, 2) == 0) name = (unsigned)random_below(&random, NAMES);
        truth[name]++;
        of_set[hashes[name] % WR_TOP_SETS]++;
        assert_int_equal(wr_top_add(top, hashes[name], weir_id(name), 1, 0), 1);
    }
    const size_t count = wr_top_list(top, keys, WEIR_TOP_KEYS);
    assert_int_equal(count, WEIR_TOP_KEYS);
    uint64_t sum = 0;
    bool listed[NAMES] = {false};
    for (size_t i = 0; i < count; i++) {
        const uint64_t name = keys[i].id;
        listed[name] = true;
        sum += keys[i].denied;
        if (truth[name] > keys[i].denied || truth[name] < keys[i].denied - keys[i].error)
            fail_msg("seed %" PRIu64 ": key %" PRIu64 " was denied %" PRIu64 " times, not %" PRIu64
                     " to %" PRIu64,
                     seed, name, truth[name], keys[i].denied - keys[i].error, keys[i].denied);
    }
    assert_int_equal(sum, DRAWS);
    for (unsigned i = 0; i < NAMES; i++)
        if (truth[i] * WR_TOP_WAYS > of_set[hashes[i] % WR_TOP_SETS] && !listed[i])
            fail_msg("seed %" PRIu64 ": key %u, denied %" PRIu64 " times, is not there", seed, i,
                     truth[i]);
    free(top);
}

static void a_key_with_one_refusal_in_32_is_hardly_ever_missed(void **state) {
    (void)state;
    enum { HEAVY = 20, TABLES = 20, DRAWS = 30000 };
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    struct wr_top *top = empty_top();
    unsigned missed = 0;
    for (unsigned table = 0; table < TABLES; table++) {
        const uint64_t salt = random_next(&random);
        memset(top, 0, sizeof *top);
        for (unsigned i = 0; i < DRAWS; i++) {
            // 0 to 19 are heavy, the others all different.
            uint64_t name = random_below(&random, 32);
            if (name >= HEAVY) name = HEAVY + random_below(&random, 100000);
            struct random hash = {name ^ salt};
            (void)wr_top_add(top, random_next(&hash), weir_id(name), 1, random_next(&random));
        }
        const size_t count = wr_top_list(top, keys, WEIR_TOP_KEYS);
        unsigned there = 0;
        for (size_t i = 0; i < count; i++) there += keys[i].id < HEAVY;
        missed += HEAVY - there;
    }
    if (missed > HEAVY * TABLES / 33) // one in 100 is expected at most, and chance may treble it
        fail_msg("seed %" PRIu64 ": %u of %d were missed", seed, missed, HEAVY * TABLES);
    free(top);
}

// Those of one set, whose hashes differ in more than the set.
static uint64_t hash_in_set(uint64_t n) {
    return n * WR_TOP_SETS + 3;
}

static void the_smallest_of_a_set_gives_way_and_leaves_its_count_as_error(void **state) {
    (void)state;
    struct wr_top *top = empty_top();
    for (uint64_t n = 0; n < WR_TOP_WAYS; n++)
        (void)wr_top_add(top, hash_in_set(n), weir_id(n), n == 5 ? 10 : 100 + n, 0);
    assert_int_equal(wr_top_add(top, hash_in_set(99), weir_id(99), 1, 0), 1);
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), WR_TOP_WAYS);
    const struct weir_top_key *last = &keys[WR_TOP_WAYS - 1];
    assert_int_equal(last->id, 99);
    assert_int_equal(last->denied, 11);
    assert_int_equal(last->error, 10);
    assert_null(find(WR_TOP_WAYS, "5", 1));
    free(top);
}

static void an_entry_left_half_written_costs_only_itself(void **state) {
    (void)state;
    struct wr_top *top = empty_top();
    for (uint64_t n = 0; n < WR_TOP_WAYS; n++)
        (void)wr_top_add(top, hash_in_set(n), weir_id(n), 1, 0);
    struct wr_top_entry *set = top->entries + 3 * WR_TOP_WAYS;
    set[0].sequence++; // its thread is dead
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), WR_TOP_WAYS - 1);
    for (uint64_t n = 100; n < 120; n++)
        assert_int_equal(wr_top_add(top, hash_in_set(n), weir_id(n), 1, 0), 1);
    assert_int_equal(set[0].denied, 1);
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), WR_TOP_WAYS - 1);
    assert_non_null(find(WR_TOP_WAYS - 1, "119", 3));
    for (unsigned i = 1; i < WR_TOP_WAYS; i++) set[i].sequence++; // all of them dead
    assert_int_equal(wr_top_add(top, hash_in_set(7), weir_id(7), 1, 0), 0);
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), 0);
    assert_int_equal(wr_top_add(top, 1, weir_id(1), 1, 0), 1); // the other sets go on
    free(top);
}

static void a_damaged_entry_is_never_read_beyond_its_end(void **state) {
    (void)state;
    struct wr_top *top = empty_top();
    (void)wr_top_add(top, 1, weir_str("k"), 5, 0);
    top->entries[WR_TOP_WAYS].shape = UINT64_MAX & ~WR_TOP_IS_ID;
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), 1);
    assert_int_equal(keys[0].length, WEIR_TOP_NAME_BYTES);
    assert_string_equal(keys[0].name, "k");
    free(top);
}

static void two_entries_of_one_key_are_added_up(void **state) {
    (void)state;
    struct wr_top *top = empty_top();
    (void)wr_top_add(top, hash_in_set(1), weir_str("k"), 5, 0);
    struct wr_top_entry *set = top->entries + 3 * WR_TOP_WAYS;
    set[0].sequence++; // being written while another thread comes with the same key
    (void)wr_top_add(top, hash_in_set(1), weir_str("k"), 7, 0);
    set[0].sequence++;
    (void)wr_top_add(top, hash_in_set(2), weir_str("m"), 6, 0);
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), 2);
    assert_string_equal(keys[0].name, "k");
    assert_int_equal(keys[0].denied, 12);
    free(top);
}

static void a_large_count_is_written_seldom_and_stays_near(void **state) {
    (void)state;
    uint64_t seed = monotonic_ns();
    (void)seed_from_environment(&seed);
    struct random random = {seed};
    struct wr_top *top = empty_top();
    unsigned writes = 0;
    enum { TIMES = 2000000 };
    for (unsigned i = 0; i < TIMES; i++)
        writes += wr_top_add(top, 1, weir_str("k"), 1, random_next(&random)) != 0;
    assert_int_equal(wr_top_list(top, keys, WEIR_TOP_KEYS), 1);
    const uint64_t denied = keys[0].denied;
    if (denied < TIMES / 100 * 92 || denied > TIMES / 100 * 108)
        fail_msg("seed %" PRIu64 ": %" PRIu64 " of %d", seed, denied, TIMES);
    assert_true(writes < 60000);
    free(top);
}

static void the_fixed_part_of_a_limiter_stays_under_64_kib(void **state) {
    (void)state;
    assert_true(sizeof(struct wr_region) < 65536);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_the_most_denied_first),
        cmocka_unit_test(gives_no_more_than_asked_for),
        cmocka_unit_test(a_name_is_the_bytes_of_the_key),
        cmocka_unit_test(an_integer_is_named_in_decimal),
        cmocka_unit_test(a_prepared_key_has_the_name_of_what_was_prepared),
        cmocka_unit_test(every_kind_of_refusal_counts_and_a_peek_does_not),
        cmocka_unit_test(the_fast_paths_count_too),
        cmocka_unit_test(each_call_names_the_key_that_it_was_given),
        cmocka_unit_test(no_room_and_a_dry_run_count_too),
        cmocka_unit_test(counts_stay_near_when_they_are_sampled),
        cmocka_unit_test(traffic_with_a_period_is_not_seen_askew),
        cmocka_unit_test(what_is_certain_is_true_and_who_is_often_denied_is_there),
        cmocka_unit_test(a_key_with_one_refusal_in_32_is_hardly_ever_missed),
        cmocka_unit_test(the_smallest_of_a_set_gives_way_and_leaves_its_count_as_error),
        cmocka_unit_test(an_entry_left_half_written_costs_only_itself),
        cmocka_unit_test(a_damaged_entry_is_never_read_beyond_its_end),
        cmocka_unit_test(two_entries_of_one_key_are_added_up),
        cmocka_unit_test(a_large_count_is_written_seldom_and_stays_near),
        cmocka_unit_test(the_fixed_part_of_a_limiter_stays_under_64_kib),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
