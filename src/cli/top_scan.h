// top_scan.h - what all nodes of a fleet left in Redis, gathered by SCAN.
//
// SCAN may show a name twice and misses what comes meanwhile, so counts are close, not exact.
#ifndef WR_TOP_SCAN_H
#define WR_TOP_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "bucket.h"
#include "published.h"
#include "redis.h"
#include "tally.h"

#define WR_TOP_ROWS_MAX 1000
#define WR_TOP_LIMITERS_MAX 1000

// What a name should hold.
enum wr_top_type { WR_TOP_STRING, WR_TOP_ZSET, WR_TOP_TYPES };

enum wr_top_by { WR_TOP_DEMAND, WR_TOP_BEHIND, WR_TOP_DENIED };

struct wr_top_row {
    char name[WR_BUCKET_NAME_BYTES]; // in Redis
    size_t name_bytes;
    uint32_t generation;
    struct wr_bucket_demand demand;
    int64_t behind_us; // until it is full
    bool no_bucket;    // it is full, or (of a cut key) not known
    uint64_t denied;   // asks, on all nodes that list the key; 0: none does
};

struct wr_top_limiter {
    char name[WR_WIRE_NAME_MAX + 1];
    uint64_t buckets;
    uint32_t nodes;   // alive, that count for it
    uint32_t gone;    // that have stopped, and what they published is still there
    uint64_t granted; // asks, since all of those nodes started; sums stop at 2^63-1
    uint64_t denied;
    uint64_t tokens;  // granted
    struct wr_published last; // of the last node that was read; of one alive, if there is any
    bool compared;    // that is of one alive
    bool disagree;    // nodes that are alive have other limits, or other numbers of groups
};

struct wr_top_scan {
    const char *prefix; // the caller's
    enum wr_top_by by;
    size_t wanted;
    size_t count;
    struct wr_top_row *rows; // the best first
    size_t limiter_count;
    struct wr_top_limiter *limiters;
    struct wr_tally limiter_places; // in those, by name; past their end: not shown
    uint64_t buckets;
    uint64_t behind;  // of those, not full
    uint64_t foreign; // names of the prefix that hold something else
    bool nodes_known; // else the set of nodes holds something else, and all count as alive
    struct wr_tally nodes; // alive, by name
    uint64_t groups_seen; // a bit each
    uint64_t epochs_asked;
    size_t types_due[WR_TOP_TYPES]; // answers to TYPE that are to come
    struct wr_tally published; // names of what nodes publish, each read once
    struct wr_tally denied;    // asks, by the key's name
    int64_t epoch_us[WR_BUCKET_GROUPS_MAX];
    int64_t now_us;   // of Redis
};

bool wr_top_scan_init(struct wr_top_scan *scan, const char *prefix, enum wr_top_by by,
                      size_t wanted, struct wr_fault *fault);
bool wr_top_scan_run(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault);
void wr_top_scan_fini(struct wr_top_scan *scan);

// How many limiters there are beyond those in limiters[].
size_t wr_top_hidden(const struct wr_top_scan *scan);

// Reads a bucket into a row. False: the value is none.
bool wr_top_row_read(struct wr_top_scan *scan, struct wr_top_row *row, uint32_t group,
                     struct wr_redis_value value);

#endif
