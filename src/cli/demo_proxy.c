// demo_proxy.c - one process, one poll(); it knows the faults and the start, so nobody commands it.
#include "demo_proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "demo_child.h"

#define WIRES_MAX 256
#define CHUNK_BYTES 16384
#define HELD_MAX 64 // chunks a direction; then it is not read
#define NAP_MS 5

// Bytes on their way.
struct chunk {
    struct chunk *next;
    uint64_t due_ns;
    size_t from, to;
    char bytes[CHUNK_BYTES];
};

struct side {
    int fd;
    struct chunk *first, **last; // to be written to fd
    size_t held;
};

struct wire {
    struct side sides[2]; // of the process, of Redis
    bool cut;             // open in an outage
    bool closed;
};

struct proxy {
    const struct wr_demo_options *options;
    const struct wr_demo_board *board;
    struct sockaddr_storage address; // of Redis
    socklen_t address_bytes;
    int listener;
    struct wire wires[WIRES_MAX];
    size_t count;
};

// Faults --------------------------------------------------------------------------------------

static uint64_t since_start_ns(const struct proxy *proxy) {
    const uint64_t start_ns = wr_demo_board_start_ns(proxy->board), now_ns = wr_demo_clock_ns();
    return start_ns != 0 && now_ns > start_ns ? now_ns - start_ns : 0;
}

static bool is_outage(const struct proxy *proxy) {
    const uint64_t now_ns = since_start_ns(proxy);
    if (now_ns == 0) return false;
    for (size_t i = 0; i < proxy->options->fault_count; i++) {
        const struct wr_demo_fault *fault = &proxy->options->faults[i];
        if (fault->kind == WR_DEMO_OUTAGE && now_ns >= fault->at_ns &&
            now_ns - fault->at_ns < fault->length_ns)
            return true;
    }
    return false;
}

static uint64_t delay_ns(const struct proxy *proxy) {
    const uint64_t now_ns = since_start_ns(proxy);
    uint64_t round_trip_ns = 0;
    for (size_t i = 0; now_ns != 0 && i < proxy->options->fault_count; i++) {
        const struct wr_demo_fault *fault = &proxy->options->faults[i];
        if (fault->kind == WR_DEMO_LATENCY && now_ns >= fault->at_ns)
            round_trip_ns = fault->length_ns;
    }
    return round_trip_ns / 2;
}

// Wires ---------------------------------------------------------------------------------------

static void drop_all(struct side *side) {
    while (side->first != NULL) {
        struct chunk *next = side->first->next;
        free(side->first);
        side->first = next;
    }
    side->last = &side->first;
    side->held = 0;
}

static void close_wire(struct wire *wire) {
    for (int i = 0; i < 2; i++) {
        drop_all(&wire->sides[i]);
        close(wire->sides[i].fd);
    }
    wire->closed = true;
}

static void remove_closed(struct proxy *proxy) {
    size_t kept = 0;
    for (size_t i = 0; i < proxy->count; i++) {
        if (proxy->wires[i].closed) continue;
        struct wire *to = &proxy->wires[kept++];
        *to = proxy->wires[i];
        for (int s = 0; s < 2; s++)
            if (to->sides[s].first == NULL) to->sides[s].last = &to->sides[s].first;
    }
    proxy->count = kept;
}

static int connect_redis(const struct proxy *proxy) {
    const int fd = socket(proxy->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (connect(fd, (const struct sockaddr *)&proxy->address, proxy->address_bytes) == 0 &&
        fcntl(fd, F_SETFL, O_NONBLOCK) == 0)
        return fd;
    close(fd);
    return -1;
}

static void accept_one(struct proxy *proxy) {
    const int fd = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int redis = proxy->count < WIRES_MAX ? connect_redis(proxy) : -1;
    if (redis < 0) { // as a Redis that is not there
        close(fd);
        return;
    }
    struct wire *wire = &proxy->wires[proxy->count++];
    *wire = (struct wire){.sides = {{.fd = fd}, {.fd = redis}}};
    for (int i = 0; i < 2; i++) wire->sides[i].last = &wire->sides[i].first;
}

// Moves what can be read from one side to the other's queue. False: it is closed.
static bool read_side(struct proxy *proxy, struct wire *wire, int which) {
    struct side *to = &wire->sides[1 - which];
    struct chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL) return false;
    const ssize_t got = read(wire->sides[which].fd, chunk->bytes, CHUNK_BYTES);
    if (got <= 0 || wire->cut) { // closed, nothing there, or lost on the way
        free(chunk);
        return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    }
    chunk->next = NULL;
    chunk->due_ns = wr_demo_clock_ns() + delay_ns(proxy);
    chunk->from = 0;
    chunk->to = (size_t)got;
    *to->last = chunk;
    to->last = &chunk->next;
    to->held++;
    return true;
}

// Writes what is due. False: it is closed.
static bool write_side(struct side *side) {
    while (side->first != NULL && side->first->due_ns <= wr_demo_clock_ns()) {
        struct chunk *chunk = side->first;
        const ssize_t put =
            send(side->fd, chunk->bytes + chunk->from, chunk->to - chunk->from, MSG_NOSIGNAL);
        if (put < 0) return errno == EAGAIN || errno == EINTR;
        chunk->from += (size_t)put;
        if (chunk->from < chunk->to) return true;
        side->first = chunk->next;
        if (side->first == NULL) side->last = &side->first;
        side->held--;
        free(chunk);
    }
    return true;
}

