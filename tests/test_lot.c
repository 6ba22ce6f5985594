// test_lot.c - parking, due times, cancel and drain, against an exact model; what a thread that
// stopped half way leaves behind.
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lot.h"
#include "memory.h"

#define EVENTS 4096

struct event {
    uint64_t name;
    struct weir_lot_node node;
    struct weir_lot_ticket ticket;
    bool parked; // the model's opinion
};

static struct event events[EVENTS];

static struct weir_lot *make_lot(uint64_t capacity) {
    struct weir_lot_options options = WEIR_LOT_OPTIONS_INIT;
    struct weir_error error = {""};
    struct weir_lot *lot;
    options.capacity = capacity;
    if (weir_lot_create(&lot, &options, &error) != WEIR_GRANTED) fail_msg("%s", error.text);
    memset(events, 0, sizeof events);
    return lot;
}

static int park(struct weir_lot *lot, unsigned i, uint64_t wait_ns, int64_t now_ns) {
    const int result = weir_lot_park(lot, &events[i].node, wait_ns, now_ns, &events[i].ticket);
    if (result == WEIR_GRANTED) events[i].parked = true;
    return result;
}

static struct event *event_of(struct weir_lot_node *node) {
    return WEIR_LOT_EVENT(node, struct event, node);
}

static struct event *take_one(struct weir_lot *lot, int64_t now_ns) {
    struct weir_lot_node *node;
    return weir_lot_take(lot, now_ns, &node, 1) == 1 ? event_of(node) : NULL;
}

static void assert_balance(const struct weir_lot *lot, uint64_t held) {
    struct weir_lot_stats s;
    assert_int_equal(weir_lot_stats(lot, &s, sizeof s), WEIR_GRANTED);
    assert_int_equal(s.parked, s.retried + s.cancelled + s.drained + s.held);
    assert_int_equal(s.held, held);
}

static void an_empty_lot_has_nothing_due(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(10);
    assert_null(take_one(lot, INT64_MAX));
    assert_int_equal(weir_lot_next_ns(lot, 0), WEIR_FOREVER);
    assert_int_equal(weir_lot_drain(lot, &(struct weir_lot_node *){NULL}, 1), 0);
    assert_balance(lot, 0);
    weir_lot_destroy(lot);
    weir_lot_destroy(NULL);
}

static void an_event_is_due_after_exactly_its_wait(void **state) {
    (void)state;
    static const struct {
        int64_t now_ns;
        uint64_t wait_ns;
        int64_t due_ns;
    } cases[] = {
        {0, 0, 0}, {0, 1, 1}, {-7, 7, 0}, {5, WEIR_MILLISECOND, 1000005},
        {1000, 30 * WEIR_DAY, INT64_C(2592000000001000)},
        {INT64_MIN, 1, INT64_MIN + 1}, {INT64_MIN, UINT64_MAX - 2, INT64_MAX - 2},
        {100, WEIR_FOREVER, INT64_MAX - 1}, {INT64_MAX, 0, INT64_MAX - 1},
    };
    struct weir_lot *lot = make_lot(10);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(park(lot, 0, cases[i].wait_ns, cases[i].now_ns), WEIR_GRANTED);
        assert_int_equal(events[0].node.due_ns, cases[i].due_ns);
        if (cases[i].due_ns > INT64_MIN) {
            assert_int_equal(weir_lot_next_ns(lot, cases[i].due_ns - 1), 1);
            assert_null(take_one(lot, cases[i].due_ns - 1));
        }
        assert_int_equal(weir_lot_next_ns(lot, cases[i].due_ns), 0);
        assert_ptr_equal(take_one(lot, cases[i].due_ns), &events[0]);
    }
    assert_balance(lot, 0);
    weir_lot_destroy(lot);
}

static void an_older_reading_finds_less_and_loses_nothing(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(10);
    park(lot, 0, 50, 100);
    park(lot, 1, 10, 30); // by a thread whose reading is older
    assert_null(take_one(lot, 20));
    assert_ptr_equal(take_one(lot, 149), &events[1]);
    assert_null(take_one(lot, -1000));
    assert_ptr_equal(take_one(lot, 150), &events[0]);
    weir_lot_destroy(lot);
}

