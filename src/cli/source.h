// source.h - the bytes of a file or of standard input, unpacked when they are gzip.
//
// Gzip is known by its content, not by the file's name; several members in a row read as one. One
// thread per source; fixed buffers.
#ifndef WR_SOURCE_H
#define WR_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "text.h"

struct wr_source;

// Opens `path`, or standard input for "-". The words begin with the name.
bool wr_source_open(struct wr_source **source, const char *path, struct wr_fault *fault);
void wr_source_close(struct wr_source *source);

// At least 1 and at most `room` bytes; 0 at the end; -1 when they cannot be had, with words that do
// not name the source (its reader knows the line too).
ssize_t wr_source_read(struct wr_source *source, char *buffer, size_t room, struct wr_fault *fault);

// `path`, or "standard input".
const char *wr_source_name(const struct wr_source *source);

// How far the file has been read, packed as it is, and its size; 0 where that is not known.
uint64_t wr_source_offset_bytes(const struct wr_source *source);
uint64_t wr_source_size_bytes(const struct wr_source *source);

#endif
