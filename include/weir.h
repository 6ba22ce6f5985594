// weir.h - a lock-free rate limiter by key, for worker pools.
//
//     struct weir *limiter;
//     struct weir_options options = WEIR_OPTIONS_INIT;
//     options.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 20};
//     options.capacity_keys = 1000000;
//     if (weir_create(&limiter, &options, NULL) != WEIR_GRANTED) { ... }
//     struct weir_answer answer = WEIR_ANSWER_INIT;
//     if (weir_take(limiter, weir_str("user:7"), 1, &answer) == WEIR_GRANTED) send();
//     else retry_in(answer.retry_after_ns);
//     weir_destroy(limiter);
//
// Units. Time is in nanoseconds, on the limiter's own clock; tokens are whole numbers. A limit is
// `tokens` every `period_ns`, with at most `burst` saved up. Arithmetic is exact: a key that was
// denied passes after exactly `retry_after_ns`, and not a nanosecond sooner, if nobody else spends.
//
// The promise. Over any window of the limiter's clock a key is granted at most
// burst + rate * window + max_rate * 1 ns tokens (and what was refunded, and what a displaced
// bucket was forgiven: both are counted). A full bucket and an absent key are the same thing, so
// memory is bounded by `capacity_keys` and no sweeper runs.
//
// Results. 0 is yes; a positive result is an ordinary no; a negative result is a failure, and then
// nothing was changed. weir_strerror() gives the words. errno is neither read nor kept.
//
// Threads. Every call may be made from any thread at the same time, without registration, except
// weir_create and weir_destroy of the same limiter; destroy comes after every other call has
// returned. A decision is lock-free: it does not block, allocate or make a system call, and a
// thread stopped or killed inside it holds nobody up. A forked child goes on with its own copy of
// the buckets. Only weir_wait sleeps.
//
// Cost. A decision reads the clock once (once more when a new key is put into the table), and one
// or two cache lines of the table. A denial writes nothing but the calling thread's counters.
//
// Structs that may grow carry their size first; initialise them with the macro of their name.
#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#else
#define WEIR_API
#define WEIR_MUST_USE
#endif

// The ABI is kept within one soname: structs grow at their end only, results are never renumbered.
#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION "0.1.0"

// Every result: X(name, value, words).
#define WEIR_RESULTS(X)                                                                            \
    X(GRANTED, 0, "granted")                                                                       \
    X(DENIED, 1, "denied: not enough tokens yet; ask again after retry_after_ns")                  \
    X(NEVER, 2, "the cost is above the burst and can never fit; lower the cost or raise the burst")\
    X(NO_ROOM, 3, "no room for one more busy key, or one more event; raise the capacity")     \
    X(PENDING, 4, "not answered yet (strict limits of weir_sync.h)")                               \
    X(EINVAL, -1, "an argument is out of its range")                                               \
    X(ENOMEM, -2, "the allocator returned no memory")                                              \
    X(ELIMIT, -3, "the limit, or an option beside it, cannot be kept exactly")                     \
    X(ECLOCK, -4, "the call does not fit the limiter's clock (use the _at form with a caller's "   \
                  "clock, the plain form otherwise)")                                              \
    X(EBUSY, -5, "too many changes of limit are under way; try again")                             \
    X(EWEIGHT, -6, "the weight does not divide the cost to within one part in a million")          \
    X(ESIZE, -7, "a struct's size field is unknown; initialise it with its _INIT macro")           \
    X(ECLOSED, -8, "closed")                                         \
    X(ENOSPC, -9, "the buffer is too small")                                                       \
    X(ESYS, -10, "the operating system refused")                                                   \
    X(EUNSYNCED, -11, "Redis did not answer in time; see last_error of weir_sync_stats")

enum weir_result {
#define WEIR_RESULT_ENTRY(name, value, words) WEIR_##name = value,
    WEIR_RESULTS(WEIR_RESULT_ENTRY)
#undef WEIR_RESULT_ENTRY
};

