// From a key to the hash that places it: XXH3 with a secret drawn for each table.
#pragma once

#include "limiter.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

// Keys of more than 16 bytes, and prepared ones: out of the way of short keys and integers.
uint64_t wr_hash_long(const struct weir *w, struct weir_key key);

static inline uint64_t wr_hash(const struct weir *w, struct weir_key key) {
    if (key.data != NULL) {
        // Below, the compiler sees that the length is at most 16, and inlines no more than that.
        if (WR_UNLIKELY(key.word > 16)) return wr_hash_long(w, key);
        return XXH3_64bits_withSecret(key.data, (size_t)key.word, w->secret, WR_SECRET_BYTES);
    }
    uint64_t id = key.word;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    id = __builtin_bswap64(id);
#endif
    return XXH3_64bits_withSecret(&id, sizeof id, w->secret, WR_SECRET_BYTES);
}
