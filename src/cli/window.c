// window.c - a history in order of time, and a sum for each key of its grants that are in it.
#include "window.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 1024

__extension__ typedef unsigned __int128 wide;

bool wr_window_init(struct wr_window *window, uint64_t period_ns, uint32_t keys,
                    uint64_t grants_max) {
    *window = (struct wr_window){
        .period_ns = period_ns, .room = ROOM_FIRST, .room_max = grants_max, .most.weight = {1, 1}};
    window->keys = calloc(keys, sizeof(*window->keys));
    window->history = calloc(ROOM_FIRST, sizeof(*window->history));
    return window->keys != NULL && window->history != NULL;
}

void wr_window_fini(struct wr_window *window) {
    free(window->keys);
    free(window->history);
    memset(window, 0, sizeof(*window));
}

static struct wr_grant *grant_at(const struct wr_window *window, uint64_t place) {
    return &window->history[place & (window->room - 1)];
}

static void drop_first(struct wr_window *window) {
    const struct wr_grant *grant = grant_at(window, window->first++);
    struct wr_window_key *key = &window->keys[grant->key];
    if (key->generation == grant->generation) key->tokens -= grant->tokens;
}

// A grant exactly one period ago is still in a closed window.
static void drop_old(struct wr_window *window, int64_t now_ns) {
    while (window->first < window->next &&
           (uint64_t)(now_ns - grant_at(window, window->first)->at_ns) > window->period_ns)
        drop_first(window);
}

// Twice the room; a place keeps its number.
static bool grow(struct wr_window *window) {
    struct wr_grant *wider = calloc(2 * window->room, sizeof(*wider));
    if (wider == NULL) return false;
    for (uint64_t i = window->first; i < window->next; i++)
        wider[i & (2 * window->room - 1)] = *grant_at(window, i);
    free(window->history);
    window->history = wider;
    window->room *= 2;
    return true;
}

static void remember(struct wr_window *window, uint32_t key, int64_t now_ns, uint64_t tokens) {
    struct wr_window_key *state = &window->keys[key];
    uint64_t last = state->last_grant;
    if (last > window->first && grant_at(window, last - 1)->at_ns == now_ns) {
        grant_at(window, last - 1)->tokens += tokens;
        return;
    }
    if (window->next - window->first == window->room &&
        (window->room == window->room_max || !grow(window))) {
        drop_first(window);
        window->cut = true;
    }
    *grant_at(window, window->next++) = (struct wr_grant){now_ns, tokens, key, state->generation};
    state->last_grant = window->next;
}

static bool is_most(const struct wr_window *window, uint64_t tokens, struct weir_weight weight) {
    const struct wr_window_most *most = &window->most;
    return (wide)tokens * weight.den * most->weight.num >
           (wide)most->tokens * most->weight.den * weight.num;
}

bool wr_window_add(struct wr_window *window, uint32_t key, int64_t now_ns, uint64_t tokens,
                   struct weir_weight weight) {
    struct wr_window_key *state = &window->keys[key];
    if (window->period_ns != WEIR_FOREVER) {
        drop_old(window, now_ns);
        remember(window, key, now_ns, tokens);
    }
    state->tokens += tokens;
    if (!is_most(window, state->tokens, weight)) return false;
    window->most = (struct wr_window_most){state->tokens, weight, now_ns};
    return true;
}

bool wr_window_is_idle(struct wr_window *window, uint32_t key, int64_t now_ns) {
    drop_old(window, now_ns);
    return window->keys[key].tokens == 0;
}

void wr_window_forget(struct wr_window *window, uint32_t key) {
    struct wr_window_key *state = &window->keys[key];
    if (state->tokens > 0) window->cut = true;
    *state = (struct wr_window_key){0, 0, state->generation + 1};
}
