// The sync's thread: every 5 ms it takes what decisions left, ticks the groups, and sleeps in poll.
//
// R1 is defined in sync.h.
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"

#define ANNOUNCE_US INT64_C(1000000)
#define IDLE_US INT64_C(1000000)
#define GOODBYE_US INT64_C(250000)

int64_t wr_sync_now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint32_t wr_sync_random(struct weir_sync *sync) {
    uint64_t x = sync->random; // xorshift64*, never 0
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    sync->random = x;
    return (uint32_t)(x * UINT64_C(0x2545F4914F6CDD1D) >> 32);
}

void wr_sync_remember(struct weir_sync *sync, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(sync->last_error, sizeof sync->last_error, format, arguments);
    va_end(arguments);
    sync->last_error_us = wr_sync_now_us();
}

void wr_sync_wake(struct weir_sync *sync) {
    const uint64_t one = 1;
    if (atomic_load_explicit(&sync->forked, memory_order_relaxed)) return; // R1
    (void)!write(sync->wake, &one, sizeof one);
}

static void scan(struct weir_sync *sync, int64_t now_us) {
    const struct wr_flush *flush = &sync->flush;
    for (struct wr_member *m = sync->members; m != NULL; m = m->next) {
        const bool flushed = flush->asked && (flush->member == NULL || flush->member == m);
        if (m->weir == NULL || (flushed && flush->scanned)) continue;
        wr_member_scan(m, now_us);
        wr_member_sweep(m, now_us);
    }
    sync->flush.scanned = flush->asked;
    sync->scanned_us = now_us;
}

static bool is_flushed(const struct weir_sync *sync) {
    const struct wr_member *member = sync->flush.member;
    if (!sync->flush.scanned) return false;
    if (member != NULL) return member->queued == 0 && member->held == 0;
    for (uint32_t i = 0; i < sync->groups_count; i++)
        if (!wr_group_is_idle(&sync->groups[i])) return false;
    return wr_drives_are_idle(sync);
}

static void check_flush(struct weir_sync *sync) {
    if (!sync->flush.asked || sync->flush.done || !is_flushed(sync)) return;
    sync->flush.done = true;
    pthread_cond_broadcast(&sync->changed);
}

// New keys are in no group yet, so they go by the policy while any group does.
static void tell_outage(struct weir_sync *sync) {
    bool outage = false;
    for (uint32_t i = 0; i < sync->groups_count; i++) outage |= sync->groups[i].outage;
    if (outage == sync->outage) return;
    sync->outage = outage;
    for (struct wr_member *m = sync->members; m != NULL; m = m->next)
        if (m->weir != NULL) weir_private_set_outage(m->weir, outage);
}

