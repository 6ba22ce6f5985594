// lines.c - one buffer: the bytes from `at` to `end` are not handed out yet, those before `scanned`
// have no LF in them.
#include "lines.h"

#include <inttypes.h>
#include <stdlib.h>

// A line of the greatest length, its CRLF, and room to read more.
#define BUFFER_BYTES (WR_LINE_MAX_BYTES + 2 + ((size_t)256 << 10))

struct wr_lines {
    struct wr_source *source;
    uint64_t number;
    bool at_end;  // of the source
    bool passing; // over the rest of a line that is too long
    size_t at;
    size_t scanned;
    size_t end;
    char buffer[BUFFER_BYTES];
};

enum filled { FILLED, FILLED_NOT, FILLED_FAULT };

static enum filled fill(struct wr_lines *lines, struct wr_fault *fault) {
    struct wr_fault why;
    if (lines->at > 0) {
        memmove(lines->buffer, lines->buffer + lines->at, lines->end - lines->at);
        lines->end -= lines->at;
        lines->scanned -= lines->at;
        lines->at = 0;
    }
    ssize_t got =
        wr_source_read(lines->source, lines->buffer + lines->end, BUFFER_BYTES - lines->end, &why);
    if (got < 0) {
        wr_fault(fault, "%s:%" PRIu64 ": %.400s", wr_source_name(lines->source), lines->number + 1,
                 why.text);
        return FILLED_FAULT;
    }
    lines->end += (size_t)got;
    lines->at_end = got == 0;
    return got > 0 ? FILLED : FILLED_NOT;
}

static void skip_mark(struct wr_lines *lines) {
    if (lines->end >= 3 && memcmp(lines->buffer, "\xef\xbb\xbf", 3) == 0) lines->at = 3;
    lines->scanned = lines->at;
}

// Wants the first three bytes; whoever reads the first line meets an error again.
static bool begin(struct wr_lines *lines, struct wr_fault *fault) {
    while (lines->end < 3) {
        enum filled filled = fill(lines, fault);
        if (filled == FILLED_FAULT) return false;
        if (filled == FILLED_NOT) break;
    }
    skip_mark(lines);
    return true;
}

bool wr_lines_open(struct wr_lines **lines, const char *path, struct wr_fault *fault) {
    struct wr_lines *made = malloc(sizeof(*made));
    *lines = NULL;
    if (made == NULL) return wr_fault(fault, "%s: no memory to read it", path);
    memset(made, 0, offsetof(struct wr_lines, buffer));
    if (!wr_source_open(&made->source, path, fault) || !begin(made, fault)) {
        wr_lines_close(made);
        return false;
    }
    *lines = made;
    return true;
}

void wr_lines_close(struct wr_lines *lines) {
    if (lines == NULL) return;
    wr_source_close(lines->source);
    free(lines);
}

// Takes the line that ends before `stop`; the next one starts at `next`.
static enum wr_line take(struct wr_lines *lines, size_t stop, size_t next, struct wr_text *line) {
    bool too_long = lines->passing;
    size_t length = stop - lines->at;
    *line = (struct wr_text){lines->buffer + lines->at, length};
    if (length > 0 && line->data[length - 1] == '\r') line->length--;
    if (line->length > WR_LINE_MAX_BYTES) too_long = true;
    lines->at = lines->scanned = next;
    lines->passing = false;
    lines->number++;
    return too_long ? WR_LINE_TOO_LONG : WR_LINE_READ;
}

enum wr_line wr_lines_next(struct wr_lines *lines, struct wr_text *line, struct wr_fault *fault) {
    for (;;) {
        const char *from = lines->buffer + lines->scanned;
        const char *stop = memchr(from, '\n', lines->end - lines->scanned);
        if (stop != NULL) {
            size_t at = (size_t)(stop - lines->buffer);
            return take(lines, at, at + 1, line);
        }
        lines->scanned = lines->end;
        if (lines->end - lines->at > WR_LINE_MAX_BYTES + 1 || lines->passing) {
            lines->passing = true;
            lines->at = lines->end;
        }
        if (!lines->at_end && fill(lines, fault) == FILLED_FAULT) return WR_LINE_BROKEN;
        if (!lines->at_end) continue;
        if (lines->at == lines->end && !lines->passing) return WR_LINE_END;
        return take(lines, lines->end, lines->end, line);
    }
}

uint64_t wr_lines_number(const struct wr_lines *lines) {
    return lines->number;
}

const struct wr_source *wr_lines_source(const struct wr_lines *lines) {
    return lines->source;
}
