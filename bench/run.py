#!/usr/bin/env python3
"""Runs every workload on Coppice and its peers (Erlang, CAF, std::future, Asio) and prints how they compare.

Each run of a workload is an operating system process of its own that prints
one line, "WORKLOAD VALUE". All take turns, round by round, so that a
machine that gets slower or faster meanwhile affects all of them alike. The
first round only warms up and is not counted. Medians are compared.

scripts/bench builds our program and then calls this.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ROOT / "build/release/bin/coppice_bench"
PEERS = ROOT / "bench/peers"
OUT = ROOT / "build/bench"
TIMEOUT_S = 60
MIN_ROUNDS = 5

# What the value of a workload is, and with it what "better" means. A growth is how
# many times longer the last part of a run takes than the first. A price is how many
# times longer an actor takes than a server. Both are compared with 1, not with peers.
RATE, TIME, BYTES, GROWTH, PRICE = "rate", "time", "bytes", "growth", "price"
OURS_ALONE = (GROWTH, PRICE)

PEER_NAMES = {"erlang": "Erlang", "caf": "CAF", "std": "std", "asio": "Asio"}


@dataclass(frozen=True)
class Workload:
    name: str
    kind: str
    unit: str
    must: float | None
    goal: float | None
    what: str
    peers: tuple[str, ...] = ("erlang", "caf")
    notes: dict[str, str] = field(default_factory=dict)  # footnotes to the figures of peers: {"erlang": text}


NOBODY = ()
THREADS = ("std", "asio")  # for workloads with a thread that is not part of a runtime
ERLANG = ("erlang",)  # for workloads that need a supervisor, which CAF does not have
SHORT_LISTS = "at its best: 100 supervisors of one child each, which keeps their lists of restarts short"
BY_HAND = "has no supervisor: a parent made by hand, with monitor and spawn"
AT_ITS_BEST = {"erlang": SHORT_LISTS, "caf": BY_HAND}
NO_RESUME = {"erlang": "can't go on after a failure: a restart is measured instead",
             "caf": "can't go on after a failure: a restart is measured instead"}

WORKLOADS = [
    Workload("pingpong", RATE, "M round trips/s", 8, 16, "one pair, 1,000,000 round trips"),
    Workload("pairs", RATE, "M msg/s", 10, 20, "1,000 pairs, 1,000 round trips each"),
    Workload("fanin8", RATE, "M msg/s", 2.5, 4.5, "8 senders, 5,000,000 messages, one receiver"),
    Workload("fanin100", RATE, "M msg/s", 2.5, 4.5, "100 senders, 5,000,000 messages, one receiver"),
    Workload("ring", RATE, "M hops/s", 6, 12, "503 processes, one token, 1,000,000 hops"),
    Workload("spawn", RATE, "k/s", 5, 10, "1,000,000 children, each sends one message and ends"),
    Workload("skynet", TIME, "ms", 12, 30, "a tree of fan-out 10 with 1,000,000 leaves"),
    Workload("call", RATE, "M calls/s", 8, 16, "one client, one server, 500,000 calls with a timeout"),
    Workload("call100", RATE, "M calls/s", None, None, "100 clients, one server, 1,000,000 calls"),
    Workload("callpairs", RATE, "M calls/s", None, None, "1,000 clients and servers, 1,000 calls each"),
    Workload("promise", RATE, "k/s", 1, 2, "a process asks a plain thread, which completes a promise: 100,000 times",
             peers=THREADS),
    Workload("promise64", RATE, "k/s", 1, 2, "the same with 64 promises outstanding, 1,000,000 times", peers=THREADS),
    Workload("timers", TIME, "ns/timer", 2, 5, "arming 1,000,000 timers of 0-5 s; ends when they are armed"),
    Workload("timer_fire", TIME, "CPU ms", None, None, "100,000 timers of 0-2 s, armed and delivered"),
    Workload("monitor", RATE, "M pairs/s", 2, 5, "1,000,000 times monitor and demonitor"),
    Workload("links", TIME, "ms", 2, 5, "a hub linked to 100,000 processes dies, an observer sees it"),
    Workload("mem_process_100k", BYTES, "bytes", 0.3, 0.15, "100,000 idle processes, bytes each"),
    Workload("mem_process_1m", BYTES, "bytes", 0.3, 0.15, "1,000,000 idle processes, bytes each"),
    Workload("mem_receiver_100k", BYTES, "bytes", 0.3, 0.15, "100,000 idle servers with state, bytes each"),
    Workload("mem_receiver_1m", BYTES, "bytes", 0.3, 0.15, "1,000,000 idle servers with state, bytes each"),
    Workload("restart_latency", TIME, "us", 4, 8, "crash of a child until its successor answers a call: median",
             notes=AT_ITS_BEST),
    Workload("restart_latency_p99", TIME, "us", 4, 8, "the same: 99th percentile", notes=AT_ITS_BEST),
    Workload("restarts", RATE, "k/s", 3, 5, "100 children crash as soon as they are up, 20,000 restarts",
             notes=AT_ITS_BEST),
    Workload("restarts_window", RATE, "k/s", 20, 40, "the same with one supervisor, all restarts in one window",
             peers=ERLANG),
    Workload("restarts_window_us", TIME, "us", 20, 40, "one child, 20,000 restarts in one window: median latency",
             peers=ERLANG),
    Workload("restarts_growth", GROWTH, "last/first", 1.2, 1.1, "the same: latency of the last 10 % to the first",
             peers=ERLANG),
    Workload("start_children", TIME, "ms", 5, 10, "a supervisor starts 100,000 children", peers=ERLANG),
    Workload("stop_children", TIME, "ms", 5, 10, "it stops them, in order", peers=ERLANG),
    Workload("one_for_all", TIME, "ms", 8, 15, "1,000 children: crash of one until all are up again",
             notes={"caf": BY_HAND}),
    Workload("server_call", RATE, "M calls/s", 8, 16, "one client, one supervised server, 500,000 calls"),
    Workload("server_call100", RATE, "M calls/s", 8, 16, "100 clients, one supervised server, 1,000,000 calls"),
    Workload("mem_supervised", BYTES, "bytes", 0.15, 0.08, "100,000 idle supervised servers, bytes each, all included",
             peers=ERLANG, notes={"erlang": "with servers as they are after their start"}),
    Workload("mem_supervised_min", BYTES, "bytes", None, None, "the same, with servers that are as small as possible",
             peers=ERLANG, notes={"erlang": "with hibernated servers, which wake up slower"}),
    Workload("actor_message", PRICE, "actor/server", 1.15, 1.05, "one of 100 messages, with a call after them",
             peers=NOBODY),
    Workload("actor_call", PRICE, "actor/server", 1.15, 1.05, "a call", peers=NOBODY),
    Workload("actor_pingpong", PRICE, "actor/server", 1.15, 1.05, "a message between two of a kind",
             peers=NOBODY),
    Workload("actor_resume", TIME, "us", 3, 5, "an actor throws and goes on, until it answers a request: median",
             notes=NO_RESUME),
    Workload("actor_restart", TIME, "us", 3, 5, "an actor throws and is restarted, until it answers a request",
             notes=AT_ITS_BEST),
    Workload("actor_resume_fail", TIME, "us", 3, 5, "as actor_resume, failing without an exception",
             notes=NO_RESUME),
    Workload("actor_restart_fail", TIME, "us", 3, 5, "as actor_restart, failing without an exception",
             notes=AT_ITS_BEST),
    Workload("mem_actor", BYTES, "bytes", None, None, "100,000 idle actors with state, bytes each", peers=NOBODY),
    Workload("mem_actor_child", BYTES, "bytes", None, None, "the same, children of one actor", peers=NOBODY),
]

# Emulator flags that make Erlang better at single workloads.
SMALL_HEAP = ["+hms", "12"]  # many processes that hardly use their first heap
NO_BUSY_WAIT = ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]
ERLANG_FLAGS = {
    "spawn": SMALL_HEAP,
    "skynet": SMALL_HEAP,
    "mem_process_100k": SMALL_HEAP,
    "mem_process_1m": SMALL_HEAP,
    # Schedulers spin a while before they sleep: good for latency, but five times
    # the CPU time here.
    "timer_fire": NO_BUSY_WAIT,
}


class RunFailed(Exception):
    """A program did not give a value; the text says why."""


# ------------------------------------------------------------------- programs


def ours_command(workload, program):
    return [str(program), workload, "--threads", "2"]


def erlang_command(workload):
    return ["erl", "+S", "2:2", "+P", "3000000", *ERLANG_FLAGS.get(workload, []), "-noinput",
            "-kernel", "logger_level", "none",  # a report of each crash would cost more than the restart
            "-pa", str(OUT), "-run", "peer_bench", "main", workload]


def caf_command(workload):
    return [str(OUT / "caf_bench"), workload]


def std_command(workload):
    return [str(OUT / "std_bench"), workload]


def asio_command(workload):
    return [str(OUT / "asio_bench"), workload]


COMMANDS = {"erlang": erlang_command, "caf": caf_command, "std": std_command, "asio": asio_command}


def asio_is_installed():
    test = "#if !__has_include(<asio.hpp>)\n#error missing\n#endif\n"
    return subprocess.run(["g++", "-E", "-x", "c++", "-"], input=test, text=True, capture_output=True).returncode == 0


def run_once(command, workload):
    """The value that one run of the command prints."""
    env = dict(os.environ, ERL_CRASH_DUMP_BYTES="0")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S,
                              env=env, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RunFailed(f"did not finish in {TIMEOUT_S} s") from None
    except OSError as e:
        raise RunFailed(f"cannot be run: {e.strerror}") from None
    if done.returncode != 0:
        raise RunFailed(f"ended with status {done.returncode}: {last_line(done.stderr)}")
    match = re.fullmatch(rf"{workload} (\S+)\s*", done.stdout)
    try:
        value = float(match.group(1)) if match else 0.0
    except ValueError:
        value = 0.0
    if not value > 0:
        raise RunFailed(f"printed {done.stdout.strip()!r} instead of '{workload} VALUE'")
    return value


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"


def build_peer(sources, target, command):
    """Builds a peer if its sources have changed. A peer that cannot be built has no program, and so no figures."""
    if target.exists() and all(target.stat().st_mtime > s.stat().st_mtime for s in sources):
        return
    target.unlink(missing_ok=True)
    print(f"building {target.relative_to(ROOT)}", file=sys.stderr)
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"bench: cannot build {target.name}: {e}", file=sys.stderr)


def build_peers():
    OUT.mkdir(parents=True, exist_ok=True)
    for source in sorted(PEERS.glob("erlang/*.erl")):
        build_peer([source], OUT / f"{source.stem}.beam", ["erlc", "-o", str(OUT), str(source)])
    caf = sorted(PEERS.glob("caf/*.cpp"))
    target = OUT / "caf_bench"
    build_peer([*caf, *PEERS.glob("caf/*.hpp")], target,
               ["g++", "-std=c++17", "-O2", "-DNDEBUG", "-o", str(target), *map(str, caf), "-lcaf_core", "-pthread"])
    for name in THREADS:
        if name == "asio" and not asio_is_installed():
            print("bench: Asio is not installed, so it has no figures", file=sys.stderr)
            continue
        source, target = PEERS / f"threads/{name}_bench.cpp", OUT / f"{name}_bench"
        build_peer([source, ROOT / "bench/foreign_thread.hpp"], target,
                   ["g++", "-std=c++20", "-O2", "-DNDEBUG", "-o", str(target), str(source), "-pthread"])


# ---------------------------------------------------------------- measurement


@dataclass
class Series:
    """The values of one program for a workload, over all rounds."""

    values: list = field(default_factory=list)
    failure: str | None = None

    @property
    def median(self):
        return None if self.failure or not self.values else statistics.median(self.values)


def measure(workload, rounds, warm_up, program):
    """Our series and those of the workload's peers, by name."""
    commands = {"ours": ours_command(workload.name, program)}
    commands |= {who: COMMANDS[who](workload.name) for who in workload.peers if who != "asio" or asio_is_installed()}
    series = {who: Series() for who in commands}
    for number in range(rounds + (1 if warm_up else 0)):
        for who, command in commands.items():
            # A program that has failed is not run again: a timeout in each round would take minutes.
            if series[who].failure:
                continue
            try:
                value = run_once(command, workload.name)
            except RunFailed as e:
                series[who].failure = str(e)
                continue
            if number > 0 or not warm_up:
                series[who].values.append(value)
    return series


