// A pool of pthreads with a limiter: every worker asks before it sends, no lock is held.
#include <pthread.h>
#include <stdatomic.h>

#include "example.h"
#include "weir.h"

#define WORKERS 4
#define USERS 3
#define JOBS 600

static struct weir *limiter;
static atomic_int next_job;
static atomic_int sent[USERS];
static atomic_int put_off;

static void *work(void *unused) {
    int job;
    while ((job = atomic_fetch_add(&next_job, 1)) < JOBS) {
        const int user = job % USERS;
        if (weir_take(limiter, weir_id((uint64_t)user), 1, NULL) == WEIR_GRANTED)
            atomic_fetch_add(&sent[user], 1); // here the message would go out
        else atomic_fetch_add(&put_off, 1);   // and here back into the queue
    }
    return unused;
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "sms";
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_HOUR, .burst = 20};
    options.capacity_keys = 1000;
    struct weir_error error;
    if (weir_create(&limiter, &options, &error) != WEIR_GRANTED) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    pthread_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        expect(pthread_create(&workers[i], NULL, work, NULL) == 0, "a thread starts");
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
    for (int user = 0; user < USERS; user++) expect(sent[user] == 20, "each user's burst is sent");
    expect(put_off == JOBS - USERS * 20, "the rest waits");
    weir_destroy(limiter);
    return 0;
}
