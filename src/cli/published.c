// published.c - reading what nodes publish.
#include "published.h"

#include "bucket.h"

#define PAGE "1000"
#define PAGES_MAX 10 // a few milliseconds of Redis' time
#define CURSOR_BYTES 24
#define BURST_MAX (UINT64_C(1) << 62) // as weir_create has it, in the coarsest of its units
#define RATE_PER_NS 16                // tokens a nanosecond; a rate is below that

enum { GRANTED, DENIED, TOKENS, LIMIT, PERIOD, BURST, GENERATION, GROUPS, FIELDS };

static const char *const fields[FIELDS] = {"granted",   "denied", "tokens",     "limit",
                                           "period_ns", "burst",  "generation", "groups"};

bool wr_published_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault) {
    struct wr_text words[2 + FIELDS] = {wr_text_of("HMGET"), name};
    for (size_t i = 0; i < FIELDS; i++) words[2 + i] = wr_text_of(fields[i]);
    return wr_redis_send(redis, words, 2 + FIELDS, fault);
}

// False: it is not there, or no whole number below 2^63, which is as much as JSON can hold.
static bool number_at(const struct wr_redis_reply *reply, size_t place, uint64_t *number) {
    if (wr_redis_whole(wr_redis_look_at(reply, place), number) && *number <= INT64_MAX) return true;
    *number = 0;
    return false;
}

static uint64_t count_at(const struct wr_redis_reply *reply, size_t place, uint64_t most) {
    uint64_t number;
    return number_at(reply, place, &number) && number <= most ? number : 0;
}

bool wr_published_limit_ok(const struct weir_limit *limit) {
    return limit->period_ns >= 1 && limit->period_ns <= INT64_MAX && limit->tokens <= INT64_MAX &&
           limit->burst <= BURST_MAX && limit->tokens / RATE_PER_NS < limit->period_ns;
}

static bool limit_at(const struct wr_redis_reply *reply, struct weir_limit *limit) {
    uint64_t tokens;
    if (wr_redis_whole(wr_redis_look_at(reply, LIMIT), &tokens) &&
        tokens == WEIR_UNLIMITED_TOKENS) {
        *limit = weir_unlimited();
        return true;
    }
    return number_at(reply, LIMIT, &limit->tokens) && number_at(reply, PERIOD, &limit->period_ns) &&
           number_at(reply, BURST, &limit->burst) && wr_published_limit_ok(limit);
}

bool wr_published_read(const struct wr_redis_reply *reply, struct wr_published *published) {
    if (wr_redis_look(reply).kind != WR_REDIS_LIST) return false;
    *published = (struct wr_published){
        .granted = count_at(reply, GRANTED, INT64_MAX),
        .denied = count_at(reply, DENIED, INT64_MAX),
        .tokens = count_at(reply, TOKENS, INT64_MAX),
        .generation = (uint32_t)count_at(reply, GENERATION, UINT32_MAX),
        .groups = (uint32_t)count_at(reply, GROUPS, WR_BUCKET_GROUPS_MAX),
    };
    published->has_limit = limit_at(reply, &published->limit);
    if (!published->has_limit) published->limit = (struct weir_limit){0, 0, 0};
    return true;
}

// A node that is alive -------------------------------------------------------------------------

// The one that was seen last. A copy, since the reply goes; empty: there is none.
static bool ask_node(struct wr_redis *redis, const char *prefix, const char *limiter,
                     int64_t now_us, char *node, struct wr_fault *fault) {
    char set[WR_BUCKET_NAME_BYTES], since_ms[WR_REDIS_MS_BYTES];
    snprintf(set, sizeof set, "%s{0}nodes:%s", prefix, limiter);
    wr_redis_alive_since(now_us, since_ms);
    struct wr_redis_reply *reply = wr_redis_ask(redis, fault, "ZREVRANGEBYSCORE", set, "+inf",
                                                since_ms, "LIMIT", "0", "1", NULL);
    const struct wr_redis_value value = wr_redis_look_at(reply, 0);
    node[0] = '\0';
    if (value.kind == WR_REDIS_TEXT && wr_bucket_is_node(value.text))
        snprintf(node, WR_WIRE_NAME_MAX + 1, "%.*s", (int)value.text.length, value.text.data);
    wr_redis_drop(reply);
    return reply != NULL;
}

