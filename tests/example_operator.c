// For whoever runs the service: what a limiter holds, its metrics for the scraper, how a user who
// was wronged is forgiven, and how all sending is stopped at once.
#include <string.h>

#include "example.h"
#include "weir.h"

struct census {
    int busy;   // users who spent something
    int in_red; // of whom so many owe
};

static bool visit(const struct weir_slot *slot, void *context) {
    struct census *census = context;
    census->busy++;
    if (slot->level_tokens < 0) census->in_red++;
    return true; // go on
}

static void serve_metrics(struct weir *limiter) {
    const struct weir *all[] = {limiter};
    size_t length;
    expect(weir_metrics(all, 1, NULL, 0, &length) == WEIR_ENOSPC, "the length is asked for first");
    const size_t size = length + 1024; // counters grow meanwhile
    char *text = malloc(size);
    expect(text != NULL, "memory");
    expect(weir_metrics(all, 1, text, size, &length) == WEIR_GRANTED, "written");
    expect(strstr(text, "weir_granted_total{limiter=\"mails\"} 2\n") != NULL, "two were granted");
    printf("Content-Type: %s\nContent-Length: %zu\n\n%s", WEIR_METRICS_TYPE, length, text);
    free(text);
}

int main(void) {
    expect(strcmp(weir_version(), WEIR_VERSION) == 0, "header and library are of one version");
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "mails";
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = 10};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    expect(weir_take(limiter, weir_str("ann"), 3, NULL) == WEIR_GRANTED, "ann sends");
    expect(weir_take(limiter, weir_str("bob"), 10, NULL) == WEIR_GRANTED, "bob sends");
    expect(weir_charge(limiter, weir_str("bob"), 4, NULL) == WEIR_GRANTED, "and some more");
    serve_metrics(limiter);

    struct census census = {0, 0};
    expect(weir_each(limiter, visit, &census) == 2, "two buckets are not full");
    expect(census.busy == 2 && census.in_red == 1, "one of them owes");

    // It was our mistake: bob starts anew.
    expect(weir_reset(limiter, weir_str("bob")) == WEIR_GRANTED, "forgiven");
    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_peek(limiter, weir_str("bob"), 0, &answer) == WEIR_GRANTED, "a peek");
    expect(answer.remaining == 10 && answer.debt == 0, "his bucket is full");

    // A provider in trouble: nothing passes until the limit is set again.
    const struct weir_limit normal = options.limit, nothing = {1, WEIR_HOUR, 0};
    expect(weir_set_limit(limiter, &nothing, NULL) == WEIR_GRANTED, "the kill switch");
    expect(weir_take(limiter, weir_str("ann"), 1, NULL) != WEIR_GRANTED, "nobody sends");
    expect(weir_set_limit(limiter, &normal, NULL) == WEIR_GRANTED, "as before");
    weir_destroy(limiter);
    return 0;
}
