// The simulation of valve_sim.h: one loop over milliseconds, all numbers whole but for the rates.
#include "valve_sim.h"

#include <inttypes.h>
#include <string.h>

#define SLOTS 1024 // of the wheels: later than any latency or retry, a power of two
#define MILLI UINT64_C(1000000)

struct provider {
    uint64_t tokens_e3; // thousandths of a call
    uint64_t waiting;   // calls begun that he has not got to, where he does not refuse
};

struct sim {
    const struct sim_options *o;
    struct sim_result *r;
    uint64_t random;
    uint64_t outside, queue, idle, retrying, granted, overloads_sampled;
    uint64_t tokens_e6, token_rate_e3, token_burst;
    uint64_t arrival_rest;
    uint64_t possible_e3;
    struct provider provider;
    uint32_t done[SLOTS], refused[SLOTS], retried[SLOTS];
};

struct sim_options sim_defaults(void) {
    return (struct sim_options){
        .seed = 1,
        .duration_ms = 30000,
        .workers = 16,
        .queue_capacity = 1024,
        .capacity = {{0, 500}, {10000, 200}, {20000, 500}, {UINT32_MAX, 0}},
        .provider_burst_ms = 20,
        .refuses = true,
        .latency_ms = 20,
        .refusal_ms = 20,
        .retry_ms = 100,
        .arrivals_per_s = 60,
        .flash_sale = true,
        .tell_use = true,
    };
}

static uint64_t draw(struct sim *sim, uint64_t below) { // splitmix64
    uint64_t z = sim->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % below;
}

static uint32_t phase_at(const struct sim_options *o, uint32_t ms) {
    uint32_t phase = 0;
    while (phase + 1 < SIM_PHASES && o->capacity[phase + 1].from_ms <= ms) phase++;
    return phase;
}

// Arrivals a second: even until a third of the duration, thirty times that for a sixth, then halved
// every fifteenth.
static uint64_t arrivals_per_s(const struct sim_options *o, uint32_t ms) {
    const uint64_t sixtieth = (uint64_t)ms * 60 / o->duration_ms;
    if (!o->flash_sale || sixtieth < 20) return o->arrivals_per_s;
    const uint64_t extra = 29 * (uint64_t)o->arrivals_per_s;
    return o->arrivals_per_s + (sixtieth < 31 ? extra : extra >> (sixtieth - 31) / 4);
}

static void arrive(struct sim *sim, uint32_t ms) {
    // Twice the mean is drawn evenly, in thousandths of an event; the rest is carried on.
    const uint64_t mean_e3 = arrivals_per_s(sim->o, ms);
    sim->arrival_rest += draw(sim, 2 * mean_e3 + 1);
    const uint64_t events = sim->arrival_rest / 1000;
    sim->arrival_rest %= 1000;
    sim->outside += events;
    sim->r->arrived += events;
}

static void limit_changed(struct sim *sim, const struct weir_limit *limit) {
    sim->token_rate_e3 = limit->tokens * 1000 / (limit->period_ns / WEIR_SECOND);
    sim->token_burst = limit->burst;
}

// Lets events into the queue. Without a limit, as many as fit.
static void grant(struct sim *sim) {
    const bool limited = sim->o->valve != NULL || sim->o->fixed_per_s != 0;
    sim->tokens_e6 += sim->token_rate_e3;
    if (sim->tokens_e6 > sim->token_burst * 1000000) sim->tokens_e6 = sim->token_burst * 1000000;
    while (sim->outside > 0 && sim->queue < sim->o->queue_capacity) {
        if (limited && sim->tokens_e6 < 1000000) break;
        if (limited) sim->tokens_e6 -= 1000000;
        sim->outside--;
        sim->queue++;
        sim->granted++;
    }
    if (sim->queue > sim->r->worst_depth) sim->r->worst_depth = sim->queue;
}

static uint32_t latency(struct sim *sim, uint32_t mean_ms) {
    if (mean_ms < 4) return mean_ms == 0 ? 1 : mean_ms;
    return mean_ms - mean_ms / 4 + (uint32_t)draw(sim, mean_ms / 2 + 1);
}

// One millisecond's more; he begins with a full bucket, as weir's buckets do.
static void refill_provider(struct sim *sim, uint32_t per_s) {
    const uint64_t most = 1000 + (uint64_t)per_s * sim->o->provider_burst_ms;
    sim->provider.tokens_e3 += per_s;
    if (sim->provider.tokens_e3 > most) sim->provider.tokens_e3 = most;
}

static void call(struct sim *sim, uint32_t ms, uint32_t per_s) {
    struct provider *provider = &sim->provider;
    const bool takes = per_s != 0 && provider->tokens_e3 >= 1000;
    sim->idle--;
    sim->queue--;
    if (!takes && !sim->o->refuses) {
        provider->waiting++;
        return;
    }
    if (takes) provider->tokens_e3 -= 1000;
    uint32_t *ends = takes ? sim->done : sim->refused;
    ends[(ms + latency(sim, takes ? sim->o->latency_ms : sim->o->refusal_ms)) % SLOTS]++;
}

