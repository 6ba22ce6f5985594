// test_cli_peek_top.c - `weir peek` and `weir top` against a Redis with records made by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <jansson.h>

#include "cli/bucket.h"
#include "cli/json_list.h"
#include "cli/redis_url.h"
#include "cli_files.h"
#include "sync_redis.h"

#define EPOCH_US INT64_C(3600000000) // so long that no test sees one end
#define SECOND_US INT64_C(1000000)

struct world {
    struct test_redis redis;
    redisContext *context;
    struct folder folder;
    int64_t now_us;
};

static int begin(void **state) {
    static struct world world;
    test_redis_start(&world.redis);
    world.context = test_redis_connect(&world.redis);
    world.folder = folder_create();
    *state = &world;
    return 0;
}

static int end(void **state) {
    struct world *world = *state;
    redisFree(world->context);
    test_redis_stop(&world->redis);
    folder_remove(&world->folder);
    return 0;
}

static int empty(void **state) {
    struct world *world = *state;
    test_redis_do(world->context, "FLUSHALL");
    redisReply *reply = redisCommand(world->context, "TIME");
    world->now_us = strtoll(reply->element[0]->str, NULL, 10) * SECOND_US +
                    strtoll(reply->element[1]->str, NULL, 10);
    freeReplyObject(reply);
    test_redis_do(world->context, "SET weir:{0}e %lld", (long long)EPOCH_US);
    return 0;
}

static void put_little(unsigned char *raw, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) raw[i] = (unsigned char)(value >> 8 * i);
}

// A bucket that is full in `behind_us`, with demand in the epoch of now and in the one before.
static void put_bucket(const struct world *world, const char *name, size_t name_bytes,
                       int64_t behind_us, uint32_t before, uint32_t now) {
    unsigned char raw[WR_WIRE_RECORD_BYTES];
    put_little(raw, (uint64_t)(world->now_us + behind_us), 8);
    put_little(raw + 8, (uint64_t)(world->now_us / EPOCH_US), 4);
    put_little(raw + 12, before, 4);
    put_little(raw + 16, now, 4);
    put_little(raw + 20, 7, 4);
    freeReplyObject(redisCommand(world->context, "SET %b %b", name, name_bytes, raw, sizeof raw));
}

static void put_text(const struct world *world, const char *name, int64_t behind_us,
                     uint32_t before, uint32_t now) {
    put_bucket(world, name, strlen(name), behind_us, before, now);
}

// `weir COMMAND --redis ... REST`; its exit code.
static int run(const struct world *world, const char *command, const char *rest) {
    char line[1024];
    snprintf(line, sizeof line, "\"$WEIR\" %s --redis unix:%s %s", command, world->redis.socket,
             rest);
    return run_in(&world->folder, line);
}

// The same with --json, parsed.
static json_t *run_json(const struct world *world, const char *command, const char *rest) {
    char path[128];
    json_error_t error;
    char with[512];
    snprintf(with, sizeof with, "--json %s", rest);
    if (run(world, command, with) != 0) {
        file_says(&world->folder, "err", "(nothing: it should not have failed)");
        fail();
    }
    json_t *root = json_load_file(folder_file(&world->folder, "out", path), 0, &error);
    if (root == NULL) fail_msg("%s", error.text);
    return root;
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value)) fail_msg("'%s' is no number", name);
    return json_number_value(value);
}

static const char *text(const json_t *object, const char *name) {
    const char *value = json_string_value(json_object_get(object, name));
    if (value == NULL) fail_msg("'%s' is no text", name);
    return value;
}

static void publish(const struct world *world, const char *node, const char *limit) {
    char line[256];
    snprintf(line, sizeof line, "HSET weir:{0}a:mails:%s %s", node, limit);
    freeReplyObject(redisCommand(world->context, line));
    test_redis_do(world->context, "ZADD weir:{0}nodes %lld %s", (long long)(world->now_us / 1000),
                  node);
    test_redis_do(world->context, "ZADD weir:{0}nodes:mails %lld %s",
                  (long long)(world->now_us / 1000), node);
}

static void put_many(const struct world *world, int count) {
    char name[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "weir:{%d}orders:user%d", i % 4, i);
        put_text(world, name, (count - i) * 10 * SECOND_US, 0, (uint32_t)i + 1);
    }
    for (int g = 1; g < 4; g++)
        test_redis_do(world->context, "SET weir:{%d}e %lld", g, (long long)EPOCH_US);
}

// Whether standard output has the words; says nothing where it has not.
static bool says(const struct world *world, const char *words) {
    char path[128];
    size_t length;
    char *bytes = read_whole(folder_file(&world->folder, "out", path), &length);
    const bool found = strstr(bytes, words) != NULL;
    free(bytes);
    return found;
}

// Keys ----------------------------------------------------------------------------------------

static void shows_a_key_so_that_it_reads_back_as_the_same(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *shown;
    } cases[] = {
        {"alice", 5, "alice"},
        {"", 0, ""},
        {"a b", 3, "a b"},
        {"\x01\x02", 2, "\\x01\\x02"},
        {"a\\x41", 5, "a\\x5cx41"},
        {"id:7", 4, "\\x69d:7"},
        {"\x67\x12\0\0\0\0\0\0", 8, "id:4711"},
        {"12345678", 8, "12345678"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8, "id:18446744073709551615"},
        {"na\xc3\xafve", 6, "na\xc3\xafve"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[WR_BUCKET_SHOWN_BYTES];
        struct wr_bucket_key key;
        struct wr_fault fault = {""};
        wr_bucket_key_show((struct wr_text){cases[i].bytes, cases[i].length}, shown);
        assert_string_equal(shown, cases[i].shown);
        assert_true(wr_bucket_key_parse(shown, &key, &fault));
        assert_int_equal(key.length, cases[i].length);
        assert_memory_equal(key.bytes, cases[i].bytes, key.length);
    }
}

