// A limiter under a sync, as the thread sees it: names to records, touched slots into line.
#include <stdlib.h>

#include "say.h"
#include "sync.h"

#define SWEEP_CHAINS_MIN 64
#define SWEEP_PART 8192 // of the chains are looked at in a tick: all in 40 s

struct wr_member *wr_member_find(const struct weir_sync *sync, const struct weir *weir) {
    struct wr_member *member = sync->members;
    while (member != NULL && member->weir != weir) member = member->next;
    return weir != NULL ? member : NULL;
}

static struct wr_group *group_of(struct wr_member *member, const struct wr_record *record) {
    return &member->sync->groups[record->group];
}

// Not heard of for so long that nobody knows what others have spent of it. (A decision looks after
// that itself only where it charges by a multiplier.)
static bool is_cold(const struct wr_member *member, const struct wr_record *record,
                    int64_t now_us) {
    const struct wr_node_rules *rules = &member->sync->rules;
    return now_us - record->key.heard_us > 2 * (rules->epoch_us + rules->interval_us);
}

// A foreign record, one that Redis holds something else for, waits some time before it is tried
// again.
static void see(struct wr_record *record, int64_t now_us) {
    record->seen_us = now_us;
    record->gone = false;
}

static void queue(struct wr_member *member, struct wr_record *record, bool urgent, int64_t now_us) {
    see(record, now_us);
    if (record->foreign_us > now_us) return;
    record->foreign_us = 0;
    wr_group_queue(group_of(member, record), record, urgent || is_cold(member, record, now_us));
}

// Limits.

static bool same_limit(const struct weir_limit *a, const struct weir_limit *b) {
    return a->tokens == b->tokens && a->period_ns == b->period_ns && a->burst == b->burst;
}

// What a change of limit may give away a key. Redis holds how long a bucket is behind, D, and D
// becomes other tokens under another rate: the level goes from b - D*r to b' - D*r', up by b' - b +
// D*(r - r'). That is linear in D, so greatest at an end: D = 0, or the most that both limits
// allow, since the script caps D at the old limit's burst + max_debt and a node clamps what it
// hears to the new one's.
static double minted(const struct wr_node_limit *old, const struct wr_node_limit *new) {
    const double burst = new->burst_tokens - old->burst_tokens;
    const double behind_us = (double)wr_min_i64(old->cap_us, new->cap_us);
    const double most = burst + behind_us * (old->tokens_per_us - new->tokens_per_us);
    const double more = most > burst ? most : burst;
    return more > 0 ? more : 0;
}

static bool drop_remainder(void *context, struct wr_record *record) {
    (void)context;
    wr_node_relimit(&record->key);
    return false;
}

// Remainders under a microsecond were of the old rate, those in reports as well.
static void drop_remainders(struct wr_member *member) {
    struct weir_sync *sync = member->sync;
    wr_known_each(&member->keys, drop_remainder, NULL);
    for (uint32_t g = 0; g < sync->groups_count; g++)
        for (size_t i = 0; i < sync->groups[g].count; i++)
            if (sync->groups[g].records[i]->member == member)
                sync->groups[g].frozen[i].rem_before = 0;
}

bool wr_member_relimit(struct wr_member *member, struct weir_error *error) {
    struct wr_node_limit limit;
    struct weir_limit plain;
    const uint64_t version = weir_private_limit_version(member->weir);
    weir_get_limit(member->weir, &plain);
    const enum wr_node_refusal refusal = wr_node_limit_init(
        &limit, plain.tokens, plain.period_ns, plain.burst, member->max_debt_tokens,
        weir_private_unit_tokens(member->weir), member->generation);
    // Changed again meanwhile: the next tick looks once more.
    if (weir_private_limit_version(member->weir) == version) member->limit_version = version;
    if (refusal != WR_NODE_REFUSAL_OK) {
        wr_sync_say(error, "%s", wr_node_refusal_text(refusal));
        wr_sync_remember(member->sync, "%s: %.150s", member->name, wr_node_refusal_text(refusal));
        return false;
    }
    if (!same_limit(&plain, &member->plain)) {
        member->mint_bound_tokens += minted(&member->limit, &limit);
        drop_remainders(member);
    }
    member->plain = plain;
    member->limit = limit;
    return true;
}

static void check_limit(struct wr_member *member) {
    if (weir_private_limit_version(member->weir) != member->limit_version ||
        member->generation != member->limit.generation)
        (void)wr_member_relimit(member, NULL);
}

