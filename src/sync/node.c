// The node's half of the sync for one key. node.h has the units; docs of the algorithm:
//
//   take     pass if min(level, burst) >= q; then level := min(level, burst) - q*m
//   hear     A = local time at which the shared bucket is full; share of demand -> m = 1/sigma
//   settle   level := that of A, less what was granted meanwhile times m, less the lottery
//
// m > 1 makes this node spend its part of the rate only. It starts at 1 where the bucket has room
// for everyone's demand until the next report (sigma's second term), so an even load is never
// denied; as the level falls, m rises to 1/share.
#include "node.h"

#include <stddef.h>

#define US_PER_MS 1000
// A cold, full key that was given a new lottery ticket gets no other for so long.
#define WARM_AGAIN_MS 20
// Two roundings of a microsecond: a local level this near to what was heard is the more exact one.
#define ROUNDING_US 2
#define SHARE_MIN (1.0 / 8192)
#define BACKLOG_MIN_US INT64_C(2000000)
// Burst and debt are under this, so sums of a few of them cannot wrap.
#define UNITS_FAR (UINT64_C(1) << 61)

const char *wr_node_refusal_text(enum wr_node_refusal refusal) {
    switch (refusal) {
#define CASE(name, text)                                                                           \
    case WR_NODE_REFUSAL_##name:                                                                   \
        return text;
        WR_NODE_REFUSALS(CASE)
#undef CASE
    }
    return "unknown refusal";
}

static uint64_t gcd_wide(wr_u128 a, uint64_t b) {
    uint64_t small = b;
    uint64_t rest = (uint64_t)(a % b);
    while (rest != 0) {
        uint64_t next = small % rest;
        small = rest;
        rest = next;
    }
    return small;
}

// Signed: up for a time to come, so a bucket never fills early.
static int64_t us_to_units(const struct wr_node_limit *limit, int64_t us) {
    const int64_t most = 2 * WR_NODE_HORIZON_US - 1;
    uint64_t size = (uint64_t)wr_min_i64(us < 0 ? -us : us, most);
    wr_u128 product = size * limit->unit_us_den;
    wr_u128 units = product / limit->unit_us_num;
    if (us >= 0 && product % limit->unit_us_num != 0) units++;
    if (units > UNITS_FAR) units = UNITS_FAR;
    return us < 0 ? -(int64_t)units : (int64_t)units;
}

static wr_u128 units_to_us(const struct wr_node_limit *limit, wr_u128 units) {
    return units * limit->unit_us_num / limit->unit_us_den;
}

enum wr_node_refusal wr_node_limit_init(struct wr_node_limit *limit, uint64_t tokens,
                                        uint64_t period_ns, uint64_t burst_tokens,
                                        uint64_t max_debt_tokens, uint64_t unit_tokens,
                                        uint32_t generation) {
    const uint64_t far = UNITS_FAR;
    if (tokens == 0 || tokens == UINT64_MAX || period_ns == 0) return WR_NODE_REFUSAL_NO_RATE;
    if (period_ns > INT64_MAX || unit_tokens == 0 || unit_tokens > far ||
        (wr_u128)tokens * unit_tokens > (wr_u128)1 << 65)
        return WR_NODE_REFUSAL_NOT_EXACT;
    if (burst_tokens > far / unit_tokens || max_debt_tokens > far / unit_tokens - burst_tokens)
        return WR_NODE_REFUSAL_LONG_HORIZON;
    const wr_u128 den = (wr_u128)tokens * unit_tokens * 1000;
    const uint64_t common = gcd_wide(den, period_ns);
    limit->unit_us_num = period_ns / common;
    limit->unit_us_den = den / common;
    limit->unit_tokens = (int64_t)unit_tokens;
    limit->burst_units = (int64_t)(burst_tokens * unit_tokens);
    limit->max_debt_units = (int64_t)(max_debt_tokens * unit_tokens);
    limit->generation = generation;
    limit->burst_tokens = (double)burst_tokens;
    limit->tokens_per_us = (double)tokens * 1000 / (double)period_ns;
    wr_u128 burst_us = units_to_us(limit, (wr_u128)limit->burst_units);
    wr_u128 cap_us = units_to_us(limit, (wr_u128)limit->burst_units +
                                            (wr_u128)limit->max_debt_units);
    if (cap_us > (wr_u128)WR_NODE_HORIZON_US) return WR_NODE_REFUSAL_LONG_HORIZON;
    if (burst_tokens > 0 && burst_us < WR_NODE_BURST_MIN_US) return WR_NODE_REFUSAL_SHORT_BURST;
    limit->burst_us = (int64_t)burst_us;
    limit->cap_us = (int64_t)cap_us;
    return WR_NODE_REFUSAL_OK;
}

