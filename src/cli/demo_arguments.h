// demo_arguments.h - what `weir sync-demo` was asked for.
#ifndef WR_DEMO_ARGUMENTS_H
#define WR_DEMO_ARGUMENTS_H

#include "demo.h"

struct wr_demo_job {
    struct wr_demo_options options;
    bool has_burst, json;
    const char *plot, *output;
};

// Help, where it is asked for, and words of refusal are written. -1: go on; else the exit code.
int wr_demo_arguments(int argc, char **argv, struct wr_demo_job *job);

#endif
