// The simulated fleet: sync_fleet.h says what it is.
#include "sync_fleet.h"

#include <stdlib.h>
#include <string.h>

#include "../src/sync/batch.h"
#include "../tests/sync_model.h"
#include "sync_demand.h"
#include "sync_judge.h"

#define TICK_US SYNC_JUDGE_TICK_US
#define UNIT_TOKENS 1441440
#define START_US INT64_C(1000000000)
#define REDIS_AHEAD_US INT64_C(1700000000123456) // Redis' clock is another one
#define MAIL_MAX 64

struct mail {
    bool used;
    bool is_reply;
    bool repeated; // never refused: TCP does not do both, answer one copy with an error, apply one
    int64_t at_us;
    uint32_t connection;
    uint64_t seq;
    uint64_t life; // of the sender; a marker is per life
    int64_t sent_us;
    struct sync_report report;
    struct sync_answer answer;
    int64_t marker_seq;
    int64_t redis_us;
    const char *error; // instead of an answer
};

struct member {
    struct wr_node_side side;
    struct wr_node_key key;
    struct wr_node_frozen frozen;
    struct wr_batch batch;
    int64_t zero; // of the local bucket: V at which it was or will be empty
    bool urgent;
    bool outage;
    bool merged_back;
    uint64_t life;
    uint32_t connection;
    int64_t connect_us; // INT64_MAX: no attempt under way
    int64_t marker_seq; // on the server, of this life
    int64_t applied_us; // ... as is this: costs charged
    uint64_t granted_units;
    int64_t asked_us;   // first ask since the last freeze; 0: none
    int64_t frozen_asked_us;
    struct mail mail[MAIL_MAX];
};

struct fleet {
    const struct fleet_config *config;
    struct wr_node_limit limit;
    struct wr_node_rules rules;
    struct sync_judge judge;
    struct sync_bucket bucket;
    struct member *members;
    struct fleet_result result;
    struct sync_random random;
    struct sync_demand demand;
    int64_t now_us;
    int64_t rtt_max_us;
};

static bool is_down(const struct fleet *fleet) {
    const int64_t tick = fleet->judge.tick;
    return tick >= fleet->config->outage_from && tick < fleet->config->outage_until;
}

// V: units made since time 0.
static int64_t token_clock(const struct fleet *fleet) {
    return (int64_t)((wr_u128)(uint64_t)fleet->now_us * fleet->config->tokens_per_second *
                     UNIT_TOKENS / 1000000);
}

static int64_t take(struct fleet *fleet, struct member *member, int64_t asks) {
    const int64_t v = token_clock(fleet);
    int64_t granted = 0;
    if (asks > 0 && member->asked_us == 0) member->asked_us = fleet->now_us;
    for (int64_t i = 0; i < asks; i++) {
        const struct wr_node_ask ask = {
            .now_us = fleet->now_us,
            .cost_units = UNIT_TOKENS,
            .random = sync_random_32(&fleet->random),
            .outage = member->outage,
        };
        int64_t level = v - member->zero;
        granted += wr_node_take(&fleet->limit, &fleet->rules, &member->side, &level, &ask,
                                &member->urgent) == WR_NODE_GRANTED;
        member->zero = v - level;
    }
    member->granted_units += (uint64_t)granted * UNIT_TOKENS;
    return granted;
}

static struct mail *new_mail(struct member *member) {
    for (int i = 0; i < MAIL_MAX; i++) {
        if (member->mail[i].used) continue;
        member->mail[i] = (struct mail){.used = true, .connection = member->connection,
                                        .life = member->life};
        return &member->mail[i];
    }
    abort(); // far more than retries and repeats can fill
}

static int64_t leg_us(struct fleet *fleet) {
    const double spread_ms = 2 * fleet->config->latency_ms;
    return TICK_US * (1 + (int64_t)(spread_ms * sync_random_uniform(&fleet->random)));
}

static int64_t late_us(struct fleet *fleet) {
    const double most_ms = (double)fleet->config->late_ms;
    return TICK_US * (int64_t)(most_ms * sync_random_uniform(&fleet->random));
}

static void post(struct fleet *fleet, struct member *member, uint64_t seq, bool repeated,
                 int64_t delay_us) {
    const struct wr_node_frozen *frozen = &member->frozen;
    struct mail *mail = new_mail(member);
    mail->seq = seq;
    mail->repeated = repeated;
    mail->sent_us = fleet->now_us;
    mail->at_us = fleet->now_us + leg_us(fleet) + delay_us;
    mail->report = (struct sync_report){
        .cost_us = (int64_t)frozen->cost_us,
        .cap_us = fleet->limit.cap_us,
        .burst_us = fleet->limit.burst_us,
        .generation = fleet->limit.generation,
        .age_us = wr_node_age_us(frozen, fleet->now_us),
        .demand = frozen->demand_tokens,
        .backlog = wr_node_is_backlog(&fleet->rules, frozen, fleet->now_us),
    };
}

