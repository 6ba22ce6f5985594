// test_cli_sync_demo.c - `weir sync-demo`: its words, its demand, its windows, and short runs of
// the program itself with real processes and a redis-server.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>

#include "cli/demo_judge.h"
#include "cli_files.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SHORT "--processes 3 --rate 200/s --burst 100 --duration 2s --interval 50ms"

// Words ---------------------------------------------------------------------------------------

static void reads_faults_and_writes_them_the_same(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum wr_demo_fault_kind kind;
        uint64_t at_ns, length_ns;
        const char *written;
    } cases[] = {
        {"outage=10s@12s", WR_DEMO_OUTAGE, 12 * WEIR_SECOND, 10 * WEIR_SECOND, "outage=10s@12s"},
        {"latency=200ms", WR_DEMO_LATENCY, 0, 200 * WEIR_MILLISECOND, "latency=200ms@0s"},
        {"latency=200ms@1.5s", WR_DEMO_LATENCY, 1500 * WEIR_MILLISECOND, 200 * WEIR_MILLISECOND,
         "latency=200ms@1500ms"},
        {"flush@5s", WR_DEMO_FLUSH, 5 * WEIR_SECOND, 0, "flush@5s"},
        {"script-flush@5s", WR_DEMO_SCRIPT_FLUSH, 5 * WEIR_SECOND, 0, "script-flush@5s"},
        {"kill-node@0", WR_DEMO_KILL_NODE, 0, 0, "kill-node@0s"},
        {"kill-redis@500ms", WR_DEMO_KILL_REDIS, 500 * WEIR_MILLISECOND, 0, "kill-redis@500ms"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wr_demo_fault made;
        struct wr_fault fault = {""};
        char text[WR_UNIT_TEXT * 2];
        if (!wr_demo_fault_parse(cases[i].text, &made, &fault)) fail_msg("%s", fault.text);
        assert_int_equal(made.kind, cases[i].kind);
        assert_int_equal(made.at_ns, cases[i].at_ns);
        assert_int_equal(made.length_ns, cases[i].length_ns);
        wr_demo_fault_text(&made, text);
        assert_string_equal(text, cases[i].written);
    }
}

static void names_the_fault_that_is_wrong(void **state) {
    (void)state;
    static const char *const wrong[] = {"",           "outage",     "outage@5s", "outage=5s",
                                        "outage=0@1", "outage=x@1s", "flush",     "flush=1s@2s",
                                        "flush@soon", "Flush@5s",   "latency",   "kill@5s"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct wr_demo_fault made;
        struct wr_fault fault = {""};
        char quoted[64];
        snprintf(quoted, sizeof quoted, "--fault '%s'", wrong[i]);
        if (wr_demo_fault_parse(wrong[i], &made, &fault)) fail_msg("'%s' was read", wrong[i]);
        if (strstr(fault.text, quoted) == NULL) fail_msg("%s", fault.text);
    }
}

// Demand --------------------------------------------------------------------------------------

static struct wr_demo_options options_of(enum wr_demo_pattern pattern) {
    return (struct wr_demo_options){.processes = 4, .keys = 1, .rate = {100, WEIR_SECOND},
                                    .burst = 100, .demand = 3, .pattern = pattern,
                                    .duration_ns = 20 * WEIR_SECOND};
}

static double all_at(const struct wr_demo_options *options, uint64_t alive, uint64_t at_ns) {
    double sum = 0;
    for (uint32_t i = 0; i < options->processes; i++)
        sum += wr_demo_load_per_s(options, alive, i, at_ns);
    return sum;
}

static void splits_the_demand_among_those_alive(void **state) {
    (void)state;
    static const enum wr_demo_pattern steady[] = {WR_DEMO_EVEN, WR_DEMO_ONE, WR_DEMO_JUMP};
    for (size_t i = 0; i < COUNT(steady); i++) {
        const struct wr_demo_options options = options_of(steady[i]);
        for (uint64_t alive = 1; alive < 16; alive++)
            for (uint64_t s = 0; s < 20; s++)
                assert_true(all_at(&options, alive, s * WEIR_SECOND) == 300);
    }
}

