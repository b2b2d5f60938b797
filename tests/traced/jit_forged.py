#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No process names another's code over the link: jit_forged.py SEAM FORGER"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (SEAM, check, equal, manifest,  # noqa: E402
                        record, run, run_tests)

FORGER = os.path.abspath(sys.argv[2])


def functions(name):
    result = run(SEAM, "report", "--json", name)
    return {row["symbol"]: row["self"]
            for row in json.loads(result.stdout)["rows"]
            if row["layer"] == "jit" and row["self"]}


def expect_nameless(mode):
    result = record("-o", mode + ".seam", "--", FORGER, mode)
    check(result.returncode in (0, 3), result.stderr)
    found = functions(mode + ".seam")
    check(found, "the victim was not recorded")
    check(not any("FORGED" in name for name in found), found)
    return result


def test_a_program_names_its_own_code():
    result = record("-o", "own.seam", "--", FORGER, "own")
    equal(result.returncode, 0, result.stderr)
    equal(set(functions("own.seam")), {"honest"})


def test_no_process_that_was_forked_before_is_named():
    expect_nameless("before")
    check(manifest("before.seam")["jit"]["refused_rings"] > 0)


def test_no_program_is_named_after_an_exec_by_a_child_with_its_rings():
    expect_nameless("exec")


def test_nor_through_a_ring_that_was_its_own_before():
    expect_nameless("keeps")
    folder = "keeps.seam/jit"
    dumps = [os.path.join(folder, name) for name in os.listdir(folder)]
    equal(len(dumps), 1)
    # What it streamed of its own code, before, is there.
    check('"honest"' in run(SEAM, "dump", "--json", dumps[0]).stdout)


def test_impossible_counts_are_reported_as_claims_and_bounded():
    result = record("-o", "count.seam", "--", FORGER, "count")
    equal(result.returncode, 3, result.stderr)
    lost = re.search(r"(\d+) pieces of JIT code lost, as the programs "
                     r"count them; 1 were received", result.stderr)
    check(lost, result.stderr)
    # A second of a piece in 1 ns, on all CPUs; a slow machine has a minute.
    check(int(lost[1]) < (1 + os.cpu_count()) * 60 * 10**9, lost[0])
    counts = manifest("count.seam")["jit"]
    equal(counts["records"], 1)
    equal(counts["lost"], int(lost[1]))
    report = run(SEAM, "report", "count.seam")
    check("as the programs count them" in report.stdout + report.stderr,
          report.stdout + report.stderr)


sys.exit(run_tests(globals()))
