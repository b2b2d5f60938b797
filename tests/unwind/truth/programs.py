# SPDX-License-Identifier: MIT
"""Random programs in C and C++ whose stacks are known.

Each path of a program is a chain of functions of its own, from main() or a
thread down to a leaf that uses CPU time; only recursions are shared by several
paths, and the trap handler by all.  So the innermost function fixes the whole
stack.  The truth is a list of points, places where a path's stack is known,
each with the names of the functions from the outermost to the innermost one;
frames of libraries between these functions are counted by the program itself
(frames.h, POINT).
"""
import dataclasses
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
# Frames that are on the stack beside the function's own data.
LOCALS = ["none", "array", "alloca", "aligned", "page-aligned",
          "aligned alloca"]
LARGE = "larger than a copy"
OTHER_STACK = 2 << 20
COROUTINE_STACK = 2 << 20
DEPTHS = [(5, 100), (20, 4000), (60, 1000), (90, 700), (400, 160),
          (30, 3000), (1500, 48)]
KINDS = {"pie": ["-fPIE", "-pie"], "no-pie": ["-no-pie"],
         "static": ["-static"], "static-pie": ["-fPIE", "-static-pie"]}
# What changes prologues, calls and PLTs besides.
OPTIONS = ["", "", "", "-fcf-protection", "-fno-plt", "-Wl,-z,now", "-Os",
           "-fstack-clash-protection", "-fstack-protector-all",
           "-mno-red-zone", "-march=native"]
LEAVES = ["spin", "spin", "spin", "vdso", "plt", "libc", "system call"]


@dataclasses.dataclass
class Program:
    """Sources, how they are built, and the truth about the stacks."""
    name: str
    compiler: str
    level: str
    kind: str
    frame_pointers: bool
    cpp: bool
    source: str = ""
    library: str = ""
    option: str = ""    # of the compiler
    ticks: str = ""     # a timer's handler: "" for none, or its flags
    # [name, ...] of each point, the outermost first
    points: list = dataclasses.field(default_factory=list)
    # (caller, function) of functions that are called besides
    extra: list = dataclasses.field(default_factory=list)
    # functions of the program that call functions of libraries
    calls_libraries: set = dataclasses.field(default_factory=set)
    # function -> what its frame is, for the table
    labels: dict = dataclasses.field(default_factory=dict)

    def flags(self):
        return [self.level, *self.option.split(), "-g0", "-w",
                "-fno-builtin", "-pthread",
                "-fno-omit-frame-pointer" if self.frame_pointers else
                "-fomit-frame-pointer", f"-I{HERE}"]

    def commands(self):
        """Shell words, a list for each command, in the program's folder."""
        compiler = {"gcc": ("gcc", "g++"),
                    "clang": ("clang", "clang++")}[self.compiler][self.cpp]
        suffix = "cc" if self.cpp else "c"
        words = [compiler, *self.flags(), *KINDS[self.kind], "-o", self.name,
                 f"{self.name}.{suffix}"]
        if "static" in self.kind:
            return [words + [f"{self.name}_library.{suffix}"]]
        library = [compiler, *self.flags(), "-fPIC", "-shared", "-o",
                   f"lib{self.name}.so", f"{self.name}_library.{suffix}"]
        return [library, words + [f"./lib{self.name}.so"]]

    def write(self, folder):
        suffix = "cc" if self.cpp else "c"
        for name, text in ((self.name, self.source),
                           (f"{self.name}_library", self.library)):
            with open(f"{folder}/{name}.{suffix}", "w",
                      encoding="ascii") as out:
                out.write(text)

    def about(self):
        words = [self.compiler, "C++" if self.cpp else "C", self.level,
                 self.option, self.kind, "frame pointers" if
                 self.frame_pointers else "no frame pointers"]
        return " ".join(filter(None, words))


