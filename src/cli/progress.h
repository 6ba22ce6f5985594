// progress.h - a line on the terminal that says how far it is.
#ifndef WR_PROGRESS_H
#define WR_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

struct wr_progress {
    bool shown; // at all
    uint64_t start_ns;
    uint64_t due_ns; // when to write the next one
    bool dirty;      // something stands on the terminal
};

// Nothing is written unless `wanted` and standard error is a terminal.
void wr_progress_init(struct wr_progress *progress, bool wanted);
uint64_t wr_progress_elapsed_ns(const struct wr_progress *progress);

// Every now and then writes how many lines there were, and how much of `source`.
void wr_progress_show(struct wr_progress *progress, uint64_t lines, const struct wr_source *source);

// Takes it off again.
void wr_progress_clear(struct wr_progress *progress);

#endif
