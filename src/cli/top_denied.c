// top_denied.c - lists of denied keys, added up.
#include "top_denied.h"

#include <stdlib.h>

bool wr_top_denied_send(struct wr_redis *redis, struct wr_text name, struct wr_fault *fault) {
    const struct wr_text words[] = {wr_text_of("ZRANGE"), name, wr_text_of("0"), wr_text_of("-1"),
                                    wr_text_of("WITHSCORES")};
    return wr_redis_send(redis, words, sizeof words / sizeof words[0], fault);
}

bool wr_top_denied_read(struct wr_tally *denied, const struct wr_redis_reply *reply,
                        struct wr_fault *fault) {
    const struct wr_redis_value list = wr_redis_look(reply);
    for (size_t i = 0; list.kind == WR_REDIS_LIST && i + 1 < list.count; i += 2) {
        const struct wr_redis_value name = wr_redis_look_at(reply, i);
        uint64_t times;
        if (name.kind != WR_REDIS_TEXT || name.text.length > WR_BUCKET_NAME_BYTES ||
            !wr_redis_score(wr_redis_look_at(reply, i + 1), &times))
            continue;
        if (wr_tally_add(denied, name.text, times) == NULL)
            return wr_fault(fault, "no memory for the denied keys");
    }
    return true;
}

void wr_top_denied_fill(const struct wr_top_scan *scan, struct wr_top_row *row) {
    const struct wr_tallied *found =
        wr_tally_find(&scan->denied, (struct wr_text){row->name, row->name_bytes});
    row->denied = found != NULL ? found->amount : 0;
}

static void make_rows(struct wr_top_scan *scan) {
    wr_tally_sort(&scan->denied);
    for (size_t i = 0; i < scan->denied.count && scan->count < scan->wanted; i++) {
        const struct wr_tallied *key = scan->denied.all[i];
        const enum wr_bucket_what what = wr_bucket_name_parse(key->name, scan->prefix).what;
        if (what != WR_BUCKET_ITSELF && what != WR_BUCKET_CUT) continue;
        struct wr_top_row *row = &scan->rows[scan->count++];
        *row = (struct wr_top_row){.name_bytes = key->name.length, .denied = key->amount};
        memcpy(row->name, key->name.data, key->name.length);
    }
}

static struct wr_text name_of(const struct wr_top_row *row) {
    return (struct wr_text){row->name, row->name_bytes};
}

static bool hear_bucket(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_top_row *row,
                        struct wr_fault *fault) {
    const struct wr_bucket_name parts = wr_bucket_name_parse(name_of(row), scan->prefix);
    struct wr_redis_reply *reply;
    if (!wr_redis_next(redis, &reply, fault)) return false;
    row->no_bucket = parts.what != WR_BUCKET_ITSELF ||
                     !wr_top_row_read(scan, row, parts.group, wr_redis_look(reply));
    wr_redis_drop(reply);
    return true;
}

bool wr_top_denied_rows(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    bool good = true;
    make_rows(scan);
    for (size_t i = 0; good && i < scan->count; i++) {
        const struct wr_text words[] = {wr_text_of("GET"), name_of(&scan->rows[i])};
        good = wr_redis_send(redis, words, 2, fault);
    }
    for (size_t i = 0; good && i < scan->count; i++)
        good = hear_bucket(scan, redis, &scan->rows[i], fault);
    return good;
}