// Of the hash of that name. `found` is false where it says nothing.
static bool ask_hash(struct wr_redis *redis, struct wr_text name, bool *found,
                     struct wr_published *published, struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    if (!wr_published_send(redis, name, fault) || !wr_redis_next(redis, &reply, fault))
        return false;
    *found = wr_published_read(reply, published) &&
             (published->has_limit || published->groups != 0);
    wr_redis_drop(reply);
    return true;
}

static bool ask_alive(struct wr_redis *redis, const char *prefix, const char *limiter,
                      int64_t now_us, bool *found, struct wr_published *published,
                      struct wr_fault *fault) {
    char node[WR_WIRE_NAME_MAX + 1], name[WR_BUCKET_NAME_BYTES];
    if (!ask_node(redis, prefix, limiter, now_us, node, fault)) return false;
    if (node[0] == '\0') return true;
    snprintf(name, sizeof name, "%s{0}a:%s:%s", prefix, limiter, node);
    return ask_hash(redis, wr_text_of(name), found, published, fault);
}

// A node that is gone --------------------------------------------------------------------------

// One page of the names that SCAN gives; the cursor moves on. Who may not SCAN finds none.
static bool ask_page(struct wr_redis *redis, const char *prefix, const char *pattern,
                     char cursor[CURSOR_BYTES], bool *found, struct wr_published *published,
                     struct wr_fault *fault) {
    const struct wr_text words[] = {wr_text_of("SCAN"), wr_text_of(cursor), wr_text_of("MATCH"),
                                    wr_text_of(pattern), wr_text_of("COUNT"), wr_text_of(PAGE)};
    struct wr_redis_reply *reply;
    if (!wr_redis_send(redis, words, sizeof words / sizeof words[0], fault) ||
        !wr_redis_next(redis, &reply, fault))
        return false;
    const struct wr_redis_reply *names = wr_redis_item(reply, 1);
    const struct wr_redis_value next = wr_redis_look_at(reply, 0);
    const size_t count = wr_redis_look(names).count;
    bool good = true;
    snprintf(cursor, CURSOR_BYTES, "0");
    if (next.kind == WR_REDIS_TEXT && next.text.length < CURSOR_BYTES)
        snprintf(cursor, CURSOR_BYTES, "%.*s", (int)next.text.length, next.text.data);
    for (size_t i = 0; good && !*found && i < count; i++) {
        const struct wr_redis_value name = wr_redis_look_at(names, i);
        if (name.kind == WR_REDIS_TEXT &&
            wr_bucket_name_parse(name.text, prefix).what == WR_BUCKET_AGGREGATE)
            good = ask_hash(redis, name.text, found, published, fault);
    }
    wr_redis_drop(reply);
    return good;
}

static bool ask_gone(struct wr_redis *redis, const char *prefix, const char *limiter, bool *found,
                     struct wr_published *published, struct wr_fault *fault) {
    char start[WR_BUCKET_NAME_BYTES], pattern[2 * WR_BUCKET_NAME_BYTES];
    char cursor[CURSOR_BYTES] = "0";
    bool good = true;
    snprintf(start, sizeof start, "%s{0}a:%s:", prefix, limiter);
    wr_redis_pattern(start, pattern);
    for (unsigned page = 0; good && !*found && page < PAGES_MAX; page++) {
        good = ask_page(redis, prefix, pattern, cursor, found, published, fault);
        if (strcmp(cursor, "0") == 0) break;
    }
    return good;
}

bool wr_published_ask(struct wr_redis *redis, const char *prefix, const char *limiter,
                      int64_t now_us, enum wr_published_by *by, struct wr_published *published,
                      struct wr_fault *fault) {
    bool found = false;
    *by = WR_PUBLISHED_ALIVE;
    if (!ask_alive(redis, prefix, limiter, now_us, &found, published, fault)) return false;
    if (found) return true;
    *by = WR_PUBLISHED_GONE;
    if (!ask_gone(redis, prefix, limiter, &found, published, fault)) return false;
    if (found) return true;
    *published = (struct wr_published){.groups = 0};
    *by = WR_PUBLISHED_NONE;
    return true;
}
