// What weir's memory is: bytes a declared key, the fixed part, the share of keys that find no room,
// and whether never-seen keys make it grow. Prints each beside its bound and says pass or miss.
//
//   memory [--quick] [--keys 1M] [--churn 100M] [--json FILE]
// Each figure is taken in a child process of its own, so that none sees what another left behind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keys.h"
#include "malloc_count.h"
#include "mutex_table.h"
#include "resident.h"
#include "text.h"
#include "weir.h"

#define SLOT_BYTES_A_KEY 32
#define FIXED_BYTES 65536
#define FIXED_BYTES_A_SHARD 8192
#define HUGE_BYTES (UINT64_C(2) << 20)
#define NO_ROOM_ONE_IN 50000
#define FLAT_BYTES 65536 // what a process may grow by for reasons of its own: a page of stack, say

struct figures {
    uint64_t keys;
    uint64_t churn_keys;
    uint64_t tables; // filled to their capacity, to see which keys find no room
    uint64_t probes; // keys asked about in a full table
    // Taken:
    uint64_t asked_bytes; // the whole limiter, as weir_stats tells it
    uint32_t shards;
    uint64_t resident_bytes; // over the process before
    uint64_t huge_bytes;
    uint64_t mutex_bytes;
    uint64_t fill_no_room;
    uint64_t full_no_room;
    uint64_t churn_bytes;
    uint64_t churn_mallocs;
    bool mallocs_known;
};

// Busy for days after one ask.
static const struct weir_limit slow = {1, WEIR_DAY, 10};

static struct weir *create(uint64_t keys, enum weir_full_policy policy) {
    struct weir *limiter;
    struct weir_error error;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = slow;
    options.capacity_keys = keys;
    options.full_policy = policy;
    if (weir_create(&limiter, &options, &error) != WEIR_GRANTED) bench_fail("%s", error.text);
    return limiter;
}

static int take_fresh(struct weir *limiter, struct bench_fresh *fresh) {
    return weir_take(limiter, weir_bytes(bench_fresh_next(fresh), BENCH_FRESH_LENGTH), 1, NULL);
}

static uint64_t fill(struct weir *limiter, struct bench_fresh *fresh, uint64_t keys) {
    uint64_t no_room = 0;
    for (uint64_t i = 0; i < keys; i++) no_room += take_fresh(limiter, fresh) == WEIR_NO_ROOM;
    return no_room;
}

static uint64_t grown(uint64_t before, uint64_t after) {
    return after > before ? after - before : 0;
}

// A small limiter first: it brings in the pages of code and libraries, which are not weir's memory.
static void take_size(struct figures *f) {
    struct bench_resident before, after;
    struct bench_fresh *fresh = bench_freshes(1);
    struct weir *small = create(1, WEIR_FULL_DISPLACE);
    fill(small, fresh, 100);
    weir_destroy(small);
    bench_resident_read(&before);
    if (!bench_resident_read(&before)) bench_fail("no /proc/self/smaps_rollup to read");
    struct weir *limiter = create(f->keys, WEIR_FULL_DISPLACE);
    fill(limiter, fresh, f->keys);
    bench_resident_read(&after);
    struct weir_stats stats;
    if (weir_stats(limiter, &stats, sizeof stats) != WEIR_GRANTED) bench_fail("weir_stats");
    f->asked_bytes = stats.memory_bytes;
    f->shards = stats.shards;
    f->resident_bytes = grown(before.bytes, after.bytes);
    f->huge_bytes = grown(before.huge_bytes, after.huge_bytes);
    weir_destroy(limiter);
}

static void take_mutex_size(struct figures *f) {
    struct bench_resident before = {0}, after = {0};
    struct bench_key key;
    bench_resident_read(&before);
    struct mutex_table *table = mutex_table_create(1, 10);
    if (table == NULL) bench_fail("no memory for the mutex table");
    for (uint64_t i = 0; i < f->keys; i++) {
        bench_key_format(&key, i);
        mutex_table_take(table, key.text, key.length, 1);
    }
    bench_resident_read(&after);
    f->mutex_bytes = grown(before.bytes, after.bytes);
    mutex_table_destroy(table);
}

// Random keys until as many are busy as were declared. A table of its own has a hash of its own.
static void take_fill(struct figures *f) {
    struct bench_fresh *fresh = bench_freshes(1);
    for (uint64_t i = 0; i < f->tables; i++) {
        struct weir *limiter = create(f->keys, WEIR_FULL_DENY);
        f->fill_no_room += fill(limiter, fresh, f->keys);
        weir_destroy(limiter);
    }
}

// A full table, and one random key more at a time: each that finds room is reset, so that its place
// is free for the next.
static void take_full(struct figures *f) {
    struct weir *limiter = create(f->keys, WEIR_FULL_DENY);
    struct bench_fresh *fresh = bench_freshes(1);
    fill(limiter, fresh, f->keys);
    for (uint64_t i = 0; i < f->probes; i++) {
        if (take_fresh(limiter, fresh) == WEIR_NO_ROOM) f->full_no_room++;
        else weir_reset(limiter, weir_bytes(fresh->text, BENCH_FRESH_LENGTH));
    }
    weir_destroy(limiter);
}

