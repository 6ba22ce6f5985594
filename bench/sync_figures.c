// Which fleet gives which figure.
#include "sync_figures.h"

#include "sync_fleet.h"

enum kind { COLD_FLOOD, STEADY, OUTAGE_EXCESS, OUTAGE_BACK, DENIALS, REPEATS };

static const struct {
    struct sync_figure figure;
    enum kind kind;
} figures[] = {
    {{"cold flood, 10r a node: excess, N = 4", "b", 0.45, 3, 4, false, true}, COLD_FLOOD},
    {{"cold flood, 10r a node: excess, N = 16", "b", 2.2, 11, 16, false, true}, COLD_FLOOD},
    {{"cold flood, 10r a node: excess, N = 64", "b", 5.0, 43, 64, false, true}, COLD_FLOOD},
    {{"cold flood, 10r a node: excess, N = 256", "b", 14, 145, 256, false, false}, COLD_FLOOD},
    {{"flood, steady: excess, N = 16", "tokens", 35, 690, 16, false, true}, STEADY},
    {{"flood, steady: excess, N = 64", "tokens", 44, 12223, 64, false, true}, STEADY},
    {{"3r, outage of 30 s: excess, N = 64", "b", 0.17, 60, 64, false, true}, OUTAGE_EXCESS},
    {{"3r, outage of 30 s: longest blackout, N = 64", "s", 0.1, 50, 64, true, true}, OUTAGE_BACK},
    {{"0.9r evenly spread: denials, N = 16", "asks", 0, -1, 16, false, true}, DENIALS},
    {{"20 % repeats, 20 % lost answers: over 10,500", "tokens", 25, -1, 8, false, false},
     REPEATS},
};

int sync_figures_count(void) {
    return (int)(sizeof figures / sizeof *figures);
}

const struct sync_figure *sync_figure(int index) {
    return &figures[index].figure;
}

static void set_outage(struct fleet_config *fleet) {
    fleet->load = 3;
    fleet->ticks = 100000;
    fleet->outage_from = 40000;
    fleet->outage_until = 70000;
}

static void set_repeats(struct fleet_config *fleet) {
    fleet->load = 8;
    fleet->ticks = 21000; // asks begin at 1 s
    fleet->repeat = 0.2;
    fleet->late_ms = 300;
    fleet->lose_reply = 0.2;
}

static double measure(enum kind kind, int nodes, uint64_t seed, bool debt_only) {
    struct fleet_config fleet = fleet_standard(nodes, seed);
    fleet.debt_only = debt_only;
    fleet.ticks = 30000;
    switch (kind) {
    case COLD_FLOOD:
        fleet.load = 10 * nodes;
        return fleet_run(&fleet).excess / (double)fleet.burst;
    case STEADY:
        fleet.load = 10 * nodes;
        fleet.ticks = 60000;
        return fleet_run(&fleet).steady_excess;
    case OUTAGE_EXCESS:
        set_outage(&fleet);
        return fleet_run(&fleet).excess / (double)fleet.burst;
    case OUTAGE_BACK:
        set_outage(&fleet);
        return fleet_run(&fleet).starved_s;
    case DENIALS:
        fleet.load = 0.9;
        return fleet_run(&fleet).denied;
    case REPEATS:
        set_repeats(&fleet);
        return fleet_run(&fleet).granted - 10500;
    }
    return 0;
}

double sync_figure_measure(int index, int seeds, bool debt_only) {
    double sum = 0;
    for (int seed = 1; seed <= seeds; seed++)
        sum += measure(figures[index].kind, figures[index].figure.nodes, (uint64_t)seed,
                       debt_only);
    return sum / seeds;
}
