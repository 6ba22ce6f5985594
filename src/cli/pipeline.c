// pipeline.c - a ring of chunks under one mutex, which is taken twice a chunk and thread.
//
// Chunk number n is in place n % RING. The numbers below `emitted` are done with; from there up to
// `filled` they are being worked on; `filled` itself is being filled. A worker keeps the number of
// its next chunk to itself. Under the mutex: `filled`, `stopping`, and each chunk's workers_left.
#include "pipeline.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#define RING 4

struct worker {
    struct wr_pipeline *pipeline;
    pthread_t thread;
    unsigned number;
};

struct wr_pipeline {
    struct wr_pipeline_calls calls;
    pthread_mutex_t mutex;
    pthread_cond_t chunk_filled;
    pthread_cond_t chunk_done;
    uint64_t filled;
    uint64_t emitted; // the filling thread's
    bool stopping;
    unsigned threads;
    unsigned started; // workers whose thread runs
    struct worker *workers;
    struct wr_chunk *ring; // of RING chunks, or of one when there are no workers
};

static struct wr_chunk *chunk_at(const struct wr_pipeline *pipeline, uint64_t number) {
    return &pipeline->ring[pipeline->threads > 1 ? number % RING : 0];
}

// False when there will be no chunk of this number.
static bool wait_for_chunk(struct wr_pipeline *pipeline, uint64_t number) {
    pthread_mutex_lock(&pipeline->mutex);
    while (pipeline->filled <= number && !pipeline->stopping)
        pthread_cond_wait(&pipeline->chunk_filled, &pipeline->mutex);
    bool there = !pipeline->stopping;
    pthread_mutex_unlock(&pipeline->mutex);
    return there;
}

static void *run_worker(void *context) {
    const struct worker *worker = context;
    struct wr_pipeline *pipeline = worker->pipeline;
    for (uint64_t number = 0; wait_for_chunk(pipeline, number); number++) {
        struct wr_chunk *chunk = chunk_at(pipeline, number);
        pipeline->calls.work(pipeline->calls.context, chunk, worker->number);
        pthread_mutex_lock(&pipeline->mutex);
        if (--chunk->workers_left == 0) pthread_cond_signal(&pipeline->chunk_done);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    return NULL;
}

// With all signals blocked in them: the thread that opens files handles those (output.c).
static bool start_workers(struct wr_pipeline *pipeline) {
    sigset_t all, before;
    if (pipeline->threads == 1) return true;
    pipeline->workers = calloc(pipeline->threads, sizeof(*pipeline->workers));
    if (pipeline->workers == NULL) return false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 0; i < pipeline->threads; i++) {
        struct worker *worker = &pipeline->workers[i];
        worker->pipeline = pipeline;
        worker->number = i;
        if (pthread_create(&worker->thread, NULL, run_worker, worker) != 0) break;
        pipeline->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pipeline->started == pipeline->threads;
}

bool wr_pipeline_create(struct wr_pipeline **pipeline, unsigned threads,
                        struct wr_pipeline_calls calls, struct wr_fault *fault) {
    struct wr_pipeline *made = calloc(1, sizeof(*made));
    *pipeline = NULL;
    if (made == NULL) return wr_fault(fault, "no memory");
    made->calls = calls;
    made->threads = threads;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->chunk_filled, NULL);
    pthread_cond_init(&made->chunk_done, NULL);
    made->ring = malloc((threads > 1 ? RING : 1) * sizeof(*made->ring));
    if (made->ring == NULL || !start_workers(made)) {
        wr_pipeline_destroy(made);
        return wr_fault(fault, "cannot start %u threads; ask for fewer with --threads", threads);
    }
    chunk_at(made, 0)->count = chunk_at(made, 0)->key_bytes = 0;
    *pipeline = made;
    return true;
}

void wr_pipeline_destroy(struct wr_pipeline *pipeline) {
    if (pipeline == NULL) return;
    pthread_mutex_lock(&pipeline->mutex);
    pipeline->stopping = true;
    pthread_cond_broadcast(&pipeline->chunk_filled);
    pthread_mutex_unlock(&pipeline->mutex);
    for (unsigned i = 0; i < pipeline->started; i++)
        pthread_join(pipeline->workers[i].thread, NULL);
    pthread_cond_destroy(&pipeline->chunk_filled);
    pthread_cond_destroy(&pipeline->chunk_done);
    pthread_mutex_destroy(&pipeline->mutex);
    free(pipeline->workers);
    free(pipeline->ring);
    free(pipeline);
}

struct wr_chunk *wr_pipeline_chunk(struct wr_pipeline *pipeline) {
    return chunk_at(pipeline, pipeline->filled);
}

static void emit_next(struct wr_pipeline *pipeline) {
    struct wr_chunk *chunk = chunk_at(pipeline, pipeline->emitted);
    pthread_mutex_lock(&pipeline->mutex);
    while (chunk->workers_left > 0) pthread_cond_wait(&pipeline->chunk_done, &pipeline->mutex);
    pthread_mutex_unlock(&pipeline->mutex);
    pipeline->calls.emit(pipeline->calls.context, chunk);
    pipeline->emitted++;
}

static void hand_over(struct wr_pipeline *pipeline, struct wr_chunk *chunk) {
    pthread_mutex_lock(&pipeline->mutex);
    chunk->workers_left = pipeline->threads;
    pipeline->filled++;
    pthread_cond_broadcast(&pipeline->chunk_filled);
    pthread_mutex_unlock(&pipeline->mutex);
    if (pipeline->filled - pipeline->emitted == RING) emit_next(pipeline);
}

static void submit(struct wr_pipeline *pipeline) {
    struct wr_chunk *chunk = wr_pipeline_chunk(pipeline);
    if (pipeline->threads > 1) {
        hand_over(pipeline, chunk);
    } else {
        pipeline->calls.work(pipeline->calls.context, chunk, 0);
        pipeline->calls.emit(pipeline->calls.context, chunk);
    }
    chunk = wr_pipeline_chunk(pipeline);
    chunk->count = chunk->key_bytes = 0;
}

void wr_pipeline_advance(struct wr_pipeline *pipeline) {
    struct wr_chunk *chunk = wr_pipeline_chunk(pipeline);
    chunk->key_bytes += chunk->events[chunk->count++].key.length;
    if (chunk->count == WR_CHUNK_EVENTS || chunk->key_bytes >= WR_CHUNK_KEY_BYTES / 4)
        submit(pipeline);
}

void wr_pipeline_drain(struct wr_pipeline *pipeline) {
    if (wr_pipeline_chunk(pipeline)->count > 0) submit(pipeline);
    while (pipeline->threads > 1 && pipeline->emitted < pipeline->filled) emit_next(pipeline);
}
