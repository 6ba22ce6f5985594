// fuzz_record.c - libFuzzer: any lines, of any format, give records or words; and JSON is read as
// jansson reads it. The first byte chooses the options, the rest are the lines.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/json_scan.h"
#include "cli/record.h"
#include "cli/timestamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds) {
    if (!holds) abort();
}

static const struct wr_reader_options choices[] = {
    {.key = "host"},
    {.key = "host,path,agent", .cost = "bytes"},
    {.key = "user,method,status", .weight = "bytes", .format = WR_LOG_COMBINED},
    {.format = WR_LOG_CSV},
    {.format = WR_LOG_CSV, .key = "a,b", .time = "t", .cost = "b", .weight = "a"},
    {.format = WR_LOG_NDJSON, .key = "a.b,a", .time = "t", .cost = "c"},
    {.format = WR_LOG_NDJSON, .key = "a", .weight = "a.c"},
    {.format = WR_LOG_COMMON, .cost = "status"},
};

#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static void check_record(const struct wr_record *record) {
    // Touches each byte of the key.
    check(record->key.length == 0 || memchr(record->key.data, '\0', record->key.length) == NULL);
    check(record->cost <= INT64_MAX && record->weight.num > 0 && record->weight.den > 0);
}

// Made once each: a new file makes a reader forget the one before.
static struct wr_reader *reader_of(size_t choice) {
    static struct wr_reader *readers[CHOICES];
    struct wr_fault fault;
    if (readers[choice] == NULL)
        check(wr_reader_create(&readers[choice], &choices[choice], &fault));
    wr_reader_begin(readers[choice]);
    return readers[choice];
}

static void read_lines(struct wr_reader *reader, const char *at, const char *end) {
    struct wr_record record;
    struct wr_fault fault;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL) stop = end;
        // Its own block, so that a read beyond it is seen.
        size_t length = (size_t)(stop - at);
        char *line = malloc(length + 1);
        memcpy(line, at, length);
        char *fitted = realloc(line, length > 0 ? length : 1);
        enum wr_read what =
            wr_reader_read(reader, (struct wr_text){fitted, length}, &record, &fault);
        if (what == WR_READ_RECORD) check_record(&record);
        free(fitted);
        if (what == WR_READ_STOP) break;
        at = stop + 1;
    }
}

static void compare_member(const json_t *object, const char *name, struct wr_text value) {
    const json_t *member = json_object_get(object, name);
    json_int_t number;
    char text[32];
    if (json_is_string(member))
        check(value.data != NULL && value.length == json_string_length(member) &&
              memcmp(value.data, json_string_value(member), value.length) == 0);
    if (json_is_true(member)) check(wr_text_is(value, "true"));
    if (json_is_null(member) || json_is_array(member) || json_is_object(member))
        check(value.data == NULL);
    if (!json_is_integer(member)) return;
    check(value.data != NULL && value.length < sizeof(text));
    memcpy(text, value.data, value.length);
    text[value.length] = '\0';
    number = strtoll(text, NULL, 10);
    check(number == json_integer_value(member));
}

// What jansson takes, wr_json_scan takes, with the same values.
static void compare_with_jansson(const char *text, size_t length) {
    static struct wr_fields fields;
    static const char *const names[] = {"t", "a", "host"};
    struct wr_fault fault;
    json_error_t error;
    // jansson passes over a NUL between two tokens; the reader refuses such a line.
    if (memchr(text, '\0', length) != NULL) return;
    memset(fields.wanted, 0, sizeof(fields.wanted));
    for (size_t i = 0; i < 3; i++) fields.wanted[i].name = names[i];
    bool fine = wr_json_scan(&fields, (struct wr_text){text, length}, &fault);
    json_t *object = json_loadb(text, length, 0, &error);
    if (json_is_object(object) && !fine) check(strstr(fault.text, "64 levels") != NULL);
    for (size_t i = 0; json_is_object(object) && fine && i < 3; i++)
        compare_member(object, names[i], fields.values[i]);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int64_t time_ns;
    const char *text = (const char *)data;
    if (size < 1) return 0;
    read_lines(reader_of(data[0] % CHOICES), text + 1, text + size);
    compare_with_jansson(text + 1, size - 1);
    (void)wr_time_any((struct wr_text){text + 1, size - 1}, "t_ms", &time_ns);
    (void)wr_time_combined((struct wr_text){text + 1, size - 1}, &time_ns);
    return 0;
}
