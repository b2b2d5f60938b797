#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No agent with AUX data: agent_aux.py SEAM SIMULATED_PMU AGENT

"data" has the kernel's clock then: all samples of an agent would be refused.
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from aux_lib import record  # noqa: E402
from record_lib import FOLDER, check, equal, manifest, run_tests  # noqa: E402

shutil.copy(sys.argv[3], FOLDER)


def test_events_with_aux_data_are_without_agents():
    for words in ("-e", "intel_pt//u"), ("-e", "cpu-clock,intel_pt//u"):
        result = record("a", *words, "-m", ",16K", "--layers=guest")
        equal(result.returncode, 0, result.stderr)
        check("no Lua stacks with AUX data" in result.stderr, result.stderr)
        equal(manifest("a").get("guest", {}), {})


def test_others_have_one():
    result = record("b", "-e", "cpu-clock", "--layers=guest", BYTES=0)
    check("no Lua stacks with" not in result.stderr, result.stderr)


sys.exit(run_tests(globals()))
