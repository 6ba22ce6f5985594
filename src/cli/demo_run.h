// demo_run.h - the processes, the server and the proxy of a run, and the faults in their time.
//
//     catch signals; wr_demo_run_open; wr_demo_run_go; wr_demo_run_close
//
// No thread is made here, since it forks.
#ifndef WR_DEMO_RUN_H
#define WR_DEMO_RUN_H

#include "demo_board.h"
#include "demo_proxy.h"
#include "demo_server.h"

struct wr_demo_run {
    const struct wr_demo_options *options;
    struct wr_demo_board *board;
    struct wr_demo_server server;
    struct wr_demo_proxy proxy;
    struct wr_url redis;                // without the proxy
    char node_url[WR_REDIS_URL_BYTES];  // as the processes have it
    char prefix[40];
    pid_t pids[WR_DEMO_PROCESSES_MAX];  // 0: ended
    uint64_t killed_ns[WR_DEMO_PROCESSES_MAX]; // by kill-node, since the start; 0: not
    bool fault_done[WR_DEMO_FAULTS_MAX];
    uint64_t restart_ns; // when the server starts again, since the start; 0: it runs
    uint64_t elapsed_ns; // of demand
    bool cut_short;      // by an interrupt
};

// All is there and connected, and waits for the start. False: wr_demo_run_close all the same.
bool wr_demo_run_open(struct wr_demo_run *run, const struct wr_demo_options *options,
                      struct wr_fault *fault);

// Until the duration is over or an interrupt comes; calls `show` about 20 times a second.
typedef void wr_demo_show(void *context, const struct wr_demo_run *run, uint64_t now_ns);
bool wr_demo_run_go(struct wr_demo_run *run, wr_demo_show *show, void *context,
                    struct wr_fault *fault);

// Nothing of it runs on. The board stays until wr_demo_board_destroy.
void wr_demo_run_close(struct wr_demo_run *run);

// The first SIGINT, SIGTERM or SIGHUP ends the demand; the second ends all at once.
void wr_demo_run_catch(const struct wr_demo_run *run);
void wr_demo_run_restore(void);

#endif
