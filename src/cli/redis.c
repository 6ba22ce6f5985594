// redis.c - the command's one file that includes hiredis.
#include "redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/time.h>

#include <weir.h>

#include "bucket.h"

#define WORDS_MAX 16
#define EPOCH_MAX_US UINT64_C(3600000000) // as weir_sync_create has it
#define SCORE_BYTES 400 // as %.17f may write one
#define SECONDS_MAX UINT64_C(9000000000)

struct wr_redis {
    redisContext *context;
    char shown[WR_REDIS_SHOWN_BYTES];
};

static bool lost(const struct wr_redis *redis, struct wr_fault *fault) {
    const redisContext *context = redis->context;
    const bool timeout = context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK);
    return wr_fault(fault, "%.300s: %.150s; is a Redis there? --redis says where it is",
                    redis->shown, timeout ? "no answer in time" : context->errstr);
}

bool wr_redis_is_wrong_type(struct wr_redis_value value) {
    return value.kind == WR_REDIS_ERROR &&
           wr_wire_error_of(value.text.data, value.text.length) == WR_WIRE_WRONGTYPE;
}

static bool refused_at(const struct wr_redis *redis, struct wr_redis_value error,
                       struct wr_text key, struct wr_fault *fault) {
    char shown[WR_BUCKET_SHOWN_BYTES] = "";
    if (!wr_redis_is_wrong_type(error)) return wr_redis_refused(redis, error.text, fault);
    wr_text_show(shown, sizeof shown, key);
    return wr_fault(fault, "%.150s: the key '%.300s' holds something else than weir puts there; is "
                           "another program using this prefix?", redis->shown, shown);
}

bool wr_redis_refused(const struct wr_redis *redis, struct wr_text error, struct wr_fault *fault) {
    const enum wr_wire_error kind = wr_wire_error_of(error.data, error.length);
    char words[208] = "";
    wr_text_show(words, sizeof words, error);
    return wr_fault(fault, "%.200s: %s (%s)", redis->shown, wr_wire_error_text(kind), words);
}

static bool fine(struct wr_redis_reply *reply) {
    wr_redis_drop(reply);
    return reply != NULL;
}

static bool greet(struct wr_redis *redis, const struct wr_url *url, struct wr_fault *fault) {
    char number[16];
    snprintf(number, sizeof number, "%u", (unsigned)url->database);
    if (url->user[0] != '\0' &&
        !fine(wr_redis_ask(redis, fault, "AUTH", url->user, url->password, NULL)))
        return false;
    if (url->user[0] == '\0' && url->password[0] != '\0' &&
        !fine(wr_redis_ask(redis, fault, "AUTH", url->password, NULL)))
        return false;
    if (url->database != 0 && !fine(wr_redis_ask(redis, fault, "SELECT", number, NULL)))
        return false;
    return fine(wr_redis_ask(redis, fault, "PING", NULL)); // something that speaks Redis
}

bool wr_redis_open(struct wr_redis **redis, const struct wr_url *url, uint64_t timeout_ns,
                   struct wr_fault *fault) {
    const struct timeval timeout = {(time_t)(timeout_ns / WEIR_SECOND),
                                    (suseconds_t)(timeout_ns % WEIR_SECOND / WEIR_MICROSECOND)};
    struct wr_redis *made = calloc(1, sizeof *made);
    *redis = NULL;
    if (made == NULL) return wr_fault(fault, "no memory for a connection to Redis");
    wr_redis_url_show(url, made->shown);
    made->context = url->path[0] != '\0' ? redisConnectUnixWithTimeout(url->path, timeout)
                                         : redisConnectWithTimeout(url->host, url->port, timeout);
    bool good = made->context != NULL || wr_fault(fault, "no memory for a connection to Redis");
    if (good && (made->context->err != 0 || redisSetTimeout(made->context, timeout) != REDIS_OK))
        good = lost(made, fault);
    if (!good || !greet(made, url, fault)) {
        wr_redis_close(made);
        return false;
    }
    *redis = made;
    return true;
}

void wr_redis_close(struct wr_redis *redis) {
    if (redis == NULL) return;
    if (redis->context != NULL) redisFree(redis->context);
    free(redis);
}

bool wr_redis_send(struct wr_redis *redis, const struct wr_text *words, size_t count,
                   struct wr_fault *fault) {
    const char **data = malloc(count * sizeof *data);
    size_t *lengths = malloc(count * sizeof *lengths);
    bool good = data != NULL && lengths != NULL;
    for (size_t i = 0; good && i < count; i++) {
        data[i] = words[i].data;
        lengths[i] = words[i].length;
    }
    if (good) good = redisAppendCommandArgv(redis->context, (int)count, data, lengths) == REDIS_OK;
    free(data);
    free(lengths);
    return good || wr_fault(fault, "%.300s: no memory for a command", redis->shown);
}

bool wr_redis_next(struct wr_redis *redis, struct wr_redis_reply **reply, struct wr_fault *fault) {
    void *got = NULL;
    *reply = NULL;
    if (redisGetReply(redis->context, &got) != REDIS_OK) return lost(redis, fault);
    *reply = got;
    return true;
}

void wr_redis_drop(struct wr_redis_reply *reply) {
    if (reply != NULL) freeReplyObject(reply);
}

struct wr_redis_reply *wr_redis_ask(struct wr_redis *redis, struct wr_fault *fault,
                                    const char *word, ...) {
    struct wr_text words[WORDS_MAX];
    struct wr_redis_reply *reply = NULL;
    size_t count = 0;
    va_list more;
    va_start(more, word);
    for (; word != NULL && count < WORDS_MAX; word = va_arg(more, const char *))
        words[count++] = wr_text_of(word);
    va_end(more);
    if (!wr_redis_send(redis, words, count, fault) || !wr_redis_next(redis, &reply, fault))
        return NULL;
    const struct wr_redis_value value = wr_redis_look(reply);
    if (value.kind != WR_REDIS_ERROR) return reply;
    refused_at(redis, value, words[count > 1], fault);
    wr_redis_drop(reply);
    return NULL;
}

