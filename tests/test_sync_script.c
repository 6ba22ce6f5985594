// The server script in a real redis-server: the cases with known right values, and its model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sync_twin.h"

static void a_cost_moves_an_empty_key_and_a_repeat_does_not(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    assert_int_equal(twin_report_one(&twin, 0, 5, 3000000, TWIN_CAP_US, 0, 1), 3000000);
    assert_int_equal(twin.marker_seq, -1);
    const int64_t end_us = twin.redis_us + 3000000;
    int64_t rel_us = twin_report_one(&twin, 0, 5, 3000000, TWIN_CAP_US, 0, 1);
    assert_int_equal(rel_us, end_us - twin.redis_us);
    assert_int_equal(twin.marker_seq, 5);
    rel_us = twin_report_one(&twin, 0, 4, 9000000, TWIN_CAP_US, 0, 1);
    assert_int_equal(rel_us, end_us - twin.redis_us);
    assert_int_equal(twin_report_one(&twin, 1, 1, 9000000, 10000000, 0, 1), 10000000);
    twin_close(&twin);
}

static void a_backdated_cost_below_now_is_kept(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    char name[64];
    assert_int_equal(twin_report_one(&twin, 0, 1, 50000, TWIN_CAP_US, 100000, 1), -50000);
    twin_key_name(&twin, 0, name);
    assert_true(test_redis_integer(twin.redis, "PTTL %s", name) > 0);
    // backdated reports of two nodes add up
    const int64_t first_us = twin.buckets[0].tat_us;
    twin_report_one(&twin, 1, 1, 50000, TWIN_CAP_US, 900000, 1);
    assert_int_equal(twin.buckets[0].tat_us, first_us + 50000);
    twin_close(&twin);
}

static void sequence_numbers_above_10_to_the_14_are_exact(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    const uint64_t seq = (UINT64_C(1) << 53) - 3;
    twin_report_one(&twin, 0, seq, 1000000, TWIN_CAP_US, 0, 1);
    const int64_t tat_us = twin.buckets[0].tat_us;
    twin_report_one(&twin, 0, seq, 1000000, TWIN_CAP_US, 0, 1);
    assert_int_equal(twin.buckets[0].tat_us, tat_us);
    twin_report_one(&twin, 0, seq + 1, 1000000, TWIN_CAP_US, 0, 1);
    assert_int_equal(twin.buckets[0].tat_us, tat_us + 1000000);
    twin_close(&twin);
}

static void a_damaged_bucket_is_read_as_full(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    char name[64];
    twin_report_one(&twin, 0, 1, 1000000, TWIN_CAP_US, 0, 1);
    twin_key_name(&twin, 0, name);
    test_redis_do(twin.redis, "SETRANGE %s 0 %s", name, "\xff\xff\xff\xff\xff\xff\xff\xff");
    twin.buckets[0].tat_us = 0;
    const int64_t rel_us = twin_report_one(&twin, 0, 2, 5000, TWIN_CAP_US, 0, 1);
    assert_int_equal(rel_us, 5000);
    twin_close(&twin);
}

static void demand_alone_leaves_the_time_alone(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    twin_report_one(&twin, 0, 1, 2000000, TWIN_CAP_US, 0, 1);
    const int64_t tat_us = twin.buckets[0].tat_us;
    twin_report_one(&twin, 0, 2, 0, TWIN_CAP_US, 0, 1000);
    assert_int_equal(twin.buckets[0].tat_us, tat_us);
    twin_close(&twin);
}

static void costs_of_142_years_are_exact(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    const int64_t cap_us = (INT64_C(1) << 52) + 1000 * SECOND_US;
    int64_t rel_us = twin_report_one(&twin, 0, 1, INT64_C(1) << 52, cap_us, 0, 1);
    assert_int_equal(rel_us, INT64_C(1) << 52);
    const int64_t end_us = twin.redis_us + (INT64_C(1) << 52);
    rel_us = twin_report_one(&twin, 0, 2, 1, cap_us, 0, 1);
    assert_int_equal(rel_us, end_us + 1 - twin.redis_us);
    twin_close(&twin);
}

