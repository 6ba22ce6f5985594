// demo_judge.h - what was granted, against the limit and against the bound of the sync.
#ifndef WR_DEMO_JUDGE_H
#define WR_DEMO_JUDGE_H

#include "demo_run.h"

// The terms of the bound, in tokens of one key. The first two are B1 of the sync, for what was
// asked here.
struct wr_demo_bound {
    double blind;    // r * (d' + RTT/2): what comes back while nobody hears
    double others;   // asked on other processes in 2d', each at most b + 2r*d'
    double exported; // the largest excess_bound_tokens
    double usual;    // the first two; or what was exported, if that is more and there was no outage
    double forgiven; // debt above max_debt, at each start of demand
    double outage;   // asked in outages above the rate, at most (N-1) * (b + r*O) each
    double emptied;  // b + B1 each time that Redis forgot everything
    double killed;   // granted on killed processes and not reported
    double all;
};

struct wr_demo_key {
    uint64_t asked;
    uint64_t granted;
    double excess;       // granted - (b + r*t) at the end
    double worst;        // the same over all windows
    double worst_from_s; // that window
    double worst_to_s;
    struct wr_demo_bound bound;
};

struct wr_demo_verdict {
    uint64_t asked, granted;
    double elapsed_s;
    double allowed;  // b + r*t, of all keys
    double excess;   // granted - allowed
    double percent;  // of allowed
    double gap_s;    // d'
    double rtt_s;
    uint32_t key;    // the one closest to its bound, or furthest above
    struct wr_demo_key keys[WR_DEMO_KEYS_MAX];
    bool within;     // all keys
    bool adds_up;    // each process' grants are those in its slots
};

void wr_demo_judge(const struct wr_demo_run *run, struct wr_demo_verdict *verdict);

// The largest excess over b + r*t of all windows of the slots of one key.
void wr_demo_judge_windows(const uint64_t *granted, size_t slots, double burst, double per_slot,
                           struct wr_demo_key *key);

#endif
