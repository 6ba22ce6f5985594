// The two 128-bit operations on a slot. This is the only file that knows how they are done.
//
// A slot is 16 bytes, aligned to 16, and is changed only by wr_u128_cas, so it is never seen torn.
// The load must not write (a denial only reads): on x86-64 an aligned 16-byte vector load is atomic
// where the CPU has AVX (Intel and AMD both promise it); elsewhere the load is a compare-and-swap
// of a value with itself. `wr_u128_init` finds out which, before the first load.
//
// With WR_ATOMICS_BUILTIN both go through the compiler's builtins, which ThreadSanitizer can see;
// it cannot see inline assembly.
//
// Order: wr_u128_cas is acquire and release, and on x86-64 a full barrier; wr_u128_load is acquire.
// O1 marks the operations themselves; what each use of them is for is said where it is used.
// O2 is the tag alone, relaxed: a hint of what a slot holds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#if !defined(WR_ATOMICS_BUILTIN)
#include <ck_pr.h>
#endif

struct wr_pair {
    _Alignas(16) uint64_t tag;
    uint64_t word;
};

extern bool wr_u128_vector_load;
void wr_u128_init(void);

#if defined(WR_ATOMICS_BUILTIN)

__extension__ typedef unsigned __int128 wr_u128_raw;

static inline wr_u128_raw wr_u128_pack(struct wr_pair p) {
    return (wr_u128_raw)p.word << 64 | p.tag;
}

static inline struct wr_pair wr_u128_load(struct wr_pair *slot) {
    wr_u128_raw raw = __atomic_load_n((wr_u128_raw *)(void *)slot, __ATOMIC_ACQUIRE); // O1
    return (struct wr_pair){(uint64_t)raw, (uint64_t)(raw >> 64)};
}

static inline bool wr_u128_cas(struct wr_pair *slot, struct wr_pair old, struct wr_pair new) {
    wr_u128_raw expected = wr_u128_pack(old);
    wr_u128_raw *raw = (wr_u128_raw *)(void *)slot;
    const wr_u128_raw desired = wr_u128_pack(new);
    return __atomic_compare_exchange_n(raw, &expected, desired, false, // O1
                                       __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

#else

#if defined(__x86_64__)

// CK's ck_pr_cas_64_2 takes both values from memory; from registers is 2 ns less a grant.
static inline bool wr_u128_cas(struct wr_pair *slot, struct wr_pair old, struct wr_pair new) {
    bool swapped;
    __asm__ volatile("lock cmpxchg16b %1"
                     : "=@ccz"(swapped), "+m"(*slot), "+a"(old.tag), "+d"(old.word)
                     : "b"(new.tag), "c"(new.word)
                     : "memory");
    return swapped;
}

#else

// CK's pair is relaxed off x86: hence the fences.
static inline bool wr_u128_cas(struct wr_pair *slot, struct wr_pair old, struct wr_pair new) {
    uint64_t compare[2] = {old.tag, old.word};
    uint64_t set[2] = {new.tag, new.word};
    ck_pr_fence_memory(); // O1
    bool swapped = ck_pr_cas_64_2((uint64_t *)(void *)slot, compare, set); // O1
    ck_pr_fence_memory(); // O1
    return swapped;
}

#endif

static inline struct wr_pair wr_u128_load_by_cas(struct wr_pair *slot) {
    uint64_t seen[2] = {0, 0};
    uint64_t same[2] = {0, 0}; // EMPTY stays EMPTY; anything else fails and is returned
    ck_pr_cas_64_2_value((uint64_t *)(void *)slot, same, same, seen); // O1
    return (struct wr_pair){seen[0], seen[1]};
}

#if defined(__x86_64__)
#define WR_U128_VECTOR 1

// Where wr_u128_vector_load is known to be true.
static inline struct wr_pair wr_u128_load_vector(struct wr_pair *slot) {
    __extension__ typedef long long vector __attribute__((vector_size(16)));
    vector v;
    __asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*slot) : "memory");
    return (struct wr_pair){(uint64_t)v[0], (uint64_t)v[1]};
}
#endif

static inline struct wr_pair wr_u128_load(struct wr_pair *slot) {
#if defined(__x86_64__)
    if (__builtin_expect(wr_u128_vector_load, true)) return wr_u128_load_vector(slot); // O1
#endif
    return wr_u128_load_by_cas(slot); // O1
}

#endif

// True where wr_find_fast (live.h) may be used.
static inline bool wr_u128_is_cheap(void) {
#if defined(WR_U128_VECTOR)
    return wr_u128_vector_load;
#else
    return true;
#endif
}

// The tag alone, as a hint of what the slot holds.
static inline uint64_t wr_u128_tag_hint(const struct wr_pair *slot) {
    return __atomic_load_n(&slot->tag, __ATOMIC_RELAXED); // O2
}
