// Changes of limit: a ring of self-contained versions, and the token clock V(t) over them.
//
// Shared words
//   current   written by set_limit's CAS; read by every decision, before and after it copies
//   claims    one bit an entry; set and cleared by the thread that is filling the entry
//   ring[e].t0        written as UNSET(version) by the filler; then once, by a CAS of any thread,
//                     to the start of the version
//   ring[e].ready, v0, frac0, ramp0   written by the filler, after t0 is set, while it still holds
//                     the claim
//   ring[e].*         all else: written by the filler before `current` names the entry
//
// Invariants
// I1 A version number is never used twice, and the entry that `current` names is never filled: a
//    filler claims an entry, then checks that `current` does not name it; nobody else can publish
//    an entry that he has claimed.
// I2 A copy made between two equal reads of `current` is not torn, by I1.
// I3 Only the newest version can have t0 unset: set_limit sets the t0 of the version that it
//    replaces before it publishes, so there is no chain to follow.
// I4 t0 is the reading of a clock that was read after the version was published, or that of
//    set_limit_at; and never before the t0 of the version before it.
// I5 V is the same function of time for everybody: a reader that finds `current` unchanged after it
//    has read the clock read a moment before the next version's t0 (I4). So V at a moment is made
//    with one rate only.
// I6 v0, frac0 and ramp0 are functions of the entry's other words. Only the filler stores them,
//    under its claim: a helper that slept a turn of the ring cannot write into another version.
//
// Linearization
// L1 A change of limit takes effect at the CAS that sets t0, for all readings from t0 on.
//
// Publication
// P1 The entry's words are published by the CAS of `current`, and read after its load. The reader's
//    second load of `current` depends on the clock reading (wr_after), so it is not done early.
// P2 v0, frac0 and ramp0 are published by the store of `ready`.
//
// Relaxed and others
// R1 Copies of words that P1's second load validates; acquire keeps them before it.
// R2 A claim is acquired and released with the entry's plain contents.
// R3 Words of an entry that is claimed by this thread and not yet published.
//
// Checked by tests/model/version.pml (each rule's absence fails there) and tests/stress_limit.c.
#include "now.h"

static bool is_unset(uint64_t t0) {
    return t0 >> 61 == 2; // a time within 2^61 of the epoch has its top three bits equal
}

static uint64_t unset(uint64_t version) {
    return WR_UNSET | (version & (WR_UNSET / 2 - 1));
}

// All of an entry, with its start set.
struct version_facts {
    struct wr_version_copy c;
    uint64_t before_per_ns;
    uint64_t before_t0;
    uint64_t before_v0;
    uint64_t before_frac0;
    uint64_t before_burst;
    uint64_t before_ramp0;
    struct wr_instant instant;
};

static void copy_rest(struct version_facts *f, struct wr_version *e) {
    f->c.unlimited = atomic_load_explicit(&e->unlimited, memory_order_acquire);       // R1
    f->before_per_ns = atomic_load_explicit(&e->before_per_ns, memory_order_acquire); // R1
    f->before_t0 = atomic_load_explicit(&e->before_t0, memory_order_acquire);         // R1
    f->before_v0 = atomic_load_explicit(&e->before_v0, memory_order_acquire);         // R1
    f->before_frac0 = atomic_load_explicit(&e->before_frac0, memory_order_acquire);   // R1
    f->before_burst = atomic_load_explicit(&e->before_burst, memory_order_acquire);   // R1
    f->before_ramp0 = atomic_load_explicit(&e->before_ramp0, memory_order_acquire);   // R1
}

// V, its fraction and the effective burst, `elapsed` after a version started.
struct position {
    uint64_t v;
    uint64_t frac;
    uint64_t ramp;
};

static struct position advance(struct position start, uint64_t per_ns, uint64_t burst,
                               uint64_t elapsed, uint32_t shift) {
    const struct wr_made made = wr_make(elapsed, per_ns, start.frac, shift);
    return (struct position){start.v + made.units, made.frac,
                             wr_ramp(burst, start.ramp, made.units)};
}

// Where the version before this one had come to at a time; never before its own start.
static struct position before_at(const struct version_facts *f, uint64_t t, uint32_t shift) {
    const struct position start = {f->before_v0, f->before_frac0, f->before_ramp0};
    const uint64_t elapsed = (int64_t)(t - f->before_t0) > 0 ? t - f->before_t0 : 0;
    return advance(start, f->before_per_ns, f->before_burst, elapsed, shift);
}

// Fills in v0, frac0 and ramp0 of a copy that has its t0.
static void derive(struct version_facts *f, uint32_t shift) {
    const struct position start = before_at(f, f->c.t0, shift);
    f->c.v0 = start.v;
    f->c.frac0 = start.frac;
    f->c.ramp0 = wr_min_u64(start.ramp, f->c.burst);
}

