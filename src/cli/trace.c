// trace.c - the workloads: three of a crowd, whose rate changes, and one of users who type.
//
// A crowd is a Poisson stream at the highest rate it ever has, of which each candidate is kept with
// the chance (rate now / highest rate). One draw does that and also says whose event it is: below
// the rate itself it is a user's, above it, up to the present intensity, one of the crowd's. So the
// users go on as they were whatever the crowd does.
//
// The typing users each have a clock of their own; the next of them to send is on top of a heap.
#include "trace.h"

#include <stdlib.h>

#include "pending.h"
#include "random.h"

#define MAX_KEYS (UINT64_C(1) << 24)    // the users' addresses are in 10.0.0.0/8
#define MAX_PERIOD_NS (366 * WEIR_DAY)  // keeps a gap, 64 * period * 2^64, within 128 bits
#define MAX_TIME_NS (UINT64_C(1) << 62) // the year 2116
#define SENDER_SHIFT 60                 // a key's top bits say what kind of sender it is
#define Q16 (UINT64_C(1) << 16)         // intensities are in 2^-16 of the rate

__extension__ typedef unsigned __int128 wide;

// One user who types; times are since 1970.
struct typist {
    uint64_t meant_ns;   // when his event to come would be, but for the resolution
    uint64_t full_at_ns; // when a bucket of the rate that he spends from is full again
    uint32_t quick_left; // events still to come close together
    uint32_t paced_left; // events still to come at the rate, after those
};

struct kind {
    int (*next)(struct wr_trace *trace, struct wr_trace_event *event);
    uint64_t (*intensity_q16)(const struct wr_trace *trace, uint64_t offset_ns);
    void (*crowd)(struct wr_trace *trace, struct wr_trace_event *event);
    uint64_t highest; // the most that intensity_q16 returns, in rates
};

struct wr_trace {
    struct wr_trace_options options;
    const struct kind *kind;
    struct wr_random random;
    uint64_t never_seen; // the next key that comes once
    // A crowd:
    wide mean_gap_q32; // of the candidates, in 2^-32 ns
    wide offset_q32;   // of the last candidate, since the start
    // Typing:
    uint64_t interval_ns; // one event at the rate, rounded up
    struct typist *typists;
    struct wr_pending typing;
    // The jitter has a random stream of its own, so that it changes the order and nothing else.
    struct wr_random shuffle;
    struct wr_pending shuffled;
    uint64_t newest_ns; // the latest time taken from the kind; no event to come is due before it
    uint64_t order;
    int upstream; // what the kind's next() said last
};

// ---------------------------------------------------------------------------------------------
// What an event is about

// A mood is the pages that a sender asks for: each of the eight equally often.
#define MOOD 8
static const uint8_t browsing[MOOD] = {
    WR_TRACE_PAGE_HOME, WR_TRACE_PAGE_ITEM,   WR_TRACE_PAGE_ITEM,   WR_TRACE_PAGE_ITEM,
    WR_TRACE_PAGE_ITEM, WR_TRACE_PAGE_SEARCH, WR_TRACE_PAGE_SEARCH, WR_TRACE_PAGE_CART,
};
static const uint8_t buying[MOOD] = {
    WR_TRACE_PAGE_SALE,  WR_TRACE_PAGE_SALE,  WR_TRACE_PAGE_SALE, WR_TRACE_PAGE_SALE,
    WR_TRACE_PAGE_STOCK, WR_TRACE_PAGE_STOCK, WR_TRACE_PAGE_CART, WR_TRACE_PAGE_CART,
};
static const uint8_t guessing[MOOD] = {
    WR_TRACE_PAGE_LOGIN, WR_TRACE_PAGE_LOGIN, WR_TRACE_PAGE_LOGIN, WR_TRACE_PAGE_LOGIN,
    WR_TRACE_PAGE_LOGIN, WR_TRACE_PAGE_LOGIN, WR_TRACE_PAGE_HOME,  WR_TRACE_PAGE_SEARCH,
};

static void set_page(struct wr_trace *trace, struct wr_trace_event *event, uint8_t page) {
    static const struct {
        bool has_item;
        uint32_t least_bytes;
        uint32_t most_bytes;
    } pages[] = {
#define PAGE(name, method, path, has_item, least, most) {has_item, least, most},
        WR_TRACE_PAGES(PAGE)
#undef PAGE
    };
    struct wr_random *random = &trace->random;
    uint32_t spread = pages[page].most_bytes - pages[page].least_bytes + 1;
    event->page = page;
    event->item = pages[page].has_item ? (uint32_t)wr_random_zipf(random, 500) + 1 : 0;
    event->bytes = pages[page].least_bytes + (uint32_t)wr_random_below(random, spread);
    event->status = page == WR_TRACE_PAGE_ITEM && wr_random_once_in(random, 50) ? 404 : 200;
}

