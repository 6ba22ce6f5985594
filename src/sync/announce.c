// This node's numbers in Redis, once a second and when it stops, for people (weir top, weir peek),
// and how many nodes there are. Plain commands on the connection of group 0, while nothing else is
// under way on it; an error in one of them is counted and means nothing else.
//
//   <prefix>{0}a:<limiter>:<node>   hash: granted, denied, never, tokens, reported, pending, lost;
//                                   the limit: limit, period_ns, burst, generation; and groups
//   <prefix>{0}d:<limiter>:<node>   sorted set: the keys that this node denied most, by how often.
//                                   A key is named as its bucket is; one that is longer than
//                                   weir_top(3) remembers by <prefix>{0}t:<limiter>:<its beginning>
//   <prefix>{0}nodes                sorted set of nodes by when they were last seen, Redis' ms
//   <prefix>{0}nodes:<limiter>      the same of those with this limiter
// So a limiter may not be called "a", "d", "t" or "nodes". All live for 10 s; a node that stops
// leaves the sets of nodes at once.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "drive.h"
#include "strict_wire.h"

#define LIFE_MS 10000
#define LIFE "10000"
#define NAME_BYTES (3 * (WR_WIRE_NAME_MAX + 8))
#define DENIED_LEFT "-33" // the last rank taken out: DENIED_MAX are above it
#define DENIED_MAX 32     // keys of a limiter: their names are some 3 kB, and cost Redis 50 us
#define DENIED_NAME_BYTES (NAME_BYTES + WEIR_TOP_NAME_BYTES)
#define WORDS_MAX (2 + 2 * DENIED_MAX)

// The replies that are read: ZCARD, of the whole prefix or of a limiter.
enum { IGNORED, NODES = 1 };

// A limiter, eventual or strict.
struct shown {
    const char *name;
    const struct weir *weir;
    uint64_t id;
    bool first; // of its announcements
    struct weir_sync_limiter_stats stats;
};

struct command {
    struct weir_sync *sync;
    const char *words[WORDS_MAX];
    size_t bytes[WORDS_MAX];
    char numbers[WORDS_MAX][24];
    size_t count;
    uint64_t seq; // what its reply is for
    bool leaving; // the node stops
};

static void put_bytes(struct command *c, const char *word, size_t bytes) {
    c->words[c->count] = word;
    c->bytes[c->count++] = bytes;
}

static void put(struct command *c, const char *word) {
    put_bytes(c, word, strlen(word));
}

static void put_number(struct command *c, uint64_t number) {
    (void)snprintf(c->numbers[c->count], sizeof c->numbers[0], "%" PRIu64, number);
    put(c, c->numbers[c->count]);
}

static void put_field(struct command *c, const char *name, uint64_t number) {
    put(c, name);
    put_number(c, number);
}

static void send(struct command *c) {
    wr_conn_send_words(c->sync->groups[0].conn, c->words, c->bytes, c->count,
                       (struct wr_conn_tag){WR_GROUP_ANNOUNCE, c->seq, 0});
    c->count = 0;
    c->seq = IGNORED;
    c->sync->announced++;
}

static void put_life(struct command *c, const char *name) {
    put(c, "PEXPIRE");
    put(c, name);
    put(c, LIFE);
    send(c);
}

