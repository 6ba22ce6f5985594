// Where a limiter's memory comes from: anonymous mmap, with huge pages asked for. A decision over a
// million keys takes 106 ns in huge pages, 116 in small ones (EPYC, one thread; two: 101, 118;
// choice/pages of bench).
#include "memory.h"

#include <sys/mman.h>

#include "table.h"

// Maps with an alignment larger than a page by mapping more, and giving the ends back.
static void *map_aligned(size_t bytes, size_t align) {
    const size_t page = 4096;
    const size_t extra = align > page ? align : 0;
    unsigned char *start = mmap(NULL, bytes + extra, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (extra == 0) return start;
    const size_t before = (align - (uintptr_t)start % align) % align;
    if (before != 0) munmap(start, before);
    if (extra - before != 0) munmap(start + before + bytes, extra - before);
    return start + before;
}

static void *map(void *context, size_t bytes, size_t align) {
    (void)context;
    void *memory = map_aligned(bytes, align);
#if defined(MADV_HUGEPAGE)
    if (memory != NULL && align >= WR_HUGE_PAGE_BYTES) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

static void unmap(void *context, void *memory, size_t bytes) {
    (void)context;
    munmap(memory, bytes);
}

const struct weir_allocator wr_mmap_allocator = {map, unmap, NULL};
