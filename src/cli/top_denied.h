// top_denied.h - the keys that the nodes of a fleet denied most, as each node publishes them.
//
// A node lists 32 keys a limiter. What it counted of a key outside those is missing in the sum.
#ifndef WR_TOP_DENIED_H
#define WR_TOP_DENIED_H

#include "top_scan.h"

// Asks for the list of one node and limiter. One reply.
bool wr_top_denied_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault);
// Adds it up. Anything else than such a list is passed over. False: no memory.
bool wr_top_denied_read(struct wr_tally *denied, const struct wr_redis_reply *reply,
                        struct wr_fault *fault);

// Fills in what a row's key was denied.
void wr_top_denied_fill(const struct wr_top_scan *scan, struct wr_top_row *row);
// Makes the scan's rows of the keys most denied, and asks for their buckets.
bool wr_top_denied_rows(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault);

#endif