static void kills_a_process_that_is_asked(void **state) {
    (void)state;
    for (int p = 0; p < WR_DEMO_PATTERN_COUNT; p++) {
        const struct wr_demo_options options = options_of((enum wr_demo_pattern)p);
        const uint64_t at_ns = 7 * WEIR_SECOND;
        const uint32_t victim = wr_demo_load_victim(&options, 14, at_ns); // not 0, which is dead
        assert_true(victim >= 1 && victim <= 3);
        assert_true(wr_demo_load_per_s(&options, 14, victim, at_ns) > 0);
    }
}

static void floods_after_a_quiet_time(void **state) {
    (void)state;
    const struct wr_demo_options options = options_of(WR_DEMO_FLOOD);
    uint64_t at_ns = 0;
    assert_true(all_at(&options, 15, at_ns) == 0);
    at_ns = wr_demo_load_until_ns(&options, at_ns);
    assert_int_equal(at_ns, 2 * WEIR_SECOND);
    assert_true(all_at(&options, 15, at_ns) == 4 * 10 * 100);
    at_ns = wr_demo_load_until_ns(&options, at_ns);
    assert_int_equal(at_ns, 3 * WEIR_SECOND);
    assert_true(all_at(&options, 15, at_ns) == 300);
    assert_true(wr_demo_load_until_ns(&options, at_ns) == UINT64_MAX);
}

// Windows -------------------------------------------------------------------------------------

// Over all windows, one by one.
static double worst_of(const uint64_t *granted, size_t slots, double burst, double per_slot) {
    double worst = -burst;
    for (size_t from = 0; from < slots; from++) {
        double sum = 0;
        for (size_t to = from; to < slots; to++) {
            sum += (double)granted[to] - per_slot;
            if (sum - burst > worst) worst = sum - burst;
        }
    }
    return worst;
}

static void finds_the_worst_window(void **state) {
    (void)state;
    uint64_t seed = 1, granted[60];
    for (int round = 0; round < 200; round++) {
        struct wr_demo_key key = {.asked = 0};
        for (size_t i = 0; i < COUNT(granted); i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            granted[i] = (seed >> 60) > 11 ? seed >> 58 : 0;
        }
        wr_demo_judge_windows(granted, COUNT(granted), 20, 8, &key);
        assert_true(key.worst == worst_of(granted, COUNT(granted), 20, 8));
        assert_true(key.worst_to_s >= key.worst_from_s);
    }
}

static void finds_where_the_worst_window_is(void **state) {
    (void)state;
    const uint64_t granted[] = {0, 0, 50, 50, 0, 0, 0, 0};
    struct wr_demo_key key = {.asked = 0};
    wr_demo_judge_windows(granted, COUNT(granted), 30, 10, &key);
    assert_true(key.worst == 50); // 100 - 2 * 10 - 30
    assert_true(key.worst_from_s == 0.04 && key.worst_to_s == 0.08);
}

// Runs ----------------------------------------------------------------------------------------

static int begin(void **state) {
    static struct folder folder;
    folder = folder_create();
    setenv("TMPDIR", folder.path, 1); // for the server's folder, to see that it is gone
    *state = &folder;
    return 0;
}

static int end(void **state) {
    folder_remove(*state);
    return 0;
}

static int run(const struct folder *folder, const char *arguments) {
    char line[1024];
    snprintf(line, sizeof line, "\"$WEIR\" sync-demo %s", arguments);
    return run_in(folder, line);
}

// Whether a process has the folder in its command line, as a server of the demo does.
static bool serves(const char *pid, const char *folder) {
    char path[300], words[4096] = "";
    snprintf(path, sizeof path, "/proc/%.200s/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const size_t length = fread(words, 1, sizeof words - 1, file);
    fclose(file);
    for (size_t i = 0; i < length; i++)
        if (words[i] == '\0') words[i] = ' ';
    return strncmp(words, "redis-server", 12) == 0 && strstr(words, folder) != NULL;
}

static size_t servers_of(const struct folder *folder) {
    size_t count = 0;
    DIR *listing = opendir("/proc");
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                 serves(entry->d_name, folder->path);
    closedir(listing);
    return count;
}

// Neither a server nor its folder.
static void assert_nothing_left(const struct folder *folder) {
    DIR *listing = opendir(folder->path);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;)
        if (strncmp(entry->d_name, "weir-demo-", 10) == 0) fail_msg("%s is left", entry->d_name);
    closedir(listing);
    assert_int_equal(servers_of(folder), 0);
}

