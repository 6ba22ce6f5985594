// What the server script should do, written a second time in plain integers, as a judge for the Lua
// and as the server of the simulator. It shares no code with src/sync.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sync_bucket {
    bool exists;
    int64_t tat_us;
    uint32_t epoch;
    uint32_t previous;
    uint32_t current;
    uint32_t generation;
};

struct sync_report {
    int64_t cost_us;
    int64_t cap_us;       // burst + max_debt
    int64_t burst_us;     // the cap of a backlog
    uint32_t generation;
    int64_t age_us;
    uint32_t demand;
    bool backlog;
};

struct sync_answer {
    int64_t rel_us; // INT64_MIN: unknown
    uint32_t previous;
    uint32_t current;
    int64_t forgiven_us; // of the cost, cut off by the cap
};

// One key of a call at now_us. Not fresh: nothing changes.
struct sync_answer sync_model_report(struct sync_bucket *bucket, const struct sync_report *report,
                                     bool fresh, int64_t now_us, int64_t epoch_us);
// When Redis may drop the key at the earliest.
int64_t sync_model_expiry_us(const struct sync_bucket *bucket, int64_t now_us, int64_t epoch_us);
