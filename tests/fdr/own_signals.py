#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program's signals are its own when they are triggers too:
own_signals.py SEAM PROGRAM

Each case of PROGRAM runs by itself, and recorded with its signals as triggers:
with the same output, and the same end.  Prints TAP.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

# The triggers of these cases; others are ignored, or find no stack.
FIRED = {
    "fault": "SEGV", "not_canonical": "SEGV", "bus": "BUS", "divide": "FPE",
    "illegal": "ILL", "trap": "TRAP", "abort": "ABRT", "send_segv": "SEGV",
    "raise_usr1": "USR1", "raise_term": "TERM", "handle": "USR1",
    "handle_once": "USR1", "recover": "SEGV FPE", "recover_from_overflow": "SEGV",
    "in_child": "USR1",
}
SIGNALS = ("SEGV", "BUS", "FPE", "ILL", "TRAP", "ABRT", "USR1", "TERM", "CHLD",
           "CONT")

seam, program = (pathlib.Path(path).resolve() for path in sys.argv[1:])
failed = False
with tempfile.TemporaryDirectory() as folder:
    cases = subprocess.run([program], capture_output=True, text=True,
                           check=True).stdout.split()
    print(f"1..{len(cases)}")
    for number, case in enumerate(cases, 1):
        # how it ended is what the shell prints; no core is wanted
        script = ["sh", "-c", f'ulimit -c 0; "$0" {case}; echo "status $?"',
                  program]
        alone = subprocess.run(script, capture_output=True, text=True)
        traced = subprocess.run(
            [seam, "record", "--flight-recorder", "--max-snapshots=100",
             *(f"--trigger=signal:{name}" for name in SIGNALS),
             "-o", f"{folder}/{case}.seam", "--", *script],
            capture_output=True, text=True)
        fired = {hit["trigger"] for meta in
                 pathlib.Path(folder).glob(f"{case}.[0-9]*.seam/meta.json")
                 for hit in json.loads(meta.read_text())["triggers"]}
        # the shell has a handler of SIGCHLD
        wanted = {f"signal:{name}" for name in FIRED.get(case, "").split()}
        ok = alone.stdout == traced.stdout and "status" in alone.stdout and \
            wanted <= fired <= wanted | {"signal:CHLD"}
        failed |= not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {case}: as without a "
              "trigger")
        if not ok:
            for line in (alone.stdout + "---\n" + traced.stdout +
                         traced.stderr + f"{fired}").splitlines():
                print(f"# {line}")
sys.exit(failed)
