// The exchange of one group: what it does about answers, silence and errors of each kind. Time is
// set by the tests.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../src/sync/batch.h"

#define MS INT64_C(1000)
#define RANDOM UINT32_MAX // no jitter: the longest wait
#define START_US INT64_C(77000000)

struct desk {
    struct wr_batch batch;
    struct wr_batch_todo todo;
    int64_t now_us;
};

static void wait_ms(struct desk *desk, int64_t ms) {
    desk->now_us += ms * MS;
}

static unsigned tick(struct desk *desk, enum wr_batch_want want) {
    wr_batch_tick(&desk->batch, desk->now_us, want, RANDOM, &desk->todo);
    return desk->todo.what;
}

static unsigned refuse(struct desk *desk, uint64_t seq, const char *text) {
    wr_batch_refused(&desk->batch, seq, text, strlen(text), desk->now_us, RANDOM, &desk->todo);
    return desk->todo.what;
}

static unsigned answer(struct desk *desk, uint64_t seq, int64_t marker_seq) {
    wr_batch_answered(&desk->batch, seq, desk->batch.sent_us, marker_seq, desk->now_us,
                      &desk->todo);
    return desk->todo.what;
}

static unsigned connected(struct desk *desk) {
    wr_batch_connected(&desk->batch, desk->now_us, &desk->todo);
    return desk->todo.what;
}

static unsigned disconnect(struct desk *desk) {
    wr_batch_disconnected(&desk->batch, desk->now_us, RANDOM, &desk->todo);
    return desk->todo.what;
}

static unsigned fill(struct desk *desk, size_t keys) {
    wr_batch_filled(&desk->batch, keys, WR_BATCH_TOUCHED, desk->now_us, RANDOM, &desk->todo);
    return desk->todo.what;
}

// Connected, script loaded, nothing to report.
static struct desk open_desk(void) {
    struct desk desk = {.now_us = START_US};
    const struct wr_batch_config config = {
        .interval_us = 100 * MS,
        .urgent_gap_us = 5 * MS,
        .timeout_us = 200 * MS,
        .dead_us = 1500 * MS,
        .backoff_min_us = 20 * MS,
        .backoff_max_us = 1000 * MS,
        .config_wait_us = 5000 * MS,
        .marker_ttl_us = 60000 * MS,
    };
    wr_batch_init(&desk.batch, &config, desk.now_us, RANDOM);
    assert_int_equal(tick(&desk, WR_BATCH_NOTHING), WR_BATCH_CONNECT);
    assert_int_equal(connected(&desk), WR_BATCH_LOAD);
    wr_batch_loaded(&desk.batch, desk.now_us, &desk.todo);
    assert_int_equal(desk.todo.what, 0);
    return desk;
}

// ... and a report of `keys` keys just sent.
static struct desk sent_desk(size_t keys) {
    struct desk desk = open_desk();
    wait_ms(&desk, 101);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FILL);
    assert_int_equal(fill(&desk, keys), WR_BATCH_SEND);
    assert_int_equal(desk.todo.seq, 1);
    return desk;
}

static void touched_keys_wait_for_the_interval_and_urgent_ones_do_not(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    wait_ms(&desk, 1);
    assert_int_equal(answer(&desk, 1, -1), WR_BATCH_APPLY);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), 0); // 5 ms have not passed
    wait_ms(&desk, 4);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), WR_BATCH_FILL);
    assert_int_equal(fill(&desk, 1), WR_BATCH_SEND);
    assert_int_equal(desk.todo.seq, 2);
    assert_int_equal(answer(&desk, 2, 1), WR_BATCH_APPLY);
    wait_ms(&desk, 109);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0);
    wait_ms(&desk, 2);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FILL);
}

static void a_full_report_is_followed_by_the_next_at_once(void **state) {
    (void)state;
    struct desk desk = sent_desk(100);
    answer(&desk, 1, -1);
    assert_int_equal(tick(&desk, WR_BATCH_MORE), WR_BATCH_FILL);
}

static void one_report_is_under_way_at_a_time(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    for (int i = 0; i < 190; i++) {
        wait_ms(&desk, 1);
        assert_int_equal(tick(&desk, WR_BATCH_MORE), 0);
    }
}

static void silence_sends_the_same_number_again_ever_more_slowly(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    desk.batch.config.dead_us = INT64_MAX;
    int64_t last_us = desk.now_us;
    const int64_t gaps_ms[] = {200, 400, 800, 1000, 1000};
    for (size_t i = 0; i < sizeof gaps_ms / sizeof *gaps_ms; i++) {
        desk.now_us = last_us + gaps_ms[i] * MS - 1;
        assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0);
        desk.now_us = last_us = wr_batch_wake_us(&desk.batch);
        assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_SEND);
        assert_int_equal(desk.todo.seq, 1);
    }
    assert_int_equal(desk.batch.counts.timeouts, 5);
    assert_int_equal(answer(&desk, 1, 1), WR_BATCH_APPLY);
    assert_int_equal(answer(&desk, 1, 1), 0);
    assert_int_equal(desk.batch.counts.stale, 1);
    assert_int_equal(desk.batch.counts.answered, 1);
}

