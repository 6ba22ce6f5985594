// How many events each key has parked: a count that may be too high, in fixed memory.
//
// A key has two counters, chosen by two parts of its hash, and adds to both; the smaller is at
// least what the key has parked, and more only where other keys share both. A key that is not in a
// flood therefore reads as flooded only if it shares one counter with one flooded key and the other
// with another, or both with one: for f flooded keys in the lot a chance of about (f / 4096)^2.
// The hash is seeded, so that nobody outside can choose such keys.
//
// Shared words
//   counts[][]  added to by whoever parks, subtracted from by whoever gives the event back
// I1 A counter is the number of events of its keys that are parked or just being parked: each is
//    subtracted once, by the one that got it (lot_tree.c, I2).
// R1 Numbers that order nothing else. Parks of one key at the same moment may see each other's
//    attempt: at the very bound one may be refused that would just have fitted, and none is let in
//    over it.
// Checked by tests/test_lot.c (shares) and tests/stress_lot.c (all are 0 in the end).
#include "lot.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SLOT_BITS 12
_Static_assert(WR_LOT_KEY_SLOTS == 1u << SLOT_BITS, "a key holds two slot numbers");

static uint32_t slot_of(uint32_t key, unsigned row) {
    return key >> row * SLOT_BITS & (WR_LOT_KEY_SLOTS - 1);
}

uint32_t wr_lot_key(const struct wr_lot_keys *keys, struct weir_key key) {
    uint64_t hash;
    if (key.word == UINT64_MAX && key.data != NULL) {
        const struct weir_prepared *prepared = key.data;
        key = (struct weir_key){prepared->data, prepared->word};
    }
    if (key.data != NULL) {
        hash = XXH3_64bits_withSeed(key.data, (size_t)key.word, keys->seed);
    } else {
        unsigned char bytes[8];
        for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(key.word >> 8 * i);
        hash = XXH3_64bits_withSeed(bytes, sizeof bytes, keys->seed);
    }
    return (uint32_t)(hash & ((UINT64_C(1) << 2 * SLOT_BITS) - 1));
}

uint32_t wr_lot_key_parked(const struct wr_lot_keys *keys, uint32_t key) {
    const uint32_t a =
        atomic_load_explicit(&keys->counts[0][slot_of(key, 0)], memory_order_relaxed); // R1
    const uint32_t b =
        atomic_load_explicit(&keys->counts[1][slot_of(key, 1)], memory_order_relaxed); // R1
    return a < b ? a : b;
}

bool wr_lot_key_enter(struct wr_lot_keys *keys, uint32_t key) {
    uint32_t before = UINT32_MAX;
    for (unsigned row = 0; row < 2; row++) {
        _Atomic uint32_t *counter = &keys->counts[row][slot_of(key, row)];
        const uint32_t count = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); // R1
        if (count < before) before = count;
    }
    if (before < keys->most) return true;
    wr_lot_key_leave(keys, key);
    return false;
}

void wr_lot_key_leave(struct wr_lot_keys *keys, uint32_t key) {
    if (key == WR_LOT_NO_KEY) return;
    for (unsigned row = 0; row < 2; row++)
        atomic_fetch_sub_explicit(&keys->counts[row][slot_of(key, row)], 1, // R1
                                  memory_order_relaxed); // R1
}
