"""Checks how tools/gdb shortens the names of functions, as g++ and clang++ write them. Needs no gdb."""

import argparse
import importlib.util
import sys
import types

# What `info symbol` says, and what is shown.
NAMES = {
    "in_receive(coppice::self&)": "in_receive",
    "in_receive(_ZN10in_receiveERN7coppice4selfE.Frame*) [clone .actor]": "in_receive",
    "coppice::detail::serve(coppice::detail::serve<app::counter, int>(app::counter, int)::Frame*) [clone .actor]":
        "coppice::detail::serve<app::counter, int>",
    "coppice::task<void> coppice::detail::serve<app::counter>(coppice::self&) [clone .resume]":
        "coppice::detail::serve<app::counter>",
    "coppice::task<std::map<int, char> > app::reads<(app::kind)1>(coppice::self&) (.resume)":
        "app::reads<(app::kind)1>",
    "(anonymous namespace)::waits_below(coppice::self&) [clone .resume]": "(anonymous namespace)::waits_below",
    "coppice::task<void> (anonymous namespace)::below<int>(int)": "(anonymous namespace)::below<int>",
    "app::counter::operator()(int)": "app::counter::operator()",
    "app::counter::operator bool() const": "app::counter::operator bool",
    "plain_function [clone .cold]": "plain_function",
    "coppice::pending_receive<never, other>::how": "coppice::pending_receive<never, other>::how",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", required=True)
    options = parser.parse_args()
    command = type("Command", (), {"__init__": lambda self, name, kind: None})
    sys.modules["gdb"] = types.SimpleNamespace(Command=command, COMMAND_DATA=0)
    spec = importlib.util.spec_from_file_location("coppice_gdb", options.script)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    faults = 0
    for whole, wanted in NAMES.items():
        shown = script.readable(whole)
        if shown != wanted:
            print(f"{whole}\n  is shown as {shown!r}, not as {wanted!r}")
            faults += 1
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
