// replay_parts.h - what replay.c and summary.c share.
#ifndef WR_REPLAY_PARTS_H
#define WR_REPLAY_PARTS_H

#include "pipeline.h"
#include "progress.h"
#include "replay.h"

struct wr_replay {
    struct wr_replay_options options;
    struct wr_reader *reader;
    struct wr_pipeline *pipeline;
    struct wr_partition *partitions;
    uint32_t partition_count;
    // Of the files:
    const char **file_names;
    uint32_t files;
    uint32_t empty_files;
    const char *format;
    uint64_t lines;
    struct wr_skips skips;
    // Of the lines' times:
    bool begun; // a first line has set base_ns
    int64_t base_ns;
    int64_t oldest_ns;
    int64_t newest_ns;
    uint64_t late;
    uint64_t late_most_ns;
    // Of the outcome:
    uint64_t events;
    int failed; // a result that ended the replay, or 0
    const struct wr_key_count **top;
    struct wr_progress progress;
};

#endif
