// One node of a strict limit, driven by hand.
#include "strict_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

bool strict_node_dry_run;

struct wr_strict *wr_sync_find_strict(struct weir_sync *sync, const struct weir *limiter) {
    struct strict_node *node = (struct strict_node *)(void *)sync;
    return node->limiter == limiter ? node->strict : NULL;
}

void wr_sync_wake(struct weir_sync *sync) {
    (void)sync;
}

struct weir_sync *strict_node_sync(struct strict_node *node) {
    return (struct weir_sync *)(void *)node;
}

static int64_t injected_us(void *context) {
    struct strict_node *node = context;
    return node->now_us += node->step_us;
}

static int64_t monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t node_now_us(const struct strict_node *node) {
    return node->now_us != 0 ? node->now_us : monotonic_us();
}

static void load_script(struct strict_node *node) {
    redisReply *reply = redisCommand(node->context, "SCRIPT LOAD %b", wr_strict_script,
                                     wr_strict_script_bytes);
    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    memcpy(node->sha, reply->str, sizeof node->sha);
    freeReplyObject(reply);
}

void strict_node_init(struct strict_node *node, const struct weir_limit *limit,
                      const struct wr_strict_options *wanted, redisContext *context,
                      bool injected) {
    *node = (struct strict_node){.context = context, .now_us = injected ? 1000000000 : 0};
    struct weir_options limiter = WEIR_OPTIONS_INIT;
    limiter.limit = *limit;
    limiter.capacity_keys = 1024;
    const bool has_rate = limit->tokens != 0 && limit->tokens != WEIR_UNLIMITED_TOKENS;
    limiter.max_rate_tokens = has_rate ? 0 : 1;
    limiter.max_rate_period_ns = has_rate ? 0 : WEIR_SECOND;
    limiter.dry_run = strict_node_dry_run;
    if (injected) limiter.clock = WEIR_CLOCK_CALLER;
    assert_int_equal(weir_create(&node->limiter, &limiter, NULL), WEIR_GRANTED);
    struct wr_strict_options options = {0};
    if (wanted != NULL) options = *wanted;
    options.limiter = node->limiter;
    options.name = "limit";
    options.prefix = "weir:";
    if (options.node == NULL) options.node = "a";
    if (options.groups == 0) options.groups = 1;
    options.epoch_us = STRICT_NODE_EPOCH_US;
    options.marker_ttl_ms = 60000;
    options.now_us = injected ? injected_us : NULL;
    options.context = node;
    assert_int_equal(wr_strict_create(&node->strict, &options), WEIR_GRANTED);
    wr_strict_open(node->strict);
    if (context != NULL) load_script(node);
    else memset(node->sha, 'f', WR_WIRE_SHA_BYTES);
}

void strict_node_fini(struct strict_node *node) {
    wr_strict_close(node->strict);
    wr_strict_destroy(node->strict);
    weir_destroy(node->limiter);
    if (node->context != NULL) redisFree(node->context);
}

bool strict_node_pack(struct strict_node *node, uint32_t group) {
    if (!wr_strict_want(node->strict, group)) return false;
    node->command_bytes = wr_strict_pack(node->strict, group, node->sha, node_now_us(node),
                                         node->command, sizeof node->command);
    assert_true(node->command_bytes <= sizeof node->command);
    return node->command_bytes != 0;
}

redisReply *strict_node_send(struct strict_node *node) {
    redisReply *reply = NULL;
    assert_int_equal(
        redisAppendFormattedCommand(node->context, node->command, node->command_bytes), REDIS_OK);
    assert_int_equal(redisGetReply(node->context, (void **)&reply), REDIS_OK);
    return reply;
}

void strict_node_hear(struct strict_node *node, uint32_t group, int64_t sent_us,
                      redisReply *reply) {
    if (reply->type == REDIS_REPLY_ERROR) {
        const enum wr_wire_reaction reaction =
            wr_strict_refused(node->strict, group, reply->str, (size_t)reply->len);
        if (reaction == WR_WIRE_LOAD) load_script(node);
        else if (reaction != WR_WIRE_KEYS && reaction != WR_WIRE_AGAIN) fail_msg("%s", reply->str);
    } else {
        assert_int_equal(wr_strict_answer(node->strict, group, reply->str, (size_t)reply->len,
                                          sent_us, node_now_us(node)),
                         WR_WIRE_OK);
    }
    freeReplyObject(reply);
}

void strict_node_exchange(struct strict_node *node, uint32_t group) {
    while (strict_node_pack(node, group)) {
        const int64_t sent_us = node_now_us(node);
        strict_node_hear(node, group, sent_us, strict_node_send(node));
    }
}

int strict_node_take(struct strict_node *node, struct weir_sync_ask *ask, struct weir_key key,
                     uint64_t cost) {
    *ask = (struct weir_sync_ask)WEIR_SYNC_ASK_INIT;
    ask->key = key;
    ask->cost = cost;
    if (weir_sync_submit(strict_node_sync(node), node->limiter, ask) == WEIR_PENDING)
        strict_node_exchange(node, 0);
    return weir_sync_poll(ask);
}
