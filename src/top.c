// Counting the most denied keys, and listing them.
//
// Shared words, all of an entry
//   sequence  even at rest. A thread that rewrites the entry makes it odd by a CAS, and even again.
//             Whoever loses the CAS, or finds it odd, leaves the refusal uncounted: nobody waits
//   hash      which key; written by the rewriting thread only
//   denied    added to by any thread, also while another rewrites
//   error, shape, name   written by the rewriting thread only, read by weir_top
//
// I1 A name that weir_top returns was written by one rewrite, and its hash and error by the same.
// I2 `denied` of an entry only grows, so the smallest of a set only grows: a key denied more often
//    than that either has an entry or gets one at its next refusal that is looked at.
// I3 A thread stopped or killed inside a rewrite costs that one entry: others pass it by.
// A count added while the entry changes hands goes to the new key: one sample a thread at most. Two
// threads may give one key two entries at the same moment: weir_top adds them up.
//
// P1 Each word of a rewrite is a release store, behind the CAS that made `sequence` odd; each is
//    read by an acquire load. So a reader that saw one of them sees `sequence` changed when it
//    looks again, and one that saw the later even number first sees all of them.
// R1 Counts order nothing. A reader of the hash that comes upon a rewrite only miscounts, as above.
// Checked by tests/test_top.c (the bounds of space saving against exact counts; an entry left odd)
// and tests/stress_top.c (no torn name, nothing lost that was counted).
#include "top.h"

#include <string.h>

#include "hash.h"
#include "text.h"

#define COARSE_BITS 12
#define READ_TRIES 64 // a reader that loses so often to rewrites passes the entry by

// What a name looks like in an entry.
struct shaped {
    uint64_t shape;
    uint64_t name[WR_TOP_NAME_WORDS];
};

static struct shaped shape_of(struct weir_key key) {
    struct shaped s = {0, {0}};
    while (key.data != NULL && key.word == UINT64_MAX) { // prepared
        const struct weir_prepared *prepared = key.data;
        key = (struct weir_key){prepared->data, prepared->word};
    }
    if (key.data == NULL) {
        s.shape = WR_TOP_IS_ID;
        s.name[0] = key.word;
        return s;
    }
    const uint64_t length = wr_min_u64(key.word, sizeof s.name);
    memcpy(s.name, key.data, (size_t)length);
    s.shape = length | (length < key.word ? WR_TOP_TRUNCATED : 0);
    return s;
}

// Adds to an entry. One that has counted much is written seldom, by much at a time (less than
// 1/2048 of what it has: about 1 % off in the end), so that a key denied on all cores costs them
// few misses.
static uint64_t add(struct wr_top_entry *e, uint64_t denied, uint64_t weight, uint64_t random) {
    const uint64_t coarse = denied >> COARSE_BITS;
    while (weight < coarse) {
        if (random >> 63 != 0) return 0;
        random <<= 1;
        weight *= 2;
    }
    atomic_fetch_add_explicit(&e->denied, weight, memory_order_relaxed); // R1
    return weight;
}

// Gives the entry to another key, which inherits the count.
static uint64_t rewrite(struct wr_top_entry *e, uint64_t sequence, uint64_t hash,
                        struct weir_key key, uint64_t weight) {
    const struct shaped s = shape_of(key);
    if (!atomic_compare_exchange_strong_explicit(&e->sequence, &sequence, sequence + 1, // P1
                                                 memory_order_acquire,                  // P1
                                                 memory_order_relaxed))                 // P1
        return 0;
    const uint64_t inherited =
        atomic_fetch_add_explicit(&e->denied, weight, memory_order_acq_rel); // P1
    atomic_store_explicit(&e->error, inherited, memory_order_release);       // P1
    atomic_store_explicit(&e->hash, hash, memory_order_release);             // P1
    atomic_store_explicit(&e->shape, s.shape, memory_order_release);         // P1
    for (unsigned i = 0; i < WR_TOP_NAME_WORDS; i++)
        atomic_store_explicit(&e->name[i], s.name[i], memory_order_release); // P1
    atomic_store_explicit(&e->sequence, sequence + 2, memory_order_release); // P1
    return weight;
}

