"""Runs a program with a process stuck in each of many ways, and checks that `rt.why` and the commands of tools/gdb name
each of them: in the live program and in its core. Exits with 77 where there is no gdb, or it may not trace programs."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

WHY = {
    "in_receive": "for a message of type",
    "with_other_mail": "1 message waits: 1 ",
    "in_a_nested_function": "never or ",
    "in_call": r"for an answer from <.*> to .*ask, .*; <.*> \(in_receive\) has waited",
    "in_a_cycle": "none can continue",
    "also_in_a_cycle": "none can continue",
    "in_sleep": "for its sleep to end, at most ",
    "in_blocking": "for blocking work .*hung_work",
    "in_lane": "for work in the lane database",
    "in_operation": "for the operation .*foreign_read",
    "in_promise": "for a promise of type int",
    "frozen": "is frozen",
    "idle": "for the next message",
    "in_its_code": "has handled .*other.*1 message waits",
    "in_a_waiting_handler": "handling .*introduction",
}
GDB = {
    "in_receive": r"waiting  \d.*receives  waits for receive<.*never>",
    "with_other_mail": r"waiting  1 ",
    "in_a_nested_function": r"waits_below  waits for receive<.*never, .*other>",
    "in_call": r"asks  waits for an answer from <.*> to .*ask",
    "in_a_cycle": r"waits for an answer from",
    "also_in_a_cycle": r"waits for an answer from",
    "in_sleep": r"sleeps  waits for sleep",
    "in_blocking": r"blocks  waits for blocking<.*hung_work",
    "in_lane": r"works_in_lane  waits for blocking_within<.*hung_work",
    "in_operation": r"performs  waits for operation<.*foreign_read",
    "in_promise": r"awaits_a_promise  waits for future<int>",
    "frozen": r"^\s*<\S+>  frozen  \d+  frozen(  |$)",
    "idle": r"idle_server  waits for mail",
    "in_its_code": r"running  1 .*busy_server",
    "in_a_waiting_handler": r"waiting_server.*waits for an answer from",
}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return done.stdout + done.stderr


def check(what, text, wanted, faults):
    for name, pattern in wanted.items():
        lines = [line for line in text.splitlines() if re.search(rf"(^|\s){name}(:|\s)", line)]
        if not any(re.search(pattern, line) for line in lines):
            faults.append(f"{what}: nothing like {pattern!r} for {name}; it says {lines}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--gdb", default="")
    parser.add_argument("--script", required=True)
    options = parser.parse_args()
    faults = []
    check("why", run([options.program]), WHY, faults)
    if not options.gdb or options.gdb.endswith("NOTFOUND"):
        print("gdb is not installed: only rt.why was checked")
    else:
        with tempfile.TemporaryDirectory() as folder:
            core = str(pathlib.Path(folder) / "core")
            begin = [options.gdb, "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set pagination off"]
            look = ["-ex", f"source {options.script}", "-ex", "coppice ps", "-ex", "coppice tree",
                    "-ex", "coppice bt in_a_nested_function", "-ex", "coppice bt in_its_code"]
            live = run(begin + ["-ex", "break all_are_stuck", "-ex", "run"] + look +
                       ["-ex", f"generate-core-file {core}", options.program])
            if "ptrace" in live and "Operation not permitted" in live:
                print("gdb may not trace programs here: only rt.why was checked")
                sys.exit(77 if not faults else 1)
            dead = run(begin + look + [options.program, core])
        for what, text in (("live", live), ("core", dead)):
            check(what, text, GDB, faults)
            if not re.search(r"#0 .*deeper.*\n#1 .*waits_below", text):
                faults.append(f"{what}: coppice bt does not show the functions that wait")
            if not re.search(r"busy_server::handle", text):
                faults.append(f"{what}: coppice bt does not show the code that runs")
        if faults:
            print(live)
            print(dead)
    print("\n".join(faults))
    sys.exit(1 if faults else 77 if not options.gdb or options.gdb.endswith("NOTFOUND") else 0)


if __name__ == "__main__":
    main()
