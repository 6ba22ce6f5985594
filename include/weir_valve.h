// weir_valve.h - the rate of a limiter follows what its consumers can take.
//
//     struct weir_valve *valve;
//     struct weir_valve_settings settings = WEIR_VALVE_SETTINGS_INIT;
//     settings.min_per_s = 20;
//     settings.base_per_s = 150;
//     settings.max_per_s = 5000;
//     if (weir_valve_create(&valve, &settings, &error) != WEIR_GRANTED) ...
//     if (weir_valve_start(valve, limiter, read_my_queue, queue, &error) != WEIR_GRANTED) ...
//     ...              // every 100 ms: read_my_queue(queue, &sample), and the rate is set
//     weir_valve_destroy(valve);
//
// Two signals. Depth: how many events wait between the limiter and the consumers. It is smoothed;
// below the low mark the rate grows by a factor each interval, above the high mark it shrinks by
// one, between them it holds. Overload: how many answers said "too much" (429, a timeout) since the
// last sample; one is enough to shrink the rate at once, whatever the depth says.
//
// What it does beyond that, each for a reason:
//   - It never goes below min_per_s, which is above 0: something always probes whether the
//     consumers are back. Once the overloads end and the queue is low, it reaches any rate in at
//     most ln(rate / min_per_s) / ln(grow_factor) + 10 intervals and settle_ns. It cannot latch
//     low.
//   - An overload also shows where the capacity lies: of what was sent, the part that was not
//     refused (at least half). The rate goes to overload_factor of that, climbs back fast to 95 %
//     of it, and then feels its way: 1 % in the first interval, half as much again in each next, up
//     to grow_factor. So a steady capacity is met with few refusals, and a larger one is found
//     soon.
//   - After an overload, more of them within settle_ns are answers to what was sent before: they
//     are counted, and the rate stays.
//   - The rate does not grow beyond twice its use (or base_per_s, whichever is more): else a quiet
//     hour would end in a flood at the maximum. The use comes from the limiter's counters, or the
//     sample.
//   - The depth counts as beyond a mark only by more than twice its own mean jitter (at most 30 %
//     of the mark), and while it is not on its way back: noise around a mark does nothing, and a
//     queue that becomes shorter is left to do so.
//   - Where the use is known, shrinking because of the depth ends at shrink_factor of what the
//     consumers take, which already empties the queue.
//
// The PID form (WEIR_VALVE_PID) steers the smoothed depth to a set-point instead:
//     rate = integral + kp_per_s * (set_point_depth - depth) - kd * (change of depth a second)
// where the integral grows by ki_per_s2 * (set_point_depth - depth) a second and stands still while
// that would push the rate further against a bound or the slew limit (anti-windup). An overload
// acts as in the other form, at once and without the slew limit.
//
// Doubles are used here: nothing here is a decision. What comes out is a struct weir_limit of
// integers in thousandths of a token a second; weir_set_limit takes it over without minting a
// token. Give the valve a limiter of its own, asked with one key ("provider"): a limit holds for
// each key.
//
// Against the alternatives, simulated: a flash sale of 18,000 events in 30 s, and a provider with
// 32 callers and a capacity of 500/s, 200/s from 10 to 20 s, 500/s after, of which the settings
// (20, 5000, base 150) know nothing. In the middle he refuses what is too much, on the right he
// lets it wait. Delivered is of what he could have taken: his capacity while anything waits, the
// arrivals otherwise; depth is the deepest that the queue before the callers (1,024 places) was;
// least to most of five seeds. By bench/valve_table.c.
//
//   | limit             | delivered    | answers 429    | depth | delivered    | depth |
//   |-------------------|--------------|----------------|-------|--------------|-------|
//   | no limit          | 100 to 100 % | 24908 to 25038 |  1024 | 100 to 100 % |  1024 |
//   | 200/s, too low    |  60 to  61 % |     0 to     0 |     3 |  60 to  61 % |     3 |
//   | 1,000/s, too high | 100 to 100 % | 13005 to 13007 |     7 | 100 to 100 % |  1024 |
//   | valve, marks      |  96 to  99 % |   135 to   142 |     2 |  96 to  97 % |   175 |
//   | valve, PID        |  98 to  98 % |   526 to   551 |     2 |  98 to  98 % |    57 |
//
// Threads: every call may be made from any thread, except create, and destroy after which nothing
// may follow. They share a lock of the valve's own, held for a few hundred nanoseconds and never
// while the user's callback runs; nothing here is on the path of a decision.
// All of this: since 0.1.0.
#ifndef WEIR_VALVE_H
#define WEIR_VALVE_H

