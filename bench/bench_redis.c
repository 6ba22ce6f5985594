// What a limiter in Redis costs: a token bucket as a Lua script, one call a decision, and 64 calls
// sent together. Rows exist when the program is given --redis SOCKET; bench/compare starts a server
// of its own on such a socket. The one file of the benchmarks that uses hiredis.
//
//   redis/hot/granted               one key, a script call a decision
//   redis/hot/granted/pipelined:64  the same, 64 calls before the first answer is awaited
//   redis/keys:N/uniform/pipelined:64   many keys; `bytes_a_key` is what they take in the server
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "keys.h"

// A hash with the level and its time a key; the server's clock; the key goes when it is full again.
static const char script[] =
    "local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] + time[2] / 1000000\n"
    "local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')\n"
    "local tokens = burst\n"
    "if state[1] then\n"
    "  local passed = math.max(0, now - tonumber(state[2]))\n"
    "  tokens = math.min(burst, tonumber(state[1]) + passed * rate)\n"
    "end\n"
    "if tokens < cost then return 0 end\n"
    "tokens = tokens - cost\n"
    "redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)\n"
    "redis.call('PEXPIRE', KEYS[1], math.ceil((burst - tokens) / rate * 1000) + 1)\n"
    "return 1\n";

// Granted always, and a key that was asked about once stays for 100 s.
#define RATE "0.01"
#define BURST "1000000000"

#define DEPTH 64

static const char *socket_path;

struct client {
    redisContext *redis;
    char sha[41];
    double bytes_before;
};

static struct client clients[BENCH_THREADS_MAX];
static struct bench_walk *walks;

static void check(const struct client *client, const redisReply *reply) {
    if (reply == NULL) bench_fail("redis: %s", client->redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR) bench_fail("redis: %s", reply->str);
}

static void connect_client(struct client *client) {
    if (client->redis != NULL) return;
    client->redis = redisConnectUnix(socket_path);
    if (client->redis == NULL || client->redis->err != 0)
        bench_fail("redis: cannot connect to %s", socket_path);
    redisReply *reply = redisCommand(client->redis, "SCRIPT LOAD %s", script);
    check(client, reply);
    snprintf(client->sha, sizeof client->sha, "%s", reply->str);
    freeReplyObject(reply);
}

static double used_bytes(struct client *client) {
    redisReply *reply = redisCommand(client->redis, "INFO memory");
    check(client, reply);
    const char *line = strstr(reply->str, "used_memory:");
    const double bytes = line == NULL ? 0 : strtod(line + strlen("used_memory:"), NULL);
    freeReplyObject(reply);
    return bytes;
}

static double key_count(struct client *client) {
    redisReply *reply = redisCommand(client->redis, "DBSIZE");
    check(client, reply);
    const double count = (double)reply->integer;
    freeReplyObject(reply);
    return count;
}

static void *setup(const struct bench_row *row, unsigned threads) {
    for (unsigned i = 0; i < threads; i++) connect_client(&clients[i]);
    if (row->size == 0) return clients;
    walks = bench_walks(row->size, false, threads);
    redisReply *reply = redisCommand(clients[0].redis, "FLUSHALL");
    check(&clients[0], reply);
    freeReplyObject(reply);
    clients[0].bytes_before = used_bytes(&clients[0]);
    return clients;
}

static void teardown(const struct bench_row *row, void *state) {
    struct client *client = state;
    if (row->size == 0) return;
    const double keys = key_count(client);
    bench_report("stored_keys", keys);
    if (keys > 0) bench_report("bytes_a_key", (used_bytes(client) - client->bytes_before) / keys);
}

static void send_ask(struct client *client, const struct bench_key *key) {
    const char *arguments[] = {"EVALSHA", client->sha, "1", key->text, RATE, BURST, "1"};
    const size_t lengths[] = {7, 40, 1, key->length, strlen(RATE), strlen(BURST), 1};
    if (redisAppendCommandArgv(client->redis, 7, arguments, lengths) != REDIS_OK)
        bench_fail("redis: %s", client->redis->errstr);
}

static bool receive(struct client *client) {
    void *answer = NULL;
    redisGetReply(client->redis, &answer);
    redisReply *reply = answer;
    check(client, reply);
    const bool granted = reply->integer == 1;
    freeReplyObject(reply);
    return granted;
}

// The row's detail says how many calls are under way together.
static uint64_t run(const struct bench_row *row, void *state, uint64_t iterations,
                    unsigned thread) {
    static const struct bench_key hot = {"user:1234567", 12};
    struct client *client = (struct client *)state + thread;
    const uint64_t depth = *(const uint64_t *)row->detail;
    uint64_t granted = 0;
    for (uint64_t done = 0; done < iterations;) {
        const uint64_t left = iterations - done;
        const uint64_t now = left < depth ? left : depth;
        for (uint64_t i = 0; i < now; i++)
            send_ask(client, row->size == 0 ? &hot : bench_walk_next(&walks[thread]));
        for (uint64_t i = 0; i < now; i++) granted += receive(client);
        done += now;
    }
    return iterations - granted;
}

static void rows(const struct bench_settings *settings) {
    static const uint64_t one = 1, depth = DEPTH;
    if (settings->redis_socket == NULL) return;
    socket_path = settings->redis_socket;
    struct bench_row row = {.name = "redis/hot/granted", .detail = &one, .setup = setup,
                            .run = run, .teardown = teardown};
    bench_add(&row);
    row.detail = &depth;
    snprintf(row.name, sizeof row.name, "redis/hot/granted/pipelined:%d", DEPTH);
    bench_add(&row);
    for (size_t k = 0; k < settings->key_counts; k++) {
        char count[24];
        row.size = settings->keys[k];
        bench_format_count(count, sizeof count, row.size);
        snprintf(row.name, sizeof row.name, "redis/keys:%s/uniform/pipelined:%d", count, DEPTH);
        bench_add(&row);
    }
}
BENCH_ROWS(rows)
