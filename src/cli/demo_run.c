// demo_run.c - starts what is needed, does the faults, gathers the ends.
#include "demo_run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "demo_child.h"
#include "demo_node.h"
#include "redis.h"

#define STEP_NS (50 * WEIR_MILLISECOND)
#define READY_NS (15 * WEIR_SECOND)
#define LEAD_NS (20 * WEIR_MILLISECOND)
#define END_NS (10 * WEIR_SECOND)
#define RESTART_NS WEIR_SECOND
#define COMMAND_NS (2 * WEIR_SECOND)
#define SAME_INTERRUPT_NS (500 * WEIR_MILLISECOND)

// Interrupts ----------------------------------------------------------------------------------

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
#define CAUGHT_COUNT (sizeof caught / sizeof caught[0])

static volatile sig_atomic_t interrupted;
static struct sigaction before[CAUGHT_COUNT];
static uint64_t first_interrupt_ns;
static const struct wr_demo_run *running;

void wr_demo_run_restore(void) {
    for (size_t i = 0; i < CAUGHT_COUNT; i++) sigaction(caught[i], &before[i], NULL);
    running = NULL;
}

// One that follows at once is the same again: a terminal's, and that of timeout(1).
static void interrupt(int number) {
    const uint64_t now_ns = wr_demo_clock_ns();
    if (!interrupted) first_interrupt_ns = now_ns;
    interrupted = 1;
    if (now_ns - first_interrupt_ns < SAME_INTERRUPT_NS) return;
    if (running != NULL) wr_demo_server_abandon(&running->server);
    wr_demo_run_restore();
    raise(number);
}

void wr_demo_run_catch(const struct wr_demo_run *run) {
    struct sigaction action = {.sa_handler = interrupt};
    interrupted = 0;
    running = run;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CAUGHT_COUNT; i++) sigaddset(&action.sa_mask, caught[i]);
    for (size_t i = 0; i < CAUGHT_COUNT; i++) sigaction(caught[i], &action, &before[i]);
}

// Opening -------------------------------------------------------------------------------------

static bool needs_proxy(const struct wr_demo_options *options) {
    for (size_t i = 0; i < options->fault_count; i++)
        if (wr_demo_fault_by_proxy(&options->faults[i])) return true;
    return false;
}

static bool open_redis(struct wr_demo_run *run, struct wr_fault *fault) {
    const struct wr_demo_options *options = run->options;
    struct wr_redis *redis;
    snprintf(run->prefix, sizeof run->prefix, "weir:");
    if (options->own_server) {
        run->redis = (struct wr_url){.port = 0};
        snprintf(run->redis.path, sizeof run->redis.path, "%s", run->server.socket);
        return wr_demo_server_start(&run->server, fault);
    }
    run->redis = options->url; // others may be in there: names of our own
    snprintf(run->prefix, sizeof run->prefix, "weir-demo-%" PRIx64 "-%x:", wr_demo_clock_ns(),
             (unsigned)getpid());
    if (!wr_redis_open(&redis, &run->redis, COMMAND_NS, fault)) return false;
    wr_redis_close(redis);
    return true;
}

static void write_url(struct wr_demo_run *run) {
    if (run->proxy.pid != 0 || run->options->own_server)
        wr_redis_url_behind(&run->redis,
                            run->proxy.pid != 0 ? run->server.proxy_socket : run->server.socket,
                            run->node_url);
    else snprintf(run->node_url, sizeof run->node_url, "%s", run->options->url_text);
}

static bool fork_one(struct wr_demo_run *run, uint32_t process, struct wr_fault *fault) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return wr_fault(fault, "no process %" PRIu32 ": %s; ask for fewer with --processes",
                        process, strerror(errno));
    if (pid > 0) {
        run->pids[process] = pid;
        return true;
    }
    wr_demo_child_begin(parent);
    wr_demo_node_run(run->options, run->board, process, run->node_url, run->prefix);
}

