// The CPU's counter as a clock: one line for the process, re-drawn about once a second.
//
// Shared words
//   current    written by the drawing caller, read by every reading: which line is in force
//   lines[]    written by the drawing caller before `current` names them, never while it does
//   drawing    a try-lock: who fails to take it uses the line there is. A caller that dies with it
//              (fork in another thread) only stops the slewing; the child clears it after fork
//   fallbacks  written by the drawing caller, read by stats
// I1 A line named by `current` is not written: the next line goes to the next of eight places.
// I2 A reader uses a line only if `current` was the same before and after it copied the line, so a
//    line was not overwritten meanwhile (that takes eight versions). test_clock: torn_line.
// P1 The line's words are published by the store of `current`; the reader's second load checks.
// R1 The line's words are acquire loads only to keep the second load of `current` behind them.
// R2 `drawing` guards plain words: taken with acquire, given back with release.
// R3 `fallbacks` is a statistic.
#include "clock.h"

#include <pthread.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define FIRST_INTERVAL_NS UINT64_C(10000000)
#define LAST_INTERVAL_NS UINT64_C(1000000000)
#define SLEW_PARTS 2000            // 500 ppm
#define JUMP_NS INT64_C(1000000)   // an error above this and above 1000 ppm of the time is a jump

struct wr_counter wr_process_counter;

static uint64_t clock_ns(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t wr_clock_monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t wr_clock_coarse_ns(void) {
    return clock_ns(CLOCK_MONOTONIC_COARSE);
}

static uint64_t slope(uint64_t ns, uint64_t ticks) {
    __extension__ typedef unsigned __int128 wide;
    return ticks == 0 ? 0 : (uint64_t)(((wide)ns << WR_TICK_SHIFT) / ticks);
}

// A slope of 0 is no clock: that line is given up, and always due.
static void publish(struct wr_counter *counter, uint64_t ticks, uint64_t ns, uint64_t per_tick) {
    const uint64_t version =
        atomic_load_explicit(&counter->current, memory_order_relaxed) + 1; // P1
    struct wr_line *line = &counter->lines[version % WR_LINES];
    __extension__ typedef unsigned __int128 wide;
    const uint64_t due =
        per_tick == 0 ? 0 : (uint64_t)(((wide)counter->interval_ns << WR_TICK_SHIFT) / per_tick);
    atomic_store_explicit(&line->base_ticks, ticks, memory_order_relaxed);  // P1
    atomic_store_explicit(&line->base_ns, ns, memory_order_relaxed);        // P1
    atomic_store_explicit(&line->per_tick, per_tick, memory_order_relaxed); // P1
    atomic_store_explicit(&line->due_ticks, due, memory_order_relaxed);     // P1
    atomic_store_explicit(&counter->current, version, memory_order_release); // P1
}

void wr_counter_init(struct wr_counter *counter, uint64_t ticks, uint64_t mono_ns,
                     uint64_t later_ticks, uint64_t later_mono_ns) {
    counter->last_ticks = later_ticks;
    counter->last_mono_ns = later_mono_ns;
    counter->interval_ns = FIRST_INTERVAL_NS;
    publish(counter, later_ticks, later_mono_ns,
            slope(later_mono_ns - mono_ns, later_ticks - ticks));
}

bool wr_counter_begin_draw(struct wr_counter *counter) {
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&counter->drawing, &free, 1, // R2
                                                   memory_order_acquire,        // R2
                                                   memory_order_relaxed);       // R2
}

void wr_counter_end_draw(struct wr_counter *counter) {
    atomic_store_explicit(&counter->drawing, 0, memory_order_release); // R2
}

static bool fall(struct wr_counter *counter) {
    publish(counter, 0, 0, 0);
    atomic_fetch_add_explicit(&counter->fallbacks, 1, memory_order_relaxed);           // R3
    return false;
}

// The slope that meets CLOCK_MONOTONIC after one interval, within 500 ppm of the measured one.
static uint64_t slewed(uint64_t measured, int64_t error_ns, uint64_t interval_ns) {
    const int64_t most = (int64_t)(measured / SLEW_PARTS);
    __extension__ typedef __int128 wide;
    wide lean = (wide)measured * error_ns / (int64_t)interval_ns;
    if (lean > most) lean = most;
    if (lean < -most) lean = -most;
    return (uint64_t)((int64_t)measured + (int64_t)lean);
}

