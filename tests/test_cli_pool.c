// test_cli_pool.c - `weir pool`: its words, its provider on a clock that is made up, its balance,
// and runs of the program itself that last a second or two.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/pool_latency.h"
#include "cli/pool_ledger.h"
#include "cli/pool_provider.h"
#include "cli/pool_queue.h"
#include "cli/pool_spec.h"
#include "cli_files.h"

#define MS WEIR_MILLISECOND
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// Words ---------------------------------------------------------------------------------------

static void reads_every_part_of_a_downstream(void **state) {
    (void)state;
    struct wr_downstream d;
    struct wr_fault fault = {""};
    const char *spec = "capacity=500/s,latency=20ms±5,error429,capacity=200/s@10s,outage=5s@20s,"
                       "timeout=1s";
    if (!wr_downstream_parse(spec, &d, &fault)) fail_msg("%s", fault.text);
    assert_int_equal(d.phase_count, 2);
    assert_int_equal(d.phases[1].from_ns, 10 * WEIR_SECOND);
    assert_int_equal(d.phases[1].capacity.tokens, 200);
    assert_int_equal(d.latency_ns, 20 * MS);
    assert_int_equal(d.spread_ns, 5 * MS);
    assert_int_equal(d.timeout_ns, WEIR_SECOND);
    assert_true(d.refuses);
    assert_int_equal(d.outage_count, 1);
    assert_true(wr_downstream_per_s(&d, 9999 * MS) == 500);
    assert_true(wr_downstream_per_s(&d, 10 * WEIR_SECOND) == 200);
    assert_true(wr_downstream_per_s(&d, 20 * WEIR_SECOND) == 0);
    assert_true(wr_downstream_per_s(&d, 25 * WEIR_SECOND) == 200);
}

static void reads_a_spread_however_it_is_written(void **state) {
    (void)state;
    static const char *const forms[] = {"latency=20ms±5", "latency=20ms+-5", "latency=20ms±5ms",
                                        "latency=20ms+/-5000us", "latency=20ms±0.005s"};
    for (size_t i = 0; i < COUNT(forms); i++) {
        char spec[128];
        struct wr_downstream d;
        struct wr_fault fault = {""};
        snprintf(spec, sizeof spec, "capacity=unlimited,%s", forms[i]);
        if (!wr_downstream_parse(spec, &d, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(d.spread_ns, 5 * MS);
        assert_true(isinf(wr_downstream_per_s(&d, 0)));
    }
}

static void names_the_part_of_a_downstream_that_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *spec, *part, *right;
    } cases[] = {
        {"", "''", "capacity=500/s"},
        {"latency=20ms", "lacks a capacity", "capacity=500/s"},
        {"capacity=500", "'capacity=500'", "capacity=500/s"},
        {"capacity=500/s,capacity=200/s", "'capacity=200/s'", "capacity=200/s@10s"},
        {"capacity=500/s@2s", "'capacity=500/s@2s'", "capacity=500/s"},
        {"capacity=5/s,capacity=6/s@9s,capacity=7/s@8s", "'capacity=7/s@8s'", "@10s"},
        {"capacity=500/s,capacity=200/s@soon", "'capacity=200/s@soon'", "capacity=200/s@10s"},
        {"capacity=2000000000000/s", "10^12", "capacity=500/s"},
        {"capacity=500/s,latency", "'latency'", "latency=20ms±5"},
        {"capacity=500/s,latency=", "'latency='", "latency=20ms±5"},
        {"capacity=500/s,latency=20", "'latency=20'", "latency=20ms±5"},
        {"capacity=500/s,latency=20ms±", "'latency=20ms±'", "latency=20ms±5"},
        {"capacity=500/s,latency=20ms±21", "spread is more", "latency=20ms±5"},
        {"capacity=500/s,latency=2m", "above a minute", "latency=20ms±5"},
        {"capacity=500/s,latency=20ms@5s", "takes no @", "latency=20ms±5"},
        {"capacity=500/s,error429=yes", "takes no value", "error429"},
        {"capacity=500/s,error500", "'error500'", "error429"},
        {"capacity=500/s,outage=5s", "lacks its @", "outage=5s@20s"},
        {"capacity=500/s,outage=0@20s", "no length", "outage=5s@20s"},
        {"capacity=500/s,outage=x@20s", "'outage=x@20s'", "outage=5s@20s"},
        {"capacity=500/s,timeout=0", "'timeout=0'", "timeout=2s"},
        {"capacity=500/s,,error429", "no such part", "capacity=500/s"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wr_downstream d;
        struct wr_fault fault = {""};
        if (wr_downstream_parse(cases[i].spec, &d, &fault)) fail_msg("taken: %s", cases[i].spec);
        if (strstr(fault.text, cases[i].part) == NULL || strstr(fault.text, cases[i].right) == NULL)
            fail_msg("%s: %s", cases[i].spec, fault.text);
    }
}

static void names_the_setting_of_a_valve_that_is_wrong(void **state) {
    (void)state;
    static const char *const wrong[] = {"min",    "min=x",      "min=1@2s", "",
                                        "most=5", "interval=5", "min=inf"};
    struct weir_valve_settings s = WEIR_VALVE_SETTINGS_INIT;
    struct wr_fault fault = {""};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        if (wr_pool_valve_parse(wrong[i], &s, &fault)) fail_msg("taken: %s", wrong[i]);
        if (strstr(fault.text, wrong[i]) == NULL) fail_msg("%s: %s", wrong[i], fault.text);
    }
    assert_true(wr_pool_valve_parse("min=20,max=5000,base=150,grow=1.1,interval=50ms", &s, &fault));
    assert_true(s.min_per_s == 20 && s.max_per_s == 5000 && s.base_per_s == 150);
    assert_true(s.grow_factor == 1.1);
    assert_int_equal(s.interval_ns, 50 * MS);
}

