// Sequences of keys; see keys.h.
#include "keys.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define SEQUENCES_MAX 16
#define SHORTEST_ASKS (UINT64_C(1) << 16)
#define LONGEST_ASKS (UINT64_C(1) << 24)
#define ZIPF_EXPONENT 0.99

struct sequence {
    uint64_t keys;
    bool zipf;
    uint64_t asks; // a power of two
    struct bench_key *list;
    struct bench_walk walks[BENCH_THREADS_MAX];
};

void bench_key_format(struct bench_key *key, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    memset(key, 0, sizeof *key);
    memcpy(key->text, "user:", 5);
    for (size_t i = 0; i < count; i++) key->text[5 + i] = digits[count - 1 - i];
    key->length = (uint8_t)(5 + count);
}

// Ranks by the method of Gray et al. ("Quickly generating billion-record synthetic databases").
struct zipf {
    double keys;
    double zeta;
    double alpha;
    double eta;
};

static void zipf_init(struct zipf *zipf, uint64_t keys) {
    double zeta = 0;
    for (uint64_t i = 1; i <= keys; i++) zeta += pow((double)i, -ZIPF_EXPONENT);
    const double zeta2 = 1 + pow(2, -ZIPF_EXPONENT);
    zipf->keys = (double)keys;
    zipf->zeta = zeta;
    zipf->alpha = 1 / (1 - ZIPF_EXPONENT);
    zipf->eta = (1 - pow(2 / zipf->keys, 1 - ZIPF_EXPONENT)) / (1 - zeta2 / zeta);
}

static uint64_t zipf_rank(const struct zipf *zipf, uint64_t random) {
    const double u = (double)(random >> 11) * 0x1p-53;
    const double scaled = u * zipf->zeta;
    if (scaled < 1) return 0;
    if (scaled < 1 + pow(0.5, ZIPF_EXPONENT)) return 1;
    const double rank = zipf->keys * pow(zipf->eta * u - zipf->eta + 1, zipf->alpha);
    return rank < zipf->keys ? (uint64_t)rank : (uint64_t)zipf->keys - 1;
}

static uint64_t uniform_number(uint64_t keys, uint64_t random) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)random * keys >> 64);
}

// At least four asks a key, as far as memory allows.
static uint64_t asks_for(uint64_t keys) {
    uint64_t asks = SHORTEST_ASKS;
    while (asks < 4 * keys && asks < LONGEST_ASKS) asks *= 2;
    return asks;
}

static void fill(struct sequence *sequence) {
    struct zipf zipf = {0};
    if (sequence->zipf) zipf_init(&zipf, sequence->keys);
    for (uint64_t i = 0; i < sequence->asks; i++) {
        const uint64_t random = bench_random(i);
        bench_key_format(&sequence->list[i], sequence->zipf
                                                 ? zipf_rank(&zipf, random)
                                                 : uniform_number(sequence->keys, random));
    }
}

static struct sequence *sequence_of(uint64_t keys, bool zipf) {
    static struct sequence *sequences[SEQUENCES_MAX];
    size_t i = 0;
    for (; i < SEQUENCES_MAX && sequences[i] != NULL; i++)
        if (sequences[i]->keys == keys && sequences[i]->zipf == zipf) return sequences[i];
    struct sequence *sequence = i < SEQUENCES_MAX ? aligned_alloc(64, sizeof *sequence) : NULL;
    if (sequence == NULL) bench_fail("no memory for a sequence of keys");
    memset(sequence, 0, sizeof *sequence);
    sequence->keys = keys;
    sequence->zipf = zipf;
    sequence->asks = asks_for(keys);
    sequence->list = malloc(sequence->asks * sizeof *sequence->list);
    if (sequence->list == NULL) bench_fail("no memory for a sequence of keys");
    fill(sequence);
    sequences[i] = sequence;
    return sequence;
}

struct bench_walk *bench_walks(uint64_t keys, bool zipf, unsigned threads) {
    struct sequence *sequence = sequence_of(keys, zipf);
    for (unsigned i = 0; i < threads; i++) {
        if (sequence->walks[i].keys != NULL) continue;
        sequence->walks[i].keys = sequence->list;
        sequence->walks[i].mask = sequence->asks - 1;
        sequence->walks[i].at = sequence->asks / threads * i;
    }
    return sequence->walks;
}

struct bench_fresh *bench_freshes(unsigned threads) {
    static struct bench_fresh freshes[BENCH_THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        if (freshes[i].text[0] == '\0')
            snprintf(freshes[i].text, sizeof freshes[i].text, "user:%03u%010u", i, 0u);
    return freshes;
}
