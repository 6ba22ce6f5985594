// format_combined.c - the log format of Apache and nginx, and its shorter form, common.
//
//     host ident user [time] "request" status bytes "referer" "agent"
//
// Common ends after bytes. What follows the agent is passed over. A line that was cut off within
// the last two still has all that comes before them.
#include "format.h"

#include "timestamp.h"

// X(name, field). PATH and METHOD are parts of the request.
#define FIELDS(X)                                                                                  \
    X(HOST, "host")                                                                                \
    X(USER, "user")                                                                                \
    X(TIME, "time")                                                                                \
    X(METHOD, "method")                                                                            \
    X(PATH, "path")                                                                                \
    X(STATUS, "status")                                                                            \
    X(BYTES, "bytes")                                                                              \
    X(REFERER, "referer")                                                                          \
    X(AGENT, "agent")

enum field {
#define FIELD_ENTRY(name, field) name,
    FIELDS(FIELD_ENTRY)
#undef FIELD_ENTRY
        FIELD_COUNT
};

static const char *const names[] = {
#define FIELD_NAME(name, field) field,
    FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

// Takes what stands before `stop` and the `stop` itself.
static bool take_until(struct wr_text *rest, char stop, struct wr_text *taken) {
    const char *at = memchr(rest->data, stop, rest->length);
    if (at == NULL) return false;
    size_t length = (size_t)(at - rest->data);
    *taken = (struct wr_text){rest->data, length};
    *rest = (struct wr_text){at + 1, rest->length - length - 1};
    return true;
}

static bool take_char(struct wr_text *rest, char wanted) {
    if (rest->length == 0 || rest->data[0] != wanted) return false;
    *rest = (struct wr_text){rest->data + 1, rest->length - 1};
    return true;
}

// A quote is part of the text when an odd number of backslashes stands before it.
static bool is_escaped(const char *quote, const char *start) {
    const char *at = quote;
    while (at > start && at[-1] == '\\') at--;
    return (quote - at) % 2 == 1;
}

// What follows an opening quote; false when the closing one is missing, with `taken` all there is.
static bool take_quoted(struct wr_text *rest, struct wr_text *taken) {
    const char *start = rest->data, *end = rest->data + rest->length, *quote = start;
    while ((quote = memchr(quote, '"', (size_t)(end - quote))) != NULL && is_escaped(quote, start))
        quote++;
    *taken = (struct wr_text){start, (size_t)((quote != NULL ? quote : end) - start)};
    *rest = quote == NULL ? (struct wr_text){end, 0}
                          : (struct wr_text){quote + 1, (size_t)(end - quote - 1)};
    return quote != NULL;
}

// What stands before the first `stop`, or all.
static struct wr_text before(struct wr_text text, char stop) {
    const char *at = memchr(text.data, stop, text.length);
    return (struct wr_text){text.data, at != NULL ? (size_t)(at - text.data) : text.length};
}

// "GET /path?query HTTP/1.1". A request that is not of this kind has the method and path "-".
static void split_request(struct wr_text request, struct wr_text *values) {
    struct wr_text target = request, method;
    values[METHOD] = values[PATH] = wr_text_of("-");
    if (!take_until(&target, ' ', &method) || method.length == 0) return;
    target = before(before(target, ' '), '?');
    if (target.length == 0) return;
    values[METHOD] = method;
    values[PATH] = target;
}

static bool take_user(struct wr_text *rest, struct wr_text *user) {
    if (!take_until(rest, '[', user) || user->length < 2) return false;
    return user->data[--user->length] == ' ';
}

static void take_tail(struct wr_text rest, struct wr_text *values) {
    values[REFERER] = values[AGENT] = (struct wr_text){NULL, 0};
    if (!take_char(&rest, '"') || !take_quoted(&rest, &values[REFERER])) return;
    if (take_char(&rest, ' ') && take_char(&rest, '"')) take_quoted(&rest, &values[AGENT]);
}

static bool split_line(struct wr_text line, struct wr_text *values) {
    struct wr_text rest = line, ident, request;
    if (!take_until(&rest, ' ', &values[HOST]) || !take_until(&rest, ' ', &ident) ||
        !take_user(&rest, &values[USER]) || !take_until(&rest, ']', &values[TIME]) ||
        !take_char(&rest, ' ') || !take_char(&rest, '"') || !take_quoted(&rest, &request) ||
        !take_char(&rest, ' ') || !take_until(&rest, ' ', &values[STATUS]))
        return false;
    if (!take_until(&rest, ' ', &values[BYTES])) {
        values[BYTES] = rest;
        rest.length = 0;
    }
    split_request(request, values);
    take_tail(rest, values);
    return values[HOST].length > 0 && values[STATUS].length > 0 && values[BYTES].length > 0;
}

static bool split(struct wr_fields *fields, struct wr_text line, struct wr_fault *fault) {
    struct wr_text values[FIELD_COUNT];
    if (!split_line(line, values))
        return wr_fault(fault,
                        "not a line of the combined or common log format; one looks like "
                        "10.0.0.1 - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 12");
    for (size_t i = 0; i < WR_WANTED_MAX; i++)
        if (fields->wanted[i].name != NULL) fields->values[i] = values[fields->wanted[i].column];
    return true;
}

static bool begin(struct wr_fields *fields, struct wr_text first, struct wr_fault *fault) {
    struct wr_text values[FIELD_COUNT];
    (void)fields;
    return split_line(first, values) || wr_fault(fault, "not a line of the combined log format");
}

static size_t find(struct wr_fields *fields, struct wr_text first, const char *name) {
    (void)fields, (void)first;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        if (strcmp(names[i], name) == 0) return i;
    return WR_FIELD_NONE;
}

static void list(const struct wr_fields *fields, char *out, size_t room) {
    (void)fields;
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
}

static const char *parse_time(struct wr_text text, const char *field, int64_t *time_ns) {
    (void)field;
    return wr_time_combined(text, time_ns);
}

const struct wr_format wr_format_combined = {
    .name = "combined or common",
    .dash_is_zero = true,
    .time = "time",
    .begin = begin,
    .find = find,
    .list = list,
    .split = split,
    .parse_time = parse_time,
};
