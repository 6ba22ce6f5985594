// Starting, asking and stopping a redis-server from a test.
#include "sync_redis.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define EXEC_FAILED 127
#define START_TRIES 5000
#define TRY_NS 2000000

static void exec_redis(const struct test_redis *redis) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = open("/dev/null", O_RDWR);
    dup2(nowhere, STDIN_FILENO);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", redis->socket, "--dir",
           redis->folder, "--save", "", "--appendonly", "no", "--daemonize", "no", "--logfile",
           "log", (char *)NULL);
    _exit(EXEC_FAILED);
}

static bool answers(const struct test_redis *redis) {
    redisContext *context = redisConnectUnix(redis->socket);
    redisReply *reply = NULL;
    if (context != NULL && context->err == 0) reply = redisCommand(context, "PING");
    const bool ready = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL) freeReplyObject(reply);
    if (context != NULL) redisFree(context);
    return ready;
}

void test_redis_start(struct test_redis *redis) {
    strcpy(redis->folder, "/tmp/weir-redis-XXXXXX");
    if (mkdtemp(redis->folder) == NULL) fail_msg("no temporary folder in /tmp");
    snprintf(redis->socket, sizeof redis->socket, "%s/socket", redis->folder);
    redis->pid = fork();
    if (redis->pid == 0) exec_redis(redis);
    for (int i = 0; i < START_TRIES; i++) {
        int status;
        if (waitpid(redis->pid, &status, WNOHANG) == redis->pid) {
            redis->pid = 0;
            test_redis_stop(redis);
            fail_msg("redis-server is missing or does not start; install it "
                     "(Debian: apt-get install redis-server)");
        }
        if (answers(redis)) return;
        nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL); // for the process, not for a clock
    }
    fail_msg("redis-server started and does not answer on %s", redis->socket);
}

void test_redis_stop(struct test_redis *redis) {
    char log[96];
    if (redis->pid > 0) {
        kill(redis->pid, SIGKILL);
        waitpid(redis->pid, NULL, 0);
    }
    snprintf(log, sizeof log, "%s/log", redis->folder);
    unlink(log);
    unlink(redis->socket);
    rmdir(redis->folder);
    redis->pid = 0;
}

redisContext *test_redis_connect(const struct test_redis *redis) {
    redisContext *context = redisConnectUnix(redis->socket);
    if (context == NULL || context->err != 0) fail_msg("no connection to %s", redis->socket);
    return context;
}

static redisReply *command(redisContext *context, const char *format, va_list arguments) {
    redisReply *reply = redisvCommand(context, format, arguments);
    if (reply == NULL) fail_msg("'%s': %s", format, context->errstr);
    if (reply->type == REDIS_REPLY_ERROR) fail_msg("'%s': %s", format, reply->str);
    return reply;
}

void test_redis_do(redisContext *context, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    freeReplyObject(command(context, format, arguments));
    va_end(arguments);
}

long long test_redis_integer(redisContext *context, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = command(context, format, arguments);
    va_end(arguments);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    const long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

void test_redis_expect(redisContext *context, const char *command, const char *text) {
    redisReply *reply = redisCommand(context, command);
    assert_non_null(reply);
    if (reply->type != REDIS_REPLY_STRING || strcmp(reply->str, text) != 0)
        fail_msg("%s: '%s', not '%s'", command, reply->str, text);
    freeReplyObject(reply);
}
