// One node of a synced limit for one key: the cases with known right values, against a model of the
// server script, with a clock that the tests set.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sync_peer.h"

static void a_hundred_reports_of_a_third_of_a_second_lose_nothing(void **state) {
    (void)state;
    struct peer peer = peer_new(3, SECOND_US, 100, 100, 1);
    uint64_t sum_us = 0;
    for (int i = 0; i < 100; i++) {
        peer.side.granted_units = 1;
        peer_freeze(&peer, START_US + i);
        sum_us += peer.frozen.cost_us;
    }
    assert_int_equal(sum_us, 33333333);
}

static void conversion_to_time_is_exact_for_random_limits(void **state) {
    (void)state;
    uint64_t random = 20240611;
    for (int round = 0; round < 2000; round++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const uint64_t tokens = 1 + (random >> 33) % 100000;
        const int64_t period_us = 1 + (int64_t)((random >> 20) % 86400000);
        const uint64_t units = 1 + (random >> 50);
        struct peer peer = {0};
        if (wr_node_limit_init(&peer.limit, tokens, (uint64_t)period_us * 1000, 1000000, 0, units,
                               1) != WR_NODE_REFUSAL_OK)
            continue;
        uint64_t granted = 0, sum_us = 0;
        for (int i = 0; i < 50; i++) {
            peer.side.granted_units = (random >> (i % 40)) % (3 * units) + 1;
            granted += peer.side.granted_units;
            peer_freeze(&peer, START_US);
            sum_us += peer.frozen.cost_us;
        }
        // floor(granted * period / (tokens * units))
        const wr_u128 exact = (wr_u128)granted * (uint64_t)period_us / ((wr_u128)tokens * units);
        if (sum_us != (uint64_t)exact) fail_msg("round %d: %lu us", round, (unsigned long)sum_us);
    }
}

static void two_cold_nodes_grant_a_burst_each_and_owe_it(void **state) {
    (void)state;
    struct peer a = peer_new(10, SECOND_US, 10, 60, 1000), b = a;
    struct sync_bucket bucket = {0};
    assert_int_equal(peer_ask_times(&a, START_US, 20), 10);
    assert_int_equal(peer_ask_times(&b, START_US, 20), 10);
    assert_true(a.urgent && b.urgent);
    peer_sync(&a, &bucket, START_US + 5000);
    peer_sync(&b, &bucket, START_US + 5000);
    assert_int_equal(bucket.tat_us, peer_redis_us(START_US) + 2 * SECOND_US);
    assert_int_equal(bucket.current, 40);
    assert_true(b.level < 0);
    assert_int_equal(peer_ask_times(&b, START_US + 900000, 5), 0);
}

static void a_retry_is_the_same_report_only_older(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 10, 60, 1000);
    struct sync_bucket bucket = {0};
    assert_int_equal(peer_ask_times(&peer, START_US, 3), 3);
    peer_freeze(&peer, START_US);
    struct sync_report first = peer_report(&peer, START_US);
    sync_model_report(&bucket, &first, true, peer_redis_us(START_US), SECOND_US);
    const int64_t tat_us = bucket.tat_us;
    struct sync_report again = peer_report(&peer, START_US + 300000);
    assert_int_equal(again.cost_us, first.cost_us);
    assert_int_equal(again.demand, first.demand);
    assert_int_equal(again.age_us, first.age_us + 300000);
    const struct sync_answer answer = sync_model_report(
        &bucket, &again, false, peer_redis_us(START_US + 300000), SECOND_US);
    assert_int_equal(bucket.tat_us, tat_us);
    assert_int_equal(answer.rel_us, tat_us - peer_redis_us(START_US + 300000));
}

static void a_retry_that_arrives_first_counts_from_the_first_grant(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 10, 60, 1000);
    struct sync_bucket bucket = {0};
    peer_ask_times(&peer, START_US, 3);
    peer_freeze(&peer, START_US);
    const struct sync_report late = peer_report(&peer, START_US + 300000);
    sync_model_report(&bucket, &late, true, peer_redis_us(START_US + 300000), SECOND_US);
    assert_int_equal(bucket.tat_us, peer_redis_us(START_US) + 300000);
}

