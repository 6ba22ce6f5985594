// Limits that change under a sync: between a token a day and a thousand a second, and often.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "sync_fixture.h"

#define NODES 2
#define BURST 10

static void nap_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); // the load's own pace
}

static struct node open_up_to(struct weir_limit limit, uint64_t most_a_second, const char *name) {
    struct node node;
    struct weir_options plain = WEIR_OPTIONS_INIT;
    struct weir_sync_limiter_options attached = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    const struct weir_sync_options options = node_options(url);
    plain.limit = limit;
    plain.max_rate_tokens = most_a_second;
    plain.max_rate_period_ns = WEIR_SECOND;
    attached.max_debt_tokens = BURST;
    assert_int_equal(weir_create(&node.limiter, &plain, NULL), WEIR_GRANTED);
    assert_int_equal(weir_sync_create(&node.sync, &options, NULL), WEIR_GRANTED);
    assert_int_equal(weir_sync_attach(node.sync, node.limiter, name, &attached, NULL),
                     WEIR_GRANTED);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    return node;
}

struct fleet {
    struct node nodes[NODES];
    uint64_t granted;
};

static void ask_for(struct fleet *fleet, int64_t us) {
    const int64_t until_us = test_now_us() + us;
    do {
        for (int i = 0; i < NODES; i++)
            fleet->granted += node_ask(&fleet->nodes[i], weir_str("k"), 5);
        nap_ms(1);
    } while (test_now_us() < until_us);
}

static void change(struct fleet *fleet, struct weir_limit limit, uint32_t generation) {
    for (int i = 0; i < NODES; i++)
        assert_int_equal(weir_sync_set_limit(fleet->nodes[i].sync, fleet->nodes[i].limiter, &limit,
                                             generation, NULL),
                         WEIR_GRANTED);
}

static double greatest(const struct fleet *fleet, bool mint) {
    double most = 0;
    for (int i = 0; i < NODES; i++) {
        const struct weir_sync_limiter_stats stats = node_limiter_stats(&fleet->nodes[i]);
        const double bound = mint ? stats.mint_bound_tokens : stats.excess_bound_tokens;
        if (bound > most) most = bound;
    }
    return most;
}

static void wait_for_a_grant(struct fleet *fleet) {
    const uint64_t before = fleet->granted;
    const int64_t start_us = test_now_us();
    while (fleet->granted == before) {
        ask_for(fleet, 0);
        if (test_now_us() - start_us > 10000000) fail_msg("locked out");
    }
}

static void a_token_a_day_to_a_thousand_a_second_and_back_locks_nobody_out(void **state) {
    (void)state;
    const struct weir_limit slow = {1, WEIR_DAY, BURST}, fast = {1000, WEIR_SECOND, BURST};
    struct fleet fleet = {{open_up_to(slow, 1000, "days"), open_up_to(slow, 1000, "days")}, 0};
    for (int i = 0; i < NODES; i++) node_wait(&fleet.nodes[i], node_is_connected, "connected");
    for (uint32_t round = 0; round < 3; round++) {
        const double allowed = BURST + greatest(&fleet, false) + greatest(&fleet, true);
        fleet.granted = 0;
        ask_for(&fleet, 150000); // a burst, and what each node did not know of: days behind
        assert_true((double)fleet.granted <= allowed + (NODES - 1) * BURST);
        change(&fleet, fast, 2 * round + 1);
        const int64_t start_us = test_now_us();
        fleet.granted = 0;
        wait_for_a_grant(&fleet);
        ask_for(&fleet, 150000);
        const double seconds = (double)(test_now_us() - start_us) / 1e6;
        const double most = BURST + 1000 * seconds + greatest(&fleet, false) +
                            greatest(&fleet, true);
        if ((double)fleet.granted > most)
            fail_msg("%lu granted in %.3f s, at most %.1f", (unsigned long)fleet.granted, seconds,
                     most);
        change(&fleet, slow, 2 * round + 2);
    }
    assert_int_equal(node_limiter_stats(&fleet.nodes[0]).generation, 6);
    // Once: a full bucket of the day's is 0 behind, one of the second's at most 20 ms: 20 tokens.
    const double minted = node_limiter_stats(&fleet.nodes[0]).mint_bound_tokens;
    assert_true(minted > 59 && minted < 61);
    for (int i = 0; i < NODES; i++) node_close(&fleet.nodes[i]);
}

static void a_rate_that_steps_often_charges_every_grant_and_stays_in_its_bounds(void **state) {
    (void)state;
    struct weir_limit limit = {1000, WEIR_SECOND, BURST};
    struct fleet fleet = {{open_up_to(limit, 2000, "steps"), open_up_to(limit, 2000, "steps")}, 0};
    const int64_t start_us = test_now_us();
    double tokens = 0;
    int64_t last_us = start_us;
    for (int i = 0; i < NODES; i++) node_wait(&fleet.nodes[i], node_is_connected, "connected");
    srand(11);
    for (int step = 0; step < 60; step++) {
        ask_for(&fleet, 10000);
        const int64_t now_us = test_now_us();
        const uint64_t next = 100 + (uint64_t)(rand() % 1900);
        const uint64_t more = next > limit.tokens ? next : limit.tokens; // while one node has it
        tokens += (double)more * (double)(now_us - last_us) / 1e6;
        last_us = now_us;
        limit.tokens = next;
        for (int i = 0; i < NODES; i++)
            assert_int_equal(weir_set_limit(fleet.nodes[i].limiter, &limit, NULL), WEIR_GRANTED);
    }
    wait_for_a_grant(&fleet);
    tokens += (double)limit.tokens * (double)(test_now_us() - last_us) / 1e6;
    uint64_t reported = 0;
    for (int i = 0; i < NODES; i++) {
        assert_int_equal(weir_sync_stop(fleet.nodes[i].sync, 10 * WEIR_SECOND), WEIR_GRANTED);
        reported += node_limiter_stats(&fleet.nodes[i]).reported_tokens;
    }
    assert_int_equal(reported, fleet.granted);
    const double most = BURST + tokens + greatest(&fleet, false) + greatest(&fleet, true);
    if ((double)fleet.granted > most)
        fail_msg("%lu granted, at most %.1f", (unsigned long)fleet.granted, most);
    for (int i = 0; i < NODES; i++) node_close(&fleet.nodes[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_a_day_to_a_thousand_a_second_and_back_locks_nobody_out),
        cmocka_unit_test(a_rate_that_steps_often_charges_every_grant_and_stays_in_its_bounds),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
