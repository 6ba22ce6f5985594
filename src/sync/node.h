// What one node of a synced limit does for one key: pure functions over a few integers. No clock,
// no input or output, no threads, no allocation: readings, random numbers and replies are
// arguments.
//
// Units
//   unit   1/unit_tokens of a token, as in the limiter's slots; every amount of tokens is in units
//   us     microseconds: of the local monotonic clock, of Redis TIME where the name says redis
//   level  units in the local bucket at a reading: V(now) - zero of the slot. At burst or above it
//          is full; below zero it is in debt. A slot is changed by zero := V(now) - level
//   m_q16  charge multiplier, fixed point with 16 binary places: 65536 charges a token for a token
//
// Between a limit and a decision all is integer and exact. Doubles appear in `wr_node_hear` and
// `wr_node_excess_bound` alone, where shares of demand are estimated.
//
// Who owns what: `wr_node_side` is what a decision touches (the table keeps the same fields beside
// a slot, read and written relaxed); `wr_node_key` and the rest belong to the sync thread alone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../wide.h"

#define WR_NODE_M_ONE UINT32_C(65536)
#define WR_NODE_M_MAX (UINT32_C(8192) * WR_NODE_M_ONE) // shares below 1/8192 are not told apart
#define WR_NODE_M_CLOSED UINT32_MAX                    // deny everything: outage under "closed"
#define WR_NODE_EARLY_NEVER UINT32_MAX

// The most time a bucket may be behind (2^52 us, 142 years): TAT stays exact in Lua's doubles.
#define WR_NODE_HORIZON_US (INT64_C(1) << 52)
// A microsecond must be a small part of a burst, since TAT is in whole microseconds.
#define WR_NODE_BURST_MIN_US INT64_C(100)
// Denials of an interval are exact up to here, then counted with probability this/count.
#define WR_NODE_DENIED_EXACT UINT32_C(64)

// Why a limit cannot be synced.
#define WR_NODE_REFUSALS(X)                                                                        \
    X(OK, "fine")                                                                                  \
    X(NO_RATE, "a limit of rate 0 or without limit has no time to full; it cannot be synced")     \
    X(NOT_EXACT, "period, rate and unit_tokens are too large together to convert exactly")         \
    X(SHORT_BURST, "the burst is under 100 us of the rate, and Redis keeps whole microseconds; "   \
                   "raise the burst")                                                              \
    X(LONG_HORIZON, "burst and max_debt are over 142 years of the rate; lower one of them")

enum wr_node_refusal {
#define WR_NODE_REFUSAL_ENTRY(name, text) WR_NODE_REFUSAL_##name,
    WR_NODE_REFUSALS(WR_NODE_REFUSAL_ENTRY)
#undef WR_NODE_REFUSAL_ENTRY
};

// A limit ready for the sync. One unit takes unit_us_num / unit_us_den us, in lowest terms.
struct wr_node_limit {
    uint64_t unit_us_num;
    wr_u128 unit_us_den;    // at most 2^75
    int64_t unit_tokens;    // units in a token
    int64_t burst_units;
    int64_t max_debt_units; // how far others' grants may push the level below zero
    int64_t burst_us;       // time in which the burst comes back, rounded down
    int64_t cap_us;         // the same of burst + max_debt
    double burst_tokens;    // for estimates only
    double tokens_per_us;   // for estimates only
    uint32_t generation;    // rises with each change of limit, the same number on every node
};

// What to do for a key while no answer comes.
enum wr_node_policy {
    WR_NODE_LOCAL_SHARE, // go on at this node's averaged share of the rate
    WR_NODE_OPEN,        // each node holds the whole limit alone
    WR_NODE_CLOSED       // deny
};

