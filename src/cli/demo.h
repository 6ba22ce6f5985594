// demo.h - what `weir sync-demo` is to run.
#ifndef WR_DEMO_H
#define WR_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "rate.h"
#include "redis_url.h"

#define WR_DEMO_PROCESSES_MAX 64 // bits of a word
#define WR_DEMO_KEYS_MAX 16
#define WR_DEMO_FAULTS_MAX 8
#define WR_DEMO_DURATION_MAX_NS (10 * WEIR_MINUTE)

// X(name, word, who asks for how much)
#define WR_DEMO_PATTERNS(X)                                                                        \
    X(EVEN, "even", "all the same")                                                                \
    X(ONE, "one", "all of it on one process")                                                      \
    X(JUMP, "jump", "all of it on one process, another every 2 s")                                 \
    X(FLOOD, "flood", "nothing, then each 10 times the rate for 1 s, then all the same")

enum wr_demo_pattern {
#define WR_DEMO_PATTERN_ENTRY(name, word, summary) WR_DEMO_##name,
    WR_DEMO_PATTERNS(WR_DEMO_PATTERN_ENTRY)
#undef WR_DEMO_PATTERN_ENTRY
        WR_DEMO_PATTERN_COUNT
};
const char *wr_demo_pattern_word(enum wr_demo_pattern pattern);

enum wr_demo_fault_kind {
    WR_DEMO_OUTAGE,
    WR_DEMO_LATENCY,
    WR_DEMO_FLUSH,
    WR_DEMO_SCRIPT_FLUSH,
    WR_DEMO_KILL_NODE,
    WR_DEMO_KILL_REDIS,
};

struct wr_demo_fault {
    enum wr_demo_fault_kind kind;
    uint64_t at_ns;     // since the demand began
    uint64_t length_ns; // of an outage; of a round trip more, for a latency; else 0
};

struct wr_demo_options {
    uint32_t processes;
    uint32_t keys;
    struct wr_rate rate; // of each key, on all processes together
    uint64_t burst;
    double demand; // in all, times the rate of all keys
    enum wr_demo_pattern pattern;
    uint64_t duration_ns;
    uint64_t interval_ns; // of the sync
    uint64_t seed;
    struct wr_demo_fault faults[WR_DEMO_FAULTS_MAX];
    size_t fault_count;
    bool own_server;      // else what follows
    const char *url_text; // the caller's
    struct wr_url url;
};

// Tokens a second of one key.
static inline double wr_demo_rate_per_s(const struct wr_demo_options *options) {
    return (double)options->rate.tokens * 1e9 / (double)options->rate.period_ns;
}

bool wr_demo_fault_parse(const char *text, struct wr_demo_fault *fault_out, struct wr_fault *fault);
void wr_demo_fault_text(const struct wr_demo_fault *fault, char text[WR_UNIT_TEXT * 2]);
// What is between the processes and Redis, and must be there for it.
bool wr_demo_fault_by_proxy(const struct wr_demo_fault *fault);
bool wr_demo_has(const struct wr_demo_options *options, enum wr_demo_fault_kind kind);

// The load: who asks for how much, and until when that stays so. `alive` has a bit a process.
double wr_demo_load_per_s(const struct wr_demo_options *options, uint64_t alive, uint32_t process,
                          uint64_t at_ns);
uint64_t wr_demo_load_until_ns(const struct wr_demo_options *options, uint64_t at_ns);
// The process that kill-node kills.
uint32_t wr_demo_load_victim(const struct wr_demo_options *options, uint64_t alive,
                             uint64_t at_ns);
// How often the demand finds processes that have not asked for long: at the start, and at jumps.
uint64_t wr_demo_load_starts(const struct wr_demo_options *options);

uint64_t wr_demo_clock_ns(void);

#endif
