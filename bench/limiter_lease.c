// weir asked through a lease, one for each thread, held for the length of a run.
#include "bench.h"
#include "limiter_weir.h"

static uint64_t same(void *limiter, const struct bench_key *key, uint64_t n) {
    struct weir_lease lease;
    const int result =
        weir_lease_init(&lease, limiter, weir_bytes(key->text, key->length), NULL);
    if (result != WEIR_GRANTED) bench_fail("weir_lease_init: %s", weir_strerror(result));
    uint64_t granted = 0;
    for (uint64_t i = 0; i < n; i++) granted += weir_lease_take(&lease, 1, NULL) == WEIR_GRANTED;
    weir_lease_fini(&lease);
    return granted;
}

static const struct bench_limiter leased = {
    .name = "take", .variant = "/lease", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .same = same};
BENCH_LIMITER(leased)
