// format_csv.c - comma-separated values with a header (RFC 4180), one record a line.
//
// A field in quotes may hold commas, and quotes written twice. It may not hold a line break: a
// record of a log is one line.
#include "format.h"

#include "timestamp.h"

struct cursor {
    const char *at;
    const char *end;
    bool more; // another field follows
};

static bool take_quoted(struct cursor *c, char *scratch, struct wr_text *value) {
    const char *start = ++c->at;
    size_t unescaped = 0; // bytes in `scratch`, once there is a doubled quote
    for (;;) {
        const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
        if (quote == NULL) return false;
        bool doubled = quote + 1 < c->end && quote[1] == '"';
        if (!doubled && unescaped == 0) {
            *value = (struct wr_text){start, (size_t)(quote - start)};
            c->at = quote + 1;
            return true;
        }
        size_t length = (size_t)(quote - c->at) + doubled;
        memmove(scratch + unescaped, c->at, length); // a header is unescaped in place
        unescaped += length;
        c->at = quote + 1 + doubled;
        if (doubled) continue;
        *value = (struct wr_text){scratch, unescaped};
        return true;
    }
}

// The next field; a quoted one with doubled quotes is unescaped into `scratch`.
static bool take_field(struct cursor *c, char *scratch, struct wr_text *value,
                       struct wr_fault *fault) {
    if (c->at < c->end && *c->at == '"') {
        if (!take_quoted(c, scratch, value))
            return wr_fault(fault, "a quoted field does not end on its line; line breaks in fields "
                                   "are not read");
        if (c->at < c->end && *c->at != ',')
            return wr_fault(fault,
                            "text after the closing quote of a field; write a quote inside a "
                            "field twice");
    } else {
        const char *comma = memchr(c->at, ',', (size_t)(c->end - c->at));
        if (comma == NULL) comma = c->end;
        *value = (struct wr_text){c->at, (size_t)(comma - c->at)};
        c->at = comma;
    }
    c->more = c->at < c->end;
    if (c->more) c->at++;
    return true;
}

static void store(struct wr_fields *fields, size_t column, struct wr_text value) {
    for (size_t i = 0; i < WR_WANTED_MAX; i++)
        if (fields->wanted[i].name != NULL && fields->wanted[i].column == column)
            fields->values[i] = value;
}

static size_t last_wanted(const struct wr_fields *fields) {
    size_t last = 0;
    for (size_t i = 0; i < WR_WANTED_MAX; i++)
        if (fields->wanted[i].name != NULL && fields->wanted[i].column > last)
            last = fields->wanted[i].column;
    return last;
}

static bool split(struct wr_fields *fields, struct wr_text line, struct wr_fault *fault) {
    struct cursor c = {line.data, line.data + line.length, true};
    size_t last = last_wanted(fields);
    fields->scratch_used = 0;
    memset(fields->values, 0, sizeof(fields->values));
    for (size_t column = 0; column <= last && c.more; column++) {
        struct wr_text value;
        char *scratch = wr_fields_scratch(fields);
        if (!take_field(&c, scratch, &value, fault)) return false;
        if (value.data == scratch) fields->scratch_used += value.length;
        store(fields, column, value);
    }
    return true;
}

static struct wr_text trimmed(struct wr_text text) {
    while (text.length > 0 && text.data[0] == ' ') text.data++, text.length--;
    while (text.length > 0 && text.data[text.length - 1] == ' ') text.length--;
    return text;
}

// The columns point into a copy of the header.
static bool begin(struct wr_fields *fields, struct wr_text first, struct wr_fault *fault) {
    memcpy(fields->header, first.data, first.length);
    struct cursor c = {fields->header, fields->header + first.length, true};
    fields->scratch_used = 0;
    for (fields->column_count = 0; c.more; fields->column_count++) {
        struct wr_text *column = &fields->columns[fields->column_count];
        if (fields->column_count == WR_CSV_COLUMNS)
            return wr_fault(fault, "more than %d columns", WR_CSV_COLUMNS);
        // Unescaped where it stands: it only gets shorter.
        if (!take_field(&c, fields->header + (c.at - fields->header), column, fault)) return false;
        *column = trimmed(*column);
    }
    return true;
}

static size_t find(struct wr_fields *fields, struct wr_text first, const char *name) {
    (void)first;
    for (size_t i = 0; i < fields->column_count; i++)
        if (wr_text_is(fields->columns[i], name)) return i;
    return WR_FIELD_NONE;
}

static void list(const struct wr_fields *fields, char *out, size_t room) {
    for (size_t i = 0; i < fields->column_count; i++) {
        size_t used = strlen(out);
        if (room - used < 16) return;
        if (i > 0) strcat(out, ", ");
        wr_text_show(out, room, fields->columns[i]);
    }
}

const struct wr_format wr_format_csv = {
    .name = "CSV",
    .has_header = true,
    .begin = begin,
    .find = find,
    .list = list,
    .split = split,
    .parse_time = wr_time_any,
};
