"""Just enough of C++ for coppice-lint and tools/tidy: text without comments and literals, tokens, brackets, what each
brace opens, statements.

It is a heuristic, made for code that compiles and is formatted by clang-format; it never has to understand types.
"""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\S")
LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/'
    r'|(?:u8|[uUL])?R"(?P<end>[^()\\ ]*)\(.*?\)(?P=end)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",  # not the ' of 1'000
    re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)

CONTROL = re.compile(r"(?:if (?:constexpr )?\( \)|(?:while|for|switch|catch) \( \)|else|do|try|\[ \]) ")
CLASS_KEYS = {"class", "struct", "union", "enum"}
AFTER_PARAMETERS = {"const", "volatile", "noexcept", "override", "final", "mutable", "constexpr", "static", "try", "&"}
CLOSER = {"(": ")", "[": "]", "{": "}"}


def without_comments_and_literals(text):
    """The text with comments gone and literals emptied; every line keeps its number and every column its place."""

    def blank(match):
        found = match.group()
        blanked = re.sub(r"[^\n]", " ", found)
        if not found.startswith("/"):  # a literal: its quotes stay, so that it still counts as something
            quote = found[-1]
            blanked = quote + blanked[1:-1] + quote
        return blanked

    return LITERAL.sub(blank, text)


@dataclass
class Bracket:
    """An opened bracket. Kinds of braces: namespace, class, function, lambda, block, init."""
    opener: str
    kind: str
    line: int
    at: int  # index of the token that opens it
    name: str = ""  # of a function
    end_line: int = 0
    head: int = 0  # index of the token that begins the current statement inside
    parent: "Bracket | None" = None

    @property
    def holds_statements(self):
        return self.kind in ("namespace", "class", "function", "lambda", "block")


@dataclass
class Token:
    text: str
    line: int
    column: int
    inside: Bracket = None  # the innermost bracket around it
    statement: tuple = ()  # equal for the tokens of one statement; the body of a lambda is not part of the statement around it
    opens: Bracket = None
    match: int = -1  # of a bracket: the index of its partner


@dataclass
class Source:
    """A parsed piece of C++."""
    text: str
    code: str = ""  # without comments, literals and preprocessor lines
    tokens: list = field(default_factory=list)
    brackets: list = field(default_factory=list)


def parse(text):
    source = Source(text, code=DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), without_comments_and_literals(text)))
    line, position = 1, 0
    for match in TOKEN.finditer(source.code):
        line += source.code.count("\n", position, match.start())
        position = match.start()
        column = position - source.code.rfind("\n", 0, position)
        source.tokens.append(Token(match.group(), line, column))
    _match_brackets(source.tokens)
    _open_brackets(source)
    return source


def _match_brackets(tokens):
    stack = []
    for index, token in enumerate(tokens):
        if token.text in CLOSER:
            stack.append(index)
        elif token.text in CLOSER.values() and stack and CLOSER[tokens[stack[-1]].text] == token.text:
            token.match = stack.pop()
            tokens[token.match].match = index


def _open_brackets(source):
    tokens = source.tokens
    top = current = Bracket("", "namespace", 1, -1)
    for index, token in enumerate(tokens):
        around = current
        while not around.holds_statements:
            around = around.parent
        token.inside, token.statement = current, (id(around), around.head)
        if token.text in CLOSER:
            bracket = Bracket(token.text, "", token.line, index, head=index + 1, parent=current)
            if token.text == "{":
                bracket.kind, bracket.name = _kind_of_brace(tokens, index, current)
            token.opens = current = bracket
            source.brackets.append(bracket)
        elif token.text in CLOSER.values():
            if token.match >= 0 and current is not top:
                current.end_line = token.line
                closed, current = current, current.parent
                token.inside = current
                if closed.holds_statements and closed.kind != "lambda":
                    current.head = index + 1
        elif token.text == ";" and current.holds_statements:
            current.head = index + 1
        elif token.text == ":" and current.holds_statements:
            if tokens[current.head].text in ("case", "default", "public", "private", "protected"):
                current.head = index + 1
    source.top = top  # keeps every bracket alive, so that the ids in Token.statement stay unique


