// The reader of openmetrics.h. Written from the specification's grammar and rules, and stricter
// where it leaves a choice: TYPE, UNIT, HELP in this order, no time stamps, no exemplars, no
// control characters, only the escapes that are needed.
#include "openmetrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = {"counter", "gauge", "histogram"};

static bool is_name_char(char c, bool first, bool colon) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':') ||
           (!first && c >= '0' && c <= '9');
}

// Copies a name; the rest of the line, or NULL.
static const char *read_name(const char *at, char *name, size_t room, bool colon) {
    size_t length = 0;
    while (is_name_char(at[length], length == 0, colon)) length++;
    if (length == 0 || length >= room || at[0] == '_') return NULL;
    memcpy(name, at, length);
    name[length] = '\0';
    return at + length;
}

// An escaped string up to `end`, a quote or the line's end.
static const char *read_escaped(const char *at, char end, char *value, size_t room) {
    size_t length = 0;
    for (; *at != end; at++) {
        if (*at == '\n' || *at == '\0' || length + 1 >= room) return NULL;
        char c = *at;
        if (c == '"' && end != '"') return NULL; // HELP escapes it too
        if (c == '\\') {
            c = *++at;
            if (c != 'n' && c != '"' && c != '\\') return NULL;
            if (c == 'n') c = '\n';
        }
        value[length++] = c;
    }
    value[length] = '\0';
    return at;
}

static bool is_integer(const char *text) {
    const size_t digits = strspn(text, "0123456789");
    return digits != 0 && text[digits] == '\0';
}

// Digits, a decimal fraction, either with an exponent; or +Inf.
static bool is_number(const char *text) {
    if (strcmp(text, "+Inf") == 0) return true;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0) return false;
    text += digits;
    if (*text == '.') {
        digits = strspn(text + 1, "0123456789");
        if (digits == 0) return false;
        text += 1 + digits;
    }
    if (*text == 'e') {
        text++;
        if (*text == '-' || *text == '+') text++;
        return is_integer(text);
    }
    return *text == '\0';
}

// The shortest digits that give the same number, as the specification writes it.
static bool is_canonical(const char *text) {
    if (strcmp(text, "+Inf") == 0) return true;
    if (!is_number(text)) return false;
    const double number = strtod(text, NULL);
    for (int digits = 1; digits <= 17; digits++) {
        char written[40];
        snprintf(written, sizeof written - 2, "%.*g", digits, number);
        if (strtod(written, NULL) != number) continue;
        if (strpbrk(written, ".e") == NULL) strcat(written, ".0");
        return strcmp(written, text) == 0;
    }
    return false;
}

// ---------------------------------------------------------------------------------------------
// Characters

static bool is_utf8(const char *text, size_t length) {
    for (size_t i = 0; i < length;) {
        const unsigned char first = (unsigned char)text[i++];
        if (first < 0x80) continue;
        const unsigned more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        static const unsigned long least[] = {0, 0x80, 0x800, 0x10000};
        unsigned long point = first & (0x3Fu >> more);
        if (first < 0xC0 || first >= 0xF8) return false;
        for (unsigned k = 0; k < more; k++, i++) {
            if (i == length || (text[i] & 0xC0) != 0x80) return false;
            point = point << 6 | ((unsigned char)text[i] & 0x3Fu);
        }
        if (point < least[more] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
            return false;
    }
    return true;
}

static bool has_control(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == 0x7F || (c < ' ' && c != '\n')) return true;
    }
    return false;
}

// ---------------------------------------------------------------------------------------------
// Lines

