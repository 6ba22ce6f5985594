// Starting and stopping a sync, and putting limiters under it.
//
// P1 and R1 are defined in sync.h.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"
#include "say.h"

static bool is_forked(const struct weir_sync *sync) {
    return atomic_load_explicit(&sync->forked, memory_order_relaxed); // R1
}

static int64_t until_us(uint64_t timeout_ns) {
    const int64_t most_us = INT64_C(1) << 52;
    const uint64_t timeout_us = timeout_ns / 1000;
    return wr_sync_now_us() + (timeout_us < (uint64_t)most_us ? (int64_t)timeout_us : most_us);
}

// False: the time has come.
static bool wait_until(struct weir_sync *sync, int64_t us) {
    const struct timespec until = {us / 1000000, us % 1000000 * 1000};
    return wr_sync_now_us() < us &&
           (pthread_cond_timedwait(&sync->changed, &sync->lock, &until), true);
}

// Asks the thread to report all that was granted before this call, and waits. True: it was.
static bool flush(struct weir_sync *sync, struct wr_member *member, int64_t us) {
    while (sync->flush.asked)
        if (!wait_until(sync, us)) return false;
    sync->flush = (struct wr_flush){.member = member, .asked = true};
    wr_sync_wake(sync);
    while (!sync->flush.done && sync->started)
        if (!wait_until(sync, us)) break;
    const bool done = sync->flush.done;
    sync->flush = (struct wr_flush){0};
    pthread_cond_broadcast(&sync->changed);
    return done;
}

// Starting and stopping.

static int launch(struct weir_sync *sync, struct weir_error *error) {
    sigset_t all, before; // the program's signals are for its own threads
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sync->stopping = false;
    const int code = pthread_create(&sync->thread, NULL, wr_sync_run, sync);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        wr_sync_say(error, "the system gave no thread for the sync: %s", strerror(code));
        return WEIR_ESYS;
    }
    (void)pthread_setname_np(sync->thread, "weir-sync");
    sync->started = true;
    wr_drives_open(sync);
    return WEIR_GRANTED;
}

int weir_sync_start(struct weir_sync *sync, struct weir_error *error) {
    int result = WEIR_GRANTED;
    if (is_forked(sync)) {
        wr_sync_say(error,
                    "this process is a fork of the one that made the sync, and would report as "
                    "its parent; make a new sync here");
        return WEIR_ECLOSED;
    }
    pthread_mutex_lock(&sync->lock);
    while (sync->joining) pthread_cond_wait(&sync->changed, &sync->lock);
    if (!sync->started) result = launch(sync, error);
    pthread_mutex_unlock(&sync->lock);
    return result;
}

// With the lock, which is left meanwhile. Until `leave_us` the thread may wait for Redis.
static void end_thread(struct weir_sync *sync, int64_t leave_us) {
    sync->leave_us = leave_us;
    sync->joining = true;
    sync->stopping = true;
    wr_sync_wake(sync);
    pthread_mutex_unlock(&sync->lock);
    pthread_join(sync->thread, NULL);
    pthread_mutex_lock(&sync->lock);
    sync->started = false;
    sync->joining = false;
    pthread_cond_broadcast(&sync->changed);
}

// All that was granted is charged, but for what is lost already. After a flush what keys hold was
// granted since.
static bool is_settled(const struct weir_sync *sync, bool flushed) {
    uint64_t left = 0;
    for (struct wr_member *m = sync->members; m != NULL; m = m->next) {
        if (m->weir != NULL) left += wr_member_unreported_units(m, !flushed);
        left += m->pending_units;
    }
    return left == 0;
}

int weir_sync_stop(struct weir_sync *sync, uint64_t timeout_ns) {
    int result = WEIR_GRANTED;
    pthread_mutex_lock(&sync->lock);
    while (sync->joining) pthread_cond_wait(&sync->changed, &sync->lock);
    if (sync->started) {
        const int64_t us = until_us(timeout_ns);
        const bool flushed = flush(sync, NULL, us);
        const bool answered = flushed || wr_drives_are_idle(sync);
        if (sync->started && !sync->joining) end_thread(sync, us);
        if (!answered || !is_settled(sync, flushed)) result = WEIR_EUNSYNCED;
    } else if (is_forked(sync)) {
        result = WEIR_EUNSYNCED;
    }
    pthread_mutex_unlock(&sync->lock);
    return result;
}

// Limiters.

static int refuse(struct weir_error *error, int result, const char *words) {
    wr_sync_say(error, "%s", words);
    return result;
}