static void a_full_lot_says_so_and_takes_again_when_there_is_room(void **state) {
    (void)state;
    static const unsigned capacities[] = {1, 15, 16, 17, 255, 256, 257, 4000, 0};
    for (const unsigned *c = capacities; *c != 0; c++) {
        const unsigned capacity = *c;
        struct weir_lot *lot = make_lot(capacity);
        for (unsigned i = 0; i < capacity; i++)
            assert_int_equal(park(lot, i, i, 0), WEIR_GRANTED);
        const struct weir_lot_node before = events[capacity].node;
        assert_int_equal(park(lot, capacity, 0, 0), WEIR_NO_ROOM);
        assert_memory_equal(&events[capacity].node, &before, sizeof before);
        assert_ptr_equal(take_one(lot, 0), &events[0]);
        assert_int_equal(park(lot, capacity, 5, 0), WEIR_GRANTED);
        assert_int_equal(park(lot, 0, 0, 0), WEIR_NO_ROOM);
        assert_balance(lot, capacity);
        weir_lot_destroy(lot);
    }
}

static void a_cancelled_event_is_its_owners_at_once_and_only_once(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(1);
    park(lot, 0, 30 * WEIR_DAY, 0);
    assert_ptr_equal(weir_lot_cancel(lot, events[0].ticket), &events[0].node);
    memset(&events[0].node, 0xff, sizeof events[0].node); // the lot no longer looks at it
    assert_int_equal(weir_lot_next_ns(lot, 0), WEIR_FOREVER);
    assert_null(weir_lot_cancel(lot, events[0].ticket));
    assert_int_equal(park(lot, 1, 30 * WEIR_DAY, 0), WEIR_GRANTED); // its place is free at once
    assert_null(weir_lot_cancel(lot, events[0].ticket));
    assert_ptr_equal(take_one(lot, INT64_MAX), &events[1]);
    assert_null(weir_lot_cancel(lot, events[1].ticket));
    assert_balance(lot, 0);
    weir_lot_destroy(lot);
}

static void an_old_ticket_never_finds_another_event(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(1);
    park(lot, 0, 10, 0);
    const struct weir_lot_ticket old = events[0].ticket;
    assert_ptr_equal(take_one(lot, 10), &events[0]);
    for (unsigned i = 0; i < 200000; i++) {
        park(lot, 1, 10, 0); // the same place, and the same due time
        assert_null(weir_lot_cancel(lot, old));
        assert_ptr_equal(take_one(lot, 10), &events[1]);
    }
    assert_null(weir_lot_cancel(lot, (struct weir_lot_ticket){1, UINT32_MAX}));
    assert_null(weir_lot_cancel(lot, (struct weir_lot_ticket){0, 0}));
    weir_lot_destroy(lot);
}

static void a_closed_lot_refuses_and_gives_everything_back_once(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(1000);
    struct weir_lot_node *nodes[64];
    for (unsigned i = 0; i < 1000; i++) park(lot, i, (uint64_t)(i * 7919 % 1000) * WEIR_HOUR, 0);
    weir_lot_close(lot);
    assert_int_equal(park(lot, 1000, 0, 0), WEIR_ECLOSED);
    unsigned back = weir_lot_cancel(lot, events[3].ticket) != NULL;
    events[3].parked = false;
    const unsigned due = (unsigned)weir_lot_take(lot, 0, nodes, 1);
    for (unsigned i = 0; i < due; i++, back++) event_of(nodes[i])->parked = false;
    for (size_t count; (count = weir_lot_drain(lot, nodes, 64)) != 0;) {
        for (size_t i = 0; i < count; i++, back++) {
            assert_true(event_of(nodes[i])->parked);
            event_of(nodes[i])->parked = false;
        }
    }
    assert_int_equal(back, 1000);
    assert_balance(lot, 0);
    weir_lot_destroy(lot);
}

// A thread stopped right after its change of a place: nobody has raised it.
static void a_take_that_stopped_half_way_holds_up_nobody(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(EVENTS);
    for (unsigned i = 0; i < 500; i++) park(lot, i, 1000 + i, 0);
    struct wr_pair *pair = &lot->tree.levels[0][events[0].ticket.place];
    const struct wr_pair rest = {WR_LOT_NEVER, pair->word + 1};
    assert_true(wr_u128_cas(pair, *pair, rest));
    assert_int_equal(weir_lot_next_ns(lot, 1000), 0); // the tree still promises event 0
    assert_null(take_one(lot, 1000));
    assert_int_equal(weir_lot_next_ns(lot, 1000), 1); // and was put right
    for (unsigned i = 1; i < 500; i++) assert_ptr_equal(take_one(lot, 1000 + i), &events[i]);
    assert_null(take_one(lot, INT64_MAX));
    weir_lot_destroy(lot);
}

