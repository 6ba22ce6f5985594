// weir_lot.h - where denied events are parked until they are due.
//
//     struct event {
//         struct weir_lot_node node;  // the lot's part of the event; nothing is allocated
//         uint64_t user;
//     };
//     ...
//     struct weir_ask ask = WEIR_ASK_INIT;
//     ask.key = weir_id(event->user);
//     switch (weir_lot_offer(lot, limiter, &ask, &event->node, now_ns, NULL)) {
//     case WEIR_SEND: send(event); break;
//     case WEIR_PARKED: break;             // the lot has it; it comes back from weir_lot_take
//     default: dead_letter(event); break;  // WEIR_DEAD_...: it is the caller's again
//     }
//     ...
//     struct weir_lot_node *due[32];
//     size_t count = weir_lot_take(lot, now_ns, due, 32);
//     for (size_t i = 0; i < count; i++) offer_again(WEIR_LOT_EVENT(due[i], struct event, node));
//
// Who owns an event. The caller, except from the moment it is parked until it comes back, exactly
// once, from weir_lot_take, weir_lot_cancel or weir_lot_drain. While it is parked the lot neither
// reads nor writes it, and nobody else may. It may come back in another thread before the call that
// parked it has returned: after parking, the parking thread must not touch it.
//
// The balance. At rest, parked = retried + cancelled + drained + held, always, to the event
// (weir_lot_stats). Nothing is dropped: an event that does not fit is refused, and stays the
// caller's.
//
// Time. The lot has no clock; each call is given the caller's reading in nanoseconds, of any one
// monotonic clock, from INT64_MIN up. An event is due exactly at the reading of its park plus its
// wait: never a nanosecond earlier, and found by the first weir_lot_take at or after that reading.
// Readings may come in any order: a call with an older one finds less due, and nothing is lost.
//
// Fairness. Events come back in the order in which they fall due, the earliest first whatever its
// key (a batch may also bring up to 15 later neighbours that are due). One that is overdue
// therefore waits only for those due before it, which are finite: later parks are due later.
// Through weir_lot_offer a key holds at most its share of the places, so a flood of one key leaves
// room for others, and its events are spread over time instead of all waking at once.
//
// Threads. All calls may be made from any thread at the same time, except create and destroy;
// destroy comes after every other call has returned. All are lock-free: a call is repeated only
// because another one got its work done, never because another is stopped. A thread stopped inside
// a call holds up nobody: all that it has in its hands is the events that this call had already
// taken for it, which it returns when it runs again, and one place.
//
// Cost. In a lot of 65,536 places, a park, a cancel and an event taken are five compare-and-swaps
// each (two, and one for each further factor of 16 above 16 places; events that are taken as
// neighbours share most of them), and four cache lines read before each. No call allocates, sleeps
// or makes a system call, except create and destroy.
//
// Results are those of weir.h; weir_lot_offer and weir_lot_defer return an enum weir_fate.
// All of this: since 0.1.0.
#ifndef WEIR_LOT_H
#define WEIR_LOT_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

// The lot's part of a user's event. Set it to WEIR_LOT_NODE_INIT when the event is made, and again
// before it is used for another event. The fields may be read while the caller owns the event.
struct weir_lot_node {
    int64_t due_ns;   // when it is due, or was
    int64_t first_ns; // the reading of its first weir_lot_offer or weir_lot_defer
    uint32_t tries;   // how often it was denied there
    uint32_t offered; // 1 once first_ns is set
};

#define WEIR_LOT_NODE_INIT {0, 0, 0, 0}

// The event that `node` is the member `member` of.
#define WEIR_LOT_EVENT(node, type, member)                                                         \
    ((type *)(void *)((unsigned char *)(node) - offsetof(type, member)))

struct weir_lot;

#define WEIR_LOT_CAPACITY_MAX (UINT64_C(1) << 28)

struct weir_lot_options {
    size_t size;            // set by WEIR_LOT_OPTIONS_INIT
    uint64_t capacity;      // events parked at the same time, 1 to 2^28
    uint64_t key_capacity;  // of which one key may hold, through weir_lot_offer; 0: 7 of 8
    // When weir_lot_offer and weir_lot_defer give an event up; 0: never for that reason.
    uint32_t max_tries;     // after so many denials
    uint64_t max_age_ns;    // when it would be due later than this after its first offer
    uint64_t max_wait_ns;   // ask again after so long at the latest, even where the limit says
                            //   later or never: the limit may have changed. 0: as the limit says
    uint64_t turn_ns;       // a key's events come back one after another, over up to this long: see
                            //   weir_lot_offer; 0: each after its retry_after
    const struct weir_allocator *allocator; // NULL: mmap
};

