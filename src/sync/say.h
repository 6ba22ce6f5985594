// Words for a caller's weir_error, which may be NULL.
#pragma once

#include "weir.h"

void wr_sync_say(struct weir_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