static void one_node_decides_as_a_plain_limiter(void **state) {
    (void)state;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        srand(seed);
        struct peer peer = peer_new(1 + (uint64_t)(rand() % 300), SECOND_US,
                                    (uint64_t)(1 + rand() % 40), 100, 1000000);
        struct peer plain = peer;
        struct sync_bucket bucket = {0};
        int64_t now_us = START_US, next_us = START_US;
        for (int i = 0; i < 3000; i++) {
            now_us += rand() % 4 == 0 ? rand() % 200000 : rand() % 5000;
            const uint64_t cost = 1 + (uint64_t)(rand() % 3);
            peer_advance(&plain, now_us);
            const int64_t cost_units = (int64_t)cost * plain.limit.unit_tokens;
            const bool expected = plain.level >= cost_units;
            if (expected) plain.level -= cost_units;
            peer.random = (uint32_t)rand();
            if (peer_ask(&peer, now_us, cost) != expected)
                fail_msg("seed %u, ask %d: not as a plain limiter", seed, i);
            if (now_us < next_us && !peer.urgent) continue;
            peer.urgent = false;
            peer_sync(&peer, &bucket, now_us);
            next_us = now_us + 100000;
        }
    }
}

static void an_unknown_key_is_full(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 10, 60, 1000);
    peer.side.m_q16 = 4 * WR_NODE_M_ONE;
    peer.level = -20000;
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = INT64_MIN}, START_US);
    assert_int_equal(peer.level, peer.limit.burst_units);
    assert_int_equal(peer.side.m_q16, WR_NODE_M_ONE);
}

static void what_is_heard_is_clamped_to_the_debt_of_the_present_limit(void **state) {
    (void)state;
    // A day of debt from 1/day, heard under 1000/s.
    struct peer peer = peer_new(1000, SECOND_US, 1000, 500, 1000);
    peer.side.m_q16 = 2 * WR_NODE_M_ONE;
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 86400 * SECOND_US, .current = 5}, START_US);
    assert_int_equal(peer.level, -500 * 1000);
}

static void a_change_from_slow_to_fast_does_not_lock_out(void **state) {
    (void)state;
    struct sync_bucket bucket = {0};
    struct peer slow = peer_new(1, 86400 * SECOND_US, 10, 10, 1000);
    assert_int_equal(peer_ask_times(&slow, START_US, 10), 10);
    peer_sync(&slow, &bucket, START_US);
    assert_int_equal(bucket.tat_us, peer_redis_us(START_US) + 10 * 86400 * SECOND_US);
    struct peer fast = peer_new(1000, SECOND_US, 1000, 1000, 1000);
    struct peer stale = slow; // has not heard of the change yet
    fast.limit.generation = 2;
    peer_ask(&fast, START_US + 1000, 1);
    peer_sync(&fast, &bucket, START_US + 1000);
    assert_int_equal(bucket.generation, 2);
    assert_true(bucket.tat_us <= peer_redis_us(START_US + 1000) + 2 * SECOND_US);
    stale.side.granted_units = 1000;
    stale.side.first_us = START_US + 1000;
    peer_sync(&stale, &bucket, START_US + 2000);
    assert_true(bucket.tat_us <= peer_redis_us(START_US + 2000) + 2 * SECOND_US);
    const int64_t later_us = START_US + 4 * SECOND_US;
    assert_int_equal(bucket.generation, 2);
    peer_sync(&fast, &bucket, later_us);
    assert_true(peer_ask(&fast, later_us, 1));
}

static void a_report_of_demand_only_costs_nothing(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 10, 0, 1000);
    peer.side.m_q16 = WR_NODE_M_ONE;
    peer.level = 0;
    assert_int_equal(peer_ask_times(&peer, START_US, 7), 0);
    peer_freeze(&peer, START_US);
    assert_int_equal(peer.frozen.cost_us, 0);
    assert_int_equal(peer.frozen.demand_tokens, 7);
    assert_int_equal(wr_node_age_us(&peer.frozen, START_US), 0);
}

static void a_report_put_back_is_as_if_never_taken(void **state) {
    (void)state;
    struct peer peer = peer_new(3, SECOND_US, 100, 0, 7);
    peer_ask_times(&peer, START_US, 5);
    peer_freeze(&peer, START_US + 10);
    peer_ask_times(&peer, START_US + 20, 2);
    const wr_u128 rem = peer.frozen.rem_before;
    wr_node_unfreeze(&peer.key, &peer.frozen, &peer.side);
    assert_int_equal(peer.side.granted_units, 7 * 7);
    assert_int_equal(peer.side.first_us, START_US);
    assert_true(peer.key.rem == rem);
    peer_freeze(&peer, START_US + 30);
    assert_int_equal(peer.frozen.cost_us, 2333333);
    assert_int_equal(peer.frozen.demand_tokens, 7);
}

