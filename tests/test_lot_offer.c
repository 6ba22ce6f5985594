// test_lot_offer.c - the ready-made loop on a real limiter with the test's clock: what passes, what
// is parked for how long, what is given up and why, and that no key starves another.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir_lot.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

struct event {
    struct weir_lot_node node;
    uint64_t user;
};

static struct weir *limiter;
static struct weir_lot *lot;
static struct weir_lot_options options;

// 10 tokens a second, burst 2, unless a test changes it; 100 places.
static int set_up(void **state) {
    (void)state;
    const struct weir_lot_options standard = WEIR_LOT_OPTIONS_INIT;
    struct weir_options limit = WEIR_OPTIONS_INIT;
    limit.limit = (struct weir_limit){10, WEIR_SECOND, 2};
    limit.max_rate_tokens = 10000;
    limit.max_rate_period_ns = WEIR_SECOND;
    limit.capacity_keys = 1000;
    limit.clock = WEIR_CLOCK_CALLER;
    options = standard;
    options.capacity = 100;
    return weir_create(&limiter, &limit, NULL);
}

static int tear_down(void **state) {
    (void)state;
    weir_lot_destroy(lot);
    weir_destroy(limiter);
    lot = NULL;
    return 0;
}

static void make_lot(void) {
    assert_int_equal(weir_lot_create(&lot, &options, NULL), WEIR_GRANTED);
}

static int offer_cost(struct event *event, uint64_t cost, int64_t now_ns) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_id(event->user);
    ask.cost = cost;
    ask.now_ns = now_ns;
    return weir_lot_offer(lot, limiter, &ask, &event->node, now_ns, NULL);
}

static int offer(struct event *event, int64_t now_ns) {
    return offer_cost(event, 1, now_ns);
}

static struct event *take_one(int64_t now_ns) {
    struct weir_lot_node *node;
    if (weir_lot_take(lot, now_ns, &node, 1) == 0) return NULL;
    return WEIR_LOT_EVENT(node, struct event, node);
}

static uint64_t count_of(enum weir_fate fate) {
    struct weir_lot_stats s;
    assert_int_equal(weir_lot_stats(lot, &s, sizeof s), WEIR_GRANTED);
    assert_int_equal(s.parked, s.retried + s.cancelled + s.drained + s.held);
    return s.fates[fate];
}

static void spend_burst(uint64_t user, int64_t now_ns) {
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(weir_take_at(limiter, weir_id(user), 1, now_ns, NULL), WEIR_GRANTED);
}

static void what_passes_is_sent_and_what_is_denied_waits_for_exactly_retry_after(void **state) {
    (void)state;
    struct event events[3] = {{WEIR_LOT_NODE_INIT, 7}, {WEIR_LOT_NODE_INIT, 7},
                              {WEIR_LOT_NODE_INIT, 7}};
    make_lot();
    assert_int_equal(offer(&events[0], 0), WEIR_SEND);
    assert_int_equal(offer(&events[1], 0), WEIR_SEND);
    assert_int_equal(offer(&events[2], 30 * MS), WEIR_PARKED);
    assert_int_equal(weir_lot_next_ns(lot, 30 * MS), 70 * MS);
    assert_null(take_one(100 * MS - 1));
    assert_ptr_equal(take_one(100 * MS), &events[2]);
    assert_int_equal(offer(&events[2], 100 * MS), WEIR_SEND);
    assert_int_equal(events[2].node.tries, 1);
    assert_int_equal(count_of(WEIR_SEND), 3);
    assert_int_equal(count_of(WEIR_PARKED), 1);
}

static void an_event_is_given_up_after_its_tries(void **state) {
    (void)state;
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    int64_t now = 0;
    options.max_tries = 3;
    make_lot();
    spend_burst(7, now);
    for (unsigned denied = 1; denied <= 3; denied++) {
        assert_int_equal(offer(&event, now), denied < 3 ? WEIR_PARKED : WEIR_DEAD_TRIES);
        if (denied == 3) break;
        now = event.node.due_ns;
        assert_ptr_equal(take_one(now), &event);
        assert_int_equal(weir_take_at(limiter, weir_id(7), 1, now, NULL), WEIR_GRANTED); // barged
    }
    assert_int_equal(count_of(WEIR_DEAD_TRIES), 1);
    assert_null(take_one(INT64_MAX));
}

