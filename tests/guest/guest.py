#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples of a random program, whose every call is known: guest.py DIR [LUAJIT]

DIR has guest_probe.so.  With SEAM_GUEST_SEEDS=N and SEAM_GUEST_ROUNDS=N more
and longer runs.
"""
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
import tap  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = os.path.abspath(sys.argv[1])
LUAJIT = sys.argv[2] if len(sys.argv) > 2 else "luajit"
SEEDS = range(1, 1 + int(os.environ.get("SEAM_GUEST_SEEDS", "1")))
ROUNDS = os.environ.get("SEAM_GUEST_ROUNDS", "15000")
PERIOD_US = "100"


def run(script, *args, **env):
    result = subprocess.run(
        [LUAJIT, HERE / script, LIBRARIES, *map(str, args)],
        capture_output=True, text=True, env=dict(os.environ, **env),
        check=False)
    if result.returncode:
        raise AssertionError(f"exit {result.returncode}: {result.stderr}")
    return result.stdout


def stress(seed, jit, rounds, **env):
    """What the program prints with and without samples, and the figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples")
        period = env.pop("period", PERIOD_US)
        sampled = run("stress.lua", seed, jit, rounds, period, path, **env)
        alone = run("stress.lua", seed, jit, rounds)
        text = pathlib.Path(path + ".figures").read_text()
    print(f"# seed {seed}, jit {jit}: {text.strip()}")
    figures = {name: float(value) for name, value in
               re.findall(r"(\w+)=([\d.]+)", text)}
    return sampled, alone, figures


def incomplete(figures, stacks):
    return figures["samples"] - figures[stacks]


def most(expected):
    """Of rare events, of which so many are expected: three sigma more."""
    return expected + 3 * math.sqrt(expected)


def check(seed, jit, rounds, least):
    sampled, alone, f = stress(seed, jit, rounds)
    assert sampled == alone, f"{sampled!r} is not {alone!r}"
    assert f["samples"] >= least, f
    # and those before and after Lua runs, more where the machine is busy
    assert incomplete(f, "guest") <= most(0.005 * f["samples"]), f
    assert incomplete(f, "host") <= most(0.001 * f["samples"]), f
    # one of a small number of calls is no share
    assert f["wrong"] <= max(1, f["edges"] / 200000), f
    assert f["unknown"] <= f["edges"] / 1000, f


def test_every_call_is_in_the_program_interpreted():
    for seed in SEEDS:
        check(seed, "off", ROUNDS, int(ROUNDS) / 4)


def test_every_call_is_in_the_program_compiled():
    for seed in SEEDS:
        check(seed, "on", ROUNDS, int(ROUNDS) / 4)


def test_after_each_instruction_too():
    sampled, alone, f = stress(10, "off", 1, period="0")
    assert sampled == alone, f"{sampled!r} is not {alone!r}"
    assert f["samples"] >= 50000, f
    # not while a stack is moved
    assert f["guest"] >= 0.9993 * f["samples"], f
    assert f["host"] >= 0.9999 * f["samples"], f
    assert f["wrong"] == f["unknown"] == 0, f


def test_functions_that_have_returned_are_not_seen_again():
    with tempfile.TemporaryDirectory() as folder:
        text = run("places.lua", os.path.join(folder, "samples"))
    print("# " + text.strip())
    f = {name: int(value) for name, value in
         re.findall(r"(\w+)=(\d+)", text)}
    assert f["wrong"] == 0 and f["samples"] > 5000, text
    assert f["entered"] > 20, text
    # below 1000 where what the VM has stored is taken for what runs
    assert f["in_math"] > 1200, text


def test_corrupted_samples_harm_nothing():
    for jit in "off", "on":
        sampled, alone, f = stress(7, jit, int(ROUNDS) // 2,
                                   SEAM_PROBE_CHAOS="1")
        assert sampled == alone, f"{sampled!r} is not {alone!r}"
        assert f["samples"] > int(ROUNDS) / 8, f
        # it was corrupted, and that was seen
        assert f["guest"] < 0.98 * f["samples"], f


sys.exit(tap.run(tap.promises(globals())))
