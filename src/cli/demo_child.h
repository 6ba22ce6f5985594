// demo_child.h - how each process that `weir sync-demo` starts begins.
#ifndef WR_DEMO_CHILD_H
#define WR_DEMO_CHILD_H

#include <sys/types.h>

// In the child, right after fork: dies when `parent` does, is not reached by the terminal's Ctrl-C,
// reads nothing, and takes no unfinished file away.
void wr_demo_child_begin(pid_t parent);

// Ends a child at once and waits for it. 0 is allowed.
void wr_demo_child_kill(pid_t child);

#endif
