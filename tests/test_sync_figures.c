// The figures by which the scheme was chosen, reproduced with this code to within 20 %.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../bench/sync_figures.h"

#define SEEDS 3

static void published_figures_are_reproduced_within_20_percent(void **state) {
    (void)state;
    for (int i = 0; i < sync_figures_count(); i++) {
        const struct sync_figure *figure = sync_figure(i);
        if (!figure->quick) continue;
        const double ours = sync_figure_measure(i, SEEDS, false);
        const double least = figure->at_most ? 0 : 0.8 * figure->published;
        if (ours < least || ours > 1.2 * figure->published)
            fail_msg("%s: %g %s, published %g", figure->name, ours, figure->unit,
                     figure->published);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_figures_are_reproduced_within_20_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
