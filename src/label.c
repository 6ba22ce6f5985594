// Label values: UTF-8 is kept, all else is made visible.
#include "label.h"

// The length of the UTF-8 character at `bytes`; 0 where there is none. Shortest forms only, no
// surrogates, nothing above U+10FFFF.
static size_t character_length(const unsigned char *bytes, size_t left) {
    const unsigned char first = bytes[0];
    size_t length = 0;
    if (first < 0x80) length = 1;
    else if (first >= 0xC2 && first < 0xE0) length = 2;
    else if (first >= 0xE0 && first < 0xF0) length = 3;
    else if (first >= 0xF0 && first < 0xF5) length = 4;
    if (length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xC0) != 0x80) return 0;
    if (first == 0xE0 && bytes[1] < 0xA0) return 0;
    if (first == 0xED && bytes[1] >= 0xA0) return 0;
    if (first == 0xF0 && bytes[1] < 0x90) return 0;
    if (first == 0xF4 && bytes[1] >= 0x90) return 0;
    return length;
}

void wr_label_put(struct wr_text *t, const char *bytes, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char *next = (const unsigned char *)bytes + i;
        const size_t character = character_length(next, length - i);
        i += character != 0 ? character : 1;
        if (*next == '\n') {
            wr_text_put(t, "\\n");
        } else if (character == 0 || *next < ' ' || *next == 0x7F) {
            wr_text_put(t, "\\\\x");
            wr_text_hex(t, "0123456789abcdef", *next);
        } else {
            if (*next == '"' || *next == '\\') wr_text_byte(t, '\\');
            wr_text_bytes(t, (const char *)next, character);
        }
    }
}

#define LONGEST (WEIR_TOP_NAME_BYTES * 5 + 1) // each byte as \\xNN

bool wr_label_same(const char *a, size_t a_length, const char *b, size_t b_length) {
    char values[2][LONGEST];
    struct wr_text left = {values[0], LONGEST, 0};
    struct wr_text right = {values[1], LONGEST, 0};
    wr_label_put(&left, a, a_length);
    wr_label_put(&right, b, b_length);
    return left.length == right.length && memcmp(values[0], values[1], left.length) == 0;
}
