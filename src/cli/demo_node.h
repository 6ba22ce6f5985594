// demo_node.h - one of the processes that share the limit: its limiter, its sync, its demand.
#ifndef WR_DEMO_NODE_H
#define WR_DEMO_NODE_H

#include "demo_board.h"

#define WR_DEMO_LIMITER "demo"

// Runs in a process of its own, until the end that the board tells; exits by itself.
_Noreturn void wr_demo_node_run(const struct wr_demo_options *options, struct wr_demo_board *board,
                                uint32_t process, const char *url, const char *prefix);

#endif
