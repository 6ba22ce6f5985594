// What the tests share: limiters on an injected clock, seeds, a look into a slot, counted memory.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "limiter.h"
#include "now.h"

// Options with a caller's clock and a small table.
struct weir_options options_at(uint64_t tokens, uint64_t period_ns, uint64_t burst);

// weir_create, which must succeed.
struct weir *create(const struct weir_options *options);

// A limiter with a caller's clock; its epoch is 0.
struct weir *create_at(uint64_t tokens, uint64_t period_ns, uint64_t burst);

// One ask at a reading, with its answer whole.
struct outcome {
    int result;
    struct weir_answer answer;
};

struct outcome ask_at(struct weir *w, enum weir_kind kind, const char *key, uint64_t cost,
                      int64_t now_ns);
struct outcome weighted_at(struct weir *w, enum weir_kind kind, const char *key, uint64_t cost,
                           struct weir_weight weight, int64_t now_ns);
int take_at(struct weir *w, const char *key, uint64_t cost, int64_t now_ns);
int set_limit_at(struct weir *w, uint64_t tokens, uint64_t period_ns, uint64_t burst,
                 int64_t now_ns);
uint64_t remaining_at(struct weir *w, const char *key, int64_t now_ns);
struct weir_stats stats_of(const struct weir *w);

// How many of `asks` asks of 1, one every `step_ns` from `from_ns`, are granted.
uint64_t granted_of(struct weir *w, const char *key, uint64_t asks, int64_t from_ns,
                    uint64_t step_ns);

// The ways of a key that are LIVE with it (more than one is a broken protocol); `slot` may be NULL.
unsigned live_ways(struct weir *w, struct weir_key key, struct wr_pair *slot);
struct wr_place place_of(struct weir *w, struct weir_key key);
uint64_t hash_of(struct weir *w, struct weir_key key);

// The slots of the whole table, for a scan while nobody asks.
struct wr_pair *all_slots(struct weir *w, uint64_t shard, uint64_t *count);

// A small generator whose state is its seed: splitmix64.
struct random {
    uint64_t state;
};

uint64_t random_next(struct random *r);
uint64_t random_below(struct random *r, uint64_t n); // 0 to n - 1

// WEIR_SEED where it is set: then only that seed is to be run.
bool seed_from_environment(uint64_t *seed);

// WEIR_STRESS_SECONDS, or the standard.
double stress_seconds(double standard);
uint64_t monotonic_ns(void);

// An allocator that counts, and refuses the nth request.
struct counted {
    struct weir_allocator allocator;
    int64_t refuse_at; // 1: the first; 0: none
    int64_t maps;
    int64_t unmaps;
    size_t bytes; // in use
    bool misaligned;
};

void counted_init(struct counted *counted);
