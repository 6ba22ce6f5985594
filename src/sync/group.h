// One hash slot's worth of the keys: the exchange (batch.h), its connection, the records in line
// for the next report, and the report that is held. Carries out what the exchange asks for.
#pragma once

#include "batch.h"
#include "conn.h"
#include "known.h"

#define WR_GROUP_REPORTS 128 // keys of a report: Redis is busy with them for 0.7 ms

struct weir_sync;

// What a reply answers.
enum wr_group_kind { WR_GROUP_LOAD = 1, WR_GROUP_REPORT, WR_GROUP_ASKING, WR_GROUP_ANNOUNCE };

struct wr_line {
    struct wr_record *first;
    struct wr_record *last;
};

struct wr_group {
    struct weir_sync *sync;
    struct wr_batch batch;
    struct wr_conn *conn; // NULL: none
    uint32_t index;
    struct wr_line urgent; // touched records
    struct wr_line calm;
    bool more;    // the last report was full
    bool outage;  // its keys go by the outage policy
    size_t count; // of the report held
    struct wr_record *records[WR_GROUP_REPORTS];
    struct wr_node_frozen frozen[WR_GROUP_REPORTS];
    struct wr_wire_answer answer; // the last one, to be applied
    struct wr_node_reply replies[WR_GROUP_REPORTS];
    struct wr_conn_tag answered;
    int64_t answered_us;
    int64_t ahead_us;   // Redis' clock less the local one, as last heard; 0: not yet
    uint64_t bytes_out; // of connections that are gone
    uint64_t bytes_in;
    char sha[WR_WIRE_SHA_BYTES + 1];
};

void wr_group_init(struct wr_group *group, struct weir_sync *sync, uint32_t index,
                   int64_t now_us);
// Puts a record in line, or forward to the urgent ones.
void wr_group_queue(struct wr_group *group, struct wr_record *record, bool urgent);
void wr_group_unqueue(struct wr_group *group, struct wr_record *record);

void wr_group_tick(struct wr_group *group, int64_t now_us);
// After poll: `ready` of the connection's descriptor.
void wr_group_work(struct wr_group *group, short ready, int64_t now_us);
// Nothing came over the connection in time: makes a new one.
void wr_group_give_up(struct wr_group *group, int64_t now_us);
// Leaves the connection; what is held stays, to be sent again on the next one.
void wr_group_leave(struct wr_group *group, int64_t now_us);
// Takes the first of the line out; NULL: it is empty.
struct wr_record *wr_group_next(struct wr_group *group);
enum wr_batch_want wr_group_want(const struct wr_group *group);
// Nothing in line and nothing held.
bool wr_group_is_idle(const struct wr_group *group);
// Nothing under way on an open connection: room for other commands.
bool wr_group_has_room(const struct wr_group *group);

// report.c: what the exchange asks for.
size_t wr_report_fill(struct wr_group *group, int64_t now_us); // how many keys
void wr_report_send(struct wr_group *group, const struct wr_batch_todo *todo, int64_t now_us);
void wr_report_apply(struct wr_group *group); // group->answer and group->replies
void wr_report_merge(struct wr_group *group);
void wr_report_remove(struct wr_group *group, const struct wr_batch_todo *todo, int64_t now_us);
void wr_report_forget(struct wr_group *group);
