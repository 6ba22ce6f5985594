// json_scan.c - a recursive descent over one line; `paths` says what is left of each wanted path
// at this depth: NULL when the way here is not part of it, "" when this value is the one.
#include "json_scan.h"

#include <stdint.h>

#define MAX_DEPTH 64

struct scan {
    const char *start;
    const char *at;
    const char *end;
    struct wr_fields *fields;
    struct wr_fault *fault;
    int depth;
};

struct paths {
    const char *rest[WR_WANTED_MAX];
};

static bool scan_value(struct scan *s, const struct paths *paths);

static bool refuse(const struct scan *s, const char *what) {
    return wr_fault(s->fault, "not a JSON object: %s at byte %zu", what,
                    (size_t)(s->at - s->start) + 1);
}

static void skip_space(struct scan *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool take(struct scan *s, char wanted) {
    if (s->at == s->end || *s->at != wanted) return false;
    s->at++;
    return true;
}

static bool is_digit(const struct scan *s) {
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool take_hex4(struct scan *s, uint32_t *code) {
    *code = 0;
    if (s->end - s->at < 4) return false;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(*s->at++);
        if (digit < 0) return false;
        *code = *code << 4 | (uint32_t)digit;
    }
    return true;
}

// At most as many bytes as the escape has.
static size_t put_utf8(char *out, uint32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00u >> length & 0xffu) | code);
    return length;
}

// What follows "\u"; a character beyond 16 bits is written as two escapes.
static bool take_code(struct scan *s, char *out, size_t *length) {
    uint32_t code, low;
    if (!take_hex4(s, &code) || code == 0) return false;
    if (code >= 0xdc00 && code <= 0xdfff) return false;
    if (code >= 0xd800 && code <= 0xdbff) {
        if (!take(s, '\\') || !take(s, 'u') || !take_hex4(s, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *length += put_utf8(out + *length, code);
    return true;
}

static bool take_escape(struct scan *s, char *out, size_t *length) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (s->at == s->end) return false;
    char letter = *s->at++;
    if (letter == 'u') return take_code(s, out, length);
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found == NULL) return false;
    out[(*length)++] = meanings[found - letters];
    return true;
}

// The rest of a string with escapes, of which the bytes from `start` have none so far.
static bool unescape(struct scan *s, const char *start, struct wr_text *string) {
    char *out = wr_fields_scratch(s->fields);
    size_t length = (size_t)(s->at - start);
    memcpy(out, start, length);
    while (s->at < s->end && *s->at != '"') {
        if ((unsigned char)*s->at < 0x20) return refuse(s, "a control character in a string");
        if (*s->at != '\\') out[length++] = *s->at++;
        else if (s->at++, !take_escape(s, out, &length)) return refuse(s, "an unknown escape");
    }
    *string = (struct wr_text){out, length};
    s->fields->scratch_used += length;
    return take(s, '"') || refuse(s, "a string that does not end");
}

static bool take_string(struct scan *s, struct wr_text *string) {
    const char *start = s->at + 1;
    if (!take(s, '"')) return refuse(s, "a missing '\"'");
    while (s->at < s->end && *s->at != '"' && *s->at != '\\') {
        if ((unsigned char)*s->at < 0x20) return refuse(s, "a control character in a string");
        s->at++;
    }
    if (s->at < s->end && *s->at == '\\') return unescape(s, start, string);
    *string = (struct wr_text){start, (size_t)(s->at - start)};
    return take(s, '"') || refuse(s, "a string that does not end");
}

static bool take_digits(struct scan *s) {
    if (!is_digit(s)) return false;
    while (is_digit(s)) s->at++;
    return true;
}

static bool take_number(struct scan *s) {
    take(s, '-');
    if (!take(s, '0') && !take_digits(s)) return false;
    if (take(s, '.') && !take_digits(s)) return false;
    if (!take(s, 'e') && !take(s, 'E')) return true;
    if (!take(s, '+')) take(s, '-');
    return take_digits(s);
}

static bool take_word(struct scan *s, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) return false;
    s->at += length;
    return true;
}

static void store(struct scan *s, const struct paths *paths, struct wr_text value) {
    for (size_t i = 0; i < WR_WANTED_MAX; i++)
        if (paths->rest[i] != NULL && paths->rest[i][0] == '\0') s->fields->values[i] = value;
}

// What is left of each path behind the member `name`.
static void descend(struct paths *into, const struct paths *paths, struct wr_text name) {
    for (size_t i = 0; i < WR_WANTED_MAX; i++) {
        const char *rest = paths->rest[i];
        into->rest[i] = NULL;
        if (rest == NULL || strncmp(rest, name.data, name.length) != 0) continue;
        if (rest[name.length] == '\0' && rest[0] != '\0') into->rest[i] = rest + name.length;
        else if (rest[name.length] == '.') into->rest[i] = rest + name.length + 1;
    }
}

static bool scan_member(struct scan *s, const struct paths *paths) {
    struct wr_text name;
    struct paths below;
    skip_space(s);
    if (!take_string(s, &name)) return false;
    descend(&below, paths, name);
    skip_space(s);
    if (!take(s, ':')) return refuse(s, "a missing ':'");
    return scan_value(s, &below);
}

// What follows the bracket that opens an object, or an array, whose elements have no names.
static bool scan_members(struct scan *s, const struct paths *paths, char close) {
    static const struct paths none;
    skip_space(s);
    if (take(s, close)) return true;
    do {
        bool fine = close == '}' ? scan_member(s, paths) : scan_value(s, &none);
        if (!fine) return false;
        skip_space(s);
    } while (take(s, ','));
    return take(s, close) ||
           refuse(s, close == '}' ? "a missing ',' or '}'" : "a missing ',' or ']'");
}

static bool scan_inner(struct scan *s, const struct paths *paths) {
    store(s, paths, (struct wr_text){NULL, 0});
    if (s->depth == MAX_DEPTH) return refuse(s, "more than 64 levels");
    s->depth++;
    char close = *s->at++ == '{' ? '}' : ']';
    bool fine = scan_members(s, paths, close);
    s->depth--;
    return fine;
}

static bool scan_scalar(struct scan *s, const struct paths *paths) {
    struct wr_text value = {s->at, 0};
    if (*s->at == '"') {
        if (!take_string(s, &value)) return false;
    } else if (take_word(s, "null")) {
        value.data = NULL;
    } else if (take_word(s, "true") || take_word(s, "false") || take_number(s)) {
        value.length = (size_t)(s->at - value.data);
    } else {
        return refuse(s, "no value");
    }
    store(s, paths, value);
    return true;
}

static bool scan_value(struct scan *s, const struct paths *paths) {
    skip_space(s);
    if (s->at == s->end) return refuse(s, "the end where a value should be");
    return *s->at == '{' || *s->at == '[' ? scan_inner(s, paths) : scan_scalar(s, paths);
}

bool wr_json_scan(struct wr_fields *fields, struct wr_text text, struct wr_fault *fault) {
    struct scan s = {text.data, text.data, text.data + text.length, fields, fault, 0};
    struct paths paths;
    fields->scratch_used = 0;
    memset(fields->values, 0, sizeof(fields->values));
    for (size_t i = 0; i < WR_WANTED_MAX; i++) paths.rest[i] = fields->wanted[i].name;
    skip_space(&s);
    if (s.at == s.end || *s.at != '{') return refuse(&s, "no '{'");
    if (!scan_inner(&s, &paths)) return false;
    skip_space(&s);
    return s.at == s.end || refuse(&s, "text after the object");
}
