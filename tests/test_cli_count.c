// test_cli_count.c - what a replay counts with, against slow models that keep everything.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cli/distinct.h"
#include "cli/fixed_window.h"
#include "cli/keys.h"
#include "cli/random.h"
#include "cli/skips.h"
#include "cli/timeline.h"
#include "cli/waits.h"
#include "cli/window.h"

#define KEYS 5
#define GRANTS 3000
#define SEEDS 40

__extension__ typedef __int128 wide;

struct grant {
    int64_t at_ns;
    uint64_t tokens;
    uint32_t key;
};

static const struct weir_weight even = {1, 1};

static struct grant next_grant(struct wr_random *random, int64_t after_ns, int64_t gap_ns) {
    struct grant grant = {after_ns, 1 + wr_random_below(random, 5),
                          (uint32_t)wr_random_below(random, KEYS)};
    if (wr_random_once_in(random, 2))
        grant.at_ns += (int64_t)wr_random_below(random, (uint64_t)gap_ns);
    return grant;
}

// ---------------------------------------------------------------------------------------------
// Windows

static uint64_t slow_sum(const struct grant *grants, size_t count, uint64_t period_ns) {
    const struct grant *last = &grants[count - 1];
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (grants[i].key == last->key && (uint64_t)(last->at_ns - grants[i].at_ns) <= period_ns)
            sum += grants[i].tokens;
    return sum;
}

static void finds_the_fullest_window_of_any_key(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct grant grants[GRANTS];
        struct wr_random random = wr_random_init(seed);
        struct wr_window window;
        uint64_t most = 0;
        int64_t now_ns = 0;
        assert_true(wr_window_init(&window, 100 * seed, KEYS, 1 << 12));
        for (size_t i = 0; i < GRANTS; i++) {
            grants[i] = next_grant(&random, now_ns, 40);
            now_ns = grants[i].at_ns;
            uint64_t sum = slow_sum(grants, i + 1, 100 * seed);
            bool more = wr_window_add(&window, grants[i].key, now_ns, grants[i].tokens, even);
            if (more != (sum > most) || window.keys[grants[i].key].tokens != sum)
                fail_msg("seed %llu, grant %zu", (unsigned long long)seed, i);
            if (sum > most) most = sum;
        }
        assert_int_equal(window.most.tokens, most);
        assert_false(window.cut);
        wr_window_fini(&window);
    }
}

static void says_when_a_window_is_a_lower_bound(void **state) {
    (void)state;
    struct wr_window window;
    assert_true(wr_window_init(&window, 1000000, 1, 1 << 10));
    for (int64_t i = 0; i < 1024; i++) wr_window_add(&window, 0, i, 1, even);
    assert_false(window.cut);
    assert_int_equal(window.most.tokens, 1024);
    wr_window_add(&window, 0, 1024, 1, even);
    assert_true(window.cut);
    assert_int_equal(window.most.tokens, 1024);
    wr_window_fini(&window);
}

static void forgets_a_key_and_its_grants_for_good(void **state) {
    (void)state;
    struct wr_window window;
    assert_true(wr_window_init(&window, 100, 2, 1 << 10));
    wr_window_add(&window, 0, 0, 7, even);
    assert_false(wr_window_is_idle(&window, 0, 100));
    wr_window_forget(&window, 0);
    assert_true(window.cut);
    wr_window_add(&window, 0, 50, 2, even); // another key, of the same number
    wr_window_add(&window, 0, 120, 1, even);
    assert_int_equal(window.keys[0].tokens, 3);
    assert_true(wr_window_is_idle(&window, 0, 300));
    wr_window_fini(&window);
}

static void compares_windows_by_their_weight(void **state) {
    (void)state;
    struct wr_window window;
    assert_true(wr_window_init(&window, 100, 2, 1 << 10));
    assert_true(wr_window_add(&window, 0, 0, 10, (struct weir_weight){2, 1}));
    assert_false(wr_window_add(&window, 1, 0, 5, even));
    assert_true(wr_window_add(&window, 1, 0, 1, even));
    assert_int_equal(window.most.tokens, 6);
    wr_window_fini(&window);
}

// ---------------------------------------------------------------------------------------------
// The fixed window

// The greatest excess over burst + rate * time of any stretch that ends with the last grant.
static wide slow_excess(const struct grant *grants, size_t count, const struct wr_rate *rate,
                        uint64_t burst) {
    const struct grant *last = &grants[count - 1];
    wide most = 0, sum = 0;
    for (size_t i = count; i-- > 0;) {
        if (grants[i].key != last->key) continue;
        sum += grants[i].tokens;
        wide allowed =
            (wide)burst * rate->period_ns + (wide)(last->at_ns - grants[i].at_ns) * rate->tokens;
        if (sum * rate->period_ns - allowed > most) most = sum * rate->period_ns - allowed;
    }
    return most;
}

