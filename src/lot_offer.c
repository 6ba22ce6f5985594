// The ready-made loop: take, else park until it may pass, else say why not. No callback: the answer
// is what to do with the event.
#include <string.h>

#include "lot.h"
#include "wide.h"

const char *weir_fate_words(int fate) {
    switch (fate) {
#define FATE(name, value, words)                                                                   \
    case value: return words;
        WEIR_FATES(FATE)
#undef FATE
    default: return "unknown fate";
    }
}

static int end(struct weir_lot *lot, enum weir_fate fate) {
    wr_lot_count(lot, WR_LOT_FATES + (unsigned)fate, 1);
    return (int)fate;
}

static int from_park(struct weir_lot *lot, int result) {
    switch (result) {
    case WEIR_GRANTED: return end(lot, WEIR_PARKED);
    case WEIR_NO_ROOM: return end(lot, WEIR_DEAD_FULL);
    default: return end(lot, WEIR_DEAD_CLOSED);
    }
}

// How old the event is; a reading older than its first is age 0.
static uint64_t age_ns(const struct weir_lot_node *node, int64_t now_ns) {
    return now_ns > node->first_ns ? (uint64_t)now_ns - (uint64_t)node->first_ns : 0;
}

static void note_first(struct weir_lot_node *node, int64_t now_ns) {
    if (node->offered != 0) return;
    node->offered = 1;
    node->first_ns = now_ns;
}

// What becomes of an event that must wait `wait_ns`, and then `turn_ns` for those before it.
static int settle(struct weir_lot *lot, uint32_t key, struct weir_lot_node *node,
                  uint64_t wait_ns, uint64_t turn_ns, int64_t now_ns,
                  struct weir_lot_ticket *ticket) {
    const struct weir_lot_options *o = &lot->options;
    if (o->max_tries != 0 && node->tries >= o->max_tries) return end(lot, WEIR_DEAD_TRIES);
    if (o->max_wait_ns != 0) wait_ns = wr_min_u64(wait_ns, o->max_wait_ns);
    if (wait_ns == WEIR_FOREVER) return end(lot, WEIR_DEAD_NEVER);
    if (o->max_age_ns != 0) {
        const uint64_t age = age_ns(node, now_ns);
        if (age > o->max_age_ns || wait_ns > o->max_age_ns - age)
            return end(lot, WEIR_DEAD_AGE);
        turn_ns = wr_min_u64(turn_ns, o->max_age_ns - age - wait_ns); // a last try, at the end
    }
    if (!wr_lot_key_enter(&lot->keys, key)) {
        wr_lot_count(lot, WR_LOT_REFUSED, 1);
        return end(lot, WEIR_DEAD_KEY_FULL);
    }
    uint64_t due_in_ns;
    if (__builtin_add_overflow(wait_ns, turn_ns, &due_in_ns)) due_in_ns = WEIR_FOREVER;
    return from_park(lot, wr_lot_park(lot, node, key, due_in_ns, now_ns, ticket));
}

// Somewhere in 1 to `most_ns`. Events that are denied together must not come back together, so
// their addresses, the time and their tries are mixed; nothing depends on how well.
static uint64_t scatter(const struct weir_lot_node *node, int64_t now_ns, uint64_t most_ns) {
    uint64_t mixed = ((uint64_t)now_ns + node->tries) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 32 ^ (uint64_t)(uintptr_t)node) * UINT64_C(0xD6E8FEB86659FD93);
    return 1 + wr_mul_high((mixed ^ mixed >> 32) * UINT64_C(0xD6E8FEB86659FD93), most_ns);
}

