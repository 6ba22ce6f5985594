// A lot's creation and end, its memory in one piece, its counters.
//
// Shared words
//   lines[i].counters[]  i < WR_THREAD_OWN: written by the one thread that has claimed line i
//                        (thread.c); the rest: added to by any thread
// I1 An event is counted as parked before it can come back, and as come back after it has.
// P1 A count is added with release and read with acquire, and the counts of events come back are
//    read before those of events parked: by I1 no reading shows more come back than were parked.
// R1 The line's only writer reads what it wrote itself.
// R2 next_free and the keys' counters are filled before anybody else knows the lot.
// Checked by tests/stress_lot.c (a watcher that reads while others work, and the sums at the end).
#include "lot.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "limit.h"
#include "memory.h"

void wr_lot_count(struct weir_lot *lot, unsigned counter, uint64_t n) {
    const uint32_t line = wr_thread_line();
    _Atomic uint64_t *count = &lot->lines[line].counters[counter];
    if (line >= WR_THREAD_OWN) {
        atomic_fetch_add_explicit(count, n, memory_order_release); // P1
        return;
    }
    const uint64_t old = atomic_load_explicit(count, memory_order_relaxed); // R1
    atomic_store_explicit(count, old + n, memory_order_release);            // P1
}

static uint64_t sum(const struct weir_lot *lot, unsigned counter) {
    uint64_t all = 0;
    for (unsigned i = 0; i < WR_THREAD_LINES; i++)
        all += atomic_load_explicit(&lot->lines[i].counters[counter], memory_order_acquire); // P1
    return all;
}

// The smallest struct weir_lot_stats ever published: through the eighth fate.
#define STATS_LEAST (offsetof(struct weir_lot_stats, fates) + 8 * sizeof(uint64_t))

int weir_lot_stats(const struct weir_lot *lot, struct weir_lot_stats *stats, size_t size) {
    if (size < STATS_LEAST || size > sizeof *stats) return WEIR_ESIZE;
    struct weir_lot_stats all = {
        .retried = sum(lot, WR_LOT_RETRIED),
        .cancelled = sum(lot, WR_LOT_CANCELLED),
        .drained = sum(lot, WR_LOT_DRAINED),
        .refused = sum(lot, WR_LOT_REFUSED),
        .capacity = lot->options.capacity,
        .memory_bytes = lot->memory_bytes,
    };
    for (unsigned fate = 0; fate < WEIR_FATES_END; fate++)
        all.fates[fate] = sum(lot, WR_LOT_FATES + fate);
    all.parked = sum(lot, WR_LOT_PARKED);
    all.held = all.parked - all.retried - all.cancelled - all.drained;
    memcpy(stats, &all, size);
    return WEIR_GRANTED;
}

static int check_options(const struct weir_lot_options *o, struct weir_error *error) {
    if (o->size != sizeof *o) {
        wr_say(error, "options->size is unknown; start from WEIR_LOT_OPTIONS_INIT");
        return WEIR_ESIZE;
    }
    if (o->capacity == 0 || o->capacity > WEIR_LOT_CAPACITY_MAX) {
        wr_say(error, "capacity is %" PRIu64 " events; give 1 to 2^28", o->capacity);
        return WEIR_EINVAL;
    }
    if (o->key_capacity > o->capacity) {
        wr_say(error, "key_capacity is %" PRIu64 ", more than the capacity of %" PRIu64
               "; give at most that, or 0 for 7 of 8", o->key_capacity, o->capacity);
        return WEIR_EINVAL;
    }
    if (o->allocator != NULL && (o->allocator->map == NULL || o->allocator->unmap == NULL)) {
        wr_say(error, "allocator needs both map and unmap");
        return WEIR_EINVAL;
    }
    return WEIR_GRANTED;
}

