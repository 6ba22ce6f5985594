// The counter as a clock: injected readings of a counter and of CLOCK_MONOTONIC.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support.h"

// A machine: a counter of `hz` whose CLOCK_MONOTONIC runs `ppm` fast against it.
struct machine {
    uint64_t hz;
    int64_t ppm;
    uint64_t ticks; // now
    uint64_t ns;
};

static void pass(struct machine *m, uint64_t ns) {
    m->ns += ns;
    const int64_t slower = (int64_t)ns - (int64_t)ns * m->ppm / 1000000;
    m->ticks += (uint64_t)((wr_u128)(uint64_t)slower * m->hz / WEIR_SECOND);
}

// As the library does: two readings a millisecond apart, the second of which is the anchor.
static void start(struct wr_counter *c, struct machine *m) {
    memset(c, 0, sizeof *c);
    const uint64_t ticks = m->ticks, ns = m->ns;
    pass(m, WEIR_MILLISECOND);
    wr_counter_init(c, ticks, ns, m->ticks, m->ns);
}

static int64_t error_ns(struct wr_counter *c, const struct machine *m) {
    return (int64_t)(m->ns - wr_counter_read(c, m->ticks).ns);
}

static struct machine machine_of(uint64_t hz) {
    return (struct machine){hz, 0, UINT64_C(123456789012), UINT64_C(987654321098)};
}

static void follows_the_monotonic_clock_at_any_frequency(void **state) {
    (void)state;
    static const uint64_t hz[] = {33000000, 1000000000, 2100000000, 4999999999};
    for (size_t i = 0; i < sizeof hz / sizeof hz[0]; i++) {
        struct wr_counter c;
        struct machine m = machine_of(hz[i]);
        start(&c, &m);
        assert_int_equal(error_ns(&c, &m), 0);
        for (int s = 0; s < 100; s++) {
            pass(&m, WEIR_SECOND / 10);
            if (wr_counter_read(&c, m.ticks).due) assert_true(wr_counter_draw(&c, m.ticks, m.ns));
            assert_in_range(error_ns(&c, &m) + 3000, 0, 6000);
        }
        assert_int_equal(c.fallbacks, 0);
    }
}

static void a_line_is_due_after_10_ms_first_and_a_second_later_on(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2000000000);
    start(&c, &m);
    pass(&m, 9 * WEIR_MILLISECOND);
    assert_false(wr_counter_read(&c, m.ticks).due);
    pass(&m, 2 * WEIR_MILLISECOND);
    assert_true(wr_counter_read(&c, m.ticks).due);
    for (int i = 0; i < 3; i++) {
        assert_true(wr_counter_draw(&c, m.ticks, m.ns));
        assert_false(wr_counter_read(&c, m.ticks).due);
        pass(&m, WEIR_SECOND + WEIR_MILLISECOND);
    }
    assert_true(wr_counter_draw(&c, m.ticks, m.ns));
    pass(&m, WEIR_SECOND - WEIR_MILLISECOND);
    assert_false(wr_counter_read(&c, m.ticks).due);
    pass(&m, 2 * WEIR_MILLISECOND);
    assert_true(wr_counter_read(&c, m.ticks).due);
}

static void a_new_line_starts_where_the_old_one_is(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    m.ppm = 300;
    for (int i = 0; i < 50; i++) {
        pass(&m, WEIR_SECOND);
        const uint64_t before = wr_counter_read(&c, m.ticks).ns;
        assert_true(wr_counter_draw(&c, m.ticks, m.ns));
        assert_int_equal(wr_counter_read(&c, m.ticks).ns, before);
    }
}

// Slewed, never stepped: no second of the line is more than 500 ppm (and what the measured
// frequency changed by) from a second, and it is always forward.
static void a_drift_is_slewed_within_500_ppm_and_forward(void **state) {
    (void)state;
    static const int64_t ppm[] = {-400, -50, 0, 50, 400};
    for (size_t i = 0; i < sizeof ppm / sizeof ppm[0]; i++) {
        struct wr_counter c;
        struct machine m = machine_of(2400000000);
        start(&c, &m);
        m.ppm = ppm[i];
        uint64_t last = wr_counter_read(&c, m.ticks).ns;
        for (int step = 0; step < 3000; step++) {
            pass(&m, WEIR_SECOND / 100);
            const uint64_t now = wr_counter_read(&c, m.ticks).ns;
            const int64_t off = (int64_t)(now - last) - (int64_t)(WEIR_SECOND / 100);
            assert_true(now > last);
            assert_in_range(off + 10000, 0, 20000); // 1000 ppm of 10 ms
            last = now;
            if (wr_counter_read(&c, m.ticks).due) assert_true(wr_counter_draw(&c, m.ticks, m.ns));
            assert_int_equal(wr_counter_read(&c, m.ticks).ns, now);
        }
        assert_in_range(error_ns(&c, &m) + 2000, 0, 4000); // caught up
        assert_int_equal(c.fallbacks, 0);
    }
}

