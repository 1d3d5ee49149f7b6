"""Coroutines that outlive what they refer to, and members that are not called when one expects it."""

import re

import awaits

SUSPENDS = {"co_await", "co_return", "co_yield"}
STARTS = {"spawn", "spawn_link", "spawn_monitor", "child", "async_job", "async_nolink", "async_under",
          "async_under_nolink"}  # none of them waits for the end
OUTLIVES = {"runtime", "world"}  # what no process outlives
LOCKS = {"lock_guard", "scoped_lock", "unique_lock", "shared_lock"}


def lifetimes_in(source, spawned, servers):
    """(token, rule, what is wrong and what to write instead).

    `spawned`, `servers`: names of functions and classes that are spawned, see spawned_of and servers_in.
    """
    yield from _capturing_coroutines(source)
    yield from _borrowed_parameters(source, spawned)
    yield from _locks(source)
    yield from _terminate(source, servers)


def _function_of(token):
    """The innermost function or lambda around a token; None outside of all."""
    bracket = token.inside
    while bracket is not None and bracket.kind not in ("function", "lambda"):
        bracket = bracket.parent
    return bracket


# ---- captures -----------------------------------------------------------------------------------------------------


def _capturing_coroutines(source):
    tokens = source.tokens
    coroutines = {id(_function_of(t)) for t in tokens if t.text in SUSPENDS}
    for index, token in enumerate(tokens):
        if token.text != "[" or not awaits.is_lambda(tokens, index):
            continue
        body = _body_of_lambda(tokens, index)
        names = [c.name for c in awaits.captures(tokens, index)]
        if names and body is not None and id(body) in coroutines:
            yield token, "capturing-coroutine", (
                f"a lambda that is a coroutine captures ({', '.join(names)}): its frame refers to the lambda, which is usually "
                "gone when the coroutine continues; pass what it needs as arguments, by value")


def _body_of_lambda(tokens, opening):
    """The brace that opens the body of the lambda whose [ is at `opening`."""
    index = tokens[opening].match + 1
    while index < len(tokens) and tokens[index].text not in (";", ")", "}"):
        if tokens[index].text == "{":
            return tokens[index].opens
        index = max(index, tokens[index].match) + 1
    return None


# ---- parameters of spawned coroutines -----------------------------------------------------------------------------


def spawned_of(sources):
    """For each source the names of its functions that some source spawns, or makes children of a supervisor.

    A name is looked for in the source that spawns it; in the others only if that one does not declare it.
    """
    own = [{s.tokens[i].text for i in range(len(s.tokens)) if _declares_task(s.tokens, i)} for s in sources]
    by = [set(_spawned_in(s)) for s in sources]
    elsewhere = set().union(*(names - declared for names, declared in zip(by, own)))
    return [declared & (names | elsewhere) for names, declared in zip(by, own)]


def _spawned_in(source):
    tokens = source.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text in STARTS and tokens[index + 1].text == "(" and tokens[index + 1].match > 0:
            for argument in _split(tokens, index + 1)[:4]:  # options, and of jobs the owner and the supervisor, come before the function
                words = [t.text for t in argument]
                if words and re.fullmatch(r"&? ?(?:\w+ :: )*[A-Za-z_]\w*", " ".join(words)):
                    yield words[-1]


def _split(tokens, opening):
    """The tokens between two brackets, split at the commas outside of inner brackets and template arguments."""
    parts, angle, index = [[]], 0, opening + 1
    while index < tokens[opening].match:
        text = tokens[index].text
        angle = max(0, angle + {"<": 1, ">": -1}.get(text, 0))
        if text == "," and angle == 0:
            parts.append([])
        else:
            end = max(index, tokens[index].match)
            parts[-1] += tokens[index:end + 1]
            index = end
        index += 1
    return [part for part in parts if part]


def _borrowed_parameters(source, spawned):
    tokens = source.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text in spawned and _declares_task(tokens, index):
            yield from _borrowed(_split(tokens, index + 1), token.text)
        elif token.text == "[" and awaits.is_lambda(tokens, index) and _is_started(tokens, index):
            behind = tokens[token.match + 1]
            if behind.text == "(":
                yield from _borrowed(_split(tokens, token.match + 1), "the lambda")


