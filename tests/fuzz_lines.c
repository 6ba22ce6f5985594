// fuzz_lines.c - libFuzzer: any bytes, packed or not, are read to their end or to a named trouble;
// and bytes that were packed whole give the lines that a plain split gives.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds) {
    if (!holds) abort();
}

// A file of these bytes; `path` is its name.
static int file_of(const void *bytes, size_t size, char path[64]) {
    int fd = memfd_create("fuzz", 0);
    check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void read_anything(const uint8_t *data, size_t size) {
    struct wr_lines *lines;
    struct wr_text line;
    struct wr_fault fault;
    enum wr_line what;
    uint64_t number = 0;
    char path[64];
    int fd = file_of(data, size, path);
    if (wr_lines_open(&lines, path, &fault)) {
        while ((what = wr_lines_next(lines, &line, &fault)) == WR_LINE_READ ||
               what == WR_LINE_TOO_LONG) {
            check(wr_lines_number(lines) == ++number);
            if (what == WR_LINE_READ)
                check(line.length <= WR_LINE_MAX_BYTES &&
                      (line.length == 0 || memchr(line.data, '\n', line.length) == NULL));
        }
        wr_lines_close(lines);
    }
    close(fd);
}

// In two members.
static size_t pack(const uint8_t *data, size_t size, uint8_t *packed, size_t room) {
    size_t used = 0;
    for (int part = 0; part < 2; part++) {
        z_stream stream = {0};
        size_t from = part == 0 ? 0 : size / 2, to = part == 0 ? size / 2 : size;
        check(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        stream.next_in = (uint8_t *)(uintptr_t)(data + from);
        stream.avail_in = (uInt)(to - from);
        stream.next_out = packed + used;
        stream.avail_out = (uInt)(room - used);
        check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
        used = room - stream.avail_out;
        deflateEnd(&stream);
    }
    return used;
}

static void expect_plain_split(struct wr_lines *lines, const uint8_t *data, size_t size) {
    struct wr_text line;
    struct wr_fault fault;
    size_t at = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < size) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t stop = end != NULL ? (size_t)(end - data) : size;
        size_t length = stop - at - (stop > at && data[stop - 1] == '\r');
        check(wr_lines_next(lines, &line, &fault) == WR_LINE_READ);
        check(line.length == length && memcmp(line.data, data + at, length) == 0);
        at = stop + 1;
    }
    check(wr_lines_next(lines, &line, &fault) == WR_LINE_END);
}

static void read_packed(const uint8_t *data, size_t size) {
    struct wr_lines *lines;
    struct wr_fault fault;
    char path[64];
    size_t room = 2 * size + 256;
    uint8_t *packed = malloc(room);
    int fd = file_of(packed, pack(data, size, packed, room), path);
    check(wr_lines_open(&lines, path, &fault));
    expect_plain_split(lines, data, size);
    wr_lines_close(lines);
    close(fd);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_anything(data, size);
    read_packed(data, size);
    return 0;
}
