// test_valve_thread.c - driving a real limiter, by hand and by the thread, on the test's own clock:
// nothing here sleeps. A callback that blocks, fails or talks nonsense leaves the rate alone.
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "valve.h"

#define INTERVAL (100 * WEIR_MILLISECOND)

// The world of the valve's thread. `lock` guards all of it; `news` is signalled when any changes.
static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint64_t now_ns;
    unsigned waits;      // how often the thread has gone to sleep, woken for nothing too
    unsigned reads;      // how often it has called the callback
    unsigned done;       // calls, of any, that have returned
    unsigned slept;      // of those, behind which it has gone to sleep
    bool block;          // the callback does not return
    bool blocked;        // it is in there
    uint64_t read_takes_ns;
    struct weir_sample sample;
    int result;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static struct weir_valve_settings settings;
static struct weir_valve *valve;
static struct weir *limiter;

static void with_world(void (*change)(void)) {
    pthread_mutex_lock(&world.lock);
    change();
    pthread_cond_broadcast(&world.news);
    pthread_mutex_unlock(&world.lock);
}

static uint64_t world_now(void *context) {
    (void)context;
    pthread_mutex_lock(&world.lock);
    const uint64_t now = world.now_ns;
    pthread_mutex_unlock(&world.lock);
    return now;
}

// Sleeping: the thread waits for the test to advance the clock. The test itself, in stop, waits for
// the thread's end, or, when that is stuck in the callback, until its patience is over.
static void world_wait(void *context, pthread_cond_t *wake, pthread_mutex_t *lock,
                       uint64_t until_ns) {
    (void)context;
    pthread_mutex_lock(&world.lock);
    world.waits++;
    world.slept = world.done;
    if (world.blocked && world.now_ns < until_ns) world.now_ns = until_ns;
    const bool stuck = world.blocked;
    pthread_cond_broadcast(&world.news);
    pthread_mutex_unlock(&world.lock);
    if (!stuck) pthread_cond_wait(wake, lock);
}

static const struct wr_valve_time world_time = {world_now, world_wait, NULL};

static int world_read(void *context, struct weir_sample *sample) {
    pthread_mutex_lock(&world.lock);
    if (context == &world) world.reads++;
    world.blocked = true;
    pthread_cond_broadcast(&world.news);
    while (world.block) pthread_cond_wait(&world.news, &world.lock);
    world.blocked = false;
    world.now_ns += world.read_takes_ns;
    world.done++;
    *sample = world.sample;
    const int result = world.result;
    pthread_mutex_unlock(&world.lock);
    return result;
}

static void wait_for(const unsigned *count, unsigned wanted) {
    pthread_mutex_lock(&world.lock);
    while (*count < wanted) pthread_cond_wait(&world.news, &world.lock);
    pthread_mutex_unlock(&world.lock);
}

static void advance(uint64_t ns) {
    pthread_mutex_lock(&world.lock);
    world.now_ns += ns;
    pthread_mutex_unlock(&world.lock);
    pthread_mutex_lock(&valve->lock);
    pthread_cond_broadcast(&valve->changed);
    pthread_mutex_unlock(&valve->lock);
}

static unsigned look(const unsigned *count) {
    pthread_mutex_lock(&world.lock);
    const unsigned now = *count;
    pthread_mutex_unlock(&world.lock);
    return now;
}

// One interval: the thread reads, steps, and sleeps again.
static void tick(void) {
    const unsigned before = look(&world.done);
    advance(INTERVAL);
    wait_for(&world.slept, before + 1);
}

static struct weir_valve_stats stats(void) {
    struct weir_valve_stats s;
    assert_int_equal(weir_valve_stats(valve, &s, sizeof s), WEIR_GRANTED);
    return s;
}

static uint64_t limit_tokens(void) {
    struct weir_limit limit;
    weir_get_limit(limiter, &limit);
    assert_int_equal(limit.period_ns, 1000 * WEIR_SECOND);
    return limit.tokens;
}

static int make_limiter(enum weir_clock clock, uint64_t max_rate) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){100, WEIR_SECOND, 10};
    options.max_rate_tokens = max_rate;
    options.max_rate_period_ns = WEIR_SECOND;
    options.capacity_keys = 16;
    options.clock = clock;
    return weir_create(&limiter, &options, NULL);
}

static int set_up(void **state) {
    (void)state;
    const struct weir_valve_settings standard = WEIR_VALVE_SETTINGS_INIT;
    const struct weir_sample empty = WEIR_SAMPLE_INIT;
    settings = standard;
    settings.min_per_s = 20;
    settings.base_per_s = 150;
    settings.max_per_s = 5000;
    world.now_ns = 7 * WEIR_SECOND;
    world.waits = world.reads = world.done = world.slept = 0;
    world.block = world.blocked = false;
    world.read_takes_ns = 0;
    world.sample = empty;
    world.sample.granted_tokens = 1000; // no lack of use
    world.result = 0;
    if (weir_valve_create(&valve, &settings, NULL) != WEIR_GRANTED) return -1;
    return make_limiter(WEIR_CLOCK_AUTO, 5000);
}

