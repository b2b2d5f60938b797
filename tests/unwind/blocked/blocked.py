#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Stacks of waiting threads, read from outside, are those that gdb has.

blocked.py SEAM [--seeds N] [--threads N] [--builds N] [--races N] [--pid PID...]

Builds waits.c with several compilers and options, runs it as an ordinary user,
and records its waits without the right to samples of the kernel.  Then gdb,
which stops the program and knows all registers, walks the same stacks.  Each
frame's program counter and stack pointer must be equal: a recorded stack is the
whole stack, or its innermost frames.  Frames of inlined functions, and those
that gdb makes up for tail calls, have no place on the stack and are left out.

worker.c waits for at most a millisecond each time, at a place that it logs:
each of the stacks that were read, N or more, is that of the wait at its time.
"""
import argparse
import bisect
import collections
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        "--inh-caps=-all", "--bounding-set=-all"] if os.getuid() == 0 else []
FP = "-fno-omit-frame-pointer"
BUILDS = [
    ["gcc", "-O0"], ["gcc", "-O2", FP], ["clang", "-O0"],
    ["clang", "-O2", FP], ["g++", "-xc++", "-O0"],
    ["gcc", "-O2"], ["gcc", "-O3", "-mavx2", FP, "-fstack-clash-protection"],
    ["g++", "-xc++", "-O2", FP], ["clang", "-O3", "-mavx2"],
    ["clang++", "-xc++", "-O2", FP], ["clang++", "-xc++", "-O1"],
    ["gcc", "-Os", FP], ["gcc", "-O1", FP], ["gcc", "-O2", "-static"],
    ["gcc", "-Og", FP, "-fstack-protector-all"],
    ["clang", "-Os", FP, "-fstack-clash-protection"],
    ["g++", "-xc++", "-O3"], ["gcc", "-O2", "-no-pie", FP, "-fno-plt"],
]
GDB = """
import gdb
gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
for thread in gdb.selected_inferior().threads():
    thread.switch()
    print("T", thread.ptid[1])
    frame = gdb.newest_frame()
    try:
        while frame is not None:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                print("F %x %x %s" % (frame.pc(), int(frame.read_register(
                    "rsp")) & (2 ** 64 - 1), frame.name()))
            frame = frame.older()
    except gdb.error as error:
        print("E", error)
"""
USER_MARK = 2 ** 64 - 512


def cfas(raw):
    """The CFA of each frame, from the leaf on (doc/formats/unwound.md)."""
    data = bytes.fromhex(raw)
    if data[:2] != b"Su":
        raise AssertionError(f"no unwinding record: {raw}")
    at, last, out = 4, 0, []

    def uleb():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, shift, byte
    uleb()
    for _ in range(uleb()[0]):
        value, shift, byte = uleb()
        last += value - (1 << shift if byte & 64 else 0)
        out.append(last * 8 & 2 ** 64 - 1)
    return data[3], out


def samples(seam, path):
    """(sample, [pc]) of each stack that was read."""
    dump = subprocess.run([seam, "dump", "--json", path], text=True,
                          stdout=subprocess.PIPE, check=True)
    for line in dump.stdout.splitlines():
        if '"seam:blocked_stack"' in line and '"SAMPLE"' in line:
            sample = json.loads(line)
            chain = sample["callchain"]
            yield sample, (chain[chain.index(USER_MARK) + 1:] if chain else [])


def recorded(seam, path, until_ns=1 << 64):
    """tid -> (end, [cfa], [pc]) of the last stack before gdb stopped it."""
    return {sample["tid"]: (*cfas(sample["raw"]), pcs)
            for sample, pcs in samples(seam, path)
            if sample["time"] < until_ns}


def true_stacks(pid):
    """tid -> [(pc, sp, name)] by gdb."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(GDB)
        script.flush()
        run = subprocess.run(
            ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off",
             "-iex", "set auto-load off", "-p", str(pid), "-x", script.name],
            capture_output=True, text=True, timeout=300, check=False)
    stacks, last = {}, None
    for line in run.stdout.splitlines():
        if line.startswith("T "):
            last = stacks[int(line[2:])] = []
        elif line.startswith("F "):
            _, pc, sp, name = line.split(None, 3)
            last.append((int(pc, 16), int(sp, 16), name))
    return stacks


def record(seam, path, folder, words):
    """Record waits as an ordinary user; what the recorder has started."""
    shutil.rmtree(path, ignore_errors=True)
    return subprocess.Popen(
        USER + [seam, "record", "-q", "--off-cpu", "-o", path, *words],
        env=dict(os.environ, HOME=folder), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)


def compare(stacks, truth, show):
    """Counter of results over the threads that gdb has."""
    count = collections.Counter()
    for tid, frames in truth.items():
        # above the outermost frame gdb may show a pc of 0
        frames = [f for f in frames if f[0] > 4096]
        if tid not in stacks:
            count["not read"] += 1
            continue
        end, sps, pcs = stacks[tid]
        # the first frame's stack pointer is in no record
        places = list(zip(pcs, [None, *sps, *[None] * len(pcs)]))
        right = len(places) <= len(frames) and all(
            pc == true[0] and sp in (None, true[1])
            for (pc, sp), true in zip(places, frames))
        if not right or (end == 0 and len(pcs) != len(frames)):
            count["WRONG"] += 1
            at = next((i for i, (pc, true) in enumerate(zip(pcs, frames))
                       if pc != true[0]), min(len(pcs), len(frames)))
            print(f"# {show}: thread {tid} end {end}: {len(pcs)} frames of "
                  f"{len(frames)}, from {at} on wrong: "
                  f"{[f[2] for f in frames[max(at - 2, 0):at + 2]]}")
        elif end == 0:
            count["equal"] += 1
        else:
            count["cut"] += 1
            count[f"cut by {end} in {frames[len(pcs) - 1][2]}"] += 1
    return count


