// values.h - the numbers that a log carries, beside its times.
#ifndef WR_VALUES_H
#define WR_VALUES_H

#include <stdint.h>

#include <weir.h>

#include "text.h"

// A whole number below 2^63; "5.0" is one. NULL, or what is wrong.
const char *wr_cost_value(struct wr_text text, uint64_t *cost);

// 2, 1/3 or 0.5, in lowest terms. NULL, or what is wrong.
const char *wr_weight_value(struct wr_text text, struct weir_weight *weight);

#endif
