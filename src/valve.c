// The valve's step: from a smoothed depth and a count of overloads to the next rate. Pure
// arithmetic; no clock, no thread, no queue. The constants below are not settings, because nothing
// that a user knows about his service would tell him another value; they were chosen on the
// simulations of tests/test_valve_sim.c and hold there over a range of latencies, bursts and
// numbers of workers.
#include "valve.h"

#include <math.h>

#define MAX_DEPTH 1e15
#define MAX_STEP_INTERVALS 2.0 // a step after a long silence moves the rate by no more of them
#define DEEPEST_CUT 0.5        // what one overload leaves at least: a sample is short, and noisy
#define NEAR_CEILING 0.95      // up to here growth is fast after an overload
#define FIRST_PROBE 0.01       // then it begins with 1 % an interval
#define PROBE_GROWTH 1.5       // and goes on with this many times as much in each next
#define JITTERS 2.0            // how many mean jitters beyond a mark are noise,
#define JITTER_BOUND 0.3       //   and what part of the mark at most
#define JITTER_SMOOTHINGS 5    // time constant of the jitter, in those of the depth
#define USE_HEADROOM 2.0       // the rate grows to at most this much of its use
#define LIMIT_PERIOD_S 1000    // limits are whole tokens in 1000 s: thousandths of a token a second

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

void wr_valve_init(struct wr_valve *valve, const struct weir_valve_settings *settings) {
    *valve = (struct wr_valve){
        .settings = *settings,
        .stats = {.rate_per_s = settings->base_per_s},
        .integral_per_s = settings->base_per_s,
    };
}

void wr_valve_limit(const struct weir_valve_settings *settings, double rate_per_s,
                    struct weir_limit *limit) {
    const double burst = floor(rate_per_s * seconds(settings->burst_ns));
    const double least = (double)settings->least_burst_tokens;
    *limit = (struct weir_limit){
        .tokens = (uint64_t)(rate_per_s * LIMIT_PERIOD_S),
        .period_ns = LIMIT_PERIOD_S * WEIR_SECOND,
        .burst = burst < least ? settings->least_burst_tokens : (uint64_t)burst,
    };
}

// The part of a difference that a moving mean with time constant `smoothing_ns` takes up in dt.
static double share(uint64_t smoothing_ns, uint64_t dt_ns) {
    return smoothing_ns == 0 ? 1 : -expm1(-(double)dt_ns / (double)smoothing_ns);
}

static void smooth(struct wr_valve *valve, double depth, uint64_t dt_ns) {
    struct weir_valve_stats *stats = &valve->stats;
    if (stats->steps == 0) {
        stats->depth = depth;
    } else {
        const double part = share(valve->settings.smoothing_ns, dt_ns);
        // The jitter slower, so that it is steady itself; at first it is the plain mean.
        const double slow = fmax(share(JITTER_SMOOTHINGS * valve->settings.smoothing_ns, dt_ns),
                                 1 / (double)stats->steps);
        const double distance = depth - stats->depth;
        stats->depth += part * distance;
        stats->jitter_depth += slow * (fabs(distance) - stats->jitter_depth);
    }
    valve->last_depth = depth;
}

// What the limiter let pass, a second: at once as much as in the last interval, less only slowly.
static void note_use(struct wr_valve *valve, double granted_per_s, double part) {
    const double slower = valve->used_per_s + part * (granted_per_s - valve->used_per_s);
    valve->used_per_s = fmax(granted_per_s, slower);
}

// What the consumers take from the queue: what went in, less how much deeper it became. Both are
// smoothed alike, so that neither lags behind the other; the difference once more.
static void note_drain(struct wr_valve *valve, double granted_per_s, double slope_per_s,
                       double part) {
    valve->fed_per_s += part * (granted_per_s - valve->fed_per_s);
    const double drained = fmax(0, valve->fed_per_s - slope_per_s);
    valve->drained_per_s += part * (drained - valve->drained_per_s);
}

