// demo_node.c - asks at Poisson times and counts what was granted.
//
// The time between two asks has no memory: where the demand changes, the next one is drawn anew.
#include "demo_node.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir_sync.h>

#include "random.h"

#define NAP_NS (5 * WEIR_MILLISECOND)
#define FIGURES_NS (50 * WEIR_MILLISECOND)
#define READY_NS (5 * WEIR_SECOND)
#define STOP_NS (2 * WEIR_SECOND)
#define KEY_BYTES 16

struct node {
    const struct wr_demo_options *options;
    struct wr_demo_board *board;
    uint32_t process;
    struct weir *limiter;
    struct weir_sync *sync;
    struct wr_random random;
    char keys[WR_DEMO_KEYS_MAX][KEY_BYTES];
    uint64_t start_ns;
    uint64_t alive; // as the rate is drawn for
    double per_s;
    uint64_t next_ns;    // ask, since the start; UINT64_MAX: none
    uint64_t until_ns;   // the rate stays so, since the start
    uint64_t figures_ns; // when to tell them again
    uint64_t reports;    // answered, and when that was last so
    uint64_t heard_ns;
    uint64_t asked_then;
    uint64_t silence_ns; // the longest time that an ask waited for it
};

static _Noreturn void fail(struct node *node, const char *what, const char *why) {
    char words[256];
    snprintf(words, sizeof words, "%s: %.200s", what, why);
    wr_demo_board_say(node->board, node->process, words);
    wr_demo_board_move(node->board, node->process, WR_DEMO_FAILED);
    _exit(1);
}

static void open_limiter(struct node *node) {
    struct weir_options options = WEIR_OPTIONS_INIT;
    struct weir_error error = {""};
    const struct wr_rate *rate = &node->options->rate;
    options.limit = (struct weir_limit){rate->tokens, rate->period_ns, node->options->burst};
    options.capacity_keys = 1024;
    options.name = WR_DEMO_LIMITER;
    if (weir_create(&node->limiter, &options, &error) != WEIR_GRANTED)
        fail(node, "the limiter", error.text);
}

static void open_sync(struct node *node, const char *url, const char *prefix) {
    struct weir_sync_options options = WEIR_SYNC_OPTIONS_INIT;
    struct weir_error error = {""};
    options.url = url;
    options.prefix = prefix;
    options.interval_ns = node->options->interval_ns;
    options.expected_nodes = node->options->processes;
    if (weir_sync_create(&node->sync, &options, &error) != WEIR_GRANTED)
        fail(node, "the sync", error.text);
    if (weir_sync_attach(node->sync, node->limiter, WR_DEMO_LIMITER, NULL, &error) != WEIR_GRANTED)
        fail(node, "the limit", error.text);
    if (weir_sync_start(node->sync, &error) != WEIR_GRANTED) fail(node, "the sync", error.text);
}

// Figures -------------------------------------------------------------------------------------

static void tell(struct node *node, enum wr_demo_figure figure, uint64_t value) {
    wr_demo_board_set(node->board, node->process, figure, value);
}

// Keeps the largest.
static void tell_most(struct node *node, enum wr_demo_figure figure, uint64_t value) {
    if (value > wr_demo_board_figure(node->board, node->process, figure)) tell(node, figure, value);
}

static void follow_silence(struct node *node, uint64_t reports, uint64_t now_ns) {
    const uint64_t asked = wr_demo_board_asked(node->board, node->process);
    if (reports != node->reports || asked == node->asked_then) {
        node->heard_ns = now_ns;
        node->asked_then = asked;
    }
    node->reports = reports;
    if (now_ns - node->heard_ns > node->silence_ns) node->silence_ns = now_ns - node->heard_ns;
    tell(node, WR_DEMO_FIGURE_SILENCE_NS, node->silence_ns);
}

static uint64_t milli(double tokens) {
    return tokens > 0 ? (uint64_t)(tokens * 1000) : 0;
}

static void tell_figures(struct node *node, uint64_t now_ns) {
    struct weir_sync_stats s;
    struct weir_sync_limiter_stats l;
    if (weir_sync_stats(node->sync, &s, sizeof s) != WEIR_GRANTED ||
        weir_sync_limiter_stats(node->sync, node->limiter, &l, sizeof l) != WEIR_GRANTED)
        return;
    tell(node, WR_DEMO_FIGURE_REPORTED, l.reported_tokens);
    tell(node, WR_DEMO_FIGURE_PENDING, l.pending_tokens);
    tell(node, WR_DEMO_FIGURE_LOST, l.lost_tokens);
    tell_most(node, WR_DEMO_FIGURE_EXCESS_MILLI, milli(l.excess_tokens));
    tell_most(node, WR_DEMO_FIGURE_BOUND_MILLI, milli(l.excess_bound_tokens));
    tell(node, WR_DEMO_FIGURE_REPORTS, s.reports);
    tell(node, WR_DEMO_FIGURE_TIMEOUTS, s.timeouts);
    tell(node, WR_DEMO_FIGURE_DISCONNECTS, s.disconnects);
    tell(node, WR_DEMO_FIGURE_REFUSED, s.refused);
    tell(node, WR_DEMO_FIGURE_FORGOTTEN, s.forgotten);
    tell(node, WR_DEMO_FIGURE_MARKER_LOST, s.marker_lost);
    tell_most(node, WR_DEMO_FIGURE_RTT_NS, s.rtt_ns);
    tell_most(node, WR_DEMO_FIGURE_LAG_NS, s.lag_ns);
    follow_silence(node, s.reports, now_ns);
    node->figures_ns = now_ns + FIGURES_NS;
}

