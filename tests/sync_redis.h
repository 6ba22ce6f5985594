// A redis-server of a test's own, on a unix socket in a temporary folder; it dies with the test.
#pragma once

#include <hiredis/hiredis.h>
#include <sys/types.h>

struct test_redis {
    pid_t pid;
    char folder[64];
    char socket[96];
};

// Fails the test, saying what to install, if there is no redis-server.
void test_redis_start(struct test_redis *redis);
void test_redis_stop(struct test_redis *redis);
// A new connection; fails the test if there is none.
redisContext *test_redis_connect(const struct test_redis *redis);
// Runs a command that must succeed, and drops the reply.
void test_redis_do(redisContext *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Runs a command that must answer with this text.
void test_redis_expect(redisContext *context, const char *command, const char *text);
// Runs a command that must answer with an integer.
long long test_redis_integer(redisContext *context, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
