// A lot at the end of the day: what the provider itself put off ("429, Retry-After") is parked,
// and at shutdown all that is still parked is saved for the next start.
#include "example.h"
#include "weir_lot.h"

#define MAILS 20

struct mail {
    struct weir_lot_node node; // the lot's part
    uint64_t user;
    int saved;
};

// The provider takes every second one, and says of the others when to come again.
static bool send(const struct mail *mail, uint64_t *retry_after_ns) {
    *retry_after_ns = 30 * WEIR_SECOND;
    return mail->user % 2 == 0;
}

static void save(struct mail *mail) { // a real program would write it to its disk
    mail->saved++;
}

int main(void) {
    static struct mail mails[MAILS];
    struct weir_lot *lot;
    struct weir_lot_options options = WEIR_LOT_OPTIONS_INIT;
    options.capacity = 100;
    expect(weir_lot_create(&lot, &options, NULL) == WEIR_GRANTED, "a lot is made");
    int sent = 0;
    const int64_t now_ns = 0; // of any one monotonic clock
    for (unsigned i = 0; i < MAILS; i++) {
        uint64_t retry_after_ns;
        mails[i] = (struct mail){WEIR_LOT_NODE_INIT, i, 0};
        if (send(&mails[i], &retry_after_ns)) {
            sent++;
            continue;
        }
        const int fate = weir_lot_defer(lot, weir_id(mails[i].user), &mails[i].node,
                                        retry_after_ns, now_ns, NULL);
        expect(fate == WEIR_PARKED, weir_fate_words(fate));
    }
    expect(sent == MAILS / 2, "every second one is sent");

    // Shutdown: from here on nothing is parked any more, and what is there comes back.
    weir_lot_close(lot);
    struct weir_lot_node late = WEIR_LOT_NODE_INIT;
    expect(weir_lot_park(lot, &late, WEIR_SECOND, now_ns, NULL) == WEIR_ECLOSED, "it is closed");
    struct weir_lot_node *nodes[8];
    int saved = 0;
    for (size_t count; (count = weir_lot_drain(lot, nodes, 8)) != 0;)
        for (size_t i = 0; i < count; i++, saved++)
            save(WEIR_LOT_EVENT(nodes[i], struct mail, node));
    expect(sent + saved == MAILS, "nothing is lost");
    for (int i = 0; i < MAILS; i++) expect(mails[i].saved == i % 2, "and nothing is doubled");
    weir_lot_destroy(lot);
    return 0;
}
