// The public asks: arguments checked, the key hashed, then the protocol (decide.c).
//
// R1 The epoch of a caller's clock: one CAS ever; every reading is relative to whichever won.
#include <string.h>

#include "call.h"
#include "hash.h"
#include "synced.h"

// The smallest answer ever published: through retry_after_ns. A shorter one than ours is filled in
// the fields it has.
#define ANSWER_LEAST offsetof(struct weir_answer, full_after_ns)

bool wr_answer_size_is_known(const struct weir_answer *answer) {
    return answer->size >= ANSWER_LEAST && answer->size <= sizeof *answer;
}

struct weir_answer *wr_answer_at(struct weir_answer *answers, size_t index, size_t bytes) {
    if (answers == NULL) return NULL;
    return (struct weir_answer *)(void *)((unsigned char *)answers + index * bytes);
}

void wr_answer_copy(struct weir_answer *to, const struct weir_answer *from) {
    if (to == NULL) return;
    const size_t size = to->size;
    memcpy(to, from, size);
    to->size = size;
}

int wr_run(struct weir *w, const struct wr_ask *ask, struct weir_answer *answer) {
    if (answer == NULL || answer->size == sizeof *answer) return wr_decide(w, ask, answer);
    if (!wr_answer_size_is_known(answer)) return WEIR_ESIZE;
    struct weir_answer whole = WEIR_ANSWER_INIT;
    const int result = wr_decide(w, ask, &whole);
    wr_answer_copy(answer, &whole);
    return result;
}

// The plain calls: weight 1, the limiter's own clock.
int wr_ask_plain(struct weir *w, enum weir_kind kind, struct weir_key key, uint64_t cost,
                 struct weir_answer *answer) {
    if (WR_UNLIKELY(wr_is_caller(w))) return WEIR_ECLOCK;
    struct wr_ask ask = {.place = wr_place_of(&w->geometry, wr_hash(w, key)),
                         .key = key,
                         .cost = cost,
                         .units = wr_cost_units_plain(&w->scale, cost),
                         .kind = kind};
    return wr_run(w, &ask, answer);
}

int weir_take_some(struct weir *limiter, struct weir_key key, uint64_t cost,
                   struct weir_answer *answer) {
    return wr_ask_plain(limiter, WEIR_TAKE_SOME, key, cost, answer);
}

int weir_peek(struct weir *limiter, struct weir_key key, uint64_t cost,
              struct weir_answer *answer) {
    return wr_ask_plain(limiter, WEIR_PEEK, key, cost, answer);
}

int weir_charge(struct weir *limiter, struct weir_key key, uint64_t cost,
                struct weir_answer *answer) {
    return wr_ask_plain(limiter, WEIR_CHARGE, key, cost, answer);
}

int weir_refund(struct weir *limiter, struct weir_key key, uint64_t cost,
                struct weir_answer *answer) {
    return wr_ask_plain(limiter, WEIR_REFUND, key, cost, answer);
}

int weir_cancel(struct weir *limiter, struct weir_key key, uint64_t cost,
                struct weir_answer *answer) {
    return wr_ask_plain(limiter, WEIR_REFUND, key, cost, answer);
}

int weir_reserve(struct weir *limiter, struct weir_key key, uint64_t cost, uint64_t max_wait_ns,
                 struct weir_answer *answer) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = key;
    ask.cost = cost;
    ask.kind = WEIR_RESERVE;
    ask.max_wait_ns = max_wait_ns;
    if (wr_is_caller(limiter)) return WEIR_ECLOCK;
    return weir_do(limiter, &ask, answer);
}

int weir_reset(struct weir *limiter, struct weir_key key) {
    const struct wr_place place = wr_place_of(&limiter->geometry, wr_hash(limiter, key));
    wr_reset(limiter, &place);
    return WEIR_GRANTED;
}

int weir_take_at(struct weir *limiter, struct weir_key key, uint64_t cost, int64_t now_ns,
                 struct weir_answer *answer) {
    if (WR_UNLIKELY(!wr_is_caller(limiter))) return WEIR_ECLOCK;
    struct wr_ask ask = {.place = wr_place_of(&limiter->geometry, wr_hash(limiter, key)),
                         .key = key,
                         .cost = cost,
                         .units = wr_cost_units_plain(&limiter->scale, cost),
                         .kind = WEIR_TAKE,
                         .at = wr_caller_time(limiter, now_ns)};
    return wr_run(limiter, &ask, answer);
}

int wr_ask_init(struct weir *w, const struct weir_ask *from, struct wr_ask *ask) {
    if (from->size < WR_ASK_LEAST || from->size > sizeof *from) return WEIR_ESIZE;
    if ((unsigned)from->kind > WEIR_RESET) return WEIR_EINVAL;
    ask->key = from->key;
    ask->cost = from->cost;
    ask->weight = from->weight;
    ask->kind = from->kind;
    ask->silent = false;
    ask->at = wr_is_caller(w) ? wr_caller_time(w, from->now_ns) : 0;
    ask->max_wait_ns = from->size == sizeof *from ? from->max_wait_ns : 0;
    ask->due = NULL;
    const uint64_t cost = from->kind == WEIR_RESET ? 0 : from->cost;
    const int result = wr_cost_units(&w->scale, cost, from->weight, &ask->units);
    if (result != WEIR_GRANTED) return result;
    ask->place = wr_place_of(&w->geometry, wr_hash(w, from->key));
    return WEIR_GRANTED;
}

static int carry_out(struct weir *limiter, const struct weir_ask *ask, bool silent,
                     struct weir_answer *answer) {
    struct wr_ask checked;
    if (answer != NULL && !wr_answer_size_is_known(answer)) return WEIR_ESIZE;
    const int result = wr_ask_init(limiter, ask, &checked);
    if (result != WEIR_GRANTED) return result;
    checked.silent = silent;
    if (ask->kind == WEIR_RESET) {
        wr_reset(limiter, &checked.place);
        if (answer == NULL) return WEIR_GRANTED;
        checked.kind = WEIR_PEEK; // of cost 0, for the answer
        checked.cost = 0;
        (void)wr_run(limiter, &checked, answer);
        return WEIR_GRANTED;
    }
    return wr_run(limiter, &checked, answer);
}

int weir_do(struct weir *limiter, const struct weir_ask *ask, struct weir_answer *answer) {
    return carry_out(limiter, ask, false, answer);
}

int weir_private_do(struct weir *limiter, const struct weir_ask *ask, struct weir_answer *answer) {
    return carry_out(limiter, ask, true, answer);
}

void weir_prepare(const struct weir *limiter, struct weir_key key,
                  struct weir_prepared *prepared) {
    const uint64_t hash = wr_hash(limiter, key);
    *prepared = (struct weir_prepared){key.data, key.word, hash};
}
