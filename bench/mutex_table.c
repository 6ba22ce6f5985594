// The mutex baseline; see mutex_table.h. It is kept as it is: what weir is measured against does
// not change when weir does.
#include "mutex_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STRIPES 64
#define STRIPE_BITS 6
#define FIRST_CHAINS 64

struct bucket {
    struct bucket *next;
    uint64_t hash;
    double tokens;
    double last_s;
    uint32_t length;
    char key[];
};

struct stripe {
    pthread_mutex_t mutex;
    struct bucket **chains;
    size_t chain_count; // a power of two
    size_t bucket_count;
    char pad[64]; // no two stripes' mutexes in one cache line
};

struct mutex_table {
    double tokens_per_second;
    double burst;
    struct stripe stripes[STRIPES];
};

static uint64_t fnv1a(const char *key, size_t length) {
    uint64_t hash = UINT64_C(1469598103934665603);
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)key[i]) * UINT64_C(1099511628211);
    return hash;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct bucket **chain_of(struct bucket **chains, size_t chain_count, uint64_t hash) {
    return &chains[(hash >> STRIPE_BITS) & (chain_count - 1)];
}

// Doubles the chains. Without memory they only get longer.
static void grow(struct stripe *stripe) {
    const size_t chain_count = stripe->chain_count * 2;
    struct bucket **chains = calloc(chain_count, sizeof(struct bucket *));
    if (chains == NULL) return;
    for (size_t i = 0; i < stripe->chain_count; i++) {
        for (struct bucket *bucket = stripe->chains[i], *next; bucket != NULL; bucket = next) {
            next = bucket->next;
            struct bucket **chain = chain_of(chains, chain_count, bucket->hash);
            bucket->next = *chain;
            *chain = bucket;
        }
    }
    free(stripe->chains);
    stripe->chains = chains;
    stripe->chain_count = chain_count;
}

static struct bucket *find(const struct stripe *stripe, const char *key, size_t length,
                           uint64_t hash) {
    struct bucket *bucket = *chain_of(stripe->chains, stripe->chain_count, hash);
    while (bucket != NULL && !(bucket->hash == hash && bucket->length == length &&
                               memcmp(bucket->key, key, length) == 0))
        bucket = bucket->next;
    return bucket;
}

static struct bucket *insert(struct stripe *stripe, const char *key, size_t length, uint64_t hash) {
    struct bucket *bucket = malloc(sizeof *bucket + length + 1);
    if (bucket == NULL) return NULL;
    struct bucket **chain = chain_of(stripe->chains, stripe->chain_count, hash);
    bucket->hash = hash;
    bucket->length = (uint32_t)length;
    memcpy(bucket->key, key, length);
    bucket->key[length] = '\0';
    bucket->next = *chain;
    *chain = bucket;
    if (++stripe->bucket_count > stripe->chain_count) grow(stripe);
    return bucket;
}

static bool take(const struct mutex_table *table, struct bucket *bucket, double now, double cost) {
    const double elapsed = now - bucket->last_s;
    if (elapsed > 0) {
        bucket->tokens += elapsed * table->tokens_per_second;
        if (bucket->tokens > table->burst) bucket->tokens = table->burst;
        bucket->last_s = now;
    }
    if (bucket->tokens < cost) return false;
    bucket->tokens -= cost;
    return true;
}

bool mutex_table_take(struct mutex_table *table, const char *key, size_t length, double cost) {
    const double now = now_s();
    const uint64_t hash = fnv1a(key, length);
    struct stripe *stripe = &table->stripes[hash % STRIPES];
    pthread_mutex_lock(&stripe->mutex);
    struct bucket *bucket = find(stripe, key, length, hash);
    if (bucket == NULL && (bucket = insert(stripe, key, length, hash)) != NULL) {
        bucket->tokens = table->burst;
        bucket->last_s = now;
    }
    const bool granted = bucket != NULL && take(table, bucket, now, cost);
    pthread_mutex_unlock(&stripe->mutex);
    return granted;
}

void mutex_table_destroy(struct mutex_table *table) {
    if (table == NULL) return;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &table->stripes[i];
        for (size_t j = 0; stripe->chains != NULL && j < stripe->chain_count; j++) {
            for (struct bucket *bucket = stripe->chains[j], *next; bucket != NULL; bucket = next) {
                next = bucket->next;
                free(bucket);
            }
        }
        free(stripe->chains);
        pthread_mutex_destroy(&stripe->mutex);
    }
    free(table);
}

struct mutex_table *mutex_table_create(double tokens_per_second, double burst) {
    struct mutex_table *table = calloc(1, sizeof *table);
    if (table == NULL) return NULL;
    table->tokens_per_second = tokens_per_second;
    table->burst = burst;
    bool complete = true;
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = &table->stripes[i];
        pthread_mutex_init(&stripe->mutex, NULL);
        stripe->chain_count = FIRST_CHAINS;
        stripe->chains = calloc(FIRST_CHAINS, sizeof(struct bucket *));
        complete = complete && stripe->chains != NULL;
    }
    if (complete) return table;
    mutex_table_destroy(table);
    return NULL;
}
