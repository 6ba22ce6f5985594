// The calls of a strict limiter: which asks go into one, and what becomes of them. One thread.
//
// A call is held from its first pack until it is answered, or until nobody waits for it any more;
// its keys and costs are copies, so that it can be sent again when some of its asks have expired
// and are their owners' again. Retries keep the number, so that a lost answer costs nothing.
#include <string.h>

#include "strict_inside.h"
#include "synced.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t wr_strict_seq(const struct wr_strict *strict, uint32_t group) {
    return strict->lanes[group].seq;
}

// What is held goes from now on as another call, whatever became of the last one.
static void renumber(struct wr_strict_lane *lane, uint64_t seq) {
    lane->seq = seq;
    lane->attempts = 0;
}

static struct weir_sync_ask *take_first(struct wr_strict_lane *lane) {
    struct weir_sync_ask *ask = lane->first;
    lane->first = wr_strict_next(ask);
    if (lane->first == NULL) lane->last = NULL;
    return ask;
}

// The limit as it is now. False: nothing is asked of Redis under it.
static bool read_limit(const struct wr_strict *strict, struct wr_strict_limit *limit) {
    struct weir_limit tokens;
    weir_get_limit(strict->options.limiter, &tokens);
    limit->tokens = tokens;
    return wr_strict_limit_init(limit, &tokens, wr_strict_generation(strict));
}

// No limit grants all, one without a rate nothing.
static void settle_without_redis(struct wr_strict *strict, struct wr_strict_lane *lane,
                                 const struct weir_limit *tokens) {
    const bool all = tokens->tokens == WEIR_UNLIMITED_TOKENS;
    struct weir_sync_ask *ask = lane->first;
    lane->first = lane->last = NULL;
    while (ask != NULL) {
        struct weir_sync_ask *next = wr_strict_next(ask);
        ask->remaining = all ? UINT64_MAX : 0;
        ask->retry_after_ns = all ? 0 : WEIR_FOREVER;
        if (all) weir_private_count_untracked(strict->options.limiter);
        wr_strict_settle(strict, ask, all ? WEIR_GRANTED : WEIR_DENIED);
        ask = next;
    }
}

// True if the local bucket, which may have learnt more since the ask was submitted, refuses it.
static bool settle_first_locally(struct wr_strict *strict, struct wr_strict_lane *lane) {
    struct weir_sync_ask *ask = lane->first;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const int result = wr_strict_local(strict, WEIR_PEEK, ask->key, ask->cost,
                                       (struct weir_weight){0, 0}, &answer);
    if (result != WEIR_DENIED && result != WEIR_NEVER) return false;
    take_first(lane);
    ask->retry_after_ns = answer.retry_after_ns;
    wr_strict_settle(strict, ask, result);
    return true;
}

static bool is_bucket(const struct wr_strict_call *call, const struct wr_strict_bucket *bucket,
                      uint64_t hash, const unsigned char *name, size_t bytes) {
    return bucket->hash == hash && bucket->name_bytes == bytes &&
           memcmp(call->names + bucket->name_at, name, bytes) == 0;
}

// The index of a key's bucket in the call, new where there is room; WR_STRICT_KEYS_MAX: no room.
static uint32_t find_bucket(struct wr_strict_call *call, struct weir_key key) {
    unsigned char name[WR_WIRE_KEY_MAX];
    const size_t bytes = wr_strict_name(key, name);
    const uint64_t hash = XXH3_64bits(name, bytes);
    for (uint32_t i = 0; i < call->keys; i++)
        if (is_bucket(call, &call->buckets[i], hash, name, bytes)) return i;
    if (call->keys == WR_STRICT_KEYS_MAX || bytes > WR_STRICT_NAMES_MAX - call->names_bytes)
        return WR_STRICT_KEYS_MAX;
    struct wr_strict_bucket *bucket = &call->buckets[call->keys];
    *bucket = (struct wr_strict_bucket){.hash = hash, .name_at = (uint16_t)call->names_bytes,
                                        .name_bytes = (uint16_t)bytes};
    memcpy(call->names + call->names_bytes, name, bytes);
    call->names_bytes += (uint32_t)bytes;
    return call->keys++;
}

static void add_ask(struct wr_strict_lane *lane, struct weir_sync_ask *ask, uint32_t which) {
    struct wr_strict_bucket *bucket = &lane->call.buckets[which];
    const uint64_t cost = ask->cost < UINT32_MAX ? ask->cost : UINT32_MAX;
    const uint64_t tokens = bucket->demand_tokens + cost;
    bucket->demand_tokens = tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
    bucket->asks++;
    ask->inside[INSIDE_BUCKET] = which;
    lane->asks[lane->call.asks++] = ask;
}

