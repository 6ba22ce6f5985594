// rate.c - integers only: a number is digits and a power of ten until its unit is known.
#include "rate.h"

#include <inttypes.h>

#include <weir.h>

#define MAX_PLACES 19 // 10^19 still fits 64 bits

__extension__ typedef unsigned __int128 wide;

// X(name, nanoseconds), longest first; where two begin alike the whole word decides.
#define UNITS(X)                                                                                   \
    X("w", 7 * WEIR_DAY)                                                                           \
    X("d", WEIR_DAY)                                                                               \
    X("h", WEIR_HOUR)                                                                              \
    X("m", WEIR_MINUTE)                                                                            \
    X("s", WEIR_SECOND)                                                                            \
    X("ms", WEIR_MILLISECOND)                                                                      \
    X("us", WEIR_MICROSECOND)                                                                      \
    X("ns", 1)

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {
#define UNIT_ENTRY(name, ns) {name, ns},
    UNITS(UNIT_ENTRY)
#undef UNIT_ENTRY
};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))
#define UNIT_NAMES "ns us ms s m h d w"

// digits / 10^places.
struct decimal {
    uint64_t digits;
    unsigned places;
};

// What is being read, for the words.
struct input {
    const char *what;
    const char *text;
    const char *at;
    struct wr_fault *fault;
};

