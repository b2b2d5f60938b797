#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks by our walk are those that libdw's unwinder finds.

agreement.py COMPARE [--soak].  Builds subject.cc without frame pointers in
several ways, and compares stacks at many of its instructions.  At least 99.9 %
are equal; each difference has one of the causes that compare.c lists.
Prints TAP.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
FEW = [("gcc", "-O2", "pie"), ("gcc", "-O0", "pie"), ("clang", "-O3", "nopie"),
       ("gcc", "-O3", "static"), ("clang", "-O1", "pie")]
ALL = [(compiler, level, kind) for compiler in ("gcc", "clang")
       for level in ("-O0", "-O1", "-O2", "-O3", "-Os")
       for kind in ("pie", "nopie", "static")]
KINDS = {"pie": ["-pie", "-fPIE"], "nopie": ["-no-pie"], "static": ["-static"]}
COMPILERS = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True,
                          check=False, **more)


def build(folder, compiler, level, kind):
    flags = [level, "-g0", "-fomit-frame-pointer"]
    program = f"{folder}/{compiler}{level}-{kind}"
    done = run([COMPILERS[compiler][1], *flags, *KINDS[kind], "-o", program,
                f"{HERE}/subject.cc", "-ldl"])
    if done.returncode:
        raise AssertionError(done.stderr[-500:])
    return program


def compare(one, way, folder, every):
    """One way to build it: the line of counts, and those of causes."""
    program = build(folder, *way)
    library = [] if way[2] == "static" else [f"{folder}/library.so"]
    # the resolver of ld.so runs in the first one only
    environment = os.environ | ({} if way == FEW[0] else {"LD_BIND_NOW": "1"})
    done = run([one, str(every), program, *library], env=environment,
               timeout=600)
    counts = re.search(r"^(\d+) stacks, (\d+) frames, (\d+) complete, "
                       r"(\d+) without", done.stdout, re.M)
    if not counts or done.returncode:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-500:])
    causes = re.findall(r"^(\d+) (libdw .*|ours .*)$", done.stdout, re.M)
    return [int(n) for n in counts.groups()], causes


def attempt(one, way, folder, every):
    try:
        return compare(one, way, folder, every), None
    except (AssertionError, subprocess.TimeoutExpired) as why:
        return None, str(why)


def main():
    is_soak = "--soak" in sys.argv
    ways, every = (ALL, 20) if is_soak else (FEW, 100)
    failed, stacks, listed = 0, 0, {}
    print(f"1..{len(ways) + 1}")
    with tempfile.TemporaryDirectory(prefix="seam-agree-") as folder, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = run(["gcc", "-O2", "-g0", "-fomit-frame-pointer", "-shared",
                    "-fPIC", "-o", f"{folder}/library.so",
                    f"{HERE}/library.c"])
        if done.returncode:
            sys.exit(done.stderr)
        results = pool.map(lambda way: attempt(sys.argv[1], way, folder,
                                               every), ways)
        for n, (way, (result, why)) in enumerate(zip(ways, results), 1):
            failed |= result is None
            print(f"{'not ok' if why else 'ok'} {n} - {' '.join(way)}: no "
                  "stack differs without a cause", flush=True)
            if why:
                print("# " + why.replace("\n", "\n# "))
                continue
            counts, causes = result
            stacks += counts[0]
            print(f"# {counts[0]} stacks, {counts[1]} frames, {counts[2]} "
                  "complete")
            for count, cause in causes:
                listed[cause] = listed.get(cause, 0) + int(count)
    differ = sum(listed.values())
    is_equal = stacks > 0 and differ <= stacks * 0.001
    print(f"{'ok' if is_equal else 'not ok'} {len(ways) + 1} - 99.9 % of the "
          "stacks are equal")
    print(f"# {differ} of {stacks} differ: {listed}")
    return failed or not is_equal


sys.exit(main())
