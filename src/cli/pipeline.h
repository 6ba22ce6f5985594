// pipeline.h - chunks of events: one thread fills them, others work on them, and they come out in
// the order in which they went in.
//
// With one thread all is done by the caller itself, chunk by chunk. With more, each of `threads`
// workers goes over every chunk and does its share of the events; the filling thread is another.
#ifndef WR_PIPELINE_H
#define WR_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "event.h"
#include "lines.h"

#define WR_CHUNK_EVENTS 2048
#define WR_CHUNK_KEY_BYTES (4 * WR_LINE_MAX_BYTES) // a key is at most half of it

struct wr_chunk {
    size_t count;
    size_t key_bytes;
    unsigned workers_left;
    struct wr_event events[WR_CHUNK_EVENTS];
    char keys[WR_CHUNK_KEY_BYTES];
};

struct wr_pipeline_calls {
    void (*work)(void *context, struct wr_chunk *chunk, unsigned worker); // on a worker's thread
    void (*emit)(void *context, const struct wr_chunk *chunk);            // on the filling thread
    void *context;
};

struct wr_pipeline;

// `threads` is 1 or more.
bool wr_pipeline_create(struct wr_pipeline **pipeline, unsigned threads,
                        struct wr_pipeline_calls calls, struct wr_fault *fault);

// Waits for the workers; what they have not begun is left.
void wr_pipeline_destroy(struct wr_pipeline *pipeline);

// The chunk to fill: there is room for one more event with a key of any length.
struct wr_chunk *wr_pipeline_chunk(struct wr_pipeline *pipeline);

// After each event that was put into the chunk.
void wr_pipeline_advance(struct wr_pipeline *pipeline);

// Works on all that is there, and emits it.
void wr_pipeline_drain(struct wr_pipeline *pipeline);

#endif