bool wr_counter_draw(struct wr_counter *counter, uint64_t ticks, uint64_t mono_ns) {
    const uint64_t elapsed_ns = mono_ns - counter->last_mono_ns;
    const struct wr_line_reading line = wr_counter_read(counter, ticks);
    if (line.fallen) return false;
    const int64_t error_ns = (int64_t)(mono_ns - line.ns);
    const int64_t allowed_ns = JUMP_NS + (int64_t)(elapsed_ns / 1000);
    if ((int64_t)(ticks - counter->last_ticks) <= 0 || (int64_t)elapsed_ns <= 0 ||
        error_ns > allowed_ns || error_ns < -allowed_ns)
        return fall(counter);
    const uint64_t measured = slope(elapsed_ns, ticks - counter->last_ticks);
    counter->interval_ns = counter->interval_ns * 10 < LAST_INTERVAL_NS ? counter->interval_ns * 10
                                                                         : LAST_INTERVAL_NS;
    publish(counter, ticks, line.ns, slewed(measured, error_ns, counter->interval_ns));
    counter->last_ticks = ticks;
    counter->last_mono_ns = mono_ns;
    return true;
}

// A counter reading and a monotonic one at nearly the same moment: the closest of four tries.
// False if each was disturbed (the process was preempted), by more than 20 us.
static bool read_both(uint64_t *ticks, uint64_t *mono_ns) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        const uint64_t before = wr_ticks_fenced();
        const uint64_t ns = wr_clock_monotonic_ns();
        const uint64_t gap = wr_ticks_fenced() - before;
        if (gap >= best) continue;
        best = gap;
        *ticks = before + gap / 2;
        *mono_ns = ns;
    }
    return best < 100000;
}

// A reading of a core whose counter is a little behind the one that the line was drawn on.
uint64_t wr_counter_not_before(struct wr_counter *counter, uint64_t ticks) {
    const uint64_t version = atomic_load_explicit(&counter->current, memory_order_acquire); // P1
    struct wr_line *line = &counter->lines[version % WR_LINES];
    const uint64_t base = atomic_load_explicit(&line->base_ticks, memory_order_acquire); // R1
    const int64_t behind = (int64_t)(base - ticks);
    return behind > 0 && behind < INT64_C(1) << 20 ? base : ticks;
}

// Called by a decision whose reading found the line old: about 200 ns, once a second in a process.
uint64_t wr_clock_redraw(void) {
    struct wr_counter *counter = &wr_process_counter;
    if (wr_counter_begin_draw(counter)) {
        uint64_t at = 0, mono_ns = 0;
        // Another caller may have drawn since our reading.
        if (wr_counter_read(counter, wr_ticks()).due && read_both(&at, &mono_ns))
            wr_counter_draw(counter, at, mono_ns);
        wr_counter_end_draw(counter);
    }
    // Still due: someone else is drawing, or could not. The old line may be wrong (a jump is found
    // by drawing), the system's clock is not.
    const uint64_t ticks = wr_counter_not_before(counter, wr_ticks());
    const struct wr_line_reading reading = wr_counter_read(counter, ticks);
    return reading.fallen || reading.due ? wr_clock_monotonic_ns() : reading.ns;
}

static bool counter_is_invariant(void) {
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d)) return false;
    return (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void after_fork(void) {
    wr_counter_end_draw(&wr_process_counter);
}

// Measures the counter over a millisecond; the lines drawn later refine it.
static void init_once(void) {
    uint64_t ticks = 0, mono_ns = 0, later_ticks = 0, later_mono_ns = 0;
    if (!counter_is_invariant()) return;
    read_both(&ticks, &mono_ns);
    do {
        read_both(&later_ticks, &later_mono_ns);
    } while (later_mono_ns - mono_ns < WEIR_MILLISECOND);
    // The slope has five whole places: a counter slower than 32 MHz would not fit.
    if (later_ticks - ticks <= (later_mono_ns - mono_ns) / 31) return;
    wr_counter_init(&wr_process_counter, ticks, mono_ns, later_ticks, later_mono_ns);
    pthread_atfork(NULL, NULL, after_fork);
    usable = true;
}

bool wr_clock_init(void) {
    pthread_once(&once, init_once);
    return usable;
}