static void send_report(struct fleet *fleet, struct member *member, uint64_t seq) {
    const struct fleet_config *config = fleet->config;
    struct sync_random *random = &fleet->random;
    const bool repeat = sync_random_chance(random, config->repeat);
    if (repeat) post(fleet, member, seq, true, late_us(fleet));
    if (is_down(fleet) || sync_random_chance(random, config->lose_request)) return;
    const bool late = sync_random_chance(random, config->late);
    post(fleet, member, seq, repeat, late ? late_us(fleet) : 0);
}

static double tokens_of_us(const struct fleet *fleet, int64_t us) {
    return (double)us * fleet->limit.tokens_per_us;
}

static void freeze(struct fleet *fleet, struct member *member) {
    const struct wr_node_side taken = member->side;
    member->side.granted_units = 0;
    member->side.denied_tokens = 0;
    wr_node_freeze(&fleet->limit, &member->key, &taken, fleet->now_us, &member->frozen);
    if (!member->merged_back) member->frozen_asked_us = member->asked_us;
    member->merged_back = false;
    member->asked_us = 0;
    member->urgent = false;
}

static double granted_in(const struct wr_node_frozen *frozen) {
    return (double)frozen->granted_units / UNIT_TOKENS;
}

static void apply(struct fleet *fleet, struct member *member, const struct mail *mail) {
    const struct wr_node_reply reply = {
        .rel_us = mail->answer.rel_us == INT64_MIN ? 0 : mail->answer.rel_us,
        .unknown = mail->answer.rel_us == INT64_MIN,
        .previous_tokens = mail->answer.previous,
        .current_tokens = mail->answer.current,
    };
    const struct wr_node_timing timing = {mail->sent_us, fleet->now_us, mail->redis_us,
                                          sync_random_32(&fleet->random)};
    const int64_t v = token_clock(fleet);
    struct wr_node_heard heard;
    wr_node_hear(&fleet->limit, &fleet->rules, &member->key, &member->frozen, &reply, &timing,
                 &heard);
    if (fleet->config->debt_only) {
        heard.m_q16 = WR_NODE_M_ONE;
        heard.lottery_units = 0;
    }
    member->zero = v - wr_node_settle(&fleet->limit, &heard, v - member->zero,
                                      member->side.granted_units, member->side.m_q16,
                                      fleet->now_us);
    wr_node_settle_side(&heard, &member->side);
    const int64_t gap_us = fleet->now_us - member->frozen_asked_us;
    if (gap_us > fleet->result.gap_us) fleet->result.gap_us = gap_us;
    if (fleet->now_us - mail->sent_us > fleet->rtt_max_us)
        fleet->rtt_max_us = fleet->now_us - mail->sent_us;
}

static void perform(struct fleet *fleet, struct member *member, const struct wr_batch_todo *todo,
                    const struct mail *mail) {
    if (todo->what & WR_BATCH_APPLY) apply(fleet, member, mail);
    if (todo->what & WR_BATCH_MERGE) {
        wr_node_unfreeze(&member->key, &member->frozen, &member->side);
        member->merged_back = true;
    }
    if (todo->what & WR_BATCH_FORGET) {
        fleet->result.forgiven += granted_in(&member->frozen);
        fleet->result.lost_reports++;
    }
    if (todo->what & (WR_BATCH_CONNECT | WR_BATCH_FOLLOW)) {
        member->connection++;
        member->connect_us = fleet->now_us + TICK_US;
    }
    if (todo->what & WR_BATCH_SEND) send_report(fleet, member, todo->seq);
}

static void serve(struct fleet *fleet, struct member *member, struct mail *mail) {
    static const char *const errors[] = {"OOM no memory", "LOADING soon", "READONLY a replica",
                                         "TRYAGAIN later", "ERR nothing"};
    if (is_down(fleet)) return; // arrived at a cut cable
    struct mail *reply = new_mail(member);
    reply->is_reply = true;
    reply->connection = mail->connection;
    reply->seq = mail->seq;
    reply->life = mail->life;
    reply->sent_us = mail->sent_us;
    reply->redis_us = fleet->now_us + REDIS_AHEAD_US;
    reply->at_us = fleet->now_us + leg_us(fleet);
    if (!mail->repeated && sync_random_chance(&fleet->random, fleet->config->refuse)) {
        reply->error = errors[sync_random_64(&fleet->random) % (sizeof errors / sizeof *errors)];
        return;
    }
    // A late report of a dead life is dropped: its tokens are in `crashed` already.
    const bool fresh = mail->life == member->life && (int64_t)mail->seq > member->marker_seq;
    const int64_t before_us = fleet->bucket.tat_us;
    reply->marker_seq = member->marker_seq;
    reply->answer = sync_model_report(&fleet->bucket, &mail->report, fresh, reply->redis_us,
                                      fleet->rules.epoch_us);
    if (fresh) {
        member->marker_seq = (int64_t)mail->seq;
        member->applied_us += mail->report.cost_us;
        fleet->result.exchanges++;
        fleet->result.forgiven += tokens_of_us(fleet, reply->answer.forgiven_us);
    }
    fleet->result.tat_errors += !fresh && fleet->bucket.tat_us != before_us;
    if (sync_random_chance(&fleet->random, fleet->config->lose_reply)) reply->used = false;
}