// The provider --------------------------------------------------------------------------------

static void make_provider(struct wr_provider *provider, const char *spec) {
    struct wr_downstream d;
    struct wr_fault fault = {""};
    if (!wr_downstream_parse(spec, &d, &fault)) fail_msg("%s", fault.text);
    wr_provider_init(provider, &d, 1);
}

// Calls each `every_ns` from `from_ns` to `to_ns`, and how many were taken.
static unsigned call_often(struct wr_provider *provider, uint64_t from_ns, uint64_t to_ns,
                           uint64_t every_ns) {
    unsigned taken = 0;
    for (uint64_t t = from_ns; t < to_ns; t += every_ns)
        taken += wr_provider_call(provider, t).status == WR_POOL_OK;
    return taken;
}

static void provider_takes_its_capacity_in_each_phase(void **state) {
    (void)state;
    struct wr_provider provider;
    make_provider(&provider, "capacity=500/s,error429,capacity=200/s@10s,capacity=3/10s@20s");
    // Besides, 20 ms of it and a call that were saved up.
    assert_in_range(call_often(&provider, 0, 10 * WEIR_SECOND, MS), 5010, 5011);
    assert_in_range(call_often(&provider, 10 * WEIR_SECOND, 20 * WEIR_SECOND, MS), 1999, 2001);
    assert_in_range(call_often(&provider, 20 * WEIR_SECOND, 30 * WEIR_SECOND, MS), 3, 4);
    wr_provider_fini(&provider);
}

