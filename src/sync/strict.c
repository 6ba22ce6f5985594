// Making and freeing a strict limiter's half of the sync.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "strict_inside.h"
#include "synced.h"

static int64_t monotonic_us(void *context) {
    struct timespec now;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static size_t lanes_bytes(uint32_t groups) {
    return groups * sizeof(struct wr_strict_lane);
}

// Numbers begin at the clock: a limiter that is attached anew under the same node's name goes on
// above those it used before, since a call takes more than a microsecond.
static void init(struct wr_strict *strict, const struct wr_strict_options *options,
                 struct wr_strict_lane *lanes) {
    memset(strict, 0, sizeof *strict);
    strict->options = *options;
    strict->lanes = lanes;
    strict->injected = options->now_us != NULL;
    if (!strict->injected) strict->options.now_us = monotonic_us;
    strict->wake_us = INT64_MAX;
    const int64_t now_us = wr_strict_now_us(strict);
    for (uint32_t i = 0; i < options->groups; i++)
        lanes[i].seq = now_us > 0 ? (uint64_t)now_us : 0;
    wr_strict_set_generation(strict, options->generation);
    strict->dry_run = weir_private_is_dry_run(options->limiter);
    wr_strict_close(strict);
}

int wr_strict_create(struct wr_strict **strict, const struct wr_strict_options *options) {
    struct wr_strict_lane *lanes = calloc(options->groups, sizeof *lanes);
    *strict = aligned_alloc(64, sizeof **strict);
    if (*strict == NULL || lanes == NULL) {
        free(*strict);
        free(lanes);
        return WEIR_ENOMEM;
    }
    init(*strict, options, lanes);
    return WEIR_GRANTED;
}

void wr_strict_shrink(struct wr_strict *strict) {
    free(strict->lanes);
    strict->lanes = NULL;
    strict->options.groups = 0;
}

void wr_strict_destroy(struct wr_strict *strict) {
    if (strict == NULL) return;
    free(strict->lanes);
    free(strict);
}

int64_t wr_strict_wake_us(const struct wr_strict *strict) {
    return strict->wake_us;
}

uint64_t wr_strict_memory_bytes(const struct wr_strict *strict) {
    return sizeof *strict + lanes_bytes(strict->options.groups);
}