// The words for a result; "unknown result" for a number that is none. Static storage.
WEIR_API const char *weir_strerror(int result);

// The version of the library that is linked, "0.1.0"; WEIR_VERSION is the header's. Static storage.
WEIR_API const char *weir_version(void);

// A longer reason than a result gives: what was refused, why, and the remedy, in one line.
struct weir_error {
    char text[256];
};

// ---------------------------------------------------------------------------------------------
// Limits

#define WEIR_MICROSECOND UINT64_C(1000)
#define WEIR_MILLISECOND UINT64_C(1000000)
#define WEIR_SECOND UINT64_C(1000000000)
#define WEIR_MINUTE (60 * WEIR_SECOND)
#define WEIR_HOUR (3600 * WEIR_SECOND)
#define WEIR_DAY (86400 * WEIR_SECOND)
#define WEIR_FOREVER UINT64_MAX // a wait that never ends, a time that never comes

// `tokens` every `period_ns`, and at most `burst` saved up.
//   tokens     0: nothing comes back, the burst is all there is
//   period_ns  1 up to 2^63-1
//   burst      0: everything is denied (a kill switch)
// The rate must be below 1.6 * 10^10 tokens a second; for more, count in a coarser token (KiB).
struct weir_limit {
    uint64_t tokens;
    uint64_t period_ns;
    uint64_t burst;
};

// No limit: everything is granted and nothing is debited. Debts stay as they are meanwhile.
#define WEIR_UNLIMITED_TOKENS UINT64_MAX
static inline struct weir_limit weir_unlimited(void) {
    struct weir_limit limit = {WEIR_UNLIMITED_TOKENS, 1, WEIR_UNLIMITED_TOKENS};
    return limit;
}

// ---------------------------------------------------------------------------------------------
// Keys

// What is limited. Make one with the functions below; it holds a pointer to the caller's bytes,
// which must stay until the call that it is given to returns. A limit that has no keys, such as
// that of a provider, is a limiter of capacity 1 and any one key.
struct weir_key {
    const void *data;
    uint64_t word;
};

// `length` bytes, 0 to 2^32; any bytes.
static inline struct weir_key weir_bytes(const void *data, size_t length) {
    struct weir_key key = {length != 0 ? data : "", length};
    return key;
}

// A C string, without its end.
static inline struct weir_key weir_str(const char *text) {
    struct weir_key key = {text, 0};
    while (text[key.word] != '\0') key.word++;
    return key;
}

// A 64-bit integer: the fast path. The same key as its eight bytes, lowest first.
static inline struct weir_key weir_id(uint64_t id) {
    struct weir_key key = {NULL, id};
    return key;
}

// A key hashed beforehand, for keys asked about again and again. Good for the limiter that it was
// prepared for, as long as the caller's bytes stay.
struct weir_prepared {
    const void *data;
    uint64_t word;
    uint64_t hash;
};

static inline struct weir_key weir_prepared_key(const struct weir_prepared *prepared) {
    struct weir_key key = {prepared, UINT64_MAX};
    return key;
}

// A key's share of the limit, num/den: 2/1 has twice the rate and twice the burst. {0, 0} is 1/1.
// 1 up to 2^32-1 each. Use the same weight in every ask of a key.
struct weir_weight {
    uint32_t num;
    uint32_t den;
};

// ---------------------------------------------------------------------------------------------
// Making a limiter

struct weir;

// What to do when all eight places of a key are taken by other busy keys.
enum weir_full_policy {
    WEIR_FULL_DISPLACE = 0, // forget the fullest bucket of the eight (counted, with its debt)
    WEIR_FULL_DENY,         // answer WEIR_NO_ROOM
    WEIR_FULL_GRANT,        // grant without a bucket (answer.untracked, counted)
};

