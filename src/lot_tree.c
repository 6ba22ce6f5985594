// Which place is due next: a tree of minima that any number of threads keep up to date.
//
// Why not a timing wheel: its buckets must be cascaded, and who cascades holds other callers'
// events in its hands; a cancelled event stays linked until its bucket comes round; and a parker
// that sleeps between reading the wheel's hand and linking its event parks it a whole turn late.
// Here an event never moves: it has one place from its park to its end, given up by one
// compare-and-swap. What is shared beyond that are sums that anybody can compute again.
//
// Shared words
//   levels[0][p]  a place: {due, serial}. At rest (due = WR_LOT_NEVER) it is changed only by the
//                 thread that has it from the stack of free places; while parked, by whoever takes,
//                 cancels or drains it
//   levels[k][i]  {least due of its 16 children, count of changes}: changed by whoever has changed
//                 a place below it, or finds it out of date
// I1 Every change of a pair makes its word one larger, so a compare-and-swap succeeds only where
//    nothing has changed since the load: 64 bits do not come round.
// I2 An event is in place p while levels[0][p] is not at rest; the change to rest is one
//    compare-and-swap, so exactly one caller gets the event.
// I3 Once a change of a place has been raised (`raise` has returned), each pair above it, then and
//    later, has been computed from that change or a later one of the same place.
//    By induction over the levels: the raiser's own L3 on a parent was computed from children read
//    after its change of the child. The successful L3s on one pair form a chain in which each has
//    read the one before (I1), with acquire, and released its own; so every later one reads the
//    children as new or newer. A raiser that loses has computed from too old a state perhaps, so it
//    computes again until its own L3 succeeds.
// I4 If a take finds every pair of the top above its reading, no event whose park had returned
//    before is due and still there: by I3 the top pair above it would say so.
// Progress: a compare-and-swap fails only because another one on the same pair succeeded. A thread
// stopped between a change of a place and its raise leaves pairs that are out of date: too early
// ones are put right by the first take that goes down there and finds nothing; too late ones hide
// only the event whose park has not returned. Lock-free; nobody waits for anybody.
//
// L1 A park: the place gets its due time. Release: what was written to the event goes with it.
// L2 A take, cancel or drain: the place goes to rest. Acquire: the event may be read.
// L3 A pair above the places is computed anew.
// R1 Loads. All are acquire: what they say is only a proposal to L2 or L3, but children must be
//    read after their parent (I3).
// Checked by tests/test_lot.c (an exact model, and a take that stops half way) and by
// tests/stress_lot.c (I2, I4 and the balance under threads).
#include "lot.h"

struct least {
    struct wr_pair pair;
    unsigned where;
};

// The earliest of sixteen pairs.
static struct least least_of(struct wr_pair *pairs) {
    struct least least = {wr_u128_load(&pairs[0]), 0}; // R1
    for (unsigned i = 1; i < WR_LOT_FAN; i++) {
        const struct wr_pair pair = wr_u128_load(&pairs[i]); // R1
        if (pair.tag < least.pair.tag) least = (struct least){pair, i};
    }
    return least;
}

static void refresh(struct wr_lot_tree *tree, unsigned level, uint64_t index) {
    struct wr_pair *parent = &tree->levels[level][index];
    for (;;) {
        const struct wr_pair old = wr_u128_load(parent); // R1
        const struct least least = least_of(&tree->levels[level - 1][index * WR_LOT_FAN]);
        const struct wr_pair new = {least.pair.tag, old.word + 1};
        if (wr_u128_cas(parent, old, new)) return; // L3
    }
}

// Even where a minimum comes out as it was it is written: that makes the L3 of a slower thread,
// computed before the change below, fail (I3).
static void raise_from(struct wr_lot_tree *tree, unsigned level, uint64_t index) {
    for (; level <= tree->top; level++, index /= WR_LOT_FAN) refresh(tree, level, index);
}

static void raise(struct wr_lot_tree *tree, uint64_t block) {
    raise_from(tree, 1, block);
}

size_t wr_lot_tree_pairs(struct wr_lot_tree *tree, uint64_t capacity) {
    size_t all = 0;
    uint64_t count = capacity;
    for (unsigned level = 0;; level++) {
        tree->counts[level] = (count + WR_LOT_FAN - 1) / WR_LOT_FAN * WR_LOT_FAN;
        tree->top = level;
        all += tree->counts[level];
        if (level > 0 && tree->counts[level] == WR_LOT_FAN) return all;
        count = tree->counts[level] / WR_LOT_FAN;
    }
}