def better_peer(kind, series):
    peers = [s for who, s in series.items() if who != "ours"]
    if any(s.failure for s in peers):
        return None  # the failed peer may be the better one
    values = [s.median for s in peers if s.median is not None]
    if not values:
        return None
    return max(values) if kind == RATE else min(values)


def ratio_of(kind, ours, peer):
    """How many times better ours is; for bytes, ours divided by the peer's; for growth and price, our own value."""
    if kind in OURS_ALONE:
        return ours
    if ours is None or peer is None:
        return None
    return peer / ours if kind == TIME else ours / peer


def reached(kind, ratio, wanted):
    return ratio <= wanted if kind == BYTES or kind in OURS_ALONE else ratio >= wanted


# --------------------------------------------------------------------- report


def number(x):
    """Rounded for the table, without an exponent."""
    if x is None:
        return "-"
    if x >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if x >= 10 else f"{x:.2f}" if x >= 1 else f"{x:.3f}"


def wanted_text(kind, ratio, wanted):
    if wanted is None:
        return ""
    sign = "<=" if kind == BYTES or kind in OURS_ALONE else ""
    mark = "" if ratio is None else " yes" if reached(kind, ratio, wanted) else " NO"
    return f"{sign}{wanted:g}{mark}"


def ratio_text(kind, ratio):
    if ratio is None:
        return "-"
    if kind in OURS_ALONE:
        return f"{ratio:.2f} +"
    return f"{ratio:.3f} *" if kind == BYTES else f"{ratio:.2f}x"


