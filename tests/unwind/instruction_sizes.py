#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sizes of instructions are objdump's: instruction_sizes.py PRINTER [FILE]

Without FILE of the C and C++ libraries of this machine, which have compilers'
code and assembler, of AVX-512 too.
"""
import glob
import os
import re
import subprocess
import sys

LINE = re.compile(r"^ *([0-9a-f]+):\t(?:([a-z{(].*))?")
HEAD = re.compile(r"^([0-9a-f]+) <.*> \(File Offset: 0x([0-9a-f]+)\):")
# No instruction; or "fwait" and another one, which objdump shows as one.
BAD = re.compile(r"\(bad\)|^f(stcw|stsw|stenv|save|init|clex)\b")
PATTERNS = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
            "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"]


def functions(path):
    """(offset, [address of each instruction], text of each)"""
    run = subprocess.Popen(["objdump", "-d", "-F", "--no-show-raw-insn", path],
                           stdout=subprocess.PIPE, text=True)
    offset, addresses, texts = None, [], []
    for line in run.stdout:
        head = HEAD.match(line)
        if head:
            if len(addresses) > 1:
                yield offset, addresses, texts
            offset, addresses, texts = int(head[2], 16), [], []
            continue
        match = LINE.match(line)
        if match and offset is not None:
            addresses.append(int(match[1], 16))
            texts.append(match[2] or "")
    if len(addresses) > 1:
        yield offset, addresses, texts
    run.wait()


def compare(printer, path):
    """How many instructions were compared, and the lines that differ."""
    listed = list(functions(path))
    # the last instruction's end is not in the listing
    asked = "".join(f"{offset} {addresses[-1] - addresses[0]}\n"
                    for offset, addresses, _ in listed)
    done = subprocess.run([printer, os.path.realpath(path)], input=asked,
                          capture_output=True, text=True, check=True)
    n, wrong = 0, []
    for (offset, addresses, texts), line in zip(listed,
                                                done.stdout.splitlines()):
        sizes = [int(word) for word in line.split()]
        for i, size in enumerate(sizes):
            if BAD.search(texts[i]):
                break
            n += 1
            if addresses[i] + size != addresses[i + 1]:
                wrong.append(f"{path} {addresses[i]:x} {texts[i]}: {size} for "
                             f"{addresses[i + 1] - addresses[i]}")
                break
    return n, wrong


def main():
    printer, paths = sys.argv[1], sys.argv[2:]
    paths = paths or [p for pattern in PATTERNS for p in glob.glob(pattern)]
    print("TAP version 13")
    for i, path in enumerate(paths, 1):
        n, wrong = compare(printer, path)
        ok = n > 1000 and not wrong
        print(f"{'ok' if ok else 'not ok'} {i} - {n} instructions of "
              f"{os.path.basename(path)} have the sizes of objdump")
        for line in wrong[:20]:
            print(f"# {line}")
    print(f"1..{len(paths)}")
    sys.exit(0)


main()
