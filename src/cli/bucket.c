// bucket.c - names of buckets taken apart; keys and demand for people.
#include "bucket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ID_BYTES 8

// Keys ----------------------------------------------------------------------------------------

static bool parse_id(const char *text, struct wr_bucket_key *key) {
    char *end;
    if (strncmp(text, "id:", 3) != 0 || text[3] < '0' || text[3] > '9') return false;
    errno = 0;
    const uint64_t id = strtoull(text + 3, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    for (size_t i = 0; i < ID_BYTES; i++) key->bytes[i] = (char)(id >> 8 * i);
    key->length = ID_BYTES;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The byte that \xNN at `text` stands for; -1: it is none.
static int escaped(const char *text) {
    if (text[0] != '\\' || text[1] != 'x') return -1;
    const int high = hex_digit(text[2]), low = high < 0 ? -1 : hex_digit(text[3]);
    return low < 0 ? -1 : high * 16 + low;
}

// The next byte of the text that is written as people do.
static char next_byte(const char **text) {
    const int byte = escaped(*text);
    const char plain = **text;
    *text += byte < 0 ? 1 : 4;
    return byte < 0 ? plain : (char)byte;
}

static void set_bytes(struct wr_bucket_key *key, const void *bytes, size_t length) {
    XXH128_canonical_t name;
    key->length = length;
    if (length > WR_WIRE_KEY_MAX) { // as nodes name it
        XXH128_canonicalFromHash(&name, XXH3_128bits(bytes, length));
        bytes = name.digest;
        key->length = sizeof name.digest;
    }
    memcpy(key->bytes, bytes, key->length);
}

bool wr_bucket_key_parse(const char *text, struct wr_bucket_key *key, struct wr_fault *fault) {
    size_t length = 0;
    if (parse_id(text, key)) return true;
    char *bytes = malloc(strlen(text) + 1);
    if (bytes == NULL) return wr_fault(fault, "no memory for a key of %zu bytes", strlen(text));
    while (*text != '\0') bytes[length++] = next_byte(&text);
    set_bytes(key, bytes, length);
    free(bytes);
    return true;
}

static bool all_printable(struct wr_text key) {
    for (size_t i = 0; i < key.length; i++)
        if (key.data[i] < ' ' || key.data[i] > '~') return false;
    return true;
}

static uint64_t id_of(struct wr_text key) {
    uint64_t id = 0;
    for (size_t i = 0; i < ID_BYTES; i++) id |= (uint64_t)(unsigned char)key.data[i] << 8 * i;
    return id;
}

void wr_bucket_key_show(struct wr_text key, char *out) {
    out[0] = '\0';
    if (key.length == ID_BYTES && !all_printable(key)) {
        snprintf(out, WR_BUCKET_SHOWN_BYTES, "id:%" PRIu64, id_of(key));
        return;
    }
    if (key.length >= 3 && memcmp(key.data, "id:", 3) == 0) { // text that looks like an integer
        strcpy(out, "\\x69");
        key = (struct wr_text){key.data + 1, key.length - 1};
    }
    while (key.length > 0) {
        const char *slash = memchr(key.data, '\\', key.length);
        const size_t plain = slash != NULL ? (size_t)(slash - key.data) : key.length;
        const size_t skip = plain + (slash != NULL);
        wr_text_show(out, WR_BUCKET_SHOWN_BYTES, (struct wr_text){key.data, plain});
        if (slash != NULL) wr_text_show(out, WR_BUCKET_SHOWN_BYTES, wr_text_of("\\x5c"));
        key = (struct wr_text){key.data + skip, key.length - skip};
    }
}

// Names ---------------------------------------------------------------------------------------

// Takes "{12}" off the front. False: it is not there, or not as weir writes it.
static bool take_group(struct wr_text *text, uint32_t *group) {
    size_t at = 1;
    *group = 0;
    if (text->length == 0 || text->data[0] != '{') return false;
    for (; at < text->length && at <= 2 && text->data[at] >= '0' && text->data[at] <= '9'; at++)
        *group = *group * 10 + (uint32_t)(text->data[at] - '0');
    if (at == 1 || at >= text->length || text->data[at] != '}' || *group >= WR_BUCKET_GROUPS_MAX ||
        (at == 3 && *group < 10))
        return false;
    *text = (struct wr_text){text->data + at + 1, text->length - at - 1};
    return true;
}

static bool passes(struct wr_text text, bool (*name_ok)(const char *)) {
    char name[WR_WIRE_NAME_MAX + 1] = "";
    if (text.length > WR_WIRE_NAME_MAX || memchr(text.data, '\0', text.length) != NULL)
        return false;
    memcpy(name, text.data, text.length);
    return name_ok(name);
}

static bool is_limiter(struct wr_text text) {
    return passes(text, wr_wire_limiter_name_ok);
}

bool wr_bucket_is_node(struct wr_text text) {
    return passes(text, wr_wire_prefix_ok); // the same characters
}

// "limiter:rest". A limiter's name that no sync accepts is not weir's.
static void split(struct wr_text text, enum wr_bucket_what what, struct wr_bucket_name *parts) {
    const char *colon = memchr(text.data, ':', text.length);
    if (colon == NULL || !is_limiter((struct wr_text){text.data, (size_t)(colon - text.data)}))
        return;
    parts->limiter = (struct wr_text){text.data, (size_t)(colon - text.data)};
    parts->rest = (struct wr_text){colon + 1, text.length - parts->limiter.length - 1};
    parts->what = what;
}

// "limiter:node".
static void split_node(struct wr_text text, enum wr_bucket_what what,
                       struct wr_bucket_name *parts) {
    split(text, what, parts);
    if (parts->what == what && !wr_bucket_is_node(parts->rest)) parts->what = WR_BUCKET_FOREIGN;
}

// "limiter:key". Longer keys go as a hash.
static void split_key(struct wr_text text, struct wr_bucket_name *parts) {
    split(text, WR_BUCKET_ITSELF, parts);
    if (parts->rest.length > WR_WIRE_KEY_MAX) parts->what = WR_BUCKET_FOREIGN;
}

static bool starts(struct wr_text text, const char *lead) {
    return text.length > strlen(lead) && memcmp(text.data, lead, strlen(lead)) == 0;
}

static struct wr_text behind(struct wr_text text, const char *lead) {
    return (struct wr_text){text.data + strlen(lead), text.length - strlen(lead)};
}

// What nodes publish; all of it is in group 0. False: `rest` is not named like that.
static bool split_published(struct wr_text rest, struct wr_bucket_name *parts) {
    if (wr_text_is(rest, "nodes")) parts->what = WR_BUCKET_NODES;
    else if (starts(rest, "a:")) split_node(behind(rest, "a:"), WR_BUCKET_AGGREGATE, parts);
    else if (starts(rest, "d:")) split_node(behind(rest, "d:"), WR_BUCKET_DENIED, parts);
    else if (starts(rest, "t:")) split(behind(rest, "t:"), WR_BUCKET_CUT, parts);
    else if (!starts(rest, "nodes:")) return false;
    else if (is_limiter(behind(rest, "nodes:"))) parts->what = WR_BUCKET_NODES;
    return true;
}

struct wr_bucket_name wr_bucket_name_parse(struct wr_text name, const char *prefix) {
    struct wr_bucket_name parts = {WR_BUCKET_FOREIGN, 0, {NULL, 0}, {NULL, 0}};
    const size_t skip = strlen(prefix);
    if (name.length <= skip || memcmp(name.data, prefix, skip) != 0) return parts;
    struct wr_text rest = {name.data + skip, name.length - skip};
    if (!take_group(&rest, &parts.group)) return parts;
    if (parts.group == 0 && split_published(rest, &parts)) return parts;
    if (wr_text_is(rest, "e")) parts.what = WR_BUCKET_EPOCH;
    else if (starts(rest, "s:")) split_node(behind(rest, "s:"), WR_BUCKET_MARKER, &parts);
    else if (!starts(rest, "n:")) split_key(rest, &parts);
    else if (wr_bucket_is_node(behind(rest, "n:"))) parts.what = WR_BUCKET_MARKER;
    return parts;
}

// Demand --------------------------------------------------------------------------------------

struct wr_bucket_demand wr_bucket_demand(const struct wr_wire_record *record, int64_t epoch_us,
                                         int64_t now_us) {
    struct wr_bucket_demand demand = {0, 0, 0};
    if (epoch_us <= 0) return demand;
    const uint32_t epoch = (uint32_t)(now_us / epoch_us);
    if (record->epoch == epoch) {
        demand.last_epoch = record->previous_tokens;
        demand.this_epoch = record->current_tokens;
    } else if (record->epoch == epoch - 1) {
        demand.last_epoch = record->current_tokens;
    }
    const double left = 1 - (double)(now_us % epoch_us) / (double)epoch_us;
    demand.per_s = (demand.last_epoch * left + demand.this_epoch) * 1e6 / (double)epoch_us;
    return demand;
}