static void an_event_is_given_up_when_it_would_come_too_late(void **state) {
    (void)state;
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    options.max_age_ns = 150 * MS;
    make_lot();
    spend_burst(7, 0);
    assert_int_equal(offer(&event, 0), WEIR_PARKED);
    assert_ptr_equal(take_one(100 * MS), &event);
    assert_int_equal(weir_take_at(limiter, weir_id(7), 1, 100 * MS, NULL), WEIR_GRANTED);
    assert_int_equal(offer(&event, 100 * MS), WEIR_DEAD_AGE); // due at 200 ms
    struct event next = {WEIR_LOT_NODE_INIT, 7};
    assert_int_equal(offer(&next, 100 * MS), WEIR_PARKED); // its own age counts
    assert_int_equal(count_of(WEIR_DEAD_AGE), 1);
}

static void an_event_due_exactly_at_its_age_is_tried_once_more(void **state) {
    (void)state;
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    options.max_age_ns = 100 * MS;
    make_lot();
    spend_burst(7, 0);
    assert_int_equal(offer(&event, 0), WEIR_PARKED);
    assert_ptr_equal(take_one(100 * MS), &event);
    assert_int_equal(offer(&event, 100 * MS), WEIR_SEND);
}

static void what_can_never_pass_is_said_at_once(void **state) {
    (void)state;
    const struct weir_limit shut = {10, WEIR_SECOND, 0};
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    make_lot();
    assert_int_equal(offer_cost(&event, 3, 0), WEIR_DEAD_NEVER); // above the burst
    assert_int_equal(weir_set_limit_at(limiter, &shut, 0, NULL), WEIR_GRANTED);
    assert_int_equal(offer(&event, 1), WEIR_DEAD_NEVER);
    assert_int_equal(count_of(WEIR_DEAD_NEVER), 2);
    assert_int_equal(weir_lot_defer(lot, weir_id(7), &event.node, WEIR_FOREVER, 2, NULL),
                     WEIR_DEAD_NEVER);
}

static void a_longest_wait_asks_again_in_case_the_limit_has_changed(void **state) {
    (void)state;
    const struct weir_limit stopped = {0, 1, 2};
    const struct weir_limit again = {10, WEIR_SECOND, 2};
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    options.max_wait_ns = 50 * MS;
    make_lot();
    assert_int_equal(weir_set_limit_at(limiter, &stopped, 0, NULL), WEIR_GRANTED);
    spend_burst(7, 0);
    assert_int_equal(offer(&event, 0), WEIR_PARKED);
    assert_int_equal(event.node.due_ns, 50 * MS);
    assert_int_equal(weir_set_limit_at(limiter, &again, 10 * MS, NULL), WEIR_GRANTED);
    assert_ptr_equal(take_one(50 * MS), &event);
    assert_int_equal(offer(&event, 50 * MS), WEIR_PARKED);
    assert_int_equal(event.node.due_ns, 100 * MS); // 110 ms by the limit
    assert_ptr_equal(take_one(100 * MS), &event);
    assert_int_equal(offer(&event, 110 * MS), WEIR_SEND);
}

static void a_full_and_a_closed_lot_give_the_event_back(void **state) {
    (void)state;
    struct event events[4] = {{WEIR_LOT_NODE_INIT, 1}, {WEIR_LOT_NODE_INIT, 2},
                              {WEIR_LOT_NODE_INIT, 3}, {WEIR_LOT_NODE_INIT, 4}};
    options.capacity = 2;
    make_lot();
    for (unsigned i = 0; i < 4; i++) spend_burst(events[i].user, 0);
    assert_int_equal(offer(&events[0], 0), WEIR_PARKED);
    assert_int_equal(offer(&events[1], 0), WEIR_PARKED);
    assert_int_equal(offer(&events[2], 0), WEIR_DEAD_FULL);
    weir_lot_close(lot);
    assert_int_equal(offer(&events[3], 0), WEIR_DEAD_CLOSED);
    assert_int_equal(count_of(WEIR_DEAD_FULL), 1);
    assert_int_equal(count_of(WEIR_DEAD_CLOSED), 1);
    assert_ptr_equal(take_one(100 * MS), &events[0]);
    assert_int_equal(offer(&events[0], 100 * MS), WEIR_SEND); // what passes still passes
}

