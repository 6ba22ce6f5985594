// take_all: several limits, or none of them.
//
// Peek at all, so that an ordinary refusal changes nothing. Then debit in order; if another thread
// took the tokens in between, refund what was debited, in reverse. There is no state but the
// buckets: a thread killed half way leaves at most one cost debited in each limiter.
#include "call.h"

static int ask_part(const struct weir_part *part, enum weir_kind kind,
                    struct weir_answer *answer) {
    struct weir_ask ask = part->ask;
    ask.kind = kind;
    return weir_do(part->limiter, &ask, answer);
}

// Asks all parts in order until one refuses; returns its index, or count.
static size_t ask_parts(const struct weir_part *parts, size_t count, enum weir_kind kind,
                        struct weir_answer *answers, uint64_t *debited, int *result) {
    for (size_t i = 0; i < count; i++) {
        struct weir_answer own = WEIR_ANSWER_INIT;
        *result = ask_part(&parts[i], kind, &own);
        if (answers != NULL) wr_answer_copy(wr_answer_at(answers, i, answers->size), &own);
        if (*result != WEIR_GRANTED) return i;
        if (!own.untracked && !own.would_deny) *debited |= UINT64_C(1) << i;
    }
    return count;
}

static void refund_parts(const struct weir_part *parts, size_t count, uint64_t debited) {
    while (count-- > 0)
        if ((debited >> count & 1) != 0) (void)ask_part(&parts[count], WEIR_REFUND, NULL);
}

// All of one known size: that of the first is the step from one to the next.
static bool answer_sizes_are_known(struct weir_answer *answers, size_t count) {
    if (answers == NULL) return true;
    if (!wr_answer_size_is_known(answers)) return false;
    for (size_t i = 1; i < count; i++)
        if (wr_answer_at(answers, i, answers->size)->size != answers->size) return false;
    return true;
}

int weir_take_all(const struct weir_part *parts, size_t count, size_t *refused,
                  struct weir_answer *answers) {
    if (refused != NULL) *refused = count;
    if (parts == NULL || count == 0 || count > WEIR_PARTS_MAX) return WEIR_EINVAL;
    if (!answer_sizes_are_known(answers, count)) return WEIR_ESIZE;
    int result = WEIR_GRANTED;
    uint64_t debited = 0;
    size_t stopped = ask_parts(parts, count, WEIR_PEEK, answers, &debited, &result);
    if (stopped == count) {
        debited = 0;
        stopped = ask_parts(parts, count, WEIR_TAKE, answers, &debited, &result);
        if (stopped < count) refund_parts(parts, stopped, debited);
    } else if (result > 0) {
        // Counted where it was refused, as a take would have been.
        wr_count_refusal(parts[stopped].limiter, parts[stopped].ask.key, result);
    }
    if (refused != NULL) *refused = stopped;
    return result;
}