static void a_half_open_connection_is_given_up(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    unsigned what = 0;
    for (int i = 0; i < 3000 && !(what & WR_BATCH_CONNECT); i++) {
        wait_ms(&desk, 1);
        what = tick(&desk, WR_BATCH_TOUCHED);
    }
    assert_int_equal(what, WR_BATCH_CONNECT);
    wait_ms(&desk, 1000);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_int_equal(desk.todo.seq, 1);
}

static void a_slow_server_is_waited_for_longer_once_known(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    wait_ms(&desk, 190);
    answer(&desk, 1, -1);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FILL);
    fill(&desk, 3);
    wait_ms(&desk, 300);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0); // twice the round trip
    wait_ms(&desk, 81);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_SEND);
}

static void an_error_to_the_only_attempt_merges_the_report_back(void **state) {
    (void)state;
    static const char *const errors[] = {"OOM x", "LOADING x", "BUSY x", "MISCONF x",
                                         "NOREPLICAS x", "ERR x", "WHATEVER x"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct desk desk = sent_desk(3);
        assert_int_equal(refuse(&desk, 1, errors[i]), WR_BATCH_MERGE);
        assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), 0);
        wait_ms(&desk, 111);
        assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FILL);
        assert_int_equal(fill(&desk, 3), WR_BATCH_SEND);
        assert_int_equal(desk.todo.seq, 2);
        assert_string_equal(desk.batch.last_words, errors[i]);
    }
}

static void an_error_after_a_lost_attempt_keeps_the_report_and_its_number(void **state) {
    (void)state;
    // The attempt whose connection broke may have been applied: merging would count it twice.
    static const char *const errors[] = {"OOM x", "LOADING x", "READONLY x", "NOPERM x", "ERR x"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct desk desk = sent_desk(3);
        assert_int_equal(disconnect(&desk), 0);
        wait_ms(&desk, 50);
        assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_CONNECT);
        assert_int_equal(connected(&desk), WR_BATCH_SEND);
        assert_int_equal(refuse(&desk, 1, errors[i]), 0);
        unsigned what = 0;
        for (int ms = 0; ms < 6000 && !(what & WR_BATCH_SEND); ms++) {
            wait_ms(&desk, 1);
            what = tick(&desk, WR_BATCH_TOUCHED);
            assert_false(what & (WR_BATCH_MERGE | WR_BATCH_FILL));
            if (what & WR_BATCH_CONNECT) what |= connected(&desk);
        }
        assert_int_equal(desk.todo.seq, 1);
        assert_int_equal(answer(&desk, 1, 1), WR_BATCH_APPLY);
    }
}

static void an_error_while_another_attempt_is_out_waits_for_that(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    wait_ms(&desk, 201);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_SEND);
    assert_int_equal(refuse(&desk, 1, "OOM x"), 0);
    assert_int_equal(desk.batch.phase, WR_BATCH_SENT);
    assert_int_equal(answer(&desk, 1, -1), WR_BATCH_APPLY);
}

static void a_lost_script_is_loaded_and_the_report_sent_again(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(refuse(&desk, 1, "NOSCRIPT x"), WR_BATCH_LOAD);
        wr_batch_loaded(&desk.batch, desk.now_us, &desk.todo);
        assert_int_equal(desk.todo.what, WR_BATCH_SEND);
        assert_int_equal(desk.todo.seq, 1);
    }
    // Something between us and Redis keeps forgetting it: no busy loop.
    assert_int_equal(refuse(&desk, 1, "NOSCRIPT x"), WR_BATCH_MERGE);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), 0);
}

static void a_replica_is_left(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    assert_int_equal(refuse(&desk, 1, "READONLY x"), WR_BATCH_MERGE);
    assert_int_equal(desk.batch.phase, WR_BATCH_CLOSED);
    wait_ms(&desk, 21);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_CONNECT);
}

static void a_moved_slot_is_followed_with_the_same_report(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    assert_int_equal(refuse(&desk, 1, "MOVED 7 10.0.0.1:6380"), WR_BATCH_FOLLOW);
    assert_string_equal(desk.todo.redirect.host, "10.0.0.1");
    assert_false(desk.todo.asking);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_int_equal(refuse(&desk, 1, "ASK 7 10.0.0.2:6380"), WR_BATCH_FOLLOW);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_true(desk.todo.asking);
    assert_int_equal(refuse(&desk, 1, "TRYAGAIN x"), 0);
    wait_ms(&desk, 20);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_SEND);
    assert_true(desk.todo.asking);
    assert_int_equal(desk.todo.seq, 1);
    assert_int_equal(answer(&desk, 1, -1), WR_BATCH_APPLY);
}