COLUMNS = [("workload", 19), ("unit", 15), ("ours", 9), ("Erlang", 9), ("CAF", 9), ("std", 7), ("Asio", 7),
           ("ratio", 8),
           ("ours min-max", 16), ("must", 10), ("goal", 10)]


def print_row(cells):
    padded = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, (_, w)) in enumerate(zip(cells, COLUMNS))]
    print("  ".join(padded).rstrip(), flush=True)


class Report:
    """Prints the table line by line and the footnotes at the end."""

    def __init__(self):
        self.notes = []

    def header(self):
        print_row([name for name, _ in COLUMNS])
        print_row(["-" * width for _, width in COLUMNS])

    def note(self, text):
        """The mark of a footnote, the same one for the same text."""
        if text not in self.notes:
            self.notes.append(text)
        return f"[{self.notes.index(text) + 1}]"

    def ours_cell(self, workload, series):
        if series.failure is None:
            return number(series.median)
        return "- " + self.note(f"{workload.name}, ours: {series.failure}")

    def peer_cell(self, workload, who, series):
        if who not in series:
            return "-"
        name = PEER_NAMES[who]
        if series[who].failure is not None:
            return "- " + self.note(f"{workload.name}, {name}: {series[who].failure}")
        text = number(series[who].median)
        remark = workload.notes.get(who)
        return text if remark is None else f"{text} {self.note(f'{name} {remark}')}"

    def row(self, workload, series, ratio):
        ours = series["ours"]
        spread = ""
        if ours.median is not None:
            spread = f"{number(min(ours.values))}-{number(max(ours.values))}"
        print_row([
            workload.name, workload.unit,
            self.ours_cell(workload, ours),
            *(self.peer_cell(workload, who, series) for who in PEER_NAMES),
            ratio_text(workload.kind, ratio), spread,
            wanted_text(workload.kind, ratio, workload.must),
            wanted_text(workload.kind, ratio, workload.goal),
        ])

    def footer(self):
        print()
        print("ratio: how many times better ours is than the better peer, by medians.")
        print("std:   std::promise and std::future, between two threads.")
        print("*      our bytes divided by the better peer's: lower is better.")
        print("+      ours alone: how many times longer the end of a run takes than its start, an actor than a server.")
        for i, text in enumerate(self.notes, 1):
            print(f"[{i}] {text}")


