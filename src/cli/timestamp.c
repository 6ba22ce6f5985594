// timestamp.c - a cursor over the text; each reader moves it, or leaves and says no.
#include "timestamp.h"

#include <stdbool.h>
#include <time.h>

#include <weir.h>

#define NOT_COMBINED "not a time; one looks like 17/May/2015:10:05:03 +0000"
#define NOT_ANY                                                                                    \
    "not a time; write 2015-05-17T10:05:03.5Z, or seconds since 1970 such as 1431857103.5"
#define NO_SUCH_DAY "there is no such day; correct the date"
#define NO_SUCH_TIME "there is no such time of day; correct it"
#define OUT_OF_RANGE "outside the years 1678 to 2261"

struct cursor {
    const char *at;
    const char *end;
};

struct parts {
    int32_t year, month, day;
    int32_t hour, minute, second;
    int32_t zone_s; // east of UTC
    int64_t fraction_ns;
};

static bool next_is(const struct cursor *c, char wanted) {
    return c->at < c->end && *c->at == wanted;
}

static bool take(struct cursor *c, char wanted) {
    if (!next_is(c, wanted)) return false;
    c->at++;
    return true;
}

static bool next_is_digit(const struct cursor *c) {
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
}

static bool take_number(struct cursor *c, int digits, int32_t *number) {
    *number = 0;
    for (int i = 0; i < digits; i++) {
        if (!next_is_digit(c)) return false;
        *number = *number * 10 + (*c->at++ - '0');
    }
    return true;
}

// The digits after the dot in units of 1 ns, of a number whose unit is `unit_ns`.
static bool take_fraction(struct cursor *c, int64_t unit_ns, int64_t *ns) {
    *ns = 0;
    if (!next_is_digit(c)) return false;
    while (next_is_digit(c)) {
        unit_ns /= 10;
        *ns += (*c->at++ - '0') * unit_ns;
    }
    return true;
}

