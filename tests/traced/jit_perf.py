#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The example JIT's dump goes through plain perf: names, lines, unwinding.

Usage: jit_perf.py JIT.  Prints TAP; skips what needs a perf that may record.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

jit = os.path.abspath(sys.argv[1])
tests = []


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def check(text, good, why=""):
    tests.append(good)
    print(f"{'ok' if good else 'not ok'} {len(tests)} - {text}")
    if not good:
        print(f"# {why}")


def skip(texts, why):
    for text in texts:
        tests.append(True)
        print(f"ok {len(tests)} - {text} # SKIP {why}")
    print(f"1..{len(tests)}")
    sys.exit(0)


NAMES = [
    "perf inject accepts the dump and makes a file for each function",
    "perf script names the functions at all their places",
    "perf script has the source lines",
    "perf's files hold the unwinding tables",
]

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["HOME"] = folder     # perf caches what it makes there
    r = run(jit, "1", folder)
    if "dump:" not in r.stdout:
        skip(["the example runs"] + NAMES, r.stderr.strip() or "no x86-64")
    check("the example runs", r.returncode == 0 and "**********" in r.stdout,
          r.stdout + r.stderr)
    for name in os.listdir(folder):
        if name.startswith("jit-"):
            os.unlink(name)

    if not shutil.which("perf"):
        skip(NAMES, "no perf")
    r = run("perf", "record", "-q", "-B", "-k", "mono", "-g", "-e", "cpu-clock",
            "-F", "999", "-o", "perf.data", jit, "100", folder)
    if r.returncode or not os.path.exists("perf.data"):
        skip(NAMES, "perf may not record")
    r = run("perf", "inject", "--jit", "-i", "perf.data", "-o", "out.data")
    files = [n for n in os.listdir(folder) if n.startswith("jitted-")]
    check(NAMES[0], r.returncode == 0 and len(files) == 3,
          r.stdout + r.stderr + str(files))

    r = run("perf", "script", "-i", "out.data", "-F", "ip,sym,dso")
    frames = [l.split() for l in r.stdout.splitlines() if "/jitted-" in l]
    found = {f[1].split("+")[0] for f in frames}
    check(NAMES[1], found == {"triangle", "countdown"}, str(found))

    r = run("perf", "script", "-i", "out.data", "-F", "ip,sym,srcline")
    lines = set(re.findall(r"(triangle|countdown)\.bf:(\d+)", r.stdout))
    if not lines and "addr2line" in r.stderr:
        skip(NAMES[2:], "perf has no addr2line")
    check(NAMES[2], ("countdown", "3") in lines and ("triangle", "3") in lines,
          str(lines))

    if not shutil.which("readelf"):
        skip(NAMES[3:], "no readelf")
    tables = "".join(run("readelf", "-wf", n).stdout for n in files)
    check(NAMES[3], "DW_CFA_def_cfa_register: r6 (rbp)" in tables, tables)

print(f"1..{len(tests)}")
sys.exit(not all(tests))
