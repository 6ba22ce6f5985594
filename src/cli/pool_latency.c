// pool_latency.c - log-linear buckets: below 32 ns one each, then 32 to each power of two.
//
//   wr_latency.counts   added to by the workers; read by the view and the report
//
// R1 (relaxed): each bucket is a statistic of its own. Exact once the workers have been joined.
#include "pool_latency.h"

#include <stdatomic.h>

#define PARTS_LOG2 5
_Static_assert(WR_LATENCY_PARTS == 1 << PARTS_LOG2, "the shifts below");

static unsigned bucket_of(uint64_t ns) {
    if (ns < WR_LATENCY_PARTS) return (unsigned)ns;
    const unsigned shift = 63 - PARTS_LOG2 - (unsigned)__builtin_clzll(ns);
    return (shift + 1) * WR_LATENCY_PARTS + (unsigned)(ns >> shift) % WR_LATENCY_PARTS;
}

uint64_t wr_latency_bucket_end_ns(unsigned bucket) {
    if (bucket < WR_LATENCY_PARTS) return bucket + 1;
    if (bucket == WR_LATENCY_BUCKETS - 1) return UINT64_MAX;
    const unsigned shift = bucket / WR_LATENCY_PARTS - 1;
    return (uint64_t)(WR_LATENCY_PARTS + bucket % WR_LATENCY_PARTS + 1) << shift;
}

void wr_latency_add(struct wr_latency *latency, uint64_t ns) {
    atomic_fetch_add_explicit(&latency->counts[bucket_of(ns)], 1, memory_order_relaxed); // R1
}

void wr_latency_read(const struct wr_latency *latency, struct wr_latencies *out) {
    out->total = 0;
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS; i++) {
        out->counts[i] = atomic_load_explicit(&latency->counts[i], memory_order_relaxed); // R1
        out->total += out->counts[i];
    }
}

void wr_latencies_since(struct wr_latencies *out, const struct wr_latencies *before) {
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS; i++) out->counts[i] -= before->counts[i];
    out->total -= before->total;
}

uint64_t wr_latencies_quantile_ns(const struct wr_latencies *latencies, double part) {
    const double wanted = part * (double)latencies->total;
    uint64_t seen = 0;
    for (unsigned i = 0; i < WR_LATENCY_BUCKETS; i++) {
        seen += latencies->counts[i];
        if (seen > 0 && (double)seen >= wanted) return wr_latency_bucket_end_ns(i);
    }
    return 0;
}
