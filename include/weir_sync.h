// weir_sync.h - one limit over many processes and hosts, through Redis.
//
//     struct weir_sync *sync;
//     struct weir_sync_options options = WEIR_SYNC_OPTIONS_INIT;
//     options.url = "redis://127.0.0.1:6379";
//     if (weir_sync_create(&sync, &options, &error) != WEIR_GRANTED) { ... }
//     if (weir_sync_attach(sync, limiter, "mails", NULL, &error) != WEIR_GRANTED) { ... }
//     if (weir_sync_start(sync, &error) != WEIR_GRANTED) { ... }
//     ... weir_take(limiter, key, 1, NULL) as ever ...
//     weir_sync_stop(sync, WEIR_SECOND);
//     weir_sync_destroy(sync);
//     weir_destroy(limiter);
//
// A decision stays local: it takes nanoseconds and never waits for the network. One background thread
// a sync reports every `interval_ns` what was granted and denied, only for keys that were asked for, and
// hears what all nodes together have spent. What was granted too much in an interval is a debt that
// the next ones pay: over time a key is granted exactly its rate, however many nodes there are.
//
// Every node of a limit must give it the same name, the same limit, and the sync the same prefix,
// groups and epoch. Redis holds a short string a key that expires when it is of no more use.
//
// The bound. Over any window a key is granted, on all nodes together, at most burst + rate * window and
// an excess that does not grow with time; weir_sync_limiter_stats exports its bound. See the manual,
// weir-sync(7), for the whole of it.
//
// Strict limits. Where one grant a host is too much already, attach with WEIR_SYNC_STRICT and ask by
// weir_sync_submit or weir_sync_take: refused locally, granted by Redis alone.
//
// Threads. Every call may be made from any thread, while others decide, except weir_sync_destroy, which
// comes last. weir_sync_attach and _detach of one limiter must not be made at the same time. After
// fork the child goes on with its copy of the buckets, reports nothing (it would count as its
// parent), and says so in `forked` of its stats: make a new sync there. Links: libweir-sync, which
// needs hiredis. The library prints nothing; failures are counted and the last one is in the stats.
#ifndef WEIR_SYNC_H
#define WEIR_SYNC_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_sync;

// What a node does for a key while Redis does not answer.
enum weir_sync_outage {
    WEIR_SYNC_LOCAL_SHARE = 0, // go on at this node's share of the demand, averaged over 10 s
    WEIR_SYNC_OPEN,            // each node grants the whole limit by itself
    WEIR_SYNC_CLOSED,          // deny. Strict limiters do, too, under LOCAL_SHARE without expected_nodes
};

enum weir_sync_mode {
    WEIR_SYNC_EVENTUAL = 0, // grants are local and paid back
    WEIR_SYNC_STRICT,       // grants are Redis' own: never above the limit on its clock
};

struct weir_sync_options {
    size_t size;               // set by WEIR_SYNC_OPTIONS_INIT
    const char *url;           // redis://[user:password@]host[:port][/db], with %XX for special bytes
                               //   and [::1] for IPv6; or unix:/path[?db=1&user=..&password=..];
                               //   NULL: redis://127.0.0.1:6379
    const char *prefix;        // of all names in Redis, 1 to 64 bytes without braces; NULL: "weir:"
    const char *node;          // must be unique and new at each start; NULL: drawn at random
    uint32_t groups;           // hash slots to spread over, 1 to 64; 0: 1 (a standalone server).
                               //   The same on every node
    uint64_t interval_ns;      // aim of the time between two reports, 5 ms to 60 s; 0: 100 ms
    uint64_t epoch_ns;         // demand is counted over; 200 ms to 1 h; 0: max(1 s, 4 intervals).
                               //   The same on every node
    enum weir_sync_outage outage;
    uint32_t expected_nodes;   // splits the limit of keys first seen in an outage; 0: not known
    uint64_t connect_timeout_ns; // 0: 1 s
    uint64_t answer_timeout_ns;  // a report is sent again after it; 0: max(250 ms, 2 intervals)
    uint32_t names;            // keys whose names may wait to be handed to the sync thread,
                               //   a limiter; 64 to 2^20; 0: 4,096
};

#define WEIR_SYNC_OPTIONS_INIT {sizeof(struct weir_sync_options), NULL, NULL, NULL, 0, 0, 0, \
                                WEIR_SYNC_LOCAL_SHARE, 0, 0, 0, 0}