static void takes_names_apart(void **state) {
    (void)state;
    static const struct {
        const char *name;
        enum wr_bucket_what what;
        uint32_t group;
        const char *limiter, *rest;
    } cases[] = {
        {"weir:{0}mails:alice", WR_BUCKET_ITSELF, 0, "mails", "alice"},
        {"weir:{63}mails:a:b", WR_BUCKET_ITSELF, 63, "mails", "a:b"},
        {"weir:{0}mails:", WR_BUCKET_ITSELF, 0, "mails", ""},
        {"weir:{0}e", WR_BUCKET_EPOCH, 0, NULL, NULL},
        {"weir:{0}n:abc", WR_BUCKET_MARKER, 0, NULL, NULL},
        {"weir:{0}s:mails:abc", WR_BUCKET_MARKER, 0, NULL, NULL},
        {"weir:{0}nodes", WR_BUCKET_NODES, 0, NULL, NULL},
        {"weir:{0}nodes:mails", WR_BUCKET_NODES, 0, NULL, NULL},
        {"weir:{0}a:mails:abc", WR_BUCKET_AGGREGATE, 0, "mails", "abc"},
        {"weir:{0}d:mails:abc", WR_BUCKET_DENIED, 0, "mails", "abc"},
        {"weir:{0}t:mails:abc", WR_BUCKET_CUT, 0, "mails", "abc"},
        {"weir:{64}mails:alice", WR_BUCKET_FOREIGN, 64, NULL, NULL},
        {"weir:{x}mails:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{}mails:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{00}mails:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{1}a:mails:abc", WR_BUCKET_FOREIGN, 1, NULL, NULL},
        {"weir:{1}nodes:mails", WR_BUCKET_FOREIGN, 1, NULL, NULL},
        {"weir:{0}a:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}s:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}nodes:ma:ils", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}a:mails:a b", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}d:mails:", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}n:\x1b[2J", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}ma\x1b[2Jils:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}ma\xffils:alice", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}d:ma ils:abc", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:{0}t:ma{ils:abc", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"weir:", WR_BUCKET_FOREIGN, 0, NULL, NULL},
        {"other", WR_BUCKET_FOREIGN, 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wr_bucket_name parts =
            wr_bucket_name_parse(wr_text_of(cases[i].name), "weir:");
        if (parts.what != cases[i].what) fail_msg("%s: %d", cases[i].name, (int)parts.what);
        assert_int_equal(parts.group, cases[i].group);
        if (cases[i].limiter == NULL) continue;
        assert_true(wr_text_is(parts.limiter, cases[i].limiter));
        assert_true(wr_text_is(parts.rest, cases[i].rest));
    }
}

static void takes_no_name_with_a_nul_or_too_long_a_part(void **state) {
    (void)state;
    static const char cut[] = "weir:{0}ma\0ils:alice";
    char name[512];
    assert_int_equal(
        wr_bucket_name_parse((struct wr_text){cut, sizeof cut - 1}, "weir:").what,
        WR_BUCKET_FOREIGN);
    for (int over = 0; over < 2; over++) {
        snprintf(name, sizeof name, "weir:{0}%0*d:alice", WR_WIRE_NAME_MAX + over, 0);
        assert_int_equal(wr_bucket_name_parse(wr_text_of(name), "weir:").what,
                         over == 0 ? WR_BUCKET_ITSELF : WR_BUCKET_FOREIGN);
        snprintf(name, sizeof name, "weir:{0}mails:%0*d", WR_WIRE_KEY_MAX + over, 0);
        assert_int_equal(wr_bucket_name_parse(wr_text_of(name), "weir:").what,
                         over == 0 ? WR_BUCKET_ITSELF : WR_BUCKET_FOREIGN);
    }
}

static void reckons_demand_over_the_last_epoch(void **state) {
    (void)state;
    const int64_t epoch_us = SECOND_US, now_us = 100 * SECOND_US + SECOND_US / 4;
    struct wr_wire_record record = {.epoch = 100, .previous_tokens = 40, .current_tokens = 8};
    struct wr_bucket_demand demand = wr_bucket_demand(&record, epoch_us, now_us);
    assert_int_equal(demand.last_epoch, 40);
    assert_int_equal(demand.this_epoch, 8);
    assert_true(demand.per_s == 38); // three quarters of 40, and 8
    record.epoch = 99; // nothing asked in this one
    demand = wr_bucket_demand(&record, epoch_us, now_us);
    assert_int_equal(demand.last_epoch, 8);
    assert_int_equal(demand.this_epoch, 0);
    record.epoch = 98; // too long ago
    demand = wr_bucket_demand(&record, epoch_us, now_us);
    assert_true(demand.per_s == 0 && demand.last_epoch == 0);
    assert_true(wr_bucket_demand(&record, 0, now_us).per_s == 0);
}

