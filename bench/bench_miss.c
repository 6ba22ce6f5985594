// What memory alone costs: a line of a table that is not in the cache.
//
// Each line of the table holds the address of the next; the lines form one cycle in random order,
// so a load cannot begin before the one before it has ended. The tables are 16 MiB, 64 MiB and
// 1 GiB, and as large as weir's slots for each number of keys (`table:1M`: 32 bytes a key), in huge
// pages and in small ones. `independent` reads lines at random whose addresses do not depend on
// each other: the bound for a batch.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"
#include "keys.h"
#include "resident.h"

#define LINE_BYTES 64
#define HUGE_BYTES (UINT64_C(2) << 20)
#define SLOT_BYTES_A_KEY 32

struct line {
    struct line *next;
    uint64_t rest[7];
};

struct chase {
    struct chase *next;
    uint64_t bytes;
    bool huge;
    uint64_t line_count;
    struct line *lines;
    double huge_mib;
};

static struct chase *chases;

static struct line *map(uint64_t bytes, bool huge) {
    unsigned char *start = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) bench_fail("no memory for a table of %llu bytes",
                                        (unsigned long long)bytes);
    start += (HUGE_BYTES - (uintptr_t)start % HUGE_BYTES) % HUGE_BYTES;
    madvise(start, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return (struct line *)(void *)start;
}

// One cycle through all lines, in an order shuffled beforehand.
static void link_lines(struct chase *chase) {
    const uint64_t count = chase->line_count;
    uint32_t *order = malloc(count * sizeof *order);
    if (order == NULL) bench_fail("no memory for the order of %llu lines",
                                  (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (uint64_t i = count - 1; i > 0; i--) {
        const uint64_t j = bench_random(i) % (i + 1);
        const uint32_t held = order[i];
        order[i] = order[j];
        order[j] = held;
    }
    for (uint64_t i = 0; i < count; i++)
        chase->lines[order[i]].next = &chase->lines[order[i + 1 < count ? i + 1 : 0]];
    free(order);
}

static struct chase *make(uint64_t bytes, bool huge) {
    struct chase *chase = calloc(1, sizeof *chase);
    if (chase == NULL) bench_fail("no memory for a table");
    struct bench_resident before = {0}, after = {0};
    bench_resident_read(&before);
    chase->bytes = bytes;
    chase->huge = huge;
    chase->line_count = bytes / LINE_BYTES;
    chase->lines = map(bytes, huge);
    link_lines(chase);
    bench_resident_read(&after);
    chase->huge_mib = ((double)after.huge_bytes - (double)before.huge_bytes) / (1 << 20);
    return chase;
}

static const bool huge_pages = true;
static const bool small_pages = false;

static void *setup(const struct bench_row *row, unsigned threads) {
    (void)threads;
    const bool huge = *(const bool *)row->detail;
    struct chase *chase = chases;
    while (chase != NULL && (chase->bytes != row->size || chase->huge != huge))
        chase = chase->next;
    if (chase == NULL) {
        chase = make(row->size, huge);
        chase->next = chases;
        chases = chase;
    }
    bench_report("huge_mib", chase->huge_mib);
    return chase;
}

// A run starts where the thread's last one ended, or a short run would stay in the cache.
struct cursor {
    _Alignas(64) struct line *at;
    const struct chase *in;
    uint64_t random;
};
static struct cursor cursors[BENCH_THREADS_MAX];

static uint64_t run_dependent(const struct bench_row *row, void *state, uint64_t iterations,
                              unsigned thread) {
    (void)row;
    const struct chase *chase = state;
    struct cursor *cursor = &cursors[thread];
    if (cursor->in != chase) {
        cursor->in = chase;
        cursor->at = &chase->lines[bench_random(thread) % chase->line_count];
    }
    struct line *line = cursor->at;
    for (uint64_t i = 0; i < iterations; i++) line = line->next;
    cursor->at = line;
    bench_keep((uintptr_t)line);
    return 0;
}

static uint64_t run_independent(const struct bench_row *row, void *state, uint64_t iterations,
                                unsigned thread) {
    (void)row;
    const struct chase *chase = state;
    uint64_t random = cursors[thread].random + thread;
    for (uint64_t i = 0; i < iterations; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        __extension__ typedef unsigned __int128 wide;
        const uint64_t at = (uint64_t)((wide)random * chase->line_count >> 64);
        bench_keep((uintptr_t)chase->lines[at].next);
    }
    cursors[thread].random = random;
    return 0;
}

static void add(const char *size, uint64_t bytes) {
    struct bench_row row = {.size = bytes, .setup = setup, .run = run_dependent};
    row.detail = &huge_pages;
    snprintf(row.name, sizeof row.name, "miss/%s/huge", size);
    bench_add(&row);
    row.detail = &small_pages;
    snprintf(row.name, sizeof row.name, "miss/%s/pages:4k", size);
    bench_add(&row);
    row.detail = &huge_pages;
    row.run = run_independent;
    snprintf(row.name, sizeof row.name, "miss/%s/huge/independent", size);
    bench_add(&row);
}

static void rows(const struct bench_settings *settings) {
    if (settings->quick) {
        add("1MiB", UINT64_C(1) << 20);
    } else {
        add("16MiB", UINT64_C(16) << 20);
        add("64MiB", UINT64_C(64) << 20);
        add("1GiB", UINT64_C(1) << 30);
    }
    for (size_t k = 0; k < settings->key_counts; k++) {
        char count[24], size[32];
        bench_format_count(count, sizeof count, settings->keys[k]);
        snprintf(size, sizeof size, "table:%s", count);
        add(size, settings->keys[k] * SLOT_BYTES_A_KEY);
    }
}
BENCH_ROWS(rows)