static void note_flow(struct wr_valve *valve, uint64_t granted_tokens, double before_depth,
                      uint64_t dt_ns) {
    if (dt_ns == 0) return;
    valve->use_known = granted_tokens != WEIR_UNKNOWN;
    if (!valve->use_known) return;
    const double part = share(valve->settings.smoothing_ns, dt_ns);
    const double granted_per_s = (double)granted_tokens / seconds(dt_ns);
    const double slope_per_s =
        valve->stats.steps == 0 ? 0 : (valve->stats.depth - before_depth) / seconds(dt_ns);
    note_use(valve, granted_per_s, part);
    note_drain(valve, granted_per_s, slope_per_s, part);
}

// The most by use, where that is known.
static double used_per_s(const struct wr_valve *valve) {
    return valve->use_known ? valve->used_per_s : HUGE_VAL;
}

static void set_rate(struct wr_valve *valve, double rate_per_s) {
    valve->stats.rate_per_s =
        clamp(rate_per_s, valve->settings.min_per_s, valve->settings.max_per_s);
}

// Where the capacity seems to lie: growth near it begins with small steps.
static void set_ceiling(struct wr_valve *valve, double per_s) {
    valve->ceiling_per_s = per_s;
    valve->probe_factor = FIRST_PROBE;
}

// Of what was sent at the rate (or at the use, where that is less), the part that was not refused
// is what the consumers can take. Go below it, and remember it.
static void cut(struct wr_valve *valve, const struct weir_sample *sample, uint64_t dt_ns) {
    struct weir_valve_stats *stats = &valve->stats;
    const double sent_per_s = fmin(stats->rate_per_s, used_per_s(valve));
    const double sent = sent_per_s * seconds(dt_ns);
    const double refused = (double)sample->overloads;
    const double part = sent > 0 ? clamp(1 - refused / sent, DEEPEST_CUT, 1) : DEEPEST_CUT;
    set_ceiling(valve, fmax(sent_per_s * part, DEEPEST_CUT * stats->rate_per_s));
    set_rate(valve, valve->ceiling_per_s * valve->settings.overload_factor);
    valve->settling_ns = valve->settings.settle_ns;
    valve->integral_per_s = stats->rate_per_s;
    stats->overloaded++;
}

// How much jitter around `mark` is taken for noise.
static double noise(const struct wr_valve *valve, double mark) {
    return fmin(JITTERS * valve->stats.jitter_depth, JITTER_BOUND * mark);
}

static bool is_high(const struct wr_valve *valve) {
    const struct weir_valve_stats *stats = &valve->stats;
    const double mark = valve->settings.high_depth;
    const bool falling = valve->last_depth < stats->depth - stats->jitter_depth / 2;
    return stats->depth > mark + noise(valve, mark) && !falling;
}

static bool is_low(const struct wr_valve *valve) {
    const struct weir_valve_stats *stats = &valve->stats;
    const double mark = valve->settings.low_depth;
    const bool rising = valve->last_depth > stats->depth + stats->jitter_depth / 2;
    return stats->depth < mark - noise(valve, mark) && !rising;
}

// The rate after growing for so many intervals: fast up to the ceiling, if one is known, then
// feeling the way.
static double grown(struct wr_valve *valve, double intervals) {
    const double rate = valve->stats.rate_per_s;
    const double fast = rate * pow(valve->settings.grow_factor, intervals);
    const double near = valve->ceiling_per_s * NEAR_CEILING;
    if (valve->ceiling_per_s == 0 || fast <= near) return fast;
    if (rate < near) return near;
    const double probed = rate * pow(1 + valve->probe_factor, intervals);
    valve->probe_factor *= pow(PROBE_GROWTH, intervals);
    if (1 + valve->probe_factor >= valve->settings.grow_factor) valve->ceiling_per_s = 0;
    return probed;
}

