// keys.h - how often each key was granted and denied, with its name, in bounded memory.
//
// Up to its room the table is exact. When it is full, it forgets keys and goes on: first those that
// nobody watches and that were never denied, then all that were never denied, then those that were
// denied least. So the keys most denied stay, and `short_by` says how many denials of a key may be
// missing at most; 0 means that every count of denials is exact, as it is in a flood of keys seen
// once. Each count belongs to a number below the room, so that others can keep arrays beside it.
#ifndef WR_KEYS_H
#define WR_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "distinct.h"
#include "text.h"

#define WR_KEY_NONE UINT32_MAX
#define WR_KEY_NAME_BYTES 120 // of a longer name, the beginning

struct wr_key_count {
    uint64_t hash[2];
    uint64_t granted; // since the key came, or came back
    uint64_t denied;
    char *name; // NULL: a free place
    uint32_t name_bytes;
};

// What others keep beside the table.
struct wr_keys_watcher {
    bool (*is_idle)(void *context, uint32_t key); // nothing is kept for `key`
    void (*forget)(void *context, uint32_t key);
    void *context;
};

struct wr_keys {
    struct wr_key_count *counts;
    uint32_t *index; // by hash: a number plus 1, or 0
    uint32_t *free;  // a stack of the free numbers
    uint32_t room;
    uint32_t used;
    uint32_t index_mask;
    struct wr_keys_watcher watcher;
    bool forgot;       // some key, ever
    uint64_t short_by; // denials that a count may lack
    struct wr_distinct distinct;
};

// `room` is 8 up to 2^30. False without memory.
bool wr_keys_init(struct wr_keys *keys, uint32_t room, struct wr_keys_watcher watcher);
void wr_keys_fini(struct wr_keys *keys);

// The number of the key with this hash, which is entered if need be. WR_KEY_NONE: no memory.
uint32_t wr_keys_claim(struct wr_keys *keys, const uint64_t hash[2], struct wr_text name);

// Starts to fetch what wr_keys_claim will want.
static inline void wr_keys_prefetch(const struct wr_keys *keys, const uint64_t hash[2]) {
    __builtin_prefetch(&keys->index[hash[1] & keys->index_mask]);
}

// How many keys came: exact while nothing is forgotten.
uint64_t wr_keys_seen(const struct wr_keys *keys);

// Orders for a list: the most denied first, then the most granted, then by name.
int wr_key_count_compare(const struct wr_key_count *a, const struct wr_key_count *b);

#endif
