#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dump, convert and report of XRay logs, against llvm-xray's output.

The corpus keeps what llvm-xray made of each trace; those of its outputs that
are right (see the corpus' README) are the oracle.
"""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tap import check, end, skip

seam = sys.argv[1]
corpus = os.path.join(os.environ["SEAM_CORPUS"], "xray")
binaries = {"fdr-multi.0": "multi", "fdr-fork.1": "forkt", "fdr-fork": "forkt",
            "fdr-single-O0": "single_O0", "fdr-single-fnidx": "single_fnidx",
            "fdr-single-nopie": "single_nopie",
            "fdr-events-typed": "events_typed"}


def run(*args):
    return subprocess.run([seam, *args], capture_output=True, text=True)


def traces():
    for name in sorted(os.listdir(f"{corpus}/rec")):
        name = name[:-len(".xray")]
        binary = binaries.get(name, name.split("-")[1])
        yield name, f"{corpus}/rec/{name}.xray", f"{corpus}/bin/{binary}"


def oracle(name):
    path = f"{corpus}/oracle/{name}"
    if os.path.exists(path):
        return open(path, errors="replace").read()
    if os.path.exists(path + ".gz"):
        return gzip.open(path + ".gz", "rt", errors="replace").read()
    return None


RECORD = re.compile(
    r"  - \{ type: \d+, func-id: (\d+), function: (.*?)(?:, args: \[ (.*?) \])?, "
    r"cpu: (\d+), thread: (\d+), process: (\d+), kind: ([a-z-]+), "
    r"tsc: (\d+)")


def records(text):
    return [(m[1], m[2].strip("'\""), m[3] or "", m[4], m[5], m[6], m[7], m[8])
            for m in map(RECORD.match, text.splitlines()) if m]


def header(text):
    """But for the version: llvm-xray reads 1 alone, and writes the log's."""
    return re.findall(r"^  (type|[a-z]+-tsc|cycle-frequency): +(\w+)$", text,
                      re.M)


def check_yaml():
    name = "the YAML of every trace has header and records of llvm-xray's"
    bad = []
    for trace, path, binary in traces():
        want = oracle(trace + ".yaml")
        if not want:
            continue
        text = run("convert", "--to", "xray-yaml", "--map", binary,
                   path).stdout
        heads, got, want = (header(text), header(want)), records(text), \
            records(want)
        times = [int(r[7]) for r in got]
        if sorted(got) != sorted(want) or times != sorted(times) or \
                heads[0] != heads[1] or len(heads[0]) != 4:
            bad.append(heads)
            bad.append((trace, len(got), len(want),
                        [r for r in zip(got, want) if r[0] != r[1]][:2]))
    check(name, not bad, bad)


def check_trace_event():
    name = "trace JSON has the calls and times of llvm-xray's"
    bad = []
    for trace, path, binary in traces():
        text = oracle(trace + ".trace_event.json")
        if not text or "fork" in trace or "wrap" in trace or "exc" in trace:
            continue
        told = json.loads(run("convert", "--to", "trace-json", "--map", binary,
                              path).stdout)["traceEvents"]
        mine, theirs = collections.defaultdict(list), \
            collections.defaultdict(list)
        for e in told:
            if e["ph"] in "BE":
                mine[e["tid"]].append((e["ph"], e["ts"]))
        for e in json.loads(text)["traceEvents"]:
            theirs[int(e["tid"])].append((e["ph"], float(e["ts"])))
        if set(mine) != set(theirs):
            bad.append((trace, "threads"))
            continue
        # of large times llvm-xray prints fewer digits than it has
        zero = min(ts for t in mine.values() for _, ts in t) - \
            min(ts for t in theirs.values() for _, ts in t)
        for tid, events in theirs.items():
            got = mine[tid][:len(events)]
            if [p for p, _ in got] != [p for p, _ in events] or any(
                    abs(a - b - zero) > (1 if b > 1e12 else 0.003)
                    for (_, a), (_, b) in zip(got, events)):
                bad.append((trace, tid, zero))
                break
    check(name, not bad, bad)


def check_end_events():
    name = "an end event of trace JSON has the name of the call that it ends"
    bad = []
    for trace, path, binary in traces():
        stacks = collections.defaultdict(list)
        for e in json.loads(run("convert", "--to", "trace-json", "--map",
                                binary, path).stdout)["traceEvents"]:
            stack = stacks[e["pid"], e.get("tid")]
            if e["ph"] == "B":
                stack.append(e["name"])
            elif e["ph"] == "E" and stack.pop() != e.get("name"):
                bad.append((trace, e))
                break
    check(name, not bad, bad)


DUMPED = (("Buffer:", "BufferExtents"), ("Thread ID", "NewBuffer"),
          ("Wall Time", "WallClockTime"), ("PID", "Pid"),
          ("CPU", "NewCPUId"), ("TSC Wrap", "TSCWrap"),
          ("Function Enter", "Entry"), ("Function Exit", "Exit"),
          ("Function Tail Exit", "Tail_Exit"),
          ("Call Argument", "CallArgument"),
          ("Custom Event", "CustomEventMarker"),
          ("Typed Event", "TypedEventMarker"))


def check_dump():
    name = "dump shows the records that llvm-xray's fdr-dump shows"
    bad = []
    for trace, path, _ in traces():
        text = oracle(trace + ".fdr-dump.txt")
        if not text or not trace.startswith("fdr"):
            continue
        want = collections.Counter()
        for line in text.splitlines():
            for prefix, record in DUMPED:
                if line.startswith("<" + prefix):
                    want[record] += 1
        got = collections.Counter()
        last = -1
        for line in run("dump", "--json", path).stdout.splitlines():
            record = json.loads(line)
            if record["offset"] <= last:
                bad.append((trace, "order", record))
            last = record["offset"]
            kind = record.get("action", record["type"])
            got["Entry" if kind == "Entry_Args" else kind] += 1
        got.pop("Header", 0)
        got.pop("damaged", 0)
        if got != want:
            bad.append((trace, got, want))
    check(name, not bad, bad)


def functions(path):
    told = json.loads(run("calls", "--json", path).stdout)
    return told["functions"], told["repairs"]


def check_round_trip(folder):
    name = "a log written again has the same account"
    bad = []
    out = os.path.join(folder, "again.xray")
    for trace, path, _ in traces():
        run("convert", "--to", "xray", "-o", out, path)
        (mine, _), (theirs, _) = functions(out), functions(path)
        if mine != theirs:
            bad.append((trace, mine[:1], theirs[:1]))
    check(name, not bad, bad)


def check_llvm_reads(folder):
    name = "llvm-xray reads the YAML and the logs that are written"
    tool = shutil.which("llvm-xray")
    if not tool:
        return skip(name, "no llvm-xray")
    bad = []
    for trace, path, _ in traces():
        if trace == "basic-crash":
            continue        # llvm-xray refuses a log without records
        for to in ("xray-yaml", "xray"):
            out = os.path.join(folder, "out." + to)
            run("convert", "--to", to, "-o", out, path)
            got = subprocess.run([tool, "convert", "-f", "yaml", out],
                                 capture_output=True, text=True)
            if got.returncode:
                bad.append((trace, to, got.stderr))
    check(name, not bad, bad)


def check_account_of_llvm(folder):
    name = "of the log written again, llvm-xray's account is right at last"
    tool = shutil.which("llvm-xray")
    if not tool:
        return skip(name, "no llvm-xray")
    out = os.path.join(folder, "again.xray")
    run("convert", "--to", "xray", "-o", out,
        f"{corpus}/rec/fdr-single-tinybuf.xray")
    got = subprocess.run([tool, "account", "-f", "csv", out],
                         capture_output=True, text=True)
    counts = {line.split(",")[1] for line in got.stdout.splitlines()[1:]}
    check(name, counts == {"1600", "400", "6800", "200", "1"}, got)


def check_report():
    name = "folded stacks add up to what each function spent"
    bad = []
    for trace in ("fdr-mt", "fdr-single", "fdr-tail", "basic-exc"):
        path = f"{corpus}/rec/{trace}.xray"
        told = run("convert", "--to", "folded", path).stdout
        self_ns = collections.Counter()
        for line in told.splitlines():
            stack, weight = line.rsplit(" ", 1)
            self_ns[stack.split(";")[-1]] += int(weight)
        want = {f["name"]: f["self_ns"] for f in functions(path)[0]
                if f["self_ns"]}
        if self_ns != want:
            bad.append((trace, self_ns, want))
    check(name, not bad, bad)


def check_cut(folder):
    name = "every command tells of a log that is cut where a record ends"
    bad = []
    path = os.path.join(folder, "cut.xray")
    with open(f"{corpus}/rec/fdr-mt.xray", "rb") as log:
        data = log.read()
    at, ends = 32, []
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 1:at + 9], "little")
        ends.append(at)
    for size in (99000, 100000, 100001, 200000, 284000, ends[5], len(data)):
        with open(path, "wb") as out:
            out.write(data[:size])
        want = 0 if size in ends else 3
        told = {args: run(*args, path) for args in (
            ("report",), ("calls",), ("dump",),
            ("flamegraph", "-o", path + ".svg"),
            ("convert", "--to", "folded"), ("convert", "--to", "trace-json"),
            ("convert", "--to", "xray-yaml"),
            ("convert", "--to", "xray", "-o", path + ".again"))}
        for args, got in told.items():
            if got.returncode != want:
                bad.append((size, args, got.returncode))
        for args in ("report",), ("calls",), ("dump",):
            if ("ends inside a block" in told[args].stdout) != (want == 3):
                bad.append((size, args, "text"))
        lost = json.loads(run("calls", "--json", path).stdout)["lost"]
        whole = size - size % 8
        if lost["bytes"] != (min(e for e in ends if e >= size) - whole
                             if want else 0):
            bad.append((size, lost))
    check(name, not bad, bad)


def check_whole():
    name = "no trace of the corpus is called cut"
    bad = []
    for trace, path, _ in traces():
        if "the file ends" in run("calls", path).stdout:
            bad.append(trace)
    check(name, not bad, bad)


with tempfile.TemporaryDirectory() as folder:
    check_yaml()
    check_trace_event()
    check_end_events()
    check_dump()
    check_round_trip(folder)
    check_llvm_reads(folder)
    check_account_of_llvm(folder)
    check_report()
    check_cut(folder)
    check_whole()
sys.exit(end())
