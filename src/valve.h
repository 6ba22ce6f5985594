// The valve inside.
//
//   valve.c           the step: pure arithmetic on struct wr_valve
//   valve_settings.c  what settings are refused, in words
//   valve_drive.c     the handle: a lock around the step, and the limiter
//   valve_thread.c    the thread that asks the user's callback each interval
#pragma once

#include <pthread.h>

#include "weir_valve.h"

// All that a step reads and writes.
struct wr_valve {
    struct weir_valve_settings settings;
    struct weir_valve_stats stats; // rate, smoothed depth, jitter and the counts live here
    double last_depth;             // of the last sample
    bool use_known;                // whether the last sample said what was granted; if so:
    double used_per_s;             //   what was, a second; as high as the last interval's at once
    double fed_per_s;              //   the same, smoothed as the depth is
    double drained_per_s;          //   what the consumers took, smoothed
    double ceiling_per_s;          // where the capacity seemed to lie last; 0: unknown
    double probe_factor;           // the next growth beyond 95 % of that, less 1
    double integral_per_s;         // PID
    uint64_t settling_ns;          // how long overloads still count as answers to what went before
};

// valve_settings.c
int wr_valve_check(const struct weir_valve_settings *settings, struct weir_error *error);

// valve.c
void wr_valve_init(struct wr_valve *valve, const struct weir_valve_settings *settings);
int wr_valve_step(struct wr_valve *valve, const struct weir_sample *sample, uint64_t dt_ns);
void wr_valve_limit(const struct weir_valve_settings *settings, double rate_per_s,
                    struct weir_limit *limit);

// Where the thread's time comes from: the machine's, or a test's. `wait` sleeps until `until_ns` or
// until `wake` is signalled; it is called with `lock` held, as pthread_cond_timedwait is.
struct wr_valve_time {
    uint64_t (*now_ns)(void *context);
    void (*wait)(void *context, pthread_cond_t *wake, pthread_mutex_t *lock, uint64_t until_ns);
    void *context;
};

struct wr_valve_reading {
    struct weir *limiter;
    weir_valve_read *read;
    void *context;
    uint64_t since_ns; // when the reading under way was asked for
    bool under_way;
};

struct weir_valve {
    pthread_mutex_t lock; // guards all below
    struct wr_valve state;
    struct weir_allocator allocator;
    uint64_t last_tokens; // what the limiter had granted at the last drive
    struct weir_limit set; // what was last set
    bool tokens_known;
    // The thread (valve_thread.c).
    pthread_t thread;
    pthread_cond_t changed; // stop_asked, or the thread has ended
    struct wr_valve_time time;
    struct wr_valve_reading reading;
    bool running;    // the thread was started, and not joined yet
    bool ended;      // it will not touch the valve any more
    bool stop_asked;
};

// valve_drive.c; with the lock held.
int wr_valve_drive(struct weir_valve *valve, struct weir *limiter, const struct weir_sample *sample,
                   uint64_t dt_ns);
int wr_valve_set(struct weir_valve *valve, struct weir *limiter, struct weir_error *error);

// valve_thread.c. With the lock held: whether a reading is under way for longer than an interval.
bool wr_valve_reading_late(const struct weir_valve *valve);
// weir_valve_start by another clock.
int wr_valve_start(struct weir_valve *valve, struct weir *limiter, weir_valve_read *read,
                   void *context, const struct wr_valve_time *time, struct weir_error *error);
