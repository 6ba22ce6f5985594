// Prints the decisive figures of the sync as published and as measured with this code: sync_sim
// [SEEDS]. Simulated time; nothing here depends on the machine.
#include <stdio.h>
#include <stdlib.h>

#include "sync_figures.h"

static void print_debt(int index, const struct sync_figure *figure) {
    if (figure->published_debt < 0) {
        printf("\n");
        return;
    }
    printf("   | %10.6g %10.4g\n", figure->published_debt, sync_figure_measure(index, 1, true));
}

int main(int argc, char **argv) {
    const int seeds = argc > 1 ? atoi(argv[1]) : 3;
    if (argc > 2 || seeds < 1 || seeds > 1000) {
        fprintf(stderr, "sync_sim: SEEDS is '%s'; give 1 to 1000, or nothing for 3\n",
                argc > 1 ? argv[1] : "");
        return 2;
    }
    printf("r = b = 500, d = 100 ms; mean of %d seeds; debt alone of one\n", seeds);
    printf("%-52s %-6s %10s %10s   | debt alone: published, ours\n", "", "", "published", "ours");
    for (int i = 0; i < sync_figures_count(); i++) {
        const struct sync_figure *figure = sync_figure(i);
        printf("%-52s %-6s %10.6g %10.4g", figure->name, figure->unit, figure->published,
               sync_figure_measure(i, seeds, false));
        print_debt(i, figure);
        fflush(stdout);
    }
    return 0;
}
