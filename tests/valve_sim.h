// valve_sim.h - a limiter, a bounded queue, workers and a provider, in simulated milliseconds: what
// a valve does to them, exactly repeatable.
//
// Events arrive, and wait outside until the limiter lets them into the queue; workers take them
// from there and call the provider, who takes up to his capacity and refuses the rest (429), both
// after his latency. What was refused waits outside again, for `retry_ms`.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "weir_valve.h"

#define SIM_PHASES 4

struct sim_options {
    uint64_t seed;
    uint32_t duration_ms;
    uint32_t workers;
    uint32_t queue_capacity;
    // The provider: from capacity[i].from_ms on so many calls a second, in a bucket of burst_ms.
    struct {
        uint32_t from_ms;
        uint32_t per_s; // 0: an outage, every call is refused
    } capacity[SIM_PHASES];
    uint32_t provider_burst_ms;
    bool refuses;          // false: he never says 429, and calls wait for their turn
    uint32_t latency_ms;   // and up to a quarter more or less
    uint32_t refusal_ms;   // how long a 429 takes
    uint32_t retry_ms;
    // Arrivals a second, by the flash sale's shape over the duration, or even.
    uint32_t arrivals_per_s;
    bool flash_sale;
    // The limiter: none, fixed, or driven by the valve.
    uint32_t fixed_per_s;
    struct weir_valve *valve; // not NULL: adaptive
    bool tell_use;            // whether samples say what was granted
    uint32_t noise_percent;   // of the depth that the valve is shown
    FILE *trace;              // a line a sample, or NULL
};

struct sim_result {
    uint64_t arrived;
    uint64_t delivered;
    uint64_t overloads;
    uint64_t possible; // what the provider could have taken: his capacity while anything waits
    uint64_t waiting;  // outside, in the queue and with workers, at the end
    uint64_t worst_depth; // of the queue
    uint64_t changes;      // of the rate
    // The rate over the capacity, at its least and most, from 5 s after a change of capacity on and
    // while anything waits. 0: never.
    double lowest_ratio, highest_ratio;
    double last_rate_per_s;
};

struct sim_options sim_defaults(void);
void sim_run(const struct sim_options *options, struct sim_result *result);
