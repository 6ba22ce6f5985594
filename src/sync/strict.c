// Making and freeing a strict limiter's half of the sync.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "strict_inside.h"

static int64_t monotonic_us(void *context) {
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static size_t bytes_of(uint32_t groups) {
    const size_t bytes = sizeof(struct wr_strict) + groups * sizeof(struct wr_strict_lane);
    return (bytes + 63) / 64 * 64;
}

// Numbers begin at the clock: a limiter that is attached anew under the same node's name goes on
// above those it used before, since a call takes more than a microsecond.
static void init(struct wr_strict *strict, const struct wr_strict_options *options) {
    memset(strict, 0, bytes_of(options->groups));
    strict->options = *options;
    strict->injected = options->now_us != NULL;
    if (!strict->injected) strict->options.now_us = monotonic_us;
    strict->wake_us = INT64_MAX;
    const int64_t now_us = wr_strict_now_us(strict);
    for (uint32_t i = 0; i < options->groups; i++)
        strict->lanes[i].seq = now_us > 0 ? (uint64_t)now_us : 0;
    wr_strict_set_generation(strict, options->generation);
    wr_strict_close(strict);
}

int wr_strict_create(struct wr_strict **strict, const struct wr_strict_options *options) {
    *strict = aligned_alloc(64, bytes_of(options->groups));
    if (*strict == NULL) return WEIR_ENOMEM;
    init(*strict, options);
    return WEIR_GRANTED;
}

void wr_strict_destroy(struct wr_strict *strict) {
    free(strict);
}

int64_t wr_strict_wake_us(const struct wr_strict *strict) {
    return strict->wake_us;
}

uint64_t wr_strict_memory_bytes(const struct wr_strict *strict) {
    return bytes_of(strict->options.groups);
}