enum weir_clock {
    WEIR_CLOCK_AUTO = 0,  // the CPU's invariant counter where there is one, else CLOCK_MONOTONIC
    WEIR_CLOCK_COUNTER,   // the same; refused at creation where there is no invariant counter
    WEIR_CLOCK_MONOTONIC, // clock_gettime(CLOCK_MONOTONIC)
    WEIR_CLOCK_COARSE,    // CLOCK_MONOTONIC_COARSE: cheap, steps of a few milliseconds
    WEIR_CLOCK_CALLER,    // every ask brings its own reading (the _at calls, weir_ask.now_ns)
};

// Where memory comes from. `map` returns `bytes` bytes of zeroes aligned to `align` (a power of
// two), or NULL; `unmap` takes them back. Called at create and destroy only.
struct weir_allocator {
    void *(*map)(void *context, size_t bytes, size_t align);
    void (*unmap)(void *context, void *memory, size_t bytes);
    void *context;
};

struct weir_options {
    size_t size;                    // set by WEIR_OPTIONS_INIT
    struct weir_limit limit;        // the first limit; required
    uint64_t capacity_keys;         // keys busy (not full) at the same time, 1 to 2^32; 0: 65,536
    uint32_t shards;                // 1 to 4,096; 0: from the CPUs and the capacity
    enum weir_full_policy full_policy;
    enum weir_clock clock;
    uint64_t max_rate_tokens;       // the fastest limit this limiter may be given later, as
    uint64_t max_rate_period_ns;    //   tokens a period; 0, 0: the first limit's rate. Required
                                    //   when that is 0 or unlimited.
    uint64_t max_debt_tokens;       // how far weir_charge may go below zero; 0: the burst
    uint64_t max_ahead_tokens;      // how far reservations may go; 0: an hour's, at least a burst
    bool dry_run;                   // count what would be denied, and grant it
    const struct weir_allocator *allocator; // NULL: mmap, with huge pages asked for
    const char *name;               // for metrics; copied, 63 bytes at most; NULL: "weir"
};

#define WEIR_OPTIONS_INIT {sizeof(struct weir_options), {0, 0, 0}, 0, 0, WEIR_FULL_DISPLACE, \
                           WEIR_CLOCK_AUTO, 0, 0, 0, 0, false, NULL, NULL}

// Makes a limiter. `error` may be NULL; on a failure it says in words what was refused and why.
//   WEIR_GRANTED  *limiter is ready
//   WEIR_ELIMIT   the limit, a burst, debt or ahead too large to keep exactly, a rate too high
//   WEIR_EINVAL   an option out of its range
//   WEIR_ECLOCK   WEIR_CLOCK_COUNTER where there is no invariant counter
//   WEIR_ENOMEM   no memory
//   WEIR_ESIZE    options->size is unknown
// Memory: 32 bytes a key of capacity, and under 64 KiB and 8 KiB a shard.
WEIR_API WEIR_MUST_USE int weir_create(struct weir **limiter, const struct weir_options *options,
                                       struct weir_error *error);

// Wakes every weir_wait, which returns WEIR_ECLOSED, now and later. Other calls go on. Idempotent.
WEIR_API void weir_close(struct weir *limiter);

// Frees the limiter, which no thread may be using any more. NULL is allowed.
WEIR_API void weir_destroy(struct weir *limiter);

// ---------------------------------------------------------------------------------------------
// Asks

struct weir_answer {
    size_t size;             // set by WEIR_ANSWER_INIT
    uint64_t granted_tokens; // what this ask took, or gave back (a refund); in a dry run that would
                             //   deny, what it lets pass though nothing was taken
    uint64_t remaining;      // whole tokens left to this key after the ask (a peek: as if taken)
    uint64_t debt;           // whole tokens below zero, rounded up
    uint64_t retry_after_ns; // 0 when granted (a reservation: until it is due); WEIR_FOREVER when
                             //   waiting does not help; for WEIR_NO_ROOM, until a place is free
    uint64_t full_after_ns;  // until the bucket is full again; WEIR_FOREVER at rate 0
    bool untracked;          // granted without a bucket (WEIR_FULL_GRANT, or no limit)
    bool would_deny;         // a dry run: granted, but the limit says no
};

