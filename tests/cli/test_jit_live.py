#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runtimes recorded as they run: JIT frames by name, with no second step.

Each runtime that is installed computes Fibonacci numbers in code that it
compiled itself.  The function has to show in the jit layer under its own name,
and in the bundle lies the dump or map that it came from.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import tap
from tap import Skip

SEAM = os.path.abspath(sys.argv[1])

JS = """function fib(n){return n<2?n:fib(n-1)+fib(n-2)}
let s=0; for(let i=0;i<60;i++) s+=fib(30); console.log(s);"""
PHP = """<?php
function fib($n){ return $n<2 ? $n : fib($n-1)+fib($n-2); }
for($i=0;$i<6;$i++) $s=fib(30); echo $s;"""
ERL = """-module(w).
-export([main/0]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N-1) + fib(N-2).
main() -> fib(37), init:stop()."""
JAVA = """class Spin {
static int x;
static int f(int n) { int s = 0; for (int i = 0; i < n; i++) s ^= i*31 + x;
    return s; }
public static void main(String[] a) { long t = System.nanoTime();
    while (System.nanoTime() - t < 1000000000L) x += f(10000); } }"""
C = """long fib(long n){ return n<2 ? n : fib(n-1)+fib(n-2); }
int main(void){ return (int)(fib(40) & 1) * 0; }"""

# As V8 of node 20, and of node 18 in Debian 12, calls it.
V8_FIB = r"^(JS|LazyCompile|Function):.*fib .*w\.js"

# name: (programs it needs, files, commands before, command, symbol, file)
RUNTIMES = {
    "node with a dump": (
        ["node"], {"w.js": JS}, [],
        ["node", "--perf-prof", "--interpreted-frames-native-stack", "w.js"],
        V8_FIB, r"^jit-\d+\.dump$"),
    "node with a map": (
        ["node"], {"w.js": JS}, [],
        ["node", "--perf-basic-prof", "w.js"],
        V8_FIB, r"^perf-\d+\.map$"),
    "PHP": (
        ["php"], {"w.php": PHP}, [],
        ["php", "-d", "opcache.enable_cli=1", "-d", "opcache.enable=1",
         "-d", "opcache.jit_buffer_size=64M", "-d", "opcache.jit=function",
         "-d", "opcache.jit_debug=32",
         "-d", "opcache.file_update_protection=0", "w.php"],
        r"fib", r"^jit-\d+\.dump$"),
    "Erlang": (
        ["erl", "erlc"], {"w.erl": ERL}, [["erlc", "w.erl"]],
        # its idle schedulers would wait for work in busy loops
        ["erl", "+JPperf", "dump", "+sbwt", "none", "+sbwtdcpu", "none",
         "+sbwtdio", "none", "-noshell", "-s", "w", "main"],
        r"w:fib/1", r"^jit-\d+\.dump$"),
    "lli": (
        ["lli", "clang"], {"w.c": C},
        [["clang", "-O1", "-g", "-emit-llvm", "-c", "w.c", "-o", "w.bc"]],
        ["lli", "-jit-kind=mcjit", "w.bc"],
        r"^fib$", r"^jit-\d+\.dump$"),
}


def run(folder, *command):
    home = dict(os.environ, HOME=folder, JITDUMPDIR=folder)
    return subprocess.run(command, cwd=folder, env=home, capture_output=True,
                          text=True, errors="replace", timeout=120)


def is_done(result):
    """A busy machine may lose records, which every command reports: 3."""
    return result.returncode in (0, 3)


