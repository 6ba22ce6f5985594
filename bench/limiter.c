// The list of the limiters that are linked into the program.
#include "limiter.h"

#include "bench.h"

#define LIMITERS_MAX 32

static const struct bench_limiter *limiters[LIMITERS_MAX + 1];
static size_t limiter_count;

void bench_add_limiter(const struct bench_limiter *limiter) {
    if (limiter_count == LIMITERS_MAX) bench_fail("more than %d limiters", LIMITERS_MAX);
    limiters[limiter_count++] = limiter;
}

const struct bench_limiter *const *bench_limiters(void) {
    return limiters;
}