static void leads_a_url_through_another_socket(void **state) {
    (void)state;
    struct wr_url url, behind;
    struct wr_fault fault = {""};
    char through[WR_REDIS_URL_BYTES], shown[WR_REDIS_SHOWN_BYTES];
    assert_true(wr_redis_url_parse("redis://me:p%25%40s@[::1]:7000/3", &url, &fault));
    wr_redis_url_behind(&url, "/tmp/x/proxy", through);
    assert_true(wr_redis_url_parse(through, &behind, &fault));
    assert_string_equal(behind.path, "/tmp/x/proxy");
    assert_string_equal(behind.user, "me");
    assert_string_equal(behind.password, "p%@s");
    assert_int_equal(behind.database, 3);
    wr_redis_url_show(&url, shown);
    assert_string_equal(shown, "[::1]:7000");
}

static void loses_a_whole_report_rather_than_one_row(void **state) {
    (void)state;
    json_t *rows = json_array(), *object = json_object();
    wr_json_append(&rows, json_integer(1));
    wr_json_append(&rows, json_string("\xff")); // NULL: no UTF-8
    wr_json_append(&rows, json_integer(2));
    wr_json_set(&object, "a", json_integer(1));
    assert_non_null(object);
    wr_json_set(&object, "b", NULL);
    assert_null(rows);
    assert_null(object);
    assert_null(json_pack("{s:o}", "rows", rows));
}

// Peek ----------------------------------------------------------------------------------------

static void peeks_at_a_bucket_with_its_level(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", 3600 * SECOND_US, 1000, 500);
    json_t *root = run_json(world, "peek", "--rate 1/m --burst 100 mails alice");
    assert_true(json_is_true(json_object_get(root, "known")));
    const double behind_us = number(root, "full_after_us");
    assert_true(behind_us <= 3600e6 && behind_us > 3500e6);
    const double level = number(root, "level"); // 100 less one for each minute
    assert_true(level >= 40 && level < 42);
    assert_true(level - (100 - behind_us / 60e6) < 0.001 &&
                (100 - behind_us / 60e6) - level < 0.001);
    assert_int_equal(number(root, "last_epoch_tokens"), 1000);
    assert_int_equal(number(root, "this_epoch_tokens"), 500);
    assert_int_equal(number(root, "generation"), 7);
    json_decref(root);
}

static void shows_debt_as_a_level_below_zero(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", 3600 * SECOND_US, 0, 0);
    json_t *root = run_json(world, "peek", "--rate 1/m --burst 10 mails alice");
    assert_true(number(root, "level") < -48);
    json_decref(root);
}

static void answers_that_an_unknown_key_is_full(void **state) {
    const struct world *world = *state;
    assert_int_equal(run(world, "peek", "--groups 16 mails nobody"), 0);
    assert_true(file_says(&world->folder, "out", "no such key: the bucket is full"));
    json_t *root = run_json(world, "peek", "--groups 1 --rate 5/s --burst 20 mails nobody");
    assert_true(json_is_false(json_object_get(root, "known")));
    assert_true(json_is_true(json_object_get(root, "groups_known")));
    assert_true(number(root, "level") == 20);
    json_decref(root);
}

static void claims_nothing_of_a_missing_key_where_groups_are_not_known(void **state) {
    const struct world *world = *state;
    assert_int_equal(run(world, "peek", "--rate 5/s mails nobody"), 0);
    assert_true(file_says(&world->folder, "out", "is alive to tell the number of groups"));
    assert_true(file_says(&world->folder, "out", "--groups N"));
    assert_false(says(world, "full"));
    assert_false(says(world, "level"));
    json_t *root = run_json(world, "peek", "--rate 5/s mails nobody");
    assert_true(json_is_false(json_object_get(root, "groups_known")));
    assert_true(json_is_false(json_object_get(root, "known")));
    assert_true(json_is_null(json_object_get(root, "full_after_us")));
    assert_true(json_is_null(json_object_get(root, "level")));
    json_decref(root);
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 0); // what is there is told
    root = run_json(world, "peek", "--rate 5/s --burst 20 mails alice");
    assert_true(json_is_false(json_object_get(root, "groups_known")));
    assert_true(number(root, "full_after_us") > 0 && number(root, "level") < 20);
    json_decref(root);
}

static void takes_limit_and_groups_from_a_node(void **state) {
    const struct world *world = *state;
    char name[128];
    publish(world, "n1", "limit 1 period_ns 60000000000 burst 100 generation 7 groups 16");
    snprintf(name, sizeof name, "weir:{%u}mails:alice", (unsigned)wr_wire_group("alice", 5, 16));
    put_text(world, name, 3600 * SECOND_US, 0, 0);
    json_t *root = run_json(world, "peek", "mails alice");
    assert_true(json_is_true(json_object_get(root, "known")));
    const double level = number(root, "level"); // 100 less one for each minute
    assert_true(level >= 40 && level < 42);
    assert_int_equal(number(root, "burst"), 100);
    assert_int_equal(number(root, "limiter_nodes"), 1);
    json_decref(root);
    assert_int_equal(run(world, "peek", "mails alice"), 0);
    assert_true(file_says(&world->folder, "out", "of 100 tokens, at 1/m as its nodes have it"));
    root = run_json(world, "peek", "--rate 2/m --burst 7 --groups 1 mails alice"); // as given
    assert_int_equal(number(root, "level"), 7);
    json_decref(root);
}