class Maker:
    """Writes one program.  Each step_*() puts a function before @next."""

    def __init__(self, rng, program):
        self.rng = rng
        self.program = program
        self.text = []
        self.library = []
        self.handlers = []      # lines of set_up()
        self.recursions = []    # [(name, depth)]
        self.signals = 0
        self.fresh = []         # points of the step in hand

    # -- parts of functions --

    def locals(self, small=False):
        """(label, declaration, use) of what a frame holds besides."""
        rng = self.rng
        size = rng.choice([16, 40, 100, 500] if small else
                          [16, 100, 1000, 3000])
        label = rng.choice(LOCALS)
        if not small and rng.random() < 0.06:
            label, size = LARGE, rng.choice([33000, 60000, 90000])
        text = {
            "none": "",
            "array": f"volatile char a[{size}];",
            "alloca": "volatile char *a = (volatile char *)__builtin_alloca"
                      f"({size} + (n & 7) * 16);",
            "aligned": f"volatile char a[{size}] "
                       "__attribute__((aligned(64)));",
            "page-aligned": f"volatile char a[{size}] "
                            "__attribute__((aligned(512)));",
            "aligned alloca": f"volatile char b[{size}] "
                              "__attribute__((aligned(64)));"
                              "volatile char *a = (volatile char *)"
                              f"__builtin_alloca({size} + (n & 7) * 16);"
                              "USE(b);",
            LARGE: f"volatile char a[{size}];"}[label]
        return label, text, "USE(a);" if text else ""

    def function(self, name, kind, body, parameters="long n", result="void",
                 small=False, first=""):
        """Emit a function around @body, with locals of some kind."""
        label, declare, use = self.locals(small)
        self.program.labels[name] = (kind, label)
        self.text.append(
            f"FRAME {result} {name}({parameters})\n{{\n"
            f"\t{first}{declare}{use}\n\t{body}\n\tKEEP;{use}\n"
            f"{'' if result == 'void' else 'return 0;'}}}\n")

    def plain(self, name, kind, text):
        """Emit a function as it is."""
        self.program.labels[name] = (kind, "none")
        self.text.append(text + "\n")

    def new_point(self, *called):
        """In the function that the step returns, or in those that it calls.

        Returns the statement.
        """
        number = len(self.program.points)
        self.program.points.append(None)
        self.fresh.append((number, called))
        return f"POINT({number});"

    def call(self, name):
        """As a caller knows only the functions that are already there."""
        return f"{name}(n);"

    # -- leaves: the name, and the truth's point --

    def leaf(self, prefix):
        kind = self.rng.choice(LEAVES)
        name = f"{prefix}_leaf"
        point = self.new_point()
        work = {
            "spin": "for (volatile long i = 0; i < n; i++);",
            "vdso": "struct timespec t; for (long i = 0; i < n; i += 16)"
                    " clock_gettime(CLOCK_MONOTONIC, &t);",
            "plt": "for (long i = 0; i < n; i += 4) L_small(i);",
            "libc": "static char b[512]; for (long i = 0; i < n; i += 32)"
                    " memset(b, (int)i, sizeof(b));",
            "system call": "for (long i = 0; i < n; i += 128)"
                           " syscall(SYS_getppid);"}[kind]
        self.function(name, kind, f"{point}\n\tif (!checking) {{ {work} }}")
        if kind != "spin":
            self.program.calls_libraries.add(name)
        if kind == "plt":
            self.program.extra.append((name, "L_small"))
        return name, [name]

    # -- steps --
    #
    # Each returns its function's name and the frames from it down to @next,
    # not included; None among them: @next's stack begins there.

    def step_call(self, prefix, following):
        name = f"{prefix}_call"
        self.function(name, "call", self.call(following))
        return name, [name]

    def step_rbp(self, prefix, following):
        """A function that uses the frame pointer's register for data."""
        name = f"{prefix}_rbp"
        if self.program.frame_pointers or self.program.level == "-O0":
            return self.step_call(prefix, following)
        self.plain(name, "rbp",
                   f"FRAME void {name}(long n)\n{{\n"
                   '\t__asm__ volatile("mov %0, %%rbp" :: "r"(n) : "rbp");\n'
                   f"\t{self.call(following)}\n\tKEEP;\n}}")
        return name, [name]

    def step_recursion(self, prefix, following):
        depth, size = self.rng.choice(DEPTHS)
        inner, name = f"{prefix}_recursion", f"{prefix}_enter"
        label = self.rng.choice(["array", "alloca", "aligned"])
        data = {"array": f"volatile char a[{size}];",
                "alloca": "volatile char *a = (volatile char *)"
                          f"__builtin_alloca({size});",
                "aligned": f"volatile char a[{size}] "
                           "__attribute__((aligned(64)));"}[label]
        self.plain(inner, "recursion",
                   f"FRAME void {inner}(int d, long n)\n{{\n\t{data} USE(a);\n"
                   f"\tif (d) {inner}(d - 1, n); else {self.call(following)}\n"
                   "\tKEEP; USE(a);\n}")
        self.program.labels[inner] = ("recursion", label)
        self.function(name, "call", f"{inner}({depth}, n);", small=True)
        return name, [name] + [inner] * (depth + 1)

    def step_shared(self, prefix, following):
        """A recursion that other paths run through as well."""
        if not self.recursions or self.rng.random() < 0.3:
            number = len(self.recursions)
            depth, size = self.rng.choice(DEPTHS)
            inner = f"R{number}_shared"
            self.recursions.append((inner, depth))
            self.plain(inner, "shared recursion",
                       f"FRAME void {inner}(int d, code *next, long n)\n{{\n"
                       f"\tvolatile char a[{size}]; USE(a);\n"
                       f"\tif (d) {inner}(d - 1, next, n); else next(n);\n"
                       "\tKEEP; USE(a);\n}")
        inner, depth = self.rng.choice(self.recursions)
        if self.rng.random() < 0.3:
            depth = max(1, depth + self.rng.choice([-3, -1, 1, 2]))
        name = f"{prefix}_sharer"
        if self.rng.random() < 0.5:     # callers whose frames are equal
            self.plain(name, "caller of a shared recursion",
                       f"FRAME void {name}(long n)\n{{\n"
                       f"\t{inner}({depth}, {following}, n);\n\tKEEP;\n}}")
        else:
            self.function(name, "caller of a shared recursion",
                          f"{inner}({depth}, {following}, n);")
        return name, [name] + [inner] * (depth + 1)

    def step_mutual(self, prefix, following):
        depth = self.rng.choice([3, 12, 51])
        odd, even, name = (f"{prefix}_odd", f"{prefix}_even",
                           f"{prefix}_enter")
        self.text.append(f"void {even}(int d, long n);\n")
        self.function(odd, "mutual recursion", f"{even}(d - 1, n);",
                      "int d, long n", small=True)
        self.function(even, "mutual recursion",
                      f"if (d > 0) {odd}(d - 1, n); else "
                      f"{self.call(following)}", "int d, long n", small=True)
        self.function(name, "call", f"{even}({2 * depth}, n);", small=True)
        return name, [name] + [even, odd] * depth + [even]

    def step_qsort(self, prefix, following):
        name, compare = f"{prefix}_qsort", f"{prefix}_compare"
        self.text.append(f"static __thread long {prefix}_n;\n")
        self.function(compare, "qsort callback",
                      self.call(following), "const void *x, const void *y",
                      "int", small=True, first=f"long n = {prefix}_n; ")
        self.function(name, "qsort callback",
                      f"long two[2] = {{ n, n }}; {prefix}_n = n;"
                      f" qsort(two, 2, sizeof(two[0]), {compare});")
        self.program.calls_libraries.add(name)
        return name, [name, compare]

    def step_longjmp(self, prefix, following):
        name, inner, jumper = (f"{prefix}_longjmp", f"{prefix}_left",
                               f"{prefix}_jumper")
        self.text.append(f"static __thread jmp_buf {prefix}_buf;\n")
        self.function(jumper, "longjmp", f"longjmp({prefix}_buf, 1);")
        self.function(inner, "longjmp", self.call(jumper))
        self.function(name, "longjmp", f"if (!_setjmp({prefix}_buf)) "
                      f"{inner}(n); else {self.call(following)}")
        self.program.extra += [(name, inner), (inner, jumper)]
        self.program.calls_libraries |= {name, jumper}
        return name, [name]

    def signal(self):
        self.signals += 1
        return f"SIGRTMIN + {self.signals}"

    def handler(self, prefix, following, flags, kind):
        """raise() in one function, the path goes on in the handler."""
        name, handler = f"{prefix}_raise", f"{prefix}_handler"
        number = self.signal()
        self.text.append(f"static __thread long {prefix}_n;\n")
        self.function(handler, kind, self.call(following), "int s",
                      small=True, first=f"long n = {prefix}_n; ")
        self.function(name, kind, f"{prefix}_n = n; raise({number});")
        self.handlers.append(f"handle({number}, {handler}, {flags});")
        self.program.calls_libraries.add(name)
        return name, [name, handler]

    def step_handler(self, prefix, following):
        return self.handler(prefix, following, "0", "signal handler")

    def step_other_stack(self, prefix, following):
        return self.handler(prefix, following, "SA_ONSTACK",
                            "handler on another stack")

    def step_jump_out(self, prefix, following):
        """A handler that is left by siglongjmp()."""
        name, handler = f"{prefix}_return", f"{prefix}_jumps"
        number = self.signal()
        self.text.append(f"static __thread sigjmp_buf {prefix}_buf;\n")
        self.plain(handler, "siglongjmp", f"FRAME void {handler}(int s)\n"
                   f"{{\n\t{self.new_point(handler)}"
                   f" siglongjmp({prefix}_buf, 1);\n}}")
        self.function(name, "siglongjmp",
                      f"if (!sigsetjmp({prefix}_buf, 1)) raise({number});"
                      f" else {self.call(following)}")
        flags = "SA_ONSTACK" if self.rng.random() < 0.5 else "0"
        self.handlers.append(f"handle({number}, {handler}, {flags});")
        self.program.calls_libraries |= {name, handler}
        return name, [name]

    def step_trap(self, prefix, following):
        """A handler of an instruction, in the middle of a function."""
        name = f"{prefix}_trap"
        self.function(name, "trap handler",
                      f"trap_next = {following}; trap_n = n;"
                      ' __asm__ volatile("int3" ::: "memory");')
        self.program.calls_libraries.add(name)
        return name, [name, "H_trap"]

    def step_fault(self, prefix, following):
        """A handler of a function's first instruction."""
        name, first = f"{prefix}_calls", f"{prefix}_fault"
        self.plain(first, "fault handler",
                   f"void {first}(void);\n__asm__(\".text\\n"
                   f".globl {first}\\n.type {first}, @function\\n"
                   f"{first}:\\n.cfi_startproc\\nud2\\nret\\n"
                   f".cfi_endproc\\n.size {first}, .-{first}\\n\");")
        self.function(name, "fault handler", f"fault_next = {following};"
                      f" fault_n = n; {first}();")
        self.program.calls_libraries.add(first)
        return name, [name, first, "H_fault"]

    def step_library(self, prefix, following):
        name, inner = f"{prefix}_library", f"L{prefix}"
        label, declare, use = self.locals()
        self.library.append(
            f"FRAME void {inner}(code *next, long n)\n{{\n"
            f"\t{declare}{use}\n\tnext(n);\n\tKEEP;{use}\n}}\n")
        self.text.append(f"void {inner}(code *next, long n);\n")
        self.program.labels[inner] = ("shared library", label)
        self.function(name, "shared library", f"{inner}({following}, n);")
        self.program.calls_libraries.add(name)
        return name, [name, inner]

    def step_tail(self, prefix, following):
        """A caller that is left by a tail call is not on the stack."""
        name, left = f"{prefix}_tail", f"{prefix}_left"
        if self.program.compiler == "clang":
            self.plain(left, "tail call", f"FRAME void {left}(long n)\n{{\n"
                       '\t__asm__ volatile("nop");\n'
                       f"\t__attribute__((musttail)) return {following}(n);"
                       "\n}")
        else:
            self.plain(left, "tail call",
                       f"void {left}(long n);\n__asm__(\".text\\n"
                       f".globl {left}\\n.type {left}, @function\\n{left}:\\n"
                       f".cfi_startproc\\nnop\\njmp {following}\\n"
                       f".cfi_endproc\\n.size {left}, .-{left}\\n\");")
        self.function(name, "tail call", f"{left}(n);")
        self.program.extra.append((name, left))
        return name, [name]

    def step_coroutine(self, prefix, following):
        name, body = f"{prefix}_switch", f"{prefix}_body"
        point = self.new_point()
        place = self.rng.choice(["static", "heap"])
        self.text.append(
            f"static ucontext_t {prefix}_here, {prefix}_there;\n"
            f"static long {prefix}_n;\n" +
            (f"static char {prefix}_stack[{COROUTINE_STACK}];\n"
             if place == "static" else f"static char *{prefix}_stack;\n"))
        if place == "heap":
            self.handlers.append(f"{prefix}_stack = (char *)malloc("
                                 f"{COROUTINE_STACK});")
        self.function(body, "coroutine", self.call(following), "void",
                      small=True, first=f"long n = {prefix}_n; ")
        self.function(
            name, "coroutine",
            f"{point} {prefix}_n = n;"
            f" getcontext(&{prefix}_there);"
            f" {prefix}_there.uc_stack.ss_sp = {prefix}_stack;"
            f" {prefix}_there.uc_stack.ss_size = {COROUTINE_STACK};"
            f" {prefix}_there.uc_link = &{prefix}_here;"
            f" makecontext(&{prefix}_there, {body}, 0);"
            f" swapcontext(&{prefix}_here, &{prefix}_there);")
        self.program.calls_libraries |= {name, body}
        return name, [name, None, body]

    def step_catch(self, prefix, following):
        """The path goes on in a catch handler."""
        name, thrower = f"{prefix}_catch", f"{prefix}_throw"
        self.function(thrower, "catch handler", "throw (int)n;")
        self.function(name, "catch handler", f"try {{ {thrower}(n); }} "
                      f"catch (int) {{ {self.call(following)} KEEP; }}")
        self.program.extra.append((name, thrower))
        self.program.calls_libraries |= {name, thrower}
        return name, [name]

    def step_destructor(self, prefix, following):
        """The path goes on in a destructor, while an exception is thrown."""
        name, owner, thrower, type_name = (
            f"{prefix}_try", f"{prefix}_owner", f"{prefix}_throw",
            f"{prefix}_object")
        self.text.append(
            f"struct {type_name} {{ long n; FRAME ~{type_name}(); }};\n"
            f"{type_name}::~{type_name}() {{ {self.call(following)} KEEP; }}"
            "\n")
        self.program.labels[type_name] = ("destructor", "none")
        self.function(thrower, "destructor", "throw (int)n;")
        self.function(owner, "destructor", f"{type_name} object = {{ n }};"
                      f" {thrower}(n);")
        self.function(name, "destructor", f"try {{ {owner}(n); }} "
                      "catch (int) { KEEP; }")
        self.program.extra.append((owner, thrower))
        self.program.calls_libraries |= {name, owner, thrower}
        return name, [name, owner, type_name]

    # -- paths --

    def steps(self):
        """The kinds of one path's frames, the outermost first."""
        rng = self.rng
        kinds = ["call", "call", "rbp", "recursion", "shared", "shared",
                 "mutual", "qsort", "longjmp", "handler", "other_stack",
                 "jump_out", "trap", "fault", "library", "tail", "coroutine"]
        if self.program.cpp:
            kinds += ["catch", "destructor"] * 2
        path, on_other = [], False
        for _ in range(rng.randint(1, 7)):
            kind = rng.choice(kinds)
            deep = sum(k in ("recursion", "shared") for k in path)
            if kind in ("recursion", "shared") and deep == 2:
                kind = "call"
            # The kernel begins another stack anew where a coroutine is on
            # neither, and handlers below would be overwritten.
            if (kind in ("other_stack", "fault", "coroutine", "jump_out") and
                    on_other):
                kind = "call"
            on_other |= kind in ("other_stack", "fault")
            path.append(kind)
        return path

    def path(self, number, caller):
        """Emit a path from its leaf to its entry.  Returns the entry."""
        prefix = f"T{number}"
        name, chain = self.leaf(prefix)
        ends = {point: (1, ()) for point, _ in self.fresh}
        self.fresh.clear()
        for at, kind in reversed(list(enumerate(self.steps()))):
            step = getattr(self, f"step_{kind}")
            name, frames = step(f"{prefix}_{at}", name)
            chain = frames + chain
            ends.update({point: (len(chain), called)
                         for point, called in self.fresh})
            self.fresh.clear()
        chain = [caller] + chain
        for point, (length, called) in ends.items():
            self.program.points[point] = own_stack(chain, length) + [*called]
        return name

    def main(self, threads):
        """Emit main() and the threads; @threads: each one's entries."""
        rng, out = self.rng, self.text
        for caller, entries in threads.items():
            spins = [rng.choice([300, 3000, 30000, 300000]) for _ in entries]
            order = [i for i, n in enumerate(spins)
                     for _ in range(max(1, min(60, 300000 // n)))]
            rng.shuffle(order)
            out.append(f"static struct path {caller}_paths[] = {{" +
                       ", ".join(f"{{ {entry}, {n} }}" for entry, n in
                                 zip(entries, spins)) + "};\n"
                       f"static const int {caller}_order[] = {{" +
                       ", ".join(map(str, order)) + "};\n"
                       f"static const int {caller}_each[] = {{" +
                       ", ".join(map(str, range(len(entries)))) + "};\n")
            self.program.calls_libraries.add(caller)
            self.program.labels[caller] = ("root", "none")
        run = ("if (checking) RUN({0}_paths, {0}_each);"
               " else RUN({0}_paths, {0}_order);")
        tick = "if (!checking) tick();\n\t" if self.program.ticks else ""
        others = [caller for caller in threads if caller != "main"]
        for caller in others:
            out.append(
                f"FRAME void *{caller}(void *stack)\n{{\n"
                f"\tuse_other_stack(stack, {OTHER_STACK});\n\t{tick}"
                f"{run.format(caller)}\n\treturn 0;\n}}\n")
        lines = "\n\t".join(self.handlers)
        out.append(f"static void set_up(void)\n{{\n\t{lines}\n"
                   "\thandle(SIGTRAP, H_trap, SA_NODEFER);\n"
                   "\thandle(SIGILL, (void (*)(int))H_fault,"
                   " SA_SIGINFO | SA_NODEFER | SA_ONSTACK);\n"
                   f"\thandle(SIGRTMAX, A_tick, {self.program.ticks or 0});"
                   "\n}\n")
        begin = "".join(
            f"\tpthread_create(&thread[{i}], 0, {caller}, malloc("
            f"{OTHER_STACK}));\n\tif (checking) pthread_join(thread[{i}], 0);"
            "\n" for i, caller in enumerate(others))
        out.append(
            f"static char other_stack[{OTHER_STACK}];\n"
            "int main(int argc, char **argv)\n{\n"
            f"\tpthread_t thread[{len(others) + 1}];\n"
            "\tchecking = argv[1][0] == 'c';\n\tseconds = atof(argv[1]);\n"
            "\tset_up();\n"
            f"\tuse_other_stack(other_stack, {OTHER_STACK});\n"
            "\tif (argc > 2)\n\t\tgetchar();\n" + begin + f"\t{tick}"
            f"\t{run.format('main')}\n"
            "\tif (checking) print_maps();\n"
            f"\tfor (int i = 0; !checking && i < {len(others)}; i++)\n"
            "\t\tpthread_join(thread[i], 0);\n\t_exit(0);\n}\n")


def own_stack(chain, length):
    """The stack of the frame with which the last @length of @chain begin."""
    chain = chain[:len(chain) - length + 1]
    while None in chain:
        chain = chain[chain.index(None) + 1:]
    return chain


def make(seed, number):
    """Program @number of @seed: always the same one."""
    rng = random.Random(f"{seed}/{number}")
    program = Program(
        name=f"s{seed}n{number}", compiler=rng.choice(["gcc", "clang"]),
        level=rng.choice(["-O0", "-O1", "-O2", "-O3"]),
        kind=rng.choice(["pie"] + list(KINDS)),
        frame_pointers=rng.random() < 0.3, cpp=rng.random() < 0.4,
        ticks=rng.choice(["", "", "SA_RESTART", "SA_RESTART | SA_ONSTACK"]))
    maker = Maker(rng, program)
    begin = '#include "frames.h"\n'
    if program.cpp:
        begin += 'extern "C" {\n'
    end = "}\n" if program.cpp else ""
    maker.text.append("void L_small(long n);\n")
    maker.library.append("FRAME void L_small(long n)\n{\n\tUSE(n);\n}\n")
    maker.plain("H_trap", "trap handler",
                "FRAME void H_trap(int s)\n{\n\tcode *next = trap_next;\n"
                "\tnext(trap_n);\n\tKEEP;\n}")
    maker.plain("H_fault", "fault handler",
                "FRAME void H_fault(int s, siginfo_t *info, void *at)\n{\n"
                "\tstatic __thread int is_second;\n"
                "\tcode *next = fault_next;\n\tis_second ^= 1;\n"
                "\tif (is_second)\n\t\treturn;\t/* to the same fault */\n"
                "\tnext(fault_n);\n"
                "\t((ucontext_t *)at)->uc_mcontext.gregs[REG_RIP] += 2;\n"
                "\tKEEP;\n}")
    maker.plain("A_tick", "timer's handler", "FRAME void A_tick(int s)\n{\n"
                "\tfor (volatile long i = 0; i < 20000; i++);\n}")
    program.labels["L_small"] = ("plt", "none")
    threads = {"main": []}
    for i in range(rng.choice([0, 0, 1, 2])):
        threads[f"TH{i}"] = []
    for number_of_path in range(rng.randint(5, 9)):
        caller = rng.choice(list(threads))
        threads[caller].append(maker.path(number_of_path, caller))
    for caller, entries in threads.items():
        if not entries:
            entries.append(maker.path(90 + len(caller) +
                                      list(threads).index(caller), caller))
    maker.main(threads)
    program.source = begin + "".join(maker.text) + end
    program.library = begin + "".join(maker.library) + end
    program.option = rng.choice(OPTIONS)
    return program
