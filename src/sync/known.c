// Records by name and by fingerprint: two tables of chains with the same number of heads.
#include "known.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHAINS_MIN 64

static struct wr_record **head_by_name(const struct wr_known *keys, const void *name,
                                       size_t name_bytes) {
    return &keys->by_name[XXH3_64bits(name, name_bytes) & (keys->chains - 1)];
}

// A fingerprint is a part of a hash already.
static struct wr_record **head_by_print(const struct wr_known *keys, uint64_t fingerprint) {
    return &keys->by_print[fingerprint & (keys->chains - 1)];
}

static void link_name(const struct wr_known *keys, struct wr_record *record) {
    struct wr_record **head = head_by_name(keys, record->name, record->name_bytes);
    record->next_by_name = *head;
    *head = record;
}

static void link_print(const struct wr_known *keys, struct wr_record *record) {
    struct wr_record **head = head_by_print(keys, record->fingerprint);
    record->next_by_print = *head;
    *head = record;
}

static void unlink_print(const struct wr_known *keys, struct wr_record *record) {
    struct wr_record **at = head_by_print(keys, record->fingerprint);
    while (*at != record) at = &(*at)->next_by_print;
    *at = record->next_by_print;
}

static void relink(struct wr_known *keys, const struct wr_known *old) {
    for (size_t i = 0; i < old->chains; i++)
        for (struct wr_record *record = old->by_name[i], *next; record != NULL; record = next) {
            next = record->next_by_name;
            link_name(keys, record);
            link_print(keys, record);
        }
}

// As many chains as there are records, or twice that. Without memory the chains become longer.
static bool grow(struct wr_known *keys) {
    if (keys->count < keys->chains) return true;
    const struct wr_known old = *keys;
    const size_t chains = old.chains != 0 ? 2 * old.chains : CHAINS_MIN;
    struct wr_record **by_name = calloc(2 * chains, sizeof *by_name);
    if (by_name == NULL) return old.chains != 0;
    keys->by_name = by_name;
    keys->by_print = by_name + chains;
    keys->chains = chains;
    keys->cursor = 0;
    keys->bytes += 2 * (chains - old.chains) * sizeof *by_name;
    relink(keys, &old);
    free(old.by_name);
    return true;
}

void wr_known_fini(struct wr_known *keys) {
    for (size_t i = 0; i < keys->chains; i++)
        for (struct wr_record *record = keys->by_name[i], *next; record != NULL; record = next) {
            next = record->next_by_name;
            free(record);
        }
    free(keys->by_name);
    *keys = (struct wr_known){0};
}

struct wr_record *wr_known_find(const struct wr_known *keys, const void *name, size_t name_bytes) {
    if (keys->chains == 0) return NULL;
    struct wr_record *record = *head_by_name(keys, name, name_bytes);
    while (record != NULL &&
           (record->name_bytes != name_bytes || memcmp(record->name, name, name_bytes) != 0))
        record = record->next_by_name;
    return record;
}

struct wr_record *wr_known_claim(struct wr_known *keys, const void *name, size_t name_bytes) {
    struct wr_record *record = wr_known_find(keys, name, name_bytes);
    if (record != NULL || !grow(keys)) return record;
    record = calloc(1, sizeof *record + name_bytes);
    if (record == NULL) return NULL;
    record->name_bytes = (uint16_t)name_bytes;
    memcpy(record->name, name, name_bytes);
    link_name(keys, record);
    link_print(keys, record);
    keys->count++;
    keys->bytes += sizeof *record + name_bytes;
    return record;
}

struct wr_record *wr_known_find_place(const struct wr_known *keys, uint64_t slot,
                                     uint64_t fingerprint) {
    struct wr_record *other = NULL;
    if (keys->chains == 0) return NULL;
    struct wr_record *record = *head_by_print(keys, fingerprint);
    for (; record != NULL; record = record->next_by_print) {
        if (record->fingerprint != fingerprint) continue;
        if (record->slot == slot) return record;
        other = record;
    }
    return other;
}

void wr_known_place(struct wr_known *keys, struct wr_record *record, uint64_t slot,
                   uint64_t fingerprint) {
    record->slot = slot;
    if (record->fingerprint == fingerprint) return;
    unlink_print(keys, record);
    record->fingerprint = fingerprint;
    link_print(keys, record);
}

static void forget(struct wr_known *keys, struct wr_record **at) {
    struct wr_record *record = *at;
    *at = record->next_by_name;
    unlink_print(keys, record);
    keys->count--;
    keys->bytes -= sizeof *record + record->name_bytes;
    free(record);
}

void wr_known_sweep(struct wr_known *keys, size_t chains, wr_known_visit *visit, void *context) {
    if (chains > keys->chains) chains = keys->chains;
    for (size_t i = 0; i < chains; i++) {
        struct wr_record **at = &keys->by_name[keys->cursor];
        keys->cursor = (keys->cursor + 1) & (keys->chains - 1);
        while (*at != NULL) {
            if (visit(context, *at)) forget(keys, at);
            else at = &(*at)->next_by_name;
        }
    }
}

void wr_known_each(struct wr_known *keys, wr_known_visit *visit, void *context) {
    wr_known_sweep(keys, keys->chains, visit, context);
}

static uint32_t add_saturated(uint32_t a, uint32_t b) {
    return b > UINT32_MAX - a ? UINT32_MAX : a + b;
}

void wr_side_add(struct wr_node_side *side, const struct wr_node_side *more) {
    side->denied_tokens = add_saturated(side->denied_tokens, more->denied_tokens);
    if (more->granted_units == 0) return;
    if (side->granted_units == 0 || more->first_us < side->first_us)
        side->first_us = more->first_us;
    side->granted_units += more->granted_units;
}