// A node that stops leaves the sets of nodes at once; what it published stays for 10 s.
static void takes_limit_and_groups_from_a_node_that_has_stopped(void **state) {
    const struct world *world = *state;
    char name[128];
    put_many(world, 2500);
    test_redis_do(world->context, "SET weir:{0}a:mails:n0 odd");
    publish(world, "n1", "limit 1 period_ns 60000000000 burst 100 generation 7 groups 16");
    publish(world, "n1", "limit 1 period_ns 60000000000 burst 100 generation 7 groups 16");
    test_redis_do(world->context, "DEL weir:{0}nodes weir:{0}nodes:mails");
    snprintf(name, sizeof name, "weir:{%u}mails:alice", (unsigned)wr_wire_group("alice", 5, 16));
    put_text(world, name, 3600 * SECOND_US, 0, 0);
    json_t *root = run_json(world, "peek", "mails alice");
    assert_true(json_is_true(json_object_get(root, "known")));
    assert_true(json_is_true(json_object_get(root, "groups_known")));
    assert_int_equal(number(root, "burst"), 100);
    assert_int_equal(number(root, "limiter_nodes"), 0);
    json_decref(root);
    assert_int_equal(run(world, "peek", "mails alice"), 0);
    assert_true(file_says(&world->folder, "out", "at 1/m as a node had it that has stopped"));
    assert_true(file_says(&world->folder, "out", "no node is alive under this prefix"));
}

// Each wrong in one part; the rest of the hash holds.
static void takes_no_limit_of_which_a_part_is_wrong(void **state) {
    const struct world *world = *state;
    static const char *const wrong[] = {
        "limit -5 period_ns 1000000000 burst 10",
        "limit 5 period_ns 1000000000",
        "limit 5 period_ns 1000000000 burst +7",
        "limit 5 period_ns 1000000000 burst 4611686018427387905", // above 2^62
        "limit 5 period_ns 0 burst 10",
        "limit 5 period_ns 9223372036854775808 burst 10",        // 2^63
        "limit 5 period_ns 1000000000 burst 18446744073709551616", // 2^64
        "limit 16 period_ns 1 burst 10",
        "limit 18446744073709551614 period_ns 1 burst 10",
        "limit 5.5 period_ns 1000000000 burst 10",
    };
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        test_redis_do(world->context, "DEL weir:{0}a:mails:n1");
        publish(world, "n1", wrong[i]);
        publish(world, "n1", "granted 3 groups 1");
        json_t *root = run_json(world, "top", "");
        const json_t *mails = json_array_get(json_object_get(root, "limiters"), 0);
        if (!json_is_null(json_object_get(mails, "limit_tokens"))) fail_msg("%s", wrong[i]);
        assert_int_equal(number(mails, "granted"), 3);
        json_decref(root);
        root = run_json(world, "peek", "mails alice");
        if (!json_is_null(json_object_get(root, "level"))) fail_msg("%s", wrong[i]);
        assert_true(json_is_true(json_object_get(root, "groups_known")));
        json_decref(root);
    }
    publish(world, "n1", "limit 5 period_ns 1000000000");
    test_redis_do(world->context, "HSET weir:{0}a:mails:n1 burst %s", ""); // empty
    json_t *root = run_json(world, "peek", "mails alice");
    assert_true(json_is_null(json_object_get(root, "level")));
    json_decref(root);
    publish(world, "n1", "limit 18446744073709551615 period_ns 1 burst 18446744073709551615");
    root = run_json(world, "top", "");
    const json_t *mails = json_array_get(json_object_get(root, "limiters"), 0);
    assert_true(json_is_true(json_object_get(mails, "unlimited")));
    assert_true(json_is_null(json_object_get(mails, "limit_burst")));
    json_decref(root);
}

static void takes_no_number_of_groups_beyond_64(void **state) {
    const struct world *world = *state;
    static const char *const wrong[] = {"0", "65", "-1", "4294967297", "one"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[128];
        snprintf(line, sizeof line, "limit 5 period_ns 1000000000 burst 10 groups %s", wrong[i]);
        publish(world, "n1", line);
        json_t *root = run_json(world, "peek", "mails alice");
        if (json_is_true(json_object_get(root, "groups_known"))) fail_msg("%s", wrong[i]);
        json_decref(root);
        root = run_json(world, "top", "");
        assert_true(json_is_null(json_object_get(
            json_array_get(json_object_get(root, "limiters"), 0), "groups")));
        json_decref(root);
    }
}

// 2^53 us ahead, which is as far as a record goes, at the fastest of rates.
static void reckons_the_level_of_a_bucket_that_is_very_far_behind(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", (INT64_C(1) << 53) - 1 - world->now_us, 0, 1);
    json_t *root = run_json(world, "peek", "--rate 15/ns --burst 4611686018427387904 mails alice");
    const double level = number(root, "level"); // some 2^62 less 15 * 2^53 * 1000
    assert_true(level < -0.9 * 15 * 7.2e18 && level > -15 * 9.1e18);
    json_decref(root);
    publish(world, "n1", "limit 18446744073709551614 period_ns 1 burst 10 groups 1");
    root = run_json(world, "peek", "mails alice");
    assert_true(json_is_null(json_object_get(root, "level")));
    json_decref(root);
}

static void names_a_key_of_the_wrong_type(void **state) {
    const struct world *world = *state;
    static const char *const names[] = {"weir:{0}e", "weir:{0}nodes", "weir:{0}nodes:mails"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        test_redis_do(world->context, "FLUSHALL");
        test_redis_do(world->context, "LPUSH %s x", names[i]);
        assert_int_equal(run(world, "peek", "mails alice"), 1);
        char quoted[64];
        snprintf(quoted, sizeof quoted, "the key '%s' holds something else", names[i]);
        assert_true(file_says(&world->folder, "err", quoted));
    }
}

