#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seam's records against compiler-rt's: compare.py SEAM SOURCE

SOURCE is compared.cpp, which clang links with compiler-rt.  The program runs
twice: once recorded by compiler-rt, once by Seam.  Kind, id and order of the function records of
each thread must be equal, and the arguments that compiler-rt logs.  Of a corpus
of programs, those that keep compiler-rt's start-up in themselves are compared
too.

Left out, because compiler-rt is wrong or has no rule:
- calls shorter than its threshold: the threshold is 0 here
- what happens before it starts and after it stops, which Seam records
- a forked child, which it gives its parent's ids and records
- a block with typed events, of which it does not write the end
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import fdr_log  # noqa: E402
import tap  # noqa: E402

SEAM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
CORPUS = os.path.join(os.environ.get("SEAM_CORPUS", ""), "xray", "bin")
OPTIONS = "func_duration_threshold_us=0:buffer_size=65536:buffer_max=2000"
FOLDER = tempfile.TemporaryDirectory()
PROGRAM = os.path.join(FOLDER.name, "compared")


def compiled():
    """Whether clang has compiler-rt's XRay (package libclang-rt-14-dev)."""
    return subprocess.run(
        ["clang++", "-O2", "-fxray-instrument",
         "-fxray-instruction-threshold=1", SOURCE, "-o", PROGRAM,
         "-lpthread"], check=False, capture_output=True).returncode == 0


def threads_of(path):
    return {tid: thread.calls
            for tid, thread in fdr_log.Log(path).threads.items()
            if thread.calls}


def by_compiler_rt(program, *args, **env):
    base = os.path.join(FOLDER.name, "rt." + os.path.basename(program) + ".")
    subprocess.run([program, *args], check=True, timeout=120,
                   capture_output=True,
                   env=os.environ | {"XRAY_OPTIONS":
                                     "xray_logfile_base=" + base} | env)
    return threads_of(max(glob.glob(base + "*"), key=os.path.getmtime))


def by_seam(program, *args, options=()):
    path = os.path.join(FOLDER.name, os.path.basename(program) + ".seam")
    for _ in range(5):
        shutil.rmtree(path, ignore_errors=True)
        done = subprocess.run([SEAM, "record", "-o", path, "--trace", *options,
                               "--", program, *args], timeout=120, check=False,
                              capture_output=True, text=True)
        # threads that begin at once may be more than there are buffers yet
        if done.returncode != 3 or "no buffer for" not in done.stderr:
            break
    assert done.returncode == 0, done
    logs = glob.glob(os.path.join(path, "xray", "*.xray"))
    assert len(logs) == 1, (logs, done)
    return threads_of(logs[0]), logs[0]


def by_first(threads):
    """The calls of each thread, by the first function that it entered."""
    return sorted(threads.values(), key=lambda calls: calls[0].function)


def plain(calls):
    """Without times and arguments, and entries of one kind."""
    return [(fdr_log.ENTRY if call.kind == fdr_log.ENTRY_ARGS else call.kind,
             call.function) for call in calls]


def between(calls, begin, end):
    """From the first record of function @begin to the last one of @end."""
    ids = [call.function for call in calls]
    return calls[ids.index(begin):len(ids) - ids[::-1].index(end)]


def first_difference(ours, theirs):
    for i, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            return i, ours[i:i + 5], theirs[i:i + 5]
    return (len(ours), len(theirs)) if len(ours) != len(theirs) else None


def recorded(options=()):
    """(Seam's threads, compiler-rt's, Seam's log)"""
    if not HAS_RT:
        raise tap.Skip("no compiler-rt: install libclang-rt-14-dev")
    theirs = by_compiler_rt(PROGRAM, COMPARED_RT=OPTIONS)
    ours, log = by_seam(PROGRAM, options=options)
    first = min(theirs.values(), key=lambda calls: calls[0].tsc)
    begin, end = first[0].function, first[-1].function
    for threads in ours, theirs:
        for tid, calls in threads.items():
            if begin in (call.function for call in calls):
                threads[tid] = between(calls, begin, end)
    return by_first(ours), by_first(theirs), log


def test_kind_id_and_order_are_those_of_compiler_rt():
    ours, theirs, _ = recorded()
    assert len(ours) == len(theirs) == 5, (len(ours), len(theirs))
    for mine, other in zip(ours, theirs):
        difference = first_difference(plain(mine), plain(other))
        assert difference is None, difference


def test_arguments_are_those_of_compiler_rt():
    ours, theirs, _ = recorded(["--trace-args=1"])
    logged = {call.function for calls in theirs for call in calls
              if call.kind == fdr_log.ENTRY_ARGS}
    assert len(logged) == 1, logged
    for mine, other in zip(ours, theirs):
        mine = [call.argument for call in mine if call.function in logged and
                call.argument is not None]
        other = [call.argument for call in other
                 if call.kind == fdr_log.ENTRY_ARGS]
        assert mine == other, first_difference(mine, other)


def test_every_function_that_was_called_has_its_name():
    *_, log = recorded()
    done = subprocess.run([SEAM, "calls", log], capture_output=True,
                          text=True, timeout=60, check=True)
    for name in ("fib(unsigned int)", "Square::area(unsigned int) const",
                 "thread<3>(void*)", "twice<unsigned short>",
                 "Guard::~Guard()", "begin()"):
        assert name in done.stdout, (name, done.stdout)
    assert "#" not in done.stdout and done.stderr == "", done


def corpus_program(name):
    path = os.path.join(CORPUS, name)

    def same_as_compiler_rt():
        if not os.path.exists(path):
            raise tap.Skip("no corpus")
        theirs = by_compiler_rt(path, XM="xray-fdr", XO=OPTIONS)
        ours, _ = by_seam(path)
        ours, theirs = (sorted(map(plain, threads.values()))
                        for threads in (ours, theirs))
        assert len(ours) == len(theirs), (len(ours), len(theirs))
        for mine, other in zip(ours, theirs):
            difference = first_difference(mine, other)
            assert difference is None, difference
    return same_as_compiler_rt


PROGRAMS = ("single", "single_O0", "single_nopie", "single_fnidx", "tail",
            "exc", "arg1", "events", "mt")
HAS_RT = compiled()
tests = tap.promises(globals()) + [
    (f"records of {name} are those of compiler-rt", corpus_program(name))
    for name in PROGRAMS]
sys.exit(tap.run(tests))
