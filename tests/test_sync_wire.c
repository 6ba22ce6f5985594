// The bytes of the sync: what is packed is what the script reads, and rubbish does no harm.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../src/sync/wire.h"

#define SHA "0123456789abcdef0123456789abcdef01234567"

static const struct wr_wire_limit limits[] = {
    {"typing", 5000000, 4000000, 7},
    {"sms", 600000, 600000, 1},
};

static const struct wr_wire_report reports[] = {
    {"user:1", 6, UINT64_C(0x0102030405), 9, 3, 0, false},
    {"a\0b\r\n", 5, 0, UINT32_MAX, UINT32_MAX, 1, true},
};

static struct wr_wire_batch batch(void) {
    return (struct wr_wire_batch){
        .sha = SHA,
        .prefix = "weir:",
        .node = "beef",
        .group = 3,
        .seq = 12,
        .epoch_us = 1000000,
        .marker_ttl_ms = 60000,
        .limits = limits,
        .limits_count = 2,
        .reports = reports,
        .reports_count = 2,
    };
}

static void a_report_is_packed_as_the_script_reads_it(void **state) {
    (void)state;
    static const char expected[] =
        "*12\r\n$7\r\nEVALSHA\r\n$40\r\n" SHA "\r\n$1\r\n4\r\n"
        "$14\r\nweir:{3}n:beef\r\n$9\r\nweir:{3}e\r\n"
        "$21\r\nweir:{3}typing:user:1\r\n$17\r\nweir:{3}sms:a\0b\r\n\r\n"
        "$2\r\n12\r\n$7\r\n1000000\r\n$5\r\n60000\r\n"
        "$40\r\n"
        "\x40\x4b\x4c\0\0\0\0\0\0\x09\x3d\0\0\0\0\0\x07\0\0\0"
        "\xc0\x27\x09\0\0\0\0\0\xc0\x27\x09\0\0\0\0\0\x01\0\0\0\r\n"
        "$32\r\n"
        "\x05\x04\x03\x02\x01\0\0\0\x09\0\0\0\x03\0\0\0"
        "\0\0\0\0\0\0\0\x81\xff\xff\xff\xff\xff\xff\xff\xff\r\n";
    char out[1024];
    const struct wr_wire_batch whole = batch();
    const size_t bytes = wr_wire_pack(&whole, out, sizeof out);
    assert_int_equal(bytes, sizeof expected - 1);
    assert_memory_equal(out, expected, bytes);
}

static void a_buffer_too_small_is_not_overrun_and_told_the_length(void **state) {
    (void)state;
    const struct wr_wire_batch whole = batch();
    char full[1024];
    const size_t bytes = wr_wire_pack(&whole, full, sizeof full);
    for (size_t room = 0; room <= bytes; room++) {
        char *out = malloc(room + 1);
        out[room] = 'x';
        assert_int_equal(wr_wire_pack(&whole, out, room), bytes);
        assert_memory_equal(out, full, room);
        assert_int_equal(out[room], 'x');
        free(out);
    }
}

static void a_key_costs_at_most_48_bytes_on_the_wire(void **state) {
    (void)state;
    static struct wr_wire_report many[128];
    for (size_t i = 0; i < 128; i++) many[i] = (struct wr_wire_report){.key = "u:123456",
                                                                      .key_bytes = 8};
    struct wr_wire_batch whole = batch();
    whole.reports = many;
    whole.reports_count = 128;
    static char out[16384];
    const size_t bytes = wr_wire_pack(&whole, out, sizeof out);
    assert_true(bytes <= sizeof out);
    assert_true(bytes <= 128 * 48);
}

static void a_batch_out_of_bounds_is_not_packed(void **state) {
    (void)state;
    struct wr_wire_report wrong[2];
    char out[1024];
    struct wr_wire_batch whole = batch();
    whole.reports = wrong;
    memcpy(wrong, reports, sizeof wrong);
    wrong[1].limit = 2;
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
    memcpy(wrong, reports, sizeof wrong);
    wrong[0].cost_us = (UINT64_C(1) << 52) + 1;
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
    whole = batch();
    whole.reports_count = WR_WIRE_REPORTS_MAX + 1;
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
    whole = batch();
    whole.seq = UINT64_C(1) << 53;
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
    whole = batch();
    whole.prefix = "a{b";
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
    whole = batch();
    whole.node = "with space";
    assert_int_equal(wr_wire_pack(&whole, out, sizeof out), 0);
}