// The entry in force and a reading of the clock made while it was; sets its start if that is unset.
static struct version_facts facts_read(struct wr_versions *versions,
                                       const struct wr_time_source *source, uint32_t shift,
                                       int64_t at) {
    for (;;) {
        struct version_facts f = {0};
        f.c = wr_version_copy(versions, wr_version_current(versions));
        struct wr_version *e = &versions->ring[f.c.current % WR_VERSIONS];
        copy_rest(&f, e);
        f.instant = wr_instant_read(source, at, true);
        if (!wr_version_still(versions, f.c.current, f.instant.after)) continue;
        if (is_unset(f.c.t0)) {
            const int64_t start = wr_max_i64(f.instant.ns, (int64_t)f.before_t0);
            uint64_t expected = unset(f.c.current >> 8);
            if (!atomic_compare_exchange_strong_explicit(&e->t0, &expected, (uint64_t)start, // L1
                                                         memory_order_acq_rel,  // L1
                                                         memory_order_relaxed)) // L1
                continue; // never use the t0 that was found: it may be another version's
            f.c.t0 = (uint64_t)start;
        }
        derive(&f, shift);
        return f;
    }
}

struct wr_now wr_now_read_slow(struct wr_versions *versions, const struct wr_time_source *source,
                               uint32_t shift, int64_t at) {
    const struct version_facts f = facts_read(versions, source, shift, at);
    const int64_t elapsed = f.instant.ns - (int64_t)f.c.t0;
    struct position p = {f.c.v0, f.c.frac0, f.c.ramp0};
    if (elapsed >= 0) {
        p = advance(p, f.c.per_ns, f.c.burst, (uint64_t)elapsed, shift);
    } else { // before the start: the old rate, and the smaller of the two bursts
        p = before_at(&f, (uint64_t)f.instant.ns, shift);
        p.ramp = wr_min_u64(p.ramp, f.c.burst);
    }
    return (struct wr_now){
        .v = p.v,
        .frac = p.frac,
        .per_ns = f.c.per_ns,
        .ramp = (int64_t)p.ramp,
        .burst = (int64_t)f.c.burst,
        .ns = f.instant.ns,
        .unlimited = f.c.unlimited != 0,
        .early = elapsed < 0,
    };
}

uint64_t wr_early_wait_ns(struct wr_versions *versions, const struct wr_time_source *source,
                          const struct wr_scale *scale, int64_t at, int64_t from, int64_t to) {
    const struct version_facts f = facts_read(versions, source, scale->shift, at);
    // V stands still until then.
    const int64_t begin = wr_max_i64(f.instant.ns, (int64_t)f.before_t0);
    const struct position p = before_at(&f, (uint64_t)begin, scale->shift);
    const int64_t at_start = from + (int64_t)(f.c.v0 - p.v);
    const int64_t cap = (int64_t)wr_min_u64(f.before_burst, f.c.burst);
    if ((int64_t)f.c.t0 > begin && to <= wr_min_i64(at_start, cap))
        return (uint64_t)(begin - f.instant.ns) +
               wr_wait_ns(scale, f.before_per_ns, p.frac, (uint64_t)(to - from));
    const int64_t level = wr_min_i64(at_start, (int64_t)f.c.ramp0);
    const uint64_t missing = to > level ? (uint64_t)(to - level) : 0;
    const uint64_t rest_ns = wr_wait_ns(scale, f.c.per_ns, f.c.frac0, missing);
    if (rest_ns == WEIR_FOREVER) return WEIR_FOREVER;
    return (uint64_t)((int64_t)f.c.t0 - f.instant.ns) + rest_ns;
}

uint64_t wr_early_units(struct wr_versions *versions, const struct wr_time_source *source,
                        uint32_t shift, int64_t at, uint64_t ns) {
    const struct version_facts f = facts_read(versions, source, shift, at);
    const struct position from = before_at(&f, (uint64_t)f.instant.ns, shift);
    const int64_t then = f.instant.ns + (int64_t)ns;
    const int64_t past_start = then - (int64_t)f.c.t0;
    if (past_start < 0) return before_at(&f, (uint64_t)then, shift).v - from.v;
    const struct position start = {f.c.v0, f.c.frac0, f.c.ramp0};
    return advance(start, f.c.per_ns, f.c.burst, (uint64_t)past_start, shift).v - from.v;
}

static void fill(struct wr_version *e, const struct version_facts *now, uint64_t t0,
                 const struct wr_profile *profile, const struct weir_limit *limit) {
    atomic_store_explicit(&e->per_ns, profile->per_ns, memory_order_relaxed);        // R3
    atomic_store_explicit(&e->burst, profile->burst_units, memory_order_relaxed);    // R3
    atomic_store_explicit(&e->unlimited, profile->unlimited, memory_order_relaxed);  // R3
    atomic_store_explicit(&e->tokens, limit->tokens, memory_order_relaxed);          // R3
    atomic_store_explicit(&e->period_ns, limit->period_ns, memory_order_relaxed);    // R3
    atomic_store_explicit(&e->before_per_ns, now->c.per_ns, memory_order_relaxed);   // R3
    atomic_store_explicit(&e->before_t0, now->c.t0, memory_order_relaxed);           // R3
    atomic_store_explicit(&e->before_v0, now->c.v0, memory_order_relaxed);           // R3
    atomic_store_explicit(&e->before_frac0, now->c.frac0, memory_order_relaxed);     // R3
    atomic_store_explicit(&e->before_burst, now->c.burst, memory_order_relaxed);     // R3
    atomic_store_explicit(&e->before_ramp0, now->c.ramp0, memory_order_relaxed);     // R3
    atomic_store_explicit(&e->t0, t0, memory_order_relaxed);                         // R3
}

