// trace.h - invented workloads: who asks, for what, and when.
//
//     struct wr_trace *trace;
//     struct wr_trace_options options = wr_trace_defaults(WR_TRACE_FLASH_SALE);
//     struct wr_trace_event event;
//     if (!wr_trace_create(&trace, &options, &fault)) ...
//     while (wr_trace_next(trace, &event) > 0) ...
//     wr_trace_destroy(trace);
//
// The same options give the same events on every machine (random.h). One thread per trace. Memory:
// under 128 bytes a user for typing, and an event held back by the jitter; else fixed.
#ifndef WR_TRACE_H
#define WR_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "rate.h"

// X(name, word, summary). In 60ths of the duration:
//   flash-sale  the rate up to 20, a climb to 30 times the rate at 21, that until 31, then halved
//               every 4. The rate itself is the users', as in steady. The crowd above it is 2/10
//               eight bots, 4/10 passers-by, who ask once, and 4/10 users, all of them equally.
//   steady      the rate, all of it from the users, who follow Zipf's law.
//   attack      the same users; from 15 to 45 ten times as much from attackers, whose keys never
//               come twice.
//   typing      each user has the rate for himself. He writes in spells: up to 20 events at once,
//               then on at the rate, then a pause; and always fits a bucket of the rate and a burst
//               of WR_TRACE_TYPING_BURST. Users 1, 11, 21, ... do not: they go on at 2 to 4 times
//               the rate.
#define WR_TRACE_KINDS(X)                                                                          \
    X(FLASH_SALE, "flash-sale", "quiet, a spike of thirty times with bots and a crowd, decay")     \
    X(STEADY, "steady", "users who follow Zipf's law, at an even rate")                            \
    X(ATTACK, "attack", "the same, and for half of the time ten times as many keys seen once")     \
    X(TYPING, "typing", "users who send 5/s with bursts of 20; one in ten sends more")

enum wr_trace_kind {
#define WR_TRACE_KIND_ENTRY(name, word, summary) WR_TRACE_##name,
    WR_TRACE_KINDS(WR_TRACE_KIND_ENTRY)
#undef WR_TRACE_KIND_ENTRY
    WR_TRACE_KIND_COUNT
};

#define WR_TRACE_SPIKE 30        // the flash sale's top, in rates
#define WR_TRACE_ATTACKERS 10    // the attack's, beside the users' 1
#define WR_TRACE_BOTS 8          // the flash sale's heavy hitters
#define WR_TRACE_TYPING_BURST 20 // what a typing user fits into

struct wr_trace_options {
    enum wr_trace_kind kind;
    uint64_t seed;
    struct wr_rate rate; // of all the users, or of each one for typing; at most 10^8/s
    uint64_t duration_ns;
    uint64_t keys;          // users, 1 to 2^24
    uint64_t start_ns;      // of the first moment, since 1970-01-01 UTC
    uint64_t resolution_ns; // times are cut to a multiple of it
    uint64_t jitter_ns;     // events come up to this much out of order; 0: in order
};

// 60 s at 200/s of 1,000 users, or 5/s of each of 50 for typing; from 2026-01-01, seed 1, ms.
struct wr_trace_options wr_trace_defaults(enum wr_trace_kind kind);

enum wr_trace_sender {
    WR_TRACE_USER = 0,  // one of `keys`
    WR_TRACE_PASSER_BY, // comes once
    WR_TRACE_BOT,       // one of WR_TRACE_BOTS
    WR_TRACE_ATTACKER,  // comes once
};

// X(name, method, path, whether an item number follows, least bytes, most bytes).
#define WR_TRACE_PAGES(X)                                                                          \
    X(HOME, "GET", "/", false, 4000, 9000)                                                         \
    X(ITEM, "GET", "/items/", true, 6000, 40000)                                                   \
    X(SEARCH, "GET", "/search?q=", true, 2000, 20000)                                              \
    X(SALE, "GET", "/sale", false, 9000, 12000)                                                    \
    X(STOCK, "GET", "/api/stock/", true, 40, 90)                                                   \
    X(CART, "POST", "/cart", false, 200, 900)                                                      \
    X(LOGIN, "POST", "/login", false, 300, 500)                                                    \
    X(TYPING, "POST", "/api/typing", false, 20, 40)

enum wr_trace_page {
#define WR_TRACE_PAGE_ENTRY(name, method, path, has_item, least, most) WR_TRACE_PAGE_##name,
    WR_TRACE_PAGES(WR_TRACE_PAGE_ENTRY)
#undef WR_TRACE_PAGE_ENTRY
};

struct wr_trace_event {
    uint64_t time_ns; // since 1970-01-01 UTC
    uint64_t key;     // one number, one sender; a user's is 0 up to keys - 1
    uint32_t item;    // which one, on a page that has items
    uint32_t bytes;   // of the response
    uint16_t status;  // of the response
    uint8_t page;     // enum wr_trace_page
    uint8_t sender;   // enum wr_trace_sender
};

struct wr_trace;

// False when an option is out of its range; `fault` says which, and the remedy.
bool wr_trace_check(const struct wr_trace_options *options, struct wr_fault *fault);

// False when wr_trace_check is, or when there is no memory; `*trace` is then as it was.
bool wr_trace_create(struct wr_trace **trace, const struct wr_trace_options *options,
                     struct wr_fault *fault);
void wr_trace_destroy(struct wr_trace *trace);

// 1: an event; 0: that was all; -1: no memory, and no more events.
int wr_trace_next(struct wr_trace *trace, struct wr_trace_event *event);

#endif
