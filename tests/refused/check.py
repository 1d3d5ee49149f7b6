#!/usr/bin/env python3
"""Compiles each case of cases.cpp: the control must compile; of the others the first error must have the words they name.

usage: check.py --compiler <program> --include <folder>
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

CASES = pathlib.Path(__file__).resolve().parent / "cases.cpp"


def expected():
    """The words by the number of the case; none for the control."""
    found = re.findall(r"^#(?:el)?if CASE == (\d+)\n(?:// refused: (.*)\n)?", CASES.read_text(), re.MULTILINE)
    return {int(number): words for number, words in found}


def compile_case(arguments, number):
    command = [arguments.compiler, "-std=c++23", "-fsyntax-only", f"-DCASE={number}", "-I", arguments.include, CASES]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def judge(words, done):
    """What is wrong with the outcome; empty: nothing."""
    if not words:
        return "" if done.returncode == 0 else "does not compile:\n" + done.stderr
    if done.returncode == 0:
        return "compiles, but should be refused"
    first = next((line for line in done.stderr.splitlines() if "error:" in line), "")
    return "" if words in first else f"is not refused with '{words}' in its first error, but:\n" + done.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    arguments = parser.parse_args()
    cases = expected()
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = pool.map(lambda number: compile_case(arguments, number), cases)
        wrong = [f"case {number} {fault}" for (number, words), done in zip(cases.items(), outcomes)
                 if (fault := judge(words, done))]
    print("\n".join(wrong) or f"{len(cases)} cases as expected")
    return 1 if wrong or len(cases) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
