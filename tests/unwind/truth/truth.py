# SPDX-License-Identifier: MIT
"""The stacks that a program of programs.py can have, and recorded ones.

A Truth is the tree of all stacks of a program.  Its points come from the
program itself ("PROGRAM check"), and the names of the program's functions must
be those that the generator wrote down: two witnesses that know nothing of the
unwinder under test.  Frames of libraries between two functions of the program
(qsort(), raise(), the C library's entry) are compared by their number.
"""
import bisect
import os
import re
import subprocess

JOINED = "[joined]"
OWN = re.compile(r"(main|TH\d+|H_trap|H_fault|A_tick|L_small|R\d+_shared"
                 r"|L?T\d+_\w+)"
                 r"(?:(?:\.(?:cold|part|constprop|isra)(?:\.\d+)?)*"
                 r"| \[clone .*\]|::~\1(?:\(\))?)?")
# The outermost frame of main(), of a thread and of a coroutine.
ENDS = [(re.compile(r"main"), re.compile(r"_start")),
        (re.compile(r"TH\d+"), re.compile(r"(__GI_)?(__)?clone3?(@@.*)?")),
        (re.compile(r"T\d+_\d+_body"),
         re.compile(r"__start_context(@@.*)?|.*coroutine.*"))]
# While libgcc installs the registers of a landing pad, the places where its own
# frame saved the caller's hold the landing pad's: no unwinder can tell.
INSTALLS = re.compile(r"_Unwind_(Resume|RaiseException|Resume_or_Rethrow)"
                      r"(@@.*)?")
# The kernel changes one register after another as a handler begins and ends.
CHANGES = re.compile(r"(arch_do_signal.*|.*sys_rt_sigreturn)_\[k\]")
# A coroutine is entered by a return to its function's first byte, which as a
# return address is of the function before.
SWITCHES = re.compile(r"(__)?(swap|set)context(@@.*)?")
# A timer's handler, and what it returns to.
TICK, RETURNS = "A_tick", re.compile(r"(__GI_)?(__)?restore_rt")
LINE = re.compile(r"(.*) (\d+)")


def own_name(name):
    """The program's function that a symbol is of, or None."""
    match = OWN.fullmatch(name)
    return match[1] if match else None


class Node:
    """A function at one place of a stack; outermost: @parent is None.

    @between: library frames from it to its parent, or to the end of the stack.
    """

    def __init__(self, name, parent, between):
        self.name, self.parent, self.between = name, parent, between
        self.children = {}
        # the calls of a function by itself, the outermost first
        recurses = parent and parent.name == name and between == 0
        self.run = parent.run if recurses else []
        self.depth = len(self.run)
        self.run.append(self)



class Symbols:
    """Names of the functions in the program's own files, by address."""

    def __init__(self, maps, files):
        self.starts, self.names = [], []
        found = []
        for path in files:
            bases = [int(line.split("-")[0], 16) for line in maps
                     if line.endswith(os.path.realpath(path))]
            if not bases:       # a library that nothing is called in
                continue
            with open(path, "rb") as file:
                is_fixed = file.read(18)[16] == 2       # ET_EXEC
            bias = 0 if is_fixed else min(bases)
            listed = subprocess.run(["nm", "-C", "--defined-only", path],
                                    capture_output=True, text=True, check=True)
            for line in listed.stdout.splitlines():
                address, kind, name = line.split(" ", 2)
                if kind in "tTwWiI":
                    found.append((int(address, 16) + bias, name))
        # elsewhere no name of these files is true
        for line in maps:
            first, last = line.split()[0].split("-")
            if not any(line.endswith(os.path.realpath(p)) for p in files):
                found.append((int(first, 16), "(library)"))
        for start, name in sorted(found):
            self.starts.append(start)
            self.names.append(name)

    def own_name(self, address):
        """Of a return address, or of where a signal interrupted a function."""
        at = bisect.bisect_left(self.starts, address)
        if self.starts[at:at + 1] != [address]:
            address -= 1
        at = bisect.bisect(self.starts, address) - 1
        return own_name(self.names[at]) if at >= 0 else None