// Makes a sync. Copies the options' strings. `error` may be NULL; on a failure it has the words.
//   WEIR_GRANTED, WEIR_EINVAL (an option out of range, a URL that is none), WEIR_ENOMEM, WEIR_ESIZE
WEIR_API WEIR_MUST_USE int weir_sync_create(struct weir_sync **sync,
                                            const struct weir_sync_options *options,
                                            struct weir_error *error);

struct weir_sync_limiter_options {
    size_t size;              // set by WEIR_SYNC_LIMITER_OPTIONS_INIT
    enum weir_sync_mode mode;
    uint64_t max_debt_tokens; // how far the grants of others may push a bucket below zero; 0: the
                              //   burst. Lower pays back less of a flood, higher locks out for longer
    uint32_t generation;      // of the limit: the same number on every node, see weir_sync_set_limit
};
#define WEIR_SYNC_LIMITER_OPTIONS_INIT \
    {sizeof(struct weir_sync_limiter_options), WEIR_SYNC_EVENTUAL, 0, 0}

// Puts a limiter under the sync. `name` is the same on every node: 1 to 64 printable bytes without
// braces, colon or space. Before or after weir_sync_start. `options` may be NULL.
// Memory: 64 bytes a key of capacity beside the table's 32, kept until weir_destroy.
//   WEIR_GRANTED
//   WEIR_EINVAL  a name in use or of wrong bytes, a limiter that is under a sync already
//   WEIR_ELIMIT  a limit that cannot be synced: rate 0, unlimited, a burst under 100 us of the rate
//   WEIR_ECLOCK  a limiter with a caller's clock
//   WEIR_ENOMEM, WEIR_ESIZE
WEIR_API WEIR_MUST_USE int weir_sync_attach(struct weir_sync *sync, struct weir *limiter,
                                            const char *name,
                                            const struct weir_sync_limiter_options *options,
                                            struct weir_error *error);

// Takes a limiter out again, after a last report if that can be answered within `timeout_ns`. Before
// weir_destroy of the limiter, unless weir_sync_destroy comes first. The limiter goes on alone.
//   WEIR_GRANTED; WEIR_EINVAL (not attached); WEIR_EUNSYNCED (grants were not reported in time)
WEIR_API int weir_sync_detach(struct weir_sync *sync, struct weir *limiter, uint64_t timeout_ns);

// Starts the thread. Redis need not be there: the sync goes on trying, by the outage policy meanwhile.
//   WEIR_GRANTED (also when started already); WEIR_ESYS (no thread); WEIR_ECLOSED (after a fork)
WEIR_API WEIR_MUST_USE int weir_sync_start(struct weir_sync *sync, struct weir_error *error);

// Reports what is left, waits at most `timeout_ns` for it, and ends the thread. May be started again.
// Strict asks that are not answered by then are refused with WEIR_EUNSYNCED.
//   WEIR_GRANTED; WEIR_EUNSYNCED (some grants were not reported in time)
WEIR_API int weir_sync_stop(struct weir_sync *sync, uint64_t timeout_ns);

// Stops without waiting, detaches all limiters and frees. NULL is allowed.
WEIR_API void weir_sync_destroy(struct weir_sync *sync);

// weir_set_limit for a synced limiter, with the generation of the new limit: a number that rises with
// each change and is the same on every node. Redis keeps time, not tokens: a bucket that is a
// second behind stays a second behind under the new rate. `mint_bound_tokens` of the stats says what
// that may give away a key; what a node hears is clamped to its own burst and debt.
// A plain weir_set_limit on a synced limiter keeps the generation: good where one node drives the
// rate, such as a valve. Results as weir_set_limit, and WEIR_EINVAL where `generation` does not rise.
WEIR_API WEIR_MUST_USE int weir_sync_set_limit(struct weir_sync *sync, struct weir *limiter,
                                               const struct weir_limit *limit,
                                               uint32_t generation, struct weir_error *error);

// ---------------------------------------------------------------------------------------------
// Strict asks

// One ask of a strict limiter. The caller's memory: it, and the key's bytes, stay until weir_sync_poll
// says something else than WEIR_PENDING, or, with `done`, until that was called.
struct weir_sync_ask {
    size_t size; // set by WEIR_SYNC_ASK_INIT
    struct weir_key key;
    uint64_t cost;       // tokens, 1 and up
    uint64_t timeout_ns; // answered WEIR_EUNSYNCED after it, with nothing granted; 0: 1 s
    void (*done)(struct weir_sync_ask *ask, void *context); // on the sync's thread, must not block;
    void *context;                                          //   NULL: ask by weir_sync_poll
    uint64_t retry_after_ns; // set with WEIR_DENIED: about when Redis would grant it
    uint64_t remaining;      // set with WEIR_GRANTED: whole tokens left in Redis
    uint64_t inside[8];      // the sync's own
};
#define WEIR_SYNC_ASK_INIT {sizeof(struct weir_sync_ask), {NULL, 0}, 1, 0, NULL, NULL, 0, 0, {0}}

