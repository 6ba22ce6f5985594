// Deadlines of strict asks: who has waited long enough is answered without Redis.
#include "strict_inside.h"

static bool is_past(struct wr_strict *strict, const struct weir_sync_ask *ask, int64_t now_us) {
    const int64_t deadline_us = (int64_t)ask->inside[INSIDE_DEADLINE];
    if (deadline_us <= now_us) return true;
    if (deadline_us < strict->wake_us) strict->wake_us = deadline_us;
    return false;
}

static void expire_waiting(struct wr_strict *strict, struct wr_strict_lane *lane, int64_t now_us) {
    struct weir_sync_ask *ask = lane->first, *kept = NULL;
    while (ask != NULL) {
        struct weir_sync_ask *next = wr_strict_next(ask);
        if (is_past(strict, ask, now_us)) {
            if (kept != NULL) kept->inside[INSIDE_NEXT] = (uintptr_t)next;
            else lane->first = next;
            if (next == NULL) lane->last = kept;
            wr_strict_give_up(strict, ask);
        } else kept = ask;
        ask = next;
    }
}

// A call that nobody waits for any more is not sent again.
static void expire_call(struct wr_strict *strict, struct wr_strict_lane *lane, int64_t now_us) {
    if (lane->call.keys == 0) return;
    uint32_t alive = 0;
    for (uint32_t i = 0; i < lane->call.asks; i++) {
        struct weir_sync_ask *ask = lane->asks[i];
        if (ask == NULL) continue;
        if (is_past(strict, ask, now_us)) {
            lane->asks[i] = NULL;
            wr_strict_count(&strict->tally.unknown, 1);
            wr_strict_give_up(strict, ask);
        } else alive++;
    }
    if (alive == 0) lane->call.keys = 0;
}

void wr_strict_expire(struct wr_strict *strict, int64_t now_us) {
    wr_strict_collect(strict);
    if (now_us < strict->wake_us) return;
    strict->wake_us = INT64_MAX;
    for (uint32_t i = 0; i < strict->options.groups; i++) {
        expire_call(strict, &strict->lanes[i], now_us);
        expire_waiting(strict, &strict->lanes[i], now_us);
    }
}
