// sync.lua embedded: the build turns it into an initializer list (embed.sh), so that the Lua stays
// a file that can be read and tried with redis-cli --eval.
#include "script.h"

const char wr_sync_script[] = {
#include "sync_script.inc"
    0};
const size_t wr_sync_script_bytes = sizeof wr_sync_script - 1;
