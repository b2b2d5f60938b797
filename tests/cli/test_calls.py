#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam calls: the traces of the corpus, and what the program says and exits.

The corpus' README counts the records of each trace with a parser of its own;
an account must add up to exactly those.
"""
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal

from tap import check, end

seam = sys.argv[1]
corpus = os.path.join(os.environ["SEAM_CORPUS"], "xray")


def run(*args):
    return subprocess.run([seam, "calls", *args], capture_output=True,
                          text=True)


def account(*args):
    return json.loads(run("--json", *args).stdout)


def truths():
    """(path, number of enters, number of exits) of each trace."""
    row = re.compile(r"\| (rec/\S+) \|.*\| enter (\d+) exit (\d+) tail (\d+) "
                     r"enterarg (\d+)")
    with open(os.path.join(corpus, "README.md")) as readme:
        for match in map(row.match, readme):
            if match:
                enter, leave, tail, args = map(int, match.groups()[1:])
                yield match[1], enter + args, leave + tail


def check_totals():
    name = "every record of every trace is in the account"
    bad = []
    for path, enters, exits in truths():
        told = account(os.path.join(corpus, path))
        repairs = told["repairs"]
        calls = sum(f["count"] for f in told["functions"])
        if calls - repairs["missing_entry"] != enters or \
           calls - repairs["missing_exit"] - repairs["unfinished"] != exits:
            bad.append((path, calls, repairs, enters, exits))
    check(name, not bad, bad)


def check_counts():
    name = "calls are counted right where llvm-xray's account is wrong"
    want = {
        ("fdr-mt", "mt"): {"leaf": 16000, "work": 1600, "thr": 8, "main": 1},
        ("fdr-single-tinybuf", "single"):
            {"leaf": 1600, "mid": 400, "fib": 6800, "top": 200, "main": 1},
    }
    bad = []
    for (trace, binary), counts in want.items():
        told = account("--map", f"{corpus}/bin/{binary}",
                       f"{corpus}/rec/{trace}.xray")
        got = {re.sub(r"\(.*", "", f["name"]): f["count"]
               for f in told["functions"]}
        if got != counts or told["lost"]["blocks"]:
            bad.append(got)
    check(name, not bad, bad)


def check_oracle():
    """llvm-xray's account is right for whole traces of one thread."""
    name = "counts, sums, minima and maxima are llvm-xray's where it is right"
    bad = []
    for trace in ("fdr-single", "fdr-single-nopie", "fdr-tail", "fdr-arg1",
                  "fdr-single-O0", "basic-single", "basic-tail"):
        told = {f["id"]: f for f in
                account(f"{corpus}/rec/{trace}.xray")["functions"]}
        with open(f"{corpus}/oracle/{trace}.account-k-d.csv") as oracle:
            rows = list(csv.DictReader(oracle))
        if len(rows) != len(told):
            bad.append((trace, "functions"))
        for row in rows:
            row = {k.strip(): v for k, v in row.items() if k}
            got = told.get(int(row["funcid"]))
            slack = int(row["count"]) + 1
            if not got or got["count"] != int(row["count"]) or \
               abs(got["sum_ns"] - float(row["sum"]) * 1e9) > \
               slack + 1e-6 * got["sum_ns"] or \
               abs(got["max_ns"] - float(row["max"]) * 1e9) > 2 or \
               abs(got["min_ns"] - float(row["min"]) * 1e9) > 2:
                bad.append((trace, row, got))
    check(name, not bad, bad[:2])