def _declares_task(tokens, name):
    """Whether the token is the name of a function that returns a task, where that is declared."""
    if name + 1 >= len(tokens) or tokens[name + 1].text != "(" or tokens[name + 1].match < 0:
        return False
    index = name - 1
    while index > 1 and tokens[index].text == "::":
        index -= 2
    if index < 0 or tokens[index].text != ">":
        return False
    depth = 0
    while index >= 0:
        depth += {">": 1, "<": -1}.get(tokens[index].text, 0)
        index -= 1
        if depth == 0:
            break
    return index >= 0 and tokens[index].text == "task"


def _is_started(tokens, opening):
    """Whether the lambda whose [ is at `opening` is an argument of spawn and its like."""
    around = tokens[opening].inside
    return around.opener == "(" and around.at > 0 and tokens[around.at - 1].text in STARTS


def _borrowed(parameters, function):
    if not parameters or "self" not in [t.text for t in parameters[0]]:
        return
    for parameter in parameters[1:]:
        words, depth = [], 0
        for token in parameter:
            if token.text == "=":  # a default argument
                break
            depth += {"<": 1, ">": -1}.get(token.text, 0)
            if depth == 0:
                words.append(token.text)
        if "(" in words:  # a function pointer
            continue
        if "*" in words:
            if not OUTLIVES & set(words):
                yield parameter[0], "pointer-parameter", (
                    f"{function} is spawned and takes a pointer, {words[-1]}: what it points to may be gone while it runs; "
                    "take a value or a std::shared_ptr, or say in a comment what outlives it")
        elif "&" in words or {"string_view", "span"} & set(words):
            yield parameter[0], "view-parameter", (
                f"{function} is spawned and takes {words[-1]} by reference or as a view: the data of its spawner may be gone "
                "while it runs; take a value")


# ---- locks --------------------------------------------------------------------------------------------------------


def _locks(source):
    tokens = source.tokens
    for index, token in enumerate(tokens):
        if token.text not in LOCKS or not token.inside.holds_statements or token.inside.kind in ("namespace", "class"):
            continue
        if index > 1 and tokens[index - 1].text == "::" and tokens[index - 2].text != "std":  # a lock between processes, perhaps
            continue
        scope = tokens[token.inside.at].match if token.inside.at >= 0 else len(tokens)
        for behind in tokens[index:scope]:
            if behind.text == "unlock":
                break
            if behind.text == "co_await" and _function_of(behind) is _function_of(token):
                yield token, "lock-across-await", (
                    f"{token.text} is held across the co_await on line {behind.line}: the process may continue on another "
                    "thread; release the lock in a scope of its own before")
                break


# ---- terminate ----------------------------------------------------------------------------------------------------


def servers_in(source):
    """The names of the classes that a source spawns as servers."""
    words = [t.text for t in source.tokens]
    for index in range(len(words) - 2):
        if words[index] in STARTS | {"start", "ref"} and words[index + 1] == "<":
            name = index + 2
            while name + 2 < len(words) and words[name + 1] == "::":
                name += 2
            yield words[name]


def _terminate(source, servers):
    tokens = source.tokens
    for bracket in source.brackets:
        if bracket.kind != "class":
            continue
        head = [t.text for t in tokens[tokens[bracket.at].statement[1]:bracket.at]]
        if not servers & set(head) or ":" in head:  # of its bases nothing is known
            continue
        body = tokens[bracket.at:tokens[bracket.at].match]
        words = {t.text for t in body}
        members = [t for t, behind in zip(body, body[1:]) if t.inside is bracket and behind.text == "("]
        hooks = [t for t in members if t.text == "terminate"]
        if hooks and "exit_reason" in words and not {"traps_exits", "trap_exits"} & words \
                and any(t.text == "handle" for t in members):
            yield hooks[0], "terminate-without-trap", (
                "terminate is not called when the parent stops this server, because the class does not trap exits: add "
                "`static constexpr bool traps_exits = true;`, or `= false` to say that this is intended")
