// Packing a strict call, reading its answer, and what a cost is. strict.lua has the layouts.
//
// Exactness. A token takes T = period / rate = num/exact_den us. A cost of q tokens goes to Redis
// as the whole us and the rest of q*T over the common denominator, and so does the burst: the
// script adds and compares those, so an ask passes exactly if the bucket, full at TAT, holds its
// cost: max(TAT, now) + granted*T + q*T <= now + burst*T. Only TAT itself is kept in whole us,
// rounded up once a call and bucket. So TAT is never earlier than that of the exact bucket, and
// over any window
//     granted*T <= burst*T + W,   granted <= burst + rate*W.
// The rounding loses under 1 us of the rate for each call that grants something of that key, and
// nothing where a token is a whole number of us. One Redis makes some 30,000 calls a second, so it
// is below 3 % for a key that has a whole Redis for itself, and a few parts in a million for one
// that is granted some times a second. (Where exact_den is over 2^50 - no rate in round numbers is
// such - costs and burst are rounded up to 2^-49 us: there the bound is burst + rate * (W + 2^-49
// us).)
#include "strict_wire.h"

#include <string.h>

#include "../text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC "WST1"
#define HEAD_BYTES 28
#define LAG_BYTES 8
#define DEN_BITS 50
#define EXACT (INT64_C(1) << 53)

static uint64_t common_divisor(wr_u128 a, uint64_t b) {
    uint64_t small = b;
    uint64_t rest = (uint64_t)(a % b);
    while (rest != 0) {
        const uint64_t next = small % rest;
        small = rest;
        rest = next;
    }
    return small;
}

bool wr_strict_limit_init(struct wr_strict_limit *limit, const struct weir_limit *tokens,
                          uint32_t generation) {
    if (tokens->tokens == 0 || tokens->tokens == WEIR_UNLIMITED_TOKENS || tokens->burst == 0 ||
        tokens->period_ns == 0)
        return false;
    const wr_u128 den = (wr_u128)tokens->tokens * 1000;
    const uint64_t common = common_divisor(den, tokens->period_ns);
    limit->tokens = *tokens;
    limit->num = tokens->period_ns / common;
    limit->exact_den = den / common;
    wr_u128 sent = limit->exact_den;
    while (sent > (wr_u128)1 << DEN_BITS) sent >>= 1;
    limit->den = (uint64_t)sent;
    limit->generation = generation;
    limit->burst = wr_strict_cost(limit, tokens->burst);
    return true;
}

struct wr_strict_time wr_strict_cost(const struct wr_strict_limit *limit, uint64_t tokens) {
    const wr_u128 all = (wr_u128)tokens * limit->num;
    const wr_u128 whole = all / limit->exact_den;
    if (whole >= (wr_u128)WR_NODE_HORIZON_US)
        return (struct wr_strict_time){(uint64_t)WR_NODE_HORIZON_US, 0};
    const wr_u128 parts = all % limit->exact_den * limit->den; // under 2^124
    struct wr_strict_time cost = {(uint64_t)whole, (uint64_t)(parts / limit->exact_den)};
    if (parts % limit->exact_den != 0) cost.rest++;
    if (cost.rest == limit->den) cost = (struct wr_strict_time){cost.whole_us + 1, 0};
    return cost;
}

uint64_t wr_strict_remaining(const struct wr_strict_limit *limit, int64_t lag_us) {
    const wr_u128 parts = (wr_u128)(uint64_t)lag_us * limit->exact_den; // under 2^127
    const wr_u128 missing = parts / limit->num + (parts % limit->num != 0);
    return missing < limit->tokens.burst ? limit->tokens.burst - (uint64_t)missing : 0;
}

uint64_t wr_strict_retry_us(const struct wr_strict_limit *limit, int64_t lag_us, uint64_t tokens) {
    const struct wr_strict_time cost = wr_strict_cost(limit, tokens);
    const int64_t more = cost.rest > limit->burst.rest;
    const int64_t wait_us = lag_us + (int64_t)cost.whole_us - (int64_t)limit->burst.whole_us + more;
    return wait_us > 0 ? (uint64_t)wait_us : 1;
}

static size_t name_of_bytes(const void *data, size_t bytes, unsigned char *name) {
    if (bytes <= WR_WIRE_KEY_MAX) {
        memcpy(name, data, bytes);
        return bytes;
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
    memcpy(name, canonical.digest, sizeof canonical.digest);
    return sizeof canonical.digest;
}

size_t wr_strict_name(struct weir_key key, unsigned char name[WR_WIRE_KEY_MAX]) {
    if (key.data != NULL && key.word == UINT64_MAX) {
        const struct weir_prepared *prepared = key.data;
        key = (struct weir_key){prepared->data, prepared->word};
    }
    if (key.data != NULL) return name_of_bytes(key.data, (size_t)key.word, name);
    for (size_t i = 0; i < sizeof key.word; i++) name[i] = (unsigned char)(key.word >> 8 * i);
    return sizeof key.word;
}

static void put_little(struct wr_text *text, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) wr_text_byte(text, (char)(value >> 8 * i));
}

static uint64_t get_little(const unsigned char *raw, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)raw[i] << 8 * i;
    return value;
}

static void put_length(struct wr_text *text, char mark, size_t length) {
    wr_text_byte(text, mark);
    wr_text_number(text, length);
    wr_text_put(text, "\r\n");
}

static void put_bulk(struct wr_text *text, const char *bytes, size_t count) {
    put_length(text, '$', count);
    wr_text_bytes(text, bytes, count);
    wr_text_put(text, "\r\n");
}