// Redis forgets ASKING with the command that follows it, and the importing node has no script yet.
static void asking_leads_every_send_on_the_connection_that_it_opened(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    assert_int_equal(refuse(&desk, 1, "ASK 7 10.0.0.2:6380"), WR_BATCH_FOLLOW);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_true(desk.todo.asking);
    assert_int_equal(refuse(&desk, 1, "NOSCRIPT No matching script."), WR_BATCH_LOAD);
    wr_batch_loaded(&desk.batch, desk.now_us, &desk.todo);
    assert_int_equal(desk.todo.what, WR_BATCH_SEND);
    assert_true(desk.todo.asking);
    assert_int_equal(refuse(&desk, 1, "MOVED 7 10.0.0.1:6380"), WR_BATCH_FOLLOW);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_false(desk.todo.asking);
}

static void a_circle_of_redirections_ends(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    int hops = 0;
    while (refuse(&desk, 1, "MOVED 7 10.0.0.1:6380") == WR_BATCH_FOLLOW) {
        assert_int_equal(connected(&desk), WR_BATCH_SEND);
        assert_true(++hops < 10);
    }
    assert_int_equal(desk.batch.phase, WR_BATCH_CLOSED);
}

static void foreign_keys_are_taken_out_and_the_rest_goes_on(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    assert_int_equal(refuse(&desk, 1, "WEIRKEY 1 3"), WR_BATCH_REMOVE | WR_BATCH_SEND);
    assert_int_equal(desk.todo.bad_count, 2);
    assert_int_equal(desk.todo.bad[1], 2);
    assert_int_equal(desk.todo.seq, 1);
    assert_int_equal(refuse(&desk, 1, "WEIRKEY 1"), WR_BATCH_REMOVE);
    wait_ms(&desk, 111);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FILL);
}

static void what_somebody_must_change_is_tried_again_slowly(void **state) {
    (void)state;
    static const char *const errors[] = {"NOAUTH x", "WRONGPASS x", "NOPERM x", "WEIREPOCH 5 x",
                                         "WEIRARGS x", "CROSSSLOT x", "WRONGTYPE x", "WEIRKEY 0"};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        struct desk desk = sent_desk(3);
        assert_int_equal(refuse(&desk, 1, errors[i]), WR_BATCH_MERGE);
        wait_ms(&desk, 4999);
        assert_int_equal(tick(&desk, WR_BATCH_URGENT), 0);
        wait_ms(&desk, 1);
        assert_int_equal(tick(&desk, WR_BATCH_URGENT), WR_BATCH_CONNECT);
        assert_true(wr_batch_outage(&desk.batch, desk.now_us));
    }
}

static void a_report_older_than_half_the_marker_is_forgotten(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    const int64_t filled_us = desk.now_us;
    unsigned what = 0;
    while (!(what & WR_BATCH_FORGET)) {
        wait_ms(&desk, 1);
        what = tick(&desk, WR_BATCH_TOUCHED);
        assert_true(desk.now_us - filled_us <= 30001 * MS);
        if (what & WR_BATCH_CONNECT && !(what & WR_BATCH_FORGET)) connected(&desk);
    }
    assert_true(desk.now_us - filled_us > 30000 * MS);
    assert_false(what & WR_BATCH_SEND);
    assert_int_equal(desk.batch.counts.forgotten, 1);
    assert_int_equal(desk.batch.keys, 0);
}

static void a_report_held_back_too_long_is_forgotten_and_not_sent(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    disconnect(&desk);
    wait_ms(&desk, 50);
    tick(&desk, WR_BATCH_TOUCHED);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_int_equal(refuse(&desk, 1, "OOM x"), 0);
    wait_ms(&desk, 31000);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_FORGET | WR_BATCH_CONNECT);
}

static void after_a_failure_urgent_keys_wait_too(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    wait_ms(&desk, 10);
    assert_int_equal(refuse(&desk, 1, "OOM x"), WR_BATCH_MERGE);
    wait_ms(&desk, 19);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), 0);
    wait_ms(&desk, 1);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), WR_BATCH_FILL);
}

static void a_report_that_surely_was_not_applied_is_never_forgotten(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    assert_int_equal(refuse(&desk, 1, "NOSCRIPT x"), WR_BATCH_LOAD);
    disconnect(&desk);
    wait_ms(&desk, 50000);
    assert_int_equal(tick(&desk, WR_BATCH_TOUCHED), WR_BATCH_CONNECT);
    assert_int_equal(connected(&desk), WR_BATCH_SEND);
    assert_int_equal(desk.batch.counts.forgotten, 0);
}