// Takes note of those that ended. False: one that should not have.
static bool reap(struct wr_demo_run *run, struct wr_fault *fault) {
    for (uint32_t i = 0; i < run->options->processes; i++) {
        int status;
        if (run->pids[i] <= 0 || waitpid(run->pids[i], &status, WNOHANG) != run->pids[i]) continue;
        run->pids[i] = 0;
        const char *words = wr_demo_board_words(run->board, i);
        if (wr_demo_board_state(run->board, i) == WR_DEMO_FAILED)
            return wr_fault(fault, "process %" PRIu32 ": %s", i, words);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            return wr_fault(fault, "process %" PRIu32 " died of signal %d", i,
                            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    return true;
}

static bool all_in(const struct wr_demo_run *run, enum wr_demo_state state) {
    for (uint32_t i = 0; i < run->options->processes; i++)
        if (run->killed_ns[i] == 0 && wr_demo_board_state(run->board, i) < state) return false;
    return true;
}

static void nap(uint64_t span_ns) {
    nanosleep(&(struct timespec){.tv_nsec = (long)span_ns}, NULL);
}

static bool wait_ready(struct wr_demo_run *run, struct wr_fault *fault) {
    const uint64_t until_ns = wr_demo_clock_ns() + READY_NS;
    while (!all_in(run, WR_DEMO_READY)) {
        if (!reap(run, fault)) return false;
        if (interrupted) return wr_fault(fault, "interrupted before it began");
        if (wr_demo_clock_ns() > until_ns)
            return wr_fault(fault, "the processes are not ready after 15 s; ask for fewer with "
                                   "--processes");
        nap(2 * WEIR_MILLISECOND);
    }
    return true;
}

bool wr_demo_run_open(struct wr_demo_run *run, const struct wr_demo_options *options,
                      struct wr_fault *fault) {
    const bool proxy = needs_proxy(options);
    run->options = options;
    bool good = wr_demo_board_create(&run->board, options, fault) &&
                ((!options->own_server && !proxy) || wr_demo_folder_create(&run->server, fault)) &&
                open_redis(run, fault) &&
                (!proxy || wr_demo_proxy_start(&run->proxy, run->server.proxy_socket, options,
                                               &run->redis, run->board, fault));
    if (good) write_url(run);
    for (uint32_t i = 0; good && i < options->processes; i++) good = fork_one(run, i, fault);
    return good && wait_ready(run, fault);
}

// Faults --------------------------------------------------------------------------------------

static bool tell_redis(const struct wr_demo_run *run, const char *first, const char *second,
                       struct wr_fault *fault) {
    struct wr_redis *redis;
    if (!wr_redis_open(&redis, &run->redis, COMMAND_NS, fault)) return false;
    struct wr_redis_reply *reply = wr_redis_ask(redis, fault, first, second, NULL);
    const bool good = reply != NULL;
    wr_redis_drop(reply);
    wr_redis_close(redis);
    return good;
}

static bool kill_node(struct wr_demo_run *run, uint64_t now_ns, struct wr_fault *fault) {
    const uint64_t alive = wr_demo_board_alive(run->board);
    const uint32_t victim = wr_demo_load_victim(run->options, alive, now_ns);
    if (!reap(run, fault)) return false;
    wr_demo_child_kill(run->pids[victim]);
    run->pids[victim] = 0;
    run->killed_ns[victim] = now_ns;
    wr_demo_board_bury(run->board, victim);
    return true;
}

static bool do_fault(struct wr_demo_run *run, const struct wr_demo_fault *what, uint64_t now_ns,
                     struct wr_fault *fault) {
    switch (what->kind) {
    case WR_DEMO_FLUSH: return tell_redis(run, "FLUSHALL", NULL, fault);
    case WR_DEMO_SCRIPT_FLUSH: return tell_redis(run, "SCRIPT", "FLUSH", fault);
    case WR_DEMO_KILL_NODE: return kill_node(run, now_ns, fault);
    case WR_DEMO_KILL_REDIS:
        wr_demo_server_kill(&run->server);
        run->restart_ns = now_ns + RESTART_NS;
        return true;
    default: return true; // the proxy's
    }
}

static bool do_faults(struct wr_demo_run *run, uint64_t now_ns, struct wr_fault *fault) {
    if (run->restart_ns != 0 && now_ns >= run->restart_ns) {
        run->restart_ns = 0;
        if (!wr_demo_server_start(&run->server, fault)) return false;
    }
    for (size_t i = 0; i < run->options->fault_count; i++) {
        const struct wr_demo_fault *what = &run->options->faults[i];
        const bool waits = what->kind != WR_DEMO_KILL_NODE && run->restart_ns != 0; // for Redis
        if (run->fault_done[i] || now_ns < what->at_ns || waits) continue;
        run->fault_done[i] = true;
        if (!do_fault(run, what, now_ns, fault)) return false;
    }
    return true;
}

// Running -------------------------------------------------------------------------------------

// Until the next step: up to STEP_NS, but not past a fault or the end.
static uint64_t step_ns(const struct wr_demo_run *run, uint64_t now_ns) {
    uint64_t due_ns = now_ns + STEP_NS;
    for (size_t i = 0; i < run->options->fault_count; i++)
        if (run->options->faults[i].at_ns > now_ns && run->options->faults[i].at_ns < due_ns)
            due_ns = run->options->faults[i].at_ns;
    if (run->options->duration_ns > now_ns && run->options->duration_ns < due_ns)
        due_ns = run->options->duration_ns;
    return due_ns - now_ns;
}

static bool wait_ends(struct wr_demo_run *run, struct wr_fault *fault) {
    const uint64_t until_ns = wr_demo_clock_ns() + END_NS;
    bool left = true;
    while (left) {
        left = false;
        if (!reap(run, fault)) return false;
        for (uint32_t i = 0; i < run->options->processes; i++) left |= run->pids[i] > 0;
        if (left && wr_demo_clock_ns() > until_ns)
            return wr_fault(fault, "a process did not end within 10 s; please report it");
        if (left) nap(2 * WEIR_MILLISECOND);
    }
    return true;
}

bool wr_demo_run_go(struct wr_demo_run *run, wr_demo_show *show, void *context,
                    struct wr_fault *fault) {
    const uint64_t start_ns = wr_demo_clock_ns() + LEAD_NS;
    wr_demo_board_begin(run->board, start_ns, start_ns + run->options->duration_ns);
    nap(LEAD_NS);
    for (;;) {
        const uint64_t clock_ns = wr_demo_clock_ns();
        const uint64_t now_ns = clock_ns > start_ns ? clock_ns - start_ns : 0;
        run->elapsed_ns = now_ns;
        if (now_ns >= run->options->duration_ns) break;
        run->cut_short = interrupted != 0;
        if (run->cut_short) break;
        if (!reap(run, fault) || !do_faults(run, now_ns, fault)) return false;
        show(context, run, now_ns);
        nap(step_ns(run, now_ns));
    }
    if (!run->cut_short) run->elapsed_ns = run->options->duration_ns;
    else wr_demo_board_end(run->board, start_ns + run->elapsed_ns);
    return wait_ends(run, fault);
}

void wr_demo_run_close(struct wr_demo_run *run) {
    for (uint32_t i = 0; i < WR_DEMO_PROCESSES_MAX; i++) {
        wr_demo_child_kill(run->pids[i]);
        run->pids[i] = 0;
    }
    wr_demo_proxy_stop(&run->proxy);
    wr_demo_server_remove(&run->server);
}
