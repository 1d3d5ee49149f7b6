"""Commands for gdb that show the processes of a program that uses Coppice, live or in a core:

    (gdb) source .../coppice_gdb.py
    (gdb) coppice ps            all processes: pid, state, messages waiting, name or label, type, what it waits for
    (gdb) coppice tree          the same below their parents
    (gdb) coppice bt <1.3.0>    the functions that a process waits in, or the backtrace of the thread that runs it

The program and Coppice must have been built with debug information (-g). Nothing is called in the program, so a core
works as well as a live program.
"""

import re

import gdb

FLAG_HAS_PROCESS = 1 << 18
IS_FROZEN = 8


def std_string(value):
    length = int(value["_M_string_length"])
    return value["_M_dataplus"]["_M_p"].string(length=length) if length else ""


def string_view(value):
    length = int(value["_M_len"])
    return value["_M_str"].string(length=length) if length else ""


def number(atomic):
    return int(atomic["_M_i"])


def pointer(atomic):
    return atomic["_M_b"]["_M_p"]


def owned(unique, type_name):
    """The pointer in a std::unique_ptr with the default deleter, which is nothing but that pointer."""
    kind = gdb.lookup_type(type_name).pointer()
    return unique.address.cast(kind.pointer()).dereference()


def symbol_at(address):
    """The demangled name at an address, without parameters; empty if there is none."""
    text = gdb.execute(f"info symbol {int(address):#x}", to_string=True)
    if text.startswith("No symbol"):
        return ""
    return readable(re.sub(r"( \+ \d+)? in section .*$", "", text.strip(), flags=re.S))


def readable(whole):
    """A demangled name without its result and its parameters."""
    front = without_parameters(whole)
    name = without_result(front)
    # g++ names the function of a frame after the coroutine without its template arguments; its parameter has them.
    parameter = whole[len(front) + 1:]
    return name + arguments(parameter[len(name):]) if parameter.startswith(name + "<") else name


def arguments(text):
    """The template arguments that the text begins with."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "<") - (c == ">")
        if depth == 0:
            return text[:i + 1]
    return ""


def first_argument(name):
    """The first template argument of a name."""
    inner = arguments(name[name.index("<"):])[1:-1]
    depth = 0
    for i, c in enumerate(inner):
        depth += (c in "<({") - (c in ">)}")
        if depth == 0 and c == ",":
            return inner[:i]
    return inner


def without_parameters(name):
    depth = 0
    i = 0
    while i < len(name):
        for part in ("operator()", "(anonymous namespace)"):
            if name.startswith(part, i):
                i += len(part)
                break
        else:
            if name[i] in "<{":
                depth += 1
            elif name[i] in ">}":
                depth -= 1
            elif name[i] == "(" and depth == 0:
                return name[:i]
            i += 1
    return name.split(" [clone")[0]


def without_result(name):
    """A template's name begins with the type it returns. As in src/platform/symbols.cpp."""
    depth = 0
    begin = 0
    for i, c in enumerate(name):
        depth += (c in "<{(") - (c in ">})")
        if c == " " and depth == 0 and not name[:i].endswith("operator"):
            begin = i + 1
    return name[begin:]


class Process:
    """A slot of the table that has a process."""

    def __init__(self, runtime, index, slot):
        self.runtime = runtime
        self.index = index
        self.slot = slot
        self.tag = number(slot["tag"])
        self.serial = self.tag >> 32
        self.pid = f"<{runtime.node}.{index}.{self.serial}>"
        self.parent = int(number(slot["parent_index"])), int(number(slot["parent_serial"]))
        self.body = slot["process"]
        self.name, self.label = runtime.names.get((index, self.serial), ("", ""))
        self.thread = runtime.running.get(int(slot.address))

    def coroutine(self):
        kind = gdb.lookup_static_symbol("coppice::detail::coroutine::type_of") or gdb.lookup_global_symbol(
            "coppice::detail::coroutine::type_of")
        if not self.body or kind is None or int(self.body["type"]) != int(kind.value().address):
            return None
        return self.body.cast(gdb.lookup_type("coppice::detail::coroutine").pointer())

    def type(self):
        if not self.body:
            return ""
        name = string_view(self.body["type"].dereference()["name"])
        mine = self.coroutine()
        if name or mine is None:
            return name
        name = frame_name(mine["root_"]["_M_fr_ptr"])
        return first_argument(name) if name.startswith("coppice::detail::serve<") else name

    def frames(self):
        """The functions that wait, the innermost first."""
        mine = self.coroutine()
        frame = mine["next_"]["_M_fr_ptr"] if mine is not None else None
        promise = gdb.lookup_type("coppice::detail::promise_base").pointer()
        found = []
        while frame:
            found.append(int(frame))
            link = (frame.cast(gdb.lookup_type("char").pointer()) + 16).cast(promise)["link_"]
            if not link:
                break
            frame = gdb.Value(int(link["parent"]) - 16).cast(gdb.lookup_type("void").pointer())
        return found

    def waits_for(self):
        mine = self.coroutine()
        if mine is None:
            return "mail"  # or, of an actor, for something that is not known here
        waiter = mine["waiting_"]
        if not waiter:
            return ""
        kind = re.sub(r"::how$", "", symbol_at(waiter["kind"]))
        kind = re.sub(r"^coppice::(detail::)?(pending_)?", "", kind)
        if kind.startswith("call_for"):
            call = waiter.cast(gdb.lookup_type("coppice::detail::call_base").pointer())
            to = call["to_"]
            whom = f"<{int(to['node_']['value_'])}.{int(to['index_'])}.{int(to['serial_'])}>"
            return f"an answer from {whom} to {string_view(call['sent_']['name'])}"
        return kind

    def state(self):
        if self.thread is not None:
            return "running"
        if number(self.slot["urgent"]) & IS_FROZEN:
            return "frozen"
        return "runnable" if pointer(self.slot["mail"]["tail"]) else "waiting"

    def mail(self):
        """Messages in the queue and those that a coroutine has put aside."""
        count = 0
        # With a limit, the messages wait elsewhere, and the queue has a token for each.
        mail = [int(gdb.parse_and_eval(f"coppice::detail::signal::{name}")) for name in ("message", "mail")]
        e = pointer(self.slot["mail"]["tail"]) and self.slot["mail"]["head"]
        if e and self.thread is not None:
            e = pointer(e["next"])  # the first is being handled
        while e:
            tag = int(e["tag"])
            count += tag >> 32 == self.serial and tag & 0xFFFF in mail
            e = pointer(e["next"])
        mine = self.coroutine()
        return count + (number(mine["held_"]) if mine is not None else 0)

    def line(self):
        waits = self.waits_for() if self.state() == "waiting" else ""
        parts = [self.pid, self.state(), str(self.mail()), self.name or self.label, self.type()]
        return "  ".join(p for p in parts if p) + (f"  waits for {waits}" if waits else "")


