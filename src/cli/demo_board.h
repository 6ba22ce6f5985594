// demo_board.h - what the processes of `weir sync-demo` count, in memory that they share.
//
// Each process writes its own part and outlives nothing: what a killed one had counted is there.
#ifndef WR_DEMO_BOARD_H
#define WR_DEMO_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "demo.h"

#define WR_DEMO_SLOT_NS (20 * WEIR_MILLISECOND)

// What a process tells of its sync, from weir_sync_stats and weir_sync_limiter_stats.
// X(name, word); amounts of tokens that may be fractions are in thousandths.
#define WR_DEMO_FIGURES(X)                                                                         \
    X(REPORTED, "reported")                                                                        \
    X(PENDING, "pending")                                                                          \
    X(LOST, "lost")                                                                                \
    X(EXCESS_MILLI, "excess_milli")                                                                \
    X(BOUND_MILLI, "bound_milli")                                                                  \
    X(REPORTS, "reports")                                                                          \
    X(TIMEOUTS, "timeouts")                                                                        \
    X(DISCONNECTS, "disconnects")                                                                  \
    X(REFUSED, "refused")                                                                          \
    X(FORGOTTEN, "forgotten")                                                                      \
    X(MARKER_LOST, "marker_lost")                                                                  \
    X(RTT_NS, "rtt_ns")                                                                            \
    X(LAG_NS, "lag_ns")                                                                            \
    X(SILENCE_NS, "silence_ns")

enum wr_demo_figure {
#define WR_DEMO_FIGURE_ENTRY(name, word) WR_DEMO_FIGURE_##name,
    WR_DEMO_FIGURES(WR_DEMO_FIGURE_ENTRY)
#undef WR_DEMO_FIGURE_ENTRY
        WR_DEMO_FIGURE_COUNT
};
const char *wr_demo_figure_word(enum wr_demo_figure figure);

enum wr_demo_state { WR_DEMO_STARTING, WR_DEMO_READY, WR_DEMO_DONE, WR_DEMO_FAILED };

struct wr_demo_board; // shared memory: made before the processes

struct wr_demo_slot {
    uint32_t asked;
    uint32_t granted;
};

bool wr_demo_board_create(struct wr_demo_board **board, const struct wr_demo_options *options,
                          struct wr_fault *fault);
void wr_demo_board_destroy(struct wr_demo_board *board);

size_t wr_demo_board_slots(const struct wr_demo_board *board);

// By a process, of itself.
void wr_demo_board_count(struct wr_demo_board *board, uint32_t process, uint32_t key, bool granted,
                         uint64_t at_ns);
void wr_demo_board_set(struct wr_demo_board *board, uint32_t process, enum wr_demo_figure figure,
                       uint64_t value);
void wr_demo_board_move(struct wr_demo_board *board, uint32_t process, enum wr_demo_state state);
// Why it failed: before WR_DEMO_FAILED.
void wr_demo_board_say(struct wr_demo_board *board, uint32_t process, const char *words);

// By the command.
void wr_demo_board_begin(struct wr_demo_board *board, uint64_t start_ns, uint64_t end_ns);
void wr_demo_board_end(struct wr_demo_board *board, uint64_t end_ns);
void wr_demo_board_bury(struct wr_demo_board *board, uint32_t process);

// By anyone. start_ns 0: not begun.
uint64_t wr_demo_board_start_ns(const struct wr_demo_board *board);
uint64_t wr_demo_board_end_ns(const struct wr_demo_board *board);
uint64_t wr_demo_board_alive(const struct wr_demo_board *board); // a bit a process
enum wr_demo_state wr_demo_board_state(const struct wr_demo_board *board, uint32_t process);
const char *wr_demo_board_words(const struct wr_demo_board *board, uint32_t process);
uint64_t wr_demo_board_figure(const struct wr_demo_board *board, uint32_t process,
                              enum wr_demo_figure figure);
uint64_t wr_demo_board_asked(const struct wr_demo_board *board, uint32_t process);
uint64_t wr_demo_board_granted(const struct wr_demo_board *board, uint32_t process);
struct wr_demo_slot wr_demo_board_slot(const struct wr_demo_board *board, uint32_t process,
                                       uint32_t key, size_t slot);

#endif
