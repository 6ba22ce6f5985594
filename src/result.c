// Words for results, and the version.
#include "weir.h"

const char *weir_strerror(int result) {
    switch (result) {
#define WORDS(name, value, words)                                                                  \
    case value: return words;
        WEIR_RESULTS(WORDS)
#undef WORDS
    default: return "unknown result";
    }
}

const char *weir_version(void) {
    return WEIR_VERSION;
}