#include "weir.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weir_valve_form {
    WEIR_VALVE_MARKS = 0, // low and high mark, factors
    WEIR_VALVE_PID,       // a set-point
};

// All rates are tokens a second, all depths are events.
struct weir_valve_settings {
    size_t size; // set by WEIR_VALVE_SETTINGS_INIT
    enum weir_valve_form form;
    // Required. 0.001 <= min <= base <= max; max at most the limiter's max_rate.
    double min_per_s;
    double base_per_s; // where it starts
    double max_per_s;
    uint64_t interval_ns;  // between samples; the factors are per interval. 1 ms to 1 h
    uint64_t smoothing_ns; // time constant of the smoothed depth; 0: not smoothed. At most 1 h
    uint64_t burst_ns;     // the limit's burst: what the rate makes in this time,
    uint64_t least_burst_tokens; //   and at least this: the largest cost that is ever asked for
    double overload_factor; // 0 < it < 1: what an overload leaves of the rate, at most
    uint64_t settle_ns;     // after an overload; at most 1 h
    // WEIR_VALVE_MARKS
    double low_depth;  // 0 < low < high
    double high_depth;
    double grow_factor;   // above 1, at most 10
    double shrink_factor; // 0 < it < 1
    // WEIR_VALVE_PID
    double set_point_depth; // above 0
    double kp_per_s;        // above 0, and at most 1 an interval
    double ki_per_s2;       // above 0, below kp / smoothing: beyond that no queue is steady
    double kd;              // 0 or more
    double slew_per_s2;     // how far the rate may move in a second; 0: no limit
    const struct weir_allocator *allocator; // NULL: mmap
};

// For the PID form: a backlog is worked off in about a second; ki = kp^2 / 4 is critical damping of
// an unsmoothed queue.
#define WEIR_VALVE_SETTINGS_INIT                                                                   \
    {sizeof(struct weir_valve_settings), WEIR_VALVE_MARKS, 0, 0, 0,                                \
     100 * WEIR_MILLISECOND, 300 * WEIR_MILLISECOND, 20 * WEIR_MILLISECOND, 1,                     \
     0.95, 200 * WEIR_MILLISECOND,                                                                 \
     16, 64, 1.2, 0.8,                                                                             \
     32, 4, 4, 0, 0, NULL}

// What happened downstream since the last sample.
struct weir_sample {
    size_t size;             // set by WEIR_SAMPLE_INIT
    double depth;            // events waiting now, 0 or more
    uint64_t overloads;      // answers that meant "too much": 429, timeouts
    uint64_t granted_tokens; // what the limiter let pass; WEIR_UNKNOWN: as much as the rate makes
};

#define WEIR_UNKNOWN UINT64_MAX
#define WEIR_SAMPLE_INIT {sizeof(struct weir_sample), 0, 0, WEIR_UNKNOWN}

struct weir_valve;

// Makes a valve, at base_per_s. `error` may be NULL; on a failure it says in words which setting
// was refused, and why.
//   WEIR_GRANTED  *valve is ready
//   WEIR_EINVAL   a setting out of its range
//   WEIR_ENOMEM   no memory
//   WEIR_ESIZE    settings->size is unknown
WEIR_API WEIR_MUST_USE int weir_valve_create(struct weir_valve **valve,
                                             const struct weir_valve_settings *settings,
                                             struct weir_error *error);

// Stops the valve's thread, if it has one, and frees the valve. The limit stays as it is. NULL is
// allowed. WEIR_GRANTED, or WEIR_EBUSY: as weir_valve_stop, and nothing was freed.
WEIR_API int weir_valve_destroy(struct weir_valve *valve);