static void provider_answers_429_only_where_it_refuses(void **state) {
    (void)state;
    struct wr_provider provider;
    make_provider(&provider, "capacity=1/s,latency=7ms,error429");
    assert_int_equal(wr_provider_call(&provider, 0).status, WR_POOL_OK);
    assert_int_equal(wr_provider_call(&provider, 0).status, WR_POOL_TOO_MANY);
    assert_int_equal(wr_provider_call(&provider, 0).after_ns, 7 * MS);
    wr_provider_fini(&provider);
    make_provider(&provider, "capacity=1/s,latency=7ms,timeout=2s");
    assert_int_equal(wr_provider_call(&provider, 0).after_ns, 7 * MS);
    assert_int_equal(wr_provider_call(&provider, 0).after_ns, 7 * MS + 980 * MS);
    assert_int_equal(wr_provider_call(&provider, 0).after_ns, 7 * MS + 1980 * MS);
    assert_int_equal(wr_provider_call(&provider, 0).status, WR_POOL_TIMEOUT);
    assert_int_equal(wr_provider_call(&provider, 0).after_ns, 2 * WEIR_SECOND);
    // What timed out took no place.
    assert_int_equal(wr_provider_call(&provider, 3 * WEIR_SECOND).after_ns, 7 * MS);
    wr_provider_fini(&provider);
}

static void provider_is_out_for_exactly_its_outage(void **state) {
    (void)state;
    struct wr_provider provider;
    make_provider(&provider, "capacity=unlimited,latency=1ms,outage=5s@20s");
    assert_int_equal(wr_provider_call(&provider, 20 * WEIR_SECOND - 1).status, WR_POOL_OK);
    assert_int_equal(wr_provider_call(&provider, 20 * WEIR_SECOND).status, WR_POOL_UNAVAILABLE);
    assert_int_equal(wr_provider_call(&provider, 25 * WEIR_SECOND - 1).status, WR_POOL_UNAVAILABLE);
    assert_int_equal(wr_provider_call(&provider, 25 * WEIR_SECOND).status, WR_POOL_OK);
    // An older reading counts as the newest.
    assert_int_equal(wr_provider_call(&provider, 21 * WEIR_SECOND).status, WR_POOL_OK);
    wr_provider_fini(&provider);
}

