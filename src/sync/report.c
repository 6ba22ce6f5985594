// The report of a group: filled from the line, sent, applied when it is answered, or put back.
#include "sync.h"

#define FOREIGN_WAIT_US INT64_C(60000000)

static int64_t local_us(const struct wr_member *member, int64_t us) {
    return us + member->skew_us;
}

static bool freeze(struct wr_record *record, int64_t now_us, struct wr_node_frozen *frozen) {
    struct wr_member *member = record->member;
    struct wr_node_side taken = {0};
    if (!weir_private_freeze(member->weir, record->slot, record->fingerprint, record->frozen_us,
                             &taken))
        taken = (struct wr_node_side){0};
    member->pending_units += taken.granted_units;
    wr_side_add(&taken, &record->carried);
    record->carried = (struct wr_node_side){0};
    if (taken.granted_units == 0 && taken.denied_tokens == 0) return false;
    record->frozen_us = local_us(member, now_us);
    wr_node_freeze(&member->limit, &record->key, &taken, record->frozen_us, frozen);
    return true;
}

// Freezes records into the report; how many.
size_t wr_report_fill(struct wr_group *group, int64_t now_us) {
    struct wr_record *record;
    int64_t oldest_us = 0;
    group->count = 0;
    while (group->count < WR_GROUP_REPORTS && (record = wr_group_next(group)) != NULL) {
        if (!freeze(record, now_us, &group->frozen[group->count])) continue;
        oldest_us =
            wr_max_i64(oldest_us, record->frozen_us - group->frozen[group->count].first_us);
        group->records[group->count++] = record;
        record->held = true;
        record->member->held++;
    }
    if (group->count > 0) group->sync->lag_us = oldest_us;
    group->more = group->count == WR_GROUP_REPORTS && wr_group_want(group) != WR_BATCH_NOTHING;
    return group->count;
}

static void release(struct wr_record *record) {
    record->held = false;
    record->member->held--;
}

// Puts the report's i-th key back into its limiter, or beside it where the slot has another key.
static void put_back(struct wr_group *group, size_t i) {
    struct wr_record *record = group->records[i];
    struct wr_member *member = record->member;
    struct wr_node_side back = {0};
    wr_node_unfreeze(&record->key, &group->frozen[i], &back);
    release(record);
    if (member->weir == NULL) {
        member->lost_units += back.granted_units;
        member->pending_units -= back.granted_units;
        return;
    }
    wr_side_add(&record->carried, &back);
    wr_group_queue(group, record, false);
}

void wr_report_merge(struct wr_group *group) {
    for (size_t i = 0; i < group->count; i++) put_back(group, i);
    group->count = 0;
}

void wr_report_remove(struct wr_group *group, const struct wr_batch_todo *todo, int64_t now_us) {
    size_t kept = 0, bad = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (bad < todo->bad_count && todo->bad[bad] == i) {
            struct wr_record *record = group->records[i];
            put_back(group, i);
            wr_group_unqueue(group, record);
            record->foreign_us = now_us + FOREIGN_WAIT_US;
            group->sync->foreign_keys++;
            bad++;
            continue;
        }
        group->records[kept] = group->records[i];
        group->frozen[kept++] = group->frozen[i];
    }
    group->count = kept;
}

void wr_report_forget(struct wr_group *group) {
    for (size_t i = 0; i < group->count; i++) {
        struct wr_member *member = group->records[i]->member;
        release(group->records[i]);
        member->lost_units += group->frozen[i].granted_units;
        member->pending_units -= group->frozen[i].granted_units;
    }
    group->count = 0;
    wr_sync_remember(group->sync, "a report could not be delivered for so long that it was given "
                                  "up; what it granted is not charged (lost_tokens)");
}

// What the others ask for, as wr_node_hear reckons it: in the last two epochs, and tokens a us.
struct demand {
    double counted;
    double per_us;
};

static double above(double a, double b) {
    return a > b ? a - b : 0;
}

static struct demand others_demand(const struct wr_group *group, size_t i) {
    const struct wr_node_key *own = &group->records[i]->key;
    const struct wr_node_reply *all = &group->replies[i];
    const int64_t epoch_us = group->sync->rules.epoch_us;
    const double left = 1 - (double)(group->answer.redis_us % epoch_us) / (double)epoch_us;
    const double previous = above(all->previous_tokens, own->own_previous);
    const double current = above(all->current_tokens, own->own_current);
    return (struct demand){previous + current, (previous * left + current) / (double)epoch_us};
}

