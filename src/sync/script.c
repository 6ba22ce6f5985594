// common.lua and sync.lua embedded: the build turns the two, one behind the other, into an
// initializer list (embed.sh), so that the Lua stays files that can be read, and tried:
// cat common.lua sync.lua >all.lua; redis-cli --eval all.lua KEYS , ARGV
#include "script.h"

const char wr_sync_script[] = {
#include "sync_script.inc"
    0};
const size_t wr_sync_script_bytes = sizeof wr_sync_script - 1;
