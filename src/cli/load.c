// load.c - threads that ask a limiter as fast as they can, over keys drawn beforehand.
//
// A thread draws 2^18 keys before the clock starts and walks through them again and again, so that
// neither drawing nor formatting is measured. Keys are 64-bit integers spread by a bijection.
//
// Shared words
//   phase    set by the caller: 0 wait, 1 warm up, 2 measure, 3 stop; read by the threads
//   measured set by a thread that has asked while measured; read by the caller
// P1 What a thread counted is published by its end (pthread_join); `phase` publishes nothing else.
// R1 `measured` orders nothing: it prolongs a span in which a busy machine ran no thread at all.
#include "load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "random.h"

#define DRAWN (UINT32_C(1) << 18)
#define BATCH_MAX 256
#define STEP 64 // asks between two looks at `phase`
#define WARM_UP_NS (20 * WEIR_MILLISECOND)

enum phase { WAIT, WARM, MEASURE, STOP };

struct worker {
    pthread_t thread;
    struct weir *limiter;
    const struct wr_load *load;
    _Atomic int *phase;
    _Atomic bool *measured;
    uint64_t *drawn;
    uint64_t asks;
    uint64_t granted;
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns) {
    const struct timespec span = {(time_t)(ns / WEIR_SECOND), (long)(ns % WEIR_SECOND)};
    nanosleep(&span, NULL);
}

bool wr_load_create(struct weir **limiter, const struct weir_limit *limit, uint64_t capacity,
                    uint64_t keys, uint32_t shards, struct wr_fault *fault) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    struct weir_error error;
    options.limit = *limit;
    options.capacity_keys = capacity;
    options.shards = shards;
    if (weir_create(limiter, &options, &error) != WEIR_GRANTED)
        return wr_fault(fault, "%s", error.text);
    for (uint64_t i = 0; i < keys; i++)
        (void)weir_take(*limiter, weir_id(wr_random_mix(i)), 1, NULL);
    return true;
}

static bool draw(struct worker *worker, uint32_t index) {
    const struct wr_load *load = worker->load;
    struct wr_random random = wr_random_init(load->seed + index);
    worker->drawn = malloc(DRAWN * sizeof *worker->drawn);
    if (worker->drawn == NULL) return false;
    for (uint32_t i = 0; i < DRAWN; i++)
        worker->drawn[i] = wr_random_mix(load->zipf ? wr_random_zipf(&random, load->keys)
                                                    : wr_random_below(&random, load->keys));
    return true;
}

// STEP asks, one by one.
static uint64_t step_single(struct worker *worker, uint32_t at) {
    uint64_t granted = 0;
    for (uint32_t i = 0; i < STEP; i++) {
        const uint64_t id = worker->drawn[(at + i) % DRAWN];
        granted += weir_take(worker->limiter, weir_id(id), 1, NULL) == WEIR_GRANTED;
    }
    return granted;
}

// One batch.
static uint64_t step_batch(struct worker *worker, uint32_t at, struct weir_ask *asks) {
    int results[BATCH_MAX];
    uint64_t granted = 0;
    const uint32_t batch = worker->load->batch;
    for (uint32_t i = 0; i < batch; i++) asks[i].key = weir_id(worker->drawn[(at + i) % DRAWN]);
    (void)weir_do_batch(worker->limiter, asks, batch, results, NULL);
    for (uint32_t i = 0; i < batch; i++) granted += results[i] == WEIR_GRANTED;
    return granted;
}

static void *work(void *context) {
    struct worker *worker = context;
    struct weir_ask asks[BATCH_MAX];
    for (uint32_t i = 0; i < BATCH_MAX; i++) asks[i] = (struct weir_ask)WEIR_ASK_INIT;
    const bool single = worker->load->batch == 1;
    const uint32_t step = single ? STEP : worker->load->batch;
    uint32_t at = 0;
    for (;;) {
        const int phase = atomic_load_explicit(worker->phase, memory_order_acquire); // P1
        if (phase == STOP) return NULL;
        if (phase == WAIT) continue;
        const uint64_t granted = single ? step_single(worker, at) : step_batch(worker, at, asks);
        at = (at + step) % DRAWN;
        if (phase != MEASURE) continue;
        if (worker->asks == 0)
            atomic_store_explicit(worker->measured, true, memory_order_relaxed); // R1
        worker->asks += step;
        worker->granted += granted;
    }
}

static bool start(struct worker *workers, uint32_t *started, struct weir *limiter,
                  const struct wr_load *load, _Atomic int *phase, _Atomic bool *measured,
                  struct wr_fault *fault) {
    for (uint32_t i = 0; i < load->threads; i++) {
        workers[i] = (struct worker){
            .limiter = limiter, .load = load, .phase = phase, .measured = measured};
        if (!draw(&workers[i], i))
            return wr_fault(fault, "no memory for %u threads", load->threads);
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            free(workers[i].drawn);
            return wr_fault(fault, "the system starts no thread %u; ask for fewer (--threads)",
                            i + 1);
        }
        ++*started;
    }
    return true;
}

bool wr_load_run(struct weir *limiter, const struct wr_load *load, struct wr_load_result *result,
                 struct wr_fault *fault) {
    struct worker *workers = calloc(load->threads, sizeof *workers);
    _Atomic int phase = WAIT;
    _Atomic bool measured = false;
    uint32_t started = 0;
    if (workers == NULL) return wr_fault(fault, "no memory for %u threads", load->threads);
    const bool all = start(workers, &started, limiter, load, &phase, &measured, fault);
    if (all) {
        atomic_store_explicit(&phase, WARM, memory_order_release); // P1
        sleep_ns(WARM_UP_NS);
        atomic_store_explicit(&phase, MEASURE, memory_order_release); // P1
        const uint64_t from_ns = now_ns();
        do {
            sleep_ns(load->span_ns);
        } while (!atomic_load_explicit(&measured, memory_order_relaxed)); // R1
        result->elapsed_ns = now_ns() - from_ns;
    }
    atomic_store_explicit(&phase, STOP, memory_order_release); // P1
    result->asks = result->granted = 0;
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        result->asks += workers[i].asks;
        result->granted += workers[i].granted;
        free(workers[i].drawn);
    }
    free(workers);
    return all;
}

double wr_load_ns(const struct wr_load *load, const struct wr_load_result *result) {
    return result->asks == 0
               ? 0
               : (double)load->threads * (double)result->elapsed_ns / (double)result->asks;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct wr_spread wr_spread_of(double *values, unsigned count) {
    qsort(values, count, sizeof *values, compare_doubles);
    return (struct wr_spread){values[count / 4], values[count / 2], values[count - 1 - count / 4]};
}