// Asks without waiting. The answer takes up to 5 ms, the thread's pace, and a round trip. WEIR_DENIED or WEIR_NEVER at once where that is certain locally (then `done`
// is not called); else WEIR_PENDING: Redis is asked, and the result comes by `done` or weir_sync_poll.
// Lock-free; no system call, no allocation.
//   WEIR_EINVAL (not a strict limiter of this sync), WEIR_ECLOSED (not started, or forked), WEIR_ESIZE
WEIR_API int weir_sync_submit(struct weir_sync *sync, struct weir *limiter,
                              struct weir_sync_ask *ask);

// WEIR_PENDING, or the result: WEIR_GRANTED, WEIR_DENIED, WEIR_NEVER; WEIR_EUNSYNCED where Redis
// did not answer in time and the outage policy is closed (strict's default). One atomic load.
WEIR_API int weir_sync_poll(const struct weir_sync_ask *ask);

// Asks and sleeps until the answer, `timeout_ns` at most (0: 1 s). `answer` may be NULL; of it,
// granted_tokens, remaining and retry_after_ns are set.
WEIR_API int weir_sync_take(struct weir_sync *sync, struct weir *limiter, struct weir_key key,
                            uint64_t cost, uint64_t timeout_ns, struct weir_answer *answer);

// ---------------------------------------------------------------------------------------------
// Watching

// Counters since creation.
struct weir_sync_stats {
    uint64_t reports;        // sent and answered
    uint64_t keys;           // in those
    uint64_t timeouts;       // attempts without an answer in time; sent again, counted once
    uint64_t disconnects;
    uint64_t refused;        // error replies
    uint64_t garbage;        // answers that were none: a server that is no Redis
    uint64_t forgotten;      // reports too old to be sent again: their grants were never charged
    uint64_t marker_lost;    // times that Redis had forgotten this node (restart, flush, failover)
    uint64_t foreign_keys;   // keys that hold something else in Redis, and are not synced
    uint64_t breaker_opened;
    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t rtt_ns;         // of a report, smoothed
    uint64_t lag_ns;         // between the last two reports of a busy group: the interval, stretched
                             //   where Redis or the thread is too slow
    uint64_t cpu_ns;         // of the thread
    uint64_t nodes;          // alive under this prefix, as last seen; 0: not known yet
    uint64_t known_keys;     // that the thread remembers
    uint64_t memory_bytes;   // of the sync and what hangs on it, without the side arrays
    bool connected;
    bool outage;             // keys go by the outage policy
    bool forked;             // this process is a child: nothing is reported
    char node[65];
    char last_error[192];    // in words, with the remedy; empty: none yet
    uint64_t last_error_ago_ns; // WEIR_FOREVER: none yet
};
WEIR_API int weir_sync_stats(const struct weir_sync *sync, struct weir_sync_stats *stats,
                             size_t size);

struct weir_sync_limiter_stats {
    uint64_t reported_tokens;   // granted, and charged in Redis
    uint64_t pending_tokens;    // granted, and not answered yet
    uint64_t lost_tokens;       // granted, and never to be charged: forgotten reports, full rings
    uint64_t unnamed;           // times a key's name could not be handed over at once
    uint64_t local_refund_tokens; // given back after they were reported: only this node knows
    uint64_t clamped;           // answers that were clamped to the present limit
    double excess_tokens;       // worst seen of a key: how far below zero its bucket was in Redis
    double excess_bound_tokens; // what it may be, from interval, round trip and the others' demand
    double mint_bound_tokens;   // a key, over all changes of limit: what time instead of tokens gave
    uint32_t generation;
    uint32_t foreign_nodes;     // nodes seen alive with this limiter, without this one
};
WEIR_API int weir_sync_limiter_stats(const struct weir_sync *sync, const struct weir *limiter,
                                     struct weir_sync_limiter_stats *stats, size_t size);

// The stats of a sync and its limiters as OpenMetrics 1.0 text, as weir_metrics writes it.
//   WEIR_GRANTED, WEIR_ENOSPC (`size` is not above *length; the text is empty), WEIR_EINVAL
WEIR_API int weir_sync_metrics(const struct weir_sync *sync, char *buffer, size_t size,
                               size_t *length);

#ifdef __cplusplus
}
#endif
#endif
