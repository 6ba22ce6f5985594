// Making a sync, and all syncs of the process: a fork leaves them in the child as they are, marked.
//
// R1 is defined in sync.h.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "drive.h"
#include "say.h"

#define MS UINT64_C(1000000)

// Forks. All locks are taken before a fork and made anew in the child, where no thread runs.

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_sync *all;

static void init_waiting(struct weir_sync *sync) {
    pthread_condattr_t by_monotonic;
    pthread_mutex_init(&sync->lock, NULL);
    pthread_condattr_init(&by_monotonic);
    pthread_condattr_setclock(&by_monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sync->changed, &by_monotonic);
    pthread_condattr_destroy(&by_monotonic);
}

static void before_fork(void) {
    pthread_mutex_lock(&all_lock);
    for (struct weir_sync *sync = all; sync != NULL; sync = sync->next)
        pthread_mutex_lock(&sync->lock);
}

static void in_parent(void) {
    for (struct weir_sync *sync = all; sync != NULL; sync = sync->next)
        pthread_mutex_unlock(&sync->lock);
    pthread_mutex_unlock(&all_lock);
}

static void in_child(void) {
    for (struct weir_sync *sync = all; sync != NULL; sync = sync->next) {
        init_waiting(sync);
        atomic_store_explicit(&sync->forked, true, memory_order_relaxed); // R1
        sync->started = false;
        sync->joining = false;
        sync->flush = (struct wr_flush){0};
        for (uint32_t i = 0; i < sync->groups_count; i++) wr_conn_abandon(sync->groups[i].conn);
        wr_drives_forked(sync);
    }
    pthread_mutex_init(&all_lock, NULL);
}

static void watch_forks(void) {
    (void)pthread_atfork(before_fork, in_parent, in_child);
}

static void enlist(struct weir_sync *sync) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&all_lock);
    sync->next = all;
    all = sync;
    pthread_mutex_unlock(&all_lock);
}

void wr_syncs_lock(void) {
    pthread_mutex_lock(&all_lock);
}

void wr_syncs_unlock(void) {
    pthread_mutex_unlock(&all_lock);
}

// A strict limiter's place in its sync can be read without that sync's lock, and a sync leaves
// this list before it is freed.
bool wr_syncs_have(const struct weir *limiter) {
    const struct weir_sync *sync = all;
    while (sync != NULL && wr_drive_find(sync, limiter) == NULL) sync = sync->next;
    return sync != NULL || weir_private_side_bytes(limiter) != 0;
}

void wr_sync_delist(struct weir_sync *sync) {
    pthread_mutex_lock(&all_lock);
    struct weir_sync **at = &all;
    while (*at != sync) at = &(*at)->next;
    *at = sync->next;
    pthread_mutex_unlock(&all_lock);
}

// Options.

static bool in_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                     const char *unit, struct weir_error *error) {
    if (value >= least && value <= most) return true;
    wr_sync_say(error, "%s is %llu; it must be from %llu to %llu%s", name,
                (unsigned long long)value, (unsigned long long)least, (unsigned long long)most,
                unit);
    return false;
}

static bool check_name(const char *what, const char *name, char *copy, struct weir_error *error) {
    if (!wr_wire_prefix_ok(name)) {
        wr_sync_say(error,
                    "the %s '%.80s' must be 1 to 64 printable characters without braces or "
                    "space",
                    what, name);
        return false;
    }
    strcpy(copy, name);
    return true;
}

static bool draw(void *bytes, size_t count) {
    return getrandom(bytes, count, 0) == (ssize_t)count;
}

static bool set_names(struct weir_sync *sync, const struct weir_sync_options *o,
                      struct weir_error *error) {
    uint64_t id = 0;
    if (!check_name("prefix", o->prefix != NULL ? o->prefix : "weir:", sync->prefix, error))
        return false;
    if (o->node != NULL) return check_name("node", o->node, sync->node, error);
    if (!draw(&id, sizeof id)) id = (uint64_t)wr_sync_now_us() << 20 ^ (uint64_t)getpid();
    (void)snprintf(sync->node, sizeof sync->node, "%016llx", (unsigned long long)id);
    return true;
}

static uint64_t or_usual(uint64_t value, uint64_t usual) {
    return value != 0 ? value : usual;
}

static uint64_t at_least(uint64_t value, uint64_t least) {
    return value > least ? value : least;
}

