// stress_lot.c - many parkers, takers, cancellers and a watcher on one lot: the balance holds,
// every event comes back exactly once, and nothing that was due is overlooked.
//
//     stress_lot [events a parker] [seed]
//
// Events are allocated by who parks them and freed by who gets them back, so that a sanitizer sees
// any touch of an event that the lot no longer has.
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lot.h"

#define PARKERS 3
#define TAKERS 2
#define KEYS 5
#define RECENT 64

struct event {
    struct weir_lot_node node;
    uint64_t name;
    uint64_t written; // plain: whoever has the event may
};

static struct weir_lot *lot;
static _Atomic uint8_t *back; // how often each event came back
static uint8_t *parked;       // by its parker alone
static uint64_t events_each;
static uint64_t longest_wait_ns;
static uint64_t first_seed;
static _Atomic int64_t now_ns;
static _Atomic unsigned parkers_left;
static _Atomic uint64_t counted[3]; // what the threads saw come back: taken, cancelled, drained

enum way_back { TAKEN, CANCELLED, DRAINED };

static void fail(const char *what, uint64_t number) {
    fprintf(stderr, "stress_lot: %s (%" PRIu64 "); seed %" PRIu64 "\n", what, number, first_seed);
    exit(1);
}

static uint64_t draw(uint64_t *state, uint64_t below) { // splitmix64
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % below;
}

static void receive(struct weir_lot_node *node, enum way_back way) {
    struct event *event = WEIR_LOT_EVENT(node, struct event, node);
    if (event->written != event->name) fail("an event came back changed", event->name);
    event->written = 0;
    if (atomic_fetch_add_explicit(&back[event->name], 1, memory_order_relaxed) != 0)
        fail("an event came back twice", event->name);
    atomic_fetch_add_explicit(&counted[way], 1, memory_order_relaxed);
    free(event);
}

static bool park_one(uint64_t name, uint64_t *random, struct weir_lot_ticket *ticket,
                     uint64_t wait_ns) {
    struct event *event = malloc(sizeof *event);
    if (event == NULL) fail("no memory", 0);
    *event = (struct event){WEIR_LOT_NODE_INIT, name, name};
    const int64_t now = atomic_fetch_add_explicit(&now_ns, 1, memory_order_relaxed);
    const bool by_key = draw(random, 2) == 0;
    const struct weir_key key = weir_id(draw(random, KEYS));
    const int result = by_key ? weir_lot_defer(lot, key, &event->node, wait_ns, now, ticket)
                              : weir_lot_park(lot, &event->node, wait_ns, now, ticket);
    if (result == (by_key ? WEIR_PARKED : WEIR_GRANTED)) return true;
    if (result < 0) fail("a park failed", (uint64_t)-result);
    free(event);
    return false;
}

// An event that is due, and parked before a take began that then found too little, is gone.
static void check_nothing_overlooked(const struct weir_lot_ticket *ticket) {
    struct weir_lot_node *node;
    while (weir_lot_take(lot, atomic_load_explicit(&now_ns, memory_order_relaxed), &node, 1) == 1)
        receive(node, TAKEN);
    if (weir_lot_cancel(lot, *ticket) != NULL) fail("a take overlooked an event", ticket->place);
}

static void *parker(void *argument) {
    const uint64_t index = (uint64_t)(uintptr_t)argument;
    uint64_t random = first_seed + index;
    struct weir_lot_ticket recent[RECENT] = {{0, 0}};
    for (uint64_t i = 0; i < events_each; i++) {
        const uint64_t name = index * events_each + i;
        struct weir_lot_ticket *ticket = &recent[i % RECENT];
        const bool at_once = draw(&random, 8) == 0;
        parked[name] = park_one(name, &random, ticket,
                                at_once ? 0 : draw(&random, longest_wait_ns));
        if (parked[name] && at_once) check_nothing_overlooked(ticket);
        if (draw(&random, 3) != 0) continue;
        struct weir_lot_node *node = weir_lot_cancel(lot, recent[draw(&random, RECENT)]);
        if (node != NULL) receive(node, CANCELLED);
    }
    atomic_fetch_sub_explicit(&parkers_left, 1, memory_order_release);
    return NULL;
}

