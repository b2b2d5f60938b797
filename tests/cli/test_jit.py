#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JIT frames of real runtimes: as many as perf finds after 'perf inject'.

For each recording of the corpus that has a dump, the oracle is what perf
script printed after perf inject --jit had turned the dump into thousands of
files.  Seam reads the recording and the dump as they are.  Frame by frame: what
perf resolved, Seam resolves too, to the same name; and after seam inject perf
resolves what it did after its own.
"""
import collections
import functools
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
# Copies of the stack, unwound by the CFI of the runtime and of its JIT code;
# another libpython than the recorded one ends perf's unwinding early.
DWARF = ("cpython313-perfjit-dwarf",)
LIBPYTHON = "/home/.pyenv/versions/3.13.0/lib/libpython3.13.so.1.0"
LIBPYTHON_ID = "d11d13fb0f82d32f3da1221ffd551ab179afb423"
# Only the map was kept of this one; there the runtime writes $ before names.
MAP_ONLY = ("erlang25-jpperf-true",)
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")
SAMPLE = re.compile(r".*?\s(-?\d+)/(-?\d+)\s+(\d+)\.(\d{6}):\s")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          errors="backslashreplace", timeout=120,
                          env=dict(os.environ, HOME="/nonexistent"))


def unpack(folder, into):
    """The recording and its dumps, in one folder of our own."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".xz":
            corpus.unpacked(path, into)
        elif path.suffix in (".dump", ".map") or path.name == "perf.data":
            shutil.copy(path, into)


def perf_samples(path):
    """{(tid, microsecond): [[(symbol, is of a jitted file), ...], ...]}"""
    samples = collections.defaultdict(list)
    frames = None
    with gzip.open(path, "rt", errors="replace") as lines:
        for line in lines:
            head = SAMPLE.match(line)
            frame = FRAME.match(line)
            if head and "PERF_RECORD" not in line:
                frames = []
                samples[int(head[2]), int(head[3] + head[4])].append(frames)
            elif frame and frames is not None:
                name = re.sub(r"\+0x[0-9a-f]+$", "", frame[2])
                frames.append((name, "/jitted-" in frame[3]))
            elif "PERF_RECORD" in line:
                frames = None
    return samples


def seam_samples(data, *words):
    done = subprocess.run([SEAM, "dump", "--json", "--symbols", *words, data],
                          capture_output=True, text=True, errors="replace",
                          timeout=120)
    assert done.returncode in (0, 3), done.stderr
    samples = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "SAMPLE":
            samples[record["tid"], record["time"] // 1000].append(
                [e for e in record.get("callchain", [])
                 if e.get("ip", 0) < 2**64 - 4095])
    return samples


def plain(symbol, folder):
    """A name of a map as the dump of the same run has it."""
    if folder.name in MAP_ONLY and symbol:
        return re.sub(r"-CodeInfoPrologue$", "", symbol.lstrip("$"))
    return symbol


def compare(folder, into):
    perf = perf_samples(folder / "injected.script.txt.gz")
    seam = seam_samples(os.path.join(into, "perf.data"))
    n_perf = n_same = n_seam = 0
    other = collections.Counter()
    for key, of_perf in perf.items():
        for frames, entries in zip(of_perf, seam.get(key, [])):
            n_seam += sum(e.get("layer") == "jit" and
                          not e["symbol"].startswith("[") for e in entries)
            for (name, is_jit), entry in zip(frames, entries):
                if not is_jit or name == "[unknown]":
                    continue
                n_perf += 1
                symbol = plain(entry.get("symbol"), folder)
                if entry.get("layer") == "jit" and \
                        symbol == plain(name, folder):
                    n_same += 1
                else:
                    other[name, entry.get("symbol")] += 1
    return n_perf, n_same, n_seam, other


def advises_none(folder):
    """A dump that was announced and is not here: no flag would help."""
    shown = subprocess.run([SEAM, "report", folder / "perf.data"],
                           stdout=subprocess.PIPE, text=True, check=False)
    return "--jit says where it is" in shown.stdout and \
        "record it with" not in shown.stdout


def find_libpython():
    """The library of that recording, where this machine has it."""
    for path in (LIBPYTHON, LIBPYTHON.replace("/home", os.path.expanduser("~"),
                                              1)):
        notes = subprocess.run(["readelf", "-n", path], capture_output=True,
                               text=True, check=False).stdout
        if LIBPYTHON_ID in notes:
            return path
    return None


