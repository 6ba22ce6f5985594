// test_cli_trace.c - invented workloads are the same everywhere, and have the shape they claim.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include <weir.h>

#include "numbers.h"
#include "poisson.h"
#include "trace_run.h"

static struct run run_kind(enum wr_trace_kind kind) {
    struct wr_trace_options options = wr_trace_defaults(kind);
    return run_trace(&options);
}

static uint64_t digest_of(const struct wr_trace_options *options, enum wr_trace_format format) {
    size_t length = 0;
    char *text = text_of(options, format, &length);
    uint64_t digest = XXH64(text, length, 0);
    free(text);
    return digest;
}

static size_t count_between(const struct run *run, uint64_t from_ns, uint64_t to_ns, int sender) {
    uint64_t start_ns = wr_trace_defaults(WR_TRACE_STEADY).start_ns;
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++) {
        uint64_t at_ns = run->events[i].time_ns - start_ns;
        if (at_ns < from_ns || at_ns >= to_ns) continue;
        count += sender < 0 || run->events[i].sender == sender;
    }
    return count;
}

static size_t distinct_keys(const struct run *run, enum wr_trace_sender sender) {
    uint64_t *keys = calloc(run->count + 1, sizeof(*keys));
    size_t count = 0;
    assert_non_null(keys);
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i].sender == sender) keys[count++] = run->events[i].key;
    size_t different = distinct(keys, count);
    free(keys);
    return different;
}

// ---------------------------------------------------------------------------------------------
// All kinds

// These change only when a workload is changed on purpose; never with a compiler or a machine.
static void a_seed_gives_the_bytes_it_always_gave(void **state) {
    (void)state;
    static const uint64_t expected[WR_TRACE_KIND_COUNT] = {
        [WR_TRACE_FLASH_SALE] = UINT64_C(0x1be849c60be9e4f3),
        [WR_TRACE_STEADY] = UINT64_C(0x5537eee3e54eda98),
        [WR_TRACE_ATTACK] = UINT64_C(0x65f7b809da1f277e),
        [WR_TRACE_TYPING] = UINT64_C(0x71ff4c767bb43088),
    };
    for (unsigned kind = 0; kind < WR_TRACE_KIND_COUNT; kind++) {
        struct wr_trace_options options = wr_trace_defaults((enum wr_trace_kind)kind);
        uint64_t digest = digest_of(&options, WR_TRACE_FORMAT_COMBINED);
        assert_int_equal(digest, digest_of(&options, WR_TRACE_FORMAT_COMBINED));
        if (digest != expected[kind])
            fail_msg("kind %u: 0x%016llx", kind, (unsigned long long)digest);
    }
}

static void another_seed_gives_other_bytes(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < WR_TRACE_KIND_COUNT; kind++) {
        struct wr_trace_options options = wr_trace_defaults((enum wr_trace_kind)kind);
        uint64_t digest = digest_of(&options, WR_TRACE_FORMAT_CSV);
        options.seed = 2;
        assert_int_not_equal(digest, digest_of(&options, WR_TRACE_FORMAT_CSV));
    }
}

static void times_are_in_order_in_range_and_of_the_resolution(void **state) {
    (void)state;
    static const uint64_t resolutions_ns[] = {1, 1000, 1000000, 1000000000};
    for (unsigned kind = 0; kind < WR_TRACE_KIND_COUNT; kind++) {
        for (size_t r = 0; r < 4; r++) {
            struct wr_trace_options options = wr_trace_defaults((enum wr_trace_kind)kind);
            options.resolution_ns = resolutions_ns[r];
            struct run run = run_trace(&options);
            uint64_t last_ns = options.start_ns;
            for (size_t i = 0; i < run.count; i++) {
                assert_true(run.events[i].time_ns >= last_ns);
                last_ns = run.events[i].time_ns;
                assert_int_equal(last_ns % resolutions_ns[r], 0);
            }
            assert_true(run.count > 1000);
            assert_true(last_ns < options.start_ns + options.duration_ns);
            free(run.events);
        }
    }
}

static int by_time_and_content(const void *a, const void *b) {
    const struct wr_trace_event *x = a, *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->item != y->item) return x->item < y->item ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->page - y->page;
}

