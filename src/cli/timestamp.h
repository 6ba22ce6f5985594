// timestamp.h - the times that logs carry, to nanoseconds since 1970-01-01 UTC.
//
//     17/May/2015:10:05:03 +0000         combined; a fraction of the second may follow it
//     2015-05-17T10:05:03.123456789Z     ISO 8601; a space for the T, a comma for the dot, a zone
//                                        +02:00, +0200, +02 or Z; without one it is UTC
//     1431857103.5                       since 1970, in the unit that a field's name ends in (_s
//                                        _ms _us _ns), else by size: below 10^11 seconds, below
//                                        10^14 milliseconds, below 10^17 microseconds, else
//                                        nanoseconds
//
// Exact to the nanosecond; digits beyond it are cut off. Days that do not exist are refused, and so
// is what 64 bits do not hold (before 1678, after 2261). Second 60 is taken at the end of a UTC day
// only, and is the next day's first.
#ifndef WR_TIMESTAMP_H
#define WR_TIMESTAMP_H

#include <stdint.h>

#include "text.h"

// NULL: `*time_ns` is set. Else what is wrong with the text and how a right one looks.
const char *wr_time_combined(struct wr_text text, int64_t *time_ns);

// Any of the forms. `field` is the name of the field it stands in.
const char *wr_time_any(struct wr_text text, const char *field, int64_t *time_ns);

// "2015-05-17T10:05:03Z", with nine digits after the second where it is not a whole one.
#define WR_TIME_TEXT 40
void wr_time_text(int64_t time_ns, char text[WR_TIME_TEXT]);

#endif
