// This node's numbers in Redis, once a second, for people (weir top --redis), and how many nodes
// there are. Plain commands on the connection of group 0, while nothing else is under way on it; an
// error in one of them is counted and means nothing else.
//
//   <prefix>{0}a:<limiter>:<node>   hash: granted, denied, never, tokens, reported, pending, lost
//   <prefix>{0}nodes                sorted set of nodes by when they were last seen, Redis' ms
//   <prefix>{0}nodes:<limiter>      the same of those with this limiter
// So a limiter may not be called "a" or "nodes". All live for 10 s.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "sync.h"

#define LIFE_MS 10000
#define LIFE "10000"
#define NAME_BYTES (3 * (WR_WIRE_NAME_MAX + 8))
#define WORDS_MAX 20

// The replies that are read: ZCARD, of the whole prefix or of a limiter.
enum { IGNORED, NODES = 1 };

struct command {
    struct weir_sync *sync;
    const char *words[WORDS_MAX];
    size_t bytes[WORDS_MAX];
    char numbers[WORDS_MAX][24];
    size_t count;
    uint64_t seq; // what its reply is for
};

static void put(struct command *c, const char *word) {
    c->words[c->count] = word;
    c->bytes[c->count++] = strlen(word);
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
}

static int64_t redis_ms(const struct weir_sync *sync, int64_t now_us) {
    if (sync->groups[0].ahead_us != 0) return (now_us + sync->groups[0].ahead_us) / 1000;
    struct timespec now; // nothing heard yet
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void be_there(struct command *c, const char *set, uint64_t seq, int64_t at_ms) {
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
    put(c, "PEXPIRE");
    put(c, set);
    put(c, LIFE);
    send(c);
    put(c, "ZCARD");
    put(c, set);
    c->seq = seq;
    send(c);
}

static void show(struct command *c, const struct wr_member *member) {
    char name[NAME_BYTES];
    struct weir_stats stats = {0};
    const uint64_t unit = (uint64_t)member->limit.unit_tokens;
    (void)weir_stats(member->weir, &stats, sizeof stats);
    (void)snprintf(name, sizeof name, "%s{0}a:%s:%s", c->sync->prefix, member->name, c->sync->node);
    put(c, "HSET");
    put(c, name);
    put_field(c, "granted", stats.granted);
    put_field(c, "denied", stats.denied);
    put_field(c, "never", stats.never);
    put_field(c, "tokens", stats.tokens);
    put_field(c, "reported", member->reported_units / unit);
    put_field(c, "pending", member->pending_units / unit);
    put_field(c, "lost", member->lost_units / unit);
    send(c);
    put(c, "PEXPIRE");
    put(c, name);
    put(c, LIFE);
    send(c);
}

void wr_announce(struct weir_sync *sync, int64_t now_us) {
    struct command c = {.sync = sync};
    char name[NAME_BYTES];
    const int64_t at_ms = redis_ms(sync, now_us);
    (void)snprintf(name, sizeof name, "%s{0}nodes", sync->prefix);
    be_there(&c, name, NODES, at_ms);
    for (const struct wr_member *m = sync->members; m != NULL; m = m->next) {
        if (m->weir == NULL) continue;
        show(&c, m);
        (void)snprintf(name, sizeof name, "%s{0}nodes:%s", sync->prefix, m->name);
        be_there(&c, name, m->id, at_ms);
    }
    wr_conn_work(sync->groups[0].conn, 0);
}

void wr_announce_reply(struct weir_sync *sync, const struct wr_conn_reply *reply) {
    if (reply->type == WR_CONN_ERROR) {
        sync->announce_errors++;
        return;
    }
    if (reply->tag.seq == IGNORED || reply->type != WR_CONN_INTEGER || reply->integer < 0) return;
    const uint64_t nodes = (uint64_t)reply->integer;
    if (reply->tag.seq == NODES) sync->nodes = nodes;
    for (struct wr_member *m = sync->members; m != NULL; m = m->next)
        if (m->id == reply->tag.seq) m->foreign_nodes = nodes > 0 ? nodes - 1 : 0;
}