def check(folder, programs, files, before, command, symbol, kept):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}")
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)
    for step in before:
        assert run(folder, *step).returncode == 0, step
    done = run(folder, SEAM, "record", "-g", "-F", "2000", "-o", "r.seam",
               "--", *command)
    assert is_done(done), done.stderr
    jit = os.path.join(folder, "r.seam", "jit")
    names = os.listdir(jit) if os.path.isdir(jit) else []
    assert any(re.match(kept, n) for n in names), f"kept: {names}"
    # Away with what the runtime left: the bundle has to be enough.
    for name in os.listdir(folder):
        if name.startswith(("jit-", ".debug")):
            path = os.path.join(folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
    report = run(folder, SEAM, "report", "--json", "r.seam")
    assert is_done(report), report.stderr
    report = json.loads(report.stdout)
    found = sum(row["self"] for row in report["rows"]
                if row["layer"] == "jit" and re.search(symbol, row["symbol"]))
    assert found * 4 >= report["samples"], \
        f"{found} of {report['samples']} samples in {symbol}"
    shown = run(folder, SEAM, "report", "r.seam").stdout
    assert "corrected" not in shown, shown
    curious = run(folder, SEAM, "report", "-v", "r.seam").stdout
    assert ("0x40 bytes off" in curious) == \
        any("0x40 bytes off" in note for note in report["notes"]), curious
    print(f"# {found} of {report['samples']} samples")


def check_reuse(folder):
    """examples/jit: triangle, moved away; then countdown in its old place."""
    example = os.path.join(os.path.dirname(SEAM), "examples", "jit", "jit")
    if not os.path.exists(example):
        raise Skip("no example")
    done = run(folder, SEAM, "record", "-g", "-F", "5000", "-o", "r.seam",
               "--", example, "300", folder)
    assert is_done(done), done.stderr
    done = run(folder, SEAM, "dump", "--json", "--symbols", "r.seam")
    assert is_done(done), done.stderr
    seen = {}           # (function, page): [times]
    for line in done.stdout.splitlines():
        record = json.loads(line)
        leaf = [e for e in record.get("callchain", []) if "layer" in e][:1]
        if record["type"] == "SAMPLE" and leaf and leaf[0]["layer"] == "jit":
            key = leaf[0]["symbol"], leaf[0]["ip"] >> 12
            seen.setdefault(key, []).append(record["time"])
            assert leaf[0]["line"] > 0, leaf
    pages = {}
    for (symbol, page), times in seen.items():
        pages.setdefault(page, []).append((min(times), max(times), symbol))
    shared = [sorted(p) for p in pages.values() if len(p) > 1]
    assert len(shared) == 1 and len(pages) == 2, pages
    (_, end, first), (begin, _, second) = shared[0]
    assert (first, second) == ("triangle", "countdown") and end < begin, shared
    print(f"# {sum(map(len, seen.values()))} samples, {len(seen)} places")


def check_java_advice(folder):
    """What a report says of code without names, done, gives it its names."""
    for program in "java", "javac":
        if not shutil.which(program):
            raise Skip(f"no {program}")
    with open(os.path.join(folder, "Spin.java"), "w") as out:
        out.write(JAVA)
    assert run(folder, "javac", "Spin.java").returncode == 0
    done = run(folder, SEAM, "record", "-o", "r.seam", "java", "Spin")
    assert is_done(done), done.stderr
    report = run(folder, SEAM, "report", "r.seam").stdout
    advice = re.search("has no names; record it with: (java .*)", report)
    assert advice, report
    done = run(folder, SEAM, "record", "-o", "r.seam", *advice[1].split(),
               "Spin")
    assert done.returncode == 0, done.stdout + done.stderr
    report = run(folder, SEAM, "report", "r.seam").stdout
    assert "Spin" in report and "has no names" not in report, report


def in_folder(function, *what):
    def test():
        with tempfile.TemporaryDirectory(prefix="seam-jit-") as folder:
            function(folder, *what)
    return test


sys.exit(tap.run(
    [(f"{name}: its function by name", in_folder(check, *what))
     for name, what in RUNTIMES.items()] +
    [("java: its function by name, as a report advises",
      in_folder(check_java_advice)),
     ("one address is two functions over time", in_folder(check_reuse))]))
