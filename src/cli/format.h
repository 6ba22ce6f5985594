// format.h - what a log format does: it finds, in a line, the fields that somebody wants.
#ifndef WR_FORMAT_H
#define WR_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lines.h"
#include "text.h"

#define WR_KEY_PARTS 16
#define WR_WANTED_MAX (3 + WR_KEY_PARTS) // the time, the cost, the weight, and the key's parts
#define WR_CSV_COLUMNS 1024
#define WR_FIELD_NONE SIZE_MAX

struct wr_wanted {
    const char *name; // NULL: nothing is wanted here
    size_t column;    // where the format has it; WR_FIELD_NONE: found by its name
};

// The wanted fields, and their values in the line split last: pointers into the line or into
// `scratch`, NULL where the line has no such field. Each byte of a line is unescaped at most once,
// so a scratch of a line's length is enough.
struct wr_fields {
    struct wr_wanted wanted[WR_WANTED_MAX];
    struct wr_text values[WR_WANTED_MAX];
    size_t column_count; // of a CSV's header, copied into `header`
    struct wr_text columns[WR_CSV_COLUMNS];
    size_t scratch_used;
    char header[WR_LINE_MAX_BYTES];
    char scratch[WR_LINE_MAX_BYTES];
};

struct wr_format {
    const char *name;
    bool has_header;   // the first line names the columns
    bool is_open;      // any line may have fields that another lacks
    bool dash_is_zero; // a cost of "-" is 0
    const char *time;  // the field of the time; NULL: see record.c

    // Takes note of the first line; false when it cannot be one of this format.
    bool (*begin)(struct wr_fields *fields, struct wr_text first, struct wr_fault *fault);

    // Where the field `name` is; WR_FIELD_NONE when there is none. `first` is the first line.
    size_t (*find)(struct wr_fields *fields, struct wr_text first, const char *name);

    // Appends the names of the fields to the string `out`.
    void (*list)(const struct wr_fields *fields, char *out, size_t room);

    // Sets `values`. False when the line is broken: the words do not name the file or the line.
    bool (*split)(struct wr_fields *fields, struct wr_text line, struct wr_fault *fault);

    const char *(*parse_time)(struct wr_text text, const char *field, int64_t *time_ns);
};

extern const struct wr_format wr_format_combined;
extern const struct wr_format wr_format_csv;
extern const struct wr_format wr_format_ndjson;

// Room for a field's unescaped bytes, at most as many as it has in the line.
static inline char *wr_fields_scratch(struct wr_fields *fields) {
    return fields->scratch + fields->scratch_used;
}

#endif
