// pending.h - events that wait for their turn: a heap with the earliest on top.
#ifndef WR_PENDING_H
#define WR_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace.h"

struct wr_pending_item {
    uint64_t due_ns;
    uint64_t order; // settles a tie in due_ns: the lower comes first
    struct wr_trace_event event;
};

struct wr_pending {
    struct wr_pending_item *items;
    size_t count;
    size_t room;
};

#define WR_PENDING_INIT                                                                            \
    { NULL, 0, 0 }

// Frees what `pending` holds; it is empty again.
void wr_pending_clear(struct wr_pending *pending);

// False when there is no memory; `pending` is as it was.
bool wr_pending_push(struct wr_pending *pending, const struct wr_pending_item *item);

// The earliest, or NULL when there is none; it stays where it is.
const struct wr_pending_item *wr_pending_first(const struct wr_pending *pending);

// Takes the earliest out; there is one.
struct wr_pending_item wr_pending_pop(struct wr_pending *pending);

#endif
