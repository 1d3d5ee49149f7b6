#!/usr/bin/env python3
"""Tests of coppice-lint. usage: test_lint.py [--compiler <program>]: with a compiler, the corpus must compile too."""

import contextlib
import io
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import coppice_lint

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "lint"
TABLE = ROOT / "tests" / "compiler"
COMPILER = sys.argv[sys.argv.index("--compiler") + 1] if "--compiler" in sys.argv else None


def places(text, name="a.cpp"):
    """[(line, rule)] of the findings in one source."""
    return [(line, rule) for _, line, _, rule, _ in coppice_lint.findings_in({name: text})]


def lint(*arguments):
    """The exit status and the output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            status = coppice_lint.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = ended.code
    return status, output.getvalue()


def body(text):
    return "task<> f(self& me) {\n" + text + "\n}\n"


class Corpus(unittest.TestCase):
    def test_everything_that_is_marked_is_found_and_nothing_else(self):
        text = (CORPUS / "found.cpp").read_text()
        marked = []
        for number, line in enumerate(text.splitlines(), start=1):
            if mark := re.search(r"// finds: ([a-z -]+)", line):
                marked += [(number, rule) for rule in mark.group(1).split()]
            elif mark := re.search(r"finds-below: ([a-z-]+)", line):
                marked.append((number + 1, mark.group(1)))
        self.assertEqual(sorted(set(places(text))), sorted(marked))

    def test_every_rule_is_in_the_corpus(self):
        marked = set(re.findall(r"[a-z]+-[a-z-]+", " ".join(re.findall(r"finds(?:-below)?: (.*)", (CORPUS / "found.cpp").read_text()))))
        self.assertEqual(set(coppice_lint.RULES) - marked, set())

    def test_good_code_is_left_alone(self):
        self.assertEqual(places((CORPUS / "left_alone.cpp").read_text()), [])

    @unittest.skipUnless(COMPILER, "no compiler was named")
    def test_the_corpus_compiles(self):
        for name in ("found.cpp", "left_alone.cpp"):
            done = subprocess.run([COMPILER, "-std=c++23", "-fsyntax-only", "-w", "-I", ROOT / "include", CORPUS / name],
                                  capture_output=True, text=True)
            # What the headers refuse by themselves is in the corpus too.
            errors = [line for line in done.stderr.splitlines() if "error:" in line and "static assertion" not in line]
            self.assertEqual(errors, [])


class CompilerTable(unittest.TestCase):
    """tests/compiler says what g++ 12 miscompiles: the lint must see it in the text of the probes."""

    not_in_the_text = {"symmetric_transfer", "control_leak", "control_double_free", "control_wrong"}
    found_although_safe = {"await_in_if_initializer", "await_in_if_beside_a_local"}  # the rule is simpler than the defect

    def outcomes(self):
        rows = [line.split() for line in (TABLE / "table.txt").read_text().splitlines()
                if line.strip() and not line.startswith("#")]
        column = rows[0].index("g++-12")
        return {row[0]: row[column] for row in rows[1:]}

    def found(self):
        """The probes with a finding in their function."""
        names = set()
        for name in ("values.cpp", "conditions.cpp", "refused_vector.cpp", "refused_map.cpp"):
            text = (TABLE / name).read_text()
            lines = text.splitlines()
            for line, _ in places(text):
                heads = [re.match(r"task<.*> (\w+)\(\)", lines[n]) for n in range(line - 1, -1, -1)]
                names.add(next(head.group(1) for head in heads if head) if not name.startswith("refused") else name[:-4])
        return names

    def test_what_is_miscompiled_is_found_and_the_safe_forms_are_not(self):
        outcomes = self.outcomes()
        bad = {name for name, outcome in outcomes.items() if outcome != "ok"} - self.not_in_the_text
        self.assertEqual(self.found(), bad | self.found_although_safe)


class Comments(unittest.TestCase):
    def test_a_comment_on_the_line_or_alone_before_it_allows(self):
        self.assertEqual(places(body("if (co_await a()) {}  // coppice-lint: allow await-in-condition: clang only")), [])
        self.assertEqual(places(body("// coppice-lint: allow await-in-condition: clang only\nif (co_await a()) {}")), [])

    def test_it_allows_that_rule_on_that_line_only(self):
        text = body("// coppice-lint: allow await-in-condition: clang only\nif (co_await a()) {}\nif (co_await a()) {}")
        self.assertEqual(places(text), [(4, "await-in-condition")])
        text = body("if (co_await a()) {}  // coppice-lint: allow two-awaits: clang only")
        self.assertEqual(places(text), [(2, "await-in-condition"), (2, "unused-allow")])

    def test_without_a_reason_it_allows_nothing(self):
        text = body("if (co_await a()) {}  // coppice-lint: allow await-in-condition")
        self.assertEqual(places(text), [(2, "await-in-condition"), (2, "unused-allow")])


class SeveralSources(unittest.TestCase):
    def rules(self, **texts):
        return [(path, rule) for path, _, _, rule, _ in coppice_lint.findings_in(texts)]

    def test_classes_of_other_sources_are_known(self):
        header = "struct entry { std::string key; int n; };"
        source = body("co_await store(entry(text, 1));")
        self.assertEqual(self.rules(source=source), [])
        self.assertEqual(self.rules(header=header, source=source), [("source", "aggregate-in-await")])

    def test_a_name_with_two_meanings_is_not_judged(self):
        self.assertEqual(self.rules(a="struct entry { std::string key; };", b="struct entry { int key; };",
                                    c=body("co_await store(entry(text));")), [])

    def test_a_function_that_another_source_spawns_is_checked(self):
        function = "task<> work(self& me, int* n);"
        self.assertEqual(self.rules(a=function, b="void f() { rt.spawn(work, &n); }"), [("a", "pointer-parameter")])
        self.assertEqual(self.rules(a=function), [])

    def test_a_function_of_the_source_that_spawns_hides_others_of_its_name(self):
        self.assertEqual(self.rules(a="task<> work(self& me, int* n);",
                                    b="task<> work(self& me, int n);\nvoid f() { rt.spawn(work, 1); }"), [])


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bad = self.file("bad.cpp", body("if (co_await a()) {}"))
        self.good = self.file("good.cpp", body("co_await a();"))

    def file(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def test_nothing_found_is_0_and_silent(self):
        self.assertEqual(lint(self.good), (0, ""))

    def test_a_finding_is_1_and_one_line(self):
        line = f"{self.bad}:2:5: error: co_await in the head of an if: await into a named local first [await-in-condition]\n"
        self.assertEqual(lint(self.bad, self.good), (1, line))

    def test_warnings_are_0(self):
        status, output = lint("--warn", self.bad)
        self.assertEqual((status, output.count(": warning: ")), (0, 1))

    def test_a_rule_can_be_skipped(self):
        self.assertEqual(lint("--skip", "await-in-condition", self.bad), (0, ""))

    def test_wrong_arguments_and_missing_files_are_2(self):
        self.assertEqual(lint()[0], 2)
        self.assertEqual(lint("--skip", "no-such-rule", self.bad)[0], 2)
        status, output = lint(self.folder / "missing.cpp")
        self.assertEqual((status, output), (2, f"coppice-lint: {self.folder / 'missing.cpp'}: No such file or directory\n"))

    def test_help_names_every_rule(self):
        status, output = lint("--help")
        self.assertEqual(status, 0)
        for rule in coppice_lint.RULES:
            self.assertIn(rule, output)

    def test_folders_are_searched(self):
        self.file("below/more.hpp", body("throw co_await a();"))
        self.file("below/notes.txt", body("throw co_await a();"))
        self.assertEqual(lint(self.folder)[1].count("error:"), 2)

    def test_included_files_below_a_folder_are_checked_once(self):
        header = self.file("inc/x.hpp", body("throw co_await a();"))
        source = self.file("x.cpp", '#include "inc/x.hpp"\n#include "y.hpp"\n#include <z.hpp>\n')
        self.file("other/y.hpp", '#include "../inc/x.hpp"\n')
        self.assertEqual(lint(source), (0, ""))
        status, output = lint("--below", self.folder, "-I", self.folder / "other", source)
        self.assertEqual((status, output.count("error:")), (1, 1))
        self.assertIn(str(header), output)
        self.assertEqual(lint("--below", self.folder / "other", source), (0, ""))

    def test_a_file_with_several_names_is_checked_once_under_the_first(self):
        header = self.file("inc/x.hpp", body("throw co_await a();"))
        source = self.file("x.cpp", '#include "inc/x.hpp"\n')
        (self.folder / "link.hpp").symlink_to(header)
        relative = pathlib.Path(os.path.relpath(header))
        for names in ([relative, source, header], [self.folder / "link.hpp", source, relative]):
            status, output = lint("--below", self.folder, *names)
            self.assertEqual((status, output.count("error:")), (1, 1))
            self.assertTrue(output.startswith(f"{names[0]}:"), output)

    def test_the_stamp_is_written_only_without_errors_and_names_what_was_read(self):
        stamp = self.folder / "stamp"
        lint("--stamp", stamp, self.bad)
        self.assertFalse(stamp.exists())
        lint("--stamp", stamp, self.good)
        self.assertTrue(stamp.exists())
        self.assertEqual((self.folder / "stamp.d").read_text(), f"{stamp}: {self.good}\n")


class AnyText(unittest.TestCase):
    def test_no_text_is_too_broken_to_be_read(self):
        text = (CORPUS / "found.cpp").read_text()
        source = random.Random(1)
        for _ in range(300):
            begin = source.randrange(len(text))
            piece = text[begin:begin + source.randrange(2000)]
            for _ in range(5):
                at = source.randrange(len(piece) + 1)
                piece = piece[:at] + source.choice("(){}[]<>;,'\"?&*#\\\n") + piece[at:]
            places(piece)
        for piece in ("", "{", "}", "[", "co_await", "throw", "struct", "struct {", "spawn(", "task<> f(", "#define", "a?", "'"):
            places(piece)


if __name__ == "__main__":
    if COMPILER:
        del sys.argv[sys.argv.index("--compiler"):sys.argv.index("--compiler") + 2]
    unittest.main()
