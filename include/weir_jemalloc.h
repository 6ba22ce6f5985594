// weir_jemalloc.h - limiters in an arena of jemalloc's: an allocator for struct weir_options.
//
// libweir itself does not link jemalloc, so linking weir never replaces a program's malloc. This is
// a library of its own, libweir-jemalloc, for programs that run on jemalloc already.
#ifndef WEIR_JEMALLOC_H
#define WEIR_JEMALLOC_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_jemalloc;

// Makes an allocator with an arena of its own. Its memory is jemalloc's to account, and its
// `allocator` may be given to any number of limiters, which must be destroyed before it.
// WEIR_GRANTED, WEIR_EINVAL, WEIR_ENOMEM, or WEIR_ESYS where jemalloc gives no arena. Since 0.1.
WEIR_API WEIR_MUST_USE int weir_jemalloc_create(struct weir_jemalloc **jemalloc);
WEIR_API void weir_jemalloc_destroy(struct weir_jemalloc *jemalloc);

// The table for struct weir_options.allocator; lives as long as `jemalloc`.
WEIR_API const struct weir_allocator *weir_jemalloc_allocator(struct weir_jemalloc *jemalloc);

// Bytes that limiters hold from it at this moment. Any thread.
WEIR_API uint64_t weir_jemalloc_bytes(const struct weir_jemalloc *jemalloc);

#ifdef __cplusplus
}
#endif
#endif
