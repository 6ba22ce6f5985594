// Driving strict limiters (strict.h): for each, and for each group of it, a connection of its own.
//
// The sync's thread works here without the sync's lock, since the asks' callbacks are called from
// within. What other threads see of a drive is atomic: sync.h has the tags.
#pragma once

#include <poll.h>

#include "strict.h"
#include "sync.h"

enum wr_drive_phase {
    WR_DRIVE_CLOSED,
    WR_DRIVE_OPENING,
    WR_DRIVE_LOADING,
    WR_DRIVE_READY,
    WR_DRIVE_SENT
};

// What the stats say of a drive's connections: written by the thread, read by any (R1).
struct wr_drive_counts {
    _Atomic uint64_t timeouts;
    _Atomic uint64_t disconnects;
    _Atomic uint64_t refused;
    _Atomic uint64_t garbage;
    _Atomic uint64_t bytes_out; // of connections that are gone
    _Atomic uint64_t bytes_in;
    _Atomic uint32_t open;      // connections that are ready, or at work
};

struct wr_drive_lane {
    struct wr_conn *conn;
    enum wr_drive_phase phase;
    int64_t since_us; // of what the phase waits for
    int64_t hold_us;  // nothing before this
    uint32_t failures; // in a row
    uint32_t hops;
    bool asking;      // the connection came of an ASK: each call on it is led by ASKING
    bool loaded;
    char sha[WR_WIRE_SHA_BYTES + 1];
};

struct wr_drive {
    struct wr_drive *next;
    struct weir_sync *sync;
    _Atomic(struct weir *) weir; // P1: NULL: detached. The drive stays until the sync goes
    struct wr_strict *strict;
    char name[WR_WIRE_NAME_MAX + 1];
    uint64_t id;               // as a member's, from the same count
    uint32_t generation;       // under the lock, as the next two
    uint64_t foreign_nodes;
    bool announced;            // since it was attached
    _Atomic int64_t leave_us;  // R1: close when idle, or by then; INT64_MAX: no
    bool left;                 // under the lock: closed for good
    struct wr_drive_counts counts;
    struct wr_drive_lane lanes[]; // groups
};

// With the lock.
int wr_drive_add(struct weir_sync *sync, struct weir *limiter, const char *name,
                 const struct weir_sync_limiter_options *options, struct weir_error *error);
struct wr_drive *wr_drive_find(const struct weir_sync *sync, const struct weir *limiter);
struct wr_drive *wr_drive_first(const struct weir_sync *sync);
struct weir *wr_drive_limiter(const struct wr_drive *drive); // NULL: detached
void wr_drives_open(struct weir_sync *sync);
void wr_drives_forked(struct weir_sync *sync);
void wr_drives_free(struct weir_sync *sync);

// The thread, without the lock.
void wr_drives_tick(struct weir_sync *sync);
// Those from `first` on: one look at the list for all three, since drives may be added meanwhile.
size_t wr_drives_count_fds(const struct wr_drive *first);
void wr_drives_list_fds(const struct wr_drive *first, struct pollfd *fds, size_t room);
void wr_drives_work(struct wr_drive *first, const struct pollfd *fds, size_t count);
bool wr_drives_are_idle(const struct weir_sync *sync);
void wr_drives_close(struct weir_sync *sync); // at the thread's end