// Asks of one key together, each key's in order of arrival.
static void sort_by_bucket(struct wr_strict_lane *lane) {
    struct weir_sync_ask *sorted[WR_STRICT_ASKS_MAX];
    uint32_t at[WR_STRICT_KEYS_MAX];
    struct wr_strict_call *call = &lane->call;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < call->keys; i++) {
        at[i] = sum;
        sum += call->buckets[i].asks;
    }
    for (uint32_t i = 0; i < call->asks; i++)
        sorted[at[lane->asks[i]->inside[INSIDE_BUCKET]]++] = lane->asks[i];
    for (uint32_t i = 0; i < call->asks; i++) {
        lane->asks[i] = sorted[i];
        call->costs[i] = sorted[i]->cost;
    }
}

// A new call from the head of the lane; stops at the first ask that has no room in it.
static void fill(struct wr_strict *strict, struct wr_strict_lane *lane) {
    struct wr_strict_call *call = &lane->call;
    if (!read_limit(strict, &call->limit)) {
        settle_without_redis(strict, lane, &call->limit.tokens);
        return;
    }
    call->asks = call->names_bytes = 0;
    while (lane->first != NULL && call->asks < WR_STRICT_ASKS_MAX) {
        if (settle_first_locally(strict, lane)) continue;
        const uint32_t which = find_bucket(call, lane->first->key);
        if (which == WR_STRICT_KEYS_MAX) break;
        add_ask(lane, take_first(lane), which);
    }
    sort_by_bucket(lane);
    renumber(lane, lane->seq + 1);
}

bool wr_strict_want(struct wr_strict *strict, uint32_t group) {
    const struct wr_strict_lane *lane = &strict->lanes[group];
    wr_strict_collect(strict);
    return !lane->on_wire && (lane->call.keys != 0 || lane->first != NULL);
}

size_t wr_strict_pack(struct wr_strict *strict, uint32_t group, const char *sha, int64_t now_us,
                      char *out, size_t cap) {
    struct wr_strict_lane *lane = &strict->lanes[group];
    if (cap < WR_STRICT_COMMAND_MAX) return 0;
    wr_strict_collect(strict);
    if (lane->call.keys == 0 && lane->first != NULL) fill(strict, lane);
    if (lane->call.keys == 0) return 0;
    if (lane->attempts++ == 0) lane->first_sent_us = now_us;
    else wr_strict_count(&strict->tally.retries, 1);
    lane->on_wire = true;
    return wr_strict_write(&strict->options, group, &lane->call, lane->seq, sha, out, cap);
}

void wr_strict_lost(struct wr_strict *strict, uint32_t group) {
    strict->lanes[group].on_wire = false;
}

static void settle_answered(struct wr_strict *strict, const struct wr_strict_limit *limit,
                            struct weir_sync_ask *ask, int64_t lag_us, bool granted) {
    if (granted) {
        ask->remaining = wr_strict_remaining(limit, lag_us);
        wr_strict_count(&strict->tally.charged_tokens, ask->cost);
    } else ask->retry_after_ns = wr_strict_retry_us(limit, lag_us, ask->cost) * 1000;
    wr_strict_settle(strict, ask, granted ? WEIR_GRANTED : WEIR_DENIED);
}

// The asks [from, to) of one bucket. The local bucket learns first: who hears of a refusal and
// asks again finds it there.
static void apply_bucket(struct wr_strict *strict, struct wr_strict_lane *lane, uint32_t from,
                         uint32_t to, int64_t lag_us, const unsigned char *granted,
                         int64_t received_us) {
    const struct wr_strict_limit *limit = &lane->call.limit;
    for (uint32_t i = from; i < to; i++) {
        if (lane->asks[i] == NULL) continue;
        wr_strict_learn(strict, &limit->tokens, lane->asks[i]->key, lag_us, lane->first_sent_us,
                        received_us);
        break;
    }
    for (uint32_t i = from; i < to; i++)
        if (lane->asks[i] != NULL)
            settle_answered(strict, limit, lane->asks[i], lag_us, granted[i] != 0);
}

