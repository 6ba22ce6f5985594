// cmd_peek.c - `weir peek`: one bucket of a sync, as it stands in Redis.
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include <weir.h>

#include "arguments.h"
#include "bucket.h"
#include "commands.h"
#include "output.h"
#include "published.h"
#include "rate.h"
#include "redis.h"

#define TIMEOUT_NS (2 * WEIR_SECOND)

__extension__ typedef __int128 wide;

struct job {
    struct wr_url url;
    const char *url_text, *prefix, *output, *limiter, *key_text;
    struct wr_bucket_key key;
    uint64_t groups, burst;
    struct wr_rate rate;
    bool has_rate, has_burst, json;
};

struct found {
    char name[WR_BUCKET_NAME_BYTES];
    size_t name_bytes;
    uint32_t group;
    bool known; // else there is no such key, and the bucket is full
    struct wr_wire_record record;
    struct wr_bucket_demand demand;
    int64_t now_us, epoch_us, behind_us, life_ms, nodes; // epoch_us 0: not known
    int64_t limiter_nodes; // of those, with this limiter
    enum wr_published_by by;
    bool groups_known; // given, or published by a node; else taken for one
    bool has_limit;    // the same
    struct wr_rate rate;
    uint64_t burst;
};

static void print_help(void) {
    printf("weir peek - one bucket of a limit over many hosts, as it stands in Redis\n\n"
           "How far behind is the key alice of the limiter mails?\n"
           "    weir peek --redis redis://127.0.0.1:6379 mails alice\n"
           "How many tokens would be left, if the limit were 5 a second and 100 at once?\n"
           "    weir peek --redis redis://127.0.0.1:6379 --rate 5/s --burst 100 mails alice\n"
           "A key that is an integer, another prefix:\n"
           "    weir peek --redis redis://node1 --prefix shop: orders id:4711\n\n"
           "Redis holds the time at which a bucket is full again, not tokens. The limit, and the\n"
           "number of groups, are what a node that is alive publishes, or one that stopped less\n"
           "than 10 s ago; where none is, give them by --rate, --burst and --groups. What nodes\n"
           "granted since their last report (100 ms, as a rule) is not in it yet. A key that\n"
           "Redis does not know is a full bucket, if the number of groups is right.\n\n"
           "NAME is the limiter's (weir_sync_attach). KEY is its text; id:7 is the integer 7\n"
           "(weir_id); \\xNN is a byte. weir top prints keys in this form.\n\n"
           "Options:\n"
           "    --redis URL      redis://[user:password@]host[:port][/database], or\n"
           "                     unix:/path[?db=1&user=..&password=..] (redis://127.0.0.1:6379)\n"
           "    --prefix TEXT    of the sync's names (weir:)\n"
           "    --groups N       of the sync, 1 to 64 (as a node has it, or 1)\n"
           "    -r, --rate RATE  of the limit: 5/s 300/m 1/d (as a node has it)\n"
           "    -b, --burst N    of the limit, with --rate (the tokens of one period)\n"
           "    --json           for programs\n"
           "    -o, --output FILE  where it goes (-)\n"
           "    -h, --help       this\n"
           "Exit: 0 fine, also where there is no such key; 1 Redis cannot be asked, or the key\n"
           "holds something else; 2 wrong usage.\n");
}

// Arguments -----------------------------------------------------------------------------------

enum option_id { REDIS = 256, PREFIX, GROUPS, JSON };