uint64_t wr_top_add(struct wr_top *top, uint64_t hash, struct weir_key key, uint64_t weight,
                    uint64_t random) {
    struct wr_top_entry *set = top->entries + hash % WR_TOP_SETS * WR_TOP_WAYS;
    struct wr_top_entry *least = NULL;
    uint64_t least_denied = 0, least_sequence = 0;
    for (unsigned i = 0; i < WR_TOP_WAYS; i++) {
        struct wr_top_entry *e = &set[i];
        const uint64_t sequence = atomic_load_explicit(&e->sequence, memory_order_acquire); // P1
        if (sequence % 2 != 0) continue;
        const uint64_t denied = atomic_load_explicit(&e->denied, memory_order_relaxed); // R1
        const uint64_t owner = atomic_load_explicit(&e->hash, memory_order_relaxed);    // R1
        if (denied != 0 && owner == hash) return add(e, denied, weight, random);
        if (least != NULL && denied >= least_denied) continue;
        least = e;
        least_denied = denied;
        least_sequence = sequence;
    }
    return least != NULL ? rewrite(least, least_sequence, hash, key, weight) : 0;
}

void wr_top_note(struct weir *w, struct weir_key key, uint64_t before) {
    const uint64_t weight = before < WR_TOP_ALL ? 1 : 1 << WR_TOP_SAMPLE_BITS;
    const uint64_t random = wr_top_scatter(before) << WR_TOP_SAMPLE_BITS;
    (void)wr_top_add(&w->region->top, wr_hash(w, key), key, weight, random);
}

struct seen {
    uint64_t hash;
    uint64_t denied;
    uint64_t error;
    struct shaped shaped;
};

// False: an unused entry, or one that is being rewritten.
static bool read_entry(const struct wr_top_entry *e, struct seen *s) {
    for (unsigned try = 0; try < READ_TRIES; try++) {
        const uint64_t sequence = atomic_load_explicit(&e->sequence, memory_order_acquire); // P1
        s->denied = atomic_load_explicit(&e->denied, memory_order_acquire);                 // P1
        s->error = atomic_load_explicit(&e->error, memory_order_acquire);                   // P1
        s->hash = atomic_load_explicit(&e->hash, memory_order_acquire);                     // P1
        s->shaped.shape = atomic_load_explicit(&e->shape, memory_order_acquire);            // P1
        for (unsigned i = 0; i < WR_TOP_NAME_WORDS; i++)
            s->shaped.name[i] = atomic_load_explicit(&e->name[i], memory_order_acquire); // P1
        if (sequence % 2 == 0 &&
            atomic_load_explicit(&e->sequence, memory_order_relaxed) == sequence) // P1
            return s->denied != 0;
    }
    return false;
}

// Reads a set, each key once.
static unsigned read_set(const struct wr_top_entry *set, struct seen *seen) {
    unsigned count = 0;
    for (unsigned i = 0; i < WR_TOP_WAYS; i++) {
        if (!read_entry(&set[i], &seen[count])) continue;
        unsigned same = 0;
        while (seen[same].hash != seen[count].hash) same++;
        if (same == count) {
            count++;
            continue;
        }
        seen[same].denied += seen[count].denied;
        seen[same].error += seen[count].error;
    }
    return count;
}

static void describe(const struct seen *s, struct weir_top_key *key) {
    *key = (struct weir_top_key){
        .denied = s->denied,
        .error = s->error,
        .is_id = (s->shaped.shape & WR_TOP_IS_ID) != 0,
        .truncated = (s->shaped.shape & WR_TOP_TRUNCATED) != 0,
        // A damaged region may say anything.
        .length = wr_min_u64((uint32_t)s->shaped.shape, WEIR_TOP_NAME_BYTES),
    };
    if (key->is_id) {
        struct wr_text digits = {key->name, sizeof key->name, 0};
        key->id = s->shaped.name[0];
        wr_text_number(&digits, key->id);
        key->length = digits.length;
        return;
    }
    memcpy(key->name, s->shaped.name, key->length);
}

// Keeps `keys` sorted, and the `max` most denied.
static size_t insert(struct weir_top_key *keys, size_t count, size_t max, const struct seen *s) {
    size_t at = count;
    while (at > 0 && keys[at - 1].denied < s->denied) at--;
    if (at == max) return count;
    const size_t kept = count < max ? count : max - 1;
    memmove(keys + at + 1, keys + at, (kept - at) * sizeof *keys);
    describe(s, &keys[at]);
    return kept + 1;
}

size_t wr_top_list(const struct wr_top *top, struct weir_top_key *keys, size_t max) {
    size_t count = 0;
    for (unsigned set = 0; set < WR_TOP_SETS; set++) {
        struct seen seen[WR_TOP_WAYS];
        const unsigned found = read_set(top->entries + set * WR_TOP_WAYS, seen);
        for (unsigned i = 0; i < found; i++) count = insert(keys, count, max, &seen[i]);
    }
    return count;
}

size_t weir_top(const struct weir *limiter, struct weir_top_key *keys, size_t max) {
    if (keys == NULL || max == 0) return 0;
    return wr_top_list(&limiter->region->top, keys, max);
}
