// record.c - from the fields that a format finds to a record.
//
// `wanted` has the time, the cost and the weight at fixed places, then the key's parts.
#include "record.h"

#include <stdlib.h>

#include "format.h"
#include "rate.h"
#include "values.h"

enum place { TIME, COST, WEIGHT, KEY };

#define UNKNOWN_LINES_MAX 20 // lines of no known format before a file is given up
#define TIME_TEXT_MAX 40     // times up to this length are remembered
#define SHOWN_MAX 100        // bytes of a value in the words
#define JOINED_MAX (2 * WR_LINE_MAX_BYTES + WR_KEY_PARTS)

static const char *const usual_times[] = {
    "time", "time_ns", "timestamp", "@timestamp", "ts", "datetime", NULL,
};
static const char *const usual_keys[] = {"host", "key", "user", "ip", "remote_addr", NULL};

struct names {
    char *key;       // as given
    char *key_words; // the same, cut at the commas: `parts` point into it
    char *parts[WR_KEY_PARTS];
    size_t part_count;
    char *time;
    char *cost; // NULL: `fixed_cost`
    char *weight;
};

struct wr_reader {
    const struct wr_format *forced; // NULL: by the first line
    const struct wr_format *format; // NULL: not known yet
    struct names names;
    const char *usual_key; // what stands for the key where it is not named
    uint64_t fixed_cost;
    size_t key_count;
    unsigned unknown_lines;
    // The time that came last, and its text: lines of one second mostly share it.
    int64_t last_time_ns;
    size_t last_time_length;
    char last_time[TIME_TEXT_MAX];
    struct wr_fields fields;
    char joined[JOINED_MAX];
};

// ---------------------------------------------------------------------------------------------
// Options

static bool is_number(const char *text) {
    return (text[0] >= '0' && text[0] <= '9') || text[0] == '-' || text[0] == '.';
}

static bool copy_name(const char *name, const char *option, char **copy, struct wr_fault *fault) {
    if (name == NULL) return true;
    if (name[0] == '\0')
        return wr_fault(fault, "-%c, --%s is empty; name a field, such as --%s bytes", option[0],
                        option, option);
    *copy = strdup(name);
    return *copy != NULL || wr_fault(fault, "no memory");
}

static bool add_part(struct names *names, char *part, struct wr_fault *fault) {
    if (part[0] == '\0')
        return wr_fault(fault, "-k, --key: a field without a name; write --key host,path");
    if (names->part_count == WR_KEY_PARTS)
        return wr_fault(fault, "-k, --key: more than %d fields; name fewer", WR_KEY_PARTS);
    for (size_t i = 0; i < names->part_count; i++)
        if (strcmp(names->parts[i], part) == 0)
            return wr_fault(fault, "-k, --key: '%.100s' stands there twice; name it once", part);
    names->parts[names->part_count++] = part;
    return true;
}

static bool split_key(struct names *names, const char *key, struct wr_fault *fault) {
    if (key == NULL) return true;
    names->key = strdup(key);
    names->key_words = strdup(key);
    if (names->key == NULL || names->key_words == NULL) return wr_fault(fault, "no memory");
    char *rest = names->key_words;
    while (rest != NULL)
        if (!add_part(names, strsep(&rest, ","), fault)) return false;
    return true;
}

static bool set_cost(struct wr_reader *reader, const char *cost, struct wr_fault *fault) {
    reader->fixed_cost = 1;
    if (cost == NULL) return true;
    if (is_number(cost)) return wr_count_parse(cost, "cost", &reader->fixed_cost, fault);
    return copy_name(cost, "cost", &reader->names.cost, fault);
}

static bool set_weight(struct wr_reader *reader, const char *weight, struct wr_fault *fault) {
    if (weight != NULL && is_number(weight))
        return wr_fault(fault,
                        "--weight %.100s: the weight is a field of the log, such as --weight "
                        "plan; for all keys alike change --rate and --burst",
                        weight);
    return copy_name(weight, "weight", &reader->names.weight, fault);
}

static const struct wr_format *format_of(enum wr_log_format format) {
    switch (format) {
    case WR_LOG_COMBINED:
    case WR_LOG_COMMON: return &wr_format_combined;
    case WR_LOG_CSV: return &wr_format_csv;
    case WR_LOG_NDJSON: return &wr_format_ndjson;
    case WR_LOG_AUTO: break;
    }
    return NULL;
}

// ---------------------------------------------------------------------------------------------
// Finding the fields in a file

static bool unknown_field(struct wr_reader *reader, const char *name, struct wr_fault *fault) {
    char known[400] = "";
    reader->format->list(&reader->fields, known, sizeof(known));
    return wr_fault(fault, "there is no field '%.100s' in a log of the format %s; name one of %s",
                    name, reader->format->name, known);
}

static bool want(struct wr_reader *reader, struct wr_text first, size_t place, const char *name,
                 struct wr_fault *fault) {
    struct wr_wanted *wanted = &reader->fields.wanted[place];
    size_t column = reader->format->find(&reader->fields, first, name);
    if (column == WR_FIELD_NONE && !reader->format->is_open)
        return unknown_field(reader, name, fault);
    *wanted = (struct wr_wanted){name, column};
    return true;
}

