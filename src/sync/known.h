// What the sync thread knows of a limiter's keys: a record for each, found by name and by place.
//
// A record outlives its place in the limiter's table: a key that was displaced and comes back has
// another slot, and keeps what it has not reported, its share, and its demand.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../synced.h"
#include "node.h"

struct wr_member;

struct wr_record {
    struct wr_node_key key;
    struct wr_node_side carried; // granted and denied, and to go into the next report
    struct wr_member *member;
    struct wr_record *next_by_name;
    struct wr_record *next_by_print;
    struct wr_record *before; // in its group's line
    struct wr_record *after;
    uint64_t slot;
    uint64_t fingerprint;
    int64_t frozen_us;  // last, on the limiter's clock
    int64_t seen_us;    // last touched
    int64_t foreign_us; // Redis holds something else under this name: not sent before this; 0: fine
    uint32_t m_q16;     // last heard, or set in an outage
    uint16_t name_bytes;
    uint8_t group;
    bool gone;   // its slot had another key when it was last looked at, and it was not seen since
    bool queued;
    bool urgent; // in the urgent line
    bool held;   // in a report
    unsigned char name[];
};

struct wr_known {
    struct wr_record **by_name; // heads of chains
    struct wr_record **by_print;
    size_t chains; // of each; a power of two, or 0
    size_t count;
    size_t cursor; // of the chains that are looked at for records to forget
    size_t bytes;
};

void wr_known_fini(struct wr_known *keys); // frees the records
struct wr_record *wr_known_find(const struct wr_known *keys, const void *name, size_t name_bytes);
// Finds or makes; NULL: no memory. A new record is all zero but for its name.
struct wr_record *wr_known_claim(struct wr_known *keys, const void *name, size_t name_bytes);
// The record with this place; or else with this fingerprint, which then is in another slot; or
// NULL.
struct wr_record *wr_known_find_place(const struct wr_known *keys, uint64_t slot,
                                     uint64_t fingerprint);
void wr_known_place(struct wr_known *keys, struct wr_record *record, uint64_t slot,
                   uint64_t fingerprint);
// Calls `visit` for all records of some chains: each call for others, until all have been. True:
// forget the record.
typedef bool wr_known_visit(void *context, struct wr_record *record);
void wr_known_sweep(struct wr_known *keys, size_t chains, wr_known_visit *visit, void *context);
void wr_known_each(struct wr_known *keys, wr_known_visit *visit, void *context);

// Adds the grants and denials of `more`.
void wr_side_add(struct wr_node_side *side, const struct wr_node_side *more);