struct wr_redis_value wr_redis_look(const struct wr_redis_reply *reply) {
    const redisReply *raw = (const redisReply *)reply;
    struct wr_redis_value value = {WR_REDIS_NONE, 0, {NULL, 0}, 0};
    if (raw == NULL || raw->type == REDIS_REPLY_NIL) return value;
    value.integer = raw->integer;
    switch (raw->type) {
    case REDIS_REPLY_INTEGER: value.kind = WR_REDIS_INTEGER; return value;
    case REDIS_REPLY_ARRAY:
        value.kind = WR_REDIS_LIST;
        value.count = raw->elements;
        return value;
    case REDIS_REPLY_ERROR: value.kind = WR_REDIS_ERROR; break;
    default: value.kind = WR_REDIS_TEXT;
    }
    value.text = (struct wr_text){raw->str, raw->len};
    return value;
}

const struct wr_redis_reply *wr_redis_item(const struct wr_redis_reply *reply, size_t place) {
    const redisReply *raw = (const redisReply *)reply;
    if (raw == NULL || raw->type != REDIS_REPLY_ARRAY || place >= raw->elements) return NULL;
    return (const struct wr_redis_reply *)raw->element[place];
}

struct wr_redis_value wr_redis_look_at(const struct wr_redis_reply *reply, size_t place) {
    return wr_redis_look(wr_redis_item(reply, place));
}

bool wr_redis_whole(struct wr_redis_value value, uint64_t *number) {
    uint64_t sum = 0;
    bool good = value.kind == WR_REDIS_TEXT && value.text.length > 0;
    for (size_t i = 0; good && i < value.text.length; i++) {
        const char digit = value.text.data[i];
        good = digit >= '0' && digit <= '9' && !__builtin_mul_overflow(sum, UINT64_C(10), &sum) &&
               !__builtin_add_overflow(sum, (uint64_t)(digit - '0'), &sum);
    }
    if (value.kind == WR_REDIS_INTEGER && value.integer >= 0) {
        sum = (uint64_t)value.integer;
        good = true;
    }
    *number = good ? sum : 0;
    return good;
}

bool wr_redis_score(struct wr_redis_value value, uint64_t *count) {
    char digits[SCORE_BYTES] = "", *end = digits;
    *count = 0;
    if (value.kind != WR_REDIS_TEXT || value.text.length == 0 || value.text.length >= sizeof digits)
        return false;
    memcpy(digits, value.text.data, value.text.length);
    const double score = strtod(digits, &end);
    if (*end != '\0' || !isfinite(score) || score < 1) return false;
    *count = score < (double)INT64_MAX ? (uint64_t)score : INT64_MAX;
    return true;
}

int64_t wr_redis_epoch_us(struct wr_redis_value value) {
    uint64_t epoch_us;
    return wr_redis_whole(value, &epoch_us) && epoch_us <= EPOCH_MAX_US ? (int64_t)epoch_us : 0;
}

bool wr_redis_time_read(const struct wr_redis_reply *reply, int64_t *now_us) {
    uint64_t seconds, us;
    if (!wr_redis_whole(wr_redis_look_at(reply, 0), &seconds) || seconds > SECONDS_MAX ||
        !wr_redis_whole(wr_redis_look_at(reply, 1), &us) || us >= 1000000)
        return false;
    *now_us = (int64_t)(seconds * 1000000 + us);
    return true;
}

bool wr_redis_time_us(struct wr_redis *redis, int64_t *now_us, struct wr_fault *fault) {
    struct wr_redis_reply *reply = wr_redis_ask(redis, fault, "TIME", NULL);
    if (reply == NULL) return false;
    const bool good = wr_redis_time_read(reply, now_us);
    wr_redis_drop(reply);
    return good ||
           wr_fault(fault, "%.300s: it does not tell the time; is it a Redis?", redis->shown);
}

void wr_redis_alive_since(int64_t now_us, char since_ms[WR_REDIS_MS_BYTES]) {
    snprintf(since_ms, WR_REDIS_MS_BYTES, "%" PRId64, now_us / 1000 - WR_BUCKET_NODE_LIFE_MS);
}

void wr_redis_pattern(const char *text, char *pattern) {
    size_t used = 0;
    for (; *text != '\0'; text++) {
        if (strchr("*?[]^\\", *text) != NULL) pattern[used++] = '\\';
        pattern[used++] = *text;
    }
    strcpy(pattern + used, "*");
}

bool wr_redis_nodes(struct wr_redis *redis, const char *prefix, const char *limiter,
                    int64_t now_us, int64_t *nodes, struct wr_fault *fault) {
    char name[WR_BUCKET_NAME_BYTES], since_ms[WR_REDIS_MS_BYTES];
    snprintf(name, sizeof name, "%s{0}nodes%s%s", prefix, limiter[0] != '\0' ? ":" : "", limiter);
    wr_redis_alive_since(now_us, since_ms);
    struct wr_redis_reply *reply =
        wr_redis_ask(redis, fault, "ZCOUNT", name, since_ms, "+inf", NULL);
    if (reply == NULL) return false;
    const struct wr_redis_value count = wr_redis_look(reply);
    wr_redis_drop(reply);
    *nodes = count.integer;
    return count.kind == WR_REDIS_INTEGER ||
           wr_fault(fault, "%.300s: ZCOUNT is answered with no number; is it a Redis?",
                    redis->shown);
}
