#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A made-up service from end to end: services.py SEAM RECORDER PROGRAM

RECORDER is the recorder with the services of this folder, PROGRAM the traced
program that has their other side.
"""
import collections
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (SEAM, check, equal,  # noqa: E402
                        in_order, perf, run, run_tests)

RECORDER, PROGRAM = (os.path.abspath(path) for path in sys.argv[2:4])
EVENT = "seam:counter"

Thread = collections.namedtuple("Thread", "number pid tid wrote lost")
WROTE = re.compile(
    r"thread (\d+) pid (\d+) tid (\d+) wrote (\d+) lost (\d+)")


def count(how, threads, n, *more, ring=65536, status=0):
    """Record the program; its threads, and what the recorder counted."""
    result = run(RECORDER, "c.seam", str(ring), PROGRAM, how, str(threads),
                 str(n), *more)
    equal(result.returncode, status, result.stderr)
    wrote = [Thread(*map(int, m.groups()))
             for m in WROTE.finditer(result.stdout)]
    counts = re.search(r"samples (\d+) lost (\d+) bad (\d+) unowned (\d+)",
                       result.stdout)
    check(counts, result.stdout)
    run("rm", "-rf", "last.seam")
    os.rename("c.seam", "last.seam")
    return wrote, tuple(map(int, counts.groups())), result.stdout


def records(path="last.seam"):
    result = run(SEAM, "dump", "--json", path)
    equal(result.returncode, 0, result.stderr)
    return [json.loads(line) for line in result.stdout.splitlines()]


def values(lines):
    """The numbers of each (pid, tid), in the order of the file."""
    found = collections.defaultdict(list)
    for line in lines:
        if line["type"] == "SAMPLE" and line["event"] == EVENT:
            raw = bytes.fromhex(line["raw"])
            found[line["pid"], line["tid"]].append(
                int.from_bytes(raw[4:12], "little"))
    return found


def lost_samples(lines):
    ids = {line["id"] for line in lines
           if line["type"] == "SAMPLE" and line["event"] == EVENT}
    return sum(line["lost"] for line in lines
               if line["type"] == "LOST_SAMPLES" and
               line["sample_id"]["id"] in ids)


def test_numbers_arrive_in_order_with_their_owner():
    wrote, counts, _ = count("slow", 3, 2000)
    equal(len(wrote), 3)
    lines = records()
    equal(values(lines), {(t.pid, t.tid): list(range(2000)) for t in wrote})
    equal(counts, (6000, 0, 0, 0))
    check(in_order(lines), "a single round says nothing of order")


def test_perf_opens_the_recording():
    count("slow", 2, 1000)
    text = perf("script", "-i", "last.seam/data", "-F", "tid,time,event",
                silent=True)
    numbers = [line.split() for line in text.splitlines() if EVENT in line]
    equal(len(numbers), 2000)
    times = [float(line[1].rstrip(":")) for line in numbers]
    equal(times, sorted(times))
    report = perf("report", "--stdio", "-i", "last.seam/data", silent=True)
    check(f"Samples: 2K of event '{EVENT}'" in report, report)


def test_losses_are_exact():
    for how in "close", "brief", "kill":
        wrote, counts, _ = count(how, 2, 50000, "stopped", ring=4096)
        lines = records()
        found = values(lines)
        for thread in wrote:
            equal(thread.wrote + thread.lost, 50000)
            numbers = found[thread.pid, thread.tid]
            equal(numbers, sorted(set(numbers)), how)
        delivered = sum(map(len, found.values()))
        check(0 < delivered < 1000, f"{delivered}: the recorder has run")
        equal((delivered, lost_samples(lines)), counts[:2], how)
        produced = 100000 + (len(wrote) if how == "kill" else 0)
        equal(delivered + counts[1], produced, how)
        report = run(SEAM, "report", "last.seam")
        equal(report.returncode, 3, report.stdout)


def test_threads_without_a_ring_are_lost_exactly():
    # As many rings as are free at once are 4, and the recorder is slower.
    wrote, counts, output = count("close", 40, 100)
    lines = records()
    delivered = sum(map(len, values(lines).values()))
    equal((delivered, counts[1]), (100 * len(wrote), 0))
    without = int(re.search(r"without a ring (\d+)", output)[1])
    equal(delivered + without, 4000)
    equal(lost_samples(lines), without)


def test_losses_of_a_tight_loop_are_exact():
    # A record is refused in 3 ns.
    _, counts, _ = count("big", 1, 30000000)
    equal(counts[:2], (0, 30000000))
    output = count("none", 1, 30000000)[2]
    check("without a ring 30000000" in output, output)


def test_threads_that_ended_before_the_scan_are_resolved():
    for _ in range(5):
        wrote, counts, _ = count("brief", 4, 100)
        equal({owner: len(n) for owner, n in values(records()).items()},
              {(t.pid, t.tid): 100 for t in wrote})
        equal(counts, (400, 0, 0, 0))


def test_threads_of_a_killed_process_and_of_a_child_are_resolved():
    for how in "kill", "fork":
        wrote, counts, _ = count(how, 3, 100)
        equal({owner: len(n) for owner, n in values(records()).items()},
              {(t.pid, t.tid): 100 for t in wrote}, how)
        # Those that were begun when the process was killed.
        equal(counts, (300, 3 if how == "kill" else 0, 0, 0), how)


def test_no_record_is_of_another_event_process_or_time():
    wrote, counts, _ = count("lie", 1, 2000)
    lines = records()
    equal(values(lines), {(wrote[0].pid, wrote[0].tid): list(range(2000))})
    check(in_order(lines), "a single round says nothing of order")
    equal(counts, (2000, 0, 0, 0))


def test_records_that_no_reader_could_use_are_dropped_and_counted():
    wrote, counts, _ = count("bad", 1, 400)
    equal(values(records()), {(wrote[0].pid, wrote[0].tid):
                              list(range(0, 400, 4))})
    equal(counts, (100, 0, 300, 0))
    perf("script", "-i", "last.seam/data", silent=True)


def test_a_ring_without_an_owner_is_dropped_and_counted():
    _, counts, _ = count("thief", 1, 100)
    equal(values(records()), {})
    equal(counts, (0, 0, 0, 1))


def test_an_aux_buffer_that_overwrites_itself_keeps_the_newest():
    output = count("latest", 1, 5000)[2]
    check(re.search(r"aux 512 from 4488 to 4999", output), output)


def test_an_aux_buffer_is_drained_with_its_ring():
    output = count("drained", 1, 100)[2]
    check("records 100 from 0 to 99 aux 100 from 0 to 99" in output, output)


sys.exit(run_tests(globals()))