// Stores what was derived, for the fast path. The caller holds the claim and t0 is set. An
// unlimited version is never made ready: the fast path need not look for it.
static void make_ready(struct wr_version *e, const struct wr_version_copy *c) {
    atomic_store_explicit(&e->v0, c->v0, memory_order_relaxed);       // P2
    atomic_store_explicit(&e->frac0, c->frac0, memory_order_relaxed); // P2
    atomic_store_explicit(&e->ramp0, c->ramp0, memory_order_relaxed); // P2
    if (c->unlimited == 0)
        atomic_store_explicit(&e->ready, c->current, memory_order_release); // P2
}

void wr_versions_init(struct wr_versions *versions, const struct wr_profile *profile,
                      const struct weir_limit *limit) {
    struct version_facts none = {.before_t0 = 0};
    none.c = (struct wr_version_copy){.burst = profile->burst_units,
                                      .ramp0 = profile->burst_units};
    struct wr_version *e = &versions->ring[1];
    fill(e, &none, 0, profile, limit);
    none.c.current = 1 << 8 | 1;
    none.c.unlimited = profile->unlimited;
    make_ready(e, &none.c);
    atomic_store_explicit(&versions->current, none.c.current, memory_order_release); // P1
}

static int claim(struct wr_versions *versions, unsigned except) {
    uint64_t claims = atomic_load_explicit(&versions->claims, memory_order_relaxed); // R2
    for (;;) {
        const uint64_t all = (UINT64_C(1) << WR_VERSIONS) - 1;
        const uint64_t free = ~claims & all & ~(UINT64_C(1) << except);
        if (free == 0) return -1;
        const int entry = __builtin_ctzll(free);
        if (atomic_compare_exchange_weak_explicit(&versions->claims, &claims,     // R2
                                                  claims | UINT64_C(1) << entry,  // R2
                                                  memory_order_acquire,           // R2
                                                  memory_order_relaxed))          // R2
            return entry;
    }
}

static void release(struct wr_versions *versions, int entry) {
    atomic_fetch_and_explicit(&versions->claims, ~(UINT64_C(1) << entry), // R2
                              memory_order_release);                      // R2
}

int wr_versions_change(struct wr_versions *versions, const struct wr_time_source *source,
                       uint32_t shift, int64_t at, const struct wr_profile *profile,
                       const struct weir_limit *limit) {
    int entry = -1;
    for (;;) {
        const struct version_facts f = facts_read(versions, source, shift, at);
        const unsigned in_force = (unsigned)(f.c.current % WR_VERSIONS);
        if (entry < 0) {
            entry = claim(versions, in_force);
            if (entry < 0) return WEIR_EBUSY;
        }
        uint64_t current = atomic_load_explicit(&versions->current, memory_order_acquire); // P1
        if (current % WR_VERSIONS == (unsigned)entry) { // I1
            release(versions, entry);
            entry = -1;
            continue;
        }
        const uint64_t version = (f.c.current >> 8) + 1;
        const bool caller = source->kind == WEIR_CLOCK_CALLER;
        const uint64_t t0 = caller ? (uint64_t)wr_max_i64(f.instant.ns, (int64_t)f.c.t0)
                                   : unset(version);
        struct wr_version *e = &versions->ring[entry];
        fill(e, &f, t0, profile, limit);
        current = f.c.current;
        if (!atomic_compare_exchange_strong_explicit(&versions->current, &current, // P1
                                                     version << 8 | (unsigned)entry, // P1
                                                     memory_order_acq_rel,           // P1
                                                     memory_order_relaxed))          // P1
            continue;
        const struct version_facts mine = facts_read(versions, source, shift, at);
        if (mine.c.current == (version << 8 | (unsigned)entry)) make_ready(e, &mine.c);
        release(versions, entry);
        return WEIR_GRANTED;
    }
}

void wr_versions_limit(struct wr_versions *versions, uint64_t unit_tokens,
                       struct weir_limit *limit) {
    for (;;) {
        const uint64_t current =
            atomic_load_explicit(&versions->current, memory_order_acquire); // P1
        struct wr_version *e = &versions->ring[current % WR_VERSIONS];
        limit->tokens = atomic_load_explicit(&e->tokens, memory_order_acquire);       // R1
        limit->period_ns = atomic_load_explicit(&e->period_ns, memory_order_acquire); // R1
        limit->burst = atomic_load_explicit(&e->burst, memory_order_acquire);         // R1
        if (wr_version_still(versions, current, 0)) break;
    }
    if (wr_is_unlimited(limit)) *limit = weir_unlimited();
    else limit->burst /= unit_tokens;
}
