// Limiters under syncs, and a redis-server that comes and goes.
#include "sync_node.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_US INT64_C(20000000)

int64_t test_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct weir_sync_options node_options(const char *url) {
    struct weir_sync_options options = WEIR_SYNC_OPTIONS_INIT;
    options.url = url;
    options.interval_ns = 20 * WEIR_MILLISECOND;
    return options;
}

struct node node_make(const struct weir_sync_options *options, struct weir_limit limit,
                      uint64_t capacity_keys) {
    struct node node;
    struct weir_error error = {""};
    struct weir_options plain = WEIR_OPTIONS_INIT;
    plain.limit = limit;
    plain.capacity_keys = capacity_keys;
    if (weir_create(&node.limiter, &plain, &error) != WEIR_GRANTED ||
        weir_sync_create(&node.sync, options, &error) != WEIR_GRANTED ||
        weir_sync_attach(node.sync, node.limiter, NODE_LIMIT, NULL, &error) != WEIR_GRANTED)
        fail_msg("%s", error.text);
    return node;
}

struct node node_open_limit(const char *url, struct weir_limit limit, uint64_t capacity_keys) {
    const struct weir_sync_options options = node_options(url);
    struct node node = node_make(&options, limit, capacity_keys);
    struct weir_error error = {""};
    if (weir_sync_start(node.sync, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
    return node;
}

struct node node_open(const char *url) {
    return node_open_limit(url, (struct weir_limit){1000, WEIR_SECOND, 1000}, 10000);
}

void node_close(struct node *node) {
    weir_sync_destroy(node->sync);
    weir_destroy(node->limiter);
}

uint64_t node_ask(struct node *node, struct weir_key key, uint64_t times) {
    uint64_t granted = 0;
    for (uint64_t i = 0; i < times; i++)
        granted += weir_take(node->limiter, key, 1, NULL) == WEIR_GRANTED;
    return granted;
}

struct weir_sync_stats node_stats(const struct node *node) {
    struct weir_sync_stats stats;
    assert_int_equal(weir_sync_stats(node->sync, &stats, sizeof stats), WEIR_GRANTED);
    return stats;
}

struct weir_sync_limiter_stats node_limiter_stats(const struct node *node) {
    struct weir_sync_limiter_stats stats;
    assert_int_equal(weir_sync_limiter_stats(node->sync, node->limiter, &stats, sizeof stats),
                     WEIR_GRANTED);
    return stats;
}

void node_wait(const struct node *node, bool (*ready)(const struct node *node), const char *what) {
    const int64_t until_us = test_now_us() + PATIENCE_US;
    while (!ready(node)) {
        if (test_now_us() > until_us)
            fail_msg("it did not come to this: %s (%s)", what, node_stats(node).last_error);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); // for the thread, not for a clock
    }
}

bool node_is_connected(const struct node *node) {
    return node_stats(node).connected;
}

bool node_is_in_outage(const struct node *node) {
    return node_stats(node).outage;
}

bool node_has_nothing_pending(const struct node *node) {
    return node_limiter_stats(node).pending_tokens == 0;
}

const char *test_redis_url(const struct test_redis *redis, char url[128]) {
    (void)snprintf(url, 128, "unix:%s", redis->socket);
    return url;
}

void test_redis_kill(struct test_redis *redis) {
    kill(redis->pid, SIGKILL);
    waitpid(redis->pid, NULL, 0);
    redis->pid = 0;
    unlink(redis->socket);
}

static void exec_redis(const struct test_redis *redis, const char *option, const char *value) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket, "--dir",
           redis->folder, "--save", "", "--logfile", "log", option, value, (char *)NULL);
    _exit(127);
}

void test_redis_again(struct test_redis *redis, const char *option, const char *value) {
    const int64_t until_us = test_now_us() + PATIENCE_US;
    redis->pid = fork();
    if (redis->pid == 0) exec_redis(redis, option, value);
    for (;;) {
        redisContext *context = redisConnectUnix(redis->socket);
        redisReply *reply = NULL;
        if (context != NULL && context->err == 0) reply = redisCommand(context, "PING");
        if (context != NULL) redisFree(context);
        if (reply != NULL) {
            freeReplyObject(reply);
            return;
        }
        if (test_now_us() > until_us) fail_msg("redis-server does not start again");
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); // for the process, not for a clock
    }
}
