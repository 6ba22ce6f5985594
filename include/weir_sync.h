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
// Words. A node is a sync of one process: what reports to Redis under a name of its own. A sync
// has any number of limiters under it. A key of a limiter has one bucket on each node, and one in
// Redis, which all nodes with the same prefix and the same name of the limiter share.
//
// A decision stays local: it takes nanoseconds and never waits for the network. One background
// thread a sync reports every `interval_ns` what was granted and denied, only for keys that were
// asked for, and hears what all nodes together have spent. What was granted too much in an interval
// is a debt that the next ones pay: over time a key is granted exactly its rate, however many nodes
// there are.
//
// Every node of a limit must give it the same name, the same limit and the same generation, and the
// sync the same prefix, groups and epoch. Another epoch or generation is noticed; another limit or
// another number of groups is not: each part of the fleet then grants its own, and one may starve.
// Redis holds a short string a key, which expires when it is of no more use.
//
// The bound. Over any window a key is granted, on all nodes together, at most burst + rate * window
// and an excess that does not grow with time; weir_sync_limiter_stats exports a bound of it. The
// manual, weir-sync(7), has the whole of it.
//
// Strict limits. Where one grant a node is too much already, attach with WEIR_SYNC_STRICT and ask
// by weir_sync_submit or weir_sync_take: refused locally, granted by Redis alone. (weir_take and
// the like go by the node's own bucket there, and Redis does not hear of them.)
//
// Results, units and struct sizes are those of weir.h: times in nanoseconds, tokens whole. A call
// with a struct weir_error (it may be NULL) says there in words what was refused, and the remedy.
//
// Threads. Every call may be made from any thread, while others decide, except weir_sync_destroy,
// which comes last. weir_sync_attach and _detach of one limiter must not be made at the same time.
// All but the strict asks take a lock of the sync's.
//
// After a fork the child goes on with its copy of the buckets, reports nothing (it would count as
// its parent), and says so in `forked` of its stats: make a new sync there.
//
// Links: libweir-sync, which needs hiredis. The library prints nothing; failures are counted, and
// the last one is in words in the stats. All of this: since 0.1.
#ifndef WEIR_SYNC_H
#define WEIR_SYNC_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_sync;

// What a node does while Redis has not answered for two intervals and a round trip. The second line
// is for a strict ask, once its own timeout has come.
enum weir_sync_outage {
    WEIR_SYNC_LOCAL_SHARE = 0, // go on at this node's share of the demand, averaged over 10 s
                               //   strict: at 1 / expected_nodes of the limit; 0: as CLOSED
    WEIR_SYNC_OPEN,            // each node grants the whole limit by itself
                               //   strict: the same
    WEIR_SYNC_CLOSED,          // deny (WEIR_DENIED)
                               //   strict: WEIR_EUNSYNCED
};

enum weir_sync_mode {
    WEIR_SYNC_EVENTUAL = 0, // grants are local, and what was too much is paid back
    WEIR_SYNC_STRICT,       // grants are Redis' own: never above the limit, on its clock
};

struct weir_sync_options {
    size_t size;               // set by WEIR_SYNC_OPTIONS_INIT
    const char *url;           // redis://[user:password@]host[:port][/db], with %XX for special
                               //   bytes and [::1] for IPv6; or unix:/path, after which
                               //   ?db=1&user=..&password=.. may stand.
                               //   NULL: redis://127.0.0.1:6379
    const char *prefix;        // of all names in Redis: 1 to 64 printable bytes without braces or
                               //   space; NULL: "weir:". The same on every node
    const char *node;          // this node's name, as the prefix; no other node may have it, nor
                               //   this one after a restart; NULL: drawn at random
    uint32_t groups;           // hash slots that the keys are spread over, 1 to 64; 0: 1 (for a
                               //   standalone server). On a cluster some 8 to 16 a master. The
                               //   same on every node
    uint64_t interval_ns;      // between two reports, about (0.9 to 1.1 of it); 5 ms to 60 s;
                               //   0: 100 ms
    uint64_t epoch_ns;         // demand is counted over this time; 200 ms to 1 h;
                               //   0: max(1 s, 4 intervals). The same on every node
    enum weir_sync_outage outage; // what to do while Redis does not answer
    uint32_t expected_nodes;   // of so many, each grants its part of a key that was first seen in
                               //   an outage (LOCAL_SHARE); 0: not known, each grants all of it.
                               //   Set it where processes may start while Redis is away
    uint64_t connect_timeout_ns; // until a connection must stand, 1 ms to 10 min; 0: 1 s
    uint64_t answer_timeout_ns;  // a report that is not answered is sent again after this, 1 ms to
                                 //   10 min; 0: max(250 ms, 2 intervals)
    uint32_t names;            // keys, of each limiter, whose names may wait at the same time to be
                               //   handed to the sync's thread; 64 to 2^20; 0: 4,096
};

