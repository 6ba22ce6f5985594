// demo_server.h - a redis-server of the command's own, on a unix socket in a folder of its own.
#ifndef WR_DEMO_SERVER_H
#define WR_DEMO_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "text.h"

struct wr_demo_server {
    pid_t pid;         // 0: does not run
    char folder[64];   // also for the proxy's socket
    char socket[96];
    char proxy_socket[96];
};

// The folder alone: for a proxy before somebody else's Redis.
bool wr_demo_folder_create(struct wr_demo_server *server, struct wr_fault *fault);
bool wr_demo_server_start(struct wr_demo_server *server, struct wr_fault *fault);
// kill -9; the folder stays, and it may be started again.
void wr_demo_server_kill(struct wr_demo_server *server);
// That and the folder.
void wr_demo_server_remove(struct wr_demo_server *server);
// The same from a signal handler, without waiting.
void wr_demo_server_abandon(const struct wr_demo_server *server);

#endif
