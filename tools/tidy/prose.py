"""Rules about what is written for readers: READMEs of libraries, links, quoted code, comments and pages in plain words.

Each is a generator of findings over a Tree (see tidy.py): (path, line, rule, what is wrong and what to do).
"""

import bisect
import posixpath
import re

import cxx

# ---- a README for each library ------------------------------------------------------------------------------------

SOURCE_NAME = re.compile(r"[\w.-]+\.[ch]pp\b")


def readmes(tree):
    """src/<library>/README.md names every header and source of the library, and no other file."""
    libraries = re.findall(r"^\s*coppice_library\((\w+)", tree.text("CMakeLists.txt"), re.MULTILINE)
    for library in libraries:
        files = [p for p in tree.cxx() if p.startswith((f"src/{library}/", f"include/coppice/{library}/"))]
        page = f"src/{library}/README.md"
        if not files:
            continue
        if not tree.has(page):
            yield page, 1, "readme", f"library {library} has no README: say what it is, and what each file is for"
            continue
        text = tree.text(page)
        named = set(SOURCE_NAME.findall(text))
        for path in files:
            if path.rsplit("/", 1)[-1] not in named:
                yield page, 1, "readme", f"{path} is not mentioned"
        known = {p.rsplit("/", 1)[-1] for p in tree.cxx()}
        for name in sorted(named - known):
            line = text[:text.index(name)].count("\n") + 1
            yield page, line, "readme", f"{name}: there is no such file"


# ---- links --------------------------------------------------------------------------------------------------------

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#* *$", re.MULTILINE)


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    found, seen = set(), {}
    for heading in HEADING.findall(_without_blocks(markdown)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def links(tree):
    """Links between pages lead to a file, a folder or a heading that is there."""
    folders = {posixpath.dirname(p) for p in tree.files("*")}
    folders |= {parent for f in list(folders) for parent in _parents(f)}
    for path in tree.files("*.md"):
        text = _without_code(tree.text(path))
        for match in LINK.finditer(text):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-z]+:", target):
                continue
            line = text.count("\n", 0, match.start()) + 1
            file, _, anchor = target.partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            if not tree.has(place) and place not in folders:
                yield path, line, "links", f"{target}: there is no {place}"
            elif anchor and (not tree.has(place) or anchor not in anchors(tree.text(place))):
                yield path, line, "links", f"{target}: {place} has no heading #{anchor}"


def _parents(folder):
    while "/" in folder:
        folder = folder.rsplit("/", 1)[0]
        yield folder


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def _without_blocks(markdown):
    return re.sub(r"^```.*?^```", _blank, markdown, flags=re.MULTILINE | re.DOTALL)


