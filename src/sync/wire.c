// Packing a report and unpacking its answer. sync.lua has the layouts; numbers are little-endian.
#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define LIMIT_BYTES 20
#define REPORT_BYTES 16
#define HEAD_BYTES 24
#define BUCKET_BYTES 16
#define BACKLOG_FLAG 0x80
#define MAGIC "WRS1"
#define EXACT (INT64_C(1) << 53)
#define UNKNOWN_US (-(INT64_C(1) << 62))
#define CAP_MAX_US UINT64_C(6000000000000000)

// A buffer being written. Goes on counting when it is full, as snprintf does.
struct sink {
    char *out;
    size_t room;
    size_t length;
};

static void put(struct sink *sink, const void *bytes, size_t count) {
    if (count != 0 && sink->length < sink->room) {
        const size_t left = sink->room - sink->length;
        memcpy(sink->out + sink->length, bytes, count < left ? count : left);
    }
    sink->length += count;
}

static void put_text(struct sink *sink, const char *text) {
    put(sink, text, strlen(text));
}

static size_t decimal(uint64_t value, char text[24]) {
    return (size_t)snprintf(text, 24, "%" PRIu64, value);
}

static void put_decimal(struct sink *sink, uint64_t value) {
    char text[24];
    put(sink, text, decimal(value, text));
}

static void put_little(struct sink *sink, uint64_t value, size_t bytes) {
    unsigned char raw[8];
    for (size_t i = 0; i < bytes; i++) raw[i] = (unsigned char)(value >> 8 * i);
    put(sink, raw, bytes);
}

static void put_length(struct sink *sink, char mark, size_t length) {
    put(sink, &mark, 1);
    put_decimal(sink, length);
    put(sink, "\r\n", 2);
}

static void put_bulk(struct sink *sink, const char *text, size_t bytes) {
    put_length(sink, '$', bytes);
    put(sink, text, bytes);
    put(sink, "\r\n", 2);
}

static void put_bulk_decimal(struct sink *sink, uint64_t value) {
    char text[24];
    put_bulk(sink, text, decimal(value, text));
}

static uint64_t get_little(const unsigned char *raw, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)raw[i] << 8 * i;
    return value;
}

static bool name_ok(const char *name, const char *forbidden) {
    const size_t length = strnlen(name, WR_WIRE_NAME_MAX + 1);
    if (length == 0 || length > WR_WIRE_NAME_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] <= ' ' || name[i] > '~' || strchr(forbidden, name[i]) != NULL) return false;
    return true;
}

bool wr_wire_prefix_ok(const char *prefix) {
    return name_ok(prefix, "{}");
}

bool wr_wire_limiter_name_ok(const char *name) {
    static const char *const taken[] = {"a", "d", "n", "nodes", "s", "t"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strcmp(name, taken[i]) == 0) return false;
    return name_ok(name, "{}:");
}

uint32_t wr_wire_group(const void *key, size_t key_bytes, uint32_t groups) {
    return (uint32_t)(XXH64(key, key_bytes, 0) % groups);
}

static void put_group(struct sink *sink, const char *prefix, uint32_t group) {
    put_text(sink, prefix);
    put(sink, "{", 1);
    put_decimal(sink, group);
    put(sink, "}", 1);
}

static void put_bucket_name(struct sink *sink, const char *prefix, uint32_t group,
                            const char *limiter, const void *key, size_t key_bytes) {
    put_group(sink, prefix, group);
    put_text(sink, limiter);
    put(sink, ":", 1);
    put(sink, key, key_bytes);
}

size_t wr_wire_bucket_name(const char *prefix, uint32_t group, const char *limiter,
                           const void *key, size_t key_bytes, char *out, size_t out_bytes) {
    struct sink sink = {out, out_bytes, 0};
    put_bucket_name(&sink, prefix, group, limiter, key, key_bytes);
    return sink.length;
}

static bool batch_ok(const struct wr_wire_batch *batch) {
    if (batch->reports_count > WR_WIRE_REPORTS_MAX || batch->limits_count > WR_WIRE_LIMITS_MAX ||
        batch->epoch_us <= 0 || batch->marker_ttl_ms <= 0 || batch->seq >= (uint64_t)EXACT)
        return false;
    for (size_t i = 0; i < batch->limits_count; i++)
        if (batch->limits[i].cap_us > CAP_MAX_US ||
            batch->limits[i].burst_us > batch->limits[i].cap_us)
            return false;
    for (size_t i = 0; i < batch->reports_count; i++)
        if (batch->reports[i].limit >= batch->limits_count ||
            batch->reports[i].cost_us > (uint64_t)WR_NODE_HORIZON_US)
            return false;
    return true;
}

static void put_limits(struct sink *sink, const struct wr_wire_batch *batch) {
    put_length(sink, '$', batch->limits_count * LIMIT_BYTES);
    for (size_t i = 0; i < batch->limits_count; i++) {
        put_little(sink, batch->limits[i].cap_us, 8);
        put_little(sink, batch->limits[i].burst_us, 8);
        put_little(sink, batch->limits[i].generation, 4);
    }
    put(sink, "\r\n", 2);
}