static void a_flood_of_one_key_leaves_room_and_time_for_others(void **state) {
    (void)state;
    struct event flood[101];
    struct event other = {WEIR_LOT_NODE_INIT, 2};
    make_lot();
    spend_burst(1, 0);
    spend_burst(2, 0);
    for (unsigned i = 0; i < 101; i++) {
        flood[i] = (struct event){WEIR_LOT_NODE_INIT, 1};
        // 100 places: 7 of 8 for one key
        assert_int_equal(offer(&flood[i], 0), i < 88 ? WEIR_PARKED : WEIR_DEAD_KEY_FULL);
    }
    assert_int_equal(offer(&other, 0), WEIR_PARKED);
    assert_int_equal(other.node.due_ns, 100 * MS);
    struct event *first = take_one(100 * MS);
    struct event *second = take_one(100 * MS);
    assert_true(first == &other || second == &other);
    assert_int_equal(offer(&other, 100 * MS), WEIR_SEND);
    assert_int_equal(count_of(WEIR_DEAD_KEY_FULL), 13);
}

static void events_of_a_key_come_back_one_after_another(void **state) {
    (void)state;
    struct event events[20];
    options.turn_ns = 5 * WEIR_SECOND;
    make_lot();
    spend_burst(7, 0);
    for (unsigned i = 0; i < 20; i++) {
        events[i] = (struct event){WEIR_LOT_NODE_INIT, 7};
        assert_int_equal(offer(&events[i], 0), WEIR_PARKED);
        assert_int_equal(events[i].node.due_ns, (i + 1) * 100 * MS);
    }
    for (unsigned i = 0; i < 20; i++) {
        const int64_t now = (i + 1) * 100 * MS;
        assert_ptr_equal(take_one(now), &events[i]);
        assert_null(take_one(now));
        assert_int_equal(offer(&events[i], now), WEIR_SEND); // none is denied a second time
    }
}

static void a_new_event_goes_behind_those_parked(void **state) {
    (void)state;
    struct event first = {WEIR_LOT_NODE_INIT, 7}, second = first, third = first;
    make_lot();
    spend_burst(7, 0);
    assert_int_equal(offer(&first, 0), WEIR_PARKED);          // due at 100 ms
    assert_int_equal(offer(&second, 100 * MS), WEIR_PARKED);  // one token there, for the first
    assert_int_equal(second.node.tries, 0);
    assert_int_equal(second.node.due_ns, 200 * MS);
    assert_ptr_equal(take_one(100 * MS), &first);
    assert_int_equal(offer(&first, 100 * MS), WEIR_SEND);
    assert_int_equal(offer(&third, 300 * MS), WEIR_SEND);     // two tokens there: one is left
    assert_ptr_equal(take_one(300 * MS), &second);
    assert_int_equal(offer(&second, 300 * MS), WEIR_SEND);
}

static void without_turns_every_event_waits_for_retry_after(void **state) {
    (void)state;
    struct event events[5];
    options.turn_ns = 0;
    make_lot();
    spend_burst(7, 0);
    for (unsigned i = 0; i < 5; i++) {
        events[i] = (struct event){WEIR_LOT_NODE_INIT, 7};
        assert_int_equal(offer(&events[i], 0), WEIR_PARKED);
        assert_int_equal(events[i].node.due_ns, 100 * MS);
    }
    struct event late = {WEIR_LOT_NODE_INIT, 7};
    assert_int_equal(offer(&late, 100 * MS), WEIR_SEND); // asks at once, and is first
}

static void a_deep_backlog_is_served_at_the_rate_without_being_denied_over_and_over(void **state) {
    (void)state;
    enum { COUNT = 2000 };
    struct event *events = calloc(COUNT, sizeof *events);
    const struct weir_limit limit = {500, WEIR_SECOND, 10};
    unsigned sent = 0, asked = 0;
    options.capacity = 2 * COUNT;
    make_lot();
    assert_int_equal(weir_set_limit_at(limiter, &limit, 0, NULL), WEIR_GRANTED);
    for (unsigned i = 0; i < COUNT; i++) {
        events[i].user = 7;
        sent += offer(&events[i], 0) == WEIR_SEND;
    }
    int64_t now = 0;
    for (; sent < COUNT && now < 10 * SECOND; now += MS) {
        for (struct event *event; (event = take_one(now)) != NULL; asked++)
            sent += offer(event, now) == WEIR_SEND;
    }
    assert_int_equal(sent, COUNT);
    // (2000 - 2) / 500 a second, and no more than a second of turns in vain
    assert_in_range(now, 3900 * MS, 5000 * MS);
    assert_in_range(asked, 0, 5 * COUNT); // all at once, every 2 ms, would be two million
    free(events);
}

