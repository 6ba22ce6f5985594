// demo_server.c - no port, no file: a server that nobody else can reach, and that leaves nothing.
#include "demo_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"
#include "demo_child.h"
#include "redis.h"

#define EXEC_FAILED 127
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"
#define START_NS (10 * WEIR_SECOND)
#define TRY_NS (5 * WEIR_MILLISECOND)

bool wr_demo_folder_create(struct wr_demo_server *server, struct wr_fault *fault) {
    const char *place = getenv("TMPDIR");
    if (place == NULL || place[0] != '/' || strlen(place) > 32 ||
        strspn(place, PLAIN) != strlen(place)) // it becomes part of a URL
        place = "/tmp";
    snprintf(server->folder, sizeof server->folder, "%s/weir-demo-XXXXXX", place);
    if (mkdtemp(server->folder) == NULL) {
        const int error = errno;
        server->folder[0] = '\0';
        return wr_fault(fault, "no temporary folder in %s: %s; TMPDIR names another place", place,
                        strerror(error));
    }
    snprintf(server->socket, sizeof server->socket, "%s/redis", server->folder);
    snprintf(server->proxy_socket, sizeof server->proxy_socket, "%s/proxy", server->folder);
    return true;
}

static _Noreturn void run_server(const struct wr_demo_server *server, pid_t parent) {
    wr_demo_child_begin(parent);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", server->socket, "--dir",
           server->folder, "--save", "", "--appendonly", "no", "--daemonize", "no", (char *)NULL);
    _exit(errno == ENOENT ? EXEC_FAILED : 1);
}

// Whether it has ended already.
static bool ended(struct wr_demo_server *server, struct wr_fault *fault) {
    int status;
    if (waitpid(server->pid, &status, WNOHANG) != server->pid) return false;
    server->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED)
        wr_fault(fault, "there is no redis-server in the PATH; install redis-server "
                        "(apt-get install redis-server), or give --redis URL");
    else
        wr_fault(fault,
                 "redis-server does not start; try `redis-server --port 0 --unixsocket "
                 "%s`, or give --redis URL",
                 server->socket);
    return true;
}

static bool answers(const struct wr_demo_server *server) {
    struct wr_url url = {.port = 0};
    struct wr_redis *redis;
    struct wr_fault ignored;
    snprintf(url.path, sizeof url.path, "%s", server->socket);
    const bool good = wr_redis_open(&redis, &url, WEIR_SECOND, &ignored);
    wr_redis_close(redis);
    return good;
}

bool wr_demo_server_start(struct wr_demo_server *server, struct wr_fault *fault) {
    const pid_t parent = getpid();
    const uint64_t until_ns = wr_demo_clock_ns() + START_NS;
    server->pid = fork();
    if (server->pid == 0) run_server(server, parent);
    if (server->pid < 0) {
        server->pid = 0;
        return wr_fault(fault, "no process for redis-server: %s", strerror(errno));
    }
    while (wr_demo_clock_ns() < until_ns) {
        if (ended(server, fault)) return false;
        if (answers(server)) return true;
        nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
    }
    return wr_fault(fault, "redis-server started and does not answer on %s; give --redis URL",
                    server->socket);
}

void wr_demo_server_kill(struct wr_demo_server *server) {
    wr_demo_child_kill(server->pid);
    server->pid = 0;
}

static void remove_folder(const struct wr_demo_server *server) {
    if (server->folder[0] == '\0') return;
    unlink(server->socket);
    unlink(server->proxy_socket);
    rmdir(server->folder);
}

void wr_demo_server_remove(struct wr_demo_server *server) {
    wr_demo_server_kill(server);
    remove_folder(server);
    server->folder[0] = '\0';
}

void wr_demo_server_abandon(const struct wr_demo_server *server) {
    if (server->pid > 0) kill(server->pid, SIGKILL);
    remove_folder(server);
}
