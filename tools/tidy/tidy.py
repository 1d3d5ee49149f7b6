#!/usr/bin/env python3
"""Checks the rules of the tree that no compiler checks. usage: tidy.py [root]

Exceptions stand in allow.txt, each with its reason; one that is no longer needed is an error too.
"""

import bisect
import fnmatch
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lint"))  # what the rules share with coppice-lint

import cxx
import prose
import rules

NOT_OURS = {".git", ".cache", "build", "__pycache__", "node_modules"}
ALLOW = "tools/tidy/allow.txt"
PUBLIC_TYPES = "tools/tidy/public_types.txt"


class Tree:
    """The files below a root: their texts, and the results of parsing, which are kept."""

    def __init__(self, texts):
        self._texts = texts  # {path from the root: text}
        self._parsed = {}

    @classmethod
    def read(cls, root):
        texts = {}
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in NOT_OURS)
            for name in sorted(names):
                path = pathlib.Path(folder, name)
                try:
                    texts[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
                except (UnicodeDecodeError, FileNotFoundError):
                    pass  # not text, or a broken link
        return cls(texts)

    def files(self, *patterns):
        return [p for p in self._texts if any(fnmatch.fnmatch(p.rsplit("/", 1)[-1], pattern) for pattern in patterns)]

    def cxx(self, *folders):
        """C++ files, of the given top folders only if any are given."""
        return [p for p in self.files("*.hpp", "*.cpp") if not folders or p.split("/")[0] in folders]

    def has(self, path):
        return path in self._texts

    def text(self, path):
        return self._texts[path]

    def parsed(self, path):
        if path not in self._parsed:
            self._parsed[path] = cxx.parse(self._texts[path])
        return self._parsed[path]

    def search(self, path, pattern):
        """(line, match) of a pattern in the code of a file, comments and literals left out."""
        code = self.parsed(path).code
        starts = [m.end() for m in re.finditer("\n", code)]
        for match in re.finditer(pattern, code):
            yield bisect.bisect_right(starts, match.start()) + 1, match.group().strip()

    def public_types(self):
        """The types of detail namespaces that public headers may name."""
        lines = self._texts.get(PUBLIC_TYPES, "").splitlines()
        return [word for line in lines for word in line.split("#")[0].split()]

    def includes(self, path):
        text = self._texts[path]
        return [(text.count("\n", 0, m.start()) + 1, m.group(2)) for m in rules.INCLUDE.finditer(text)]


def read_allowed(text):
    """{(rule, path): reason} from lines "rule path: reason". A rule may have a second word, a function's name."""
    allowed = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            subject, _, reason = line.partition(": ")
            rule, _, path = subject.strip().rpartition(" ")
            if not (rule and reason.strip()):
                raise ValueError(f'{ALLOW}: not "rule path: reason": {line}')
            allowed[(rule, path)] = reason.strip()
    return allowed


def check(tree):
    """All findings, as lines of text."""
    allowed = read_allowed(tree.text(ALLOW)) if tree.has(ALLOW) else {}
    needed, findings = set(), []
    for rule in rules.RULES + prose.RULES:
        for path, line, name, what in rule(tree):
            if (name, path) in allowed:
                needed.add((name, path))
            else:
                findings.append(f"{path}:{line}: {name}: {what}")
    for name, path in sorted(set(allowed) - needed):
        findings.append(f"{ALLOW}: no longer needed: {name} {path}")
    return findings


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    tree = Tree.read(root)
    findings = check(tree)
    print("\n".join(findings) if findings else f"{len(tree.files('*'))} files, nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
