// A limiter in an arena of jemalloc's, so that the program's memory report has it, too.
#include "example.h"
#include "weir_jemalloc.h"

int main(void) {
    struct weir_jemalloc *jemalloc;
    expect(weir_jemalloc_create(&jemalloc) == WEIR_GRANTED, "an arena is made");
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 20};
    options.capacity_keys = 10000;
    options.allocator = weir_jemalloc_allocator(jemalloc);
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    expect(weir_take(limiter, weir_str("user:7"), 1, NULL) == WEIR_GRANTED, "it decides");
    const uint64_t bytes = weir_jemalloc_bytes(jemalloc);
    printf("%llu bytes for 10,000 keys\n", (unsigned long long)bytes);
    expect(bytes >= 10000 * 32, "32 bytes a key and some more");
    weir_destroy(limiter); // before its allocator
    expect(weir_jemalloc_bytes(jemalloc) == 0, "all of it came back");
    weir_jemalloc_destroy(jemalloc);
    return 0;
}