static bool name_in_use(struct weir_sync *sync, const char *name) {
    const struct wr_member *m = sync->members;
    while (m != NULL && (m->weir == NULL || strcmp(m->name, name) != 0)) m = m->next;
    const struct wr_drive *d = wr_drive_first(sync);
    while (d != NULL && (d->left || strcmp(d->name, name) != 0)) d = d->next;
    return m != NULL || d != NULL;
}

static int check_limit(const struct weir *limiter, uint64_t max_debt, struct weir_error *error) {
    struct weir_limit plain;
    struct wr_node_limit limit;
    weir_get_limit(limiter, &plain);
    const enum wr_node_refusal refusal = wr_node_limit_init(
        &limit, plain.tokens, plain.period_ns, plain.burst, max_debt != 0 ? max_debt : plain.burst,
        weir_private_unit_tokens(limiter), 0);
    if (refusal == WR_NODE_REFUSAL_OK) return WEIR_GRANTED;
    wr_sync_say(error, "%s", wr_node_refusal_text(refusal));
    return WEIR_ELIMIT;
}

static void note_start(struct wr_member *member) {
    struct weir_stats stats = {0};
    (void)weir_stats(member->weir, &stats, sizeof stats);
    member->tokens_before = stats.tokens;
    member->refunds_before = stats.refunded_tokens;
}

static int join_strict(struct weir_sync *sync, struct weir *limiter, const char *name,
                       const struct weir_sync_limiter_options *options, struct weir_error *error) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    if (weir_peek(limiter, weir_id(0), 1, &answer) == WEIR_ECLOCK)
        return refuse(error, WEIR_ECLOCK,
                      "a limiter with a caller's clock cannot be synced: Redis "
                      "goes by real time; use another enum weir_clock");
    const int result = wr_drive_add(sync, limiter, name, options, error);
    if (result == WEIR_GRANTED) wr_sync_wake(sync);
    return result;
}

static int join(struct weir_sync *sync, struct weir *limiter, const char *name,
                const struct weir_sync_limiter_options *options, struct weir_error *error) {
    const struct wr_synced_options synced = {sync->rules, options->max_debt_tokens, sync->names};
    struct wr_member *member = calloc(1, sizeof *member);
    if (member == NULL) return refuse(error, WEIR_ENOMEM, "no memory for the limiter");
    const int result = weir_private_attach(limiter, &synced, error);
    if (result != WEIR_GRANTED) {
        free(member);
        return result;
    }
    *member = (struct wr_member){.sync = sync, .weir = limiter, .id = ++sync->ids};
    strcpy(member->name, name);
    member->generation = options->generation;
    member->max_debt_tokens = weir_private_max_debt_tokens(limiter);
    if (!wr_member_relimit(member, error)) {
        (void)weir_private_detach(limiter);
        free(member);
        return WEIR_ELIMIT;
    }
    member->mint_bound_tokens = 0;
    note_start(member);
    if (sync->outage) weir_private_set_outage(limiter, true);
    member->next = sync->members;
    sync->members = member;
    wr_sync_wake(sync);
    return WEIR_GRANTED;
}

int weir_sync_attach(struct weir_sync *sync, struct weir *limiter, const char *name,
                     const struct weir_sync_limiter_options *options, struct weir_error *error) {
    static const struct weir_sync_limiter_options usual = WEIR_SYNC_LIMITER_OPTIONS_INIT;
    if (options == NULL) options = &usual;
    if (options->size != sizeof *options)
        return refuse(error, WEIR_ESIZE,
                      "options.size is unknown; initialise it with WEIR_SYNC_LIMITER_OPTIONS_INIT");
    if (limiter == NULL || name == NULL || !wr_wire_limiter_name_ok(name))
        return refuse(
            error, WEIR_EINVAL,
            "name must be 1 to 64 printable characters without braces, colon or space, and "
            "none of a, d, n, nodes, s and t, which the sync uses itself");
    if (options->mode != WEIR_SYNC_EVENTUAL && options->mode != WEIR_SYNC_STRICT)
        return refuse(error, WEIR_EINVAL, "mode is none of enum weir_sync_mode");
    const int fits = check_limit(limiter, options->max_debt_tokens, error);
    if (fits != WEIR_GRANTED) return fits;
    wr_syncs_lock();
    pthread_mutex_lock(&sync->lock);
    int result;
    if (wr_syncs_have(limiter))
        result = refuse(error, WEIR_EINVAL,
                        "this limiter is under a sync already; detach it there first");
    else if (name_in_use(sync, name))
        result = refuse(error, WEIR_EINVAL, "a limiter of this name is under this sync already");
    else if (options->mode == WEIR_SYNC_STRICT)
        result = join_strict(sync, limiter, name, options, error);
    else result = join(sync, limiter, name, options, error);
    pthread_mutex_unlock(&sync->lock);
    wr_syncs_unlock();
    return result;
}

