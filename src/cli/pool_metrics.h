// pool_metrics.h - a pool's numbers as OpenMetrics text.
#ifndef WR_POOL_METRICS_H
#define WR_POOL_METRICS_H

#include <stddef.h>

#include "pool.h"

// The text of `pool` (NULL: nothing is running), for the caller to free; NULL without memory.
char *wr_pool_metrics(const struct wr_pool *pool, size_t *length);

#endif