// Fills the stack of free places so that places popped one after another lie under different pairs
// of the tree's top: parkers then meet at the top's pairs less often.
static void fill_free(struct weir_lot *lot) {
    uint64_t span = WR_LOT_FAN;
    for (unsigned level = 1; level < lot->tree.top; level++) span *= WR_LOT_FAN;
    uint32_t first = 0;
    for (uint64_t offset = span; offset-- > 0;) {
        for (uint64_t start = 0; start < lot->options.capacity; start += span) {
            const uint64_t place = start + offset;
            if (place >= lot->options.capacity) continue;
            atomic_store_explicit(&lot->next_free[place], first, memory_order_relaxed); // R2
            first = (uint32_t)place + 1;
        }
    }
    lot->free = (struct wr_pair){first, 0};
}

static size_t round_up(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

// Where each part begins after the head; all are multiples of a cache line.
struct plan {
    struct wr_lot_tree tree;
    size_t pairs, nodes, keys_of, next_free, bytes;
};

static struct plan plan_memory(size_t capacity) {
    struct plan plan;
    memset(&plan, 0, sizeof plan);
    const size_t pairs = wr_lot_tree_pairs(&plan.tree, capacity);
    plan.pairs = round_up(sizeof(struct weir_lot));
    plan.nodes = plan.pairs + round_up(pairs * sizeof(struct wr_pair));
    plan.keys_of = plan.nodes + round_up(capacity * sizeof(struct weir_lot_node *));
    plan.next_free = plan.keys_of + round_up(capacity * sizeof(uint32_t));
    plan.bytes = plan.next_free + round_up(capacity * sizeof(uint32_t));
    return plan;
}

static void attach(struct weir_lot *lot, const struct plan *plan) {
    unsigned char *base = (unsigned char *)lot;
    lot->tree = plan->tree;
    lot->memory_bytes = plan->bytes;
    lot->nodes = (struct weir_lot_node **)(void *)(base + plan->nodes);
    lot->keys_of = (uint32_t *)(void *)(base + plan->keys_of);
    lot->next_free = (_Atomic uint32_t *)(void *)(base + plan->next_free);
    wr_lot_tree_init(&lot->tree, (struct wr_pair *)(void *)(base + plan->pairs));
    fill_free(lot);
}

static int make(struct weir_lot **lot, const struct weir_lot_options *options,
                struct weir_error *error) {
    const struct weir_allocator *allocator =
        options->allocator != NULL ? options->allocator : &wr_mmap_allocator;
    const struct plan plan = plan_memory((size_t)options->capacity);
    struct weir_lot *made = allocator->map(allocator->context, plan.bytes, 64);
    if (made == NULL) {
        wr_say(error, "no memory: the allocator would not give %zu bytes for %" PRIu64
               " events; lower capacity", plan.bytes, options->capacity);
        return WEIR_ENOMEM;
    }
    made->allocator = *allocator;
    made->options = *options;
    attach(made, &plan);
    made->keys.most = (uint32_t)(options->key_capacity != 0
                                     ? options->key_capacity
                                     : options->capacity - options->capacity / 8);
    *lot = made;
    return WEIR_GRANTED;
}

int weir_lot_create(struct weir_lot **lot, const struct weir_lot_options *options,
                    struct weir_error *error) {
    if (lot == NULL || options == NULL) {
        wr_say(error, "lot and options must not be NULL");
        return WEIR_EINVAL;
    }
    *lot = NULL;
    int result = check_options(options, error);
    if (result != WEIR_GRANTED) return result;
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        wr_say(error, "the system gave no random bytes for the seed of the keys' hash");
        return WEIR_ESYS;
    }
    wr_u128_init();
    result = make(lot, options, error);
    if (result == WEIR_GRANTED) (*lot)->keys.seed = seed;
    return result;
}

void weir_lot_destroy(struct weir_lot *lot) {
    if (lot == NULL) return;
    const struct weir_allocator allocator = lot->allocator;
    allocator.unmap(allocator.context, lot, lot->memory_bytes);
}
