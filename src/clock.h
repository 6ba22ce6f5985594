// The limiter's clock: nanoseconds that never step, read in about the time of one counter read.
//
// wr_counter turns a CPU counter into CLOCK_MONOTONIC nanoseconds along a line that is re-drawn
// about once a second by whichever caller finds it old. A new line starts where the old one is and
// leans towards CLOCK_MONOTONIC, at most 500 ppm from the measured frequency: slewing, no step. A
// counter that jumps (a suspended or migrated machine) is given up for good, and counted.
// P1 and R1 are defined in clock.c.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

// ns = base_ns + ((ticks - base_ticks) * per_tick >> WR_TICK_SHIFT). The shift is done as 6 places
// up before the product and 64 down after it: the high half of a product costs nothing.
#define WR_TICK_SHIFT 58
#define WR_TICK_LIFT (64 - WR_TICK_SHIFT)
#define WR_LINES 8

struct wr_line {
    _Atomic uint64_t base_ticks;
    _Atomic uint64_t base_ns;
    _Atomic uint64_t per_tick;
    _Atomic uint64_t due_ticks; // after so many ticks past the base, draw a new line; 0: given up
};

struct wr_counter {
    _Alignas(64) _Atomic uint64_t current; // version of the line in force, its slot is version % 8
    struct wr_line lines[WR_LINES];
    _Alignas(64) _Atomic uint32_t drawing; // 1 while a caller draws a line
    _Atomic uint64_t fallbacks;
    // Only the drawing caller touches these:
    uint64_t last_ticks;
    uint64_t last_mono_ns;
    uint64_t interval_ns;
};

// Pure: all time comes in.
void wr_counter_init(struct wr_counter *counter, uint64_t ticks, uint64_t mono_ns,
                     uint64_t later_ticks, uint64_t later_mono_ns);
// Draws a new line from one simultaneous reading. Returns false if the counter was given up.
bool wr_counter_draw(struct wr_counter *counter, uint64_t ticks, uint64_t mono_ns);
bool wr_counter_begin_draw(struct wr_counter *counter);
void wr_counter_end_draw(struct wr_counter *counter);

// The process's counter, anchored at the first wr_clock_init.
extern struct wr_counter wr_process_counter;

// Prepares the process's counter. True where the CPU promises an invariant one.
bool wr_clock_init(void);
uint64_t wr_clock_monotonic_ns(void);
uint64_t wr_clock_coarse_ns(void);
uint64_t wr_clock_redraw(void);
uint64_t wr_counter_not_before(struct wr_counter *counter, uint64_t ticks);

static inline uint64_t wr_ticks(void) {
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

// A counter read that does not happen before the loads that precede it in the program.
static inline uint64_t wr_ticks_fenced(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
    return wr_ticks();
}

// Zero, but the CPU cannot know it before `ticks` is there: an address with this in it makes a
// load wait for the counter read. (A `lfence` would do, for 7 ns more.)
static inline uint64_t wr_after(uint64_t ticks) {
#if defined(__x86_64__)
    __asm__ volatile("andl $0, %k0" : "+r"(ticks)::"cc");
    return ticks;
#elif defined(__aarch64__)
    __asm__ volatile("and %0, %0, xzr\n\tisb" : "+r"(ticks)::"memory");
    return ticks;
#else
    return 0 & ticks;
#endif
}

struct wr_line_reading {
    uint64_t ns;
    bool fallen; // only looked at when due, which a line that was given up always is
    bool due;
};

static inline struct wr_line_reading wr_counter_read(struct wr_counter *counter, uint64_t ticks) {
    for (;;) {
        struct wr_line_reading reading = {0, false, false};
        const uint64_t version =
            atomic_load_explicit(&counter->current, memory_order_acquire); // P1
        struct wr_line *line = &counter->lines[version % WR_LINES];
        const uint64_t base = atomic_load_explicit(&line->base_ticks, memory_order_acquire); // R1
        const uint64_t ns = atomic_load_explicit(&line->base_ns, memory_order_acquire);      // R1
        const uint64_t per = atomic_load_explicit(&line->per_tick, memory_order_acquire);    // R1
        const uint64_t due = atomic_load_explicit(&line->due_ticks, memory_order_acquire);   // R1
        if (__builtin_expect(
                atomic_load_explicit(&counter->current, memory_order_relaxed) != version, 0)) // P1
            continue;
        // Cores' counters may differ by a few ticks: a reading before the base looks far beyond
        // due, and is sorted out where that is (wr_clock_redraw).
        const uint64_t elapsed = ticks - base;
        reading.due = elapsed > due;
        reading.fallen = due == 0;
        __extension__ typedef unsigned __int128 wide;
        reading.ns = ns + (uint64_t)((wide)(elapsed << WR_TICK_LIFT) * per >> 64);
        return reading;
    }
}