static void put_bulk_number(struct wr_text *text, uint64_t number) {
    char digits[24];
    struct wr_text own = {digits, sizeof digits, 0};
    wr_text_number(&own, number);
    put_bulk(text, digits, own.length);
}

static size_t digits_of(uint32_t number) {
    return number < 10 ? 1 : 1 + digits_of(number / 10);
}

// "<prefix>{<group>}", the same before every name.
static void put_group(struct wr_text *text, const struct wr_strict_options *options,
                      uint32_t group) {
    wr_text_put(text, options->prefix);
    wr_text_byte(text, '{');
    wr_text_number(text, group);
    wr_text_byte(text, '}');
}

static void put_marker(struct wr_text *text, const struct wr_strict_options *options,
                       uint32_t group, size_t lead) {
    put_length(text, '$', lead + 3 + strlen(options->name) + strlen(options->node));
    put_group(text, options, group);
    wr_text_put(text, WR_STRICT_MARKER_WORD ":");
    wr_text_put(text, options->name);
    wr_text_byte(text, ':');
    wr_text_put(text, options->node);
    wr_text_put(text, "\r\n");
}

static void put_keys(struct wr_text *text, const struct wr_strict_options *options, uint32_t group,
                     const struct wr_strict_call *call) {
    const size_t lead = strlen(options->prefix) + 2 + digits_of(group);
    put_marker(text, options, group, lead);
    put_length(text, '$', lead + 1);
    put_group(text, options, group);
    wr_text_put(text, "e\r\n");
    for (uint32_t i = 0; i < call->keys; i++) {
        const struct wr_strict_bucket *bucket = &call->buckets[i];
        put_length(text, '$', lead + strlen(options->name) + 1 + bucket->name_bytes);
        put_group(text, options, group);
        wr_text_put(text, options->name);
        wr_text_byte(text, ':');
        wr_text_bytes(text, (const char *)call->names + bucket->name_at, bucket->name_bytes);
        wr_text_put(text, "\r\n");
    }
}

static void put_limit(struct wr_text *text, const struct wr_strict_limit *limit) {
    put_length(text, '$', 28);
    put_little(text, limit->burst.whole_us, 8);
    put_little(text, limit->burst.rest, 8);
    put_little(text, limit->den, 8);
    put_little(text, limit->generation, 4);
    wr_text_put(text, "\r\n");
}

static void put_asks(struct wr_text *text, const struct wr_strict_call *call) {
    put_length(text, '$', 8 * (size_t)call->keys);
    for (uint32_t i = 0; i < call->keys; i++) {
        put_little(text, call->buckets[i].asks, 4);
        put_little(text, call->buckets[i].demand_tokens, 4);
    }
    wr_text_put(text, "\r\n");
    put_length(text, '$', 16 * (size_t)call->asks);
    for (uint32_t i = 0; i < call->asks; i++) {
        const struct wr_strict_time cost = wr_strict_cost(&call->limit, call->costs[i]);
        put_little(text, cost.whole_us, 8);
        put_little(text, cost.rest, 8);
    }
    wr_text_put(text, "\r\n");
}

size_t wr_strict_write(const struct wr_strict_options *options, uint32_t group,
                       const struct wr_strict_call *call, uint64_t seq, const char *sha, char *out,
                       size_t cap) {
    const size_t keys = (size_t)call->keys + 2;
    struct wr_text text = {out, cap, 0};
    put_length(&text, '*', 3 + keys + 6);
    put_bulk(&text, "EVALSHA", 7);
    put_bulk(&text, sha, WR_WIRE_SHA_BYTES);
    put_bulk_number(&text, keys);
    put_keys(&text, options, group, call);
    put_bulk_number(&text, seq);
    put_bulk_number(&text, (uint64_t)options->epoch_us);
    put_bulk_number(&text, (uint64_t)options->marker_ttl_ms);
    put_limit(&text, &call->limit);
    put_asks(&text, call);
    return text.length;
}

int64_t wr_strict_lag_us(const struct wr_strict_reply *reply, uint32_t bucket) {
    return (int64_t)get_little(reply->lags + (size_t)bucket * LAG_BYTES, LAG_BYTES);
}

enum wr_wire_fault wr_strict_read(const void *bytes, size_t count, struct wr_strict_reply *reply,
                                  uint32_t *keys, uint32_t *asks) {
    const unsigned char *raw = bytes;
    if (count < HEAD_BYTES || memcmp(raw, MAGIC, 4) != 0) return WR_WIRE_NOT_OURS;
    *keys = (uint32_t)get_little(raw + 4, 4);
    reply->seq = get_little(raw + 8, 8);
    reply->redis_us = (int64_t)get_little(raw + 16, 8);
    *asks = (uint32_t)get_little(raw + 24, 4);
    if (*keys > WR_STRICT_KEYS_MAX || *asks > WR_STRICT_ASKS_MAX ||
        count != HEAD_BYTES + (size_t)*keys * LAG_BYTES + *asks)
        return WR_WIRE_LENGTH;
    if (reply->redis_us <= 0 || reply->redis_us >= EXACT || reply->seq >= (uint64_t)EXACT)
        return WR_WIRE_RANGE;
    reply->lags = raw + HEAD_BYTES;
    reply->granted = reply->lags + (size_t)*keys * LAG_BYTES;
    for (uint32_t i = 0; i < *keys; i++)
        if (get_little(reply->lags + (size_t)i * LAG_BYTES, LAG_BYTES) >= (uint64_t)EXACT)
            return WR_WIRE_RANGE;
    for (uint32_t i = 0; i < *asks; i++)
        if (reply->granted[i] > 1) return WR_WIRE_RANGE;
    return WR_WIRE_OK;
}