static void latency_keeps_within_its_spread(void **state) {
    (void)state;
    struct wr_provider provider;
    uint64_t least = UINT64_MAX, most = 0;
    make_provider(&provider, "capacity=unlimited,latency=20ms±5");
    for (int i = 0; i < 10000; i++) {
        const uint64_t ns = wr_provider_call(&provider, 0).after_ns;
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    assert_in_range(least, 15 * MS, 15 * MS + MS / 10);
    assert_in_range(most, 25 * MS - MS / 10, 25 * MS);
    wr_provider_fini(&provider);
}

// The balance ---------------------------------------------------------------------------------

static void sheet_tells_what_is_lost_and_what_ended_twice(void **state) {
    (void)state;
    static struct wr_ledger ledger;
    struct wr_pool_event all[6];
    struct wr_pool_events events = {.all = all, .count = 6};
    struct wr_pool_sheet sheet;
    memset(all, 0, sizeof all);
    wr_ledger_add(&ledger, WR_POOL_COUNT_ARRIVED, 5); // the sixth never came
    wr_ledger_end(&ledger, &all[0], WR_POOL_DELIVERED);
    wr_ledger_end(&ledger, &all[1], WR_POOL_DENIED);
    wr_ledger_end(&ledger, &all[2], WR_POOL_DEAD);
    wr_ledger_end(&ledger, &all[3], WR_POOL_PARKED);
    wr_pool_sheet(&ledger, &events, &sheet);
    assert_int_equal(sheet.lost, 1);
    assert_int_equal(sheet.unended, 1);
    assert_false(wr_pool_sheet_balances(&sheet));
    wr_ledger_end(&ledger, &all[4], WR_POOL_DELIVERED);
    wr_pool_sheet(&ledger, &events, &sheet);
    assert_int_equal(sheet.lost, 0);
    assert_int_equal(sheet.delivered, 2);
    assert_true(wr_pool_sheet_balances(&sheet));
    // One lost and one twice do not make up for each other.
    all[1].ends = 0;
    all[4].ends = 2;
    wr_pool_sheet(&ledger, &events, &sheet);
    assert_int_equal(sheet.lost, 0);
    assert_int_equal(sheet.unended, 1);
    assert_int_equal(sheet.twice, 1);
    assert_false(wr_pool_sheet_balances(&sheet));
}

static void every_latency_lies_in_its_bucket(void **state) {
    (void)state;
    for (uint64_t ns = 1; ns < UINT64_MAX / 3; ns += ns / 9 + 1) {
        static struct wr_latency latency;
        struct wr_latencies read;
        memset(&latency, 0, sizeof latency);
        wr_latency_add(&latency, ns);
        wr_latency_read(&latency, &read);
        const uint64_t end = wr_latencies_quantile_ns(&read, 0.5);
        assert_true(end > ns && end - ns <= ns / 32 + 1);
    }
}

#define PUSHES 20000

static void *pop_all(void *context) {
    struct wr_pool_event *event;
    struct wr_pool_queue *queue = context;
    uintptr_t popped = 0;
    while ((event = wr_pool_queue_pop(queue)) != NULL) {
        event->ends++; // owned now
        popped++;
    }
    return (void *)popped;
}

static void queue_is_bounded_and_gives_each_event_to_one(void **state) {
    (void)state;
    struct wr_pool_queue *queue = wr_pool_queue_create(7);
    struct wr_pool_event *all = calloc(PUSHES, sizeof *all);
    pthread_t poppers[3];
    uintptr_t popped = 0, left = 0;
    assert_non_null(queue);
    for (int i = 0; i < 7; i++) assert_true(wr_pool_queue_push(queue, &all[i]));
    assert_false(wr_pool_queue_push(queue, &all[7]));
    assert_int_equal(wr_pool_queue_worst(queue), 7);
    for (int i = 0; i < 3; i++) pthread_create(&poppers[i], NULL, pop_all, queue);
    for (int i = 7; i < PUSHES;) i += wr_pool_queue_push(queue, &all[i]);
    wr_pool_queue_stop(queue, 3);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(poppers[i], &result);
        popped += (uintptr_t)result;
    }
    for (struct wr_pool_event *event; (event = wr_pool_queue_take(queue)) != NULL; left++)
        event->ends++;
    assert_int_equal(popped + left, PUSHES);
    for (int i = 0; i < PUSHES; i++) assert_int_equal(all[i].ends, 1);
    wr_pool_queue_destroy(queue);
    free(all);
}

// The program ---------------------------------------------------------------------------------

struct sheet {
    json_int_t arrived, delivered, denied, dead, parked, lost, told_lost, too_many;
};

// Reads the JSON in the file `out`, and finds the balance of run `i` to add up.
static struct sheet check_run(const struct folder *folder, size_t i) {
    char path[128];
    struct sheet sheet;
    int adds_up = 0;
    json_t *root = json_load_file(folder_file(folder, "out", path), 0, NULL);
    if (root == NULL) (void)file_says(folder, "err", "(no JSON)");
    assert_non_null(root);
    assert_int_equal(json_unpack(json_array_get(json_object_get(root, "runs"), i),
                                 "{s:{s:I, s:I, s:I, s:I, s:I, s:I, s:b}, s:{s:I}}", "balance",
                                 "arrived", &sheet.arrived, "delivered", &sheet.delivered,
                                 "denied", &sheet.denied, "dead_lettered", &sheet.dead,
                                 "parked_at_end", &sheet.parked, "lost", &sheet.lost, "adds_up",
                                 &adds_up, "counts", "answers_429", &sheet.too_many),
                     0);
    sheet.told_lost = json_integer_value(json_object_get(root, "lost"));
    json_decref(root);
    assert_int_equal(sheet.arrived - sheet.delivered - sheet.denied - sheet.dead - sheet.parked, 0);
    assert_int_equal(sheet.lost, 0);
    assert_int_equal(sheet.told_lost, 0);
    assert_true(adds_up);
    return sheet;
}

