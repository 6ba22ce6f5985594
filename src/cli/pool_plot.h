// pool_plot.h - a picture of one run or of several: granted, denied and the rate over time.
#ifndef WR_POOL_PLOT_H
#define WR_POOL_PLOT_H

#include "plot.h"
#include "pool_report.h"

#define WR_POOL_PLOT_WIDTH 900
#define WR_POOL_PLOT_HEIGHT_EACH 320

void wr_pool_plot(struct wr_plot *plot, const struct wr_pool_runs *runs);

#endif
