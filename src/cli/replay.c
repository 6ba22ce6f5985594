// replay.c - from lines to events, in chunks, to the partitions, and back in order.
#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "decisions.h"
#include "replay_parts.h"

#define PARTITIONS_MAX 64
#define PARTITION_KEYS_MIN 4096          // a partition too small displaces what the whole would not
#define COUNTED_KEYS (UINT32_C(1) << 20) // by all partitions together
#define GRANTS_REMEMBERED (UINT64_C(1) << 22)
#define SPAN_MAX_NS (INT64_C(1) << 61) // as far as a limiter's times reach
#define PREFETCH 8                     // events ahead

__extension__ typedef unsigned __int128 wide;

// ---------------------------------------------------------------------------------------------
// Out: decisions in order

static void refuse_event(struct wr_replay *replay, const struct wr_event *event) {
    char reason[256];
    snprintf(reason, sizeof(reason), "weight %" PRIu32 "/%" PRIu32 " of cost %" PRIu64 ": %s",
             event->weight.num, event->weight.den, event->cost, weir_strerror(event->result));
    wr_skips_add(&replay->skips, event->file, event->line, reason);
}

static void emit(void *context, const struct wr_chunk *chunk) {
    struct wr_replay *replay = context;
    FILE *out = replay->options.decisions;
    for (size_t i = 0; i < chunk->count && replay->failed == 0; i++) {
        const struct wr_event *event = &chunk->events[i];
        if (event->result >= 0) {
            if (out != NULL) wr_decisions_write(out, event);
            replay->events++;
        } else if (event->result == WEIR_EWEIGHT) {
            refuse_event(replay, event);
        } else {
            replay->failed = event->result;
        }
    }
    // A full disk or a closed pipe: no use going on.
    if (out != NULL && ferror(out) != 0) replay->failed = WEIR_ESYS;
}

// On a worker's thread: the events of its partitions.
static void work(void *context, struct wr_chunk *chunk, unsigned worker) {
    struct wr_replay *replay = context;
    for (size_t i = 0; i < chunk->count; i++) {
        struct wr_event *event = &chunk->events[i];
        if (i + PREFETCH < chunk->count) {
            const struct wr_event *ahead = &chunk->events[i + PREFETCH];
            wr_keys_prefetch(&replay->partitions[ahead->partition].keys, ahead->hash);
        }
        if (event->partition % replay->options.threads != worker) continue;
        wr_partition_judge(&replay->partitions[event->partition], event);
    }
}

// ---------------------------------------------------------------------------------------------
// Making

// Few for a small capacity: a key's partition is chance, and each needs room for its luck. What is
// given beyond an even share is four standard deviations of it.
static uint64_t share_of_capacity(uint64_t capacity, uint32_t partitions) {
    uint64_t even = (capacity + partitions - 1) / partitions, deviation = 1;
    if (partitions == 1) return capacity;
    while (deviation * deviation < even) deviation++;
    return even + 4 * deviation;
}

static uint32_t partitions_for(uint64_t capacity) {
    uint64_t partitions = capacity / PARTITION_KEYS_MIN;
    if (partitions < 1) return 1;
    return partitions < PARTITIONS_MAX ? (uint32_t)partitions : PARTITIONS_MAX;
}

// The largest power of two that is not above a partition's share.
static uint64_t share_of_grants(uint32_t partitions) {
    uint64_t share = GRANTS_REMEMBERED;
    while (share * partitions > GRANTS_REMEMBERED) share /= 2;
    return share;
}

