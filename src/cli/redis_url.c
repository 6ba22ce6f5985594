// redis_url.c - an address for people, and one that leads through a socket of ours.
#include "redis_url.h"

#include <inttypes.h>

bool wr_redis_url_parse(const char *text, struct wr_url *url, struct wr_fault *fault) {
    struct weir_error error = {""};
    return wr_url_parse(text, url, &error) || wr_fault(fault, "--redis: %s", error.text);
}

void wr_redis_url_show(const struct wr_url *url, char shown[WR_REDIS_SHOWN_BYTES]) {
    const bool v6 = strchr(url->host, ':') != NULL;
    if (url->path[0] != '\0') snprintf(shown, WR_REDIS_SHOWN_BYTES, "unix:%s", url->path);
    else
        snprintf(shown, WR_REDIS_SHOWN_BYTES, "%s%s%s:%u", v6 ? "[" : "", url->host, v6 ? "]" : "",
                 (unsigned)url->port);
}

// Each byte as %XX: at most three times (128 + 512) bytes, which there is room for.
static void append(char text[WR_REDIS_URL_BYTES], const char *lead, const char *value) {
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, WR_REDIS_URL_BYTES - used, "%s", lead);
    for (; *value != '\0' && used + 4 <= WR_REDIS_URL_BYTES; value++)
        used += (size_t)snprintf(text + used, WR_REDIS_URL_BYTES - used, "%%%02X",
                                 (unsigned char)*value);
}

void wr_redis_url_behind(const struct wr_url *url, const char *path,
                         char text[WR_REDIS_URL_BYTES]) {
    snprintf(text, WR_REDIS_URL_BYTES, "unix:%s?db=%" PRIu32, path, url->database);
    if (url->user[0] != '\0') append(text, "&user=", url->user);
    if (url->password[0] != '\0') append(text, "&password=", url->password);
}