static const struct option options[] = {
    {"redis", required_argument, NULL, REDIS},   {"prefix", required_argument, NULL, PREFIX},
    {"groups", required_argument, NULL, GROUPS}, {"rate", required_argument, NULL, 'r'},
    {"burst", required_argument, NULL, 'b'},     {"json", no_argument, NULL, JSON},
    {"output", required_argument, NULL, 'o'},    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static bool set_groups(struct job *job, struct wr_fault *fault) {
    if (!wr_count_parse(optarg, "--groups", &job->groups, fault)) return false;
    return (job->groups >= 1 && job->groups <= WR_BUCKET_GROUPS_MAX) ||
           wr_fault(fault, "--groups '%.100s': it is from 1 to %d, and as the nodes have it",
                    optarg, WR_BUCKET_GROUPS_MAX);
}

static bool set_option(struct job *job, int id, struct wr_fault *fault) {
    switch (id) {
    case REDIS: job->url_text = optarg; return true;
    case PREFIX: job->prefix = optarg; return true;
    case GROUPS: return set_groups(job, fault);
    case 'r': job->has_rate = true; return wr_rate_parse(optarg, &job->rate, fault);
    case 'b':
        job->has_burst = true;
        return wr_count_parse(optarg, "-b, --burst", &job->burst, fault);
    case 'o': job->output = optarg; return true;
    default: job->json = true; return true;
    }
}

static bool complete(struct job *job, struct wr_fault *fault) {
    if (!wr_redis_url_parse(job->url_text, &job->url, fault)) return false;
    if (!wr_wire_prefix_ok(job->prefix))
        return wr_fault(fault, "--prefix '%.100s': 1 to 64 printable characters without "
                               "braces or space",
                        job->prefix);
    if (!wr_wire_limiter_name_ok(job->limiter))
        return wr_fault(fault, "'%.100s' is no limiter's name: 1 to 64 printable characters "
                               "without braces, colon or space, and none of a, d, n, nodes, s "
                               "and t",
                        job->limiter);
    if (job->has_burst && !job->has_rate)
        return wr_fault(fault, "-b, --burst alone says nothing; give --rate too, such as "
                               "--rate 5/s");
    if (job->has_rate && (job->rate.tokens == 0 || job->rate.tokens == WEIR_UNLIMITED_TOKENS))
        return wr_fault(fault, "-r, --rate: a limit that is synced has a rate above 0, such as "
                               "5/s");
    if (job->has_rate && !job->has_burst) job->burst = job->rate.tokens;
    const struct weir_limit limit = {job->rate.tokens, job->rate.period_ns, job->burst};
    if (job->has_rate && !wr_published_limit_ok(&limit))
        return wr_fault(fault, "weir takes no such limit: a rate is below 1.6 * 10^10 tokens a "
                               "second, and a burst at most 2^62; see -r, --rate and -b, --burst");
    return wr_bucket_key_parse(job->key_text, &job->key, fault);
}

static bool take_words(struct job *job, int argc, char **argv, struct wr_fault *fault) {
    if (argc - optind < 2)
        return wr_fault(fault, "it needs a limiter and a key, as in `weir peek mails alice`");
    if (argc - optind > 2)
        return wr_fault(fault, "'%.200s' is one word too many; a key with spaces stands in quotes",
                        argv[optind + 2]);
    job->limiter = argv[optind];
    job->key_text = argv[optind + 1];
    return complete(job, fault);
}

// -1: go on; else the exit code.
static int read_arguments(struct job *job, int argc, char **argv) {
    struct wr_fault fault = {""};
    int id;
    wr_arguments_begin();
    while ((id = wr_arguments_next(argc, argv, "r:b:o:h", options)) != -1) {
        if (id == '?') return WR_EXIT_USAGE;
        if (id == 'h') {
            print_help();
            return WR_EXIT_FINE;
        }
        if (!set_option(job, id, &fault)) break;
    }
    if (id == -1 && take_words(job, argc, argv, &fault)) return -1;
    fprintf(stderr, "weir peek: %s\n", fault.text);
    return WR_EXIT_USAGE;
}

// Asking --------------------------------------------------------------------------------------

static bool read_record(struct found *found, struct wr_redis_value value, const char *shown,
                        struct wr_fault *fault) {
    found->known = value.kind != WR_REDIS_NONE;
    if (!found->known) return true;
    if (value.kind != WR_REDIS_TEXT ||
        !wr_wire_unpack_record(value.text.data, value.text.length, &found->record))
        return wr_fault(fault, "the key '%.300s' in Redis is no bucket of weir (which has %d "
                               "bytes); is another program using this prefix?", shown,
                        WR_WIRE_RECORD_BYTES);
    found->behind_us = found->record.tat_us - found->now_us;
    if (found->behind_us < 0) found->behind_us = 0;
    return true;
}

static bool ask_bucket(struct wr_redis *redis, struct found *found, struct wr_fault *fault) {
    char shown[WR_BUCKET_SHOWN_BYTES] = "";
    struct wr_redis_reply *reply = NULL, *life = NULL;
    const struct wr_text name = {found->name, found->name_bytes};
    const struct wr_text get[] = {wr_text_of("GET"), name}, ttl[] = {wr_text_of("PTTL"), name};
    wr_text_show(shown, sizeof shown, name);
    bool good = wr_redis_send(redis, get, 2, fault) && wr_redis_send(redis, ttl, 2, fault) &&
                wr_redis_next(redis, &reply, fault) && wr_redis_next(redis, &life, fault);
    const struct wr_redis_value value = wr_redis_look(reply);
    if (good && value.kind == WR_REDIS_ERROR && !wr_redis_is_wrong_type(value))
        good = wr_redis_refused(redis, value.text, fault);
    if (good) good = read_record(found, value, shown, fault);
    const struct wr_redis_value left = wr_redis_look(life);
    found->life_ms = left.kind == WR_REDIS_INTEGER ? left.integer : -1;
    wr_redis_drop(reply);
    wr_redis_drop(life);
    return good;
}

static bool ask_epoch(struct wr_redis *redis, const struct job *job, struct found *found,
                      struct wr_fault *fault) {
    char name[WR_BUCKET_NAME_BYTES];
    snprintf(name, sizeof name, "%s{%" PRIu32 "}e", job->prefix, found->group);
    struct wr_redis_reply *reply = wr_redis_ask(redis, fault, "GET", name, NULL);
    if (reply == NULL) return false;
    found->epoch_us = wr_redis_epoch_us(wr_redis_look(reply));
    wr_redis_drop(reply);
    return true;
}

// The limit and the groups: as given, else as a node has them.
static bool ask_limit(struct wr_redis *redis, const struct job *job, struct found *found,
                      uint32_t *groups, struct wr_fault *fault) {
    struct wr_published published = {.groups = 0};
    if ((!job->has_rate || job->groups == 0) &&
        !wr_published_ask(redis, job->prefix, job->limiter, found->now_us, &found->by, &published,
                          fault))
        return false;
    *groups = job->groups != 0 ? (uint32_t)job->groups : published.groups;
    found->groups_known = *groups != 0;
    if (*groups == 0) *groups = 1;
    const struct weir_limit *limit = &published.limit;
    found->has_limit = job->has_rate || (published.has_limit && limit->tokens != 0 &&
                                         limit->tokens != WEIR_UNLIMITED_TOKENS);
    found->rate = job->has_rate ? job->rate : (struct wr_rate){limit->tokens, limit->period_ns};
    found->burst = job->has_rate ? job->burst : limit->burst;
    return true;
}

static bool ask_all(struct wr_redis *redis, const struct job *job, struct found *found,
                    struct wr_fault *fault) {
    uint32_t groups;
    if (!wr_redis_time_us(redis, &found->now_us, fault) ||
        !ask_limit(redis, job, found, &groups, fault))
        return false;
    found->group = wr_wire_group(job->key.bytes, job->key.length, groups);
    found->name_bytes =
        wr_wire_bucket_name(job->prefix, found->group, job->limiter, job->key.bytes,
                            job->key.length, found->name, sizeof found->name);
    return ask_bucket(redis, found, fault) && ask_epoch(redis, job, found, fault) &&
           wr_redis_nodes(redis, job->prefix, "", found->now_us, &found->nodes, fault) &&
           wr_redis_nodes(redis, job->prefix, job->limiter, found->now_us, &found->limiter_nodes,
                          fault);
}

static bool ask(const struct job *job, struct found *found, struct wr_fault *fault) {
    struct wr_redis *redis;
    if (!wr_redis_open(&redis, &job->url, TIMEOUT_NS, fault)) return false;
    const bool good = ask_all(redis, job, found, fault);
    wr_redis_close(redis);
    if (good) found->demand = wr_bucket_demand(&found->record, found->epoch_us, found->now_us);
    return good;
}

// Telling -------------------------------------------------------------------------------------

// Whether what Redis has, or has not, says how full the bucket is.
static bool is_told(const struct found *found) {
    return found->known || found->groups_known;
}

// Below zero: debt. No product is above 2^127: the record's time is below 2^53 us.
static double level_tokens(const struct found *found) {
    const wide spent = (wide)found->behind_us * (wide)WEIR_MICROSECOND * found->rate.tokens;
    const wide whole = spent / found->rate.period_ns, rest = spent % found->rate.period_ns;
    return (double)(found->burst - whole) - (double)rest / (double)found->rate.period_ns;
}

static void write_level(FILE *out, const struct job *job, const struct found *found) {
    char rate[WR_UNIT_TEXT];
    if (!found->has_limit || !is_told(found)) return;
    wr_rate_text(&found->rate, rate);
    fprintf(out, "level %.3f of %" PRIu64 " tokens, at %s%s\n", level_tokens(found), found->burst,
            rate,
            job->has_rate                     ? ""
            : found->by == WR_PUBLISHED_ALIVE ? " as its nodes have it"
                                              : " as a node had it that has stopped");
}

static void write_missing(FILE *out, const struct found *found) {
    if (found->groups_known) fprintf(out, "no such key: the bucket is full\n");
    else
        fprintf(out, "no such key; but no node with this limiter is alive to tell the number of "
                     "groups, and 1 was assumed:\nwith more, the bucket may be in another. Give "
                     "the number that the nodes had by --groups N\n");
}

static void write_known(FILE *out, const struct found *found) {
    char span[WR_UNIT_TEXT];
    wr_span_text((uint64_t)found->behind_us * WEIR_MICROSECOND, span);
    if (found->behind_us == 0) fprintf(out, "full\n");
    else fprintf(out, "full in %s, if nothing more is granted\n", span);
    if (found->epoch_us > 0) {
        wr_duration_text((uint64_t)found->epoch_us * WEIR_MICROSECOND, span);
        fprintf(out, "asked for on all nodes: %.1f tokens/s (%" PRIu32 " in the last epoch of %s, %"
                     PRIu32 " so far in this one)\n", found->demand.per_s,
                found->demand.last_epoch, span, found->demand.this_epoch);
    } else {
        fprintf(out, "asked for: not known; no node told Redis the epoch length of group %" PRIu32
                     "\n", found->group);
    }
    fprintf(out, "generation %" PRIu32 " of the limit\n", found->record.generation);
}

static void write_text(FILE *out, const struct job *job, const struct found *found) {
    char name[WR_BUCKET_SHOWN_BYTES] = "";
    wr_text_show(name, sizeof name, (struct wr_text){found->name, found->name_bytes});
    fprintf(out, "%s\n", name);
    if (found->known) write_known(out, found);
    else write_missing(out, found);
    write_level(out, job, found);
    if (found->nodes == 0) fprintf(out, "no node is alive under this prefix\n");
    else if (found->limiter_nodes == 0)
        fprintf(out, "%" PRId64 " node%s alive, and none with a limiter %s; is the name right?\n",
                found->nodes, found->nodes == 1 ? "" : "s", job->limiter);
    else
        fprintf(out, "%" PRId64 " node%s alive, %" PRId64 " with this limiter\n", found->nodes,
                found->nodes == 1 ? "" : "s", found->limiter_nodes);
}

static json_t *number_or_null(bool known, int64_t value) {
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *report_json(const struct job *job, const struct found *found) {
    char name[WR_BUCKET_SHOWN_BYTES] = "", key[WR_BUCKET_SHOWN_BYTES];
    const bool epoch = found->known && found->epoch_us > 0;
    wr_text_show(name, sizeof name, (struct wr_text){found->name, found->name_bytes});
    wr_bucket_key_show((struct wr_text){job->key.bytes, job->key.length}, key);
    return json_pack(
        "{s:s, s:s, s:s, s:i, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I,"
        " s:I}",
        "limiter", job->limiter, "key", key, "redis_key", name, "group", (int)found->group,
        "groups_known", found->groups_known, "known", found->known, "full_after_us",
        number_or_null(is_told(found), found->behind_us), "level",
        found->has_limit && is_told(found) ? json_real(level_tokens(found)) : json_null(), "burst",
        number_or_null(found->has_limit, (int64_t)found->burst), "rate_tokens",
        number_or_null(found->has_limit, (int64_t)found->rate.tokens), "rate_period_ns",
        number_or_null(found->has_limit, (int64_t)found->rate.period_ns), "demand_per_s",
        epoch ? json_real(found->demand.per_s) : json_null(), "last_epoch_tokens",
        number_or_null(epoch, found->demand.last_epoch), "this_epoch_tokens",
        number_or_null(epoch, found->demand.this_epoch), "epoch_us",
        number_or_null(found->epoch_us > 0, found->epoch_us), "generation",
        number_or_null(found->known, found->record.generation), "kept_for_ms",
        number_or_null(found->known && found->life_ms >= 0, found->life_ms), "nodes",
        (json_int_t)found->nodes, "limiter_nodes", (json_int_t)found->limiter_nodes);
}

static bool write_json(FILE *out, const struct job *job, const struct found *found,
                       struct wr_fault *fault) {
    json_t *root = report_json(job, found);
    if (root == NULL) return wr_fault(fault, "the report cannot be made as JSON: no memory for it");
    const bool good = json_dumpf(root, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(root);
    return good || wr_fault(fault, "%.200s: it cannot be written", job->output);
}

static bool tell(const struct job *job, const struct found *found, struct wr_fault *fault) {
    struct wr_output *output;
    bool good = wr_output_open(&output, job->output, fault);
    if (good && !job->json) write_text(wr_output_file(output), job, found);
    if (good && job->json) good = write_json(wr_output_file(output), job, found, fault);
    good = good && wr_output_close(output, fault) && wr_output_publish(output, fault);
    wr_output_destroy(output);
    return good;
}

int wr_cmd_peek(int argc, char **argv) {
    struct job job = {.url_text = WR_REDIS_URL_USUAL, .prefix = "weir:", .output = "-"};
    struct found found = {.group = 0};
    struct wr_fault fault = {""};
    const int code = read_arguments(&job, argc, argv);
    if (code >= 0) return code;
    if (ask(&job, &found, &fault) && tell(&job, &found, &fault)) return WR_EXIT_FINE;
    fprintf(stderr, "weir peek: %s\n", fault.text);
    return WR_EXIT_TROUBLE;
}