static bool set_times(struct weir_sync *sync, const struct weir_sync_options *o,
                      struct weir_error *error) {
    const uint64_t d = or_usual(o->interval_ns, 100 * MS);
    const uint64_t epoch = or_usual(o->epoch_ns, at_least(4 * d, 1000 * MS));
    const uint64_t answer = or_usual(o->answer_timeout_ns, at_least(2 * d, 250 * MS));
    const uint64_t connect = or_usual(o->connect_timeout_ns, 1000 * MS);
    if (!in_range("interval_ns", d, 5 * MS, 60000 * MS, " (5 ms to 60 s)", error) ||
        !in_range("epoch_ns", epoch, 200 * MS, 3600000 * MS, " (200 ms to 1 h)", error) ||
        !in_range("answer_timeout_ns", answer, MS, 600000 * MS, " (1 ms to 10 min)", error) ||
        !in_range("connect_timeout_ns", connect, MS, 600000 * MS, " (1 ms to 10 min)", error))
        return false;
    sync->rules.interval_us = (int64_t)(d / 1000);
    sync->rules.epoch_us = (int64_t)(epoch / 1000);
    sync->answer_timeout_us = (int64_t)(answer / 1000);
    sync->connect_timeout_us = (int64_t)(connect / 1000);
    // A report is given up after half of this: some attempts, each of them with all its patience.
    const uint64_t life = at_least(600000 * MS, at_least(2 * epoch, 20 * answer));
    sync->marker_ttl_us = (int64_t)(life / 1000);
    sync->forget_us = (int64_t)(at_least(60000 * MS, 2 * epoch) / 1000);
    return true;
}

static bool set_rules(struct weir_sync *sync, const struct weir_sync_options *o,
                      struct weir_error *error) {
    static const enum wr_node_policy policies[] = {WR_NODE_LOCAL_SHARE, WR_NODE_OPEN,
                                                   WR_NODE_CLOSED};
    if (!in_range("outage", o->outage, 0, 2, " (of enum weir_sync_outage)", error) ||
        !in_range("groups", o->groups, 0, WR_SYNC_GROUPS_MAX, "", error))
        return false;
    if (o->names != 0 && !in_range("names", o->names, 64, 1 << 20, "", error)) return false;
    sync->rules.policy = policies[o->outage];
    sync->rules.expected_nodes = o->expected_nodes;
    sync->rules.hot_memory_us = 60000000;
    sync->rules.share_span_us = 10000000;
    sync->groups_count = o->groups != 0 ? o->groups : 1;
    sync->names = o->names != 0 ? o->names : 4096;
    return true;
}

static bool set_options(struct weir_sync *sync, const struct weir_sync_options *o,
                        struct weir_error *error) {
    return wr_url_parse(o->url, &sync->url, error) && set_names(sync, o, error) &&
           set_times(sync, o, error) && set_rules(sync, o, error);
}

static int set_up(struct weir_sync *sync, struct weir_error *error) {
    sync->groups = calloc(sync->groups_count, sizeof *sync->groups);
    if (sync->groups == NULL) {
        wr_sync_say(error, "no memory for the sync");
        return WEIR_ENOMEM;
    }
    sync->fds = calloc(1 + sync->groups_count, sizeof *sync->fds);
    if (sync->fds == NULL) {
        free(sync->groups);
        wr_sync_say(error, "no memory for the sync");
        return WEIR_ENOMEM;
    }
    sync->fds_room = 1 + sync->groups_count;
    sync->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (sync->wake < 0) {
        wr_sync_say(error, "no eventfd for the sync: %s", strerror(errno));
        free(sync->fds);
        free(sync->groups);
        return WEIR_ESYS;
    }
    if (!draw(&sync->random, sizeof sync->random) || sync->random == 0)
        sync->random = (uint64_t)wr_sync_now_us() | 1;
    for (uint32_t i = 0; i < sync->groups_count; i++)
        wr_group_init(&sync->groups[i], sync, i, wr_sync_now_us());
    sync->ids = 1;
    sync->last_error_us = INT64_MIN;
    init_waiting(sync);
    enlist(sync);
    return WEIR_GRANTED;
}

int weir_sync_create(struct weir_sync **made, const struct weir_sync_options *options,
                     struct weir_error *error) {
    static const struct weir_sync_options usual = WEIR_SYNC_OPTIONS_INIT;
    if (made == NULL) {
        wr_sync_say(error, "sync must not be NULL");
        return WEIR_EINVAL;
    }
    *made = NULL;
    if (options == NULL) options = &usual;
    if (options->size != sizeof *options) {
        wr_sync_say(error, "options.size is unknown; initialise it with WEIR_SYNC_OPTIONS_INIT");
        return WEIR_ESIZE;
    }
    struct weir_sync *sync = calloc(1, sizeof *sync);
    if (sync == NULL) {
        wr_sync_say(error, "no memory for the sync");
        return WEIR_ENOMEM;
    }
    const int result = set_options(sync, options, error) ? set_up(sync, error) : WEIR_EINVAL;
    if (result == WEIR_GRANTED) *made = sync;
    else free(sync);
    return result;
}
