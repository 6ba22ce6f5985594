// A lease: tokens debited before they are spent, so that spending touches nothing shared.
//
// Only its thread writes a lease. The one shared word an ask reads is `current` of the version
// ring, a line that is written only when the limit changes.
// I1 Every token in the stash has been debited from the bucket, at a limit whose version is
//    `version`; it is spent or refunded once. So spent + stash <= debited, and debited keeps the
//    bound of decide.c.
// R1 `current` orders nothing: a change of limit voids a stash at the next ask of its thread that
//    sees it, and the refill then reads the limit anew.
// Checked by tests/test_lease.c (the bound, conservation) and tests/stress_lease.c.
#include <string.h>

#include "call.h"
#include "hash.h"

#define CHUNK_DEFAULT 1024
#define AGE_DEFAULT_NS (10 * WEIR_MILLISECOND)

struct lease {
    uint64_t stash;   // tokens held
    uint64_t version; // of the limit they were debited under
    _Atomic uint64_t *current;
    struct weir *limiter;
    struct weir_prepared key;
    struct weir_weight weight;
    uint64_t chunk; // tokens to ask for at the next refill
    uint64_t chunk_max;
    uint64_t age_max_ns;
    uint64_t filled_ns;
};

_Static_assert(sizeof(struct lease) <= sizeof(struct weir_lease), "the public struct has room");

static struct lease *inside(struct weir_lease *lease) {
    return (struct lease *)(void *)lease;
}

static uint64_t version_now(const struct lease *l) {
    return atomic_load_explicit(l->current, memory_order_relaxed); // R1
}

static uint64_t clock_ns(const struct lease *l) {
    return (uint64_t)wr_instant_read(&l->limiter->source, 0, false).ns;
}

static int ask(struct lease *l, enum weir_kind kind, uint64_t cost, struct weir_answer *answer) {
    struct weir_ask a = WEIR_ASK_INIT;
    a.key = weir_prepared_key(&l->key);
    a.cost = cost;
    a.weight = l->weight;
    a.kind = kind;
    return weir_do(l->limiter, &a, answer);
}

static void give_back(struct lease *l) {
    if (l->stash == 0) return;
    (void)ask(l, WEIR_REFUND, l->stash, NULL);
    l->stash = 0;
}

int weir_lease_init(struct weir_lease *lease, struct weir *limiter, struct weir_key key,
                    const struct weir_lease_options *options) {
    const struct weir_lease_options standard = WEIR_LEASE_OPTIONS_INIT;
    const struct weir_lease_options *o = options != NULL ? options : &standard;
    if (o->size != sizeof *o) return WEIR_ESIZE;
    if (lease == NULL || limiter == NULL || o->chunk_max_tokens > UINT64_C(1) << 32)
        return WEIR_EINVAL;
    if (wr_is_caller(limiter)) return WEIR_ECLOCK;
    uint64_t units;
    const int result = wr_cost_units(&limiter->scale, 1, o->weight, &units);
    if (result != WEIR_GRANTED) return result;
    struct lease *l = inside(lease);
    memset(lease, 0, sizeof *lease);
    l->limiter = limiter;
    l->current = &limiter->versions->current;
    l->weight = o->weight;
    l->chunk = 1;
    l->chunk_max = o->chunk_max_tokens != 0 ? o->chunk_max_tokens : CHUNK_DEFAULT;
    l->age_max_ns = o->age_max_ns != 0 ? o->age_max_ns : AGE_DEFAULT_NS;
    weir_prepare(limiter, key, &l->key);
    return WEIR_GRANTED;
}

// Doubles the chunk while the last one went fast, halves it when the bucket gave less than asked.
static void adapt(struct lease *l, uint64_t wanted, uint64_t got, uint64_t now_ns) {
    const bool fast = now_ns - l->filled_ns < l->age_max_ns / 4;
    if (got < wanted) l->chunk = l->chunk / 2 + (l->chunk < 2);
    else if (fast) l->chunk = wr_min_u64(l->chunk * 2, l->chunk_max);
    else if (now_ns - l->filled_ns > l->age_max_ns) l->chunk = l->chunk / 2 + (l->chunk < 2);
    l->filled_ns = now_ns;
}

// There was not enough. A peek tells the whole wait; if the bucket has filled meanwhile, a take
// decides. A refusal is counted once: the refill that got something was not counted as one.
static int refuse(struct lease *l, uint64_t cost, bool uncounted, struct weir_answer *answer) {
    const int result = ask(l, WEIR_PEEK, cost, answer);
    if (result == WEIR_GRANTED) return ask(l, WEIR_TAKE, cost, answer);
    if (result > 0 && uncounted)
        wr_count_refusal(l->limiter, weir_prepared_key(&l->key), result);
    return result;
}

// The stash is short of `cost`: debits a chunk beyond it. All or nothing for this ask.
static int refill(struct lease *l, uint64_t cost, struct weir_answer *answer) {
    l->version = version_now(l);
    const uint64_t short_of = cost - l->stash;
    const uint64_t room = l->chunk_max > l->stash ? l->chunk_max - l->stash : 0;
    const uint64_t ahead = wr_min_u64(l->chunk, room);
    const uint64_t wanted = short_of + (ahead > 0 ? ahead - 1 : 0);
    struct weir_answer own = WEIR_ANSWER_INIT;
    const int result = ask(l, WEIR_TAKE_SOME, wanted < short_of ? short_of : wanted, &own);
    if (result == WEIR_GRANTED && (own.untracked || own.would_deny)) return WEIR_GRANTED;
    const uint64_t got = result == WEIR_GRANTED ? own.granted_tokens : 0;
    adapt(l, wanted, got, clock_ns(l));
    l->stash += got;
    if (l->stash >= cost) {
        l->stash -= cost;
        return WEIR_GRANTED;
    }
    give_back(l); // others can use it
    return refuse(l, cost, result == WEIR_GRANTED, answer);
}

static int take_again(struct lease *l, uint64_t cost, struct weir_answer *answer)
    __attribute__((noinline));
static int take_again(struct lease *l, uint64_t cost, struct weir_answer *answer) {
    if (answer != NULL && !wr_answer_size_is_known(answer)) return WEIR_ESIZE;
    if (version_now(l) != l->version) give_back(l);
    if (l->stash >= cost) {
        l->stash -= cost;
        return WEIR_GRANTED;
    }
    return refill(l, cost, answer);
}

int weir_lease_take(struct weir_lease *lease, uint64_t cost, struct weir_answer *answer) {
    struct lease *l = inside(lease);
    if (WR_UNLIKELY(l->stash < cost || version_now(l) != l->version))
        return take_again(l, cost, answer);
    l->stash -= cost;
    return WEIR_GRANTED;
}

void weir_lease_tick(struct weir_lease *lease) {
    struct lease *l = inside(lease);
    if (l->stash == 0 || clock_ns(l) - l->filled_ns <= l->age_max_ns) return;
    give_back(l);
    l->chunk = l->chunk / 2 + (l->chunk < 2);
}

void weir_lease_fini(struct weir_lease *lease) {
    give_back(inside(lease));
}