#define WEIR_SYNC_OPTIONS_INIT {sizeof(struct weir_sync_options), NULL, NULL, NULL, 0, 0, 0, \
                                WEIR_SYNC_LOCAL_SHARE, 0, 0, 0, 0}

// Makes a sync. Copies the options' strings; connects to nothing yet.
//   WEIR_GRANTED  *sync is ready
//   WEIR_EINVAL   an option out of its range, a URL that is none
//   WEIR_ENOMEM   no memory
//   WEIR_ESIZE    options->size is unknown
//   WEIR_ESYS     the system gave no file descriptor
// On a failure *sync is NULL.
WEIR_API WEIR_MUST_USE int weir_sync_create(struct weir_sync **sync,
                                            const struct weir_sync_options *options,
                                            struct weir_error *error);

struct weir_sync_limiter_options {
    size_t size;              // set by WEIR_SYNC_LIMITER_OPTIONS_INIT
    enum weir_sync_mode mode;
    uint64_t max_debt_tokens; // how far the grants of others may push a bucket below zero; 0: the
                              //   burst. Lower pays back less of a flood, higher locks out longer.
                              //   The same on every node; of no use to a strict limiter
    uint32_t generation;      // of the limit, the same on every node: see weir_sync_set_limit
};
#define WEIR_SYNC_LIMITER_OPTIONS_INIT \
    {sizeof(struct weir_sync_limiter_options), WEIR_SYNC_EVENTUAL, 0, 0}

// Puts a limiter under the sync, before or after weir_sync_start.
//   name     the same on every node: 1 to 64 printable bytes without braces, colon or space, and
//            none of "a", "d", "n", "nodes", "s" and "t", which the sync uses itself
//   options  may be NULL
//   WEIR_GRANTED
//   WEIR_EINVAL  a name in use or of wrong bytes, a limiter that is under this or another sync
//   WEIR_ELIMIT  a limit that cannot be synced: rate 0, unlimited, a burst under 100 us of the rate
//                (a burst of 0, the kill switch, is allowed)
//   WEIR_ECLOCK  a limiter with a caller's clock
//   WEIR_ENOMEM  no memory
//   WEIR_ESIZE   options->size is unknown
// Memory: 64 bytes a key of capacity beside the table's 32, kept until weir_destroy; none for a
// strict limiter.
WEIR_API WEIR_MUST_USE int weir_sync_attach(struct weir_sync *sync, struct weir *limiter,
                                            const char *name,
                                            const struct weir_sync_limiter_options *options,
                                            struct weir_error *error);

// Takes a limiter out again, after a last report, for whose answer it waits at most `timeout_ns`
// (0: not at all). The limiter goes on alone. To be called before weir_destroy of the limiter,
// unless weir_sync_destroy was. Strict asks that still wait then are answered WEIR_EUNSYNCED; of a
// strict limiter up to a kilobyte, and 100 bytes a group, stay until weir_sync_destroy.
//   WEIR_GRANTED    all its grants are charged in Redis
//   WEIR_EUNSYNCED  it is detached, but some were not reported in time, and will never be charged
//   WEIR_EINVAL     it is not under this sync
WEIR_API int weir_sync_detach(struct weir_sync *sync, struct weir *limiter, uint64_t timeout_ns);

// Starts the thread. Redis need not be there: the sync goes on trying, and decisions go by the
// outage policy meanwhile.
//   WEIR_GRANTED  it runs; also when it did already
//   WEIR_ESYS     the system gave no thread
//   WEIR_ECLOSED  the sync was made before a fork
WEIR_API WEIR_MUST_USE int weir_sync_start(struct weir_sync *sync, struct weir_error *error);

// Reports what is left, waits at most `timeout_ns` for the answers (0: not at all), and ends the
// thread. Limiters stay attached and decide on; the sync may be started again. Strict asks that
// still wait then are answered WEIR_EUNSYNCED. Takes up to a connection's closing longer, and where
// a host's name is being resolved, that.
//   WEIR_GRANTED    all grants are charged in Redis, but for `lost_tokens` of the limiters' stats;
//                   also when it was not started
//   WEIR_EUNSYNCED  the thread has ended, but some grants were not reported in time (a later start
//                   reports them), or some strict asks not answered; or the sync was made before a
//                   fork
WEIR_API int weir_sync_stop(struct weir_sync *sync, uint64_t timeout_ns);

