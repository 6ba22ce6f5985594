// A weir limiter to measure: made and filled in the same way however it is asked afterwards.
#pragma once

#include "limiter.h"

void *bench_weir_create(const struct weir_limit *limit, uint64_t keys);
void bench_weir_destroy(void *limiter);
bool bench_weir_ask(void *limiter, const char *text, size_t length, uint64_t cost);