static json_t *load(const struct folder *folder, const char *name) {
    char path[128];
    json_error_t error;
    json_t *root = json_load_file(folder_file(folder, name, path), 0, &error);
    if (root == NULL) fail_msg("%s", error.text);
    return root;
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("'%s' is no number", name);
    return json_number_value(value);
}

static double sum_of(const json_t *list, const char *name) {
    double sum = 0;
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) sum += number(one, name);
    return sum;
}

// What must hold however fast the machine is. The verdict is the machine's affair.
static void assert_conserved(const json_t *root) {
    const json_t *processes = json_object_get(root, "processes");
    assert_true(number(root, "granted") == sum_of(processes, "granted"));
    assert_true(number(root, "asked") == sum_of(processes, "asked"));
    assert_true(number(root, "granted") == sum_of(json_object_get(root, "keys"), "granted"));
    assert_true(number(root, "granted") <= number(root, "asked"));
    assert_true(number(root, "bound") > 0);
    const double off = number(root, "granted") - number(root, "allowed") - number(root, "excess");
    assert_true(off < 0.01 && off > -0.01);
}

static void grants_what_its_processes_grant(void **state) {
    const struct folder *folder = *state;
    const int code = run(folder, SHORT " --json");
    assert_true(code == 0 || code == 1);
    json_t *root = load(folder, "out");
    const json_t *processes = json_object_get(root, "processes");
    assert_int_equal(json_array_size(processes), 3);
    assert_conserved(root);
    assert_true(number(root, "granted") > 0);
    assert_true(number(root, "elapsed_s") == 2);
    assert_true(number(root, "allowed") == 500);
    assert_true(sum_of(processes, "reported") + sum_of(processes, "pending") +
                    sum_of(processes, "lost") == number(root, "granted"));
    assert_int_equal(code, json_is_true(json_object_get(root, "within_bound")) ? 0 : 1);
    json_decref(root);
    assert_nothing_left(folder);
}

static void goes_on_when_a_process_is_killed(void **state) {
    const struct folder *folder = *state;
    const int code = run(folder, SHORT " --pattern one --fault kill-node@1s --json");
    assert_true(code == 0 || code == 1);
    json_t *root = load(folder, "out");
    const json_t *processes = json_object_get(root, "processes");
    assert_true(json_is_true(json_object_get(json_array_get(processes, 0), "killed")));
    assert_true(number(json_array_get(processes, 1), "asked") > 0); // took over
    assert_true(number(json_array_get(processes, 2), "asked") == 0);
    json_decref(root);
    assert_nothing_left(folder);
}

static void goes_on_through_the_faults_of_redis(void **state) {
    const struct folder *folder = *state;
    const int code =
        run(folder, SHORT " --keys 2 --fault latency=20ms --fault outage=300ms@300ms "
                          "--fault script-flush@800ms --fault flush@1s --fault kill-redis@1.2s "
                          "-o report.json --json");
    assert_true(code == 0 || code == 1);
    json_t *root = load(folder, "report.json");
    size_t i;
    json_t *fault;
    json_array_foreach(json_object_get(root, "faults"), i, fault)
        assert_true(json_is_true(json_object_get(fault, "done")));
    assert_int_equal(i, 5);
    assert_conserved(root);
    assert_true(number(root, "rtt_s") >= 0.02);
    json_decref(root);
    assert_nothing_left(folder);
}

static void tells_a_person_and_draws(void **state) {
    const struct folder *folder = *state;
    char path[128];
    const int code = run(folder, SHORT " --pattern flood --plot out.svg");
    assert_true(code == 0 || code == 1);
    assert_true(file_says(folder, "out", code == 0 ? "within the bound" : "ABOVE THE BOUND"));
    assert_true(file_says(folder, "out", "allowed"));
    assert_int_equal(access(folder_file(folder, "out.svg", path), R_OK), 0);
    assert_nothing_left(folder);
}

