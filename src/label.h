// Label values of OpenMetrics text, from bytes that may be anything.
#pragma once

#include "text.h"

// Puts what stands between the quotes: backslash, quote and newline escaped; bytes that are not
// UTF-8, and control characters, as \xNN (its backslash escaped too).
void wr_label_put(struct wr_text *t, const char *bytes, size_t length);

// Do two names of up to WEIR_TOP_NAME_BYTES bytes look the same so?
bool wr_label_same(const char *a, size_t a_length, const char *b, size_t b_length);
