// pool_spec.c - name=value parts between commas; each fault quotes its part.
#include "pool_spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_BYTES 2048
#define LATENCY_MAX_NS WEIR_MINUTE
#define CALLS_MAX UINT64_C(1000000000000) // a period; so that the provider's products fit 128 bits

// One part, cut up in place: "capacity=200/s@10s" is capacity, 200/s and 10s.
struct part {
    const char *name;
    char *value; // NULL: no '='
    char *at;    // NULL: no '@'
    char whole[128];
};

// Why a part is refused, from the words about its value.
static bool refuse(const struct part *part, const char *why, const char *right,
                   struct wr_fault *fault) {
    char words[400];
    snprintf(words, sizeof words, "%.380s", why); // `why` may be fault->text
    return wr_fault(fault, "'%.80s': %s; a right one: %s", part->whole, words, right);
}

static void cut(char *text, struct part *part) {
    snprintf(part->whole, sizeof part->whole, "%s", text);
    part->name = text;
    part->value = strchr(text, '=');
    if (part->value != NULL) *part->value++ = '\0';
    part->at = part->value != NULL ? strchr(part->value, '@') : NULL;
    if (part->at != NULL) *part->at++ = '\0';
}

static bool parse_at(const struct part *part, const char *right, uint64_t *at_ns,
                     struct wr_fault *fault) {
    *at_ns = 0;
    return part->at == NULL || wr_duration_parse(part->at, "time after @", at_ns, fault) ||
           refuse(part, fault->text, right, fault);
}

static bool add_capacity(struct wr_downstream *d, const struct part *part,
                         struct wr_fault *fault) {
    const char *right = part->at != NULL ? "capacity=200/s@10s" : "capacity=500/s";
    struct wr_pool_phase phase;
    if (!wr_rate_parse(part->value, &phase.capacity, fault))
        return refuse(part, fault->text, right, fault);
    if (phase.capacity.tokens > CALLS_MAX && phase.capacity.tokens != WEIR_UNLIMITED_TOKENS)
        return refuse(part, "above 10^12 calls; there is also capacity=unlimited", right, fault);
    if (!parse_at(part, right, &phase.from_ns, fault)) return false;
    if (d->phase_count == 0 && phase.from_ns != 0)
        return refuse(part, "the capacity at the start is to come first, without @",
                      "capacity=500/s,capacity=200/s@10s", fault);
    if (d->phase_count > 0 && phase.from_ns <= d->phases[d->phase_count - 1].from_ns)
        return refuse(part, "it is not later than the capacity before it",
                      "capacity=500/s,capacity=200/s@10s,capacity=500/s@20s", fault);
    if (d->phase_count == WR_POOL_PHASES)
        return refuse(part, "more than 64 capacities", "fewer", fault);
    d->phases[d->phase_count++] = phase;
    return true;
}

static bool add_outage(struct wr_downstream *d, const struct part *part, struct wr_fault *fault) {
    const char *right = "outage=5s@20s";
    struct wr_pool_outage outage;
    if (part->at == NULL) return refuse(part, "since when? it lacks its @", right, fault);
    if (!wr_duration_parse(part->value, "length", &outage.length_ns, fault))
        return refuse(part, fault->text, right, fault);
    if (!parse_at(part, right, &outage.from_ns, fault)) return false;
    if (outage.length_ns == 0) return refuse(part, "it has no length", right, fault);
    if (d->outage_count == WR_POOL_PHASES)
        return refuse(part, "more than 64 outages", "fewer", fault);
    d->outages[d->outage_count++] = outage;
    return true;
}

// "5" in "20ms±5" has the unit of what stands before it: "5ms".
static bool parse_spread(const struct part *part, const char *mean, char *spread,
                         uint64_t *spread_ns, struct wr_fault *fault) {
    char text[64];
    const char *unit = mean + strspn(mean, "0123456789.");
    const bool bare = strspn(spread, "0123456789.") == strlen(spread);
    snprintf(text, sizeof text, "%.40s%.8s", spread, bare ? unit : "");
    return wr_duration_parse(text, "spread", spread_ns, fault) ||
           refuse(part, fault->text, "latency=20ms±5", fault);
}

static char *find_spread(char *value, size_t *mark_bytes) {
    static const char *const marks[] = {"±", "+-", "+/-"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        char *found = strstr(value, marks[i]);
        *mark_bytes = strlen(marks[i]);
        if (found != NULL) return found;
    }
    return NULL;
}

static bool set_latency(struct wr_downstream *d, const struct part *part, struct wr_fault *fault) {
    const char *right = "latency=20ms±5";
    size_t mark_bytes;
    char *spread = find_spread(part->value, &mark_bytes);
    d->spread_ns = 0;
    if (spread != NULL) *spread = '\0';
    if (!wr_duration_parse(part->value, "latency", &d->latency_ns, fault))
        return refuse(part, fault->text, right, fault);
    if (spread != NULL &&
        !parse_spread(part, part->value, spread + mark_bytes, &d->spread_ns, fault))
        return false;
    if (d->spread_ns > d->latency_ns)
        return refuse(part, "the spread is more than the latency", right, fault);
    return d->latency_ns <= LATENCY_MAX_NS ||
           refuse(part, "the latency is above a minute", right, fault);
}

static bool set_timeout(struct wr_downstream *d, const struct part *part, struct wr_fault *fault) {
    if (!wr_duration_parse(part->value, "timeout", &d->timeout_ns, fault))
        return refuse(part, fault->text, "timeout=2s", fault);
    return (d->timeout_ns > 0 && d->timeout_ns <= LATENCY_MAX_NS) ||
           refuse(part, "a timeout is above 0 and at most a minute", "timeout=2s", fault);
}