// Stopped in the middle of its raise: the block's pair is right, the one above it is not.
static void a_raise_that_stopped_half_way_holds_up_nobody(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(EVENTS);
    for (unsigned i = 0; i < 300; i++) park(lot, i, 1000 + i, 0);
    struct wr_pair *place = &lot->tree.levels[0][events[0].ticket.place];
    struct wr_pair *block = &lot->tree.levels[1][events[0].ticket.place / WR_LOT_FAN];
    assert_true(wr_u128_cas(place, *place, (struct wr_pair){WR_LOT_NEVER, place->word + 1}));
    uint64_t least = WR_LOT_NEVER;
    for (struct wr_pair *p = place; p < place + WR_LOT_FAN; p++) // it is the first of its block
        if (p->tag < least) least = p->tag;
    assert_true(wr_u128_cas(block, *block, (struct wr_pair){least, block->word + 1}));
    assert_ptr_equal(take_one(lot, 1001), &events[1]);
    assert_int_equal(weir_lot_next_ns(lot, 0), 1002);
    weir_lot_destroy(lot);
}

static void a_park_that_stopped_half_way_is_found_by_drain(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(EVENTS);
    struct weir_lot_node *nodes[4];
    const uint32_t place = (uint32_t)lot->free.tag - 1;
    park(lot, 0, 1000, 0);
    assert_ptr_equal(weir_lot_cancel(lot, events[0].ticket), &events[0].node);
    assert_int_equal(events[0].ticket.place, place);
    struct wr_pair *pair = &lot->tree.levels[0][place];
    const struct wr_pair parked = {7, pair->word + 1};
    assert_true(wr_u128_cas(pair, *pair, parked));
    assert_null(take_one(lot, INT64_MAX));
    assert_int_equal(weir_lot_drain(lot, nodes, 4), 1);
    assert_ptr_equal(nodes[0], &events[0].node);
    weir_lot_destroy(lot);
}

// A raise that was computed before another change must not win, even where that change left the
// minimum as it was.
static void a_raise_that_is_too_old_fails(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(16);
    park(lot, 0, 5, 0);
    struct wr_pair *pair = &lot->tree.levels[0][events[0].ticket.place];
    struct wr_pair *parent = &lot->tree.levels[1][0];
    const struct wr_pair rest = {WR_LOT_NEVER, pair->word + 1};
    assert_true(wr_u128_cas(pair, *pair, rest));
    const struct wr_pair old = wr_u128_load(parent); // the slow raiser: it has seen 16 at rest
    park(lot, 1, 5, 0);
    const struct wr_pair stale = {WR_LOT_NEVER, old.word + 1};
    assert_false(wr_u128_cas(parent, old, stale));
    assert_ptr_equal(take_one(lot, 5), &events[1]);
    weir_lot_destroy(lot);
}

// A parker that has looked at the first free place, and goes on when that place is first again.
static void a_pop_that_is_too_old_fails(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(16);
    const struct wr_pair first = wr_u128_load(&lot->free);
    const struct wr_pair next = {lot->next_free[first.tag - 1], first.word + 1};
    park(lot, 0, 5, 0);
    park(lot, 1, 5, 0);
    assert_non_null(weir_lot_cancel(lot, events[0].ticket));
    assert_int_equal(lot->free.tag, first.tag);
    assert_false(wr_u128_cas(&lot->free, first, next)); // `next` is event 1's
    weir_lot_destroy(lot);
}

static void an_overdue_event_waits_only_for_those_due_before_it(void **state) {
    (void)state;
    struct weir_lot *lot = make_lot(3000);
    for (unsigned i = 0; i < 2000; i++) park(lot, i, 100, 0);
    park(lot, 2000, 101, 0);
    int64_t now_ns = 200;
    unsigned takes = 0;
    for (;; now_ns++) { // all others are denied and parked again, due at once
        struct weir_lot_node *nodes[10];
        const size_t count = weir_lot_take(lot, now_ns, nodes, 10);
        bool found = false;
        takes++;
        for (size_t i = 0; i < count; i++) {
            if (event_of(nodes[i]) == &events[2000]) found = true;
            else assert_int_equal(weir_lot_park(lot, nodes[i], 0, now_ns, NULL), WEIR_GRANTED);
        }
        if (found) break;
    }
    assert_in_range(takes, 1, 201);
    weir_lot_destroy(lot);
}

// -- the exact model: a flag and a due time per event, looked through from end to end --

static uint64_t random_state;