// The same for all keys of a sync.
struct wr_node_rules {
    int64_t interval_us;     // d: aim of the time between two reports of a touched key
    int64_t epoch_us;        // E: demand is counted per epoch; the same on every node
    int64_t hot_memory_us;   // a share heard is remembered so long (60 s)
    int64_t share_span_us;   // shares are averaged over so long for an outage (10 s)
    enum wr_node_policy policy;
    uint32_t expected_nodes; // 0: not known. Splits the limit of keys first seen in an outage
};

// Beside a slot. All zero: a key not asked for yet.
struct wr_node_side {
    uint64_t granted_units; // since the last freeze
    int64_t first_us;       // when the first of them was granted
    uint32_t denied_tokens; // since the last freeze, sampled above WR_NODE_DENIED_EXACT
    uint32_t m_q16;         // 0: new
    uint32_t early_tokens;  // report early once so much is granted since the last freeze
    uint32_t synced_ms;     // low 32 bits of the local time of the last answer, in ms
};

// The sync thread's own knowledge of a key. All zero: nothing heard yet.
struct wr_node_key {
    wr_u128 rem;           // granted and not reported: rem / unit_us_den us, under 1 us
    uint32_t epoch;        // of the two counts below; the epoch's index mod 2^32
    uint32_t own_previous; // tokens this node asked for in the epoch before
    uint32_t own_current;  // ... and in this one
    double share_average;  // this node's part of the demand, averaged
    int64_t averaged_us;   // over so long; 0: nothing heard yet
    int64_t heard_us;      // local time of the last answer
};

// What a report holds. It is not changed by a retry, so that it counts once.
struct wr_node_frozen {
    uint64_t granted_units;
    int64_t first_us;       // of these grants; the time of the freeze if there are none
    uint64_t cost_us;
    wr_u128 rem_before;
    uint32_t denied_tokens;
    uint32_t demand_tokens; // granted and denied
};

// One ask, as a decision sees it.
struct wr_node_ask {
    int64_t now_us;
    uint64_t cost_units;
    uint32_t random;     // uniform
    bool outage;         // the sync has had no answer for more than 2d
};

enum wr_node_answer { WR_NODE_GRANTED, WR_NODE_DENIED, WR_NODE_NEVER };

struct wr_node_reply {
    int64_t rel_us;          // TAT - Redis' clock
    bool unknown;            // Redis knows no such key: a full bucket
    uint32_t previous_tokens; // demand of all nodes in the epoch before
    uint32_t current_tokens;
};

struct wr_node_timing {
    int64_t sent_us;     // this attempt
    int64_t received_us;
    int64_t redis_us;    // Redis TIME at the reply
    uint32_t random;     // uniform
};

// What a reply means for the slot and the side; the two `wr_node_settle` apply it.
struct wr_node_heard {
    int64_t base_us;        // local time at which the shared bucket is full, at least sent_us
    int64_t lottery_units;  // (o - 1) tokens: makes shares below one token come out even on average
    uint32_t m_q16;
    uint32_t early_tokens;
    uint32_t synced_ms;
};

// From tokens a period, burst, and the most debt. max_debt_tokens is the sync's own option.
enum wr_node_refusal wr_node_limit_init(struct wr_node_limit *limit, uint64_t tokens,
                                        uint64_t period_ns, uint64_t burst_tokens,
                                        uint64_t max_debt_tokens, uint64_t unit_tokens,
                                        uint32_t generation);
const char *wr_node_refusal_text(enum wr_node_refusal refusal);

// Decides in one place, for tests, the simulator and strict's local denials. The table does the
// same around its own compare-and-swap, from the four helpers below. `level` is that of
// ask->now_us, and after the ask; `urgent` is only ever set.
enum wr_node_answer wr_node_take(const struct wr_node_limit *limit,
                                 const struct wr_node_rules *rules, struct wr_node_side *side,
                                 int64_t *level, const struct wr_node_ask *ask, bool *urgent);

// What a grant takes from a level that covers its cost: cost * m, rounded up, but no further down
// than max_debt below zero.
int64_t wr_node_charge(const struct wr_node_limit *limit, uint64_t cost_units, uint32_t m_q16,
                       int64_t level);
