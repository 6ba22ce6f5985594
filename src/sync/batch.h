// The exchange of one group with Redis as a state machine: events in, things to do out. It has no
// clock, no connection and no keys: time and random numbers are arguments, and the caller does what
// is asked. One report is under way at a time, and it counts once whatever is lost or repeated:
//
//   - A report keeps its sequence number, costs and demand until it is answered. The server skips a
//     number it has seen, so sending again is always safe while the marker lives; a report that is
//     older than half of that life is forgotten (granted and never charged; counted).
//   - An error reply proves only that its own attempt was not applied. The report is merged back,
//     to go under a new number, only if no attempt is without an answer. Otherwise it stays.
//
// Thread rules: one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "breaker.h"
#include "wire.h"

// Times are us of the local monotonic clock.
struct wr_batch_config {
    int64_t interval_us;    // d
    int64_t urgent_gap_us;  // an urgent report leaves at most this often (5 ms)
    int64_t timeout_us;     // an answer is waited for so long before the report is sent again
    int64_t dead_us;        // no byte for so long: the connection is given up
    int64_t backoff_min_us; // waits after failures, doubled each time and jittered
    int64_t backoff_max_us;
    int64_t config_wait_us; // the wait where somebody must change something
    int64_t marker_ttl_us;
};

// In this order, where several are asked for at once.
enum wr_batch_do {
    WR_BATCH_APPLY = 1,    // the answer holds for the report: hear and settle each key; it is done
    WR_BATCH_MERGE = 2,    // put the whole report back into its keys; it is done
    WR_BATCH_REMOVE = 4,   // put bad[] back and send these keys no more: Redis holds something else
    WR_BATCH_FORGET = 8,   // drop the report; what it granted is never charged
    WR_BATCH_CONNECT = 16, // close the connection if there is one, open a new one to the primary
    WR_BATCH_FOLLOW = 32,  // the same to `redirect`; if `asking`, say ASKING before each send
    WR_BATCH_LOAD = 64,    // SCRIPT LOAD
    WR_BATCH_FILL = 128,   // freeze touched keys into a report, then wr_batch_filled
    WR_BATCH_SEND = 256    // send the report as `seq`, its ages as of now
};

struct wr_batch_todo {
    unsigned what;
    uint64_t seq;
    bool asking;
    struct wr_wire_redirect redirect;
    size_t bad_count;
    uint16_t bad[WR_WIRE_BAD_KEYS_MAX];
};

// What the caller has for this group.
enum wr_batch_want {
    WR_BATCH_NOTHING,
    WR_BATCH_TOUCHED, // keys touched: at the next interval
    WR_BATCH_URGENT,  // a key that cannot wait
    WR_BATCH_MORE     // the last report was full: go on at once
};

enum wr_batch_phase {
    WR_BATCH_CLOSED,
    WR_BATCH_CONNECTING,
    WR_BATCH_LOADING,
    WR_BATCH_READY, // connected; a report may be held
    WR_BATCH_SENT
};

struct wr_batch_counts {
    uint64_t answered;
    uint64_t timeouts;
    uint64_t disconnects;
    uint64_t garbage;       // answers that were none
    uint64_t stale;         // answers to a report that was answered before
    uint64_t forgotten;     // reports
    uint64_t marker_lost;   // Redis forgot this node: flushed, failed over to an older state, or
                            // the node was idle for the marker's life
    uint64_t marker_ahead;  // Redis knows a later number: another process has this node's name
    uint64_t breaker_opened;
    uint64_t errors[WR_WIRE_ERRORS_COUNT];
};

struct wr_batch {
    struct wr_batch_config config;
    enum wr_batch_phase phase;
    size_t keys;        // of the report held; 0: none
    uint64_t seq;       // of the report held, or of the last one
    uint64_t acked_seq; // of the last one answered; 0: none
    uint32_t on_wire;   // attempts without answer on this connection
    uint32_t lost;      // ... on connections that are gone: may or may not have been applied
    uint32_t attempts;
    uint32_t failures;  // in a row
    uint32_t loads;     // in a row
    uint32_t hops;      // in a row
    bool loaded;
    bool asking;        // this connection came of an ASK: each send on it is led by ASKING
    int64_t filled_us;  // when the report was first sent
    int64_t sent_us;    // last attempt, load or connect
    int64_t heard_us;   // last sign of life on this connection
    int64_t hold_us;    // nothing before this
    int64_t due_us;     // next regular report
    int64_t waiting_us; // something is unanswered since then; INT64_MIN: nothing is
    int64_t rtt_us;     // smoothed
    struct wr_breaker breaker;
    struct wr_batch_counts counts;
    enum wr_wire_error last_error;
    char last_words[160];
};

void wr_batch_init(struct wr_batch *batch, const struct wr_batch_config *config, int64_t now_us,
                   uint32_t random);

// Events. Each writes what is to be done into `todo`.
void wr_batch_tick(struct wr_batch *batch, int64_t now_us, enum wr_batch_want want,
                   uint32_t random, struct wr_batch_todo *todo);
void wr_batch_connected(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo);
void wr_batch_disconnected(struct wr_batch *batch, int64_t now_us, uint32_t random,
                           struct wr_batch_todo *todo);
void wr_batch_loaded(struct wr_batch *batch, int64_t now_us, struct wr_batch_todo *todo);
// After FILL: the keys frozen, 0 if there was nothing after all.
void wr_batch_filled(struct wr_batch *batch, size_t keys, enum wr_batch_want want, int64_t now_us,
                     uint32_t random, struct wr_batch_todo *todo);
// A well-formed answer to the report `seq`, that attempt of it that was sent at sent_us.
void wr_batch_answered(struct wr_batch *batch, uint64_t seq, int64_t sent_us, int64_t marker_seq,
                       int64_t now_us, struct wr_batch_todo *todo);
// An error reply to it, or to SCRIPT LOAD (seq 0), or to what a connection opens with (seq 0).
void wr_batch_refused(struct wr_batch *batch, uint64_t seq, const char *text, size_t bytes,
                      int64_t now_us, uint32_t random, struct wr_batch_todo *todo);
// Something came back that is no answer: the far end is not what we think.
void wr_batch_garbled(struct wr_batch *batch, int64_t now_us, uint32_t random,
                      struct wr_batch_todo *todo);

// When to tick at the latest, if nothing else happens.
int64_t wr_batch_wake_us(const struct wr_batch *batch);
// True while keys must go by the outage policy: nothing answered for 2d, or the breaker is open.
bool wr_batch_outage(const struct wr_batch *batch, int64_t now_us);
