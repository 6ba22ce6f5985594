// weir_take_all under threads and under kill: nothing is lost or minted but what weir.h states.
//
// WEIR_STRESS_SECONDS prolongs it. The number of asks is given by time, nothing asserted is.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define THREADS 4
#define USERS 3
#define BURST 200000000 // does not fill in the time there is

static uint64_t zero_of(struct weir *w, uint64_t key) {
    struct wr_pair slot;
    assert_int_equal(live_ways(w, weir_id(key), &slot), 1);
    return slot.word;
}

static struct weir_part part_of(struct weir *w, uint64_t key, uint64_t cost) {
    struct weir_part part = {w, WEIR_ASK_INIT};
    part.ask.key = weir_id(key);
    part.ask.cost = cost;
    return part;
}

// Keys 0 to `keys` - 1 emptied.
static struct weir *create_empty(uint64_t tokens, uint64_t keys) {
    struct weir_options options = options_at(tokens, WEIR_SECOND, BURST);
    options.clock = WEIR_CLOCK_AUTO;
    struct weir *w = create(&options);
    for (uint64_t key = 0; key < keys; key++)
        assert_int_equal(weir_take(w, weir_id(key), BURST, NULL), WEIR_GRANTED);
    return w;
}

struct worker {
    struct weir *user, *global;
    struct random random;
    uint64_t until_ns, spent[USERS], refused[2], surprises;
    pthread_t thread;
};

static void *work(void *at) {
    struct worker *t = at;
    while (monotonic_ns() < t->until_ns)
        for (int i = 0; i < 200; i++) {
            // One user asks for most of it, and comes to its own limit before the global one.
            const uint64_t other = random_below(&t->random, 10);
            const uint64_t key = other < USERS ? other : 0;
            const uint64_t cost = random_below(&t->random, 4);
            const struct weir_part parts[2] = {part_of(t->user, key, cost),
                                               part_of(t->global, 0, cost)};
            size_t refused = 9;
            const int result = weir_take_all(parts, 2, &refused, NULL);
            if (result == WEIR_GRANTED) t->spent[key] += cost;
            else if (result == WEIR_DENIED && refused < 2) t->refused[refused]++;
            else t->surprises++;
        }
    return NULL;
}

static void run(struct worker *workers, struct weir *user, struct weir *global) {
    const uint64_t until_ns = monotonic_ns() + (uint64_t)(stress_seconds(0.7) * 1e9);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.user = user, .global = global, .random = {i + 1},
                                     .until_ns = until_ns};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
}

static void user_and_global_limits_lose_the_same_and_what_was_granted(void **state) {
    (void)state;
    struct weir *user = create_empty(20000, USERS), *global = create_empty(30000, 1);
    struct worker workers[THREADS];
    uint64_t before[USERS], total = 0, refused[2] = {0, 0};
    const uint64_t global_before = zero_of(global, 0);
    for (uint64_t key = 0; key < USERS; key++) before[key] = zero_of(user, key);
    run(workers, user, global);
    for (uint64_t key = 0; key < USERS; key++) {
        uint64_t spent = 0;
        for (int i = 0; i < THREADS; i++) spent += workers[i].spent[key];
        assert_true(zero_of(user, key) - before[key] == spent * user->scale.unit_tokens);
        total += spent;
    }
    assert_true(zero_of(global, 0) - global_before == total * global->scale.unit_tokens);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].surprises, 0);
        refused[0] += workers[i].refused[0];
        refused[1] += workers[i].refused[1];
    }
    assert_int_equal(stats_of(user).denied, refused[0]);
    assert_int_equal(stats_of(global).denied, refused[1]);
    assert_true(total > 0); // how many were refused depends on how fast the machine is
    weir_destroy(user);
    weir_destroy(global);
}

// ---------------------------------------------------------------------------------------------
// Killed half way

static void *map_shared(void *context, size_t bytes, size_t align) {
    (void)context;
    unsigned char *memory = mmap(NULL, bytes + align, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    const size_t head = (align - (uintptr_t)memory % align) % align;
    if (head > 0) munmap(memory, head);
    return memory + head; // the tail stays until the test ends
}

static void unmap_shared(void *context, void *memory, size_t bytes) {
    (void)context;
    munmap(memory, bytes);
}

static const struct weir_allocator shared_memory = {map_shared, unmap_shared, NULL};

// Nothing comes back; key 0 has `left` tokens.
static struct weir *create_shared(uint64_t burst, uint64_t left) {
    struct weir_options options = options_at(0, WEIR_SECOND, burst);
    options.max_rate_tokens = options.max_rate_period_ns = 1;
    options.clock = WEIR_CLOCK_AUTO;
    options.allocator = &shared_memory;
    struct weir *w = create(&options);
    assert_int_equal(weir_take(w, weir_id(0), burst - left, NULL), WEIR_GRANTED);
    return w;
}

static uint64_t left_of(struct weir *w) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    assert_true(weir_peek(w, weir_id(0), 0, &answer) >= 0);
    return answer.remaining;
}

