// source.c - read(2), or read(2) and inflate.
//
// The first block is read at open, to know gzip by its content; it is handed out before the rest.
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK_BYTES ((size_t)256 << 10)
#define MAGIC_BYTES 6
#define GZIP_WINDOW (15 + 16) // the largest window; a gzip header, not a zlib one

struct wr_source {
    const char *name;
    int fd;
    bool at_end; // of the file
    bool gzip;
    bool in_member; // gzip: the next byte belongs to a member that has begun
    uint64_t offset_bytes;
    uint64_t size_bytes;
    z_stream stream;
    size_t block_at;
    size_t block_end;
    unsigned char block[BLOCK_BYTES];
};

static ssize_t read_fd(struct wr_source *source, void *buffer, size_t room,
                       struct wr_fault *fault) {
    ssize_t got;
    do got = read(source->fd, buffer, room);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        wr_fault(fault, "cannot be read: %s", strerror(errno));
        return -1;
    }
    source->at_end = got == 0;
    source->offset_bytes += (uint64_t)got;
    return got;
}

// The block is empty.
static bool fill_block(struct wr_source *source, struct wr_fault *fault) {
    ssize_t got = read_fd(source, source->block, BLOCK_BYTES, fault);
    source->block_at = 0;
    source->block_end = got > 0 ? (size_t)got : 0;
    return got >= 0;
}

// A pipe may give a byte at a time.
static bool fill_first_block(struct wr_source *source, struct wr_fault *fault) {
    while (source->block_end < MAGIC_BYTES && !source->at_end) {
        ssize_t got = read_fd(source, source->block + source->block_end,
                              BLOCK_BYTES - source->block_end, fault);
        if (got < 0) return false;
        source->block_end += (size_t)got;
    }
    return true;
}

static bool begins_with(const struct wr_source *source, const char *magic, size_t length) {
    return source->block_end - source->block_at >= length &&
           memcmp(source->block + source->block_at, magic, length) == 0;
}

static bool is_gzip(const struct wr_source *source) {
    return begins_with(source, "\x1f\x8b", 2);
}

static bool refuse_other_packings(const struct wr_source *source, struct wr_fault *fault) {
    static const struct {
        const char *magic;
        size_t length;
        const char *name;
        const char *unpack;
    } packings[] = {
        {"\x28\xb5\x2f\xfd", 4, "zstd", "zstdcat"},
        {"BZh", 3, "bzip2", "bzcat"},
        {"\xfd"
         "7zXZ",
         5, "xz", "xzcat"},
        {"PK\x03\x04", 4, "zip", "unzip -p"},
    };
    for (size_t i = 0; i < sizeof(packings) / sizeof(packings[0]); i++)
        if (begins_with(source, packings[i].magic, packings[i].length))
            return wr_fault(fault,
                            "is packed with %s, and only gzip is read; unpack it first: %s %s",
                            packings[i].name, packings[i].unpack, source->name);
    return true;
}

