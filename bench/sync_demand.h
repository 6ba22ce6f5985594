// Who asks when: patterns of demand over a fleet, and the random numbers of the simulator. All
// follow from a seed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SYNC_DEMAND_NODES_MAX 256

struct sync_random {
    uint64_t state; // the seed
};

uint64_t sync_random_64(struct sync_random *random);
uint32_t sync_random_32(struct sync_random *random);
double sync_random_uniform(struct sync_random *random); // in [0, 1)
bool sync_random_chance(struct sync_random *random, double p);

enum sync_demand_kind {
    SYNC_DEMAND_EVEN,    // `load` times the rate, spread evenly
    SYNC_DEMAND_ONE,     // all of it on one node
    SYNC_DEMAND_JUMP,    // all of it on one node, another every 7 s
    SYNC_DEMAND_PULSE,   // even, 5 s off, 5 s on
    SYNC_DEMAND_SKEWED,  // node i gets a part in 1/(i+1)
    SYNC_DEMAND_VOLLEY,  // every node asks for twice the burst at once, every three bursts' time
    SYNC_DEMAND_RESTLESS // each node's load is drawn anew about every 0.3 s, some idle, some floods
};

struct sync_demand {
    enum sync_demand_kind kind;
    double load; // of the fleet, as a multiple of the rate
    int nodes;
    double tokens_per_second;
    uint64_t burst;
    double skew_sum;
    double poisson_mean; // of the cached e^-mean
    double poisson_zero;
    double restless[SYNC_DEMAND_NODES_MAX]; // load of a node
    int64_t restless_until[SYNC_DEMAND_NODES_MAX];
};

void sync_demand_init(struct sync_demand *demand, enum sync_demand_kind kind, double load,
                      int nodes, double tokens_per_second, uint64_t burst);
// How often a node asks for a token in a tick of 1 ms.
int64_t sync_demand_asks(struct sync_demand *demand, struct sync_random *random, int node,
                         int64_t tick);