static void work_wire(struct proxy *proxy, struct wire *wire, const struct pollfd polled[2]) {
    bool good = true;
    for (int i = 0; i < 2 && good; i++) {
        if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            good = read_side(proxy, wire, i);
    }
    for (int i = 0; i < 2 && good; i++) good = write_side(&wire->sides[i]);
    if (!good) close_wire(wire);
}

// Cuts all in an outage; closes what was cut when it is over.
static void cut(struct proxy *proxy, bool outage) {
    for (size_t i = 0; i < proxy->count; i++) {
        struct wire *wire = &proxy->wires[i];
        if (outage) {
            wire->cut = true;
            drop_all(&wire->sides[0]);
            drop_all(&wire->sides[1]);
        } else if (wire->cut) {
            close_wire(wire);
        }
    }
    remove_closed(proxy);
}

// Running -------------------------------------------------------------------------------------

static short wanted(const struct side *side, const struct side *other) {
    const bool due = side->first != NULL && side->first->due_ns <= wr_demo_clock_ns();
    return (short)((other->held < HELD_MAX ? POLLIN : 0) | (due ? POLLOUT : 0));
}

// Until the next chunk is due, NAP_MS at most: a fault's time comes without a word.
static int wait_ms(const struct proxy *proxy) {
    const uint64_t now_ns = wr_demo_clock_ns();
    uint64_t wait_ns = NAP_MS * WEIR_MILLISECOND;
    for (size_t i = 0; i < 2 * proxy->count; i++) {
        const struct chunk *first = proxy->wires[i / 2].sides[i % 2].first;
        if (first == NULL || first->due_ns <= now_ns) continue; // due: POLLOUT is waited for
        if (first->due_ns - now_ns < wait_ns) wait_ns = first->due_ns - now_ns;
    }
    return (int)((wait_ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND);
}

static void step(struct proxy *proxy) {
    struct pollfd polled[1 + 2 * WIRES_MAX];
    const bool outage = is_outage(proxy);
    const size_t count = proxy->count;
    cut(proxy, outage);
    if (proxy->count != count) return;
    polled[0] = (struct pollfd){.fd = outage ? -1 : proxy->listener, .events = POLLIN};
    for (size_t i = 0; i < count; i++) {
        const struct wire *wire = &proxy->wires[i];
        for (int s = 0; s < 2; s++)
            polled[1 + 2 * i + (size_t)s] = (struct pollfd){
                .fd = wire->sides[s].fd, .events = wanted(&wire->sides[s], &wire->sides[1 - s])};
    }
    if (poll(polled, (nfds_t)(1 + 2 * count), wait_ms(proxy)) < 0) return;
    for (size_t i = 0; i < count; i++) work_wire(proxy, &proxy->wires[i], &polled[1 + 2 * i]);
    remove_closed(proxy);
    if ((polled[0].revents & POLLIN) != 0) accept_one(proxy);
}

static bool resolve(struct proxy *proxy, const struct wr_url *redis, struct wr_fault *fault) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    char port[8], shown[WR_REDIS_SHOWN_BYTES];
    if (redis->path[0] != '\0') {
        struct sockaddr_un *address = (struct sockaddr_un *)&proxy->address;
        address->sun_family = AF_UNIX;
        snprintf(address->sun_path, sizeof address->sun_path, "%s", redis->path);
        proxy->address_bytes = sizeof *address;
        return true;
    }
    snprintf(port, sizeof port, "%u", (unsigned)redis->port);
    wr_redis_url_show(redis, shown);
    const int error = getaddrinfo(redis->host, port, &hints, &found);
    if (error != 0) return wr_fault(fault, "%.300s: %s", shown, gai_strerror(error));
    memcpy(&proxy->address, found->ai_addr, found->ai_addrlen);
    proxy->address_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool listen_at(struct proxy *proxy, const char *path, struct wr_fault *fault) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    proxy->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (proxy->listener >= 0 &&
        bind(proxy->listener, (const struct sockaddr *)&address, sizeof address) == 0 &&
        listen(proxy->listener, WIRES_MAX) == 0)
        return true;
    return wr_fault(fault, "%s: no socket for the proxy: %s", path, strerror(errno));
}

static bool begin(struct wr_demo_proxy *handle, struct proxy *proxy, struct wr_fault *fault) {
    const pid_t parent = getpid();
    handle->pid = fork();
    if (handle->pid < 0) {
        handle->pid = 0;
        return wr_fault(fault, "no process for the proxy: %s", strerror(errno));
    }
    if (handle->pid > 0) return true;
    wr_demo_child_begin(parent);
    for (;;) step(proxy);
}

bool wr_demo_proxy_start(struct wr_demo_proxy *handle, const char *path,
                         const struct wr_demo_options *options, const struct wr_url *redis,
                         const struct wr_demo_board *board, struct wr_fault *fault) {
    struct proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL) return wr_fault(fault, "no memory for the proxy");
    proxy->options = options;
    proxy->board = board;
    proxy->listener = -1;
    const bool good = resolve(proxy, redis, fault) && listen_at(proxy, path, fault) &&
                      begin(handle, proxy, fault);
    if (proxy->listener >= 0) close(proxy->listener); // the child has it
    free(proxy);
    return good;
}

void wr_demo_proxy_stop(struct wr_demo_proxy *proxy) {
    wr_demo_child_kill(proxy->pid);
    proxy->pid = 0;
}
