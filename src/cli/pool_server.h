// pool_server.h - GET /metrics over HTTP, by libmicrohttpd.
//
// One thread serves all clients and never waits for one: at most 16 connections, each given up
// after 5 s of silence, each with 8 KiB for its request. No thread of the pool takes a
// lock of the server's.
#ifndef WR_POOL_SERVER_H
#define WR_POOL_SERVER_H

#include <stdbool.h>

#include "pool.h"

struct wr_pool_server;

// `listen` is ADDRESS:PORT, or PORT on the loopback; an address in digits, IPv6 in brackets.
// *is_usage says whether it is the words that are wrong, or the system that refused.
bool wr_pool_server_create(struct wr_pool_server **server, const char *listen, bool *is_usage,
                           struct wr_fault *fault);

// What is shown from now on; NULL: nothing. Returns once nobody reads what was shown before.
void wr_pool_server_show(struct wr_pool_server *server, const struct wr_pool *pool);

// "http://127.0.0.1:9464/metrics"
const char *wr_pool_server_url(const struct wr_pool_server *server);

// NULL is allowed.
void wr_pool_server_destroy(struct wr_pool_server *server);

#endif
