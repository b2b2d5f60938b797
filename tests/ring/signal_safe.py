#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""signal_safe.py LIBRARY: what the producer's files call, by nm.

They run inside the traced program, in signal handlers.  Besides each other
they may call what POSIX lists as async-signal-safe, and nothing that takes a
lock, allocates, or is a point of cancellation.
"""
import re
import subprocess
import sys

FILES = ["aux_producer", "bell", "claim", "producer"]
ALLOWED = {"memcpy", "memset", "fstat", "fstat64", "syscall",
           "__errno_location", "__stack_chk_fail", "_GLOBAL_OFFSET_TABLE_"}

listing = subprocess.run(["nm", "-A", "-P", sys.argv[1]], check=True,
                         text=True, capture_output=True).stdout
wanted = {name: set() for name in FILES}
defined = set()
for line in listing.splitlines():
    match = re.match(r".*src_ring_(\w+)\.c\.o\]?: (\S+) (\w)", line)
    if not match or match[1] not in wanted:
        continue
    if match[3] == "U":
        wanted[match[1]].add(match[2])
    else:
        defined.add(match[2])

failed = 0
for number, (name, symbols) in enumerate(wanted.items(), 1):
    unsafe = symbols - ALLOWED - defined
    failed += bool(unsafe or not symbols)
    print(f"{'not ' if unsafe or not symbols else ''}ok {number} - "
          f"ring/{name}.c calls only what a signal handler may")
    if unsafe:
        print(f"# {' '.join(sorted(unsafe))}")
print(f"1..{len(wanted)}")
sys.exit(failed > 0)
