"""The rules. Each is a generator of findings over a Tree (see tidy.py): (path, line, rule, what is wrong and what to do)."""

import fnmatch
import re

import awaits
import classes
import cxx

LINES_PER_FILE = 600
LINES_PER_FUNCTION = 70

# ---- layers -------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def read_layers(text):
    """{library: everything it may include}, from lines "library: library library", with all that those may include."""
    direct = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            library, _, allowed = line.partition(":")
            direct[library.strip()] = allowed.split()
    layers = {}
    for library in direct:  # lowest first, so that the sets of the libraries below are complete
        layers[library] = set()
        for below in direct[library]:
            if below == "*":
                layers[library] |= set(direct) - {library}
            elif below not in layers:
                raise ValueError(f"layers.txt: {library} may include {below}, which must be on an earlier line")
            else:
                layers[library] |= {below} | layers[below]
    return layers


def library_of(path):
    """The library a file belongs to; None for files outside include/ and src/ and for the umbrella headers."""
    parts = path.split("/")
    if parts[:2] == ["include", "coppice"] and len(parts) > 3:
        return parts[2]
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return None


def layers(tree):
    allowed = read_layers(tree.text("tools/tidy/layers.txt"))
    for path in tree.cxx("include", "src"):
        library = library_of(path)
        if library is None:
            continue
        if library not in allowed:
            yield path, 1, "layers", f"library {library} is not in tools/tidy/layers.txt"
            continue
        for line, name in tree.includes(path):
            parts = name.split("/")
            other = parts[1] if parts[0] == "coppice" and len(parts) > 2 else parts[0]
            if parts[0] == "coppice" and len(parts) == 2:
                yield path, line, "layers", f"{name} pulls in everything: include what is used"
            elif other in allowed and other != library and other not in allowed[library]:
                yield path, line, "layers", f"{library} may not include {other}"
            elif other in allowed and other != library and "internal" in parts:
                yield path, line, "layers", f"{name} is internal to {other}"
            elif path.startswith("include/") and "internal" in parts:
                yield path, line, "layers", f"{name} is not installed: a public header cannot include it"


# ---- words --------------------------------------------------------------------------------------------------------