def output_of(command, pattern=r".*"):
    """The first match of the pattern in the output of a command, or 'unknown'."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    match = re.search(pattern, text)
    return match.group(0).strip() if match and match.group(0) else "unknown"


def cpu_model():
    match = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return match.group(1) if match else "unknown"


def caf_version():
    """From CAF's own header: 1706 stands for 0.17.6."""
    try:
        text = Path("/usr/include/caf/config.hpp").read_text()
    except OSError:
        return "unknown"
    match = re.search(r"#define CAF_VERSION (\d+)", text)
    if not match:
        return "unknown"
    n = int(match.group(1))
    return f"{n // 10000}.{n // 100 % 100}.{n % 100}"


def print_machine(rounds):
    otp = 'io:format("~s", [erlang:system_info(system_version)]), halt().'
    print(f"machine: {os.cpu_count()} cores, {cpu_model()}, {platform.system()} {platform.release()}")
    print(f"Erlang:  {output_of(['erl', '-noshell', '-eval', otp])}")
    print(f"CAF:     {caf_version()}, {output_of(['g++', '--version'])}, -O2")
    print(f"ours:    {output_of(['c++', '--version'])}, cmake preset release")
    print(f"rounds:  {rounds}, two scheduler threads each")
    print()


def json_entry(workload, series, ratio, rounds):
    return {
        "workload": workload.name, "unit": workload.unit,
        "ours": series["ours"].median,
        **{who: series[who].median if who in series else None for who in PEER_NAMES},
        "ratio": ratio, "rounds": rounds, "must": workload.must, "goal": workload.goal,
    }