def check_graph():
    name = "edges and vertices are those of llvm-xray's graph"
    bad = []
    for trace in ("fdr-mt", "fdr-single-tinybuf", "fdr-tail", "fdr-mt-tinybuf",
                  "fdr-arg1", "basic-mt"):
        mine = run("--graph", f"{corpus}/rec/{trace}.xray").stdout
        with open(f"{corpus}/oracle/{trace}.graph.dot") as oracle:
            theirs = oracle.read()
        edges = re.compile(r"(F\d+ -> F\d+)")
        counts_mine = dict(re.findall(r"(F\d+) \[label=\"\{[^|]*\|(\d+) calls",
                                      mine))
        counts_theirs = dict(re.findall(r"(F\d+) \[label=\"\{.*\|(\d+)\}",
                                        theirs))
        if set(edges.findall(mine)) != set(edges.findall(theirs)) or \
           counts_mine != counts_theirs:
            bad.append((trace, counts_mine, counts_theirs))
    check(name, not bad, bad[:1])


def log():
    """Version 5: 'f1 enters, leaves' in one thread."""
    records = b"".join((
        (0x01).to_bytes(1, "little") + (7).to_bytes(15, "little"),
        (0x09).to_bytes(1, "little") + (5).to_bytes(15, "little"),
        (0x13).to_bytes(1, "little") + (6).to_bytes(15, "little"),
        (0x05).to_bytes(1, "little") + bytes(15),
        (0x10).to_bytes(4, "little") + (10).to_bytes(4, "little"),
        (0x12).to_bytes(4, "little") + (90).to_bytes(4, "little"),
    ))
    header = (5).to_bytes(2, "little") + (1).to_bytes(2, "little") + \
        (3).to_bytes(4, "little") + (10**9).to_bytes(8, "little") + bytes(16)
    return header + b"\x0f" + len(records).to_bytes(15, "little") + records


def check_made():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.xray")

        def write(data):
            with open(path, "wb") as out:
                out.write(data)

        write(log())
        told = run("--json", path)
        function = json.loads(told.stdout)["functions"][0]
        check("a log gives the account of the contract",
              told.returncode == 0 and function["sum_ns"] == 90 and
              function["p99_ns"] == 90 and function["name"] == "#1" and
              json.loads(told.stdout)["schema"] == "seam.calls/1" and
              json.loads(told.stdout)["quantile_error"] == 0.0625, told)
        write(log() + log())
        told = run("--json", path)
        check("concatenated copies of a log count once", told.returncode == 0
              and json.loads(told.stdout)["functions"][0]["count"] == 1, told)
        told = subprocess.run([os.path.abspath(seam), "calls"],
                              capture_output=True, text=True, cwd=folder)
        check("without a file it is the last recording",
              told.returncode == 1 and "'recording.seam'" in told.stderr, told)
        write(log().replace(b"\x10\0\0\0", b"\x60\0\0\0")
              .replace(b"\x12\0\0\0", b"\x62\0\0\0"))
        with open(os.path.join(folder, "map.yaml"), "w") as out:
            out.write("---\n- { id: 1, address: 1, function: 1, kind: "
                      "function-enter, always-instrument: true }\n")
        told = run("--map", os.path.join(folder, "map.yaml"), path)
        check("a map of another program is noticed",
              "does not fit this log" in told.stderr, told)


def check_selection():
    """Of each trace's slowest call, by the options that --stacks prints."""
    bad = []
    for path, *_ in truths():
        path = os.path.join(corpus, path)
        lines = run("--stacks=1", path).stdout.splitlines()
        if not lines or "ticks" in lines[0]:
            continue
        words, slowest = lines[1].split(), lines[3].split("  ")[-1].strip()
        done = subprocess.run([seam, "report", "--json", *words, path],
                              capture_output=True, text=True)
        rows = json.loads(done.stdout)["rows"] if done.stdout else []
        begin, finish = words[2][len("--time=@"):].split(",@")
        length = (Decimal(finish) - Decimal(begin)) * 10**9
        total = [row["total_weight"] for row in rows
                 if row["symbol"] == slowest]
        if total != [length]:
            bad.append((path, lines[1], slowest, total, length, done.stderr))
    check("the options printed with a slow call select that call", not bad,
          bad)


check_totals()
check_counts()
check_selection()
check_oracle()
check_graph()
check_made()
sys.exit(end())
