#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal at every instruction of the recorder: interrupted.py TRACER PROGRAM

The instructions are those of the objects that trampolines run in, as objdump
finds them in PROGRAM, which is linked at fixed addresses.  Prints TAP.
"""
import os
import re
import subprocess
import sys

WAYS = 7
CODE = re.compile(r"^(seam_fdr_(?!.*_init$|local)\w+|prepare|try|record|commit"
                  r"|begin_chunk|put_mark|note_mark|end_chunk|build|try_once"
                  r"|walk_back|depth_\w+|timed_\w+|(enter|leave)_triggers"
                  r"|record_before|word_before|enter|fire\w*|put_slowly"
                  r"|begin_thread|claim_area|own_state|take_state|claim)$")
# All instructions of these are reached, but those of an aborted sequence,
# which nothing interrupts at its first instruction.
WHOLE = {"plain": ("seam_fdr_entry", "seam_fdr_exit", "seam_fdr_tail",
                   "seam_fdr_put_call", "seam_fdr_put_end"),
         "checked": ("seam_fdr_checked_entry", "seam_fdr_checked_exit",
                     "seam_fdr_checked_tail")}
# Of these some ways are rare: a table that is full, a frame that is gone.
MOST = {"depth": ("depth_enter", "depth_leave", "timed_enter", "timed_leave",
                  "enter_triggers", "leave_triggers", "enter",
                  "seam_fdr_check_entry", "seam_fdr_check_end")}

# Where it is not glibc's, and where records block signals.
RSEQ = (("plain", "own"), ("checked", "none"), ("plain", "failed"))

tracer, program = sys.argv[1:]


def instructions():
    """{function: [address]} of the recorder's code."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program],
                          check=True, capture_output=True, text=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        if match := re.match(r"^[0-9a-f]+ <(\S+)>:$", line):
            name = match[1] if CODE.match(match[1]) else None
        elif name and (match := re.match(r"^ +([0-9a-f]+):\t", line)):
            found.setdefault(name, []).append(match[1])
    return found


print(f"1..{len(WHOLE) + len(MOST) + len(WHOLE) + len(RSEQ)}")
failed = False
n_tests = 0
code = instructions()
every = [a for function in code.values() for a in function]


def interrupt(kind, how, addresses, least, promise):
    """@least: % of the addresses that signals have to come at."""
    global failed, n_tests
    # glibc registers none, so the program does
    env = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"} if how == "own" else {}
    ran = subprocess.run([tracer, str(WAYS), program, kind, how],
                         env=os.environ | env, input="\n".join(addresses),
                         text=True, capture_output=True)
    match = re.match(r"(\d+) of (\d+) ", ran.stdout)
    ok = ran.returncode == 0 and match and \
        int(match[1]) * 100 >= int(match[2]) * least
    failed |= not ok
    n_tests += 1
    print(f"{'ok' if ok else 'not ok'} {n_tests} - {kind}, rseq {how}: "
          f"{promise}")
    print(f"# {ran.stdout.strip()} {ran.stderr.strip()}", flush=True)


NOTHING = "a signal at each instruction loses, tears and disorders no record"
for kind in WHOLE:
    interrupt(kind, "used", every, 20, NOTHING)
for kind, how in RSEQ:
    interrupt(kind, how, every[::3], 20, NOTHING.replace("each", "each third"))
# That the signals come where they are meant to.
for kind, functions in (WHOLE | MOST).items():
    inside = [a for f in functions for a in code.get(f, [])]
    if len(inside) < 60:
        sys.exit(f"few instructions: {len(inside)}")
    least = 90 if kind in WHOLE else 60
    interrupt(kind, "used", inside, least,
              f"signals at {least} % of its instructions")
sys.exit(failed)
