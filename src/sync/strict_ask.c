// One ask, from submit to its result.
//
// Shared words
//   head          of a Treiber stack of asks: pushed on by any thread, taken whole by the sync's.
//                 CLOSED_STACK: nothing may be pushed
//   result        of an ask, inside[0]: 0 while it waits, then its result; written once by the
//                 sync's thread, or by submit itself where the answer is certain
//   generation    of the limit
//   tallies       written by the sync's thread alone
// I1 An ask on the stack, in a lane or in a call is settled exactly once: it is taken out of these
//    before it is. After that the sync's thread never touches it again, but to hand it to `done`.
// I2 An ask is pushed only on an open stack; close takes all that were pushed before. So none is
//    left behind unsettled, and a push after it says WEIR_ECLOSED.
//
// P1 A push releases the ask's fields; taking the stack acquires them. A push that meets another
//    one's head does not read it (it only stores the address), so that load is relaxed. An address
//    that comes back (ABA) is harmless: the head is then that very ask again.
// P2 The result releases what was written to the ask before, and all use of it; poll acquires. So
//    who has seen a result may free the ask (or, if it has `done`, after that was called).
// R1 Tallies and generation are single numbers that nothing hangs on.
// Checked by tests/test_sync_strict.c.
#include <string.h>

#include "strict_inside.h"
#include "synced.h"

static _Atomic uint64_t *result_of(const struct weir_sync_ask *ask) {
    return (_Atomic uint64_t *)(uintptr_t)&ask->inside[INSIDE_RESULT];
}

static void publish(struct weir_sync_ask *ask, int result) {
    const uint64_t word = UINT64_C(1) << 32 | (uint32_t)result;
    atomic_store_explicit(result_of(ask), word, memory_order_release); // P2
}

int weir_sync_poll(const struct weir_sync_ask *ask) {
    const uint64_t word = atomic_load_explicit(result_of(ask), memory_order_acquire); // P2
    return word == 0 ? WEIR_PENDING : (int)(uint32_t)word;
}

void wr_strict_count(_Atomic uint64_t *count, uint64_t more) {
    const uint64_t now = atomic_load_explicit(count, memory_order_relaxed); // R1
    atomic_store_explicit(count, now + more, memory_order_relaxed);         // R1
}

int wr_strict_local(const struct wr_strict *strict, enum weir_kind kind, struct weir_key key,
                    uint64_t cost, struct weir_weight weight, struct weir_answer *answer) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.kind = kind;
    ask.key = key;
    ask.cost = cost;
    ask.weight = weight;
    // Read by a limiter with a caller's clock alone, as tests have.
    if (strict->injected) ask.now_ns = wr_strict_now_us(strict) * 1000;
    return weir_private_do(strict->options.limiter, &ask, answer);
}

// What the limiter's own statistics say of it is what its asks were answered.
static void count_result(const struct wr_strict *strict, const struct weir_sync_ask *ask,
                         int result) {
    if (result < 0) return; // as of any limiter, a failure counts nothing there
    weir_private_count(strict->options.limiter, ask->key, ask->cost, result, ask->retry_after_ns);
}

static bool push(struct wr_strict *strict, struct weir_sync_ask *ask) {
    uintptr_t head = atomic_load_explicit(&strict->head, memory_order_relaxed); // P1
    do {
        if (head == CLOSED_STACK) return false;
        ask->inside[INSIDE_NEXT] = head;
    } while (!atomic_compare_exchange_weak_explicit(&strict->head, &head, (uintptr_t)ask, // P1
                                                    memory_order_release,                 // P1
                                                    memory_order_relaxed));               // P1
    return true;
}

static int64_t deadline_us(const struct wr_strict *strict, const struct weir_sync_ask *ask) {
    const uint64_t timeout_ns = ask->timeout_ns != 0 ? ask->timeout_ns : WEIR_SECOND;
    return wr_strict_now_us(strict) + (int64_t)(timeout_ns / 1000);
}