static void read_reply(struct fleet *fleet, struct member *member, const struct mail *mail) {
    struct wr_batch_todo todo;
    if (mail->life != member->life || mail->connection != member->connection) return;
    if (mail->error != NULL)
        wr_batch_refused(&member->batch, mail->seq, mail->error, strlen(mail->error),
                         fleet->now_us, sync_random_32(&fleet->random), &todo);
    else
        wr_batch_answered(&member->batch, mail->seq, mail->sent_us, mail->marker_seq,
                          fleet->now_us, &todo);
    perform(fleet, member, &todo, mail);
}

static void deliver(struct fleet *fleet, struct member *member) {
    for (int i = 0; i < MAIL_MAX; i++) {
        struct mail *mail = &member->mail[i];
        if (!mail->used || mail->at_us > fleet->now_us) continue;
        if (mail->is_reply) read_reply(fleet, member, mail);
        else serve(fleet, member, mail);
        mail->used = false;
    }
}

static void connect_due(struct fleet *fleet, struct member *member) {
    struct wr_batch_todo todo;
    if (fleet->now_us < member->connect_us || is_down(fleet)) return;
    member->connect_us = INT64_MAX;
    wr_batch_connected(&member->batch, fleet->now_us, &todo);
    perform(fleet, member, &todo, NULL);
    if (!(todo.what & WR_BATCH_LOAD)) return;
    wr_batch_loaded(&member->batch, fleet->now_us, &todo);
    perform(fleet, member, &todo, NULL);
}

static void exchange(struct fleet *fleet, struct member *member) {
    struct wr_batch_todo todo;
    const bool touched = member->side.granted_units != 0 || member->side.denied_tokens != 0;
    const bool urgent = member->urgent && !fleet->config->debt_only;
    const enum wr_batch_want want = !touched ? WR_BATCH_NOTHING
                                    : urgent ? WR_BATCH_URGENT
                                             : WR_BATCH_TOUCHED;
    connect_due(fleet, member);
    wr_batch_tick(&member->batch, fleet->now_us, want, sync_random_32(&fleet->random), &todo);
    perform(fleet, member, &todo, NULL);
    if (todo.what & WR_BATCH_FILL) {
        freeze(fleet, member);
        wr_batch_filled(&member->batch, 1, want, fleet->now_us, sync_random_32(&fleet->random),
                        &todo);
        perform(fleet, member, &todo, NULL);
    }
    const bool outage = wr_batch_outage(&member->batch, fleet->now_us);
    if (outage && !member->outage && member->side.m_q16 != 0 && !fleet->config->debt_only)
        member->side.m_q16 = wr_node_outage_m(&fleet->rules, &member->key, member->side.m_q16);
    member->outage = outage;
}

static void start_member(struct fleet *fleet, struct member *member) {
    const struct fleet_config *config = fleet->config;
    const struct wr_batch_config exchange_config = {
        .interval_us = config->interval_us,
        .urgent_gap_us = 5000,
        .timeout_us = wr_max_i64(2 * config->interval_us, 50000),
        .dead_us = 1000000,
        .backoff_min_us = 10000,
        .backoff_max_us = config->retry_max_us,
        .config_wait_us = 5000000,
        .marker_ttl_us = INT64_C(3600000000),
    };
    const uint64_t life = member->life + 1;
    sync_judge_started(&fleet->judge, (int)(member - fleet->members));
    *member = (struct member){.life = life, .marker_seq = -1, .connect_us = INT64_MAX};
    member->zero = token_clock(fleet) - fleet->limit.burst_units;
    wr_batch_init(&member->batch, &exchange_config, fleet->now_us, sync_random_32(&fleet->random));
}

static void crash(struct fleet *fleet) {
    const uint64_t nodes = (uint64_t)fleet->config->nodes;
    struct member *member = &fleet->members[sync_random_64(&fleet->random) % nodes];
    fleet->result.crashed += (double)member->side.granted_units / UNIT_TOKENS;
    // The report under way may have been applied; the bound may count it as lost all the same.
    if (member->batch.keys > 0) fleet->result.crashed += granted_in(&member->frozen);
    start_member(fleet, member);
}

