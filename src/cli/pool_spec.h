// pool_spec.h - the simulated provider and the valve of `weir pool`, as people write them.
//
//     --downstream  capacity=500/s,latency=20ms±5,error429,capacity=200/s@10s,outage=5s@20s
//     --valve       min=20,max=5000,base=150
#ifndef WR_POOL_SPEC_H
#define WR_POOL_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir_valve.h>

#include "rate.h"
#include "text.h"

#define WR_POOL_PHASES 64

struct wr_pool_phase {
    uint64_t from_ns; // since the start of the run
    struct wr_rate capacity;
};

struct wr_pool_outage {
    uint64_t from_ns;
    uint64_t length_ns;
};

struct wr_downstream {
    struct wr_pool_phase phases[WR_POOL_PHASES]; // by time, the first at 0
    size_t phase_count;
    struct wr_pool_outage outages[WR_POOL_PHASES];
    size_t outage_count;
    uint64_t latency_ns; // mean
    uint64_t spread_ns;  // this much more or less
    uint64_t timeout_ns; // a call that is not answered by then is given up
    bool refuses;        // answers 429 above its capacity; else calls wait for their turn
};

// `fault` names the part that is wrong, and shows a right one.
bool wr_downstream_parse(const char *text, struct wr_downstream *downstream,
                         struct wr_fault *fault);

// Whether there is an outage at that time.
bool wr_downstream_is_out(const struct wr_downstream *downstream, uint64_t now_ns);

// Calls a second that it can take at that time: 0 in an outage, HUGE_VAL when unlimited.
double wr_downstream_per_s(const struct wr_downstream *downstream, uint64_t now_ns);

// Sets those of min, max, base, low, high, grow, shrink, interval, smoothing, overload and settle
// that are named.
bool wr_pool_valve_parse(const char *text, struct weir_valve_settings *settings,
                         struct wr_fault *fault);

#endif
