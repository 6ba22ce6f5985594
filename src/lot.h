// The lot inside: a tree of minima over places, the places, the keys' shares, the counters.
//
//   lot.c          creation, memory, statistics
//   lot_tree.c     which place is due next: the argument for the whole is there
//   lot_park.c     park, take, cancel, drain; the stack of free places
//   lot_keys.c     how many events each key has parked
//   lot_offer.c    the ready-made loop
#pragma once

#include <stdatomic.h>

#include "thread.h"
#include "u128.h"
#include "weir_lot.h"

#define WR_LOT_FAN 16u   // children of a node, places of a block: four cache lines
#define WR_LOT_LEVELS 7  // places, and up to six levels above: 16^7 = 2^28
#define WR_LOT_NEVER UINT64_MAX // the due time of a place at rest: after every other

// levels[0] are the places, one pair each: tag = due time, WR_LOT_NEVER when at rest; word =
// serial, which every change makes one larger. levels[k][i].tag is the least tag of the 16 pairs of
// level k - 1 from 16 i on; its word, too, counts changes. The top level has at most 16 pairs.
// Each level is padded with pairs at rest to a multiple of 16.
struct wr_lot_tree {
    struct wr_pair *levels[WR_LOT_LEVELS];
    uint64_t counts[WR_LOT_LEVELS]; // padded
    unsigned top;                   // index of the top level, at least 1
};

#define WR_LOT_KEY_SLOTS 4096u // a power of two
#define WR_LOT_NO_KEY UINT32_MAX

// Two counters a key, by two parts of its hash: the smaller is at least what the key has parked.
struct wr_lot_keys {
    uint64_t seed;
    uint32_t most; // that one key may hold
    _Atomic uint32_t counts[2][WR_LOT_KEY_SLOTS];
};

enum wr_lot_counter {
    WR_LOT_PARKED,
    WR_LOT_RETRIED,
    WR_LOT_CANCELLED,
    WR_LOT_DRAINED,
    WR_LOT_REFUSED,
    WR_LOT_FATES, // and as many as there are fates
    WR_LOT_COUNTERS = WR_LOT_FATES + WEIR_FATES_END,
};

struct wr_lot_line {
    _Alignas(64) _Atomic uint64_t counters[16];
};
_Static_assert(WR_LOT_COUNTERS <= 16, "a line of counters has 16");

struct weir_lot {
    struct wr_lot_tree tree;
    struct weir_lot_node **nodes; // what is parked in each place
    uint32_t *keys_of;            // its key's two counters, or WR_LOT_NO_KEY
    _Atomic uint32_t *next_free;  // place + 1 of the next in the stack of free places, 0: none
    struct weir_lot_options options;
    struct weir_allocator allocator;
    size_t memory_bytes;
    _Alignas(64) struct wr_pair free; // tag: the first free place + 1, or 0; word: counts changes
    _Alignas(64) _Atomic uint32_t closed;
    struct wr_lot_keys keys;
    struct wr_lot_line lines[WR_THREAD_LINES];
};

// lot_tree.c
size_t wr_lot_tree_pairs(struct wr_lot_tree *tree, uint64_t capacity);
void wr_lot_tree_init(struct wr_lot_tree *tree, struct wr_pair *pairs);
// For a place at rest that the caller has to itself: the serial that the next put gives it.
uint64_t wr_lot_tree_next_serial(const struct wr_lot_tree *tree, uint32_t place);
void wr_lot_tree_put(struct wr_lot_tree *tree, uint32_t place, uint64_t due);
bool wr_lot_tree_remove(struct wr_lot_tree *tree, uint32_t place, uint64_t serial);
unsigned wr_lot_tree_claim(struct wr_lot_tree *tree, uint64_t until, uint32_t *places,
                           unsigned most);
unsigned wr_lot_tree_claim_any(struct wr_lot_tree *tree, uint32_t *places, unsigned most);
uint64_t wr_lot_tree_earliest(const struct wr_lot_tree *tree);

// lot_park.c
int wr_lot_park(struct weir_lot *lot, struct weir_lot_node *node, uint32_t key, uint64_t wait_ns,
                int64_t now_ns, struct weir_lot_ticket *ticket);

// lot_keys.c
uint32_t wr_lot_key(const struct wr_lot_keys *keys, struct weir_key key);
uint32_t wr_lot_key_parked(const struct wr_lot_keys *keys, uint32_t key);
bool wr_lot_key_enter(struct wr_lot_keys *keys, uint32_t key);
void wr_lot_key_leave(struct wr_lot_keys *keys, uint32_t key);

// lot.c
void wr_lot_count(struct weir_lot *lot, unsigned counter, uint64_t n);