// The bound, for this key as of this answer. What a node does not see of the others lasts from its
// oldest unanswered grant to the answer: an interval and a round trip, or longer where Redis or the
// thread was slow, or gone.
static void note_bound(struct wr_group *group, size_t i) {
    struct wr_member *member = group->records[i]->member;
    const struct wr_node_frozen *frozen = &group->frozen[i];
    struct wr_node_rules rules = group->sync->rules;
    const struct demand demand = others_demand(group, i);
    const int64_t rtt_us = group->batch.rtt_us;
    const int64_t blind_us = local_us(member, group->answered_us) - frozen->first_us;
    const uint64_t nodes = group->sync->nodes;
    const uint32_t others = nodes > 1 ? (uint32_t)nodes - 1 : 0;
    double bound;
    if (wr_node_is_late(&rules, blind_us, rtt_us)) {
        const bool alone = nodes == 1 && demand.counted <= 0;
        const double own = (double)frozen->granted_units / (double)member->limit.unit_tokens;
        bound = wr_node_late_bound(&member->limit, &rules, alone ? 0 : own, demand.counted, others,
                                   blind_us, rtt_us);
    } else {
        rules.interval_us = wr_max_i64(rules.interval_us, blind_us - rtt_us);
        bound = wr_node_excess_bound(&member->limit, &rules, demand.per_us, others, rtt_us);
    }
    if (bound > member->excess_bound_tokens) member->excess_bound_tokens = bound;
}

static void hear(struct wr_group *group, size_t i) {
    struct weir_sync *sync = group->sync;
    struct wr_record *record = group->records[i];
    struct wr_member *member = record->member;
    const struct wr_node_timing timing = {
        .sent_us = local_us(member, group->answered.sent_us),
        .received_us = local_us(member, group->answered_us),
        .redis_us = group->answer.redis_us,
        .random = wr_sync_random(sync),
    };
    struct wr_node_heard heard;
    int64_t excess_units = 0;
    wr_node_hear(&member->limit, &sync->rules, &record->key, &group->frozen[i], &group->replies[i],
                 &timing, &heard);
    record->m_q16 = heard.m_q16;
    note_bound(group, i);
    if (group->replies[i].rel_us > member->limit.cap_us) member->clamped++;
    if (!weir_private_settle(member->weir, record->slot, record->fingerprint, &member->limit,
                             &heard, &excess_units))
        return;
    const double excess = (double)excess_units / (double)member->limit.unit_tokens;
    if (excess > member->excess_tokens) member->excess_tokens = excess;
}

void wr_report_apply(struct wr_group *group) {
    for (size_t i = 0; i < group->count; i++) {
        struct wr_member *member = group->records[i]->member;
        release(group->records[i]);
        member->reported_units += group->frozen[i].granted_units;
        member->pending_units -= group->frozen[i].granted_units;
        if (member->weir != NULL) hear(group, i);
    }
    group->sync->keys_reported += group->count;
    group->ahead_us = group->answer.redis_us - (group->answered.sent_us + group->answered_us) / 2;
    group->count = 0;
}

static size_t list_limits(struct wr_group *group, struct wr_wire_limit *limits) {
    size_t count = 0;
    const uint64_t mark = ++group->sync->packed;
    for (size_t i = 0; i < group->count; i++) {
        struct wr_member *member = group->records[i]->member;
        if (member->wire_mark == mark) continue;
        member->wire_mark = mark;
        member->wire_limit = (uint8_t)count;
        limits[count++] = (struct wr_wire_limit){
            .limiter = member->name,
            .cap_us = (uint64_t)member->limit.cap_us,
            .burst_us = (uint64_t)member->limit.burst_us,
            .generation = member->limit.generation,
        };
    }
    return count;
}

static void list_reports(struct wr_group *group, int64_t now_us, struct wr_wire_report *reports) {
    for (size_t i = 0; i < group->count; i++) {
        const struct wr_record *record = group->records[i];
        const struct wr_node_frozen *frozen = &group->frozen[i];
        const int64_t at_us = local_us(record->member, now_us);
        reports[i] = (struct wr_wire_report){
            .key = (const char *)record->name,
            .key_bytes = record->name_bytes,
            .cost_us = frozen->cost_us,
            .age_us = wr_node_age_us(frozen, at_us),
            .demand_tokens = frozen->demand_tokens,
            .limit = record->member->wire_limit,
            .backlog = wr_node_is_backlog(&group->sync->rules, frozen, at_us),
        };
    }
}

void wr_report_send(struct wr_group *group, const struct wr_batch_todo *todo, int64_t now_us) {
    struct weir_sync *sync = group->sync;
    struct wr_wire_limit limits[WR_WIRE_LIMITS_MAX];
    struct wr_wire_report reports[WR_GROUP_REPORTS];
    const struct wr_wire_batch batch = {
        .sha = group->sha,
        .prefix = sync->prefix,
        .node = sync->node,
        .group = group->index,
        .seq = todo->seq,
        .epoch_us = sync->rules.epoch_us,
        .marker_ttl_ms = sync->marker_ttl_us / 1000,
        .limits = limits,
        .limits_count = list_limits(group, limits),
        .reports = reports,
        .reports_count = group->count,
    };
    list_reports(group, now_us, reports);
    const size_t bytes = wr_wire_pack(&batch, sync->pack, sizeof sync->pack);
    if (todo->asking)
        wr_conn_send_words(group->conn, (const char *[]){"ASKING"}, (const size_t[]){6}, 1,
                           (struct wr_conn_tag){WR_GROUP_ASKING, 0, now_us});
    if (bytes != 0 && bytes <= sizeof sync->pack)
        wr_conn_send(group->conn, sync->pack, bytes,
                     (struct wr_conn_tag){WR_GROUP_REPORT, todo->seq, now_us});
    wr_conn_work(group->conn, 0);
}