static int64_t slow_window(int64_t at_ns, const struct wr_rate *rate, uint64_t burst) {
    wide product = (wide)at_ns * rate->tokens, length = (wide)burst * rate->period_ns;
    return (int64_t)(product / length - (product % length < 0));
}

static void grants_a_burst_a_window_and_finds_the_worst_edge(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct grant grants[GRANTS];
        struct wr_random random = wr_random_init(seed);
        struct wr_rate rate = {1 + wr_random_below(&random, 9), 1 + wr_random_below(&random, 90)};
        uint64_t burst = 5 + wr_random_below(&random, 10);
        int64_t windows[KEYS] = {0}, now_ns = -2000;
        uint64_t used[KEYS] = {0};
        struct wr_fixed_window counters;
        wide worst = 0;
        size_t count = 0;
        assert_true(wr_fixed_window_init(&counters, &rate, burst, KEYS));
        while (count < GRANTS) {
            struct grant ask = next_grant(&random, now_ns, 30);
            int64_t window = slow_window(ask.at_ns, &rate, burst);
            bool is_worst;
            now_ns = ask.at_ns;
            if (window != windows[ask.key]) used[ask.key] = 0;
            windows[ask.key] = window;
            bool granted = used[ask.key] + ask.tokens <= burst;
            grants[count] = ask;
            if (granted) used[ask.key] += ask.tokens;
            wide excess = granted ? slow_excess(grants, count + 1, &rate, burst) : 0;
            count += granted;
            if (wr_fixed_window_take(&counters, ask.key, now_ns, ask.tokens, &is_worst) !=
                    granted ||
                is_worst != (excess > worst))
                fail_msg("seed %llu, grant %zu", (unsigned long long)seed, count);
            if (excess > worst) worst = excess;
            if (!granted) now_ns++;
        }
        assert_true(counters.worst.excess == (wr_wide)worst);
        if (worst > 0) {
            wide allowed = (wide)burst * rate.period_ns +
                           (wide)(counters.worst.to_ns - counters.worst.from_ns) * rate.tokens;
            assert_true((wide)counters.worst.tokens * rate.period_ns - allowed == worst);
            assert_int_equal(wr_fixed_window_allowed(&counters), allowed / rate.period_ns);
        }
        wr_fixed_window_fini(&counters);
    }
}

static void lets_twice_the_burst_through_at_an_edge(void **state) {
    (void)state;
    struct wr_rate rate = {5, WEIR_SECOND};
    struct wr_fixed_window counters;
    bool worst;
    assert_true(wr_fixed_window_init(&counters, &rate, 5, 1));
    for (int i = 0; i < 6; i++)
        assert_int_equal(wr_fixed_window_take(&counters, 0, 999999999, 1, &worst), i < 5);
    for (int i = 0; i < 6; i++)
        assert_int_equal(wr_fixed_window_take(&counters, 0, 1000000000, 1, &worst), i < 5);
    assert_int_equal(counters.worst.tokens, 10);
    assert_int_equal(wr_fixed_window_allowed(&counters), 5);
    assert_int_equal(counters.worst.to_ns - counters.worst.from_ns, 1);
    wr_fixed_window_fini(&counters);
}

static void keeps_to_the_burst_without_a_rate_and_to_nothing_without_a_burst(void **state) {
    (void)state;
    struct wr_rate none = {0, WEIR_SECOND}, some = {5, WEIR_SECOND};
    struct wr_fixed_window counters;
    bool worst;
    assert_true(wr_fixed_window_init(&counters, &none, 2, 1));
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(wr_fixed_window_take(&counters, 0, i * (int64_t)WEIR_DAY, 1, &worst),
                         i < 2);
    wr_fixed_window_fini(&counters);
    assert_true(wr_fixed_window_init(&counters, &some, 0, 1));
    assert_false(wr_fixed_window_take(&counters, 0, (int64_t)WEIR_DAY, 1, &worst));
    assert_true(wr_fixed_window_take(&counters, 0, (int64_t)WEIR_DAY, 0, &worst));
    wr_fixed_window_fini(&counters);
}

// ---------------------------------------------------------------------------------------------
// Keys

static bool nobody_is_idle(void *context, uint32_t key) {
    (void)context, (void)key;
    return false;
}

static bool all_are_idle(void *context, uint32_t key) {
    (void)context, (void)key;
    return true;
}

static void note_forgotten(void *context, uint32_t key) {
    (void)key;
    ++*(uint64_t *)context;
}

