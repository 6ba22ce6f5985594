// Excess, starvation and the bound of a simulated fleet.
#include "sync_judge.h"

#include <stdlib.h>

static double larger(double a, double b) {
    return a > b ? a : b;
}

void sync_judge_init(struct sync_judge *judge, int nodes, double tokens_per_second, double burst,
                     int64_t ticks_max, int64_t steady_from, int keep_asks) {
    *judge = (struct sync_judge){
        .nodes = nodes,
        .ticks_max = ticks_max,
        .tokens_per_tick = tokens_per_second * SYNC_JUDGE_TICK_US / 1e6,
        .burst = burst,
        .steady_from = steady_from,
        .ideal_level = burst,
    };
    if (!keep_asks) return;
    judge->asks = calloc((size_t)nodes * (size_t)ticks_max, sizeof *judge->asks);
    if (judge->asks == NULL) abort();
}

void sync_judge_fini(struct sync_judge *judge) {
    free(judge->asks);
}

void sync_judge_asked(struct sync_judge *judge, int node, int64_t asks) {
    if (judge->asks != NULL)
        judge->asks[node * judge->ticks_max + judge->tick] = (uint16_t)asks;
}

void sync_judge_started(struct sync_judge *judge, int node) {
    judge->lives[node]++;
}

static void judge_starvation(struct sync_judge *judge, int64_t granted, int64_t ideal) {
    if (granted > 0) {
        judge->starved_ticks = 0;
        judge->starved_ideal = 0;
        return;
    }
    judge->starved_ticks++;
    judge->starved_ideal += ideal;
    if (judge->starved_ideal >= 3 && judge->starved_ticks > judge->starved_ticks_max)
        judge->starved_ticks_max = judge->starved_ticks;
}

void sync_judge_tick(struct sync_judge *judge, int64_t asked, int64_t granted) {
    judge->ideal_level += judge->tokens_per_tick;
    if (judge->ideal_level > judge->burst) judge->ideal_level = judge->burst;
    int64_t ideal = (int64_t)(judge->ideal_level + 1e-9);
    if (ideal > asked) ideal = asked;
    judge->ideal_level -= (double)ideal;
    judge->ideal += ideal;
    judge->asked += asked;
    judge->granted += granted;
    judge->level = larger(0, judge->level - judge->tokens_per_tick) + (double)granted;
    judge->height_max = larger(judge->height_max, judge->level);
    if (judge->tick >= judge->steady_from)
        judge->steady_max = larger(judge->steady_max, judge->level);
    judge_starvation(judge, granted, ideal);
    judge->tick++;
}

double sync_judge_excess(const struct sync_judge *judge) {
    return larger(0, judge->height_max - judge->burst);
}

double sync_judge_steady_excess(const struct sync_judge *judge) {
    return larger(0, judge->steady_max - judge->burst);
}

// The most that a node asked for in any window of so many ticks.
static double demand_max(const uint16_t *asks, int64_t ticks, int64_t window) {
    int64_t sum = 0, most = 0;
    for (int64_t i = 0; i < ticks; i++) {
        sum += asks[i];
        if (i >= window) sum -= asks[i - window];
        if (sum > most) most = sum;
    }
    return (double)most;
}

double sync_judge_bound(const struct sync_judge *judge, int64_t gap_us, int64_t rtt_us) {
    const double gap = (double)gap_us / SYNC_JUDGE_TICK_US + 1;
    const double rtt = (double)rtt_us / SYNC_JUDGE_TICK_US + 1;
    const double most = judge->burst + 2 * judge->tokens_per_tick * gap;
    double sum = 0, largest = 0;
    for (int node = 0; node < judge->nodes; node++) {
        double demand = demand_max(judge->asks + node * judge->ticks_max, judge->tick,
                                   (int64_t)(2 * gap) + 1);
        if (demand > most) demand = most;
        sum += demand * judge->lives[node];
        largest = larger(largest, demand);
    }
    return judge->tokens_per_tick * (gap + rtt / 2) + sum - largest;
}