static void set_page_of(struct wr_trace *trace, struct wr_trace_event *event,
                        const uint8_t mood[MOOD]) {
    set_page(trace, event, mood[wr_random_below(&trace->random, MOOD)]);
}

static void set_sender(struct wr_trace_event *event, enum wr_trace_sender sender, uint64_t number) {
    event->sender = (uint8_t)sender;
    event->key = ((uint64_t)sender << SENDER_SHIFT) | number;
}

static uint64_t never_seen(struct wr_trace *trace) {
    return trace->never_seen++ & ((UINT64_C(1) << SENDER_SHIFT) - 1);
}

static void set_user(struct wr_trace *trace, struct wr_trace_event *event) {
    set_sender(event, WR_TRACE_USER, wr_random_zipf(&trace->random, trace->options.keys));
    set_page_of(trace, event, browsing);
}

static void set_flash_crowd(struct wr_trace *trace, struct wr_trace_event *event) {
    uint64_t share = wr_random_below(&trace->random, 10);
    if (share < 2) {
        set_sender(event, WR_TRACE_BOT, wr_random_below(&trace->random, WR_TRACE_BOTS));
        set_page(trace, event, WR_TRACE_PAGE_STOCK);
    } else if (share < 6) {
        set_sender(event, WR_TRACE_PASSER_BY, never_seen(trace));
        set_page_of(trace, event, buying);
    } else {
        set_sender(event, WR_TRACE_USER, wr_random_below(&trace->random, trace->options.keys));
        set_page_of(trace, event, buying);
    }
}

static void set_attacker(struct wr_trace *trace, struct wr_trace_event *event) {
    set_sender(event, WR_TRACE_ATTACKER, never_seen(trace));
    set_page_of(trace, event, guessing);
    if (event->page == WR_TRACE_PAGE_LOGIN) event->status = 401;
}

// ---------------------------------------------------------------------------------------------
// Crowds

static uint64_t even_q16(const struct wr_trace *trace, uint64_t offset_ns) {
    (void)trace;
    (void)offset_ns;
    return Q16;
}

// Where in the duration, in 2^-16 of a 60th of it.
static uint64_t sixtieths_q16(const struct wr_trace *trace, uint64_t offset_ns) {
    return (uint64_t)((wide)offset_ns * 60 * Q16 / trace->options.duration_ns);
}

static uint64_t flash_sale_q16(const struct wr_trace *trace, uint64_t offset_ns) {
    uint64_t at_q16 = sixtieths_q16(trace, offset_ns);
    uint64_t extra_q16 = (WR_TRACE_SPIKE - 1) * Q16;
    if (at_q16 < 20 * Q16) return Q16;
    if (at_q16 < 21 * Q16) return Q16 + (WR_TRACE_SPIKE - 1) * (at_q16 - 20 * Q16);
    if (at_q16 < 31 * Q16) return Q16 + extra_q16;
    uint64_t halvings_q16 = (at_q16 - 31 * Q16) / 4;
    uint64_t now_q16 = extra_q16 >> (halvings_q16 / Q16);
    // A straight line from each half to the next.
    return Q16 + now_q16 - now_q16 * (halvings_q16 % Q16) / (2 * Q16);
}

static uint64_t attack_q16(const struct wr_trace *trace, uint64_t offset_ns) {
    uint64_t at_q16 = sixtieths_q16(trace, offset_ns);
    bool attacked = at_q16 >= 15 * Q16 && at_q16 < 45 * Q16;
    return attacked ? (1 + WR_TRACE_ATTACKERS) * Q16 : Q16;
}

static int crowd_next(struct wr_trace *trace, struct wr_trace_event *event) {
    const struct wr_trace_options *options = &trace->options;
    while (true) {
        wide gap_q64 = wr_random_exponential_q32(&trace->random) * trace->mean_gap_q32;
        trace->offset_q32 += gap_q64 >> 32;
        if (trace->offset_q32 >> 32 >= options->duration_ns) return 0;
        uint64_t offset_ns = (uint64_t)(trace->offset_q32 >> 32);
        uint64_t whose_q16 = wr_random_below(&trace->random, trace->kind->highest * Q16);
        if (whose_q16 >= trace->kind->intensity_q16(trace, offset_ns)) continue;
        event->time_ns = options->start_ns + offset_ns;
        event->time_ns -= event->time_ns % options->resolution_ns;
        if (whose_q16 < Q16) set_user(trace, event);
        else trace->kind->crowd(trace, event);
        return 1;
    }
}

