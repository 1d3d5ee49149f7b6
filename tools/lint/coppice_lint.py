#!/usr/bin/env python3
"""Finds mistakes in programs that use Coppice that no compiler reports.

Each finding is one line, `file:line:column: error: what to write instead [rule]`. A finding that is wrong or intended is
allowed by a comment on its line or on the line before: `// coppice-lint: allow <rule>: why`.

rules:
  await-in-condition      co_await in the head of an if, while, do, switch or for       (g++ 12: wrong frame)
  await-in-choice         co_await in a ?: expression                                   (g++ 12: double free)
  await-in-throw          co_await in a throw expression                                (g++ 12: use after free)
  await-in-macro          co_await in the arguments of a macro, which may do the same
  two-awaits              more than one co_await in a statement
  braces-in-await         a value built in braces in an awaiting statement              (g++ 12: double free)
  aggregate-in-await      an aggregate built in parentheses there                       (g++ 12: double free)
  capture-in-await        a lambda with a capture by value there                        (g++ 12: double free)
  capturing-coroutine     a lambda that is a coroutine and captures something
  view-parameter          a reference or a view as parameter of a coroutine that is spawned
  pointer-parameter       a pointer as parameter of a coroutine that is spawned
  lock-across-await       a lock that is held while a coroutine waits
  terminate-without-trap  a server with a terminate that its parent's stop does not call
  unused-allow            a comment that allows what is not found, or gives no reason

exit status: 0 nothing found, or only warnings; 1 findings; 2 wrong arguments, or a file that cannot be read
"""

import argparse
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import awaits
import classes
import cxx
import lifetimes

RULES = re.findall(r"^  ([a-z-]+) ", __doc__, re.MULTILINE)
SOURCES = {".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".h", ".ipp", ".inl"}
ALLOW = re.compile(r"//\s*coppice-lint:\s*allow\b[ \t]*([\w-]*)[ \t]*(?::[ \t]*(\S.*))?")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


class Unreadable(Exception):
    pass


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as problem:
        raise Unreadable(f"{path}: {problem.strerror}") from problem


def files_of(arguments):
    """The files that are named, and the C++ files in folders that are named."""
    for argument in map(pathlib.Path, arguments):
        if argument.is_dir():
            yield from sorted(p for p in argument.rglob("*") if p.suffix in SOURCES and p.is_file())
        else:
            yield argument


def with_includes(files, folders, below):
    """{path: text} of the files and of all they include with quotes, where that is found below the folder `below`. A
    file that has several names occurs once, with the first of them."""
    texts, waiting, seen = {}, list(files), set()
    while waiting:
        path = waiting.pop(0)
        file = os.path.realpath(path)
        if file in seen:
            continue
        seen.add(file)
        texts[path] = read(path)
        if below is None:
            continue
        for name in INCLUDE.findall(texts[path]):
            for folder in [path.parent, *folders]:
                found = (folder / name).resolve()
                if found.is_file() and found.is_relative_to(below):
                    waiting.append(found)
                    break
    return texts


def findings_in(texts):
    """(path, line, column, rule, sentence) for all sources, {path: text}, in their order."""
    sources = {path: cxx.parse(text) for path, text in texts.items()}
    known = classes.known_classes(sources.values())
    servers = {name for source in sources.values() for name in lifetimes.servers_in(source)}
    for (path, source), spawned in zip(sources.items(), lifetimes.spawned_of(list(sources.values()))):
        found = {(t.line, t.column, rule, what) for t, rule, what in [*awaits.awaits_in(source, known),
                                                                      *lifetimes.lifetimes_in(source, spawned, servers)]}
        yield from ((path, *finding) for finding in sorted(_not_allowed(source.text, found)))


def _not_allowed(text, found):
    """The findings that no comment allows, and the comments that allow nothing."""
    allowed = {}  # {(line, rule): line and column of the comment}
    for number, line in enumerate(text.splitlines(), start=1):
        if comment := ALLOW.search(line):
            place, rule = (number, comment.start() + 1), comment.group(1)
            if rule not in RULES or not comment.group(2):
                found.add((*place, "unused-allow", "write `// coppice-lint: allow <rule>: why`, with the name of a rule"))
                continue
            alone = not line[:comment.start()].strip()
            allowed[(number + alone, rule)] = place
    used = {(line, rule) for line, _, rule, _ in found} & allowed.keys()
    for (_, rule), place in ((key, place) for key, place in allowed.items() if key not in used):
        found.add((*place, "unused-allow", f"{rule} is not found here: remove the comment"))
    return {finding for finding in found if (finding[0], finding[2]) not in used}


def main(argv):
    parser = argparse.ArgumentParser(prog="coppice-lint", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="file-or-folder")
    parser.add_argument("--warn", action="store_true", help="findings are warnings: the exit status is 0")
    parser.add_argument("--skip", action="append", default=[], choices=RULES, metavar="RULE", help="leave out a rule; may be repeated")
    parser.add_argument("--below", type=pathlib.Path, metavar="FOLDER",
                        help="also check the files in this folder that are included with quotes")
    parser.add_argument("-I", dest="folders", action="append", default=[], type=pathlib.Path, metavar="FOLDER",
                        help="where included files are looked for; may be repeated")
    parser.add_argument("--stamp", type=pathlib.Path, metavar="FILE",
                        help="write this file when there are no errors, and FILE.d, which names all files that were read")
    options = parser.parse_args(argv)
    try:
        below = options.below.resolve() if options.below else None
        texts = with_includes(files_of(options.paths), options.folders, below)
    except Unreadable as problem:
        print(f"coppice-lint: {problem}", file=sys.stderr)
        return 2
    found = [finding for finding in findings_in(texts) if finding[3] not in options.skip]
    severity = "warning" if options.warn else "error"
    for path, line, column, rule, what in found:
        print(f"{path}:{line}:{column}: {severity}: {what} [{rule}]")
    if found and not options.warn:
        return 1
    if options.stamp:
        read_files = " ".join(str(path).replace(" ", "\\ ") for path in texts)
        pathlib.Path(f"{options.stamp}.d").write_text(f"{str(options.stamp).replace(' ', chr(92) + ' ')}: {read_files}\n")
        options.stamp.write_text("")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
