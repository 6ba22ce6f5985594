// demo_judge.c - the windows, and the terms of the bound.
#include "demo_judge.h"

#include <stdlib.h>

#define SLOT_S ((double)WR_DEMO_SLOT_NS / 1e9)

static double larger(double a, double b) {
    return a > b ? a : b;
}

static double smaller(double a, double b) {
    return a < b ? a : b;
}

// As a bucket that leaks at the rate and never overflows: it is highest at the end of the worst
// window, and that began when it was last empty.
void wr_demo_judge_windows(const uint64_t *granted, size_t slots, double burst, double per_slot,
                           struct wr_demo_key *key) {
    double height = 0;
    size_t from = 0;
    key->worst = -burst;
    for (size_t i = 0; i < slots; i++) {
        height += (double)granted[i] - per_slot;
        if (height - burst > key->worst) {
            key->worst = height - burst;
            key->worst_from_s = (double)from * SLOT_S;
            key->worst_to_s = (double)(i + 1) * SLOT_S;
        }
        if (height > 0) continue;
        height = 0;
        from = i + 1;
    }
}

// What is needed for a key's bound.
struct judge {
    const struct wr_demo_run *run;
    const struct wr_demo_board *board;
    double per_s, burst, gap_s, rtt_s;
    uint32_t processes;
    size_t slots;
};

// A window of time that covers `span_s` wherever it begins, in slots.
static size_t slots_of(double span_s) {
    return (size_t)(span_s / SLOT_S) + 2;
}

// The most that a process asked of a key in any window of so many slots.
static double demand_max(const struct judge *j, uint32_t process, uint32_t key, size_t window) {
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < j->slots; i++) {
        sum += wr_demo_board_slot(j->board, process, key, i).asked;
        if (i >= window) sum -= wr_demo_board_slot(j->board, process, key, i - window).asked;
        if (sum > most) most = sum;
    }
    return (double)most;
}

// What all but the one that asks most asked in 2d'; *largest: that one.
static double others_of(const struct judge *j, uint32_t key, double *largest) {
    const double most = j->burst + 2 * j->per_s * j->gap_s;
    double sum = 0;
    *largest = 0;
    for (uint32_t i = 0; i < j->processes; i++) {
        const double demand = smaller(demand_max(j, i, key, slots_of(2 * j->gap_s)), most);
        sum += demand;
        *largest = larger(*largest, demand);
    }
    return sum - *largest;
}

static double granted_in(const struct judge *j, uint32_t process, uint32_t key, double from_s,
                         double to_s) {
    uint64_t sum = 0;
    const size_t from = from_s > 0 ? (size_t)(from_s / SLOT_S) : 0;
    for (size_t i = from; i < j->slots && (double)i * SLOT_S <= to_s; i++)
        sum += wr_demo_board_slot(j->board, process, key, i).granted;
    return (double)sum;
}

static double asked_in(const struct judge *j, uint32_t key, double from_s, double to_s) {
    uint64_t sum = 0;
    for (uint32_t process = 0; process < j->processes; process++)
        for (size_t i = (size_t)(from_s / SLOT_S); i < j->slots && (double)i * SLOT_S <= to_s; i++)
            sum += wr_demo_board_slot(j->board, process, key, i).asked;
    return (double)sum;
}

static double figure_max(const struct judge *j, enum wr_demo_figure figure) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < j->processes; i++) {
        const uint64_t value = wr_demo_board_figure(j->board, i, figure);
        if (value > most) most = value;
    }
    return (double)most;
}

// An outage of `length_s` lasts until all have been answered again: by the longest silence.
static double outage_of(const struct judge *j, uint32_t key, double from_s, double length_s) {
    const double silence_s = figure_max(j, WR_DEMO_FIGURE_SILENCE_NS) / 1e9;
    const double span_s = larger(length_s + j->gap_s, silence_s + j->gap_s);
    const double above = asked_in(j, key, from_s, from_s + span_s) - j->per_s * span_s;
    const double most = (j->processes - 1) * (j->burst + j->per_s * span_s);
    return smaller(larger(above, 0), most);
}

static double killed_of(const struct judge *j, uint32_t key, double at_s) {
    double sum = 0;
    for (uint32_t i = 0; i < j->processes; i++) {
        const double killed_s = (double)j->run->killed_ns[i] / 1e9;
        if (j->run->killed_ns[i] == 0 || killed_s < at_s || killed_s > at_s + 1) continue;
        sum += granted_in(j, i, key, killed_s - j->gap_s - SLOT_S, killed_s + SLOT_S);
    }
    return sum;
}

// The first two terms, or what the processes export instead. After an outage that counts the
// outage itself, by round trips and demand of its length, which has its own term here.
static double usual_of(const struct judge *j, const struct wr_demo_bound *bound) {
    const double own = bound->blind + bound->others;
    const bool outage = wr_demo_has(j->run->options, WR_DEMO_OUTAGE) ||
                        wr_demo_has(j->run->options, WR_DEMO_KILL_REDIS);
    return outage ? own : larger(own, bound->exported);
}

