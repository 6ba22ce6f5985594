// pool_ledger.c - counters that any thread adds to.
//
//   wr_ledger.counts   added to by every thread of the pool; read by the view, the valve, /metrics
//
// R1 (relaxed): each is a statistic of its own; nobody infers from one what another has done. They
//     are exact once the threads have been joined, which orders their last additions before.
#include "pool_ledger.h"

#include <stdatomic.h>

const char *wr_pool_count_word(enum wr_pool_count count) {
    static const char *const words[] = {
#define WORD(name, word, summary) word,
        WR_POOL_COUNTS(WORD)
#undef WORD
    };
    return words[count];
}

const char *wr_pool_count_summary(enum wr_pool_count count) {
    static const char *const summaries[] = {
#define SUMMARY(name, word, summary) summary,
        WR_POOL_COUNTS(SUMMARY)
#undef SUMMARY
    };
    return summaries[count];
}

void wr_ledger_add(struct wr_ledger *ledger, enum wr_pool_count count, uint64_t number) {
    atomic_fetch_add_explicit(&ledger->counts[count], number, memory_order_relaxed); // R1
}

void wr_ledger_read(const struct wr_ledger *ledger, struct wr_pool_counts *counts) {
    for (int i = 0; i < WR_POOL_COUNT_END; i++)
        counts->of[i] = atomic_load_explicit(&ledger->counts[i], memory_order_relaxed); // R1
}

uint64_t wr_pool_overloads(const struct wr_pool_counts *counts) {
    return counts->of[WR_POOL_COUNT_TOO_MANY] + counts->of[WR_POOL_COUNT_UNAVAILABLE] +
           counts->of[WR_POOL_COUNT_TIMEOUT];
}

void wr_ledger_end(struct wr_ledger *ledger, struct wr_pool_event *event, enum wr_pool_end end) {
    static const enum wr_pool_count counts[WR_POOL_ENDS] = {
        [WR_POOL_DELIVERED] = WR_POOL_COUNT_DELIVERED,
        [WR_POOL_DENIED] = WR_POOL_COUNT_DENIED,
        [WR_POOL_DEAD] = WR_POOL_COUNT_DEAD,
        [WR_POOL_PARKED] = WR_POOL_COUNT_PARKED,
    };
    event->end = (uint8_t)end;
    if (event->ends < UINT8_MAX) event->ends++;
    wr_ledger_add(ledger, counts[end], 1);
}

void wr_pool_sheet(struct wr_ledger *ledger, const struct wr_pool_events *events,
                   struct wr_pool_sheet *sheet) {
    struct wr_pool_counts counts;
    uint64_t ended[WR_POOL_ENDS] = {0};
    wr_ledger_read(ledger, &counts);
    *sheet = (struct wr_pool_sheet){
        .arrived = counts.of[WR_POOL_COUNT_ARRIVED],
        .delivered = counts.of[WR_POOL_COUNT_DELIVERED],
        .denied = counts.of[WR_POOL_COUNT_DENIED],
        .dead = counts.of[WR_POOL_COUNT_DEAD],
        .parked = counts.of[WR_POOL_COUNT_PARKED],
    };
    sheet->lost = (int64_t)(sheet->arrived - sheet->delivered - sheet->denied - sheet->dead -
                            sheet->parked);
    for (size_t i = 0; i < events->count; i++) {
        const struct wr_pool_event *event = &events->all[i];
        const bool has_arrived = i < sheet->arrived; // they arrive in order
        if (has_arrived && event->ends == 0) sheet->unended++;
        if (event->ends > (has_arrived ? 1 : 0)) sheet->twice++;
        ended[event->end]++;
    }
    sheet->agrees = ended[WR_POOL_DELIVERED] == sheet->delivered &&
                    ended[WR_POOL_DENIED] == sheet->denied && ended[WR_POOL_DEAD] == sheet->dead &&
                    ended[WR_POOL_PARKED] == sheet->parked;
}

bool wr_pool_sheet_balances(const struct wr_pool_sheet *sheet) {
    return sheet->lost == 0 && sheet->unended == 0 && sheet->twice == 0 && sheet->agrees;
}
