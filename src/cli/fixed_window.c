// fixed_window.c - exact, in 128 bits: window number floor(time * tokens / (burst * period)).
#include "fixed_window.h"

#include <stdlib.h>
#include <string.h>

bool wr_fixed_window_init(struct wr_fixed_window *counters, const struct wr_rate *rate,
                          uint64_t burst, uint32_t keys) {
    *counters = (struct wr_fixed_window){.rate = *rate, .burst = burst};
    counters->keys = calloc(keys, sizeof(*counters->keys));
    return counters->keys != NULL;
}

void wr_fixed_window_fini(struct wr_fixed_window *counters) {
    free(counters->keys);
    memset(counters, 0, sizeof(*counters));
}

// Without a rate there is one window; before 1970 the numbers are below 0.
static int64_t window_of(const struct wr_fixed_window *counters, int64_t now_ns) {
    wr_wide length = (wr_wide)counters->burst * counters->rate.period_ns;
    uint64_t distance = now_ns < 0 ? 0 - (uint64_t)now_ns : (uint64_t)now_ns;
    wr_wide product = (wr_wide)distance * counters->rate.tokens;
    if (counters->rate.tokens == 0 || length == 0) return 0;
    if (now_ns >= 0) return (int64_t)(product / length);
    return -(int64_t)((product + length - 1) / length);
}

static void let_time_pass(const struct wr_fixed_window *counters, struct wr_fixed_window_key *key,
                          int64_t now_ns) {
    wr_wide produced = (wr_wide)(uint64_t)(now_ns - key->at_ns) * counters->rate.tokens;
    key->at_ns = now_ns;
    if (produced < key->ahead) {
        key->ahead -= produced;
        return;
    }
    key->ahead = 0;
    key->from_ns = now_ns;
    key->tokens = 0;
}

static bool note_excess(struct wr_fixed_window *counters, struct wr_fixed_window_key *key,
                        uint64_t cost) {
    wr_wide allowed = (wr_wide)counters->burst * counters->rate.period_ns;
    key->ahead += (wr_wide)cost * counters->rate.period_ns;
    key->tokens += cost;
    if (key->ahead <= allowed || key->ahead - allowed <= counters->worst.excess) return false;
    counters->worst =
        (struct wr_fixed_window_worst){key->ahead - allowed, key->tokens, key->from_ns, key->at_ns};
    return true;
}

bool wr_fixed_window_take(struct wr_fixed_window *counters, uint32_t number, int64_t now_ns,
                          uint64_t cost, bool *worst) {
    struct wr_fixed_window_key *key = &counters->keys[number];
    int64_t window = window_of(counters, now_ns);
    *worst = false;
    if (window != key->window) {
        key->window = window;
        key->used = 0;
    }
    let_time_pass(counters, key, now_ns);
    if (cost > counters->burst - key->used) return false;
    key->used += cost;
    *worst = note_excess(counters, key, cost);
    return true;
}

bool wr_fixed_window_is_idle(struct wr_fixed_window *counters, uint32_t number, int64_t now_ns) {
    struct wr_fixed_window_key *key = &counters->keys[number];
    let_time_pass(counters, key, now_ns);
    return key->ahead == 0 && (key->used == 0 || key->window != window_of(counters, now_ns));
}

void wr_fixed_window_forget(struct wr_fixed_window *counters, uint32_t key) {
    memset(&counters->keys[key], 0, sizeof(counters->keys[key]));
}

uint64_t wr_fixed_window_allowed(const struct wr_fixed_window *counters) {
    const struct wr_fixed_window_worst *worst = &counters->worst;
    wr_wide produced = (wr_wide)(uint64_t)(worst->to_ns - worst->from_ns) * counters->rate.tokens;
    return counters->burst + (uint64_t)(produced / counters->rate.period_ns);
}