#define WEIR_ANSWER_INIT {sizeof(struct weir_answer), 0, 0, 0, 0, 0, false, false}

// Takes `cost` tokens of `key`, all or none. `answer` may be NULL, which is a few ns faster.
//   cost  0: only a question, granted unless the key is in debt or the burst is 0
//   WEIR_GRANTED, WEIR_DENIED, WEIR_NEVER (cost above the burst), WEIR_NO_ROOM (WEIR_FULL_DENY)
//   WEIR_ECLOCK   the limiter has a caller's clock
WEIR_API int weir_take(struct weir *limiter, struct weir_key key, uint64_t cost,
                       struct weir_answer *answer);

// What an ask does.
enum weir_kind {
    WEIR_TAKE = 0,  // take the cost, all or none
    WEIR_TAKE_SOME, // take min(cost, whole tokens there are); granted_tokens says how many
    WEIR_PEEK,      // answer as WEIR_TAKE would, and change nothing
    WEIR_CHARGE,    // debit a cost known only afterwards, whatever the level; clipped at max_debt
    WEIR_REFUND,    // give back; a bucket never holds more than its burst
    WEIR_RESERVE,   // take from the future: granted, and due after retry_after_ns
    WEIR_RESET,     // fill the bucket: forget what was spent and owed
};

// One ask in full: the form behind the short calls, and the element of a batch.
struct weir_ask {
    size_t size; // set by WEIR_ASK_INIT
    struct weir_key key;
    uint64_t cost;
    struct weir_weight weight; // {0, 0}: 1/1
    enum weir_kind kind;
    int64_t now_ns;       // read only with WEIR_CLOCK_CALLER
    uint64_t max_wait_ns; // WEIR_RESERVE: refuse what would be due later; 0: up to max_ahead
};

#define WEIR_ASK_INIT {sizeof(struct weir_ask), {NULL, 0}, 1, {0, 0}, WEIR_TAKE, 0, 0}

// Carries out one ask. Results as the short calls; also
//   WEIR_EWEIGHT  cost * den / num is not a whole number of units to within 1 part in 10^6
//   WEIR_ESIZE    ask->size or answer->size is unknown
WEIR_API int weir_do(struct weir *limiter, const struct weir_ask *ask, struct weir_answer *answer);

// weir_take at the caller's reading `now_ns`, for a limiter with WEIR_CLOCK_CALLER. Readings may
// come in any order: one older than others delays by at most the difference and gives no token (up
// to an hour; an older one still is read as if nothing had been dropped from the table since). The
// first reading is the epoch: readings more than 73 years from it (18 from 4*10^9 tokens a second
// on) are clamped.
WEIR_API int weir_take_at(struct weir *limiter, struct weir_key key, uint64_t cost, int64_t now_ns,
                          struct weir_answer *answer);

// Answers as weir_take would - `remaining` is what would be left - and changes nothing. A cost of 0
// asks for the level itself.
WEIR_API int weir_peek(struct weir *limiter, struct weir_key key, uint64_t cost,
                       struct weir_answer *answer);

// Debits `cost` whatever the level, down to max_debt below zero; answer->granted_tokens is what was
// debited, less than `cost` where it was clipped.
WEIR_API int weir_charge(struct weir *limiter, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer);

// Gives `cost` back. A full (or absent) bucket stays full; answer->granted_tokens says how many
// whole tokens came back.
WEIR_API int weir_refund(struct weir *limiter, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer);

// Fills the key's bucket: forgets what it spent and owes.
WEIR_API int weir_reset(struct weir *limiter, struct weir_key key);

// Hashes `key` for `limiter` once; ask with weir_prepared_key(&prepared) afterwards.
WEIR_API void weir_prepare(const struct weir *limiter, struct weir_key key,
                           struct weir_prepared *prepared);

