// demo_load.c - the patterns of demand, as functions of time and of who is alive.
#include "demo.h"

#include <time.h>

#define JUMP_NS (2 * WEIR_SECOND)
#define FLOOD_NS WEIR_SECOND
#define FLOOD_TIMES 10
#define QUIET_MAX_NS (2 * WEIR_SECOND)

uint64_t wr_demo_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

const char *wr_demo_pattern_word(enum wr_demo_pattern pattern) {
    static const char *const words[] = {
#define WORD(name, word, summary) word,
        WR_DEMO_PATTERNS(WORD)
#undef WORD
    };
    return words[pattern];
}

// The `nth` process alive, counted round.
static uint32_t nth_alive(uint64_t alive, uint64_t nth) {
    for (nth %= (uint64_t)__builtin_popcountll(alive); nth > 0; nth--) alive &= alive - 1;
    return (uint32_t)__builtin_ctzll(alive);
}

static uint64_t quiet_ns(const struct wr_demo_options *options) {
    const uint64_t part_ns = options->duration_ns / 4;
    return part_ns < QUIET_MAX_NS ? part_ns : QUIET_MAX_NS;
}

uint32_t wr_demo_load_victim(const struct wr_demo_options *options, uint64_t alive,
                             uint64_t at_ns) {
    return nth_alive(alive, options->pattern == WR_DEMO_JUMP ? at_ns / JUMP_NS : 0);
}

double wr_demo_load_per_s(const struct wr_demo_options *options, uint64_t alive, uint32_t process,
                          uint64_t at_ns) {
    const double limit = wr_demo_rate_per_s(options) * options->keys;
    const double all = limit * options->demand;
    if ((alive >> process & 1) == 0) return 0;
    switch (options->pattern) {
    case WR_DEMO_ONE:
    case WR_DEMO_JUMP: return process == wr_demo_load_victim(options, alive, at_ns) ? all : 0;
    case WR_DEMO_FLOOD:
        if (at_ns < quiet_ns(options)) return 0;
        if (at_ns < quiet_ns(options) + FLOOD_NS) return limit * FLOOD_TIMES;
        break;
    default: break;
    }
    return all / __builtin_popcountll(alive);
}

uint64_t wr_demo_load_until_ns(const struct wr_demo_options *options, uint64_t at_ns) {
    const uint64_t quiet = quiet_ns(options);
    if (options->pattern == WR_DEMO_JUMP) return at_ns - at_ns % JUMP_NS + JUMP_NS;
    if (options->pattern != WR_DEMO_FLOOD) return UINT64_MAX;
    if (at_ns < quiet) return quiet;
    return at_ns < quiet + FLOOD_NS ? quiet + FLOOD_NS : UINT64_MAX;
}

uint64_t wr_demo_load_starts(const struct wr_demo_options *options) {
    return options->pattern == WR_DEMO_JUMP ? 1 + options->duration_ns / JUMP_NS : 1;
}
