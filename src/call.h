// The way from a public call into the protocol: checked arguments in, one decided ask out.
#pragma once

#include "ask.h"

// The smallest ask ever published: through now_ns. What a shorter ask than ours lacks is zero.
#define WR_ASK_LEAST offsetof(struct weir_ask, max_wait_ns)

// One ask, its key hashed and its cost scaled. WEIR_GRANTED, or why it cannot be asked.
int wr_ask_init(struct weir *w, const struct weir_ask *from, struct wr_ask *ask);

// An ask of weight 1 by the limiter's own clock, the whole way.
int wr_ask_plain(struct weir *w, enum weir_kind kind, struct weir_key key, uint64_t cost,
                 struct weir_answer *answer);

// True for a size of struct weir_answer that this library can answer in.
bool wr_answer_size_is_known(const struct weir_answer *answer);

// Decides, and answers in the fields that the caller's struct has.
int wr_run(struct weir *w, const struct wr_ask *ask, struct weir_answer *answer);

// The next answer of a caller's array, whose elements have the size that the first one says.
struct weir_answer *wr_answer_at(struct weir_answer *answers, size_t index, size_t bytes);

// Copies an answer into the fields that `to` (NULL: nothing) has.
void wr_answer_copy(struct weir_answer *to, const struct weir_answer *from);

static inline bool wr_is_caller(const struct weir *w) {
    return w->source.kind == WEIR_CLOCK_CALLER;
}