// Takes as many of `cost` tokens as there are whole ones; answer->granted_tokens says how many.
// WEIR_DENIED when there is none.
WEIR_API int weir_take_some(struct weir *limiter, struct weir_key key, uint64_t cost,
                            struct weir_answer *answer);

// Takes `cost` tokens from the future. WEIR_GRANTED: they are the caller's, due after
// answer->retry_after_ns (0: now); whoever reserves later is due later. WEIR_DENIED: it would be
// due later than `max_wait_ns` (0: any time) or than max_ahead allows, and nothing was taken.
WEIR_API int weir_reserve(struct weir *limiter, struct weir_key key, uint64_t cost,
                          uint64_t max_wait_ns, struct weir_answer *answer);

// Gives back what a reservation of `cost` took, before it is used. Later reservations keep their
// times; the place goes to the next one made.
WEIR_API int weir_cancel(struct weir *limiter, struct weir_key key, uint64_t cost,
                         struct weir_answer *answer);

// Carries out `count` asks as weir_do would, in order, with their table lines fetched side by side:
// over a large table several times faster an ask. results[i] is the result of asks[i]; `answers`
// may be NULL. Asks of up to 32 share one reading of the clock.
// Returns WEIR_GRANTED when all were granted, else the first other result.
WEIR_API int weir_do_batch(struct weir *limiter, const struct weir_ask *asks, size_t count,
                           int *results, struct weir_answer *answers);

// One limit of several that an event must pass.
struct weir_part {
    struct weir *limiter;
    struct weir_ask ask; // its kind is not looked at: it is a take
};

#define WEIR_PARTS_MAX 64

// Takes from every part or from none: all are peeked at, then debited in order; a refusal on the
// way refunds in reverse. `refused` (may be NULL) is set to the index of the part that refused, or
// to `count`; `answers` (may be NULL) has one for each part. Returns WEIR_GRANTED or that part's
// result. A dry-run limiter never refuses. A thread killed half way leaves at most one cost a
// limiter debited, and others may see a denial meanwhile.
//   count  1 to WEIR_PARTS_MAX, else WEIR_EINVAL
WEIR_API int weir_take_all(const struct weir_part *parts, size_t count, size_t *refused,
                           struct weir_answer *answers);

// Sleeps until `cost` tokens are the caller's. The place in the queue is a reservation: in order of
// arrival, each waiter sleeping until its own time, on the monotonic clock, without spinning.
//   timeout_ns    the longest to wait; WEIR_FOREVER: no limit
//   WEIR_GRANTED  the tokens were taken
//   WEIR_DENIED   they would be due after the timeout (said at once; retry_after_ns tells when), or
//                 the limit became slower meanwhile and the timeout came: nothing was taken
//   WEIR_NEVER    the cost is above the burst
//   WEIR_ECLOSED  weir_close was called: nothing was taken
//   WEIR_ECLOCK   the limiter has a caller's clock
// While the limit lets nothing pass at all (rate 0, burst 0) it sleeps until the limit changes, the
// timeout or close. A faster limit wakes it earlier. Waiters for more than max_ahead tokens queue
// behind those, and are then served in no set order. The limit's lock-free calls are not held up.
WEIR_API int weir_wait(struct weir *limiter, struct weir_key key, uint64_t cost,
                       uint64_t timeout_ns, struct weir_answer *answer);

// weir_wait for an ask in full, such as one with a weight. WEIR_EINVAL unless it is a WEIR_TAKE.
WEIR_API int weir_do_wait(struct weir *limiter, const struct weir_ask *ask, uint64_t timeout_ns,
                          struct weir_answer *answer);

// ---------------------------------------------------------------------------------------------
// Leases: a worker's private stash of one hot key

// A key that many threads take from at once is one cache line, handed from core to core by every
// grant. A lease debits some tokens beforehand and lets its one thread spend them without touching
// anything shared and without reading the clock.
//
// The price: over all leases of a key, spent <= burst + rate * window + the stashes (each at most
// chunk_max_tokens); by the time of the debit the bound is exact. What a lease holds, others are
// denied meanwhile.
//
// The caller's memory, not to be copied; one thread at a time.
struct weir_lease {
    uint64_t opaque[16];
};

