// trace_text.c - addresses, names and pages of invented events, and the three formats.
//
// All addresses are from ranges that nobody has: the users' from 10.0.0.0/8, the bots' from
// 203.0.113.0/24, and of those who come once from 2001:db8::/32, where there is room for all.
#include "trace_text.h"

#include <inttypes.h>
#include <time.h>

#include "random.h"

#define TIME_BYTES 64
#define PATH_BYTES 64

// An odd multiplier is a bijection of the 24-bit numbers.
static void user_host(uint64_t user, char host[WR_TRACE_HOST_BYTES]) {
    uint32_t address = ((uint32_t)user * UINT32_C(0x9e3779b1) + UINT32_C(0x1a2b3c)) & 0xffffff;
    snprintf(host, WR_TRACE_HOST_BYTES, "10.%" PRIu32 ".%" PRIu32 ".%" PRIu32, address >> 16,
             (address >> 8) & 0xff, address & 0xff);
}

void wr_trace_host(const struct wr_trace_event *event, char host[WR_TRACE_HOST_BYTES]) {
    uint64_t mixed = wr_random_mix(event->key);
    if (event->sender == WR_TRACE_USER) {
        user_host(event->key, host);
    } else if (event->sender == WR_TRACE_BOT) {
        snprintf(host, WR_TRACE_HOST_BYTES, "203.0.113.%u", (unsigned)(event->key & 0xff) + 1);
    } else {
        snprintf(host, WR_TRACE_HOST_BYTES, "2001:db8:%x:%x:%x:%x::1", (unsigned)(mixed >> 48),
                 (unsigned)(mixed >> 32) & 0xffff, (unsigned)(mixed >> 16) & 0xffff,
                 (unsigned)mixed & 0xffff);
    }
}

static void user_name(const struct wr_trace_event *event, char name[WR_TRACE_HOST_BYTES]) {
    if (event->sender == WR_TRACE_USER)
        snprintf(name, WR_TRACE_HOST_BYTES, "user%" PRIu64, event->key);
    else snprintf(name, WR_TRACE_HOST_BYTES, "-");
}

static const char *agent(const struct wr_trace_event *event) {
    switch ((enum wr_trace_sender)event->sender) {
    case WR_TRACE_USER: return "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Firefox/128.0";
    case WR_TRACE_PASSER_BY: return "Mozilla/5.0 (Android 14; Mobile; rv:128.0) Firefox/128.0";
    case WR_TRACE_BOT: return "stock-checker/2.1";
    case WR_TRACE_ATTACKER: break;
    }
    return "-";
}

static const char *method(const struct wr_trace_event *event) {
    static const char *const methods[] = {
#define METHOD(name, method, path, has_item, least, most) method,
        WR_TRACE_PAGES(METHOD)
#undef METHOD
    };
    return methods[event->page];
}

static void path(const struct wr_trace_event *event, char text[PATH_BYTES]) {
    static const char *const paths[] = {
#define PATH(name, method, path, has_item, least, most) path,
        WR_TRACE_PAGES(PATH)
#undef PATH
    };
    if (event->item == 0) snprintf(text, PATH_BYTES, "%s", paths[event->page]);
    else snprintf(text, PATH_BYTES, "%s%" PRIu32, paths[event->page], event->item);
}

// The time by strftime's `layout`, its fraction, and the `zone`.
static void time_text(const struct wr_trace_event *event, uint64_t resolution_ns,
                      const char *layout, const char *zone, char text[TIME_BYTES]) {
    time_t second = (time_t)(event->time_ns / WEIR_SECOND);
    size_t digits = 0;
    char fraction[sizeof(".000000000")];
    struct tm parts;
    for (uint64_t unit_ns = resolution_ns; unit_ns < WEIR_SECOND; unit_ns *= 10) digits++;
    snprintf(fraction, sizeof(fraction), ".%09" PRIu32, (uint32_t)(event->time_ns % WEIR_SECOND));
    fraction[digits == 0 ? 0 : 1 + digits] = '\0';
    gmtime_r(&second, &parts);
    size_t length = strftime(text, TIME_BYTES, layout, &parts);
    snprintf(text + length, TIME_BYTES - length, "%s%s", fraction, zone);
}

void wr_trace_write_header(FILE *out, enum wr_trace_format format) {
    if (format == WR_TRACE_FORMAT_CSV)
        fputs("time,host,user,method,path,status,bytes,agent\n", out);
}

// None of the texts has a quote, a backslash or a comma in it, so none needs escaping.
void wr_trace_write(FILE *out, enum wr_trace_format format, uint64_t resolution_ns,
                    const struct wr_trace_event *event) {
    bool combined = format == WR_TRACE_FORMAT_COMBINED;
    char host[WR_TRACE_HOST_BYTES];
    char user[WR_TRACE_HOST_BYTES];
    char url[PATH_BYTES];
    char when[TIME_BYTES];
    wr_trace_host(event, host);
    user_name(event, user);
    path(event, url);
    time_text(event, resolution_ns, combined ? "%d/%b/%Y:%H:%M:%S" : "%Y-%m-%dT%H:%M:%S",
              combined ? " +0000" : "Z", when);
    switch (format) {
    case WR_TRACE_FORMAT_COMBINED:
        fprintf(out, "%s - %s [%s] \"%s %s HTTP/1.1\" %u %" PRIu32 " \"-\" \"%s\"\n", host, user,
                when, method(event), url, event->status, event->bytes, agent(event));
        break;
    case WR_TRACE_FORMAT_CSV:
        fprintf(out, "%s,%s,%s,%s,%s,%u,%" PRIu32 ",%s\n", when, host, user, method(event), url,
                event->status, event->bytes, agent(event));
        break;
    case WR_TRACE_FORMAT_NDJSON:
        fprintf(out,
                "{\"time\":\"%s\",\"host\":\"%s\",\"user\":\"%s\",\"method\":\"%s\","
                "\"path\":\"%s\",\"status\":%u,\"bytes\":%" PRIu32 ",\"agent\":\"%s\"}\n",
                when, host, user, method(event), url, event->status, event->bytes, agent(event));
        break;
    }
}
