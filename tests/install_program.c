// Built by tests/install.sh as a stranger would: against what was installed.
#include <stdio.h>
#include <weir.h>

int main(void) {
    struct weir *limiter;
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.limit = (struct weir_limit){.tokens = 5, .period_ns = WEIR_SECOND, .burst = 20};
    options.capacity_keys = 1000;
    if (weir_create(&limiter, &options, NULL) != WEIR_GRANTED) return 1;
    struct weir_answer answer = WEIR_ANSWER_INIT;
    const int first = weir_take(limiter, weir_str("user:7"), 20, &answer);
    const int second = weir_take(limiter, weir_str("user:7"), 20, &answer);
    printf("%s, then %s\n", weir_strerror(first), weir_strerror(second));
    weir_destroy(limiter);
    return first == WEIR_GRANTED && second == WEIR_DENIED ? 0 : 1;
}
