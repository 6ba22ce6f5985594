// Hashing what hash.h does not inline.
#include "hash.h"

uint64_t wr_hash_long(const struct weir *w, struct weir_key key) {
    if (key.word == UINT64_MAX) return ((const struct weir_prepared *)key.data)->hash;
    return XXH3_64bits_withSecret(key.data, (size_t)key.word, w->secret, WR_SECRET_BYTES);
}
