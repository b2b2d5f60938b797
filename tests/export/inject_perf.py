#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain perf reads one injected file as it reads perf inject's many.

A recording of the example JIT goes through perf inject --jit.  Then its
mappings are turned to the one file that Seam makes of the same dump, and perf
script must say the same names as before.

Usage: inject_perf.py JIT INJECT_DUMP.  Prints TAP.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

jit, inject_dump = map(os.path.abspath, sys.argv[1:])
NAMES = ["perf names the functions of one file as those of many",
         "perf annotates a function of it"]
MMAP2 = 10


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def skip(why):
    for i, name in enumerate(NAMES, 1):
        print(f"ok {i} - {name} # SKIP {why}")
    print(f"1..{len(NAMES)}")
    sys.exit(0)


def redirect(path, offsets):
    """Turn mappings of jitted-PID-INDEX.so to offsets of jitted-PID-0.so."""
    data = bytearray(open(path, "rb").read())
    pos, size = struct.unpack_from("<QQ", data, 40)
    end = pos + size
    n = 0
    while pos < end:
        kind, _, record = struct.unpack_from("<IHH", data, pos)
        if kind == MMAP2:
            name_at = pos + 72
            name = bytes(data[name_at:data.index(0, name_at)])
            match = re.search(rb"/jitted-\d+-(\d+)\.so$", name)
            if match:
                struct.pack_into("<Q", data, pos + 32,
                                 offsets[int(match[1])])
                struct.pack_into("<IIQQ", data, pos + 40, 0, 0, 4711, 1)
                one = re.sub(rb"-\d+\.so$", b"-0.so", name)
                data[name_at:name_at + len(name)] = one.ljust(len(name),
                                                              b"\0")
                n += 1
        pos += record
    open(path, "wb").write(data)
    return n


def frames(path):
    """What perf says of each frame in JIT code."""
    text = run("perf", "script", "-i", path, "-F", "ip,sym").stdout
    return re.findall(r"^\s+[0-9a-f]+ ((?:triangle|countdown).*)$", text, re.M)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.environ["HOME"] = folder
    if not shutil.which("perf"):
        skip("no perf")
    r = run("perf", "record", "-q", "-B", "-k", "mono", "-g", "-e", "cpu-clock",
            "-F", "999", "-o", "perf.data", jit, "100", folder)
    dumps = [n for n in os.listdir(folder) if n.endswith(".dump")]
    if r.returncode or not dumps:
        skip("perf may not record, or no x86-64")
    run("perf", "inject", "--jit", "-i", "perf.data", "-o", "out.data")
    many = frames("out.data")

    pid = re.search(r"\d+", dumps[0])[0]
    for name in os.listdir(folder):
        if name.startswith("jitted-"):
            os.unlink(name)
    shutil.rmtree(".debug", ignore_errors=True)
    made = run(inject_dump, dumps[0], f"jitted-{pid}-0.so")
    offsets = {int(a): int(b) for a, b in
               (line.split() for line in made.stdout.splitlines())}
    n = redirect("out.data", offsets)
    one = frames("out.data")
    annotated = run("perf", "annotate", "--stdio", "-i", "out.data",
                    "countdown")

    results = [n > 0 and len(many) > 0 and many == one,
               "push" in annotated.stdout or "addr2line" in annotated.stderr
               or "objdump" in annotated.stderr]
    why = [f"{n} mappings: {many[:3]} {one[:3]}", annotated.stderr[:500]]
    for i, (name, good) in enumerate(zip(NAMES, results)):
        print(f"{'ok' if good else 'not ok'} {i + 1} - {name}")
        if not good:
            print(f"# {why[i]}")
    print(f"1..{len(NAMES)}")
sys.exit(not all(results))
