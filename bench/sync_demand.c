// Patterns of demand over a simulated fleet.
#include "sync_demand.h"

#define FIRST_TICK 1000
#define TICKS_PER_SECOND 1000

// splitmix64
uint64_t sync_random_64(struct sync_random *random) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint32_t sync_random_32(struct sync_random *random) {
    return (uint32_t)(sync_random_64(random) >> 32);
}

double sync_random_uniform(struct sync_random *random) {
    return (double)(sync_random_64(random) >> 11) * 0x1p-53;
}

bool sync_random_chance(struct sync_random *random, double p) {
    return p > 0 && sync_random_uniform(random) < p;
}

void sync_demand_init(struct sync_demand *demand, enum sync_demand_kind kind, double load,
                      int nodes, double tokens_per_second, uint64_t burst) {
    *demand = (struct sync_demand){
        .kind = kind,
        .load = load,
        .nodes = nodes,
        .tokens_per_second = tokens_per_second,
        .burst = burst,
    };
    for (int i = 0; i < nodes; i++) demand->skew_sum += 1.0 / (i + 1);
}

// Knuth's product of uniforms; the mean is small, a tick's worth.
static int64_t poisson(struct sync_demand *demand, struct sync_random *random, double mean) {
    if (mean <= 0) return 0;
    if (mean != demand->poisson_mean) {
        demand->poisson_mean = mean;
        demand->poisson_zero = __builtin_exp(-mean);
    }
    int64_t count = -1;
    for (double product = 1; product > demand->poisson_zero; count++)
        product *= sync_random_uniform(random);
    return count;
}

static double restless_load(struct sync_demand *demand, struct sync_random *random, int node,
                            int64_t tick) {
    if (tick >= demand->restless_until[node]) {
        const double kind = sync_random_uniform(random);
        const double part = demand->load * sync_random_uniform(random) / demand->nodes;
        demand->restless[node] = kind < 0.3 ? 0 : kind > 0.9 ? 10 * part : part;
        demand->restless_until[node] = tick + (int64_t)(600 * sync_random_uniform(random));
    }
    return demand->restless[node];
}

static double load_of(struct sync_demand *demand, struct sync_random *random, int node,
                      int64_t tick) {
    const bool started = tick >= FIRST_TICK;
    switch (demand->kind) {
    case SYNC_DEMAND_EVEN:
        return started ? demand->load / demand->nodes : 0;
    case SYNC_DEMAND_ONE:
        return started && node == 0 ? demand->load : 0;
    case SYNC_DEMAND_JUMP:
        return node == tick / 7000 % demand->nodes ? demand->load : 0;
    case SYNC_DEMAND_PULSE:
        return tick / 5000 % 2 == 1 ? demand->load / demand->nodes : 0;
    case SYNC_DEMAND_SKEWED:
        return demand->load / (node + 1) / demand->skew_sum;
    case SYNC_DEMAND_RESTLESS:
        return restless_load(demand, random, node, tick);
    case SYNC_DEMAND_VOLLEY:
        break;
    }
    return 0;
}

int64_t sync_demand_asks(struct sync_demand *demand, struct sync_random *random, int node,
                         int64_t tick) {
    if (demand->kind == SYNC_DEMAND_VOLLEY) {
        const double seconds = 3 * (double)demand->burst / demand->tokens_per_second;
        const int64_t every = (int64_t)(seconds * TICKS_PER_SECOND) + 1;
        const bool now = tick >= FIRST_TICK && (tick - FIRST_TICK) % every == 0;
        return now ? (int64_t)(2 * demand->burst) : 0;
    }
    const double rate = load_of(demand, random, node, tick) * demand->tokens_per_second;
    return poisson(demand, random, rate / TICKS_PER_SECOND);
}
