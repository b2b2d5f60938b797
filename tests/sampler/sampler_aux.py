#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No sampler with AUX data: sampler_aux.py SEAM SIMULATED_PMU SAMPLER

"data" has the kernel's clock then: all samples of a sampler would be refused.
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from aux_lib import environment, record  # noqa: E402
from record_lib import (FOLDER, SEAM, check, equal,  # noqa: E402
                        manifest, run, run_tests)

shutil.copy(sys.argv[3], FOLDER)


def test_events_with_aux_data_are_without_samplers():
    for words in ("-e", "intel_pt//u"), ("-e", "cpu-clock,intel_pt//u"):
        result = record("a", *words, "-m", ",16K", "--layers=guest")
        equal(result.returncode, 0, result.stderr)
        check("no Lua stacks with AUX data" in result.stderr, result.stderr)
        equal(manifest("a").get("guest", {}), {})


def test_others_have_one():
    # no area is opened, so there is none to wait for
    result = run(SEAM, "record", "-o", "b", "-e", "cpu-clock",
                 "--layers=guest", "--", "true", env=environment("b"))
    equal(result.returncode, 0, result.stderr)
    check("no Lua stacks with" not in result.stderr, result.stderr)


sys.exit(run_tests(globals()))
