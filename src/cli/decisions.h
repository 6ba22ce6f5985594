// decisions.h - what was decided about each line, as CSV.
#ifndef WR_DECISIONS_H
#define WR_DECISIONS_H

#include <stdio.h>

#include "event.h"

// time_ns,key,cost,granted,retry_after_ns
void wr_decisions_write_header(FILE *out);

// The line's own time; the key quoted where CSV needs it; 1 or 0; the wait from the moment at which
// it was judged: 0 when granted, empty when no wait helps.
void wr_decisions_write(FILE *out, const struct wr_event *event);

#endif
