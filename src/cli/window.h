// window.h - the most tokens that any key was granted within any closed window of one period.
//
// Exact: each grant of the last period is remembered, those of one key at one moment as one. Memory
// is bounded all the same: when too many are to be remembered, the oldest are let go early, and
// `cut` says that the figure is a lower bound. Times never go back.
#ifndef WR_WINDOW_H
#define WR_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

struct wr_grant {
    int64_t at_ns;
    uint64_t tokens;
    uint32_t key;
    uint32_t generation; // of the key's number; an older one has been forgotten
};

struct wr_window_key {
    uint64_t tokens;     // in the window that ends now
    uint64_t last_grant; // its place in the history, plus 1; 0: none
    uint32_t generation;
};

struct wr_window_most {
    uint64_t tokens;
    struct weir_weight weight;
    int64_t to_ns; // the window's end
};

struct wr_window {
    uint64_t period_ns; // WEIR_FOREVER: one window, that never ends
    struct wr_window_key *keys;
    struct wr_grant *history; // a ring: places first to next, each modulo room
    uint64_t first;
    uint64_t next;
    uint64_t room;
    uint64_t room_max;
    bool cut;
    struct wr_window_most most;
};

// For key numbers below `keys`, and at most `grants_max` (a power of two, 1,024 or more) grants.
bool wr_window_init(struct wr_window *window, uint64_t period_ns, uint32_t keys,
                    uint64_t grants_max);
void wr_window_fini(struct wr_window *window);

// Notes a grant. True when it makes the greatest share of a key's weight so far.
bool wr_window_add(struct wr_window *window, uint32_t key, int64_t now_ns, uint64_t tokens,
                   struct weir_weight weight);

// Whether nothing of `key` is in the window that ends now.
bool wr_window_is_idle(struct wr_window *window, uint32_t key, int64_t now_ns);
void wr_window_forget(struct wr_window *window, uint32_t key);

#endif
