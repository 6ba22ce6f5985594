// Sizes of the region's parts.
#include "table.h"

#include <string.h>

static uint64_t round_up(uint64_t n, uint64_t to) {
    return (n + to - 1) / to * to;
}

void wr_region_plan(struct wr_region *plan, uint64_t capacity_keys, uint32_t shards) {
    memset(plan, 0, sizeof *plan);
    const uint64_t slots = 2 * capacity_keys;
    const uint64_t lines = (slots + WR_LINE_WAYS - 1) / WR_LINE_WAYS;
    uint64_t lines_per_shard = (lines + shards - 1) / shards;
    if (lines_per_shard < 2) lines_per_shard = 2;
    plan->magic = WR_REGION_MAGIC;
    plan->capacity_keys = capacity_keys;
    plan->shards = shards;
    plan->lines_per_shard = lines_per_shard;
    plan->shard_bytes = sizeof(struct wr_shard) + lines_per_shard * sizeof(struct wr_line_of_slots);
    plan->shards_offset = round_up(sizeof(struct wr_region), 64);
    plan->region_bytes = round_up(plan->shards_offset + shards * plan->shard_bytes, 4096);
}

// A shard is worth having when its keys are many: small ones overflow sooner by chance. What shards
// are for is the head line that is written where an idle bucket gives way to a new key. On two
// cores they make no difference that stands out of the noise: a million keys in 1, 4, 16 and 64
// shards took 89, 106, 92 and 107 ns with one thread, 88, 99, 88 and 100 with two (EPYC, one run of
// weir tune, quartiles of 5 to 40 ns). With more cores ask weir tune.
#define KEYS_A_SHARD 16384

uint32_t wr_default_shards(uint64_t capacity_keys, long cpus) {
    uint64_t shards = cpus > 0 ? (uint64_t)cpus * 2 : 2;
    const uint64_t most = capacity_keys / KEYS_A_SHARD;
    if (shards > most) shards = most;
    if (shards > 256) shards = 256;
    return shards < 1 ? 1 : (uint32_t)shards;
}