static void jitter_changes_the_order_and_nothing_else(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < WR_TRACE_KIND_COUNT; kind++) {
        struct wr_trace_options options = wr_trace_defaults((enum wr_trace_kind)kind);
        struct run plain = run_trace(&options);
        options.jitter_ns = WEIR_SECOND;
        struct run shuffled = run_trace(&options);
        uint64_t newest_ns = 0;
        size_t late = 0;
        for (size_t i = 0; i < shuffled.count; i++) {
            uint64_t time_ns = shuffled.events[i].time_ns;
            late += time_ns < newest_ns;
            if (time_ns > newest_ns) newest_ns = time_ns;
            assert_true(newest_ns - time_ns < options.jitter_ns);
        }
        assert_true(late > shuffled.count / 2);
        assert_int_equal(plain.count, shuffled.count);
        qsort(plain.events, plain.count, sizeof(*plain.events), by_time_and_content);
        qsort(shuffled.events, plain.count, sizeof(*plain.events), by_time_and_content);
        for (size_t i = 0; i < plain.count; i++)
            assert_int_equal(by_time_and_content(&plain.events[i], &shuffled.events[i]), 0);
        free(plain.events);
        free(shuffled.events);
    }
}

// ---------------------------------------------------------------------------------------------
// Steady

static void steady_keeps_its_rate(void **state) {
    (void)state;
    struct run run = run_kind(WR_TRACE_STEADY);
    assert_poisson(run.count, 60 * 200, 4);
    for (uint64_t i = 0; i < 60; i++)
        assert_poisson(count_between(&run, i * WEIR_SECOND, (i + 1) * WEIR_SECOND, -1), 200, 5);
    free(run.events);
}

static void rates_of_one_a_day_and_a_hundred_million_a_second_are_kept(void **state) {
    (void)state;
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_STEADY);
    options.rate = (struct wr_rate){1, WEIR_DAY};
    options.duration_ns = 1000 * WEIR_DAY;
    struct run run = run_trace(&options);
    assert_poisson(run.count, 1000, 4);
    free(run.events);
    options.rate = (struct wr_rate){100000000, WEIR_SECOND};
    options.duration_ns = WEIR_MILLISECOND;
    run = run_trace(&options);
    assert_poisson(run.count, 100000, 4);
    free(run.events);
}

static void users_follow_zipfs_law_and_stay_below_keys(void **state) {
    (void)state;
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_STEADY);
    options.keys = 50;
    options.rate.tokens = 2000;
    struct run run = run_trace(&options);
    size_t counts[50] = {0};
    double all = 0;
    for (size_t i = 0; i < run.count; i++) {
        assert_int_equal(run.events[i].sender, WR_TRACE_USER);
        assert_true(run.events[i].key < 50);
        counts[run.events[i].key]++;
    }
    for (int i = 0; i < 50; i++) all += 1.0 / (i + 1);
    for (int i = 0; i < 50; i++) assert_poisson(counts[i], (double)run.count / all / (i + 1), 5);
    free(run.events);
}

// ---------------------------------------------------------------------------------------------
// Flash sale

static void flash_sale_spikes_to_thirty_times_and_decays(void **state) {
    (void)state;
    struct run run = run_kind(WR_TRACE_FLASH_SALE);
    const uint64_t s = WEIR_SECOND; // a 60th of the duration
    assert_poisson(count_between(&run, 0, 20 * s, -1), 20 * 200, 4);
    assert_poisson(count_between(&run, 20 * s, 21 * s, -1), 15.5 * 200, 4);
    assert_poisson(count_between(&run, 21 * s, 31 * s, -1), 10 * 6000, 4);
    // 29 rates halved every 4 s, on straight lines between: (29 + 14.5) / 2 * 4, and so on.
    double extra = 29;
    for (uint64_t at = 31; at + 4 <= 60; at += 4, extra /= 2)
        assert_poisson(count_between(&run, at * s, (at + 4) * s, -1),
                       200 * (4 + (extra + extra / 2) / 2 * 4), 4);
    free(run.events);
}

static size_t most_of_a_user(const struct run *run) {
    size_t counts[1000] = {0}, most = 0;
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i].sender == WR_TRACE_USER) counts[run->events[i].key]++;
    for (size_t i = 0; i < 1000; i++) most = counts[i] > most ? counts[i] : most;
    return most;
}

