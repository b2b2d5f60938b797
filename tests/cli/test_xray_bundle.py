#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A bundle with samples and XRay logs is one profile: xray_bundle.py SEAM

A recording of Seam's and traces of compiler-rt's, both of the corpus, are put
together; the traces get the pids, tids and wall times of the recording.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from tap import check, end, skip

SEAM = os.path.abspath(sys.argv[1])
CORPUS = os.environ.get("SEAM_CORPUS", "")
SAMPLES = os.path.join(CORPUS, "bundle", "jit.seam")
LOGS = os.path.join(CORPUS, "xray", "rec")
PID = 21860                     # of the recording, and its only thread
FIRST_NS = 3132490264593        # its first sample


def run(*words):
    return subprocess.run([SEAM, *words], capture_output=True, text=True,
                          timeout=120, check=False)


def report(*words):
    return json.loads(run("report", "--json", *words).stdout)


def moved(name, pid, tids, start_us):
    """Trace @name of process @pid, its threads @tids, from @start_us on.

    Each block is BufferExtents, NewBuffer, WallTime, Pid, of 16 bytes each.
    """
    with open(os.path.join(LOGS, name), "rb") as f:
        data = bytearray(f.read())
    known, first, at = {}, None, 32
    while at + 64 <= len(data) and data[at] == 0x0f:
        size = int.from_bytes(data[at + 1:at + 9], "little")
        tid = bytes(data[at + 17:at + 21])
        wall = int.from_bytes(data[at + 33:at + 41], "little") * 1000000 + \
            int.from_bytes(data[at + 41:at + 45], "little")
        if size:
            first = min(wall, first or wall)
            known.setdefault(tid, tids[min(len(known), len(tids) - 1)])
        at += 16 + size
    at = 32
    while at + 64 <= len(data) and data[at] == 0x0f:
        size = int.from_bytes(data[at + 1:at + 9], "little")
        if size:
            tid = known[bytes(data[at + 17:at + 21])]
            wall = int.from_bytes(data[at + 33:at + 41], "little") * \
                1000000 + int.from_bytes(data[at + 41:at + 45], "little")
            wall += start_us - first
            data[at + 17:at + 21] = tid.to_bytes(4, "little")
            data[at + 33:at + 41] = (wall // 1000000).to_bytes(8, "little")
            data[at + 41:at + 45] = (wall % 1000000).to_bytes(4, "little")
            data[at + 49:at + 53] = pid.to_bytes(4, "little")
        at += 16 + size
    return bytes(data)


def bundle(**logs):
    """A bundle with these logs, by the pid in their names: _1=bytes."""
    path = tempfile.mkdtemp(dir=folder, suffix=".seam")
    shutil.copytree(SAMPLES, path, dirs_exist_ok=True,
                    copy_function=shutil.copyfile)
    os.makedirs(os.path.join(path, "xray"))
    for name, data in logs.items():
        with open(os.path.join(path, "xray", name[1:] + ".xray"), "wb") as f:
            f.write(data)
    return path


def alone(data):
    path = os.path.join(folder, "alone.xray")
    with open(path, "wb") as f:
        f.write(data)
    return path


def rows(told, event):
    """The rows of one event; the only one's are those of the report."""
    for part in told["events"]:
        if part["event"] == event:
            return part.get("rows", told["rows"])
    return None


def both_are_there():
    log = moved("fdr-single.xray", PID, [PID], FIRST_NS // 1000 + 3000)
    path = bundle(_21860=log)
    told = report(path)
    notes = [note for note in told["notes"] if "are numbers" not in note]
    if notes != report(SAMPLES)["notes"]:
        return told["notes"]
    if rows(told, "cpu-clock") != rows(report(SAMPLES), "cpu-clock"):
        return "samples differ from those of the recording alone"
    if rows(told, "xray") != rows(report(alone(log)), "xray"):
        return "calls differ from those of the trace alone"
    return told["samples"] == report(SAMPLES)["samples"] + \
        report(alone(log))["samples"]


def threads_are_one():
    path = bundle(_21860=moved("fdr-mt.xray", PID, [PID, PID + 1],
                               FIRST_NS // 1000))
    threads = {(event["event"], row["pid"], row["tid"])
               for event in report("--sort=pid,tid", path)["events"]
               for row in event["rows"]}
    comms = {row["comm"] for row in
             rows(report("--sort=comm", path), "xray")}
    # the recorded name of the one, a number for the one without samples
    return (threads, comms) == ({
        ("cpu-clock", PID, PID), ("xray", PID, PID), ("xray", PID, PID + 1),
    }, {"jit", f"thread {PID + 1}"}) or (threads, comms)


def time_cuts_both():
    log = moved("fdr-single.xray", PID, [PID], FIRST_NS // 1000 + 20000)
    path = bundle(_21860=log)
    # the trace begins 20 ms after the first sample
    before, after = report("--time=,19ms", path), report("--time=19ms,", path)
    everything = report(path)
    counts = [{e["event"]: e["samples"] for e in part["events"]}
              for part in (before, after, everything)]
    return (counts[0].get("xray", 0) == 0 and counts[0]["cpu-clock"] > 0 and
            counts[1]["xray"] == counts[2]["xray"] and
            counts[0]["cpu-clock"] + counts[1]["cpu-clock"] ==
            counts[2]["cpu-clock"]) or counts


def no_wall_time_is_noted():
    with open(os.path.join(LOGS, "basic-single.xray"), "rb") as f:
        log = f.read()
    told = report(bundle(_1=log))
    whole = report(SAMPLES)
    return (any("could not be aligned" in note for note in told["notes"]) and
            told["start_ns"] == whole["start_ns"] and
            rows(told, "xray") == rows(report(alone(log)), "xray")) or told


def another_clock_is_noted():
    """perf's own clock, in a folder as perf knows it."""
    path = tempfile.mkdtemp(dir=folder, suffix=".seam")
    shutil.copyfile(os.path.join(CORPUS, "perf", "fp.data"),
                    os.path.join(path, "data"))
    os.makedirs(os.path.join(path, "xray"))
    shutil.copyfile(os.path.join(LOGS, "fdr-single.xray"),
                    os.path.join(path, "xray", "1.xray"))
    told = report(path)
    return any("not CLOCK_MONOTONIC" in note for note in told["notes"]) and \
        told["start_ns"] == report(os.path.join(path, "data"))["start_ns"] \
        or told["notes"]


def other_times_are_noted():
    with open(os.path.join(LOGS, "fdr-single.xray"), "rb") as f:
        told = report(bundle(_1=f.read()))
    return any("no time in common" in note for note in told["notes"]) or \
        told["notes"]


def a_moment_in_between_is_not_noted():
    """A short program's only sample may be before its first call."""
    told = report(SAMPLES)
    end_ns = told["start_ns"] + told["duration_ns"]
    told = report(bundle(_21860=moved("fdr-single.xray", PID, [PID],
                                      end_ns // 1000 + 1000)))
    return not any("in common" in note for note in told["notes"]) or \
        told["notes"]


def a_bad_log_costs_no_other():
    good = moved("fdr-single.xray", PID, [PID], FIRST_NS // 1000)
    path = bundle(_1=b"not a log" * 9, _21860=good)
    done = run("report", "--json", path)
    told = json.loads(done.stdout)
    return (done.returncode == 3 and
            any("xray/1.xray is not read" in n for n in told["notes"]) and
            rows(told, "xray") == rows(report(alone(good)), "xray") and
            rows(told, "cpu-clock") ==
            rows(report(SAMPLES), "cpu-clock")) or told


def logs_alone_are_read_too():
    """seam calls, and convert to formats of calls, take a bundle's logs."""
    log = moved("fdr-single.xray", PID, [PID], FIRST_NS // 1000)
    path, one = bundle(_21860=log), alone(log)
    for words in ("calls",), ("convert", "--to", "trace-json"):
        of_bundle, of_log = run(*words, path), run(*words, one)
        if of_log.returncode or of_bundle.stdout != of_log.stdout:
            return of_bundle
    without = run("calls", SAMPLES)
    bad = run("calls", bundle(_1=b"not a log" * 9, _21860=log))
    return (without.returncode == 1 and
            "sampled recording" in without.stderr and
            bad.returncode == 1 and "1.xray" in bad.stderr) or (without, bad)


def the_head_adds_no_calls_to_samples():
    log = moved("fdr-single.xray", PID, [PID], FIRST_NS // 1000)
    head = run("report", bundle(_21860=log)).stdout.split("\n\n")[0]
    n = report(SAMPLES)["samples"], report(alone(log))["samples"]
    return f"{n[0]:,} samples and {n[1]:,} calls over" in head or head


tests = (
    ("a bundle's logs are read by the commands for logs",
     logs_alone_are_read_too),
    ("the head of a report adds no calls to samples",
     the_head_adds_no_calls_to_samples),
    ("a bundle's samples and calls are those of each input alone",
     both_are_there),
    ("threads of equal pid and tid are one thread", threads_are_one),
    ("--time counts from the first record of all inputs", time_cuts_both),
    ("a log without wall times begins where the samples do",
     no_wall_time_is_noted),
    ("samples of another clock are noted", another_clock_is_noted),
    ("logs of another time are noted", other_times_are_noted),
    ("a moment between logs and samples is not noted",
     a_moment_in_between_is_not_noted),
    ("a log that cannot be read takes nothing from the others",
     a_bad_log_costs_no_other),
)
with tempfile.TemporaryDirectory() as folder:
    for promise, test in tests:
        if not os.path.exists(SAMPLES):
            skip(promise)
            continue
        result = test()
        check(promise, result is True, result)
sys.exit(end())
