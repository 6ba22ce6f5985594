// event.h - one line of the log on its way through the replay.
#ifndef WR_EVENT_H
#define WR_EVENT_H

#include <stdint.h>

#include <weir.h>

#include "text.h"

struct wr_event {
    int64_t time_ns;    // the line's own, since 1970
    int64_t now_ns;     // when it is judged, since the first line: never before one judged earlier
    struct wr_text key; // in the chunk
    uint64_t cost;
    struct weir_weight weight;
    uint64_t hash[2]; // of the key, 128 bits: taken for the key itself
    uint64_t line;    // for the words, should the limiter refuse it
    uint32_t file;
    uint32_t partition;
    // The outcome:
    int result;              // enum weir_result
    uint64_t retry_after_ns; // WEIR_FOREVER: never
};

#endif
