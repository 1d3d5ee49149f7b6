#!/usr/bin/env python3
"""Compiles and runs the probes of this folder and compares what happens with table.txt.

usage: check.py --compiler <program> --family g++|clang --version <major> --work <folder>
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FLAGS = ["-std=c++23", "-O1", "-fsanitize=address"]
PARTS = ["main", "controls", "values", "conditions", "frames"]
SEPARATE = ["refused_vector", "refused_map"]  # a part of their own, because they may not compile


def read_table(path, family, version):
    """The expected outcome of every row, from the column that fits the compiler best."""
    lines = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    header, rows = lines[0], lines[1:]
    columns = {}
    for index, name in enumerate(header[1:], start=1):
        column_family, _, column_version = name.rpartition("-")
        if column_family == family and int(column_version) <= version:
            columns[int(column_version)] = index
    if not columns:
        sys.exit(f"{path.name} has no column for {family}-{version} or older")
    return {row[0]: row[columns[max(columns)]] for row in rows}


def compile_probes(compiler, work):
    """Builds the program of all probes. Returns its path and the outcome of the parts that may not compile."""
    program = work / "probes"
    objects = []
    for part in PARTS:
        objects.append(work / f"{part}.o")
        subprocess.run([compiler, *FLAGS, "-c", HERE / f"{part}.cpp", "-o", objects[-1]], check=True)
    subprocess.run([compiler, *FLAGS, *objects, "-o", program], check=True)
    outcomes = {}
    for part in SEPARATE:
        command = [compiler, *FLAGS, "-c", HERE / f"{part}.cpp", "-o", work / f"{part}.o"]
        outcomes[part] = "ok" if subprocess.run(command, capture_output=True).returncode == 0 else "refused"
    return program, outcomes


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))  # with none, a stack overflow would only be slow


def run_probe(program, name):
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=1:symbolize=0")
    try:
        done = subprocess.run([program, name], capture_output=True, text=True, errors="replace", timeout=60,
                              env=environment, preexec_fn=limit_stack)
    except subprocess.TimeoutExpired:
        return "wrong"
    if done.returncode == 0:
        return "ok"
    # A temporary destroyed twice shows as either: the second destructor frees again, or looks at what was freed.
    if "attempting double-free" in done.stderr or "heap-use-after-free" in done.stderr:
        return "double-free"
    if "stack-overflow" in done.stderr:
        return "stack-overflow"
    if "detected memory leaks" in done.stderr:
        return "leak"
    return "wrong"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--compiler", required=True)
    arguments.add_argument("--family", required=True)
    arguments.add_argument("--version", required=True, type=int)
    arguments.add_argument("--work", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)

    expected = read_table(HERE / "table.txt", options.family, options.version)
    program, actual = compile_probes(options.compiler, options.work)
    names = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        actual[name] = run_probe(program, name)

    differences = 0
    for name in [*expected, *(n for n in actual if n not in expected)]:
        want, got = expected.get(name, "(not in the table)"), actual.get(name, "(no such probe)")
        differences += want != got
        print(f"{name:32}{got:16}" + ("" if want == got else f"<-- the table says {want}"))
    if differences:
        print(f"\n{options.family}-{options.version}: {differences} of {len(expected)} rows differ; table.txt says what to do")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