// What a child tells before and after each call.
struct progress {
    _Atomic uint64_t started, finished;
};

static void child_asks(const struct weir_part *parts, size_t count, int expected,
                       struct progress *progress) {
    for (;;) {
        atomic_fetch_add_explicit(&progress->started, 1, memory_order_release);
        if (weir_take_all(parts, count, NULL, NULL) != expected) _exit(1);
        atomic_fetch_add_explicit(&progress->finished, 1, memory_order_release);
    }
}

// A child that asks on and on, killed at a random moment. False: it ended by itself.
static bool kill_a_child(const struct weir_part *parts, size_t count, int expected,
                         struct progress *progress, struct random *random) {
    const uint64_t before = atomic_load_explicit(&progress->started, memory_order_acquire);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child_asks(parts, count, expected, progress);
    int status = 0;
    bool ended = false;
    while (!ended && atomic_load_explicit(&progress->started, memory_order_acquire) == before) {
        ended = waitpid(pid, &status, WNOHANG) == pid;
        sched_yield();
    }
    for (volatile uint64_t spin = random_below(random, 30000); spin > 0; spin--) continue;
    if (!ended) {
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static struct progress *map_progress(void) {
    struct progress *progress = map_shared(NULL, sizeof *progress, sizeof *progress);
    assert_non_null(progress);
    return progress;
}

#define KILLS 100
#define COST 3
#define PARTS 3

static void a_child_killed_half_way_costs_each_limiter_at_most_one_cost(void **state) {
    (void)state;
    struct weir *w[PARTS];
    struct weir_part parts[PARTS];
    struct progress *progress = map_progress();
    struct random random = {7};
    for (int i = 0; i < PARTS; i++) {
        w[i] = create_shared(4000000000, 3000000000);
        parts[i] = part_of(w[i], 0, COST);
    }
    for (int k = 0; k < KILLS; k++) {
        uint64_t before[PARTS], previous = UINT64_MAX;
        for (int i = 0; i < PARTS; i++) before[i] = left_of(w[i]);
        const uint64_t finished_before = progress->finished;
        assert_true(kill_a_child(parts, PARTS, WEIR_GRANTED, progress, &random));
        const uint64_t finished = progress->finished - finished_before;
        for (int i = 0; i < PARTS; i++) {
            const uint64_t debits = (before[i] - left_of(w[i])) / COST;
            assert_int_equal(debits * COST, before[i] - left_of(w[i]));
            assert_true(debits == finished || debits == finished + 1);
            assert_true(debits <= previous); // debited in order
            previous = debits;
        }
        assert_int_equal(weir_take_all(parts, PARTS, NULL, NULL), WEIR_GRANTED); // still usable
    }
    for (int i = 0; i < PARTS; i++) {
        const uint64_t left = left_of(w[i]);
        assert_int_equal(weir_take(w[i], weir_id(0), left, NULL), WEIR_GRANTED);
        assert_int_equal(weir_take(w[i], weir_id(0), 1, NULL), WEIR_DENIED);
        weir_destroy(w[i]);
    }
    munmap(progress, sizeof *progress);
}

// The same key twice, with tokens for one: every call debits, is refused on the way and gives back.
static void a_child_killed_while_giving_back_mints_nothing(void **state) {
    (void)state;
    struct weir *large = create_shared(1000000, 900000), *small = create_shared(1000, COST);
    const struct weir_part parts[] = {part_of(large, 0, COST), part_of(small, 0, COST),
                                      part_of(small, 0, COST)};
    struct progress *progress = map_progress();
    struct random random = {8};
    for (int k = 0; k < KILLS; k++) {
        const uint64_t before = left_of(large);
        assert_true(kill_a_child(parts, 3, WEIR_DENIED, progress, &random));
        const uint64_t lost = before - left_of(large), small_left = left_of(small);
        assert_true(lost == 0 || lost == COST);
        assert_true(small_left == 0 || small_left == COST);
        if (small_left == 0)
            assert_int_equal(weir_refund(small, weir_id(0), COST, NULL), WEIR_GRANTED);
    }
    weir_destroy(large);
    weir_destroy(small);
    munmap(progress, sizeof *progress);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_and_global_limits_lose_the_same_and_what_was_granted),
        cmocka_unit_test(a_child_killed_half_way_costs_each_limiter_at_most_one_cost),
        cmocka_unit_test(a_child_killed_while_giving_back_mints_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
