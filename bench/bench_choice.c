// The choices in the decision that only a measurement can settle, each way side by side.
//
//   choice/backoff:N        a grant on one hot key by all threads: N pauses after a lost
//                           compare-and-swap, doubled each time in a row, up to 64 N
//   choice/prefetch:WHICH   finding one of 1M keys: nothing, the first line, or both asked for as
//                           soon as the hash is known
//   choice/pages:KIND       weir_take over 1M keys, the table in huge pages or in small ones
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../src/ask.h"
#include "../src/hash.h"
#include "bench.h"
#include "keys.h"

#define HUGE_BYTES (UINT64_C(2) << 20)
#define MANY UINT64_C(1000000)

static _Alignas(128) struct wr_pair hot;

static void *backoff_setup(const struct bench_row *row, unsigned threads) {
    (void)threads;
    wr_u128_init();
    return (void *)(uintptr_t)row;
}

static void pause_cpu(uint64_t times) {
    for (uint64_t i = 0; i < times; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static uint64_t run_backoff(const struct bench_row *row, void *state, uint64_t iterations,
                            unsigned thread) {
    (void)state;
    uint64_t lost = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        const uint64_t most = 64 * row->size;
        for (uint64_t pauses = row->size; ; pauses = pauses < most ? 2 * pauses : pauses) {
            const struct wr_pair old = wr_u128_load(&hot);
            const uint64_t now = wr_ticks(); // as a decision does between its load and its CAS
            if (wr_u128_cas(&hot, old, (struct wr_pair){old.tag + 1, now})) break;
            lost++;
            pause_cpu(pauses);
        }
    }
    if (thread == 0) bench_report("lost", (double)lost / (double)iterations);
    return 0;
}

struct table {
    struct weir *limiter;
    struct bench_walk *walks;
};

// Returns how many keys were not found.
static uint64_t run_prefetch(const struct bench_row *row, void *state, uint64_t iterations,
                             unsigned thread) {
    const struct table *table = state;
    struct bench_walk *walk = table->walks + thread;
    uint64_t missing = 0, mask = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        const struct bench_key *key = bench_walk_next(walk);
        // The mask is zero, and hangs on what the last key found: as asks one after the other do,
        // this one does not start before that one has ended.
        const uint64_t hash =
            wr_hash(table->limiter, weir_bytes(key->text, key->length)) ^ mask;
        const struct wr_place place = wr_place_find(&table->limiter->geometry, hash);
        if (row->size >= 1) __builtin_prefetch(place.line[0]);
        if (row->size >= 2) __builtin_prefetch(place.line[1]);
        struct wr_pair seen = {0, 0};
        missing += wr_find_live(&place, &seen) == NULL;
        mask = wr_after(seen.word);
    }
    return missing;
}

static void *map_small(void *context, size_t bytes, size_t align) {
    unsigned char *memory = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)context;
    if (memory == MAP_FAILED) return NULL;
    memory += (align - (uintptr_t)memory % align) % align;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

static void unmap_small(void *context, void *memory, size_t bytes) {
    (void)context, (void)memory, (void)bytes; // kept until the program ends
}

static struct weir *pages_create(bool huge) {
    static const struct weir_allocator small = {map_small, unmap_small, NULL};
    struct weir_options options = WEIR_OPTIONS_INIT;
    struct weir *limiter = NULL;
    struct bench_key key;
    options.limit = (struct weir_limit){1, WEIR_SECOND, 1000000};
    options.capacity_keys = MANY;
    options.allocator = huge ? NULL : &small;
    if (weir_create(&limiter, &options, NULL) != WEIR_GRANTED) bench_fail("no limiter");
    for (uint64_t i = 0; i < MANY; i++) {
        bench_key_format(&key, i);
        (void)weir_take(limiter, weir_bytes(key.text, key.length), 5000, NULL); // busy for 5000 s
    }
    return limiter;
}

static void *pages_setup(const struct bench_row *row, unsigned threads) {
    static struct table tables[2];
    const bool huge = row->detail == NULL; // the rows in small pages have a detail
    struct table *table = &tables[huge];
    if (table->limiter == NULL) table->limiter = pages_create(huge);
    table->walks = bench_walks(MANY, false, threads);
    return table;
}

static uint64_t run_pages(const struct bench_row *row, void *state, uint64_t iterations,
                          unsigned thread) {
    (void)row;
    const struct table *table = state;
    struct bench_walk *walk = table->walks + thread;
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < iterations; i++) {
        const struct bench_key *key = bench_walk_next(walk);
        wrong += weir_take(table->limiter, weir_bytes(key->text, key->length), 1, NULL) !=
                 WEIR_GRANTED;
    }
    return wrong;
}

static void rows(const struct bench_settings *settings) {
    const struct bench_row all[] = {
        {.name = "choice/backoff:0", .setup = backoff_setup, .run = run_backoff, .size = 0},
        {.name = "choice/backoff:1", .setup = backoff_setup, .run = run_backoff, .size = 1},
        {.name = "choice/backoff:8", .setup = backoff_setup, .run = run_backoff, .size = 8},
        {.name = "choice/backoff:64", .setup = backoff_setup, .run = run_backoff, .size = 64},
        {.name = "choice/prefetch:none", .setup = pages_setup, .run = run_prefetch, .size = 0},
        {.name = "choice/prefetch:first", .setup = pages_setup, .run = run_prefetch, .size = 1},
        {.name = "choice/prefetch:both", .setup = pages_setup, .run = run_prefetch, .size = 2},
        {.name = "choice/pages:small", .setup = pages_setup, .run = run_pages, .detail = "small"},
        {.name = "choice/pages:huge", .setup = pages_setup, .run = run_pages},
    };
    (void)settings;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) bench_add(&all[i]);
}
BENCH_ROWS(rows)
