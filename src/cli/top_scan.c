// top_scan.c - a page of names, the values of the page in one go (an MGET a group: a group is a
// hash slot), and with them the ask for the next page. Behind that goes TYPE for the names whose
// values do not show whether they are weir's; the answers come after the next page's names.
#include "top_scan.h"

#include <stdlib.h>

#include "top_denied.h"

#define PAGE "1000"
#define PATTERN_BYTES (2 * WR_WIRE_NAME_MAX + 2)

bool wr_top_scan_init(struct wr_top_scan *scan, const char *prefix, enum wr_top_by by,
                      size_t wanted, struct wr_fault *fault) {
    *scan = (struct wr_top_scan){.prefix = prefix, .by = by, .wanted = wanted};
    scan->rows = calloc(wanted + 1, sizeof *scan->rows);
    scan->limiters = calloc(WR_TOP_LIMITERS_MAX, sizeof *scan->limiters);
    if (scan->rows != NULL && scan->limiters != NULL) return true;
    wr_top_scan_fini(scan);
    return wr_fault(fault, "no memory for %zu rows", wanted);
}

void wr_top_scan_fini(struct wr_top_scan *scan) {
    free(scan->rows);
    free(scan->limiters);
    wr_tally_fini(&scan->limiter_places);
    wr_tally_fini(&scan->nodes);
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

size_t wr_top_hidden(const struct wr_top_scan *scan) {
    return scan->limiter_places.count - scan->limiter_count;
}

// False: no memory. *limiter is NULL for one that is not shown.
static bool limiter_of(struct wr_top_scan *scan, struct wr_text name,
                       struct wr_top_limiter **limiter, struct wr_fault *fault) {
    const struct wr_tallied *place = wr_tally_find(&scan->limiter_places, name);
    *limiter = NULL;
    if (place == NULL) {
        place = wr_tally_add(&scan->limiter_places, name, scan->limiter_count);
        if (place == NULL) return wr_fault(fault, "no memory for the names of limiters");
        if (scan->limiter_count < WR_TOP_LIMITERS_MAX)
            memcpy(scan->limiters[scan->limiter_count++].name, name.data, name.length);
    }
    if (place->amount < WR_TOP_LIMITERS_MAX) *limiter = &scan->limiters[place->amount];
    return true;
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

static bool see_bucket(struct wr_top_scan *scan, struct wr_text name,
                       const struct wr_bucket_name *parts, struct wr_redis_value value,
                       struct wr_fault *fault) {
    struct wr_top_row row = {.name_bytes = name.length};
    struct wr_top_limiter *limiter;
    if (name.length > sizeof row.name || !wr_top_row_read(scan, &row, parts->group, value)) {
        scan->foreign++;
        return true;
    }
    if (!limiter_of(scan, parts->limiter, &limiter, fault)) return false;
    memcpy(row.name, name.data, name.length);
    scan->buckets++;
    scan->behind += row.behind_us > 0;
    scan->groups_seen |= UINT64_C(1) << parts->group;
    if (limiter != NULL) limiter->buckets++;
    if (scan->by != WR_TOP_DENIED) add_row(scan, &row);
    return true;
}

static bool is_same_limit(const struct wr_published *a, const struct wr_published *b) {
    return a->limit.tokens == b->limit.tokens && a->limit.period_ns == b->limit.period_ns &&
           a->limit.burst == b->limit.burst && a->groups == b->groups;
}

static void add(uint64_t *sum, uint64_t amount) {
    *sum = *sum > INT64_MAX - amount ? INT64_MAX : *sum + amount;
}

static void see_limit(struct wr_top_limiter *limiter, const struct wr_published *published,
                      bool alive) {
    if (!published->has_limit) return;
    if (!alive && limiter->compared) return;
    if (limiter->compared && !is_same_limit(&limiter->last, published))
        limiter->disagree = true;
    limiter->compared = limiter->compared || alive;
    limiter->last = *published;
}

// What a node that is gone counted is still counted while it stands there; its limit is no matter
// where another is alive.
static bool see_aggregate(struct wr_top_scan *scan, const struct wr_bucket_name *parts,
                          const struct wr_published *published, struct wr_fault *fault) {
    struct wr_top_limiter *limiter;
    const bool alive = !scan->nodes_known || wr_tally_find(&scan->nodes, parts->rest) != NULL;
    if (!limiter_of(scan, parts->limiter, &limiter, fault)) return false;
    if (limiter == NULL) return true;
    if (alive) limiter->nodes++;
    else limiter->gone++;
    add(&limiter->granted, published->granted);
    add(&limiter->denied, published->denied);
    add(&limiter->tokens, published->tokens);
    see_limit(limiter, published, alive);
    return true;
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
    uint64_t epochs; // of groups, that are asked for with it
    struct wr_text *words; // room for a command with all the names
    bool *asked;           // by place: what a node published, and the reply is to come
    bool *untold;          // by place: a bucket of which MGET said nothing
};

static struct wr_text name_at(const struct page *page, size_t i) {
    const struct wr_redis_value name = wr_redis_look_at(page->names, i);
    return name.kind == WR_REDIS_TEXT ? name.text : wr_text_of("");
}

static void look_over(struct wr_top_scan *scan, struct page *page) {
    for (size_t i = 0; i < page->count; i++) {
        const struct wr_bucket_name parts = wr_bucket_name_parse(name_at(page, i), scan->prefix);
        if (parts.what == WR_BUCKET_ITSELF) page->groups |= UINT64_C(1) << parts.group;
        if (parts.what == WR_BUCKET_EPOCH) page->epochs |= UINT64_C(1) << parts.group;
        if (parts.what == WR_BUCKET_FOREIGN) scan->foreign++;
    }
    page->epochs = (page->epochs | page->groups) & ~scan->epochs_asked;
    scan->epochs_asked |= page->epochs;
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
    for (uint32_t group = 0; good && group < WR_BUCKET_GROUPS_MAX; group++)
        if (page->epochs >> group & 1) good = send_epoch(scan, redis, group, fault);
    for (uint32_t group = 0; good && group < WR_BUCKET_GROUPS_MAX; group++)
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

// The same of one key: that it holds something else is counted, and no trouble.
static bool next_of(struct wr_top_scan *scan, struct wr_redis *redis,
                    struct wr_redis_reply **reply, struct wr_fault *fault) {
    if (!wr_redis_next(redis, reply, fault)) return false;
    const struct wr_redis_value value = wr_redis_look(*reply);
    if (value.kind != WR_REDIS_ERROR) return true;
    const bool good = wr_redis_is_wrong_type(value) || wr_redis_refused(redis, value.text, fault);
    if (good) scan->foreign++;
    wr_redis_drop(*reply);
    *reply = NULL;
    return good;
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
    if (!next_of(scan, redis, &reply, fault)) return false;
    const struct wr_redis_value value = wr_redis_look(reply);
    scan->epoch_us[group] = wr_redis_epoch_us(value);
    scan->foreign += value.kind == WR_REDIS_TEXT && scan->epoch_us[group] == 0;
    wr_redis_drop(reply);
    return true;
}

static bool send_type(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_text name,
                      enum wr_top_type type, struct wr_fault *fault) {
    const struct wr_text words[] = {wr_text_of("TYPE"), name};
    scan->types_due[type]++;
    return wr_redis_send(redis, words, 2, fault);
}

// MGET says nil for a name that is gone since SCAN listed it, and for one that holds no string.
static bool hear_group(struct wr_top_scan *scan, struct wr_redis *redis, struct page *page,
                       uint32_t group, struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    size_t place = 0;
    bool good = true;
    if (!next(redis, &reply, fault)) return false;
    for (size_t i = 0; good && i < page->count; i++) {
        const struct wr_text name = name_at(page, i);
        const struct wr_bucket_name parts = wr_bucket_name_parse(name, scan->prefix);
        if (parts.what != WR_BUCKET_ITSELF || parts.group != group) continue;
        const struct wr_redis_value value = wr_redis_look_at(reply, place++);
        if (value.kind == WR_REDIS_NONE) page->untold[i] = true;
        else good = see_bucket(scan, name, &parts, value, fault);
    }
    wr_redis_drop(reply);
    return good;
}

static bool hear_published(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_text name,
                           struct wr_fault *fault) {
    struct wr_redis_reply *reply;
    struct wr_published published;
    if (!next_of(scan, redis, &reply, fault)) return false;
    const struct wr_bucket_name parts = wr_bucket_name_parse(name, scan->prefix);
    bool good = true;
    if (parts.what == WR_BUCKET_DENIED) good = wr_top_denied_read(&scan->denied, reply, fault);
    else if (wr_published_read(reply, &published))
        good = see_aggregate(scan, &parts, &published, fault);
    wr_redis_drop(reply);
    return good;
}

static bool hear_page(struct wr_top_scan *scan, struct wr_redis *redis, struct page *page,
                      struct wr_fault *fault) {
    bool good = hear_time(scan, redis, fault);
    for (uint32_t group = 0; good && group < WR_BUCKET_GROUPS_MAX; group++)
        if (page->epochs >> group & 1) good = hear_epoch(scan, redis, group, fault);
    for (uint32_t group = 0; good && group < WR_BUCKET_GROUPS_MAX; group++)
        if (page->groups >> group & 1) good = hear_group(scan, redis, page, group, fault);
    for (size_t i = 0; good && i < page->count; i++)
        if (page->asked[i]) good = hear_published(scan, redis, name_at(page, i), fault);
    return good;
}

static bool send_types(struct wr_top_scan *scan, struct wr_redis *redis, const struct page *page,
                       struct wr_fault *fault) {
    bool good = true;
    for (size_t i = 0; good && i < page->count; i++)
        if (page->untold[i]) good = send_type(scan, redis, name_at(page, i), WR_TOP_STRING, fault);
    for (size_t i = 0; good && i < page->count; i++)
        if (wr_bucket_name_parse(name_at(page, i), scan->prefix).what == WR_BUCKET_NODES)
            good = send_type(scan, redis, name_at(page, i), WR_TOP_ZSET, fault);
    return good;
}

// A name that is gone is not foreign; nor is what cannot be told, where TYPE is not allowed.
static bool hear_types(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    static const char *const words[WR_TOP_TYPES] = {"string", "zset"};
    for (int type = 0; type < WR_TOP_TYPES; type++)
        for (; scan->types_due[type] > 0; scan->types_due[type]--) {
            struct wr_redis_reply *reply;
            if (!wr_redis_next(redis, &reply, fault)) return false;
            const struct wr_redis_value value = wr_redis_look(reply);
            if (value.kind == WR_REDIS_TEXT && !wr_text_is(value.text, words[type]) &&
                !wr_text_is(value.text, "none"))
                scan->foreign++;
            wr_redis_drop(reply);
        }
    return true;
}

// The values of a page whose names came, with the ask for the next page behind them, and behind
// that the asks for types.
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
    page.untold = calloc(page.count + 1, sizeof *page.untold);
    bool good = (page.words != NULL && page.asked != NULL && page.untold != NULL) ||
                wr_fault(fault, "no memory for a page of names");
    look_over(scan, &page);
    good = good && send_page(scan, redis, &page, fault) &&
                      (*last || send_scan(scan, redis, cursor.text, fault)) &&
                      hear_page(scan, redis, &page, fault) &&
                      send_types(scan, redis, &page, fault);
    free(page.words);
    free(page.asked);
    free(page.untold);
    return good;
}

static bool see_nodes(struct wr_top_scan *scan, const struct wr_redis_reply *list,
                      struct wr_fault *fault) {
    const size_t count = wr_redis_look(list).count;
    for (size_t i = 0; i < count; i++) {
        const struct wr_redis_value node = wr_redis_look_at(list, i);
        if (node.kind == WR_REDIS_TEXT && wr_bucket_is_node(node.text) &&
            wr_tally_add(&scan->nodes, node.text, 0) == NULL)
            return wr_fault(fault, "no memory for the names of nodes");
    }
    return true;
}

// Who is alive. A set that is none is counted when SCAN lists it.
static bool ask_nodes(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    char name[WR_BUCKET_NAME_BYTES], since_ms[WR_REDIS_MS_BYTES];
    struct wr_redis_reply *reply;
    snprintf(name, sizeof name, "%s{0}nodes", scan->prefix);
    wr_redis_alive_since(scan->now_us, since_ms);
    const struct wr_text words[] = {wr_text_of("ZRANGEBYSCORE"), wr_text_of(name),
                                    wr_text_of(since_ms), wr_text_of("+inf")};
    if (!wr_redis_send(redis, words, sizeof words / sizeof words[0], fault) ||
        !wr_redis_next(redis, &reply, fault))
        return false;
    const struct wr_redis_value value = wr_redis_look(reply);
    scan->nodes_known = value.kind == WR_REDIS_LIST;
    const bool good =
        value.kind == WR_REDIS_ERROR && !wr_redis_is_wrong_type(value)
            ? wr_redis_refused(redis, value.text, fault)
            : see_nodes(scan, reply, fault);
    wr_redis_drop(reply);
    return good;
}

bool wr_top_scan_run(struct wr_top_scan *scan, struct wr_redis *redis, struct wr_fault *fault) {
    bool last = false;
    bool good = wr_redis_time_us(redis, &scan->now_us, fault) && ask_nodes(scan, redis, fault) &&
                send_scan(scan, redis, wr_text_of("0"), fault);
    while (good && !last) {
        struct wr_redis_reply *reply;
        good = next(redis, &reply, fault);
        if (!good) break;
        good = hear_types(scan, redis, fault) && run_page(scan, redis, reply, &last, fault);
        wr_redis_drop(reply);
    }
    if (!good || !hear_types(scan, redis, fault)) return false;
    if (scan->by == WR_TOP_DENIED) return wr_top_denied_rows(scan, redis, fault);
    for (size_t i = 0; i < scan->count; i++) wr_top_denied_fill(scan, &scan->rows[i]);
    return true;
}
