"""The tables of bench/compare: as text, for README, as data, and drawn."""
import json
import os
import subprocess

import compare_targets as targets
from compare_targets import Spread, figure

# Contender: how it is called, the first and the last part of its rows' names.
CONTENDERS = [
    ("weir", "take", ""),
    ("weir, with an answer", "take", "/answer"),
    ("weir, integer keys", "take", "/id"),
    ("weir, key hashed before", "take", "/prepared"),
    ("weir, batches of 32", "take", "/batch:32"),
    ("weir, a lease", "take", "/lease"),
    ("weir, synced", "take", "/synced"),
    ("C, 64 mutexes, glibc", "mutex", ""),
    ("C, 64 mutexes, jemalloc", "mutex-jemalloc", ""),
    ("Go x/time/rate, one bucket", "go-single", ""),
    ("Go x/time/rate, sync.Map", "go-syncmap", ""),
    ("Go x/time/rate, 64 shards", "go-sharded", ""),
    ("Redis script, a call each", "redis", ""),
    ("Redis script, pipelined by 64", "redis", "/pipelined:64"),
]

CAPTION = ("Nanoseconds of one thread for one decision, look-up of the key included (Go's one "
           "bucket has none): the median of the rounds and its quartiles.")


class Report:
    def __init__(self, options, machine, results):
        self.options = options
        self.machine = machine
        self.results = results
        self.many = 2 if 2 in options.thread_list else options.thread_list[-1]
        self.verdicts = targets.judge_all(results, options.small, options.large)

    # ---- cells ---------------------------------------------------------------------------------

    def cases(self):
        small, large, many = self.options.small, self.options.large, self.many
        return [("granted", "hot/granted", 1), ("denied", "hot/denied", 1),
                (f"granted, {many} threads", "hot/granted", many),
                (f"denied, {many} threads", "hot/denied", many),
                (f"{small} keys", f"keys:{small}/uniform", 1),
                (f"{small} keys, {many} threads", f"keys:{small}/uniform", many),
                (f"{large} keys", f"keys:{large}/uniform", 1)]

    def values(self, contender, case, threads):
        _, first, last = contender
        return self.results.all(f"{first}/{case}{last}/threads:{threads}")

    def bytes_a_key(self, contender):
        _, first, last = contender
        memory = self.results.memory
        if first == "take" and last == "":
            return memory.get("resident_bytes_a_key", {}).get("figure")
        if first == "mutex":
            return memory.get("mutex_resident_bytes_a_key", {}).get("figure")
        row = f"{first}/keys:{self.options.small}/uniform{last}/threads:1"
        found = self.results.all(row, "bytes_a_key")
        return Spread(found).median if found else None

    def side_by_side(self):
        """Lines of (contender, cells)."""
        for contender in CONTENDERS:
            cells = [self.values(contender, case, threads) for _, case, threads in self.cases()]
            if any(cells):
                size = self.bytes_a_key(contender)
                yield contender[0], [*(f"{Spread(values)}" if values else "–" for values in cells),
                                     "–" if size is None else figure(size)]

    def parts(self):
        """What a decision is made of, and memory."""
        small, large = self.options.small, self.options.large
        names = ["clock/ticks", "clock/fenced", "clock/library", "clock/gettime", "clock/counted",
                 "cas16/own", "cas16/shared", "hash/xxh3", f"miss/table:{small}/huge",
                 f"miss/table:{small}/pages:4k", f"miss/table:{small}/huge/independent",
                 f"miss/table:{large}/huge", f"miss/table:{large}/huge/independent",
                 f"take/never-seen/table:{small}/idle", f"take/never-seen/table:{small}/busy",
                 f"take/keys:{small}/zipf:0.99", f"mutex/keys:{small}/zipf:0.99"]
        for name in names:
            cells = [self.results.all(f"{name}/threads:{threads}") for threads in (1, self.many)]
            if any(cells):
                yield name, [f"{Spread(values)}" if values else "–" for values in cells]

    def scaling(self):
        """Millions of decisions a second of all threads together, for each thread count."""
        small = self.options.small
        for label, case, last in [("one hot key, granted", "hot/granted", ""),
                                  ("one hot key, denied", "hot/denied", ""),
                                  ("one hot key, a lease", "hot/granted", "/lease"),
                                  (f"{small} keys", f"keys:{small}/uniform", ""),
                                  (f"{small} keys, batches of 32", f"keys:{small}/uniform",
                                   "/batch:32")]:
            cells = []
            for threads in self.options.thread_list:
                found = self.results.all(f"take/{case}{last}/threads:{threads}")
                cells.append(figure(Spread([1000 * threads / ns for ns in found]).median)
                             if found else "–")
            if cells != ["–"] * len(cells):
                yield label, cells

    # ---- tables --------------------------------------------------------------------------------

    def tables(self):
        """Title, caption, header and lines of each table."""
        lines = []
        for verdict in self.verdicts:
            value, bound = verdict.get("figure"), verdict.get("bound")
            lines.append([verdict["case"], verdict["target"],
                          "–" if value is None else
                          f"{value} {verdict['unit']}",
                          "–" if bound is None else figure(bound), verdict["verdict"]])
        yield "Targets", "", ["case", "target", "measured", "bound", "verdict"], lines
        yield ("Side by side", CAPTION, ["", *(title for title, _, _ in self.cases()),
                                         "bytes a key"],
               [[name, *cells] for name, cells in self.side_by_side()])
        yield ("What a decision is made of", "Nanoseconds of one thread.",
               ["row", "1 thread", f"{self.many} threads"],
               [[name, *cells] for name, cells in self.parts()])
        yield ("Threads", "Millions of decisions a second, all threads together.",
               ["", *(f"{threads}" for threads in self.options.thread_list)],
               [[name, *cells] for name, cells in self.scaling()])

    def heading(self):
        machine = self.machine
        words = [f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}",
                 machine["date"], f"commit {machine['commit']}",
                 f"{self.options.rounds} rounds, seed {self.options.seed}",
                 f"load at the start {machine['load_at_start']:.2f}"]
        return "; ".join(words) + "."

    def warnings(self):
        if self.options.quick:
            yield "Quick: this shows that everything runs. The figures mean nothing."
        load = self.machine["load_at_start"]
        if load > 0.3:
            yield f"The machine was not quiet: load {load:.2f} at the start."
        for rival, why in self.results.left_out.items():
            yield f"Left out: {rival} ({why})."
        for trouble in self.results.troubles:
            yield f"Failed: {trouble}."

    def text(self):
        out = [self.heading(), *self.warnings()]
        for title, caption, header, lines in self.tables():
            out += ["", title, *([caption] if caption else []), *aligned([header, *lines])]
        return "\n".join(out)

    def markdown(self):
        out = [self.heading(), *(f"\n{warning}" for warning in self.warnings())]
        for title, caption, header, lines in self.tables():
            out += ["", f"**{title}.** {caption}".strip(), "", "| " + " | ".join(header) + " |",
                    "|---" * len(header) + "|", *("| " + " | ".join(line) + " |" for line in lines)]
        return "\n".join(out) + "\n"

    def data(self):
        rows = {name: {"ns": [row["ns"] for row in found.values() if "ns" in row],
                       "more": [more(row) for row in found.values()]}
                for name, found in sorted(self.results.rows.items())}
        verdicts = [{**verdict, "figure": vars(verdict["figure"]) if "figure" in verdict else None}
                    for verdict in self.verdicts]
        return {"machine": self.machine, "rounds": self.options.rounds, "seed": self.options.seed,
                "quick": self.options.quick, "targets": verdicts, "memory": self.results.memory,
                "left_out": self.results.left_out, "troubles": self.results.troubles,
                "rows": rows}

    # ---- files ---------------------------------------------------------------------------------

    def write(self):
        self.put("compare.txt", self.text() + "\n")
        self.put("compare.md", self.markdown())
        self.put("compare.json", json.dumps(self.data(), indent=1) + "\n")
        if "plot" not in self.results.left_out:
            self.plot()
        print(f"\nwritten to {self.options.out}")

    def put(self, name, text):
        with open(os.path.join(self.options.out, name), "w", encoding="utf-8") as file:
            file.write(text)

    def plot(self):
        """Bars on a logarithmic scale: each contender, in each case with one thread."""
        cases = [case for case in self.cases() if case[2] == 1]
        lines = ["contender\t" + "\t".join(title for title, _, _ in cases)]
        for contender in CONTENDERS:
            cells = [self.values(contender, case, threads) for _, case, threads in cases]
            if any(cells):
                lines.append(contender[0] + "\t" + "\t".join(
                    f"{Spread(values).median:.2f}" if values else "?" for values in cells))
        self.put("compare.dat", "\n".join(lines) + "\n")
        self.put("compare.gp", PLOT.format(count=len(cases), machine=self.machine["cpu"]))
        done = subprocess.run(["gnuplot", "compare.gp"], cwd=self.options.out,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.results.troubles.append(f"gnuplot: {done.stderr.strip()}")


PLOT = """\
set terminal svg size 1100,520 dynamic background rgb 'white'
set output 'compare.svg'
set title "Nanoseconds a decision, one thread; less is better ({machine})" noenhanced
set datafile separator "\\t"
set datafile missing "?"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set boxwidth 0.9
set logscale y
set yrange [1:*]
set ylabel "ns"
set grid ytics
set key top left
set rmargin 14
set xtics rotate by -30 noenhanced
plot for [i = 2 : {count} + 1] 'compare.dat' using i:xtic(1) title columnheader(i)
"""


def more(row):
    """What a row carries besides its time: the numbers that its program put there."""
    known = ("asked", "granted", "bound", "bytes_a_key", "stored_keys", "rss_before_mib",
             "rss_after_mib", "huge_mib", "lost")
    return {name: row[name] for name in known if name in row}


def aligned(lines):
    """Columns as wide as their widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
            for line in lines]
