// top_scan.c - a page of names, the values of the page in one go (an MGET a group: a group is a
// hash slot), and with them the ask for the next page.
#include "top_scan.h"

#include <stdlib.h>

#include "top_denied.h"

#define PAGE "1000"
#define PATTERN_BYTES (2 * WR_WIRE_NAME_MAX + 2)

bool wr_top_scan_init(struct wr_top_scan *scan, const char *prefix, enum wr_top_by by,
                      size_t wanted, struct wr_fault *fault) {
    *scan = (struct wr_top_scan){.prefix = prefix, .by = by, .wanted = wanted};
    scan->rows = calloc(wanted + 1, sizeof *scan->rows);
    return scan->rows != NULL || wr_fault(fault, "no memory for %zu rows", wanted);
}

void wr_top_scan_fini(struct wr_top_scan *scan) {
    free(scan->rows);
    wr_tally_fini(&scan->published);
    wr_tally_fini(&scan->denied);
}

// Rows ----------------------------------------------------------------------------------------

static bool is_above(const struct wr_top_scan *scan, const struct wr_top_row *a,
                     const struct wr_top_row *b) {
    const bool busier = a->demand.per_s > b->demand.per_s;
    const bool as_busy = a->demand.per_s >= b->demand.per_s;
    if (scan->by == WR_TOP_DEMAND) return busier || (as_busy && a->behind_us > b->behind_us);
    return a->behind_us > b->behind_us || (a->behind_us == b->behind_us && busier);
}

static size_t place_of(const struct wr_top_scan *scan, const struct wr_top_row *row) {
    for (size_t i = 0; i < scan->count; i++)
        if (scan->rows[i].name_bytes == row->name_bytes &&
            memcmp(scan->rows[i].name, row->name, row->name_bytes) == 0)
            return i;
    return scan->count;
}

// A name that SCAN shows again takes the place it had. There is room for one row more than wanted.
static void add_row(struct wr_top_scan *scan, const struct wr_top_row *row) {
    if (scan->count == scan->wanted &&
        (scan->wanted == 0 || !is_above(scan, row, &scan->rows[scan->count - 1])))
        return;
    size_t at = place_of(scan, row);
    if (at == scan->count) scan->count++;
    while (at > 0 && is_above(scan, row, &scan->rows[at - 1])) {
        scan->rows[at] = scan->rows[at - 1];
        at--;
    }
    scan->rows[at] = *row;
    if (scan->count > scan->wanted) scan->count = scan->wanted;
}

static struct wr_top_limiter *limiter_of(struct wr_top_scan *scan, struct wr_text name) {
    for (size_t i = 0; i < scan->limiter_count; i++)
        if (wr_text_is(name, scan->limiters[i].name)) return &scan->limiters[i];
    if (scan->limiter_count == WR_TOP_LIMITERS_MAX) return NULL;
    struct wr_top_limiter *made = &scan->limiters[scan->limiter_count++];
    *made = (struct wr_top_limiter){.buckets = 0};
    memcpy(made->name, name.data, name.length);
    return made;
}

bool wr_top_row_read(struct wr_top_scan *scan, struct wr_top_row *row, uint32_t group,
                     struct wr_redis_value value) {
    struct wr_wire_record record;
    if (value.kind != WR_REDIS_TEXT ||
        !wr_wire_unpack_record(value.text.data, value.text.length, &record))
        return false;
    row->generation = record.generation;
    row->demand = wr_bucket_demand(&record, scan->epoch_us[group], scan->now_us);
    row->behind_us = record.tat_us > scan->now_us ? record.tat_us - scan->now_us : 0;
    return true;
}

static void see_bucket(struct wr_top_scan *scan, struct wr_text name,
                       const struct wr_bucket_name *parts, struct wr_redis_value value) {
    struct wr_top_row row = {.name_bytes = name.length};
    struct wr_top_limiter *limiter = limiter_of(scan, parts->limiter);
    if (value.kind == WR_REDIS_NONE) return; // gone since, or no string
    if (name.length > sizeof row.name || !wr_top_row_read(scan, &row, parts->group, value)) {
        scan->foreign++;
        return;
    }
    memcpy(row.name, name.data, name.length);
    scan->buckets++;
    scan->behind += row.behind_us > 0;
    if (limiter != NULL) limiter->buckets++;
    if (scan->by != WR_TOP_DENIED) add_row(scan, &row);
}

static bool is_same_limit(const struct wr_published *a, const struct wr_published *b) {
    return a->limit.tokens == b->limit.tokens && a->limit.period_ns == b->limit.period_ns &&
           a->limit.burst == b->limit.burst && a->groups == b->groups;
}

