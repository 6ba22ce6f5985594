// The bytes of a strict call, and the exact arithmetic of its costs. Pure.
#pragma once

#include "../wide.h"
#include "strict.h"

// An exact time: whole us and `rest` parts of a us, of which `den` make one.
struct wr_strict_time {
    uint64_t whole_us;
    uint64_t rest;
};

// A limit as Redis is asked to keep it.
struct wr_strict_limit {
    struct weir_limit tokens;
    uint64_t num; // a token takes num / exact_den us, in lowest terms
    wr_u128 exact_den;
    uint64_t den; // as sent: exact_den, or at most 2^50
    struct wr_strict_time burst;
    uint32_t generation;
};

struct wr_strict_bucket {
    uint64_t hash;
    uint16_t name_at; // in names
    uint16_t name_bytes;
    uint32_t asks;
    uint32_t demand_tokens;
};

struct wr_strict_call {
    struct wr_strict_limit limit;
    uint32_t keys;
    uint32_t asks;
    uint32_t names_bytes;
    struct wr_strict_bucket buckets[WR_STRICT_KEYS_MAX];
    uint64_t costs[WR_STRICT_ASKS_MAX]; // tokens; bucket after bucket
    unsigned char names[WR_STRICT_NAMES_MAX];
};

struct wr_strict_reply {
    uint64_t seq;
    int64_t redis_us;
    const unsigned char *lags; // of the buckets
    const unsigned char *granted; // of the asks, 0 or 1
};

// False for a limit that Redis cannot keep: rate 0, burst 0, or none at all.
bool wr_strict_limit_init(struct wr_strict_limit *limit, const struct weir_limit *tokens,
                          uint32_t generation);
// What `tokens` cost: exact, or rounded up to 1/den us where den is not exact_den.
struct wr_strict_time wr_strict_cost(const struct wr_strict_limit *limit, uint64_t tokens);
// Whole tokens in a bucket that is full in lag_us.
uint64_t wr_strict_remaining(const struct wr_strict_limit *limit, int64_t lag_us);
// Until a cost fits into it: us, rounded up.
uint64_t wr_strict_retry_us(const struct wr_strict_limit *limit, int64_t lag_us, uint64_t tokens);

// The name by which Redis knows a key: its bytes, or 16 of a hash where they are over
// WR_WIRE_KEY_MAX. Returns their number.
size_t wr_strict_name(struct weir_key key, unsigned char name[WR_WIRE_KEY_MAX]);

// EVALSHA with the call. `cap` is at least WR_STRICT_COMMAND_MAX.
size_t wr_strict_write(const struct wr_strict_options *options, uint32_t group,
                       const struct wr_strict_call *call, uint64_t seq, const char *sha, char *out,
                       size_t cap);
// An answer, of which only the sequence number is known to be any call's: whether it fits a
// certain call is wr_strict_reply_fits.
enum wr_wire_fault wr_strict_read(const void *bytes, size_t count, struct wr_strict_reply *reply,
                                  uint32_t *keys, uint32_t *asks);
int64_t wr_strict_lag_us(const struct wr_strict_reply *reply, uint32_t bucket);