#define WEIR_LOT_OPTIONS_INIT                                                                      \
    {sizeof(struct weir_lot_options), 65536, 0, 0, 0, 0, WEIR_SECOND, NULL}

// Makes a lot. `error` may be NULL; on a failure it says in words what was refused and why.
//   WEIR_GRANTED  *lot is ready
//   WEIR_EINVAL   an option out of its range
//   WEIR_ENOMEM   no memory
//   WEIR_ESIZE    options->size is unknown
//   WEIR_ESYS     the system gave no random bytes (the keys' hash is seeded)
// Memory: 34 bytes a place, and under 64 KiB; taken here, given back by destroy.
WEIR_API WEIR_MUST_USE int weir_lot_create(struct weir_lot **lot,
                                           const struct weir_lot_options *options,
                                           struct weir_error *error);

// Refuses every later park (WEIR_ECLOSED, WEIR_DEAD_CLOSED). Take, cancel and drain go on.
// Idempotent.
WEIR_API void weir_lot_close(struct weir_lot *lot);

// Frees the lot, which no thread may be using any more. Drain it first: an event still parked stays
// untouched where it is, and the lot forgets it. NULL is allowed.
WEIR_API void weir_lot_destroy(struct weir_lot *lot);

// ---------------------------------------------------------------------------------------------
// Parking and coming back

// Names one parking of one event. A plain value: it may be copied, and kept after the event is
// gone.
struct weir_lot_ticket {
    uint64_t serial;
    uint32_t place;
};

// Parks an event for `wait_ns` from `now_ns`: 0 (due at once) to 292 years; what is longer is due
// at the end of the clock. `ticket` may be NULL; it is set before the event can come back.
//   WEIR_GRANTED  parked; the event is the lot's
//   WEIR_NO_ROOM  the lot is full: `capacity` events are parked, or just being parked or taken
//   WEIR_ECLOSED  weir_lot_close was called
// Otherwise than granted, the event is the caller's and unchanged. No share of a key is counted.
WEIR_API WEIR_MUST_USE int weir_lot_park(struct weir_lot *lot, struct weir_lot_node *node,
                                         uint64_t wait_ns, int64_t now_ns,
                                         struct weir_lot_ticket *ticket);

// Takes up to `most` events that are due at `now_ns` into `nodes`, and returns how many. They are
// the caller's. Fewer than `most` means that nothing else was due: every event whose park had
// returned before this call began was seen, or is another taker's.
WEIR_API size_t weir_lot_take(struct weir_lot *lot, int64_t now_ns, struct weir_lot_node **nodes,
                              size_t most);

// How long a taker may sleep: nanoseconds from `now_ns` until the earliest event is due, 0 when one
// is, WEIR_FOREVER when none is parked. An event parked meanwhile may be due earlier: sleep no
// longer than the shortest wait that matters, or let whoever parks wake the sleeper.
// Reads at most four cache lines.
WEIR_API uint64_t weir_lot_next_ns(struct weir_lot *lot, int64_t now_ns);

// Takes back the event that `ticket` names; the place is free again at once. The event is the
// caller's, to free or to use again. NULL: it is no longer parked there - it was taken, cancelled
// or drained, and belongs to whoever got it. A ticket never finds another event, however old it is.
WEIR_API struct weir_lot_node *weir_lot_cancel(struct weir_lot *lot, struct weir_lot_ticket ticket);

// Takes up to `most` events whether due or not, and returns how many: the earliest due first, each
// exactly once. For a shutdown: close, let the calls in flight return, then drain until it returns
// 0; every event is then back. While others still park, 0 means that nothing parked before this
// call began is left. Also finds what a thread that died inside a call had parked. Looking once
// more when the lot is empty reads all of its places.
WEIR_API size_t weir_lot_drain(struct weir_lot *lot, struct weir_lot_node **nodes, size_t most);

// ---------------------------------------------------------------------------------------------
// The ready-made loop: take, else park, else give up