static void see_aggregate(struct wr_top_scan *scan, const struct wr_bucket_name *parts,
                          const struct wr_redis_reply *reply) {
    struct wr_top_limiter *limiter = limiter_of(scan, parts->limiter);
    struct wr_published published;
    if (limiter == NULL || !wr_published_read(reply, &published)) return;
    limiter->nodes++;
    limiter->granted += published.granted;
    limiter->denied += published.denied;
    limiter->tokens += published.tokens;
    if (!published.has_limit) return;
    if (limiter->last.has_limit && !is_same_limit(&limiter->last, &published))
        limiter->disagree = true;
    limiter->last = published;
}

// Asking --------------------------------------------------------------------------------------

static bool send_scan(const struct wr_top_scan *scan, struct wr_redis *redis, struct wr_text cursor,
                      struct wr_fault *fault) {
    char pattern[PATTERN_BYTES];
    wr_redis_pattern(scan->prefix, pattern);
    const struct wr_text words[] = {wr_text_of("SCAN"),  cursor,
                                    wr_text_of("MATCH"), wr_text_of(pattern),
                                    wr_text_of("COUNT"), wr_text_of(PAGE)};
    return wr_redis_send(redis, words, sizeof words / sizeof words[0], fault);
}

// A page of names, and what is in it.
struct page {
    const struct wr_redis_reply *names;
    size_t count;
    uint64_t groups; // with buckets in the page
    uint64_t new_groups;
    struct wr_text *words; // room for a command with all the names
    bool *asked;           // by place: what a node published, and the reply is to come
};

static struct wr_text name_at(const struct page *page, size_t i) {
    const struct wr_redis_value name = wr_redis_look_at(page->names, i);
    return name.kind == WR_REDIS_TEXT ? name.text : wr_text_of("");
}

static void look_over(struct wr_top_scan *scan, struct page *page) {
    for (size_t i = 0; i < page->count; i++) {
        const struct wr_bucket_name parts = wr_bucket_name_parse(name_at(page, i), scan->prefix);
        if (parts.what == WR_BUCKET_ITSELF) page->groups |= UINT64_C(1) << parts.group;
        if (parts.what == WR_BUCKET_FOREIGN) scan->foreign++;
    }
    page->new_groups = page->groups & ~scan->groups_seen;
    scan->groups_seen |= page->groups;
}

