// published.c - reading what nodes publish.
#include "published.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bucket.h"

enum { GRANTED, DENIED, TOKENS, LIMIT, PERIOD, BURST, GENERATION, GROUPS, FIELDS };

static const char *const fields[FIELDS] = {"granted",   "denied", "tokens",     "limit",
                                           "period_ns", "burst",  "generation", "groups"};

bool wr_published_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault) {
    struct wr_text words[2 + FIELDS] = {wr_text_of("HMGET"), name};
    for (size_t i = 0; i < FIELDS; i++) words[2 + i] = wr_text_of(fields[i]);
    return wr_redis_send(redis, words, 2 + FIELDS, fault);
}

// 0 where it is no number.
static uint64_t number_at(const struct wr_redis_reply *reply, size_t place) {
    const struct wr_redis_value value = wr_redis_look_at(reply, place);
    char digits[24] = "", *end = digits;
    if (value.kind != WR_REDIS_TEXT || value.text.length == 0 || value.text.length >= sizeof digits)
        return 0;
    memcpy(digits, value.text.data, value.text.length);
    const uint64_t number = strtoull(digits, &end, 10);
    return *end == '\0' ? number : 0;
}

bool wr_published_read(const struct wr_redis_reply *reply, struct wr_published *published) {
    if (wr_redis_look(reply).kind != WR_REDIS_LIST) return false;
    *published = (struct wr_published){
        .granted = number_at(reply, GRANTED),
        .denied = number_at(reply, DENIED),
        .tokens = number_at(reply, TOKENS),
        .limit = {number_at(reply, LIMIT), number_at(reply, PERIOD), number_at(reply, BURST)},
        .generation = (uint32_t)number_at(reply, GENERATION),
        .groups = (uint32_t)number_at(reply, GROUPS),
    };
    published->has_limit = published->limit.period_ns != 0;
    return true;
}

// The one that was seen last. A copy, since the reply goes; empty: there is none.
static bool ask_node(struct wr_redis *redis, const char *prefix, const char *limiter,
                     int64_t now_us, char *node, struct wr_fault *fault) {
    char set[WR_BUCKET_NAME_BYTES], since_ms[24];
    snprintf(set, sizeof set, "%s{0}nodes:%s", prefix, limiter);
    snprintf(since_ms, sizeof since_ms, "%" PRId64, now_us / 1000 - WR_BUCKET_NODE_LIFE_MS);
    struct wr_redis_reply *reply = wr_redis_ask(redis, fault, "ZREVRANGEBYSCORE", set, "+inf",
                                                since_ms, "LIMIT", "0", "1", NULL);
    const struct wr_redis_value value = wr_redis_look_at(reply, 0);
    node[0] = '\0';
    if (value.kind == WR_REDIS_TEXT && value.text.length <= WR_WIRE_NAME_MAX)
        snprintf(node, WR_WIRE_NAME_MAX + 1, "%.*s", (int)value.text.length, value.text.data);
    wr_redis_drop(reply);
    return reply != NULL;
}

bool wr_published_ask(struct wr_redis *redis, const char *prefix, const char *limiter,
                      int64_t now_us, bool *found, struct wr_published *published,
                      struct wr_fault *fault) {
    char node[WR_WIRE_NAME_MAX + 1], name[WR_BUCKET_NAME_BYTES];
    struct wr_redis_reply *reply;
    *found = false;
    if (!ask_node(redis, prefix, limiter, now_us, node, fault)) return false;
    if (node[0] == '\0') return true;
    snprintf(name, sizeof name, "%s{0}a:%s:%s", prefix, limiter, node);
    if (!wr_published_send(redis, wr_text_of(name), fault) || !wr_redis_next(redis, &reply, fault))
        return false;
    *found = wr_published_read(reply, published);
    wr_redis_drop(reply);
    return true;
}