static bool create_partitions(struct wr_replay *replay, struct wr_fault *fault) {
    const struct wr_replay_options *options = &replay->options;
    uint32_t count = partitions_for(options->capacity_keys);
    bool limited = options->rate.tokens != WEIR_UNLIMITED_TOKENS;
    struct wr_partition_options partition = {
        .rate = options->rate,
        .burst = limited ? options->burst : WEIR_UNLIMITED_TOKENS,
        .capacity_keys = share_of_capacity(options->capacity_keys, count),
        .counted_keys = COUNTED_KEYS / count,
        .grants_max = share_of_grants(count),
        .compare = options->compare && limited,
        .timeline = options->timeline,
        .windows = limited,
    };
    replay->partitions = calloc(count, sizeof(*replay->partitions));
    if (replay->partitions == NULL) return wr_fault(fault, "no memory");
    for (; replay->partition_count < count; replay->partition_count++)
        if (!wr_partition_init(&replay->partitions[replay->partition_count], &partition, fault)) {
            replay->partition_count++;
            return false;
        }
    return true;
}

bool wr_replay_create(struct wr_replay **replay, const struct wr_replay_options *options,
                      struct wr_fault *fault) {
    struct wr_replay *made = calloc(1, sizeof(*made));
    *replay = NULL;
    if (made == NULL) return wr_fault(fault, "no memory");
    struct wr_pipeline_calls calls = {work, emit, made};
    made->options = *options;
    if (!wr_reader_create(&made->reader, &options->reader, fault) ||
        !create_partitions(made, fault) ||
        !wr_pipeline_create(&made->pipeline, options->threads, calls, fault)) {
        wr_replay_destroy(made);
        return false;
    }
    wr_progress_init(&made->progress, options->progress);
    *replay = made;
    return true;
}

void wr_replay_destroy(struct wr_replay *replay) {
    if (replay == NULL) return;
    wr_pipeline_destroy(replay->pipeline);
    for (uint32_t i = 0; i < replay->partition_count; i++)
        wr_partition_fini(&replay->partitions[i]);
    free(replay->partitions);
    free(replay->file_names);
    free(replay->top);
    wr_reader_destroy(replay->reader);
    free(replay);
}

// ---------------------------------------------------------------------------------------------
// In: lines to events

static void begin_time(struct wr_replay *replay, int64_t time_ns) {
    replay->begun = true;
    replay->base_ns = replay->oldest_ns = replay->newest_ns = time_ns;
    for (uint32_t i = 0; i < replay->partition_count; i++) replay->partitions[i].base_ns = time_ns;
}

// Within reach of the first line; so every difference of times fits.
static bool is_within_span(const struct wr_replay *replay, int64_t time_ns) {
    int64_t distance;
    if (!replay->begun) return true;
    return !__builtin_sub_overflow(time_ns, replay->base_ns, &distance) && distance < SPAN_MAX_NS &&
           distance > -SPAN_MAX_NS;
}

static void note_time(struct wr_replay *replay, int64_t time_ns) {
    if (!replay->begun) begin_time(replay, time_ns);
    if (time_ns < replay->oldest_ns) replay->oldest_ns = time_ns;
    if (time_ns >= replay->newest_ns) {
        replay->newest_ns = time_ns;
        return;
    }
    uint64_t late_ns = (uint64_t)(replay->newest_ns - time_ns);
    if (late_ns > replay->late_most_ns) replay->late_most_ns = late_ns;
    replay->late++;
}

static void add_event(struct wr_replay *replay, uint64_t line, const struct wr_record *record) {
    struct wr_chunk *chunk = wr_pipeline_chunk(replay->pipeline);
    struct wr_event *event = &chunk->events[chunk->count];
    char *key = chunk->keys + chunk->key_bytes;
    XXH128_hash_t hash = XXH3_128bits(record->key.data, record->key.length);
    note_time(replay, record->time_ns);
    memcpy(key, record->key.data, record->key.length);
    *event = (struct wr_event){
        .time_ns = record->time_ns,
        .now_ns = replay->newest_ns - replay->base_ns,
        .key = {key, record->key.length},
        .cost = record->cost,
        .weight = record->weight,
        .hash = {hash.high64, hash.low64},
        .line = line,
        .file = replay->files - 1,
        .partition = (uint32_t)((wide)hash.high64 * replay->partition_count >> 64),
    };
    wr_pipeline_advance(replay->pipeline);
}