static void a_denial_from_elsewhere_is_parked_for_what_it_says(void **state) {
    (void)state;
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    options.max_tries = 2;
    make_lot();
    assert_int_equal(offer(&event, 10 * MS), WEIR_SEND);
    assert_int_equal(weir_lot_defer(lot, weir_id(7), &event.node, 3 * WEIR_SECOND, 15 * MS, NULL),
                     WEIR_PARKED);
    assert_int_equal(event.node.due_ns, 3015 * MS);
    assert_int_equal(event.node.first_ns, 10 * MS);
    assert_ptr_equal(take_one(3015 * MS), &event);
    assert_int_equal(weir_lot_defer(lot, weir_id(7), &event.node, 0, 3015 * MS, NULL),
                     WEIR_DEAD_TRIES);
}

static void a_failed_ask_changes_nothing(void **state) {
    (void)state;
    struct event event = {WEIR_LOT_NODE_INIT, 7};
    struct weir_ask ask = WEIR_ASK_INIT;
    const struct weir_lot_node before = event.node;
    make_lot();
    ask.kind = WEIR_CHARGE;
    assert_int_equal(weir_lot_offer(lot, limiter, &ask, &event.node, 0, NULL), WEIR_EINVAL);
    ask.kind = WEIR_TAKE;
    ask.size = sizeof ask + 8;
    assert_int_equal(weir_lot_offer(lot, limiter, &ask, &event.node, 0, NULL), WEIR_ESIZE);
    ask.size = 1;
    assert_int_equal(weir_lot_offer(lot, limiter, &ask, &event.node, 0, NULL), WEIR_ESIZE);
    assert_memory_equal(&event.node, &before, sizeof before);
    for (unsigned fate = 0; fate < WEIR_FATES_END; fate++)
        assert_int_equal(count_of((enum weir_fate)fate), 0);
}

static void a_cancelled_event_counts_no_longer_for_its_key(void **state) {
    (void)state;
    struct event first = {WEIR_LOT_NODE_INIT, 7}, second = first;
    struct weir_ask ask = WEIR_ASK_INIT;
    struct weir_lot_ticket ticket;
    make_lot();
    spend_burst(7, 0);
    ask.key = weir_id(7);
    assert_int_equal(weir_lot_offer(lot, limiter, &ask, &first.node, 0, &ticket), WEIR_PARKED);
    assert_ptr_equal(weir_lot_cancel(lot, ticket), &first.node);
    assert_int_equal(offer(&second, 0), WEIR_PARKED);
    assert_int_equal(second.node.due_ns, 100 * MS); // nobody is before it
}

static void every_fate_has_words(void **state) {
    (void)state;
    for (int fate = 0; fate < WEIR_FATES_END; fate++)
        assert_string_not_equal(weir_fate_words(fate), "unknown fate");
    assert_string_equal(weir_fate_words(-1), "unknown fate");
    assert_string_equal(weir_fate_words(WEIR_FATES_END), "unknown fate");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_passes_is_sent_and_what_is_denied_waits_for_exactly_retry_after),
        TEST(an_event_is_given_up_after_its_tries),
        TEST(an_event_is_given_up_when_it_would_come_too_late),
        TEST(an_event_due_exactly_at_its_age_is_tried_once_more),
        TEST(what_can_never_pass_is_said_at_once),
        TEST(a_longest_wait_asks_again_in_case_the_limit_has_changed),
        TEST(a_full_and_a_closed_lot_give_the_event_back),
        TEST(a_flood_of_one_key_leaves_room_and_time_for_others),
        TEST(events_of_a_key_come_back_one_after_another),
        TEST(a_new_event_goes_behind_those_parked),
        TEST(without_turns_every_event_waits_for_retry_after),
        TEST(a_deep_backlog_is_served_at_the_rate_without_being_denied_over_and_over),
        TEST(a_denial_from_elsewhere_is_parked_for_what_it_says),
        TEST(a_failed_ask_changes_nothing),
        TEST(a_cancelled_event_counts_no_longer_for_its_key),
        TEST(every_fate_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
