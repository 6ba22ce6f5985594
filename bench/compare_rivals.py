"""What bench/compare runs: installs and builds it, starts Redis, and reads what each run prints."""
import contextlib
import glob
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-compare")
GO_PATH = "/usr/share/gocode"

# Package of Debian: what shows that it is there. The first group is needed, the rest are rivals.
NEEDED = {
    "gcc": "gcc", "g++": "g++", "meson": "meson", "ninja-build": "ninja",
    "libck-dev": "/usr/include/ck_pr.h", "libxxhash-dev": "/usr/include/xxhash.h",
    "libbenchmark-dev": "/usr/include/benchmark/benchmark.h",
}
RIVALS = {
    "libhiredis-dev": "/usr/include/hiredis/hiredis.h", "redis-server": "redis-server",
    "golang-go": "go", "golang-golang-x-time-dev": GO_PATH + "/src/golang.org/x/time/rate",
    "libjemalloc2": "/usr/lib/*/libjemalloc.so.2", "gnuplot-nox": "gnuplot",
}


class Trouble(Exception):
    """Something could not be done, in words for the user."""


def is_there(sign):
    return bool(glob.glob(sign)) if sign.startswith("/") else shutil.which(sign) is not None


def missing(packages):
    return [package for package, sign in packages.items() if not is_there(sign)]


