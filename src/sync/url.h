// Where a Redis is and how to log in there, as text:
//
//   redis://[user:password@]host[:port][/database]      %XX for special bytes, [::1] for IPv6
//   unix:/path[?db=1&user=..&password=..]
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

#define WR_URL_PATH_BYTES 108 // of a unix socket's name, with its end

struct wr_url {
    char path[WR_URL_PATH_BYTES]; // "": host and port
    char host[256];
    uint16_t port;
    uint32_t database;
    char user[129];     // "": none
    char password[513]; // "": none
};

// NULL: redis://127.0.0.1:6379. False: `error` names the part that is wrong, never the password.
bool wr_url_parse(const char *text, struct wr_url *url, struct weir_error *error);