static int64_t redis_ms(const struct weir_sync *sync, int64_t now_us) {
    if (sync->groups[0].ahead_us != 0) return (now_us + sync->groups[0].ahead_us) / 1000;
    struct timespec now; // nothing heard yet
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void be_gone(struct command *c, const char *set) {
    put(c, "ZREM");
    put(c, set);
    put(c, c->sync->node);
    send(c);
}

static void be_there(struct command *c, const char *set, uint64_t seq, int64_t at_ms) {
    if (c->leaving) {
        be_gone(c, set);
        return;
    }
    put(c, "ZADD");
    put(c, set);
    put_number(c, (uint64_t)at_ms);
    put(c, c->sync->node);
    send(c);
    put(c, "ZREMRANGEBYSCORE");
    put(c, set);
    put(c, "-inf");
    put_number(c, (uint64_t)(at_ms - LIFE_MS));
    send(c);
    put_life(c, set);
    put(c, "ZCARD");
    put(c, set);
    c->seq = seq;
    send(c);
}

static void put_limit(struct command *c, const struct weir *weir) {
    struct weir_limit limit;
    weir_get_limit(weir, &limit);
    put_field(c, "limit", limit.tokens);
    put_field(c, "period_ns", limit.period_ns);
    put_field(c, "burst", limit.burst);
}

static void show(struct command *c, const struct shown *shown) {
    char name[NAME_BYTES];
    struct weir_stats stats = {0};
    (void)weir_stats(shown->weir, &stats, sizeof stats);
    (void)snprintf(name, sizeof name, "%s{0}a:%s:%s", c->sync->prefix, shown->name, c->sync->node);
    put(c, "HSET");
    put(c, name);
    put_field(c, "granted", stats.granted);
    put_field(c, "denied", stats.denied);
    put_field(c, "never", stats.never);
    put_field(c, "tokens", stats.tokens);
    put_field(c, "reported", shown->stats.reported_tokens);
    put_field(c, "pending", shown->stats.pending_tokens);
    put_field(c, "lost", shown->stats.lost_tokens);
    put_limit(c, shown->weir);
    put_field(c, "generation", shown->stats.generation);
    put_field(c, "groups", c->sync->groups_count);
    send(c);
    put_life(c, name);
}

// As the key's bucket is named; what weir_top cut off, apart.
static size_t name_denied(const struct command *c, const struct shown *shown,
                          const struct weir_top_key *key, char *out) {
    unsigned char bytes[WR_WIRE_KEY_MAX];
    char limiter[WR_WIRE_NAME_MAX + 3];
    const size_t count = wr_strict_name(
        key->is_id ? weir_id(key->id) : weir_bytes(key->name, key->length), bytes);
    const uint32_t group =
        key->truncated ? 0 : wr_wire_group(bytes, count, c->sync->groups_count);
    (void)snprintf(limiter, sizeof limiter, "%s%s", key->truncated ? "t:" : "", shown->name);
    return wr_wire_bucket_name(c->sync->prefix, group, limiter, bytes, count, out,
                               DENIED_NAME_BYTES);
}

// What a key was denied only grows, and so do the numbers in the set; a key that weir_top has
// dropped stays until others push it out. (What an earlier limiter of this name left goes first.)
static void show_denied(struct command *c, const struct shown *shown) {
    struct weir_top_key keys[DENIED_MAX];
    char set[NAME_BYTES], names[DENIED_MAX][DENIED_NAME_BYTES];
    const size_t count = weir_top(shown->weir, keys, DENIED_MAX);
    (void)snprintf(set, sizeof set, "%s{0}d:%s:%s", c->sync->prefix, shown->name, c->sync->node);
    if (shown->first) {
        put(c, "DEL");
        put(c, set);
        send(c);
    }
    put(c, "ZADD");
    put(c, set);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].error > keys[i].denied / 2) continue; // mostly of others
        put_number(c, keys[i].denied);
        put_bytes(c, names[i], name_denied(c, shown, &keys[i], names[i]));
    }
    if (c->count == 2) {
        c->count = 0;
        return;
    }
    send(c);
    put(c, "ZREMRANGEBYRANK");
    put(c, set);
    put(c, "0");
    put(c, DENIED_LEFT);
    send(c);
    put_life(c, set);
}

static void show_limiter(struct command *c, const struct shown *shown, int64_t at_ms) {
    char name[NAME_BYTES];
    show(c, shown);
    show_denied(c, shown);
    (void)snprintf(name, sizeof name, "%s{0}nodes:%s", c->sync->prefix, shown->name);
    be_there(c, name, shown->id, at_ms);
}

void wr_announce(struct weir_sync *sync, bool leaving, int64_t now_us) {
    struct command c = {.sync = sync, .leaving = leaving};
    struct shown shown;
    char name[NAME_BYTES];
    const int64_t at_ms = redis_ms(sync, now_us);
    (void)snprintf(name, sizeof name, "%s{0}nodes", sync->prefix);
    be_there(&c, name, NODES, at_ms);
    for (struct wr_member *m = sync->members; m != NULL; m = m->next) {
        if (m->weir == NULL) continue;
        shown = (struct shown){.name = m->name, .weir = m->weir, .id = m->id,
                               .first = !m->announced};
        m->announced = true;
        wr_sync_member_stats(m, &shown.stats);
        show_limiter(&c, &shown, at_ms);
    }
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next) {
        shown = (struct shown){.name = d->name, .weir = wr_drive_limiter(d), .id = d->id,
                               .first = !d->announced};
        if (shown.weir == NULL) continue;
        d->announced = true;
        wr_sync_drive_stats(d, &shown.stats);
        show_limiter(&c, &shown, at_ms);
    }
    wr_conn_work(sync->groups[0].conn, 0);
}

static void note_nodes(struct weir_sync *sync, uint64_t id, uint64_t nodes) {
    const uint64_t others = nodes > 0 ? nodes - 1 : 0;
    if (id == NODES) sync->nodes = nodes;
    for (struct wr_member *m = sync->members; m != NULL; m = m->next)
        if (m->id == id) m->foreign_nodes = others;
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next)
        if (d->id == id) d->foreign_nodes = others;
}

void wr_announce_reply(struct weir_sync *sync, const struct wr_conn_reply *reply) {
    sync->announced--;
    if (reply->type == WR_CONN_ERROR) {
        sync->announce_errors++;
        wr_sync_remember(sync, "what this node publishes was refused, limits are not concerned: "
                               "%.*s", (int)(reply->bytes < 100 ? reply->bytes : 100), reply->text);
        return;
    }
    if (reply->tag.seq != IGNORED && reply->type == WR_CONN_INTEGER && reply->integer >= 0)
        note_nodes(sync, reply->tag.seq, (uint64_t)reply->integer);
}
