// The harness of the benchmarks: what a row is, how rows come into the program, and its settings.
//
// A row is a name, a setup, a run that does its work `iterations` times in each of some threads,
// and a teardown. harness.cc hands the rows to Google Benchmark, which finds the number of
// iterations, repeats and interleaves them. Names read `take/keys:1M/uniform/threads:2`; the thread
// part is added by the harness, for each of the thread counts asked for.
//
// A file of rows ends with BENCH_ROWS(function); linking it is all that adds them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_LIST_MAX 16
#define BENCH_THREADS_MAX 256
#define BENCH_NAME_BYTES 96

struct bench_settings {
    bool quick; // small tables, short runs: shows that the rows run, measures nothing
    unsigned threads[BENCH_LIST_MAX];
    size_t thread_counts;
    uint64_t keys[BENCH_LIST_MAX];
    size_t key_counts;
    const char *redis_socket; // NULL: no rows for Redis
    const char *json;         // NULL: no file
};

struct bench_row {
    char name[BENCH_NAME_BYTES];
    bool one_thread;     // only at one thread, whatever thread counts were asked for
    const void *subject; // what setup and run need to know: theirs to interpret
    const void *detail;
    uint64_t size;
    // Called by one thread before the others start; returns the state that they share. A setup that
    // is called again (Google Benchmark looks for the number of iterations) may return the same.
    void *(*setup)(const struct bench_row *row, unsigned threads);
    // The measured part. Returns how many of its results were not what the row is about: a row that
    // is to be granted and is denied measures something else, and is reported as an error.
    uint64_t (*run)(const struct bench_row *row, void *state, uint64_t iterations,
                    unsigned thread);
    void (*teardown)(const struct bench_row *row, void *state); // NULL: the state is kept
};

// Adds a copy of a row.
void bench_add(const struct bench_row *row);

// Called for each file of rows once the settings are known.
typedef void bench_rows_function(const struct bench_settings *settings);
void bench_add_rows(bench_rows_function *rows);

#define BENCH_ROWS(rows)                                                                           \
    __attribute__((constructor)) static void add_##rows(void) {                                    \
        bench_add_rows(rows);                                                                      \
    }

// Puts a number beside the row that is being set up or torn down ("rss_after_mib").
void bench_report(const char *name, double value);

// Makes the compiler believe that a value is used.
static inline void bench_keep(uint64_t value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}

// For harness.cc.
struct bench_reported {
    const char *name;
    double value;
};
size_t bench_take_reports(struct bench_reported reports[BENCH_LIST_MAX]);
int bench_measure(const struct bench_row *rows, size_t row_count,
                  const struct bench_settings *settings, int argc, char **argv);

#ifdef __cplusplus
}
#endif
