// summary.c - adds up the partitions, in their order: the same for any number of threads.
#include <stdlib.h>

#include "replay_parts.h"

__extension__ typedef unsigned __int128 wide;

static void add_totals(struct wr_totals *sum, const struct wr_totals *part) {
    sum->granted += part->granted;
    sum->denied += part->denied;
    sum->never += part->never;
    sum->refused += part->refused;
    sum->granted_tokens += part->granted_tokens;
    sum->denied_tokens += part->denied_tokens;
    for (int i = 0; i < WR_WAIT_COUNT; i++) sum->waits[i] += part->waits[i];
    sum->counter_granted += part->counter_granted;
    sum->counter_granted_tokens += part->counter_granted_tokens;
    sum->only_counter += part->only_counter;
    sum->only_bucket += part->only_bucket;
}

// The greater share of a key's weight; of equals the earlier.
static bool is_more(const struct wr_window_most *a, const struct wr_window_most *b) {
    wide left = (wide)a->tokens * a->weight.den * b->weight.num;
    wide right = (wide)b->tokens * b->weight.den * a->weight.num;
    return left != right ? left > right : a->tokens > 0 && a->to_ns < b->to_ns;
}

static bool add_limiter(struct wr_summary *summary, const struct wr_partition *partition,
                        struct wr_fault *fault) {
    struct weir_stats stats;
    int result = weir_stats(partition->limiter, &stats, sizeof(stats));
    if (result != WEIR_GRANTED) return wr_fault(fault, "%s", weir_strerror(result));
    summary->displaced += stats.displaced;
    summary->forgiven_tokens += stats.forgiven_tokens;
    summary->memory_bytes += stats.memory_bytes;
    return true;
}

static void add_windows(struct wr_summary *summary, const struct wr_partition *partition) {
    if (is_more(&partition->window.most, &summary->most)) {
        summary->most = partition->window.most;
        summary->most_key = partition->window_key;
    }
    summary->most_cut |= partition->window.cut;
    if (!partition->options.compare) return;
    if (is_more(&partition->counters_window.most, &summary->counter_most))
        summary->counter_most = partition->counters_window.most;
    summary->counter_most_cut |= partition->counters_window.cut;
    if (partition->counters.worst.excess <= summary->worst.excess) return;
    summary->worst = partition->counters.worst;
    summary->worst_allowed = wr_fixed_window_allowed(&partition->counters);
    summary->worst_key = partition->worst_key;
}

// Keeps the list sorted, and at most options.top long.
static void add_top(struct wr_replay *replay, struct wr_summary *summary,
                    const struct wr_key_count *key) {
    uint32_t place = summary->top_count;
    uint32_t room = replay->options.top;
    while (place > 0 && wr_key_count_compare(key, replay->top[place - 1]) < 0) place--;
    if (place == room) return;
    if (summary->top_count < room) summary->top_count++;
    for (uint32_t i = summary->top_count - 1; i > place; i--) replay->top[i] = replay->top[i - 1];
    replay->top[place] = key;
}

static void add_keys(struct wr_replay *replay, struct wr_summary *summary,
                     const struct wr_keys *keys) {
    summary->keys += wr_keys_seen(keys);
    if (keys->forgot) summary->keys_exact = false;
    if (keys->short_by > summary->top_short_by) summary->top_short_by = keys->short_by;
    for (uint32_t i = 0; i < keys->room; i++)
        if (keys->counts[i].name != NULL && keys->counts[i].denied > 0)
            add_top(replay, summary, &keys->counts[i]);
}

// burst + rate * period, and what one nanosecond of the rate makes (it is how much too early a
// token may come), by the key's weight.
static uint64_t bound_of(const struct wr_replay_options *options, struct weir_weight weight) {
    wide tokens = (wide)options->burst + options->rate.tokens +
                  options->rate.tokens / options->rate.period_ns;
    wide bound = tokens * weight.num / weight.den;
    return bound < UINT64_MAX ? (uint64_t)bound : UINT64_MAX;
}

static void merge_timelines(struct wr_replay *replay, struct wr_summary *summary) {
    summary->timeline = replay->partitions[0].timeline;
    if (summary->timeline == NULL) return;
    for (uint32_t i = 1; i < replay->partition_count; i++)
        wr_timeline_merge(summary->timeline, replay->partitions[i].timeline);
}

static void describe(struct wr_replay *replay, struct wr_summary *summary) {
    *summary = (struct wr_summary){
        .options = replay->options,
        .format = replay->format,
        .key = wr_reader_key(replay->reader),
        .files = replay->files,
        .file_names = replay->file_names,
        .lines = replay->lines,
        .events = replay->events,
        .skips = &replay->skips,
        .late = replay->late,
        .late_most_ns = replay->late_most_ns,
        .oldest_ns = replay->oldest_ns,
        .newest_ns = replay->newest_ns,
        .keys_exact = true,
        .base_ns = replay->base_ns,
        .elapsed_ns = wr_progress_elapsed_ns(&replay->progress),
    };
    summary->most.weight = summary->counter_most.weight = (struct weir_weight){1, 1};
}

bool wr_replay_summarise(struct wr_replay *replay, struct wr_summary *summary,
                         struct wr_fault *fault) {
    describe(replay, summary);
    replay->top = calloc((size_t)replay->options.top + 1, sizeof(*replay->top));
    if (replay->top == NULL) return wr_fault(fault, "no memory");
    for (uint32_t i = 0; i < replay->partition_count; i++) {
        const struct wr_partition *partition = &replay->partitions[i];
        if (!add_limiter(summary, partition, fault)) return false;
        add_totals(&summary->totals, &partition->totals);
        add_windows(summary, partition);
        add_keys(replay, summary, &partition->keys);
    }
    summary->top = replay->top;
    summary->most_bound = bound_of(&replay->options, summary->most.weight);
    merge_timelines(replay, summary);
    return true;
}
