// pool_provider.h - a service that is called and does not always answer as wished.
//
// It takes its capacity's calls, and 20 ms of them at once. Above that it answers 429, or else lets
// calls wait for their turn, and those that would wait longer than the timeout are never answered.
// In an outage it answers 503. Time is the caller's, since the start of the run, so that a test can
// make it up; a reading older than one before counts as that one. Any thread may call.
#ifndef WR_POOL_PROVIDER_H
#define WR_POOL_PROVIDER_H

#include <pthread.h>
#include <stdint.h>

#include "pool_spec.h"
#include "random.h"

enum wr_pool_status {
    WR_POOL_OK = 0,
    WR_POOL_TOO_MANY,    // 429
    WR_POOL_UNAVAILABLE, // 503
    WR_POOL_TIMEOUT,     // no answer
};

struct wr_pool_reply {
    enum wr_pool_status status;
    uint64_t after_ns; // when it comes
};

struct wr_provider {
    struct wr_downstream downstream;
    pthread_mutex_t mutex; // guards all below
    struct wr_random random;
    uint64_t now_ns;   // the newest reading
    size_t phase;
    int64_t level;     // calls it can take at once, in 10^-9 of one; below 0: calls wait
    uint64_t rest;     // of the division that made the level
};

void wr_provider_init(struct wr_provider *provider, const struct wr_downstream *downstream,
                      uint64_t seed);
void wr_provider_fini(struct wr_provider *provider);

struct wr_pool_reply wr_provider_call(struct wr_provider *provider, uint64_t now_ns);

#endif