// The first of `usual` that the file has, or NULL.
static const char *find_usual(struct wr_reader *reader, struct wr_text first,
                              const char *const *usual) {
    while (*usual != NULL && reader->format->find(&reader->fields, first, *usual) == WR_FIELD_NONE)
        usual++;
    return *usual;
}

static bool want_time(struct wr_reader *reader, struct wr_text first, struct wr_fault *fault) {
    const char *name = reader->names.time;
    if (name == NULL) name = find_usual(reader, first, usual_times);
    if (name == NULL)
        return wr_fault(fault, "no field for the time (time, timestamp, ts, ...); name it: --time "
                               "FIELD");
    return want(reader, first, TIME, name, fault);
}

static bool want_key(struct wr_reader *reader, struct wr_text first, struct wr_fault *fault) {
    reader->key_count = reader->names.part_count;
    for (size_t i = 0; i < reader->key_count; i++)
        if (!want(reader, first, KEY + i, reader->names.parts[i], fault)) return false;
    if (reader->key_count > 0) return true;
    const char *usual = find_usual(reader, first, usual_keys);
    if (usual == NULL)
        return wr_fault(fault, "no field for the key (host, key, user, ...); name it: --key FIELD");
    reader->usual_key = usual;
    reader->key_count = 1;
    return want(reader, first, KEY, usual, fault);
}

// Makes `format` the file's. False leaves it unknown.
static bool bind(struct wr_reader *reader, const struct wr_format *format, struct wr_text first,
                 struct wr_fault *fault) {
    const struct names *names = &reader->names;
    reader->format = format;
    memset(reader->fields.wanted, 0, sizeof(reader->fields.wanted));
    bool fine = want_time(reader, first, fault) &&
                (names->cost == NULL || want(reader, first, COST, names->cost, fault)) &&
                (names->weight == NULL || want(reader, first, WEIGHT, names->weight, fault)) &&
                want_key(reader, first, fault);
    if (!fine) reader->format = NULL;
    return fine;
}

static bool has_time(struct wr_reader *reader, const struct wr_format *format,
                     struct wr_text first) {
    const char *named[] = {reader->names.time, NULL};
    reader->format = format;
    bool found =
        find_usual(reader, first, named) != NULL || find_usual(reader, first, usual_times) != NULL;
    reader->format = NULL;
    return found;
}

static const struct wr_format *detect(struct wr_reader *reader, struct wr_text line,
                                      struct wr_fault *fault) {
    const char *at = line.data;
    if (reader->forced != NULL) return reader->forced;
    while (at < line.data + line.length && *at == ' ') at++;
    if (at < line.data + line.length && *at == '{') return &wr_format_ndjson;
    if (wr_format_combined.begin(&reader->fields, line, fault)) return &wr_format_combined;
    if (wr_format_csv.begin(&reader->fields, line, fault) && has_time(reader, &wr_format_csv, line))
        return &wr_format_csv;
    wr_fault(fault, "neither a line of a combined or common log, nor a JSON object, nor the header "
                    "of a CSV that names its time; say what it is: --format, --time");
    return NULL;
}

// The line that tells what the file is.
static enum wr_read read_first(struct wr_reader *reader, struct wr_text line,
                               struct wr_fault *fault) {
    const struct wr_format *format = detect(reader, line, fault);
    bool known = format != NULL && format->begin(&reader->fields, line, fault);
    if (known && bind(reader, format, line, fault)) return WR_READ_NOTHING;
    if (known && !format->is_open) return WR_READ_STOP;
    return ++reader->unknown_lines < UNKNOWN_LINES_MAX ? WR_READ_SKIPPED : WR_READ_STOP;
}

// ---------------------------------------------------------------------------------------------
// Values

static bool refuse_value(const struct wr_reader *reader, size_t place, const char *wrong,
                         struct wr_fault *fault) {
    char shown[SHOWN_MAX] = "";
    wr_text_show(shown, sizeof(shown), reader->fields.values[place]);
    return wr_fault(fault, "%.100s '%s': %s", reader->fields.wanted[place].name, shown, wrong);
}

static bool check_present(const struct wr_reader *reader, struct wr_fault *fault) {
    for (size_t i = 0; i < KEY + reader->key_count; i++) {
        const char *name = reader->fields.wanted[i].name;
        if (name != NULL && reader->fields.values[i].data == NULL)
            return wr_fault(fault, "no field '%.100s' on this line", name);
    }
    return true;
}

