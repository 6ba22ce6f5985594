// libweir-sync where Redis is several: a replica, a primary that dies and whose replica takes over,
// and a cluster that moves a slot. The URL is a link to the socket of whichever is meant.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "sync_node.h"

#define PORTS_TRIED 20

struct server {
    struct test_redis redis;
    redisContext *context;
    int port;
};

static char folder[64];
static char link_name[96];
static char url[128];

static void nap_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); // for a process, or a load's pace
}

static int begin(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-link-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(link_name, sizeof link_name, "%s/redis", folder);
    (void)snprintf(url, sizeof url, "unix:%s", link_name);
    return 0;
}

static int end(void **state) {
    (void)state;
    unlink(link_name);
    rmdir(folder);
    return 0;
}

static void lead_to(const struct server *server) {
    unlink(link_name);
    assert_int_equal(symlink(server->redis.socket, link_name), 0);
}

// Another process may take it meanwhile: whoever uses it tries some.
static int free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (;;) {
        const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
        address.sin_port = 0;
        assert_int_equal(bind(socket_fd, (struct sockaddr *)&address, bytes), 0);
        assert_int_equal(getsockname(socket_fd, (struct sockaddr *)&address, &bytes), 0);
        close(socket_fd);
        if (ntohs(address.sin_port) < 50000) return ntohs(address.sin_port);
    }
}

// Waits until the reply to `command` has `words`.
static void wait_for(redisContext *context, const char *command, const char *words) {
    for (int i = 0; i < 5000; i++) {
        redisReply *reply = redisCommand(context, command);
        const bool there = reply != NULL && reply->str != NULL && strstr(reply->str, words) != NULL;
        freeReplyObject(reply);
        if (there) return;
        nap_ms(2);
    }
    fail_msg("%s does not come to say %s", command, words);
}

static uint64_t rand_ms(void) {
    return (uint64_t)rand() % 3;
}

// A primary and its replica.

static void listen_somewhere(struct server *server) {
    for (int i = 0; i < PORTS_TRIED; i++) {
        server->port = free_port();
        redisReply *reply = redisCommand(server->context, "CONFIG SET port %d", server->port);
        const bool good = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
        if (good) return;
    }
    fail_msg("redis-server listens on none of %d ports", PORTS_TRIED);
}

static struct server start(void) {
    struct server server;
    test_redis_start(&server.redis);
    server.context = test_redis_connect(&server.redis);
    test_redis_do(server.context, "CONFIG SET bind 127.0.0.1");
    listen_somewhere(&server);
    test_redis_do(server.context, "CONFIG SET repl-diskless-sync-delay 0");
    test_redis_do(server.context, "CONFIG SET repl-diskless-load swapdb");
    return server;
}

static void stop(struct server *server) {
    redisFree(server->context);
    test_redis_stop(&server->redis);
}

static void follow(struct server *replica, const struct server *primary) {
    test_redis_do(replica->context, "REPLICAOF 127.0.0.1 %d", primary->port);
    wait_for(replica->context, "INFO replication", "master_link_status:up");
}

static bool has_met_a_replica_twice(const struct node *node) {
    const struct weir_sync_stats stats = node_stats(node);
    return stats.refused > 1 && strstr(stats.last_error, "replica") != NULL;
}

static struct weir_limit slow(uint64_t burst) {
    return (struct weir_limit){1, WEIR_HOUR, burst};
}

static void a_replica_applies_nothing_and_nothing_is_lost_there(void **state) {
    (void)state;
    struct server primary = start(), replica = start();
    follow(&replica, &primary);
    lead_to(&replica);
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("k"), 10), 10);
    node_wait(&node, has_met_a_replica_twice, "refused by a replica");
    test_redis_do(replica.context, "SCRIPT FLUSH"); // so now it says NOSCRIPT
    const uint64_t refused = node_stats(&node).refused;
    while (node_stats(&node).refused < refused + 2) nap_ms(2);
    assert_int_equal(node_limiter_stats(&node).pending_tokens, 10);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 0);
    assert_int_equal(test_redis_integer(replica.context, "EXISTS weir:{0}mails:k"), 0);
    lead_to(&primary);
    node_wait(&node, node_has_nothing_pending, "reported");
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 10);
    const long long behind_ms = test_redis_integer(primary.context, "PTTL weir:{0}mails:k");
    assert_in_range(behind_ms, 9990LL * 3600, 10010LL * 3600); // ten hours: once
    node_close(&node);
    stop(&replica);
    stop(&primary);
}

struct pair {
    struct node nodes[2];
    uint64_t granted;
};

