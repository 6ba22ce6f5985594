// pool_server.c - the lock guards only which pool is shown; it is held while its text is written,
// and not while that is sent.
#include "pool_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pool_metrics.h"

#define CONNECTIONS 16u
#define SILENCE_S 5u
#define REQUEST_BYTES ((size_t)8 << 10)

struct wr_pool_server {
    struct MHD_Daemon *daemon;
    pthread_mutex_t mutex; // guards `pool`
    const struct wr_pool *pool;
    char url[96];
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *words) {
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(words), (void *)(uintptr_t)words, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    MHD_add_response_header(response, "Connection", "close");
    const enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_metrics(struct wr_pool_server *server,
                                      struct MHD_Connection *connection) {
    size_t length = 0;
    pthread_mutex_lock(&server->mutex);
    char *text = wr_pool_metrics(server->pool, &length);
    pthread_mutex_unlock(&server->mutex);
    if (text == NULL)
        return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory\n");
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", WEIR_METRICS_TYPE);
    const enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **state) {
    (void)version;
    (void)upload;
    (void)state;
    *upload_bytes = 0;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET /metrics\n");
    if (strcmp(path, "/metrics") != 0)
        return answer_text(connection, MHD_HTTP_NOT_FOUND, "only /metrics\n");
    return answer_metrics(context, connection);
}

// Cuts "[::1]:9464" or "127.0.0.1:9464" or "9464" up.
static bool split(const char *text, char host[INET6_ADDRSTRLEN + 2], unsigned long *port) {
    const char *colon = strrchr(text, ':');
    const char *digits = colon != NULL ? colon + 1 : text;
    const size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    char *end;
    if (length > INET6_ADDRSTRLEN + 1 || strspn(digits, "0123456789") == 0) return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (length == 0 || strcmp(host, "localhost") == 0) strcpy(host, "127.0.0.1");
    *port = strtoul(digits, &end, 10);
    return *end == '\0' && *port <= 65535;
}

static bool parse(const char *text, union address *address, socklen_t *bytes) {
    char host[INET6_ADDRSTRLEN + 2];
    unsigned long port;
    memset(address, 0, sizeof *address);
    if (!split(text, host, &port)) return false;
    const size_t length = strlen(host);
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        *bytes = sizeof address->v6;
        return inet_pton(AF_INET6, host + 1, &address->v6.sin6_addr) == 1;
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_port = htons((uint16_t)port);
    *bytes = sizeof address->v4;
    return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1;
}

// -1, with errno.
static int open_socket(union address *address, socklen_t bytes) {
    const int on = 1;
    const int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &address->any, bytes) == 0 && listen(fd, CONNECTIONS) == 0 &&
        getsockname(fd, &address->any, &bytes) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void note_url(struct wr_pool_server *server, const union address *address) {
    char host[INET6_ADDRSTRLEN];
    const bool is_v6 = address->any.sa_family == AF_INET6;
    const void *bytes = is_v6 ? (const void *)&address->v6.sin6_addr
                              : (const void *)&address->v4.sin_addr;
    const unsigned port = ntohs(is_v6 ? address->v6.sin6_port : address->v4.sin_port);
    inet_ntop(address->any.sa_family, bytes, host, sizeof host);
    snprintf(server->url, sizeof server->url, "http://%s%s%s:%u/metrics", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", port);
}

// With all signals blocked in its thread.
static bool start(struct wr_pool_server *server, int fd) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    server->daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        REQUEST_BYTES, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return server->daemon != NULL;
}

bool wr_pool_server_create(struct wr_pool_server **server, const char *listen, bool *is_usage,
                           struct wr_fault *fault) {
    union address address;
    socklen_t bytes = 0;
    *server = NULL;
    *is_usage = !parse(listen, &address, &bytes);
    if (*is_usage)
        return wr_fault(fault, "--listen '%.100s': it is ADDRESS:PORT with the address in digits: "
                               "127.0.0.1:9464, [::1]:9464 or just 9464", listen);
    const int fd = open_socket(&address, bytes);
    if (fd < 0)
        return wr_fault(fault, "--listen %.100s: %s; give another port, or 0 for any that is free",
                        listen, strerror(errno));
    struct wr_pool_server *made = calloc(1, sizeof *made);
    if (made != NULL) {
        pthread_mutex_init(&made->mutex, NULL);
        note_url(made, &address);
    }
    if (made == NULL || !start(made, fd)) {
        close(fd);
        free(made);
        return wr_fault(fault, "--listen %.100s: the server cannot be started", listen);
    }
    *server = made;
    return true;
}

void wr_pool_server_show(struct wr_pool_server *server, const struct wr_pool *pool) {
    if (server == NULL) return;
    pthread_mutex_lock(&server->mutex);
    server->pool = pool;
    pthread_mutex_unlock(&server->mutex);
}

const char *wr_pool_server_url(const struct wr_pool_server *server) {
    return server->url;
}

void wr_pool_server_destroy(struct wr_pool_server *server) {
    if (server == NULL) return;
    MHD_stop_daemon(server->daemon);
    pthread_mutex_destroy(&server->mutex);
    free(server);
}