static bool open_fd(struct wr_source *source, const char *path, struct wr_fault *fault) {
    struct stat status;
    bool standard = strcmp(path, "-") == 0;
    source->name = standard ? "standard input" : path;
    source->fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0 && errno == ENOENT)
        return wr_fault(fault,
                        "there is no such file; check the name, or write - for standard input");
    if (source->fd < 0 || fstat(source->fd, &status) != 0)
        return wr_fault(fault, "cannot be opened: %s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return wr_fault(fault, "is a directory; name the files in it: %s/*", source->name);
    if (S_ISREG(status.st_mode)) source->size_bytes = (uint64_t)status.st_size;
    return true;
}

static bool begin(struct wr_source *source, const char *path, struct wr_fault *fault) {
    if (!open_fd(source, path, fault) || !fill_first_block(source, fault) ||
        !refuse_other_packings(source, fault))
        return false;
    if (!is_gzip(source)) return true;
    source->in_member = true;
    if (inflateInit2(&source->stream, GZIP_WINDOW) != Z_OK)
        return wr_fault(fault, "no memory to unpack it");
    source->gzip = true;
    return true;
}

bool wr_source_open(struct wr_source **source, const char *path, struct wr_fault *fault) {
    struct wr_fault why;
    struct wr_source *made = calloc(1, sizeof(*made));
    *source = NULL;
    if (made == NULL) return wr_fault(fault, "%s: no memory to read it", path);
    made->fd = -1;
    if (!begin(made, path, &why)) {
        wr_fault(fault, "%s: %.400s", made->name, why.text);
        wr_source_close(made);
        return false;
    }
    *source = made;
    return true;
}

void wr_source_close(struct wr_source *source) {
    if (source == NULL) return;
    if (source->gzip) inflateEnd(&source->stream);
    if (source->fd >= 0) close(source->fd);
    free(source);
}

static ssize_t read_plain(struct wr_source *source, char *buffer, size_t room,
                          struct wr_fault *fault) {
    size_t left = source->block_end - source->block_at;
    if (left == 0) return read_fd(source, buffer, room, fault);
    if (left > room) left = room;
    memcpy(buffer, source->block + source->block_at, left);
    source->block_at += left;
    return (ssize_t)left;
}

static bool has_input(struct wr_source *source, struct wr_fault *fault) {
    if (source->block_at == source->block_end && !source->at_end && !fill_block(source, fault))
        return false;
    return true;
}

// Between members: another one, padding of zeroes, or the end.
static bool next_member(struct wr_source *source, bool *ended, struct wr_fault *fault) {
    *ended = false;
    do {
        if (!has_input(source, fault)) return false;
        *ended = source->block_at == source->block_end;
        if (*ended) return true;
    } while (source->block[source->block_at] == 0 && ++source->block_at > 0);
    if (source->block[source->block_at] != 0x1f)
        return wr_fault(fault, "broken gzip: rubbish after its end; cut it off, or unpack it with "
                               "gzip -dc and replay that");
    source->in_member = true;
    return inflateReset(&source->stream) == Z_OK || wr_fault(fault, "broken gzip");
}

static bool inflate_some(struct wr_source *source, struct wr_fault *fault) {
    z_stream *stream = &source->stream;
    stream->next_in = source->block + source->block_at;
    stream->avail_in = (uInt)(source->block_end - source->block_at);
    int result = inflate(stream, Z_NO_FLUSH);
    source->block_at = source->block_end - stream->avail_in;
    if (result == Z_STREAM_END) source->in_member = false;
    else if (result == Z_MEM_ERROR) return wr_fault(fault, "no memory to unpack it");
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return wr_fault(fault,
                        "broken gzip (%s); test it with gzip -t, or replay what it still "
                        "gives: gzip -dc FILE | weir replay",
                        stream->msg != NULL ? stream->msg : "no valid data");
    return true;
}

static ssize_t read_gzip(struct wr_source *source, char *buffer, size_t room,
                         struct wr_fault *fault) {
    bool ended = false;
    source->stream.next_out = (unsigned char *)buffer;
    source->stream.avail_out = (uInt)room;
    while (source->stream.avail_out == room) {
        if (!source->in_member && !next_member(source, &ended, fault)) return -1;
        if (ended) return 0;
        if (!has_input(source, fault)) return -1;
        if (source->block_at == source->block_end) {
            wr_fault(fault, "broken gzip: it is cut short; copy it again, or replay what it still "
                            "gives: gzip -dc FILE | weir replay");
            return -1;
        }
        // What came out before the broken place is good; the next call finds the place again.
        if (!inflate_some(source, fault) && source->stream.avail_out == room) return -1;
    }
    return (ssize_t)(room - source->stream.avail_out);
}

ssize_t wr_source_read(struct wr_source *source, char *buffer, size_t room,
                       struct wr_fault *fault) {
    if (room > BLOCK_BYTES) room = BLOCK_BYTES;
    return source->gzip ? read_gzip(source, buffer, room, fault)
                        : read_plain(source, buffer, room, fault);
}

const char *wr_source_name(const struct wr_source *source) {
    return source->name;
}

uint64_t wr_source_offset_bytes(const struct wr_source *source) {
    return source->offset_bytes;
}

uint64_t wr_source_size_bytes(const struct wr_source *source) {
    return source->size_bytes;
}
