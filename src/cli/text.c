// text.c - bytes from a log made safe for a terminal and for JSON; refusals in words.
#include "text.h"

#include <stdarg.h>
#include <stdint.h>

// How many bytes the UTF-8 character at `s` takes, of `left`; 0 where there is none. Overlong
// forms, surrogates and numbers above U+10FFFF are none.
static size_t utf8_length(const unsigned char *s, size_t left) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length <= 1) return length;
    if (length > left || s[0] > 0xf4) return 0;
    uint32_t code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    if (code < smallest[length] || code > 0x10ffff) return 0;
    return code >= 0xd800 && code <= 0xdfff ? 0 : length;
}

// C1 controls (U+0080 to U+009F) move cursors too.
static bool is_control(const unsigned char *s, size_t length) {
    if (length == 1) return s[0] < 0x20 || s[0] == 0x7f;
    return length == 2 && s[0] == 0xc2 && s[1] < 0xa0;
}

void wr_text_show(char *out, size_t room, struct wr_text text) {
    const unsigned char *s = (const unsigned char *)text.data;
    size_t used = strlen(out);
    size_t cut = used; // where the "..." can still go
    for (size_t i = 0; i < text.length;) {
        size_t length = utf8_length(s + i, text.length - i);
        bool plain = length != 0 && !is_control(s + i, length);
        size_t takes = plain ? length : 4;
        if (used + takes >= room) {
            snprintf(out + cut, room - cut, "...");
            return;
        }
        if (plain) memcpy(out + used, s + i, length);
        else snprintf(out + used, room - used, "\\x%02x", s[i]);
        used += takes;
        i += plain ? length : 1;
        if (used + 4 <= room) cut = used;
    }
    out[used] = '\0';
}

bool wr_fault(struct wr_fault *fault, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof(fault->text), format, arguments);
    va_end(arguments);
    return false;
}