struct weir_lease_options {
    size_t size;                 // set by WEIR_LEASE_OPTIONS_INIT
    uint64_t chunk_max_tokens;   // the most to hold, 1 to 2^32; 0: 1,024. It starts at 1, doubles
                                 //   while chunks are used up fast, halves when the bucket runs dry
    uint64_t age_max_ns;         // a stash older than this is given back; 0: 10 ms
    struct weir_weight weight;   // of the key; {0, 0}: 1/1
};
#define WEIR_LEASE_OPTIONS_INIT {sizeof(struct weir_lease_options), 0, 0, {0, 0}}

// Prepares a lease of `key`, whose bytes must stay until weir_lease_fini. `options` may be NULL.
// WEIR_GRANTED, WEIR_EINVAL, WEIR_ESIZE, WEIR_EWEIGHT, or WEIR_ECLOCK for a caller's clock.
WEIR_API WEIR_MUST_USE int weir_lease_init(struct weir_lease *lease, struct weir *limiter,
                                           struct weir_key key,
                                           const struct weir_lease_options *options);

// Takes `cost` tokens (1 and up; 0 is granted) from the stash, and refills that when it is short.
// Results as weir_take. `answer` (may be NULL) is filled on a refusal only. A stash is void as soon
// as the limit has changed. Cost: about 2 ns from the stash, a weir_do and a clock reading a
// refill. The counters of weir_stats count a refill as one ask; `tokens` is exact.
WEIR_API int weir_lease_take(struct weir_lease *lease, uint64_t cost, struct weir_answer *answer);

// Gives back a stash that has become too old. Call it now and then from a worker that may pause:
// an ask does not read the clock, so it cannot know. One clock reading.
WEIR_API void weir_lease_tick(struct weir_lease *lease);

// Gives back what is left. Before weir_destroy of the limiter.
WEIR_API void weir_lease_fini(struct weir_lease *lease);

// ---------------------------------------------------------------------------------------------
// Changing and watching a limiter

// Changes the limit for all keys at once, in constant time; no bucket is touched and no token is
// minted: buckets keep their level, and a larger burst fills at the rate (an idle key gets nothing
// at once). After burst 0 buckets start empty; at rate 0 they stay so.
//   WEIR_ELIMIT  faster than max_rate, or too large to keep exactly (`error` has the words)
//   WEIR_EBUSY   too many changes at the same moment
//   WEIR_ECLOCK  a caller's clock: use weir_set_limit_at
WEIR_API WEIR_MUST_USE int weir_set_limit(struct weir *limiter, const struct weir_limit *limit,
                                          struct weir_error *error);
WEIR_API WEIR_MUST_USE int weir_set_limit_at(struct weir *limiter, const struct weir_limit *limit,
                                             int64_t now_ns, struct weir_error *error);

// The limit in force.
WEIR_API void weir_get_limit(const struct weir *limiter, struct weir_limit *limit);

// A busy slot. The table keeps a fingerprint of a key, not its name.
struct weir_slot {
    size_t size;
    uint64_t fingerprint;
    int64_t level_tokens;   // whole tokens, rounded down; negative in debt
    uint64_t full_after_ns;
};

// Calls `visit` for each bucket that is not full, in no order, until it returns false. Buckets that
// change meanwhile are seen before or after. Returns the number visited. The _at form is for a
// caller's clock.
WEIR_API uint64_t weir_each(struct weir *limiter,
                            bool (*visit)(const struct weir_slot *slot, void *context),
                            void *context);
WEIR_API uint64_t weir_each_at(struct weir *limiter, int64_t now_ns,
                               bool (*visit)(const struct weir_slot *slot, void *context),
                               void *context);

#define WEIR_WAIT_BUCKETS 32

