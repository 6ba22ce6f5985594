// replay_model.h - a token bucket per key in exact rational arithmetic, slow and obvious.
//
// A token is `period_ns` parts; in each nanosecond `tokens` parts come in. So every level is a
// whole number of parts, and nothing is ever rounded.
#ifndef WR_TEST_REPLAY_MODEL_H
#define WR_TEST_REPLAY_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 replay_parts;

struct replay_bucket {
    char key[128]; // "": a free place
    replay_parts level;
    int64_t at_ns;
};

#define REPLAY_BUCKETS 65536

struct replay_model {
    uint64_t tokens;
    uint64_t period_ns;
    uint64_t burst;
    int64_t newest_ns;
    bool begun;
    struct replay_bucket *buckets;
};

struct replay_answer {
    bool granted;
    bool never;
    uint64_t retry_after_ns;
};

static inline struct replay_model replay_model_create(uint64_t tokens, uint64_t period_ns,
                                                      uint64_t burst) {
    struct replay_model model = {
        tokens, period_ns, burst, 0, false, calloc(REPLAY_BUCKETS, sizeof(struct replay_bucket))};
    assert_non_null(model.buckets);
    return model;
}

static inline void replay_model_destroy(struct replay_model *model) {
    free(model->buckets);
}

static inline struct replay_bucket *replay_model_find(struct replay_model *model, const char *key) {
    uint32_t place = 5381;
    for (const char *at = key; *at != '\0'; at++) place = place * 33 + (unsigned char)*at;
    for (place %= REPLAY_BUCKETS; model->buckets[place].key[0] != '\0';
         place = (place + 1) % REPLAY_BUCKETS)
        if (strcmp(model->buckets[place].key, key) == 0) return &model->buckets[place];
    struct replay_bucket *bucket = &model->buckets[place];
    strcpy(bucket->key, key);
    bucket->level = (replay_parts)model->burst * (replay_parts)model->period_ns;
    bucket->at_ns = model->newest_ns;
    return bucket;
}

// Time does not go back: an earlier moment counts as the newest so far.
static inline struct replay_answer replay_model_take(struct replay_model *model, const char *key,
                                                     uint64_t cost, int64_t time_ns) {
    struct replay_answer answer = {false, cost > model->burst, 0};
    replay_parts full = (replay_parts)model->burst * (replay_parts)model->period_ns;
    replay_parts wanted = (replay_parts)cost * (replay_parts)model->period_ns;
    if (!model->begun || time_ns > model->newest_ns) model->newest_ns = time_ns;
    model->begun = true;
    struct replay_bucket *bucket = replay_model_find(model, key);
    bucket->level += (replay_parts)(model->newest_ns - bucket->at_ns) * (replay_parts)model->tokens;
    bucket->at_ns = model->newest_ns;
    if (bucket->level > full) bucket->level = full;
    if (answer.never) return answer;
    answer.granted = bucket->level >= wanted;
    if (answer.granted) bucket->level -= wanted;
    else
        answer.retry_after_ns =
            (uint64_t)((wanted - bucket->level + (replay_parts)model->tokens - 1) /
                       (replay_parts)model->tokens);
    return answer;
}

#endif
