// A strict reader of OpenMetrics 1.0 text: says what is wrong with it, and gives what it says.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define OM_FAMILIES 64
#define OM_SAMPLES 4096
#define OM_LABELS 6
#define OM_VALUE 512

struct om_family {
    char name[64];
    char type[16];
    char unit[16];
    unsigned lines; // 1: TYPE, 2: UNIT, 4: HELP
    size_t samples;
};

struct om_label {
    char name[32];
    char value[OM_VALUE]; // without its escapes
};

struct om_sample {
    char name[64];
    char number[32];
    size_t family;
    size_t label_count;
    struct om_label labels[OM_LABELS];
};

struct om_text {
    struct om_family families[OM_FAMILIES];
    struct om_sample samples[OM_SAMPLES];
    size_t family_count;
    size_t sample_count;
    size_t line; // the last one read
};

// NULL, or what is wrong in line om->line.
const char *om_read(struct om_text *om, const char *text, size_t length);

// The value of a label; "" where the sample has none of that name.
const char *om_label(const struct om_sample *sample, const char *name);

// The number of the one sample of this name with label=value, and with no other label but
// limiter; "" where there is none.
const char *om_number(const struct om_text *om, const char *name, const char *limiter,
                      const char *label, const char *value);
