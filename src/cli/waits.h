// waits.h - a histogram of how long those who were denied would have to wait.
#ifndef WR_WAITS_H
#define WR_WAITS_H

#include <stdint.h>

#include <weir.h>

// X(name, the longest wait of it in ns, words); a wait is in the first one that it fits.
#define WR_WAITS(X)                                                                                \
    X(MS_1, WEIR_MILLISECOND, "1ms")                                                               \
    X(MS_10, 10 * WEIR_MILLISECOND, "10ms")                                                        \
    X(MS_100, 100 * WEIR_MILLISECOND, "100ms")                                                     \
    X(S_1, WEIR_SECOND, "1s")                                                                      \
    X(S_10, 10 * WEIR_SECOND, "10s")                                                               \
    X(M_1, WEIR_MINUTE, "1m")                                                                      \
    X(M_10, 10 * WEIR_MINUTE, "10m")                                                               \
    X(H_1, WEIR_HOUR, "1h")                                                                        \
    X(D_1, WEIR_DAY, "1d")                                                                         \
    X(LONGER, WEIR_FOREVER - 1, "longer")                                                          \
    X(NEVER, WEIR_FOREVER, "never")

enum wr_wait {
#define WR_WAIT_ENTRY(name, longest_ns, words) WR_WAIT_##name,
    WR_WAITS(WR_WAIT_ENTRY)
#undef WR_WAIT_ENTRY
        WR_WAIT_COUNT
};

struct wr_wait_range {
    uint64_t longest_ns;
    const char *words;
};

extern const struct wr_wait_range wr_wait_ranges[WR_WAIT_COUNT];

enum wr_wait wr_wait_of(uint64_t retry_after_ns);

#endif
