// The breaker trips on the rate of failure, not on a count.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../src/sync/breaker.h"

#define MS INT64_C(1000)

static void a_thousandth_of_timeouts_leaves_the_breaker_closed(void **state) {
    (void)state;
    struct wr_breaker breaker;
    wr_breaker_init(&breaker, 0);
    srand(3);
    for (int i = 0; i < 1000000; i++)
        assert_false(wr_breaker_count(&breaker, rand() % 10000 >= 14, i * MS));
}

static void half_of_failures_open_the_breaker_and_a_success_closes_it(void **state) {
    (void)state;
    struct wr_breaker breaker;
    wr_breaker_init(&breaker, 0);
    int64_t now_us = 0;
    for (int i = 0; i < 4; i++) assert_false(wr_breaker_count(&breaker, false, now_us));
    assert_true(wr_breaker_count(&breaker, false, now_us));
    assert_false(wr_breaker_count(&breaker, false, now_us));
    assert_true(breaker.open);
    wr_breaker_count(&breaker, true, now_us);
    assert_false(breaker.open);
    for (int i = 0; i < 1000; i++) wr_breaker_count(&breaker, true, now_us);
    for (int i = 0; i < 300; i++) wr_breaker_count(&breaker, false, now_us);
    assert_false(breaker.open);
    now_us += INT64_C(86400000000); // yesterday's successes do not count
    for (int i = 0; i < 5; i++) wr_breaker_count(&breaker, false, now_us);
    assert_true(breaker.open);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousandth_of_timeouts_leaves_the_breaker_closed),
        cmocka_unit_test(half_of_failures_open_the_breaker_and_a_success_closes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
