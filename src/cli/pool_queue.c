// pool_queue.c - the ring is lock-free; a semaphore counts what is in it, for workers to sleep.
//
//   worst     raised by pushers; read by the view
//   stopped   set once by the thread that stops; read by poppers
//
// I1: the semaphore's value is at most the events in the ring that no popper has a claim on, until
//     the stop adds one for each popper.
// R1 (relaxed): `worst` is a statistic.
// P1 (release, acquire): whoever sees `stopped` leaves; the semaphore, posted after, wakes.
#include "pool_queue.h"

#include <ck_ring.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER
#endif

#ifdef UNDER_THREAD_SANITIZER
// ck_ring orders its accesses by inline assembly, which the sanitizer does not see; and a dequeue
// reads a place before the compare-and-swap that says whether the place was still its own.
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
    return "race:_ck_ring_enqueue_mp\nrace:_ck_ring_dequeue_mc\n";
}
#endif

struct wr_pool_queue {
    struct ck_ring ring;
    sem_t filled;
    atomic_bool stopped;
    _Atomic uint32_t worst;
    struct ck_ring_buffer places[];
};

struct wr_pool_queue *wr_pool_queue_create(uint32_t capacity) {
    const uint32_t places = capacity + 1;
    struct wr_pool_queue *queue = NULL;
    const size_t bytes = sizeof *queue + places * sizeof queue->places[0];
    queue = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (queue == NULL) return NULL;
    ck_ring_init(&queue->ring, places);
    sem_init(&queue->filled, 0, 0);
    atomic_init(&queue->stopped, false); // P1
    atomic_init(&queue->worst, 0);       // R1
    return queue;
}

void wr_pool_queue_destroy(struct wr_pool_queue *queue) {
    if (queue == NULL) return;
    sem_destroy(&queue->filled);
    free(queue);
}

static bool raise_worst(struct wr_pool_queue *queue, uint32_t *worst, uint32_t depth) {
    return atomic_compare_exchange_weak_explicit(&queue->worst, worst, depth, // R1
                                                 memory_order_relaxed,        // R1
                                                 memory_order_relaxed);       // R1
}

static void note_depth(struct wr_pool_queue *queue, uint32_t depth) {
    uint32_t worst = atomic_load_explicit(&queue->worst, memory_order_relaxed); // R1
    while (depth > worst && !raise_worst(queue, &worst, depth)) {
    }
}

bool wr_pool_queue_push(struct wr_pool_queue *queue, struct wr_pool_event *event) {
    if (!ck_ring_enqueue_mpmc(&queue->ring, queue->places, event)) return false;
    note_depth(queue, ck_ring_size(&queue->ring));
    sem_post(&queue->filled);
    return true;
}

struct wr_pool_event *wr_pool_queue_pop(struct wr_pool_queue *queue) {
    while (sem_wait(&queue->filled) != 0 && errno == EINTR) {
    }
    // By I1 there is an event, but for the stop.
    while (!atomic_load_explicit(&queue->stopped, memory_order_acquire)) { // P1
        struct wr_pool_event *event = wr_pool_queue_take(queue);
        if (event != NULL) return event;
    }
    return NULL;
}

void wr_pool_queue_stop(struct wr_pool_queue *queue, uint32_t poppers) {
    atomic_store_explicit(&queue->stopped, true, memory_order_release); // P1
    for (uint32_t i = 0; i < poppers; i++) sem_post(&queue->filled);
}

struct wr_pool_event *wr_pool_queue_take(struct wr_pool_queue *queue) {
    void *event;
    return ck_ring_dequeue_mpmc(&queue->ring, queue->places, &event) ? event : NULL;
}

uint32_t wr_pool_queue_depth(const struct wr_pool_queue *queue) {
    return ck_ring_size(&queue->ring);
}

uint32_t wr_pool_queue_worst(struct wr_pool_queue *queue) {
    return atomic_load_explicit(&queue->worst, memory_order_relaxed); // R1
}
