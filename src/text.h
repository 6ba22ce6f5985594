// Text into a caller's buffer: goes on counting where the buffer ends, so that the length needed is
// known. Numbers are written here and not by printf: no locale has a say in them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weir.h"

struct wr_text {
    char *buffer;
    size_t size;
    size_t length; // of the whole text, without the '\0'
};

static inline void wr_text_bytes(struct wr_text *t, const char *bytes, size_t length) {
    if (t->length < t->size && length < t->size - t->length)
        memcpy(t->buffer + t->length, bytes, length);
    t->length += length;
}

static inline void wr_text_byte(struct wr_text *t, char byte) {
    wr_text_bytes(t, &byte, 1);
}

static inline void wr_text_put(struct wr_text *t, const char *words) {
    wr_text_bytes(t, words, strlen(words));
}

// Decimal digits, `places` of them at least.
static inline void wr_text_digits(struct wr_text *t, uint64_t number, unsigned places) {
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0 || sizeof digits - first < places);
    wr_text_bytes(t, digits + first, sizeof digits - first);
}

static inline void wr_text_number(struct wr_text *t, uint64_t number) {
    wr_text_digits(t, number, 1);
}

static inline void wr_text_hex(struct wr_text *t, const char *digits, unsigned char byte) {
    wr_text_byte(t, digits[byte >> 4]);
    wr_text_byte(t, digits[byte & 15]);
}

// Closes the text with '\0'. Where it did not fit, nothing of it is left in the buffer.
static inline int wr_text_end(const struct wr_text *t, size_t *length) {
    const bool fits = t->length < t->size;
    if (t->size != 0) t->buffer[fits ? t->length : 0] = '\0';
    if (length != NULL) *length = t->length;
    return fits ? WEIR_GRANTED : WEIR_ENOSPC;
}
