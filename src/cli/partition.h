// partition.h - a share of the keys: their limiter, and all that is counted of them.
//
// A key's hash says which partition it is in, whatever the number of threads; a partition is worked
// on by one thread, in the order of the log. So each decision, and each figure, is the same for any
// number of threads. (One limiter for all would not do: a thread that is ahead of the others in the
// log's time would drop idle buckets at its time, and a limiter rightly gives a key that comes back
// at an earlier time less than a burst.)
#ifndef WR_PARTITION_H
#define WR_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "event.h"
#include "fixed_window.h"
#include "keys.h"
#include "rate.h"
#include "timeline.h"
#include "waits.h"
#include "window.h"

struct wr_partition_options {
    struct wr_rate rate;
    uint64_t burst;
    uint64_t capacity_keys; // of the limiter
    uint32_t counted_keys;  // at most so many have counts
    uint64_t grants_max;    // of a window's history
    bool compare;           // with the fixed window
    bool timeline;
    bool windows; // none for an unlimited rate
};

struct wr_totals {
    uint64_t granted; // lines
    uint64_t denied;  // lines; `never` of them cost more than the burst
    uint64_t never;
    uint64_t refused; // lines that the limiter could not judge
    uint64_t granted_tokens;
    uint64_t denied_tokens;
    uint64_t waits[WR_WAIT_COUNT];
    // The fixed window's:
    uint64_t counter_granted;
    uint64_t counter_granted_tokens;
    uint64_t only_counter; // lines that it alone granted
    uint64_t only_bucket;
};

struct wr_partition {
    struct wr_partition_options options;
    struct weir *limiter;
    int64_t base_ns; // of the first line, since 1970
    int64_t now_ns;
    struct wr_totals totals;
    struct wr_keys keys;
    struct wr_window window;
    char window_key[WR_KEY_NAME_BYTES + 1];
    struct wr_fixed_window counters;
    char worst_key[WR_KEY_NAME_BYTES + 1];
    struct wr_window counters_window;
    struct wr_timeline *timeline; // NULL: not asked for
};

// Words as from weir_create. wr_partition_fini is called in any case.
bool wr_partition_init(struct wr_partition *partition, const struct wr_partition_options *options,
                       struct wr_fault *fault);
void wr_partition_fini(struct wr_partition *partition);

// Judges one event, sets its outcome, and counts it. A result below 0 other than WEIR_EWEIGHT (a
// line to skip) is the end of the replay.
void wr_partition_judge(struct wr_partition *partition, struct wr_event *event);

#endif
