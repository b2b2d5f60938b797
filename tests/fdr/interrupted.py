#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A signal at every instruction of the recorder: interrupted.py TRACER PROGRAM

The instructions are those of the objects that trampolines run in, as objdump
finds them in PROGRAM, which is linked at fixed addresses.  Prints TAP.
"""
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


print("1..5")
failed = False
code = instructions()
addresses = [a for function in code.values() for a in function]
for number, kind in enumerate(WHOLE, 1):
    ran = subprocess.run([tracer, str(WAYS), program, kind],
                         input="\n".join(addresses), text=True,
                         capture_output=True)
    print(f"# {kind}: {ran.stdout.strip()} {ran.stderr.strip()}")
    failed |= ran.returncode != 0
    print(f"{'not ok' if ran.returncode else 'ok'} {number} - {kind}: a signal"
          " at each instruction loses, tears and disorders no record")
# That the signals come where they are meant to.
for number, (kind, functions) in enumerate((WHOLE | MOST).items(), 3):
    inside = [a for f in functions for a in code.get(f, [])]
    ran = subprocess.run([tracer, str(WAYS), program, kind],
                         input="\n".join(inside), text=True,
                         capture_output=True)
    match = re.match(r"(\d+) of (\d+) ", ran.stdout)
    least = 90 if kind in WHOLE else 60
    ok = ran.returncode == 0 and match and \
        int(match[1]) * 100 >= int(match[2]) * least > 3000
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {kind}: signals at "
          f"{least} % of its instructions, and nothing is left of them")
    print(f"# {ran.stdout.strip()} {ran.stderr.strip()}")
sys.exit(failed)
