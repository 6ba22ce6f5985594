// Parking and coming back. Which place is due is the tree's (lot_tree.c); here are the free places.
//
// Shared words
//   free          {first free place + 1 or 0, count of changes}: a stack, by whoever parks or gives
//                 a place back
//   next_free[p]  the next in the stack, written by whoever gives p back, read by whoever parks
//   nodes[p], keys_of[p]  plain: written by the thread that has p from the stack, before L1 of
//                 lot_tree.c; read by the one that got the event by L2, before it gives p back
//   closed        set once by close
// CK's stacks link their own entries in pairs twice as large, by instructions that ThreadSanitizer
// cannot see; here the link is four bytes beside the place.
// I1 A place is in the stack, in the hands of one caller, or parked. Places are never freed, so a
//    slow caller may read next_free of a place that it will not get.
// I2 The count in `free` changes with it, so L1 fails if anything was popped or pushed meanwhile.
// L1 The stack changes. Release: a place goes back after its event has been read. Acquire: the next
//    owner writes after that.
// R1 Loads that only propose an L1.
// R2 next_free is read and written while others may; L1 says whether what was read counts.
// R3 A park that does not see `closed` yet counts as before the close.
// Checked by tests/test_lot.c and tests/stress_lot.c.
#include "lot.h"

#define SIGN (UINT64_C(1) << 63)

// Readings in the order of their value, as unsigned numbers; WR_LOT_NEVER is none of them.
static uint64_t order_of(int64_t ns) {
    const uint64_t order = (uint64_t)ns ^ SIGN;
    return order < WR_LOT_NEVER ? order : WR_LOT_NEVER - 1;
}

static int64_t due_at(int64_t now_ns, uint64_t wait_ns) {
    const uint64_t left = WR_LOT_NEVER - 1 - order_of(now_ns);
    return (int64_t)((order_of(now_ns) + (wait_ns < left ? wait_ns : left)) ^ SIGN);
}

static bool pop_free(struct weir_lot *lot, uint32_t *place) {
    for (;;) {
        const struct wr_pair first = wr_u128_load(&lot->free); // R1
        if (first.tag == 0) return false;
        *place = (uint32_t)first.tag - 1;
        const uint32_t next =
            atomic_load_explicit(&lot->next_free[*place], memory_order_relaxed); // R2
        if (wr_u128_cas(&lot->free, first, (struct wr_pair){next, first.word + 1})) // L1
            return true;
    }
}

static void push_free(struct weir_lot *lot, uint32_t place) {
    struct wr_pair first;
    do {
        first = wr_u128_load(&lot->free); // R1
        atomic_store_explicit(&lot->next_free[place], (uint32_t)first.tag, // R2
                              memory_order_relaxed); // R2
    } while (!wr_u128_cas(&lot->free, first, (struct wr_pair){place + 1, first.word + 1})); // L1
}

static int refuse(struct weir_lot *lot, uint32_t key, int result) {
    wr_lot_key_leave(&lot->keys, key);
    wr_lot_count(lot, WR_LOT_REFUSED, 1);
    return result;
}

int wr_lot_park(struct weir_lot *lot, struct weir_lot_node *node, uint32_t key, uint64_t wait_ns,
                int64_t now_ns, struct weir_lot_ticket *ticket) {
    if (atomic_load_explicit(&lot->closed, memory_order_relaxed) != 0) // R3
        return refuse(lot, key, WEIR_ECLOSED);
    uint32_t place;
    if (!pop_free(lot, &place)) return refuse(lot, key, WEIR_NO_ROOM);
    node->due_ns = due_at(now_ns, wait_ns);
    lot->nodes[place] = node;
    lot->keys_of[place] = key;
    if (ticket != NULL)
        *ticket = (struct weir_lot_ticket){wr_lot_tree_next_serial(&lot->tree, place), place};
    const uint64_t due = order_of(node->due_ns);
    wr_lot_count(lot, WR_LOT_PARKED, 1);
    wr_lot_tree_put(&lot->tree, place, due);
    return WEIR_GRANTED;
}

int weir_lot_park(struct weir_lot *lot, struct weir_lot_node *node, uint64_t wait_ns,
                  int64_t now_ns, struct weir_lot_ticket *ticket) {
    return wr_lot_park(lot, node, WR_LOT_NO_KEY, wait_ns, now_ns, ticket);
}

void weir_lot_close(struct weir_lot *lot) {
    atomic_store_explicit(&lot->closed, 1, memory_order_relaxed); // R3
}

// The event of a place that the caller has claimed; the place is free again.
static struct weir_lot_node *collect(struct weir_lot *lot, uint32_t place) {
    struct weir_lot_node *node = lot->nodes[place];
    wr_lot_key_leave(&lot->keys, lot->keys_of[place]);
    push_free(lot, place);
    return node;
}

static size_t collect_all(struct weir_lot *lot, const uint32_t *places, unsigned count,
                          enum wr_lot_counter counter, struct weir_lot_node **nodes) {
    wr_lot_count(lot, counter, count);
    for (unsigned i = 0; i < count; i++) nodes[i] = collect(lot, places[i]);
    return count;
}

// As many places as one block has, or as there is room for.
static unsigned room(size_t left) {
    return left < WR_LOT_FAN ? (unsigned)left : WR_LOT_FAN;
}

static size_t take_until(struct weir_lot *lot, uint64_t until, enum wr_lot_counter counter,
                         struct weir_lot_node **nodes, size_t most) {
    size_t taken = 0;
    uint32_t places[WR_LOT_FAN];
    while (taken < most) {
        const unsigned count =
            wr_lot_tree_claim(&lot->tree, until, places, room(most - taken));
        if (count == 0) break;
        taken += collect_all(lot, places, count, counter, nodes + taken);
    }
    return taken;
}

size_t weir_lot_take(struct weir_lot *lot, int64_t now_ns, struct weir_lot_node **nodes,
                     size_t most) {
    return take_until(lot, order_of(now_ns), WR_LOT_RETRIED, nodes, most);
}

size_t weir_lot_drain(struct weir_lot *lot, struct weir_lot_node **nodes, size_t most) {
    size_t taken = take_until(lot, WR_LOT_NEVER - 1, WR_LOT_DRAINED, nodes, most);
    uint32_t places[WR_LOT_FAN];
    while (taken < most) {
        const unsigned count = wr_lot_tree_claim_any(&lot->tree, places, room(most - taken));
        if (count == 0) break;
        taken += collect_all(lot, places, count, WR_LOT_DRAINED, nodes + taken);
    }
    return taken;
}

uint64_t weir_lot_next_ns(struct weir_lot *lot, int64_t now_ns) {
    const uint64_t due = wr_lot_tree_earliest(&lot->tree);
    if (due == WR_LOT_NEVER) return WEIR_FOREVER;
    const uint64_t now = order_of(now_ns);
    return due > now ? due - now : 0;
}

struct weir_lot_node *weir_lot_cancel(struct weir_lot *lot, struct weir_lot_ticket ticket) {
    if (!wr_lot_tree_remove(&lot->tree, ticket.place, ticket.serial)) return NULL;
    struct weir_lot_node *node;
    collect_all(lot, &ticket.place, 1, WR_LOT_CANCELLED, &node);
    return node;
}
