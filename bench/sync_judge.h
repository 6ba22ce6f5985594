// Judges what a simulated fleet granted, tick by tick: against b + r*W over any window, against one
// ideal bucket, and against the bound B1.
#pragma once

#include <stdint.h>

#define SYNC_JUDGE_NODES_MAX 256
#define SYNC_JUDGE_TICK_US 1000

struct sync_judge {
    int nodes;
    int64_t ticks_max;
    double tokens_per_tick;
    double burst;
    int64_t steady_from; // tick
    int64_t tick;
    double level;        // of a bucket that leaks at r and never overflows
    double height_max;
    double steady_max;
    double ideal_level;
    int64_t granted;
    int64_t ideal;
    int64_t asked;
    int64_t starved_ticks;     // since the last grant
    int64_t starved_ideal;     // what the ideal bucket granted meanwhile
    int64_t starved_ticks_max; // where that was at least 3
    int lives[SYNC_JUDGE_NODES_MAX]; // of a node: one that starts again is a new one to the bound
    uint16_t *asks;            // [node][tick]; NULL: not kept, no bound
};

// keep_asks: for sync_judge_bound. Aborts without memory (it serves tests and the simulator only).
void sync_judge_init(struct sync_judge *judge, int nodes, double tokens_per_second, double burst,
                     int64_t ticks_max, int64_t steady_from, int keep_asks);
void sync_judge_fini(struct sync_judge *judge);
void sync_judge_asked(struct sync_judge *judge, int node, int64_t asks);
void sync_judge_started(struct sync_judge *judge, int node);
void sync_judge_tick(struct sync_judge *judge, int64_t asked, int64_t granted);
// The most granted over b + r*W in any window; and in any that ends after steady_from.
double sync_judge_excess(const struct sync_judge *judge);
double sync_judge_steady_excess(const struct sync_judge *judge);
// B1 without forgiven debt and crashed nodes: gap_us is the longest time from an ask to the answer
// that its report got, rtt_us the longest round trip.
double sync_judge_bound(const struct sync_judge *judge, int64_t gap_us, int64_t rtt_us);
