"""What was asked for, and whether it was reached.

A figure and its bound are taken from rows of the same rounds, and compared by their medians.
"""
import os
import re
import statistics


class Missing(Exception):
    """A row that no run brought."""


class Results:
    """Rows by name: for each round what was measured."""

    def __init__(self):
        self.rows = {}
        self.memory = {}
        self.left_out = {}
        self.troubles = []

    def add(self, number, rows):
        for row in rows:
            self.rows.setdefault(row["name"], {})[number] = row

    def each(self, formula):
        """The formula's value in every round that has all rows it needs. The formula is given a
        function from a row's name to its nanoseconds."""
        values, lacking = [], None
        rounds = {number for row in self.rows.values() for number in row}
        for number in sorted(rounds):
            try:
                values.append(formula(lambda name: self.field(name, number, "ns")))
            except Missing as missing:
                lacking = missing
        if not values:
            raise lacking or Missing("no rounds")
        return values

    def field(self, name, number, field):
        try:
            return self.rows[name][number][field]
        except KeyError:
            raise Missing(name) from None

    def all(self, name, field="ns"):
        """A field of a row in every round that has it; empty where there is none."""
        return [row[field] for row in self.rows.get(name, {}).values() if field in row]


class Spread:
    """A median with its quartiles."""

    def __init__(self, values):
        self.median = statistics.median(values)
        self.low = self.high = self.median
        if len(values) > 1:
            self.low, _, self.high = statistics.quantiles(values, n=4, method="inclusive")
        self.count = len(values)

    def __format__(self, _):
        if self.count == 1:
            return figure(self.median)
        return f"{figure(self.median)} [{figure(self.low)} – {figure(self.high)}]"


