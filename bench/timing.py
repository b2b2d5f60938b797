# SPDX-License-Identifier: MIT
"""Peer and Seam in turn, in one run: CPU seconds, wall seconds, memory.

Machines are noisy, so nothing here passes or fails by time.  Each pair of
commands runs several rounds, first one then the other; a table shows medians
and their ratio.
"""
import os
import statistics
import subprocess
import time


class Measured:
    """CPU (user + system) and wall seconds, and peak memory, of a command."""

    def __init__(self, command, **more):
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, **more)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.monotonic() - start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.max_mib = usage.ru_maxrss / 1024
        self.status = process.returncode


def in_turn(rounds, *commands):
    """[[Measured of a round] of each command]: one of each, then again."""
    results = [[] for _ in commands]
    for _ in range(rounds):
        for result, command in zip(results, commands):
            result.append(Measured(command))
    return results


def median(results, what):
    return statistics.median(getattr(r, what) for r in results)


def header(title, *columns):
    print(f"\n{title}")
    print("".join(f"{c:>16}" if i else f"{c:<34}"
                  for i, c in enumerate(columns)))


def row(label, *values):
    print(f"{label:<34}" + "".join(
        f"{v:>16}" if isinstance(v, str) else f"{v:>16.3f}" for v in values))
