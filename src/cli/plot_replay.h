// plot_replay.h - the picture of a replay.
#ifndef WR_PLOT_REPLAY_H
#define WR_PLOT_REPLAY_H

#include "plot.h"
#include "replay.h"

#define WR_PLOT_REPLAY_WIDTH 960
#define WR_PLOT_REPLAY_HEIGHT 720

// Above, what was granted and denied over time; below, the keys most denied. The timeline is
// coarsened for it.
void wr_plot_replay(struct wr_plot *plot, struct wr_summary *summary);

#endif
