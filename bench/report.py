#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam report beside perf report, on recordings of millions of samples.

    bench/report.py [SAMPLES...]        (default 1800000)

The recording: bench/deep for 3 s at 5 kHz with callchains, recorded by seam,
its samples repeated until there are enough (bench/multiply).  Both read the
same bundle; perf reads its data file.
"""
import os
import shutil
import sys
import tempfile

import timing

BUILD = os.path.join(os.path.dirname(__file__), "..", "build")
SEAM = os.path.join(BUILD, "seam")


def tool(name):
    return os.path.join(BUILD, "bench", name)


def main():
    sizes = [int(n) for n in sys.argv[1:]] or [1800000]
    with tempfile.TemporaryDirectory(prefix="seam-bench-") as folder:
        small, big = f"{folder}/small.seam", f"{folder}/big.seam"
        timing.Measured([SEAM, "record", "-g", "-F", "5000", "-o", small,
                         tool("deep"), "3"])
        shutil.copytree(small, big)
        for n in sizes:
            timing.Measured([tool("multiply"), f"{small}/data",
                             f"{big}/data", str(n)])
            mib = os.path.getsize(f"{big}/data") / 2**20
            perf, seam = timing.in_turn(
                5 if n <= 2000000 else 1,
                ["perf", "report", "--stdio", "--no-children", "-i", big],
                [SEAM, "report", big])
            timing.header(f"report of {n:,} samples with callchains, "
                          f"{mib:.0f} MiB", "", "CPU s", "wall s",
                          "memory MiB", "beyond file")
            for label, r in (("perf report --no-children", perf),
                             ("seam report", seam)):
                timing.row(label, timing.median(r, "cpu"),
                           timing.median(r, "wall"),
                           f"{timing.median(r, 'max_mib'):.0f}",
                           f"{timing.median(r, 'max_mib') - mib:.0f}")
            timing.row("seam / perf",
                       timing.median(seam, "cpu") / timing.median(perf, "cpu"),
                       timing.median(seam, "wall") /
                       timing.median(perf, "wall"))


main()