THROUGH_ENV = "outside of platform use the interfaces of env instead, so that the simulation can replace them"
SLEEPS = r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<!self)::sleep\("
WORDS = [  # pattern, advice, folders it is banned in
    (SLEEPS, "nothing sleeps: wait for an event, or use simulated time", ["include", "src", "tests"]),
    (r"\bstd::this_thread\b", THROUGH_ENV, ["include", "src"]),
    (r"\bstd::j?thread\b|\bpthread_create\b|\bstd::async\b", THROUGH_ENV, ["include", "src"]),
    (r"\b(steady|system|high_resolution)_clock::now\b|\bgettimeofday\b|\bclock_gettime\b|\bstd::time\(", THROUGH_ENV,
     ["include", "src"]),
    (r"\brandom_device\b|\bmt19937(_64)?\b|\bdefault_random_engine\b|\bstd::s?rand\b", THROUGH_ENV, ["include", "src"]),
]

# C++23 that g++ 12 or clang 19 on libstdc++ 12 lacks, or that we have not agreed on. Names the header
# include/coppice/base/cxx23.hpp mentions are allowed.
CXX23_HEADERS = ["expected", "flat_map", "flat_set", "format", "generator", "mdspan", "print", "spanstream", "stacktrace",
                 "stdfloat"]
CXX23_NAMES = """
    expected unexpected move_only_function to_underlying unreachable byteswap forward_like invoke_r out_ptr inout_ptr bind_back
    format format_to vformat print println vprint_unicode generator stacktrace basic_stacktrace stacktrace_entry mdspan extents
    flat_map flat_set flat_multimap flat_multiset spanstream ispanstream ospanstream basic_spanbuf start_lifetime_as
    start_lifetime_as_array is_scoped_enum is_scoped_enum_v is_implicit_lifetime reference_constructs_from_temporary
    reference_converts_from_temporary from_range from_range_t allocate_at_least float16_t float32_t float64_t bfloat16_t
    ranges::to ranges::contains ranges::contains_subrange ranges::starts_with ranges::ends_with ranges::find_last
    ranges::fold_left ranges::fold_right ranges::fold_left_first ranges::iota ranges::shift_left ranges::shift_right
    views::zip views::zip_transform views::adjacent views::adjacent_transform views::pairwise views::chunk views::chunk_by
    views::slide views::stride views::cartesian_product views::repeat views::enumerate views::as_rvalue views::as_const
    views::join_with
""".split()
CXX23_FILE = "include/coppice/base/cxx23.hpp"


def words(tree):
    for pattern, advice, folders in WORDS:
        for path in tree.cxx(*folders):
            if library_of(path) != "platform":
                for line, found in tree.search(path, pattern):
                    yield path, line, "words", f"{found}: {advice}"


def cxx23(tree):
    agreed = set(re.findall(r"\bstd::(\w+)", tree.text(CXX23_FILE))) if tree.has(CXX23_FILE) else set()
    refused = [name for name in CXX23_NAMES if name not in agreed]
    names = re.compile(r"\b(?:std::)(?:ranges::)?(" + "|".join(refused) + r")\b")
    for path in tree.cxx("include", "src", "tests", "examples", "programs", "bench"):
        for line, found in tree.search(path, names):
            yield path, line, "c++23", f"{found} is not in {CXX23_FILE}: both compilers must have it, then add it there"
        for line, found in tree.search(path, r"\(\s*this\s+(const\s+)?\w+[ &]"):
            yield path, line, "c++23", "an explicit object parameter: g++ 12 does not have it"
        for line, name in tree.includes(path):
            if name in CXX23_HEADERS and path != CXX23_FILE:
                yield path, line, "c++23", f"<{name}>: include <coppice/base/cxx23.hpp>, which names the parts of C++23 we use"


# ---- length -------------------------------------------------------------------------------------------------------


def file_length(tree):
    for path in tree.files("*.hpp", "*.cpp", "*.py", "*.cmake", "CMakeLists.txt"):
        lines = tree.text(path).count("\n")
        if lines > LINES_PER_FILE:
            yield path, lines, "file-length", f"{lines} lines, more than {LINES_PER_FILE}: split it"


def function_length(tree):
    for path in tree.cxx():
        for bracket in tree.parsed(path).brackets:
            lines = bracket.end_line - bracket.line + 1
            nested = bracket.kind == "lambda" and _enclosing_function(bracket) is not None  # counted with that function
            if bracket.kind in ("function", "lambda") and not nested and lines > LINES_PER_FUNCTION:
                yield (path, bracket.line, f"function-length {bracket.name}".strip(),
                       f"{bracket.name or 'a lambda'} has {lines} lines, more than {LINES_PER_FUNCTION}")


def _enclosing_function(bracket):
    bracket = bracket.parent
    while bracket is not None and bracket.kind not in ("function", "lambda"):
        bracket = bracket.parent
    return bracket


# ---- one await per statement --------------------------------------------------------------------------------------

# g++ 12 destroys some temporaries of an awaiting expression twice and resumes a wrong frame after an await in a condition;
# tests/compiler has the proof. Code that keeps to this rule avoids both defects.


def one_await(tree):
    for path in tree.cxx("include", "src", "tests", "examples", "programs", "bench"):
        if not path.startswith(("tests/compiler/", "tests/lint/")):  # they show what goes wrong
            for line, what in awaits_in(tree.parsed(path)):
                yield path, line, "one-await", what
    for path in tree.files("*.md"):
        for offset, block in code_blocks(tree.text(path)):
            for line, what in awaits_in(cxx.parse(block)):
                yield path, offset + line, "one-await", what


def code_blocks(markdown):
    """(number of the line before it, text) of every ```cpp block. A block opened by "```cpp avoid" shows what not to do."""
    for match in re.finditer(r"^```(?:cpp|c\+\+)[ \t]*\n(.*?)^```", markdown, re.MULTILINE | re.DOTALL):
        yield markdown.count("\n", 0, match.start(1)), match.group(1)


def awaits_in(source):
    """(line, what is wrong), each once."""
    known = classes.known_classes([source])
    return sorted({(token.line, what) for token, _, what in awaits.awaits_in(source, known, strict=True)})


# ---- files --------------------------------------------------------------------------------------------------------

# Written in pieces, so that this file does not find itself.
MACHINE = re.compile(r"(?<![\w.>}])/(?:" + "|".join(["work", "home", "root", "Users"]) + r")/\w|\.\./" + "shared" + r"\b")
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")

# The files that the build uses; {library} stands for each library that CMakeLists.txt declares.
USED = ["src/{library}/*.cpp", "include/coppice/{library}/*.hpp", "include/coppice/*.hpp", "tests/{library}/*_test.cpp",
        "tests/{library}/sim/*_test.cpp", "tests/{library}/stress/*_test.cpp", "examples/[0-9][0-9]_*/*.cpp",
        "programs/*/*.cpp", "bench/*.cpp", "bench/peers/*", "tests/compiler/*.cpp", "tests/headers/*.cpp", "tests/lint/*.cpp",
        "tests/refused/*.cpp", "tests/package/*.cpp", "tests/gdb/*.cpp"]


def pragma_once(tree):
    for path in tree.files("*.hpp"):
        if not re.search(r"^#pragma once$", tree.text(path), re.MULTILINE):
            yield path, 1, "pragma-once", "a header begins with #pragma once"


def plain_text(tree):
    for path in tree.files("*"):
        for number, line in enumerate(tree.text(path).splitlines(), start=1):
            if MACHINE.search(line):
                yield path, number, "machine-path", f"a path of one machine: {MACHINE.search(line).group()}"
            if UNFINISHED.search(line):
                yield path, number, "unfinished", f"{UNFINISHED.search(line).group()}: do it, or write down why not"


def dead_files(tree):
    libraries = re.findall(r"^\s*coppice_library\((\w+)", tree.text("CMakeLists.txt"), re.MULTILINE)
    used = [pattern.replace("{library}", library) for pattern in USED for library in libraries]
    included = {name for path in tree.cxx() for _, name in tree.includes(path)}
    for path in tree.cxx():
        # A pattern for sources does not match in deeper folders: CMake's globs for sources are not recursive.
        if any(fnmatch.fnmatch(path, p) and (path.endswith(".hpp") or path.count("/") == p.count("/") or "peers" in p)
               for p in used):
            continue
        if path.endswith(".hpp") and any(("/" + path).endswith("/" + name.removeprefix("../")) for name in included):
            continue
        yield path, 1, "dead-file", "no target builds it and nothing includes it"


# ---- public signatures --------------------------------------------------------------------------------------------


def public_detail(tree):
    """No signature and no alias of a public header names a type of a detail namespace."""
    public = [p for p in tree.cxx("include") if "/detail/" not in p]
    concepts = {name for p in tree.cxx("include") for name in re.findall(r"\bconcept\s+(\w+)", tree.parsed(p).code)}
    allowed = tree.public_types()
    for path in public:
        seen = set(allowed)
        for line, name in detail_names(tree.parsed(path)):
            if name not in concepts and name not in seen:
                seen.add(name)
                yield (path, line, f"public-detail {name}",
                       f"detail::{name} in a public signature: give it a public name, or keep it out")


def detail_names(source):
    """(line, name) of every detail::name in a declaration that users see: not in bodies, private parts or constraints."""
    tokens = source.tokens
    access = _access(source)
    for i in range(len(tokens) - 2):
        if tokens[i].text != "detail" or tokens[i + 1].text != "::":
            continue
        around, hidden = tokens[i].inside, False
        while around.opener and not around.holds_statements:
            hidden = hidden or around.opener == "{"  # an initializer, or a requires expression
            around = around.parent
        level = around
        while level is not None and level.opener:
            in_detail = level.kind == "namespace" and tokens[level.at - 1].text == "detail"
            hidden = hidden or level.kind in ("function", "lambda", "block") or in_detail
            level = level.parent
        begin = tokens[i].statement[1]
        words = [t.text for t in tokens[begin:i]]
        hidden = hidden or access.get(i) or bool({"friend", "static_assert", "requires", "concept", "namespace", "="} & set(words)) \
            and "using" not in words
        if not hidden and ("(" in _statement_behind(tokens, i) or "using" in words or "(" in words):
            yield tokens[i].line, tokens[i + 2].text


def _statement_behind(tokens, index):
    words = []
    while index < len(tokens) and tokens[index].text not in (";", "{", "}"):
        words.append(tokens[index].text)
        index += 1
    return words


def _access(source):
    """{index of a token: True} for tokens in the private or protected part of a class."""
    private, hidden = {}, {}
    for index, token in enumerate(source.tokens):
        around = token.inside
        while around is not None and around.opener:
            if around.kind == "class":
                key = id(around)
                if key not in private:
                    words = [t.text for t in source.tokens[max(0, around.at - 40):around.at]]
                    keys = [w for w in words if w in ("class", "struct", "union", "enum")]
                    private[key] = bool(keys) and keys[-1] == "class"
                if token.inside is around and token.text in ("public", "private", "protected") \
                        and source.tokens[index + 1].text == ":":
                    private[key] = token.text != "public"
                if private[key]:
                    hidden[index] = True
            around = around.parent
    return hidden


RULES = [layers, words, cxx23, file_length, function_length, one_await, pragma_once, plain_text, dead_files, public_detail]