static void an_error_is_caught_up_with(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    for (int i = 0; i < 3; i++) {
        pass(&m, WEIR_SECOND);
        assert_true(wr_counter_draw(&c, m.ticks, m.ns));
    }
    m.ns += 900000; // 0.9 ms ahead of the line: no jump yet
    pass(&m, WEIR_SECOND);
    assert_in_range(error_ns(&c, &m), 890000, 910000);
    // The second that had the error in it is measured 900 ppm fast, and leaned on by 500 more.
    static const int64_t most[] = {510000, 10000, 1000, 1000};
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        assert_true(wr_counter_draw(&c, m.ticks, m.ns));
        pass(&m, WEIR_SECOND);
        assert_in_range(error_ns(&c, &m) + most[i], 0, 2 * most[i]);
    }
}

static void expect_fallen(struct wr_counter *c, struct machine *m) {
    assert_false(wr_counter_draw(c, m->ticks, m->ns));
    assert_int_equal(c->fallbacks, 1);
    assert_true(wr_counter_read(c, m->ticks).fallen);
    pass(m, WEIR_SECOND);
    assert_false(wr_counter_draw(c, m->ticks, m->ns)); // for good, and counted once
    assert_int_equal(c->fallbacks, 1);
}

static void a_counter_that_jumps_forward_is_given_up_and_counted(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    pass(&m, WEIR_SECOND);
    assert_true(wr_counter_draw(&c, m.ticks, m.ns));
    pass(&m, WEIR_SECOND);
    m.ticks += m.hz / 100; // 10 ms of ticks that the clock has not seen: a suspended machine
    expect_fallen(&c, &m);
}

static void a_counter_that_jumps_back_is_given_up_and_counted(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    pass(&m, WEIR_SECOND);
    assert_true(wr_counter_draw(&c, m.ticks, m.ns));
    pass(&m, WEIR_SECOND);
    m.ticks = 1000; // another machine
    expect_fallen(&c, &m);
}

static void a_counter_that_stands_still_is_given_up(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    m.ns += WEIR_SECOND;
    expect_fallen(&c, &m);
}

static void hours_without_a_reading_are_no_jump(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    m.ppm = 80; // the first line was drawn over a millisecond
    pass(&m, 10 * WEIR_HOUR);
    assert_true(wr_counter_read(&c, m.ticks).due);
    assert_in_range(error_ns(&c, &m), 2800000000, 2900000000); // 80 ppm of 10 hours
    assert_true(wr_counter_draw(&c, m.ticks, m.ns));
    assert_int_equal(c.fallbacks, 0);
    const uint64_t before = wr_counter_read(&c, m.ticks).ns;
    pass(&m, WEIR_SECOND);
    const uint64_t after = wr_counter_read(&c, m.ticks).ns;
    assert_in_range(after - before, WEIR_SECOND - 600000, WEIR_SECOND + 600000); // slewed
}

static void a_second_drawer_waits_for_nobody(void **state) {
    (void)state;
    struct wr_counter c = {0};
    assert_true(wr_counter_begin_draw(&c));
    assert_false(wr_counter_begin_draw(&c));
    wr_counter_end_draw(&c);
    assert_true(wr_counter_begin_draw(&c));
}

static void a_reading_a_little_before_the_line_is_taken_at_its_base(void **state) {
    (void)state;
    struct wr_counter c;
    struct machine m = machine_of(2400000000);
    start(&c, &m);
    assert_true(wr_counter_read(&c, m.ticks - 10).due); // sorted out by the slow path
    assert_int_equal(wr_counter_not_before(&c, m.ticks - 10), m.ticks);
    assert_int_equal(wr_counter_not_before(&c, m.ticks + 10), m.ticks + 10);
    // Another machine's counter is not a little before.
    assert_int_equal(wr_counter_not_before(&c, m.ticks - (1 << 20)), m.ticks - (1 << 20));
}

