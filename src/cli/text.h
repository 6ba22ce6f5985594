// text.h - a run of bytes that belongs to somebody else, and why something was refused.
#ifndef WR_TEXT_H
#define WR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

// Not terminated; may hold any bytes. `data` is NULL for "there is none".
struct wr_text {
    const char *data;
    size_t length;
};

static inline struct wr_text wr_text_of(const char *string) {
    struct wr_text text = {string, strlen(string)};
    return text;
}

static inline bool wr_text_is(struct wr_text text, const char *string) {
    size_t length = strlen(string);
    return text.length == length && memcmp(text.data, string, length) == 0;
}

// Appends `text` to the string in `out` of `room` bytes, safe for a terminal and for JSON: a
// control character, or a byte that is not part of UTF-8, comes out as \xNN. What does not fit is
// replaced by "..."; room is at least 8.
void wr_text_show(char *out, size_t room, struct wr_text text);

// What was refused, why, and the remedy: one line, for a person.
struct wr_fault {
    char text[640];
};

// Writes the words, and returns false so that a caller can say `return wr_fault(...)`.
bool wr_fault(struct wr_fault *fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