static void wonders_about_a_limiter_that_no_node_has(void **state) {
    const struct world *world = *state;
    publish(world, "n1", "limit 1 period_ns 1000000000 burst 5 generation 0 groups 1");
    assert_int_equal(run(world, "peek", "mials alice"), 0);
    assert_true(file_says(&world->folder, "out", "none with a limiter mials"));
    assert_int_equal(run(world, "peek", "mails alice"), 0);
    assert_true(file_says(&world->folder, "out", "1 node alive, 1 with this limiter"));
}

static void finds_keys_that_are_no_text_and_their_groups(void **state) {
    const struct world *world = *state;
    char name[WR_BUCKET_NAME_BYTES], line[64];
    for (uint64_t id = 4711; id < 4716; id++) {
        unsigned char key[8];
        put_little(key, id, 8);
        const size_t length = wr_wire_bucket_name("weir:", wr_wire_group(key, 8, 16), "orders",
                                                  key, 8, name, sizeof name);
        put_bucket(world, name, length, 10 * SECOND_US, 0, 0);
        snprintf(line, sizeof line, "--groups 16 orders id:%" PRIu64, id);
        json_t *root = run_json(world, "peek", line);
        assert_true(json_is_true(json_object_get(root, "known")));
        assert_true(number(root, "full_after_us") > 0);
        json_decref(root);
    }
}

static void finds_a_long_key_by_its_hash(void **state) {
    const struct world *world = *state;
    char key[301], line[512];
    struct wr_bucket_key named;
    struct wr_fault fault = {""};
    memset(key, 'k', 300);
    key[300] = '\0';
    assert_true(wr_bucket_key_parse(key, &named, &fault));
    assert_int_equal(named.length, 16);
    char name[WR_BUCKET_NAME_BYTES];
    const size_t length = wr_wire_bucket_name("weir:", 0, "mails", named.bytes, named.length,
                                              name, sizeof name);
    put_bucket(world, name, length, 100 * SECOND_US, 0, 0);
    snprintf(line, sizeof line, "mails %s", key);
    json_t *root = run_json(world, "peek", line);
    assert_true(json_is_true(json_object_get(root, "known")));
    json_decref(root);
}

static void refuses_what_is_no_bucket(void **state) {
    const struct world *world = *state;
    test_redis_do(world->context, "SET weir:{0}mails:odd hello");
    test_redis_do(world->context, "LPUSH weir:{0}mails:list hello");
    assert_int_equal(run(world, "peek", "mails odd"), 1);
    assert_true(file_says(&world->folder, "err", "weir:{0}mails:odd"));
    assert_int_equal(run(world, "peek", "mails list"), 1);
    assert_true(file_says(&world->folder, "err", "another program"));
}

static void refuses_bad_words_and_names_the_remedy(void **state) {
    const struct world *world = *state;
    static const struct {
        const char *command, *rest, *says;
    } cases[] = {
        {"peek", "mails", "a limiter and a key"},
        {"peek", "mails alice bob", "'bob'"},
        {"peek", "ma:ils alice", "'ma:ils'"},
        {"peek", "--prefix 'a{b' mails alice", "'a{b'"},
        {"peek", "--groups 65 mails alice", "1 to 64"},
        {"peek", "--burst 5 mails alice", "--rate"},
        {"peek", "--rate 16/ns mails alice", "-r, --rate"},
        {"peek", "-b x mails alice", "-b, --burst 'x'"},
        {"peek", "--rate 0 mails alice", "above 0"},
        {"peek", "--redis nowhere mails alice", "redis://"},
        {"peek", "--wrong", "no option"},
        {"top", "--by luck", "'luck'"},
        {"top", "-n 1001", "weir top: -n, --top '1001': at most 1000"},
        {"top", "--watch 1ms", "100ms"},
        {"top", "--watch 1s -o file", "--watch"},
        {"top", "word", "'word'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(run(world, cases[i].command, cases[i].rest), 2);
        assert_true(file_says(&world->folder, "err", cases[i].says));
    }
}

static void says_where_no_redis_is(void **state) {
    const struct world *world = *state;
    assert_int_equal(run(world, "peek", "--redis unix:/nowhere/redis mails alice"), 1);
    assert_true(file_says(&world->folder, "err", "unix:/nowhere/redis"));
    assert_int_equal(run(world, "top", "--redis unix:/nowhere/redis"), 1);
    assert_true(file_says(&world->folder, "err", "--redis"));
}

// Top -----------------------------------------------------------------------------------------

static void lists_the_busiest_keys_of_several_pages_and_groups(void **state) {
    const struct world *world = *state;
    put_many(world, 2500);
    json_t *root = run_json(world, "top", "-n 3");
    const json_t *keys = json_object_get(root, "keys");
    assert_int_equal(json_array_size(keys), 3);
    assert_string_equal(text(json_array_get(keys, 0), "key"), "user2499");
    assert_string_equal(text(json_array_get(keys, 1), "key"), "user2498");
    assert_string_equal(text(json_array_get(keys, 2), "key"), "user2497");
    assert_true(number(root, "buckets") >= 2500); // SCAN may show one twice
    assert_int_equal(number(root, "groups"), 4);
    json_decref(root);
}

static void lists_the_longest_behind(void **state) {
    const struct world *world = *state;
    put_many(world, 50);
    json_t *root = run_json(world, "top", "--by behind -n 2");
    const json_t *keys = json_object_get(root, "keys");
    assert_string_equal(text(json_array_get(keys, 0), "key"), "user0");
    assert_string_equal(text(json_array_get(keys, 1), "key"), "user1");
    assert_true(number(json_array_get(keys, 0), "full_after_us") > 0);
    json_decref(root);
}

static void sums_up_what_nodes_publish(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 1);
    const long long now_ms = (long long)(world->now_us / 1000);
    test_redis_do(world->context, "HSET weir:{0}a:mails:n1 granted 10 denied 5 tokens 20");
    test_redis_do(world->context, "HSET weir:{0}a:mails:n2 granted 1 denied 2 tokens 3");
    test_redis_do(world->context, "ZADD weir:{0}nodes %lld n1 %lld n2 %lld gone", now_ms, now_ms,
                  now_ms - 60000);
    json_t *root = run_json(world, "top", "");
    const json_t *mails = json_array_get(json_object_get(root, "limiters"), 0);
    assert_string_equal(text(mails, "name"), "mails");
    assert_int_equal(number(mails, "nodes"), 2);
    assert_int_equal(number(mails, "granted"), 11);
    assert_int_equal(number(mails, "denied"), 7);
    assert_int_equal(number(mails, "tokens"), 23);
    assert_int_equal(number(root, "nodes"), 2);
    json_decref(root);
}