static bool is_leap(int32_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

// In the Gregorian calendar, `month` 1 to 12. Counts from 1 March of year 0, so that the leap day
// comes last in a year.
static int64_t days_since_1970(int32_t year, int32_t month, int32_t day) {
    int64_t y = year - (month <= 2);
    int64_t month_from_march = (month + 9) % 12;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

static const char *check_parts(const struct parts *p) {
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (p->month < 1 || p->month > 12) return NO_SUCH_DAY;
    if (p->day < 1 || p->day > days[p->month - 1] + (p->month == 2 && is_leap(p->year)))
        return NO_SUCH_DAY;
    if (p->hour > 23 || p->minute > 59 || p->second > 60) return NO_SUCH_TIME;
    return NULL;
}

static const char *compose(const struct parts *p, int64_t *time_ns) {
    const char *wrong = check_parts(p);
    if (wrong != NULL) return wrong;
    int64_t s = days_since_1970(p->year, p->month, p->day) * 86400 + p->hour * 3600 +
                p->minute * 60 + p->second - p->zone_s;
    if (p->second == 60 && s % 86400 != 0) return NO_SUCH_TIME;
    if (__builtin_mul_overflow(s, (int64_t)WEIR_SECOND, time_ns) ||
        __builtin_add_overflow(*time_ns, p->fraction_ns, time_ns))
        return OUT_OF_RANGE;
    return NULL;
}

// +0200, +02:00 or +02.
static bool take_offset(struct cursor *c, int32_t *zone_s) {
    int32_t hours, minutes = 0;
    bool west = next_is(c, '-');
    if (!take(c, '+') && !take(c, '-')) return false;
    if (!take_number(c, 2, &hours)) return false;
    if ((take(c, ':') || next_is_digit(c)) && !take_number(c, 2, &minutes)) return false;
    *zone_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours <= 23 && minutes <= 59;
}

// hh:mm:ss and a fraction.
static bool take_time_of_day(struct cursor *c, struct parts *p) {
    if (!take_number(c, 2, &p->hour) || !take(c, ':') || !take_number(c, 2, &p->minute) ||
        !take(c, ':') || !take_number(c, 2, &p->second))
        return false;
    p->fraction_ns = 0;
    if (!take(c, '.') && !take(c, ',')) return true;
    return take_fraction(c, (int64_t)WEIR_SECOND, &p->fraction_ns);
}

static bool take_month_name(struct cursor *c, int32_t *month) {
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (c->end - c->at < 3) return false;
    for (*month = 1; *month <= 12; ++*month) {
        if (memcmp(c->at, names + 3 * (*month - 1), 3) != 0) continue;
        c->at += 3;
        return true;
    }
    return false;
}

const char *wr_time_combined(struct wr_text text, int64_t *time_ns) {
    struct cursor c = {text.data, text.data + text.length};
    struct parts p;
    if (!take_number(&c, 2, &p.day) || !take(&c, '/') || !take_month_name(&c, &p.month) ||
        !take(&c, '/') || !take_number(&c, 4, &p.year) || !take(&c, ':') ||
        !take_time_of_day(&c, &p) || !take(&c, ' ') || !take_offset(&c, &p.zone_s) || c.at != c.end)
        return NOT_COMBINED;
    return compose(&p, time_ns);
}

static const char *parse_iso(struct cursor c, int64_t *time_ns) {
    struct parts p;
    if (!take_number(&c, 4, &p.year) || !take(&c, '-') || !take_number(&c, 2, &p.month) ||
        !take(&c, '-') || !take_number(&c, 2, &p.day) ||
        (!take(&c, 'T') && !take(&c, 't') && !take(&c, ' ')) || !take_time_of_day(&c, &p))
        return NOT_ANY;
    p.zone_s = 0;
    take(&c, ' ');
    if (c.at < c.end && !take(&c, 'Z') && !take(&c, 'z') && !take_offset(&c, &p.zone_s))
        return NOT_ANY;
    return c.at == c.end ? compose(&p, time_ns) : NOT_ANY;
}

static int64_t unit_of_size(uint64_t number) {
    if (number < UINT64_C(100000000000)) return (int64_t)WEIR_SECOND;
    if (number < UINT64_C(100000000000000)) return (int64_t)WEIR_MILLISECOND;
    return number < UINT64_C(100000000000000000) ? (int64_t)WEIR_MICROSECOND : 1;
}

// 0: the name does not say.
static int64_t unit_of_name(const char *field) {
    static const struct {
        const char *ending;
        int64_t ns;
    } endings[] = {
        {"_s", (int64_t)WEIR_SECOND},
        {"_ms", (int64_t)WEIR_MILLISECOND},
        {"_us", (int64_t)WEIR_MICROSECOND},
        {"_ns", 1},
    };
    size_t length = strlen(field);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t ending = strlen(endings[i].ending);
        if (length > ending && strcmp(field + length - ending, endings[i].ending) == 0)
            return endings[i].ns;
    }
    return 0;
}

static const char *parse_epoch(struct cursor c, const char *field, int64_t *time_ns) {
    uint64_t number = 0;
    int64_t whole_ns, fraction_ns = 0;
    bool negative = take(&c, '-');
    if (!next_is_digit(&c)) return NOT_ANY;
    while (next_is_digit(&c))
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(*c.at++ - '0'), &number))
            return OUT_OF_RANGE;
    int64_t unit_ns = unit_of_name(field);
    if (unit_ns == 0) unit_ns = unit_of_size(number);
    if (take(&c, '.') && !take_fraction(&c, unit_ns, &fraction_ns)) return NOT_ANY;
    if (c.at != c.end) return NOT_ANY;
    if (__builtin_mul_overflow(number, unit_ns, &whole_ns) ||
        __builtin_add_overflow(whole_ns, fraction_ns, time_ns))
        return OUT_OF_RANGE;
    if (negative) *time_ns = -*time_ns;
    return NULL;
}

const char *wr_time_any(struct wr_text text, const char *field, int64_t *time_ns) {
    struct cursor c = {text.data, text.data + text.length};
    if (text.length > 4 && text.data[4] == '-') return parse_iso(c, time_ns);
    if (text.length > 2 && text.data[2] == '/') return wr_time_combined(text, time_ns);
    return parse_epoch(c, field, time_ns);
}

void wr_time_text(int64_t time_ns, char text[WR_TIME_TEXT]) {
    int64_t second_ns = (int64_t)WEIR_SECOND;
    int64_t fraction_ns = (time_ns % second_ns + second_ns) % second_ns;
    time_t second = (time_t)(time_ns / second_ns - (time_ns % second_ns < 0));
    struct tm parts;
    gmtime_r(&second, &parts);
    size_t length = strftime(text, WR_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
    if (fraction_ns == 0) snprintf(text + length, WR_TIME_TEXT - length, "Z");
    else snprintf(text + length, WR_TIME_TEXT - length, ".%09dZ", (int)fraction_ns);
}