static void ends_early_with_its_report_and_leaves_nothing(void **state) {
    const struct folder *folder = *state;
    const int code = run_in(folder, "timeout -s TERM 2 \"$WEIR\" sync-demo --processes 2 "
                                    "--duration 60s --json");
    assert_true(code == 124 || code <= 1); // timeout's own, or the command's
    json_t *root = load(folder, "out");
    assert_true(json_is_true(json_object_get(root, "interrupted")));
    assert_true(number(root, "elapsed_s") < 60);
    assert_conserved(root);
    json_decref(root);
    assert_nothing_left(folder);
}

static void leaves_no_server_when_it_is_killed(void **state) {
    const struct folder *folder = *state;
    run_in(folder, "timeout -s KILL 1 \"$WEIR\" sync-demo --processes 2 --duration 60s");
    for (int i = 0; i < 1000 && servers_of(folder) > 0; i++) usleep(10000); // they are processes
    run_in(folder, "rm -rf weir-demo-*"); // nobody was left to do that
    assert_nothing_left(folder);
}

static void refuses_bad_words_and_names_the_remedy(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *arguments, *says;
    } cases[] = {
        {"--processes 65", "1 to 64"},
        {"--processes 0", "--processes '0'"},
        {"--rate 0", "above 0"},
        {"--rate fast", "--rate"},
        {"--burst 0", "--burst 0"},
        {"--keys 17", "1 to 16"},
        {"--demand 3", "3x"},
        {"--demand 0x", "--demand '0x'"},
        {"--demand nanx", "--demand 'nanx'"},
        {"--pattern odd", "even, one, jump and flood"},
        {"--duration 1h", "10m"},
        {"--interval 1ms", "5ms"},
        {"--redis nowhere", "redis://"},
        {"--fault flush", "'flush'"},
        {"--fault flush@30s", "--duration"},
        {"--redis unix:/x --fault flush@1s", "--redis"},
        {"--redis unix:/x --fault kill-redis@1s", "kill-redis@1s"},
        {"--processes 1 --fault kill-node@1s", "--processes"},
        {"--rate 10M/s", "1M/s"},
        {"--plot out.txt", ".svg or .png"},
        {"word", "'word'"},
        {"--proceses 3", "--processes"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (run(folder, cases[i].arguments) != 2) fail_msg("%s", cases[i].arguments);
        assert_true(file_says(folder, "err", cases[i].says));
    }
}

static void says_what_to_install_where_no_server_is(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run_in(folder, "PATH=/nowhere \"$WEIR\" sync-demo"), 1);
    assert_true(file_says(folder, "err", "install redis-server"));
    assert_true(file_says(folder, "err", "--redis URL"));
    assert_int_equal(run(folder, "--redis unix:/nowhere/redis"), 1);
    assert_true(file_says(folder, "err", "unix:/nowhere/redis"));
    assert_nothing_left(folder);
}

static void helps_with_examples_and_the_terms_of_the_bound(void **state) {
    const struct folder *folder = *state;
    assert_int_equal(run(folder, "--help"), 0);
    assert_true(file_says(folder, "out", "weir sync-demo --processes 8"));
    assert_true(file_says(folder, "out", "r * (d' + RTT/2)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_faults_and_writes_them_the_same),
        cmocka_unit_test(names_the_fault_that_is_wrong),
        cmocka_unit_test(splits_the_demand_among_those_alive),
        cmocka_unit_test(kills_a_process_that_is_asked),
        cmocka_unit_test(floods_after_a_quiet_time),
        cmocka_unit_test(finds_the_worst_window),
        cmocka_unit_test(finds_where_the_worst_window_is),
        cmocka_unit_test(grants_what_its_processes_grant),
        cmocka_unit_test(goes_on_when_a_process_is_killed),
        cmocka_unit_test(goes_on_through_the_faults_of_redis),
        cmocka_unit_test(tells_a_person_and_draws),
        cmocka_unit_test(ends_early_with_its_report_and_leaves_nothing),
        cmocka_unit_test(leaves_no_server_when_it_is_killed),
        cmocka_unit_test(refuses_bad_words_and_names_the_remedy),
        cmocka_unit_test(says_what_to_install_where_no_server_is),
        cmocka_unit_test(helps_with_examples_and_the_terms_of_the_bound),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