static void apply(struct wr_strict *strict, struct wr_strict_lane *lane,
                  const struct wr_strict_reply *reply, int64_t received_us) {
    uint32_t from = 0;
    // First: who has its result finds it counted.
    wr_strict_count(&strict->tally.calls, 1);
    wr_strict_count(&strict->tally.keys, lane->call.keys);
    for (uint32_t k = 0; k < lane->call.keys; k++) {
        const uint32_t to = from + lane->call.buckets[k].asks;
        apply_bucket(strict, lane, from, to, wr_strict_lag_us(reply, k), reply->granted,
                     received_us);
        from = to;
    }
    lane->call.keys = 0;
}

enum wr_wire_fault wr_strict_answer(struct wr_strict *strict, uint32_t group, const void *bytes,
                                    size_t count, int64_t sent_us, int64_t received_us) {
    struct wr_strict_lane *lane = &strict->lanes[group];
    struct wr_strict_reply reply;
    uint32_t keys, asks;
    const enum wr_wire_fault fault = wr_strict_read(bytes, count, &reply, &keys, &asks);
    if (fault != WR_WIRE_OK) return fault;
    if (reply.seq != lane->seq) return WR_WIRE_OK;
    lane->on_wire = false;
    if (lane->call.keys == 0) return WR_WIRE_OK;
    if (keys != lane->call.keys || asks != lane->call.asks) {
        renumber(lane, lane->seq + 1); // another process has this node's name
        return WR_WIRE_LENGTH;
    }
    if (sent_us < lane->first_sent_us) lane->first_sent_us = sent_us;
    apply(strict, lane, &reply, received_us);
    return WR_WIRE_OK;
}

// Takes the buckets named out of the call. Their asks go to `out`; returns how many.
static uint32_t remove_buckets(struct wr_strict_lane *lane, const uint16_t *bad, size_t bad_count,
                               struct weir_sync_ask **out) {
    struct wr_strict_call *call = &lane->call;
    uint32_t keys = 0, asks = 0, removed = 0, from = 0;
    for (uint32_t k = 0; k < call->keys; k++) {
        const struct wr_strict_bucket bucket = call->buckets[k];
        const bool is_bad = bad_count != 0 && *bad == k;
        for (uint32_t i = from; i < from + bucket.asks; i++) {
            if (is_bad) {
                if (lane->asks[i] != NULL) out[removed++] = lane->asks[i];
                continue;
            }
            lane->asks[asks] = lane->asks[i];
            call->costs[asks++] = call->costs[i];
        }
        from += bucket.asks;
        if (is_bad) {
            bad++;
            bad_count--;
        } else call->buckets[keys++] = bucket;
    }
    call->keys = keys;
    call->asks = asks;
    return removed;
}

static enum wr_wire_reaction refuse_keys(struct wr_strict *strict, struct wr_strict_lane *lane,
                                         const char *text, size_t count) {
    uint16_t bad[WR_WIRE_BAD_KEYS_MAX];
    struct weir_sync_ask *asks[WR_STRICT_ASKS_MAX];
    const size_t bad_count = wr_wire_bad_keys(text, count, lane->call.keys, bad);
    if (bad_count == 0) return WR_WIRE_CONFIG; // it is the marker, or the epoch's own key
    const uint32_t removed = remove_buckets(lane, bad, bad_count, asks);
    renumber(lane, lane->seq + 1);
    wr_strict_count(&strict->tally.foreign_keys, bad_count);
    for (uint32_t i = 0; i < removed; i++) wr_strict_give_up(strict, asks[i]);
    return WR_WIRE_KEYS;
}

// "WEIRSEQ 17 is ...": Redis knows a later number of this node.
static bool is_number_used(const char *text, size_t count, uint64_t *last) {
    static const char word[] = "WEIRSEQ ";
    const size_t lead = sizeof word - 1;
    *last = 0;
    if (count < lead || memcmp(text, word, lead) != 0) return false;
    for (size_t i = lead; i < count && text[i] >= '0' && text[i] <= '9'; i++) {
        *last = *last * 10 + (uint64_t)(text[i] - '0');
        if (*last >= UINT64_C(1) << 52) return false;
    }
    return true;
}

enum wr_wire_reaction wr_strict_refused(struct wr_strict *strict, uint32_t group, const char *text,
                                        size_t count) {
    struct wr_strict_lane *lane = &strict->lanes[group];
    uint64_t last;
    lane->on_wire = false;
    if (is_number_used(text, count, &last)) {
        if (last > lane->seq) renumber(lane, last + 1);
        return WR_WIRE_AGAIN;
    }
    const enum wr_wire_error error = wr_wire_error_of(text, count);
    if (error == WR_WIRE_WEIRKEY && lane->call.keys != 0)
        return refuse_keys(strict, lane, text, count);
    return wr_wire_reaction_of(error);
}