static void a_server_that_is_no_redis_is_left_alone_for_a_while(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    wr_batch_garbled(&desk.batch, desk.now_us, RANDOM, &desk.todo);
    assert_int_equal(desk.todo.what, 0);
    assert_int_equal(desk.batch.keys, 3);
    wait_ms(&desk, 4990);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), 0);
    wait_ms(&desk, 11);
    assert_int_equal(tick(&desk, WR_BATCH_URGENT), WR_BATCH_CONNECT);
}

static void a_connection_that_never_comes_is_tried_again(void **state) {
    (void)state;
    struct desk desk = {.now_us = START_US};
    const struct wr_batch_config config = open_desk().batch.config;
    wr_batch_init(&desk.batch, &config, desk.now_us, RANDOM);
    int connects = 0;
    for (int ms = 0; ms < 30000; ms++) {
        wait_ms(&desk, 1);
        connects += (tick(&desk, WR_BATCH_URGENT) & WR_BATCH_CONNECT) != 0;
    }
    assert_in_range(connects, 10, 20); // 1.5 s of patience and at most 1 s between
    assert_true(wr_batch_outage(&desk.batch, desk.now_us));
}

static void silence_is_an_outage_only_while_something_waits(void **state) {
    (void)state;
    struct desk desk = open_desk();
    wait_ms(&desk, 60000);
    tick(&desk, WR_BATCH_NOTHING);
    assert_false(wr_batch_outage(&desk.batch, desk.now_us));
    wait_ms(&desk, 111);
    tick(&desk, WR_BATCH_TOUCHED);
    fill(&desk, 1);
    wait_ms(&desk, 200);
    assert_false(wr_batch_outage(&desk.batch, desk.now_us));
    wait_ms(&desk, 1);
    assert_true(wr_batch_outage(&desk.batch, desk.now_us));
    answer(&desk, 1, -1);
    assert_false(wr_batch_outage(&desk.batch, desk.now_us));
}

static void a_marker_behind_or_ahead_is_counted_and_never_counts_twice(void **state) {
    (void)state;
    struct desk desk = sent_desk(3);
    answer(&desk, 1, -1);
    wait_ms(&desk, 111);
    tick(&desk, WR_BATCH_TOUCHED);
    fill(&desk, 3);
    answer(&desk, 2, -1); // Redis knew nothing of number 1 any more
    assert_int_equal(desk.batch.counts.marker_lost, 1);
    wait_ms(&desk, 111);
    tick(&desk, WR_BATCH_TOUCHED);
    fill(&desk, 3);
    assert_int_equal(answer(&desk, 3, 900), WR_BATCH_APPLY);
    assert_int_equal(desk.batch.counts.marker_ahead, 1);
    wait_ms(&desk, 111);
    tick(&desk, WR_BATCH_TOUCHED);
    fill(&desk, 3);
    assert_int_equal(desk.todo.seq, 901);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(touched_keys_wait_for_the_interval_and_urgent_ones_do_not),
        cmocka_unit_test(a_full_report_is_followed_by_the_next_at_once),
        cmocka_unit_test(one_report_is_under_way_at_a_time),
        cmocka_unit_test(silence_sends_the_same_number_again_ever_more_slowly),
        cmocka_unit_test(a_half_open_connection_is_given_up),
        cmocka_unit_test(a_slow_server_is_waited_for_longer_once_known),
        cmocka_unit_test(an_error_to_the_only_attempt_merges_the_report_back),
        cmocka_unit_test(an_error_after_a_lost_attempt_keeps_the_report_and_its_number),
        cmocka_unit_test(an_error_while_another_attempt_is_out_waits_for_that),
        cmocka_unit_test(a_lost_script_is_loaded_and_the_report_sent_again),
        cmocka_unit_test(a_replica_is_left),
        cmocka_unit_test(a_moved_slot_is_followed_with_the_same_report),
        cmocka_unit_test(asking_leads_every_send_on_the_connection_that_it_opened),
        cmocka_unit_test(a_circle_of_redirections_ends),
        cmocka_unit_test(foreign_keys_are_taken_out_and_the_rest_goes_on),
        cmocka_unit_test(what_somebody_must_change_is_tried_again_slowly),
        cmocka_unit_test(a_report_older_than_half_the_marker_is_forgotten),
        cmocka_unit_test(a_report_held_back_too_long_is_forgotten_and_not_sent),
        cmocka_unit_test(after_a_failure_urgent_keys_wait_too),
        cmocka_unit_test(a_report_that_surely_was_not_applied_is_never_forgotten),
        cmocka_unit_test(a_server_that_is_no_redis_is_left_alone_for_a_while),
        cmocka_unit_test(a_connection_that_never_comes_is_tried_again),
        cmocka_unit_test(silence_is_an_outage_only_while_something_waits),
        cmocka_unit_test(a_marker_behind_or_ahead_is_counted_and_never_counts_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
