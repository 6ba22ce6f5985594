// pool_report.h - what came out of one run or of several, for people and for programs.
#ifndef WR_POOL_REPORT_H
#define WR_POOL_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "pool.h"

#define WR_POOL_RUNS_MAX 8

// The runs of one command. All have their events, and all but the limit of the provider, in common.
struct wr_pool_runs {
    struct wr_pool *runs[WR_POOL_RUNS_MAX];
    size_t count;
    const char *downstream; // as it was given
    bool compare;
};

// "fixed 200/s"
#define WR_POOL_NAME_BYTES 96
void wr_pool_name(const struct wr_pool_options *options, char name[WR_POOL_NAME_BYTES]);

void wr_pool_report_write(FILE *out, const struct wr_pool_runs *runs);
bool wr_pool_report_write_json(FILE *out, const struct wr_pool_runs *runs);

#endif