# ----------------------------------------------------------------------- main


def parse_arguments():
    p = argparse.ArgumentParser(description="Compares Coppice with Erlang, CAF, std::future and Asio.")
    p.add_argument("--only", nargs="+", action="extend", default=[], metavar="NAME[,NAME...]",
                   help="only these workloads")
    p.add_argument("--json", metavar="FILE", help="also write the results there")
    p.add_argument("--rounds", type=int, metavar="N", help=f"rounds that count (default {MIN_ROUNDS})")
    p.add_argument("--quick", action="store_true", help="one round and no warm-up, for a first look")
    p.add_argument("--list", action="store_true", help="list the workloads and end")
    p.add_argument("--program", default=OURS, type=Path, help=f"our program (default {OURS})")
    args = p.parse_args()
    if args.rounds is None:
        args.rounds = 1 if args.quick else MIN_ROUNDS
    if args.rounds < (1 if args.quick else MIN_ROUNDS):
        p.error(f"--rounds must be at least {MIN_ROUNDS}, fewer only with --quick")
    args.workloads = chosen_workloads(p, args.only)
    return args


def chosen_workloads(parser, words):
    names = [n for word in words for n in word.split(",") if n]
    unknown = set(names) - {w.name for w in WORKLOADS}
    if unknown:
        parser.error(f"unknown workload: {', '.join(sorted(unknown))} (see --list)")
    return [w for w in WORKLOADS if not names or w.name in names]


def print_list():
    for w in WORKLOADS:
        wanted = "" if w.must is None else f"must {w.must:g}, goal {w.goal:g}"
        print(f"{w.name:19} {w.unit:16} {wanted:22} {w.what}")


def main():
    args = parse_arguments()
    if args.list:
        print_list()
        return 0
    if not args.program.exists():
        print(f"bench: our program is missing: {args.program}\n"
              "build it by: cmake --preset release && "
              "cmake --build --preset release --target coppice_bench", file=sys.stderr)
        return 2
    build_peers()
    print_machine(args.rounds)
    report, entries, failed = Report(), [], False
    report.header()
    for workload in args.workloads:
        series = measure(workload, args.rounds, not args.quick, args.program)
        ratio = ratio_of(workload.kind, series["ours"].median, better_peer(workload.kind, series))
        report.row(workload, series, ratio)
        entries.append(json_entry(workload, series, ratio, args.rounds))
        failed = failed or any(s.failure is not None for s in series.values())
    report.footer()
    if args.json:
        Path(args.json).write_text(json.dumps(entries, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
