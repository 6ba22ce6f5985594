// common.lua and strict.lua embedded, as script.c does with sync.lua.
#include "strict.h"

const char wr_strict_script[] = {
#include "strict_script.inc"
    0};
const size_t wr_strict_script_bytes = sizeof wr_strict_script - 1;
