// pool_ledger.h - what happened in a run, counted as it happens, and the balance at its end.
#ifndef WR_POOL_LEDGER_H
#define WR_POOL_LEDGER_H

#include <stdint.h>

#include "pool_events.h"

// X(name, word, what it counts)
#define WR_POOL_COUNTS(X)                                                                          \
    X(ARRIVED, "arrived", "events that came")                                                      \
    X(GRANTED, "granted", "events that passed all limits, again after each retry")                 \
    X(HELD_UP, "held_up", "events denied when they first asked, by each of the limits")            \
    X(DELIVERED, "delivered", "events that the provider took")                                     \
    X(DENIED, "denied", "events denied for good by the limit of their key")                        \
    X(DEAD, "dead_lettered", "events given up: tries, age, or no room to park")                    \
    X(PARKED, "parked_at_end", "events that still waited when the run ended")                      \
    X(TOO_MANY, "answers_429", "calls that the provider refused as too many")                      \
    X(UNAVAILABLE, "answers_503", "calls during an outage")                                        \
    X(TIMEOUT, "timeouts", "calls that were not answered in time")                                 \
    X(QUEUE_FULL, "queue_full", "events parked again because the queue was full")                  \
    X(RETRIED, "retried", "events that came back from being parked")                               \
    X(FAILED, "failed", "asks that the limiter or the lot could not answer")

enum wr_pool_count {
#define WR_POOL_COUNT_ENTRY(name, word, summary) WR_POOL_COUNT_##name,
    WR_POOL_COUNTS(WR_POOL_COUNT_ENTRY)
#undef WR_POOL_COUNT_ENTRY
    WR_POOL_COUNT_END
};

struct wr_ledger {
    _Atomic uint64_t counts[WR_POOL_COUNT_END];
};

struct wr_pool_counts {
    uint64_t of[WR_POOL_COUNT_END];
};

const char *wr_pool_count_word(enum wr_pool_count count);
const char *wr_pool_count_summary(enum wr_pool_count count);

// Any thread.
void wr_ledger_add(struct wr_ledger *ledger, enum wr_pool_count count, uint64_t number);
void wr_ledger_read(const struct wr_ledger *ledger, struct wr_pool_counts *counts);

// Answers that meant "too much": 429, 503 and timeouts.
uint64_t wr_pool_overloads(const struct wr_pool_counts *counts);

// Gives the event its end, and counts it. By the event's owner.
void wr_ledger_end(struct wr_ledger *ledger, struct wr_pool_event *event, enum wr_pool_end end);

// The balance: where every event that arrived is.
struct wr_pool_sheet {
    uint64_t arrived, delivered, denied, dead, parked;
    int64_t lost; // arrived - delivered - denied - dead - parked
    // From the events themselves, one by one:
    uint64_t unended; // arrived, and without an end
    uint64_t twice;   // with more than one
    bool agrees;      // each kind of end is on as many events as were counted
};

void wr_pool_sheet(struct wr_ledger *ledger, const struct wr_pool_events *events,
                   struct wr_pool_sheet *sheet);

// Nothing is lost, nothing ended twice, and the two counts agree.
bool wr_pool_sheet_balances(const struct wr_pool_sheet *sheet);

#endif
