// The allocator that is used when the options name none.
#pragma once

#include "weir.h"

extern const struct weir_allocator wr_mmap_allocator;
