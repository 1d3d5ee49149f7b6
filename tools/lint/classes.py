"""The classes that sources define, as far as the rules need them: which ones g++ 12 destroys twice when they are built in
an awaiting statement, and which ones are safe there.

Broken are aggregates with a member that has a destructor. Classes with a constructor and aggregates of plain numbers are
safe (tests/compiler).
"""

import enum
import re
from dataclasses import dataclass, field


class Kind(enum.Enum):
    SAFE = 1
    BROKEN = 2  # an aggregate that may have something to destroy


# Standard templates and classes that are safe to build in an awaiting statement: they have constructors.
SAFE_STD = {"optional", "variant", "pair", "tuple", "string", "wstring", "string_view", "unique_ptr", "shared_ptr", "weak_ptr",
            "atomic", "error_code", "exception_ptr", "in_place_type", "in_place", "duration", "time_point", "span"}
DURATIONS = {"nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours", "days"}
# Words of a member's type that leave nothing to destroy. Of `ref<T>` and its like the argument does not matter.
PLAIN = {"bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "std", "chrono", "coppice", "actor",
         "const", "volatile", "mutable", "size_t", "ptrdiff_t", "byte", "duration", "time_point", "string_view", "span",
         "optional", "pair", "tuple", "variant", "array", "pid", "monitor_ref", "timer_ref", "node_id"} | DURATIONS
PLAIN_WORD = re.compile(r"u?int\w*_t|char\d+_t|\d[\w.']*|::|,|<|>")
HANDLES = {"ref", "actor_ref"}
KEYWORDS = {"return", "co_return", "co_await", "co_yield", "throw", "new", "else", "do", "case", "and", "or", "not", "explicit",
            "constexpr", "inline", "if", "while", "for", "switch", "operator", "requires", "sizeof", "decltype", "noexcept"}
NOT_MEMBERS = {"using", "typedef", "static", "friend", "template", "enum", "struct", "class", "union", "public", "private",
               "protected", "static_assert", "constexpr"}


@dataclass
class Class:
    name: str
    around: frozenset = frozenset()  # the names of the classes and namespaces that it stands in
    is_aggregate: bool = True
    is_plain: bool = True  # nothing but plain members, as far as their names tell
    member_types: list = field(default_factory=list)  # words of types that are not plain by themselves


@dataclass
class Known:
    """What is known of a name."""
    kind: Kind
    around: set


def known_classes(sources):
    """{name: Known} of the classes that the sources define. A name with two meanings is left out."""
    sources = list(sources)
    classes = {}
    for source in sources:
        for bracket in source.brackets:
            if bracket.kind == "class" and (found := _read(source.tokens, bracket)):
                classes.setdefault(found.name, []).append(found)
    functions = {name for source in sources for name in _functions_in(source)}
    known = {}
    for name, found in classes.items():
        if name in functions:
            continue
        of_all = {_kind(each, classes) for each in found}
        if len(of_all) == 1:
            known[name] = Known(of_all.pop(), set().union(*(each.around for each in found)))
    return known


def _functions_in(source):
    """The names of the functions that a source declares; not of constructors, which have no type in front."""
    tokens = source.tokens
    for before, token, behind in zip(tokens, tokens[1:], tokens[2:]):
        if behind.text == "(" and re.match(r"[A-Za-z_]", token.text) and token.text not in KEYWORDS:
            if re.match(r"[A-Za-z_>]", before.text) and before.text not in KEYWORDS:
                yield token.text


def _kind(of, classes, inside=()):
    if not of.is_aggregate:
        return Kind.SAFE
    if of.name in inside or not of.is_plain:
        return Kind.BROKEN
    for name in of.member_types:
        members = classes.get(name, [])
        if not members or any(not m.is_aggregate or _kind(m, classes, (*inside, of.name)) == Kind.BROKEN for m in members):
            return Kind.BROKEN
    return Kind.SAFE


