// The fixed baseline: a token bucket by key as a C programmer would write it without weir.
//
// 64 stripes, each a mutex and a hash table with chains; FNV-1a; levels and times in doubles; a
// clock_gettime an ask; a node allocated for each key and never freed while the table lives.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mutex_table;

// NULL when there is no memory.
struct mutex_table *mutex_table_create(double tokens_per_second, double burst);
void mutex_table_destroy(struct mutex_table *table);

// Takes `cost` tokens of a key, all or none. Denies when there is no memory for a new key.
bool mutex_table_take(struct mutex_table *table, const char *key, size_t length, double cost);