static size_t fewest_of_a_bot(const struct run *run) {
    size_t counts[WR_TRACE_BOTS] = {0}, fewest = SIZE_MAX;
    for (size_t i = 0; i < run->count; i++)
        if (run->events[i].sender == WR_TRACE_BOT) counts[run->events[i].key % WR_TRACE_BOTS]++;
    for (size_t i = 0; i < WR_TRACE_BOTS; i++) fewest = counts[i] < fewest ? counts[i] : fewest;
    return fewest;
}

static void flash_sale_has_heavy_hitters_and_one_time_keys(void **state) {
    (void)state;
    struct run run = run_kind(WR_TRACE_FLASH_SALE);
    const uint64_t s = WEIR_SECOND;
    double crowd = 10 * 29 * 200;
    assert_poisson(count_between(&run, 21 * s, 31 * s, WR_TRACE_BOT), crowd * 0.2, 4);
    assert_poisson(count_between(&run, 21 * s, 31 * s, WR_TRACE_PASSER_BY), crowd * 0.4, 4);
    assert_int_equal(count_between(&run, 0, 20 * s, WR_TRACE_USER),
                     count_between(&run, 0, 20 * s, -1));
    assert_int_equal(distinct_keys(&run, WR_TRACE_BOT), WR_TRACE_BOTS);
    assert_int_equal(distinct_keys(&run, WR_TRACE_PASSER_BY),
                     count_between(&run, 0, 60 * s, WR_TRACE_PASSER_BY));
    assert_true(fewest_of_a_bot(&run) > most_of_a_user(&run));
    free(run.events);
}

// ---------------------------------------------------------------------------------------------
// Attack

static void attackers_never_repeat_and_users_go_on(void **state) {
    (void)state;
    struct run run = run_kind(WR_TRACE_ATTACK);
    const uint64_t s = WEIR_SECOND;
    assert_int_equal(count_between(&run, 0, 15 * s, WR_TRACE_ATTACKER), 0);
    assert_int_equal(count_between(&run, 45 * s, 60 * s, WR_TRACE_ATTACKER), 0);
    size_t attackers = count_between(&run, 15 * s, 45 * s, WR_TRACE_ATTACKER);
    assert_poisson(attackers, 30 * 2000, 4);
    assert_int_equal(distinct_keys(&run, WR_TRACE_ATTACKER), attackers);
    for (uint64_t at = 0; at < 60; at += 15)
        assert_poisson(count_between(&run, at * s, (at + 15) * s, WR_TRACE_USER), 15 * 200, 4);
    free(run.events);
}

// ---------------------------------------------------------------------------------------------
// Typing

// An exact bucket in 1 / 10^9 tokens: at 5/s a nanosecond brings 5.
struct bucket {
    uint64_t level;
    uint64_t at_ns;
    size_t denied;
    size_t asked;
};

static void ask(struct bucket *bucket, uint64_t now_ns, uint64_t tokens_a_second) {
    const uint64_t full = WR_TRACE_TYPING_BURST * UINT64_C(1000000000);
    uint64_t elapsed_ns = now_ns - bucket->at_ns;
    if (bucket->asked == 0 || elapsed_ns > full) bucket->level = full;
    else bucket->level += elapsed_ns * tokens_a_second;
    if (bucket->level > full) bucket->level = full;
    bucket->at_ns = now_ns;
    bucket->asked++;
    if (bucket->level >= 1000000000) bucket->level -= 1000000000;
    else bucket->denied++;
}

static void typing_users_fit_their_limit_and_one_in_ten_does_not(void **state) {
    (void)state;
    static const uint64_t resolutions_ns[] = {1, 1000000, 1000000000};
    static const uint64_t rates[] = {5, 7, 300};
    // Not 300/s in whole seconds: no more than the burst fits into one of them.
    for (size_t i = 0; i < 8; i++) {
        struct wr_trace_options options = wr_trace_defaults(WR_TRACE_TYPING);
        struct bucket buckets[50] = {{0, 0, 0, 0}};
        options.resolution_ns = resolutions_ns[i % 3];
        options.rate.tokens = rates[i / 3];
        options.duration_ns = 200 * WEIR_SECOND * 5 / rates[i / 3];
        struct run run = run_trace(&options);
        for (size_t e = 0; e < run.count; e++)
            ask(&buckets[run.events[e].key], run.events[e].time_ns, rates[i / 3]);
        for (size_t user = 0; user < 50; user++) {
            assert_true(buckets[user].asked > 100);
            if (user % 10 == 1) assert_true(buckets[user].denied > buckets[user].asked / 10);
            else assert_int_equal(buckets[user].denied, 0);
        }
        free(run.events);
    }
}

