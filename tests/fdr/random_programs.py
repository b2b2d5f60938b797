#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs note their own calls, and the trace has to be the same:
random_programs.py CLANG++ SOURCE_ROOT MAIN.o HANDLER.a FIRST_SEED N

A program is C++: functions that call each other, themselves, in tail position;
throw, catch, jump out and raise signals whose handler calls functions too, on
another stack or not; four threads, which move between CPUs.  It runs with each
way of recording.  Prints TAP; each failure with its seed, which repeats it.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile

MODES = ("plain 0", "checked 0", "depth 1", "depth 3", "depth 40", "args 1",
         "args 3", "min 0", "min 2", "depth 3 none", "min 2 none", "min 2 own")
MAX_LEVEL = 120

HEAD = """\
#include "fdr/random_log.h"
#define SHOWN extern "C" __attribute__((xray_always_instrument, noinline))
typedef struct random_thread *T;
typedef uint64_t U;
static inline __attribute__((always_inline)) bool may_call(T t)
{
	return t->level < %d && t->fuel-- > 0;
}
/*
 * Where a jump or an exception ends: frames that it left are known to be gone
 * with the next call from the same place, and not with a handler's.
 */
SHOWN U landed(T t, U a, U b)
{
	random_note(t, random_n_functions - 1, RANDOM_ENTRY, a, b);
	random_note(t, random_n_functions - 1, RANDOM_EXIT, 0, 0);
	return a + b;
}
""" % MAX_LEVEL


def call(rng, n, other_than=None):
    # a function that goes on in itself has a loop in place of the call
    callee = rng.choice([i for i in range(n) if i != other_than])
    return (f"f{callee}(t, {rng.choice(('a', 'b', 'a + b', '~a'))}, "
            f"{rng.choice(('b', 'a ^ 5', '~0ul', '0'))})")


def plain(rng, n, number):
    return f"a += {call(rng, n)};"


def tail(rng, n, number):
    return (f"random_note(t, {number}, RANDOM_TAIL, 0, 0);\n"
            f"\t\t__attribute__((musttail)) return "
            f"{call(rng, n, number)};")


def catch(rng, n, number):
    return f"""{{
			uint32_t level = t->level, jumps = t->n_jumps;
			uint32_t tries = t->n_tries++;
			try {{
				b ^= {call(rng, n)};
			}} catch (int) {{
				t->level = level;
				t->n_jumps = jumps;
				landed(t, a, b);
			}}
			t->n_tries = tries;
		}}"""


def throw(rng, n, number):
    return "if (t->n_tries)\n\t\t\tthrow 1;"


def jump(rng, n, number):
    return ("if (t->n_jumps > t->first_jump)\n"
            "\t\t\tlongjmp(t->jumps[t->n_jumps - 1], 1);")


def set_jump(rng, n, number):
    return f"""if (t->n_jumps < RANDOM_MAX_JUMPS) {{
			t->levels[t->n_jumps] = t->level;
			t->tries[t->n_jumps] = t->n_tries;
			if (!setjmp(t->jumps[t->n_jumps++]))
				{call(rng, n)};
			t->n_jumps--;
			t->level = t->levels[t->n_jumps];
			t->n_tries = t->tries[t->n_jumps];
			landed(t, a, b);
		}}"""


def signal(rng, n, number):
    return "random_signal(t);"


def migrate(rng, n, number):
    return "if (random_next(t) % 16 == 0)\n\t\t\trandom_migrate(t);"


STATEMENTS = ((plain, 12), (tail, 3), (catch, 3), (throw, 2), (set_jump, 2),
              (jump, 1), (signal, 1), (migrate, 1))


def function(rng, n, number):
    kinds, weights = zip(*STATEMENTS)
    chosen = rng.choices(kinds, weights, k=rng.randrange(1, 6))
    # a call of setjmp() returns twice, so no local variable may live over it
    cases = "".join(f"\tcase {i}:\n\t\t{s(rng, n, number)}\n\t\tbreak;\n"
                    for i, s in enumerate(chosen))
    return f"""SHOWN U f{number}(T t, U a, U b)
{{
	random_note(t, {number}, RANDOM_ENTRY, a, b);
	for (int i = {rng.randrange(1, 4)}; may_call(t) && i > 0; i--)
	switch (random_next(t) % {len(chosen) + rng.randrange(3)}) {{
{cases}	}}
	random_note(t, {number}, RANDOM_EXIT, 0, 0);
	return a + b;
}}
"""


def program(rng):
    n = rng.randrange(2, 40)
    handled = rng.randrange(n)
    return (HEAD + "".join(f"SHOWN U f{i}(T t, U a, U b);\n"
                           for i in range(n)) +
            "".join(function(rng, n, i) for i in range(n)) +
            "const void *const random_functions[] = {" +
            "".join(f"(const void *)f{i}, " for i in range(n)) +
            "(const void *)landed};\n"
            f"const size_t random_n_functions = {n + 1};\n"
            "void random_run(T t)\n{\n\t"
            f"f{rng.randrange(n)}(t, random_next(t) << 11, 7);\n}}\n"
            "void random_handle(T t)\n{\n"
            f"\tif (may_call(t))\n\t\tf{handled}(t, 1, 2);\n}}\n")


def build(clang, root, objects, folder, seed):
    rng = random.Random(seed)
    source = folder / "program.cc"
    source.write_text(program(rng))
    subprocess.run(
        [clang, rng.choice(("-O1", "-O2", "-O3")), "-g", "-no-pie",
         rng.choice(("-fomit-frame-pointer", "-fno-omit-frame-pointer")),
         "-fxray-instrument", "-fxray-instruction-threshold=1000000",
         "-fxray-ignore-loops", "-fnoxray-link-deps", "-I", root / "tests",
         source, *objects, "-o", folder / "program", "-lpthread"], check=True)
    return folder / "program"


def main():
    clang, root = sys.argv[1], pathlib.Path(sys.argv[2])
    objects, (first, n) = sys.argv[3:5], map(int, sys.argv[5:7])
    failed = False
    print(f"1..{n}")
    for number, seed in enumerate(range(first, first + n), 1):
        with tempfile.TemporaryDirectory() as folder:
            path = build(clang, root, objects, pathlib.Path(folder), seed)
            found = []
            for mode in MODES:
                # glibc registers none, so the program does
                own = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
                ran = subprocess.run(
                    [path, str(seed), *mode.removesuffix(" own").split()],
                    env=os.environ | (own if mode.endswith(" own") else {}),
                    capture_output=True, text=True)
                print(f"# {mode}: {ran.stdout.strip()} {ran.returncode or ''}")
                if ran.returncode:
                    found.append(mode)
        failed |= bool(found)
        print(f"{'not ok' if found else 'ok'} {number} - random program {seed}:"
              " the trace is its own log, with all ways of recording")
    return failed


sys.exit(main())