static bool epochs_pass(struct twin *twin) {
    const struct sync_report nothing = {.cap_us = TWIN_CAP_US, .burst_us = TWIN_CAP_US,
                                        .generation = 1};
    const int key = 0;
    twin_report_one(twin, 0, 1, 0, TWIN_CAP_US, 0, 5);
    const int64_t first = twin->redis_us / twin->epoch_us;
    // Repeats change nothing; ask until the server's clock is in the next epoch.
    while (twin->redis_us / twin->epoch_us == first)
        twin_report(twin, 0, 1, &key, &nothing, 1);
    twin_report_one(twin, 0, 2, 0, TWIN_CAP_US, 0, 2);
    return twin->redis_us / twin->epoch_us == first + 1;
}

static void demand_is_kept_for_this_epoch_and_the_one_before(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct twin twin = twin_open(i == 0 ? 200000 : SECOND_US);
        while (!epochs_pass(&twin)) { // the machine slept through an epoch: once more
            twin_close(&twin);
            twin = twin_open(twin.epoch_us);
        }
        assert_int_equal(twin.replies[0].previous_tokens, 5);
        assert_int_equal(twin.replies[0].current_tokens, 2);
        twin_close(&twin);
    }
}

static void a_bucket_reported_in_every_epoch_lives_on(void **state) {
    (void)state;
    struct twin twin = twin_open(50000);
    const struct sync_report nothing = {.cap_us = TWIN_CAP_US, .burst_us = TWIN_CAP_US,
                                        .generation = 1};
    const int key = 0;
    for (uint64_t seq = 1; seq <= 12; seq++) {
        twin_report_one(&twin, 0, seq, 0, TWIN_CAP_US, 0, 1); // checks its life
        const int64_t epoch = twin.redis_us / twin.epoch_us;
        while (twin.redis_us / twin.epoch_us == epoch)
            twin_report(&twin, 0, seq, &key, &nothing, 1);
    }
    twin_close(&twin);
}

static void epochs_of_a_microsecond_wrap_at_32_bits(void **state) {
    (void)state;
    struct twin twin = twin_open(1);
    twin_report_one(&twin, 0, 1, 30 * SECOND_US, TWIN_CAP_US, 0, 5);
    assert_true(twin.redis_us > UINT32_MAX);
    twin_close(&twin);
}

static void a_deleted_key_is_unknown(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    twin_report_one(&twin, 0, 1, 2000000, TWIN_CAP_US, 0, 1);
    test_redis_do(twin.redis, "FLUSHALL");
    twin.buckets[0] = (struct sync_bucket){0};
    twin.markers[0] = -1;
    twin_report_one(&twin, 0, 2, 0, TWIN_CAP_US, 0, 1);
    assert_true(twin.replies[0].unknown);
    twin_close(&twin);
}

static void a_new_limit_clamps_once_and_an_old_one_cannot_undo_it(void **state) {
    (void)state;
    struct twin twin = twin_open(SECOND_US);
    const int key = 0;
    const int64_t day_us = 86400 * SECOND_US;
    struct sync_report slow = {.cost_us = day_us, .cap_us = 10 * day_us, .burst_us = day_us,
                               .generation = 1, .demand = 1};
    struct sync_report fast = {.cost_us = 0, .cap_us = 2000000, .burst_us = 1000000,
                               .generation = 2, .demand = 1};
    twin_report(&twin, 0, 1, &key, &slow, 1);
    assert_int_equal(twin.replies[0].rel_us, day_us);
    twin_report(&twin, 1, 1, &key, &fast, 1);
    assert_int_equal(twin.replies[0].rel_us, 2000000);
    twin_report(&twin, 0, 2, &key, &slow, 1);
    assert_true(twin.replies[0].rel_us <= 2000000);
    slow.generation = 3;
    twin_report(&twin, 0, 3, &key, &slow, 1);
    assert_true(twin.replies[0].rel_us > day_us);
    twin_close(&twin);
}

