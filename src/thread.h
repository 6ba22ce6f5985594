// A small number for each thread: which line of counters is its own.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define WR_THREAD_OWN 112    // lines that one thread has to itself
#define WR_THREAD_SHARED 16  // lines for all other threads
#define WR_THREAD_LINES (WR_THREAD_OWN + WR_THREAD_SHARED)
#define WR_THREAD_LIKELY(x) __builtin_expect(!!(x), 1)

// Line + 1; 0 before the first use. Below WR_THREAD_OWN + 1 the line is this thread's alone.
extern _Thread_local uint32_t wr_thread_line_plus_one __attribute__((tls_model("initial-exec")));

// The same line for counting, if it is this thread's alone: WR_THREAD_STRIDE times the line, and 1.
// Else 0.
extern _Thread_local uint32_t wr_thread_own_offset __attribute__((tls_model("initial-exec")));
#define WR_THREAD_STRIDE 384 // sizeof(struct wr_count_line)

uint32_t wr_thread_claim(void);

static inline uint32_t wr_thread_line(void) {
    const uint32_t line = wr_thread_line_plus_one;
    if (WR_THREAD_LIKELY(line != 0)) return line - 1;
    return wr_thread_claim();
}
