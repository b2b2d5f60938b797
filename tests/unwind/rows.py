#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every row of call frame information is the one that readelf shows.

rows.py PRINT_ROWS [FILE...]; without FILE libraries of the system.  Prints TAP.
"""
import os
import re
import subprocess
import sys

LIB = "/usr/lib/x86_64-linux-gnu"
FILES = [f"{LIB}/libc.so.6", f"{LIB}/libm.so.6", f"{LIB}/libstdc++.so.6",
         f"{LIB}/ld-linux-x86-64.so.2", "/usr/bin/python3", "/usr/bin/perl",
         f"{LIB}/libcrypto.so.3"]
NAMES = ("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15"
         .split())
COLUMN = {name: i for i, name in enumerate(NAMES)} | {"ra": 16}


def wanted(path):
    """The rows as readelf interprets them, in our words."""
    dump = subprocess.Popen(["readelf", "--debug-dump=frames-interp", path],
                            stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)
    columns, rows, cies = [], [], {}
    cie, fde = None, None
    for line in dump.stdout:
        head = re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(.*)", line)
        if head:
            span = re.search(r"cie=(\w+) pc=(\w+)\.\.(\w+)", head[3])
            cie = int(span[1] if span else head[1], 16)
            fde = (int(span[2], 16), int(span[3], 16)) if span else None
            if fde:
                rows.append((*fde, None))
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif columns and re.match(r"[0-9a-f]{16} ", line):
            loc, *cells = re.sub(r" \(\w+\)", "", line).split()
            text = row(dict(zip(columns, cells)))
            if fde is None:
                cies[cie] = text
            else:
                rows.append((*fde, int(loc, 16), text))
        elif line.strip() == "" and fde:
            # an FDE without instructions has the row of its CIE
            if rows[-1][2] is None:
                rows.append((*fde, fde[0], cies[cie]))
            fde = None
    dump.wait()
    return rows


def row(cells):
    cfa = re.fullmatch(r"(\w+?)([+-]\d+)", cells.pop("CFA", "exp"))
    text = f"{COLUMN[cfa[1]]}{cfa[2]}" if cfa else "exp"
    rules = []
    for name, rule in cells.items():
        if name not in COLUMN or rule == "s":
            continue
        if rule == "u" and name != "ra":
            continue            # readelf has no other word for "not saved"
        rules.append((COLUMN[name], rule))
    return text + "".join(f" {c}={r}" for c, r in sorted(rules))


def lines_of(rows):
    """As print_rows has them; rows of no instruction are left out."""
    for i, (start, end, loc, *text) in enumerate(rows):
        after = rows[i + 1] if i + 1 < len(rows) else (None, None, None)
        if loc is None:
            yield f"FDE {start:x} {end:x}"
        elif loc != after[2] and loc < end:
            yield f"{loc:x} {text[0]}"


def got(print_rows, path):
    done = subprocess.run([print_rows, path], capture_output=True, text=True,
                          check=False)
    lines = done.stdout.splitlines()
    if done.returncode != 0:
        raise AssertionError(f"print_rows: {done.returncode} {lines[-1:]}"
                             f" {done.stderr[-300:]}")
    return ([re.sub(r" (?!16)\d+=u", "", line) for line in lines
             if not line.startswith("#")], lines[-1])


def main():
    files = sys.argv[2:] or [f for f in FILES if os.path.exists(f)]
    failed = 0
    print(f"1..{len(files)}")
    for n, path in enumerate(files, 1):
        name = os.path.basename(path)
        try:
            mine, summary = got(sys.argv[1], path)
            theirs = list(lines_of(wanted(path)))
            differ = [(a, b) for a, b in zip(mine, theirs) if a != b]
            if len(mine) != len(theirs) or differ:
                raise AssertionError(f"{len(mine)} rows, readelf "
                                     f"{len(theirs)}: {differ[:3]}")
            print(f"ok {n} - {name}: every row is readelf's\n{summary}")
        except AssertionError as why:
            failed = 1
            print(f"not ok {n} - {name}: every row is readelf's\n# {why}")
    return failed


sys.exit(main())
