// keys.c - counts in an array, found by a hash table of their numbers with linear probing.
//
// Nothing is ever taken out of the index one by one: after a purge it is built anew.
#include "keys.h"

#include <stdlib.h>
#include <string.h>

bool wr_keys_init(struct wr_keys *keys, uint32_t room, struct wr_keys_watcher watcher) {
    uint32_t index_size = 16;
    while (index_size < 2 * room) index_size *= 2;
    *keys = (struct wr_keys){.room = room, .index_mask = index_size - 1, .watcher = watcher};
    keys->counts = calloc(room, sizeof(*keys->counts));
    keys->index = calloc(index_size, sizeof(*keys->index));
    keys->free = calloc(room, sizeof(*keys->free));
    return keys->counts != NULL && keys->index != NULL && keys->free != NULL;
}

void wr_keys_fini(struct wr_keys *keys) {
    for (uint32_t i = 0; keys->counts != NULL && i < keys->room; i++) free(keys->counts[i].name);
    free(keys->counts);
    free(keys->index);
    free(keys->free);
    memset(keys, 0, sizeof(*keys));
}

// The place in the index of the key with this hash, or the free one where it would go.
static uint32_t find_place(const struct wr_keys *keys, const uint64_t hash[2]) {
    uint32_t place = (uint32_t)hash[1] & keys->index_mask;
    while (keys->index[place] != 0) {
        const struct wr_key_count *count = &keys->counts[keys->index[place] - 1];
        if (count->hash[0] == hash[0] && count->hash[1] == hash[1]) break;
        place = (place + 1) & keys->index_mask;
    }
    return place;
}

static void forget(struct wr_keys *keys, uint32_t key) {
    keys->watcher.forget(keys->watcher.context, key);
    free(keys->counts[key].name);
    memset(&keys->counts[key], 0, sizeof(keys->counts[key]));
    keys->used--;
}

// Forgets the keys with at most `denied` denials, of which none is lost but by this.
static void sweep(struct wr_keys *keys, uint64_t denied, bool idle_only) {
    for (uint32_t key = 0; key < keys->room; key++) {
        if (keys->counts[key].name == NULL || keys->counts[key].denied > denied) continue;
        if (idle_only && !keys->watcher.is_idle(keys->watcher.context, key)) continue;
        forget(keys, key);
    }
}

static void rebuild(struct wr_keys *keys) {
    uint32_t free_count = 0;
    memset(keys->index, 0, ((size_t)keys->index_mask + 1) * sizeof(*keys->index));
    for (uint32_t i = keys->room; i-- > 0;) {
        if (keys->counts[i].name == NULL) keys->free[free_count++] = i;
        else keys->index[find_place(keys, keys->counts[i].hash)] = i + 1;
    }
}

// At least a quarter is free afterwards, so that a purge is paid for by many new keys.
static void purge(struct wr_keys *keys) {
    uint32_t enough = keys->room - keys->room / 4;
    uint64_t threshold = 0;
    sweep(keys, 0, true);
    if (keys->used > enough) sweep(keys, 0, false);
    while (keys->used > enough) {
        threshold = 2 * threshold + 1;
        sweep(keys, threshold, false);
    }
    keys->short_by += threshold;
    keys->forgot = true;
    rebuild(keys);
}

// Until the first purge the numbers are given out in order.
static uint32_t free_number(const struct wr_keys *keys) {
    return keys->forgot ? keys->free[keys->room - keys->used - 1] : keys->used;
}

static uint32_t enter(struct wr_keys *keys, const uint64_t hash[2], struct wr_text name) {
    if (keys->used == keys->room) purge(keys);
    uint32_t key = free_number(keys);
    size_t bytes = name.length < WR_KEY_NAME_BYTES ? name.length : WR_KEY_NAME_BYTES;
    struct wr_key_count *count = &keys->counts[key];
    count->name = malloc(bytes + 1);
    if (count->name == NULL) return WR_KEY_NONE;
    memcpy(count->name, name.data, bytes);
    count->name[bytes] = '\0';
    count->name_bytes = (uint32_t)bytes;
    count->hash[0] = hash[0];
    count->hash[1] = hash[1];
    keys->index[find_place(keys, hash)] = key + 1;
    keys->used++;
    wr_distinct_add(&keys->distinct, hash[1]);
    return key;
}

uint32_t wr_keys_claim(struct wr_keys *keys, const uint64_t hash[2], struct wr_text name) {
    uint32_t found = keys->index[find_place(keys, hash)];
    return found != 0 ? found - 1 : enter(keys, hash, name);
}

uint64_t wr_keys_seen(const struct wr_keys *keys) {
    uint64_t estimate = wr_distinct_estimate(&keys->distinct);
    if (!keys->forgot) return keys->used;
    return estimate > keys->room ? estimate : keys->room + UINT64_C(1);
}

int wr_key_count_compare(const struct wr_key_count *a, const struct wr_key_count *b) {
    if (a->denied != b->denied) return a->denied > b->denied ? -1 : 1;
    if (a->granted != b->granted) return a->granted > b->granted ? -1 : 1;
    return strcmp(a->name, b->name);
}