static void denials_are_exact_to_64_and_unbiased_above(void **state) {
    (void)state;
    uint32_t denied = 0;
    for (uint32_t i = 0; i < 64; i++) denied = wr_node_count_denied(denied, 1, UINT32_MAX);
    assert_int_equal(denied, 64);
    double sum = 0;
    srand(7);
    for (int run = 0; run < 200; run++) {
        denied = 0;
        for (int i = 0; i < 20000; i++)
            denied = wr_node_count_denied(denied, 1, (uint32_t)rand() << 1);
        sum += denied;
    }
    assert_true(sum / 200 > 0.95 * 20000 && sum / 200 < 1.05 * 20000);
    assert_int_equal(wr_node_count_denied(UINT32_MAX, 5, 0), UINT32_MAX);
}

static void m_follows_the_share_when_the_bucket_is_empty(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer_ask(&peer, START_US, 10);
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 1500000, .current = 40}, START_US);
    assert_int_equal(peer.side.m_q16, 4 * WR_NODE_M_ONE);
    assert_int_equal(peer.side.early_tokens, WR_NODE_EARLY_NEVER);
}

static void m_stays_one_while_there_is_room_for_all(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer_ask(&peer, START_US, 1);
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 20000, .current = 2}, START_US);
    // the others' 1 token a second can take a thousandth of the room: m = 1/(1 - 0.1/108)
    assert_true(peer.side.m_q16 < WR_NODE_M_ONE + WR_NODE_M_ONE / 500);
    assert_int_equal(peer.side.early_tokens, 25);
    peer.urgent = false;
    peer_ask(&peer, START_US, 24);
    assert_false(peer.urgent);
    peer_ask(&peer, START_US, 1);
    assert_true(peer.urgent);
}

static void grants_while_a_report_is_under_way_are_charged_at_m(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer.side.m_q16 = 2 * WR_NODE_M_ONE;
    peer.side.synced_ms = (uint32_t)(START_US / 1000);
    peer_freeze(&peer, START_US);
    assert_int_equal(peer_ask_times(&peer, START_US, 3), 3);
    assert_int_equal(peer.level, 94 * 1000);
    peer.random = 0;
    // The bucket has been full for ten seconds: that is worth no more than full.
    peer_hear(&peer, (struct sync_answer){.rel_us = -10 * SECOND_US}, START_US);
    assert_int_equal(peer.level, 97 * 1000);
}

static void time_to_come_is_rounded_against_the_node(void **state) {
    (void)state;
    struct peer peer = peer_new(3, SECOND_US, 10, 10, 1);
    peer.side.m_q16 = 2 * WR_NODE_M_ONE;
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 1}, START_US);
    assert_int_equal(peer.level, 9);
    peer_hear(&peer, (struct sync_answer){.rel_us = 333334}, START_US);
    assert_int_equal(peer.level, 8);
}

static void a_low_level_is_not_reported_early(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer_ask(&peer, START_US, 1);
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 880000, .current = 1}, START_US);
    assert_int_equal(peer.side.early_tokens, WR_NODE_EARLY_NEVER); // 12 of 100 are left
    peer_hear(&peer, (struct sync_answer){.rel_us = 870000, .current = 1}, START_US);
    assert_int_equal(peer.side.early_tokens, 4); // 13 of 100
}

static void a_share_below_one_token_is_granted_by_lottery(void **state) {
    (void)state;
    // 8 nodes, 1 token: each starts with o - 1 taken, o = max(1, 8u), so one in 8 has the token.
    struct peer peer = peer_new(1, SECOND_US, 1, 8, 65536);
    int granted = 0;
    for (uint32_t i = 0; i < 64; i++) {
        struct peer node = peer;
        node.side.m_q16 = 8 * WR_NODE_M_ONE;
        node.side.synced_ms = (uint32_t)(START_US / 1000) - 5000; // cold, hot within a minute
        node.random = i << 26 | 0x3ffffff;
        granted += peer_ask(&node, START_US, 1);
    }
    assert_int_equal(granted, 8);
}