static const json_t *limiter_at(const json_t *root, size_t place) {
    const json_t *limiter = json_array_get(json_object_get(root, "limiters"), place);
    assert_non_null(limiter);
    return limiter;
}

static void counts_only_nodes_that_are_alive_and_compares_theirs(void **state) {
    const struct world *world = *state;
    publish(world, "n1", "limit 5 period_ns 1000000000 burst 10 groups 1 granted 1 denied 2");
    publish(world, "n2", "limit 7 period_ns 1000000000 burst 10 groups 2 granted 10 denied 20");
    publish(world, "n3", "limit 8 period_ns 1000000000 burst 10 groups 2 granted 100 denied 200");
    test_redis_do(world->context, "ZREM weir:{0}nodes n1"); // stopped
    test_redis_do(world->context, "ZREM weir:{0}nodes:mails n1");
    test_redis_do(world->context, "ZADD weir:{0}nodes %lld n3", // not heard of since
                  (long long)(world->now_us / 1000 - 60000));
    json_t *root = run_json(world, "top", "");
    assert_int_equal(number(root, "nodes"), 1);
    assert_int_equal(number(limiter_at(root, 0), "nodes"), 1);
    assert_int_equal(number(limiter_at(root, 0), "nodes_gone"), 2);
    assert_int_equal(number(limiter_at(root, 0), "granted"), 111);
    assert_int_equal(number(limiter_at(root, 0), "denied"), 222);
    assert_int_equal(number(limiter_at(root, 0), "limit_tokens"), 7);
    assert_true(json_is_false(json_object_get(limiter_at(root, 0), "disagree")));
    json_decref(root);
    assert_int_equal(run(world, "top", ""), 0);
    assert_false(says(world, "different limits"));
    assert_true(file_says(&world->folder, "out",
                          "the numbers of mails hold what 2 nodes that stopped counted"));
    test_redis_do(world->context, "DEL weir:{0}nodes"); // all stopped
    root = run_json(world, "top", "");
    assert_int_equal(number(root, "nodes"), 0);
    assert_int_equal(number(limiter_at(root, 0), "nodes"), 0);
    assert_int_equal(number(limiter_at(root, 0), "granted"), 111);
    assert_true(json_is_false(json_object_get(limiter_at(root, 0), "disagree")));
    json_decref(root);
}

static void counts_no_garbage_and_lets_no_sum_wrap(void **state) {
    const struct world *world = *state;
    publish(world, "n1", "granted 9223372036854775807 denied -5 tokens 18446744073709551616");
    publish(world, "n2", "granted 9 denied 7 tokens 1e3");
    json_t *root = run_json(world, "top", "");
    assert_true(json_integer_value(json_object_get(limiter_at(root, 0), "granted")) == INT64_MAX);
    assert_int_equal(number(limiter_at(root, 0), "denied"), 7);
    assert_int_equal(number(limiter_at(root, 0), "tokens"), 0);
    json_decref(root);
}

static void reads_scores_that_are_no_integers(void **state) {
    const struct world *world = *state;
    test_redis_do(world->context, "ZADD weir:{0}d:mails:n1 1e30 weir:{0}mails:huge "
                                  "3e17 weir:{0}mails:large 2.9 weir:{0}mails:part "
                                  "0.9 weir:{0}mails:less -3 weir:{0}mails:below "
                                  "inf weir:{0}mails:never");
    test_redis_do(world->context, "ZADD weir:{0}d:mails:n2 1e30 weir:{0}mails:huge");
    json_t *root = run_json(world, "top", "--by denied");
    static const struct {
        const char *key;
        int64_t denied;
    } rows[] = {{"huge", INT64_MAX}, {"large", INT64_C(300000000000000000)}, {"part", 2}};
    const json_t *keys = json_object_get(root, "keys");
    assert_int_equal(json_array_size(keys), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(text(json_array_get(keys, i), "key"), rows[i].key);
        assert_true(json_integer_value(json_object_get(json_array_get(keys, i), "denied")) ==
                    rows[i].denied);
    }
    json_decref(root);
}

