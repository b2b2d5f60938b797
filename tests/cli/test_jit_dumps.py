#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam dump and inject of the JIT recordings of a corpus, by perf's word."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import corpus
import tap

SEAM = os.path.abspath(sys.argv[1])
FOLDER = tempfile.mkdtemp(prefix="seam-jit-dumps-")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          errors="backslashreplace", timeout=120)


def test_dump_reads_every_dump():
    paths = sorted((corpus.ROOT / "jit").rglob("jit-*.dump*"))
    assert paths, "no dumps"
    for path in paths:
        name = corpus.unpacked(path, FOLDER)
        kinds = collections.Counter()
        done = run(SEAM, "dump", "--json", name)
        assert done.returncode in (0, 3), (path, done.stderr)
        for line in done.stdout.splitlines():
            kinds[json.loads(line)["type"]] += 1
        assert kinds["JIT_CODE_LOAD"] > 0, path


# Another libpython than the recorded one ends perf's unwinding early; and of
# the other only the map was kept, where names begin with $.
NOT_COMPARABLE = ("cpython313-perfjit-dwarf", "erlang25-jpperf-true")


def test_perf_finds_what_it_finds_after_its_own_inject():
    oracles = sorted((corpus.ROOT / "jit").glob("*/injected.script.txt.gz"))
    assert oracles, "no recordings"
    for oracle in oracles:
        name = oracle.parent.name
        if name in NOT_COMPARABLE:
            continue
        os.mkdir(name)
        for path in oracle.parent.iterdir():
            if path.suffix == ".xz":
                corpus.unpacked(path, name)
            elif path.suffix in (".dump", ".map") or path.name == "perf.data":
                shutil.copy(path, name)
        done = run(SEAM, "inject", "-o", name + "/out", name + "/perf.data")
        assert done.returncode == 0, (name, done.stderr)
        ours = run("perf", "script", "-i", name + "/out/data", "-F",
                   "comm,tid,time,ip,sym,dso")
        with gzip.open(oracle, "rt", errors="replace") as theirs:
            n = compare(jit_frames(theirs), ours.stdout, name)
        print(f"# {name}: {n} frames of JIT code")
        shutil.rmtree(name)


def jit_frames(lines):
    """Per sample the name of each frame, or None where it is no JIT's."""
    samples, frames = [], None
    for line in lines:
        frame = re.match(r"\s+[0-9a-f]+ (.*) \((.*)\)$", line)
        if frame and frames is not None:
            name = re.sub(r"\+0x[0-9a-f]+$", "", frame[1])
            frames.append(name if "/jitted-" in frame[2] else None)
        elif re.search(r"\d+\.\d+:", line) and "PERF_RECORD" not in line:
            frames = []
            samples.append(frames)
    return samples


def compare(theirs, script, name):
    ours = jit_frames(script.splitlines())
    assert len(ours) == len(theirs), (name, len(ours), len(theirs))
    n = 0
    for a, b in zip(theirs, ours):
        assert len(a) == len(b), (name, a, b)
        for x, y in zip(a, b):
            assert x is None or x == y, (name, x, y)
            n += y is not None
    return n


def main():
    os.environ["HOME"] = FOLDER     # perf caches what it reads there
    os.chdir(FOLDER)
    status = tap.run(tap.promises(globals()))
    os.chdir("/")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return status


sys.exit(main())
