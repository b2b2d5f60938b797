#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The packets of a hardware trace: perf's decoder finds those that were made.

A simulated PMU (simulated_pmu.c) writes Intel PT packets of ours; and
those of a real one, where the corpus has such a file.

Source: Intel SDM volume 3, "Trace Packets and Data Types".
"""
import os
import pathlib
import re
import struct
import sys

from aux_lib import (Data, perf_opens, perf_script, recorded)
from record_lib import IS_ROOT, SEAM, check, equal, run, run_tests

REAL = pathlib.Path(os.environ["SEAM_CORPUS"],
                    "perf-ext/quipper/perf.data.intel_pt-4.14")
PACKETS = re.compile(r"^\.  [0-9a-f]{8}:  (.*?) *$", re.M)


def made_packets():
    """(bytes, what perf calls it) of each packet, in 600 groups."""
    for n in range(600):
        time, begin = 0x1000000 + 5000 * n, 0x401000 + 16 * n
        yield b"\x02\x82" * 8, "PSB"
        yield b"\x19" + struct.pack("<Q", time)[:7], f"TSC 0x{time:x}"
        yield b"\x02\x03\x10\x00", "CBR 0x10"
        yield b"\x99\x01", "MODE.Exec 64"
        yield b"\x02\x23", "PSBEND"
        yield b"\x71" + struct.pack("<Q", begin)[:6], \
            f"TIP.PGE 0x{begin:x}"
        yield b"\x1a", "TNT TNT (3)"
        yield b"\x6d" + struct.pack("<Q", begin + 8)[:6], \
            f"TIP 0x{begin + 8:x}"
        yield b"\x01", "TIP.PGD no ip"


def play(name, packets):
    with open("packets", "wb") as out:
        out.write(packets)
    # one chunk: perf prints each by itself, and a packet may be cut by it
    whole = ["-a"] if IS_ROOT else []       # a user has COMMAND's alone
    result = recorded(name, "-e", "intel_pt//", "-C", "0", *whole, "-S", "-m",
                      ",256K", FILE="packets", BYTES=len(packets))
    return PACKETS.findall(perf_opens(name))


def first_error(path):
    """Where and when perf finds no code: clock and packets are right."""
    return re.search(r"trace error type 1 (time [\d.]+) .* (ip 0x\w+) code 5",
                     perf_script(path, "--itrace=e")).groups()


def test_perf_decodes_the_packets_that_were_made():
    packets = list(made_packets())
    found = play("made", b"".join(data for data, _ in packets))
    wanted = [f"{data.hex(' ')} {text}" for data, text in packets]
    equal([" ".join(line.replace(" IF:0 ", " ").split())
           for line in found[:len(wanted)]], wanted)
    # what fills the last word up
    check(len(found) - len(wanted) < 8 and
          all("PAD" in line for line in found[len(wanted):]), found[-8:])
    equal(first_error("made")[1], "ip 0x401000")


def as_perf_data(path, name):
    """A folder with that file as 'data', as perf_script() has it."""
    os.makedirs(name, exist_ok=True)
    with open(path, "rb") as file, open(f"{name}/data", "wb") as out:
        out.write(file.read())


def check_rewritten(path, name):
    equal(run(SEAM, "inject", path, "-o", f"{name}.again").returncode, 0)
    before = perf_script(name, "--itrace=e")
    check(before.count("instruction trace error") > 100, before[:500])
    equal(perf_script(f"{name}.again", "--itrace=e"), before)
    equal(perf_script(f"{name}.again", "--itrace=i100ns"),
          perf_script(name, "--itrace=i100ns"))


def test_a_rewritten_recording_is_decoded_as_before():
    check_rewritten("made", "made")


def of_a_real_one():
    """Only where there is such a file; it is no part of tests/corpus."""

    def test_perf_decodes_the_packets_as_those_of_its_own_file():
        as_perf_data(REAL, "pt")
        wanted = max(Data("pt").areas().values(),
                     key=lambda chunks: len(chunks[0][1]))[0][1]
        theirs = PACKETS.findall(perf_opens("pt"))
        ours = play("played", wanted)
        check(len(ours) > 10000, f"{len(ours)} packets")
        # it has one area, the file several
        check("\n".join(ours) in "\n".join(theirs), "other packets")
        equal(first_error("played"), first_error("pt"))

    def test_a_rewritten_file_is_decoded_as_before():
        as_perf_data(REAL, "before")
        check_rewritten(str(REAL), "before")

    return locals()


sys.exit(run_tests({**globals(), **(of_a_real_one() if REAL.exists()
                                    else {})}))