static void loses_nothing_in_any_mode(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR pool --compare --duration 1s --arrivals 200/s --json"),
                     0);
    for (size_t i = 0; i < 4; i++) assert_true(check_run(folder, i).arrived > 1000);
    // The same events in each.
    assert_int_equal(check_run(folder, 0).arrived, check_run(folder, 3).arrived);
    assert_true(check_run(folder, 0).too_many > 0);
}

static void denies_for_good_or_parks_by_key(void **state) {
    const struct folder *folder = *state;
    const char *line = "$WEIR pool --source attack --duration 1s --arrivals 300/s --rate 1/s "
                       "--burst 1 --json --downstream capacity=unlimited";
    char parked[256];
    assert_int_equal(run_in(folder, line), 0);
    struct sheet sheet = check_run(folder, 0);
    assert_true(sheet.denied > 0);
    assert_int_equal(sheet.dead, 0);
    snprintf(parked, sizeof parked, "%s --park", line);
    assert_int_equal(run_in(folder, parked), 0);
    sheet = check_run(folder, 0);
    assert_int_equal(sheet.denied, 0);
    assert_true(sheet.parked > 0);
}

static void dead_letters_what_was_tried_too_often_or_finds_no_room(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR pool --source steady --mode none --duration 1s --json "
                                    "--max-tries 2 --retry 10ms "
                                    "--downstream capacity=50/s,latency=1ms,error429"), 0);
    assert_true(check_run(folder, 0).dead > 0);
    assert_int_equal(run_in(folder, "$WEIR pool --source steady --arrivals 500/s --duration 1s "
                                    "--json --lot 10 --mode fixed --provider-rate 10/s"), 0);
    assert_true(check_run(folder, 0).dead > 0);
}

static void keeps_the_balance_with_a_tiny_queue_and_an_outage(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR pool --source steady --mode none --duration 2s --json "
                                    "--arrivals 2k/s --queue 3 --workers 2 --drain 0s --downstream "
                                    "capacity=300/s,latency=5ms,timeout=50ms,outage=.5s@.5s"), 0);
    const struct sheet sheet = check_run(folder, 0);
    assert_true(sheet.parked > 0 && sheet.delivered > 0);
}

static void drains_on_an_interrupt_and_prints_the_balance(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "timeout --preserve-status -s INT 1 $WEIR pool --duration 1m "
                                    "--source steady --arrivals 2k/s --json"), 0);
    const struct sheet sheet = check_run(folder, 0);
    assert_true(sheet.arrived > 0 && sheet.arrived < 60000);
    assert_true(file_says(folder, "out", "\"interrupted\": true"));
}

static void is_quiet_in_a_pipe(void **state) {
    const struct folder *folder = *state;
    char path[128];
    size_t length;
    assert_int_equal(run_in(folder, "$WEIR pool --duration 1s"), 0);
    free(read_whole(folder_file(folder, "err", path), &length));
    assert_int_equal(length, 0);
    assert_true(file_says(folder, "out", "  lost                            0\n"));
    assert_true(file_says(folder, "out", "seed 1"));
    assert_true(file_says(folder, "out", "over time"));
}

static void runs_a_log_at_its_pace_or_faster(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR trace steady --rate 100/s --duration 4s --resolution ms "
                                    "-o a.log && $WEIR pool --source a.log --speed 4 --json "
                                    "--downstream capacity=unlimited --mode none"), 0);
    const struct sheet sheet = check_run(folder, 0);
    assert_int_equal(sheet.arrived, sheet.delivered);
    assert_true(file_says(folder, "out", "\"source_ended_early\": true"));
}

static void runs_what_came_before_a_log_broke_off(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR trace steady --rate 1k/s --duration 2s --resolution ms "
                                    "| gzip | head -c 20000 > b.gz; $WEIR pool --source b.gz "
                                    "--speed 2 --json --downstream capacity=unlimited"), 1);
    assert_true(check_run(folder, 0).arrived > 0);
    assert_true(file_says(folder, "err", "b.gz:"));
    assert_true(file_says(folder, "err", "what came before was run"));
}

