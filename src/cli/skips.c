// skips.c - the first few lines that were passed over.
#include "skips.h"

#include <stdbool.h>

static bool is_after(const struct wr_skip *skip, uint32_t file, uint64_t line) {
    return skip->file != file ? skip->file > file : skip->line > line;
}

void wr_skips_add(struct wr_skips *skips, uint32_t file, uint64_t line, const char *reason) {
    size_t place = skips->kept;
    skips->count++;
    while (place > 0 && is_after(&skips->first[place - 1], file, line)) place--;
    if (place == WR_SKIPS_KEPT) return;
    if (skips->kept < WR_SKIPS_KEPT) skips->kept++;
    struct wr_skip *skip = &skips->first[place];
    memmove(skip + 1, skip, (skips->kept - place - 1) * sizeof(*skip));
    skip->file = file;
    skip->line = line;
    snprintf(skip->reason, sizeof(skip->reason), "%s", reason);
}