// cost * m, rounded up.
static wr_u128 times_m(uint64_t units, uint32_t m_q16) {
    return ((wr_u128)units * m_q16 + (WR_NODE_M_ONE - 1)) / WR_NODE_M_ONE;
}

int64_t wr_node_charge(const struct wr_node_limit *limit, uint64_t cost_units, uint32_t m_q16,
                       int64_t level) {
    const wr_u128 charge = times_m(cost_units, m_q16);
    const wr_u128 most = (wr_u128)(level + limit->max_debt_units);
    return (int64_t)(charge < most ? charge : most);
}

static uint32_t ms_of(int64_t us) {
    return (uint32_t)((uint64_t)us / US_PER_MS);
}

static uint32_t cold_ms(const struct wr_node_rules *rules) {
    return ms_of(2 * rules->epoch_us + 2 * rules->interval_us);
}

static uint32_t idle_ms(const struct wr_node_side *side, int64_t now_us) {
    return ms_of(now_us) - side->synced_ms;
}

bool wr_node_is_cold(const struct wr_node_rules *rules, const struct wr_node_side *side,
                     int64_t now_us) {
    return side->m_q16 == 0 || idle_ms(side, now_us) > cold_ms(rules);
}

// o - 1 tokens, where o = max(1, u*m) with u uniform in (0, 1].
static int64_t draw(const struct wr_node_limit *limit, uint32_t m_q16, uint32_t random) {
    const wr_u128 ticket = ((wr_u128)random + 1) * m_q16 * (uint64_t)limit->unit_tokens >> 48;
    const wr_u128 token = (wr_u128)limit->unit_tokens;
    if (ticket <= token) return 0;
    const wr_u128 more = ticket - token;
    return more < UNITS_FAR ? (int64_t)more : (int64_t)UNITS_FAR;
}

static uint32_t outage_start_m(const struct wr_node_rules *rules) {
    if (rules->policy == WR_NODE_CLOSED) return WR_NODE_M_CLOSED;
    if (rules->policy == WR_NODE_OPEN || rules->expected_nodes <= 1) return WR_NODE_M_ONE;
    return rules->expected_nodes < 8192 ? rules->expected_nodes * WR_NODE_M_ONE : WR_NODE_M_MAX;
}

// A bucket that is full for all the fleet, seen by one node with a share of 1/m.
static int64_t start_level(const struct wr_node_limit *limit, uint32_t m_q16, int64_t level,
                           uint32_t random) {
    level = wr_min_i64(level, limit->burst_units);
    if (m_q16 == WR_NODE_M_CLOSED) return level;
    return wr_max_i64(level - draw(limit, m_q16, random), -limit->max_debt_units);
}

bool wr_node_warm(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                  struct wr_node_side *side, int64_t *level, const struct wr_node_ask *ask) {
    const uint32_t memory_ms = ms_of(rules->hot_memory_us);
    if (side->m_q16 == 0) {
        side->m_q16 = ask->outage ? outage_start_m(rules) : WR_NODE_M_ONE;
        side->early_tokens = WR_NODE_EARLY_NEVER;
        side->synced_ms = ms_of(ask->now_us) - memory_ms - 1;
        *level = start_level(limit, side->m_q16, *level, ask->random);
        return true;
    }
    // A level that is not yet full still tells more than a fresh start would.
    if (ask->outage || *level < limit->burst_units) return false;
    if (side->m_q16 == WR_NODE_M_ONE) return false;
    if (idle_ms(side, ask->now_us) > memory_ms || side->m_q16 == WR_NODE_M_CLOSED) {
        side->m_q16 = WR_NODE_M_ONE;
        return true;
    }
    *level = start_level(limit, side->m_q16, *level, ask->random);
    side->synced_ms = ms_of(ask->now_us) - cold_ms(rules) + WARM_AGAIN_MS;
    return true;
}

