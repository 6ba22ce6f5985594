// malloc and its like, counted and handed on to glibc's. They stand in the program that links this
// file, and so come before the C library's for the program and all it has loaded.
#include "malloc_count.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define SANITIZED
#endif

#if defined(SANITIZED)

bool bench_malloc_count(uint64_t *count) {
    *count = 0;
    return false;
}

#else

static _Atomic uint64_t calls; // a statistic, read when no other thread runs

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static void count_call(void) {
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

void *malloc(size_t bytes) {
    count_call();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    count_call();
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
    count_call();
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    count_call();
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **memory, size_t align, size_t bytes) {
    count_call();
    *memory = __libc_memalign(align, bytes);
    return *memory == NULL ? ENOMEM : 0;
}

bool bench_malloc_count(uint64_t *count) {
    *count = atomic_load_explicit(&calls, memory_order_relaxed);
    return true;
}

#endif
