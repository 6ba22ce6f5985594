// What settings a valve refuses, in words: what was given, why not, what instead.
#include <inttypes.h>
#include <math.h>

#include "limit.h"
#include "valve.h"

#define LEAST_RATE_PER_S 0.001
#define MOST_RATE_PER_S 1.6e10
#define MOST_FACTOR 10.0

// Refuses with words; the result of every check that fails.
#define REFUSE(...) return wr_say(error, __VA_ARGS__), WEIR_EINVAL

static bool is_factor_below_1(double x) {
    return x > 0 && x < 1; // false for NaN, as all the comparisons here are
}

static int check_rates(const struct weir_valve_settings *s, struct weir_error *error) {
    if (!(s->min_per_s >= LEAST_RATE_PER_S))
        REFUSE("min_per_s is %g; give at least 0.001: a rate of 0 sends nothing that could show "
               "that the consumers are back", s->min_per_s);
    if (!(s->max_per_s < MOST_RATE_PER_S))
        REFUSE("max_per_s is %g; give less than 1.6e10", s->max_per_s);
    if (!(s->min_per_s <= s->max_per_s))
        REFUSE("min_per_s is %g, above max_per_s, %g", s->min_per_s, s->max_per_s);
    if (!(s->base_per_s >= s->min_per_s && s->base_per_s <= s->max_per_s))
        REFUSE("base_per_s is %g; give a rate from min_per_s, %g, to max_per_s, %g", s->base_per_s,
               s->min_per_s, s->max_per_s);
    return WEIR_GRANTED;
}

static int check_times(const struct weir_valve_settings *s, struct weir_error *error) {
    if (s->interval_ns < WEIR_MILLISECOND || s->interval_ns > WEIR_HOUR)
        REFUSE("interval_ns is %" PRIu64 "; give 1 ms (1000000) to 1 h", s->interval_ns);
    if (s->smoothing_ns > WEIR_HOUR)
        REFUSE("smoothing_ns is %" PRIu64 "; give at most 1 h, or 0 for none", s->smoothing_ns);
    if (s->burst_ns > WEIR_HOUR)
        REFUSE("burst_ns is %" PRIu64 "; give at most 1 h, or 0 for the least burst",
               s->burst_ns);
    if (s->least_burst_tokens == 0 || s->least_burst_tokens > INT64_MAX)
        REFUSE("least_burst_tokens is %" PRIu64 "; give the largest cost that is "
               "asked for, at least 1",
               s->least_burst_tokens);
    if (s->settle_ns > WEIR_HOUR)
        REFUSE("settle_ns is %" PRIu64 "; give at most 1 h", s->settle_ns);
    return WEIR_GRANTED;
}

static int check_marks(const struct weir_valve_settings *s, struct weir_error *error) {
    if (!(s->low_depth > 0 && s->high_depth < HUGE_VAL))
        REFUSE("low_depth is %g and high_depth %g; give finite depths above 0: no queue is "
               "below 0, so the rate would never grow", s->low_depth, s->high_depth);
    if (!(s->low_depth < s->high_depth))
        REFUSE("low_depth is %g, not below high_depth, %g", s->low_depth, s->high_depth);
    if (!(s->grow_factor > 1 && s->grow_factor <= MOST_FACTOR))
        REFUSE("grow_factor is %g; give a factor above 1, at most 10 (1.2)", s->grow_factor);
    if (!is_factor_below_1(s->shrink_factor))
        REFUSE("shrink_factor is %g; give a factor between 0 and 1 (0.8)", s->shrink_factor);
    return WEIR_GRANTED;
}

static int check_pid(const struct weir_valve_settings *s, struct weir_error *error) {
    const double interval_s = (double)s->interval_ns / 1e9;
    const double smoothing_s = (double)s->smoothing_ns / 1e9;
    if (!(s->set_point_depth > 0 && s->set_point_depth < HUGE_VAL))
        REFUSE("set_point_depth is %g; give a depth above 0", s->set_point_depth);
    if (!(s->kp_per_s > 0 && s->kp_per_s * interval_s <= 1))
        REFUSE("kp_per_s is %g; give above 0, and at most 1 an interval (%g): beyond that each "
               "step overshoots", s->kp_per_s, 1 / interval_s);
    if (!(s->ki_per_s2 > 0 && s->ki_per_s2 < HUGE_VAL))
        REFUSE("ki_per_s2 is %g; give above 0: without it nothing makes good what an overload took",
               s->ki_per_s2);
    if (!(s->ki_per_s2 * smoothing_s < s->kp_per_s))
        REFUSE("ki_per_s2 is %g; with this kp_per_s and smoothing_ns no queue is steady from %g on",
               s->ki_per_s2, s->kp_per_s / smoothing_s);
    if (!(s->kd >= 0 && s->kd < HUGE_VAL)) REFUSE("kd is %g; give 0 or more", s->kd);
    if (!(s->slew_per_s2 >= 0 && s->slew_per_s2 < HUGE_VAL))
        REFUSE("slew_per_s2 is %g; give 0 (no limit) or more", s->slew_per_s2);
    return WEIR_GRANTED;
}

int wr_valve_check(const struct weir_valve_settings *s, struct weir_error *error) {
    if (s->size != sizeof *s) {
        wr_say(error, "settings->size is unknown; start from WEIR_VALVE_SETTINGS_INIT");
        return WEIR_ESIZE;
    }
    if ((unsigned)s->form > WEIR_VALVE_PID)
        REFUSE("form is not one of enum weir_valve_form");
    if (s->allocator != NULL && (s->allocator->map == NULL || s->allocator->unmap == NULL))
        REFUSE("allocator needs both map and unmap");
    int result = check_rates(s, error);
    if (result == WEIR_GRANTED) result = check_times(s, error);
    if (result == WEIR_GRANTED && !is_factor_below_1(s->overload_factor))
        REFUSE("overload_factor is %g; give a factor between 0 and 1 (0.9)", s->overload_factor);
    if (result != WEIR_GRANTED) return result;
    return s->form == WEIR_VALVE_MARKS ? check_marks(s, error) : check_pid(s, error);
}
