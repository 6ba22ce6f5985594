// The numbers of a sync and of its limiters.
//
// R1 is defined in sync.h.
#include <string.h>

#include "drive.h"

static void add_group(struct weir_sync_stats *stats, const struct wr_group *group) {
    const struct wr_batch_counts *counts = &group->batch.counts;
    stats->reports += counts->answered;
    stats->timeouts += counts->timeouts;
    stats->disconnects += counts->disconnects;
    stats->garbage += counts->garbage;
    stats->forgotten += counts->forgotten;
    stats->marker_lost += counts->marker_lost;
    stats->breaker_opened += counts->breaker_opened;
    for (unsigned i = 0; i < WR_WIRE_ERRORS_COUNT; i++) stats->refused += counts->errors[i];
    stats->bytes_out += group->bytes_out;
    stats->bytes_in += group->bytes_in;
    if (group->conn != NULL) {
        stats->bytes_out += wr_conn_bytes_out(group->conn);
        stats->bytes_in += wr_conn_bytes_in(group->conn);
        stats->memory_bytes += wr_conn_memory_bytes(group->conn);
    }
    if ((uint64_t)group->batch.rtt_us * 1000 > stats->rtt_ns)
        stats->rtt_ns = (uint64_t)group->batch.rtt_us * 1000;
    stats->connected &= group->batch.phase >= WR_BATCH_READY;
    stats->outage |= group->outage;
}

static void add_members(struct weir_sync_stats *stats, const struct weir_sync *sync) {
    for (const struct wr_member *m = sync->members; m != NULL; m = m->next) {
        stats->known_keys += m->keys.count;
        stats->memory_bytes += sizeof *m + m->keys.bytes;
    }
}

static uint64_t look(const _Atomic uint64_t *count) {
    return atomic_load_explicit(count, memory_order_relaxed); // R1
}

static void add_drive(struct weir_sync_stats *stats, const struct wr_drive *d) {
    struct wr_strict_counts counts;
    wr_strict_counts(d->strict, &counts);
    stats->reports += counts.calls;
    stats->keys += counts.keys;
    stats->foreign_keys += counts.foreign_keys;
    stats->timeouts += look(&d->counts.timeouts);
    stats->disconnects += look(&d->counts.disconnects);
    stats->refused += look(&d->counts.refused);
    stats->garbage += look(&d->counts.garbage);
    stats->bytes_out += look(&d->counts.bytes_out);
    stats->bytes_in += look(&d->counts.bytes_in);
    stats->memory_bytes += sizeof *d + d->sync->groups_count * sizeof *d->lanes +
                           wr_strict_memory_bytes(d->strict);
    const uint32_t open = atomic_load_explicit(&d->counts.open, memory_order_relaxed); // R1
    stats->connected &= d->left || open == d->sync->groups_count;
}

void wr_sync_stats_read(const struct weir_sync *sync, struct weir_sync_stats *stats) {
    *stats = (struct weir_sync_stats){.connected = true};
    stats->memory_bytes = sizeof *sync + sync->groups_count * sizeof *sync->groups;
    for (uint32_t i = 0; i < sync->groups_count; i++) add_group(stats, &sync->groups[i]);
    add_members(stats, sync);
    stats->refused += sync->announce_errors;
    stats->keys = sync->keys_reported;
    stats->foreign_keys = sync->foreign_keys;
    for (const struct wr_drive *d = wr_drive_first(sync); d != NULL; d = d->next)
        add_drive(stats, d);
    stats->lag_ns = (uint64_t)sync->lag_us * 1000;
    stats->cpu_ns = (uint64_t)sync->cpu_ns;
    stats->nodes = sync->nodes;
    stats->forked = atomic_load_explicit(&sync->forked, memory_order_relaxed); // R1
    stats->connected &= sync->started;
    strcpy(stats->node, sync->node);
    strcpy(stats->last_error, sync->last_error);
    stats->last_error_ago_ns = WEIR_FOREVER;
    if (sync->last_error_us != INT64_MIN)
        stats->last_error_ago_ns = (uint64_t)(wr_sync_now_us() - sync->last_error_us) * 1000;
}

