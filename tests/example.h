// example.h - what the examples share: the end when something is not as it should be.
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void expect(bool right, const char *what) {
    if (right) return;
    fprintf(stderr, "not so: %s\n", what);
    exit(1);
}