static uint32_t add_saturated(uint32_t a, uint64_t b) {
    return b > UINT32_MAX - a ? UINT32_MAX : a + (uint32_t)b;
}

uint32_t wr_node_count_denied(uint32_t denied_tokens, uint32_t cost_tokens, uint32_t random) {
    if (denied_tokens < WR_NODE_DENIED_EXACT) return add_saturated(denied_tokens, cost_tokens);
    if ((uint64_t)random * denied_tokens >> 32 >= WR_NODE_DENIED_EXACT) return denied_tokens;
    return add_saturated(denied_tokens,
                         (uint64_t)cost_tokens * denied_tokens / WR_NODE_DENIED_EXACT);
}

static uint64_t whole_tokens(const struct wr_node_limit *limit, uint64_t units) {
    const uint64_t unit = (uint64_t)limit->unit_tokens;
    return units / unit + (units % unit != 0);
}

static void count_granted(const struct wr_node_limit *limit, struct wr_node_side *side,
                          const struct wr_node_ask *ask, bool *urgent) {
    if (side->granted_units == 0) side->first_us = ask->now_us;
    side->granted_units += ask->cost_units;
    if (side->early_tokens != WR_NODE_EARLY_NEVER &&
        side->granted_units >= (wr_u128)side->early_tokens * (uint64_t)limit->unit_tokens)
        *urgent = true;
}

enum wr_node_answer wr_node_take(const struct wr_node_limit *limit,
                                 const struct wr_node_rules *rules, struct wr_node_side *side,
                                 int64_t *level, const struct wr_node_ask *ask, bool *urgent) {
    if (ask->cost_units > (uint64_t)limit->burst_units) return WR_NODE_NEVER;
    if (wr_node_is_cold(rules, side, ask->now_us)) {
        *urgent = true;
        wr_node_warm(limit, rules, side, level, ask);
    }
    *level = wr_min_i64(*level, limit->burst_units);
    if (side->m_q16 == WR_NODE_M_CLOSED || (int64_t)ask->cost_units > *level) {
        const uint64_t cost = whole_tokens(limit, ask->cost_units);
        side->denied_tokens = wr_node_count_denied(
            side->denied_tokens, add_saturated(0, cost), ask->random);
        return WR_NODE_DENIED;
    }
    *level -= wr_node_charge(limit, ask->cost_units, side->m_q16, *level);
    count_granted(limit, side, ask, urgent);
    return WR_NODE_GRANTED;
}

void wr_node_freeze(const struct wr_node_limit *limit, struct wr_node_key *key,
                    const struct wr_node_side *taken, int64_t now_us,
                    struct wr_node_frozen *frozen) {
    frozen->granted_units = taken->granted_units;
    frozen->first_us = taken->granted_units != 0 ? taken->first_us : now_us;
    frozen->denied_tokens = taken->denied_tokens;
    frozen->demand_tokens =
        add_saturated(taken->denied_tokens, whole_tokens(limit, taken->granted_units));
    frozen->rem_before = key->rem;
    const wr_u128 time = (wr_u128)taken->granted_units * limit->unit_us_num + key->rem;
    const wr_u128 cost_us = time / limit->unit_us_den;
    key->rem = time % limit->unit_us_den;
    frozen->cost_us = cost_us < (wr_u128)WR_NODE_HORIZON_US ? (uint64_t)cost_us
                                                            : (uint64_t)WR_NODE_HORIZON_US;
}

void wr_node_unfreeze(struct wr_node_key *key, const struct wr_node_frozen *frozen,
                      struct wr_node_side *side) {
    key->rem = frozen->rem_before;
    side->denied_tokens = add_saturated(side->denied_tokens, frozen->denied_tokens);
    if (frozen->granted_units == 0) return;
    if (side->granted_units == 0 || frozen->first_us < side->first_us)
        side->first_us = frozen->first_us;
    side->granted_units += frozen->granted_units;
}

