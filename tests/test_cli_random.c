// test_cli_random.c - the distributions are what they say they are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/random.h"
#include "poisson.h"

static void exponential_has_its_mean_and_its_tail(void **state) {
    (void)state;
    enum { DRAWS = 1000000 };
    struct wr_random random = wr_random_init(7);
    double sum = 0;
    size_t above_one = 0, above_three = 0;
    for (size_t i = 0; i < DRAWS; i++) {
        double draw = (double)wr_random_exponential_q32(&random) * 0x1p-32;
        sum += draw;
        above_one += draw > 1;
        above_three += draw > 3;
    }
    assert_true(sum / DRAWS > 0.995 && sum / DRAWS < 1.005);
    assert_poisson(above_one, DRAWS * 0.36788, 4);    // exp(-1)
    assert_poisson(above_three, DRAWS * 0.049787, 4); // exp(-3)
}

static void zipf_gives_each_rank_its_share(void **state) {
    (void)state;
    enum { DRAWS = 1000000, RANKS = 100 };
    struct wr_random random = wr_random_init(7);
    size_t counts[RANKS] = {0};
    double all = 0;
    for (int i = 0; i < RANKS; i++) all += 1.0 / (i + 1);
    for (size_t i = 0; i < DRAWS; i++) {
        uint64_t rank = wr_random_zipf(&random, RANKS);
        assert_true(rank < RANKS);
        counts[rank]++;
    }
    for (int i = 0; i < RANKS; i++) assert_poisson(counts[i], DRAWS / all / (i + 1), 5);
    for (size_t i = 0; i < 100; i++) assert_int_equal(wr_random_zipf(&random, 1), 0);
}

static void below_is_even(void **state) {
    (void)state;
    struct wr_random random = wr_random_init(7);
    size_t counts[10] = {0};
    for (size_t i = 0; i < 1000000; i++) counts[wr_random_below(&random, 10)]++;
    for (size_t i = 0; i < 10; i++) assert_poisson(counts[i], 100000, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_has_its_mean_and_its_tail),
        cmocka_unit_test(zipf_gives_each_rank_its_share),
        cmocka_unit_test(below_is_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