class Truth:
    """All stacks of @program, which was built in @folder."""

    def __init__(self, program, folder):
        self.program = program
        self.by_name = {}
        self.roots = {}
        done = subprocess.run([f"./{program.name}", "check"], cwd=folder,
                              capture_output=True, text=True, timeout=60,
                              check=True)
        lines = done.stdout.splitlines()
        files = [f"{folder}/{program.name}"]
        if "static" not in program.kind:
            files.append(f"{folder}/lib{program.name}.so")
        symbols = Symbols([line for line in lines if
                           not line.startswith("point ")], files)
        seen = set()
        for line in lines:
            if line.startswith("point "):
                _, number, *addresses = line.split()
                seen.add(int(number))
                self.add(program.points[int(number)],
                         [symbols.own_name(int(a, 16))
                          for a in addresses])
        if seen != set(range(len(program.points))):
            raise AssertionError(f"points that were not reached: {seen}")
        for caller, function in program.extra:
            for node in list(self.by_name.get(caller, [])):
                self.child(node, function, 0)

    def child(self, parent, name, between):
        known = parent.children if parent else self.roots
        if (name, between) not in known:
            known[name, between] = Node(name, parent, between)
            self.by_name.setdefault(name, []).append(known[name, between])
        return known[name, between]

    def add(self, names, found):
        """A stack by the generator, and by libgcc, the innermost first."""
        while found and found[0] is None:       # point() itself
            found.pop(0)
        own = [name for name in reversed(found) if name]
        if own != names:
            raise AssertionError(f"the generator says {names}, and libgcc's "
                                 f"unwinder found {own}")
        node, between = None, 0
        for name in reversed(found):
            if name:
                node = self.child(node, name, between)
            between = 0 if name else between + 1

    def match(self, frames):
        """How far @frames, the innermost first, are a stack of the program.

        Returns "root", "cut" or "wrong", and the last frame that is right: a
        node, or None.  Library frames alone are "cut".
        """
        own = [own_name(name) for name in frames]
        if own[:1] == [TICK]:   # anywhere in the program
            if len(frames) > 1 and not RETURNS.fullmatch(frames[1]):
                return "wrong", None
            return self.match(frames[2:])
        at = 0
        while at < len(own) and own[at] is None:
            at += 1
        if at == len(own):
            return "cut", None
        nodes = self.by_name.get(own[at], [])
        if at > 0 and own[at] not in self.program.calls_libraries and not (
                self.program.ticks and RETURNS.fullmatch(frames[at - 1])):
            return "wrong", None
        if not nodes:
            return "wrong", None
        while True:
            calls = 1
            while own[at + 1:at + 2] == [own[at]]:
                at, calls = at + 1, calls + 1
            nodes = [node.run[node.depth - calls + 1] for node in nodes
                     if node.depth >= calls - 1]
            if not nodes:
                return "wrong", self.by_name[own[at]][0]
            following = at + 1
            while following < len(own) and own[following] is None:
                following += 1
            between = following - at - 1
            if following == len(own):
                return self.end(nodes, between, frames[-1])
            callers = {node.parent for node in nodes
                       if node.parent and node.between == between and
                       node.parent.name == own[following]}
            if not callers:
                return "wrong", next(iter(nodes))
            nodes, at = callers, following

    @staticmethod
    def end(nodes, between, last):
        """The stack's last own frame is one of @nodes."""
        for node in nodes:
            if node.parent is None and node.between == between:
                for name, end in ENDS:
                    if name.fullmatch(node.name) and end.fullmatch(last):
                        return "root", node
            elif between < node.between or (node.parent and
                                            between == node.between):
                return "cut", node
        return "wrong", next(iter(nodes))

    def labels(self, stack):
        """What the frames of a path are, by its innermost function."""
        found = {"timer's handler"} if TICK in stack else set()
        own = [name for name in map(own_name, stack) if name and name != TICK]
        node = self.by_name.get(own[-1], [None])[0] if own else None
        while node:
            found.update(self.program.labels[node.name])
            node = node.parent
        return found

    def judge(self, stack):
        """What a folded stack is, the outermost frame first.

        Returns the verdict and the last right frame's node, or None:
        "complete", "cut" or "wrong"; "joined", "joined half" or "joined
        wrong" where frames of other samples are in it; "library complete" or
        "library cut" where no function of the program is in it; "kernel" where
        no user frame is; an excuse() in place of "wrong".
        """
        frames = [name for name in reversed(stack)
                  if not name.endswith("_[k]")]
        if not frames:
            return "kernel", None
        is_joined = JOINED in frames
        read = frames[:frames.index(JOINED)] if is_joined else frames
        frames = [name for name in frames if name != JOINED]
        if SWITCHES.fullmatch(frames[0]) and (
                len(frames) == 2 or len(frames) == 3 and
                ENDS[2][1].fullmatch(frames[2])):
            return self.judge_library(frames), None
        found, node = self.match(read)
        if found == "wrong":
            return self.excuse(read, stack), node
        if not is_joined:
            if node is None:
                return self.judge_library(frames), None
            return {"root": "complete"}.get(found, found), node
        found, node = self.match(frames)
        if node is None and self.judge_library(frames) == "library complete":
            found = "root"
        return {"root": "joined", "cut": "joined half",
                "wrong": "joined wrong"}[found], node

    def excuse(self, frames, stack):
        """Why no unwinder can be right about @frames, or "wrong".

        "installing": see INSTALLS; callers are missing.  "rare": the kernel
        changes registers; or the function is one that gcc realigned, in its
        last two instructions, where gcc's rules still read the caller's %rbp
        from where %rbp points to, though the function has popped it.
        """
        if any(map(CHANGES.fullmatch, stack)):
            return "rare"
        if frames[0] == TICK:
            frames = frames[2:]
        own = [own_name(name) for name in frames]
        first = next((i for i, name in enumerate(own) if name), None)
        if first is None or not self.is_one_path(own):
            return "wrong"
        if first:
            return ("installing" if INSTALLS.fullmatch(frames[first - 1])
                    else "wrong")
        kind = self.program.labels[own[0]][1]
        return ("rare" if self.program.compiler == "gcc" and "aligned" in kind
                else "wrong")

    def is_one_path(self, own):
        """All are of the path of the innermost one."""
        first = next(name for name in own if name)
        for node in self.by_name.get(first, []):
            path = set()
            while node:
                path.add(node.name)
                path.update(name for name, _ in node.children)
                node = node.parent
            if path.issuperset(filter(None, own)):
                return True
        return False

    @staticmethod
    def judge_library(frames):
        """No function of the program: it begins, ends, or is cut there."""
        if frames[-1] == "_dl_start_user" or any(end.fullmatch(frames[-1])
                                                 for _, end in ENDS):
            return "library complete"
        return "library cut"


def read_folded(text):
    """((comm, names, count), ...) of the lines of folded stacks."""
    for line in text.splitlines():
        stack, count = LINE.fullmatch(line).groups()
        comm, *names = stack.split(";")
        yield comm, names, int(count)
