// progress.c - five times a second, over the same line.
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

#define INTERVAL_NS (200 * WEIR_MILLISECOND)

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

void wr_progress_init(struct wr_progress *progress, bool wanted) {
    *progress = (struct wr_progress){.shown = wanted && isatty(STDERR_FILENO) == 1};
    progress->start_ns = clock_ns();
    progress->due_ns = progress->start_ns + INTERVAL_NS;
}

uint64_t wr_progress_elapsed_ns(const struct wr_progress *progress) {
    return clock_ns() - progress->start_ns;
}

void wr_progress_show(struct wr_progress *progress, uint64_t lines,
                      const struct wr_source *source) {
    uint64_t size = wr_source_size_bytes(source);
    uint64_t now_ns = progress->shown ? clock_ns() : 0;
    if (!progress->shown || now_ns < progress->due_ns) return;
    uint64_t elapsed_ms = (now_ns - progress->start_ns) / WEIR_MILLISECOND;
    fprintf(stderr, "\r\033[K%s: ", wr_source_name(source));
    if (size > 0)
        fprintf(stderr, "%" PRIu64 "%%, ", wr_source_offset_bytes(source) / (size / 100 + 1));
    fprintf(stderr, "%" PRIu64 " lines, %" PRIu64 " a second", lines, lines * 1000 / elapsed_ms);
    fflush(stderr);
    progress->dirty = true;
    progress->due_ns = now_ns + INTERVAL_NS;
}

void wr_progress_clear(struct wr_progress *progress) {
    if (!progress->dirty) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->dirty = false;
}