static void names_that_would_break_the_layout_are_refused(void **state) {
    (void)state;
    assert_true(wr_wire_prefix_ok("weir:"));
    assert_true(wr_wire_limiter_name_ok("typing"));
    assert_true(wr_wire_limiter_name_ok("e"));
    assert_false(wr_wire_prefix_ok(""));
    assert_false(wr_wire_prefix_ok("we}ir"));
    assert_false(wr_wire_prefix_ok("we\nir"));
    assert_false(wr_wire_prefix_ok(
        "12345678901234567890123456789012345678901234567890123456789012345"));
    assert_true(wr_wire_limiter_name_ok("node"));
    assert_false(wr_wire_limiter_name_ok("n"));
    assert_false(wr_wire_limiter_name_ok("a"));
    assert_false(wr_wire_limiter_name_ok("s"));
    assert_false(wr_wire_limiter_name_ok("nodes"));
    assert_false(wr_wire_limiter_name_ok("d"));
    assert_false(wr_wire_limiter_name_ok("t"));
    assert_false(wr_wire_limiter_name_ok("a:b"));
    assert_false(wr_wire_limiter_name_ok("\xc3\xa9"));
}

static void a_key_falls_into_the_same_group_everywhere(void **state) {
    (void)state;
    // Fixed for ever: another value splits the limits of nodes of two versions.
    assert_int_equal(wr_wire_group("user:1", 6, 8), 3);
    assert_int_equal(wr_wire_group("user:2", 6, 8), 2);
    assert_int_equal(wr_wire_group("", 0, 16), 9);
    assert_int_equal(wr_wire_group("anything", 8, 1), 0);
    unsigned count[16] = {0};
    for (uint32_t i = 0; i < 16000; i++) count[wr_wire_group(&i, sizeof i, 16)]++;
    for (int i = 0; i < 16; i++) assert_in_range(count[i], 850, 1150);
}

// An answer for two buckets: known, and unknown.
static size_t answer(unsigned char *out) {
    static const unsigned char bytes[] = {
        'W',  'R',  'S',  '1',  2,    0,    0,    0,                      // head
        0x15, 0xcd, 0x5b, 0x07, 0,    0,    6,    0,                      // TIME
        11,   0,    0,    0,    0,    0,    0,    0,                      // marker
        0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 5, 0, 0, 0, 2, 0, 0, 0,
        0,    0,    0,    0,    0,    0,    0,    0xc0, 0, 0, 0, 0, 9, 0, 0, 0,
    };
    memcpy(out, bytes, sizeof bytes);
    return sizeof bytes;
}

static void an_answer_is_read(void **state) {
    (void)state;
    unsigned char bytes[128];
    struct wr_wire_answer head;
    struct wr_node_reply replies[2];
    const size_t count = answer(bytes);
    assert_int_equal(wr_wire_unpack(bytes, count, 2, &head, replies), WR_WIRE_OK);
    assert_int_equal(head.redis_us, (INT64_C(6) << 48) + 123456789);
    assert_int_equal(head.marker_seq, 11);
    assert_int_equal(replies[0].rel_us, -2);
    assert_false(replies[0].unknown);
    assert_int_equal(replies[0].previous_tokens, 5);
    assert_int_equal(replies[0].current_tokens, 2);
    assert_true(replies[1].unknown);
    assert_int_equal(replies[1].current_tokens, 9);
}

