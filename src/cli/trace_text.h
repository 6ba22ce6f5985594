// trace_text.h - an invented event as a line of a log.
#ifndef WR_TRACE_TEXT_H
#define WR_TRACE_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "trace.h"

// X(name, word): the formats that `weir replay` reads.
#define WR_TRACE_FORMATS(X)                                                                        \
    X(COMBINED, "combined")                                                                        \
    X(CSV, "csv")                                                                                  \
    X(NDJSON, "ndjson")

enum wr_trace_format {
#define WR_TRACE_FORMAT_ENTRY(name, word) WR_TRACE_FORMAT_##name,
    WR_TRACE_FORMATS(WR_TRACE_FORMAT_ENTRY)
#undef WR_TRACE_FORMAT_ENTRY
};

// What stands before the first line: a CSV has the names of its columns, the others nothing.
void wr_trace_write_header(FILE *out, enum wr_trace_format format);

// One line. The time has as many digits after the second as the resolution asks for.
void wr_trace_write(FILE *out, enum wr_trace_format format, uint64_t resolution_ns,
                    const struct wr_trace_event *event);

// The sender's address, "10.1.2.3", one sender, one address.
#define WR_TRACE_HOST_BYTES 48
void wr_trace_host(const struct wr_trace_event *event, char host[WR_TRACE_HOST_BYTES]);

#endif