static void refuses_in_words_and_with_the_right_code(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *options, *words;
        int code;
    } cases[] = {
        {"--workers 0", "--workers '0': it is from 1 to 1024", 2},
        {"--queue 0", "--queue '0': it is from 1", 2},
        {"--duration 0", "--duration '0': it is from 100ms", 2},
        {"--mode maybe", "none, fixed and adaptive", 2},
        {"--rate 5", "--rate: rate '5': per what time?", 2},
        {"--park", "--park is about the limit of a key", 2},
        {"--key path", "give --rate 5/s", 2},
        {"--rate 1/s --key shoe", "user (or host) and path", 2},
        {"--speed 2", "--speed is for a log", 2},
        {"--compare --mode none", "leave --mode away", 2},
        {"--provider-rate 5/s", "--mode fixed or --compare", 2},
        {"--compare --valve min=9,max=8", "--valve: ", 2},
        {"--valve low=70", "--valve: low_depth", 2},
        {"--plot p.gif", ".svg or .png", 2},
        {"--listen here", "127.0.0.1:9464", 2},
        {"--listen 1.2.3.4:99999", "127.0.0.1:9464", 2},
        {"sale.log", "named by --source", 2},
        {"--source none.log", "none.log: there is no such file", 1},
        {"--source /dev/null", "has no events", 1},
        {"-o /none/such", "cannot be written", 1},
        {"--plot /none/such.svg", "cannot be written", 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char line[256];
        snprintf(line, sizeof line, "timeout 5 $WEIR pool %s", cases[i].options);
        const int code = run_in(folder, line);
        if (code != cases[i].code) fail_msg("%s: exit code %d", cases[i].options, code);
        assert_true(file_says(folder, "err", cases[i].words));
    }
}

static void says_so_when_the_report_cannot_be_written(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "$WEIR pool --duration 100ms -o /dev/full"), 1);
    assert_true(file_says(folder, "err", "cannot be written"));
}

// /metrics ------------------------------------------------------------------------------------

static int listen_anywhere(struct sockaddr_in *address) {
    socklen_t bytes = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)address, bytes), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &bytes), 0);
    return fd;
}

static void says_so_when_the_port_is_in_use(void **state) {
    const struct folder *folder = *state;
    struct sockaddr_in address;
    char line[128];
    const int fd = listen_anywhere(&address);
    snprintf(line, sizeof line, "timeout 5 $WEIR pool --listen 127.0.0.1:%u",
             ntohs(address.sin_port));
    assert_int_equal(run_in(folder, line), 1);
    assert_true(file_says(folder, "err", "in use; give another port"));
    close(fd);
}

