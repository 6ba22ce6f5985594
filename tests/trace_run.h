// trace_run.h - a whole trace in memory, as events and as a file.
#ifndef WR_TEST_TRACE_RUN_H
#define WR_TEST_TRACE_RUN_H

#include <stdlib.h>

#include "cli/trace.h"
#include "cli/trace_text.h"

#define MAX_EVENTS 200000

struct run {
    struct wr_trace_event *events;
    size_t count;
};

static inline struct run run_trace(const struct wr_trace_options *options) {
    struct run run = {calloc(MAX_EVENTS, sizeof(struct wr_trace_event)), 0};
    struct wr_fault fault = {""};
    struct wr_trace *trace = NULL;
    struct wr_trace_event event;
    int result;
    assert_non_null(run.events);
    if (!wr_trace_create(&trace, options, &fault)) fail_msg("refused: %s", fault.text);
    while ((result = wr_trace_next(trace, &event)) > 0) {
        assert_true(run.count < MAX_EVENTS);
        run.events[run.count++] = event;
    }
    assert_int_equal(result, 0);
    assert_int_equal(wr_trace_next(trace, &event), 0);
    wr_trace_destroy(trace);
    return run;
}

// The trace as a file; the caller frees it.
static inline char *text_of(const struct wr_trace_options *options, enum wr_trace_format format,
                            size_t *length) {
    struct run run = run_trace(options);
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    assert_non_null(out);
    wr_trace_write_header(out, format);
    for (size_t i = 0; i < run.count; i++)
        wr_trace_write(out, format, options->resolution_ns, &run.events[i]);
    assert_int_equal(fclose(out), 0);
    free(run.events);
    return text;
}

#endif
