// record.h - a line of a log as what a limiter is asked: when, who, how much.
//
//     struct wr_reader *reader;
//     struct wr_reader_options options = {.key = "host,path", .cost = "bytes"};
//     if (!wr_reader_create(&reader, &options, &fault)) ...
//     wr_reader_begin(reader);                       // a new file; each may be of another format
//     switch (wr_reader_read(reader, line, &record, &fault)) ...
//     wr_reader_destroy(reader);
//
// Formats are known by their first line: an object is ndjson, a header that names a time is CSV,
// else it is combined or common. A few lines of something else may come first.
//
// Keys of several fields are their values joined by '|', with a backslash before each '|' and '\'
// in a value, so that different values never make the same key. A key of one field is its value.
#ifndef WR_RECORD_H
#define WR_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "text.h"

// X(name, word)
#define WR_LOG_FORMATS(X)                                                                          \
    X(AUTO, "auto")                                                                                \
    X(COMBINED, "combined")                                                                        \
    X(COMMON, "common")                                                                            \
    X(CSV, "csv")                                                                                  \
    X(NDJSON, "ndjson")

enum wr_log_format {
#define WR_LOG_FORMAT_ENTRY(name, word) WR_LOG_##name,
    WR_LOG_FORMATS(WR_LOG_FORMAT_ENTRY)
#undef WR_LOG_FORMAT_ENTRY
};

// NULL: what is usual. The texts stay with the caller until wr_reader_create returns.
struct wr_reader_options {
    enum wr_log_format format;
    const char *key;    // fields joined by ','; NULL: host, else key, user, ip or remote_addr
    const char *time;   // a field; NULL: time, time_ns, timestamp, @timestamp, ts or datetime
    const char *cost;   // a number or a field; NULL: 1
    const char *weight; // a field; NULL: 1
};

struct wr_record {
    int64_t time_ns;    // since 1970-01-01 UTC
    struct wr_text key; // stays until the next line
    uint64_t cost;      // below 2^63
    struct weir_weight weight;
};

enum wr_read {
    WR_READ_RECORD = 0,
    WR_READ_NOTHING, // a header, or an empty line
    WR_READ_SKIPPED, // the line is broken: `fault` says how
    WR_READ_STOP,    // no line of this file can be read: `fault` says why, and the remedy
};

struct wr_reader;

// Checks the options; `fault` names the one that is wrong.
bool wr_reader_create(struct wr_reader **reader, const struct wr_reader_options *options,
                      struct wr_fault *fault);
void wr_reader_destroy(struct wr_reader *reader);

void wr_reader_begin(struct wr_reader *reader);

// A line of at most WR_LINE_MAX_BYTES. `fault` names neither file nor line.
enum wr_read wr_reader_read(struct wr_reader *reader, struct wr_text line, struct wr_record *record,
                            struct wr_fault *fault);

// The format of the present file, or NULL while it is not known.
const char *wr_reader_format(const struct wr_reader *reader);

// What the key is made of: "host,path"; and its first guess while that is not known.
const char *wr_reader_key(const struct wr_reader *reader);

#endif
