#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seam's records against compiler-rt's: compare.py SEAM PROGRAM

PROGRAM is compared.cpp, linked with compiler-rt.  It runs twice: once recorded
by compiler-rt, once by Seam.  Kind, id and order of the function records of
each thread must be equal, and the arguments that compiler-rt logs.  Of a corpus
of programs, those that keep compiler-rt's start-up in themselves are compared
too.

Left out, because compiler-rt is wrong or has no rule:
- calls shorter than its threshold: the threshold is 0 here
- what happens before it starts and after it stops, which Seam records
- a forked child, which it gives its parent's ids and records
"""
import collections
import glob
import os
import struct
import subprocess
import sys
import tempfile

import tap

SEAM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
CORPUS = os.path.join(os.environ.get("SEAM_CORPUS", ""), "xray", "bin")
OPTIONS = "func_duration_threshold_us=0:buffer_size=65536:buffer_max=2000"
FOLDER = tempfile.TemporaryDirectory()
ENTRY, EXIT, TAIL, ENTRY_ARGS = range(4)


class Block:
    def __init__(self, body):
        self.tid = self.pid = self.wall = 0
        self.calls = []                 # [kind, id, argument...]
        self.events = []                # (type or None, data)
        self.read(body)

    def read(self, body):
        at = 0
        while at + 8 <= len(body):
            if not body[at] & 1:
                word, = struct.unpack_from("<I", body, at)
                self.calls.append([word >> 1 & 7, word >> 4])
                at += 8
                continue
            at = self.metadata(body, at)

    def metadata(self, body, at):
        kind = body[at] >> 1
        if kind == 0:
            self.tid, = struct.unpack_from("<i", body, at + 1)
        elif kind == 4:
            self.wall = struct.unpack_from("<qi", body, at + 1)
        elif kind == 9:
            self.pid, = struct.unpack_from("<i", body, at + 1)
        elif kind == 6:
            self.calls[-1] += struct.unpack_from("<Q", body, at + 1)
        elif kind in (5, 8):
            size, _, type_ = struct.unpack_from("<iiH", body, at + 1)
            self.events.append((type_ if kind == 8 else None,
                                body[at + 16:at + 16 + size]))
            at += size
        elif kind not in (2, 3):
            raise ValueError(f"kind {kind} at {at}")
        return at + 16


def threads_of(path):
    """{(pid, tid): the calls of all of its blocks, in the order of time}"""
    with open(path, "rb") as f:
        data = f.read()
    assert struct.unpack_from("<HH", data) == (5, 1), path
    blocks, at = [], 32
    while at + 16 <= len(data) and data[at] == 7 << 1 | 1:
        size, = struct.unpack_from("<Q", data, at + 1)
        # compiler-rt's length leaves out the markers of typed events
        if data[at + 16 + size:at + 17 + size] not in (b"", b"\x0f"):
            size = len(data) - at - 16
        if size:
            blocks.append(Block(data[at + 16:at + 16 + size]))
        at += 16 + size
    threads = collections.defaultdict(list)
    for block in sorted(blocks, key=lambda b: b.wall):
        threads[block.pid, block.tid] += block.calls
    return threads


def by_compiler_rt(program, *args, **env):
    base = os.path.join(FOLDER.name, "rt." + os.path.basename(program) + ".")
    subprocess.run([program, *args], check=True, timeout=120,
                   capture_output=True,
                   env=os.environ | {"XRAY_OPTIONS":
                                     "xray_logfile_base=" + base} | env)
    return threads_of(max(glob.glob(base + "*"), key=os.path.getmtime))


def by_seam(program, *args, options=()):
    path = os.path.join(FOLDER.name, os.path.basename(program) + ".seam")
    done = subprocess.run([SEAM, "record", "-o", path, "--trace", *options,
                           "--", program, *args], timeout=120, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done
    logs = glob.glob(os.path.join(path, "xray", "*.xray"))
    assert len(logs) == 1, (logs, done)
    return threads_of(logs[0]), logs[0]


def by_first(threads):
    """The calls of each thread by the first function that it entered."""
    return sorted(threads.values(), key=lambda calls: calls[0][:2])


def plain(calls):
    """Without arguments: an entry with arguments is an entry."""
    return [(ENTRY if kind == ENTRY_ARGS else kind, function)
            for kind, function, *_ in calls]


def between(calls, begin, end):
    """From the first record of function @begin to the last one of @end."""
    ids = [call[1] for call in calls]
    return calls[ids.index(begin):len(ids) - ids[::-1].index(end)]


def first_difference(ours, theirs):
    for i, (mine, other) in enumerate(zip(ours, theirs)):
        if mine != other:
            return i, ours[i:i + 5], theirs[i:i + 5]
    return (len(ours), len(theirs)) if len(ours) != len(theirs) else None


def recorded(options=()):
    theirs = by_compiler_rt(PROGRAM, COMPARED_RT=OPTIONS)
    ours, log = by_seam(PROGRAM, options=options)
    main = max(theirs, key=lambda ids: ids[0] == ids[1])
    begin, end = theirs[main][0][1], theirs[main][-1][1]
    for threads in ours, theirs:
        for (pid, tid), calls in threads.items():
            if pid == tid:
                threads[pid, tid] = between(calls, begin, end)
    return by_first(ours), by_first(theirs), log


def test_kind_id_and_order_are_those_of_compiler_rt():
    ours, theirs, _ = recorded()
    assert len(ours) == len(theirs) == 5, (len(ours), len(theirs))
    for mine, other in zip(ours, theirs):
        difference = first_difference(plain(mine), plain(other))
        assert difference is None, difference


def test_arguments_are_those_of_compiler_rt():
    ours, theirs, _ = recorded(["--trace-args=1"])
    logged = {call[1] for calls in theirs for call in calls
              if call[0] == ENTRY_ARGS}
    assert len(logged) == 1, logged
    for mine, other in zip(ours, theirs):
        mine = [call[2:] for call in mine if call[1] in logged and
                call[0] in (ENTRY, ENTRY_ARGS)]
        other = [call[2:] for call in other if call[0] == ENTRY_ARGS]
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
            "exc", "arg1", "events", "events_typed", "mt")
tests = tap.promises(globals()) + [
    (f"records of {name} are those of compiler-rt", corpus_program(name))
    for name in PROGRAMS]
sys.exit(tap.run(tests))
