// redis_url.h - the address of --redis, parsed as libweir-sync does.
#ifndef WR_REDIS_URL_H
#define WR_REDIS_URL_H

#include <stdbool.h>

#include "../sync/url.h"
#include "text.h"

#define WR_REDIS_URL_USUAL "redis://127.0.0.1:6379"
#define WR_REDIS_URL_BYTES 2400 // of any URL that is written here
#define WR_REDIS_SHOWN_BYTES 320

bool wr_redis_url_parse(const char *text, struct wr_url *url, struct wr_fault *fault);

// The address for messages, without user and password: "127.0.0.1:6379", "unix:/run/redis.sock".
void wr_redis_url_show(const struct wr_url *url, char shown[WR_REDIS_SHOWN_BYTES]);

// The same database, user and password behind the unix socket `path`, as a URL.
void wr_redis_url_behind(const struct wr_url *url, const char *path, char text[WR_REDIS_URL_BYTES]);

#endif
