// A node of a strict limit without a sync: the test is its thread. Replaces wr_sync_find_strict and
// wr_sync_wake: a struct weir_sync is whatever test_strict_sync points to.
#pragma once

#include <hiredis/hiredis.h>
#include <stdatomic.h>

#include "sync/strict.h"

struct strict_node {
    struct weir *limiter;
    struct wr_strict *strict;
    redisContext *context; // NULL: none
    char sha[WR_WIRE_SHA_BYTES + 1];
    char command[WR_STRICT_COMMAND_MAX];
    size_t command_bytes;
    int64_t now_us;  // of an injected clock
    int64_t step_us; // it goes on by this at each reading, as for a slow thread
};

#define STRICT_NODE_EPOCH_US 1000000

extern bool strict_node_dry_run; // of limiters made from now on

// Ready and open. `options` may be NULL; of it outage, expected_nodes, groups, generation and node
// are looked at. `injected`: the strict limiter goes by node->now_us, and so does the limiter.
void strict_node_init(struct strict_node *node, const struct weir_limit *limit,
                      const struct wr_strict_options *options, redisContext *context,
                      bool injected);
void strict_node_fini(struct strict_node *node); // closes first

// Packs into node->command. False: nothing to send.
bool strict_node_pack(struct strict_node *node, uint32_t group);
// Sends node->command (loading the script first) and returns the reply, which is the caller's.
redisReply *strict_node_send(struct strict_node *node);
// Hands a reply to the strict limiter; frees it.
void strict_node_hear(struct strict_node *node, uint32_t group, int64_t sent_us, redisReply *reply);
// All that waits in a group, until nothing does.
void strict_node_exchange(struct strict_node *node, uint32_t group);
// Submits, exchanges if need be, and returns the result.
int strict_node_take(struct strict_node *node, struct weir_sync_ask *ask, struct weir_key key,
                     uint64_t cost);

// For weir_sync_submit and weir_sync_take: the sync of one node.
struct weir_sync *strict_node_sync(struct strict_node *node);
