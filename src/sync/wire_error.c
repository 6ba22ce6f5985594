// Error replies by kind. A reply names its kind in its first word, with two exceptions: a Redis
// before 7 hides the kind of an error inside a script in "ERR Error running script ... -KIND ...",
// and one that wants a password calls a command of more than ten words a protocol error.
#include "wire.h"

#include <string.h>

static const struct {
    const char *name;
    enum wr_wire_reaction reaction;
    const char *text;
} errors[WR_WIRE_ERRORS_COUNT] = {
#define ENTRY(name, reaction, text) {#name, WR_WIRE_##reaction, text},
    WR_WIRE_ERRORS(ENTRY)
#undef ENTRY
};

// Reads words and numbers from a text that need not end in a 0.
struct reader {
    const char *at;
    const char *end;
};

static bool skip_spaces(struct reader *reader) {
    const char *from = reader->at;
    while (reader->at < reader->end && *reader->at == ' ') reader->at++;
    return reader->at != from;
}

static size_t word_bytes(const struct reader *reader) {
    const void *space = memchr(reader->at, ' ', (size_t)(reader->end - reader->at));
    return (size_t)((space != NULL ? (const char *)space : reader->end) - reader->at);
}

static bool read_number(struct reader *reader, uint32_t most, uint32_t *number) {
    uint64_t value = 0;
    const char *from = reader->at;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        value = value * 10 + (uint64_t)(*reader->at - '0');
        if (value > most) return false;
    }
    *number = (uint32_t)value;
    return reader->at != from;
}

static enum wr_wire_error kind_of_word(const char *word, size_t bytes) {
    for (unsigned i = 0; i < WR_WIRE_ERRORS_COUNT; i++)
        if (strlen(errors[i].name) == bytes && memcmp(errors[i].name, word, bytes) == 0)
            return (enum wr_wire_error)i;
    return WR_WIRE_UNKNOWN;
}

static bool starts_with(const struct reader *reader, const char *lead) {
    const size_t bytes = strlen(lead);
    return (size_t)(reader->end - reader->at) >= bytes && memcmp(reader->at, lead, bytes) == 0;
}

static enum wr_wire_error kind_behind_err(struct reader reader) {
    if (starts_with(&reader, "ERR Protocol error: unauthenticated")) return WR_WIRE_NOAUTH;
    if (!starts_with(&reader, "ERR Error running script")) return WR_WIRE_ERR;
    for (; reader.at < reader.end; reader.at++) {
        if (*reader.at != '-' || reader.at[-1] != ' ') continue;
        struct reader word = {reader.at + 1, reader.end};
        enum wr_wire_error kind = kind_of_word(word.at, word_bytes(&word));
        if (kind != WR_WIRE_UNKNOWN) return kind;
    }
    return WR_WIRE_ERR;
}

enum wr_wire_error wr_wire_error_of(const char *text, size_t bytes) {
    if (bytes == 0) return WR_WIRE_UNKNOWN;
    struct reader reader = {text, text + bytes};
    enum wr_wire_error kind = kind_of_word(text, word_bytes(&reader));
    return kind == WR_WIRE_ERR ? kind_behind_err(reader) : kind;
}

enum wr_wire_reaction wr_wire_reaction_of(enum wr_wire_error error) {
    return errors[error].reaction;
}

const char *wr_wire_error_name(enum wr_wire_error error) {
    return errors[error].name;
}

const char *wr_wire_error_text(enum wr_wire_error error) {
    return errors[error].text;
}

static const char *last_colon(const char *from, const char *end) {
    while (end > from && end[-1] != ':') end--;
    return end > from ? end - 1 : NULL;
}

// "MOVED 3999 host:port"; IPv6 without brackets, so the last colon parts them.
bool wr_wire_redirect_of(const char *text, size_t bytes, struct wr_wire_redirect *redirect) {
    if (bytes == 0) return false;
    struct reader reader = {text, text + bytes};
    reader.at += word_bytes(&reader);
    if (!skip_spaces(&reader) || !read_number(&reader, 16383, &redirect->slot)) return false;
    if (!skip_spaces(&reader)) return false;
    const char *host_end = last_colon(reader.at, reader.end);
    if (host_end == NULL || (size_t)(host_end - reader.at) >= sizeof redirect->host) return false;
    const size_t host_bytes = (size_t)(host_end - reader.at);
    if (memchr(reader.at, 0, host_bytes) != NULL || memchr(reader.at, ' ', host_bytes) != NULL)
        return false;
    struct reader tail = {host_end + 1, reader.end};
    uint32_t port;
    if (!read_number(&tail, 65535, &port) || port == 0 || tail.at != tail.end) return false;
    memcpy(redirect->host, reader.at, host_bytes);
    redirect->host[host_bytes] = 0;
    redirect->port = (uint16_t)port;
    return true;
}

size_t wr_wire_bad_keys(const char *text, size_t bytes, size_t count, uint16_t *indices) {
    if (bytes == 0) return 0;
    struct reader reader = {text, text + bytes};
    reader.at += word_bytes(&reader);
    size_t found = 0;
    while (skip_spaces(&reader) && reader.at < reader.end) {
        uint32_t index;
        if (!read_number(&reader, WR_WIRE_REPORTS_MAX, &index) || index == 0 || index > count)
            return 0;
        if (found == WR_WIRE_BAD_KEYS_MAX || (found > 0 && index - 1 <= indices[found - 1]))
            return 0;
        indices[found++] = (uint16_t)(index - 1);
    }
    return reader.at == reader.end ? found : 0;
}