// ---------------------------------------------------------------------------------------------
// Typing

static bool exceeds(uint64_t user) {
    return user % 10 == 1;
}

// From a user's event to his next, before it is made to fit his limit.
static uint64_t typing_gap_ns(struct wr_trace *trace, uint64_t user) {
    struct typist *typist = &trace->typists[user];
    struct wr_random *random = &trace->random;
    uint64_t interval_ns = trace->interval_ns;
    uint64_t half_ns = interval_ns / 2 + 1;
    if (typist->quick_left > 0) {
        typist->quick_left--;
        return interval_ns / 8 + wr_random_below(random, half_ns / 2 + 1);
    }
    if (typist->paced_left > 0) {
        typist->paced_left--;
        if (exceeds(user)) return interval_ns / 4 + wr_random_below(random, half_ns / 2 + 1);
        return interval_ns / 4 * 3 + wr_random_below(random, half_ns);
    }
    typist->quick_left = 4 + (uint32_t)wr_random_below(random, WR_TRACE_TYPING_BURST - 4);
    typist->paced_left = 10 + (uint32_t)wr_random_below(random, 41);
    return 10 * interval_ns + wr_random_below(random, 30 * interval_ns);
}

// The time that the trace gives for the user's event: when he meant it, cut to the resolution.
// Where a bucket of his rate and burst has no token then, by the times that the trace has given, he
// waits until it has.
static uint64_t fit_ns(struct wr_trace *trace, uint64_t user) {
    struct typist *typist = &trace->typists[user];
    uint64_t resolution_ns = trace->options.resolution_ns;
    uint64_t saved_ns = (WR_TRACE_TYPING_BURST - 1) * trace->interval_ns;
    uint64_t time_ns = typist->meant_ns - typist->meant_ns % resolution_ns;
    if (!exceeds(user) && typist->full_at_ns > time_ns + saved_ns) {
        time_ns = typist->full_at_ns - saved_ns + resolution_ns - 1;
        time_ns -= time_ns % resolution_ns;
    }
    if (typist->full_at_ns < time_ns) typist->full_at_ns = time_ns;
    typist->full_at_ns += trace->interval_ns;
    if (typist->meant_ns < time_ns) typist->meant_ns = time_ns;
    return time_ns;
}

// Puts the user's next event among those to come, if he still has one.
static bool plan(struct wr_trace *trace, uint64_t user) {
    uint64_t end_ns = trace->options.start_ns + trace->options.duration_ns;
    struct wr_pending_item item = {0};
    trace->typists[user].meant_ns += typing_gap_ns(trace, user);
    item.due_ns = fit_ns(trace, user);
    item.order = user;
    return trace->typists[user].meant_ns >= end_ns || wr_pending_push(&trace->typing, &item);
}

static int typing_next(struct wr_trace *trace, struct wr_trace_event *event) {
    if (wr_pending_first(&trace->typing) == NULL) return 0;
    struct wr_pending_item item = wr_pending_pop(&trace->typing);
    event->time_ns = item.due_ns;
    set_sender(event, WR_TRACE_USER, item.order);
    set_page(trace, event, WR_TRACE_PAGE_TYPING);
    return plan(trace, item.order) ? 1 : -1;
}

