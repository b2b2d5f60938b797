#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam calls and convert beside llvm-xray, on large flight data recorder logs.

    bench/xray.py [MEGABYTES...]        (default 200)

The logs: bench/gen_xray, 40 functions; 4 threads and 1, a loop and a random
walk (which no CPU predicts).  llvm-xray's account of them is run with -k,
because without it fails on any log of several threads; it needs 20 times
the file in memory, so beyond 500 MB there is only seam, whose figures for
each MiB should be those of the small log.
"""
import os
import shutil
import sys
import tempfile

import timing

BUILD = os.path.join(os.path.dirname(__file__), "..", "build")
SEAM = os.path.join(BUILD, "seam")


PEER_MOST = 500                 # MB of a log that llvm-xray is given


def compare(title, log, rounds, theirs, ours):
    size = os.path.getsize(log) / 2**20
    timing.header(f"{title}, {size:.0f} MiB", "", "CPU s", "wall s", "MiB/s",
                  "CPU ms/MiB", "beyond file")
    commands = [ours]
    if theirs and size <= PEER_MOST and shutil.which(theirs[0]):
        commands.insert(0, theirs)
    results = timing.in_turn(rounds, *commands)
    for command, r in zip(commands, results):
        wall = timing.median(r, "wall")
        cpu = timing.median(r, "cpu")
        timing.row(" ".join(os.path.basename(w) for w in command[:2]),
                   cpu, wall, f"{size / wall:.0f}", cpu * 1000 / size,
                   f"{timing.median(r, 'max_mib') - size:.0f} MiB")
    if len(results) > 1:
        timing.row("llvm-xray / seam",
                   timing.median(results[0], "cpu") /
                   timing.median(results[1], "cpu"),
                   timing.median(results[0], "wall") /
                   timing.median(results[1], "wall"))


def measure(folder, megabytes, threads, life):
    log = os.path.join(folder, "big.xray")
    timing.Measured([os.path.join(BUILD, "bench", "gen_xray"), megabytes, log,
                     threads, life])
    compare(f"calls of a {life}, threads: {threads}", log, 3,
            ["llvm-xray", "account", "-k", log], [SEAM, "calls", log])
    if (threads, life) == ("4", "loop"):
        compare("trace JSON", log, 1,
                ["llvm-xray", "convert", "-f", "trace_event", "-o",
                 "/dev/null", log],
                [SEAM, "convert", "--to", "trace-json", "-o", "/dev/null",
                 log])


def main():
    for megabytes in sys.argv[1:] or ["200"]:
        for threads, life in (("4", "loop"), ("1", "loop"), ("4", "walk"),
                              ("1", "walk")):
            with tempfile.TemporaryDirectory(prefix="seam-bench-") as folder:
                measure(folder, megabytes, threads, life)


main()
