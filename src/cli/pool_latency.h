// pool_latency.h - how long events took, in buckets a 32nd of a power of two wide.
#ifndef WR_POOL_LATENCY_H
#define WR_POOL_LATENCY_H

#include <stdint.h>

#define WR_LATENCY_PARTS 32 // buckets to each power of two
#define WR_LATENCY_BUCKETS (WR_LATENCY_PARTS * 60) // all of 64 bits

struct wr_latency {
    _Atomic uint64_t counts[WR_LATENCY_BUCKETS];
};

// A copy that stands still.
struct wr_latencies {
    uint64_t counts[WR_LATENCY_BUCKETS];
    uint64_t total;
};

// Any thread.
void wr_latency_add(struct wr_latency *latency, uint64_t ns);
void wr_latency_read(const struct wr_latency *latency, struct wr_latencies *out);

// `out` less what `before` holds, an older reading of the same.
void wr_latencies_since(struct wr_latencies *out, const struct wr_latencies *before);

// The first moment that is not in the bucket any more; the bucket before ends where it begins.
uint64_t wr_latency_bucket_end_ns(unsigned bucket);

// So long took the slowest of the fastest `part` (0 to 1) of them, at most 3.2 % too high; 0 where
// there is none.
uint64_t wr_latencies_quantile_ns(const struct wr_latencies *latencies, double part);

#endif
