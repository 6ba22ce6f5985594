// The inside of a sync: its thread, its limiters, its groups.
//
// Threads. `lock` guards all of it but what is said to be otherwise. The sync's thread holds it
// while it works, some 100 us every 5 ms, and leaves it while it sleeps or resolves a host's name;
// callers hold it for shorter still. No decision ever takes it. It comes after the lock of all
// syncs (sync_create.c).
//
// P1 the list of strict limiters (drive.h) is prepended to with release and walked with acquire:
//    one is filled in before, and freed only with the sync. Its limiter is taken out by a store of
//    NULL.
// R1 flags that are looked at without the lock: late is good enough.
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "group.h"
#include "weir_sync.h"

#define WR_SYNC_TICK_US 5000
#define WR_SYNC_GROUPS_MAX 64
#define WR_SYNC_PACK_BYTES 65536 // more than the longest report

struct wr_strict;
struct wr_drive;
struct pollfd;

// A limiter under the sync.
struct wr_member {
    struct wr_member *next;
    struct weir_sync *sync;
    uint64_t id;       // 2 and up, never used again
    struct weir *weir; // NULL: detached; the member stays until no report holds a key of it
    char name[WR_WIRE_NAME_MAX + 1];
    bool announced; // since it was attached
    uint32_t generation;
    struct wr_node_limit limit; // as last understood
    struct weir_limit plain;    // the same, as the limiter has it
    uint64_t limit_version;
    uint64_t max_debt_tokens;
    struct wr_known keys;
    int64_t skew_us;    // the limiter's clock less CLOCK_MONOTONIC
    size_t held;        // records in reports
    size_t queued;      // ... and in line
    size_t unnamed;     // touched slots without a name, in the last scan
    uint8_t wire_limit; // of the report being packed
    uint64_t wire_mark; // which report that is
    // Counted since the attach.
    uint64_t tokens_before;  // granted before it
    uint64_t refunds_before;
    uint64_t reported_units;
    uint64_t lost_units;
    uint64_t pending_units;  // carried or held
    uint64_t clamped;
    uint64_t foreign_nodes;
    double excess_tokens;
    double excess_bound_tokens;
    double mint_bound_tokens;
};

// Someone waits for the thread to report all of a limiter.
struct wr_flush {
    struct wr_member *member; // NULL: of all
    bool asked;
    bool scanned; // all that was touched before is in line
    bool done;
};

struct weir_sync {
    pthread_mutex_t lock;
    pthread_cond_t changed; // by CLOCK_MONOTONIC
    struct weir_sync *next; // under the lock of all syncs
    // Set at creation.
    struct wr_url url;
    char prefix[WR_WIRE_NAME_MAX + 1];
    char node[WR_WIRE_NAME_MAX + 1];
    uint32_t groups_count;
    uint32_t names;
    int64_t connect_timeout_us;
    int64_t answer_timeout_us;
    int64_t marker_ttl_us;
    int64_t forget_us; // a record goes once it has been quiet for so long
    struct wr_node_rules rules;
    struct wr_group *groups;
    int wake; // an eventfd
    // The thread's.
    pthread_t thread;
    _Atomic bool forked; // R1: this process is a child
    bool started;        // there is a thread, or one to be joined
    bool stopping;
    bool joining;
    struct wr_flush flush;
    struct wr_member *members;
    _Atomic(struct wr_drive *) drives; // P1
    struct pollfd *fds; // the thread's alone, as `pack`
    size_t fds_room;
    int64_t scanned_us;
    int64_t announced_us;
    uint64_t announced;  // commands of it that are not answered
    int64_t leave_us;    // until then the thread may wait for answers at its end
    uint64_t packed; // reports
    uint64_t ids;    // given to members
    uint64_t random; // the thread's alone once it runs
    bool outage; // of any group, as the limiters were told
    // Numbers.
    uint64_t keys_reported;
    uint64_t foreign_keys;
    uint64_t announce_errors;
    uint64_t nodes;
    int64_t lag_us;
    int64_t cpu_ns;
    char last_error[192];
    int64_t last_error_us; // INT64_MIN: none
    char pack[WR_SYNC_PACK_BYTES];
};

int64_t wr_sync_now_us(void); // CLOCK_MONOTONIC
uint32_t wr_sync_random(struct weir_sync *sync);
void wr_sync_remember(struct weir_sync *sync, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Members (member.c). Under the lock.
struct wr_member *wr_member_find(const struct weir_sync *sync, const struct weir *weir);
// Takes what decisions left: names, spills, a change of limit, and touched keys into line.
void wr_member_scan(struct wr_member *member, int64_t now_us);
void wr_member_sweep(struct wr_member *member, int64_t now_us);
// False: the limit cannot be synced; the last one is kept.
bool wr_member_relimit(struct wr_member *member, struct weir_error *error);
// What is granted and in no report, taken out for good: in units.
uint64_t wr_member_abandon(struct wr_member *member);
// What slots hold in units: of touched ones without a name, which can be reported once an ask names
// them; and if `known`, of all keys. (Then what was spilled is in pending_units.)
uint64_t wr_member_unreported_units(struct wr_member *member, bool known);
// Frees members that are detached and held no more.
void wr_members_reap(struct weir_sync *sync);

// sync_stats.c. Under the lock.
void wr_sync_stats_read(const struct weir_sync *sync, struct weir_sync_stats *stats);
void wr_sync_member_stats(const struct wr_member *member, struct weir_sync_limiter_stats *stats);
void wr_sync_drive_stats(const struct wr_drive *drive, struct weir_sync_limiter_stats *stats);

// announce.c: this node's numbers in Redis, for people, and how many nodes there are.
// `leaving`: for the last time, and the node is not among those alive any more.
void wr_announce(struct weir_sync *sync, bool leaving, int64_t now_us);
void wr_announce_reply(struct weir_sync *sync, const struct wr_conn_reply *reply);

// All syncs of the process (sync_create.c).
void wr_syncs_lock(void);
void wr_syncs_unlock(void);
// With that lock: a limiter that some sync has already.
bool wr_syncs_have(const struct weir *limiter);
void wr_sync_delist(struct weir_sync *sync);

// thread.c
void *wr_sync_run(void *sync);
// For strict asks: lock-free, any thread.
void wr_sync_wake(struct weir_sync *sync);
struct wr_strict *wr_sync_find_strict(struct weir_sync *sync, const struct weir *limiter);