// Names and spills.

// Moves a record; what its old place still holds of the key is taken along.
static void move(struct wr_member *member, struct wr_record *record, uint64_t slot,
                 uint64_t fingerprint) {
    struct wr_node_side rest = {0};
    if (weir_private_freeze(member->weir, record->slot, record->fingerprint, record->frozen_us,
                            &rest)) {
        member->pending_units += rest.granted_units;
        wr_side_add(&record->carried, &rest);
    }
    wr_known_place(&member->keys, record, slot, fingerprint);
}

static void take_name(struct wr_member *member, const struct wr_synced_name *name, int64_t now_us) {
    struct wr_record *record = wr_known_claim(&member->keys, name->name, name->bytes);
    if (record == NULL) return; // no memory: it is asked for anew (visit)
    if (record->member == NULL) {
        record->member = member;
        record->group = (uint8_t)wr_wire_group(name->name, name->bytes, member->sync->groups_count);
        record->frozen_us = 0;
    } else if (record->slot != name->slot) {
        move(member, record, name->slot, name->fingerprint);
        // The scan would have found that at the old place.
        if (record->carried.granted_units != 0) queue(member, record, true, now_us);
    }
    wr_known_place(&member->keys, record, name->slot, name->fingerprint);
    see(record, now_us);
}

// All that were there when it begins.
static void take_names(struct wr_member *member, int64_t now_us) {
    struct wr_synced_name name;
    uint32_t left = UINT32_MAX;
    while (weir_private_name_next(member->weir, &name, &left)) take_name(member, &name, now_us);
}

static void take_spill(struct wr_member *member, const struct wr_synced_spill *spill,
                       int64_t now_us) {
    struct wr_record *record = wr_known_find_place(&member->keys, spill->slot, spill->fingerprint);
    if (record == NULL) { // its name may have come meanwhile
        take_names(member, now_us);
        record = wr_known_find_place(&member->keys, spill->slot, spill->fingerprint);
    }
    if (record == NULL) { // the names were full, or memory: it is nobody's
        member->lost_units += spill->granted_units;
        return;
    }
    const struct wr_node_side more = {.granted_units = spill->granted_units,
                                      .first_us = wr_max_i64(spill->first_us, record->frozen_us)};
    member->pending_units += spill->granted_units;
    wr_side_add(&record->carried, &more);
    queue(member, record, false, now_us);
}

static void take_spills(struct wr_member *member, int64_t now_us) {
    struct wr_synced_spill spill;
    uint32_t left = UINT32_MAX;
    while (weir_private_spill_next(member->weir, &spill, &left))
        take_spill(member, &spill, now_us);
}

// Touched slots.

struct look {
    struct wr_member *member;
    int64_t now_us;
};

static void visit(void *context, uint64_t slot, uint64_t fingerprint, bool named, bool urgent) {
    const struct look *look = context;
    struct wr_member *member = look->member;
    struct wr_record *record = wr_known_find_place(&member->keys, slot, fingerprint);
    if (named && (record == NULL || record->slot != slot)) { // its name may have come meanwhile
        take_names(member, look->now_us);
        record = wr_known_find_place(&member->keys, slot, fingerprint);
    }
    if (record != NULL && record->slot != slot) {
        take_spills(member, look->now_us);
        move(member, record, slot, fingerprint);
    }
    if (record != NULL) {
        queue(member, record, urgent, look->now_us);
        if (!record->queued) weir_private_touch(member->weir, slot, false); // foreign: again later
        return;
    }
    // Its name found no memory, or was forgotten behind a late one (is_forgotten): the next ask
    // hands it over anew, and what was granted is still there then.
    if (named) weir_private_rename(member->weir, slot, fingerprint);
    member->unnamed++;
    weir_private_touch(member->weir, slot, urgent);
}

void wr_member_scan(struct wr_member *member, int64_t now_us) {
    struct look look = {member, now_us};
    member->skew_us = weir_private_now_us(member->weir) - wr_sync_now_us();
    member->unnamed = 0;
    check_limit(member);
    take_names(member, now_us);
    take_spills(member, now_us);
    weir_private_scan(member->weir, visit, &look);
}

// Forgetting.