static const char *read_type(struct om_text *om, const char *name, const char *type) {
    for (size_t i = 0; i < om->family_count; i++)
        if (strcmp(om->families[i].name, name) == 0) return "the family has been there before";
    if (om->family_count == OM_FAMILIES) return "too many families";
    struct om_family *family = &om->families[om->family_count++];
    *family = (struct om_family){.lines = 1};
    strcpy(family->name, name);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i]) == 0) strcpy(family->type, type);
    return family->type[0] == '\0' ? "unknown type" : NULL;
}

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static const char *read_unit(struct om_family *family, const char *unit) {
    if (unit[0] == '\0' || strlen(unit) >= sizeof family->unit) return "no unit";
    strcpy(family->unit, unit);
    const size_t at = strlen(family->name) - strlen(unit);
    if (!ends_with(family->name, unit) || at == 0 || family->name[at - 1] != '_')
        return "the unit is not the end of the name";
    return NULL;
}

static const char *read_descriptor(struct om_text *om, const char *line) {
    char name[64], words[256];
    const char *at = NULL;
    static const char *const kinds[] = {"# TYPE ", "# UNIT ", "# HELP "};
    unsigned kind = 0;
    while (kind < 3 && strncmp(line, kinds[kind], 7) != 0) kind++;
    if (kind == 3) return "neither TYPE, UNIT, HELP nor the end";
    at = read_name(line + 7, name, sizeof name, true);
    if (at == NULL || *at++ != ' ') return "no name";
    if (read_escaped(at, '\n', words, sizeof words) == NULL) return "escapes";
    if (kind == 0) return read_type(om, name, words);
    if (om->family_count == 0) return "no TYPE before";
    struct om_family *family = &om->families[om->family_count - 1];
    if (strcmp(family->name, name) != 0) return "of another family";
    if (family->samples != 0) return "after a sample";
    if (family->lines >= 1u << kind) return "out of order";
    family->lines |= 1u << kind;
    return kind == 1 ? read_unit(family, words) : NULL;
}

static const char *read_labels(struct om_sample *sample, const char *at) {
    while (*at != '}') {
        if (sample->label_count == OM_LABELS) return NULL;
        if (sample->label_count != 0 && *at++ != ',') return NULL;
        struct om_label *label = &sample->labels[sample->label_count];
        at = read_name(at, label->name, sizeof label->name, false);
        if (at == NULL || *at++ != '=' || *at++ != '"') return NULL;
        at = read_escaped(at, '"', label->value, sizeof label->value);
        if (at == NULL) return NULL;
        at++;
        for (size_t i = 0; i < sample->label_count; i++)
            if (strcmp(sample->labels[i].name, label->name) == 0) return NULL;
        sample->label_count++;
    }
    return at + 1;
}

static const char *check_type(const struct om_family *family, const struct om_sample *sample) {
    const bool counter = strcmp(family->type, "counter") == 0;
    const bool histogram = strcmp(family->type, "histogram") == 0;
    const char *suffix = sample->name + strlen(family->name);
    if (strncmp(sample->name, family->name, strlen(family->name)) != 0) return "of another family";
    if (strcmp(suffix, counter ? "_total" : histogram ? "_bucket" : "") != 0) return "suffix";
    if (histogram != (om_label(sample, "le")[0] != '\0')) return "le";
    if ((counter || histogram) && !is_integer(sample->number)) return "no integer";
    return NULL;
}

// The same labels, but for le.
static bool same_metric(const struct om_sample *a, const struct om_sample *b, bool with_le) {
    if (a->family != b->family || a->label_count != b->label_count) return false;
    for (size_t i = 0; i < a->label_count; i++) {
        const char *name = a->labels[i].name;
        if (!with_le && strcmp(name, "le") == 0) continue;
        if (strcmp(a->labels[i].value, om_label(b, name)) != 0) return false;
    }
    return true;
}

static const char *check_order(const struct om_text *om, const struct om_sample *sample) {
    const struct om_sample *before = sample - 1;
    bool left = false;
    for (const struct om_sample *s = before; s >= om->samples && s->family == sample->family; s--) {
        if (same_metric(s, sample, true)) return "a sample twice";
        const bool same = same_metric(s, sample, false);
        if (same && left) return "metrics are mixed";
        left = left || !same;
    }
    return NULL;
}