static void add_fault(const struct judge *j, uint32_t key, const struct wr_demo_fault *fault,
                      struct wr_demo_bound *bound) {
    const double at_s = (double)fault->at_ns / 1e9, length_s = (double)fault->length_ns / 1e9;
    const double again = j->burst + usual_of(j, bound);
    switch (fault->kind) {
    case WR_DEMO_OUTAGE: bound->outage += outage_of(j, key, at_s, length_s); break;
    case WR_DEMO_FLUSH: bound->emptied += again; break;
    case WR_DEMO_KILL_NODE: bound->killed += killed_of(j, key, at_s); break;
    case WR_DEMO_KILL_REDIS:
        bound->emptied += again;
        bound->outage += outage_of(j, key, at_s, 1);
        break;
    default: break; // in d' and in the round trip
    }
}

static void bound_of(const struct judge *j, uint32_t key, struct wr_demo_bound *bound) {
    const struct wr_demo_options *options = j->run->options;
    *bound = (struct wr_demo_bound){.blind = j->per_s * (j->gap_s + j->rtt_s / 2)};
    double largest;
    bound->others = others_of(j, key, &largest);
    bound->exported = figure_max(j, WR_DEMO_FIGURE_BOUND_MILLI) / 1000;
    const double at_start = options->pattern == WR_DEMO_JUMP ? largest : bound->others; // it moves
    bound->forgiven =
        larger(bound->blind + at_start - j->burst, 0) * (double)wr_demo_load_starts(options);
    for (size_t i = 0; i < options->fault_count; i++)
        if (j->run->fault_done[i]) add_fault(j, key, &options->faults[i], bound);
    bound->usual = usual_of(j, bound);
    bound->all = bound->usual + bound->forgiven + bound->outage + bound->emptied + bound->killed;
}

// A key's own slots, of all processes.
static void add_key(const struct judge *j, uint32_t key, uint64_t *granted,
                    struct wr_demo_key *out) {
    *out = (struct wr_demo_key){.asked = 0};
    for (size_t i = 0; i < j->slots; i++) {
        granted[i] = 0;
        for (uint32_t process = 0; process < j->processes; process++) {
            const struct wr_demo_slot slot = wr_demo_board_slot(j->board, process, key, i);
            granted[i] += slot.granted;
            out->asked += slot.asked;
        }
        out->granted += granted[i];
    }
}

static bool adds_up(const struct judge *j) {
    for (uint32_t process = 0; process < j->processes; process++) {
        uint64_t asked = 0, granted = 0;
        for (uint32_t key = 0; key < j->run->options->keys; key++)
            for (size_t i = 0; i < j->slots; i++) {
                asked += wr_demo_board_slot(j->board, process, key, i).asked;
                granted += wr_demo_board_slot(j->board, process, key, i).granted;
            }
        if (j->run->killed_ns[process] != 0) continue; // may have died between two counts
        if (asked != wr_demo_board_asked(j->board, process) ||
            granted != wr_demo_board_granted(j->board, process))
            return false;
    }
    return true;
}

static void set_times(struct judge *j) {
    const struct wr_demo_options *options = j->run->options;
    j->rtt_s = figure_max(j, WR_DEMO_FIGURE_RTT_NS) / 1e9;
    for (size_t i = 0; i < options->fault_count; i++)
        if (options->faults[i].kind == WR_DEMO_LATENCY)
            j->rtt_s = larger(j->rtt_s, (double)options->faults[i].length_ns / 1e9);
    j->gap_s = 1.1 * (double)options->interval_ns / 1e9 + j->rtt_s;
    if (wr_demo_has(options, WR_DEMO_SCRIPT_FLUSH)) j->gap_s += 2 * j->rtt_s; // load, send again
}

static void judge_key(const struct judge *j, uint32_t key, uint64_t *granted,
                      struct wr_demo_verdict *verdict) {
    struct wr_demo_key *out = &verdict->keys[key];
    const struct wr_demo_key *closest = &verdict->keys[verdict->key];
    add_key(j, key, granted, out);
    wr_demo_judge_windows(granted, j->slots, j->burst, j->per_s * SLOT_S, out);
    out->excess = (double)out->granted - (j->burst + j->per_s * verdict->elapsed_s);
    bound_of(j, key, &out->bound);
    if (larger(out->worst, out->excess) > out->bound.all) verdict->within = false;
    if (out->worst - out->bound.all > closest->worst - closest->bound.all) verdict->key = key;
    verdict->asked += out->asked;
    verdict->granted += out->granted;
}

void wr_demo_judge(const struct wr_demo_run *run, struct wr_demo_verdict *verdict) {
    const struct wr_demo_options *options = run->options;
    struct judge j = {
        run, run->board, wr_demo_rate_per_s(options), (double)options->burst,
        0,   0,          options->processes,          wr_demo_board_slots(run->board)};
    uint64_t *granted = calloc(j.slots, sizeof *granted);
    *verdict = (struct wr_demo_verdict){.within = granted != NULL};
    if (granted == NULL) return;
    set_times(&j);
    verdict->elapsed_s = (double)run->elapsed_ns / 1e9;
    verdict->gap_s = j.gap_s;
    verdict->rtt_s = j.rtt_s;
    for (uint32_t key = 0; key < options->keys; key++) judge_key(&j, key, granted, verdict);
    verdict->allowed = options->keys * (j.burst + j.per_s * verdict->elapsed_s);
    verdict->excess = (double)verdict->granted - verdict->allowed;
    verdict->percent = 100 * verdict->excess / verdict->allowed;
    verdict->adds_up = adds_up(&j);
    free(granted);
}