static void flood(struct pair *pair, int64_t us) {
    const int64_t until_us = test_now_us() + us;
    while (test_now_us() < until_us) {
        for (int i = 0; i < 2; i++) pair->granted += node_ask(&pair->nodes[i], weir_str("k"), 10);
        nap_ms(1 + (long)rand_ms());
    }
}

static void settle(struct pair *pair) {
    for (int i = 0; i < 2; i++)
        node_wait(&pair->nodes[i], node_has_nothing_pending, "reported");
}

static void a_replica_that_takes_over_goes_on_within_the_bound(void **state) {
    (void)state;
    struct server primary = start(), replica = start();
    follow(&replica, &primary);
    lead_to(&primary);
    const struct weir_limit limit = {1000, WEIR_SECOND, 200};
    struct pair pair = {{node_open_limit(url, limit, 1000), node_open_limit(url, limit, 1000)}, 0};
    for (int i = 0; i < 2; i++) node_wait(&pair.nodes[i], node_is_connected, "connected");
    const int64_t start_us = test_now_us();
    flood(&pair, 400000);
    settle(&pair);
    assert_int_equal(test_redis_integer(primary.context, "WAIT 1 10000"), 1);
    test_redis_kill(&primary.redis);
    flood(&pair, 300000);
    test_redis_do(replica.context, "REPLICAOF NO ONE");
    lead_to(&replica);
    settle(&pair);
    flood(&pair, 400000);
    const double seconds = (double)(test_now_us() - start_us) / 1e6;
    uint64_t reported = 0;
    double bound = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_sync_stop(pair.nodes[i].sync, 10 * WEIR_SECOND), WEIR_GRANTED);
        const struct weir_sync_limiter_stats stats = node_limiter_stats(&pair.nodes[i]);
        reported += stats.reported_tokens;
        assert_int_equal(stats.lost_tokens, 0);
        if (stats.excess_bound_tokens > bound) bound = stats.excess_bound_tokens;
        assert_true(node_stats(&pair.nodes[i]).disconnects > 0);
    }
    assert_int_equal(reported, pair.granted);
    if ((double)pair.granted > 200 + 1000 * seconds + bound)
        fail_msg("%lu granted in %.3f s, bound %.1f", (unsigned long)pair.granted, seconds, bound);
    for (int i = 0; i < 2; i++) node_close(&pair.nodes[i]);
    stop(&replica);
    stop(&primary);
}

// A cluster of two.

static void exec_clustered(const struct server *server, const char *port) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(nowhere, fd);
    execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket",
           server->redis.socket, "--dir", server->redis.folder, "--save", "", "--logfile", "log",
           "--cluster-enabled", "yes", (char *)NULL);
    _exit(127);
}

// False: it has ended, for want of its port or of the cluster's beside it.
static bool comes_up(struct server *server) {
    while (waitpid(server->redis.pid, NULL, WNOHANG) == 0) {
        redisContext *context = redisConnectUnix(server->redis.socket);
        if (context != NULL && context->err == 0) {
            server->context = context;
            wait_for(context, "PING", "PONG");
            return true;
        }
        if (context != NULL) redisFree(context);
        nap_ms(2);
    }
    return false;
}

static struct server start_clustered(void) {
    struct server server;
    char port[16];
    test_redis_start(&server.redis); // for its folder and socket
    test_redis_kill(&server.redis);
    for (int i = 0; i < PORTS_TRIED; i++) {
        server.port = free_port();
        (void)snprintf(port, sizeof port, "%d", server.port);
        server.redis.pid = fork();
        if (server.redis.pid == 0) exec_clustered(&server, port);
        if (comes_up(&server)) return server;
    }
    fail_msg("redis-server starts on none of %d ports", PORTS_TRIED);
    return server;
}

static void stop_clustered(struct server *server) {
    char nodes[96];
    test_redis_kill(&server->redis);
    (void)snprintf(nodes, sizeof nodes, "%s/nodes.conf", server->redis.folder);
    unlink(nodes);
    stop(server);
}

static void copy_id(redisContext *context, char id[41]) {
    redisReply *reply = redisCommand(context, "CLUSTER MYID");
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    (void)snprintf(id, 41, "%s", reply->str);
    freeReplyObject(reply);
}

static void set_slot(struct server *server, long long slot, const char *what, const char *id) {
    test_redis_do(server->context, "CLUSTER SETSLOT %lld %s %s", slot, what, id);
}

