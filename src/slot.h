// What a slot's 16 bytes mean.
//
//   tag   bits 0-39 fingerprint, 40-41 state, 42 named, the rest 0
//   word  FRESH: the nonce of the announcement; LIVE: `zero`, the value of V at which the bucket
//         was or will be empty
// A way of the table is EMPTY (all bits zero), FRESH(key, nonce): announced, nothing consumed, so
// anyone may drop it without loss; or LIVE(key, zero): the bucket.
#pragma once

#include "u128.h"

#define WR_FINGERPRINT_BITS 40
#define WR_FINGERPRINT_MASK ((UINT64_C(1) << WR_FINGERPRINT_BITS) - 1)
#define WR_STATE_FRESH (UINT64_C(1) << 40)
#define WR_STATE_LIVE (UINT64_C(2) << 40)
#define WR_STATE_MASK (UINT64_C(3) << 40)
#define WR_KEY_STATE_MASK (WR_FINGERPRINT_MASK | WR_STATE_MASK)

#define WR_WAYS 8      // places a key may be in
#define WR_LINE_WAYS 4 // of which a cache line holds

struct wr_line_of_slots {
    struct wr_pair slots[WR_LINE_WAYS];
};

static inline bool wr_slot_is(struct wr_pair slot, uint64_t fingerprint, uint64_t state) {
    return (slot.tag & WR_KEY_STATE_MASK) == (fingerprint | state);
}

static inline bool wr_slot_state_is(struct wr_pair slot, uint64_t state) {
    return (slot.tag & WR_STATE_MASK) == state;
}
