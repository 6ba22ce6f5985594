// The server script, common.lua and sync.lua, as built into the library.
#pragma once

#include <stddef.h>

extern const char wr_sync_script[]; // ends with a 0 that is not counted
extern const size_t wr_sync_script_bytes;