// Counters since creation, each exact once its thread's ask has returned.
struct weir_stats {
    uint64_t granted;          // asks granted
    uint64_t denied;           // asks denied
    uint64_t never;            // asks above the burst
    uint64_t no_room;          // asks that found no room (WEIR_FULL_DENY)
    uint64_t untracked;        // asks granted without a bucket
    uint64_t would_deny;       // asks a dry run would have denied
    uint64_t tokens;           // tokens granted and charged
    uint64_t refunded_tokens;  // tokens given back
    uint64_t clipped_tokens;   // tokens charged beyond max_debt, and dropped
    uint64_t inserted;         // keys put into the table
    uint64_t displaced;        // busy buckets forgotten for want of room
    uint64_t forgiven_tokens;  // what those owed to a full bucket, rounded up
    uint64_t retried;          // compare-and-swaps lost to another thread
    uint64_t relics;           // words that lay outside the horizon, read as full
    uint64_t clock_fallbacks;  // 1 once the CPU's counter jumped and CLOCK_MONOTONIC took over
    uint64_t capacity_keys;
    uint64_t memory_bytes;     // of the whole limiter
    uint32_t shards;
    uint64_t waits[WEIR_WAIT_BUCKETS]; // retry_after_ns of denials, handed out in an answer (none
                                       // where that was NULL): [i] counts those up to
                                       // 2^(14+i) ns, the last one all longer ones
};

// Fills `stats`, of which `size` = sizeof(struct weir_stats) bytes are the caller's: a caller built
// against an older header gets the fields it knows. WEIR_ESIZE where that is no size ever used.
WEIR_API int weir_stats(const struct weir *limiter, struct weir_stats *stats, size_t size);

// ---------------------------------------------------------------------------------------------
// The most denied keys

#define WEIR_TOP_KEYS 64       // the most that a limiter remembers
#define WEIR_TOP_NAME_BYTES 88 // the most of a name that it remembers

// A key that was refused often, or in a dry run would have been.
struct weir_top_key {
    uint64_t denied; // refusals, about; at most `error` of them were of other keys
    uint64_t error;
    uint64_t id;   // the integer, where is_id
    size_t length; // of the name, in bytes
    bool is_id;    // made by weir_id: the name is the number in decimal
    bool truncated; // the key goes on after the name's 88 bytes
    char name[WEIR_TOP_NAME_BYTES + 1]; // the key's bytes, any; then '\0'
};

// Fills `keys` with the most denied keys of `limiter`, most denied first, `max` at most (no more
// than WEIR_TOP_KEYS are known). Returns how many; 0 where `keys` is NULL.
// Every refusal counts (denied, never, no room, would deny), since creation. The first 1,024 of a
// thread are all looked at, then one in 16, and a key with many is counted in steps of up to 1/2048
// of them: expect a few per cent off. A key with one refusal in 32 or more is there in 99 cases of
// 100; one with denied - error small came late, into the place of another.
// Any thread; lock-free; no clock reading, no allocation, 128 cache lines. Since 0.1.
WEIR_API size_t weir_top(const struct weir *limiter, struct weir_top_key *keys, size_t max);

// ---------------------------------------------------------------------------------------------
// Metrics

#define WEIR_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define WEIR_METRICS_TOP 16 // the most of its denied keys that a limiter shows

