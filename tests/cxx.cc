// The public headers in C++17, with the warnings that its users have on.
#include <weir.h>

#include <cstdio>
#include <string>

int main() {
    weir_options options = WEIR_OPTIONS_INIT;
    options.limit = weir_limit{5, WEIR_SECOND, 20};
    options.capacity_keys = 1000;
    options.clock = WEIR_CLOCK_CALLER;
    weir *limiter = nullptr;
    weir_error error;
    if (weir_create(&limiter, &options, &error) != WEIR_GRANTED) {
        std::fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const std::string name = "user:7";
    weir_answer answer = WEIR_ANSWER_INIT;
    weir_ask ask = WEIR_ASK_INIT;
    ask.key = weir_bytes(name.data(), name.size());
    ask.cost = 20;
    const bool first = weir_do(limiter, &ask, &answer) == WEIR_GRANTED;
    const bool second = weir_take_at(limiter, weir_str("user:7"), 1, 0, &answer) == WEIR_DENIED;
    weir_prepared prepared;
    weir_prepare(limiter, weir_id(7), &prepared);
    const weir_limit none = weir_unlimited();
    const bool third = weir_take_at(limiter, weir_prepared_key(&prepared), 1, 0, nullptr) == 0 &&
                       weir_set_limit_at(limiter, &none, 0, nullptr) == WEIR_GRANTED;
    weir_destroy(limiter);
    return first && second && third ? 0 : 1;
}