// What to do with an event: X(name, value, words).
#define WEIR_FATES(X)                                                                              \
    X(SEND, 0, "send: the limit let it pass")                                                      \
    X(PARKED, 1, "parked: it comes back when it is due")                                           \
    X(DEAD_TRIES, 2, "dead: denied max_tries times")                                               \
    X(DEAD_AGE, 3, "dead: it would be due later than max_age_ns after its first offer")            \
    X(DEAD_NEVER, 4, "dead: it can never pass this limit")                                         \
    X(DEAD_FULL, 5, "dead: the lot is full; raise its capacity")                                   \
    X(DEAD_KEY_FULL, 6, "dead: its key holds all the places it may; raise key_capacity")           \
    X(DEAD_CLOSED, 7, "dead: the lot is closed")

enum weir_fate {
#define WEIR_FATE_ENTRY(name, value, words) WEIR_##name = value,
    WEIR_FATES(WEIR_FATE_ENTRY)
#undef WEIR_FATE_ENTRY
    WEIR_FATES_END
};

// The words for a fate; "unknown fate" for a number that is none. Static storage.
WEIR_API const char *weir_fate_words(int fate);

// Asks `limiter` for `ask` (a WEIR_TAKE), for a new event or for one that came back, and says what
// to do with it. After anything but WEIR_PARKED the event is the caller's. Each end is counted.
//   WEIR_SEND            granted: the tokens are taken
//   WEIR_PARKED          denied, and parked until retry_after_ns is over and it is its turn
//   WEIR_DEAD_...        denied for good
//   a negative result    of weir_do, or WEIR_EINVAL when the ask is no WEIR_TAKE: nothing changed
// Its turn: an event of a key of which n events are parked already is due n costs' time later than
// retry_after_ns, so that they come back one after another as the limit lets them pass, and not all
// at once to be denied again. Where that is more than turn_ns, it is due somewhere within turn_ns:
// the limit may become faster meanwhile. One denied again comes back within half of its turn. And a
// new event goes behind those parked: it asks only if there are tokens for them, too. With turn_ns
// at 0 each asks at once and is parked for exactly retry_after_ns; of a key's first parked event
// that is always so.
// `now_ns` is the lot's reading; a limiter with a caller's clock also reads ask->now_ns. `ticket`
// may be NULL. Cost: one decision, and a park; for a new event behind others, one more decision.
WEIR_API WEIR_MUST_USE int weir_lot_offer(struct weir_lot *lot, struct weir *limiter,
                                          const struct weir_ask *ask, struct weir_lot_node *node,
                                          int64_t now_ns, struct weir_lot_ticket *ticket);

// The second half of weir_lot_offer, for an event that was denied elsewhere - by weir_take_all, or
// by the downstream service ("429, Retry-After") - and may be tried again after `wait_ns`
// (WEIR_FOREVER: waiting does not help). Counts as one try. Returns WEIR_PARKED or WEIR_DEAD_...
WEIR_API WEIR_MUST_USE int weir_lot_defer(struct weir_lot *lot, struct weir_key key,
                                          struct weir_lot_node *node, uint64_t wait_ns,
                                          int64_t now_ns, struct weir_lot_ticket *ticket);

// ---------------------------------------------------------------------------------------------
// Watching

struct weir_lot_stats {
    uint64_t parked;    // events parked since creation
    uint64_t retried;   // given back by weir_lot_take
    uint64_t cancelled; // given back by weir_lot_cancel
    uint64_t drained;   // given back by weir_lot_drain
    uint64_t held;      // parked - retried - cancelled - drained: in the lot now
    uint64_t refused;   // parks refused, for want of room or because the lot was closed
    uint64_t capacity;
    uint64_t memory_bytes;
    uint64_t fates[WEIR_FATES_END]; // what weir_lot_offer and weir_lot_defer answered, each
};

// Fills `stats`, of which `size` = sizeof(struct weir_lot_stats) bytes are the caller's: a caller
// built against an older header gets the fields it knows. WEIR_ESIZE where that is no size ever
// used. Exact once the calls in flight have returned; meanwhile `held` may be too high by what is
// just being counted, and is never too low.
WEIR_API int weir_lot_stats(const struct weir_lot *lot, struct weir_lot_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif
#endif
