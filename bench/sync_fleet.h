// N nodes of one synced key, with the real node and exchange code, a model of the server, and a
// network that loses, repeats and delays. 1 ms ticks; everything follows from the seed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../src/sync/node.h"
#include "sync_demand.h"

struct fleet_config {
    uint64_t seed;
    int nodes;
    uint64_t tokens_per_second;
    uint64_t burst;
    uint64_t max_debt;
    int64_t interval_us;
    int64_t ticks;
    int64_t steady_from; // tick
    enum sync_demand_kind demand;
    double load;         // of the fleet, as a multiple of the rate
    bool debt_only;      // m = 1 always: the plain scheme, for comparison
    bool keep_bound;
    double latency_ms;   // of a leg: 1 ms + uniform in twice this
    double lose_request;
    double lose_reply;
    double repeat;       // requests that arrive twice, the second time late
    double late;         // requests that arrive late
    int64_t late_ms;     // at most
    double refuse;       // requests answered with an error instead
    int64_t outage_from; // tick; the network is cut
    int64_t outage_until;
    int64_t crash_every; // ticks; 0: never
    int64_t flush_every; // ticks; Redis forgets all; 0: never
    int64_t retry_max_us; // the longest wait before a report is sent again
    enum wr_node_policy policy;
    uint32_t expected_nodes;
};

struct fleet_result {
    double granted;
    double ideal;
    double asked;
    double excess;          // over b + r*W, any window
    double steady_excess;   // ... that ends after steady_from
    double starved_s;       // longest time without a grant where one bucket would have granted
    double bound;           // B1; 0 if not kept
    double forgiven;        // tokens cut off by the cap, or in reports given up, or flushed
    double crashed;         // tokens granted by nodes that died and never reported
    double outage_granted;  // in the outage
    int64_t gap_us;         // longest time from an ask to the answer to its report
    uint64_t exchanges;
    uint64_t lost_reports;  // given up
    uint64_t tat_errors;    // must be 0: TAT moved by something that was not a fresh report
    uint64_t count_errors;  // must be 0 without flushes: nodes whose grants are not all charged or
                            // still with the node, each once, to the microsecond
    double denied;
};

// The setting of SYNC.md's figures: r = b = 500, d = 100 ms, 120 s, no faults.
struct fleet_config fleet_standard(int nodes, uint64_t seed);
struct fleet_result fleet_run(const struct fleet_config *config);