static int connect_to(unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

// Starts the program in the background; the port that it tells on standard error, and its process.
static pid_t start_pool(FILE **err, FILE **out, unsigned *port) {
    int errors[2], output[2];
    char line[256];
    assert_int_equal(pipe(errors), 0);
    assert_int_equal(pipe(output), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(errors[1], STDERR_FILENO);
        dup2(output[1], STDOUT_FILENO);
        close(errors[0]);
        close(output[0]);
        execl(getenv("WEIR_BIN"), "weir", "pool", "--listen", "127.0.0.1:0", "--duration", "30s",
              "--source", "steady", "--arrivals", "200/s", "--rate", "50/s", "--json",
              (char *)NULL);
        _exit(127);
    }
    close(errors[1]);
    close(output[1]);
    *err = fdopen(errors[0], "r");
    *out = fdopen(output[0], "r");
    assert_non_null(fgets(line, sizeof line, *err));
    assert_int_equal(sscanf(line, "weir pool: http://127.0.0.1:%u/metrics", port), 1);
    return child;
}

static size_t ask(unsigned port, const char *request, char *answer, size_t room) {
    const int fd = connect_to(port);
    size_t length = 0;
    ssize_t got;
    assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    shutdown(fd, SHUT_WR);
    while (length + 1 < room && (got = read(fd, answer + length, room - 1 - length)) > 0)
        length += (size_t)got;
    answer[length] = '\0';
    close(fd);
    return length;
}

static void slow_and_hostile_clients_hold_up_nothing(void **state) {
    (void)state;
    static char answer[1 << 17];
    static char flood[100000];
    FILE *err, *out;
    unsigned port;
    int idle[8];
    json_error_t error;
    const pid_t child = start_pool(&err, &out, &port);
    memset(flood, 'x', sizeof flood);
    for (size_t i = 0; i < COUNT(idle); i++) {
        idle[i] = connect_to(port); // and says nothing, or half of it, or too much
        if (i % 3 == 1) assert_int_equal(write(idle[i], "GET /met", 8), 8);
        if (i % 3 == 2) (void)!send(idle[i], flood, sizeof flood, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    ask(port, "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, "200 OK"));
    assert_non_null(strstr(answer, "application/openmetrics-text"));
    assert_non_null(strstr(answer, "\nweir_pool_arrived_total "));
    assert_non_null(strstr(answer, "limiter=\"provider\""));
    assert_non_null(strstr(answer, "\n# EOF\n"));
    ask(port, "POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 405 "));
    ask(port, "GET / HTTP/1.0\r\n\r\n", answer, sizeof answer);
    assert_non_null(strstr(answer, " 404 "));
    kill(child, SIGINT); // with the idle ones still there
    json_t *root = json_loadf(out, 0, &error);
    assert_non_null(root);
    assert_int_equal(json_integer_value(json_object_get(root, "lost")), 0);
    json_decref(root);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) { // what it said
        answer[fread(answer, 1, sizeof answer - 1, err)] = '\0';
        print_error("wait status %#x: %s\n", (unsigned)status, answer);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (size_t i = 0; i < COUNT(idle); i++) close(idle[i]);
    fclose(err);
    fclose(out);
}

static int make_folder(void **state) {
    struct folder *folder = malloc(sizeof *folder);
    *folder = folder_create();
    *state = folder;
    if (getenv("WEIR_BIN") == NULL) setenv("WEIR_BIN", getenv("WEIR_COMMAND"), 1);
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

static int remove_folder(void **state) {
    folder_remove(*state);
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_part_of_a_downstream),
        cmocka_unit_test(reads_a_spread_however_it_is_written),
        cmocka_unit_test(names_the_part_of_a_downstream_that_is_wrong),
        cmocka_unit_test(names_the_setting_of_a_valve_that_is_wrong),
        cmocka_unit_test(provider_takes_its_capacity_in_each_phase),
        cmocka_unit_test(provider_answers_429_only_where_it_refuses),
        cmocka_unit_test(provider_is_out_for_exactly_its_outage),
        cmocka_unit_test(latency_keeps_within_its_spread),
        cmocka_unit_test(sheet_tells_what_is_lost_and_what_ended_twice),
        cmocka_unit_test(every_latency_lies_in_its_bucket),
        cmocka_unit_test(queue_is_bounded_and_gives_each_event_to_one),
        cmocka_unit_test(loses_nothing_in_any_mode),
        cmocka_unit_test(denies_for_good_or_parks_by_key),
        cmocka_unit_test(dead_letters_what_was_tried_too_often_or_finds_no_room),
        cmocka_unit_test(keeps_the_balance_with_a_tiny_queue_and_an_outage),
        cmocka_unit_test(drains_on_an_interrupt_and_prints_the_balance),
        cmocka_unit_test(is_quiet_in_a_pipe),
        cmocka_unit_test(runs_a_log_at_its_pace_or_faster),
        cmocka_unit_test(runs_what_came_before_a_log_broke_off),
        cmocka_unit_test(refuses_in_words_and_with_the_right_code),
        cmocka_unit_test(says_so_when_the_report_cannot_be_written),
        cmocka_unit_test(says_so_when_the_port_is_in_use),
        cmocka_unit_test(slow_and_hostile_clients_hold_up_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
