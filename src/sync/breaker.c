// The breaker: two counts, halved every ten seconds, so the last half minute is what matters.
#include "breaker.h"

#define WINDOW_US INT64_C(10000000)
#define BAD_MIN 5.0
#define NEGLIGIBLE 0.01

void wr_breaker_init(struct wr_breaker *breaker, int64_t now_us) {
    *breaker = (struct wr_breaker){.halved_us = now_us};
}

static void fade(struct wr_breaker *breaker, int64_t now_us) {
    while (now_us - breaker->halved_us > WINDOW_US) {
        if (breaker->good + breaker->bad < NEGLIGIBLE) {
            breaker->halved_us = now_us;
            return;
        }
        breaker->good /= 2;
        breaker->bad /= 2;
        breaker->halved_us += WINDOW_US;
    }
}

bool wr_breaker_count(struct wr_breaker *breaker, bool good, int64_t now_us) {
    fade(breaker, now_us);
    if (good && breaker->open) wr_breaker_init(breaker, now_us);
    if (good) breaker->good += 1;
    else breaker->bad += 1;
    if (breaker->open || breaker->bad < BAD_MIN || breaker->bad < breaker->good) return false;
    breaker->open = true;
    return true;
}
