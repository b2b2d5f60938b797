#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record --trace: trace.py SEAM LIBRARY PROGRAM

PROGRAM is trace_program.c, built with -fxray-instrument; each of its processes
prints how many records it made, which is what all counts are compared with.
"""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import fdr_log                                                 # noqa: E402
from fdr_log import ENTRY, ENTRY_ARGS                          # noqa: E402
from record_lib import (FOLDER, IS_ROOT, NOBODY, SEAM, check,  # noqa: E402
                        equal, manifest, run, run_tests)
from tap import Skip                                           # noqa: E402

LIBRARY = shutil.copy(sys.argv[2], FOLDER)
PROGRAM = shutil.copy(sys.argv[3], FOLDER)
BUNDLE = "t.seam"
LOSSES = ("area_full", "without_area", "not_written", "damaged_bytes",
          "refused", "refused_areas")


def record(*words, options=("--trace",), **more):
    shutil.rmtree(BUNDLE, ignore_errors=True)
    return run(SEAM, "record", "-o", BUNDLE, *options, "--", *words, **more)


def made(text):
    """{pid: records} by what the processes print; exec adds up."""
    counts = collections.Counter()
    for pid, n in re.findall(r"^records (\d+) (\d+)$", text, re.M):
        counts[int(pid)] += int(n)
    check(counts, f"nothing was made: {text}")
    return counts


def logs():
    return fdr_log.logs(BUNDLE)


def received():
    """{pid: records} by the logs."""
    counts = collections.Counter()
    for name, (log, _) in logs().items():
        for thread in log.threads.values():
            equal(thread.pid, int(name.split(".")[0]), "a block's pid")
            counts[thread.pid] += len(thread.calls)
    return counts


def check_calls(calls, names):
    """Of one thread: steps, each with its two leaves; times in order."""
    stack, times = [], [call.tsc for call in calls]
    for call in calls:
        name = names[call.function]
        if call.kind in (ENTRY, ENTRY_ARGS):
            equal(bool(stack), name == "leaf(unsigned int)" or
                  name == "leaf", name)
            stack.append(name)
        else:
            equal(stack.pop(), name, "an exit's function")
    equal(stack, [], "left open")
    check(all(a <= b for a, b in zip(times, times[1:])), "times step back")


def check_whole(result, status=0):
    """All that was made is there, in order, named; nothing was lost."""
    equal(result.returncode, status, result.stderr)
    equal(received(), made(result.stdout), result.stderr)
    for log, names in logs().values():
        for thread in log.threads.values():
            check_calls(thread.calls, names)
    calls = manifest(BUNDLE)["calls"]
    equal([calls[loss] for loss in LOSSES], [0] * len(LOSSES), calls)
    equal(calls["records"], sum(received().values()))
    return calls


# ---- what is recorded ----

ENTRIES = """
#include <unistd.h>
__attribute__((noinline)) void leaf(int i) { __asm__ volatile("" :: "r"(i)); }
__attribute__((noinline)) void step(int i) { leaf(i); leaf(i); usleep(1); }
int main(void) { for (int i = 0; i < 500; i++) step(i); return 0; }
"""
ENTRY_COUNTS = {"leaf": 1000, "step": 500, "main": 1}
TIMES = ("min", "p50", "p90", "p99", "max", "sum", "total", "self")


def build_entries(*flags):
    run("gcc", "-O1", *flags, "-o", "entries", "-xc", "-", input=ENTRIES
        ).check_returncode()


def check_entries(bundle):
    """Calls are counted, and nothing says how long they took."""
    shown = json.loads(run(SEAM, "calls", "--json", bundle).stdout)
    equal({f["name"]: f["count"] for f in shown["functions"]}, ENTRY_COUNTS)
    equal({f[f"{key}_ns"] for f in shown["functions"] for key in TIMES},
          {None})
    equal(sum(shown["repairs"].values()), 0, shown["repairs"])
    table = run(SEAM, "calls", bundle).stdout.splitlines()[1:]
    equal([line.split() for line in table],
          [[n, *["-"] * 7, name] for n, name in
           (("1,000", "leaf"), ("500", "step"), ("1", "main"))])
    stacks = run(SEAM, "calls", "--stacks", bundle)
    equal(stacks.stdout, "")
    check("only entries are recorded" in stacks.stderr, stacks.stderr)
    graph = run(SEAM, "calls", "--graph", bundle).stdout
    check("leaf|1000 calls}" in graph and " x, " not in graph, graph)
    trace = json.loads(run(SEAM, "convert", "--to", "trace-json",
                           bundle).stdout)["traceEvents"]
    open_calls = []
    for event in trace:
        if event["ph"] == "B":
            open_calls.append(event["ts"])
        elif event["ph"] == "E":
            equal(open_calls.pop(), event["ts"], "a length")
    rows = run(SEAM, "report", "--event", "xray", "--top", "0", bundle).stdout
    check(re.search(r"xray: 1,501 calls\n", rows) and
          re.search(r" 66.62% +66.62% +1,000 .* leaf ", rows), rows)
    shown = run(SEAM, "annotate", "leaf", "--event=xray", bundle)
    check(re.search(r"^leaf  entries  1,000 calls$", shown.stdout, re.M) or
          "only samples of a perf.data file are at instructions" in
          shown.stderr, shown.stdout + shown.stderr)


def test_functions_with_entries_alone_have_no_times():
    for flags in (["-fpatchable-function-entry=16"], ["-pg", "-mfentry"]):
        build_entries(*flags)
        result = record("./entries")
        equal(result.returncode, 0, result.stderr)
        check("no instrumented function" not in result.stderr, result.stderr)
        check_entries(BUNDLE)
        shutil.rmtree("own.seam", ignore_errors=True)
        result = run("./entries", env={**os.environ, "LD_PRELOAD": LIBRARY,
                                       "SEAM_TRACE": "out=own.seam"})
        equal(result.returncode, 0, result.stderr)
        check_entries("own.seam")


def test_every_call_is_in_the_log_with_its_name():
    result = record(PROGRAM, "calls", "5000")
    calls = check_whole(result)
    equal([calls[key] for key in ("processes", "threads", "functions")],
          [1, 1, 2])
    check(f"{calls['records']} records of calls of 2 functions, 1 thread" in
          result.stderr, result.stderr)
    shown = run(SEAM, "calls", BUNDLE).stdout
    check(re.search(r"5,000 .* step", shown) and
          re.search(r"10,000 .* leaf", shown), shown)


def test_the_first_file_has_the_number_that_it_has_alone():
    opened = run(PROGRAM, "open").stdout.splitlines()[0]
    equal(record(PROGRAM, "open").stdout.splitlines()[0], opened)


def write_manifest(meta):
    with open(f"{BUNDLE}/meta.json", "w", encoding="utf-8") as file:
        json.dump(meta, file)


def test_lost_calls_are_in_each_view():
    """Counted in the manifest; here as of a recorder that was too slow."""
    equal(record(PROGRAM, "calls", "1000").returncode, 0)
    meta = manifest(BUNDLE)
    meta["calls"]["area_full"] = 1234
    write_manifest(meta)
    for view in (("calls",), ("calls", "--stacks"), ("report",),
                 ("convert", "--to", "trace-json"),
                 ("flamegraph", "-o", "lost.svg")):
        shown = run(SEAM, *view, BUNDLE)
        equal(shown.returncode, 3, view)
        check("1234 records of calls lost" in shown.stdout + shown.stderr,
              (view, shown.stderr))


def test_annotate_counts_samples_and_calls():
    """Samples, which are at instructions, unless calls are selected."""
    record(PROGRAM, "calls", "500000")  # some may be lost
    calls = run(SEAM, "calls", BUNDLE).stdout
    (n,) = re.findall(r"^ *([0-9,]+) .*  leaf", calls, re.M)
    shown = run(SEAM, "annotate", "main", "--total", BUNDLE).stdout
    check(re.search(r"^cpu-clock: ", shown, re.M), shown)
    shown = run(SEAM, "annotate", "leaf", "--event=xray", BUNDLE).stdout
    check(re.search(rf"^leaf.*  {n} calls, ", shown, re.M), (n, shown))
    check("calls are at none of its instructions, only samples are" in shown,
          shown)


def test_calls_says_that_a_recording_was_not_ended():
    """What the rings held when its recorder was killed is missing."""
    record(PROGRAM, "calls", "50")
    meta = manifest(BUNDLE)
    equal(meta["complete"], True)
    write_manifest({**meta, "complete": False})
    for words in (("calls",), ("convert", "--to=trace-json", "-o", "t.json")):
        result = run(SEAM, *words, BUNDLE)
        check("the recording was not ended" in result.stderr, result.stderr)
        equal(result.returncode, 3, result.stderr)


def blocks():
    """{tid: blocks} of the only log, by their heads: it may be large."""
    (path,) = glob.glob(f"{BUNDLE}/xray/*.xray")
    counts, at = collections.Counter(), 32
    with open(path, "rb") as log:
        while at < os.path.getsize(path):
            log.seek(at)
            head = log.read(32)
            equal([head[0], head[16]], [0x0f, 0x01], f"block at {at}")
            counts[struct.unpack_from("<i", head, 17)[0]] += 1
            at += 16 + struct.unpack_from("<Q", head, 1)[0]
    equal(at, os.path.getsize(path), "the log's end")
    return counts


def check_turns(result):
    """All that was made is counted, by Seam's reader too."""
    (made_here,) = made(result.stdout).values()
    calls = manifest(BUNDLE)["calls"]
    equal(calls["records"] + calls["area_full"], made_here, result.stderr)
    shown = run(SEAM, "calls", BUNDLE)
    if calls["area_full"]:      # of a recorder that waits for a CPU
        return
    check(f"{made_here // 6:,} " in shown.stdout, shown.stdout)
    check("repaired" not in shown.stdout + shown.stderr, shown.stdout)


