// Which line of counters a thread adds to: claimed at its first decision, given back at its end.
//
// Shared words
//   owned[]   one bit a line, set by the thread that claims it, cleared when that thread ends
//   next      which shared line the next thread without its own is given
// R1 A claim is an acquire, giving back is a release: the next owner goes on from the counts that
//    the last one stored.
// R2 `next` only spreads threads over lines.
// Nothing here allocates: glibc keeps the first 32 thread-specific keys inside the thread itself,
// so where the library's key is a later one, threads use the shared lines.
// Checked by tests/test_thread.c and tests/stress_take.c.
#include "thread.h"

#include <pthread.h>
#include <stdatomic.h>

#define KEYS_WITHOUT_ALLOCATION 32

_Thread_local uint32_t wr_thread_line_plus_one;
_Thread_local uint32_t wr_thread_own_offset;

static _Atomic uint64_t owned[2];
static _Atomic uint32_t next;
static pthread_key_t at_exit;
static bool at_exit_works;

static void give_back(void *value) {
    const uint32_t line = (uint32_t)(uintptr_t)value - 1;
    wr_thread_line_plus_one = 0;
    wr_thread_own_offset = 0;
    atomic_fetch_and_explicit(&owned[line / 64], ~(UINT64_C(1) << line % 64), // R1
                              memory_order_release);                         // R1
}

// In a forked child only the calling thread is left.
static void after_fork(void) {
    const uint32_t line = wr_thread_line_plus_one - 1;
    for (uint32_t i = 0; i < 2; i++) {
        const bool mine = wr_thread_line_plus_one != 0 && line / 64 == i && line < WR_THREAD_OWN;
        const uint64_t left = mine ? UINT64_C(1) << line % 64 : 0;
        atomic_store_explicit(&owned[i], left, memory_order_relaxed); // R1
    }
}

__attribute__((constructor)) static void load(void) {
    if (pthread_key_create(&at_exit, give_back) != 0) return;
    at_exit_works = at_exit < KEYS_WITHOUT_ALLOCATION;
    pthread_atfork(NULL, NULL, after_fork);
}

__attribute__((destructor)) static void unload(void) {
    pthread_key_delete(at_exit);
}

static bool claim_own(uint32_t *line) {
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t lines = i == 0 ? UINT64_MAX : (UINT64_C(1) << (WR_THREAD_OWN - 64)) - 1;
        uint64_t taken = atomic_load_explicit(&owned[i], memory_order_relaxed); // R1
        while ((taken & lines) != lines) {
            const uint64_t bit = ~taken & (taken + 1);
            if (!atomic_compare_exchange_weak_explicit(&owned[i], &taken, taken | bit, // R1
                                                       memory_order_acquire,           // R1
                                                       memory_order_relaxed))          // R1
                continue;
            *line = i * 64 + (uint32_t)__builtin_ctzll(bit);
            return true;
        }
    }
    return false;
}

uint32_t wr_thread_claim(void) {
    uint32_t line = 0;
    if (at_exit_works && claim_own(&line)) {
        if (pthread_setspecific(at_exit, (void *)(uintptr_t)(line + 1)) == 0) {
            wr_thread_line_plus_one = line + 1;
            wr_thread_own_offset = WR_THREAD_STRIDE * line + 1;
            return line;
        }
        give_back((void *)(uintptr_t)(line + 1));
    }
    line = WR_THREAD_OWN +
           atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % WR_THREAD_SHARED; // R2
    wr_thread_line_plus_one = line + 1;
    return line;
}