def _without_code(markdown):
    """The text with blocks, inline code and remarks blanked; every character keeps its place."""
    text = re.sub(r"<!--.*?-->", _blank, _without_blocks(markdown), flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`", _blank, text)


# ---- code in pages ------------------------------------------------------------------------------------------------

# <!-- quotes tests/x_test.cpp --> before a ```cpp block: the block stands in that file, which is compiled; blanks aside.
# Lines of the form "// ..." or "..." stand for code that the page leaves out.
BLOCK = re.compile(r"(?:^<!-- quotes (\S+) -->\n+)?^```(?:cpp|c\+\+)[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LEFT_OUT = re.compile(r"^\s*(?://\s*)?\.\.\.\s*$", re.MULTILINE)


def quotes(tree):
    """Every block of C++ in a page is quoted from a file that is compiled. "```cpp avoid" shows what not to write."""

    def bare(text):
        return re.sub(r"\s+", "", text)

    for path in tree.files("*.md"):
        for match in BLOCK.finditer(tree.text(path)):
            line, source = tree.text(path).count("\n", 0, match.start()) + 1, match.group(1)
            if source is None:
                yield path, line, "quotes", "nothing compiles this code: put it into a test or an example and quote that"
            elif not tree.has(source):
                yield path, line, "quotes", f"there is no {source}"
            elif not _in_order([bare(part) for part in LEFT_OUT.split(match.group(2))], bare(tree.text(source))):
                yield path, line, "quotes", f"the code below does not stand in {source} any more: quote it anew"


def _in_order(parts, text):
    position = 0
    for part in parts:
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


# ---- tests that pages name ----------------------------------------------------------------------------------------

TEST = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
NAMED_TEST = re.compile(r"`(\w+)\.(\w+|\*)`")
TEST_PAGES = ("docs/actor-facts.md", "docs/conformance-themes.md")


def named_tests(tree):
    """The tests that TEST_PAGES name, as `suite.name` or `suite.*`, exist."""
    suites = {}
    for path in tree.cxx("tests"):
        for suite, name in TEST.findall(tree.text(path)):
            suites.setdefault(suite, {"*"}).add(name)
    for path in filter(tree.has, TEST_PAGES):
        for match in NAMED_TEST.finditer(tree.text(path)):
            suite, name = match.groups()
            if suite != "suite" and name not in suites.get(suite, ()):
                line = tree.text(path).count("\n", 0, match.start()) + 1
                yield path, line, "named-tests", f"there is no test {suite}.{name}"


# ---- words --------------------------------------------------------------------------------------------------------

CITATION = re.compile(r"\b(?:[Rr]eference )?[Ff]acts? \d+|\b[Tt]hemes? [TU]\d+|\b[TU]\d{1,2}\b|\b[Rr]eference (?:notes|facts|themes)\b")
PLAIN = [  # pattern, what to write instead
    (r"\bhears?\b(?! (?:a|the) (?:noise|sound))|\bheard of\b", "is notified, receives, is told"),
    (r"\b(?:has|have|had) said\b", "has sent, has reported"),
    (r"\blet(?:s|ting)? go\b|\blet(?:s|ting)? \w+ go\b", "releases, drops"),
    (r"\bjust so\b", "say how"),
    (r"\b(?:for|in) so long\b|\bso long after\b", "for that time, after that time"),
    (r"\bof whom\b|\bof which it\b", "a sentence with its own subject"),
    (r"\b(?:comes?|came) to (?:its|an|the) end\b|\bhas come to (?:its|an|the) end\b", "ends"),
    (r"(?<!there )(?<!There )(?<!Where )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|other\b|better\b|worse\b|one\b|way\b)[a-z]",
     "is not a ..."),
]


def citations(tree):
    """Comments and pages do not cite notes that are not in the repository."""
    for path, line, text in _prose(tree):
        for match in CITATION.finditer(text):
            yield (path, line + text.count("\n", 0, match.start()), "citations",
                   f"{match.group()} refers to a document outside the repository: write down what it says")


def plain_words(tree):
    """Words of the house dialect that a reader has to decode."""
    for path, line, text in (*_prose(tree), *_test_names(tree)):
        flat, starts = _flat(text)
        for pattern, instead in PLAIN:
            for match in re.finditer(pattern, flat):
                yield (path, line + bisect.bisect_right(starts, match.start()) - 1, "plain-words",
                       f'"{match.group()}": write plain English, here perhaps: {instead}')


def _flat(text):
    """The text as one line, without the marks of comments; and where each of its lines begins in that."""
    flat, starts = "", []
    for line in text.split("\n"):
        starts.append(len(flat))
        flat += re.sub(r"^\s*(?:///?)?\s*", "", line).rstrip() + " "
    return flat, starts


def _test_names(tree):
    """(path, line, name as words) of all tests."""
    for path in tree.cxx("tests"):
        text = tree.text(path)
        for match in re.finditer(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text, re.MULTILINE):
            yield path, text.count("\n", 0, match.start()) + 1, " ".join(match.groups()).replace("_", " ")


def _prose(tree):
    """(path, first line, text) of all pages and comments."""
    for path in tree.files("*.md", "*.hpp", "*.cpp"):
        if path.endswith(".md"):
            yield path, 1, _without_code(tree.text(path))
        else:
            yield from ((path, line, text) for line, text in comments(tree.text(path)))


def comments(code):
    """(line, text) of the comments of a C++ file; lines that follow each other are one."""
    line, position, block, next_line = 1, 0, [], 0
    for match in cxx.LITERAL.finditer(code):
        line += code.count("\n", position, match.start())
        position = match.start()
        text = match.group()
        if not text.startswith("/"):
            continue
        if block and line == next_line:
            block[1] += "\n" + text
        else:
            if block:
                yield tuple(block)
            block = [line, text]
        next_line = line + text.count("\n") + 1
    if block:
        yield tuple(block)


# ---- columns ------------------------------------------------------------------------------------------------------

COLUMNS = 120
LIST_MARK = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")


def columns(tree):
    """Prose in pages wraps at COLUMNS. Tables, blocks, headings, remarks and what cannot be broken may be longer."""
    for path in tree.files("*.md"):
        text = tree.text(path)
        bare = re.sub(r"<!--.*?-->", _blank, _without_blocks(text), flags=re.DOTALL)
        for number, line in enumerate(bare.split("\n"), 1):
            line = line.rstrip()
            if len(line) > COLUMNS and not line.lstrip().startswith(("|", "#")) and _breakable(line):
                yield path, number, "columns", f"{len(line)} characters: wrap prose at {COLUMNS}"


def _breakable(line):
    """Whether a line is more than one link or one piece of code."""
    rest = re.sub(r"`[^`]*`", "code", LIST_MARK.sub("", line).strip())
    return " " in LINK.sub("link", rest)


RULES = [readmes, links, quotes, named_tests, columns, citations, plain_words]