def frame_name(frame):
    """The function of a coroutine frame, which begins with a pointer to the function that resumes it."""
    code = frame.cast(gdb.lookup_type("long").pointer()).dereference()
    return re.sub(r"\.(actor|resume|destroy|cleanup)$", "", symbol_at(code))


class Runtime:
    def __init__(self, kernel):
        self.kernel = kernel
        table = kernel["table_"]
        self.node = int(table["node_"]["value_"])
        self.names = self.read_names()
        self.running = self.read_running()
        slots = table["slots_"]
        self.processes = []
        for i in range(1, number(table["used_"])):
            slot = slots[i]
            if number(slot["tag"]) & FLAG_HAS_PROCESS:
                self.processes.append(Process(self, i, slot))

    def read_names(self):
        parts = owned(self.kernel["parts_"], "coppice::detail::kernel_parts")
        entry = gdb.lookup_type("std::pair<coppice::pid const, coppice::detail::name_table::entry>").pointer()
        node = parts["names"]["by_pid_"]["_M_h"]["_M_before_begin"]["_M_nxt"]
        names = {}
        while node:
            pair = gdb.Value(int(node) + 8).cast(entry)
            who = pair["first"]
            names[int(who["index_"]), int(who["serial_"])] = (std_string(pair["second"]["name"]),
                                                              std_string(pair["second"]["label"]))
            node = node["_M_nxt"]
        return names

    def read_running(self):
        """Which thread runs which slot."""
        running = {}
        before = gdb.selected_thread()
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            try:
                turn = gdb.parse_and_eval("coppice::detail::current_turn")
                if turn and turn["p"] and int(turn["k"]) == int(self.kernel):
                    running[int(turn["p"])] = thread
            except gdb.error:
                continue  # its memory can't be read
        if before is not None:
            before.switch()
        return running


def runtimes():
    try:
        kernel = gdb.parse_and_eval("coppice::detail::all_kernels")
    except gdb.error as x:
        raise gdb.GdbError(f"this program has no Coppice, or no debug information of it: {x}")
    found = []
    while kernel:
        found.append(Runtime(kernel))
        kernel = kernel["next_kernel_"]
    return found


class CoppiceCommand(gdb.Command):
    """Shows the processes of Coppice: coppice ps | tree | bt PID."""

    def __init__(self):
        super().__init__("coppice", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        # A thread may be in a function of the C library, which gdb takes for assembler or C.
        before = gdb.parameter("language")
        gdb.execute("set language c++", to_string=True)
        try:
            self.run(argument.split())
        finally:
            gdb.execute(f"set language {before}", to_string=True)

    def run(self, words):
        if words == ["ps"]:
            for runtime in runtimes():
                for p in runtime.processes:
                    print(p.line())
        elif words == ["tree"]:
            for runtime in runtimes():
                self.tree(runtime)
        elif len(words) == 2 and words[0] == "bt":
            self.backtrace(words[1])
        else:
            raise gdb.GdbError("usage: coppice ps | coppice tree | coppice bt <1.3.0>")

    def tree(self, runtime):
        here = {(p.index, p.serial) for p in runtime.processes}
        children = {}
        for p in runtime.processes:
            children.setdefault(p.parent if p.parent in here else None, []).append(p)
        todo = [(p, 0) for p in reversed(children.get(None, []))]
        while todo:
            p, depth = todo.pop()
            print("  " * depth + p.line())
            todo += [(c, depth + 1) for c in reversed(children.get((p.index, p.serial), []))]

    def backtrace(self, wanted):
        for runtime in runtimes():
            for p in runtime.processes:
                if wanted not in (p.pid, p.name, p.label, p.type(), str(p.index)):
                    continue
                print(p.line())
                if p.thread is not None:
                    before = gdb.selected_thread()
                    p.thread.switch()
                    gdb.execute("backtrace")
                    before.switch()
                    return
                for i, frame in enumerate(p.frames()):
                    name = frame_name(gdb.Value(frame).cast(gdb.lookup_type("void").pointer()))
                    print(f"#{i}  {name}  (frame {frame:#x})")
                return
        raise gdb.GdbError(f"there is no process {wanted}; see: coppice ps")


CoppiceCommand()
