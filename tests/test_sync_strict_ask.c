// Strict asks without Redis: the clock is injected and the answers are the test's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "strict_node.h"
#include "sync/strict_wire.h"

#define SECOND_US INT64_C(1000000)

static struct weir_limit limit_of(uint64_t tokens, uint64_t period_ns, uint64_t burst) {
    return (struct weir_limit){tokens, period_ns, burst};
}

static void node_init(struct strict_node *node, struct weir_limit limit) {
    strict_node_init(node, &limit, NULL, NULL, true);
}

static int submit(struct strict_node *node, struct weir_sync_ask *ask, uint64_t key,
                  uint64_t cost) {
    *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
    ask->key = weir_id(key);
    ask->cost = cost;
    const int result = weir_sync_submit(strict_node_sync(node), node->limiter, ask);
    assert_int_equal(weir_sync_poll(ask), result);
    return result;
}

static size_t write_answer(unsigned char *out, uint64_t seq, uint32_t keys, const int64_t *lags,
                           const char *granted) {
    const uint32_t asks = (uint32_t)strlen(granted);
    memset(out, 0, 28);
    memcpy(out, "WST1", 4);
    out[4] = (unsigned char)keys;
    for (int i = 0; i < 8; i++) out[8 + i] = (unsigned char)(seq >> 8 * i);
    for (int i = 0; i < 7; i++) out[16 + i] = (unsigned char)(INT64_C(1700000000000000) >> 8 * i);
    out[24] = (unsigned char)asks;
    for (uint32_t i = 0; i < 8 * keys; i++)
        out[28 + i] = (unsigned char)(lags[i / 8] >> 8 * (i % 8));
    for (uint32_t i = 0; i < asks; i++) out[28 + 8 * keys + i] = granted[i] == '1';
    return 28 + 8 * (size_t)keys + asks;
}

// Redis' answer to the call that was packed, sent at `sent_us` and received now.
static void answer_one(struct strict_node *node, int64_t lag_us, const char *granted,
                       int64_t sent_us) {
    unsigned char bytes[256];
    const size_t count =
        write_answer(bytes, wr_strict_seq(node->strict, 0), 1, &lag_us, granted);
    assert_int_equal(wr_strict_answer(node->strict, 0, bytes, count, sent_us, node->now_us),
                     WR_WIRE_OK);
}

static void a_local_refusal_ends_before_redis_could_grant(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_SECOND, 1));
    const int64_t sent_us = node.now_us;
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    node.now_us += 10000;
    answer_one(&node, SECOND_US, "1", sent_us);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(ask.remaining, 0);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_DENIED);
    assert_true(ask.retry_after_ns < (uint64_t)(SECOND_US - 10000) * 1000);
    assert_true(ask.retry_after_ns > (uint64_t)(SECOND_US - 12000) * 1000);
    node.now_us = sent_us + SECOND_US - 2000;
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_DENIED);
    node.now_us = sent_us + SECOND_US;
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    strict_node_fini(&node);
}

// The stored answer to a call that was sent twice is of the first time.
static void an_answer_to_a_repeat_is_as_old_as_the_first_attempt(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_SECOND, 1));
    const int64_t first_us = node.now_us;
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    node.now_us += SECOND_US / 2;
    wr_strict_lost(node.strict, 0);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, SECOND_US, "1", node.now_us);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_DENIED);
    node.now_us = first_us + SECOND_US;
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    strict_node_fini(&node);
}

static void an_answer_that_gives_back_fills_the_local_bucket(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_SECOND, 10));
    assert_int_equal(submit(&node, &ask, 7, 8), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, 8 * SECOND_US, "1", node.now_us);
    assert_int_equal(submit(&node, &ask, 7, 3), WEIR_DENIED);
    assert_int_equal(submit(&node, &ask, 7, 2), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, 2 * SECOND_US, "1", node.now_us); // flushed meanwhile
    assert_int_equal(ask.remaining, 8);
    assert_int_equal(submit(&node, &ask, 7, 9), WEIR_DENIED);
    assert_int_equal(submit(&node, &ask, 7, 8), WEIR_PENDING);
    strict_node_fini(&node);
}