static struct sync_report random_report(uint32_t generation) {
    const int64_t scale = INT64_C(1) << rand() % 40;
    struct sync_report report = {
        .cost_us = rand() % 3 == 0 ? 0 : rand() % 1000 * scale / 500,
        .burst_us = rand() % 1000 * scale / 100,
        .generation = generation,
        .age_us = rand() % 2000000,
        .demand = rand() % 50 == 0 ? UINT32_MAX : (uint32_t)(rand() % 50),
        .backlog = rand() % 4 == 0,
    };
    report.cap_us = report.burst_us + rand() % 1000 * scale / 100;
    return report;
}

// An hour behind, so that no key expires between two calls however slow the machine is.
static void put_all_behind(struct twin *twin) {
    const int keys[TWIN_KEYS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct sync_report reports[TWIN_KEYS];
    for (int i = 0; i < TWIN_KEYS; i++)
        reports[i] = (struct sync_report){.cost_us = 3600 * SECOND_US,
                                          .cap_us = 7200 * SECOND_US, .generation = 1};
    if (!twin_report(twin, 0, 1, keys, reports, TWIN_KEYS)) fail_msg("%s", twin->error);
}

static void random_reports_do_as_the_model_says(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 16; seed++) {
        srand(seed);
        // Odd seeds roll through many epochs; even ones change limits and let TAT fall behind.
        struct twin twin = twin_open(seed % 2 == 1 ? 3000 : 30 * SECOND_US);
        uint64_t seqs[TWIN_NODES] = {10, 10, 10};
        if (seed % 2 == 1) put_all_behind(&twin);
        for (int i = 0; i < 150; i++) {
            struct sync_report reports[TWIN_KEYS];
            int keys[TWIN_KEYS];
            const int node = rand() % TWIN_NODES, first = rand() % TWIN_KEYS;
            const int count = rand() % (TWIN_KEYS + 1);
            for (int k = 0; k < count; k++) {
                const uint32_t generation = (uint32_t)(rand() % 20 == 0 ? i : i / 2);
                keys[k] = (first + k) % TWIN_KEYS;
                reports[k] = random_report(seed % 2 == 1 ? 1 : generation);
            }
            if (rand() % 4 != 0) seqs[node]++;
            const uint64_t back = rand() % 5 == 0 ? 1 : 0;
            if (!twin_report(&twin, node, seqs[node] - back, keys, reports, (size_t)count))
                fail_msg("seed %u, call %d: %s", seed, i, twin.error);
        }
        twin_close(&twin);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cost_moves_an_empty_key_and_a_repeat_does_not),
        cmocka_unit_test(a_backdated_cost_below_now_is_kept),
        cmocka_unit_test(sequence_numbers_above_10_to_the_14_are_exact),
        cmocka_unit_test(a_damaged_bucket_is_read_as_full),
        cmocka_unit_test(demand_alone_leaves_the_time_alone),
        cmocka_unit_test(costs_of_142_years_are_exact),
        cmocka_unit_test(demand_is_kept_for_this_epoch_and_the_one_before),
        cmocka_unit_test(a_bucket_reported_in_every_epoch_lives_on),
        cmocka_unit_test(epochs_of_a_microsecond_wrap_at_32_bits),
        cmocka_unit_test(a_deleted_key_is_unknown),
        cmocka_unit_test(a_new_limit_clamps_once_and_an_old_one_cannot_undo_it),
        cmocka_unit_test(random_reports_do_as_the_model_says),
    };
    return cmocka_run_group_tests(tests, twin_start_server, twin_stop_server);
}
