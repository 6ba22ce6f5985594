// One redis-server for all tests of a program: cmocka's group setup and teardown.
#pragma once

#include "sync_node.h"

static struct test_redis redis;
static char url[128];

static int begin(void **state) {
    (void)state;
    test_redis_start(&redis);
    test_redis_url(&redis, url);
    return 0;
}

static int end(void **state) {
    (void)state;
    test_redis_stop(&redis);
    return 0;
}
