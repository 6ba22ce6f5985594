// A limiter under a sync of its own, for tests of libweir-sync.
#pragma once

#include "sync_redis.h"
#include "weir_sync.h"

struct node {
    struct weir *limiter;
    struct weir_sync *sync;
};

#define NODE_LIMIT "mails" // its name

// 1,000 tokens a second and a burst of 1,000; reports every 20 ms. Attached and started.
struct node node_open(const char *url);
struct node node_open_limit(const char *url, struct weir_limit limit, uint64_t capacity_keys);
// Attached only, to a sync with these options.
struct node node_make(const struct weir_sync_options *options, struct weir_limit limit,
                      uint64_t capacity_keys);
struct weir_sync_options node_options(const char *url);
void node_close(struct node *node);
// How many of so many asks of one token are granted.
uint64_t node_ask(struct node *node, struct weir_key key, uint64_t times);
struct weir_sync_stats node_stats(const struct node *node);
struct weir_sync_limiter_stats node_limiter_stats(const struct node *node);
// Waits for the sync's thread; fails the test, with `what`, after 20 s.
void node_wait(const struct node *node, bool (*ready)(const struct node *node), const char *what);
bool node_is_connected(const struct node *node);
bool node_is_in_outage(const struct node *node);
bool node_has_nothing_pending(const struct node *node);
int64_t test_now_us(void);

// The URL of a test's redis-server.
const char *test_redis_url(const struct test_redis *redis, char url[128]);
// Kills it; starts it again on the same socket, empty, with one more option, or NULL twice.
void test_redis_kill(struct test_redis *redis);
void test_redis_again(struct test_redis *redis, const char *option, const char *value);
