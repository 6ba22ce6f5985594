// Making and freeing a limiter: options checked in words, one region, one small handle.
// R1 is defined in weir.c, R3 is defined in synced.c.
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ask.h"
#include "memory.h"

static int refuse(struct weir_error *error, int result, const char *words) {
    wr_say(error, "%s", words);
    return result;
}

static int check_options(const struct weir_options *o, struct weir_error *error) {
    if (o->size != sizeof *o)
        return refuse(error, WEIR_ESIZE, "options->size is unknown; start from WEIR_OPTIONS_INIT");
    if (o->capacity_keys > WR_CAPACITY_MAX) {
        wr_say(error, "capacity_keys is %" PRIu64 "; the most is 2^32", o->capacity_keys);
        return WEIR_EINVAL;
    }
    if (o->shards > WR_SHARDS_MAX) {
        wr_say(error, "shards is %" PRIu32 "; give 1 to %d, or 0 for a default", o->shards,
               WR_SHARDS_MAX);
        return WEIR_EINVAL;
    }
    if ((unsigned)o->full_policy > WEIR_FULL_GRANT)
        return refuse(error, WEIR_EINVAL, "full_policy is not one of enum weir_full_policy");
    if ((unsigned)o->clock > WEIR_CLOCK_CALLER)
        return refuse(error, WEIR_EINVAL, "clock is not one of enum weir_clock");
    if (o->allocator != NULL && (o->allocator->map == NULL || o->allocator->unmap == NULL))
        return refuse(error, WEIR_EINVAL, "allocator needs both map and unmap");
    return WEIR_GRANTED;
}

static int choose_clock(enum weir_clock asked, struct wr_time_source *source,
                        struct weir_error *error) {
    source->kind = asked;
    source->epoch_ns = 0;
    if (asked == WEIR_CLOCK_AUTO || asked == WEIR_CLOCK_COUNTER) {
        const bool counter = wr_clock_init();
        if (!counter && asked == WEIR_CLOCK_COUNTER)
            return refuse(error, WEIR_ECLOCK,
                          "this CPU promises no invariant counter; use WEIR_CLOCK_MONOTONIC");
        source->kind = counter ? WEIR_CLOCK_COUNTER : WEIR_CLOCK_MONOTONIC;
    }
    if (asked == WEIR_CLOCK_CALLER) return WEIR_GRANTED;
    source->epoch_ns =
        asked == WEIR_CLOCK_COARSE ? wr_clock_coarse_ns() : wr_clock_monotonic_ns();
    return WEIR_GRANTED;
}

// A secret for the hash that nobody outside can guess, so that nobody can choose keys that collide.
static bool draw_secret(uint8_t *secret) {
    size_t have = 0;
    while (have < WR_SECRET_BYTES) {
        const ssize_t got = getrandom(secret + have, WR_SECRET_BYTES - have, 0);
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

static void copy_name(struct weir *w, const char *name) {
    if (name == NULL) name = "weir";
    size_t length = 0;
    while (length + 1 < sizeof w->name && name[length] != '\0') length++;
    memcpy(w->name, name, length);
    w->name[length] = '\0';
}

// Points the handle into the region.
static void attach(struct weir *w, struct wr_region *region) {
    w->region = region;
    w->scale = region->scale;
    w->versions = &region->versions;
    w->counts = region->counts.lines;
    w->secret = region->secret;
    w->geometry = (struct wr_geometry){region->shards, region->lines_per_shard,
                                       region->shard_bytes,
                                       (unsigned char *)region + region->shards_offset};
}

// Writes the header of a region of zeroes: a slot of zeroes is EMPTY.
static bool init_region(struct wr_region *region, const struct wr_region *plan,
                        const struct wr_scale *scale, const struct wr_profile *profile,
                        const struct weir_limit *limit) {
    memcpy(region, plan, offsetof(struct wr_region, secret));
    region->scale = *scale;
    atomic_store_explicit(&region->epoch_ns, INT64_MIN, memory_order_relaxed); // R1
    wr_versions_init(&region->versions, profile, limit);
    return draw_secret(region->secret);
}

static size_t region_align(const struct wr_region *plan) {
    return plan->region_bytes >= WR_HUGE_PAGE_BYTES ? WR_HUGE_PAGE_BYTES : 4096;
}

static int make(struct weir **limiter, const struct weir_allocator *allocator,
                const struct wr_region *plan, struct weir **made) {
    struct weir *w = allocator->map(allocator->context, sizeof *w, 64);
    if (w == NULL) return WEIR_ENOMEM;
    struct wr_region *region =
        allocator->map(allocator->context, plan->region_bytes, region_align(plan));
    if (region == NULL) {
        allocator->unmap(allocator->context, w, sizeof *w);
        return WEIR_ENOMEM;
    }
    w->allocator = *allocator;
    w->region = region;
    *limiter = NULL;
    *made = w;
    return WEIR_GRANTED;
}

int weir_create(struct weir **limiter, const struct weir_options *options,
                struct weir_error *error) {
    if (limiter == NULL || options == NULL)
        return refuse(error, WEIR_EINVAL, "limiter and options must not be NULL");
    *limiter = NULL;
    struct wr_scale scale;
    struct wr_profile profile;
    struct wr_time_source source;
    int result = check_options(options, error);
    if (result == WEIR_GRANTED) result = wr_scale_init(&scale, options, error);
    if (result == WEIR_GRANTED) result = wr_profile_init(&profile, &scale, &options->limit, error);
    if (result == WEIR_GRANTED) result = choose_clock(options->clock, &source, error);
    if (result != WEIR_GRANTED) return result;
    wr_u128_init();
    const uint64_t capacity =
        options->capacity_keys != 0 ? options->capacity_keys : WR_CAPACITY_DEFAULT;
    const uint32_t shards = options->shards != 0
                                ? options->shards
                                : wr_default_shards(capacity, sysconf(_SC_NPROCESSORS_ONLN));
    struct wr_region plan;
    wr_region_plan(&plan, capacity, shards);
    struct weir *w = NULL;
    result = make(limiter, options->allocator != NULL ? options->allocator : &wr_mmap_allocator,
                  &plan, &w);
    if (result != WEIR_GRANTED) {
        wr_say(error, "no memory: the allocator would not give %" PRIu64 " bytes for %" PRIu64
               " keys; lower capacity_keys", plan.region_bytes, capacity);
        return result;
    }
    if (!init_region(w->region, &plan, &scale, &profile, &options->limit)) {
        weir_destroy(w);
        return refuse(error, WEIR_ESYS, "the system gave no random bytes for the hash secret");
    }
    attach(w, w->region);
    w->source = source;
    w->full_policy = options->full_policy;
    w->dry_run = options->dry_run;
    w->not_plain = w->dry_run || source.kind == WEIR_CLOCK_CALLER || !wr_u128_is_cheap();
    atomic_store_explicit(&w->cost_max_plain, w->not_plain ? 0 : scale.cost_max, // R3
                          memory_order_relaxed);                                 // R3
    w->relic_level = -(int64_t)scale.horizon_units;
    w->two_us_units = (uint64_t)((wr_u128)2000 * scale.max_per_ns >> scale.shift);
    copy_name(w, options->name);
    *limiter = w;
    return WEIR_GRANTED;
}

void weir_destroy(struct weir *limiter) {
    if (limiter == NULL) return;
    const struct weir_allocator allocator = limiter->allocator;
    wr_synced_free(limiter);
    allocator.unmap(allocator.context, limiter->region, limiter->region->region_bytes);
    allocator.unmap(allocator.context, limiter, sizeof *limiter);
}
