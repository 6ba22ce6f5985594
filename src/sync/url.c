// A URL into its parts.
#include "url.h"

#include <stddef.h>
#include <string.h>

#include "say.h"

#define USUAL_URL "redis://127.0.0.1:6379"
#define USUAL_PORT 6379
#define DATABASE_MAX 1000000
#define FORMS                                                                                      \
    "write redis://[user:password@]host[:port][/db] or unix:/path[?db=1&user=..&password=..]"

// A run of the URL.
struct part {
    const char *at;
    const char *end;
};

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The byte at part->at, with %XX decoded; -1: it is wrong.
static int next_byte(struct part *part) {
    const char c = *part->at++;
    if (c != '%') return (unsigned char)c;
    if (part->end - part->at < 2) return -1;
    const int high = hex_digit(part->at[0]), low = hex_digit(part->at[1]);
    part->at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static bool decode(const char *what, struct part part, char *out, size_t room,
                   struct weir_error *error) {
    size_t length = 0;
    while (part.at < part.end) {
        const int byte = next_byte(&part);
        if (byte <= 0) {
            wr_sync_say(error,
                        "url: after a %% in the %s there must be two hexadecimal digits, not "
                        "00; write a %% itself as %%25",
                        what);
            return false;
        }
        if (length + 1 >= room) {
            wr_sync_say(error, "url: the %s is longer than %zu bytes", what, room - 1);
            return false;
        }
        out[length++] = (char)byte;
    }
    out[length] = '\0';
    return true;
}

static bool read_number(const char *what, struct part part, uint32_t least, uint32_t most,
                        uint32_t *number, struct weir_error *error) {
    uint64_t value = 0;
    const ptrdiff_t digits = part.end - part.at;
    bool good = digits > 0 && digits <= 9;
    for (const char *c = part.at; good && c < part.end; c++) {
        good = *c >= '0' && *c <= '9';
        value = value * 10 + (uint64_t)(*c - '0');
    }
    if (!good || value < least || value > most) {
        wr_sync_say(error, "url: the %s '%.*s' must be a number from %u to %u", what,
                    digits < 40 ? (int)digits : 40, part.at, least, most);
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

static const char *find(struct part part, char c) {
    return memchr(part.at, c, (size_t)(part.end - part.at));
}

static const char *find_last(struct part part, char c) {
    return memrchr(part.at, c, (size_t)(part.end - part.at));
}

static bool read_login(struct part part, struct wr_url *url, struct weir_error *error) {
    const char *colon = find(part, ':');
    if (colon == NULL) {
        wr_sync_say(error, "url: before the @ there must be user:password, or :password");
        return false;
    }
    return decode("user", (struct part){part.at, colon}, url->user, sizeof url->user, error) &&
           decode("password", (struct part){colon + 1, part.end}, url->password,
                  sizeof url->password, error);
}

static bool read_port(struct part part, struct wr_url *url, struct weir_error *error) {
    uint32_t port = USUAL_PORT;
    if (part.at < part.end) {
        if (*part.at != ':') {
            wr_sync_say(error, "url: after the host's ] there must be :port, / or the end");
            return false;
        }
        part.at++;
        if (!read_number("port", part, 1, 65535, &port, error)) return false;
    }
    url->port = (uint16_t)port;
    return true;
}

static bool read_host(struct part part, struct wr_url *url, struct weir_error *error) {
    struct part host = part;
    const bool bracket = part.at < part.end && *part.at == '[';
    if (bracket) {
        host.at++;
        host.end = find(part, ']');
        if (host.end == NULL) {
            wr_sync_say(error, "url: the host's [ has no ]");
            return false;
        }
    } else {
        const char *colon = find(part, ':');
        if (colon != NULL && find((struct part){colon + 1, part.end}, ':') != NULL) {
            wr_sync_say(error, "url: put an IPv6 address into brackets, as in redis://[::1]:6379");
            return false;
        }
        if (colon != NULL) host.end = colon;
    }
    if (host.at == host.end) {
        wr_sync_say(error, "url: the host is missing; " FORMS);
        return false;
    }
    if (!decode("host", host, url->host, sizeof url->host, error)) return false;
    return read_port((struct part){host.end + bracket, part.end}, url, error);
}

static bool read_redis(struct part part, struct wr_url *url, struct weir_error *error) {
    const char *slash = find(part, '/');
    const struct part place = {part.at, slash != NULL ? slash : part.end};
    if (slash != NULL && slash + 1 < part.end &&
        !read_number("database", (struct part){slash + 1, part.end}, 0, DATABASE_MAX,
                     &url->database, error))
        return false;
    const char *at = find_last(place, '@');
    if (at != NULL && !read_login((struct part){place.at, at}, url, error)) return false;
    return read_host((struct part){at != NULL ? at + 1 : place.at, place.end}, url, error);
}

static bool starts_with(struct part part, const char *lead) {
    const size_t bytes = strlen(lead);
    return (size_t)(part.end - part.at) >= bytes && memcmp(part.at, lead, bytes) == 0;
}

// One of db=, user= and password=.
static bool read_option(struct part part, struct wr_url *url, struct weir_error *error) {
    const char *equals = find(part, '=');
    const struct part value = {equals != NULL ? equals + 1 : part.end, part.end};
    if (starts_with(part, "db="))
        return read_number("db", value, 0, DATABASE_MAX, &url->database, error);
    if (starts_with(part, "user="))
        return decode("user", value, url->user, sizeof url->user, error);
    if (starts_with(part, "password="))
        return decode("password", value, url->password, sizeof url->password, error);
    wr_sync_say(error, "url: the option '%.*s' is unknown; there are db, user and password",
                (int)((equals != NULL ? equals : part.end) - part.at), part.at);
    return false;
}

static bool read_unix(struct part part, struct wr_url *url, struct weir_error *error) {
    const char *mark = find(part, '?');
    const struct part path = {part.at, mark != NULL ? mark : part.end};
    if (path.at == path.end || *path.at != '/') {
        wr_sync_say(error, "url: after unix: there must be the socket's whole path, from / on");
        return false;
    }
    if (!decode("path", path, url->path, sizeof url->path, error)) return false;
    while (mark != NULL) {
        struct part option = {mark + 1, part.end};
        mark = find(option, '&');
        if (mark != NULL) option.end = mark;
        if (!read_option(option, url, error)) return false;
    }
    return true;
}

bool wr_url_parse(const char *text, struct wr_url *url, struct weir_error *error) {
    *url = (struct wr_url){.port = USUAL_PORT};
    if (text == NULL) text = USUAL_URL;
    struct part part = {text, text + strlen(text)};
    bool good;
    if (starts_with(part, "redis://")) {
        part.at += strlen("redis://");
        good = read_redis(part, url, error);
    } else if (starts_with(part, "unix:")) {
        part.at += strlen("unix:");
        good = read_unix(part, url, error);
    } else if (starts_with(part, "rediss://")) {
        wr_sync_say(error,
                    "url: rediss:// (TLS) is not there yet; put a TLS proxy in front, such as "
                    "stunnel");
        return false;
    } else {
        wr_sync_say(error, "url: it starts with neither redis:// nor unix:; " FORMS);
        return false;
    }
    if (good && url->user[0] != '\0' && url->password[0] == '\0') {
        wr_sync_say(error, "url: there is a user and no password; add one, or leave the user out");
        return false;
    }
    return good;
}