int wr_strict_submit(struct wr_strict *strict, struct weir_sync_ask *ask) {
    if (ask->cost == 0) return WEIR_EINVAL;
    if (atomic_load_explicit(&strict->head, memory_order_relaxed) == CLOSED_STACK) // P1
        return WEIR_ECLOSED;
    struct weir_answer level = WEIR_ANSWER_INIT;
    const int local = wr_strict_local(strict, WEIR_PEEK, ask->key, ask->cost,
                                      (struct weir_weight){0, 0}, &level);
    ask->retry_after_ns = 0;
    ask->remaining = 0;
    if (local == WEIR_DENIED || local == WEIR_NEVER) {
        ask->retry_after_ns = level.retry_after_ns;
        count_result(strict, ask, local);
        publish(ask, local);
        return local;
    }
    atomic_store_explicit(result_of(ask), 0, memory_order_relaxed); // P2
    ask->inside[INSIDE_DEADLINE] = (uint64_t)deadline_us(strict, ask);
    if (push(strict, ask)) return WEIR_PENDING;
    publish(ask, WEIR_ECLOSED);
    return WEIR_ECLOSED;
}

static void tally(struct wr_strict *strict, int result) {
    struct wr_strict_tally *t = &strict->tally;
    switch (result) {
    case WEIR_GRANTED: wr_strict_count(&t->granted, 1); return;
    case WEIR_DENIED: wr_strict_count(&t->denied, 1); return;
    case WEIR_NEVER: wr_strict_count(&t->never, 1); return;
    default: wr_strict_count(&t->unsynced, 1); return;
    }
}

void wr_strict_settle(struct wr_strict *strict, struct weir_sync_ask *ask, int result) {
    count_result(strict, ask, result);
    if (strict->dry_run) result = WEIR_GRANTED; // whatever it would have been
    void (*done)(struct weir_sync_ask *, void *) = ask->done;
    void *context = ask->context;
    tally(strict, result);
    publish(ask, result);
    if (done != NULL) done(ask, context);
}

// Each of n nodes takes n times the cost from its own copy of the bucket: together they keep the
// rate.
static int take_share(struct wr_strict *strict, const struct weir_sync_ask *ask, uint64_t nodes,
                      struct weir_answer *answer) {
    const struct weir_weight one = {0, 0};
    struct weir_limit limit;
    weir_get_limit(strict->options.limiter, &limit);
    const wr_u128 all = (wr_u128)ask->cost * nodes;
    if (ask->cost > limit.burst) return WEIR_NEVER;
    const uint64_t first = all < limit.burst ? (uint64_t)all : limit.burst;
    const int result = wr_strict_local(strict, WEIR_TAKE, ask->key, first, one, answer);
    if (answer->would_deny) return WEIR_DENIED;
    const wr_u128 rest = all - first;
    if (result == WEIR_GRANTED && rest > 0)
        (void)wr_strict_local(strict, WEIR_CHARGE, ask->key,
                              rest < UINT64_MAX ? (uint64_t)rest : UINT64_MAX, one, NULL);
    return result;
}

void wr_strict_give_up(struct wr_strict *strict, struct weir_sync_ask *ask) {
    const enum weir_sync_outage outage = strict->options.outage;
    const uint64_t nodes = outage == WEIR_SYNC_OPEN ? 1 : strict->options.expected_nodes;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    int result = WEIR_EUNSYNCED;
    if (outage != WEIR_SYNC_CLOSED && nodes != 0) result = take_share(strict, ask, nodes, &answer);
    if (result < 0 || result == WEIR_NO_ROOM) result = WEIR_EUNSYNCED;
    ask->retry_after_ns = answer.retry_after_ns;
    ask->remaining = answer.remaining;
    if (result == WEIR_GRANTED) wr_strict_count(&strict->tally.bridged_tokens, ask->cost);
    wr_strict_settle(strict, ask, result);
}

