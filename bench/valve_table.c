// valve_table.c - the table of weir_valve.h: a valve against no limit, a fixed one too low and one
// too high, over the simulated provider of tests/valve_sim.h. The same on every machine: nothing is
// timed.
//
//     valve_table        prints markdown: least to most of five seeds
//
// The columns in the middle are a provider who refuses what is too much, those on the right one who
// lets it wait. Delivered is of what he could have taken: his capacity while anything waits, the
// arrivals otherwise. Depth is the deepest that the queue before the workers was.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../tests/valve_sim.h"

#define SEEDS 5

struct way {
    const char *name;
    uint32_t fixed_per_s;
    bool valve;
    enum weir_valve_form form;
};

struct range {
    double least, most;
};

static void include(struct range *range, double x, bool first) {
    if (first || x < range->least) range->least = x;
    if (first || x > range->most) range->most = x;
}

static struct weir_valve *make(enum weir_valve_form form) {
    struct weir_valve_settings settings = WEIR_VALVE_SETTINGS_INIT;
    struct weir_error error;
    struct weir_valve *valve;
    settings.form = form;
    settings.min_per_s = 20;
    settings.base_per_s = 150;
    settings.max_per_s = 5000;
    if (weir_valve_create(&valve, &settings, &error) != WEIR_GRANTED) {
        fprintf(stderr, "valve_table: %s\n", error.text);
        exit(1);
    }
    return valve;
}

// The two provider's ways to be slow: he refuses what is too much, or lets it wait.
static struct sim_result run(const struct way *way, bool refuses, uint64_t seed) {
    struct sim_options options = sim_defaults();
    struct sim_result result;
    options.seed = seed;
    options.workers = 32;
    options.refuses = refuses;
    options.fixed_per_s = way->fixed_per_s;
    if (way->valve) options.valve = make(way->form);
    sim_run(&options, &result);
    weir_valve_destroy(options.valve);
    return result;
}

static void print_numbers(const struct way *way, bool refuses) {
    struct range part, overloads, depth;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct sim_result r = run(way, refuses, seed);
        include(&part, 100 * (double)r.delivered / (double)r.possible, seed == 1);
        include(&overloads, (double)r.overloads, seed == 1);
        include(&depth, (double)r.worst_depth, seed == 1);
    }
    printf(" %3.0f to %3.0f %% |", part.least, part.most);
    if (refuses) printf(" %5.0f to %5.0f |", overloads.least, overloads.most);
    printf(" %5.0f |", depth.most);
}

int main(void) {
    static const struct way ways[] = {
        {"no limit", 0, false, WEIR_VALVE_MARKS},
        {"200/s, too low", 200, false, WEIR_VALVE_MARKS},
        {"1,000/s, too high", 1000, false, WEIR_VALVE_MARKS},
        {"valve, marks", 0, true, WEIR_VALVE_MARKS},
        {"valve, PID", 0, true, WEIR_VALVE_PID},
    };
    puts("| limit             | delivered    | answers 429    | depth | delivered    | depth |");
    puts("|-------------------|--------------|----------------|-------|--------------|-------|");
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        printf("| %-17s |", ways[i].name);
        print_numbers(&ways[i], true);
        print_numbers(&ways[i], false);
        printf("\n");
    }
    return 0;
}
