#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Maps of XRay logs in every command that takes one: test_xray_maps.py SEAM

The log is made here: function 1 with an argument, function 2 without, which
only some maps have names for.
"""
import os
import struct
import subprocess
import sys
import tempfile

import tap

SEAM = os.path.abspath(sys.argv[1])
COMMANDS = (["calls"], ["calls", "--json"], ["calls", "--stacks"],
            ["report"], ["report", "--json"], ["report", "--tree"],
            ["convert", "--to", "folded"], ["convert", "--to", "trace-json"],
            ["convert", "--to", "xray-yaml"], ["flamegraph", "-o", "-"])
WITHOUT_NAMES = """---
- { id: 1, address: 0x401140, function: 0x401136, kind: function-enter,
    always-instrument: true, version: 2 }
- { id: 1, address: 0x401160, function: 0x401136, kind: function-exit,
    always-instrument: true, version: 2 }
- { id: 2, address: 0x401190, function: 0x40118a, kind: function-enter,
    always-instrument: true, version: 2, function-name: '' }
- { id: 2, address: 0x4011a0, function: 0x40118a, kind: function-exit,
    always-instrument: true, version: 2 }
...
"""


def log():
    body = struct.pack("<BiQ3x", 1, 7, 0)            # NewBuffer: thread 7
    body += struct.pack("<BQI3x", 9, 1700000000, 5)  # WallClockTime
    body += struct.pack("<Bi11x", 0x13, 77)          # Pid
    body += struct.pack("<BHQ5x", 5, 0, 1000)        # NewCPUId
    body += struct.pack("<II", 1 << 4, 10)           # function 1 enters
    body += struct.pack("<BQ7x", 0x0d, 42)           # its argument
    body += struct.pack("<II", 2 << 4, 10)
    body += struct.pack("<II", 2 << 4 | 2, 10)
    body += struct.pack("<II", 1 << 4 | 2, 10)
    return struct.pack("<HHIQ16x", 3, 1, 3, 10**9) + \
        struct.pack("<BQ7x", 0x0f, len(body)) + body


def run(*words, **more):
    return subprocess.run([SEAM, *words], capture_output=True, timeout=30,
                          **more)


def path(name, data):
    name = os.path.join(folder.name, name)
    with open(name, "wb") as out:
        out.write(data)
    return name


folder = tempfile.TemporaryDirectory()
LOG = path("made.xray", log())
with open(SEAM, "rb") as file:
    PROGRAM = file.read()
BROKEN = [path(f"map{i}", data) for i, data in enumerate((
    b"", b"\n", b"---\n...\n", b"[]", b"{}", b"- { id: 1 }", b"- [ 1 ]",
    b"- { id: -1, kind: function-enter }", b"- { id: 1, kind: nonsense }",
    b"- { id: 1, kind: ", b"\0" * 100, bytes(range(256)), b"[" * 5000,
    b"- &a [ *a ]", b"\xff\xfe", PROGRAM[:4], PROGRAM[:64], PROGRAM[:5000],
    PROGRAM, b"\x7fELF" + bytes(200), b"MZ" + bytes(100)))]


def test_an_empty_or_broken_map_is_an_error_with_its_cause():
    for name in [*BROKEN, "/dev/null", folder.name, "/nonexistent"]:
        for words in COMMANDS:
            done = run(*words, "--map", name, LOG)
            said = done.stderr.decode().splitlines()
            assert done.returncode == 1, (words, name, done.returncode, said)
            assert done.stdout == b"", (words, name)
            assert said[0].startswith("seam: cannot read") and \
                name in "".join(said) and len(said) >= 2, (words, said)


def test_a_map_from_a_pipe_that_is_empty_is_an_error():
    for words in COMMANDS:
        done = run(*words, "--map", "-", LOG, input=b"")
        assert done.returncode == 1 and b"it is empty" in done.stderr, \
            (words, done)


def test_a_function_without_a_name_is_its_address():
    name = path("unnamed", WITHOUT_NAMES.encode())
    for words in COMMANDS:
        done = run(*words, "--map", name, LOG)
        assert done.returncode == 0, (words, done)
        assert b"0x401136" in done.stdout and b"0x40118a" in done.stdout, \
            (words, done.stdout)


def test_m_is_the_map_in_every_command():
    name = path("named", WITHOUT_NAMES.replace("version: 2 }\n- { id: 2",
                "version: 2, function-name: seven }\n- { id: 2").encode())
    for words in COMMANDS:
        short, long = (run(*words, flag, name, LOG)
                       for flag in ("-m", "--map"))
        assert short.returncode == 0 and b"seven" in short.stdout, \
            (words, short)
        assert short.stdout == long.stdout, words


def test_an_entry_with_arguments_is_shown_with_them_in_yaml():
    done = run("convert", "--to", "xray-yaml", LOG).stdout.decode()
    rows = [line for line in done.splitlines() if "func-id: 1" in line]
    assert "args: [ 42 ]" in rows[0] and \
        "kind: function-enter-arg," in rows[0], rows
    assert "kind: function-exit," in rows[1], rows
    assert done.count("function-enter,") == 1, done


sys.exit(tap.run(tap.promises(globals())))
