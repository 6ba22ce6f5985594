// Two limits at once: a message counts against its user and the provider, or against neither.
#include "example.h"
#include "weir.h"

static struct weir *create(const char *name, uint64_t burst) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    options.name = name;
    options.limit = (struct weir_limit){.tokens = 1, .period_ns = WEIR_DAY, .burst = burst};
    struct weir *limiter;
    expect(weir_create(&limiter, &options, NULL) == WEIR_GRANTED, "a limiter is made");
    return limiter;
}

// Who said no is left in `refused`: 0 the user's limit, 1 the provider's, 2 neither.
static int send_message(struct weir *per_user, struct weir *provider, const char *user,
                        size_t *refused) {
    struct weir_part parts[2] = {{per_user, WEIR_ASK_INIT}, {provider, WEIR_ASK_INIT}};
    parts[0].ask.key = weir_str(user);
    parts[1].ask.key = weir_str("the provider");
    return weir_take_all(parts, 2, refused, NULL);
}

int main(void) {
    struct weir *per_user = create("per user", 1);
    struct weir *provider = create("provider", 10);
    size_t refused;
    expect(send_message(per_user, provider, "ann", &refused) == WEIR_GRANTED, "the first passes");
    for (int i = 0; i < 19; i++) {
        expect(send_message(per_user, provider, "ann", &refused) == WEIR_DENIED, "then no more");
        expect(refused == 0, "because of her own limit");
    }
    struct weir_answer answer = WEIR_ANSWER_INIT;
    expect(weir_peek(provider, weir_str("the provider"), 0, &answer) == WEIR_GRANTED, "peek");
    expect(answer.remaining == 9, "what was refused to her cost the provider nothing");
    char user[] = "user a";
    for (; user[5] < 'a' + 9; user[5]++)
        expect(send_message(per_user, provider, user, &refused) == WEIR_GRANTED, "nine others");
    expect(send_message(per_user, provider, "zoe", &refused) == WEIR_DENIED, "then it is spent");
    expect(refused == 1, "the provider's limit says no");
    expect(weir_peek(per_user, weir_str("zoe"), 1, NULL) == WEIR_GRANTED, "hers is untouched");
    weir_destroy(per_user);
    weir_destroy(provider);
    return 0;
}