static void *taker(void *argument) {
    uint64_t random = first_seed + 100 + (uint64_t)(uintptr_t)argument;
    struct weir_lot_node *nodes[40];
    while (atomic_load_explicit(&parkers_left, memory_order_acquire) != 0) {
        const int64_t now = atomic_load_explicit(&now_ns, memory_order_relaxed);
        const size_t count = weir_lot_take(lot, now, nodes, 1 + draw(&random, 40));
        for (size_t i = 0; i < count; i++) {
            if (nodes[i]->due_ns > now) fail("an event came back early", (uint64_t)i);
            receive(nodes[i], TAKEN);
        }
        (void)weir_lot_next_ns(lot, now);
    }
    return NULL;
}

// No reading of the numbers, however it falls, shows more come back than were parked.
static void *watcher(void *argument) {
    (void)argument;
    struct weir_lot_stats s;
    while (atomic_load_explicit(&parkers_left, memory_order_acquire) != 0) {
        weir_lot_stats(lot, &s, sizeof s);
        if (s.held > s.parked) fail("more came back than was parked", s.held);
    }
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[PARKERS + TAKERS + 1];
    unsigned started = 0;
    atomic_store_explicit(&parkers_left, PARKERS, memory_order_relaxed);
    for (uintptr_t i = 0; i < PARKERS; i++)
        pthread_create(&threads[started++], NULL, parker, (void *)i);
    for (uintptr_t i = 0; i < TAKERS; i++)
        pthread_create(&threads[started++], NULL, taker, (void *)i);
    pthread_create(&threads[started++], NULL, watcher, NULL);
    while (started > 0) pthread_join(threads[--started], NULL);
}

static void drain_all(void) {
    struct weir_lot_node *nodes[7];
    weir_lot_close(lot);
    for (size_t count; (count = weir_lot_drain(lot, nodes, 7)) != 0;)
        for (size_t i = 0; i < count; i++) receive(nodes[i], DRAINED);
}

static void check_balance(void) {
    struct weir_lot_stats s;
    uint64_t all = 0;
    for (uint64_t name = 0; name < PARKERS * events_each; name++) {
        all += parked[name];
        if (back[name] != parked[name]) fail("an event is lost", name);
    }
    weir_lot_stats(lot, &s, sizeof s);
    if (s.parked != all) fail("the count of events parked is wrong", s.parked);
    if (s.retried != counted[TAKEN]) fail("the count of events taken is wrong", s.retried);
    if (s.cancelled != counted[CANCELLED]) fail("the count of cancels is wrong", s.cancelled);
    if (s.drained != counted[DRAINED]) fail("the count of events drained is wrong", s.drained);
    if (s.held != 0) fail("the lot is not empty", s.held);
    if (s.refused != PARKERS * events_each - all) fail("the refusals are wrong", s.refused);
    for (unsigned row = 0; row < 2; row++)
        for (unsigned i = 0; i < WR_LOT_KEY_SLOTS; i++)
            if (lot->keys.counts[row][i] != 0) fail("a key's count is not 0", i);
    uint64_t free_places = 0;
    for (uint32_t next = (uint32_t)lot->free.tag; next != 0; next = lot->next_free[next - 1])
        free_places++;
    if (free_places != s.capacity) fail("a place is lost", free_places);
    printf("capacity %" PRIu64 ": parked %" PRIu64 " = retried %" PRIu64 " + cancelled %" PRIu64
           " + drained %" PRIu64 ", refused %" PRIu64 "\n",
           s.capacity, s.parked, s.retried, s.cancelled, s.drained, s.refused);
}

static void run(uint64_t capacity) {
    struct weir_lot_options options = WEIR_LOT_OPTIONS_INIT;
    struct weir_error error;
    options.capacity = capacity;
    if (weir_lot_create(&lot, &options, &error) != WEIR_GRANTED) fail(error.text, 0);
    back = calloc(PARKERS * events_each, sizeof *back);
    parked = calloc(PARKERS * events_each, sizeof *parked);
    if (back == NULL || parked == NULL) fail("no memory", 0);
    for (unsigned i = 0; i < 3; i++) atomic_store_explicit(&counted[i], 0, memory_order_relaxed);
    longest_wait_ns = 3 * capacity; // the clock goes on by 1 ns a park: often full
    run_threads();
    drain_all();
    check_balance();
    free((void *)back);
    free(parked);
    weir_lot_destroy(lot);
}

int main(int argc, char **argv) {
    static const uint64_t capacities[] = {3, 16, 100, 5000};
    events_each = argc > 1 ? strtoull(argv[1], NULL, 10) : 150000;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (unsigned i = 0; i < sizeof capacities / sizeof capacities[0]; i++) run(capacities[i]);
    return 0;
}
