// Resident memory from /proc/self/smaps_rollup: unlike statm, it is exact to the page.
#include "resident.h"

#include <stdio.h>

bool bench_resident_read(struct bench_resident *resident) {
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    if (file == NULL) return false;
    *resident = (struct bench_resident){0};
    char line[256];
    unsigned found = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long kib;
        if (sscanf(line, "Rss: %llu kB", &kib) == 1) {
            resident->bytes = kib * 1024;
            found++;
        } else if (sscanf(line, "AnonHugePages: %llu kB", &kib) == 1) {
            resident->huge_bytes = kib * 1024;
            found++;
        }
    }
    fclose(file);
    return found == 2;
}
