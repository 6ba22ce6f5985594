// Many asks at once: hash all, fetch their first lines, then the second lines of those that are not
// there, then decide, with one reading of the clock.
//
// A reading shared by up to 32 asks is older than their scans, by about a microsecond. For a grant
// that is safe: it is judged at the reading, by a CAS on the word it saw. A refusal so close that
// the age could matter (2 us, as in decide.c) is judged again with a reading of its own. A key
// without a bucket goes the whole way: its clock must be read after its second scan. (L3 is
// defined in decide.c.)
#include "call.h"
#include "hash.h"
#include "live.h"
#include "side.h"

#define CHUNK 32

static int note(int first, int result) {
    return first == WEIR_GRANTED ? result : first;
}

// Of one size each, that of the first is the step from one to the next. Of a later one with another
// size only weir_do is told, which refuses what it does not know.
struct steps {
    size_t ask_bytes;
    size_t answer_bytes;
};

static const struct weir_ask *ask_at(const struct weir_ask *asks, size_t index, size_t bytes) {
    return (const struct weir_ask *)(const void *)((const unsigned char *)asks + index * bytes);
}

// An ask that a shared reading is good for: a plain take.
static bool is_plain(const struct weir *w, const struct weir_ask *ask,
                     const struct weir_answer *answer, const struct steps *steps) {
    return !w->not_plain && ask->cost - 1 < w->scale.cost_max && ask->kind == WEIR_TAKE &&
           ask->weight.num == ask->weight.den && ask->size == steps->ask_bytes &&
           (answer == NULL || answer->size == sizeof *answer);
}

// What a chunk's grants add to the counters, added once.
struct tally {
    uint64_t granted;
    uint64_t more_tokens; // beyond one a grant
};

// A plain take at the chunk's reading. WR_AGAIN where the case is not ordinary.
static inline __attribute__((always_inline)) int take_shared(
    struct weir *w, struct wr_synced *s, const struct wr_place *place, struct wr_pair *way,
    const struct weir_ask *ask, const struct wr_now *now, struct weir_answer *answer,
    struct tally *tally) {
    struct wr_pair seen;
    struct wr_verdict v;
    const uint64_t units = wr_cost_units_plain(&w->scale, ask->cost);
    if (way != NULL) seen = wr_u128_load(way); // L3
    else way = wr_find_fast_in(place, 1, s == NULL, &seen);
    if (WR_UNLIKELY(way == NULL || !wr_slot_is(seen, place->fingerprint, WR_STATE_LIVE)))
        return WR_AGAIN;
    const int result = wr_take_live_in(w, s, way, seen, now, units, ask->cost, &v);
    if (WR_UNLIKELY(result == WR_AGAIN)) return WR_AGAIN;
    if (answer != NULL) {
        const struct wr_ask full = {
            .key = ask->key, .cost = ask->cost, .units = units, .kind = WEIR_TAKE};
        return wr_answer(w, &full, now, &v, false, answer);
    }
    if (result == WEIR_GRANTED) {
        tally->granted++;
        tally->more_tokens += ask->cost - 1;
    } else {
        wr_count_refused(w, WR_denied, ask->key);
    }
    return result;
}

// Up to CHUNK asks: all lines on their way before the first is looked at.
static inline __attribute__((always_inline)) int do_chunk(
    struct weir *w, struct wr_synced *s, const struct weir_ask *asks, size_t count, int *results,
    struct weir_answer *answers, const struct steps *steps) {
    struct wr_place places[CHUNK];
    struct wr_pair *ways[CHUNK];
    struct wr_now now = {0};
    struct tally tally = {0, 0};
    int first = WEIR_GRANTED;
    for (size_t i = 0; i < count; i++) {
        places[i] =
            wr_place_find(&w->geometry, wr_hash(w, ask_at(asks, i, steps->ask_bytes)->key));
        __builtin_prefetch(places[i].line[0]);
    }
    for (size_t i = 0; i < count; i++) {
        struct wr_pair seen;
        ways[i] = wr_find_fast_in(&places[i], 0, s == NULL, &seen);
        if (ways[i] == NULL) __builtin_prefetch(places[i].line[1]);
    }
    bool shared = wr_now_try(w->versions, &w->source, &w->scale.shift, 0, false, &now);
    for (size_t i = 0; i < count; i++) {
        const struct weir_ask *ask = ask_at(asks, i, steps->ask_bytes);
        struct weir_answer *answer = wr_answer_at(answers, i, steps->answer_bytes);
        int result = WR_AGAIN;
        if (WR_LIKELY(shared && is_plain(w, ask, answer, steps)))
            result = take_shared(w, s, &places[i], ways[i], ask, &now, answer, &tally);
        if (WR_UNLIKELY(result == WR_AGAIN)) {
            result = weir_do(w, ask, answer);
            // It read the clock: what follows is not judged at an earlier reading.
            shared = shared && wr_now_try(w->versions, &w->source, &w->scale.shift, 0, false, &now);
        }
        results[i] = result;
        first = note(first, result);
    }
    if (tally.granted != 0) wr_count(w, WR_granted, tally.granted);
    if (tally.more_tokens != 0) wr_count(w, WR_tokens, tally.more_tokens);
    return first;
}

static int do_chunk_plain(struct weir *w, const struct weir_ask *asks, size_t count, int *results,
                          struct weir_answer *answers, const struct steps *steps) {
    return do_chunk(w, NULL, asks, count, results, answers, steps);
}

static int do_chunk_synced(struct weir *w, struct wr_synced *s, const struct weir_ask *asks,
                           size_t count, int *results, struct weir_answer *answers,
                           const struct steps *steps) __attribute__((noinline));
static int do_chunk_synced(struct weir *w, struct wr_synced *s, const struct weir_ask *asks,
                           size_t count, int *results, struct weir_answer *answers,
                           const struct steps *steps) {
    return do_chunk(w, s, asks, count, results, answers, steps);
}

int weir_do_batch(struct weir *limiter, const struct weir_ask *asks, size_t count, int *results,
                  struct weir_answer *answers) {
    if (count == 0) return WEIR_GRANTED;
    if (asks == NULL || results == NULL) return WEIR_EINVAL;
    if (answers != NULL && !wr_answer_size_is_known(answers)) return WEIR_ESIZE;
    if (asks->size < WR_ASK_LEAST || asks->size > sizeof *asks) return WEIR_ESIZE;
    const struct steps steps = {asks->size, answers != NULL ? answers->size : 0};
    int first = WEIR_GRANTED;
    for (size_t done = 0; done < count; done += CHUNK) {
        const size_t some = count - done < CHUNK ? count - done : CHUNK;
        const struct weir_ask *next = ask_at(asks, done, steps.ask_bytes);
        struct weir_answer *answer = wr_answer_at(answers, done, steps.answer_bytes);
        struct wr_synced *s = wr_synced_of(limiter);
        int *result = results + done;
        first = note(first, WR_LIKELY(s == NULL)
                                ? do_chunk_plain(limiter, next, some, result, answer, &steps)
                                : do_chunk_synced(limiter, s, next, some, result, answer, &steps));
    }
    return first;
}