static bool send_epoch(const struct wr_top_scan *scan, struct wr_redis *redis, uint32_t group,
                       struct wr_fault *fault) {
    char name[WR_WIRE_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s{%u}e", scan->prefix, (unsigned)group);
    const struct wr_text words[] = {wr_text_of("GET"), wr_text_of(name)};
    return wr_redis_send(redis, words, 2, fault);
}

static bool send_group(const struct wr_top_scan *scan, struct wr_redis *redis,
                       const struct page *page, uint32_t group, struct wr_fault *fault) {
    size_t count = 0;
    page->words[count++] = wr_text_of("MGET");
    for (size_t i = 0; i < page->count; i++) {
        const struct wr_text name = name_at(page, i);
        const struct wr_bucket_name parts = wr_bucket_name_parse(name, scan->prefix);
        if (parts.what == WR_BUCKET_ITSELF && parts.group == group) page->words[count++] = name;
    }
    return wr_redis_send(redis, page->words, count, fault);
}

// What a node published, if it was not read before: SCAN may show a name twice.
static bool send_published(struct wr_top_scan *scan, struct wr_redis *redis, struct page *page,
                           size_t i, struct wr_fault *fault) {
    const struct wr_text name = name_at(page, i);
    const enum wr_bucket_what what = wr_bucket_name_parse(name, scan->prefix).what;
    if (what != WR_BUCKET_AGGREGATE && what != WR_BUCKET_DENIED) return true;
    const struct wr_tallied *seen = wr_tally_add(&scan->published, name, 0);
    if (seen == NULL) return wr_fault(fault, "no memory for the names of nodes");
    page->asked[i] = seen->times == 1;
    if (!page->asked[i]) return true;
    return what == WR_BUCKET_AGGREGATE ? wr_published_send(redis, name, fault)
                                       : wr_top_denied_send(redis, name, fault);
}

static bool send_page(struct wr_top_scan *scan, struct wr_redis *redis, struct page *page,
                      struct wr_fault *fault) {
    const struct wr_text time = wr_text_of("TIME");
    bool good = wr_redis_send(redis, &time, 1, fault);
    for (uint32_t group = 0; good && group < WR_TOP_GROUPS; group++)
        if (page->new_groups >> group & 1) good = send_epoch(scan, redis, group, fault);
    for (uint32_t group = 0; good && group < WR_TOP_GROUPS; group++)
        if (page->groups >> group & 1) good = send_group(scan, redis, page, group, fault);
    for (size_t i = 0; good && i < page->count; i++)
        good = send_published(scan, redis, page, i, fault);
    return good;
}

// Hearing -------------------------------------------------------------------------------------

static bool next(struct wr_redis *redis, struct wr_redis_reply **reply, struct wr_fault *fault) {
    if (!wr_redis_next(redis, reply, fault)) return false;
    const struct wr_redis_value value = wr_redis_look(*reply);
    if (value.kind != WR_REDIS_ERROR) return true;
    wr_redis_refused(redis, value.text, fault);
    wr_redis_drop(*reply);
    *reply = NULL;
    return false;
}

static bool hear_time(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    if (!next(redis, &reply, fault)) return false;
    (void)wr_redis_time_read(reply, &scan->now_us); // else as it was
    wr_redis_drop(reply);
    return true;
}

static bool hear_epoch(struct wr_top_scan *scan, struct wr_redis *redis, uint32_t group,
                       struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    if (!next(redis, &reply, fault)) return false;
    scan->epoch_us[group] = wr_redis_epoch_us(wr_redis_look(reply));
    wr_redis_drop(reply);
    return true;
}

static bool hear_group(struct wr_top_scan *scan, struct wr_redis *redis, const struct page *page,
                       uint32_t group, struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    size_t place = 0;
    if (!next(redis, &reply, fault)) return false;
    for (size_t i = 0; i < page->count; i++) {
        const struct wr_text name = name_at(page, i);
        const struct wr_bucket_name parts = wr_bucket_name_parse(name, scan->prefix);
        if (parts.what == WR_BUCKET_ITSELF && parts.group == group)
            see_bucket(scan, name, &parts, wr_redis_look_at(reply, place++));
    }
    wr_redis_drop(reply);
    return true;
}

// One that holds something else says so by an error, which is no trouble here.
static bool hear_published(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_text name,
                           struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    if (!wr_redis_next(redis, &reply, fault)) return false;
    const struct wr_bucket_name parts = wr_bucket_name_parse(name, scan->prefix);
    bool good = true;
    if (parts.what == WR_BUCKET_AGGREGATE) see_aggregate(scan, &parts, reply);
    else good = wr_top_denied_read(&scan->denied, reply, fault);
    wr_redis_drop(reply);
    return good;
}

static bool hear_page(struct wr_top_scan *scan, struct wr_redis *redis, const struct page *page,
                      struct wr_fault *fault) {
    bool good = hear_time(scan, redis, fault);
    for (uint32_t group = 0; good && group < WR_TOP_GROUPS; group++)
        if (page->new_groups >> group & 1) good = hear_epoch(scan, redis, group, fault);
    for (uint32_t group = 0; good && group < WR_TOP_GROUPS; group++)
        if (page->groups >> group & 1) good = hear_group(scan, redis, page, group, fault);
    for (size_t i = 0; good && i < page->count; i++)
        if (page->asked[i]) good = hear_published(scan, redis, name_at(page, i), fault);
    return good;
}

// The values of a page whose names came, with the ask for the next page behind them.
static bool run_page(struct wr_top_scan *scan, struct wr_redis *redis,
                     const struct wr_redis_reply *reply, bool *last, struct wr_fault *fault) {
    const struct wr_redis_value cursor = wr_redis_look_at(reply, 0);
    struct page page = {.names = wr_redis_item(reply, 1)};
    if (cursor.kind != WR_REDIS_TEXT)
        return wr_fault(fault, "SCAN answered with something else; is this a Redis?");
    *last = wr_text_is(cursor.text, "0");
    page.count = wr_redis_look(page.names).count;
    page.words = malloc((page.count + 1) * sizeof *page.words);
    page.asked = calloc(page.count + 1, sizeof *page.asked);
    bool good = (page.words != NULL && page.asked != NULL) ||
                wr_fault(fault, "no memory for a page of names");
    look_over(scan, &page);
    good = good && send_page(scan, redis, &page, fault) &&
                      (*last || send_scan(scan, redis, cursor.text, fault)) &&
                      hear_page(scan, redis, &page, fault);
    free(page.words);
    free(page.asked);
    return good;
}

bool wr_top_scan_run(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    bool last = false;
    bool good = wr_redis_time_us(redis, &scan->now_us, fault) &&
                wr_redis_nodes(redis, scan->prefix, "", scan->now_us, &scan->nodes, fault) &&
                send_scan(scan, redis, wr_text_of("0"), fault);
    while (good && !last) {
        struct wr_redis_reply *reply;
        good = next(redis, &reply, fault);
        if (!good) break;
        good = run_page(scan, redis, reply, &last, fault);
        wr_redis_drop(reply);
    }
    if (!good) return false;
    if (scan->by == WR_TOP_DENIED) return wr_top_denied_rows(scan, redis, fault);
    for (size_t i = 0; i < scan->count; i++) wr_top_denied_fill(scan, &scan->rows[i]);
    return true;
}
