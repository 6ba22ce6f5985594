// The public calls of strict asks. (weir_sync_poll is in strict_ask.c, with the word that it
// reads.)
//
// weir_sync_take sleeps on a word of its own stack until `done` has been called. It never leaves
// before: the sync's thread answers every ask by its deadline, or when it stops.
//
// P1 `done` writes the answer into the ask before it releases the word; the sleeper acquires it.
//    After that store the thread only passes the word's address to the kernel, which does not read
//    what may be there by then.
// Checked by tests/test_sync_strict.c.
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "strict.h"

struct sleeper {
    struct weir_sync_ask ask;
    _Atomic uint32_t woken;
};

int weir_sync_submit(struct weir_sync *sync, struct weir *limiter, struct weir_sync_ask *ask) {
    if (ask->size != sizeof *ask) return WEIR_ESIZE;
    struct wr_strict *strict = wr_sync_find_strict(sync, limiter);
    return strict != NULL ? wr_strict_submit(strict, ask) : WEIR_EINVAL;
}

static void wake(struct weir_sync_ask *ask, void *context) {
    struct sleeper *sleeper = context;
    (void)ask;
    atomic_store_explicit(&sleeper->woken, 1, memory_order_release); // P1
    syscall(SYS_futex, &sleeper->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_until_woken(struct sleeper *sleeper) {
    while (atomic_load_explicit(&sleeper->woken, memory_order_acquire) == 0) // P1
        syscall(SYS_futex, &sleeper->woken, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

// The smallest answer ever published ends before would_deny.
static int copy_answer(struct weir_answer *answer, const struct weir_sync_ask *ask, int result) {
    const struct weir_answer full = {
        .size = answer->size,
        .granted_tokens = result == WEIR_GRANTED ? ask->cost : 0,
        .remaining = ask->remaining,
        .retry_after_ns = ask->retry_after_ns,
    };
    memcpy(answer, &full, answer->size);
    return result;
}

int weir_sync_take(struct weir_sync *sync, struct weir *limiter, struct weir_key key, uint64_t cost,
                   uint64_t timeout_ns, struct weir_answer *answer) {
    struct sleeper sleeper = {.ask = WEIR_SYNC_ASK_INIT, .woken = 0};
    if (answer != NULL && (answer->size < offsetof(struct weir_answer, untracked) ||
                           answer->size > sizeof *answer))
        return WEIR_ESIZE;
    sleeper.ask.key = key;
    sleeper.ask.cost = cost;
    sleeper.ask.timeout_ns = timeout_ns;
    sleeper.ask.done = wake;
    sleeper.ask.context = &sleeper;
    int result = weir_sync_submit(sync, limiter, &sleeper.ask);
    if (result == WEIR_PENDING) {
        wr_sync_wake(sync);
        sleep_until_woken(&sleeper);
        result = weir_sync_poll(&sleeper.ask);
    }
    if (result < 0 || answer == NULL) return result;
    return copy_answer(answer, &sleeper.ask, result);
}
