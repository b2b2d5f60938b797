#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the commands on recordings that were changed by their structure.

usage: recordings.py SEAM CORPUS FOLDER [-n INPUTS] [--seed SEED] [--keep]

SEAM is a build with AddressSanitizer and UBSan.  Input number S is made from
the seed S alone: '--seed S -n 1' makes it again, --keep leaves it in FOLDER.
Of each command it is checked that it ends in bounds of time and memory with
status 0, 1 or 3 and no finding of a sanitizer, that a failure says why, that
nothing it prints can act on a terminal, that JSON and SVG are well-formed, and
that rows add up to the total.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from xml.parsers import expat

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "export"))

import mutate
from read_exports import read_page

SECONDS, MAX_BYTES, LARGEST_BASE = 30, 1 << 30, 300 << 10
FINDING = re.compile(rb"AddressSanitizer|runtime error:|LeakSanitizer|"
                     rb"Assertion|UndefinedBehavior")
# C0 but for newline and tab, DEL, C1, and what turns the direction of text.
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SANITIZERS = {"ASAN_OPTIONS": "exitcode=99:allocator_may_return_null=1:"
              "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


class Finding(Exception):
    """What was promised and is not so."""


def require(truth, what):
    if not truth:
        raise Finding(what)


def json_lines(text):
    for line in text.splitlines():
        json.loads(line)


def check_report(text):
    report = json.loads(text)
    rows = sum(row["self"] for row in report["rows"])
    require(rows == report["samples"],
            f"rows add up to {rows}, and there are {report['samples']}")


def check_folded(text):
    for line in text.splitlines():
        require(re.search(r" \d+$", line), f"no count: {line[:100]!r}")


def check_svg(text):
    expat.ParserCreate().Parse(text.encode("utf-8", "surrogateescape"), True)


def check_calls(text):
    calls = json.loads(text)
    for row in calls["functions"]:
        require(0 <= row["min_ns"] <= row["max_ns"] or not row["count"],
                f"{row}")


def check_page(text):
    """By the reader of tests/export, which checks indices and lengths."""
    with tempfile.NamedTemporaryFile("w", suffix=".html",
                                     encoding="utf-8") as file:
        file.write(text)
        file.flush()
        read_page(file.name)


def nothing(_):
    pass


# What to run on PATH, and what its output has to be.
COMMANDS = [
    (("report", "--top", "0", "PATH"), nothing),
    (("report", "--json", "PATH"), check_report),
    (("report", "--tree", "PATH"), nothing),
    (("flamegraph", "-o", "-", "PATH"), check_svg),
    (("view", "-o", "-", "PATH"), check_page),
    (("convert", "--to", "folded", "PATH"), check_folded),
    (("convert", "--to", "trace-json", "PATH"), json.loads),
    (("dump", "PATH"), nothing),
    (("dump", "--json", "--symbols", "PATH"), json_lines),
    (("annotate", "--json", "main", "PATH"), json.loads),
    (("inject", "-q", "-o", "OUT", "PATH"), nothing),
    # with a program for the copies of its stack
    (("report", "--json", "--symfs", "ROOT", "PATH"), check_report),
    (("dump", "--json", "--symbols", "--symfs", "ROOT", "PATH"), json_lines),
]
OF_XRAY = [
    (("calls", "PATH"), nothing),
    (("calls", "--json", "PATH"), check_calls),
    (("calls", "--graph", "PATH"), nothing),
    (("convert", "--to", "xray-yaml", "PATH"), nothing),
    (("convert", "--to", "xray", "-o", "OUT", "PATH"), nothing),
]
OF_SYSPROF = [
    (("convert", "--to", "sysprof", "-o", "OUT", "PATH"), nothing),
    (("report", "--json", "--by", "vmstate,symbol", "PATH"), check_report),
]
OF_JIT = [(("dump", "PATH"), nothing), (("dump", "--json", "PATH"),
                                        json_lines)]


def bases(corpus):
    """(kind, path) of what is changed: bundles, folders and lone files."""
    found = {"bundle": [], "perf": [], "xray": [], "jit": [], "sysprof": []}
    for path in sorted((corpus / "bundle").iterdir()):
        found["bundle"].append(path)
    for path in sorted((corpus / "perf").rglob("*")):
        if path.name == "threads-core.dir":
            found["bundle"].append(path)
        elif path.is_file() and path.parent.name != "threads-core.dir" and \
                path.read_bytes()[:8] == b"PERFILE2":
            found["perf"].append(path)
    found["xray"] += sorted((corpus / "xray" / "rec").glob("*.xray"))
    found["sysprof"] += sorted((corpus / "sysprof").rglob("*.bin"))
    found["jit"] += sorted((corpus / "jit").rglob("*.dump"))
    found["jit"] += sorted((corpus / "jit").rglob("perf-*.map"))
    # runs of a JIT: recording, dump and map beside each other
    found["bundle"] += sorted(p.parent for p in
                              (corpus / "jit").rglob("perf.data"))
    for kind, paths in found.items():
        found[kind] = [p for p in paths if size_of(p) <= LARGEST_BASE]
    return found


def make_root(corpus, root):
    """The recorded programs, where their recordings have them."""
    place = os.path.join(root, "opt/workload/perf/cap")
    os.makedirs(place, exist_ok=True)
    for name, program in ("stress", "stress.bin"), ("busy", "busy"):
        shutil.copy(corpus / "perf" / program, os.path.join(place, name))


def size_of(path):
    return sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) \
        if path.is_dir() else path.stat().st_size


