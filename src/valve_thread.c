// The valve's thread: each interval it asks the user's callback, steps, and sets the limit.
//
// The callback runs outside the lock, so it can hold up only the thread: reading the numbers goes
// on, and stopping gives up after a while and says so. What it returns too late is thrown away,
// since nobody knows of when it tells.
#include <errno.h>
#include <time.h>

#include "limit.h"
#include "valve.h"

#define LEAST_PATIENCE_NS (100 * WEIR_MILLISECOND)

static uint64_t machine_now_ns(void *context) {
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WEIR_SECOND + (uint64_t)now.tv_nsec;
}

static void machine_wait(void *context, pthread_cond_t *wake, pthread_mutex_t *lock,
                         uint64_t until_ns) {
    (void)context;
    const struct timespec until = {(time_t)(until_ns / WEIR_SECOND),
                                   (long)(until_ns % WEIR_SECOND)};
    pthread_cond_timedwait(wake, lock, &until); // early or late: the callers look again
}

static const struct wr_valve_time machine_time = {machine_now_ns, machine_wait, NULL};

static uint64_t now_ns(const struct weir_valve *valve) {
    return valve->time.now_ns(valve->time.context);
}

bool wr_valve_reading_late(const struct weir_valve *valve) {
    return valve->reading.under_way &&
           now_ns(valve) - valve->reading.since_ns > valve->state.settings.interval_ns;
}

// Sleeps until the time has come, or stop was asked for.
static void sleep_until(struct weir_valve *valve, uint64_t until_ns) {
    while (!valve->stop_asked && now_ns(valve) < until_ns)
        valve->time.wait(valve->time.context, &valve->changed, &valve->lock, until_ns);
}

// Asks the callback, without the lock. True if there is a sample to be used.
static bool read_sample(struct weir_valve *valve, struct weir_sample *sample) {
    struct wr_valve_reading *reading = &valve->reading;
    reading->since_ns = now_ns(valve);
    reading->under_way = true;
    pthread_mutex_unlock(&valve->lock);
    const int result = reading->read(reading->context, sample);
    pthread_mutex_lock(&valve->lock);
    const bool late = wr_valve_reading_late(valve);
    reading->under_way = false;
    if (late) valve->state.stats.late++;
    else if (result != 0) valve->state.stats.failed++;
    return !late && result == 0 && !valve->stop_asked;
}

static void *run(void *argument) {
    struct weir_valve *valve = argument;
    pthread_mutex_lock(&valve->lock);
    uint64_t last_ns = now_ns(valve);
    uint64_t next_ns = last_ns;
    while (!valve->stop_asked) {
        next_ns += valve->state.settings.interval_ns;
        sleep_until(valve, next_ns);
        if (valve->stop_asked) break;
        struct weir_sample sample = WEIR_SAMPLE_INIT;
        if (read_sample(valve, &sample)) {
            const uint64_t read_ns = valve->reading.since_ns;
            wr_valve_drive(valve, valve->reading.limiter, &sample, read_ns - last_ns);
            last_ns = read_ns;
        }
        const uint64_t after_ns = now_ns(valve);
        if (next_ns < after_ns) next_ns = after_ns; // late: no step is made up for
    }
    valve->ended = true;
    pthread_cond_broadcast(&valve->changed);
    pthread_mutex_unlock(&valve->lock);
    return NULL;
}

static int launch(struct weir_valve *valve, struct weir_error *error) {
    pthread_condattr_t by_monotonic;
    pthread_condattr_init(&by_monotonic);
    pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&valve->changed, &by_monotonic);
    pthread_condattr_destroy(&by_monotonic);
    valve->stop_asked = valve->ended = false;
    if (pthread_create(&valve->thread, NULL, run, valve) == 0) {
        valve->running = true;
        return WEIR_GRANTED;
    }
    pthread_cond_destroy(&valve->changed);
    wr_say(error, "the system gave no thread for the valve");
    return WEIR_ESYS;
}

int wr_valve_start(struct weir_valve *valve, struct weir *limiter, weir_valve_read *read,
                   void *context, const struct wr_valve_time *time, struct weir_error *error) {
    if (read == NULL) {
        wr_say(error, "read must not be NULL");
        return WEIR_EINVAL;
    }
    int result = weir_valve_fits(valve, limiter, error);
    if (result != WEIR_GRANTED) return result;
    pthread_mutex_lock(&valve->lock);
    if (valve->running) {
        wr_say(error, "the valve has a thread already; stop it first");
        result = WEIR_EINVAL;
    } else {
        valve->time = *time;
        valve->reading = (struct wr_valve_reading){limiter, read, context, 0, false};
        valve->set = (struct weir_limit){0, 0, 0};
        valve->tokens_known = false;
        result = wr_valve_set(valve, limiter, error);
        if (result == WEIR_GRANTED) result = launch(valve, error);
    }
    pthread_mutex_unlock(&valve->lock);
    return result;
}

int weir_valve_start(struct weir_valve *valve, struct weir *limiter, weir_valve_read *read,
                     void *context, struct weir_error *error) {
    return wr_valve_start(valve, limiter, read, context, &machine_time, error);
}

// Waits, with the lock held, until the thread has ended; not for longer than a reading may take.
static bool wait_for_end(struct weir_valve *valve) {
    const uint64_t interval_ns = valve->state.settings.interval_ns;
    const uint64_t until_ns =
        now_ns(valve) + (interval_ns > LEAST_PATIENCE_NS ? interval_ns : LEAST_PATIENCE_NS);
    while (!valve->ended && now_ns(valve) < until_ns)
        valve->time.wait(valve->time.context, &valve->changed, &valve->lock, until_ns);
    return valve->ended;
}

int weir_valve_stop(struct weir_valve *valve) {
    int result = WEIR_GRANTED;
    pthread_mutex_lock(&valve->lock);
    if (valve->running) {
        valve->stop_asked = true;
        pthread_cond_broadcast(&valve->changed);
        if (wait_for_end(valve)) {
            // It has left the lock or is about to, and touches nothing after that.
            pthread_mutex_unlock(&valve->lock);
            pthread_join(valve->thread, NULL);
            pthread_mutex_lock(&valve->lock);
            pthread_cond_destroy(&valve->changed);
            valve->running = false;
        } else {
            result = WEIR_EBUSY;
        }
    }
    pthread_mutex_unlock(&valve->lock);
    return result;
}
