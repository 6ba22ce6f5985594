// pool_events.h - all events of a run, in memory before it starts: every mode gets the same.
//
// Reading beforehand also means that a file which cannot be read stops nothing half way. What has
// been read of a file that breaks off is kept: `broke_off` says why.
#ifndef WR_POOL_EVENTS_H
#define WR_POOL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir_lot.h>

#include "pool_options.h"
#include "skips.h"

#define WR_POOL_EVENTS_MAX ((size_t)1 << 22)

// How an event ended. Each has one end, given by whoever owns it then.
enum wr_pool_end {
    WR_POOL_UNENDED = 0,
    WR_POOL_DELIVERED,
    WR_POOL_DENIED,  // for good, by the limit of its key
    WR_POOL_DEAD,    // too many tries, too old, or no room to park
    WR_POOL_PARKED,  // still waiting when the run ended
    WR_POOL_ENDS,
};

struct wr_pool_event {
    struct weir_lot_node node;
    uint64_t key;
    uint64_t due_ns; // when it arrives, since the start
    uint8_t gate;    // of struct wr_pool: the one it has to pass next
    uint8_t end;     // enum wr_pool_end
    uint8_t ends;    // how often it was given one: 1 at the end of a run
};

struct wr_pool_events {
    struct wr_pool_event *all; // by due_ns
    size_t count;
    size_t room;
    bool ended_early;  // a log that is shorter than the run
    uint64_t lines;    // of a log
    struct wr_skips skips;
    struct wr_fault broke_off; // empty: it did not
};

// Reads, or makes up, the events of options->duration_ns.
bool wr_pool_events_init(struct wr_pool_events *events, const struct wr_pool_options *options,
                         struct wr_fault *fault);
void wr_pool_events_fini(struct wr_pool_events *events);

// Ready for another run.
void wr_pool_events_reset(struct wr_pool_events *events);

#endif
