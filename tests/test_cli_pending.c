// test_cli_pending.c - the heap gives back what was put in, the earliest first.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/pending.h"
#include "cli/random.h"

static void pending_gives_back_in_order(void **state) {
    (void)state;
    struct wr_random random = wr_random_init(7);
    struct wr_pending pending = WR_PENDING_INIT;
    uint64_t last_due = 0, last_order = 0;
    for (uint64_t i = 0; i < 5000; i++) {
        struct wr_pending_item item = {.due_ns = wr_random_below(&random, 500), .order = i};
        assert_true(wr_pending_push(&pending, &item));
    }
    for (size_t left = 5000; left > 0; left--) {
        assert_int_equal(pending.count, left);
        struct wr_pending_item item = wr_pending_pop(&pending);
        assert_true(item.due_ns > last_due ||
                    (item.due_ns == last_due && item.order >= last_order));
        last_due = item.due_ns;
        last_order = item.order;
    }
    assert_null(wr_pending_first(&pending));
    wr_pending_clear(&pending);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pending_gives_back_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
