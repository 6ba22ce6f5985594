// weir under a sync: the same decisions, with a stand-in for the sync thread that queues every
// touched key and takes 150,000 a second of them, what one Redis core answers; its answer is always
// that the bucket is as this node left it. So what is measured is what the sync adds to a decision,
// without the cost of Redis and of talking to it.
#include "limiter_weir.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "synced.h"

#define TICK_NS 5000000
#define TICK_KEYS 750
#define QUEUE (1u << 22)

struct queued {
    uint64_t slot;
    uint64_t fingerprint;
};

struct stand_in {
    struct weir *limiter;
    pthread_t thread;
    _Atomic bool stop;
    _Atomic uint64_t ticks;
    uint64_t asked; // by `ask`, which fills tables
    struct wr_node_limit limit;
    struct queued *queue;
    uint32_t in, out;
};

static void queue(void *context, uint64_t slot, uint64_t fingerprint, bool named, bool urgent) {
    struct stand_in *s = context;
    (void)named;
    (void)urgent;
    if (s->in - s->out < QUEUE) s->queue[s->in++ % QUEUE] = (struct queued){slot, fingerprint};
}

// With m = 1 and a full bucket heard, settle keeps the slot's lower level: nothing is given away.
static void answer(struct stand_in *s, const struct queued *key) {
    struct wr_node_side taken;
    if (!weir_private_freeze(s->limiter, key->slot, key->fingerprint, 0, &taken)) return;
    const int64_t now_us = weir_private_now_us(s->limiter);
    const struct wr_node_heard heard = {.base_us = now_us, .m_q16 = WR_NODE_M_ONE,
                                        .early_tokens = WR_NODE_EARLY_NEVER,
                                        .synced_ms = (uint32_t)(now_us / 1000)};
    int64_t excess;
    (void)weir_private_settle(s->limiter, key->slot, key->fingerprint, &s->limit, &heard, &excess);
}

static void *run(void *at) {
    struct stand_in *s = at;
    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        struct timespec pause = {0, TICK_NS};
        struct wr_synced_name name;
        // While a million names are new the ring is emptied faster.
        uint32_t left = UINT32_MAX;
        while (weir_private_name_next(s->limiter, &name, &left)) pause.tv_nsec = TICK_NS / 50;
        atomic_fetch_add_explicit(&s->ticks, 1, memory_order_relaxed);
        nanosleep(&pause, NULL);
        if (pause.tv_nsec != TICK_NS) continue;
        weir_private_scan(s->limiter, queue, s);
        for (unsigned i = 0; i < TICK_KEYS && s->out != s->in; i++)
            answer(s, &s->queue[s->out++ % QUEUE]);
    }
    return NULL;
}

static void *create(const struct weir_limit *limit, uint64_t keys) {
    struct stand_in *s = calloc(1, sizeof *s);
    if (s == NULL || (s->queue = calloc(QUEUE, sizeof *s->queue)) == NULL) bench_fail("no memory");
    s->limiter = bench_weir_create(limit, keys);
    const struct wr_synced_options options = {
        {.interval_us = 100000, .epoch_us = 1000000, .hot_memory_us = 60000000,
         .share_span_us = 10000000}, 0, 4096};
    struct weir_error error;
    if (weir_private_attach(s->limiter, &options, &error) != WEIR_GRANTED)
        bench_fail("weir_private_attach: %s", error.text);
    if (wr_node_limit_init(&s->limit, limit->tokens, limit->period_ns, limit->burst, limit->burst,
                           weir_private_unit_tokens(s->limiter), 0) != WR_NODE_REFUSAL_OK)
        bench_fail("this row's limit cannot be synced");
    if (pthread_create(&s->thread, NULL, run, s) != 0) bench_fail("no thread");
    return s;
}

static void destroy(void *limiter) {
    struct stand_in *s = limiter;
    atomic_store_explicit(&s->stop, true, memory_order_relaxed);
    pthread_join(s->thread, NULL);
    weir_destroy(s->limiter);
    free(s->queue);
    free(s);
}

static inline bool take_synced(void *limiter, const char *text, size_t length, uint64_t cost) {
    struct stand_in *s = limiter;
    return weir_take(s->limiter, weir_bytes(text, length), cost, NULL) == WEIR_GRANTED;
}
BENCH_LOOPS(take_synced)

// Fills a table: waits now and then, so that a row starts with all names handed over, and asks
// twice, so that it starts where most keys have been asked for since they were last taken (a
// million keys at ten million asks a second are taken every seven seconds).
static bool ask(void *limiter, const char *text, size_t length, uint64_t cost) {
    struct stand_in *s = limiter;
    if (++s->asked % 1024 == 0) {
        const uint64_t ticks = atomic_load_explicit(&s->ticks, memory_order_relaxed);
        while (atomic_load_explicit(&s->ticks, memory_order_relaxed) == ticks) sched_yield();
    }
    const bool granted = take_synced(limiter, text, length, cost);
    if (cost > 1) (void)take_synced(limiter, text, length, 1);
    return granted;
}

static const struct bench_limiter synced = {
    .name = "take", .variant = "/synced", .bounded = true, .create = create, .destroy = destroy,
    .ask = ask, .same = take_synced_same, .walk = take_synced_walk};
BENCH_LIMITER(synced)