static bool read_time(struct wr_reader *reader, int64_t *time_ns, struct wr_fault *fault) {
    struct wr_text text = reader->fields.values[TIME];
    if (text.length > 0 && text.length == reader->last_time_length &&
        memcmp(text.data, reader->last_time, text.length) == 0) {
        *time_ns = reader->last_time_ns;
        return true;
    }
    const char *wrong = reader->format->parse_time(text, reader->fields.wanted[TIME].name, time_ns);
    if (wrong != NULL) return refuse_value(reader, TIME, wrong, fault);
    if (text.length > sizeof(reader->last_time)) return true;
    memcpy(reader->last_time, text.data, text.length);
    reader->last_time_length = text.length;
    reader->last_time_ns = *time_ns;
    return true;
}

static bool read_cost(const struct wr_reader *reader, uint64_t *cost, struct wr_fault *fault) {
    *cost = reader->fixed_cost;
    if (reader->names.cost == NULL) return true;
    if (reader->format->dash_is_zero && wr_text_is(reader->fields.values[COST], "-")) {
        *cost = 0;
        return true;
    }
    const char *wrong = wr_cost_value(reader->fields.values[COST], cost);
    return wrong == NULL || refuse_value(reader, COST, wrong, fault);
}

static bool read_weight(const struct wr_reader *reader, struct weir_weight *weight,
                        struct wr_fault *fault) {
    *weight = (struct weir_weight){1, 1};
    if (reader->names.weight == NULL) return true;
    const char *wrong = wr_weight_value(reader->fields.values[WEIGHT], weight);
    return wrong == NULL || refuse_value(reader, WEIGHT, wrong, fault);
}

static struct wr_text join_key(struct wr_reader *reader) {
    char *out = reader->joined;
    if (reader->key_count == 1) return reader->fields.values[KEY];
    for (size_t i = 0; i < reader->key_count; i++) {
        struct wr_text part = reader->fields.values[KEY + i];
        if (i > 0) *out++ = '|';
        for (size_t j = 0; j < part.length; j++) {
            if (part.data[j] == '|' || part.data[j] == '\\') *out++ = '\\';
            *out++ = part.data[j];
        }
    }
    return (struct wr_text){reader->joined, (size_t)(out - reader->joined)};
}

static enum wr_read read_record(struct wr_reader *reader, struct wr_text line,
                                struct wr_record *record, struct wr_fault *fault) {
    if (!reader->format->split(&reader->fields, line, fault) || !check_present(reader, fault) ||
        !read_time(reader, &record->time_ns, fault) || !read_cost(reader, &record->cost, fault) ||
        !read_weight(reader, &record->weight, fault))
        return WR_READ_SKIPPED;
    record->key = join_key(reader);
    return WR_READ_RECORD;
}

enum wr_read wr_reader_read(struct wr_reader *reader, struct wr_text line, struct wr_record *record,
                            struct wr_fault *fault) {
    if (line.length == 0) return WR_READ_NOTHING;
    if (memchr(line.data, '\0', line.length) != NULL) {
        wr_fault(fault, "binary data (a NUL byte), no text of a log");
        bool give_up = reader->format == NULL && ++reader->unknown_lines == UNKNOWN_LINES_MAX;
        return give_up ? WR_READ_STOP : WR_READ_SKIPPED;
    }
    if (reader->format == NULL) {
        enum wr_read what = read_first(reader, line, fault);
        if (what != WR_READ_NOTHING || reader->format->has_header) return what;
    }
    return read_record(reader, line, record, fault);
}

// ---------------------------------------------------------------------------------------------
// Making

void wr_reader_begin(struct wr_reader *reader) {
    reader->format = NULL;
    reader->unknown_lines = 0;
    reader->last_time_length = 0;
}

static bool set_up(struct wr_reader *reader, const struct wr_reader_options *options,
                   struct wr_fault *fault) {
    struct wr_text none = {"", 0};
    reader->forced = format_of(options->format);
    reader->usual_key = usual_keys[0];
    if (!split_key(&reader->names, options->key, fault) ||
        !copy_name(options->time, "time", &reader->names.time, fault) ||
        !set_cost(reader, options->cost, fault) || !set_weight(reader, options->weight, fault))
        return false;
    // The fields of this format are known before a line of it is seen.
    bool fine = reader->forced != &wr_format_combined || bind(reader, reader->forced, none, fault);
    reader->format = NULL;
    return fine;
}

bool wr_reader_create(struct wr_reader **reader, const struct wr_reader_options *options,
                      struct wr_fault *fault) {
    struct wr_reader *made = calloc(1, sizeof(*made));
    *reader = NULL;
    if (made == NULL) return wr_fault(fault, "no memory to read a log");
    if (!set_up(made, options, fault)) {
        wr_reader_destroy(made);
        return false;
    }
    *reader = made;
    return true;
}

void wr_reader_destroy(struct wr_reader *reader) {
    if (reader == NULL) return;
    free(reader->names.key);
    free(reader->names.key_words);
    free(reader->names.time);
    free(reader->names.cost);
    free(reader->names.weight);
    free(reader);
}

const char *wr_reader_format(const struct wr_reader *reader) {
    return reader->format != NULL ? reader->format->name : NULL;
}

const char *wr_reader_key(const struct wr_reader *reader) {
    return reader->names.part_count > 0 ? reader->names.key : reader->usual_key;
}