def _top_level(tokens, begin, end):
    """The indexes from begin to end that are not inside brackets or template parameter lists."""
    indexes, index = [], begin
    while index < end:
        indexes.append(index)
        if tokens[index].text == "template" and index + 1 < end and tokens[index + 1].text == "<":
            depth, index = 0, index + 1
            while index < end:
                depth += {"<": 1, ">": -1}.get(tokens[index].text, 0)
                index = max(index, tokens[index].match) + 1
                if depth == 0:
                    break
            indexes.pop()
            continue
        if tokens[index].text in CLOSER and index < tokens[index].match < end:
            index = tokens[index].match
            indexes.append(index)
        index += 1
    return indexes


def _kind_of_brace(tokens, brace, around):
    if lambda_introducer(tokens, brace) is not None:
        return "lambda", ""
    previous = tokens[brace - 1].text if brace else ""
    if previous == "requires" or (previous == ")" and tokens[tokens[brace - 1].match - 1].text == "requires"):
        return "init", ""  # a requires expression: the statement around it goes on behind it
    if not around.holds_statements:
        return "init", ""
    indexes = _top_level(tokens, around.head, brace)
    head = [tokens[i].text for i in indexes]
    while prefix := CONTROL.match(" ".join(head) + " "):  # only what stands behind `if (...)` counts
        skip = len(prefix.group().split())
        head, indexes = head[skip:], indexes[skip:]
    if not head:
        return "block", ""
    if "namespace" in head or (head[0] == "extern" and '"' in head):
        return "namespace", ""
    is_operator = "operator" in head
    if "=" in head and not is_operator:
        return "init", ""
    if CLASS_KEYS & set(head):
        return "class", ""
    if "(" not in head or ")" not in head:
        return "init", ""
    closing = head.index(")")
    behind = head[closing + 1:]
    name = tokens[indexes[head.index("(")] - 1].text
    if around.kind not in ("namespace", "class"):  # functions do not stand in functions: a macro that works like a loop
        return ("block" if previous == ")" else "init"), ""
    if ":" in behind:  # the initializers of a constructor; in x{1}, y{2} {...} only the last brace is the body
        is_member = re.match(r"\w", previous) and previous not in AFTER_PARAMETERS or previous == ">"
        return ("init", "") if is_member else ("function", name)
    if previous == ")" or previous in AFTER_PARAMETERS or ">" in behind or "->" in behind or "requires" in behind:
        return "function", name
    return "init", ""


def lambda_introducer(tokens, brace):
    """The index of the [ of the lambda whose body opens at `brace`; None if the brace opens something else."""
    index, angle = brace - 1, 0
    arrow = None  # the -> of a return type; commas in front of the brace are allowed only in its template arguments
    probe = index
    while probe >= 0:
        text = tokens[probe].text
        angle += {">": 1, "<": -1}.get(text, 0)
        if text == "->":
            arrow = probe
            break
        if text in (")", "]") and 0 <= tokens[probe].match < probe and angle > 0:
            probe = tokens[probe].match
        elif text in "(){}[];=" or (text == "," and angle == 0):
            break
        probe -= 1
    if arrow is not None:
        index = arrow - 1
    while index >= 0 and tokens[index].text in ("mutable", "noexcept", "constexpr", "static", "const"):
        index -= 1
    if index >= 0 and tokens[index].text == ")" and tokens[index].match >= 0:
        index = tokens[index].match - 1
        if index >= 0 and tokens[index].text == "noexcept":
            return lambda_introducer(tokens, index)
    if index >= 0 and tokens[index].text == ">":  # template parameters
        depth = 0
        while index >= 0:
            depth += {">": 1, "<": -1}.get(tokens[index].text, 0)
            index -= 1
            if depth == 0:
                break
    if index < 0 or tokens[index].text != "]" or tokens[index].match < 0:
        return None
    opening = tokens[index].match
    return opening if begins_lambda(tokens, opening) else None


def begins_lambda(tokens, opening):
    """Whether the [ at `opening` begins a lambda, rather than an index, an attribute or a structured binding."""
    before = tokens[opening - 1].text if opening else ";"
    if before in ("return", "co_return", "co_yield", "co_await"):
        return True
    if re.match(r"[\w)\]\[]", before) or tokens[opening + 1].text == "[":
        return False
    back = opening - 1
    while back > 0 and tokens[back].text == "&":
        back -= 1
    return tokens[back].text != "auto"
