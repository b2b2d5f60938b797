#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam calls and convert beside llvm-xray, on a large flight data recorder log.

    bench/xray.py [MEGABYTES...]        (default 200)

The log: bench/gen_xray, 4 threads, 40 functions.  llvm-xray's account of it
is run with -k, because without it fails on any log of several threads.
"""
import os
import shutil
import sys
import tempfile

import timing

BUILD = os.path.join(os.path.dirname(__file__), "..", "build")
SEAM = os.path.join(BUILD, "seam")


def compare(title, log, rounds, theirs, ours):
    size = os.path.getsize(log) / 2**20
    timing.header(f"{title}, {size:.0f} MiB", "", "CPU s", "wall s", "MiB/s",
                  "beyond file")
    commands = [ours]
    if shutil.which(theirs[0]):
        commands.insert(0, theirs)
    results = timing.in_turn(rounds, *commands)
    for command, r in zip(commands, results):
        wall = timing.median(r, "wall")
        timing.row(" ".join(os.path.basename(w) for w in command[:2]),
                   timing.median(r, "cpu"), wall, f"{size / wall:.0f}",
                   f"{timing.median(r, 'max_mib') - size:.0f} MiB")
    if len(results) > 1:
        timing.row("llvm-xray / seam",
                   timing.median(results[0], "cpu") /
                   timing.median(results[1], "cpu"),
                   timing.median(results[0], "wall") /
                   timing.median(results[1], "wall"))


def main():
    for megabytes in sys.argv[1:] or ["200"]:
        with tempfile.TemporaryDirectory(prefix="seam-bench-") as folder:
            log = os.path.join(folder, "big.xray")
            timing.Measured([os.path.join(BUILD, "bench", "gen_xray"),
                             megabytes, log])
            compare("calls", log, 3,
                    ["llvm-xray", "account", "-k", log], [SEAM, "calls", log])
            compare("trace JSON", log, 1,
                    ["llvm-xray", "convert", "-f", "trace_event", "-o",
                     "/dev/null", log],
                    [SEAM, "convert", "--to", "trace-json", "-o", "/dev/null",
                     log])


main()