def one_process(seam, pid, folder):
    path = os.path.join(folder, "waits.seam")
    with record(seam, path, folder, ["--duration", "1.5", "-p", pid]) as done:
        done.wait()
    return compare(recorded(seam, path), true_stacks(pid), pid)


def one_build(seam, build, seed, threads, folder):
    name = os.path.join(folder, "waits")
    path = os.path.join(folder, "waits.seam")
    subprocess.run([*build, "-w", "-pthread", "-o", name,
                    os.path.join(HERE, "waits.c")], check=True)
    # the recorder's child, whose memory it may read (Yama)
    with record(seam, path, folder, ["--", name, str(seed),
                                     str(threads)]) as recorder:
        pid = 0
        try:
            pid = int(recorder.stdout.readline().split()[1])
            time.sleep(0.5)
            # gdb interrupts some system calls: other waits begin
            until_ns = time.monotonic_ns()
            truth = true_stacks(pid)
        finally:
            if pid:
                os.kill(pid, 9)
            else:
                recorder.kill()
    return compare(recorded(seam, path, until_ns), truth,
                   f"{' '.join(build)} {seed}")


def is_stack_of(wait, pcs, functions):
    """Whether @pcs have the calls of a wait of the log, and no others."""
    def name(pc):
        return next((i for i, (begin, end) in enumerate(functions)
                     if begin < pc <= end), None)
    names = [name(pc) for pc in pcs]
    *_, path, depth = wait
    if 2 not in names:
        return False
    calls = [path >> i & 1 for i in range(depth)]
    at = names.index(2) + 1
    return names[at:at + depth] == calls and \
        all(n is None for n in names[at + depth:])


def races(seam, least, folder):
    """How many stacks were read, are incomplete, and wrong."""
    name, log = os.path.join(folder, "worker"), os.path.join(folder, "log")
    path = os.path.join(folder, "races.seam")
    subprocess.run(["gcc", "-O2", "-w", "-pthread", "-falign-functions=256",
                    "-o", name, os.path.join(HERE, "worker.c")], check=True)
    n_read = n_cut = n_wrong = seconds = 0
    while n_read < least:
        seconds += 1
        with record(seam, path, folder, ["--off-cpu=50us", "--", name, log,
                                         "4", "2500", "1000"]) as recorder:
            recorder.communicate()
        with open(log, "rb") as file:
            data = file.read()
        addresses = struct.unpack_from("6Q", data)
        functions = list(zip(addresses[::2], addresses[1::2]))
        waits = collections.defaultdict(list)
        for tid, *wait in struct.iter_unpack("5Q", data[48:]):
            waits[tid].append(wait)
        for sample, pcs in samples(seam, path):
            own = waits.get(sample["tid"])
            if not own:         # main(), in pthread_join()
                continue
            at = bisect.bisect(own, sample["time"], key=lambda w: w[0]) - 1
            is_cut = cfas(sample["raw"])[0] != 0
            n_read += 1
            n_cut += is_cut
            if at < 0 or sample["time"] > own[at][1] or not (
                    is_cut or is_stack_of(own[at], pcs, functions)):
                n_wrong += 1
                print(f"# {sample} {own[max(at, 0)]}")
        if seconds == 100:
            break
    return n_read, n_cut, n_wrong


def cannot():
    """Why stacks of waits are not read or not compared here, or None."""
    def sysctl(name):
        try:
            with open(f"/proc/sys/kernel/{name}", encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return 0
    if sysctl("perf_event_paranoid") < 2:
        return "this user has the stacks of switches (perf_event_paranoid)"
    if sysctl("yama/ptrace_scope") > (2 if USER else 0):
        return "gdb may not attach (kernel.yama.ptrace_scope)"
    return None if shutil.which("gdb") else "there is no gdb"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seam")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=100)
    parser.add_argument("--builds", type=int, default=4)
    parser.add_argument("--races", type=int, default=0)
    parser.add_argument("--pid", action="append", default=[])
    args = parser.parse_args()
    total = collections.Counter()
    n_tests = 0
    why = cannot()
    if why:
        print(f"1..0 # SKIP {why}")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        for pid in args.pid:
            n_tests += 1
            count = one_process(args.seam, pid, folder)
            print(f"{'not ok' if count['WRONG'] else 'ok'} {n_tests} - "
                  f"process {pid}: {dict(count)}")
        for build in BUILDS[:0 if args.pid else args.builds]:
            if not shutil.which(build[0]):
                continue
            n_tests += 1
            count = collections.Counter()
            for seed in range(args.seed, args.seed + args.seeds):
                count += one_build(args.seam, build, seed, args.threads,
                                   folder)
            total += count
            ok = not count["WRONG"] and count["equal"] > count["cut"]
            print(f"{'ok' if ok else 'not ok'} {n_tests} - {' '.join(build)}: "
                  f"{count['equal']} stacks equal to gdb's, {count['cut']} "
                  f"cut, {count['WRONG']} wrong, {count['not read']} not read",
                  flush=True)
            for what, n in sorted(count.items()):
                if what.startswith("cut by"):
                    print(f"# {n} {what}")
        if args.races:
            n_tests += 1
            n_read, n_cut, n_wrong = races(args.seam, args.races, folder)
            ok = n_read >= args.races and not n_wrong
            print(f"{'ok' if ok else 'not ok'} {n_tests} - of {n_read} stacks "
                  f"of waits that begin and end meanwhile, {n_wrong} are "
                  f"wrong, {n_cut} cut")
    print(f"1..{n_tests}")


main()