def test_threads_that_take_turns_have_few_blocks_at_the_end():
    result = record(PROGRAM, "turns", "20")
    check_turns(result)
    equal(len(blocks()), 2)
    check(max(blocks().values()) <= 16, f"{blocks()}")
    equal(glob.glob(f"{BUNDLE}/xray/*.part"), [])


def test_thousands_of_short_threads():
    result = record(PROGRAM, "short", "2000", "3")
    got, all_made = manifest(BUNDLE)["calls"], sum(made(result.stdout).values())
    lost = all_made - sum(received().values())
    # they have the rings of those that ended, however slow the recorder is
    equal(got["without_area"], 0, f"{got}")
    equal(lost, got["area_full"], f"{got}")
    # a thread that lost all of its records is not in the log
    absent = got["threads"] - len(next(iter(logs().values()))[0].threads)
    assert 0 <= absent <= 2000 * lost // all_made, (absent, lost, got)
    equal(got["damaged_bytes"], 0)
    equal(result.returncode, 3 if lost else 0)


def test_threads_outlive_the_first():
    check_whole(record(PROGRAM, "leaderless", "100"))
    ((log, _),) = logs().values()
    equal(len(log.threads), 21)


def test_a_child_has_a_log_of_its_own():
    check_whole(record(PROGRAM, "fork", "1000"))
    equal(len(logs()), 2)


