// demo_report_json.c - the same as JSON, with the run over time.
#include <jansson.h>

#include "demo_report.h"
#include "json_list.h"

#define TIMELINE_SLOTS 5 // 100 ms

static json_t *number(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *processes(const struct wr_demo_run *run) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < run->options->processes; i++) {
        json_t *one = json_pack("{s:I, s:o, s:o, s:b}", "process", (json_int_t)i, "asked",
                                number(wr_demo_board_asked(run->board, i)), "granted",
                                number(wr_demo_board_granted(run->board, i)), "killed",
                                run->killed_ns[i] != 0);
        for (int k = 0; k < WR_DEMO_FIGURE_COUNT; k++)
            wr_json_set(
                &one, wr_demo_figure_word((enum wr_demo_figure)k),
                number(wr_demo_board_figure(run->board, i, (enum wr_demo_figure)k)));
        wr_json_append(&list, one);
    }
    return list;
}

static json_t *terms(const struct wr_demo_bound *b) {
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "blind", b->blind, "others",
                     b->others, "exported", b->exported, "usual", b->usual, "forgiven", b->forgiven,
                     "outage", b->outage, "emptied", b->emptied, "killed", b->killed);
}

static json_t *keys(const struct wr_demo_run *run, const struct wr_demo_verdict *v) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < run->options->keys; i++) {
        const struct wr_demo_key *key = &v->keys[i];
        wr_json_append(
            &list, json_pack("{s:I, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:o}", "key", (json_int_t)i,
                             "asked", number(key->asked), "granted", number(key->granted), "excess",
                             key->excess, "worst_window_excess", key->worst, "worst_from_s",
                             key->worst_from_s, "worst_to_s", key->worst_to_s, "bound",
                             key->bound.all, "bound_terms", terms(&key->bound)));
    }
    return list;
}

static json_t *faults(const struct wr_demo_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->options->fault_count; i++) {
        char text[WR_UNIT_TEXT * 2];
        wr_demo_fault_text(&run->options->faults[i], text);
        wr_json_append(&list,
                       json_pack("{s:s, s:b}", "fault", text, "done", run->fault_done[i]));
    }
    return list;
}

static void add_slots(const struct wr_demo_run *run, size_t from, uint64_t *asked,
                      uint64_t *granted) {
    for (uint32_t i = 0; i < run->options->processes; i++)
        for (uint32_t key = 0; key < run->options->keys; key++)
            for (size_t slot = from; slot < from + TIMELINE_SLOTS; slot++) {
                const struct wr_demo_slot s = wr_demo_board_slot(run->board, i, key, slot);
                *asked += s.asked;
                *granted += s.granted;
            }
}

// Each 100 ms: what was asked and granted in it.
static json_t *timeline(const struct wr_demo_run *run) {
    json_t *rows = json_array();
    const size_t slots = (size_t)(run->elapsed_ns / WR_DEMO_SLOT_NS);
    for (size_t from = 0; from + TIMELINE_SLOTS <= slots; from += TIMELINE_SLOTS) {
        uint64_t asked = 0, granted = 0;
        add_slots(run, from, &asked, &granted);
        wr_json_append(
            &rows, json_pack("{s:f, s:o, s:o}", "to_s",
                             (double)(from + TIMELINE_SLOTS) * (double)WR_DEMO_SLOT_NS / 1e9,
                             "asked", number(asked), "granted", number(granted)));
    }
    return rows;
}

static json_t *limit(const struct wr_demo_options *o) {
    char rate[WR_UNIT_TEXT];
    wr_rate_text(&o->rate, rate);
    return json_pack("{s:I, s:s, s:f, s:I, s:I, s:f, s:s, s:I, s:I}", "processes",
                     (json_int_t)o->processes, "rate", rate, "rate_per_s", wr_demo_rate_per_s(o),
                     "burst", (json_int_t)o->burst, "keys", (json_int_t)o->keys, "demand",
                     o->demand, "pattern", wr_demo_pattern_word(o->pattern), "interval_ns",
                     (json_int_t)o->interval_ns, "seed", (json_int_t)o->seed);
}

bool wr_demo_report_write_json(FILE *out, const struct wr_demo_run *run,
                               const struct wr_demo_verdict *v) {
    const struct wr_demo_key *key = &v->keys[v->key];
    json_t *root = json_pack(
        "{s:o, s:s, s:b, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:f, s:f, s:b, s:o, s:o, "
        "s:o, "
        "s:o}",
        "options", limit(run->options), "prefix", run->prefix, "interrupted", run->cut_short,
        "asked", number(v->asked), "granted", number(v->granted), "elapsed_s", v->elapsed_s,
        "allowed", v->allowed, "excess", v->excess, "percent", v->percent, "worst_window_excess",
        key->worst, "bound", key->bound.all, "bound_terms", terms(&key->bound), "gap_s", v->gap_s,
        "rtt_s", v->rtt_s, "within_bound", v->within, "faults", faults(run), "processes",
        processes(run), "keys", keys(run, v), "timeline", timeline(run));
    const bool good =
        root != NULL && json_dumpf(root, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(root);
    return good;
}
