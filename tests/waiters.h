// Threads that sleep in weir_wait, for the tests of it.
#pragma once

#include <pthread.h>
#include <sched.h>

#include "support.h"

struct waiter {
    struct weir *w;
    struct weir_key key;
    uint64_t cost;
    uint64_t timeout_ns;
    int result;
    struct weir_answer answer;
    uint64_t v_after; // V, read after it returned
    _Atomic bool done;
    pthread_t thread;
};

// V on the limiter's own clock.
static inline uint64_t v_of(struct weir *w) {
    return wr_now_read(w->versions, &w->source, w->scale.shift, 0, true).v;
}

static inline void *waiter_run(void *at) {
    struct waiter *t = at;
    t->answer = (struct weir_answer)WEIR_ANSWER_INIT;
    t->result = weir_wait(t->w, t->key, t->cost, t->timeout_ns, &t->answer);
    t->v_after = v_of(t->w);
    atomic_store_explicit(&t->done, true, memory_order_release);
    return NULL;
}

static inline void waiter_start(struct waiter *t, struct weir *w, uint64_t cost,
                                uint64_t timeout_ns) {
    *t = (struct waiter){.w = w, .key = weir_str("a"), .cost = cost, .timeout_ns = timeout_ns};
    assert_int_equal(pthread_create(&t->thread, NULL, waiter_run, t), 0);
}

static inline bool waiter_is_done(struct waiter *t) {
    return atomic_load_explicit(&t->done, memory_order_acquire);
}

static inline int waiter_join(struct waiter *t) {
    assert_int_equal(pthread_join(t->thread, NULL), 0);
    return t->result;
}

static inline uint64_t debt_of(struct weir *w) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    assert_true(weir_peek(w, weir_str("a"), 0, &answer) >= 0);
    return answer.debt;
}

// Until the reservations of those who wait amount to `debt`: they have their places.
static inline void await_debt(struct weir *w, uint64_t debt) {
    while (debt_of(w) != debt) sched_yield();
}
