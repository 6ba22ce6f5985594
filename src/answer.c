// From a verdict in units to the caller's answer in tokens and nanoseconds, and the counters.
#include "live.h"
#include "synced.h"

#include <string.h>

// Until a bucket has come from one level to another.
static uint64_t wait_ns(const struct weir *w, const struct wr_ask *ask, const struct wr_now *now,
                        int64_t from, int64_t to) {
    if (from >= to) return 0;
    if (WR_UNLIKELY(now->early))
        return wr_early_wait_ns(w->versions, &w->source, &w->scale, ask->at, from, to);
    return wr_wait_ns(&w->scale, now->per_ns, now->frac, (uint64_t)(to - from));
}

// A refused reservation: until what it wants is due within max_wait, and within max_ahead.
static uint64_t reserve_after_ns(const struct weir *w, const struct wr_ask *ask,
                                 const struct wr_now *now, const struct wr_verdict *v) {
    const int64_t wanted = (int64_t)ask->units;
    const uint64_t room_ns =
        wait_ns(w, ask, now, v->after, wanted - (int64_t)w->scale.ahead_units);
    const uint64_t due_ns = wait_ns(w, ask, now, v->after, wanted);
    // At rate 0 nothing is reserved that is not there (judge.c); what never comes is not due.
    if (now->per_ns == 0 || due_ns == WEIR_FOREVER) return due_ns;
    if (ask->max_wait_ns == 0) return room_ns > 0 ? room_ns : due_ns;
    const uint64_t soon_ns = due_ns > ask->max_wait_ns ? due_ns - ask->max_wait_ns : 0;
    return soon_ns > room_ns ? soon_ns : room_ns;
}

static uint64_t retry_after_ns(const struct weir *w, const struct wr_ask *ask,
                               const struct wr_now *now, const struct wr_verdict *v) {
    switch (v->result) {
    case WEIR_GRANTED: return ask->kind == WEIR_RESERVE ? wait_ns(w, ask, now, v->after, 0) : 0;
    case WEIR_NEVER: return WEIR_FOREVER;
    default: break;
    }
    if (v->wanted == INT64_MAX) return WEIR_FOREVER;
    if (ask->kind == WEIR_RESERVE && v->result == WEIR_DENIED && !w->dry_run)
        return reserve_after_ns(w, ask, now, v);
    return wait_ns(w, ask, now, v->after, v->wanted);
}

static uint64_t debt_tokens(const struct weir *w, const struct wr_ask *ask, int64_t level) {
    return level >= 0 ? 0 : wr_units_to_tokens_up(&w->scale, (uint64_t)-level, ask->weight);
}

static void fill(const struct weir *w, const struct wr_ask *ask, const struct wr_now *now,
                 const struct wr_verdict *v, struct weir_answer *answer) {
    if (now->unlimited) {
        answer->remaining = UINT64_MAX;
        return;
    }
    const uint64_t level = v->after > 0 ? (uint64_t)v->after : 0;
    answer->remaining = wr_units_to_tokens(&w->scale, level, ask->weight);
    answer->debt = debt_tokens(w, ask, v->after);
    answer->retry_after_ns = retry_after_ns(w, ask, now, v);
    if (w->dry_run && ask->kind == WEIR_RESERVE) answer->retry_after_ns = 0; // due at once
    answer->full_after_ns = wait_ns(w, ask, now, v->after, now->burst);
}

void wr_count_refusal(struct weir *w, struct weir_key key, int result) {
    const enum wr_counter_id refused = result == WEIR_DENIED  ? WR_denied
                                       : result == WEIR_NEVER ? WR_never
                                                              : WR_no_room;
    wr_count_refused(w, w->dry_run ? WR_would_deny : refused, key);
}

static void count_kind(struct weir *w, const struct wr_ask *ask, const struct wr_verdict *v) {
    if (v->result != WEIR_GRANTED) {
        wr_count_refusal(w, ask->key, v->result);
        return;
    }
    switch (ask->kind) {
    case WEIR_REFUND: wr_count(w, WR_refunded_tokens, v->tokens); return;
    case WEIR_CHARGE:
        wr_count(w, WR_tokens, v->tokens);
        wr_count(w, WR_clipped_tokens, ask->cost - v->tokens);
        return;
    default: break;
    }
    wr_count_granted(w, v->tokens);
}

static void count_wait(struct weir *w, uint64_t ns) {
    const uint32_t line = wr_thread_line();
    wr_add(&w->counts[line].waits[wr_wait_bucket(ns)], line < WR_THREAD_OWN, 1);
}

void weir_private_count(struct weir *w, struct weir_key key, uint64_t cost, int result,
                        uint64_t retry_after_ns) {
    if (result == WEIR_GRANTED) {
        wr_count_granted(w, cost);
        return;
    }
    wr_count_refusal(w, key, result);
    if (result == WEIR_DENIED) count_wait(w, retry_after_ns);
}

void weir_private_count_untracked(struct weir *w) {
    wr_count(w, WR_untracked, 1);
}

bool weir_private_is_dry_run(const struct weir *w) {
    return w->dry_run;
}

int wr_answer(struct weir *w, const struct wr_ask *ask, const struct wr_now *now,
              const struct wr_verdict *v, bool untracked, struct weir_answer *answer) {
    if (WR_UNLIKELY(v->result < 0)) return v->result; // a failure changes and counts nothing
    const bool counted = ask->kind != WEIR_PEEK && !ask->silent;
    const bool refused = v->result != WEIR_GRANTED;
    const bool would_deny = refused && w->dry_run;
    if (counted) {
        count_kind(w, ask, v);
        if (untracked) wr_count(w, WR_untracked, 1);
    }
    if (ask->due != NULL) *ask->due = now->v + (uint64_t)(v->after < 0 ? -v->after : 0);
    if (answer != NULL) {
        *answer = (struct weir_answer){
            .size = sizeof *answer,
            .granted_tokens = would_deny ? ask->cost : v->tokens,
            .untracked = untracked || (now->unlimited && !refused),
            .would_deny = would_deny,
        };
        fill(w, ask, now, v, answer);
        if (counted && v->result == WEIR_DENIED) count_wait(w, answer->retry_after_ns);
    }
    return would_deny ? WEIR_GRANTED : v->result;
}