def compare_dumps(folder, into, libpython):
    """The JIT frames of each sample, in order: (perf, same, Seam, other)."""
    place = os.path.join(into, "root" + LIBPYTHON)
    os.makedirs(os.path.dirname(place))
    os.symlink(libpython, place)
    perf = perf_samples(folder / "injected.script.txt.gz")
    seam = seam_samples(os.path.join(into, "perf.data"), "--symfs",
                        os.path.join(into, "root"))
    n_perf = n_same = n_seam = 0
    other = collections.Counter()
    for key, of_perf in perf.items():
        for frames, entries in zip(of_perf, seam.get(key, [])):
            theirs = [name for name, is_jit in frames if is_jit]
            ours = [e["symbol"] for e in entries if e.get("layer") == "jit"]
            n_perf += len(theirs)
            n_seam += len(ours)
            if ours[:len(theirs)] == theirs:
                n_same += len(theirs)
            else:
                other[str(theirs)[:99], str(ours)[:99]] += 1
    return n_perf, n_same, n_seam, other


def ends_at_the_file(data):
    """Without the library, stacks end there, and a note says so."""
    done = subprocess.run([SEAM, "report", "--json", data],
                          stdout=subprocess.PIPE, text=True, check=True)
    parsed = json.loads(done.stdout)
    return any("user stacks" in note and "libpython" in note
               for note in parsed["notes"]) and \
        sum(row["self"] for row in parsed["rows"]) == parsed["samples"] > 0


def check_names(folder):
    with tempfile.TemporaryDirectory(prefix="seam-jit-") as into:
        unpack(folder, into)
        is_dumped = folder.name in DWARF
        libpython = find_libpython() if is_dumped else None
        if is_dumped and not libpython:
            assert ends_at_the_file(os.path.join(into, "perf.data"))
            return
        n_perf, n_same, n_seam, other = \
            compare_dumps(folder, into, libpython) if is_dumped else \
            compare(folder, into)
    print(f"# perf {n_perf} JIT frames, Seam {n_seam}, same {n_same}")
    assert n_perf > 0 and n_same == n_perf and n_seam >= n_perf, \
        other.most_common(5)


def check_injected(folder):
    """Sample by sample: the time and the names of JIT code."""
    with tempfile.TemporaryDirectory(prefix="seam-jit-") as into:
        unpack(folder, into)
        done = run(SEAM, "inject", "-o", into + "/out", into + "/perf.data")
        assert done.returncode == 0, done.stderr
        ours = run("perf", "script", "-i", into + "/out/data", "-F",
                   "comm,tid,time,ip,sym,dso").stdout
    with gzip.open(folder / "injected.script.txt.gz", "rt",
                   errors="replace") as theirs:
        n = compare_injected(jit_frames(theirs), ours)
    print(f"# {n} frames of JIT code")


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


def compare_injected(theirs, script):
    ours = jit_frames(script.splitlines())
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    n = 0
    for a, b in zip(theirs, ours):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b):
            assert x is None or x == y, (x, y)
            n += y is not None
    return n


def test_no_advice_to_make_a_dump_where_one_was_announced():
    assert advises_none(corpus.ROOT / "jit" / "erlang25-jpperf-dump")


def test_dump_reads_every_dump():
    paths = sorted((corpus.ROOT / "jit").rglob("jit-*.dump*"))
    assert paths, "no dumps"
    with tempfile.TemporaryDirectory(prefix="seam-jit-") as into:
        for path in paths:
            done = run(SEAM, "dump", "--json", corpus.unpacked(path, into))
            assert done.returncode in (0, 3), (path, done.stderr)
            assert any(json.loads(line)["type"] == "JIT_CODE_LOAD"
                       for line in done.stdout.splitlines()), path


FOLDERS = sorted(p.parent for p in
                 (corpus.ROOT / "jit").glob("*/injected.script.txt.gz"))
assert FOLDERS, "no recordings"
sys.exit(tap.run(
    [(f"{folder.name}: what perf inject resolved, by the same name",
      functools.partial(check_names, folder)) for folder in FOLDERS] +
    [(f"{folder.name}: after seam inject, perf finds the same",
      functools.partial(check_injected, folder)) for folder in FOLDERS
     if folder.name not in DWARF + MAP_ONLY] +
    tap.promises(globals())))
