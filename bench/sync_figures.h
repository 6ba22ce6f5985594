// The decisive figures of the sync, as published for the scheme when it was chosen by simulation
// (r = b = 500, d = 100 ms), and measured again with the code of this library.
#pragma once

#include <stdbool.h>

struct sync_figure {
    const char *name;
    const char *unit;
    double published;
    double published_debt; // of debt alone, without shares and early reports; below 0: not given
    int nodes;
    bool at_most; // published as an upper bound
    bool quick;   // part of the test
};

int sync_figures_count(void);
const struct sync_figure *sync_figure(int index);
// The mean over so many seeds.
double sync_figure_measure(int index, int seeds, bool debt_only);