static void shows_a_thousand_limiters_and_counts_the_rest(void **state) {
    const struct world *world = *state;
    char name[64];
    for (int i = 0; i < 1003; i++) {
        snprintf(name, sizeof name, "weir:{0}limiter%d:alice", i);
        put_text(world, name, SECOND_US, 0, 1);
    }
    json_t *root = run_json(world, "top", "-n 1000");
    assert_int_equal(json_array_size(json_object_get(root, "limiters")), 1000);
    assert_int_equal(number(root, "limiters_not_shown"), 3);
    assert_int_equal(json_array_size(json_object_get(root, "keys")), 1000);
    json_decref(root);
    assert_int_equal(run(world, "top", ""), 0);
    assert_true(file_says(&world->folder, "out", "\n3 more limiters are not shown"));
    test_redis_do(world->context, "DEL weir:{0}limiter0:alice weir:{0}limiter1:alice "
                                  "weir:{0}limiter2:alice");
    assert_int_equal(run(world, "top", ""), 0);
    assert_false(says(world, "not shown"));
}

static void adds_up_what_nodes_denied(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 5);
    put_text(world, "weir:{0}mails:bob", SECOND_US, 0, 9);
    test_redis_do(world->context, "ZADD weir:{0}d:mails:n1 10 weir:{0}mails:alice "
                                  "15 weir:{0}mails:bob 1 weir:{0}mails:carol 2 odd");
    test_redis_do(world->context, "ZADD weir:{0}d:mails:n2 20 weir:{0}mails:alice "
                                  "7 weir:{0}t:mails:a-long-one");
    test_redis_do(world->context, "SET weir:{0}d:mails:n3 odd");
    json_t *root = run_json(world, "top", "--by denied -n 3");
    const json_t *keys = json_object_get(root, "keys");
    static const struct {
        const char *key;
        int denied;
    } rows[] = {{"alice", 30}, {"bob", 15}, {"a-long-one", 7}};
    assert_int_equal(json_array_size(keys), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(text(json_array_get(keys, i), "key"), rows[i].key);
        assert_string_equal(text(json_array_get(keys, i), "limiter"), "mails");
        assert_int_equal(number(json_array_get(keys, i), "denied"), rows[i].denied);
    }
    assert_int_equal(number(json_array_get(keys, 0), "demand_per_s") * 3600, 5);
    assert_int_equal(number(json_array_get(keys, 0), "generation"), 7);
    assert_true(json_is_null(json_object_get(json_array_get(keys, 2), "full_after_us")));
    assert_true(json_is_true(json_object_get(json_array_get(keys, 2), "truncated")));
    json_decref(root);
    root = run_json(world, "top", "-n 1"); // by demand: the same number stands there
    assert_string_equal(text(json_array_get(json_object_get(root, "keys"), 0), "key"), "bob");
    assert_int_equal(number(json_array_get(json_object_get(root, "keys"), 0), "denied"), 15);
    json_decref(root);
    assert_int_equal(run(world, "top", "--by denied"), 0);
    assert_true(file_says(&world->folder, "out", "a-long-one..."));
}

static void says_that_nodes_have_different_limits(void **state) {
    const struct world *world = *state;
    publish(world, "n1", "limit 5 period_ns 1000000000 burst 10 generation 0 groups 1");
    publish(world, "n2", "limit 5 period_ns 1000000000 burst 10 generation 0 groups 1");
    assert_int_equal(run(world, "top", ""), 0);
    assert_true(file_says(&world->folder, "out", "5/s, burst 10"));
    assert_false(file_says(&world->folder, "out", "different limits"));
    publish(world, "n3", "limit 5 period_ns 1000000000 burst 10 generation 0 groups 2");
    assert_int_equal(run(world, "top", ""), 0);
    assert_true(file_says(&world->folder, "out", "the nodes of mails have different limits"));
    json_t *root = run_json(world, "top", "");
    const json_t *mails = json_array_get(json_object_get(root, "limiters"), 0);
    assert_true(json_is_true(json_object_get(mails, "disagree")));
    json_decref(root);
}

static void looks_only_at_its_prefix_and_counts_what_is_foreign(void **state) {
    const struct world *world = *state;
    put_text(world, "a*b:{0}mails:alice", SECOND_US, 0, 1);
    put_text(world, "axb:{0}mails:bob", SECOND_US, 0, 1);
    test_redis_do(world->context, "SET a*b:note hello");
    test_redis_do(world->context, "SET a*b:{0}mails:odd hello");
    json_t *root = run_json(world, "top", "--prefix 'a*b:'");
    assert_int_equal(number(root, "buckets"), 1);
    assert_int_equal(number(root, "foreign"), 2);
    const json_t *first = json_array_get(json_object_get(root, "keys"), 0);
    assert_string_equal(text(first, "key"), "alice");
    assert_true(json_is_null(json_object_get(first, "demand_per_s"))); // no epoch length there
    json_decref(root);
}

static void passes_over_limiters_that_weir_would_not_name_so(void **state) {
    const struct world *world = *state;
    static const struct {
        const char *name;
        size_t length;
    } bad[] = {
        {"weir:{0}\x1b[2J:alice", 18},
        {"weir:{0}ma\0ils:alice", 20},
        {"weir:{0}ma\xffils:alice", 20},
    };
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        put_bucket(world, bad[i].name, bad[i].length, SECOND_US, 0, 9);
    json_t *root = run_json(world, "top", "");
    assert_int_equal(number(root, "buckets"), 1);
    assert_int_equal(number(root, "foreign"), 3);
    assert_int_equal(json_array_size(json_object_get(root, "limiters")), 1);
    assert_int_equal(json_array_size(json_object_get(root, "keys")), 1);
    json_decref(root);
    assert_int_equal(run(world, "top", ""), 0);
    assert_false(says(world, "\x1b"));
    assert_true(file_says(&world->folder, "out", "3 names of this prefix hold something else"));
}