// With the lock. True: everything that it granted is charged, also what was granted between the
// last look and the end. (Only a decision that runs across the end itself may be counted by nobody:
// it has read that there is a sync, and makes its grant when there is none.)
static bool leave(struct wr_member *member) {
    bool clean = wr_member_abandon(member) == 0 && member->pending_units == 0;
    if (weir_private_detach(member->weir) != 0) clean = false;
    member->weir = NULL;
    return clean;
}

// With the lock. The thread closes it; asks that still wait then are answered WEIR_EUNSYNCED.
static int leave_strict(struct wr_drive *drive, int64_t us) {
    struct weir_sync *sync = drive->sync;
    atomic_store_explicit(&drive->leave_us, us, memory_order_relaxed); // R1
    wr_sync_wake(sync);
    while (!drive->left && sync->started) pthread_cond_wait(&sync->changed, &sync->lock);
    if (!drive->left) {
        if (!is_forked(sync)) {
            wr_strict_close(drive->strict);
            wr_strict_shrink(drive->strict);
        }
        drive->left = true;
    }
    atomic_store_explicit(&drive->weir, NULL, memory_order_release); // P1
    return WEIR_GRANTED;
}

int weir_sync_detach(struct weir_sync *sync, struct weir *limiter, uint64_t timeout_ns) {
    int result = WEIR_EINVAL;
    pthread_mutex_lock(&sync->lock);
    const int64_t us = until_us(timeout_ns);
    struct wr_member *member = wr_member_find(sync, limiter);
    struct wr_drive *drive = wr_drive_find(sync, limiter);
    if (drive != NULL) result = leave_strict(drive, us);
    if (member != NULL) {
        if (sync->started) (void)flush(sync, member, us);
        result = leave(member) ? WEIR_GRANTED : WEIR_EUNSYNCED;
        wr_members_reap(sync);
    }
    pthread_mutex_unlock(&sync->lock);
    return result;
}

static int set_limit(struct weir *limiter, const struct weir_limit *limit, uint32_t *generation,
                     uint32_t next, struct weir_error *error) {
    if (next <= *generation) {
        wr_sync_say(error, "generation is %u and must rise above %u, on every node alike", next,
                    *generation);
        return WEIR_EINVAL;
    }
    const int result = weir_set_limit(limiter, limit, error);
    if (result == WEIR_GRANTED) *generation = next;
    return result;
}

int weir_sync_set_limit(struct weir_sync *sync, struct weir *limiter,
                        const struct weir_limit *limit, uint32_t generation,
                        struct weir_error *error) {
    int result;
    pthread_mutex_lock(&sync->lock);
    struct wr_member *member = wr_member_find(sync, limiter);
    struct wr_drive *drive = wr_drive_find(sync, limiter);
    if (member != NULL) {
        result = set_limit(limiter, limit, &member->generation, generation, error);
        if (result == WEIR_GRANTED) (void)wr_member_relimit(member, NULL);
    } else if (drive != NULL) {
        result = set_limit(limiter, limit, &drive->generation, generation, error);
        if (result == WEIR_GRANTED) wr_strict_set_generation(drive->strict, generation);
    } else {
        result = refuse(error, WEIR_EINVAL, "the limiter is not under this sync; attach it first");
    }
    pthread_mutex_unlock(&sync->lock);
    return result;
}

void weir_sync_destroy(struct weir_sync *sync) {
    if (sync == NULL) return;
    pthread_mutex_lock(&sync->lock);
    if (sync->started) end_thread(sync, 0);
    pthread_mutex_unlock(&sync->lock);
    wr_sync_delist(sync);
    for (struct wr_member *m = sync->members; m != NULL; m = m->next) {
        if (m->weir != NULL) (void)weir_private_detach(m->weir);
        m->weir = NULL;
        m->held = 0;
    }
    wr_members_reap(sync);
    for (uint32_t i = 0; i < sync->groups_count; i++) wr_conn_close(sync->groups[i].conn);
    wr_drives_free(sync);
    pthread_mutex_destroy(&sync->lock);
    pthread_cond_destroy(&sync->changed);
    close(sync->wake);
    free(sync->fds);
    free(sync->groups);
    free(sync);
}