static void note_cpu(struct weir_sync *sync) {
    struct timespec cpu;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
        sync->cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

// Where nothing else is asked of Redis, this is what finds out that it hangs.
static void announce(struct weir_sync *sync, int64_t now_us) {
    struct wr_group *group = &sync->groups[0];
    if (sync->announced != 0 && now_us - sync->announced_us > sync->answer_timeout_us)
        wr_group_give_up(group, now_us);
    if (now_us - sync->announced_us < ANNOUNCE_US || !wr_group_has_room(group)) return;
    sync->announced_us = now_us;
    wr_announce(sync, false, now_us);
}

static void tick(struct weir_sync *sync) {
    const int64_t now_us = wr_sync_now_us();
    check_flush(sync); // a whole turn after the scan
    const bool flush = sync->flush.asked && !sync->flush.scanned;
    if (flush || now_us - sync->scanned_us >= WR_SYNC_TICK_US) scan(sync, now_us);
    for (uint32_t i = 0; i < sync->groups_count; i++)
        wr_group_tick(&sync->groups[i], wr_sync_now_us());
    tell_outage(sync);
    wr_members_reap(sync);
    announce(sync, now_us);
    note_cpu(sync);
}

static int timeout_ms(const struct weir_sync *sync) {
    const int64_t now_us = wr_sync_now_us();
    int64_t wake_us = now_us + IDLE_US;
    if (sync->members != NULL || wr_drive_first(sync) != NULL)
        wake_us = sync->scanned_us + WR_SYNC_TICK_US;
    for (uint32_t i = 0; i < sync->groups_count; i++)
        wake_us = wr_min_i64(wake_us, wr_batch_wake_us(&sync->groups[i].batch));
    if (wake_us <= now_us) return 0;
    return (int)((wake_us - now_us + 999) / 1000);
}

// Room for all connections. Without memory those at the end are not polled: they are looked at all
// the same, with a delay.
static size_t reserve_fds(struct weir_sync *sync, size_t count) {
    if (count <= sync->fds_room) return count;
    struct pollfd *fds = realloc(sync->fds, count * sizeof *fds);
    if (fds == NULL) return sync->fds_room;
    sync->fds = fds;
    sync->fds_room = count;
    return count;
}

static void list(struct weir_sync *sync, const struct wr_drive *drives, size_t count) {
    struct pollfd *fds = sync->fds;
    fds[0] = (struct pollfd){sync->wake, POLLIN, 0};
    for (uint32_t i = 0; i < sync->groups_count; i++) {
        const struct wr_conn *conn = sync->groups[i].conn;
        fds[i + 1] = conn != NULL ? (struct pollfd){wr_conn_fd(conn), wr_conn_events(conn), 0}
                                  : (struct pollfd){-1, 0, 0};
    }
    wr_drives_list_fds(drives, fds + 1 + sync->groups_count, count - 1 - sync->groups_count);
}

// Without the lock, but for the groups.
static void sleep_in_poll(struct weir_sync *sync, int wait_ms) {
    struct wr_drive *drives = wr_drive_first(sync);
    const size_t first = 1 + sync->groups_count;
    const size_t count = reserve_fds(sync, first + wr_drives_count_fds(drives));
    uint64_t woken;
    list(sync, drives, count);
    const int ready = poll(sync->fds, (nfds_t)count, wait_ms);
    if (ready <= 0) return;
    const int64_t now_us = wr_sync_now_us();
    if (sync->fds[0].revents != 0) (void)!read(sync->wake, &woken, sizeof woken);
    pthread_mutex_lock(&sync->lock);
    for (uint32_t i = 0; i < sync->groups_count; i++)
        if (sync->fds[i + 1].revents != 0)
            wr_group_work(&sync->groups[i], sync->fds[i + 1].revents, now_us);
    pthread_mutex_unlock(&sync->lock);
    wr_drives_work(drives, sync->fds + first, count - first);
}

// Says what stands, and that this node goes; waits for the answers as long as the stop allows, and
// not long: it is for people.
static void take_leave(struct weir_sync *sync) {
    struct wr_group *group = &sync->groups[0];
    if (!wr_group_has_room(group)) return;
    const int64_t until_us = wr_min_i64(sync->leave_us, wr_sync_now_us() + GOODBYE_US);
    wr_announce(sync, true, wr_sync_now_us());
    for (;;) {
        const int64_t left_us = until_us - wr_sync_now_us();
        if (sync->announced == 0 || left_us <= 0) return;
        struct pollfd fd = {wr_conn_fd(group->conn), wr_conn_events(group->conn), 0};
        pthread_mutex_unlock(&sync->lock);
        (void)poll(&fd, 1, (int)(left_us / 1000) + 1);
        pthread_mutex_lock(&sync->lock);
        wr_group_work(group, fd.revents, wr_sync_now_us());
    }
}

void *wr_sync_run(void *argument) {
    struct weir_sync *sync = argument;
    pthread_mutex_lock(&sync->lock);
    while (!sync->stopping) {
        tick(sync);
        const int wait_ms = timeout_ms(sync);
        pthread_mutex_unlock(&sync->lock);
        wr_drives_tick(sync);
        sleep_in_poll(sync, wait_ms);
        pthread_mutex_lock(&sync->lock);
    }
    pthread_mutex_unlock(&sync->lock);
    wr_drives_close(sync); // first: nobody waits for what follows
    pthread_mutex_lock(&sync->lock);
    take_leave(sync);
    for (uint32_t i = 0; i < sync->groups_count; i++)
        wr_group_leave(&sync->groups[i], wr_sync_now_us());
    pthread_mutex_unlock(&sync->lock);
    return NULL;
}
