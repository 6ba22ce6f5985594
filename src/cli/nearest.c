// nearest.c - Damerau's distance: letters added, dropped, changed, or swapped with the next.
#include "nearest.h"

#include <string.h>

#define MAX_LENGTH 31

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// Row i holds the distances of a's first i letters from each beginning of b.
static size_t distance(const char *a, const char *b) {
    size_t rows[MAX_LENGTH + 1][MAX_LENGTH + 1];
    size_t a_length = strnlen(a, MAX_LENGTH);
    size_t b_length = strnlen(b, MAX_LENGTH);
    for (size_t j = 0; j <= b_length; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        rows[i][0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t changed = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            rows[i][j] = least(changed, least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

const char *wr_nearest(const char *misspelt, const char *const *words, size_t count) {
    const char *nearest = NULL;
    size_t length = strlen(misspelt);
    size_t limit = length <= 3 ? 1 : length / 3 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t away = distance(misspelt, words[i]);
        if (length >= 2 && strncmp(misspelt, words[i], length) == 0) away = 0;
        if (away > limit) continue;
        if (away < limit || nearest == NULL) nearest = words[i];
        limit = away;
    }
    return nearest;
}