// A record goes once it has been quiet for long, and its slot has forgotten that it had handed the
// key's name over, or has had another key at two looks, as far apart: a spill on its way at the
// first is there by the second. (A name that came late has moved the record to a slot that the key
// had left: then the slot that it is in stays NAMED. See visit.)
static bool is_forgotten(void *context, struct wr_record *record) {
    const struct look *look = context;
    struct wr_member *member = look->member;
    const int64_t quiet_us = look->now_us - record->seen_us;
    if (record->held || record->queued || quiet_us < member->sync->forget_us) return false;
    struct wr_node_side taken = {0};
    const bool there = weir_private_freeze(member->weir, record->slot, record->fingerprint,
                                           record->frozen_us, &taken);
    const bool more = there && (taken.granted_units != 0 || taken.denied_tokens != 0);
    if (more) {
        member->pending_units += taken.granted_units;
        wr_side_add(&record->carried, &taken);
    }
    if (more || record->carried.granted_units != 0) {
        queue(member, record, false, look->now_us);
        return false;
    }
    if (there) return weir_private_unname(member->weir, record->slot, record->fingerprint);
    const bool again = record->gone;
    record->seen_us = look->now_us;
    record->gone = true;
    return again;
}

void wr_member_sweep(struct wr_member *member, int64_t now_us) {
    struct look look = {member, now_us};
    const size_t part = member->keys.chains / SWEEP_PART;
    wr_known_sweep(&member->keys, part > SWEEP_CHAINS_MIN ? part : SWEEP_CHAINS_MIN, is_forgotten,
                  &look);
}

// Leaving.

static bool abandon(void *context, struct wr_record *record) {
    uint64_t *units = context;
    struct wr_member *member = record->member;
    struct wr_node_side taken = {0};
    wr_group_unqueue(group_of(member, record), record);
    if (weir_private_freeze(member->weir, record->slot, record->fingerprint, record->frozen_us,
                            &taken))
        *units += taken.granted_units;
    *units += record->carried.granted_units;
    member->pending_units -= record->carried.granted_units;
    record->carried = (struct wr_node_side){0};
    return false;
}

static void abandon_unnamed(void *context, uint64_t slot, uint64_t fingerprint, bool named,
                            bool urgent) {
    const struct look *look = context;
    struct wr_node_side taken = {0};
    (void)named;
    (void)urgent;
    if (weir_private_freeze(look->member->weir, slot, fingerprint, 0, &taken))
        look->member->lost_units += taken.granted_units;
}

uint64_t wr_member_abandon(struct wr_member *member) {
    struct look look = {member, 0};
    uint64_t units = 0;
    take_names(member, 0);
    take_spills(member, 0);
    const uint64_t before = member->lost_units;
    wr_known_each(&member->keys, abandon, &units);
    weir_private_scan(member->weir, abandon_unnamed, &look);
    member->lost_units += units;
    return member->lost_units - before;
}

struct count {
    struct wr_member *member;
    bool known; // also what keys with a record hold
    uint64_t units;
};

static void count_slot(struct count *count, uint64_t slot, uint64_t fingerprint,
                       int64_t frozen_us) {
    struct weir *weir = count->member->weir;
    struct wr_node_side taken = {0};
    if (!weir_private_freeze(weir, slot, fingerprint, frozen_us, &taken)) return;
    count->units += taken.granted_units;
    (void)weir_private_unfreeze(weir, slot, fingerprint, &taken);
}

static bool count_record(void *context, struct wr_record *record) {
    count_slot(context, record->slot, record->fingerprint, record->frozen_us);
    return false;
}

static void count_touched(void *context, uint64_t slot, uint64_t fingerprint, bool named,
                          bool urgent) {
    struct count *count = context;
    const struct wr_record *record =
        wr_known_find_place(&count->member->keys, slot, fingerprint);
    const bool counted = record != NULL && record->slot == slot; // with the records
    if (!named || (count->known && !counted)) count_slot(count, slot, fingerprint, 0);
    weir_private_touch(count->member->weir, slot, urgent);
}

uint64_t wr_member_unreported_units(struct wr_member *member, bool known) {
    struct count count = {member, known, 0};
    if (known) { // spills become pending
        take_names(member, wr_sync_now_us());
        take_spills(member, wr_sync_now_us());
    }
    weir_private_scan(member->weir, count_touched, &count);
    if (known) wr_known_each(&member->keys, count_record, &count);
    return count.units;
}

void wr_members_reap(struct weir_sync *sync) {
    struct wr_member **at = &sync->members;
    while (*at != NULL) {
        struct wr_member *member = *at;
        if (member->weir != NULL || member->held != 0) {
            at = &member->next;
            continue;
        }
        *at = member->next;
        wr_known_fini(&member->keys);
        free(member);
    }
}