static bool take_part(struct wr_downstream *d, const struct part *part, struct wr_fault *fault) {
    static const struct {
        const char *name;
        bool timed;
        bool (*take)(struct wr_downstream *, const struct part *, struct wr_fault *);
        const char *right;
    } kinds[] = {
        {"capacity", true, add_capacity, "capacity=500/s"},
        {"outage", true, add_outage, "outage=5s@20s"},
        {"latency", false, set_latency, "latency=20ms±5"},
        {"timeout", false, set_timeout, "timeout=2s"},
    };
    if (strcmp(part->name, "error429") == 0) {
        d->refuses = true;
        return part->value == NULL || refuse(part, "it takes no value", "error429", fault);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, part->name) != 0) continue;
        if (part->value == NULL || *part->value == '\0')
            return refuse(part, "it lacks its value", kinds[i].right, fault);
        if (part->at != NULL && !kinds[i].timed)
            return refuse(part, "it holds for the whole run and takes no @", kinds[i].right,
                          fault);
        return kinds[i].take(d, part, fault);
    }
    return refuse(part, "there is no such part (capacity, latency, error429, outage, timeout)",
                  "capacity=500/s,latency=20ms±5,error429", fault);
}

// Calls `take` for each part of `text`, until it returns false.
static bool each_part(const char *text, const char *option, void *context,
                      bool (*take)(void *, const struct part *, struct wr_fault *),
                      struct wr_fault *fault) {
    char copy[SPEC_BYTES];
    char why[sizeof fault->text];
    struct part part;
    if (strlen(text) >= sizeof copy)
        return wr_fault(fault, "%s: it is longer than %d bytes", option, SPEC_BYTES - 1);
    strcpy(copy, text);
    for (char *at = copy, *next; at != NULL; at = next) {
        next = strchr(at, ',');
        if (next != NULL) *next++ = '\0';
        cut(at, &part);
        if (take(context, &part, fault)) continue;
        snprintf(why, sizeof why, "%s", fault->text);
        return wr_fault(fault, "%s: %.560s", option, why);
    }
    return true;
}

static bool take_downstream(void *context, const struct part *part, struct wr_fault *fault) {
    return take_part(context, part, fault);
}

bool wr_downstream_parse(const char *text, struct wr_downstream *downstream,
                         struct wr_fault *fault) {
    *downstream = (struct wr_downstream){.timeout_ns = 2 * WEIR_SECOND};
    if (!each_part(text, "--downstream", downstream, take_downstream, fault)) return false;
    return downstream->phase_count > 0 ||
           wr_fault(fault, "--downstream '%.100s': it lacks a capacity; a right one: "
                           "capacity=500/s,latency=20ms±5,error429", text);
}

bool wr_downstream_is_out(const struct wr_downstream *downstream, uint64_t now_ns) {
    for (size_t i = 0; i < downstream->outage_count; i++) {
        const struct wr_pool_outage *outage = &downstream->outages[i];
        if (now_ns >= outage->from_ns && now_ns - outage->from_ns < outage->length_ns) return true;
    }
    return false;
}

double wr_downstream_per_s(const struct wr_downstream *downstream, uint64_t now_ns) {
    size_t phase = 0;
    if (wr_downstream_is_out(downstream, now_ns)) return 0;
    while (phase + 1 < downstream->phase_count && downstream->phases[phase + 1].from_ns <= now_ns)
        phase++;
    const struct wr_rate *rate = &downstream->phases[phase].capacity;
    if (rate->tokens == WEIR_UNLIMITED_TOKENS) return HUGE_VAL;
    return (double)rate->tokens * 1e9 / (double)rate->period_ns;
}

static bool set_number(const struct part *part, double *number, struct wr_fault *fault) {
    char *end;
    const double value = strtod(part->value, &end);
    if (end == part->value || *end != '\0' || !isfinite(value))
        return refuse(part, "its value is no number", "min=20,max=5000,base=150", fault);
    *number = value;
    return true;
}

static bool set_time(const struct part *part, uint64_t *ns, struct wr_fault *fault) {
    return wr_duration_parse(part->value, part->name, ns, fault) ||
           refuse(part, fault->text, "interval=100ms", fault);
}

static bool take_setting(void *context, const struct part *part, struct wr_fault *fault) {
    struct weir_valve_settings *s = context;
    const struct {
        const char *name;
        double *number;
        uint64_t *time_ns;
    } settings[] = {
        {"min", &s->min_per_s, NULL},          {"max", &s->max_per_s, NULL},
        {"base", &s->base_per_s, NULL},        {"low", &s->low_depth, NULL},
        {"high", &s->high_depth, NULL},        {"grow", &s->grow_factor, NULL},
        {"shrink", &s->shrink_factor, NULL},   {"overload", &s->overload_factor, NULL},
        {"interval", NULL, &s->interval_ns},   {"smoothing", NULL, &s->smoothing_ns},
        {"settle", NULL, &s->settle_ns},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, part->name) != 0) continue;
        if (part->value == NULL || part->at != NULL)
            return refuse(part, "it is to have a value, and no @", "min=20", fault);
        return settings[i].number != NULL ? set_number(part, settings[i].number, fault)
                                          : set_time(part, settings[i].time_ns, fault);
    }
    return refuse(part, "there is no such setting (min, base, max, low, high, grow, shrink, "
                        "overload, interval, smoothing, settle)",
                  "min=20,max=5000,base=150", fault);
}

bool wr_pool_valve_parse(const char *text, struct weir_valve_settings *settings,
                         struct wr_fault *fault) {
    return each_part(text, "--valve", settings, take_setting, fault);
}