static void flush(struct fleet *fleet) {
    const int64_t owed_us = fleet->bucket.tat_us - fleet->now_us - REDIS_AHEAD_US;
    if (owed_us > 0) fleet->result.forgiven += tokens_of_us(fleet, owed_us);
    fleet->bucket = (struct sync_bucket){0};
    for (int i = 0; i < fleet->config->nodes; i++) fleet->members[i].marker_seq = -1;
}

static void step(struct fleet *fleet) {
    const struct fleet_config *config = fleet->config;
    int64_t asked = 0, granted = 0;
    fleet->now_us = START_US + fleet->judge.tick * TICK_US;
    if (config->crash_every > 0 && fleet->judge.tick % config->crash_every == 1) crash(fleet);
    if (config->flush_every > 0 && fleet->judge.tick % config->flush_every == 2) flush(fleet);
    for (int i = 0; i < config->nodes; i++) {
        struct member *member = &fleet->members[i];
        const int64_t asks =
            sync_demand_asks(&fleet->demand, &fleet->random, i, fleet->judge.tick);
        deliver(fleet, member);
        sync_judge_asked(&fleet->judge, i, asks);
        asked += asks;
        granted += take(fleet, member, asks);
        exchange(fleet, member);
    }
    if (is_down(fleet)) fleet->result.outage_granted += (double)granted;
    sync_judge_tick(&fleet->judge, asked, granted);
}

static void start(struct fleet *fleet, const struct fleet_config *config) {
    *fleet = (struct fleet){.config = config, .random = {config->seed}};
    fleet->now_us = START_US;
    sync_demand_init(&fleet->demand, config->demand, config->load, config->nodes,
                     (double)config->tokens_per_second, config->burst);
    fleet->rules = (struct wr_node_rules){
        .interval_us = config->interval_us,
        .epoch_us = wr_max_i64(1000000, 4 * config->interval_us),
        .hot_memory_us = 60000000,
        .share_span_us = 10000000,
        .policy = config->policy,
        .expected_nodes = config->expected_nodes,
    };
    if (wr_node_limit_init(&fleet->limit, config->tokens_per_second, 1000000000, config->burst,
                           config->max_debt, UNIT_TOKENS, 1) != WR_NODE_REFUSAL_OK)
        abort();
    sync_judge_init(&fleet->judge, config->nodes, (double)config->tokens_per_second,
                    (double)config->burst, config->ticks, config->steady_from,
                    config->keep_bound);
    fleet->members = calloc((size_t)config->nodes, sizeof *fleet->members);
    if (fleet->members == NULL) abort();
    for (int i = 0; i < config->nodes; i++) start_member(fleet, &fleet->members[i]);
}

// Every grant is charged once, or has not been reported yet.
static bool counted_once(const struct fleet *fleet, const struct member *member) {
    const bool held = member->batch.keys > 0 && (int64_t)member->batch.seq > member->marker_seq;
    uint64_t units = member->granted_units - member->side.granted_units;
    if (held) units -= member->frozen.granted_units;
    return (wr_u128)units * fleet->limit.unit_us_num / fleet->limit.unit_us_den ==
           (wr_u128)(uint64_t)member->applied_us;
}

struct fleet_config fleet_standard(int nodes, uint64_t seed) {
    return (struct fleet_config){
        .seed = seed,
        .nodes = nodes,
        .tokens_per_second = 500,
        .burst = 500,
        .max_debt = 30000,
        .interval_us = 100000,
        .ticks = 120000,
        .steady_from = 20000,
        .latency_ms = 1,
        .retry_max_us = 200000,
        .policy = WR_NODE_LOCAL_SHARE,
    };
}

struct fleet_result fleet_run(const struct fleet_config *config) {
    struct fleet fleet;
    start(&fleet, config);
    for (int64_t tick = 0; tick < config->ticks; tick++) step(&fleet);
    struct fleet_result result = fleet.result;
    for (int i = 0; i < config->nodes; i++)
        result.count_errors += !counted_once(&fleet, &fleet.members[i]);
    result.granted = (double)fleet.judge.granted;
    result.ideal = (double)fleet.judge.ideal;
    result.asked = (double)fleet.judge.asked;
    result.denied = result.asked - result.granted;
    result.excess = sync_judge_excess(&fleet.judge);
    result.steady_excess = sync_judge_steady_excess(&fleet.judge);
    result.starved_s = (double)fleet.judge.starved_ticks_max * TICK_US / 1e6;
    if (config->keep_bound)
        result.bound = sync_judge_bound(&fleet.judge, result.gap_us, fleet.rtt_max_us);
    sync_judge_fini(&fleet.judge);
    free(fleet.members);
    return result;
}
