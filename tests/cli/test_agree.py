#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seam and perf name the same leaf functions on recordings of real programs.

perf report on the same bundle is the oracle: no warning, as many samples, and
the same symbol for at least 99.5 % of the leaves that perf can name.  Both are
asked without inlined frames, which perf shows as the function around them.  An
address without a symbol counts as agreement when both give the same one.

The rest has to be explained: Seam names PLT entries that perf 6.1 shows as an
address or as "@plt" (1 % of the samples of a python3 with a libpython.so) and
functions of a stripped python3 by its tables (12 %), and does not let _init,
which has no size, run on into the PLT behind it.
"""
import collections
import json
import re
import subprocess
import sys
import tempfile

SEAM = sys.argv[1]

PROGRAMS = {
    "gcc": ["gcc", "-O2", "-x", "c", "-c", "-o", "/dev/null", "-"],
    "python3": ["python3", "-c", "import json\n"
                "for i in range(12000):\n"
                "    json.loads(json.dumps({'a': list(range(200))}))"],
    "sh": ["sh", "-c", "i=0; while [ $i -lt 400 ]; do cat /dev/null;"
           " i=$((i+1)); done"],
}

C_SOURCE = "#include <stdio.h>\n" + "\n".join(
    f"int f{i}(int x) {{ int s = 0; for (int k = 0; k < x; k++)"
    f" s += (k ^ {i}) * (x + s % {i + 3}); return s; }}"
    for i in range(150))


def run(*arguments, **more):
    return subprocess.run(arguments, capture_output=True, text=True,
                          errors="replace", timeout=300, **more)


def oracle(*words):
    """What perf prints, without a warning but that samples were lost."""
    done = run("perf", *words)
    assert done.returncode == 0, done.stderr
    warned = re.sub(r"Warning:\nProcessed .* lost .*!\n\n"
                    r"(Check IO/CPU overload!\n)?", "", done.stderr)
    assert not warned.strip(), f"perf warns: {done.stderr}"
    return done.stdout


def perf_leaves(bundle):
    text = oracle("report", "-i", bundle, "--no-children", "-g", "none",
                  "--stdio", "-F", "sample,sym", "-t", ";",
                  "--percent-limit", "0")
    leaves = collections.Counter()
    for line in text.splitlines():
        match = re.match(r"\s*(\d+)\s*;\[(.)\]\s+(.*?)\s*$", line)
        if match:
            name = re.sub(r"^0x[0-9a-f]+$", "+0x", match[3])
            leaves[name] += int(match[1])
    return leaves


def seam_leaves(bundle):
    done = run(SEAM, "report", "--json", "--no-inline", bundle)
    assert done.returncode in (0, 3), done.stderr
    leaves = collections.Counter()
    for row in json.loads(done.stdout)["rows"]:
        # perf has a row for each address, Seam one for each function.
        name = re.sub(r"^\[.*\+0x[0-9a-f]+\]$", "+0x", row["symbol"])
        leaves[name] += row["self"]
    return leaves


def n_named(differ, perf):
    """Samples that only Seam names, where perf has no name for any."""
    return -sum(n for n, s in differ if n < 0 and
                (not perf[s] or s.endswith("@plt")))


def unexplained(differ, perf):
    """What is left of (perf - seam, symbol) when the known cases are out."""
    init = sum(n for n, s in differ if s == "_init")
    return [(n, symbol) for n, symbol in differ
            if "@plt" not in symbol and symbol != "_init" and
            not (n < 0 and not perf[symbol]) and
            not (symbol == "+0x" and -init <= n <= n_named(differ, perf))]


def check(name, command, folder):
    bundle = f"{folder}/{name}.seam"
    done = run(SEAM, "record", "-g", "-F", "10000", "-o", bundle, "--",
               *command, input=C_SOURCE)
    assert done.returncode == 0 or done.returncode == 3 and \
        "because rings were full" in done.stderr, done.stderr
    oracle("script", "-i", bundle, "-F", "ip")
    perf, seam = perf_leaves(bundle), seam_leaves(bundle)
    total = sum(perf.values())
    assert total >= 1000, f"only {total} samples"
    assert sum(seam.values()) == total, f"{sum(seam.values())} of {total}"
    same = sum(min(n, seam[symbol]) for symbol, n in perf.items())
    differ = sorted(((perf[s] - seam[s], s) for s in set(perf) | set(seam)
                     if perf[s] != seam[s]), key=lambda d: -abs(d[0]))
    addresses = sum(n for n, s in differ if s in ("+0x", "@plt"))
    same += max(min(n_named(differ, perf), addresses), 0)
    assert same >= 0.995 * total, f"{same} of {total}: {differ[:8]}"
    left = unexplained(differ, perf)
    assert not left, f"unexplained: {left}"
    return same, total, differ


def main():
    failed = 0
    print(f"1..{len(PROGRAMS)}")
    with tempfile.TemporaryDirectory(prefix="seam-") as folder:
        for i, (name, command) in enumerate(PROGRAMS.items(), 1):
            try:
                same, total, differ = check(name, command, folder)
                print(f"ok {i} - {name}: perf names the same leaf")
                print(f"# {same} of {total} samples; perf - seam: "
                      f"{differ[:12]}")
            except AssertionError as why:
                failed = 1
                print(f"not ok {i} - {name}")
                print("# " + str(why).replace("\n", "\n# "))
    return failed


sys.exit(main())