static void move_keys(struct server *from, const struct server *to, long long slot) {
    redisReply *keys = redisCommand(from->context, "CLUSTER GETKEYSINSLOT %lld 100", slot);
    assert_int_equal(keys->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < keys->elements; i++)
        test_redis_do(from->context, "MIGRATE 127.0.0.1 %d %s 0 5000", to->port,
                      keys->element[i]->str);
    freeReplyObject(keys);
}

static int rejected_reports(struct server *server) {
    redisReply *reply = redisCommand(server->context, "INFO commandstats");
    const char *at = strstr(reply->str, "cmdstat_evalsha:");
    assert_non_null(at);
    const int count = atoi(strstr(at, "rejected_calls=") + strlen("rejected_calls="));
    freeReplyObject(reply);
    return count;
}

static struct server start_two(struct server *to, char from_id[41], char to_id[41]) {
    struct server from = start_clustered();
    *to = start_clustered();
    test_redis_do(from.context, "CLUSTER ADDSLOTSRANGE 0 16383");
    test_redis_do(from.context, "CLUSTER MEET 127.0.0.1 %d", to->port);
    wait_for(from.context, "CLUSTER INFO", "cluster_known_nodes:2");
    wait_for(from.context, "CLUSTER INFO", "cluster_state:ok");
    wait_for(to->context, "CLUSTER INFO", "cluster_state:ok");
    copy_id(from.context, from_id);
    copy_id(to->context, to_id);
    return from;
}

static void a_slot_that_moves_is_followed_and_each_grant_counts_once(void **state) {
    (void)state;
    char from_id[41], to_id[41];
    struct server to, from = start_two(&to, from_id, to_id);
    const long long slot = test_redis_integer(from.context, "CLUSTER KEYSLOT {0}");
    lead_to(&from);
    struct node node = node_open_limit(url, slow(100), 1000);
    assert_int_equal(node_ask(&node, weir_str("k"), 10), 10);
    node_wait(&node, node_has_nothing_pending, "reported");
    // All has moved but the slot itself: the old node says ASK, and the new one has no script yet.
    set_slot(&to, slot, "IMPORTING", from_id);
    set_slot(&from, slot, "MIGRATING", to_id);
    move_keys(&from, &to, slot);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(node_ask(&node, weir_str("k"), 10), 10);
        node_wait(&node, node_has_nothing_pending, "reported");
    }
    assert_int_equal(rejected_reports(&to), 0); // each was led by ASKING, also after SCRIPT LOAD
    // A key that is on neither side must wait (TRYAGAIN) until the slot has moved.
    assert_int_equal(node_ask(&node, weir_str("new"), 5), 5);
    const uint64_t refused = node_stats(&node).refused;
    while (node_stats(&node).refused < refused + 3) nap_ms(2);
    assert_int_equal(node_limiter_stats(&node).pending_tokens, 5);
    set_slot(&to, slot, "NODE", to_id);
    set_slot(&from, slot, "NODE", to_id);
    node_wait(&node, node_has_nothing_pending, "reported");
    const long long behind_ms = test_redis_integer(to.context, "PTTL weir:{0}mails:k");
    assert_in_range(behind_ms, 39990LL * 3600, 40010LL * 3600); // forty hours: once
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 45);
    node_close(&node);
    stop_clustered(&to);
    stop_clustered(&from);
}

static void a_cluster_takes_every_group_in_a_slot_of_its_own(void **state) {
    (void)state;
    struct server server = start_clustered();
    test_redis_do(server.context, "CLUSTER ADDSLOTSRANGE 0 16383");
    wait_for(server.context, "CLUSTER INFO", "cluster_state:ok");
    lead_to(&server);
    struct weir_sync_options options = node_options(url);
    options.groups = 8;
    struct node node = node_make(&options, slow(100), 1000);
    assert_int_equal(weir_sync_start(node.sync, NULL), WEIR_GRANTED);
    for (uint64_t id = 0; id < 200; id++) assert_int_equal(node_ask(&node, weir_id(id), 2), 2);
    assert_int_equal(weir_sync_stop(node.sync, 10 * WEIR_SECOND), WEIR_GRANTED);
    assert_int_equal(node_limiter_stats(&node).reported_tokens, 400);
    assert_int_equal(node_stats(&node).refused, 0); // no CROSSSLOT
    node_close(&node);
    stop_clustered(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replica_applies_nothing_and_nothing_is_lost_there),
        cmocka_unit_test(a_replica_that_takes_over_goes_on_within_the_bound),
        cmocka_unit_test(a_slot_that_moves_is_followed_and_each_grant_counts_once),
        cmocka_unit_test(a_cluster_takes_every_group_in_a_slot_of_its_own),
    };
    srand(7);
    return cmocka_run_group_tests(tests, begin, end);
}