// Ends the thread without a last report, detaches all limiters and frees the sync, which no thread
// may be using any more. Call weir_sync_stop before, for the grants since the last report to count.
// NULL is allowed.
WEIR_API void weir_sync_destroy(struct weir_sync *sync);

// weir_set_limit for a synced limiter, with the generation of the new limit: a number that rises
// with each change and is the same on every node. Call it on every node, in any order. Redis keeps
// time, not tokens: a bucket that is a second behind stays a second behind under the new rate.
// `mint_bound_tokens` of the stats says how many tokens that may give away to a key; what a node
// hears is clamped to its own burst and debt. A plain weir_set_limit on a synced limiter keeps the
// generation: good where one node drives the rate, such as a valve.
//   WEIR_GRANTED  the limit is in force on this node. Where it is one that cannot be synced (see
//                 weir_sync_attach), reports go on by the last one that could, and `last_error` of
//                 the stats says so
//   WEIR_EINVAL   the limiter is not under this sync, or `generation` does not rise
//   and those of weir_set_limit: WEIR_ELIMIT, WEIR_EBUSY
WEIR_API WEIR_MUST_USE int weir_sync_set_limit(struct weir_sync *sync, struct weir *limiter,
                                               const struct weir_limit *limit,
                                               uint32_t generation, struct weir_error *error);

// ---------------------------------------------------------------------------------------------
// Strict asks

// One ask of a strict limiter. The caller's memory: it, and the key's bytes, must stay, and not be
// written to, until weir_sync_poll says something else than WEIR_PENDING or, with `done`, until
// that was called. Then it may be submitted again.
struct weir_sync_ask {
    size_t size; // set by WEIR_SYNC_ASK_INIT
    struct weir_key key;
    uint64_t cost;       // tokens, 1 and up
    uint64_t timeout_ns; // where Redis has not answered after this, the outage policy does (see
                         //   enum weir_sync_outage); Redis may still charge it. 0: 1 s
    void (*done)(struct weir_sync_ask *ask, void *context); // called on the sync's thread, once;
                         //   weir_sync_poll has the result by then. It must not block, nor call
                         //   weir_sync_take, _stop, _detach or _destroy. NULL: only poll
    void *context;           // handed to `done`
    uint64_t retry_after_ns; // set with WEIR_DENIED: about when Redis would grant it
    uint64_t remaining;      // set with WEIR_GRANTED: whole tokens left in Redis
    uint64_t inside[8];      // the sync's own
};
#define WEIR_SYNC_ASK_INIT {sizeof(struct weir_sync_ask), {NULL, 0}, 1, 0, NULL, NULL, 0, 0, {0}}

// Asks without waiting. The answer takes up to 5 ms, the thread's pace, and a round trip.
//   WEIR_PENDING  Redis is asked; the result comes by `done`, and weir_sync_poll
//   WEIR_DENIED, WEIR_NEVER  at once, where that is certain locally
//   WEIR_EINVAL   not a strict limiter of this sync, or a cost of 0
//   WEIR_ECLOSED  the sync is not started, or was made before a fork
//   WEIR_ESIZE    ask->size is unknown
// With any other result than WEIR_PENDING `done` is not called. Lock-free; no system call, no
// allocation.
WEIR_API int weir_sync_submit(struct weir_sync *sync, struct weir *limiter,
                              struct weir_sync_ask *ask);

// How an ask that was submitted stands. One atomic load.
//   WEIR_PENDING  not answered yet
//   WEIR_GRANTED, WEIR_DENIED
//   WEIR_NEVER      the cost is above the burst
//   WEIR_EUNSYNCED  Redis did not answer in time and the outage policy is closed (which is what
//                   the default comes to where expected_nodes is 0), or the sync was stopped
// In a dry run (weir_options.dry_run) it is WEIR_GRANTED in every case, counted by what it would
// have been.
WEIR_API int weir_sync_poll(const struct weir_sync_ask *ask);

// weir_sync_submit, and sleeps until the answer, `timeout_ns` at most (0: 1 s). It wakes the sync's
// thread, so that it does not wait for its pace. Not from a `done`.
//   answer  may be NULL; granted_tokens, remaining and retry_after_ns are set, unless the result is
//           a failure
// Results as weir_sync_submit and weir_sync_poll, without WEIR_PENDING.
WEIR_API int weir_sync_take(struct weir_sync *sync, struct weir *limiter, struct weir_key key,
                            uint64_t cost, uint64_t timeout_ns, struct weir_answer *answer);

// ---------------------------------------------------------------------------------------------
// Watching