// Descheduled between reading the clock and the debit, it debits anew; if that goes on and on, it
// would rather know nothing than refuse what Redis would grant.
static void a_slow_thread_learns_all_the_same(void **state) {
    (void)state;
    static const struct {
        int64_t step_us;
        int result;
    } rows[] = {{1, WEIR_DENIED}, {60, WEIR_DENIED}, {5000, WEIR_DENIED}, {50000, WEIR_PENDING}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strict_node node;
        struct weir_sync_ask ask, later;
        node_init(&node, limit_of(1, WEIR_SECOND, 10));
        assert_int_equal(submit(&node, &ask, 7, 9), WEIR_PENDING);
        assert_true(strict_node_pack(&node, 0));
        const int64_t sent_us = node.now_us;
        node.step_us = rows[i].step_us;
        answer_one(&node, 9 * SECOND_US, "1", sent_us);
        node.step_us = 0;
        assert_int_equal(submit(&node, &later, 7, 2), rows[i].result);
        node.now_us = sent_us + SECOND_US;
        if (rows[i].result == WEIR_DENIED)
            assert_int_equal(submit(&node, &later, 7, 2), WEIR_PENDING);
        strict_node_fini(&node);
    }
}

// Of a limiter that counts in whole tokens, no part of one can be debited.
static void a_limiter_of_billions_a_second_learns_in_whole_tokens(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(UINT64_C(2000003000), WEIR_SECOND, 2000000)); // a millisecond
    assert_int_equal(submit(&node, &ask, 7, 700000), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, 350, "1", node.now_us);
    assert_int_equal(submit(&node, &ask, 7, 1500000), WEIR_DENIED);
    assert_int_equal(submit(&node, &ask, 7, 1299999), WEIR_PENDING);
    strict_node_fini(&node);
}

// Past the deadline.

static void node_with_outage(struct strict_node *node, enum weir_sync_outage outage,
                             uint32_t nodes) {
    const struct wr_strict_options options = {.outage = outage, .expected_nodes = nodes};
    const struct weir_limit limit = limit_of(1, WEIR_SECOND, 2);
    strict_node_init(node, &limit, &options, NULL, true);
}

static int wait_out(struct strict_node *node, struct weir_sync_ask *ask, uint64_t cost) {
    const int result = submit(node, ask, 7, cost);
    if (result != WEIR_PENDING) return result;
    node->now_us += 999999;
    wr_strict_expire(node->strict, node->now_us);
    assert_int_equal(weir_sync_poll(ask), WEIR_PENDING);
    assert_true(wr_strict_wake_us(node->strict) == node->now_us + 1);
    node->now_us++;
    wr_strict_expire(node->strict, node->now_us);
    assert_true(wr_strict_wake_us(node->strict) == INT64_MAX);
    return weir_sync_poll(ask);
}

static void an_ask_past_its_deadline_is_unsynced_by_default(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_with_outage(&node, WEIR_SYNC_LOCAL_SHARE, 0);
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_EUNSYNCED);
    strict_node_fini(&node);
    node_with_outage(&node, WEIR_SYNC_CLOSED, 3);
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_EUNSYNCED);
    strict_node_fini(&node);
}

static void open_decides_by_the_local_bucket_alone(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_with_outage(&node, WEIR_SYNC_OPEN, 0);
    assert_int_equal(wait_out(&node, &ask, 2), WEIR_GRANTED);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_DENIED);
    strict_node_fini(&node);
}

static void a_local_share_takes_the_cost_for_every_node(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_with_outage(&node, WEIR_SYNC_LOCAL_SHARE, 4);
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_GRANTED); // 4 tokens of 2
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_DENIED);
    assert_int_equal(ask.retry_after_ns, 3 * WEIR_SECOND);
    node.now_us += 3 * SECOND_US;
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_GRANTED); // 2 by now
    strict_node_fini(&node);
}

static struct wr_strict_counts counts_of(const struct strict_node *node) {
    struct wr_strict_counts counts;
    wr_strict_counts(node->strict, &counts);
    return counts;
}

static struct weir_stats stats_of(const struct strict_node *node) {
    struct weir_stats stats;
    assert_int_equal(weir_stats(node->limiter, &stats, sizeof stats), WEIR_GRANTED);
    return stats;
}

