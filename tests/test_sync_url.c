// The URLs of weir_sync.h: what they say, and what is said of wrong ones.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../src/sync/url.h"

static struct wr_url good(const char *text) {
    struct wr_url url;
    struct weir_error error = {""};
    if (!wr_url_parse(text, &url, &error)) fail_msg("%s", error.text);
    return url;
}

static void bad(const char *text, const char *word) {
    struct wr_url url;
    struct weir_error error = {""};
    if (wr_url_parse(text, &url, &error)) fail_msg("%s is taken", text);
    if (strstr(error.text, word) == NULL) fail_msg("%s: %s", text, error.text);
    if (strstr(error.text, "secret") != NULL) fail_msg("the password is shown: %s", error.text);
    assert_false(wr_url_parse(text, &url, NULL));
}

static void a_host_alone_has_the_usual_port_and_database(void **state) {
    (void)state;
    const struct wr_url url = good("redis://redis.example");
    assert_string_equal(url.host, "redis.example");
    assert_int_equal(url.port, 6379);
    assert_int_equal(url.database, 0);
    assert_string_equal(url.path, "");
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "");
}

static void null_is_the_redis_of_this_machine(void **state) {
    (void)state;
    const struct wr_url url = good(NULL);
    assert_string_equal(url.host, "127.0.0.1");
    assert_int_equal(url.port, 6379);
}

static void every_part_is_read(void **state) {
    (void)state;
    const struct wr_url url = good("redis://me:p%40ss%3a%25@10.0.0.7:7000/12");
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "p@ss:%");
    assert_string_equal(url.host, "10.0.0.7");
    assert_int_equal(url.port, 7000);
    assert_int_equal(url.database, 12);
    assert_int_equal(good("redis://h:1/").database, 0);
    assert_string_equal(good("redis://:pw@h").password, "pw");
    assert_string_equal(good("redis://u:a@b:c@h").password, "a@b:c");
}

static void an_ipv6_address_stands_in_brackets(void **state) {
    (void)state;
    const struct wr_url url = good("redis://:pw@[::1]:7001/2");
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 7001);
    assert_int_equal(url.database, 2);
    assert_string_equal(good("redis://[fe80::1%25eth0]").host, "fe80::1%eth0");
    assert_int_equal(good("redis://[::1]").port, 6379);
}

static void a_unix_socket_has_its_options_behind_it(void **state) {
    (void)state;
    struct wr_url url = good("unix:/run/redis.sock");
    assert_string_equal(url.path, "/run/redis.sock");
    assert_int_equal(url.database, 0);
    url = good("unix:/a%20b?db=3&user=me&password=p%26w");
    assert_string_equal(url.path, "/a b");
    assert_int_equal(url.database, 3);
    assert_string_equal(url.user, "me");
    assert_string_equal(url.password, "p&w");
}

static void a_wrong_part_is_named(void **state) {
    (void)state;
    bad("", "redis://");
    bad("http://host", "redis://");
    bad("rediss://host", "TLS");
    bad("redis://", "host");
    bad("redis://:secret@", "host");
    bad("redis://host:0", "port");
    bad("redis://host:65536", "port");
    bad("redis://host:port", "port");
    bad("redis://host:", "port");
    bad("redis://host/x", "database");
    bad("redis://host/-1", "database");
    bad("redis://host/1000001", "database");
    bad("redis://user@host", "password");
    bad("redis://user:@host", "password");
    bad("redis://u:secret%4@host", "password");
    bad("redis://u:secret%zz@host", "password");
    bad("redis://u:secret%00@host", "password");
    bad("redis://::1", "brackets");
    bad("redis://[::1", "]");
    bad("redis://[::1]x", "port");
    bad("unix:", "path");
    bad("unix:relative", "path");
    bad("unix:/s?db=x", "db");
    bad("unix:/s?words", "option");
    bad("unix:/s?user=a", "password");
    bad("unix:/s?colour=red", "colour");
}

static void a_part_that_is_too_long_is_named(void **state) {
    (void)state;
    char text[2048];
    memset(text, 'x', sizeof text);
    memcpy(text, "redis://", 8);
    text[1000] = '\0';
    bad(text, "host");
    memcpy(text, "unix:/xx", 8);
    bad(text, "path");
    memcpy(text, "redis://u:", 10);
    memcpy(text + 990, "@host", 6);
    bad(text, "password");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_alone_has_the_usual_port_and_database),
        cmocka_unit_test(null_is_the_redis_of_this_machine),
        cmocka_unit_test(every_part_is_read),
        cmocka_unit_test(an_ipv6_address_stands_in_brackets),
        cmocka_unit_test(a_unix_socket_has_its_options_behind_it),
        cmocka_unit_test(a_wrong_part_is_named),
        cmocka_unit_test(a_part_that_is_too_long_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