static void counts_keys_of_another_type_and_goes_on(void **state) {
    const struct world *world = *state;
    put_text(world, "weir:{0}mails:alice", SECOND_US, 0, 1);
    publish(world, "n1", "granted 5 groups 1");
    test_redis_do(world->context, "LPUSH weir:{0}mails:list hello");
    test_redis_do(world->context, "DEL weir:{0}e weir:{0}nodes weir:{0}nodes:mails");
    static const char *const names[] = {"weir:{0}e", "weir:{3}e", "weir:{0}nodes",
                                        "weir:{0}nodes:mails", "weir:{0}d:mails:n1",
                                        "weir:{0}a:mails:n2"};
    const size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++) test_redis_do(world->context, "LPUSH %s x", names[i]);
    test_redis_do(world->context, "SET weir:{4}e long");
    json_t *root = run_json(world, "top", "");
    assert_int_equal(number(root, "foreign"), count + 2);
    assert_int_equal(number(root, "buckets"), 1);
    assert_true(json_is_null(json_object_get(root, "nodes")));
    assert_int_equal(number(limiter_at(root, 0), "granted"), 5);
    assert_int_equal(number(limiter_at(root, 0), "nodes"), 1); // who is gone is not known
    json_decref(root);
    assert_int_equal(run(world, "top", ""), 0);
    assert_true(file_says(&world->folder, "out", "which nodes are alive is not known"));
}

static void says_that_there_is_nothing(void **state) {
    const struct world *world = *state;
    assert_int_equal(run(world, "top", "--prefix nobody:"), 0);
    assert_true(file_says(&world->folder, "out", "no bucket"));
}

static void helps_with_examples(void **state) {
    const struct world *world = *state;
    static const char *const commands[] = {"peek", "top"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(run(world, commands[i], "--help"), 0);
        assert_true(file_says(&world->folder, "out", "--redis redis://"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_a_key_so_that_it_reads_back_as_the_same),
        cmocka_unit_test(takes_names_apart),
        cmocka_unit_test(takes_no_name_with_a_nul_or_too_long_a_part),
        cmocka_unit_test(reckons_demand_over_the_last_epoch),
        cmocka_unit_test(leads_a_url_through_another_socket),
        cmocka_unit_test(loses_a_whole_report_rather_than_one_row),
        cmocka_unit_test_setup(peeks_at_a_bucket_with_its_level, empty),
        cmocka_unit_test_setup(shows_debt_as_a_level_below_zero, empty),
        cmocka_unit_test_setup(answers_that_an_unknown_key_is_full, empty),
        cmocka_unit_test_setup(claims_nothing_of_a_missing_key_where_groups_are_not_known, empty),
        cmocka_unit_test_setup(takes_limit_and_groups_from_a_node, empty),
        cmocka_unit_test_setup(takes_limit_and_groups_from_a_node_that_has_stopped, empty),
        cmocka_unit_test_setup(takes_no_limit_of_which_a_part_is_wrong, empty),
        cmocka_unit_test_setup(takes_no_number_of_groups_beyond_64, empty),
        cmocka_unit_test_setup(reckons_the_level_of_a_bucket_that_is_very_far_behind, empty),
        cmocka_unit_test_setup(names_a_key_of_the_wrong_type, empty),
        cmocka_unit_test_setup(wonders_about_a_limiter_that_no_node_has, empty),
        cmocka_unit_test_setup(finds_keys_that_are_no_text_and_their_groups, empty),
        cmocka_unit_test_setup(finds_a_long_key_by_its_hash, empty),
        cmocka_unit_test_setup(refuses_what_is_no_bucket, empty),
        cmocka_unit_test_setup(refuses_bad_words_and_names_the_remedy, empty),
        cmocka_unit_test_setup(says_where_no_redis_is, empty),
        cmocka_unit_test_setup(lists_the_busiest_keys_of_several_pages_and_groups, empty),
        cmocka_unit_test_setup(lists_the_longest_behind, empty),
        cmocka_unit_test_setup(sums_up_what_nodes_publish, empty),
        cmocka_unit_test_setup(counts_only_nodes_that_are_alive_and_compares_theirs, empty),
        cmocka_unit_test_setup(counts_no_garbage_and_lets_no_sum_wrap, empty),
        cmocka_unit_test_setup(reads_scores_that_are_no_integers, empty),
        cmocka_unit_test_setup(shows_a_thousand_limiters_and_counts_the_rest, empty),
        cmocka_unit_test_setup(adds_up_what_nodes_denied, empty),
        cmocka_unit_test_setup(says_that_nodes_have_different_limits, empty),
        cmocka_unit_test_setup(looks_only_at_its_prefix_and_counts_what_is_foreign, empty),
        cmocka_unit_test_setup(passes_over_limiters_that_weir_would_not_name_so, empty),
        cmocka_unit_test_setup(counts_keys_of_another_type_and_goes_on, empty),
        cmocka_unit_test_setup(says_that_there_is_nothing, empty),
        cmocka_unit_test_setup(helps_with_examples, empty),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
