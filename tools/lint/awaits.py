"""Awaiting statements that g++ 12 miscompiles, without a warning: it destroys temporaries twice, or resumes a wrong frame.

tests/compiler has a program for each case. One await per statement, into a named local, with nothing built in that
statement, avoids all of them.
"""

import re

import classes
import cxx

FIRST = "await into a named local first"


def awaits_in(source, known, strict=False):
    """(token, rule, what is wrong and what to write instead), in the order of the text.

    `known`: see classes.known_classes. `strict`: refuses values in braces that are known to be
    safe too, as a rule that people need not look up.
    """
    found = {(t.line, t.column, rule): (t, rule, what) for t, rule, what in _awaits_in(source, known, strict)}
    return [found[place] for place in sorted(found)]


def _awaits_in(source, known, strict):
    tokens, statements = source.tokens, {}
    for index, token in enumerate(tokens):
        statements.setdefault(token.statement, []).append(index)
    for indexes in statements.values():
        awaits = [i for i in indexes if tokens[i].text == "co_await" and i and tokens[i - 1].text != "operator"]
        if not awaits:
            continue
        if len(awaits) > 1:
            yield tokens[awaits[1]], "two-awaits", f"a second co_await in one statement: {FIRST}"
        for index in awaits:
            yield from _places(tokens, index, indexes)
        around = {id(bracket) for index in awaits for bracket in _enclosing(tokens[index])}
        for index in indexes:
            if all(id(head) in around for head in _heads(tokens, index)):
                yield from _built(tokens, index, known, strict)


def _enclosing(token):
    """The brackets around a token, up to the one that holds its statement."""
    bracket = token.inside
    while bracket.opener and not bracket.holds_statements:
        yield bracket
        bracket = bracket.parent
    yield bracket


def _before(tokens, bracket):
    """The word in front of a bracket; of `if constexpr (` the if."""
    before = tokens[bracket.at - 1].text if bracket.at > 0 else ""
    return tokens[bracket.at - 2].text if before == "constexpr" and bracket.at > 1 else before


def _heads(tokens, index):
    """The heads of control statements, `if (...)`, that a token stands in: another expression than what follows them."""
    return [b for b in _enclosing(tokens[index]) if b.opener == "(" and _before(tokens, b) in ("if", "while", "switch", "for")]


def _with_article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def _places(tokens, index, statement):
    """What is wrong with the place of the co_await at `index`."""
    token, enclosing = tokens[index], list(_enclosing(tokens[index]))
    for bracket in enclosing:
        before = _before(tokens, bracket)
        if bracket.opener != "(":
            continue
        if before in ("if", "while", "switch", "for"):
            yield token, "await-in-condition", f"co_await in the head of {_with_article(before)}: {FIRST}"
        elif re.fullmatch(r"[A-Z][A-Z0-9_]+", before):
            yield token, "await-in-macro", f"co_await inside the macro {before}, which may put it into a condition: {FIRST}"
    if any(tokens[i].text == "?" and tokens[i].inside in enclosing for i in statement):
        yield token, "await-in-choice", f"co_await in a ?: expression: {FIRST}"
    thrown = [i for i in statement if tokens[i].text == "throw" and i < index and tokens[i].inside in enclosing]
    if thrown:
        yield token, "await-in-throw", f"co_await in a throw: {FIRST}"


def _built(tokens, index, known, strict):
    """What is wrong with a value that begins at the bracket at `index`, in an awaiting statement."""
    token = tokens[index]
    if token.text == "{" and token.opens is not None and token.opens.kind == "init":
        kind = classes.kind_before(tokens, index, known)
        is_empty = token.match == index + 1
        if kind == classes.Kind.BROKEN or (not is_empty and (strict or kind is None)):
            yield token, "braces-in-await", ("a value built in braces in an awaiting statement: build it on a line of its own, "
                                             "then std::move it in")
    elif token.text == "(" and _builds_aggregate(tokens, index, known):
        yield tokens[index - 1], "aggregate-in-await", (
            f"{tokens[index - 1].text}(...) builds an aggregate in an awaiting statement: build it on a line of its own, "
            "then std::move it in")
    elif token.text == "[" and is_lambda(tokens, index):
        for capture in captures(tokens, index):
            if not capture.is_reference:
                yield token, "capture-in-await", (f"a lambda that captures {capture.name} by value in an awaiting statement: "
                                                  "make it on a line of its own, then std::move it in")


def _builds_aggregate(tokens, opening, known):
    found = known.get(tokens[opening - 1].text) if opening else None
    if found is None or found.kind != classes.Kind.BROKEN:
        return False
    before = tokens[opening - 2].text if opening > 1 else ""
    qualifier = tokens[opening - 3].text if before == "::" and opening > 2 else ""
    if before in (".", "->") or (re.match(r"\w", qualifier) and qualifier not in found.around):  # a function of that name
        return False
    inside = [t.text for t in tokens[opening + 1:max(tokens[opening].match, opening + 1)]]
    return inside[:4] != ["std", "::", "move", "("]  # moved from another one: that is a constructor, and safe


# ---- lambdas ------------------------------------------------------------------------------------------------------


class Capture:
    def __init__(self, words):
        self.is_reference = words[0] in ("&", "this")
        self.name = {"=": "everything", "&": "everything by reference"}.get(words[0], words[0])
        if words[0] in "&*." and len(words) > 1:
            self.name = next((w for w in words if re.match(r"\w", w)), words[0])


def is_lambda(tokens, opening):
    behind = tokens[opening].match + 1
    return (0 < behind < len(tokens) and cxx.begins_lambda(tokens, opening)
            and tokens[behind].text in ("(", "{", "<", "mutable", "->"))


def captures(tokens, opening):
    """The captures of the lambda whose [ is at `opening`."""
    words, index = [], opening + 1
    while index <= tokens[opening].match:
        text = tokens[index].text
        if text == "," or index == tokens[opening].match:
            if words:
                yield Capture(words)
            words = []
        else:
            words.append(text)
            if text in "([{" and tokens[index].match > index:
                index = tokens[index].match
        index += 1