static uint64_t draw(uint64_t below) { // splitmix64
    uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (z ^ z >> 31) % below;
}

static int64_t model_earliest(unsigned count) {
    int64_t earliest = INT64_MAX;
    for (unsigned i = 0; i < count; i++)
        if (events[i].parked && events[i].node.due_ns < earliest) earliest = events[i].node.due_ns;
    return earliest;
}

static unsigned model_due(unsigned count, int64_t now_ns) {
    unsigned due = 0;
    for (unsigned i = 0; i < count; i++) due += events[i].parked && events[i].node.due_ns <= now_ns;
    return due;
}

static unsigned check_batch(struct weir_lot_node **nodes, size_t got, size_t most, unsigned count,
                            int64_t now_ns) {
    const unsigned due = model_due(count, now_ns);
    assert_int_equal(got, due < most ? due : most);
    if (got != 0) assert_int_equal(nodes[0]->due_ns, model_earliest(count));
    for (size_t i = 0; i < got; i++) {
        assert_true(event_of(nodes[i])->parked);
        assert_true(nodes[i]->due_ns <= now_ns);
        event_of(nodes[i])->parked = false;
    }
    return (unsigned)got;
}

static uint64_t running_seed;
static unsigned running_capacity;

static void run_model(uint64_t seed, unsigned capacity) {
    running_seed = random_state = seed;
    running_capacity = capacity;
    struct weir_lot *lot = make_lot(capacity);
    struct weir_lot_node *nodes[64];
    const unsigned count = capacity + capacity / 4 + 1;
    const uint64_t range = draw(3) == 0 ? 20 : 10000;
    unsigned held = 0;
    int64_t now_ns = -5000;
    for (unsigned step = 0; step < 4000; step++) {
        const unsigned i = (unsigned)draw(count);
        const size_t most = 1 + draw(64);
        now_ns += (int64_t)draw(range / 10) - 1;
        switch (draw(6)) {
        case 0: case 1: case 2:
            if (events[i].parked) break;
            const int result = park(lot, i, draw(range), now_ns);
            assert_int_equal(result, held < capacity ? WEIR_GRANTED : WEIR_NO_ROOM);
            held += result == WEIR_GRANTED;
            break;
        case 3:
            held -= check_batch(nodes, weir_lot_take(lot, now_ns, nodes, most), most, count,
                                now_ns);
            break;
        case 4:
            assert_ptr_equal(weir_lot_cancel(lot, events[i].ticket),
                             events[i].parked ? &events[i].node : NULL);
            held -= events[i].parked;
            events[i].parked = false;
            break;
        default:
            if (draw(100) != 0) break;
            held -= check_batch(nodes, weir_lot_drain(lot, nodes, most), most, count, INT64_MAX);
        }
        const int64_t next = model_earliest(count);
        assert_int_equal(weir_lot_next_ns(lot, now_ns), next == INT64_MAX ? WEIR_FOREVER
                                                        : next <= now_ns  ? 0
                                                        : (uint64_t)(next - now_ns));
    }
    assert_balance(lot, held);
    weir_lot_destroy(lot);
}

static void agrees_with_an_exact_model(void **state) {
    (void)state;
    static const unsigned capacities[] = {1, 2, 15, 16, 17, 40, 256, 257, 300, 700};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (unsigned c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
            if (seed > 3 && capacities[c] > 300) continue;
            run_model(seed * 1000 + c, capacities[c]);
        }
    }
    running_seed = 0;
}

static int print_seed_of_a_failure(void **state) {
    (void)state;
    if (running_seed != 0)
        print_error("the model failed with seed %" PRIu64 ", capacity %u\n", running_seed,
                    running_capacity);
    return 0;
}

static void big_lots_keep_the_order_of_due_times(void **state) {
    (void)state;
    const unsigned count = 100000; // five levels
    struct event *many = calloc(count, sizeof *many);
    struct weir_lot *lot = make_lot(count);
    random_state = 77;
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(weir_lot_park(lot, &many[i].node, draw(30 * WEIR_DAY), 0, NULL),
                         WEIR_GRANTED);
    int64_t last = INT64_MIN;
    for (unsigned i = 0; i < count; i++) {
        const int64_t due = take_one(lot, INT64_MAX)->node.due_ns;
        assert_true(due >= last);
        last = due;
    }
    assert_balance(lot, 0);
    weir_lot_destroy(lot);
    free(many);
}

// -- options and memory --

static unsigned maps_left, maps_out;

