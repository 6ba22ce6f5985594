// pending.c - a binary heap: the children of i are 2i + 1 and 2i + 2, and none is before i.
#include "pending.h"

#include <stdlib.h>

static bool before(const struct wr_pending_item *a, const struct wr_pending_item *b) {
    if (a->due_ns != b->due_ns) return a->due_ns < b->due_ns;
    return a->order < b->order;
}

static bool grow(struct wr_pending *pending) {
    size_t room = pending->room == 0 ? 64 : pending->room * 2;
    struct wr_pending_item *items = reallocarray(pending->items, room, sizeof(*items));
    if (items == NULL) return false;
    pending->items = items;
    pending->room = room;
    return true;
}

void wr_pending_clear(struct wr_pending *pending) {
    free(pending->items);
    *pending = (struct wr_pending)WR_PENDING_INIT;
}

bool wr_pending_push(struct wr_pending *pending, const struct wr_pending_item *item) {
    if (pending->count == pending->room && !grow(pending)) return false;
    size_t hole = pending->count++;
    while (hole > 0 && before(item, &pending->items[(hole - 1) / 2])) {
        pending->items[hole] = pending->items[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    pending->items[hole] = *item;
    return true;
}

const struct wr_pending_item *wr_pending_first(const struct wr_pending *pending) {
    return pending->count > 0 ? &pending->items[0] : NULL;
}

struct wr_pending_item wr_pending_pop(struct wr_pending *pending) {
    struct wr_pending_item first = pending->items[0];
    struct wr_pending_item last = pending->items[--pending->count];
    size_t hole = 0;
    size_t child;
    while ((child = 2 * hole + 1) < pending->count) {
        if (child + 1 < pending->count &&
            before(&pending->items[child + 1], &pending->items[child]))
            child++;
        if (!before(&pending->items[child], &last)) break;
        pending->items[hole] = pending->items[child];
        hole = child;
    }
    if (pending->count > 0) pending->items[hole] = last;
    return first;
}
