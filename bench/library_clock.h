// The clock as a decision reads it, for what is measured beside decisions. Uses the library's own
// inline code, so that it changes when the library's does.
#pragma once

#include "../src/clock.h"

static inline uint64_t bench_library_ns(uint64_t ticks) {
    const struct wr_line_reading line = wr_counter_read(&wr_process_counter, ticks);
    if (line.fallen) return wr_clock_monotonic_ns();
    return line.due ? wr_clock_redraw() : line.ns;
}