def test_what_a_child_of_vfork_records_first_is_counted_as_lost():
    """It has its parent's memory, and no area to claim by its own id."""
    result = record(PROGRAM, "vfork", "50000")
    equal(result.returncode, 3, result.stderr)
    check(" 600000 records of calls of 2 functions, 2 threads," in
          result.stderr and "\nseam: 12 records of calls lost" in
          result.stderr, result.stderr)


def test_a_program_that_is_executed_has_a_log_of_its_own():
    result = record(PROGRAM, "exec", "1000")
    check_whole(result)
    (pid,) = made(result.stdout)
    equal(sorted(logs()), [str(pid), f"{pid}.2"])


def test_programs_of_a_shell_one_after_another_and_at_once():
    check_whole(record("sh", "-c", f"{PROGRAM} calls 500; {PROGRAM} calls "
                       f"20000 & {PROGRAM} calls 5000; wait"))
    equal(len(logs()), 3)


def test_a_selection_of_no_call_is_told():
    record(PROGRAM, "calls", "5")
    for view in ("--histogram", "--stacks", "--graph", "--json"):
        told = run(SEAM, "calls", view, "--filter=nosuch", BUNDLE)
        check("no calls of a function that matches 'nosuch'\n" in told.stderr,
              told.stderr)
    told = run(SEAM, "calls", "--time=@1,@2", BUNDLE)
    check("no calls begin in this time\n" in told.stderr, told.stderr)
    equal(run(SEAM, "calls", "--filter=step", BUNDLE).stderr, "")


