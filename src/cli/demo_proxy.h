// demo_proxy.h - a wire between the processes and Redis that can be cut and made long.
//
// In an outage what is sent is lost, in both directions, and nobody is told; when it is over, the
// connections that were open in it are closed, since bytes are missing in them. A latency of L
// holds each direction up by L/2.
#ifndef WR_DEMO_PROXY_H
#define WR_DEMO_PROXY_H

#include <sys/types.h>

#include "demo_board.h"

struct wr_demo_proxy {
    pid_t pid; // 0: does not run
};

// Listens on the unix socket `path`; when this returns, it is ready.
bool wr_demo_proxy_start(struct wr_demo_proxy *proxy, const char *path,
                         const struct wr_demo_options *options, const struct wr_url *redis,
                         const struct wr_demo_board *board, struct wr_fault *fault);
void wr_demo_proxy_stop(struct wr_demo_proxy *proxy);

#endif
