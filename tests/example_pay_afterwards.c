// Paying afterwards: what a call to a language model costs in tokens is known when it has answered.
// A call may start while its user is not in debt; its true cost is charged at the end.
#include "example.h"
#include "weir.h"

static struct weir *limiter;

// May the user start a call? If not, *wait_ns says when to come again.
static bool may_start(const char *user, uint64_t *wait_ns) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const int result = weir_take(limiter, weir_str(user), 0, &answer); // 0: only a question
    *wait_ns = answer.retry_after_ns;
    return result == WEIR_GRANTED;
}

static void finish(const char *user, uint64_t tokens_used) {
    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_charge(limiter, weir_str(user), tokens_used, &answer) == WEIR_GRANTED, "charge");
    expect(answer.granted_tokens == tokens_used, "all of it was debited");
}

int main(void) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = "model tokens";
    options.limit = (struct weir_limit){.tokens = 1000, .period_ns = WEIR_MINUTE, .burst = 10000};
    options.max_debt_tokens = 50000; // the longest answer of the model
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");

    uint64_t wait_ns;
    expect(may_start("ann", &wait_ns), "a new user starts");
    finish("ann", 4000);
    expect(may_start("ann", &wait_ns), "6,000 left");
    finish("ann", 9000); // more than there was: 3,000 of debt
    expect(!may_start("ann", &wait_ns), "whoever owes waits");
    expect(wait_ns > 170 * WEIR_SECOND && wait_ns <= 180 * WEIR_SECOND, "3,000 tokens: 3 minutes");
    expect(may_start("bob", &wait_ns), "others do not");

    // Where a guess is at hand, take it first and settle the difference.
    expect(weir_take(limiter, weir_str("bob"), 2000, NULL) == WEIR_GRANTED, "the guess");
    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_refund(limiter, weir_str("bob"), 500, &answer) == WEIR_GRANTED, "1,500 were used");
    expect(answer.remaining == 8500, "what was not used is back");
    weir_destroy(limiter);
    return 0;
}
