// Memory through the allocator table: refused at every request, given back whole, never asked
// again.
#include <malloc.h>
#include <string.h>

#include "support.h"

static struct weir_options options_with(const struct counted *counted) {
    struct weir_options options = options_at(5, WEIR_SECOND, 20);
    options.capacity_keys = 5000;
    options.allocator = &counted->allocator;
    return options;
}

static void when_the_nth_request_is_refused_nothing_leaks_for_any_n(void **state) {
    (void)state;
    bool made = false;
    for (int64_t n = 1; !made; n++) {
        struct counted counted;
        counted_init(&counted);
        counted.refuse_at = n;
        const struct weir_options options = options_with(&counted);
        struct weir *w = NULL;
        struct weir_error error = {{0}};
        const int result = weir_create(&w, &options, &error);
        made = result == WEIR_GRANTED;
        if (made) {
            assert_true(n > 1); // at least one request was refused
            weir_destroy(w);
        } else {
            assert_int_equal(result, WEIR_ENOMEM);
            assert_null(w);
            assert_non_null(strstr(error.text, "5000"));
            assert_non_null(strstr(error.text, "capacity_keys"));
            assert_int_equal(weir_create(&w, &options, NULL), WEIR_GRANTED); // it refuses once
            weir_destroy(w);
        }
        assert_int_equal(counted.maps, counted.unmaps);
        assert_int_equal(counted.bytes, 0);
        assert_false(counted.misaligned);
    }
}

static void a_refused_create_asks_for_no_memory(void **state) {
    (void)state;
    struct counted counted;
    counted_init(&counted);
    struct weir_options options = options_with(&counted);
    options.limit.period_ns = 0;
    struct weir *w = NULL;
    assert_int_equal(weir_create(&w, &options, NULL), WEIR_EINVAL);
    assert_int_equal(counted.maps, 0);
}

static void the_context_and_the_sizes_come_back_as_they_went(void **state) {
    (void)state;
    struct counted counted;
    counted_init(&counted);
    struct weir_options options = options_with(&counted);
    struct weir *w = create(&options);
    assert_true(counted.maps > 0);
    assert_int_equal(stats_of(w).memory_bytes, counted.bytes);
    weir_destroy(w);
    assert_int_equal(counted.bytes, 0);
}

// Every call there is, many times over, between two looks at the heap and at the allocator.
static void no_call_but_create_and_destroy_asks_for_memory(void **state) {
    (void)state;
    struct counted counted;
    counted_init(&counted);
    struct weir_options options = options_with(&counted);
    options.clock = WEIR_CLOCK_AUTO;
    options.capacity_keys = 100;
    struct weir *w = create(&options);
    (void)weir_take(w, weir_id(0), 1, NULL); // this thread's line is claimed
    const int64_t maps = counted.maps;
    const struct mallinfo2 before = mallinfo2();
    for (uint64_t id = 0; id < 200000; id++) {
        struct weir_answer a = WEIR_ANSWER_INIT;
        const struct weir_limit limit = {1 + id % 5, WEIR_SECOND, 20};
        (void)weir_take(w, weir_id(id), 1 + id % 30, &a);
        (void)weir_peek(w, weir_id(id / 2), 1, &a);
        (void)weir_charge(w, weir_id(id), 3, NULL);
        (void)weir_refund(w, weir_id(id / 3), 2, NULL);
        (void)weir_take_some(w, weir_id(id % 10), 5, &a);
        (void)weir_reserve(w, weir_id(id % 7), 1, 0, &a);
        (void)weir_reset(w, weir_id(id % 11));
        if (id % 100 == 0) assert_int_equal(weir_set_limit(w, &limit, NULL), WEIR_GRANTED);
        if (id % 1000 == 0) (void)stats_of(w);
    }
    const struct mallinfo2 after = mallinfo2();
    assert_int_equal(counted.maps, maps);
    assert_int_equal(counted.unmaps, 0);
    assert_int_equal(after.uordblks, before.uordblks);
    assert_int_equal(after.hblks, before.hblks);
    weir_destroy(w);
}

static void without_a_table_the_memory_is_mapped_aligned_and_given_back(void **state) {
    (void)state;
    static const uint64_t capacities[] = {1, 1000, 100000};
    for (size_t i = 0; i < 3; i++) {
        struct weir_options options = options_at(5, WEIR_SECOND, 20);
        options.capacity_keys = capacities[i];
        struct weir *w = create(&options);
        const uintptr_t at = (uintptr_t)w->region;
        const uint64_t bytes = w->region->region_bytes;
        assert_int_equal(at % (bytes >= WR_HUGE_PAGE_BYTES ? WR_HUGE_PAGE_BYTES : 4096), 0);
        assert_int_equal(take_at(w, "a", 20, 0), WEIR_GRANTED);
        weir_destroy(w);
    }
}

static void a_capacity_beyond_the_machine_is_enomem_in_words(void **state) {
    (void)state;
    struct counted counted;
    counted_init(&counted);
    counted.refuse_at = 2;
    struct weir_options options = options_with(&counted);
    options.capacity_keys = UINT64_C(1) << 32;
    struct weir *w = NULL;
    struct weir_error error = {{0}};
    assert_int_equal(weir_create(&w, &options, &error), WEIR_ENOMEM);
    assert_non_null(strstr(error.text, "4294967296"));
    assert_int_equal(counted.maps, counted.unmaps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_the_nth_request_is_refused_nothing_leaks_for_any_n),
        cmocka_unit_test(a_refused_create_asks_for_no_memory),
        cmocka_unit_test(the_context_and_the_sizes_come_back_as_they_went),
        cmocka_unit_test(no_call_but_create_and_destroy_asks_for_memory),
        cmocka_unit_test(without_a_table_the_memory_is_mapped_aligned_and_given_back),
        cmocka_unit_test(a_capacity_beyond_the_machine_is_enomem_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
