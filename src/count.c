// Adding the threads' counters up.
//
// Shared words
//   lines[i].*  i < 112: written by the one thread that has claimed line i (thread.c), read by all
//               i >= 112: added to by any thread
// R1 One writer, so a load and a store lose nothing. A line changes hands only after its thread has
//    ended: the hand-over in thread.c (release, acquire) orders the two.
// R2 A shared line: an atomic add. The numbers order nothing else.
// R3 A sum while others add is a sum of moments; once they have stopped it is exact.
// Checked by tests/stress_take.c (sums equal what the threads counted themselves).
#include "count.h"

void wr_counts_sum(const struct wr_counts *counts, struct weir_stats *stats) {
    for (unsigned i = 0; i < WR_THREAD_LINES; i++) {
        const struct wr_count_line *line = &counts->lines[i];
#define SUM(name)                                                                                  \
    stats->name += atomic_load_explicit(&line->counters[WR_##name], memory_order_relaxed); // R3
        WR_COUNTERS(SUM)
#undef SUM
        for (unsigned b = 0; b < WEIR_WAIT_BUCKETS; b++)
            stats->waits[b] += atomic_load_explicit(&line->waits[b], memory_order_relaxed); // R3
    }
    stats->tokens += stats->granted;
}

uint64_t wr_add_shared(struct wr_count_line *lines, enum wr_counter_id id, uint64_t n) {
    const uint32_t line = wr_thread_line();
    return wr_add(&lines[line].counters[id], line < WR_THREAD_OWN, n);
}