void wr_lot_tree_init(struct wr_lot_tree *tree, struct wr_pair *pairs) {
    for (unsigned level = 0; level <= tree->top; level++) {
        tree->levels[level] = pairs;
        for (uint64_t i = 0; i < tree->counts[level]; i++)
            pairs[i] = (struct wr_pair){WR_LOT_NEVER, 0};
        pairs += tree->counts[level];
    }
}

uint64_t wr_lot_tree_next_serial(const struct wr_lot_tree *tree, uint32_t place) {
    return wr_u128_load(&tree->levels[0][place]).word + 1; // R1
}

void wr_lot_tree_put(struct wr_lot_tree *tree, uint32_t place, uint64_t due) {
    struct wr_pair *pair = &tree->levels[0][place];
    const struct wr_pair rest = wr_u128_load(pair);                       // R1
    (void)wr_u128_cas(pair, rest, (struct wr_pair){due, rest.word + 1}); // L1
    raise(tree, place / WR_LOT_FAN);
}

bool wr_lot_tree_remove(struct wr_lot_tree *tree, uint32_t place, uint64_t serial) {
    if (place >= tree->counts[0]) return false;
    struct wr_pair *pair = &tree->levels[0][place];
    const struct wr_pair parked = wr_u128_load(pair); // R1
    if (parked.word != serial || parked.tag == WR_LOT_NEVER) return false;
    const struct wr_pair rest = {WR_LOT_NEVER, serial + 1};
    if (!wr_u128_cas(pair, parked, rest)) return false; // L2
    raise(tree, place / WR_LOT_FAN);
    return true;
}

// Claims what is due in a block, the earliest first.
static unsigned claim_block(struct wr_lot_tree *tree, uint64_t block, uint64_t until,
                            uint32_t *places, unsigned most) {
    struct wr_pair *pairs = &tree->levels[0][block * WR_LOT_FAN];
    unsigned count = 0;
    while (count < most) {
        const struct least least = least_of(pairs);
        if (least.pair.tag > until) break;
        const struct wr_pair rest = {WR_LOT_NEVER, least.pair.word + 1};
        if (!wr_u128_cas(&pairs[least.where], least.pair, rest)) continue; // L2
        places[count++] = (uint32_t)(block * WR_LOT_FAN + least.where);
    }
    return count;
}

// Goes down from the earliest pair of the top to a block. False when nothing is due; a pair on the
// way that promised more than its children hold is put right, and the way begun again.
static bool find_block(struct wr_lot_tree *tree, uint64_t until, uint64_t *block) {
    struct least least = least_of(tree->levels[tree->top]);
    unsigned level = tree->top;
    uint64_t index = least.where;
    while (least.pair.tag <= until) {
        if (level == 1) {
            *block = index;
            return true;
        }
        least = least_of(&tree->levels[level - 1][index * WR_LOT_FAN]);
        if (least.pair.tag <= until) {
            level--;
            index = index * WR_LOT_FAN + least.where;
        } else {
            raise_from(tree, level, index);
            least = least_of(tree->levels[tree->top]);
            level = tree->top;
            index = least.where;
        }
    }
    return false;
}

unsigned wr_lot_tree_claim(struct wr_lot_tree *tree, uint64_t until, uint32_t *places,
                           unsigned most) {
    uint64_t block;
    while (find_block(tree, until, &block)) {
        const unsigned count = claim_block(tree, block, until, places, most);
        raise(tree, block);
        if (count != 0) return count;
    }
    return 0;
}

unsigned wr_lot_tree_claim_any(struct wr_lot_tree *tree, uint32_t *places, unsigned most) {
    for (uint64_t block = 0; block < tree->counts[0] / WR_LOT_FAN; block++) {
        const unsigned count = claim_block(tree, block, WR_LOT_NEVER - 1, places, most);
        if (count == 0) continue;
        raise(tree, block);
        return count;
    }
    return 0;
}

uint64_t wr_lot_tree_earliest(const struct wr_lot_tree *tree) {
    return least_of(tree->levels[tree->top]).pair.tag;
}
