#!/usr/bin/env python3
"""Runs every workload of coppice_bench once, small, without peers: usage: smoke.py PROGRAM [SCALE]

It fails when a workload fails, hangs or prints something else than its name and a number. The numbers mean nothing.
"""

import subprocess
import sys
import time

SECONDS = 60  # for one workload


def main():
    program, scale = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0.001"
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    failed = 0
    for workload in [line.split()[0] for line in listed.splitlines()]:
        begin = time.monotonic()
        try:
            ran = subprocess.run([program, workload, "--scale", scale], capture_output=True, text=True, timeout=SECONDS)
            words = ran.stdout.split()
            ok = ran.returncode == 0 and len(words) == 2 and words[0] == workload and float(words[1]) >= 0
            what = ran.stdout.strip() if ok else f"{workload}: exit code {ran.returncode}: {ran.stdout}{ran.stderr}"
        except (subprocess.TimeoutExpired, ValueError) as problem:
            ok, what = False, f"{workload}: {problem}"
        print(f"{'ok' if ok else 'FAILED'} {what} ({time.monotonic() - begin:.1f} s)", flush=True)
        failed += not ok
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
