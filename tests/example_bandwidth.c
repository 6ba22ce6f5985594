// Bandwidth: tokens are bytes. A file goes out in the pieces that the limit lets through.
#include "example.h"
#include "weir.h"

#define KIB UINT64_C(1024)

static uint64_t bytes_sent;

static void send_bytes(uint64_t count) {
    bytes_sent += count; // here they would go to the socket
}

static void send_file(struct weir *limiter, const char *client, uint64_t bytes) {
    const uint64_t piece = 16 * KIB;
    while (bytes > 0) {
        struct weir_answer answer = WEIR_ANSWER_INIT;
        const uint64_t want = bytes < piece ? bytes : piece;
        // As much of the piece as there are tokens; if there are none, sleep until it fits whole.
        if (weir_take_some(limiter, weir_str(client), want, &answer) != WEIR_GRANTED)
            expect(weir_wait(limiter, weir_str(client), want, WEIR_FOREVER, &answer) ==
                       WEIR_GRANTED,
                   "the piece gets its turn");
        send_bytes(answer.granted_tokens);
        bytes -= answer.granted_tokens;
    }
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "upload";
    options.limit =
        (struct weir_limit){.tokens = 32 * KIB * KIB, .period_ns = WEIR_SECOND, .burst = 64 * KIB};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    send_file(limiter, "10.0.0.1", 300 * KIB + 7);
    expect(bytes_sent == 300 * KIB + 7, "every byte goes out once");
    struct weir_stats stats;
    expect(weir_stats(limiter, &stats, sizeof stats) == WEIR_GRANTED, "stats");
    expect(stats.tokens == bytes_sent, "and is counted once");
    expect(weir_take(limiter, weir_str("10.0.0.2"), 65 * KIB, NULL) == WEIR_NEVER,
           "more than the burst never passes in one piece");
    weir_destroy(limiter);
    return 0;
}
