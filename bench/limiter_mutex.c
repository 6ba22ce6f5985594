// The mutex baseline (mutex_table.h) among the limiters that are measured.
#include "bench.h"
#include "limiter.h"
#include "mutex_table.h"

static void *create(const struct weir_limit *limit, uint64_t keys) {
    (void)keys; // it grows
    struct mutex_table *table = mutex_table_create(
        (double)limit->tokens * 1e9 / (double)limit->period_ns, (double)limit->burst);
    if (table == NULL) bench_fail("no memory for the mutex table");
    return table;
}

static void destroy(void *limiter) {
    mutex_table_destroy(limiter);
}

static bool take(void *limiter, const char *text, size_t length, uint64_t cost) {
    return mutex_table_take(limiter, text, length, (double)cost);
}
BENCH_LOOPS(take)

static const struct bench_limiter mutex = {
    "mutex", "", false, create, destroy, take, take_same, take_walk, take_fresh};
BENCH_LIMITER(mutex)