static int tear_down(void **state) {
    (void)state;
    const int result = weir_valve_destroy(valve);
    weir_destroy(limiter);
    return result;
}

static void start(void) {
    struct weir_error error = {""};
    if (wr_valve_start(valve, limiter, world_read, &world, &world_time, &error) != WEIR_GRANTED)
        fail_msg("%s", error.text);
    wait_for(&world.waits, 1);
}

static void the_thread_sets_the_base_and_then_follows_the_samples(void **state) {
    (void)state;
    start();
    assert_int_equal(limit_tokens(), 150000);
    assert_true(stats().running);
    tick();
    assert_int_equal(limit_tokens(), 180000);
    world.sample.overloads = 90;
    tick();
    assert_true(limit_tokens() < 180000);
    assert_int_equal(stats().overloaded, 1);
    assert_int_equal(stats().steps, 2);
    assert_int_equal(weir_valve_stop(valve), WEIR_GRANTED);
    assert_false(stats().running);
}

static void it_reads_once_an_interval(void **state) {
    (void)state;
    start();
    advance(INTERVAL - 1);
    wait_for(&world.waits, 2);
    assert_int_equal(look(&world.reads), 0);
    advance(1);
    wait_for(&world.slept, 1);
    for (unsigned i = 2; i < 10; i++) {
        tick();
        assert_int_equal(look(&world.reads), i);
    }
}

static void a_reading_that_fails_or_makes_no_sense_leaves_the_rate(void **state) {
    (void)state;
    start();
    world.result = 1;
    tick();
    tick();
    assert_int_equal(stats().failed, 2);
    world.result = 0;
    world.sample.depth = NAN;
    tick();
    world.sample.depth = -5;
    tick();
    assert_int_equal(stats().nonsense, 2);
    assert_int_equal(limit_tokens(), 150000);
    world.sample.depth = 0;
    tick();
    assert_true(limit_tokens() > 150000); // and it goes on
}

static void a_reading_that_comes_late_is_not_used(void **state) {
    (void)state;
    start();
    world.sample.overloads = 1000;
    world.read_takes_ns = INTERVAL + 1;
    tick();
    assert_int_equal(stats().late, 1);
    assert_int_equal(stats().overloads, 0);
    assert_int_equal(limit_tokens(), 150000);
    world.read_takes_ns = INTERVAL;
    tick();
    assert_int_equal(stats().late, 1);
    assert_true(limit_tokens() < 150000);
}

static void unblock(void) {
    world.block = false;
}

static void block(void) {
    world.block = true;
}

static void a_reading_that_blocks_holds_up_nobody_and_is_counted(void **state) {
    (void)state;
    start();
    with_world(block);
    advance(INTERVAL);
    wait_for(&world.reads, 1);
    assert_false(stats().reading_late);
    advance(INTERVAL + 1);
    assert_true(stats().reading_late); // known at once, while it still blocks
    assert_int_equal(stats().late, 1);
    advance(WEIR_HOUR);
    assert_int_equal(stats().late, 1);
    assert_int_equal(look(&world.reads), 1); // no second one beside it
    assert_int_equal(limit_tokens(), 150000);
    assert_int_equal(weir_take(limiter, weir_str("a"), 1, NULL), WEIR_GRANTED);

    assert_int_equal(weir_valve_stop(valve), WEIR_EBUSY);
    assert_int_equal(weir_valve_destroy(valve), WEIR_EBUSY); // nothing was freed
    assert_true(stats().running);
    with_world(unblock);
    while (weir_valve_stop(valve) == WEIR_EBUSY) continue; // it returns now
    assert_false(stats().running);
    assert_int_equal(limit_tokens(), 150000);
    assert_int_equal(stats().steps, 0);
}

static void it_may_be_started_again(void **state) {
    (void)state;
    struct weir_error error = {""};
    start();
    assert_int_equal(wr_valve_start(valve, limiter, world_read, &world, &world_time, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.text, "stop it first"));
    tick();
    assert_int_equal(weir_valve_stop(valve), WEIR_GRANTED);
    assert_int_equal(weir_valve_stop(valve), WEIR_GRANTED);
    const struct weir_limit other = {1, WEIR_SECOND, 1};
    assert_int_equal(weir_set_limit(limiter, &other, NULL), WEIR_GRANTED);
    world.waits = 0;
    start();
    assert_int_equal(limit_tokens(), 180000); // set anew
}