static void *map(void *context, size_t bytes, size_t align) {
    if (maps_left == 0) return NULL;
    maps_left--;
    maps_out++;
    return wr_mmap_allocator.map(context, bytes, align);
}

static void unmap(void *context, void *memory, size_t bytes) {
    maps_out--;
    wr_mmap_allocator.unmap(context, memory, bytes);
}

static void memory_comes_from_the_allocator_and_goes_back(void **state) {
    (void)state;
    const struct weir_allocator allocator = {map, unmap, NULL};
    struct weir_lot_options options = WEIR_LOT_OPTIONS_INIT;
    struct weir_error error = {""};
    struct weir_lot *lot = (struct weir_lot *)&error;
    int result = WEIR_ENOMEM;
    options.allocator = &allocator;
    for (unsigned allowed = 0; result == WEIR_ENOMEM; allowed++) {
        maps_left = allowed;
        result = weir_lot_create(&lot, &options, &error);
        assert_int_equal(result == WEIR_ENOMEM, lot == NULL);
    }
    assert_int_equal(result, WEIR_GRANTED);
    assert_non_null(strstr(error.text, "lower capacity"));
    struct weir_lot_stats s;
    weir_lot_stats(lot, &s, sizeof s);
    assert_in_range(s.memory_bytes, 1, 65536 * 34 + 65536);
    weir_lot_destroy(lot);
    assert_int_equal(maps_out, 0);
}

static void refuse_option(struct weir_lot_options options, int result, const char *words) {
    struct weir_error error = {""};
    struct weir_lot *lot = (struct weir_lot *)&error;
    assert_int_equal(weir_lot_create(&lot, &options, &error), result);
    assert_null(lot);
    if (strstr(error.text, words) == NULL) fail_msg("'%s' is not in: %s", words, error.text);
}

static void wrong_options_are_refused_in_words(void **state) {
    (void)state;
    const struct weir_lot_options right = WEIR_LOT_OPTIONS_INIT;
    const struct weir_allocator half = {map, NULL, NULL};
    struct weir_lot_options o = right;
    o.size = 3;
    refuse_option(o, WEIR_ESIZE, "WEIR_LOT_OPTIONS_INIT");
    o = right, o.capacity = 0;
    refuse_option(o, WEIR_EINVAL, "give 1 to 2^28");
    o = right, o.capacity = WEIR_LOT_CAPACITY_MAX + 1;
    refuse_option(o, WEIR_EINVAL, "268435457");
    o = right, o.key_capacity = o.capacity + 1;
    refuse_option(o, WEIR_EINVAL, "key_capacity");
    o = right, o.allocator = &half;
    refuse_option(o, WEIR_EINVAL, "unmap");
    assert_int_equal(weir_lot_create(NULL, &right, NULL), WEIR_EINVAL);
    struct weir_lot *lot = make_lot(1);
    struct weir_lot_stats s;
    assert_int_equal(weir_lot_stats(lot, &s, 8), WEIR_ESIZE);
    assert_int_equal(weir_lot_stats(lot, &s, sizeof s + 8), WEIR_ESIZE);
    weir_lot_destroy(lot);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_lot_has_nothing_due),
        cmocka_unit_test(an_event_is_due_after_exactly_its_wait),
        cmocka_unit_test(an_older_reading_finds_less_and_loses_nothing),
        cmocka_unit_test(a_full_lot_says_so_and_takes_again_when_there_is_room),
        cmocka_unit_test(a_cancelled_event_is_its_owners_at_once_and_only_once),
        cmocka_unit_test(an_old_ticket_never_finds_another_event),
        cmocka_unit_test(a_closed_lot_refuses_and_gives_everything_back_once),
        cmocka_unit_test(a_take_that_stopped_half_way_holds_up_nobody),
        cmocka_unit_test(a_raise_that_stopped_half_way_holds_up_nobody),
        cmocka_unit_test(a_park_that_stopped_half_way_is_found_by_drain),
        cmocka_unit_test(a_raise_that_is_too_old_fails),
        cmocka_unit_test(a_pop_that_is_too_old_fails),
        cmocka_unit_test(an_overdue_event_waits_only_for_those_due_before_it),
        cmocka_unit_test_teardown(agrees_with_an_exact_model, print_seed_of_a_failure),
        cmocka_unit_test(big_lots_keep_the_order_of_due_times),
        cmocka_unit_test(memory_comes_from_the_allocator_and_goes_back),
        cmocka_unit_test(wrong_options_are_refused_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