// The local bucket is charged for what other nodes took as well: that is nobody's ask here.
static void the_limiter_counts_asks_by_their_answers(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask asks[2], ask;
    struct weir_top_key top;
    node_init(&node, limit_of(1, WEIR_HOUR, 10));
    for (int i = 0; i < 2; i++) assert_int_equal(submit(&node, &asks[i], 7, 2), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, 9 * INT64_C(3600000000), "10", node.now_us);
    assert_int_equal(submit(&node, &ask, 7, 5), WEIR_DENIED); // locally
    assert_int_equal(submit(&node, &ask, 7, 11), WEIR_NEVER);
    const struct weir_stats stats = stats_of(&node);
    assert_int_equal(stats.granted, 1);
    assert_int_equal(stats.tokens, 2);
    assert_int_equal(stats.denied, 2);
    assert_int_equal(stats.never, 1);
    assert_int_equal(stats.clipped_tokens, 0);
    uint64_t waits = 0;
    for (size_t i = 0; i < WEIR_WAIT_BUCKETS; i++) waits += stats.waits[i];
    assert_int_equal(waits, 2);
    assert_int_equal(weir_top(node.limiter, &top, 1), 1);
    assert_int_equal(top.denied, 3);
    assert_int_equal(top.id, 7);
    strict_node_fini(&node);
}

static void what_the_policy_grants_is_not_said_to_be_charged(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    struct wr_strict_counts counts;
    node_with_outage(&node, WEIR_SYNC_LOCAL_SHARE, 4);
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_GRANTED); // 4 tokens of the local bucket
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.charged_tokens, 0);
    assert_int_equal(counts.bridged_tokens, 1);
    assert_int_equal(stats_of(&node).granted, 1);
    assert_int_equal(stats_of(&node).tokens, 1);
    strict_node_fini(&node);
    node_with_outage(&node, WEIR_SYNC_CLOSED, 0);
    assert_int_equal(wait_out(&node, &ask, 1), WEIR_EUNSYNCED);
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.unsynced, 1);
    assert_int_equal(stats_of(&node).granted + stats_of(&node).denied, 0);
    strict_node_fini(&node);
}

static void no_limit_counts_as_untracked(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(WEIR_UNLIMITED_TOKENS, 1, 1));
    assert_int_equal(submit(&node, &ask, 7, 5), WEIR_PENDING);
    assert_false(strict_node_pack(&node, 0)); // nothing to ask Redis
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(stats_of(&node).untracked, 1);
    assert_int_equal(stats_of(&node).tokens, 5);
    assert_int_equal(counts_of(&node).charged_tokens, 0);
    strict_node_fini(&node);
}

static void a_dry_run_grants_whatever_becomes_of_redis(void **state) {
    (void)state;
    static const enum weir_sync_outage policies[] = {WEIR_SYNC_OPEN, WEIR_SYNC_CLOSED};
    for (size_t i = 0; i < 2; i++) {
        struct strict_node node;
        struct weir_sync_ask ask;
        const struct weir_limit limit = limit_of(1, WEIR_HOUR, 10);
        const struct wr_strict_options options = {.outage = policies[i]};
        strict_node_dry_run = true;
        strict_node_init(&node, &limit, &options, NULL, true);
        strict_node_dry_run = false;
        for (int n = 0; n < 4; n++) assert_int_equal(wait_out(&node, &ask, 4), WEIR_GRANTED);
        const bool open = policies[i] == WEIR_SYNC_OPEN;
        assert_int_equal(stats_of(&node).granted, open ? 2 : 0);
        assert_int_equal(stats_of(&node).tokens, open ? 8 : 0);
        assert_int_equal(stats_of(&node).would_deny, open ? 2 : 0);
        assert_int_equal(counts_of(&node).bridged_tokens, open ? 8 : 0);
        assert_int_equal(submit(&node, &ask, 7, 4), WEIR_PENDING);
        wr_strict_close(node.strict);
        assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
        strict_node_fini(&node);
    }
}