// Writes the state of `count` limiters as OpenMetrics 1.0 text, ended by '\0'. Every sample has the
// label limiter="its name"; a second limiter of the same name has nth="2" too, and so on.
//   weir_granted_total ... weir_clock_fallbacks_total   the counters of struct weir_stats, by name
//   weir_wait_seconds     histogram of the waits handed out with refusals (those asked for with an
//                         answer; without a sum, so without a count: the bucket +Inf is that)
//   weir_limit_tokens, weir_limit_period_seconds, weir_limit_burst_tokens   the limit in force
//                         (+Inf: unlimited); tokens / period is the rate
//   weir_capacity_keys, weir_shards, weir_memory_bytes
//   weir_top_denied{key=}  what weir_top says of the most denied keys, of which at least half is
//                         certain (denied >= 2 * error); WEIR_METRICS_TOP at most
// Label values are escaped; bytes that are not UTF-8, and control characters but newline, are
// written \xNN. Of keys that look the same so (7 and "7"), all but the first have a label key_nth.
//   limiters  `count` of them; may be NULL when count is 0
//   buffer    of `size` bytes; NULL with size 0 to ask for the length
//   length    set to the length of the text without its '\0'; may be NULL
//   WEIR_GRANTED  written
//   WEIR_ENOSPC   `size` is not above *length: the text is empty, never cut. Numbers grow: ask
//                 again with some bytes more. About 5 KiB a limiter, 12 KiB with the longest names
//   WEIR_EINVAL   a pointer is NULL
// Any thread; lock-free; no clock reading, no allocation; some 0.1 ms a limiter. Since 0.1.
WEIR_API int weir_metrics(const struct weir *const *limiters, size_t count, char *buffer,
                          size_t size, size_t *length);

// ---------------------------------------------------------------------------------------------
// HTTP

// Which fields weir_http_fields writes: any of these, or-ed.
enum weir_http_form {
    WEIR_HTTP_STRUCTURED = 1,  // RateLimit-Policy and RateLimit, as in the current draft
                               //   (draft-ietf-httpapi-ratelimit-headers-11, and since 08)
    WEIR_HTTP_SEPARATE = 2,    // RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, as in
                               //   that draft up to 06
    WEIR_HTTP_SEPARATE_X = 4,  // the same three, each with X- before its name
    WEIR_HTTP_RETRY_AFTER = 8, // Retry-After, on a refusal
    WEIR_HTTP_BYTES = 16,      // a token is a byte of content: the policy says qu="content-bytes"
};

#define WEIR_HTTP_FIELDS_MAX 768 // bytes that hold every form, with the '\0'

// Writes the header fields that tell a client about an ask of `limiter` (weight 1): each a line
// that ends in CRLF, the whole in '\0'. All of them, at 5 a second and a burst of 20 that is spent:
//     RateLimit-Policy: "typing";q=20;w=4      the limiter's name; 20 tokens come back in 4 s
//     RateLimit: "typing";r=0;t=1              tokens left; for so long no more than those
//     RateLimit-Limit: 20                      the burst
//     RateLimit-Remaining: 0                   as r
//     RateLimit-Reset: 1                       as t
//     Retry-After: 1                           the same ask passes after this
// Times are whole seconds, rounded up, never 0. t is Retry-After on a refusal, else the time until
// the bucket is full. w is the time in which an empty bucket fills, q what the rate makes in w: at
// least the burst. A name's bytes that are not printable ASCII are written %XX.
// What has no sensible value is left out: Retry-After when nothing was refused or waiting does not
// help (WEIR_NEVER, rate 0, burst 0); t, Reset and w when there is no such time; everything when
// the limiter is unlimited. Numbers above 999999999999999 are written as that.
//   result   of the ask: WEIR_GRANTED or a refusal
//   answer   of the ask
//   forms    of enum weir_http_form, or-ed
//   buffer   of `size` bytes; NULL with size 0 to ask for the length
//   length   set to the length of the text without its '\0'; may be NULL
//   WEIR_GRANTED  written
//   WEIR_ENOSPC   `size` is not above *length: the text is empty, never cut
//   WEIR_EINVAL   a pointer is NULL, `result` is a failure, an unknown form
//   WEIR_ESIZE    answer->size is unknown
// For several limiters: join their texts, with WEIR_HTTP_RETRY_AFTER only for the one that refused.
// Any thread; lock-free; no clock reading, no allocation. Since 0.1.
WEIR_API int weir_http_fields(const struct weir *limiter, int result,
                              const struct weir_answer *answer, unsigned forms, char *buffer,
                              size_t size, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
