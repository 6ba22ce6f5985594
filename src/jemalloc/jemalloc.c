// The jemalloc adapter: the only file that includes jemalloc. One arena, large pages, accounted.
//
// R1 `bytes` is a statistic.
#include "weir_jemalloc.h"

#include <jemalloc/jemalloc.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

struct weir_jemalloc {
    struct weir_allocator allocator;
    unsigned arena;
    _Atomic uint64_t bytes;
};

static int flags_of(const struct weir_jemalloc *j) {
    return MALLOCX_ARENA(j->arena) | MALLOCX_TCACHE_NONE;
}

static void *map(void *context, size_t bytes, size_t align) {
    struct weir_jemalloc *j = context;
    void *memory = mallocx(bytes, flags_of(j) | MALLOCX_ALIGN(align) | MALLOCX_ZERO);
    if (memory == NULL) return NULL;
    if (align >= HUGE_PAGE_BYTES) madvise(memory, bytes, MADV_HUGEPAGE);
    atomic_fetch_add_explicit(&j->bytes, bytes, memory_order_relaxed); // R1
    return memory;
}

static void unmap(void *context, void *memory, size_t bytes) {
    struct weir_jemalloc *j = context;
    atomic_fetch_sub_explicit(&j->bytes, bytes, memory_order_relaxed); // R1
    dallocx(memory, flags_of(j));
}

int weir_jemalloc_create(struct weir_jemalloc **jemalloc) {
    if (jemalloc == NULL) return WEIR_EINVAL;
    *jemalloc = NULL;
    unsigned arena = 0;
    size_t size = sizeof arena;
    if (mallctl("arenas.create", &arena, &size, NULL, 0) != 0) return WEIR_ESYS;
    struct weir_jemalloc *j = mallocx(sizeof *j, MALLOCX_ZERO);
    if (j == NULL) return WEIR_ENOMEM;
    j->arena = arena;
    j->allocator = (struct weir_allocator){map, unmap, j};
    *jemalloc = j;
    return WEIR_GRANTED;
}

void weir_jemalloc_destroy(struct weir_jemalloc *jemalloc) {
    if (jemalloc == NULL) return;
    size_t mib[3];
    size_t length = 3;
    if (mallctlnametomib("arena.0.destroy", mib, &length) == 0) {
        mib[1] = jemalloc->arena;
        mallctlbymib(mib, length, NULL, NULL, NULL, 0);
    }
    dallocx(jemalloc, 0);
}

const struct weir_allocator *weir_jemalloc_allocator(struct weir_jemalloc *jemalloc) {
    return &jemalloc->allocator;
}

uint64_t weir_jemalloc_bytes(const struct weir_jemalloc *jemalloc) {
    return atomic_load_explicit(&jemalloc->bytes, memory_order_relaxed); // R1
}
