#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What no sampler writes, over the link: guest_forged.py SEAM SAMPLER FORGER"""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (FOLDER, SEAM, check, equal, manifest,  # noqa: E402
                        record, run, run_tests)

shutil.copy(sys.argv[2], FOLDER)  # where 'seam record' finds it
FORGER = os.path.abspath(sys.argv[3])
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def forged(mode, status=3):
    """The rows of a report, after all commands have read the recording."""
    result = record("--layers=guest", "-o", "a.seam", "--", FORGER, mode)
    equal(result.returncode, status, result.stderr)
    check(not CONTROL.search(result.stderr), result.stderr)
    for command in (("report",), ("report", "--stats"), ("dump",),
                    ("report", "--by", "vmstate"),
                    ("convert", "--to", "folded")):
        read = run(SEAM, *command, "a.seam")
        check(read.returncode in (0, 3), f"{command}: {read.stderr}")
        check(not CONTROL.search(read.stdout + read.stderr), read.stdout)
    rows = json.loads(run(SEAM, "report", "--json", "a.seam").stdout)["rows"]
    return result, rows


def test_random_records_are_refused_and_counted():
    result, rows = forged("garbage")
    check("because they are invalid" in result.stderr, result.stderr)
    check(rows, "nothing is left")


def test_names_are_escaped():
    _, rows = forged("names", status=0)
    check(any(row["symbol"].startswith("\x1b[2J<b>") for row in rows), rows)


def test_a_weight_hides_no_sample_of_the_recorder():
    result, rows = forged("weights")
    # the program runs for 0.3 s, which is not 2^32 - 1 ms
    check(rows and all(row["layer"] != "guest" for row in rows), rows)
    guest = manifest("a.seam")["guest"]
    equal([guest["samples"], guest["superseded"]], [0, 0], result.stderr)


def test_kernel_addresses_of_a_program_are_no_kernel_frames():
    _, rows = forged("kernel")
    kernel = [row for row in rows if row["layer"] == "kernel"]
    # one is in the kernel part; that of the user part is not named
    check(sum(row["self"] > 0 for row in kernel) >= 1, rows)
    check(manifest("a.seam")["guest"]["refused"] > 0)


def test_a_message_is_escaped():
    result, _ = forged("note", status=0)
    check("\\x1b[2J<b>\\x0a\\x0dnote" in result.stderr, result.stderr)


sys.exit(run_tests(globals()))