def make(r, kind, base, folder):
    """Copy @base into @folder and change it; returns what to open."""
    path = os.path.join(folder, base.name)
    if base.is_dir():
        shutil.copytree(base, path, ignore=shutil.ignore_patterns(
            "*.txt", "*.gz", "*.log", "*.xz"))
        mutate.bundle(r, path)
        data = os.path.join(path, "perf.data")
        return data if os.path.lexists(data) else path
    with open(path, "wb") as out:
        out.write(mutate.content(r, path, base.read_bytes()))
    return path


def run(seam, words, folder):
    """Run it within bounds; returns (status, output, messages)."""
    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 20, 256 << 20))

    out, err = (os.path.join(folder, name) for name in ("stdout", "stderr"))
    with open(out, "wb") as to, open(err, "wb") as told:
        process = subprocess.Popen(
            [seam, *words], stdin=subprocess.DEVNULL, stdout=to, stderr=told,
            env={**os.environ, **SANITIZERS}, preexec_fn=limits)
        deadline = time.monotonic() + 20 * SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                os.wait4(process.pid, 0)
                raise Finding(f"did not end in {20 * SECONDS} s")
            time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    require(usage.ru_maxrss << 10 <= MAX_BYTES,
            f"took {usage.ru_maxrss >> 10} MiB")
    with open(out, "rb") as to, open(err, "rb") as told:
        return process.returncode, to.read(), told.read()


def check(seam, words, holds, path, folder):
    out = os.path.join(folder, "out")
    root = os.path.join(os.path.dirname(folder), "root")
    words = [{"PATH": path, "OUT": out, "ROOT": root}.get(word, word)
             for word in words]
    status, text, told = run(seam, words, folder)
    require(not FINDING.search(told), told.decode(errors="replace")[:3000])
    if "folded" in words and status == -signal.SIGXFSZ:
        return status       # deep stacks: this format's own limit is 4 GiB
    require(status in (0, 1, 3), f"status {status}: {told[:500]}")
    require(status != 1 or told.startswith(b"seam: "), "failed in silence")
    for name, printed in ("output", text), ("messages", told):
        printed = printed.decode("utf-8", "surrogateescape")
        acts = ACTS.search(printed)
        require(not acts, acts and f"{name}: {acts[0]!r} at "
                f"{printed[max(0, acts.start() - 60):acts.end() + 20]!r}")
        require(not re.search("[\udc80-\udcff]", printed),
                f"{name}: not UTF-8")
    if text and status != 1:
        try:
            holds(text.decode("utf-8", "surrogateescape"))
        except (ValueError, KeyError, TypeError, expat.ExpatError) as wrong:
            raise Finding(f"{type(wrong).__name__}: {wrong}") from wrong
    if words[0] == "inject" and status != 1:
        again, _, told = run(seam, ("report", out), folder)
        require(again in (0, 1, 3) and not FINDING.search(told),
                f"the injected one: {again} {told[:2000]}")
    return status


def one(seam, found, seed, where, keep):
    """Input number @seed.  Returns (statuses of commands, finding or None)."""
    r = random.Random(seed)
    kind = r.choice(("bundle", "bundle", "perf", "perf", "xray", "jit",
                     "sysprof"))
    base = r.choice(found[kind])
    commands = {"xray": COMMANDS[:7] + OF_XRAY, "jit": OF_JIT,
                "sysprof": COMMANDS[:8] + OF_SYSPROF}.get(kind, COMMANDS)
    folder = os.path.join(where, str(seed))
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    words, finding, statuses = (), None, []
    chosen = r.sample(commands, 2)
    try:
        path = make(r, kind, base, folder)
        for words, holds in chosen:
            statuses.append(check(seam, words, holds, path, folder))
    except Finding as problem:
        finding = f"--seed {seed} ({base.name}): seam {' '.join(words)}: " \
            f"{problem}"
    if not keep and not finding:
        shutil.rmtree(folder, ignore_errors=True)
    return statuses, finding


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("seam")
    options.add_argument("corpus", type=pathlib.Path)
    options.add_argument("folder")
    options.add_argument("-n", type=int, default=10000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--keep", action="store_true")
    o = options.parse_args()
    found = bases(o.corpus)
    os.makedirs(o.folder, exist_ok=True)
    make_root(o.corpus, os.path.join(o.folder, "root"))
    # one that stays the same, whatever is built meanwhile
    seam = shutil.copy(o.seam, os.path.abspath(o.folder))
    statuses, n_findings = collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for ended, finding in pool.map(
                lambda seed: one(seam, found, seed, o.folder, o.keep),
                range(o.seed, o.seed + o.n)):
            statuses.update(ended)
            if finding:
                n_findings += 1
                print(f"FINDING {finding}", flush=True)
    print(f"recordings: {o.n} inputs, {statuses.total()} commands (" +
          ", ".join(f"status {s}: {n}" for s, n in sorted(statuses.items())) +
          f"), {n_findings} findings")
    return 1 if n_findings else 0


sys.exit(main())
