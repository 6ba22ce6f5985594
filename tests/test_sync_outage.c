// What a node does for a key while Redis does not answer, by policy, and when it answers again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync_peer.h"

// A key of 100/s that this node has a tenth of, its bucket empty.
static struct peer tenth(enum wr_node_policy policy) {
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer.rules.policy = policy;
    for (int i = 0; i < 100; i++) {
        const int64_t now_us = START_US + i * 100000;
        peer_ask(&peer, now_us, 1);
        peer_freeze(&peer, now_us);
        // 10 a second by this node, 100 by all; what the others have not reported yet is missing
        peer_hear(&peer,
                  (struct sync_answer){.rel_us = SECOND_US,
                                       .previous = i < 10 ? 0 : 100,
                                       .current = (uint32_t)(i % 10) * 10 + 6},
                  now_us);
    }
    return peer;
}

static void lose_redis(struct peer *peer) {
    peer->outage = true;
    peer->side.m_q16 = wr_node_outage_m(&peer->rules, &peer->key, peer->side.m_q16);
}

static int granted_in_ten_seconds(struct peer *peer) {
    int granted = 0;
    peer->level = 0;
    for (int i = 0; i < 10000; i++) {
        peer->level_us = peer->level_us < START_US + 10 * SECOND_US ? START_US + 10 * SECOND_US
                                                                    : peer->level_us;
        granted += peer_ask(peer, START_US + 10 * SECOND_US + i * 1000, 1);
    }
    return granted;
}

static void local_share_goes_on_at_the_averaged_share(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_LOCAL_SHARE);
    lose_redis(&peer);
    const int granted = granted_in_ten_seconds(&peer);
    if (granted < 95 || granted > 106) fail_msg("granted %d", granted);
}

static void local_share_never_lowers_m(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_LOCAL_SHARE);
    assert_int_equal(wr_node_outage_m(&peer.rules, &peer.key, 77 * WR_NODE_M_ONE),
                     77 * WR_NODE_M_ONE);
    assert_true(wr_node_outage_m(&peer.rules, &peer.key, WR_NODE_M_ONE) > 9 * WR_NODE_M_ONE);
}

static void the_average_follows_a_share_that_changes(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_LOCAL_SHARE);
    for (int i = 100; i < 400; i++) { // alone from now on
        const int64_t now_us = START_US + i * 100000;
        peer_ask(&peer, now_us, 1);
        peer_freeze(&peer, now_us);
        peer_hear(&peer, (struct sync_answer){.rel_us = SECOND_US}, now_us);
    }
    assert_true(wr_node_outage_m(&peer.rules, &peer.key, 0) < WR_NODE_M_ONE * 11 / 10);
}

static void open_holds_the_whole_limit_alone(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_OPEN);
    lose_redis(&peer);
    const int granted = granted_in_ten_seconds(&peer);
    assert_in_range(granted, 998, 1001);
}

static void closed_denies_and_opens_with_the_first_answer(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_CLOSED);
    lose_redis(&peer);
    assert_int_equal(granted_in_ten_seconds(&peer), 0);
    const int64_t now_us = START_US + 30 * SECOND_US;
    struct sync_bucket bucket = {0};
    peer.outage = false;
    peer_sync(&peer, &bucket, now_us);
    assert_true(peer_ask(&peer, now_us + 100000, 1));
}

static void closed_denies_keys_first_seen_in_the_outage(void **state) {
    (void)state;
    struct peer peer = peer_new(3, SECOND_US, 3, 3, 1000);
    peer.rules.policy = WR_NODE_CLOSED;
    peer.outage = true;
    assert_int_equal(peer_ask_times(&peer, START_US, 100), 0);
}

static void a_new_key_alone_gets_its_burst_and_no_more(void **state) {
    (void)state;
    struct peer peer = peer_new(3, SECOND_US, 3, 3, 1000);
    peer.outage = true;
    assert_int_equal(peer_ask_times(&peer, START_US, 100), 3);
}