// What was granted since the attach, less what came back before it was reported, less what was
// reported or lost. The counters are read one after the other, and an ask that ran across the
// attach is in one of them alone: so it is off by an ask a thread, never less than what is in hand.
static uint64_t pending_tokens(const struct wr_member *member,
                               const struct wr_synced_counts *counts, uint64_t done) {
    struct weir_stats now = {0};
    const uint64_t unit = (uint64_t)member->limit.unit_tokens;
    const uint64_t in_hand = (member->pending_units + unit - 1) / unit;
    if (member->weir == NULL || weir_stats(member->weir, &now, sizeof now) != WEIR_GRANTED)
        return in_hand;
    const uint64_t refunded = now.refunded_tokens - member->refunds_before;
    const uint64_t early =
        refunded > counts->local_refund_tokens ? refunded - counts->local_refund_tokens : 0;
    const uint64_t granted = now.tokens - member->tokens_before;
    const uint64_t pending = granted > early + done ? granted - early - done : 0;
    return pending > in_hand ? pending : in_hand;
}

void wr_sync_member_stats(const struct wr_member *member, struct weir_sync_limiter_stats *stats) {
    struct wr_synced_counts counts;
    const uint64_t unit = (uint64_t)member->limit.unit_tokens;
    weir_private_counts(member->weir, &counts);
    *stats = (struct weir_sync_limiter_stats){
        .reported_tokens = member->reported_units / unit,
        .lost_tokens = (member->lost_units + unit - 1) / unit + counts.lost_tokens,
        .unnamed = counts.unnamed,
        .local_refund_tokens = counts.local_refund_tokens,
        .clamped = member->clamped,
        .excess_tokens = member->excess_tokens,
        .excess_bound_tokens = member->excess_bound_tokens,
        .mint_bound_tokens = member->mint_bound_tokens,
        .generation = member->generation,
        .foreign_nodes = (uint32_t)member->foreign_nodes,
    };
    stats->pending_tokens =
        pending_tokens(member, &counts, stats->reported_tokens + stats->lost_tokens);
}

// Of asks answered: what waits is not granted, and is nobody's yet.
void wr_sync_drive_stats(const struct wr_drive *drive, struct weir_sync_limiter_stats *stats) {
    struct wr_strict_counts counts;
    wr_strict_counts(drive->strict, &counts);
    *stats = (struct weir_sync_limiter_stats){
        .reported_tokens = counts.charged_tokens,
        .lost_tokens = counts.bridged_tokens,
        .unsynced = counts.unsynced,
        .unknown = counts.unknown,
        .generation = drive->generation,
        .foreign_nodes = (uint32_t)drive->foreign_nodes,
    };
}

int weir_sync_stats(const struct weir_sync *sync, struct weir_sync_stats *stats, size_t size) {
    if (stats == NULL || sync == NULL) return WEIR_EINVAL;
    if (size != sizeof *stats) return WEIR_ESIZE;
    pthread_mutex_t *lock = &((struct weir_sync *)(uintptr_t)sync)->lock;
    pthread_mutex_lock(lock);
    wr_sync_stats_read(sync, stats);
    pthread_mutex_unlock(lock);
    return WEIR_GRANTED;
}

int weir_sync_limiter_stats(const struct weir_sync *sync, const struct weir *limiter,
                            struct weir_sync_limiter_stats *stats, size_t size) {
    if (stats == NULL || sync == NULL) return WEIR_EINVAL;
    if (size != sizeof *stats) return WEIR_ESIZE;
    pthread_mutex_t *lock = &((struct weir_sync *)(uintptr_t)sync)->lock;
    pthread_mutex_lock(lock);
    const struct wr_member *member = wr_member_find(sync, limiter);
    const struct wr_drive *drive = wr_drive_find(sync, limiter);
    if (member != NULL) wr_sync_member_stats(member, stats);
    else if (drive != NULL) wr_sync_drive_stats(drive, stats);
    pthread_mutex_unlock(lock);
    return member != NULL || drive != NULL ? WEIR_GRANTED : WEIR_EINVAL;
}
