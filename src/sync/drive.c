// The list of strict limiters, and what the thread does for each of them at a turn.
//
// P1 and R1 are defined in sync.h.
#include "drive.h"

#include <stdlib.h>
#include <string.h>

#include "drive_lane.h"
#include "say.h"

struct wr_drive *wr_drive_first(const struct weir_sync *sync) {
    return atomic_load_explicit(&sync->drives, memory_order_acquire); // P1
}

struct weir *wr_drive_limiter(const struct wr_drive *drive) {
    return atomic_load_explicit(&drive->weir, memory_order_acquire); // P1
}

struct wr_drive *wr_drive_find(const struct weir_sync *sync, const struct weir *limiter) {
    struct wr_drive *drive = wr_drive_first(sync);
    if (limiter == NULL) return NULL;
    while (drive != NULL && wr_drive_limiter(drive) != limiter) drive = drive->next;
    return drive;
}

struct wr_strict *wr_sync_find_strict(struct weir_sync *sync, const struct weir *limiter) {
    struct wr_drive *drive = wr_drive_find(sync, limiter);
    return drive != NULL ? drive->strict : NULL;
}

static enum weir_sync_outage outage_of(enum wr_node_policy policy) {
    switch (policy) {
    case WR_NODE_OPEN: return WEIR_SYNC_OPEN;
    case WR_NODE_CLOSED: return WEIR_SYNC_CLOSED;
    case WR_NODE_LOCAL_SHARE: break;
    }
    return WEIR_SYNC_LOCAL_SHARE;
}

static int no_memory(struct weir_error *error) {
    wr_sync_say(error, "no memory for the limiter");
    return WEIR_ENOMEM;
}

int wr_drive_add(struct weir_sync *sync, struct weir *limiter, const char *name,
                 const struct weir_sync_limiter_options *options, struct weir_error *error) {
    struct wr_drive *drive = calloc(1, sizeof *drive + sync->groups_count * sizeof *drive->lanes);
    if (drive == NULL) return no_memory(error);
    drive->sync = sync;
    drive->id = ++sync->ids;
    drive->generation = options->generation;
    strcpy(drive->name, name);
    atomic_init(&drive->leave_us, INT64_MAX); // R1
    atomic_init(&drive->weir, limiter);       // P1
    const struct wr_strict_options strict = {
        .limiter = limiter,
        .name = drive->name,
        .prefix = sync->prefix,
        .node = sync->node,
        .groups = sync->groups_count,
        .generation = options->generation,
        .epoch_us = sync->rules.epoch_us,
        .marker_ttl_ms = sync->marker_ttl_us / 1000,
        .outage = outage_of(sync->rules.policy),
        .expected_nodes = sync->rules.expected_nodes,
    };
    if (wr_strict_create(&drive->strict, &strict) != WEIR_GRANTED) {
        free(drive);
        return no_memory(error);
    }
    // While a thread ends nobody would answer: the next one opens it.
    if (sync->started && !sync->joining) wr_strict_open(drive->strict);
    drive->next = wr_drive_first(sync);
    atomic_store_explicit(&sync->drives, drive, memory_order_release); // P1
    return WEIR_GRANTED;
}

void wr_drives_open(struct weir_sync *sync) {
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next)
        if (!d->left) wr_strict_open(d->strict); // nobody looks after one that has left
}

void wr_drives_forked(struct weir_sync *sync) {
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next)
        wr_strict_forked(d->strict);
}

// In the child of a fork the connections are left as they were: the thread may have been at work on
// them.
void wr_drives_free(struct weir_sync *sync) {
    const bool forked = atomic_load_explicit(&sync->forked, memory_order_relaxed); // R1
    for (struct wr_drive *d = wr_drive_first(sync), *next; d != NULL; d = next) {
        next = d->next;
        if (!forked && !d->left) wr_strict_close(d->strict);
        for (uint32_t g = 0; g < sync->groups_count && !forked; g++)
            wr_conn_close(d->lanes[g].conn);
        wr_strict_destroy(d->strict);
        free(d);
    }
}

// The thread.

static bool is_idle(const struct wr_drive *drive) {
    struct wr_strict_counts counts;
    wr_strict_counts(drive->strict, &counts);
    return counts.submitted == counts.granted + counts.denied + counts.never + counts.unsynced;
}

bool wr_drives_are_idle(const struct weir_sync *sync) {
    const struct wr_drive *drive = wr_drive_first(sync);
    while (drive != NULL && (drive->left || is_idle(drive))) drive = drive->next;
    return drive == NULL;
}

static void close_drive(struct wr_drive *drive) {
    wr_strict_close(drive->strict);
    for (uint32_t g = 0; g < drive->sync->groups_count; g++) wr_lane_drop(drive, g);
}

static void leave(struct wr_drive *drive) {
    struct weir_sync *sync = drive->sync;
    close_drive(drive);
    pthread_mutex_lock(&sync->lock);
    wr_strict_shrink(drive->strict);
    drive->left = true;
    pthread_cond_broadcast(&sync->changed);
    pthread_mutex_unlock(&sync->lock);
}

static bool is_to_leave(const struct wr_drive *drive, int64_t now_us) {
    const int64_t us = atomic_load_explicit(&drive->leave_us, memory_order_relaxed); // R1
    return us != INT64_MAX && (now_us >= us || is_idle(drive));
}

static void note_open(struct wr_drive *drive) {
    uint32_t open = 0;
    for (uint32_t g = 0; g < drive->sync->groups_count; g++)
        open += drive->lanes[g].phase >= WR_DRIVE_READY;
    atomic_store_explicit(&drive->counts.open, open, memory_order_relaxed); // R1
}

void wr_drives_tick(struct weir_sync *sync) {
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next) {
        if (d->left) continue;
        const int64_t now_us = wr_sync_now_us();
        wr_strict_expire(d->strict, now_us);
        for (uint32_t g = 0; g < sync->groups_count; g++) wr_lane_tick(d, g, now_us);
        note_open(d);
        if (is_to_leave(d, now_us)) leave(d);
    }
}

size_t wr_drives_count_fds(const struct wr_drive *first) {
    size_t count = 0;
    for (const struct wr_drive *d = first; d != NULL; d = d->next)
        if (!d->left) count += d->sync->groups_count;
    return count;
}

void wr_drives_list_fds(const struct wr_drive *first, struct pollfd *fds, size_t room) {
    size_t at = 0;
    for (const struct wr_drive *d = first; d != NULL; d = d->next)
        for (uint32_t g = 0; !d->left && g < d->sync->groups_count && at < room; g++, at++) {
            const struct wr_conn *conn = d->lanes[g].conn;
            fds[at] = (struct pollfd){-1, 0, 0};
            if (conn != NULL) fds[at] = (struct pollfd){wr_conn_fd(conn), wr_conn_events(conn), 0};
        }
}

// Only this thread lets a drive leave while it runs, so the same ones are there as in the list.
void wr_drives_work(struct wr_drive *first, const struct pollfd *fds, size_t count) {
    size_t at = 0;
    for (struct wr_drive *d = first; d != NULL; d = d->next)
        for (uint32_t g = 0; !d->left && g < d->sync->groups_count && at < count; g++, at++)
            if (fds[at].revents != 0) wr_lane_work(d, g, fds[at].revents);
}

void wr_drives_close(struct weir_sync *sync) {
    for (struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next)
        if (!d->left) close_drive(d);
}
