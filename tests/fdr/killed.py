#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traced programs are killed at random times: killed.py SEAM PROGRAM N [SEED]

Each notes in memory that it shares how far it is.  What its threads had
recorded by then is in the bundle, to the last record, and nothing else: read
here from the bytes of the log.  Then the recorder is killed, and the program
goes on to its end.  Prints TAP.
"""
import mmap
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fdr_log                                       # noqa: E402

PER_RECORDING = 500
AFTER = 200000  # calls of each thread after its recorder's end
THREADS = 2
PROGRAM = struct.Struct("<II" + "IIQQ" * THREADS)
E, X, T = range(3)
SHAPES = (
    ((E, "first"), (X, "first")),
    ((E, "second"), (X, "second")),
    ((E, "tail"), (T, "tail"), (E, "second"), (X, "second")),
    ((E, "both"), (E, "first"), (X, "first"), (E, "tail"), (T, "tail"),
     (E, "second"), (X, "second"), (X, "both")),
)

failed = False
number = 0


def check(ok, promise, *details):
    global failed, number
    number += 1
    failed |= not ok
    print(f"{'ok' if ok else 'not ok'} {number} - {promise}")
    for line in details if not ok else ():
        print(f"# {line}")


def shape_of(call):
    return SHAPES[(call * 0x9e3779b97f4a7c15 & (1 << 64) - 1) >> 62]


def records_of(path):
    """{tid: [(action, function id)]} of a log."""
    return {tid: [(call.kind, call.function) for call in thread.calls]
            for tid, thread in fdr_log.Log(path).threads.items()}


def wrong_with(records, names, begun, done):
    """What is wrong with a thread's records; None: nothing."""
    at = 0
    for call in range(1, begun + 1):
        for action, name in shape_of(call):
            if at == len(records):
                return None if call > done else f"ends in call {call},"
            if (records[at][0], names.get(records[at][1])) != (action, name):
                return f"record {at}, of call {call}, is another"
            at += 1
    return None if at == len(records) else "has more than it recorded"


def threads_of(entry):
    return [entry[2 + 4 * i:6 + 4 * i] for i in range(THREADS)]


def wrong_with_program(log, entry):
    threads = threads_of(entry)
    if not log.exists():
        return "no log" if any(done for *_, done in threads) else None
    try:
        found = records_of(log)
        # none where no call was recorded
        names = fdr_log.names(log.with_suffix(".yaml")) if any(found.values()) \
            else {}
    except (AssertionError, ValueError, OSError, struct.error) as error:
        return str(error)
    for tid, _, begun, done in threads:
        wrong = wrong_with(found.pop(tid, []), names, begun, done)
        if wrong:
            return f"thread {tid}: {wrong}; begun {begun}, done {done}"
    return "records of other threads" if any(found.values()) else None


def wrong_with_programs(bundle, entries):
    """[(number or pid, why)].  Within a recording pids may be used again."""
    wrong, n_logs = [], {}

    def next_log(pid):
        n = n_logs.setdefault(pid, 0) + 1
        return bundle / "xray" / (f"{pid}.{n}.xray" if n > 1 else
                                  f"{pid}.xray")

    for i, entry in enumerate(entries):
        log = next_log(entry[0])
        why = wrong_with_program(log, entry)
        if not why:
            n_logs[entry[0]] += log.exists()
        elif any(done for *_, done in threads_of(entry)):
            wrong.append((i, why))
        # else it may have no log, and this be a later one's
    wrong += [(f"of pid {pid}", f"{next_log(pid).name} is of none")
              for pid in n_logs if next_log(pid).exists()]
    return wrong


def run_for_random_times(n, seed, log, command):
    """Programs, one after the other, each killed by its own timer."""
    rng = random.Random(seed)
    with open(log, "wb") as file:
        file.truncate(n * PROGRAM.size)
    for i in range(n):
        ns = 1 + rng.randrange(1000 * 1000)
        ran = subprocess.run([command, log, str(i), str(ns)], check=False)
        if ran.returncode != -signal.SIGKILL:
            return 1
    return 0


def kill_programs(folder, n, seed):
    bundle, log = folder / f"{seed}.seam", folder / f"{seed}.log"
    ran = subprocess.run([seam, "record", "--trace", "-o", bundle, "--",
                          sys.executable, "-B", __file__, "--kill", str(n),
                          str(seed), log, program],
                         capture_output=True, text=True)
    if ran.returncode:
        return [f"status {ran.returncode}: {ran.stderr}"], 0
    entries = list(PROGRAM.iter_unpack(log.read_bytes()))
    wrong = [f"program {i} of seed {seed}: {why}"
             for i, why in wrong_with_programs(bundle, entries)]
    return wrong, sum(done for e in entries for done in (e[5], e[9]))


def test_programs(folder, n, seed):
    wrong, calls = [], 0
    for first in range(0, n, PER_RECORDING):
        more, n_calls = kill_programs(folder, min(PER_RECORDING, n - first),
                                      seed + first)
        wrong += more
        calls += n_calls
    check(not wrong, f"{n} programs killed at random times left all that they "
          "recorded, to the last record", *wrong[:20])
    print(f"# {calls} calls")


def wait_for(condition):
    """What is waited for comes, or the test's time ends."""
    while not condition():
        time.sleep(0.001)


def kill_recorder(folder, rng, index):
    """None, or what is wrong with the program after that."""
    log = folder / f"recorder{index}.log"
    log.write_bytes(bytes(PROGRAM.size))
    status = folder / f"status{index}"
    # the shell stays, and notes how its child ended
    ran = subprocess.Popen(
        [seam, "record", "--trace", "-o", folder / f"recorder{index}.seam",
         "--", "sh", "-c", f"'{program}' '{log}' 0; echo $? "
         f">'{status}.new'; mv '{status}.new' '{status}'"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(log, "r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        def done():
            return min(PROGRAM.unpack(shared[:])[5::4])

        wait_for(done)
        time.sleep(rng.random() * 0.02)
        ran.send_signal(signal.SIGKILL)
        ran.wait()
        # it goes on, through all the room that there is
        goal = done() + AFTER
        wait_for(lambda: done() > goal or status.exists())
        for i in range(THREADS):
            struct.pack_into("<I", shared, 12 + 24 * i, 1)
        wait_for(status.exists)
        after = PROGRAM.unpack(shared[:])
    if status.read_text() != "7\n" or not after[1]:
        return f"status {status.read_text()}"
    return None


def test_recorder(folder, n, seed):
    rng = random.Random(seed)
    wrong = [why for i in range(n) if (why := kill_recorder(folder, rng, i))]
    check(not wrong, f"a program goes on to its end when its recorder is killed"
          f", {n} times", *wrong)


if sys.argv[1] == "--kill":
    sys.exit(run_for_random_times(*map(int, sys.argv[2:4]), *sys.argv[4:]))
seam, program = map(os.path.abspath, sys.argv[1:3])
n_kills = int(sys.argv[3])
first_seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
print("1..2")
with tempfile.TemporaryDirectory() as name:
    # a folder that only its user may enter: names of programs that have ended
    program = shutil.copy(program, name)
    test_programs(pathlib.Path(name), n_kills, first_seed)
    test_recorder(pathlib.Path(name), max(n_kills // 20, 1), first_seed)
sys.exit(failed)
