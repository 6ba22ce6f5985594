// partition.c - each event to the limiter, then to those who count.
#include "partition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// For a rate of 0 or without limit: leaves room for a burst of 10^12, and for all small weights.
#define SPARE_RATE_TOKENS 1000

static bool create_limiter(struct wr_partition *partition, struct wr_fault *fault) {
    const struct wr_partition_options *options = &partition->options;
    struct weir_options limiter = WEIR_OPTIONS_INIT;
    struct weir_error error = {""};
    bool no_rate = options->rate.tokens == 0 || options->rate.tokens == WEIR_UNLIMITED_TOKENS;
    limiter.limit =
        (struct weir_limit){options->rate.tokens, options->rate.period_ns, options->burst};
    limiter.capacity_keys = options->capacity_keys;
    limiter.shards = 1;
    limiter.clock = WEIR_CLOCK_CALLER;
    limiter.max_rate_tokens = no_rate ? SPARE_RATE_TOKENS : 0;
    limiter.max_rate_period_ns = no_rate ? WEIR_SECOND : 0;
    int result = weir_create(&partition->limiter, &limiter, &error);
    if (result == WEIR_GRANTED) return true;
    partition->limiter = NULL;
    char rate[WR_UNIT_TEXT];
    wr_rate_text(&options->rate, rate);
    return wr_fault(fault, "rate %s, burst %" PRIu64 ": %s", rate, options->burst,
                    error.text[0] != '\0' ? error.text : weir_strerror(result));
}

static bool is_idle(void *context, uint32_t key) {
    struct wr_partition *partition = context;
    if (!partition->options.windows) return true;
    if (!wr_window_is_idle(&partition->window, key, partition->now_ns)) return false;
    return !partition->options.compare ||
           (wr_window_is_idle(&partition->counters_window, key, partition->now_ns) &&
            wr_fixed_window_is_idle(&partition->counters, key,
                                    partition->base_ns + partition->now_ns));
}

static void forget(void *context, uint32_t key) {
    struct wr_partition *partition = context;
    if (partition->options.windows) wr_window_forget(&partition->window, key);
    if (!partition->options.compare) return;
    wr_window_forget(&partition->counters_window, key);
    wr_fixed_window_forget(&partition->counters, key);
}

// A rate of 0 has no period: the whole log is one window.
static bool init_windows(struct wr_partition *partition) {
    const struct wr_partition_options *options = &partition->options;
    uint64_t period_ns = options->rate.tokens == 0 ? WEIR_FOREVER : options->rate.period_ns;
    uint32_t keys = options->counted_keys;
    if (!options->windows) return true;
    if (!wr_window_init(&partition->window, period_ns, keys, options->grants_max)) return false;
    if (!options->compare) return true;
    return wr_fixed_window_init(&partition->counters, &options->rate, options->burst, keys) &&
           wr_window_init(&partition->counters_window, period_ns, keys, options->grants_max);
}

static bool init_timeline(struct wr_partition *partition) {
    if (!partition->options.timeline) return true;
    partition->timeline = malloc(sizeof(*partition->timeline));
    if (partition->timeline == NULL) return false;
    wr_timeline_init(partition->timeline);
    return true;
}

bool wr_partition_init(struct wr_partition *partition, const struct wr_partition_options *options,
                       struct wr_fault *fault) {
    struct wr_keys_watcher watcher = {is_idle, forget, partition};
    memset(partition, 0, sizeof(*partition));
    partition->options = *options;
    if (!create_limiter(partition, fault)) return false;
    if (!wr_keys_init(&partition->keys, options->counted_keys, watcher) ||
        !init_windows(partition) || !init_timeline(partition))
        return wr_fault(fault, "no memory to count the keys; ask for fewer with --capacity");
    return true;
}

void wr_partition_fini(struct wr_partition *partition) {
    weir_destroy(partition->limiter);
    wr_keys_fini(&partition->keys);
    wr_window_fini(&partition->window);
    wr_window_fini(&partition->counters_window);
    wr_fixed_window_fini(&partition->counters);
    free(partition->timeline);
    memset(partition, 0, sizeof(*partition));
}

static void ask(struct wr_partition *partition, struct wr_event *event) {
    struct weir_ask question = WEIR_ASK_INIT;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    question.key = weir_bytes(event->key.data, event->key.length);
    question.cost = event->cost;
    question.weight = event->weight;
    question.now_ns = event->now_ns;
    event->result = weir_do(partition->limiter, &question, &answer);
    event->retry_after_ns = event->result == WEIR_NEVER ? WEIR_FOREVER : answer.retry_after_ns;
}

static void count(struct wr_partition *partition, const struct wr_event *event,
                  struct wr_key_count *key) {
    struct wr_totals *totals = &partition->totals;
    if (event->result == WEIR_GRANTED) {
        key->granted++;
        totals->granted++;
        totals->granted_tokens += event->cost;
        return;
    }
    key->denied++;
    totals->denied++;
    totals->denied_tokens += event->cost;
    if (event->result == WEIR_NEVER) totals->never++;
    totals->waits[wr_wait_of(event->retry_after_ns)]++;
}

static void name_it(char name[WR_KEY_NAME_BYTES + 1], const struct wr_key_count *key) {
    memcpy(name, key->name, key->name_bytes + 1);
}

static void compare(struct wr_partition *partition, const struct wr_event *event, uint32_t number) {
    struct wr_totals *totals = &partition->totals;
    bool worst;
    bool bucket = event->result == WEIR_GRANTED;
    bool counter = wr_fixed_window_take(&partition->counters, number,
                                        partition->base_ns + event->now_ns, event->cost, &worst);
    if (worst) name_it(partition->worst_key, &partition->keys.counts[number]);
    if (counter && !bucket) totals->only_counter++;
    if (bucket && !counter) totals->only_bucket++;
    if (!counter) return;
    totals->counter_granted++;
    totals->counter_granted_tokens += event->cost;
    if (event->cost == 0) return;
    wr_window_add(&partition->counters_window, number, event->now_ns, event->cost, event->weight);
}

static void count_windows(struct wr_partition *partition, const struct wr_event *event,
                          uint32_t number) {
    bool most =
        event->result == WEIR_GRANTED && event->cost > 0 &&
        wr_window_add(&partition->window, number, event->now_ns, event->cost, event->weight);
    if (most) name_it(partition->window_key, &partition->keys.counts[number]);
    if (partition->options.compare) compare(partition, event, number);
}

void wr_partition_judge(struct wr_partition *partition, struct wr_event *event) {
    partition->now_ns = event->now_ns;
    ask(partition, event);
    if (event->result == WEIR_EWEIGHT) partition->totals.refused++;
    if (event->result < 0) return;
    uint32_t number = wr_keys_claim(&partition->keys, event->hash, event->key);
    if (number == WR_KEY_NONE) {
        event->result = WEIR_ENOMEM;
        return;
    }
    count(partition, event, &partition->keys.counts[number]);
    if (partition->options.windows) count_windows(partition, event, number);
    if (partition->timeline != NULL)
        wr_timeline_add(partition->timeline, event->now_ns, event->result == WEIR_GRANTED);
}
