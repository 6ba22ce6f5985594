// lines.h - the lines of a file or of standard input, one after the other.
//
//     struct wr_lines *lines;
//     if (!wr_lines_open(&lines, "access.log.gz", &fault)) ...
//     while ((what = wr_lines_next(lines, &line, &fault)) != WR_LINE_END) ...
//     wr_lines_close(lines);
//
// Memory is fixed, whatever the length of the file or of a line. A line ends with LF or CRLF, the
// last one also with the file. One thread per reader.
#ifndef WR_LINES_H
#define WR_LINES_H

#include <stdint.h>

#include "source.h"
#include "text.h"

#define WR_LINE_MAX_BYTES ((size_t)1 << 20)

enum wr_line {
    WR_LINE_END = 0,  // that was all
    WR_LINE_READ,     // a line, without its end; stays until the next call
    WR_LINE_TOO_LONG, // a line of more than WR_LINE_MAX_BYTES was passed over
    WR_LINE_BROKEN,   // the rest cannot be read: `fault` has the words, with the name and the line
};

struct wr_lines;

// "-" is standard input. A mark of UTF-8 (a BOM) at the start is passed over.
bool wr_lines_open(struct wr_lines **lines, const char *path, struct wr_fault *fault);
void wr_lines_close(struct wr_lines *lines);

enum wr_line wr_lines_next(struct wr_lines *lines, struct wr_text *line, struct wr_fault *fault);

// Of the line that came last; the first has number 1.
uint64_t wr_lines_number(const struct wr_lines *lines);

const struct wr_source *wr_lines_source(const struct wr_lines *lines);

#endif
