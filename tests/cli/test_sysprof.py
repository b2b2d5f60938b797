#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Streams of LuaJIT's sysprof: sysprof.py SEAM

The oracles are what LuaJIT wrote beside each stream: its counters (.report) and
the output of its own parser (.parsed.txt).
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

SEAM = os.path.abspath(sys.argv[1])
PARSE = os.path.join(os.path.dirname(SEAM), "luajit-parse-sysprof")
CORPUS = pathlib.Path(os.environ["SEAM_CORPUS"]) / "sysprof"
STATES = ("INTERP LFUNC FFUNC CFUNC GC EXIT RECORD OPT ASM TRACE").split()
# Streams in which LuaJIT's parser joins Lua frames, but for those in which
# calls are nested, and which it joins wrongly or not at all.
JOINED = "_emb"


def run(*words, program=SEAM, status=0, **more):
    done = subprocess.run([program, *map(str, words)], timeout=60, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, **more)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


def streams():
    found = sorted(CORPUS.glob("*.bin")) + sorted(CORPUS.glob("v1/*.bin"))
    if not found:
        raise tap.Skip("no corpus of sysprof streams")
    return found


def report(path, *words, **more):
    return json.loads(run("report", "--json", *words, path, **more).stdout)


def by_state(path, **more):
    rows = report(path, "--by", "vmstate", **more)["rows"]
    return {row["vmstate"]: row["self"] for row in rows}


def folded(text):
    """{(frames): count} of folded stacks."""
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";")) if stack else ()] += int(count)
    return stacks


def own_name(frame):
    """A frame of LuaJIT's parser as ours: no address, no @, its layer."""
    c = re.fullmatch(r"(.+):0x[0-9a-f]+", frame)
    if c:
        return c[1]
    if re.fullmatch(r"CFUNC 0x[0-9a-f]+", frame):
        return frame
    return frame.removeprefix("@") + "_[g]"


def parsed(path):
    """The stacks that LuaJIT's parser printed, with our names."""
    stacks = collections.Counter()
    for line in path.read_text(encoding="latin1").splitlines():
        stack, count = re.fullmatch(r"(.*?)[\t ](\d+)", line).groups()
        stack = stack.removesuffix(";")
        frames = stack.split(";") if stack else []
        stacks[tuple(map(own_name, frames))] += int(count)
    return stacks


def without_traces(stacks):
    kept = collections.Counter()
    for stack, count in stacks.items():
        is_trace = stack and stack[-1].startswith("TRACE [")
        kept[() if is_trace else stack] += count
    return kept


def difference(ours, theirs):
    return [*(("ours", s, n) for s, n in (ours - theirs).items()),
            *(("theirs", s, n) for s, n in (theirs - ours).items())][:4]


def test_samples_by_state_are_the_counters_of_the_vm():
    for path in streams():
        counters = dict(re.findall(r"(\w+)=(\d+)", pathlib.Path(
            f"{path}.report").read_text()))
        counts = by_state(path)
        for state in STATES:
            assert counts.get(state, 0) == int(counters[state]), \
                (path.name, state, counts)
        assert sum(counts.values()) == int(counters["samples"]), path


def test_stacks_are_those_of_luajit_s_parser():
    n = 0
    for path in streams():
        # LEAF streams have no host frame: there the parser prints nothing
        if JOINED not in path.name or "_L_" in path.name:
            continue
        ours = without_traces(folded(run(path, program=PARSE).stdout))
        theirs = parsed(path.with_suffix(".parsed.txt"))
        assert ours == theirs, (path.name, difference(ours, theirs))
        n += 1
    assert n == 15, n


def test_stacks_of_version_1_are_those_of_its_parser():
    for path in streams():
        if path.parent.name != "v1":
            continue
        # its VM has no symbols, from which the name would come
        ours = folded(run(path, program=PARSE).stdout.replace(
            "ffid 170_", "ffi.meta.__call_"))
        theirs = parsed(path.with_suffix(".parsed.txt"))
        assert ours == theirs, difference(ours, theirs)
        ours = folded(run("--split", path, program=PARSE).stdout.replace(
            "ffid 170_", "ffi.meta.__call_"))
        theirs = collections.Counter()
        for stack, count in parsed(path.with_suffix(".split.txt")).items():
            theirs[(stack[0].removesuffix("_[g]"), *stack[1:])] += count
        assert ours == theirs, difference(ours, theirs)


sys.exit(tap.run(tap.promises(globals())))