static void an_expired_ask_is_its_owners_while_its_call_goes_on(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask early, late;
    struct wr_strict_counts counts;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    assert_int_equal(submit(&node, &early, 7, 1), WEIR_PENDING);
    late = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
    late.key = weir_id(7);
    late.timeout_ns = WEIR_HOUR;
    assert_int_equal(weir_sync_submit(strict_node_sync(&node), node.limiter, &late),
                     WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    const uint64_t seq = wr_strict_seq(node.strict, 0);
    node.now_us += SECOND_US;
    wr_strict_expire(node.strict, node.now_us);
    assert_int_equal(weir_sync_poll(&early), WEIR_EUNSYNCED);
    memset(&early, 0xff, sizeof early);
    wr_strict_lost(node.strict, 0);
    assert_true(strict_node_pack(&node, 0));
    assert_int_equal(wr_strict_seq(node.strict, 0), seq);
    answer_one(&node, INT64_C(7200000000), "11", node.now_us);
    assert_int_equal(weir_sync_poll(&late), WEIR_GRANTED);
    assert_int_equal(late.remaining, 2);
    for (size_t i = 0; i < sizeof early; i++) assert_int_equal(((unsigned char *)&early)[i], 0xff);
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.unknown, 1);
    strict_node_fini(&node);
}

static void a_call_that_nobody_waits_for_is_not_sent_again(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    node.now_us += SECOND_US;
    wr_strict_expire(node.strict, node.now_us);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_false(wr_strict_want(node.strict, 0)); // the old one is still on the wire
    const struct wr_strict_counts before = counts_of(&node);
    answer_one(&node, INT64_C(3600000000), "1", node.now_us); // and says nothing to the new one
    assert_int_equal(weir_sync_poll(&ask), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, INT64_C(7200000000), "1", node.now_us);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(counts_of(&node).retries, before.retries);
    assert_int_equal(counts_of(&node).calls, before.calls + 1);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    node.now_us += SECOND_US;
    wr_strict_expire(node.strict, node.now_us);
    wr_strict_lost(node.strict, 0);
    assert_false(wr_strict_want(node.strict, 0));
    strict_node_fini(&node);
}