// Counters since creation; from rtt_ns on, how things stand.
struct weir_sync_stats {
    uint64_t reports;        // sent and answered, calls of strict limiters too; one has up to some
                             //   128 keys
    uint64_t keys;           // in those
    uint64_t timeouts;       // attempts without an answer in time; a report is sent again under its
                             //   number, and Redis charges it once
    uint64_t disconnects;    // connections lost, or never made
    uint64_t refused;        // error replies
    uint64_t garbage;        // answers that were none: a server that is no Redis
    uint64_t forgotten;      // reports too old to be sent again: their grants were never charged
    uint64_t marker_lost;    // times that Redis had forgotten this node (restart, flush, failover)
    uint64_t foreign_keys;   // keys that hold something else in Redis, and are not synced
    uint64_t breaker_opened; // times that most reports failed, and trying became rare for a while
    uint64_t bytes_out;      // sent to Redis
    uint64_t bytes_in;       // received from it
    uint64_t rtt_ns;         // round trip of a report, smoothed; of the slowest group
    uint64_t lag_ns;         // how old the oldest grant in the last report was: about the
                             //   interval, more where Redis or the thread is too slow
    uint64_t cpu_ns;         // CPU time that the thread has used
    uint64_t nodes;          // seen alive under this prefix, with this one; 0: not known yet
    uint64_t known_keys;     // that the thread remembers
    uint64_t memory_bytes;   // of the sync and what hangs on it, without the limiters' 64 bytes a
                             //   key of capacity
    bool connected;          // to Redis, for all groups
    bool outage;             // decisions go by the outage policy
    bool forked;             // this process is a child of the one that made it: nothing is reported
    char node[65];           // this node's name
    char last_error[192];    // in words, with the remedy; empty: none yet
    uint64_t last_error_ago_ns; // since then; WEIR_FOREVER: none yet
};

// Fills `stats`; `size` is sizeof(struct weir_sync_stats).
//   WEIR_GRANTED; WEIR_EINVAL (a pointer is NULL); WEIR_ESIZE
WEIR_API int weir_sync_stats(const struct weir_sync *sync, struct weir_sync_stats *stats,
                             size_t size);

// Of one limiter, on this node, since it was attached. Fields that are of one mode alone are 0 in
// the other. (The asks of a strict one are counted in weir_stats and weir_top, as any others.)
struct weir_sync_limiter_stats {
    uint64_t reported_tokens;   // granted, and charged in Redis
    uint64_t pending_tokens;    // granted, and not yet known to be charged
    uint64_t lost_tokens;       // granted, and never to be charged: forgotten reports, full rings;
                                //   of a strict limiter, what the outage policy granted
    uint64_t unnamed;           // times a key's name could not be handed over at once; where this
                                //   grows fast, raise `names`
    uint64_t local_refund_tokens; // given back after they were reported: only this node knows
    uint64_t clamped;           // answers that were clamped to the present limit
    double excess_tokens;       // worst seen of a key: how far below zero its bucket was in Redis
    double excess_bound_tokens; // what that may be, by interval, round trip and the others' demand;
                                //   after an outage: the greatest of what the nodes say
    double mint_bound_tokens;   // what changes of the limit may have given away to a key, since
                                //   Redis keeps time and not tokens; the sum of all changes
    uint64_t unsynced;          // strict: asks that were answered WEIR_EUNSYNCED
    uint64_t unknown;           // strict: asks given up while Redis was asked, which may have
                                //   charged them
    uint32_t generation;        // of the limit in force here
    uint32_t foreign_nodes;     // others seen alive with this limiter
};

// Fills `stats`; `size` is sizeof(struct weir_sync_limiter_stats).
//   WEIR_GRANTED; WEIR_EINVAL (a pointer is NULL, or not under this sync); WEIR_ESIZE
WEIR_API int weir_sync_limiter_stats(const struct weir_sync *sync, const struct weir *limiter,
                                     struct weir_sync_limiter_stats *stats, size_t size);

// The stats of a sync and its limiters as OpenMetrics 1.0 text, ended by '\0'. Samples are named
// weir_sync_ and the field; those of a limiter have the label limiter="its name".
//   buffer  of `size` bytes; NULL with size 0 to ask for the length
//   length  set to the length of the text without its '\0'; may be NULL
//   WEIR_GRANTED  written
//   WEIR_ENOSPC   `size` is not above *length: the text is empty, never cut. Numbers grow: ask
//                 again with some bytes more
//   WEIR_EINVAL   `sync` is NULL, or `buffer` is with another size than 0
WEIR_API int weir_sync_metrics(const struct weir_sync *sync, char *buffer, size_t size,
                               size_t *length);

#ifdef __cplusplus
}
#endif
#endif