uint32_t wr_node_age_us(const struct wr_node_frozen *frozen, int64_t now_us) {
    const int64_t age = now_us - frozen->first_us;
    if (age <= 0) return 0;
    return age < UINT32_MAX ? (uint32_t)age : UINT32_MAX;
}

bool wr_node_is_backlog(const struct wr_node_rules *rules, const struct wr_node_frozen *frozen,
                        int64_t now_us) {
    return now_us - frozen->first_us > wr_max_i64(BACKLOG_MIN_US, 3 * rules->interval_us);
}

// The same two-epoch counts that the script keeps for all nodes.
static void roll_own(struct wr_node_key *key, uint32_t epoch, uint32_t demand_tokens) {
    if (key->epoch != epoch) {
        key->own_previous = epoch - key->epoch == 1 ? key->own_current : 0;
        key->own_current = 0;
        key->epoch = epoch;
    }
    key->own_current = add_saturated(key->own_current, demand_tokens);
}

static void average_share(const struct wr_node_rules *rules, struct wr_node_key *key,
                          double share, int64_t received_us) {
    const int64_t passed = received_us - key->heard_us;
    key->heard_us = received_us;
    if (key->averaged_us == 0) {
        key->share_average = share;
        key->averaged_us = 1;
    } else if (passed > 0) {
        key->averaged_us = wr_min_i64(rules->share_span_us, key->averaged_us + passed);
        const double part = (double)wr_min_i64(passed, key->averaged_us) /
                            (double)key->averaged_us;
        key->share_average += (share - key->share_average) * part;
    }
}

static uint32_t m_of_share(double share) {
    if (share >= 1) return WR_NODE_M_ONE;
    if (share <= SHARE_MIN) return WR_NODE_M_MAX;
    const double m = WR_NODE_M_ONE / share;
    const uint32_t whole = (uint32_t)m;
    return whole + (whole < m);
}

static uint32_t early_of_level(const struct wr_node_limit *limit, double level_tokens) {
    if (level_tokens <= 0 || level_tokens < limit->burst_tokens / 8) return WR_NODE_EARLY_NEVER;
    const double quarter = level_tokens / 4;
    if (quarter >= WR_NODE_EARLY_NEVER - 1) return WR_NODE_EARLY_NEVER;
    const uint32_t whole = (uint32_t)quarter;
    return whole + (whole < quarter);
}

// The part of the rate that this node may spend: its share of the demand, or more while the others
// cannot use up what is left before the next report.
static double sigma(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                    double share, double others_tokens, double level_tokens, int64_t rtt_us) {
    const double horizon_us = (double)(rules->interval_us + rtt_us);
    const double room_tokens = level_tokens + limit->tokens_per_us * horizon_us;
    if (room_tokens <= 0) return share;
    const double others_per_us = others_tokens / (double)rules->epoch_us;
    const double unused = 1 - others_per_us * horizon_us / room_tokens;
    return unused > share ? unused : share;
}

void wr_node_hear(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                  struct wr_node_key *key, const struct wr_node_frozen *frozen,
                  const struct wr_node_reply *reply, const struct wr_node_timing *timing,
                  struct wr_node_heard *heard) {
    const int64_t rtt_us = timing->received_us - timing->sent_us;
    const int64_t middle_us = timing->sent_us + rtt_us / 2;
    const int64_t full_us = reply->unknown ? timing->sent_us : middle_us + reply->rel_us;
    heard->base_us = wr_max_i64(full_us, timing->sent_us);

    roll_own(key, (uint32_t)(timing->redis_us / rules->epoch_us), frozen->demand_tokens);
    const double left = 1 - (double)(timing->redis_us % rules->epoch_us) / (double)rules->epoch_us;
    const double own = key->own_previous * left + key->own_current;
    const double total = reply->previous_tokens * left + reply->current_tokens;
    const double others = total > own ? total - own : 0;
    const double share = others > 0 ? own / total : 1;
    // For the long average: own demand is counted up to now, that of the others half an interval
    // less. Left in, this made the shares of a fleet add up to 1.03 in an outage.
    const double late = others * (double)rules->interval_us / 2 / (double)rules->epoch_us;
    average_share(rules, key, others > 0 ? own / (total + late) : 1, timing->received_us);

    double level = (double)(middle_us + limit->burst_us - full_us) * limit->tokens_per_us;
    if (reply->unknown || level > limit->burst_tokens) level = limit->burst_tokens;
    heard->m_q16 = m_of_share(sigma(limit, rules, share, others, level, rtt_us));
    heard->early_tokens = early_of_level(limit, level);
    heard->lottery_units = draw(limit, heard->m_q16, timing->random);
    heard->synced_ms = ms_of(timing->received_us);
}

