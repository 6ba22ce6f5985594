// pool_arguments.h - what `weir pool` was asked for.
#ifndef WR_POOL_ARGUMENTS_H
#define WR_POOL_ARGUMENTS_H

#include <stdbool.h>

#include "pool_options.h"

struct wr_pool_job {
    struct wr_pool_options options;
    bool has_rate, has_burst, has_mode, has_provider_rate, has_speed;
    bool compare, json;
    const char *downstream; // as given, or usual_downstream
    const char *listen, *plot, *output;
    char usual_downstream[256];
};

// Help, where it is asked for, and words of refusal are written. -1: go on; else the exit code.
int wr_pool_arguments(int argc, char **argv, struct wr_pool_job *job);

#endif
