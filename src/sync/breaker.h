// Trips on the part of failures among the attempts of late, not on a count of them: a thousandth of
// timeouts never opens it, however many they are. Pure; time is an argument.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wr_breaker {
    double good; // outcomes, halved every WINDOW
    double bad;
    int64_t halved_us;
    bool open;
};

void wr_breaker_init(struct wr_breaker *breaker, int64_t now_us);
// Counts an outcome. Open from 5 failures that are half of all; closed by the first success.
// True if this one opened it.
bool wr_breaker_count(struct wr_breaker *breaker, bool good, int64_t now_us);