int64_t wr_node_settle(const struct wr_node_limit *limit, const struct wr_node_heard *heard,
                       int64_t level, uint64_t since_units, uint32_t m_before, int64_t now_us) {
    const int64_t reach = limit->burst_units + limit->max_debt_units;
    const wr_u128 since = times_m(since_units, heard->m_q16);
    const int64_t behind = wr_min_i64(us_to_units(limit, heard->base_us - now_us), reach) +
                           (int64_t)(since < (wr_u128)reach ? since : (wr_u128)reach);
    // Clamped to the debt of the present limit: TAT is time, and may be days of another one.
    int64_t heard_level = wr_min_i64(limit->burst_units, limit->burst_units - behind);
    heard_level = wr_max_i64(heard_level - heard->lottery_units, -limit->max_debt_units);
    // At m = 1 the slot has charged exactly what it granted. Where that is the lower level it is
    // the more exact one (the report dates all grants to the first), unless it is an old debt.
    if (m_before == WR_NODE_M_ONE && level < heard_level &&
        (level >= 0 || heard_level - level <= us_to_units(limit, ROUNDING_US)))
        return level;
    return heard_level;
}

void wr_node_settle_side(const struct wr_node_heard *heard, struct wr_node_side *side) {
    side->m_q16 = heard->m_q16;
    side->early_tokens = heard->early_tokens;
    side->synced_ms = heard->synced_ms;
}

uint32_t wr_node_outage_m(const struct wr_node_rules *rules, const struct wr_node_key *key,
                          uint32_t m_q16) {
    if (rules->policy != WR_NODE_LOCAL_SHARE) return outage_start_m(rules);
    const uint32_t m = key->averaged_us != 0 ? m_of_share(key->share_average)
                                             : outage_start_m(rules);
    return m > m_q16 ? m : m_q16;
}

void wr_node_relimit(struct wr_node_key *key) {
    key->rem = 0;
}

static double gap_us(const struct wr_node_rules *rules, int64_t rtt_us) {
    return 1.1 * (double)rules->interval_us + (double)rtt_us;
}

double wr_node_excess_bound(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                            double others_tokens_per_us, uint32_t others, int64_t rtt_us) {
    const double gap = gap_us(rules, rtt_us);
    const double blind = limit->tokens_per_us * (gap + (double)rtt_us / 2);
    double demand = others_tokens_per_us * 2 * gap;
    const double most = others * (limit->burst_tokens + 2 * limit->tokens_per_us * gap);
    if (others != 0 && demand > most) demand = most;
    return blind + demand;
}

double wr_node_late_bound(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                          double own_tokens, double others_tokens, uint32_t others,
                          int64_t blind_us, int64_t rtt_us) {
    const double gap = gap_us(rules, rtt_us);
    const double time = (double)blind_us + gap;
    const double most = others * (limit->burst_tokens + limit->tokens_per_us * time);
    double demand = others_tokens;
    if (others != 0 && demand > most) demand = most;
    return own_tokens + limit->tokens_per_us * (gap + (double)rtt_us / 2) + demand;
}

bool wr_node_is_late(const struct wr_node_rules *rules, int64_t blind_us, int64_t rtt_us) {
    return (double)blind_us > 2 * gap_us(rules, rtt_us);
}
