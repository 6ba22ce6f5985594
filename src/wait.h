// Waking those who sleep in weir_wait.
#pragma once

#include "limiter.h"

// Makes every sleeper look again: after a change of limit, after close.
void wr_wake_all(struct weir *w);
