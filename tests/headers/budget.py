"""Holds the cost of compiling coppice.hpp with one server against a budget.

The cost is told as ratios to a file that includes <vector>, <string> and <functional>:
  lines      after preprocessing; the same on every machine
  functions  in the object file; the same for one compiler. Servers of the library that each user would compile again
             show here
  time       user CPU seconds, the median of pairs compiled one after the other, with room for a busy machine
"""

import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

BUDGET = {"lines": 2.4, "functions": 1000, "time": 8.0}
PAIRS = 5


def lines(compile_command, source):
    done = subprocess.run([*compile_command, "-E", "-P", source], check=True, capture_output=True, text=True)
    return done.stdout.count("\n")


def user_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def functions(object_file):
    done = subprocess.run(["nm", "--defined-only", object_file], check=True, capture_output=True, text=True)
    return sum(1 for line in done.stdout.splitlines() if line.split()[-2] in "TtWw")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    arguments = parser.parse_args()
    here = pathlib.Path(__file__).parent
    standard, server = str(here / "standard.cpp"), str(here / "one_server.cpp")
    command = [arguments.compiler, "-std=c++23", "-O0", "-I", arguments.include]

    with tempfile.TemporaryDirectory() as folder:
        output = str(pathlib.Path(folder) / "out.o")
        compile_to = [*command, "-c", "-o", output]
        ratios = [user_seconds([*compile_to, server]) / user_seconds([*compile_to, standard]) for _ in range(PAIRS)]
        subprocess.run([*compile_to, server], check=True)
        found = {
            "lines": lines(command, server) / lines(command, standard),
            "functions": functions(output),
            "time": statistics.median(ratios),
        }
    over = [what for what, limit in BUDGET.items() if found[what] > limit]
    for what, limit in BUDGET.items():
        print(f"{what}: {found[what]:.2f}, budget {limit}{' EXCEEDED' if what in over else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