// One step: what the rate should be, `dt_ns` after the last step (0 up; more than two intervals
// count as two for growth and shrinking). `limit` (may be NULL) is the limit to set.
// Pure: the same steps give the same rates; it reads no clock, allocates nothing, calls nobody.
//   WEIR_GRANTED  the sample was used
//   WEIR_EINVAL   it was nonsense (a depth below 0, above 10^15 or not a number): counted, the rate
//                 stays
//   WEIR_ESIZE    sample->size is unknown: the same
WEIR_API int weir_valve_step(struct weir_valve *valve, const struct weir_sample *sample,
                             uint64_t dt_ns, struct weir_limit *limit);

// The limit that the valve's rate stands for now.
WEIR_API void weir_valve_limit(struct weir_valve *valve, struct weir_limit *limit);

// Whether `limiter` can be driven over the whole of the valve's range.
//   WEIR_GRANTED
//   WEIR_ELIMIT  max_per_s is above the limiter's max_rate (`error` has the words)
//   WEIR_ECLOCK  the limiter has a caller's clock: step, and use weir_set_limit_at
WEIR_API WEIR_MUST_USE int weir_valve_fits(struct weir_valve *valve, const struct weir *limiter,
                                           struct weir_error *error);

// One step for `limiter`: takes what it granted since the last one from its counters (where the
// sample does not say), steps, and sets the limit if it changed. For a loop of one's own. Results
// of weir_valve_step, then of weir_set_limit; a refusal is counted, and tried again by the next
// call.
WEIR_API int weir_valve_drive(struct weir_valve *valve, struct weir *limiter,
                              const struct weir_sample *sample, uint64_t dt_ns);

// ---------------------------------------------------------------------------------------------
// A thread that does it

// Fills `sample` with what happened since the last call: depth and overloads, and granted_tokens
// where it knows better than the limiter. Returns 0; anything else means that there is no reading
// now: counted, the rate stays. Called each interval, by one thread, never twice at a time.
typedef int weir_valve_read(void *context, struct weir_sample *sample);

// Checks that the valve fits the limiter, sets its limit to the valve's rate and starts a thread
// that calls `read` each interval. A reading that is nonsense, or that came later than an interval
// after it was asked for, changes nothing: the rate stays, it is counted. One that never comes
// stops nothing but the valve.
//   WEIR_GRANTED  started
//   WEIR_EINVAL   it is started already, or `read` is NULL
//   WEIR_ESYS     the system gave no thread
//   and those of weir_valve_fits and weir_set_limit
WEIR_API WEIR_MUST_USE int weir_valve_start(struct weir_valve *valve, struct weir *limiter,
                                            weir_valve_read *read, void *context,
                                            struct weir_error *error);

// Ends the thread; the limit stays as it is. Waits for a reading that is under way, at most for an
// interval or 100 ms, whichever is longer.
//   WEIR_GRANTED  `read` will not be called again, and the limiter not be touched; the valve may be
//                 started again. Also when there is no thread
//   WEIR_EBUSY    `read` has not returned yet: its context must stay. The limiter will not be
//                 touched. Call again
WEIR_API int weir_valve_stop(struct weir_valve *valve);

// ---------------------------------------------------------------------------------------------
// Watching

struct weir_valve_stats {
    double rate_per_s;    // now
    double depth;         // smoothed
    double jitter_depth;  // mean distance of a sample from that
    uint64_t steps;       // samples that were used
    uint64_t raised;      // steps that raised the rate
    uint64_t lowered;     // steps that lowered it because of the depth
    uint64_t overloaded;  // steps that lowered it because of an overload
    uint64_t overloads;   // sum of the samples' overloads
    uint64_t nonsense;    // samples that made no sense
    uint64_t failed;      // readings that returned something else than 0
    uint64_t late;        // readings that took longer than an interval, one under way included
    uint64_t refused;     // limits that the limiter refused
    bool running;         // has a thread
    bool reading_late;    // a reading is under way for longer than an interval
};

// Fills `stats`, of which `size` = sizeof(struct weir_valve_stats) bytes are the caller's: a caller
// built against an older header gets the fields it knows. Returns at once, also while `read`
// blocks.
// WEIR_ESIZE where that is no size ever used.
WEIR_API int weir_valve_stats(struct weir_valve *valve, struct weir_valve_stats *stats,
                              size_t size);

#ifdef __cplusplus
}
#endif
#endif