// Reading the resident memory allocates, so the calls of malloc are counted between the readings.
static void take_churn(struct figures *f) {
    struct bench_resident before = {0}, after = {0};
    uint64_t mallocs_before, mallocs_after;
    struct weir *limiter = create(f->keys, WEIR_FULL_DISPLACE);
    struct bench_fresh *fresh = bench_freshes(1);
    fill(limiter, fresh, 4 * f->keys); // each place has been taken
    bench_resident_read(&before); // the first reading brings in code of its own
    bench_resident_read(&before);
    f->mallocs_known = bench_malloc_count(&mallocs_before);
    fill(limiter, fresh, f->churn_keys);
    bench_malloc_count(&mallocs_after);
    bench_resident_read(&after);
    f->churn_mallocs = mallocs_after - mallocs_before;
    f->churn_bytes = grown(before.bytes, after.bytes);
    weir_destroy(limiter);
}

// Runs `take` in a child, which writes its figures into memory shared with this process.
static void in_child(void (*take)(struct figures *f), struct figures *shared) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) bench_fail("cannot fork");
    if (child == 0) {
        take(shared);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        bench_fail("a measurement ended with status %d", status);
}

struct output {
    FILE *json;
    const char *comma;
};

// One line: what, figure, bound, verdict.
static void say(struct output *out, const char *name, double figure, double bound,
                const char *unit, bool known) {
    const char *verdict = !known ? "not known" : figure <= bound ? "pass" : "miss";
    printf("%-28s %16.6g  at most %16.6g %-14s %s\n", name, figure, bound, unit, verdict);
    if (out->json == NULL) return;
    fprintf(out->json, "%s\n  \"%s\": {\"figure\": %.17g, \"bound\": %.17g, \"unit\": \"%s\", "
                       "\"verdict\": \"%s\"}",
            out->comma, name, figure, bound, unit, verdict);
    out->comma = ",";
}

// A figure that has no bound of its own.
static void tell(struct output *out, const char *name, double figure, const char *unit) {
    printf("%-28s %16.6g  %-25s %s\n", name, figure, "", unit);
    if (out->json == NULL) return;
    fprintf(out->json, "%s\n  \"%s\": {\"figure\": %.17g, \"unit\": \"%s\"}", out->comma, name,
            figure, unit);
    out->comma = ",";
}

static void say_all(struct output *out, const struct figures *f) {
    const double keys = (double)f->keys;
    const double slots = SLOT_BYTES_A_KEY * keys;
    const double fixed = (double)f->asked_bytes - slots;
    const double huge = f->huge_bytes != 0 ? (double)HUGE_BYTES : 0;
    tell(out, "keys", keys, "declared keys");
    tell(out, "shards", f->shards, "shards");
    tell(out, "asked_bytes_a_key", (double)f->asked_bytes / keys, "bytes");
    say(out, "fixed_part_bytes", fixed, FIXED_BYTES + FIXED_BYTES_A_SHARD * (double)f->shards,
        "bytes", true);
    tell(out, "resident_bytes_a_key", (double)f->resident_bytes / keys, "bytes");
    say(out, "resident_bytes", (double)f->resident_bytes,
        slots + (fixed > 0 ? fixed : 0) + huge, "bytes", true);
    tell(out, "huge_page_bytes", (double)f->huge_bytes, "bytes");
    say(out, "no_room_ppm", (double)f->fill_no_room / (double)f->tables / keys * 1e6,
        1e6 / NO_ROOM_ONE_IN, "in 1,000,000", true);
    tell(out, "no_room_keys", (double)f->tables * keys, "keys asked about");
    tell(out, "one_more_no_room_ppm", (double)f->full_no_room / (double)f->probes * 1e6,
         "in 1,000,000, in a full table");
    tell(out, "churn_keys", (double)f->churn_keys, "keys");
    say(out, "churn_grown_bytes", (double)f->churn_bytes, FLAT_BYTES, "bytes", true);
    say(out, "churn_mallocs", (double)f->churn_mallocs, 0, "calls", f->mallocs_known);
    tell(out, "mutex_resident_bytes_a_key", (double)f->mutex_bytes / keys, "bytes");
}

static void write_all(const struct figures *f, const char *json) {
    struct output out = {NULL, ""};
    if (json != NULL && (out.json = fopen(json, "we")) == NULL)
        bench_fail("cannot write %s", json);
    if (out.json != NULL) fputs("{", out.json);
    say_all(&out, f);
    if (out.json == NULL) return;
    fputs("\n}\n", out.json);
    if (fclose(out.json) != 0) bench_fail("cannot write %s", json);
}

int main(int argc, char **argv) {
    struct figures *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    if (f == MAP_FAILED) bench_fail("no memory");
    *f = (struct figures){.keys = 1000000, .churn_keys = 100000000, .tables = 10,
                          .probes = 1000000};
    const char *json = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            *f = (struct figures){.keys = 100000, .churn_keys = 400000, .tables = 2,
                                  .probes = 100000};
        } else if (strcmp(argv[i], "--keys") == 0) {
            f->keys = bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--churn") == 0) {
            f->churn_keys = bench_option_count(argc, argv, &i);
        } else if (strcmp(argv[i], "--json") == 0) {
            json = bench_option_text(argc, argv, &i);
        } else {
            const bool help = strcmp(argv[i], "--help") == 0;
            fprintf(help ? stdout : stderr,
                    "usage: memory [--quick] [--keys 1M] [--churn 100M] [--json FILE]\n");
            return help ? 0 : 2;
        }
    }
    in_child(take_size, f);
    in_child(take_mutex_size, f);
    in_child(take_fill, f);
    in_child(take_full, f);
    in_child(take_churn, f);
    write_all(f, json);
    return 0;
}
