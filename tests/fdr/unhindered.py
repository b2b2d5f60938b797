#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traced programs do what they do alone: unhindered.py SEAM LIBRARY PROGRAM

PROGRAM is unhindered_program.c, built with -fxray-instrument.  It says "done"
where it came to its end, and each way is first gone without a recorder.
"""
import glob
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import fdr_log                                                 # noqa: E402
from record_lib import FOLDER, SEAM, equal, run, run_tests     # noqa: E402

LIBRARY = shutil.copy(sys.argv[2], FOLDER)
PROGRAM = shutil.copy(sys.argv[3], FOLDER)
BUNDLE = "u.seam"
LOADED = """
void while_loading(void);
__attribute__((constructor)) static void begin(void) { while_loading(); }
"""


def is_done(result, why=""):
    equal((result.returncode, result.stdout), (0, "done\n"),
          f"{why} {result.stderr}")
    return result


def alone(*words):
    """Without us the program gets there."""
    is_done(run(PROGRAM, *words, timeout=20), "alone:")


def recorded(*words, options=()):
    shutil.rmtree(BUNDLE, ignore_errors=True)
    return is_done(run(SEAM, "record", "-o", BUNDLE, "--trace", *options, "--",
                       PROGRAM, *words, timeout=60), options)


def own(*words, options=""):
    """With a bundle of its own."""
    shutil.rmtree(BUNDLE, ignore_errors=True)
    return is_done(run(PROGRAM, *words, timeout=60,
                       env={**os.environ, "LD_PRELOAD": LIBRARY,
                            "SEAM_TRACE": f"out={BUNDLE};{options}"}), options)


def n_calls():
    return sum(len(thread.calls)
               for path in glob.glob(f"{BUNDLE}/xray/*.xray")
               for thread in fdr_log.Log(path).threads.values())


# ---- system calls that a program has restricted ----

def test_no_system_call_of_ours_kills_a_sandboxed_program():
    for end in ("exit", "return"):
        alone("sandbox", end)
        for options in ((), ("--flight-recorder",), ("--trace-min=1us",),
                        ("--flight-recorder", "--trigger=signal:USR1")):
            recorded("sandbox", end, options=options)
        own("sandbox", end)
        own("sandbox", end, options="flight=1")


def test_nor_one_that_has_left_itself_write_and_exit():
    alone("alone")
    recorded("alone")
    recorded("alone", options=("--flight-recorder",
                               "--trigger=signal:USR1"))
    own("alone")


def test_a_question_for_filters_ends_no_recording():
    alone("probe")
    recorded("probe")
    equal(n_calls(), 400)


# ---- the loader ----

def test_a_thread_may_begin_while_another_one_loads_a_library():
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "loaded.so", "-xc", "-"],
                   input=LOADED, text=True, check=True)
    library = os.path.abspath("loaded.so")
    alone("loading", library)
    own("loading", library, options="start=0")
    equal(n_calls(), 200)


sys.exit(run_tests(globals()))
