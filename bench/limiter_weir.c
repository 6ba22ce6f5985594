// weir as it is asked one key at a time: without an answer, with one, with integer keys, and with a
// key hashed beforehand.
#include "limiter_weir.h"

#include <string.h>

#include "bench.h"

void *bench_weir_create(const struct weir_limit *limit, uint64_t keys) {
    struct weir *limiter;
    struct weir_error error;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = *limit;
    options.capacity_keys = keys;
    if (weir_create(&limiter, &options, &error) != WEIR_GRANTED)
        bench_fail("weir_create: %s", error.text);
    return limiter;
}

void bench_weir_destroy(void *limiter) {
    weir_destroy(limiter);
}

static inline bool take(void *limiter, const char *text, size_t length, uint64_t cost) {
    return weir_take(limiter, weir_bytes(text, length), cost, NULL) == WEIR_GRANTED;
}
BENCH_LOOPS(take)

bool bench_weir_ask(void *limiter, const char *text, size_t length, uint64_t cost) {
    return take(limiter, text, length, cost);
}

static const struct bench_limiter plain = {
    .name = "take", .variant = "", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .same = take_same, .walk = take_walk,
    .fresh = take_fresh};
BENCH_LIMITER(plain)

static inline bool take_answer(void *limiter, const char *text, size_t length, uint64_t cost) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const bool granted =
        weir_take(limiter, weir_bytes(text, length), cost, &answer) == WEIR_GRANTED;
    bench_keep(answer.remaining);
    return granted;
}
BENCH_LOOPS(take_answer)

static const struct bench_limiter with_answer = {
    .name = "take", .variant = "/answer", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .same = take_answer_same};
BENCH_LIMITER(with_answer)

// The integer is the eight bytes behind "user:": digits and zeroes, one number a key.
static inline bool take_id(void *limiter, const char *text, size_t length, uint64_t cost) {
    (void)length;
    uint64_t id;
    memcpy(&id, text + 5, sizeof id);
    return weir_take(limiter, weir_id(id), cost, NULL) == WEIR_GRANTED;
}
BENCH_LOOPS(take_id)

static bool ask_id(void *limiter, const char *text, size_t length, uint64_t cost) {
    return take_id(limiter, text, length, cost);
}

static const struct bench_limiter of_ids = {
    .name = "take", .variant = "/id", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = ask_id, .same = take_id_same, .walk = take_id_walk};
BENCH_LIMITER(of_ids)

static uint64_t take_prepared(void *limiter, const struct bench_key *key, uint64_t n) {
    struct weir_prepared prepared;
    weir_prepare(limiter, weir_bytes(key->text, key->length), &prepared);
    uint64_t granted = 0;
    for (uint64_t i = 0; i < n; i++)
        granted += weir_take(limiter, weir_prepared_key(&prepared), 1, NULL) == WEIR_GRANTED;
    return granted;
}

static const struct bench_limiter of_prepared = {
    .name = "take", .variant = "/prepared", .bounded = true, .create = bench_weir_create,
    .destroy = bench_weir_destroy, .ask = bench_weir_ask, .same = take_prepared};
BENCH_LIMITER(of_prepared)