// Everybody starts with a pause.
static bool start_typing(struct wr_trace *trace) {
    const struct wr_trace_options *options = &trace->options;
    trace->typists = calloc(options->keys, sizeof(*trace->typists));
    if (trace->typists == NULL) return false;
    for (uint64_t user = 0; user < options->keys; user++) {
        uint64_t pause_ns = wr_random_below(&trace->random, 30 * trace->interval_ns);
        trace->typists[user].meant_ns = options->start_ns + pause_ns;
        if (!plan(trace, user)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------------
// Any of them

static const struct kind kinds[WR_TRACE_KIND_COUNT] = {
    [WR_TRACE_FLASH_SALE] = {crowd_next, flash_sale_q16, set_flash_crowd, WR_TRACE_SPIKE},
    [WR_TRACE_STEADY] = {crowd_next, even_q16, NULL, 1},
    [WR_TRACE_ATTACK] = {crowd_next, attack_q16, set_attacker, 1 + WR_TRACE_ATTACKERS},
    [WR_TRACE_TYPING] = {typing_next, NULL, NULL, 1},
};

struct wr_trace_options wr_trace_defaults(enum wr_trace_kind kind) {
    bool typing = kind == WR_TRACE_TYPING;
    return (struct wr_trace_options){
        .kind = kind,
        .seed = 1,
        .rate = {typing ? 5 : 200, WEIR_SECOND},
        .duration_ns = 60 * WEIR_SECOND,
        .keys = typing ? 50 : 1000,
        .start_ns = UINT64_C(1767225600) * WEIR_SECOND, // 2026-01-01
        .resolution_ns = WEIR_MILLISECOND,
        .jitter_ns = 0,
    };
}

bool wr_trace_check(const struct wr_trace_options *options, struct wr_fault *fault) {
    uint64_t resolution_ns = options->resolution_ns;
    if ((unsigned)options->kind >= WR_TRACE_KIND_COUNT)
        return wr_fault(fault, "there is no such kind of trace");
    if (options->rate.tokens == 0 || options->rate.period_ns == 0)
        return wr_fault(fault, "the rate is 0, so there would be no events; give at least 1/d");
    if (options->rate.period_ns > MAX_PERIOD_NS)
        return wr_fault(fault, "the rate's period is above 366 days; give a shorter one");
    if (options->rate.tokens > options->rate.period_ns / 10)
        return wr_fault(fault, "the rate is above 100M/s; give a lower one");
    if (options->keys == 0 || options->keys > MAX_KEYS)
        return wr_fault(fault, "the number of keys must be 1 to 16777216");
    if (options->duration_ns == 0) return wr_fault(fault, "the duration is 0; give at least 1ns");
    if (resolution_ns != 1 && resolution_ns != WEIR_MICROSECOND &&
        resolution_ns != WEIR_MILLISECOND && resolution_ns != WEIR_SECOND)
        return wr_fault(fault, "the resolution must be s, ms, us or ns");
    if (options->start_ns > MAX_TIME_NS || options->duration_ns > MAX_TIME_NS ||
        options->jitter_ns > MAX_TIME_NS ||
        options->start_ns + options->duration_ns + options->jitter_ns > MAX_TIME_NS)
        return wr_fault(fault,
                        "the trace would go on after the year 2115; start earlier, or give a "
                        "shorter duration or jitter");
    return true;
}

static bool start(struct wr_trace *trace) {
    const struct wr_trace_options *options = &trace->options;
    wide period_q32 = (wide)options->rate.period_ns << 32;
    trace->kind = &kinds[options->kind];
    trace->random = wr_random_init(options->seed);
    trace->shuffle = wr_random_init(~options->seed);
    trace->never_seen = wr_random_next(&trace->random);
    trace->mean_gap_q32 = period_q32 / (options->rate.tokens * trace->kind->highest);
    trace->interval_ns = (options->rate.period_ns - 1) / options->rate.tokens + 1;
    trace->upstream = 1;
    return options->kind != WR_TRACE_TYPING || start_typing(trace);
}

bool wr_trace_create(struct wr_trace **trace, const struct wr_trace_options *options,
                     struct wr_fault *fault) {
    if (!wr_trace_check(options, fault)) return false;
    struct wr_trace *made = calloc(1, sizeof(*made));
    if (made == NULL) return wr_fault(fault, "no memory for the trace");
    made->options = *options;
    if (!start(made)) {
        wr_trace_destroy(made);
        return wr_fault(fault, "no memory for so many users who type; give fewer keys");
    }
    *trace = made;
    return true;
}

void wr_trace_destroy(struct wr_trace *trace) {
    if (trace == NULL) return;
    wr_pending_clear(&trace->typing);
    wr_pending_clear(&trace->shuffled);
    free(trace->typists);
    free(trace);
}

// Holds one more event back for a random part of the jitter.
static int shuffle_in(struct wr_trace *trace) {
    struct wr_pending_item item = {0};
    int result = trace->kind->next(trace, &item.event);
    if (result <= 0) return result;
    trace->newest_ns = item.event.time_ns;
    item.due_ns = item.event.time_ns + wr_random_below(&trace->shuffle, trace->options.jitter_ns);
    item.order = trace->order++;
    return wr_pending_push(&trace->shuffled, &item) ? 1 : -1;
}

static bool is_next(const struct wr_trace *trace, const struct wr_pending_item *first) {
    return first != NULL && first->due_ns <= trace->newest_ns;
}

int wr_trace_next(struct wr_trace *trace, struct wr_trace_event *event) {
    if (trace->upstream < 0) return trace->upstream;
    if (trace->options.jitter_ns == 0) {
        if (trace->upstream > 0) trace->upstream = trace->kind->next(trace, event);
        return trace->upstream;
    }
    while (trace->upstream > 0 && !is_next(trace, wr_pending_first(&trace->shuffled)))
        trace->upstream = shuffle_in(trace);
    if (trace->upstream < 0) return trace->upstream;
    if (wr_pending_first(&trace->shuffled) == NULL) return 0;
    *event = wr_pending_pop(&trace->shuffled).event;
    return 1;
}
