// pool_flow.c - the way of an event through the pool, and the threads that carry it.
//
//   wr_pool.busy           added to by workers; read by the view and the drain
//   wr_pool.closing        set once by the running thread; read by source and returner
//   wr_pool.arrivals_over  set once by the source; read by the running thread
//
// I1: an event is touched by its owner only. It changes hands through a lot, the queue, or the end
//     of a thread, each of which publishes it.
// R1 (relaxed): `busy` is a statistic; the drain that reads it ends in joining the workers; what it
//     misjudges is only how long it waits.
// P1 (release, acquire): whoever sees a flag set sees what was done before; the joins that follow
//     are what is relied on.
// Checked by every run: pool_ledger.c finds an event that ended twice, or never.
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "pool.h"

#define SLEEP_MAX_NS (10 * WEIR_MILLISECOND) // how late a thread sees that the pool closes
#define RETURN_MAX_NS WEIR_MILLISECOND       // how late an event comes back
#define BATCH 64

static struct weir_key provider_key(void) {
    return weir_str("provider");
}

static void sleep_until(const struct wr_pool *pool, uint64_t until_ns) {
    const uint64_t at_ns = pool->start_ns + until_ns;
    const struct timespec at = {(time_t)(at_ns / WEIR_SECOND), (long)(at_ns % WEIR_SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
    }
}

static bool is_closing(const struct wr_pool *pool) {
    return atomic_load_explicit(&pool->closing, memory_order_acquire); // P1
}

void wr_pool_close(struct wr_pool *pool) {
    atomic_store_explicit(&pool->closing, true, memory_order_release); // P1
}

bool wr_pool_arrivals_are_over(const struct wr_pool *pool) {
    return atomic_load_explicit(&pool->arrivals_over, memory_order_acquire); // P1
}

uint32_t wr_pool_busy(const struct wr_pool *pool) {
    return atomic_load_explicit(&pool->busy, memory_order_relaxed); // R1
}

// What a lot said of an event. Only where it is not parked it is still ours.
static void settle(struct wr_pool *pool, struct wr_pool_event *event, int fate) {
    if (fate == WEIR_PARKED) return;
    if (fate < 0) wr_ledger_add(&pool->ledger, WR_POOL_COUNT_FAILED, 1);
    wr_ledger_end(&pool->ledger, event, fate == WEIR_DEAD_CLOSED ? WR_POOL_PARKED : WR_POOL_DEAD);
}

static void park(struct wr_pool *pool, struct wr_pool_event *event) {
    struct weir_lot *lot = pool->gates[WR_GATE_PROVIDER].lot;
    event->gate = WR_GATE_PROVIDER;
    settle(pool, event,
           weir_lot_defer(lot, provider_key(), &event->node, pool->options.retry_ns,
                          (int64_t)wr_pool_now_ns(pool), NULL));
}

// True: it may go on, and is ours.
static bool pass_for_good(struct wr_pool *pool, const struct wr_gate *gate,
                          const struct weir_ask *ask, struct wr_pool_event *event) {
    const int result = weir_do(gate->limiter, ask, NULL);
    if (result == WEIR_GRANTED) return true;
    wr_ledger_add(&pool->ledger, result < 0 ? WR_POOL_COUNT_FAILED : WR_POOL_COUNT_HELD_UP, 1);
    wr_ledger_end(&pool->ledger, event, result < 0 ? WR_POOL_DEAD : WR_POOL_DENIED);
    return false;
}

static bool pass(struct wr_pool *pool, struct wr_pool_event *event) {
    const struct wr_gate *gate = &pool->gates[event->gate];
    const bool is_first = event->node.offered == 0;
    struct weir_ask ask = WEIR_ASK_INIT;
    if (gate->limiter == NULL) return true;
    ask.key = event->gate == WR_GATE_KEY ? weir_id(event->key) : provider_key();
    if (gate->lot == NULL) return pass_for_good(pool, gate, &ask, event);
    const int fate = weir_lot_offer(gate->lot, gate->limiter, &ask, &event->node,
                                    (int64_t)wr_pool_now_ns(pool), NULL);
    if (fate == WEIR_SEND) return true;
    if (is_first) wr_ledger_add(&pool->ledger, WR_POOL_COUNT_HELD_UP, 1);
    settle(pool, event, fate);
    return false;
}

static void enqueue(struct wr_pool *pool, struct wr_pool_event *event) {
    if (wr_pool_queue_push(pool->queue, event)) {
        wr_ledger_add(&pool->ledger, WR_POOL_COUNT_GRANTED, 1);
        return;
    }
    struct weir *limiter = pool->gates[WR_GATE_PROVIDER].limiter;
    if (limiter != NULL) (void)weir_refund(limiter, provider_key(), 1, NULL);
    wr_ledger_add(&pool->ledger, WR_POOL_COUNT_QUEUE_FULL, 1);
    park(pool, event);
}

// From the event's gate on.
static void admit(struct wr_pool *pool, struct wr_pool_event *event) {
    if (event->gate == WR_GATE_KEY) {
        if (!pass(pool, event)) return;
        event->node = (struct weir_lot_node)WEIR_LOT_NODE_INIT; // new to the next gate
        event->gate = WR_GATE_PROVIDER;
    }
    if (pass(pool, event)) enqueue(pool, event);
}

// At the end of the time what was due in it still arrives, however far a slow machine is behind; an
// interrupt ends the arrivals at once. (`interrupted` is written before `closing`.)
static bool arrivals_end(const struct wr_pool *pool, const struct wr_pool_event *event) {
    return is_closing(pool) && (pool->interrupted || event->due_ns > pool->options.duration_ns);
}

void *wr_pool_run_source(void *context) {
    struct wr_pool *pool = context;
    const struct wr_pool_events *events = pool->events;
    for (size_t i = 0; i < events->count && !arrivals_end(pool, &events->all[i]);) {
        struct wr_pool_event *event = &events->all[i];
        const uint64_t now_ns = wr_pool_now_ns(pool);
        if (event->due_ns <= now_ns) {
            wr_ledger_add(&pool->ledger, WR_POOL_COUNT_ARRIVED, 1);
            admit(pool, event);
            i++;
        } else {
            sleep_until(pool, event->due_ns < now_ns + SLEEP_MAX_NS ? event->due_ns
                                                                    : now_ns + SLEEP_MAX_NS);
        }
    }
    atomic_store_explicit(&pool->arrivals_over, true, memory_order_release); // P1
    return NULL;
}

// Whether a full batch came back, so that more may be due.
static bool bring_back(struct wr_pool *pool, struct weir_lot *lot) {
    struct weir_lot_node *due[BATCH];
    const size_t count = weir_lot_take(lot, (int64_t)wr_pool_now_ns(pool), due, BATCH);
    for (size_t i = 0; i < count; i++) {
        wr_ledger_add(&pool->ledger, WR_POOL_COUNT_RETRIED, 1);
        admit(pool, WEIR_LOT_EVENT(due[i], struct wr_pool_event, node));
    }
    return count == BATCH;
}

void *wr_pool_run_returner(void *context) {
    struct wr_pool *pool = context;
    while (!is_closing(pool)) {
        bool more = false;
        for (int i = 0; i < WR_GATES; i++)
            if (pool->gates[i].lot != NULL) more |= bring_back(pool, pool->gates[i].lot);
        if (!more) sleep_until(pool, wr_pool_now_ns(pool) + RETURN_MAX_NS);
    }
    return NULL;
}

static void finish_call(struct wr_pool *pool, struct wr_pool_event *event,
                        enum wr_pool_status status) {
    static const enum wr_pool_count counts[] = {
        [WR_POOL_TOO_MANY] = WR_POOL_COUNT_TOO_MANY,
        [WR_POOL_UNAVAILABLE] = WR_POOL_COUNT_UNAVAILABLE,
        [WR_POOL_TIMEOUT] = WR_POOL_COUNT_TIMEOUT,
    };
    if (status == WR_POOL_OK) {
        wr_latency_add(&pool->latency, wr_pool_now_ns(pool) - event->due_ns);
        wr_ledger_end(&pool->ledger, event, WR_POOL_DELIVERED);
        return;
    }
    wr_ledger_add(&pool->ledger, counts[status], 1);
    park(pool, event);
}

void *wr_pool_run_worker(void *context) {
    struct wr_pool *pool = context;
    struct wr_pool_event *event;
    while ((event = wr_pool_queue_pop(pool->queue)) != NULL) {
        const uint64_t now_ns = wr_pool_now_ns(pool);
        atomic_fetch_add_explicit(&pool->busy, 1, memory_order_relaxed); // R1
        const struct wr_pool_reply reply = wr_provider_call(&pool->provider, now_ns);
        sleep_until(pool, now_ns + reply.after_ns);
        finish_call(pool, event, reply.status);
        atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_relaxed); // R1
    }
    return NULL;
}