// Into the lane of its key's group, behind those that came before.
static void line_up(struct wr_strict *strict, struct weir_sync_ask *ask) {
    unsigned char name[WR_WIRE_KEY_MAX];
    const size_t bytes = wr_strict_name(ask->key, name);
    const uint32_t group = wr_wire_group(name, bytes, strict->options.groups);
    struct wr_strict_lane *lane = &strict->lanes[group];
    const int64_t deadline = (int64_t)ask->inside[INSIDE_DEADLINE];
    ask->inside[INSIDE_NEXT] = 0;
    if (lane->last != NULL) lane->last->inside[INSIDE_NEXT] = (uintptr_t)ask;
    else lane->first = ask;
    lane->last = ask;
    if (deadline < strict->wake_us) strict->wake_us = deadline;
    wr_strict_count(&strict->tally.submitted, 1);
}

static void line_up_all(struct wr_strict *strict, uintptr_t head) {
    struct weir_sync_ask *oldest = NULL;
    for (struct weir_sync_ask *ask = (struct weir_sync_ask *)head; ask != NULL;) {
        struct weir_sync_ask *next = wr_strict_next(ask);
        ask->inside[INSIDE_NEXT] = (uintptr_t)oldest;
        oldest = ask;
        ask = next;
    }
    while (oldest != NULL) {
        struct weir_sync_ask *next = wr_strict_next(oldest);
        line_up(strict, oldest);
        oldest = next;
    }
}

static bool is_open_with_asks(const struct wr_strict *strict) {
    const uintptr_t head = atomic_load_explicit(&strict->head, memory_order_relaxed); // P1
    return head != 0 && head != CLOSED_STACK;
}

// Only this thread, and a child that has no such thread, ever close the stack.
void wr_strict_collect(struct wr_strict *strict) {
    if (!is_open_with_asks(strict)) return;
    line_up_all(strict, atomic_exchange_explicit(&strict->head, 0, memory_order_acquire)); // P1
}

void wr_strict_open(struct wr_strict *strict) {
    uintptr_t closed = CLOSED_STACK;
    atomic_compare_exchange_strong_explicit(&strict->head, &closed, 0,  // P1
                                            memory_order_release,       // P1
                                            memory_order_relaxed);      // P1
}

static void refuse_lane(struct wr_strict *strict, struct wr_strict_lane *lane) {
    struct weir_sync_ask *ask = lane->first;
    lane->first = lane->last = NULL;
    while (ask != NULL) {
        struct weir_sync_ask *next = wr_strict_next(ask);
        wr_strict_settle(strict, ask, WEIR_EUNSYNCED);
        ask = next;
    }
    const uint32_t asks = lane->call.keys != 0 ? lane->call.asks : 0;
    lane->call.keys = 0;
    lane->on_wire = false;
    for (uint32_t i = 0; i < asks; i++)
        if (lane->asks[i] != NULL) {
            wr_strict_count(&strict->tally.unknown, 1);
            wr_strict_settle(strict, lane->asks[i], WEIR_EUNSYNCED);
        }
}

void wr_strict_close(struct wr_strict *strict) {
    const uintptr_t head =
        atomic_exchange_explicit(&strict->head, CLOSED_STACK, memory_order_acquire); // P1
    if (head != CLOSED_STACK) line_up_all(strict, head);
    for (uint32_t i = 0; i < strict->options.groups; i++) refuse_lane(strict, &strict->lanes[i]);
    strict->wake_us = INT64_MAX;
}

void wr_strict_forked(struct wr_strict *strict) {
    atomic_store_explicit(&strict->head, CLOSED_STACK, memory_order_relaxed); // P1
}

void wr_strict_set_generation(struct wr_strict *strict, uint32_t generation) {
    atomic_store_explicit(&strict->generation, generation, memory_order_relaxed); // R1
}

uint32_t wr_strict_generation(const struct wr_strict *strict) {
    return atomic_load_explicit(&strict->generation, memory_order_relaxed); // R1
}

void wr_strict_counts(const struct wr_strict *strict, struct wr_strict_counts *counts) {
#define COPY(name)                                                                                 \
    counts->name = atomic_load_explicit(&strict->tally.name, memory_order_relaxed); // R1
    WR_STRICT_TALLIES(COPY)
#undef COPY
}
