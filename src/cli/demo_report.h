// demo_report.h - the outcome of a run, for people and for programs.
#ifndef WR_DEMO_REPORT_H
#define WR_DEMO_REPORT_H

#include <stdio.h>

#include "demo_judge.h"
#include "plot.h"

#define WR_DEMO_PLOT_WIDTH 900
#define WR_DEMO_PLOT_HEIGHT 640

void wr_demo_report_write(FILE *out, const struct wr_demo_run *run,
                          const struct wr_demo_verdict *verdict);
bool wr_demo_report_write_json(FILE *out, const struct wr_demo_run *run,
                               const struct wr_demo_verdict *verdict);
// What was granted against b + r*t, and the excess.
void wr_demo_plot(struct wr_plot *plot, const struct wr_demo_run *run,
                  const struct wr_demo_verdict *verdict);

// "8 processes, 500/s, burst 500, demand 3x even"
#define WR_DEMO_TITLE_BYTES 320
void wr_demo_title(const struct wr_demo_options *options, char title[WR_DEMO_TITLE_BYTES]);

#endif
