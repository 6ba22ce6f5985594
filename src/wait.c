// Waiting: a reservation, and a sleep until it is due.
//
// The reservation is the place in the queue (FIFO by construction), so each waiter sleeps until its
// own time and nobody wakes a herd. `wake` counts what every sleeper must look at - a change of
// limit, close -: it is read before the state is, and the futex sleeps only while it is unchanged,
// so nothing is missed. A reservation is due at a value of V; after a change of limit that V comes
// at another time, and is computed again.
//
// Shared words
//   wake     added to by set_limit and close, slept on by waiters
//   closed   set by close
// P1 `closed`, and the version that a change published, are written before `wake` is added to
//    (release), and read after it was read (acquire).
// Checked by tests/test_wait.c and tests/stress_wait.c.
#include "wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

void wr_wake_all(struct weir *w) {
    atomic_fetch_add_explicit(&w->region->wake, 1, memory_order_release); // P1
    syscall(SYS_futex, &w->region->wake, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void weir_close(struct weir *limiter) {
    atomic_store_explicit(&limiter->region->closed, 1, memory_order_relaxed); // P1
    wr_wake_all(limiter);
}

// Sleeps until `until_ns` on CLOCK_MONOTONIC (WEIR_FOREVER: no end), or `wake` is not `seen`.
static void sleep_until(struct weir *w, uint32_t seen, uint64_t until_ns) {
    const struct timespec until = {.tv_sec = (time_t)(until_ns / WEIR_SECOND),
                                   .tv_nsec = (long)(until_ns % WEIR_SECOND)};
    // Returns early on a signal, a wake-up or a changed word: the caller looks again.
    syscall(SYS_futex, &w->region->wake, FUTEX_WAIT_BITSET, seen,
            until_ns == WEIR_FOREVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static uint64_t add_saturated(uint64_t a, uint64_t b) {
    return a > WEIR_FOREVER - b ? WEIR_FOREVER : a + b;
}

static int give_up(struct weir *w, const struct wr_ask *reservation, int result,
                   struct weir_answer *answer) {
    struct wr_ask ask = *reservation;
    ask.due = NULL;
    ask.kind = WEIR_REFUND;
    wr_run(w, &ask, NULL);
    ask.kind = WEIR_PEEK;
    struct weir_answer own = WEIR_ANSWER_INIT;
    if (answer != NULL && wr_run(w, &ask, &own) == WEIR_GRANTED) {
        ask.cost = ask.units = 0; // nothing was taken: the level as it is
        wr_run(w, &ask, &own);
    }
    wr_answer_copy(answer, &own);
    return result;
}

// Sleeps until the reservation is due at `due`, a value of V.
static int sleep_until_due(struct weir *w, const struct wr_ask *ask, uint64_t due,
                           uint64_t deadline_ns, struct weir_answer *answer) {
    for (;;) {
        const uint32_t seen = atomic_load_explicit(&w->region->wake, memory_order_acquire); // P1
        if (atomic_load_explicit(&w->region->closed, memory_order_relaxed) != 0)            // P1
            return give_up(w, ask, WEIR_ECLOSED, answer);
        const struct wr_now now = wr_now_read(w->versions, &w->source, w->scale.shift, 0, false);
        const int64_t missing = now.unlimited ? 0 : (int64_t)(due - now.v);
        if (missing <= 0) return WEIR_GRANTED;
        const uint64_t mono_ns = wr_clock_monotonic_ns();
        if (mono_ns >= deadline_ns) return give_up(w, ask, WEIR_DENIED, answer);
        const uint64_t wait_ns = wr_wait_ns(&w->scale, now.per_ns, now.frac, (uint64_t)missing);
        sleep_until(w, seen, wr_min_u64(add_saturated(mono_ns, wait_ns), deadline_ns));
    }
}

// How long until the tokens themselves are there. (A refusal of the reservation says when there is
// room for it, which is sooner.)
static uint64_t due_after_ns(struct weir *w, const struct wr_ask *reservation) {
    struct wr_ask ask = *reservation;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    ask.due = NULL;
    ask.kind = WEIR_PEEK;
    (void)wr_run(w, &ask, &answer);
    return answer.retry_after_ns;
}

// True when a refused reservation may still succeed before the deadline: nothing passes at present,
// or the queue is longer than max_ahead. Then sleeps until it is worth another try.
static bool sleep_for_room(struct weir *w, const struct wr_ask *ask, uint32_t seen,
                           const struct weir_answer *refused, uint64_t deadline_ns) {
    const struct wr_now now = wr_now_read(w->versions, &w->source, w->scale.shift, 0, false);
    const uint64_t mono_ns = wr_clock_monotonic_ns();
    if (mono_ns >= deadline_ns) return false;
    const bool stopped = now.per_ns == 0 || now.burst == 0;
    if (!stopped && add_saturated(mono_ns, due_after_ns(w, ask)) > deadline_ns) return false;
    const uint64_t again_ns = add_saturated(mono_ns, stopped ? WEIR_FOREVER
                                                             : refused->retry_after_ns);
    sleep_until(w, seen, wr_min_u64(again_ns, deadline_ns));
    return true;
}

static int wait_for(struct weir *w, struct wr_ask *ask, uint64_t deadline_ns,
                    struct weir_answer *answer) {
    uint64_t due = 0;
    ask->due = &due;
    for (;;) {
        const uint32_t seen = atomic_load_explicit(&w->region->wake, memory_order_acquire); // P1
        if (atomic_load_explicit(&w->region->closed, memory_order_relaxed) != 0)            // P1
            return WEIR_ECLOSED;
        const uint64_t mono_ns = wr_clock_monotonic_ns();
        const bool forever = deadline_ns == WEIR_FOREVER;
        // At least 1: 0 would mean any time.
        ask->max_wait_ns = forever ? 0 : deadline_ns > mono_ns ? deadline_ns - mono_ns : 1;
        struct weir_answer own = WEIR_ANSWER_INIT;
        const int result = wr_run(w, ask, &own);
        if (result == WEIR_DENIED && sleep_for_room(w, ask, seen, &own, deadline_ns)) continue;
        const bool reserved = result == WEIR_GRANTED && !own.untracked && !own.would_deny;
        if (result == WEIR_GRANTED) own.retry_after_ns = 0;
        wr_answer_copy(answer, &own);
        return reserved ? sleep_until_due(w, ask, due, deadline_ns, answer) : result;
    }
}

int weir_do_wait(struct weir *limiter, const struct weir_ask *ask, uint64_t timeout_ns,
                 struct weir_answer *answer) {
    if (wr_is_caller(limiter)) return WEIR_ECLOCK;
    if (answer != NULL && !wr_answer_size_is_known(answer)) return WEIR_ESIZE;
    if (ask->kind != WEIR_TAKE) return WEIR_EINVAL;
    struct wr_ask reservation;
    const int result = wr_ask_init(limiter, ask, &reservation);
    if (result != WEIR_GRANTED) return result;
    reservation.kind = WEIR_RESERVE;
    const uint64_t deadline_ns = add_saturated(wr_clock_monotonic_ns(), timeout_ns);
    return wait_for(limiter, &reservation, deadline_ns, answer);
}

int weir_wait(struct weir *limiter, struct weir_key key, uint64_t cost, uint64_t timeout_ns,
              struct weir_answer *answer) {
    struct weir_ask ask = WEIR_ASK_INIT;
    ask.key = key;
    ask.cost = cost;
    return weir_do_wait(limiter, &ask, timeout_ns, answer);
}