static const char *check_bucket(const struct om_text *om, const struct om_sample *sample) {
    const char *le = om_label(sample, "le");
    const struct om_sample *before = sample - 1;
    if (!is_canonical(le)) return "le is not written canonically";
    if (before < om->samples || !same_metric(before, sample, false)) return NULL;
    if (strcmp(om_label(before, "le"), "+Inf") == 0) return "a bucket after +Inf";
    if (strcmp(le, "+Inf") != 0 && strtod(le, NULL) <= strtod(om_label(before, "le"), NULL))
        return "le does not rise";
    if (strtoull(sample->number, NULL, 10) < strtoull(before->number, NULL, 10))
        return "not cumulative";
    return NULL;
}

// Has the histogram before this sample (or the end) its last bucket?
static const char *check_closed(const struct om_text *om, const struct om_sample *sample) {
    const struct om_sample *before = om->samples + om->sample_count - 1;
    if (om->sample_count == 0 || strcmp(om->families[before->family].type, "histogram") != 0)
        return NULL;
    if (sample != NULL && same_metric(before, sample, false)) return NULL;
    return strcmp(om_label(before, "le"), "+Inf") == 0 ? NULL : "no bucket +Inf";
}

static const char *read_sample(struct om_text *om, const char *line) {
    if (om->family_count == 0) return "no TYPE before";
    if (om->sample_count == OM_SAMPLES) return "too many samples";
    struct om_family *family = &om->families[om->family_count - 1];
    struct om_sample *sample = &om->samples[om->sample_count];
    sample->family = om->family_count - 1;
    sample->label_count = 0;
    const char *at = read_name(line, sample->name, sizeof sample->name, true);
    if (at == NULL) return "no name";
    if (*at == '{') at = read_labels(sample, at + 1);
    if (at == NULL || *at++ != ' ') return "labels";
    const size_t length = strcspn(at, "\n");
    if (length >= sizeof sample->number) return "number";
    memcpy(sample->number, at, length);
    sample->number[length] = '\0';
    if (!is_number(sample->number)) return "number";
    const char *wrong = check_type(family, sample);
    if (wrong == NULL) wrong = check_order(om, sample);
    if (wrong == NULL) wrong = check_closed(om, sample);
    if (wrong == NULL && strcmp(family->type, "histogram") == 0) wrong = check_bucket(om, sample);
    family->samples++;
    om->sample_count++;
    return wrong;
}

const char *om_read(struct om_text *om, const char *text, size_t length) {
    om->family_count = om->sample_count = om->line = 0;
    if (strlen(text) != length) return "a zero byte";
    if (!is_utf8(text, length)) return "no UTF-8";
    if (has_control(text, length)) return "a control character";
    for (;;) {
        om->line++;
        const char *end = strchr(text, '\n');
        if (end == NULL) return "the line has no end";
        if (strcmp(text, "# EOF\n") == 0) return check_closed(om, NULL);
        const char *wrong = text[0] == '#' ? read_descriptor(om, text) : read_sample(om, text);
        if (wrong != NULL) return wrong;
        text = end + 1;
    }
}

const char *om_label(const struct om_sample *sample, const char *name) {
    for (size_t i = 0; i < sample->label_count; i++)
        if (strcmp(sample->labels[i].name, name) == 0) return sample->labels[i].value;
    return "";
}

const char *om_number(const struct om_text *om, const char *name, const char *limiter,
                      const char *label, const char *value) {
    const size_t labels = label == NULL ? 1 : 2;
    for (size_t i = 0; i < om->sample_count; i++) {
        const struct om_sample *s = &om->samples[i];
        if (strcmp(s->name, name) == 0 && s->label_count == labels &&
            strcmp(om_label(s, "limiter"), limiter) == 0 &&
            (label == NULL || strcmp(om_label(s, label), value) == 0))
            return s->number;
    }
    return "";
}