static void a_hot_key_keeps_its_share_for_a_minute_and_then_starts_anew(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer_ask(&peer, START_US, 1);
    peer_freeze(&peer, START_US);
    peer_hear(&peer, (struct sync_answer){.rel_us = 1500000, .current = 10}, START_US);
    const uint32_t m_q16 = peer.side.m_q16;
    assert_int_equal(m_q16, 10 * WR_NODE_M_ONE);
    peer.urgent = false;
    peer_ask(&peer, START_US + 2 * SECOND_US, 1);
    assert_false(peer.urgent);
    peer_ask(&peer, START_US + 30 * SECOND_US, 1);
    assert_true(peer.urgent);
    assert_int_equal(peer.side.m_q16, m_q16);
    peer_ask(&peer, START_US + 100 * SECOND_US, 1);
    assert_int_equal(peer.side.m_q16, WR_NODE_M_ONE);
}

static void twenty_six_asks_an_hour_of_600_a_minute_pass_for_days(void **state) {
    (void)state;
    struct peer peers[2] = {peer_new(600, 60 * SECOND_US, 600, 600, 1000),
                            peer_new(600, 60 * SECOND_US, 600, 600, 1000)};
    struct sync_bucket bucket = {0};
    int64_t now_us = START_US;
    srand(26);
    for (int i = 0; i < 26 * 24 * 4; i++) {
        struct peer *peer = &peers[rand() % 2];
        now_us += rand() % 277 * SECOND_US;
        if (bucket.exists && sync_model_expiry_us(&bucket, bucket.tat_us, SECOND_US) <
                                 peer_redis_us(now_us))
            bucket = (struct sync_bucket){0};
        peer->random = (uint32_t)rand() << 1;
        assert_true(peer_ask(peer, now_us, 1));
        peer_sync(peer, &bucket, now_us + 5000);
    }
}

static enum wr_node_refusal refusal(uint64_t tokens, uint64_t period_s, uint64_t burst) {
    struct wr_node_limit limit;
    return wr_node_limit_init(&limit, tokens, period_s * 1000000000, burst, burst, 1, 0);
}

static void limits_that_time_cannot_carry_are_refused_in_words(void **state) {
    (void)state;
    assert_int_equal(refusal(0, 1, 5), WR_NODE_REFUSAL_NO_RATE);
    assert_int_equal(refusal(UINT64_MAX, 1, 5), WR_NODE_REFUSAL_NO_RATE);
    assert_int_equal(refusal(1000000000, 1, 99999), WR_NODE_REFUSAL_SHORT_BURST);
    assert_int_equal(refusal(1000000000, 1, 100000), WR_NODE_REFUSAL_OK);
    assert_int_equal(refusal(1, 86400, 30000), WR_NODE_REFUSAL_LONG_HORIZON); // 164 years
    assert_int_equal(refusal(1, 86400, 25000), WR_NODE_REFUSAL_OK);
    assert_int_equal(refusal(10, 1, 0), WR_NODE_REFUSAL_OK); // a kill switch
    assert_non_null(strstr(wr_node_refusal_text(WR_NODE_REFUSAL_SHORT_BURST), "raise the burst"));
}

static void the_bound_is_the_rate_of_a_blind_interval_and_the_others_demand_in_two(void **state) {
    (void)state;
    const struct peer peer = peer_new(500, SECOND_US, 500, 500, 1);
    // d' = 110 + 2 ms; 500/s * 113 ms + 1000/s * 224 ms
    double bound = wr_node_excess_bound(&peer.limit, &peer.rules, 1000e-6, 0, 2000);
    assert_true(bound > 280.49 && bound < 280.51);
    // one other node can have had at most its burst and the rate of 2d'
    bound = wr_node_excess_bound(&peer.limit, &peer.rules, 1, 1, 2000);
    assert_true(bound > 668.49 && bound < 668.51);
}

static void a_big_charge_stops_at_the_debt(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 50, 1000);
    assert_int_equal(wr_node_charge(&peer.limit, 10000, WR_NODE_M_MAX, 10000), 60000);
    assert_int_equal(wr_node_charge(&peer.limit, 10000, WR_NODE_M_ONE, 10000), 10000);
    assert_int_equal(wr_node_charge(&peer.limit, 3, WR_NODE_M_ONE + 1, 10000), 4);
}