static void typing_users_burst_to_twenty_at_five_a_second(void **state) {
    (void)state;
    struct wr_trace_options options = wr_trace_defaults(WR_TRACE_TYPING);
    options.duration_ns = 600 * WEIR_SECOND;
    options.keys = 1;
    struct run run = run_trace(&options);
    size_t longest = 0, length = 1, paced = 0;
    for (size_t i = 1; i < run.count; i++) {
        uint64_t gap_ns = run.events[i].time_ns - run.events[i - 1].time_ns;
        length = gap_ns <= 100 * WEIR_MILLISECOND ? length + 1 : 1;
        if (length > longest) longest = length;
        paced += gap_ns >= 150 * WEIR_MILLISECOND && gap_ns <= 250 * WEIR_MILLISECOND;
    }
    assert_in_range(longest, 15, WR_TRACE_TYPING_BURST);
    assert_true(paced > run.count / 2);
    free(run.events);
}

// ---------------------------------------------------------------------------------------------
// Refusals

static void assert_refused(const struct wr_trace_options *options, const char *word) {
    struct wr_fault fault = {""};
    struct wr_trace *trace = NULL;
    assert_false(wr_trace_create(&trace, options, &fault));
    assert_null(trace);
    if (strstr(fault.text, word) == NULL) fail_msg("'%s' is not in '%s'", word, fault.text);
}

static void refuses_options_out_of_range(void **state) {
    (void)state;
    const struct wr_trace_options good = wr_trace_defaults(WR_TRACE_STEADY);
    struct wr_trace_options bad = good;
#define REFUSED(field, value, word) (bad = good, bad.field = (value), assert_refused(&bad, word))
    REFUSED(kind, WR_TRACE_KIND_COUNT, "kind");
    REFUSED(rate.tokens, 0, "rate is 0");
    REFUSED(rate.tokens, 100000001, "above 100M/s");
    REFUSED(rate.tokens, WEIR_UNLIMITED_TOKENS, "above 100M/s");
    REFUSED(rate.period_ns, 0, "rate is 0");
    REFUSED(rate.period_ns, 366 * WEIR_DAY + 1, "366 days");
    REFUSED(keys, 0, "16777216");
    REFUSED(keys, 16777217, "16777216");
    REFUSED(duration_ns, 0, "duration is 0");
    REFUSED(duration_ns, UINT64_MAX, "2115");
    REFUSED(start_ns, UINT64_MAX, "2115");
    REFUSED(jitter_ns, UINT64_MAX, "2115");
    REFUSED(resolution_ns, 0, "resolution");
    REFUSED(resolution_ns, 10, "resolution");
#undef REFUSED
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_bytes_it_always_gave),
        cmocka_unit_test(another_seed_gives_other_bytes),
        cmocka_unit_test(times_are_in_order_in_range_and_of_the_resolution),
        cmocka_unit_test(jitter_changes_the_order_and_nothing_else),
        cmocka_unit_test(steady_keeps_its_rate),
        cmocka_unit_test(rates_of_one_a_day_and_a_hundred_million_a_second_are_kept),
        cmocka_unit_test(users_follow_zipfs_law_and_stay_below_keys),
        cmocka_unit_test(flash_sale_spikes_to_thirty_times_and_decays),
        cmocka_unit_test(flash_sale_has_heavy_hitters_and_one_time_keys),
        cmocka_unit_test(attackers_never_repeat_and_users_go_on),
        cmocka_unit_test(typing_users_fit_their_limit_and_one_in_ten_does_not),
        cmocka_unit_test(typing_users_burst_to_twenty_at_five_a_second),
        cmocka_unit_test(refuses_options_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