static void close_answers_all_and_open_takes_asks_again(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask asks[3];
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    assert_int_equal(submit(&node, &asks[0], 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    assert_int_equal(submit(&node, &asks[1], 7, 1), WEIR_PENDING);
    assert_false(wr_strict_want(node.strict, 0));
    assert_int_equal(submit(&node, &asks[2], 8, 1), WEIR_PENDING);
    wr_strict_close(node.strict);
    for (int i = 0; i < 3; i++) assert_int_equal(weir_sync_poll(&asks[i]), WEIR_EUNSYNCED);
    struct weir_sync_ask ask = WEIR_SYNC_ASK_INIT;
    assert_int_equal(weir_sync_submit(strict_node_sync(&node), node.limiter, &ask), WEIR_ECLOSED);
    answer_one(&node, 0, "1", node.now_us); // late
    wr_strict_open(node.strict);
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    wr_strict_close(node.strict);
    wr_strict_close(node.strict);
    strict_node_fini(&node);
}

static void a_forked_child_is_closed(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask waiting, ask = WEIR_SYNC_ASK_INIT;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    assert_int_equal(submit(&node, &waiting, 7, 1), WEIR_PENDING);
    wr_strict_forked(node.strict);
    assert_int_equal(weir_sync_submit(strict_node_sync(&node), node.limiter, &ask), WEIR_ECLOSED);
    assert_int_equal(weir_sync_poll(&waiting), WEIR_PENDING);
    strict_node_fini(&node);
}

static void asks_that_are_none_are_refused(void **state) {
    (void)state;
    struct strict_node node, other;
    struct weir_sync_ask ask = WEIR_SYNC_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    node_init(&other, limit_of(1, WEIR_HOUR, 4));
    struct weir_sync *sync = strict_node_sync(&node);
    ask.cost = 0;
    assert_int_equal(weir_sync_submit(sync, node.limiter, &ask), WEIR_EINVAL);
    ask.cost = 1;
    assert_int_equal(weir_sync_submit(sync, other.limiter, &ask), WEIR_EINVAL);
    ask.size--;
    assert_int_equal(weir_sync_submit(sync, node.limiter, &ask), WEIR_ESIZE);
    answer.size = 3;
    assert_int_equal(weir_sync_take(sync, node.limiter, weir_id(1), 1, 0, &answer), WEIR_ESIZE);
    answer.size = sizeof answer;
    assert_int_equal(weir_sync_take(sync, node.limiter, weir_id(1), 5, 0, &answer), WEIR_NEVER);
    assert_int_equal(answer.retry_after_ns, WEIR_FOREVER);
    strict_node_fini(&node);
    strict_node_fini(&other);
}

static void no_limit_grants_and_no_rate_denies_without_redis(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    const struct weir_limit none = weir_unlimited(), still = limit_of(0, WEIR_SECOND, 4);
    node_init(&node, limit_of(1, WEIR_SECOND, 4));
    assert_int_equal(weir_set_limit_at(node.limiter, &none, node.now_us * 1000, NULL),
                     WEIR_GRANTED);
    assert_int_equal(submit(&node, &ask, 7, 100), WEIR_PENDING);
    assert_false(strict_node_pack(&node, 0));
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    assert_int_equal(weir_set_limit_at(node.limiter, &still, node.now_us * 1000, NULL),
                     WEIR_GRANTED);
    if (submit(&node, &ask, 7, 1) == WEIR_PENDING) assert_false(strict_node_pack(&node, 0));
    assert_int_equal(weir_sync_poll(&ask), WEIR_DENIED);
    assert_int_equal(ask.retry_after_ns, WEIR_FOREVER);
    strict_node_fini(&node);
}

static void answers_that_are_none_leave_the_call_held(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    unsigned char good[64], bad[64];
    const int64_t lag_us = 5, far_us = INT64_C(1) << 53;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    assert_int_equal(submit(&node, &ask, 7, 1), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    const uint64_t seq = wr_strict_seq(node.strict, 0);
    const size_t count = write_answer(good, seq, 1, &lag_us, "1");
    for (size_t cut = 0; cut < count; cut++)
        assert_true(wr_strict_answer(node.strict, 0, good, cut, 0, 0) != WR_WIRE_OK);
    memcpy(bad, good, count);
    bad[0] = 'w';
    assert_int_equal(wr_strict_answer(node.strict, 0, bad, count, 0, 0), WR_WIRE_NOT_OURS);
    memcpy(bad, good, count);
    bad[count - 1] = 2;
    assert_int_equal(wr_strict_answer(node.strict, 0, bad, count, 0, 0), WR_WIRE_RANGE);
    size_t other = write_answer(bad, seq, 1, &far_us, "1");
    assert_int_equal(wr_strict_answer(node.strict, 0, bad, other, 0, 0), WR_WIRE_RANGE);
    other = write_answer(bad, seq - 1, 1, &lag_us, "1"); // to an older call
    assert_int_equal(wr_strict_answer(node.strict, 0, bad, other, 0, 0), WR_WIRE_OK);
    assert_int_equal(weir_sync_poll(&ask), WEIR_PENDING);
    other = write_answer(bad, seq, 1, &lag_us, "11"); // of another process with this node's name
    assert_int_equal(wr_strict_answer(node.strict, 0, bad, other, 0, 0), WR_WIRE_LENGTH);
    assert_true(strict_node_pack(&node, 0));
    assert_true(wr_strict_seq(node.strict, 0) > seq);
    answer_one(&node, 5, "1", node.now_us);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    strict_node_fini(&node);
}

static void submit_again(struct weir_sync_ask *ask, void *context) {
    struct strict_node *node = context;
    assert_int_equal(weir_sync_poll(ask), WEIR_GRANTED);
    assert_int_equal(weir_sync_submit(strict_node_sync(node), node->limiter, ask), WEIR_PENDING);
}

static void done_may_submit_the_same_ask_again(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask = WEIR_SYNC_ASK_INIT;
    struct wr_strict_counts counts;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    ask.key = weir_id(7);
    ask.done = submit_again;
    ask.context = &node;
    assert_int_equal(weir_sync_submit(strict_node_sync(&node), node.limiter, &ask), WEIR_PENDING);
    for (int i = 0; i < 3; i++) {
        assert_true(strict_node_pack(&node, 0));
        answer_one(&node, 5, "1", node.now_us);
        assert_int_equal(weir_sync_poll(&ask), WEIR_PENDING);
    }
    ask.done = NULL;
    wr_strict_counts(node.strict, &counts);
    assert_int_equal(counts.granted, 3);
    strict_node_fini(&node);
    assert_int_equal(weir_sync_poll(&ask), WEIR_EUNSYNCED);
}

static void a_dry_run_grants_what_redis_denies(void **state) {
    (void)state;
    struct strict_node node;
    struct weir_sync_ask ask;
    node_init(&node, limit_of(1, WEIR_HOUR, 4));
    weir_destroy(node.limiter);
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = limit_of(1, WEIR_HOUR, 4);
    options.clock = WEIR_CLOCK_CALLER;
    options.dry_run = true;
    assert_int_equal(weir_create(&node.limiter, &options, NULL), WEIR_GRANTED);
    wr_strict_destroy(node.strict);
    const struct wr_strict_options strict = {.limiter = node.limiter, .name = "limit",
                                             .prefix = "weir:", .node = "a", .groups = 1,
                                             .epoch_us = 1, .marker_ttl_ms = 1};
    assert_int_equal(wr_strict_create(&node.strict, &strict), WEIR_GRANTED);
    wr_strict_open(node.strict);
    assert_int_equal(submit(&node, &ask, 7, 5), WEIR_PENDING);
    assert_true(strict_node_pack(&node, 0));
    answer_one(&node, 5, "0", node.now_us);
    assert_int_equal(weir_sync_poll(&ask), WEIR_GRANTED);
    strict_node_fini(&node);
}

// The arithmetic.

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void check_cost(const struct wr_strict_limit *limit, uint64_t tokens) {
    const struct wr_strict_time cost = wr_strict_cost(limit, tokens);
    const wr_u128 exact = (wr_u128)tokens * limit->num; // over exact_den
    assert_true(cost.rest < limit->den);
    if (exact / limit->exact_den >= (wr_u128)WR_NODE_HORIZON_US) return;
    assert_true(limit->den <= UINT64_C(1) << 50);
    const wr_u128 rest = exact - cost.whole_us * limit->exact_den;
    if (limit->exact_den == limit->den) assert_true(rest == cost.rest);
    if (exact < cost.whole_us * limit->exact_den) assert_int_equal(cost.rest, 0); // rounded up
    else assert_true(rest * limit->den <= cost.rest * limit->exact_den);
}

// What retry_us says is the least lag that passes, and remaining is what passes at a lag.
static void check_lag(const struct wr_strict_limit *limit, uint64_t random) {
    const wr_u128 full = (wr_u128)limit->tokens.burst * limit->num;
    const int64_t burst_us = (int64_t)(full / limit->exact_den);
    const int64_t lag_us = (int64_t)(random % (uint64_t)(burst_us + 2));
    const uint64_t left = wr_strict_remaining(limit, lag_us);
    const wr_u128 lag = (wr_u128)(uint64_t)lag_us * limit->exact_den;
    if (left > 0) assert_true(lag + (wr_u128)left * limit->num <= full);
    assert_true(lag + (wr_u128)(left + 1) * limit->num > full);
    if (left + 1 > limit->tokens.burst || limit->exact_den != limit->den) return;
    const uint64_t wait_us = wr_strict_retry_us(limit, lag_us, left + 1);
    const wr_u128 wanted = (wr_u128)(left + 1) * limit->num + lag;
    assert_true(wanted <= full + (wr_u128)wait_us * limit->exact_den);
    assert_true(wanted > full + (wr_u128)(wait_us - 1) * limit->exact_den);
}

static void costs_are_exact(void **state) {
    (void)state;
    uint64_t random = 5;
    for (int i = 0; i < 200000; i++) {
        const uint64_t rate = 1 + (next_random(&random) >> next_random(&random) % 63);
        const uint64_t period_ns = 1 + (next_random(&random) >> (1 + next_random(&random) % 60));
        const uint64_t burst = 1 + (next_random(&random) >> (4 + next_random(&random) % 58));
        const struct weir_limit tokens = limit_of(rate, period_ns, burst);
        struct wr_strict_limit limit;
        if (tokens.tokens > UINT64_MAX - 2 || tokens.period_ns > INT64_MAX) continue;
        assert_true(wr_strict_limit_init(&limit, &tokens, 0));
        if ((wr_u128)tokens.burst * limit.num / limit.exact_den > (wr_u128)WR_NODE_HORIZON_US)
            continue;
        check_cost(&limit, tokens.burst);
        check_cost(&limit, 1 + next_random(&random) % tokens.burst);
        check_lag(&limit, next_random(&random));
    }
}

// Redis as a bucket on a clock that runs apart from the node's: whatever others take, how long the
// way there and back is, a refusal by the local bucket is true.
struct far {
    int64_t offset_us;
    int64_t drift_ppm; // of its clock
    int64_t tat_us;
    struct weir_limit limit;
};

static int64_t far_now_us(const struct far *far, int64_t local_us) {
    return far->offset_us + local_us + local_us / 1000 * far->drift_ppm / 1000;
}

static bool far_take(struct far *far, int64_t local_us, uint64_t cost, bool really) {
    const int64_t now_us = far_now_us(far, local_us);
    const int64_t token_us = (int64_t)(far->limit.period_ns / 1000);
    const int64_t base_us = far->tat_us > now_us ? far->tat_us : now_us;
    const int64_t tat_us = base_us + (int64_t)cost * token_us;
    if (tat_us > now_us + (int64_t)far->limit.burst * token_us) return false;
    if (really) far->tat_us = tat_us;
    return true;
}

static void ask_far(struct strict_node *node, struct far *far, uint64_t *random,
                    unsigned *refused) {
    struct weir_sync_ask ask;
    const uint64_t cost = 1 + next_random(random) % far->limit.burst;
    if (submit(node, &ask, 7, cost) != WEIR_PENDING) {
        assert_false(far_take(far, node->now_us, cost, false));
        ++*refused;
        return;
    }
    const int64_t sent_us = node->now_us;
    assert_true(strict_node_pack(node, 0));
    node->now_us += (int64_t)(next_random(random) % 30000);
    const bool granted = far_take(far, node->now_us, cost, true);
    const int64_t lag_us = far->tat_us - far_now_us(far, node->now_us);
    node->now_us += (int64_t)(next_random(random) % 30000);
    answer_one(node, lag_us > 0 ? lag_us : 0, granted ? "1" : "0", sent_us);
    assert_int_equal(weir_sync_poll(&ask), granted ? WEIR_GRANTED : WEIR_DENIED);
}

static void local_refusals_are_true_though_clocks_run_apart(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int run = 0; run < 60; run++) {
        struct strict_node node;
        struct far far = {.offset_us = INT64_C(1700000000000000),
                          .drift_ppm = (int64_t)(next_random(&random) % 1001) - 500};
        far.limit = limit_of(1, WEIR_MILLISECOND << next_random(&random) % 20,
                             1 + next_random(&random) % 12);
        unsigned refused = 0;
        node_init(&node, far.limit);
        const uint64_t token_us = far.limit.period_ns / 1000;
        for (int i = 0; i < 2000; i++) {
            node.now_us += (int64_t)(next_random(&random) % (token_us + 1));
            if (next_random(&random) % 3 == 0)
                (void)far_take(&far, node.now_us, 1 + next_random(&random) % far.limit.burst, true);
            ask_far(&node, &far, &random, &refused);
        }
        if (token_us > 200000) assert_true(refused > 100);
        strict_node_fini(&node);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_refusal_ends_before_redis_could_grant),
        cmocka_unit_test(an_answer_to_a_repeat_is_as_old_as_the_first_attempt),
        cmocka_unit_test(an_answer_that_gives_back_fills_the_local_bucket),
        cmocka_unit_test(a_slow_thread_learns_all_the_same),
        cmocka_unit_test(a_limiter_of_billions_a_second_learns_in_whole_tokens),
        cmocka_unit_test(an_ask_past_its_deadline_is_unsynced_by_default),
        cmocka_unit_test(open_decides_by_the_local_bucket_alone),
        cmocka_unit_test(a_local_share_takes_the_cost_for_every_node),
        cmocka_unit_test(the_limiter_counts_asks_by_their_answers),
        cmocka_unit_test(what_the_policy_grants_is_not_said_to_be_charged),
        cmocka_unit_test(no_limit_counts_as_untracked),
        cmocka_unit_test(a_dry_run_grants_whatever_becomes_of_redis),
        cmocka_unit_test(an_expired_ask_is_its_owners_while_its_call_goes_on),
        cmocka_unit_test(a_call_that_nobody_waits_for_is_not_sent_again),
        cmocka_unit_test(close_answers_all_and_open_takes_asks_again),
        cmocka_unit_test(a_forked_child_is_closed),
        cmocka_unit_test(asks_that_are_none_are_refused),
        cmocka_unit_test(no_limit_grants_and_no_rate_denies_without_redis),
        cmocka_unit_test(answers_that_are_none_leave_the_call_held),
        cmocka_unit_test(done_may_submit_the_same_ask_again),
        cmocka_unit_test(a_dry_run_grants_what_redis_denies),
        cmocka_unit_test(costs_are_exact),
        cmocka_unit_test(local_refusals_are_true_though_clocks_run_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