// True if the key has not been synced for more than 2E + 2d: its report is urgent.
bool wr_node_is_cold(const struct wr_node_rules *rules, const struct wr_node_side *side,
                     int64_t now_us);
// The multiplier and the level that a new, or a cold and full, key starts with. True if it changed
// anything; a level is only lowered.
bool wr_node_warm(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                  struct wr_node_side *side, int64_t *level, const struct wr_node_ask *ask);
// The denied count after one more denial of `cost_tokens`; unbiased, and rarely changed when high.
uint32_t wr_node_count_denied(uint32_t denied_tokens, uint32_t cost_tokens, uint32_t random);

// Takes what a key granted and denied since the last freeze (already swapped out of its side) into
// a report. Never loses or mints: the part under a microsecond stays in key->rem.
void wr_node_freeze(const struct wr_node_limit *limit, struct wr_node_key *key,
                    const struct wr_node_side *taken, int64_t now_us,
                    struct wr_node_frozen *frozen);
// Puts a report that was surely not applied back, as if it had never been frozen.
void wr_node_unfreeze(struct wr_node_key *key, const struct wr_node_frozen *frozen,
                      struct wr_node_side *side);
// How old a report is at a send, for Redis to date it back; and whether it is a backlog, which may
// use up the burst but leaves no debt behind.
uint32_t wr_node_age_us(const struct wr_node_frozen *frozen, int64_t now_us);
bool wr_node_is_backlog(const struct wr_node_rules *rules, const struct wr_node_frozen *frozen,
                        int64_t now_us);

// Reads a reply to `frozen`.
void wr_node_hear(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                  struct wr_node_key *key, const struct wr_node_frozen *frozen,
                  const struct wr_node_reply *reply, const struct wr_node_timing *timing,
                  struct wr_node_heard *heard);
// The level after a reply, from the one the slot has now: for a compare-and-swap loop, with what
// the side has granted since the freeze and a reading taken after both. m_before: the side's until
// now.
int64_t wr_node_settle(const struct wr_node_limit *limit, const struct wr_node_heard *heard,
                       int64_t level, uint64_t since_units, uint32_t m_before, int64_t now_us);
// Then the side's fields.
void wr_node_settle_side(const struct wr_node_heard *heard, struct wr_node_side *side);

// The multiplier of a known key while no answer comes, by policy.
uint32_t wr_node_outage_m(const struct wr_node_rules *rules, const struct wr_node_key *key,
                          uint32_t m_q16);
// After a change of limit: what was left under a microsecond is dropped.
void wr_node_relimit(struct wr_node_key *key);

// B1 without its two last terms: the most that all nodes may have granted over b + r*W, given the
// demand of the others (tokens a us) and how many they are (0: not known). For reports that leave
// on time: no node is without an answer for much longer than rules->interval_us and rtt_us.
double wr_node_excess_bound(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                            double others_tokens_per_us, uint32_t others, int64_t rtt_us);

// The same after a stretch of blind_us without an answer: an outage, a stop. A node alone never
// grants more than the limit, so what all granted over it is at most what this node granted
// (own_tokens), and what the others granted that were blind as well. Those report it late, all at
// once: it is at most all that Redis has heard them ask for in two epochs (others_tokens, not
// stretched by time: it was gathered over the outage), and the whole limit for each of them.
// It holds whatever shares the nodes went by in the meantime, once all that were blind have
// reported: so it holds of the greatest among what the nodes export.
double wr_node_late_bound(const struct wr_node_limit *limit, const struct wr_node_rules *rules,
                          double own_tokens, double others_tokens, uint32_t others,
                          int64_t blind_us, int64_t rtt_us);
// Whether a stretch without an answer is so long.
bool wr_node_is_late(const struct wr_node_rules *rules, int64_t blind_us, int64_t rtt_us);