def figure(value):
    """Three digits, and commas from a thousand on."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else \
        f"{value:.2f}"


class Target:
    def __init__(self, case, words, value, bound, unit, at_least=False):
        self.case = case
        self.words = words
        self.value = value
        self.bound = bound if callable(bound) else lambda ns: bound
        self.unit = unit
        self.at_least = at_least


def best(ns, *names):
    """The fastest of the rows that there are."""
    found = []
    for name in names:
        try:
            found.append(ns(name))
        except Missing as missing:
            lacking = missing
    if not found:
        raise lacking
    return min(found)


def timed(small, large):
    """The targets that are made of rows."""
    one, two = "/threads:1", "/threads:2"
    keys = f"take/keys:{small}/uniform"
    mutex = [f"{name}/keys:{small}/uniform{one}" for name in ("mutex", "mutex-jemalloc")]
    go = [f"{name}/keys:{small}/uniform{one}" for name in ("go-syncmap", "go-sharded")]

    def scaling(name):
        return lambda ns: 2 * ns(name + one) / ns(name + two)

    def clock(ns):
        return ns("clock/ticks" + one) + 7

    def miss(ns):
        return 1.25 * ns(f"miss/table:{small}/huge{one}") + 25

    return [
        Target("one hot key, granted, 1 thread", "at most the clock row + 7 ns",
               lambda ns: ns("take/hot/granted" + one), clock, "ns"),
        Target("one hot key, denied, 1 thread", "at most the clock row + 7 ns",
               lambda ns: ns("take/hot/denied" + one), clock, "ns"),
        Target("one hot key, denied, 2 threads", "at least 1.9 × one thread",
               scaling("take/hot/denied"), 1.9, "×", True),
        Target("one hot key through a lease", "at most 4 ns an ask",
               lambda ns: ns("take/hot/granted/lease" + one), 4, "ns"),
        Target("a lease, 2 threads", "at least 1.9 × one thread",
               scaling("take/hot/granted/lease"), 1.9, "×", True),
        Target(f"{small} string keys uniform, 1 thread",
               "at most 1.25 × the dependent miss of that size + 25 ns",
               lambda ns: ns(keys + one), miss, "ns"),
        Target(f"{small} string keys, batches of 32", "at most 35 ns",
               lambda ns: ns(keys + "/batch:32" + one), 35, "ns"),
        Target(f"{large} string keys, batches of 32", "at most 120 ns",
               lambda ns: ns(f"take/keys:{large}/uniform/batch:32{one}"), 120, "ns"),
        Target(f"{small} keys, 2 threads", "at least 1.8 × one thread", scaling(keys), 1.8, "×",
               True),
        Target(f"never-seen keys over a {small} table, idle", "at most 2 × the found-key time",
               lambda ns: ns(f"take/never-seen/table:{small}/idle{one}"),
               lambda ns: 2 * ns(keys + one), "ns"),
        Target(f"never-seen keys over a {small} table, all busy",
               "at most 2 × the found-key time",
               lambda ns: ns(f"take/never-seen/table:{small}/busy{one}"),
               lambda ns: 2 * ns(keys + one), "ns"),
        Target("synced: one hot key, granted, 1 thread", "at most 5 ns more than alone",
               lambda ns: ns("take/hot/granted/synced" + one) - ns("take/hot/granted" + one), 5,
               "ns"),
        Target("synced: one hot key, denied, 1 thread", "at most 5 ns more than alone",
               lambda ns: ns("take/hot/denied/synced" + one) - ns("take/hot/denied" + one), 5, "ns"),
        Target("synced: one hot key, denied, 2 threads", "at least 1.9 × one thread",
               scaling("take/hot/denied/synced"), 1.9, "×", True),
        Target(f"synced: {small} keys, 1 thread", "at most 1.1 × the same alone",
               lambda ns: ns(keys + "/synced" + one) / ns(keys + one), 1.1, "×"),
        Target("counting", "at most 2 ns a decision",
               lambda ns: ns("clock/counted" + one) - ns("clock/library" + one), 2, "ns"),
        Target(f"against the mutex baseline, {small} keys, 1 thread", "at least 2.5 ×",
               lambda ns: best(ns, *mutex) / ns(keys + one), 2.5, "×", True),
        Target("the same in batches of 32", "at least 14 ×",
               lambda ns: best(ns, *mutex) / ns(keys + "/batch:32" + one), 14, "×", True),
        Target(f"against Go, {small} keys, 1 thread", "at least 6 ×",
               lambda ns: best(ns, *go) / ns(keys + one), 6, "×", True),
        Target("against one Redis script call, one hot key", "at least 1,000 ×",
               lambda ns: ns("redis/hot/granted" + one) / ns("take/hot/granted" + one), 1000, "×",
               True),
    ]


# Names of memory.c's figures, and what they are called in the table.
MEMORY = [
    ("resident_bytes", "resident memory over an empty process",
     "32 bytes × declared keys + the fixed part + 2 MiB where huge pages are given"),
    ("fixed_part_bytes", "the fixed part", "at most 64 KiB and 8 KiB a shard"),
    ("no_room_ppm", "keys that find no room, all of the capacity busy", "at most 1 in 50,000"),
    ("churn_grown_bytes", "resident memory over never-seen keys", "flat"),
    ("churn_mallocs", "allocations over never-seen keys", "none"),
]


def reason(results, row):
    """Why a row is not there."""
    header = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "include",
                          "weir.h")
    with open(header, encoding="utf-8") as file:
        text = file.read()
    for part, call in (("/batch:", "batch"), ("/lease", "lease")):
        if part in row and not re.search(rf"\bweir_\w*{call}\w*\(", text):
            return f"not built: weir.h has no {call} yet"
    for rival, why in results.left_out.items():
        if row.startswith(rival):
            return f"left out: {why}"
    return f"not measured: no row {row}"


def judge(results, target):
    """One line of the table: case, words, figure, bound, verdict."""
    line = {"case": target.case, "target": target.words, "unit": target.unit}
    try:
        value = Spread(results.each(target.value))
        bound = Spread(results.each(target.bound))
    except Missing as missing:
        return {**line, "verdict": reason(results, str(missing))}
    passed = value.median >= bound.median if target.at_least else value.median <= bound.median
    return {**line, "figure": value, "bound": bound.median,
            "verdict": "pass" if passed else "miss"}


def judge_memory(results):
    for name, case, words in MEMORY:
        found = results.memory.get(name)
        line = {"case": case, "target": words, "unit": "bytes"}
        if found is None:
            yield {**line, "verdict": "not measured"}
            continue
        yield {**line, "unit": found["unit"], "figure": Spread([found["figure"]]),
               "bound": found["bound"], "verdict": found["verdict"]}


def overgrants(results, who):
    """Tokens over the bound, as a share of it, in every round."""
    return [max(0, row["granted"] - row["bound"]) / row["bound"]
            for row in results.rows.get(f"overgrant/{who}", {}).values()]


def judge_overgrant(results):
    line = {"case": "over-grant on 2 threads, the load that Go fails", "unit": "% at worst",
            "target": "0"}
    ours, theirs = overgrants(results, "take"), overgrants(results, "go")
    if not ours:
        return {**line, "verdict": "not measured"}
    if theirs:
        line["case"] += f" (Go: {100 * statistics.median(theirs):.2f} %, at worst " \
                        f"{100 * max(theirs):.2f} %)"
    return {**line, "figure": Spread([100 * max(ours)]), "bound": 0,
            "verdict": "pass" if max(ours) == 0 else "miss"}


def judge_all(results, small, large):
    return [*(judge(results, target) for target in timed(small, large)), *judge_memory(results),
            judge_overgrant(results)]