static void the_machines_clock_works_too(void **state) {
    (void)state;
    struct weir_error error;
    assert_int_equal(weir_valve_destroy(valve), WEIR_GRANTED);
    settings.interval_ns = WEIR_MILLISECOND;
    assert_int_equal(weir_valve_create(&valve, &settings, &error), WEIR_GRANTED);
    assert_int_equal(weir_valve_start(valve, limiter, world_read, &world, &error), WEIR_GRANTED);
    wait_for(&world.reads, 2); // as long as it takes
    assert_int_equal(weir_valve_stop(valve), WEIR_GRANTED);
    const unsigned reads = look(&world.reads);
    assert_int_equal(weir_valve_start(valve, limiter, NULL, NULL, &error), WEIR_EINVAL);
    assert_int_equal(look(&world.reads), reads);
}

static void a_limiter_that_cannot_be_driven_is_refused(void **state) {
    (void)state;
    struct weir_error error = {""};
    weir_destroy(limiter);
    assert_int_equal(make_limiter(WEIR_CLOCK_AUTO, 4999), WEIR_GRANTED);
    assert_int_equal(weir_valve_start(valve, limiter, world_read, &world, &error), WEIR_ELIMIT);
    assert_non_null(strstr(error.text, "max_per_s is 5000"));
    assert_non_null(strstr(error.text, "max_rate"));
    weir_destroy(limiter);
    assert_int_equal(make_limiter(WEIR_CLOCK_CALLER, 5000), WEIR_GRANTED);
    assert_int_equal(weir_valve_fits(valve, limiter, &error), WEIR_ECLOCK);
    assert_non_null(strstr(error.text, "weir_set_limit_at"));
    assert_false(stats().running);
}

static void driven_by_hand_it_takes_the_use_from_the_limiters_counters(void **state) {
    (void)state;
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    for (unsigned i = 0; i < 50; i++) { // 10 tokens an interval: 100/s
        for (unsigned n = 0; n < 10; n++) weir_charge(limiter, weir_id(i), 1, NULL);
        assert_int_equal(weir_valve_drive(valve, limiter, &sample, INTERVAL), WEIR_GRANTED);
    }
    assert_int_equal(limit_tokens(), 200000); // twice the use
    sample.depth = NAN;
    assert_int_equal(weir_valve_drive(valve, limiter, &sample, INTERVAL), WEIR_EINVAL);
    assert_int_equal(limit_tokens(), 200000);
}

static void a_limit_that_is_refused_is_counted_and_tried_again(void **state) {
    (void)state;
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    weir_destroy(limiter);
    // Nobody has asked weir_valve_fits.
    assert_int_equal(make_limiter(WEIR_CLOCK_AUTO, 160), WEIR_GRANTED);
    assert_int_equal(weir_valve_drive(valve, limiter, &sample, INTERVAL), WEIR_ELIMIT); // 180/s
    assert_int_equal(stats().refused, 1);
    sample.overloads = 5;
    assert_int_equal(weir_valve_drive(valve, limiter, &sample, INTERVAL), WEIR_GRANTED);
    assert_true(limit_tokens() < 160000);
}

// Asked for all there is, every millisecond, while the rate goes up and down: never more than the
// rate made and the first burst.
static void no_token_is_minted_by_a_change_of_rate(void **state) {
    (void)state;
    struct weir_limit limit;
    uint64_t granted = 0;
    double made = 0;
    weir_destroy(limiter);
    assert_int_equal(make_limiter(WEIR_CLOCK_CALLER, 5000), WEIR_GRANTED);
    weir_valve_limit(valve, &limit);
    assert_int_equal(weir_set_limit_at(limiter, &limit, 0, NULL), WEIR_GRANTED);
    for (int64_t ms = 1; ms < 60000; ms++) {
        made += (double)limit.tokens / 1e6;
        while (weir_take_at(limiter, weir_id(1), 1, ms * 1000000, NULL) == WEIR_GRANTED) granted++;
        if (ms % 100 != 0) continue;
        struct weir_sample sample = WEIR_SAMPLE_INIT;
        sample.overloads = ms / 100 % 40 == 0 ? 20 : 0;
        sample.depth = ms / 100 % 60 > 50 ? 200 : 0;
        weir_valve_step(valve, &sample, INTERVAL, &limit);
        assert_int_equal(weir_set_limit_at(limiter, &limit, ms * 1000000, NULL), WEIR_GRANTED);
    }
    assert_true(stats().raised > 50 && stats().lowered > 10 && stats().overloaded > 5);
    assert_true((double)granted <= made + 10 + 1);
    assert_true((double)granted >= 0.95 * made);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_thread_sets_the_base_and_then_follows_the_samples),
        TEST(it_reads_once_an_interval),
        TEST(a_reading_that_fails_or_makes_no_sense_leaves_the_rate),
        TEST(a_reading_that_comes_late_is_not_used),
        TEST(a_reading_that_blocks_holds_up_nobody_and_is_counted),
        TEST(it_may_be_started_again),
        TEST(the_machines_clock_works_too),
        TEST(a_limiter_that_cannot_be_driven_is_refused),
        TEST(driven_by_hand_it_takes_the_use_from_the_limiters_counters),
        TEST(a_limit_that_is_refused_is_counted_and_tried_again),
        TEST(no_token_is_minted_by_a_change_of_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