static double most_by_use(const struct wr_valve *valve) {
    return fmax(valve->settings.base_per_s, USE_HEADROOM * used_per_s(valve));
}

// Shrinks by the factor, but not below what already drains the queue: the factor of what the
// consumers take. That is also where the capacity seems to lie.
static void shrink(struct wr_valve *valve, double intervals) {
    const double factor = valve->settings.shrink_factor;
    const double rate = valve->stats.rate_per_s;
    const double enough = valve->use_known ? fmin(rate, valve->drained_per_s * factor) : 0;
    set_rate(valve, fmax(rate * pow(factor, intervals), enough));
    if (valve->use_known) set_ceiling(valve, valve->drained_per_s);
}

static void step_marks(struct wr_valve *valve, double intervals) {
    struct weir_valve_stats *stats = &valve->stats;
    const double rate = stats->rate_per_s;
    if (is_high(valve)) {
        shrink(valve, intervals);
    } else if (is_low(valve) && rate < most_by_use(valve)) {
        set_rate(valve, fmin(grown(valve, intervals), most_by_use(valve)));
    }
}

static void step_pid(struct wr_valve *valve, double before_depth, double dt_s) {
    const struct weir_valve_settings *s = &valve->settings;
    const struct weir_valve_stats *stats = &valve->stats;
    if (dt_s <= 0) return;
    const double error = s->set_point_depth - stats->depth;
    const double slope = stats->steps == 0 ? 0 : (stats->depth - before_depth) / dt_s;
    const double wanted = valve->integral_per_s + s->kp_per_s * error - s->kd * slope;
    double low = s->min_per_s;
    double high = fmin(s->max_per_s, fmax(stats->rate_per_s, most_by_use(valve)));
    if (s->slew_per_s2 > 0) {
        low = fmax(low, stats->rate_per_s - s->slew_per_s2 * dt_s);
        high = fmin(high, stats->rate_per_s + s->slew_per_s2 * dt_s);
    }
    high = fmax(high, low);
    if (!(wanted > high && error > 0) && !(wanted < low && error < 0))
        valve->integral_per_s = clamp(valve->integral_per_s + s->ki_per_s2 * error * dt_s,
                                      s->min_per_s, s->max_per_s);
    set_rate(valve, clamp(wanted, low, high));
}

static bool makes_sense(const struct weir_sample *sample) {
    return sample->depth >= 0 && sample->depth <= MAX_DEPTH; // false for NaN
}

static void count_change(struct weir_valve_stats *stats, double before_per_s) {
    if (stats->rate_per_s > before_per_s) stats->raised++;
    if (stats->rate_per_s < before_per_s) stats->lowered++;
}

int wr_valve_step(struct wr_valve *valve, const struct weir_sample *sample, uint64_t dt_ns) {
    struct weir_valve_stats *stats = &valve->stats;
    if (sample->size != sizeof *sample || !makes_sense(sample)) {
        stats->nonsense++;
        return sample->size != sizeof *sample ? WEIR_ESIZE : WEIR_EINVAL;
    }
    const double before_depth = stats->depth;
    const double before_per_s = stats->rate_per_s;
    const double intervals =
        fmin((double)dt_ns / (double)valve->settings.interval_ns, MAX_STEP_INTERVALS);
    smooth(valve, sample->depth, dt_ns);
    note_flow(valve, sample->granted_tokens, before_depth, dt_ns);
    stats->overloads += sample->overloads;
    valve->settling_ns = valve->settling_ns > dt_ns ? valve->settling_ns - dt_ns : 0;
    if (sample->overloads != 0 && valve->settling_ns == 0) {
        cut(valve, sample, dt_ns);
    } else if (valve->settling_ns == 0) {
        if (valve->settings.form == WEIR_VALVE_MARKS) step_marks(valve, intervals);
        else step_pid(valve, before_depth, intervals * seconds(valve->settings.interval_ns));
        count_change(stats, before_per_s);
    }
    stats->steps++;
    return WEIR_GRANTED;
}
