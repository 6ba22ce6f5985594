// A candidate in the shadow: a tighter limit runs dry beside the live one, on the same traffic, and
// tells what it would have denied, and to whom.
#include <string.h>

#include "example.h"
#include "weir.h"

static struct weir *create(const char *name, uint64_t burst, bool dry_run) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = name;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = burst};
    options.dry_run = dry_run;
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    return limiter;
}

static uint64_t served, objections;

static void handle(struct weir *live, struct weir *candidate, const char *user) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    if (weir_take(live, weir_str(user), 1, NULL) != WEIR_GRANTED) return;
    expect(weir_take(candidate, weir_str(user), 1, &answer) == WEIR_GRANTED, "it never refuses");
    objections += answer.would_deny;
    served++;
}

int main(void) {
    struct weir *live = create("live", 100, false);
    struct weir *candidate = create("candidate", 30, true);
    for (int i = 0; i < 20; i++) handle(live, candidate, "ann");
    for (int i = 0; i < 120; i++) handle(live, candidate, "bob");
    expect(served == 20 + 100, "the live limit alone decides");
    expect(objections == 70, "bob would have had 30");

    struct weir_stats stats;
    expect(weir_stats(candidate, &stats, sizeof stats) == WEIR_GRANTED, "stats");
    expect(stats.would_deny == 70 && stats.denied == 0, "counted apart");
    struct weir_top_key keys[10];
    expect(weir_top(candidate, keys, 10) == 1, "one user would be hit");
    expect(strcmp(keys[0].name, "bob") == 0 && keys[0].denied == 70, "bob");
    weir_destroy(candidate);
    weir_destroy(live);
    return 0;
}