static void new_keys_get_their_part_of_the_burst_over_the_expected_nodes(void **state) {
    (void)state;
    int granted = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        struct peer peer = peer_new(3, SECOND_US, 3, 6, 65536);
        peer.rules.expected_nodes = 4;
        peer.outage = true;
        peer.random = i * (UINT32_MAX / 4000);
        granted += peer_ask_times(&peer, START_US, 100);
    }
    // 3 tokens over 4 nodes: three quarters of a token each, on average
    assert_in_range(granted, 2970, 3030);
}

static void new_keys_refill_at_their_part_of_the_rate(void **state) {
    (void)state;
    struct peer peer = peer_new(100, SECOND_US, 100, 100, 1000);
    peer.rules.expected_nodes = 4;
    peer.outage = true;
    int granted = peer_ask_times(&peer, START_US, 1000);
    for (int i = 0; i < 10000; i++) granted += peer_ask(&peer, START_US + i * 1000, 1);
    assert_in_range(granted, 273, 277); // (100 + 100 * 10) / 4
}

static void a_key_closed_in_an_outage_and_idle_since_opens_when_asked(void **state) {
    (void)state;
    struct peer peer = tenth(WR_NODE_CLOSED);
    lose_redis(&peer);
    peer.outage = false;
    assert_true(peer_ask(&peer, START_US + 200 * SECOND_US, 1));
    assert_true(peer.urgent);
}

static void an_old_report_uses_up_the_burst_but_leaves_no_debt(void **state) {
    (void)state;
    struct peer peer = peer_new(10, SECOND_US, 10, 100, 1000);
    struct sync_bucket bucket = {0};
    peer.side.granted_units = 500 * 1000; // far more than 30 s make
    peer.side.first_us = START_US;
    peer.side.m_q16 = WR_NODE_M_ONE;
    const int64_t now_us = START_US + 30 * SECOND_US;
    peer_sync(&peer, &bucket, now_us);
    assert_int_equal(bucket.tat_us, peer_redis_us(now_us) + SECOND_US);
    struct peer other = peer_new(10, SECOND_US, 10, 100, 1000);
    other.random = 0; // it wins the lottery for its small share
    peer_ask(&other, now_us, 1);
    peer_sync(&other, &bucket, now_us);
    assert_true(peer_ask(&other, now_us + 300000, 1));
}

static void a_partition_longer_than_the_period_does_not_starve_the_present(void **state) {
    (void)state;
    // 600 a minute, burst 60; a node cut off for ten minutes reports its 600 of long ago.
    struct peer cut = peer_new(600, 60 * SECOND_US, 60, 60, 1000);
    struct sync_bucket bucket = {0};
    cut.side.granted_units = 600 * 1000;
    cut.side.first_us = START_US;
    cut.side.m_q16 = WR_NODE_M_ONE;
    const int64_t now_us = START_US + 600 * SECOND_US;
    peer_sync(&cut, &bucket, now_us);
    assert_true(bucket.tat_us < peer_redis_us(now_us)); // those tokens have come back since
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_share_goes_on_at_the_averaged_share),
        cmocka_unit_test(local_share_never_lowers_m),
        cmocka_unit_test(the_average_follows_a_share_that_changes),
        cmocka_unit_test(open_holds_the_whole_limit_alone),
        cmocka_unit_test(closed_denies_and_opens_with_the_first_answer),
        cmocka_unit_test(closed_denies_keys_first_seen_in_the_outage),
        cmocka_unit_test(a_new_key_alone_gets_its_burst_and_no_more),
        cmocka_unit_test(new_keys_get_their_part_of_the_burst_over_the_expected_nodes),
        cmocka_unit_test(new_keys_refill_at_their_part_of_the_rate),
        cmocka_unit_test(a_key_closed_in_an_outage_and_idle_since_opens_when_asked),
        cmocka_unit_test(an_old_report_uses_up_the_burst_but_leaves_no_debt),
        cmocka_unit_test(a_partition_longer_than_the_period_does_not_starve_the_present),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
