#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Handlers walk at 10 kHz while a program does what is delicate

self_loads.py SELF_LOADS GUARD LIBRARY SECONDS: each load runs for SECONDS, with
GUARD preloaded, which aborts where a handler calls what it may not.
"""
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
import tap  # noqa: E402

LOADS, GUARD, LIBRARY = map(os.path.abspath, sys.argv[1:4])
SECONDS = sys.argv[4]
THROW_CC = r"""
static volatile int sink;
struct counted { ~counted() { sink = sink + 1; } };
__attribute__((noinline)) static void fall(int depth)
{
	counted object;
	if (depth == 0)
		throw 1;
	fall(depth - 1);
	sink = sink + 1;
}
extern "C" void throw_and_catch(int depth)
{
	try { fall(depth); } catch (int) { sink = sink + 1; }
}
"""


def run(load, throwing):
    return subprocess.run(
        [LOADS, load, SECONDS, LIBRARY, throwing], capture_output=True,
        text=True, env=dict(os.environ, LD_PRELOAD=GUARD), check=False)


def expect_quiet(load, throwing):
    result = run(load, throwing)
    print(result.stdout, end="")
    if result.returncode != 0:
        raise AssertionError(f"{result.returncode} {result.stdout} "
                             f"{result.stderr}")


def expect_abort(throwing):
    result = run("guarded", throwing)
    if result.returncode != -signal.SIGABRT or "malloc" not in result.stderr:
        raise AssertionError(f"{result.returncode} {result.stderr}")


def main():
    with tempfile.TemporaryDirectory(prefix="seam-loads-") as folder:
        throwing = os.path.join(folder, "throwing.so")
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-x", "c++", "-",
                        "-o", throwing], input=THROW_CC, text=True,
                       check=True)
        tests = [("the guard finds a call of malloc() in a handler",
                  lambda: expect_abort(throwing))]
        for load in ("heap", "loader", "threads", "exceptions", "forks",
                     "jumps"):
            tests.append((f"walks under {load}: no lock, no heap, nothing held",
                          lambda load=load: expect_quiet(load, throwing)))
        return tap.run(tests)


sys.exit(main())