static void every_truncation_and_extension_is_refused(void **state) {
    (void)state;
    unsigned char bytes[128] = {0};
    struct wr_wire_answer head;
    struct wr_node_reply replies[2];
    const size_t count = answer(bytes);
    for (size_t length = 0; length < sizeof bytes; length++) {
        if (length == count) continue;
        unsigned char *exact = malloc(length + 1); // so that a sanitizer sees a read beyond
        memcpy(exact, bytes, length);
        assert_int_not_equal(wr_wire_unpack(exact, length, 2, &head, replies), WR_WIRE_OK);
        free(exact);
    }
    assert_int_equal(wr_wire_unpack(bytes, count, 1, &head, replies), WR_WIRE_LENGTH);
    assert_int_equal(wr_wire_unpack(bytes, count, 3, &head, replies), WR_WIRE_LENGTH);
    bytes[4] = 3; // says three, holds two
    assert_int_equal(wr_wire_unpack(bytes, count, 2, &head, replies), WR_WIRE_LENGTH);
    assert_int_equal(wr_wire_unpack("+PONG", 5, 0, &head, replies), WR_WIRE_NOT_OURS);
}

static void numbers_that_the_script_cannot_answer_are_refused(void **state) {
    (void)state;
    unsigned char bytes[128];
    struct wr_wire_answer head;
    struct wr_node_reply replies[2];
    const struct {
        size_t at;
        unsigned char value;
    } wrong[] = {{15, 0x20}, {15, 0x80}, {23, 0x80}, {23, 0x20},
                 {31, 0xdf}, {31, 0x20}, {47, 0xc1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const size_t count = answer(bytes);
        bytes[wrong[i].at] = wrong[i].value;
        assert_int_equal(wr_wire_unpack(bytes, count, 2, &head, replies), WR_WIRE_RANGE);
    }
}

static void random_bytes_never_pass_for_numbers_out_of_range(void **state) {
    (void)state;
    srand(20240612);
    for (int round = 0; round < 200000; round++) {
        unsigned char bytes[24 + 3 * 16];
        struct wr_wire_answer head;
        struct wr_node_reply replies[3];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = rand() % 3 == 0 ? 0 : (unsigned char)rand();
        memcpy(bytes, "WRS1\3\0\0", 8);
        if (wr_wire_unpack(bytes, sizeof bytes, 3, &head, replies) != WR_WIRE_OK) continue;
        assert_true(head.redis_us > 0 && head.redis_us < INT64_C(1) << 53);
        for (int i = 0; i < 3; i++)
            assert_true(llabs(replies[i].rel_us) < INT64_C(1) << 53);
    }
}

static void a_record_is_read_and_a_damaged_one_is_full(void **state) {
    (void)state;
    const unsigned char bytes[] = {1, 0, 0, 0, 0, 0, 6, 0, 2, 0, 0, 0, 3, 0, 0, 0,
                                   4, 0, 0, 0, 5, 0, 0, 0};
    unsigned char damaged[24];
    struct wr_wire_record record;
    assert_true(wr_wire_unpack_record(bytes, 24, &record));
    assert_int_equal(record.tat_us, (INT64_C(6) << 48) + 1);
    assert_int_equal(record.epoch, 2);
    assert_int_equal(record.previous_tokens, 3);
    assert_int_equal(record.current_tokens, 4);
    assert_int_equal(record.generation, 5);
    assert_false(wr_wire_unpack_record(bytes, 20, &record));
    memset(damaged, 0xff, sizeof damaged);
    assert_true(wr_wire_unpack_record(damaged, 24, &record));
    assert_int_equal(record.tat_us, 0);
}

static enum wr_wire_error kind(const char *text) {
    return wr_wire_error_of(text, strlen(text));
}

static void errors_are_told_apart(void **state) {
    (void)state;
    assert_int_equal(kind("NOSCRIPT No matching script."), WR_WIRE_NOSCRIPT);
    assert_int_equal(kind("READONLY You can't write against a read only replica."),
                     WR_WIRE_READONLY);
    assert_int_equal(kind("OOM command not allowed"), WR_WIRE_OOM);
    assert_int_equal(kind("LOADING"), WR_WIRE_LOADING);
    assert_int_equal(kind("LOADINGS"), WR_WIRE_UNKNOWN);
    assert_int_equal(kind("ERR Error running script (call to f_0): @user_script:9: "
                          "-READONLY You can't write against a read only replica."),
                     WR_WIRE_READONLY);
    assert_int_equal(kind("ERR Error running script (call to f_0): - x"), WR_WIRE_ERR);
    assert_int_equal(kind("ERR unknown command -OOM "), WR_WIRE_ERR);
    assert_int_equal(kind("ERR Protocol error: unauthenticated multibulk length"),
                     WR_WIRE_NOAUTH);
    assert_int_equal(kind(""), WR_WIRE_UNKNOWN);
    assert_int_equal(wr_wire_error_of(NULL, 0), WR_WIRE_UNKNOWN);
    for (unsigned i = 0; i < WR_WIRE_ERRORS_COUNT; i++)
        if (i != WR_WIRE_UNKNOWN) assert_int_equal(kind(wr_wire_error_name(i)), i);
}

static bool redirect(const char *text, struct wr_wire_redirect *to) {
    return wr_wire_redirect_of(text, strlen(text), to);
}

static void redirections_are_read_and_rubbish_is_not_followed(void **state) {
    (void)state;
    struct wr_wire_redirect to;
    char longest[400] = "MOVED 1 ";
    assert_true(redirect("MOVED 3999 127.0.0.1:6381", &to));
    assert_int_equal(to.slot, 3999);
    assert_int_equal(to.port, 6381);
    assert_string_equal(to.host, "127.0.0.1");
    assert_true(redirect("ASK 0 fe80::1:7000", &to));
    assert_string_equal(to.host, "fe80::1");
    assert_true(redirect("MOVED 16383 :7000", &to));
    assert_string_equal(to.host, "");
    static const char *const wrong[] = {"",           "MOVED",           "MOVED 1",
                                        "MOVED 1 ",   "MOVED 1 a",       "MOVED 1 a:",
                                        "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 16384 a:1",
                                        "MOVED x a:1", "MOVED 1 a:1x",    "MOVED 1 a b:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (redirect(wrong[i], &to)) fail_msg("followed '%s'", wrong[i]);
    memset(longest + 8, 'h', 256);
    strcpy(longest + 264, ":1");
    assert_false(redirect(longest, &to));
    assert_false(wr_wire_redirect_of("MOVED 1 a\0b:1", 13, &to));
}

static size_t bad(const char *text, size_t count, uint16_t *indices) {
    return wr_wire_bad_keys(text, strlen(text), count, indices);
}

static void named_keys_are_read_within_bounds(void **state) {
    (void)state;
    uint16_t indices[WR_WIRE_BAD_KEYS_MAX];
    assert_int_equal(bad("WEIRKEY 1 3 128", 128, indices), 3);
    assert_int_equal(indices[0], 0);
    assert_int_equal(indices[1], 2);
    assert_int_equal(indices[2], 127);
    assert_int_equal(bad("WEIRKEY 0 1", 128, indices), 0);
    assert_int_equal(bad("WEIRKEY 129", 128, indices), 0);
    assert_int_equal(bad("WEIRKEY 3 2", 128, indices), 0);
    assert_int_equal(bad("WEIRKEY 2 2", 128, indices), 0);
    assert_int_equal(bad("WEIRKEY x", 128, indices), 0);
    assert_int_equal(bad("WEIRKEY", 128, indices), 0);
    char many[400] = "WEIRKEY";
    for (int i = 1; i <= 33; i++) sprintf(many + strlen(many), " %d", i);
    assert_int_equal(bad(many, 128, indices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_report_is_packed_as_the_script_reads_it),
        cmocka_unit_test(a_buffer_too_small_is_not_overrun_and_told_the_length),
        cmocka_unit_test(a_key_costs_at_most_48_bytes_on_the_wire),
        cmocka_unit_test(a_batch_out_of_bounds_is_not_packed),
        cmocka_unit_test(names_that_would_break_the_layout_are_refused),
        cmocka_unit_test(a_key_falls_into_the_same_group_everywhere),
        cmocka_unit_test(an_answer_is_read),
        cmocka_unit_test(every_truncation_and_extension_is_refused),
        cmocka_unit_test(numbers_that_the_script_cannot_answer_are_refused),
        cmocka_unit_test(random_bytes_never_pass_for_numbers_out_of_range),
        cmocka_unit_test(a_record_is_read_and_a_damaged_one_is_full),
        cmocka_unit_test(errors_are_told_apart),
        cmocka_unit_test(redirections_are_read_and_rubbish_is_not_followed),
        cmocka_unit_test(named_keys_are_read_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
