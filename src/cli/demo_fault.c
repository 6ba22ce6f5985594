// demo_fault.c - the words of --fault.
#include "demo.h"

#define EXAMPLES                                                                                   \
    "such as outage=10s@10s, latency=200ms, flush@5s, script-flush@5s, kill-node@5s or "           \
    "kill-redis@5s"

static const struct kind {
    const char *word;
    enum wr_demo_fault_kind kind;
    bool has_length;
    bool may_lack_start;
} kinds[] = {
    {"outage", WR_DEMO_OUTAGE, true, false},
    {"latency", WR_DEMO_LATENCY, true, true},
    {"flush", WR_DEMO_FLUSH, false, false},
    {"script-flush", WR_DEMO_SCRIPT_FLUSH, false, false},
    {"kill-node", WR_DEMO_KILL_NODE, false, false},
    {"kill-redis", WR_DEMO_KILL_REDIS, false, false},
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static const struct kind *kind_of(struct wr_text word) {
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (wr_text_is(word, kinds[i].word)) return &kinds[i];
    return NULL;
}

static bool read_length(const char *text, const char *from, const char *end, uint64_t *ns,
                        struct wr_fault *fault) {
    char length[WR_UNIT_TEXT], why[sizeof fault->text];
    if (end - from >= (long)sizeof length)
        return wr_fault(fault, "--fault '%.100s': its time is too long a word", text);
    snprintf(length, sizeof length, "%.*s", (int)(end - from), from);
    if (!wr_duration_parse(length, "time", ns, fault)) {
        snprintf(why, sizeof why, "%s", fault->text);
        return wr_fault(fault, "--fault '%.100s': %.400s", text, why);
    }
    return *ns > 0 || wr_fault(fault, "--fault '%.100s': it lasts no time", text);
}

static bool read_start(const char *text, const char *at, uint64_t *ns, struct wr_fault *fault) {
    char why[sizeof fault->text];
    if (wr_duration_parse(at, "time", ns, fault)) return true;
    snprintf(why, sizeof why, "%s", fault->text);
    return wr_fault(fault, "--fault '%.100s': %.400s", text, why);
}

bool wr_demo_fault_parse(const char *text, struct wr_demo_fault *made, struct wr_fault *fault) {
    const char *at = strchr(text, '@'), *end = at != NULL ? at : text + strlen(text);
    const char *equals = memchr(text, '=', (size_t)(end - text));
    const char *word_end = equals != NULL ? equals : end;
    const struct kind *kind = kind_of((struct wr_text){text, (size_t)(word_end - text)});
    *made = (struct wr_demo_fault){.at_ns = 0};
    if (kind == NULL) return wr_fault(fault, "--fault '%.100s': write one " EXAMPLES, text);
    made->kind = kind->kind;
    if (kind->has_length != (equals != NULL))
        return wr_fault(fault, "--fault '%.100s': %s, " EXAMPLES, text,
                        kind->has_length ? "how long? write one" : "it takes no '='; write one");
    if (at == NULL && !kind->may_lack_start)
        return wr_fault(fault, "--fault '%.100s': when? write @ and the time since the start, "
                               EXAMPLES, text);
    return (equals == NULL || read_length(text, equals + 1, end, &made->length_ns, fault)) &&
           (at == NULL || read_start(text, at + 1, &made->at_ns, fault));
}

void wr_demo_fault_text(const struct wr_demo_fault *fault, char text[WR_UNIT_TEXT * 2]) {
    char at[WR_UNIT_TEXT], length[WR_UNIT_TEXT];
    const struct kind *kind = kinds;
    while (kind->kind != fault->kind) kind++;
    wr_duration_text(fault->at_ns, at);
    wr_duration_text(fault->length_ns, length);
    snprintf(text, WR_UNIT_TEXT * 2, "%s%s%.40s@%.40s", kind->word, kind->has_length ? "=" : "",
             kind->has_length ? length : "", at);
}

bool wr_demo_fault_by_proxy(const struct wr_demo_fault *fault) {
    return fault->kind == WR_DEMO_OUTAGE || fault->kind == WR_DEMO_LATENCY;
}

bool wr_demo_has(const struct wr_demo_options *options, enum wr_demo_fault_kind kind) {
    for (size_t i = 0; i < options->fault_count; i++)
        if (options->faults[i].kind == kind) return true;
    return false;
}