static uint32_t claim(struct wr_keys *keys, uint64_t number) {
    char name[32];
    uint64_t hash[2] = {wr_random_mix(number), wr_random_mix(~number)};
    snprintf(name, sizeof(name), "key %llu", (unsigned long long)number);
    return wr_keys_claim(keys, hash, wr_text_of(name));
}

static void counts_each_key_by_itself_while_there_is_room(void **state) {
    (void)state;
    uint64_t forgotten = 0;
    struct wr_keys keys;
    assert_true(wr_keys_init(&keys, 1000,
                             (struct wr_keys_watcher){nobody_is_idle, note_forgotten, &forgotten}));
    for (uint64_t round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 1000; i++) keys.counts[claim(&keys, i)].denied += i;
    for (uint64_t i = 0; i < 1000; i++) {
        char name[32];
        const struct wr_key_count *count = &keys.counts[claim(&keys, i)];
        snprintf(name, sizeof(name), "key %llu", (unsigned long long)i);
        assert_string_equal(count->name, name);
        assert_int_equal(count->denied, 3 * i);
    }
    assert_int_equal(wr_keys_seen(&keys), 1000);
    assert_int_equal(forgotten, 0);
    assert_false(keys.forgot);
    wr_keys_fini(&keys);
}

static void a_flood_of_keys_seen_once_costs_no_denial(void **state) {
    (void)state;
    uint64_t forgotten = 0;
    struct wr_keys keys;
    assert_true(wr_keys_init(&keys, 1000,
                             (struct wr_keys_watcher){all_are_idle, note_forgotten, &forgotten}));
    for (uint64_t i = 0; i < 200000; i++) {
        keys.counts[claim(&keys, 1000000 + i)].granted++;
        keys.counts[claim(&keys, i % 500)].denied++;
    }
    assert_int_equal(keys.short_by, 0);
    assert_true(keys.forgot);
    for (uint64_t i = 0; i < 500; i++) assert_int_equal(keys.counts[claim(&keys, i)].denied, 400);
    assert_true(forgotten > 190000);
    assert_in_range(wr_keys_seen(&keys), 200500 * 3 / 4, 200500 * 5 / 4);
    wr_keys_fini(&keys);
}

static void says_how_many_denials_a_count_may_lack(void **state) {
    (void)state;
    enum { DIFFERENT = 4000, ROOM = 500 };
    for (uint64_t seed = 1; seed <= 10; seed++) {
        static uint64_t denied[DIFFERENT];
        uint64_t forgotten = 0;
        struct wr_random random = wr_random_init(seed);
        struct wr_keys keys;
        memset(denied, 0, sizeof(denied));
        assert_true(wr_keys_init(
            &keys, ROOM, (struct wr_keys_watcher){nobody_is_idle, note_forgotten, &forgotten}));
        for (int i = 0; i < 100000; i++) {
            uint64_t number = wr_random_zipf(&random, DIFFERENT);
            denied[number]++;
            keys.counts[claim(&keys, number)].denied++;
        }
        assert_true(keys.short_by > 0);
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t counted = keys.counts[claim(&keys, i)].denied;
            if (counted > denied[i] || counted + keys.short_by < denied[i])
                fail_msg("seed %llu: key %llu was denied %llu times, not %llu",
                         (unsigned long long)seed, (unsigned long long)i,
                         (unsigned long long)denied[i], (unsigned long long)counted);
        }
        assert_int_equal(keys.counts[claim(&keys, 0)].denied, denied[0]);
        wr_keys_fini(&keys);
    }
}

static void estimates_how_many_keys_are_different(void **state) {
    (void)state;
    uint64_t sum = 0, different = 0;
    for (uint64_t part = 0; part < 64; part++) {
        struct wr_distinct distinct = {0};
        uint64_t count = 100 * part;
        for (uint64_t i = 0; i < 2 * count; i++)
            wr_distinct_add(&distinct, wr_random_mix((part << 32) + i % (count > 0 ? count : 1)));
        if (count <= WR_DISTINCT_KEPT) assert_int_equal(wr_distinct_estimate(&distinct), count);
        sum += wr_distinct_estimate(&distinct);
        different += count;
    }
    assert_in_range(sum, different - different / 50, different + different / 50);
}

// ---------------------------------------------------------------------------------------------
// Time, waits, skips