def _read(tokens, brace):
    """The class whose body opens at `brace`; None for one without a name."""
    head = tokens[tokens[brace.at].statement[1]:brace.at]
    keys = [i for i, t in enumerate(head) if t.text in ("class", "struct", "union", "enum")]
    if not keys:
        return None
    words = [t.text for t in head[keys[-1] + 1:]]
    if head[keys[0]].text == "enum":
        name = words[0] if words else ""
        return Class(name) if re.match(r"[A-Za-z_]", name) else None
    if not words or not re.match(r"[A-Za-z_]", words[0]):
        return None
    found = Class(words[0], frozenset(_scopes(tokens, brace)))
    if ":" in words:  # of its bases nothing is known
        found.is_plain = False
    hidden = head[keys[-1]].text == "class"
    for statement in _statements(tokens, brace):
        texts = [t.text for t in statement]
        if texts[0] in ("public", "private", "protected"):
            hidden = texts[0] != "public"
        _read_member(found, texts, hidden)
    return found


def _scopes(tokens, brace):
    scope = brace.parent
    while scope is not None and scope.opener:
        if scope.kind in ("namespace", "class"):
            yield from (t.text for t in tokens[tokens[scope.at].statement[1]:scope.at])
        scope = scope.parent


def _statements(tokens, brace):
    """The statements directly inside a class, each without what its braces hold."""
    end = tokens[brace.at].match if tokens[brace.at].match > 0 else len(tokens)
    statement, index = [], brace.at + 1
    while index < end:
        token = tokens[index]
        if statement and token.statement != statement[0].statement and token.inside is brace:
            yield statement
            statement = []
        if token.text not in (";", "}"):
            statement.append(token)
        if token.text in ("{", "(", "[") and token.match > index:
            index = token.match
            if token.text != "{":
                statement.append(tokens[index])
        index += 1
    if statement:
        yield statement


def _read_member(found, texts, hidden):
    if texts[0] in ("public", "private", "protected"):
        texts = texts[2:]
    if not texts:
        return
    if "virtual" in texts:
        found.is_aggregate = False
    if "(" in texts and "=" not in texts[:texts.index("(")]:  # a function
        before = texts[texts.index("(") - 1]
        if before == found.name and "~" not in texts[:texts.index("(")]:
            found.is_aggregate = False
        elif before == found.name:  # a destructor
            found.is_plain = False
        return
    if texts[0] in NOT_MEMBERS or texts[0] == "operator":
        return
    if hidden:
        found.is_aggregate = False
    declared = texts[:min([texts.index(stop) for stop in ("=", "{", "[") if stop in texts], default=len(texts))]
    found.member_types += _destroyed_words(declared[:-1])


def _destroyed_words(words):
    """The words of a type that may name something to destroy."""
    if "*" in words or "&" in words:
        return []
    left, depth = [], 0
    for index, word in enumerate(words):
        if depth:
            depth += {"<": 1, ">": -1}.get(word, 0)
        elif word == "<" and index and words[index - 1] in HANDLES:
            depth = 1
        elif word not in PLAIN and word not in HANDLES and not PLAIN_WORD.fullmatch(word):
            left.append(word)
    return left


def name_before(tokens, index):
    """The name of the type or function in front of the bracket at `index`: `message` for coppice::message{ and message<T>{."""
    at = index - 1
    if at >= 0 and tokens[at].text == ">":
        depth = 0
        while at >= 0:
            depth += {">": 1, "<": -1}.get(tokens[at].text, 0)
            at -= 1
            if depth == 0:
                break
    return tokens[at].text if at >= 0 and re.match(r"[A-Za-z_]", tokens[at].text) else ""


def kind_before(tokens, index, known):
    """The kind of the class in front of the bracket at `index`; None if it is not known."""
    name = name_before(tokens, index)
    if name in known:
        return known[name].kind
    return Kind.SAFE if name in SAFE_STD | DURATIONS else None