def test_functions_of_several_programs_have_theirs():
    shutil.copy(PROGRAM, "other")
    record("sh", "-c", f"{PROGRAM} calls 5; ./other calls 7")
    table = run(SEAM, "calls", BUNDLE).stdout
    for n, name in (("5", os.path.basename(PROGRAM)), ("7", "other")):
        check(re.search(rf"^ +{n} .*  step.*  in {name}$", table, re.M), table)
    told = json.loads(run(SEAM, "calls", "--json", BUNDLE).stdout)
    equal({f["count"]: f["module"] for f in told["functions"]
           if f["name"].startswith("step")},
          {5: PROGRAM, 7: os.path.abspath("other")})
    record(PROGRAM, "calls", "5")
    check("  in " not in run(SEAM, "calls", BUNDLE).stdout)


def test_options_reach_the_program():
    result = record(PROGRAM, "calls", "1000", options=(
        "--trace=st*,l?af", "--no-trace=step", "--trace-args=1"))
    equal(result.returncode, 0, result.stderr)
    ((log, names),) = logs().values()
    (thread,) = log.threads.values()
    equal({names[call.function].split("(")[0] for call in thread.calls},
          {"leaf"})
    entries = [call.argument for call in thread.calls
               if call.kind == ENTRY_ARGS]
    equal(entries, [n for i in range(1000) for n in (i, i + 1)])
    result = record(PROGRAM, "calls", "1000",
                    options=("--trace", "--trace-depth=1"))
    ((log, names),) = logs().values()
    (thread,) = log.threads.values()
    equal(len(thread.calls), 2000, result.stderr)
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        # a call within which the thread moves to another CPU is kept
        result = record(PROGRAM, "calls", "1000",
                        options=("--trace", "--trace-min=1s"))
    finally:
        os.sched_setaffinity(0, cpus)
    equal(sum(received().values()), 0, result.stderr)
    check("no call took as long as --trace-min" in result.stderr, result.stderr)
    read = run(SEAM, "calls", BUNDLE)
    check("nothing was recorded" in read.stderr and
          "are numbers" not in read.stderr, read.stderr)


def test_a_recording_without_calls_is_named_so():
    result = record(PROGRAM, "calls", "10", options=("--trace=no_such*",))
    check("whose name --trace matches" in result.stderr, result.stderr)
    read = run(SEAM, "calls", BUNDLE)
    equal(read.returncode, 1)
    check("no call was recorded" in read.stderr, read.stderr)
    result = record(PROGRAM, "calls", "10",
                    options=("--flight-recorder=256K", "--trace-min=1s"))
    check("no call took as long as --trace-min" in result.stderr, result.stderr)


# ---- the header ----

def test_the_frequency_is_measured():
    result = record(PROGRAM, "clocks")
    check_whole(result)
    (t0, n0), (t1, n1) = ((int(t), int(n)) for t, n in re.findall(
        r"^clocks (\d+) (\d+)$", result.stdout, re.M))
    hz = (t1 - t0) * 1e9 / (n1 - n0)
    ((log, _),) = logs().values()
    check(abs(log.hz / hz - 1) < 50e-6, f"{log.hz} of {hz:.0f}")
    ties = manifest(BUNDLE)["xray"]["ties"]
    check(len(ties) >= 2 and ties[0][1] < n0 and ties[-1][1] > n1, ties)
    # the program's own reading, by the nearest ties
    a, b = next((a, b) for a, b in zip(ties, ties[1:]) if b[0] > t1)
    ns = a[1] + (t1 - a[0]) * (b[1] - a[1]) / (b[0] - a[0])
    check(abs(ns - n1) < 5000, f"{ns - n1:.0f} ns off")


def test_a_short_recording_measures_too():
    check_whole(record(PROGRAM, "calls", "1"))
    ((log, _),) = logs().values()
    short = log.hz
    check_whole(record(PROGRAM, "clocks"))
    ((log, _),) = logs().values()
    check(abs(short / log.hz - 1) < 50e-6, f"{short} of {log.hz}")