#define REFUSE(input, format, ...)                                                                 \
    wr_fault((input)->fault, "%s '%.100s': " format, (input)->what, (input)->text, __VA_ARGS__)

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static uint64_t power_of_ten(unsigned exponent) {
    uint64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

static bool add_digit(struct decimal *number, char digit) {
    return !__builtin_mul_overflow(number->digits, UINT64_C(10), &number->digits) &&
           !__builtin_add_overflow(number->digits, (uint64_t)(digit - '0'), &number->digits);
}

// A fraction's zeroes at its end change nothing and would only use up places.
static size_t fraction_length(const char *at) {
    size_t length = 0;
    for (size_t i = 0; is_digit(at[i]); i++)
        if (at[i] != '0') length = i + 1;
    return length;
}

static bool read_decimal(struct input *in, struct decimal *number, const char *example) {
    *number = (struct decimal){0, 0};
    if (*in->at == '-') return REFUSE(in, "is negative; write %s", example);
    if (!is_digit(in->at[0]) && !(in->at[0] == '.' && is_digit(in->at[1])))
        return REFUSE(in, "'%.100s' should be a number; write %s", in->at, example);
    for (; is_digit(*in->at); in->at++)
        if (!add_digit(number, *in->at)) return REFUSE(in, "too many digits; write %s", example);
    if (*in->at != '.') return true;
    in->at++;
    size_t length = fraction_length(in->at);
    for (size_t i = 0; i < length; i++) {
        if (number->places == MAX_PLACES || !add_digit(number, in->at[i]))
            return REFUSE(in, "too many digits; write %s", example);
        number->places++;
    }
    while (is_digit(*in->at)) in->at++;
    return true;
}

// Reads a k, M or G into the power of ten it stands for.
static bool read_suffix(struct input *in, unsigned *exponent, const char *example) {
    static const char names[] = "kMG";
    const char *found = *in->at != '\0' ? strchr(names, *in->at) : NULL;
    *exponent = found != NULL ? 3 * (unsigned)(found - names + 1) : 0;
    if (found != NULL) in->at++;
    if (*in->at != '\0' && *in->at != '/')
        return REFUSE(in, "'%.100s' is no suffix; k, M and G are, as in %s", in->at, example);
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// number * 10^exponent as a fraction in lowest terms.
static bool scale(struct input *in, struct decimal number, unsigned exponent, uint64_t *num,
                  uint64_t *den) {
    unsigned shared = exponent < number.places ? exponent : number.places;
    *den = power_of_ten(number.places - shared);
    if (__builtin_mul_overflow(number.digits, power_of_ten(exponent - shared), num) ||
        *num > INT64_MAX)
        return REFUSE(in, "the number is 2^63 or more; write a smaller one, such as %s", "1.5M");
    uint64_t divisor = common_divisor(*num, *den);
    *num /= divisor;
    *den /= divisor;
    return true;
}

static const struct unit *find_unit(const char *name) {
    for (size_t i = 0; i < UNIT_COUNT; i++)
        if (strcmp(units[i].name, name) == 0) return &units[i];
    return NULL;
}

// `number` of the unit that stands at the end of the text.
static bool read_unit(struct input *in, struct decimal number, uint64_t *ns, const char *example) {
    const struct unit *unit = find_unit(in->at);
    if (*in->at == '\0') return REFUSE(in, "its unit is missing; write %s", example);
    if (unit == NULL)
        return REFUSE(in, "'%.100s' is no unit of time; " UNIT_NAMES " are, as in %s", in->at,
                      example);
    wide product = (wide)number.digits * unit->ns;
    uint64_t divisor = power_of_ten(number.places);
    if (product % divisor != 0)
        return REFUSE(in, "finer than a nanosecond; write a time of whole nanoseconds, such as %s",
                      example);
    if (product / divisor > INT64_MAX)
        return REFUSE(in, "longer than 292 years; write a shorter time, such as %s", example);
    *ns = (uint64_t)(product / divisor);
    return true;
}

// What follows the '/' of a rate.
static bool read_period(struct input *in, uint64_t *period_ns) {
    struct decimal number = {1, 0};
    if ((is_digit(*in->at) || *in->at == '.' || *in->at == '-') &&
        !read_decimal(in, &number, "3/10s"))
        return false;
    if (!read_unit(in, number, period_ns, "300/m")) return false;
    if (*period_ns == 0) return REFUSE(in, "a period of no time; write %s", "5/s, or unlimited");
    return true;
}

bool wr_rate_parse(const char *text, struct wr_rate *rate, struct wr_fault *fault) {
    struct input in = {"rate", text, text, fault};
    struct decimal number;
    unsigned exponent;
    uint64_t den;
    *rate = (struct wr_rate){WEIR_UNLIMITED_TOKENS, 1};
    if (strcmp(text, "unlimited") == 0) return true;
    if (!read_decimal(&in, &number, "5/s, 300/m or 1.5M/s") ||
        !read_suffix(&in, &exponent, "1.5M/s") ||
        !scale(&in, number, exponent, &rate->tokens, &den))
        return false;
    rate->period_ns = WEIR_SECOND;
    if (*in.at == '\0' && rate->tokens == 0) return true;
    if (*in.at == '\0') return REFUSE(&in, "per what time? write %s/s or %s/m", text, text);
    in.at++;
    if (!read_period(&in, &rate->period_ns)) return false;
    if (__builtin_mul_overflow(rate->period_ns, den, &rate->period_ns) ||
        rate->period_ns > INT64_MAX)
        return REFUSE(&in, "%s", "less than one token in 292 years; write 0 for none at all");
    return true;
}

bool wr_count_parse(const char *text, const char *what, uint64_t *count, struct wr_fault *fault) {
    struct input in = {what, text, text, fault};
    struct decimal number;
    unsigned exponent;
    uint64_t den;
    if (!read_decimal(&in, &number, "20 or 10k") || !read_suffix(&in, &exponent, "10k") ||
        !scale(&in, number, exponent, count, &den))
        return false;
    if (*in.at != '\0') return REFUSE(&in, "should end before '%.100s'; write 20 or 10k", in.at);
    if (den != 1) return REFUSE(&in, "%s", "not a whole number; write 20 or 1.5k");
    return true;
}

bool wr_duration_parse(const char *text, const char *what, uint64_t *ns, struct wr_fault *fault) {
    struct input in = {what, text, text, fault};
    struct decimal number;
    *ns = 0;
    if (!read_decimal(&in, &number, "20ms, 1.5s or 2d")) return false;
    if (*in.at == '\0' && number.digits == 0) return true;
    return read_unit(&in, number, ns, "20ms, 1.5s or 2d");
}

// The largest unit of which `ns` is a whole number.
static const struct unit *whole_unit(uint64_t ns) {
    const struct unit *unit = units;
    while (ns % unit->ns != 0) unit++;
    return unit;
}

void wr_duration_text(uint64_t ns, char text[WR_UNIT_TEXT]) {
    const struct unit *unit = ns == 0 ? find_unit("s") : whole_unit(ns);
    snprintf(text, WR_UNIT_TEXT, "%" PRIu64 "%s", ns / unit->ns, unit->name);
}

void wr_rate_text(const struct wr_rate *rate, char text[WR_UNIT_TEXT]) {
    const struct unit *unit = whole_unit(rate->period_ns);
    if (rate->tokens == WEIR_UNLIMITED_TOKENS) snprintf(text, WR_UNIT_TEXT, "unlimited");
    else if (rate->period_ns == unit->ns)
        snprintf(text, WR_UNIT_TEXT, "%" PRIu64 "/%s", rate->tokens, unit->name);
    else
        snprintf(text, WR_UNIT_TEXT, "%" PRIu64 "/%" PRIu64 "%s", rate->tokens,
                 rate->period_ns / unit->ns, unit->name);
}

void wr_span_text(uint64_t ns, char text[WR_UNIT_TEXT]) {
    const struct unit *unit = units;
    while (ns < unit->ns && unit->ns > 1) unit++;
    uint64_t whole = ns / unit->ns, rest = ns % unit->ns;
    if (rest == 0) {
        snprintf(text, WR_UNIT_TEXT, "%" PRIu64 "%s", whole, unit->name);
    } else if (unit->ns > WEIR_SECOND) {
        snprintf(text, WR_UNIT_TEXT, "%" PRIu64 "%s %" PRIu64 "%s", whole, unit->name,
                 rest / unit[1].ns, unit[1].name);
    } else {
        snprintf(text, WR_UNIT_TEXT, "%" PRIu64 ".%03" PRIu64 "%s", whole, rest / (unit->ns / 1000),
                 unit->name);
    }
}
