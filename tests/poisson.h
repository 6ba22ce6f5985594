// poisson.h - whether a count is what chance would make it.
#ifndef WR_TEST_POISSON_H
#define WR_TEST_POISSON_H

// `count` lies within `sigmas` standard deviations of a Poisson count whose mean is `mean`.
static inline void assert_poisson(size_t count, double mean, double sigmas) {
    double off = (double)count - mean;
    if (off * off > sigmas * sigmas * mean)
        fail_msg("%zu, where %.0f was expected to within %.0f sigmas", count, mean, sigmas);
}

#endif
