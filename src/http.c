// The rate-limit header fields of HTTP, from a limit and an answer.
//
// What a token bucket is in their words:
//   q, w   the quota of a window: the window in which the burst fills, in whole seconds, rounded
//          up, and what the rate makes in it (so q >= burst). At rate 0 the burst, and no window.
//   r      whole tokens left
//   t      the time within which no more than r can be used. Of a refusal, Retry-After: nothing
//          passes sooner, and that field shall not be the earlier one. Else, the time until the
//          bucket is full.
// Structured fields (RFC 9651): integers of 15 digits at most, strings of printable ASCII.
#include "call.h"
#include "text.h"

#define INTEGER_MAX UINT64_C(999999999999999)
#define ALL_FORMS                                                                                  \
    (WEIR_HTTP_STRUCTURED | WEIR_HTTP_SEPARATE | WEIR_HTTP_SEPARATE_X | WEIR_HTTP_RETRY_AFTER |    \
     WEIR_HTTP_BYTES)

struct fields {
    const char *name;
    uint64_t quota;    // of a window
    uint64_t window_s; // 0: none
    uint64_t burst;
    uint64_t remaining;
    uint64_t reset_s; // 0: none
    uint64_t retry_s; // 0: none
};

static uint64_t integer(wr_u128 number) {
    return number < INTEGER_MAX ? (uint64_t)number : INTEGER_MAX;
}

// Whole seconds, rounded up, at least one: "again in 0 seconds" invites a busy loop. 0 for never.
static uint64_t seconds(uint64_t ns) {
    if (ns == WEIR_FOREVER) return 0;
    return ns == 0 ? 1 : (ns - 1) / WEIR_SECOND + 1;
}

static void set_policy(struct fields *f, const struct weir_limit *limit) {
    f->quota = integer(limit->burst);
    f->burst = integer(limit->burst);
    f->window_s = 0;
    if (limit->tokens == 0 || limit->burst == 0) return;
    const wr_u128 full = (wr_u128)limit->burst * limit->period_ns;
    const wr_u128 second = (wr_u128)limit->tokens * WEIR_SECOND; // in the same unit
    const wr_u128 window_s = (full + second - 1) / second;
    if (window_s > INTEGER_MAX) return;
    f->window_s = (uint64_t)window_s;
    f->quota = integer(second * window_s / limit->period_ns);
}

static void set_level(struct fields *f, int result, const struct weir_answer *answer) {
    const bool refused = result != WEIR_GRANTED;
    f->remaining = integer(answer->remaining);
    f->retry_s = refused ? seconds(answer->retry_after_ns) : 0;
    f->reset_s = f->retry_s;
    // A denial for which no wait helps (burst 0, rate 0) has no end to tell.
    if (!refused || result == WEIR_NEVER) f->reset_s = seconds(answer->full_after_ns);
}

static void put_name(struct wr_text *t, const char *name) {
    wr_text_byte(t, '"');
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\') wr_text_byte(t, '\\');
        if (*name >= ' ' && *name <= '~') {
            wr_text_byte(t, *name);
        } else {
            wr_text_byte(t, '%');
            wr_text_hex(t, "0123456789ABCDEF", (unsigned char)*name);
        }
    }
    wr_text_byte(t, '"');
}

static void put_parameter(struct wr_text *t, const char *name, uint64_t value) {
    wr_text_put(t, name);
    wr_text_number(t, value);
}

static void put_structured(struct wr_text *t, const struct fields *f, bool bytes) {
    wr_text_put(t, "RateLimit-Policy: ");
    put_name(t, f->name);
    put_parameter(t, ";q=", f->quota);
    if (bytes) wr_text_put(t, ";qu=\"content-bytes\"");
    if (f->window_s != 0) put_parameter(t, ";w=", f->window_s);
    wr_text_put(t, "\r\nRateLimit: ");
    put_name(t, f->name);
    put_parameter(t, ";r=", f->remaining);
    if (f->reset_s != 0) put_parameter(t, ";t=", f->reset_s);
    wr_text_put(t, "\r\n");
}

static void put_field(struct wr_text *t, const char *prefix, const char *name, uint64_t value) {
    wr_text_put(t, prefix);
    put_parameter(t, name, value);
    wr_text_put(t, "\r\n");
}

static void put_separate(struct wr_text *t, const struct fields *f, const char *prefix) {
    put_field(t, prefix, "RateLimit-Limit: ", f->burst);
    put_field(t, prefix, "RateLimit-Remaining: ", f->remaining);
    if (f->reset_s != 0) put_field(t, prefix, "RateLimit-Reset: ", f->reset_s);
}

int weir_http_fields(const struct weir *limiter, int result, const struct weir_answer *answer,
                     unsigned forms, char *buffer, size_t size, size_t *length) {
    if (limiter == NULL || answer == NULL || result < 0 || (forms & ~(unsigned)ALL_FORMS) != 0 ||
        (buffer == NULL && size != 0))
        return WEIR_EINVAL;
    if (!wr_answer_size_is_known(answer)) return WEIR_ESIZE;
    struct weir_answer whole = WEIR_ANSWER_INIT;
    memcpy(&whole, answer, answer->size);
    struct weir_limit limit;
    weir_get_limit(limiter, &limit);
    struct wr_text t = {buffer, size, 0};
    if (wr_is_unlimited(&limit) || whole.remaining == UINT64_MAX) return wr_text_end(&t, length);
    struct fields f = {.name = limiter->name};
    set_policy(&f, &limit);
    set_level(&f, result, &whole);
    if ((forms & WEIR_HTTP_STRUCTURED) != 0) put_structured(&t, &f, (forms & WEIR_HTTP_BYTES) != 0);
    if ((forms & WEIR_HTTP_SEPARATE) != 0) put_separate(&t, &f, "");
    if ((forms & WEIR_HTTP_SEPARATE_X) != 0) put_separate(&t, &f, "X-");
    if ((forms & WEIR_HTTP_RETRY_AFTER) != 0 && f.retry_s != 0)
        put_field(&t, "", "Retry-After: ", f.retry_s);
    return wr_text_end(&t, length);
}
