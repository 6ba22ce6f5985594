// report.h - what a replay found, for a person or for a program.
#ifndef WR_REPORT_H
#define WR_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "replay.h"

void wr_report_write(FILE *out, const struct wr_summary *summary);

// One JSON object; its members are described in weir(1). False without memory.
bool wr_report_write_json(FILE *out, const struct wr_summary *summary);

// How long a window of the fixed-window counter is, rounded down; WEIR_FOREVER without a rate.
uint64_t wr_report_fixed_window_ns(const struct wr_summary *summary);

#endif