static void an_ask_above_the_burst_is_never_and_counts_for_nothing(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 3, 0, 1000);
    const struct wr_node_ask ask_4 = {.now_us = START_US, .cost_units = 4000};
    assert_int_equal(wr_node_take(&peer.limit, &peer.rules, &peer.side, &peer.level, &ask_4,
                                  &peer.urgent),
                     WR_NODE_NEVER);
    assert_int_equal(peer.side.denied_tokens, 0);
    assert_int_equal(peer.level, 3000);
}

static void a_late_bound_holds_for_what_was_asked_and_granted_and_no_more(void **state) {
    (void)state;
    // 500 a second, d = 100 ms, eight nodes, 1 ms away; five seconds without an answer.
    const struct peer peer = peer_new(500, SECOND_US, 500, 500, 1000);
    const int64_t blind_us = 5 * SECOND_US, rtt_us = 1000;
    assert_false(wr_node_is_late(&peer.rules, 200000, rtt_us));
    assert_true(wr_node_is_late(&peer.rules, 230000, rtt_us));
    const double on_time = 500 * (0.111 + 0.0005);
    // It granted 300, and the others asked for 2,500 late.
    double bound = wr_node_late_bound(&peer.limit, &peer.rules, 300, 2500, 7, blind_us, rtt_us);
    assert_true(bound > 2800 + on_time - 1 && bound < 2800 + on_time + 1);
    // However much they ask for, each holds the limit by itself.
    bound = wr_node_late_bound(&peer.limit, &peer.rules, 300, 1e9, 7, blind_us, rtt_us);
    const double most = 300 + on_time + 7 * (500 + 500 * 5.111);
    assert_true(bound > most - 1 && bound < most + 1);
    // Without knowing how many they are, all that they ask for may be granted.
    bound = wr_node_late_bound(&peer.limit, &peer.rules, 0, 1e6, 0, blind_us, rtt_us);
    assert_true(bound >= 1e6);
    // Less of the others never makes more of the bound.
    assert_true(wr_node_late_bound(&peer.limit, &peer.rules, 0, 10, 7, blind_us, rtt_us) <=
                wr_node_late_bound(&peer.limit, &peer.rules, 0, 11, 7, blind_us, rtt_us));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_reports_of_a_third_of_a_second_lose_nothing),
        cmocka_unit_test(conversion_to_time_is_exact_for_random_limits),
        cmocka_unit_test(two_cold_nodes_grant_a_burst_each_and_owe_it),
        cmocka_unit_test(a_retry_is_the_same_report_only_older),
        cmocka_unit_test(a_retry_that_arrives_first_counts_from_the_first_grant),
        cmocka_unit_test(one_node_decides_as_a_plain_limiter),
        cmocka_unit_test(an_unknown_key_is_full),
        cmocka_unit_test(what_is_heard_is_clamped_to_the_debt_of_the_present_limit),
        cmocka_unit_test(a_change_from_slow_to_fast_does_not_lock_out),
        cmocka_unit_test(a_report_of_demand_only_costs_nothing),
        cmocka_unit_test(a_report_put_back_is_as_if_never_taken),
        cmocka_unit_test(denials_are_exact_to_64_and_unbiased_above),
        cmocka_unit_test(m_follows_the_share_when_the_bucket_is_empty),
        cmocka_unit_test(m_stays_one_while_there_is_room_for_all),
        cmocka_unit_test(grants_while_a_report_is_under_way_are_charged_at_m),
        cmocka_unit_test(time_to_come_is_rounded_against_the_node),
        cmocka_unit_test(a_low_level_is_not_reported_early),
        cmocka_unit_test(a_share_below_one_token_is_granted_by_lottery),
        cmocka_unit_test(a_hot_key_keeps_its_share_for_a_minute_and_then_starts_anew),
        cmocka_unit_test(twenty_six_asks_an_hour_of_600_a_minute_pass_for_days),
        cmocka_unit_test(limits_that_time_cannot_carry_are_refused_in_words),
        cmocka_unit_test(
            the_bound_is_the_rate_of_a_blind_interval_and_the_others_demand_in_two),
        cmocka_unit_test(a_late_bound_holds_for_what_was_asked_and_granted_and_no_more),
        cmocka_unit_test(a_big_charge_stops_at_the_debt),
        cmocka_unit_test(an_ask_above_the_burst_is_never_and_counts_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