static void a_timeline_loses_no_line_as_it_widens(void **state) {
    (void)state;
    static struct wr_timeline whole, parts[2];
    struct wr_random random = wr_random_init(7);
    int64_t now_ns = 0;
    wr_timeline_init(&whole);
    for (int i = 0; i < 2; i++) wr_timeline_init(&parts[i]);
    for (int i = 0; i < 20000; i++) {
        bool granted = wr_random_once_in(&random, 3);
        int part = (int)wr_random_below(&random, 2);
        if (i % 1000 == 0) now_ns = now_ns * 5 + 1;
        wr_timeline_add(&whole, now_ns, granted);
        wr_timeline_add(&parts[part], now_ns, granted);
    }
    wr_timeline_merge(&parts[0], &parts[1]);
    assert_int_equal(parts[0].used, whole.used);
    assert_int_equal(wr_timeline_width_ns(&parts[0]), wr_timeline_width_ns(&whole));
    assert_memory_equal(parts[0].steps, whole.steps, sizeof(whole.steps));
    wr_timeline_fit(&whole, 100);
    uint64_t granted = 0, denied = 0;
    for (size_t i = 0; i < whole.used; i++) {
        granted += whole.steps[i].granted;
        denied += whole.steps[i].denied;
    }
    assert_in_range(whole.used, 1, 100);
    assert_int_equal(granted + denied, 20000);
    assert_true(wr_timeline_width_ns(&whole) * whole.used > (uint64_t)now_ns);
}

static void a_timeline_reaches_as_far_as_time(void **state) {
    (void)state;
    static struct wr_timeline timeline;
    wr_timeline_init(&timeline);
    wr_timeline_add(&timeline, 0, true);
    wr_timeline_add(&timeline, INT64_MAX, false);
    assert_int_equal(timeline.steps[0].granted, 1);
    assert_int_equal(timeline.steps[timeline.used - 1].denied, 1);
}

static void steps_are_no_finer_than_the_times(void **state) {
    (void)state;
    static struct wr_timeline timeline;
    wr_timeline_init(&timeline);
    for (int64_t i = 0; i < 3; i++) wr_timeline_add(&timeline, i * (int64_t)WEIR_SECOND, true);
    wr_timeline_fit(&timeline, 400);
    assert_int_equal(wr_timeline_width_ns(&timeline), WEIR_SECOND);
    assert_int_equal(timeline.used, 3);
}

static void a_wait_is_in_the_first_range_it_fits(void **state) {
    (void)state;
    assert_int_equal(wr_wait_of(0), WR_WAIT_MS_1);
    assert_int_equal(wr_wait_of(WEIR_MILLISECOND), WR_WAIT_MS_1);
    assert_int_equal(wr_wait_of(WEIR_MILLISECOND + 1), WR_WAIT_MS_10);
    assert_int_equal(wr_wait_of(WEIR_SECOND), WR_WAIT_S_1);
    assert_int_equal(wr_wait_of(WEIR_DAY + 1), WR_WAIT_LONGER);
    assert_int_equal(wr_wait_of(WEIR_FOREVER - 1), WR_WAIT_LONGER);
    assert_int_equal(wr_wait_of(WEIR_FOREVER), WR_WAIT_NEVER);
}

static void keeps_the_first_skips_in_order_of_the_log(void **state) {
    (void)state;
    struct wr_skips skips = {0};
    static const struct {
        uint32_t file;
        uint64_t line;
    } order[] = {{0, 9}, {0, 2}, {1, 1}, {0, 5}, {1, 7}, {0, 1}, {0, 3}};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        wr_skips_add(&skips, order[i].file, order[i].line, "why");
    static const uint64_t lines[] = {1, 2, 3, 5, 9};
    assert_int_equal(skips.count, 7);
    assert_int_equal(skips.kept, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(skips.first[i].file, 0);
        assert_int_equal(skips.first[i].line, lines[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_fullest_window_of_any_key),
        cmocka_unit_test(says_when_a_window_is_a_lower_bound),
        cmocka_unit_test(forgets_a_key_and_its_grants_for_good),
        cmocka_unit_test(compares_windows_by_their_weight),
        cmocka_unit_test(grants_a_burst_a_window_and_finds_the_worst_edge),
        cmocka_unit_test(lets_twice_the_burst_through_at_an_edge),
        cmocka_unit_test(keeps_to_the_burst_without_a_rate_and_to_nothing_without_a_burst),
        cmocka_unit_test(counts_each_key_by_itself_while_there_is_room),
        cmocka_unit_test(a_flood_of_keys_seen_once_costs_no_denial),
        cmocka_unit_test(says_how_many_denials_a_count_may_lack),
        cmocka_unit_test(estimates_how_many_keys_are_different),
        cmocka_unit_test(a_timeline_loses_no_line_as_it_widens),
        cmocka_unit_test(a_timeline_reaches_as_far_as_time),
        cmocka_unit_test(steps_are_no_finer_than_the_times),
        cmocka_unit_test(a_wait_is_in_the_first_range_it_fits),
        cmocka_unit_test(keeps_the_first_skips_in_order_of_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
