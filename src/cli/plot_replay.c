// plot_replay.c - the commands and data for gnuplot.
#include "plot_replay.h"

#include <inttypes.h>

#define STEPS_MAX 400
#define KEYS_MAX 12
#define KEY_BYTES 44

static void write_steps(FILE *out, const struct wr_summary *s) {
    const struct wr_timeline *timeline = s->timeline;
    double width_s = (double)wr_timeline_width_ns(timeline) / 1e9;
    double base_s = (double)s->base_ns / 1e9;
    fputs("$steps << END\n", out);
    for (size_t i = 0; i < timeline->used; i++)
        fprintf(out, "%.9f %.6g %.6g\n", base_s + ((double)i + 0.5) * width_s,
                (double)timeline->steps[i].granted / width_s,
                (double)timeline->steps[i].denied / width_s);
    fputs("END\n", out);
}

static uint32_t write_keys(FILE *out, const struct wr_summary *s) {
    uint32_t count = s->top_count < KEYS_MAX ? s->top_count : KEYS_MAX;
    fputs("$keys << END\n", out);
    for (uint32_t i = 0; i < count; i++) {
        const struct wr_key_count *key = s->top[i];
        fprintf(out, "%" PRIu64 " %" PRIu64 " ", key->denied, key->granted);
        wr_plot_write_text(out, (struct wr_text){key->name, key->name_bytes}, KEY_BYTES);
        fputc('\n', out);
    }
    fputs("END\n", out);
    return count;
}

static void write_title(FILE *out, const struct wr_summary *s) {
    char rate[WR_UNIT_TEXT], title[512];
    wr_rate_text(&s->options.rate, rate);
    if (s->options.rate.tokens == WEIR_UNLIMITED_TOKENS)
        snprintf(title, sizeof(title), "%.150s: %s by %.50s", s->file_names[0], rate, s->key);
    else
        snprintf(title, sizeof(title), "%.120s: %s, burst %" PRIu64 ", by %.50s", s->file_names[0],
                 rate, s->options.burst, s->key);
    fputs("set title ", out);
    wr_plot_write_text(out, wr_text_of(title), 200);
    fputc('\n', out);
}

// The labels of the time axis are as fine as the span asks for.
static const char *time_format(const struct wr_summary *s) {
    uint64_t span_ns = (uint64_t)(s->newest_ns - s->base_ns);
    if (span_ns < 10 * WEIR_SECOND) return "%H:%M:%.3S";
    if (span_ns < WEIR_HOUR) return "%H:%M:%S";
    return span_ns < 2 * WEIR_DAY ? "%d %b\\n%H:%M" : "%d %b\\n%Y";
}

static void write_timeline(FILE *out, const struct wr_summary *s) {
    write_title(out, s);
    fprintf(out,
            "set xdata time\nset autoscale xfix\nset timefmt '%%s'\nset format x \"%s\"\n"
            "set ylabel 'lines a second'\nset yrange [0:*]\nset grid ytics lc rgb '#dddddd'\n"
            "set key top left\nset style fill solid 0.85 noborder\nset boxwidth %.9f absolute\n"
            "plot $steps using 1:($2+$3) with boxes lc rgb '#d1495b' title 'denied', "
            "$steps using 1:2 with boxes lc rgb '#4f7cac' title 'granted'\n",
            time_format(s), (double)wr_timeline_width_ns(s->timeline) / 1e9);
}

static void write_bars(FILE *out) {
    fputs(
        "unset title\nset xdata\nset format x '%.0f'\nset xlabel 'lines of the keys most denied'\n"
        "unset ylabel\nset yrange [*:*] reverse\nset xrange [0:*]\nset offsets 0,0,0.6,0.6\n"
        "unset grid\nset grid xtics lc rgb '#dddddd'\nset key bottom right\n"
        "plot $keys using ($1+$2):0:(0.0):($1+$2):($0-0.35):($0+0.35):ytic(3) with boxxyerror "
        "lc rgb '#4f7cac' title 'granted', "
        "$keys using 1:0:(0.0):1:($0-0.35):($0+0.35) with boxxyerror lc rgb '#d1495b' "
        "title 'denied'\n",
        out);
}

void wr_plot_replay(struct wr_plot *plot, struct wr_summary *summary) {
    FILE *out = wr_plot_script(plot);
    wr_timeline_fit(summary->timeline, STEPS_MAX);
    write_steps(out, summary);
    uint32_t keys = write_keys(out, summary);
    if (keys > 0) fputs("set multiplot layout 2,1\n", out);
    write_timeline(out, summary);
    if (keys == 0) return;
    write_bars(out);
    fputs("unset multiplot\n", out);
}