// Waiting -------------------------------------------------------------------------------------

static void nap(uint64_t span_ns) {
    nanosleep(&(struct timespec){.tv_nsec = (long)(span_ns < NAP_NS ? span_ns : NAP_NS)}, NULL);
}

static void wait_connected(struct node *node) {
    const uint64_t until_ns = wr_demo_clock_ns() + READY_NS;
    struct weir_sync_stats stats = {.connected = false};
    while (wr_demo_clock_ns() < until_ns) {
        if (weir_sync_stats(node->sync, &stats, sizeof stats) == WEIR_GRANTED && stats.connected)
            return;
        nap(NAP_NS);
    }
    fail(node, "no connection to Redis within 5 s", stats.last_error);
}

static void wait_start(struct node *node) {
    wr_demo_board_move(node->board, node->process, WR_DEMO_READY);
    while ((node->start_ns = wr_demo_board_start_ns(node->board)) == 0) nap(WEIR_MILLISECOND);
    while (wr_demo_clock_ns() < node->start_ns) nap(node->start_ns - wr_demo_clock_ns());
}

// Demand --------------------------------------------------------------------------------------

static uint64_t draw(struct node *node) {
    const double mean = (double)wr_random_exponential_q32(&node->random) / 4294967296.0;
    return (uint64_t)(mean * 1e9 / node->per_s);
}

// The rate from `from_ns` on.
static void turn(struct node *node, uint64_t from_ns) {
    node->alive = wr_demo_board_alive(node->board);
    node->per_s = wr_demo_load_per_s(node->options, node->alive, node->process, from_ns);
    node->until_ns = wr_demo_load_until_ns(node->options, from_ns);
    node->next_ns = node->per_s > 0 ? from_ns + draw(node) : UINT64_MAX;
}

static void ask(struct node *node, uint64_t now_ns) {
    const uint32_t key = (uint32_t)wr_random_below(&node->random, node->options->keys);
    const int result = weir_take(node->limiter, weir_str(node->keys[key]), 1, NULL);
    if (result < 0) fail(node, "an ask", weir_strerror(result));
    wr_demo_board_count(node->board, node->process, key, result == WEIR_GRANTED, now_ns);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

// All asks that are due.
static void catch_up(struct node *node, uint64_t now_ns) {
    const uint64_t end_ns = wr_demo_board_end_ns(node->board) - node->start_ns;
    while (node->next_ns <= now_ns && node->next_ns < node->until_ns && now_ns < end_ns) {
        ask(node, now_ns);
        node->next_ns += draw(node);
        now_ns = wr_demo_clock_ns() - node->start_ns;
    }
}

static void drive(struct node *node) {
    turn(node, 0);
    for (;;) {
        const uint64_t now_ns = wr_demo_clock_ns() - node->start_ns;
        if (now_ns >= wr_demo_board_end_ns(node->board) - node->start_ns) return;
        catch_up(node, now_ns);
        if (now_ns >= node->until_ns) turn(node, node->until_ns);
        else if (node->alive != wr_demo_board_alive(node->board)) turn(node, now_ns);
        if (now_ns >= node->figures_ns) tell_figures(node, now_ns);
        const uint64_t due_ns = least(node->next_ns, node->until_ns);
        if (due_ns > now_ns) nap(due_ns - now_ns);
    }
}

_Noreturn void wr_demo_node_run(const struct wr_demo_options *options, struct wr_demo_board *board,
                                uint32_t process, const char *url, const char *prefix) {
    struct node node = {.options = options, .board = board, .process = process};
    node.random = wr_random_init(wr_random_mix(options->seed) + process);
    for (uint32_t key = 0; key < options->keys; key++)
        snprintf(node.keys[key], KEY_BYTES, "key%u", (unsigned)key);
    open_limiter(&node);
    open_sync(&node, url, prefix);
    wait_connected(&node);
    wait_start(&node);
    drive(&node);
    weir_sync_stop(node.sync, STOP_NS); // what was not reported stays in the figures
    tell_figures(&node, wr_demo_clock_ns() - node.start_ns);
    wr_demo_board_move(board, process, WR_DEMO_DONE);
    weir_sync_destroy(node.sync);
    weir_destroy(node.limiter);
    _exit(0);
}
