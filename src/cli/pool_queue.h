// pool_queue.h - the bounded queue between the limits and the workers: ck_ring, many to many.
//
// A push never waits; a pop sleeps until there is an event or the queue was stopped.
#ifndef WR_POOL_QUEUE_H
#define WR_POOL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct wr_pool_queue;
struct wr_pool_event;

// Room for `capacity` events, a power of two less 1. NULL: no memory.
struct wr_pool_queue *wr_pool_queue_create(uint32_t capacity);
void wr_pool_queue_destroy(struct wr_pool_queue *queue);

// False: it is full, and the event stays the caller's.
bool wr_pool_queue_push(struct wr_pool_queue *queue, struct wr_pool_event *event);

// NULL: the queue was stopped. What is still in it then is for wr_pool_queue_take.
struct wr_pool_event *wr_pool_queue_pop(struct wr_pool_queue *queue);

// Makes each of `poppers` threads return from its next pop with NULL.
void wr_pool_queue_stop(struct wr_pool_queue *queue, uint32_t poppers);

// One that is there, or NULL. Once nobody pops.
struct wr_pool_event *wr_pool_queue_take(struct wr_pool_queue *queue);

uint32_t wr_pool_queue_depth(const struct wr_pool_queue *queue);

// The deepest that it was after a push.
uint32_t wr_pool_queue_worst(struct wr_pool_queue *queue);

#endif
