// numbers.h - how many different numbers there are.
#ifndef WR_TEST_NUMBERS_H
#define WR_TEST_NUMBERS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline int by_number(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

// How many different numbers there are; sorts them.
static inline size_t distinct(uint64_t *numbers, size_t count) {
    size_t different = count > 0;
    qsort(numbers, count, sizeof(*numbers), by_number);
    for (size_t i = 1; i < count; i++) different += numbers[i] != numbers[i - 1];
    return different;
}

#endif
