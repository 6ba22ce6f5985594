// replay.h - a log against a limit: what would have been granted.
//
//     struct wr_replay *replay;
//     if (!wr_replay_create(&replay, &options, &fault)) ...
//     wr_replay_file(replay, "access.log", &fault);   // of each file
//     wr_replay_finish(replay, &fault);
//     wr_replay_summarise(replay, &summary);
//     wr_replay_destroy(replay);
//
// The log's time drives the limiter. A line older than the newest so far is judged at the newest:
// time does not go back. Memory does not depend on the length of the log.
#ifndef WR_REPLAY_H
#define WR_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "partition.h"
#include "record.h"
#include "skips.h"

#define WR_REPLAY_THREADS_MAX 64
#define WR_REPLAY_TOP_MAX 1000

struct wr_replay_options {
    struct wr_reader_options reader;
    struct wr_rate rate;
    uint64_t burst; // of an unlimited rate, ignored
    uint64_t capacity_keys;
    unsigned threads;
    bool compare;
    bool timeline;
    bool progress;   // on standard error
    FILE *decisions; // NULL: not asked for
    uint32_t top;    // how many of the keys most denied to list
};

// What came out. The texts and lists belong to the replay.
struct wr_summary {
    struct wr_replay_options options;
    const char *format; // of the last file
    const char *key;    // what it was made of
    uint32_t files;
    const char *const *file_names;
    uint64_t lines; // all, with headers and empty ones
    uint64_t events;
    const struct wr_skips *skips;
    uint64_t late; // lines older than the newest before them
    uint64_t late_most_ns;
    int64_t oldest_ns; // since 1970
    int64_t newest_ns;
    uint64_t keys;
    bool keys_exact;
    struct wr_totals totals;
    uint64_t displaced;
    uint64_t forgiven_tokens;
    uint64_t memory_bytes; // of the limiters
    // In any window of one period; none without a limit:
    struct wr_window_most most;
    const char *most_key;
    uint64_t most_bound; // burst + rate * period, by the weight of that key
    bool most_cut;
    // The fixed window's:
    struct wr_window_most counter_most;
    bool counter_most_cut;
    struct wr_fixed_window_worst worst;
    const char *worst_key;
    uint64_t worst_allowed;
    const struct wr_key_count *const *top;
    uint32_t top_count;
    uint64_t top_short_by;        // denials that a count in the list may lack
    struct wr_timeline *timeline; // starts at base_ns
    int64_t base_ns;
    uint64_t elapsed_ns; // of the wall clock
};

struct wr_replay;

// False when the options cannot be kept: a rate too high, a field that the format does not have.
bool wr_replay_create(struct wr_replay **replay, const struct wr_replay_options *options,
                      struct wr_fault *fault);
void wr_replay_destroy(struct wr_replay *replay);

// Replays a file, "-" for standard input. False when its data ends the replay: `fault` names the
// file and the line.
bool wr_replay_file(struct wr_replay *replay, const char *path, struct wr_fault *fault);

// Works on what is left. False when there was nothing to replay.
bool wr_replay_finish(struct wr_replay *replay, struct wr_fault *fault);

// Once, after wr_replay_finish.
bool wr_replay_summarise(struct wr_replay *replay, struct wr_summary *summary,
                         struct wr_fault *fault);

#endif