def test_the_flags_are_those_of_the_processor():
    with open("/proc/cpuinfo", encoding="ascii") as info:
        flags = re.search(r"^flags\s*: (.*)$", info.read(), re.M)[1].split()
    check_whole(record(PROGRAM, "calls", "1"))
    ((log, _),) = logs().values()
    # the kernel sets both by the same bit of CPUID
    equal(log.flags, 3 if "nonstop_tsc" in flags else 0)


# ---- what is lost ----

def test_what_is_lost_is_counted_exactly():
    # the recorder stands still; 4 MiB have room for half of this
    result = record(PROGRAM, "starved", "200000")
    counts, wanted = manifest(BUNDLE)["calls"], sum(made(result.stdout)
                                                    .values())
    equal(counts["records"] + counts["area_full"], wanted, f"{counts}")
    equal(sum(received().values()), counts["records"])
    check(counts["area_full"] > 0, "nothing was lost")
    equal(result.returncode, 3)
    check("records of calls lost: a thread was faster" in
          result.stderr, result.stderr)


def record_gap():
    """A thread's records, with a gap that is half a second long."""
    shutil.rmtree(BUNDLE, ignore_errors=True)
    with subprocess.Popen(
            [SEAM, "record", "-o", BUNDLE, "--trace", "--", PROGRAM, "gap",
             "200000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True) as process:
        # what the area held is in the log: there is room
        wait_for_bytes(3 << 20)
        text, errors = process.communicate("\n", timeout=60)
    equal(process.returncode, 3, errors)
    return sum(made(text).values())


def test_no_call_goes_over_what_is_lost():
    wanted = record_gap()
    lost = manifest(BUNDLE)["calls"]["area_full"]
    equal(sum(received().values()) + lost, wanted)
    ((log, _),) = logs().values()
    # the mark has the number, and stands once, before what came after
    equal(log.events, [(fdr_log.TYPED, 0xffff, struct.pack("<Q", lost))])
    (path,) = glob.glob(f"{BUNDLE}/xray/*.xray")
    equal(re.findall(r"records_lost=(\d+)", run(SEAM, "dump", path).stdout),
          [str(lost)])
    shown = json.loads(run(SEAM, "calls", "--json", BUNDLE).stdout)
    repairs = shown["repairs"]
    equal([repairs["gaps"], repairs["lost_records"]], [1, lost])
    # outer() had begun, and ends after it
    check(1 <= repairs["cut_off"] <= 3, repairs)
    equal([repairs[name] for name in ("missing_entry", "missing_exit",
                                      "stray_exit", "unfinished")],
          [1, 0, 0, 0])
    for function in shown["functions"]:
        check(function["max_ns"] < 500_000_000, function)
    (outer,) = (f for f in shown["functions"] if "outer" in f["name"])
    equal(outer["count"], 2)
    text = run(SEAM, "calls", BUNDLE).stdout
    check(f"lost: {lost:,} records of calls" in text, text)


def test_what_is_lost_is_shown_by_other_tools():
    record_gap()
    lost = manifest(BUNDLE)["calls"]["area_full"]
    (path,) = glob.glob(f"{BUNDLE}/xray/*.xray")
    names = f"{path[:-4]}yaml"
    for words in (("report", BUNDLE),
                  ("convert", "--to=trace-json", "-o", "out", path)):
        run(SEAM, *words)
    with open("out", encoding="utf-8") as trace:
        gaps = [event for event in json.load(trace)["traceEvents"]
                if event.get("name") == "records lost"]
    equal([gap["args"] for gap in gaps], [{"records": lost}])
    if not shutil.which("llvm-xray"):
        raise Skip("no llvm-xray")
    text = run("llvm-xray", "account", path, f"-instr_map={names}",
               "--keep-going", "-format=csv").stdout
    check(len(text.splitlines()) >= 3, text)


# ---- how it ends ----

def forever(*options, words=(), program=PROGRAM):
    shutil.rmtree(BUNDLE, ignore_errors=True)
    process = subprocess.Popen(
        [*words, SEAM, "record", "-o", BUNDLE, "--trace", *options, "--",
         program, "forever"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    equal(process.stdout.readline().strip(), "running")
    return process


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def bytes_of_calls():
    return sum(os.path.getsize(path)
               for path in glob.glob(f"{BUNDLE}/xray/*.xray"))


def wait_for_bytes(n):
    wait_for(lambda: bytes_of_calls() >= n)


def test_a_signal_ends_a_recording_whole():
    for number in (signal.SIGTERM, signal.SIGINT):
        process = forever()
        wait_for_bytes(1 << 19)
        process.send_signal(number)
        _, text = process.communicate(timeout=60)
        equal(process.returncode, 128 + number, text)
        ((log, names),) = logs().values()
        equal(len(names), 2, text)
        (thread,) = log.threads.values()
        equal(manifest(BUNDLE)["calls"]["records"], len(thread.calls))


def test_a_background_job_ends_on_sigint():
    process = forever(words=("sh", "-c", '"$@" & wait', "sh"))
    (recorder,) = (int(pid) for pid in run(
        "pgrep", "-P", str(process.pid)).stdout.split())
    (program,) = (int(pid) for pid in run(
        "pgrep", "-P", str(recorder), "-x", os.path.basename(PROGRAM)[:15])
        .stdout.split())
    wait_for_bytes(1 << 19)
    os.kill(recorder, signal.SIGINT)
    # the shell has SIGINT ignored in both: the program goes on
    wait_for(lambda: manifest(BUNDLE)["complete"])
    os.kill(program, signal.SIGKILL)
    process.communicate(timeout=60)
    ((_, names),) = logs().values()
    equal(len(names), 2)


def test_a_killed_recorder_leaves_a_log_and_its_program_alone():
    process = forever()
    program = fdr_log.program_of(process, PROGRAM)
    wait_for_bytes(1 << 19)
    process.kill()
    process.wait()
    os.kill(program, 0)
    shown = run(SEAM, "calls", BUNDLE)
    check(re.search(r"^ +[\d,]+ .*#\d", shown.stdout, re.M) or
          "calls" in shown.stdout, shown.stdout + shown.stderr)
    ((log, _),) = logs().values()
    (thread,) = log.threads.values()
    check(len(thread.calls) >= 1 << 16, "few calls")
    # its area is full by now, and nobody reads it
    time.sleep(0.2)
    os.kill(program, 0)
    os.kill(program, signal.SIGKILL)
    process.communicate()


def test_max_size_holds_for_calls():
    process = forever("--max-size=4M")
    program = fdr_log.program_of(process, PROGRAM)
    wait_for(lambda: manifest(BUNDLE)["complete"])
    # a thread's area of 4 MiB may be drained at once
    check(1 << 20 <= bytes_of_calls() <= 8 << 20, bytes_of_calls())
    os.kill(program, signal.SIGKILL)
    _, text = process.communicate(timeout=60)
    check("--max-size ended the recording" in text, text)


# ---- where it cannot be done ----

def test_an_ordinary_user_records():
    if not IS_ROOT:
        raise Skip("this is one")
    os.makedirs("nobody", exist_ok=True)
    os.chown("nobody", NOBODY, NOBODY)
    global BUNDLE
    BUNDLE, old = "nobody/t.seam", BUNDLE
    try:
        check_whole(record(PROGRAM, "threads", "3", "1000", user=NOBODY,
                           group=NOBODY, extra_groups=()))
    finally:
        BUNDLE = old


def shown_names():
    """As readers show them, sorted; and what they say about others."""
    shown = run(SEAM, "calls", "--json", BUNDLE)
    return sorted(f["name"] for f in json.loads(shown.stdout)["functions"]), \
        shown.stderr


def strip(folder, debug, *options):
    """A copy without symbols in @folder, with its debug file beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, os.path.dirname(debug)))
    debug = os.path.join(folder, debug)
    bare = os.path.join(folder, "bare")
    for words in (["--only-keep-debug", PROGRAM, debug],
                  ["--strip-all", *options, f"--add-gnu-debuglink={debug}",
                   PROGRAM, bare]):
        subprocess.run(["objcopy", *words], check=True)
    return bare


def names_of(bare):
    record(bare, "calls", "100")
    return shown_names()


def test_names_of_a_stripped_program_are_those_of_its_debug_file():
    named = (["leaf", "step"], "")
    equal(names_of(strip("beside", "bare.debug")), named)
    equal(names_of(strip("below", ".debug/bare")), named)
    # without a build id it is the one with that CRC
    bare = strip("crc", "bare.debug", "--remove-section",
                 ".note.gnu.build-id")
    equal(names_of(bare), named)
    with open("crc/bare.debug", "ab") as other:
        other.write(b"x")
    found, text = names_of(bare)
    check([name[:2] for name in found] == ["0x", "0x"], found)
    check("2 functions of '" in text and "the CRC of" in text, text)
    os.unlink("crc/bare.debug")
    check("--map COPY, if a copy has symbols" in names_of(bare)[1], bare)
    told = run(SEAM, "calls", "--map", PROGRAM, BUNDLE).stdout
    check(" step" in told and " leaf" in told, told)


def wait_until_open(process, name):
    """Until the recorder has the file: a busy one has it late."""
    path, folder = os.path.realpath(name), f"/proc/{process.pid}/fd"
    wait_for(lambda: any(os.path.realpath(f"{folder}/{fd}") == path
                         for fd in os.listdir(folder)))


def test_names_are_those_of_files_that_are_gone():
    """Deleted or replaced while it runs; with and without a build id."""
    for options in ([], ["--remove-section", ".note.gnu.build-id"]):
        for other in (None, shutil.which("sleep")):
            subprocess.run(["objcopy", *options, PROGRAM, "gone"], check=True)
            process = forever(program="./gone")
            wait_for_bytes(1 << 16)
            program = fdr_log.program_of(process, "gone")
            wait_until_open(process, "gone")
            os.unlink("gone")
            if other:
                shutil.copy(other, "gone")
            os.kill(program, signal.SIGKILL)
            process.communicate(timeout=60)
            equal(shown_names(), (["leaf", "step"], ""), f"{options} {other}")


def test_kept_files_have_names_after_they_have_changed():
    shutil.copy(PROGRAM, "kept")
    for options in (("--trace",), ("--trace", "--keep-files")):
        record("./kept", "calls", "1000", options=options)
        os.rename("kept", "moved")
        found, text = shown_names()
        os.rename("moved", "kept")
        check("without a name: file not found" in text if len(options) == 1
              else (found, text) == (["leaf", "step"], ""), f"{found} {text}")


def test_so_are_those_of_a_file_system_of_its_own():
    words = ["unshare", "-rm", "sh", "-ec",
             'mount -t tmpfs none "$1"; cp "$2" "$1/app"; "$1/app" calls 1000',
             "sh", FOLDER + "/own", PROGRAM]
    os.makedirs("own", exist_ok=True)
    result = record(*words)
    if result.returncode:
        raise Skip(f"no file system of its own: {result.stderr[:200]}")
    equal(shown_names(), (["leaf", "step"], ""), result.stderr)


def test_a_program_without_sleds_is_told_how_to_be_built():
    result = record("sleep", "0.01")
    equal(result.returncode, 3, result.stderr)
    check("no instrumented function: build it with clang -fxray-instrument"
          in result.stderr, result.stderr)
    check("no calls were recorded" in result.stderr, result.stderr)
    # the command's own status tells more
    equal(record("false").returncode, 1)


def test_entries_without_room_are_told():
    build_entries("-fpatchable-function-entry=2")
    result = record("./entries")
    equal(result.returncode, 3, result.stderr)
    check("it needs -fpatchable-function-entry=5 or more" in result.stderr,
          result.stderr)


def test_a_time_limit_on_functions_without_exits_is_told():
    build_entries("-fpatchable-function-entry=16")
    told = "use 'calls:main'"
    result = record("./entries", options=("--trigger", "main>1s"))
    equal(result.returncode, 0, result.stderr)
    equal(result.stderr.count(told), 1, result.stderr)
    result = record("./entries", options=("--trigger", "calls:main"))
    equal(result.stderr.count(told), 0, result.stderr)


def test_a_static_program_is_told():
    with open("static.c", "w", encoding="ascii") as source:
        source.write("int main(void) { return 0; }\n")
    run("cc", "-static", "-o", "static", "static.c")
    result = record("./static")
    equal(result.returncode, 3, result.stderr)
    check("is linked statically" in result.stderr, result.stderr)


def test_a_missing_library_is_told_before_anything_runs():
    os.makedirs("alone", exist_ok=True)
    seam = shutil.copy(SEAM, "alone")
    result = run(seam, "record", "-o", "alone.seam", "--trace", "--", "touch",
                 "ran")
    equal(result.returncode, 1, result.stderr)
    check("cannot find libseam-fdr.so ('./dev build'" in result.stderr,
          result.stderr)
    check(not os.path.exists("ran") and not os.path.exists("alone.seam"))


def test_so_is_that_programs_cannot_connect():
    """Else the program would make a bundle of its own."""
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "refuse_listen.so", "-xc",
                    "-"], check=True, text=True,
                   input="#include <errno.h>\nint listen(int s, int n)"
                         "{ errno = EACCES; return -1; }\n")
    result = record("touch", "ran", env={
        **os.environ, "LD_PRELOAD": os.path.abspath("refuse_listen.so")})
    equal(result.returncode, 1, result.stderr)
    check("cannot record calls (--trace): cannot listen at" in result.stderr
          and "Permission denied" in result.stderr, result.stderr)
    check(not os.path.exists("ran") and not os.path.exists(BUNDLE))


def test_names_of_nothing_are_told_without_a_recorder():
    def told(options):
        shutil.rmtree("own.seam", ignore_errors=True)
        ran = run(PROGRAM, "calls", "5", env={
            **os.environ, "LD_PRELOAD": LIBRARY,
            "SEAM_TRACE": f"out=own.seam;{options}"})
        equal(ran.returncode, 0, ran.stderr)
        return re.findall(r"^seam-fdr: \S+ \(\d+\): (.*'): no function that "
                          "can be recorded has this name: it may be inlined, ",
                          ran.stderr, re.M)

    equal(told("functions=leaf,step,l*f"), [])
    equal(told("functions=leef,step,nosuch*;trigger=calls:stop,leaf>1s"),
          ["'leef'", "'nosuch*'", "trigger 'stop'"])


def test_misuse_is_told():
    for options in (("--no-trace=x",), ("--trace-min=5us",),
                    ("--trace", "--trace-min=5parsec"),
                    ("--trace", "--trace-min=5"),
                    ("--trace", "--trace-args=7"),
                    ("--trace", "--trace-depth=257"), ("--trace", "-p", "1")):
        result = record("true", options=options)
        equal(result.returncode, 2, f"{options}: {result.stderr}")


@contextlib.contextmanager
def small_disk(size):
    """BUNDLE is on it."""
    if not IS_ROOT:
        raise Skip("mounts a file system")
    os.makedirs("small", exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", "small")
    global BUNDLE
    BUNDLE, old = "small/t.seam", BUNDLE
    try:
        yield
    finally:
        BUNDLE = old
        run("umount", "small")


def test_a_full_disk_costs_what_did_not_fit():
    with small_disk("2m"):
        result = record(PROGRAM, "calls", "300000")
        equal(result.returncode, 3, result.stderr)
        calls = manifest(BUNDLE)["calls"]
        equal(calls["records"] + calls["not_written"] + calls["area_full"],
              sum(made(result.stdout).values()), f"{calls}")
        check(calls["not_written"] > 0 and calls["records"] > 0, f"{calls}")
        equal(sum(received().values()), calls["records"])
        check("No space left" in result.stderr, result.stderr)


def test_a_log_that_cannot_be_joined_stays_as_it_is():
    with small_disk("70m"):     # room for it once, and for the samples
        result = record(PROGRAM, "turns", "20")
        check_turns(result)
        check("its blocks were not joined: No space left" in result.stderr,
              result.stderr)
        check(max(blocks().values()) > 16, f"{blocks()}")
        equal(glob.glob(f"{BUNDLE}/xray/*.part"), [])


def test_the_recorder_sleeps_while_a_program_does():
    # also after rounds that followed at once, in which buffers were made
    shutil.rmtree(BUNDLE, ignore_errors=True)
    run("strace", "-c", "-e", "trace=epoll_wait", "-o", "calls.txt", SEAM,
        "record", "-o", BUNDLE, "--trace", "--", PROGRAM, "clocks")
    with open("calls.txt", encoding="utf-8") as text:
        (n,) = (int(line.split()[3]) for line in text if
                line.endswith("epoll_wait\n"))
    check(n < 1000, f"{n} looks for news in 0.3 s")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