// A line is copied whole or not at all: each line drawn here goes through 0 with a whole slope of 1
// to 16, so it reads a whole multiple of the ticks, and a mixture of two lines does not.
static struct wr_counter torn;
static _Atomic bool done;

static void draw_torn(struct random *random) {
    const uint64_t base = 1 + random_below(random, 900000000);
    const uint64_t slope = 1 + random_below(random, 16);
    wr_counter_init(&torn, base - 1, slope * (base - 1), base, slope * base);
}

static void *draw_lines(void *unused) {
    (void)unused;
    struct random random = {1};
    for (int i = 0; i < 4000000; i++) draw_torn(&random);
    atomic_store_explicit(&done, true, memory_order_release);
    return NULL;
}

static void *read_lines(void *wrong) {
    uint64_t *count = wrong;
    while (!atomic_load_explicit(&done, memory_order_acquire)) {
        const uint64_t ticks = 1000000007;
        const uint64_t ns = wr_counter_read(&torn, ticks).ns;
        *count += ns % ticks != 0 || ns / ticks < 1 || ns / ticks > 16;
    }
    return NULL;
}

// More readers than most machines have cores to spare: some are stopped in the middle of a copy.
static void torn_line(void **state) {
    (void)state;
    enum { READERS = 5 };
    struct random random = {2};
    pthread_t writer, readers[READERS];
    uint64_t wrong[READERS] = {0};
    memset(&torn, 0, sizeof torn);
    draw_torn(&random);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_lines, &wrong[i]), 0);
    assert_int_equal(pthread_create(&writer, NULL, draw_lines, NULL), 0);
    pthread_join(writer, NULL);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

// The process's own counter, its line moved 0.8 ms behind CLOCK_MONOTONIC and due to be drawn.
static void fall_behind(void) {
    struct wr_counter *c = &wr_process_counter;
    const uint64_t version = atomic_load_explicit(&c->current, memory_order_relaxed);
    const uint64_t per_tick =
        atomic_load_explicit(&c->lines[version % WR_LINES].per_tick, memory_order_relaxed);
    const uint64_t elapsed =
        (uint64_t)(((wr_u128)(20 * WEIR_MILLISECOND) << WR_TICK_SHIFT) / per_tick);
    const uint64_t ticks = wr_ticks() - elapsed;
    const uint64_t ns = wr_clock_monotonic_ns() - 20 * WEIR_MILLISECOND - 800000;
    wr_counter_init(c, ticks - elapsed, ns - 20 * WEIR_MILLISECOND, ticks, ns);
}

// Whoever draws the line gets a reading of it, as everybody else does: if he got CLOCK_MONOTONIC's,
// time would step forward for one decision and back for the next.
static void drawing_a_line_does_not_step(void **state) {
    (void)state;
    if (!wr_clock_init()) skip();
    for (int i = 0; i < 20; i++) {
        fall_behind();
        const uint64_t drawn = wr_clock_redraw();
        const struct wr_line_reading next = wr_counter_read(&wr_process_counter, wr_ticks());
        assert_false(next.fallen);
        if (next.due) continue; // disturbed: not drawn
        assert_true(drawn <= next.ns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_monotonic_clock_at_any_frequency),
        cmocka_unit_test(a_line_is_due_after_10_ms_first_and_a_second_later_on),
        cmocka_unit_test(a_new_line_starts_where_the_old_one_is),
        cmocka_unit_test(a_drift_is_slewed_within_500_ppm_and_forward),
        cmocka_unit_test(an_error_is_caught_up_with),
        cmocka_unit_test(a_counter_that_jumps_forward_is_given_up_and_counted),
        cmocka_unit_test(a_counter_that_jumps_back_is_given_up_and_counted),
        cmocka_unit_test(a_counter_that_stands_still_is_given_up),
        cmocka_unit_test(hours_without_a_reading_are_no_jump),
        cmocka_unit_test(a_second_drawer_waits_for_nobody),
        cmocka_unit_test(a_reading_a_little_before_the_line_is_taken_at_its_base),
        cmocka_unit_test(torn_line),
        cmocka_unit_test(drawing_a_line_does_not_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