static bool take_line(struct wr_replay *replay, const struct wr_lines *lines, struct wr_text line,
                      struct wr_fault *fault) {
    struct wr_record record;
    struct wr_fault why;
    uint64_t number = wr_lines_number(lines);
    enum wr_read what = wr_reader_read(replay->reader, line, &record, &why);
    if (what == WR_READ_RECORD && !is_within_span(replay, record.time_ns)) {
        wr_fault(&why, "more than 73 years from the first line; correct its time");
        what = WR_READ_SKIPPED;
    }
    if (what == WR_READ_RECORD) add_event(replay, number, &record);
    if (what == WR_READ_SKIPPED) wr_skips_add(&replay->skips, replay->files - 1, number, why.text);
    if (what != WR_READ_STOP) return true;
    return wr_fault(fault, "%.200s:%" PRIu64 ": %.420s", wr_source_name(wr_lines_source(lines)),
                    number, why.text);
}

static bool check_failed(const struct wr_replay *replay, struct wr_fault *fault) {
    if (replay->failed == 0) return true;
    if (replay->failed == WEIR_ESYS)
        return wr_fault(fault, "the decisions cannot be written; is the disk full?");
    return wr_fault(fault, "the limiter failed: %s", weir_strerror(replay->failed));
}

static bool take_lines(struct wr_replay *replay, struct wr_lines *lines, struct wr_fault *fault) {
    struct wr_text line;
    for (;;) {
        enum wr_line what = wr_lines_next(lines, &line, fault);
        if (what == WR_LINE_END) return true;
        if (what == WR_LINE_BROKEN) return false;
        replay->lines++;
        if (what == WR_LINE_TOO_LONG)
            wr_skips_add(&replay->skips, replay->files - 1, wr_lines_number(lines),
                         "a line of more than 1 MiB");
        else if (!take_line(replay, lines, line, fault)) return false;
        if (replay->lines % WR_CHUNK_EVENTS != 0) continue;
        wr_progress_show(&replay->progress, replay->lines, wr_lines_source(lines));
        if (!check_failed(replay, fault)) return false;
    }
}

static bool note_file(struct wr_replay *replay, const char *name, struct wr_fault *fault) {
    const char **names = reallocarray(replay->file_names, replay->files + 1, sizeof(*names));
    if (names == NULL) return wr_fault(fault, "no memory");
    replay->file_names = names;
    names[replay->files++] = strcmp(name, "-") == 0 ? "standard input" : name;
    return true;
}

bool wr_replay_file(struct wr_replay *replay, const char *path, struct wr_fault *fault) {
    struct wr_lines *lines;
    if (!note_file(replay, path, fault) || !wr_lines_open(&lines, path, fault)) return false;
    wr_reader_begin(replay->reader);
    bool fine = take_lines(replay, lines, fault);
    if (fine && wr_lines_number(lines) == 0) replay->empty_files++;
    if (wr_reader_format(replay->reader) != NULL) replay->format = wr_reader_format(replay->reader);
    wr_progress_clear(&replay->progress);
    wr_lines_close(lines);
    return fine;
}

static bool refuse_nothing(const struct wr_replay *replay, struct wr_fault *fault) {
    const struct wr_skip *skip = &replay->skips.first[0];
    const char *name = replay->file_names[replay->skips.count > 0 ? skip->file : 0];
    if (replay->skips.count > 0)
        return wr_fault(fault, "%.200s:%" PRIu64 ": %s (no line could be read)", name, skip->line,
                        skip->reason);
    return wr_fault(fault, "%.200s: %s; there is nothing to replay: check which file it should be",
                    name, replay->empty_files > 0 ? "is empty" : "has no records");
}

bool wr_replay_finish(struct wr_replay *replay, struct wr_fault *fault) {
    wr_pipeline_drain(replay->pipeline);
    if (!check_failed(replay, fault)) return false;
    return replay->events > 0 || refuse_nothing(replay, fault);
}
