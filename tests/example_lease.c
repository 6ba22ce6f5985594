// Leases: all workers send through one provider, so they all ask for the same key. Each takes some
// tokens at a time for itself, and then spends them without touching what the others touch.
#include <pthread.h>
#include <stdint.h>

#include "example.h"
#include "weir.h"

#define WORKERS 4
#define ASKS 1000
#define BURST 2500

static struct weir *limiter;

struct worker {
    pthread_t thread;
    uint64_t sent;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    struct weir_lease lease; // this thread's own
    struct weir_lease_options options = WEIR_LEASE_OPTIONS_INIT;
    options.chunk_max_tokens = 64;
    expect(weir_lease_init(&lease, limiter, weir_str("provider"), &options) == WEIR_GRANTED,
           "a lease is made");
    for (int i = 0; i < ASKS; i++) {
        if (weir_lease_take(&lease, 1, NULL) == WEIR_GRANTED) worker->sent++;
        // Before a pause: what has been held for too long goes back, for others to spend.
        if (i % 100 == 99) weir_lease_tick(&lease);
    }
    weir_lease_fini(&lease); // and what is left goes back, too
    return NULL;
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = BURST};
    options.capacity_keys = 1;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    struct worker workers[WORKERS] = {0};
    for (int i = 0; i < WORKERS; i++)
        expect(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread starts");
    uint64_t sent = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        sent += workers[i].sent;
    }
    // While one holds tokens, another may be refused; what is left shows that none was lost.
    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_peek(limiter, weir_str("provider"), 0, &answer) == WEIR_GRANTED, "a peek");
    expect(sent <= BURST && sent + answer.remaining == BURST, "sent and left are the burst");
    weir_destroy(limiter);
    return 0;
}