// The time that the limit needs for `ahead` events like this one; UINT64_MAX for more than fits.
static uint64_t turn_of(const struct weir *limiter, const struct weir_ask *ask, uint32_t ahead) {
    struct weir_limit limit;
    weir_get_limit(limiter, &limit);
    const uint32_t num = ask->weight.num == 0 ? 1 : ask->weight.num;
    const uint32_t den = ask->weight.den == 0 ? 1 : ask->weight.den;
    const wr_u128 rate = (wr_u128)limit.tokens * num;
    uint64_t tokens;
    if (rate == 0 || __builtin_mul_overflow(ask->cost, ahead, &tokens)) return UINT64_MAX;
    if (tokens > UINT64_MAX / den) return UINT64_MAX;
    const wr_u128 turn_ns = (wr_u128)(tokens * den) * limit.period_ns / rate;
    return turn_ns < UINT64_MAX ? (uint64_t)turn_ns : UINT64_MAX;
}

// How much longer than retry_after an event with `ahead` others before it waits. The first time its
// turn, exactly, so that none is denied again. One that missed its turn (the limit became slower,
// or others were quicker) comes back within half of that: so there are about four asks for each
// token, few enough not to matter, and enough that no token is left lying.
static uint64_t wait_for_turn(const struct weir_lot *lot, const struct weir *limiter,
                              const struct weir_ask *ask, const struct weir_lot_node *node,
                              uint32_t ahead, int64_t now_ns) {
    const uint64_t most_ns = lot->options.turn_ns;
    if (ahead == 0 || most_ns == 0) return 0;
    const uint64_t turn_ns = turn_of(limiter, ask, ahead);
    if (node->tries <= 1 && turn_ns <= most_ns) return turn_ns;
    return scatter(node, now_ns, wr_min_u64(turn_ns / 2, most_ns));
}

// A new event of a key with others parked: whether it must go behind them, unasked, because what
// would be left after it is not enough for them; and for how long it would have to wait by itself.
static int goes_behind(struct weir *limiter, const struct weir_ask *ask, uint32_t ahead,
                       bool *behind, uint64_t *wait_ns) {
    struct weir_ask peek = WEIR_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    memcpy(&peek, ask, ask->size);
    peek.kind = WEIR_PEEK;
    const int result = weir_do(limiter, &peek, &answer);
    *behind = result == WEIR_DENIED ||
              (result == WEIR_GRANTED && !answer.untracked && !answer.would_deny &&
               (wr_u128)ask->cost * ahead > answer.remaining);
    *wait_ns = result == WEIR_DENIED ? answer.retry_after_ns : 0;
    return result;
}

int weir_lot_offer(struct weir_lot *lot, struct weir *limiter, const struct weir_ask *ask,
                   struct weir_lot_node *node, int64_t now_ns, struct weir_lot_ticket *ticket) {
    if (ask->size > sizeof *ask) return WEIR_ESIZE;
    if (ask->kind != WEIR_TAKE) return WEIR_EINVAL;
    const uint32_t key = wr_lot_key(&lot->keys, ask->key);
    const uint32_t ahead = wr_lot_key_parked(&lot->keys, key);
    uint64_t wait_ns = 0;
    bool behind = false;
    if (node->offered == 0 && ahead != 0 && lot->options.turn_ns != 0) {
        const int result = goes_behind(limiter, ask, ahead, &behind, &wait_ns);
        if (result < 0) return result;
    }
    if (!behind) {
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const int result = weir_do(limiter, ask, &answer);
        if (result < 0) return result;
        note_first(node, now_ns);
        if (result == WEIR_GRANTED) return end(lot, WEIR_SEND);
        if (result == WEIR_NEVER) return end(lot, WEIR_DEAD_NEVER);
        node->tries++;
        wait_ns = answer.retry_after_ns;
    }
    note_first(node, now_ns);
    const uint64_t turn_ns = wait_for_turn(lot, limiter, ask, node, ahead, now_ns);
    return settle(lot, key, node, wait_ns, turn_ns, now_ns, ticket);
}

int weir_lot_defer(struct weir_lot *lot, struct weir_key key, struct weir_lot_node *node,
                   uint64_t wait_ns, int64_t now_ns, struct weir_lot_ticket *ticket) {
    note_first(node, now_ns);
    node->tries++;
    return settle(lot, wr_lot_key(&lot->keys, key), node, wait_ns, 0, now_ns, ticket);
}
