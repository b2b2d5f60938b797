#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every perf.data of the corpus opens, and nothing in it is miscounted.

perf's own counts of records by type are the oracle.  Where perf 6.1 refuses
a file (.records.txt empty: a newer attr, COMPRESSED2, a crash), Seam has to
read what is whole and say what is not.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import corpus

SEAM = sys.argv[1]

def run(*arguments):
    return subprocess.run([SEAM, *arguments], capture_output=True, text=True,
                          errors="replace", timeout=120)


def dump_counts(path):
    done = run("dump", "--json", path)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        counts[json.loads(line)["type"]] += 1
    return counts, done


def check(name, records, path):
    counts, done = dump_counts(path)
    walk = corpus.walked(path)
    if walk is not None:
        assert sum(counts.values()) == sum(walk.values()), \
            f"{sum(counts.values())} records of {sum(walk.values())}"
        for kind, name in ((9, "SAMPLE"), (10, "MMAP2"), (1, "MMAP")):
            assert counts[name] == walk[kind], f"{name}: {walk[kind]}"
    assert done.returncode in (0, 3), done.stderr
    if done.returncode == 3:
        assert done.stderr.strip(), "exit 3 without a word"
    expected = corpus.record_counts(records) if records else {}
    # perf gave up on those with an .err beside them: it has seen a part.
    gave_up = records and records.with_name(
        records.name.replace(".records.txt", ".err")).exists()
    for kind in set(expected) | set(counts) if expected else ():
        count, perf = counts[kind], expected.get(kind, 0)
        # perf prints no name for types that are not its own, and counts
        # an ATTR that its trace decoders make up, which no file holds.
        if kind.startswith("TYPE_") or gave_up and count >= perf or \
                kind == "ATTR" and "AUXTRACE" in counts:
            continue
        assert count == perf, f"{kind}: {count}, perf has {perf}"
    report = run("report", "--json", "--no-inline", path)
    assert report.returncode in (0, 3), report.stderr
    report = json.loads(report.stdout)
    assert report["schema"] == "seam.report/1"
    assert sum(row["self"] for row in report["rows"]) == report["samples"]
    if "SAMPLE" in expected:
        # simpleperf's counters that were added to an event have samples, too
        more = report["samples"] - expected["SAMPLE"]
        assert more == 0 or more > 0 and (
            gave_up or not name.startswith("perf/")), report["samples"]


def threads(path):
    rows = json.loads(run("report", "--json", "--by", "thread",
                          path).stdout)["rows"]
    found = collections.Counter()
    for row in rows:
        found[row["pid"], row["tid"]] += row["self"]
    return found


def check_threads(path, opened, folder):
    """Each sample's thread is perf's, also where records were lost."""
    perf, copy = corpus.script_threads(path), os.path.join(folder, "lost")
    seam = threads(opened)
    # perf prints more where it decodes a hardware trace
    if not perf or sum(perf.values()) != sum(seam.values()):
        return
    assert seam == perf, (seam, perf)
    if corpus.with_losses(opened, copy):
        assert threads(copy) == perf, ("with losses", threads(copy), perf)
        assert run("report", copy).returncode == 3


def perf_calls(path):
    """[(number, first argument or result)] that perf script printed."""
    return [(int(m[1]), int(m[2], 16)) for m in re.finditer(
        r"sys_enter: NR (-?\d+) \(([0-9a-f]+),", corpus.script_text(path))]


def check_fields(path):
    done = run("dump", "--json", str(path))
    calls = []
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record.get("event") == "raw_syscalls:sys_enter":
            fields = record["fields"]
            calls.append((fields["id"], fields["args"][0]))
    assert calls == perf_calls(path) and calls, len(calls)


def check_many_parts(source, folder):
    """perf record --threads writes a file for each CPU, 299 of them here."""
    many = os.path.join(folder, "many")
    shutil.copytree(source, many)
    samples = [json.loads(run("report", "--json", many).stdout)["samples"]]
    for i in range(1, 300):
        shutil.copy(f"{many}/data.0", f"{many}/data.{i}")
        if i in (1, 2):
            samples.append(json.loads(run("report", "--json",
                                          many).stdout)["samples"])
    one = samples[2] - samples[1]
    whole = json.loads(run("report", "--json", many).stdout)["samples"]
    assert one > 0 and whole == samples[1] + 298 * one, (samples, whole)


def main():
    files = corpus.recordings("perf", "perf-ext")
    failed = not files
    print(f"1..{len(files) + 2}")
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, records, path) in enumerate(files, 1):
            try:
                opened = corpus.unpacked(path, folder)
                check(name, records, opened)
                check_threads(path, opened, folder)
                print(f"ok {i} - {name} reads as perf reads it", flush=True)
            except (AssertionError, ValueError,
                    subprocess.TimeoutExpired) as why:
                failed = 1
                print(f"not ok {i} - {name}: {why}", flush=True)
    try:
        check_fields(corpus.ROOT / "perf" / "raw.data")
        print(f"ok {len(files) + 1} - fields of tracepoints are perf's")
    except AssertionError as why:
        failed = 1
        print(f"not ok {len(files) + 1} - fields of tracepoints: {why}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            check_many_parts(corpus.ROOT / "perf" / "threads-core.dir",
                             folder)
        print(f"ok {len(files) + 2} - a recording of 300 files is read whole")
    except AssertionError as why:
        failed = 1
        print(f"not ok {len(files) + 2} - a recording of 300 files: {why}")
    return failed


sys.exit(main())