static void finish(struct sim *sim, uint32_t ms) {
    uint32_t *done = &sim->done[ms % SLOTS], *refused = &sim->refused[ms % SLOTS];
    uint32_t *retried = &sim->retried[ms % SLOTS];
    sim->outside += *retried;
    sim->retrying -= *retried;
    sim->idle += *done + *refused;
    sim->r->delivered += *done;
    sim->r->overloads += *refused;
    sim->overloads_sampled += *refused;
    sim->retrying += *refused;
    *retried = 0;
    sim->retried[(ms + sim->o->retry_ms) % SLOTS] += *refused;
    *done = *refused = 0;
    while (sim->provider.waiting > 0 && sim->provider.tokens_e3 >= 1000) {
        sim->provider.waiting--;
        sim->provider.tokens_e3 -= 1000;
        sim->done[(ms + latency(sim, sim->o->latency_ms)) % SLOTS]++;
    }
}

static double shown_depth(struct sim *sim) {
    const double noise = sim->o->noise_percent * ((double)draw(sim, 2001) - 1000) / 100000;
    return (double)sim->queue * (1 + noise);
}

static void note_rate(struct sim *sim, uint32_t ms, double rate_per_s) {
    const uint32_t phase = phase_at(sim->o, ms);
    const double per_s = sim->o->capacity[phase].per_s;
    struct sim_result *r = sim->r;
    r->changes += rate_per_s != r->last_rate_per_s;
    r->last_rate_per_s = rate_per_s;
    if (ms - sim->o->capacity[phase].from_ms < 5000 || per_s == 0 || sim->outside == 0) return;
    if (r->lowest_ratio == 0 || rate_per_s / per_s < r->lowest_ratio)
        r->lowest_ratio = rate_per_s / per_s;
    if (rate_per_s / per_s > r->highest_ratio) r->highest_ratio = rate_per_s / per_s;
}

static void sample(struct sim *sim, uint32_t ms, uint32_t interval_ms) {
    struct weir_sample sample = WEIR_SAMPLE_INIT;
    struct weir_valve_stats stats;
    struct weir_limit limit;
    sample.depth = shown_depth(sim);
    sample.overloads = sim->overloads_sampled;
    if (sim->o->tell_use) sample.granted_tokens = sim->granted;
    weir_valve_step(sim->o->valve, &sample, interval_ms * MILLI, &limit);
    weir_valve_stats(sim->o->valve, &stats, sizeof stats);
    limit_changed(sim, &limit);
    note_rate(sim, ms, stats.rate_per_s);
    if (sim->o->trace != NULL)
        fprintf(sim->o->trace,
                "%u ms: rate %.1f depth %" PRIu64 " smoothed %.1f overloads %" PRIu64
                " outside %" PRIu64 " delivered %" PRIu64 "\n",
                ms, stats.rate_per_s, sim->queue, stats.depth, sim->overloads_sampled,
                sim->outside, sim->r->delivered);
    sim->granted = sim->overloads_sampled = 0;
}

static void note_possible(struct sim *sim, uint64_t arrived, uint32_t per_s) {
    const bool waits = sim->outside + sim->queue + sim->retrying > 0;
    sim->possible_e3 += waits ? per_s : arrived * 1000;
}

static void start(struct sim *sim) {
    struct weir_limit limit = {sim->o->fixed_per_s, WEIR_SECOND, 1 + sim->o->fixed_per_s / 50};
    if (sim->o->valve != NULL) weir_valve_limit(sim->o->valve, &limit);
    limit_changed(sim, &limit);
    sim->tokens_e6 = sim->token_burst * 1000000;
    sim->idle = sim->o->workers;
    sim->provider.tokens_e3 = UINT64_MAX / 2; // cut to what he holds at once
}

// Every event there is, counted where it is: outside, in the queue, in a call or before its retry.
static uint64_t count_waiting(const struct sim *sim) {
    return sim->outside + sim->queue + sim->retrying + (sim->o->workers - sim->idle);
}

void sim_run(const struct sim_options *options, struct sim_result *result) {
    struct sim sim;
    memset(&sim, 0, sizeof sim);
    memset(result, 0, sizeof *result);
    sim.o = options;
    sim.r = result;
    sim.random = options->seed;
    start(&sim);
    for (uint32_t ms = 0; ms < options->duration_ms; ms++) {
        const uint32_t per_s = options->capacity[phase_at(options, ms)].per_s;
        const uint64_t before = result->arrived;
        refill_provider(&sim, per_s);
        finish(&sim, ms);
        arrive(&sim, ms);
        grant(&sim);
        while (sim.idle > 0 && sim.queue > 0) call(&sim, ms, per_s);
        note_possible(&sim, result->arrived - before, per_s);
        if (options->valve != NULL && (ms + 1) % 100 == 0) sample(&sim, ms, 100);
    }
    result->possible = sim.possible_e3 / 1000;
    result->waiting = count_waiting(&sim);
}
