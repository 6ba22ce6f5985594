// From a limit in words to integers: the scale, the rate, the bounds, and the words of refusal.
#include "limit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NS_PER_YEAR UINT64_C(31556952000000000)

void wr_say(struct weir_error *error, const char *format, ...) {
    if (error == NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
}

bool wr_is_unlimited(const struct weir_limit *limit) {
    return limit->tokens == WEIR_UNLIMITED_TOKENS;
}

// How many of 1 to 16 divide n: the weights that are exact with n units a token.
static unsigned exact_weights(uint64_t n) {
    unsigned count = 0;
    for (uint64_t weight = 1; weight <= 16; weight++) count += n % weight == 0;
    return count;
}

// The number in [low, high] that the most of 1 to 16 divide, the smallest on a tie. The best has
// some greatest common divisor with lcm(1..16) = 720720; the smallest multiple of that divisor in
// the range does as well, so only the 240 divisors are tried.
static uint64_t most_divisible(uint64_t low, uint64_t high) {
    uint64_t best = low;
    unsigned best_count = exact_weights(low);
    for (uint64_t divisor = 1; divisor <= 720720; divisor++) {
        if (720720 % divisor != 0) continue;
        uint64_t multiple = (low + divisor - 1) / divisor * divisor;
        if (multiple > high) continue;
        unsigned count = exact_weights(multiple);
        if (count > best_count || (count == best_count && multiple < best)) {
            best = multiple;
            best_count = count;
        }
    }
    return best;
}

// S for a rate: 2 to 4 units a nanosecond. 0 where no 64-bit number does (too slow a rate).
static uint64_t choose_unit_tokens(uint64_t tokens, uint64_t period_ns) {
    const wr_u128 low = wr_ceil_div((wr_u128)2 * period_ns, tokens);
    const wr_u128 high = wr_ceil_div((wr_u128)4 * period_ns, tokens) - 1;
    if (low > WR_UNITS_MAX) return 0;
    if (high < 1 || low <= 1) return 1;
    if (high < 1441440) return most_divisible((uint64_t)low, (uint64_t)high);
    uint64_t unit = 1441440; // 1 to 16 and their doubles divide it
    while (unit < low) unit *= 2;
    return unit <= high ? unit : (uint64_t)low;
}

// M = ceil(tokens * S * 2^shift / period), below 2^64: the caller has checked the rate.
static uint64_t rate_per_ns(uint64_t tokens, uint64_t period_ns, uint64_t unit_tokens,
                            uint32_t shift) {
    const wr_u128 units = (wr_u128)tokens * unit_tokens;
    const wr_u128 whole = units / period_ns;
    const uint64_t rest = (uint64_t)(units % period_ns);
    return (uint64_t)((whole << shift) + wr_ceil_div((wr_u128)rest << shift, period_ns));
}

static int check_rate(uint64_t tokens, uint64_t period_ns, const char *what,
                      struct weir_error *error) {
    if (period_ns == 0 || period_ns > INT64_MAX) {
        wr_say(error, "%s: period_ns is %" PRIu64 "; give 1 to 2^63-1 nanoseconds", what,
               period_ns);
        return WEIR_EINVAL;
    }
    if ((wr_u128)tokens >= (wr_u128)16 * period_ns) {
        wr_say(error,
               "%s: %" PRIu64 " tokens in %" PRIu64 " ns is 1.6*10^10 a second or more; count in "
               "a coarser token (KiB instead of bytes)",
               what, tokens, period_ns);
        return WEIR_ELIMIT;
    }
    return WEIR_GRANTED;
}

// One of debt and ahead: an explicit value must fit what is left of the bound, a default is cut.
static int claim_units(uint64_t *units, uint64_t tokens, wr_u128 standard, uint64_t unit_tokens,
                       wr_u128 *left, const char *what, struct weir_error *error) {
    wr_u128 want = tokens != 0 ? (wr_u128)tokens * unit_tokens : standard;
    if (want > *left) {
        if (tokens != 0) {
            wr_say(error, "%s of %" PRIu64 " tokens is too large to keep exactly at this rate; "
                   "the most is %" PRIu64, what, tokens, (uint64_t)(*left / unit_tokens));
            return WEIR_ELIMIT;
        }
        want = *left;
    }
    *units = (uint64_t)want;
    *left -= want;
    return WEIR_GRANTED;
}

static int refuse_burst(uint64_t burst, const struct wr_scale *scale, uint64_t most,
                        struct weir_error *error) {
    const wr_u128 units = (wr_u128)burst * scale->unit_tokens;
    const wr_u128 fill_ns = (units / scale->max_per_ns << scale->shift) +
                            ((units % scale->max_per_ns << scale->shift) / scale->max_per_ns);
    const uint64_t years = (uint64_t)(fill_ns / NS_PER_YEAR);
    wr_say(error,
           "a burst of %" PRIu64 " tokens is too large to keep exactly: at max_rate it takes "
           "%" PRIu64 " years to fill; the most at this max_rate is %" PRIu64 " (lower the burst, "
           "or raise max_rate)",
           burst, years, most / scale->unit_tokens);
    return WEIR_ELIMIT;
}

// The bounds: (burst + debt + ahead + an hour) * S <= 2^62.
static int bound_units(struct wr_scale *scale, const struct weir_options *options, uint64_t burst,
                       struct weir_error *error) {
    const uint64_t hour = (uint64_t)(((wr_u128)scale->max_per_ns * WEIR_HOUR >> scale->shift) + 1);
    const wr_u128 burst_units = (wr_u128)burst * scale->unit_tokens;
    scale->hour_units = hour;
    if (burst_units > WR_UNITS_MAX - hour)
        return refuse_burst(burst, scale, WR_UNITS_MAX - hour, error);
    wr_u128 left = WR_UNITS_MAX - hour - burst_units;
    int result = claim_units(&scale->debt_units, options->max_debt_tokens, burst_units,
                             scale->unit_tokens, &left, "max_debt_tokens", error);
    if (result != WEIR_GRANTED) return result;
    const wr_u128 ahead = burst_units > hour ? burst_units : hour;
    result = claim_units(&scale->ahead_units, options->max_ahead_tokens, ahead,
                         scale->unit_tokens, &left, "max_ahead_tokens", error);
    if (result != WEIR_GRANTED) return result;
    scale->horizon_units = scale->debt_units + scale->ahead_units + hour;
    scale->burst_max = WR_UNITS_MAX - scale->horizon_units;
    return WEIR_GRANTED;
}

int wr_scale_init(struct wr_scale *scale, const struct weir_options *options,
                  struct weir_error *error) {
    uint64_t tokens = options->max_rate_tokens;
    uint64_t period_ns = options->max_rate_period_ns;
    const bool unlimited = wr_is_unlimited(&options->limit);
    if (tokens == 0) {
        if (unlimited || options->limit.tokens == 0) {
            wr_say(error, "max_rate is required when the first limit is %s: give the fastest rate "
                   "that this limiter will be set to", unlimited ? "unlimited" : "of rate 0");
            return WEIR_ELIMIT;
        }
        tokens = options->limit.tokens;
        period_ns = options->limit.period_ns;
    }
    int result = check_rate(tokens, period_ns, "max_rate", error);
    if (result != WEIR_GRANTED) return result;
    scale->unit_tokens = choose_unit_tokens(tokens, period_ns);
    if (scale->unit_tokens == 0) {
        wr_say(error, "max_rate of %" PRIu64 " tokens in %" PRIu64 " ns is too slow to keep "
               "exactly: a token may take at most 73 years", tokens, period_ns);
        return WEIR_ELIMIT;
    }
    scale->cost_max = WR_UNITS_MAX / scale->unit_tokens;
    scale->shift = (wr_u128)tokens * scale->unit_tokens < (wr_u128)4 * period_ns ? 62 : 60;
    scale->max_per_ns = rate_per_ns(tokens, period_ns, scale->unit_tokens, scale->shift);
    return bound_units(scale, options, unlimited ? 0 : options->limit.burst, error);
}

int wr_profile_init(struct wr_profile *profile, const struct wr_scale *scale,
                    const struct weir_limit *limit, struct weir_error *error) {
    *profile = (struct wr_profile){0, WR_UNITS_MAX, true}; // V stands still: no debt is forgiven
    if (wr_is_unlimited(limit)) return WEIR_GRANTED;
    profile->unlimited = false;
    int result = check_rate(limit->tokens, limit->period_ns, "limit", error);
    if (result != WEIR_GRANTED) return result;
    // Before dividing: a rate far above max_rate would not fit M.
    const wr_u128 units = (wr_u128)limit->tokens * scale->unit_tokens;
    const uint64_t top = scale->shift == 62 ? 4 : 16;
    if (units / limit->period_ns < top)
        profile->per_ns =
            rate_per_ns(limit->tokens, limit->period_ns, scale->unit_tokens, scale->shift);
    if (units / limit->period_ns >= top || profile->per_ns > scale->max_per_ns) {
        wr_say(error, "%" PRIu64 " tokens in %" PRIu64 " ns is faster than the limiter's max_rate; "
               "create it with a larger max_rate", limit->tokens, limit->period_ns);
        return WEIR_ELIMIT;
    }
    const wr_u128 burst_units = (wr_u128)limit->burst * scale->unit_tokens;
    if (burst_units > scale->burst_max)
        return refuse_burst(limit->burst, scale, scale->burst_max, error);
    profile->burst_units = (uint64_t)burst_units;
    return WEIR_GRANTED;
}

int wr_cost_units(const struct wr_scale *scale, uint64_t cost, struct weir_weight weight,
                  uint64_t *units) {
    wr_u128 scaled = (wr_u128)cost * scale->unit_tokens;
    if (weight.num != weight.den) {
        if (weight.num == 0 || weight.den == 0) return WEIR_EINVAL;
        if (scaled >= (wr_u128)1 << 95) { // over any burst whatever the weight
            *units = WR_UNITS_MAX + 1;
            return WEIR_GRANTED;
        }
        scaled *= weight.den;
        const uint64_t rest = (uint64_t)(scaled % weight.num);
        scaled /= weight.num;
        // exact, or rounded down by at most one part in 10^6
        if ((wr_u128)rest * 1000000 > scaled * weight.num + rest) return WEIR_EWEIGHT;
    }
    *units = scaled > WR_UNITS_MAX ? WR_UNITS_MAX + 1 : (uint64_t)scaled;
    return WEIR_GRANTED;
}

// units * num / (S * den): the numerator, and how many units a token is.
static wr_u128 weigh(uint64_t units, struct weir_weight weight) {
    return weight.num == weight.den ? units : (wr_u128)units * weight.num;
}

static wr_u128 units_per_token(const struct wr_scale *scale, struct weir_weight weight) {
    return weight.num == weight.den ? scale->unit_tokens : (wr_u128)scale->unit_tokens * weight.den;
}

static uint64_t saturate(wr_u128 tokens) {
    return tokens > UINT64_MAX ? UINT64_MAX : (uint64_t)tokens;
}

uint64_t wr_units_to_tokens(const struct wr_scale *scale, uint64_t units,
                            struct weir_weight weight) {
    if (weight.num == weight.den) return units / scale->unit_tokens;
    return saturate(weigh(units, weight) / units_per_token(scale, weight));
}

uint64_t wr_units_to_tokens_up(const struct wr_scale *scale, uint64_t units,
                               struct weir_weight weight) {
    const wr_u128 per = units_per_token(scale, weight);
    return saturate((weigh(units, weight) + per - 1) / per);
}