static void put_reports(struct sink *sink, const struct wr_wire_batch *batch) {
    put_length(sink, '$', batch->reports_count * REPORT_BYTES);
    for (size_t i = 0; i < batch->reports_count; i++) {
        const struct wr_wire_report *report = &batch->reports[i];
        put_little(sink, report->cost_us, 7);
        put_little(sink, report->limit | (report->backlog ? BACKLOG_FLAG : 0u), 1);
        put_little(sink, report->age_us, 4);
        put_little(sink, report->demand_tokens, 4);
    }
    put(sink, "\r\n", 2);
}

static void put_keys(struct sink *sink, const struct wr_wire_batch *batch) {
    char name[2 * WR_WIRE_NAME_MAX + 32];
    struct sink marker = {name, sizeof name, 0};
    put_group(&marker, batch->prefix, batch->group);
    const size_t group_bytes = marker.length;
    put_text(&marker, "n:");
    put_text(&marker, batch->node);
    put_bulk(sink, name, marker.length);
    put_length(sink, '$', group_bytes + 1);
    put(sink, name, group_bytes);
    put(sink, "e\r\n", 3);
    for (size_t i = 0; i < batch->reports_count; i++) {
        const struct wr_wire_report *report = &batch->reports[i];
        const char *limiter = batch->limits[report->limit].limiter;
        put_length(sink, '$', group_bytes + strlen(limiter) + 1 + report->key_bytes);
        put_bucket_name(sink, batch->prefix, batch->group, limiter, report->key,
                        report->key_bytes);
        put(sink, "\r\n", 2);
    }
}

size_t wr_wire_pack(const struct wr_wire_batch *batch, char *out, size_t out_bytes) {
    if (!batch_ok(batch) || !wr_wire_prefix_ok(batch->prefix) || !name_ok(batch->node, "{}"))
        return 0;
    const size_t keys = batch->reports_count + 2;
    struct sink sink = {out, out_bytes, 0};
    put_length(&sink, '*', 3 + keys + 5);
    put_bulk(&sink, "EVALSHA", 7);
    put_bulk(&sink, batch->sha, WR_WIRE_SHA_BYTES);
    put_bulk_decimal(&sink, keys);
    put_keys(&sink, batch);
    put_bulk_decimal(&sink, batch->seq);
    put_bulk_decimal(&sink, (uint64_t)batch->epoch_us);
    put_bulk_decimal(&sink, (uint64_t)batch->marker_ttl_ms);
    put_limits(&sink, batch);
    put_reports(&sink, batch);
    return sink.length;
}

static bool unpack_bucket(const unsigned char *raw, struct wr_node_reply *reply) {
    const int64_t rel_us = (int64_t)get_little(raw, 8);
    reply->unknown = rel_us == UNKNOWN_US;
    reply->rel_us = reply->unknown ? 0 : rel_us;
    reply->previous_tokens = (uint32_t)get_little(raw + 8, 4);
    reply->current_tokens = (uint32_t)get_little(raw + 12, 4);
    return reply->rel_us > -EXACT && reply->rel_us < EXACT;
}

enum wr_wire_fault wr_wire_unpack(const void *bytes, size_t bytes_count, size_t count,
                                  struct wr_wire_answer *answer, struct wr_node_reply *replies) {
    const unsigned char *raw = bytes;
    if (bytes_count < HEAD_BYTES || memcmp(raw, MAGIC, 4) != 0) return WR_WIRE_NOT_OURS;
    if (get_little(raw + 4, 4) != count || bytes_count != HEAD_BYTES + count * BUCKET_BYTES)
        return WR_WIRE_LENGTH;
    answer->redis_us = (int64_t)get_little(raw + 8, 8);
    answer->marker_seq = (int64_t)get_little(raw + 16, 8);
    if (answer->redis_us <= 0 || answer->redis_us >= EXACT || answer->marker_seq < -1 ||
        answer->marker_seq >= EXACT)
        return WR_WIRE_RANGE;
    for (size_t i = 0; i < count; i++)
        if (!unpack_bucket(raw + HEAD_BYTES + i * BUCKET_BYTES, &replies[i]))
            return WR_WIRE_RANGE;
    return WR_WIRE_OK;
}

bool wr_wire_unpack_record(const void *bytes, size_t bytes_count, struct wr_wire_record *record) {
    const unsigned char *raw = bytes;
    if (bytes_count != WR_WIRE_RECORD_BYTES) return false;
    const uint64_t tat_us = get_little(raw, 8);
    record->tat_us = tat_us < (uint64_t)EXACT ? (int64_t)tat_us : 0; // damaged: full
    record->epoch = (uint32_t)get_little(raw + 8, 4);
    record->previous_tokens = (uint32_t)get_little(raw + 12, 4);
    record->current_tokens = (uint32_t)get_little(raw + 16, 4);
    record->generation = (uint32_t)get_little(raw + 20, 4);
    return true;
}
