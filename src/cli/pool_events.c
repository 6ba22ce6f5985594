// pool_events.c - events from trace.h, or from a log by the readers of `weir replay`.
#include "pool_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lines.h"
#include "record.h"

static bool add(struct wr_pool_events *events, uint64_t key, uint64_t due_ns,
                struct wr_fault *fault) {
    if (events->count == WR_POOL_EVENTS_MAX)
        return wr_fault(fault, "more than %zu events within the run; give a shorter --duration",
                        WR_POOL_EVENTS_MAX);
    if (events->count == events->room) {
        const size_t room = events->room == 0 ? 4096 : 2 * events->room;
        struct wr_pool_event *all = reallocarray(events->all, room, sizeof *all);
        if (all == NULL) return wr_fault(fault, "no memory for %zu events", room);
        events->all = all;
        events->room = room;
    }
    events->all[events->count++] =
        (struct wr_pool_event){.node = WEIR_LOT_NODE_INIT, .key = key, .due_ns = due_ns};
    return true;
}

// Generated -----------------------------------------------------------------------------------

static struct wr_trace_options trace_options(const struct wr_pool_options *options) {
    struct wr_trace_options trace = wr_trace_defaults(options->kind);
    if (options->arrivals.period_ns != 0) trace.rate = options->arrivals;
    trace.seed = options->seed;
    trace.duration_ns = options->duration_ns;
    trace.resolution_ns = 1;
    return trace;
}

static uint64_t trace_key(const struct wr_pool_options *options,
                          const struct wr_trace_event *event) {
    return options->key != NULL && strcmp(options->key, "path") == 0
               ? (uint64_t)event->page << 32 | event->item
               : event->key;
}

static bool generate(struct wr_pool_events *events, const struct wr_pool_options *options,
                     struct wr_fault *fault) {
    const struct wr_trace_options trace_of = trace_options(options);
    struct wr_trace *trace;
    struct wr_trace_event event;
    int more = 0;
    bool good = wr_trace_create(&trace, &trace_of, fault);
    if (!good) return false;
    while (good && (more = wr_trace_next(trace, &event)) > 0)
        good = add(events, trace_key(options, &event), event.time_ns - trace_of.start_ns, fault);
    wr_trace_destroy(trace);
    if (more < 0) return wr_fault(fault, "no memory to make up events");
    return good;
}

// From a log ----------------------------------------------------------------------------------

struct log {
    struct wr_pool_events *events;
    const struct wr_pool_options *options;
    struct wr_reader *reader;
    struct wr_lines *lines;
    bool begun;
    int64_t first_ns;
};

// When it arrives: at the log's own pace, or faster. Time does not go back.
static uint64_t due_of(struct log *log, int64_t time_ns) {
    const struct wr_pool_events *events = log->events;
    const uint64_t last = events->count > 0 ? events->all[events->count - 1].due_ns : 0;
    int64_t since = 0;
    if (!log->begun) log->first_ns = time_ns;
    log->begun = true;
    if (__builtin_sub_overflow(time_ns, log->first_ns, &since)) since = time_ns < 0 ? 0 : INT64_MAX;
    const uint64_t due = since < 0 ? 0 : (uint64_t)since / log->options->speed;
    return due > last ? due : last;
}

enum step { GO_ON, ENOUGH, FAILED };

static enum step take_record(struct log *log, const struct wr_record *record,
                             struct wr_fault *fault) {
    const uint64_t due_ns = due_of(log, record->time_ns);
    const uint64_t key = XXH3_64bits(record->key.data, record->key.length);
    if (due_ns >= log->options->duration_ns) return ENOUGH;
    return add(log->events, key, due_ns, fault) ? GO_ON : FAILED;
}

static enum step take_line(struct log *log, struct wr_text line, struct wr_fault *fault) {
    struct wr_record record;
    struct wr_fault why;
    const uint64_t number = wr_lines_number(log->lines);
    log->events->lines++;
    switch (wr_reader_read(log->reader, line, &record, &why)) {
    case WR_READ_RECORD: return take_record(log, &record, fault);
    case WR_READ_SKIPPED: wr_skips_add(&log->events->skips, 0, number, why.text); return GO_ON;
    case WR_READ_NOTHING: return GO_ON;
    default:
        wr_fault(fault, "%.200s:%" PRIu64 ": %.420s",
                 wr_source_name(wr_lines_source(log->lines)), number, why.text);
        return FAILED;
    }
}

// ENOUGH before the end of the log.
static enum step take_lines(struct log *log, struct wr_fault *fault) {
    struct wr_text line;
    enum step step = GO_ON;
    while (step == GO_ON) {
        switch (wr_lines_next(log->lines, &line, &log->events->broke_off)) {
        case WR_LINE_END: log->events->ended_early = true; return GO_ON;
        case WR_LINE_BROKEN: return GO_ON;
        case WR_LINE_TOO_LONG:
            wr_skips_add(&log->events->skips, 0, wr_lines_number(log->lines),
                         "a line of more than 1 MiB");
            break;
        default: step = take_line(log, line, fault);
        }
    }
    return step;
}

static bool refuse_nothing(const struct log *log, struct wr_fault *fault) {
    const struct wr_skips *skips = &log->events->skips;
    const char *name = wr_source_name(wr_lines_source(log->lines));
    if (log->events->broke_off.text[0] != '\0')
        return wr_fault(fault, "%.600s", log->events->broke_off.text);
    if (skips->count > 0)
        return wr_fault(fault, "%.200s:%" PRIu64 ": %.300s (no line could be read)", name,
                        skips->first[0].line, skips->first[0].reason);
    return wr_fault(fault, "%.200s: has no events; check which file it should be", name);
}

static bool read_log(struct wr_pool_events *events, const struct wr_pool_options *options,
                     struct wr_fault *fault) {
    struct log log = {.events = events, .options = options};
    const struct wr_reader_options reader = {.key = options->key};
    bool good = wr_reader_create(&log.reader, &reader, fault) &&
                wr_lines_open(&log.lines, options->file, fault);
    if (good) {
        wr_reader_begin(log.reader);
        good = take_lines(&log, fault) != FAILED &&
               (events->count > 0 || refuse_nothing(&log, fault));
    }
    if (log.lines != NULL) wr_lines_close(log.lines);
    wr_reader_destroy(log.reader);
    return good;
}

bool wr_pool_events_init(struct wr_pool_events *events, const struct wr_pool_options *options,
                         struct wr_fault *fault) {
    *events = (struct wr_pool_events){.all = NULL};
    return options->file != NULL ? read_log(events, options, fault)
                                 : generate(events, options, fault);
}

void wr_pool_events_fini(struct wr_pool_events *events) {
    free(events->all);
}

void wr_pool_events_reset(struct wr_pool_events *events) {
    for (size_t i = 0; i < events->count; i++) {
        struct wr_pool_event *event = &events->all[i];
        event->node = (struct weir_lot_node)WEIR_LOT_NODE_INIT;
        event->gate = event->end = event->ends = 0;
    }
}