def install(packages):
    """Tries to install packages; what is missing afterwards is seen by the caller."""
    if not packages or shutil.which("apt-get") is None:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0:
        command = ["sudo", "-n", *command]
    print("installing " + " ".join(packages))
    with contextlib.suppress(OSError):
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def call(command, environment=None, folder=None, limit_s=3600):
    """Runs a command and returns what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder,
                              env={**os.environ, **(environment or {})}, timeout=limit_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise Trouble(f"{' '.join(command)} ended with {done.returncode}: {' / '.join(tail)}")
    return done.stdout


def cpu_name():
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def commit():
    with contextlib.suppress(Trouble):
        name = call(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).strip()
        changed = call(["git", "-C", ROOT, "status", "--porcelain"]).strip()
        return name + (" with changes" if changed else "")
    return "unknown"


def machine():
    return {"cpu": cpu_name(), "cores": os.cpu_count(), "kernel": platform.release(),
            "date": time.strftime("%Y-%m-%d %H:%M %Z"), "commit": commit(),
            "load_at_start": os.getloadavg()[0]}


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Contender:
    """One process of a round. `run` returns rows: dicts with a name and what was measured."""

    def __init__(self, name, run, every=1):
        self.name = name
        self.run = run
        self.every = every


class Bench:
    """Everything built and started. left_out says which rivals are not, and why; troubles are rows
    that did not measure what they are about."""

    def __init__(self, options, troubles):
        self.options = options
        self.troubles = troubles
        self.left_out = {}
        self.folder = tempfile.mkdtemp(prefix="weir-compare-")
        self.redis = None
        self.programs = options.programs
        self.go = None

    def __enter__(self):
        try:
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.redis is not None:
            self.redis.terminate()
            self.redis.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self):
        needed = NEEDED if self.programs is None else {}
        if not self.options.no_install:
            install(missing({**needed, **RIVALS}))
        lacking = missing(needed)
        if lacking:
            raise Trouble("cannot build without " + " ".join(lacking) + "; install these packages")
        if self.programs is None:
            self.build()
        self.leave_out("mutex-jemalloc", "libjemalloc2")
        self.leave_out("plot", "gnuplot-nox")
        if self.leave_out("go", "golang-go", "golang-golang-x-time-dev"):
            self.build_go()
        if self.leave_out("redis", "redis-server", "libhiredis-dev"):
            self.start_redis()

    def leave_out(self, rival, *packages):
        """True if all that a rival needs is there; notes it otherwise."""
        lacking = missing({package: RIVALS[package] for package in packages})
        if lacking:
            self.left_out[rival] = "not installed: " + " ".join(lacking)
        return not lacking

    def build(self):
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            call(["meson", "setup", BUILD, ROOT, "--buildtype=release", "-Dbench=true",
                  "-Dtests=false"])
        names = [f"bench/{name}" for name in ("bench", "memory", "overgrant")]
        call(["ninja", "-C", BUILD, *names])
        self.programs = os.path.join(BUILD, "bench")

    def build_go(self):
        self.go = os.path.join(self.folder, "rival")
        environment = {"GO111MODULE": "off", "GOPATH": GO_PATH, "GOFLAGS": "", "GOPROXY": "off",
                       "GOCACHE": os.path.join(self.folder, "go-cache")}
        try:
            call(["go", "build", "-o", self.go, "rival.go"], environment,
                 os.path.join(ROOT, "bench", "go"))
        except Trouble as trouble:
            self.left_out["go"] = f"did not build: {trouble}"
            self.go = None

    def start_redis(self):
        self.socket = os.path.join(self.folder, "redis.sock")
        self.redis = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--daemonize", "no", "--dir", self.folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if os.path.exists(self.socket) or self.redis.poll() is not None:
                break
            time.sleep(0.05)
        if not os.path.exists(self.socket):
            self.left_out["redis"] = "redis-server did not start"

    # ---- what runs -----------------------------------------------------------------------------

    def program(self, name):
        return os.path.join(self.programs, name)

    def bench(self, keys, pattern, environment=None, more=()):
        """Rows of the program `bench` whose names match."""
        path = os.path.join(self.folder, "bench.json")
        command = [self.program("bench"), *(["--quick"] if self.options.quick else []),
                   "--keys", keys, "--threads", self.options.threads, "--filter", pattern,
                   "--json", path, "--benchmark_repetitions=1", *more]
        call(command, environment)
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["benchmarks"]
        self.troubles += [f"{row['name']}: {row['error_message']}" for row in rows
                          if row.get("error_occurred")]
        return [{**row, "ns": row["real_time"] * row["threads"]} for row in rows
                if not row.get("error_occurred")]

    def small(self):
        keys = self.options.small
        return self.bench(keys, r"^(clock|cas16|hash|take|mutex)/|^miss/table:.*/(huge|pages:4k)/")

    def large(self):
        keys = self.options.large
        return self.bench(keys, r"^(take|mutex)/keys:.*/uniform|^miss/table:.*/huge/")

    def jemalloc(self):
        library = glob.glob(RIVALS["libjemalloc2"])[0]
        rows = self.bench(self.options.small, "^mutex/(hot|keys)", {"LD_PRELOAD": library})
        return [{**row, "name": row["name"].replace("mutex/", "mutex-jemalloc/", 1)}
                for row in rows]

    def run_go(self, *arguments):
        seconds = "0.02" if self.options.quick else "0.3"
        return json_lines(call([self.go, "-threads", self.options.threads, "-seconds", seconds,
                                *arguments]))

    def run_redis(self):
        return self.bench(self.options.small, "^redis/", more=["--redis", self.socket])

    def overgrant(self):
        path = os.path.join(self.folder, "overgrant.json")
        call([self.program("overgrant"), "--threads", "2", "--seconds", "1", "--json", path])
        with open(path, encoding="utf-8") as file:
            rows = json_lines(file.read())
        if self.go:
            rows += json_lines(call([self.go, "-rows", "overgrant", "-threads", "2", "-seconds",
                                     "1"]))
        return rows

    def contenders(self):
        every = 1 if self.options.quick else 3
        found = [Contender("weir and mutex", self.small),
                 Contender(f"weir and mutex, {self.options.large} keys", self.large, every),
                 Contender("over-grant", self.overgrant)]
        if "mutex-jemalloc" not in self.left_out:
            found.append(Contender("mutex with jemalloc", self.jemalloc))
        if self.go:
            small, large = self.options.small, self.options.large
            found.append(Contender(
                "go", lambda: self.run_go("-rows", "hot,keys", "-keys", small)))
            found.append(Contender(
                f"go, {large} keys", lambda: self.run_go("-rows", "keys", "-keys", large), every))
        if "redis" not in self.left_out:
            found.append(Contender("redis", self.run_redis))
        return found

    def memory(self):
        path = os.path.join(self.folder, "memory.json")
        size = ["--quick"] if self.options.quick else []
        call([self.program("memory"), *size, "--keys", self.options.small, "--json", path])
        with open(path, encoding="utf-8") as file:
            return json.load(file)
