// format_ndjson.c - one JSON object a line.
#include "format.h"

#include "json_scan.h"
#include "timestamp.h"

static bool begin(struct wr_fields *fields, struct wr_text first, struct wr_fault *fault) {
    return wr_json_scan(fields, first, fault);
}

// By its name, and only if the first line has it. The last wanted place serves for the question;
// a caller asks before it is in use.
static size_t find(struct wr_fields *fields, struct wr_text first, const char *name) {
    struct wr_fault ignored;
    struct wr_wanted *place = &fields->wanted[WR_WANTED_MAX - 1];
    struct wr_wanted kept = *place;
    place->name = name;
    bool found =
        wr_json_scan(fields, first, &ignored) && fields->values[WR_WANTED_MAX - 1].data != NULL;
    *place = kept;
    return found ? 0 : WR_FIELD_NONE;
}

static void list(const struct wr_fields *fields, char *out, size_t room) {
    (void)fields;
    size_t used = strlen(out);
    snprintf(out + used, room - used, "the members of the objects, dotted where they are nested");
}

const struct wr_format wr_format_ndjson = {
    .name = "ndjson",
    .is_open = true,
    .begin = begin,
    .find = find,
    .list = list,
    .split = wr_json_scan,
    .parse_time = wr_time_any,
};
