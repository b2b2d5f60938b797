#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record --flight-recorder and --trigger: snapshots of the newest calls.

flight.py SEAM PROGRAM: PROGRAM is flight_program.c, with -fxray-instrument.
With --measure N: how many of N slow calls were captured, and how late.
"""
import functools
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
SEAM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
import fdr_log                                          # noqa: E402
from fdr_log import ENTRY, ENTRY_ARGS                   # noqa: E402
from record_lib import check, equal, folded, run, run_tests, seam  # noqa: E402

N_STEPS = 100     # of a slow call


def record(name, options, *program):
    return run(SEAM, "record", "-o", name, *options, "--", PROGRAM, *program)


def start(name, options, *program):
    """A recording of PROGRAM, which has said that it runs."""
    process = subprocess.Popen(
        [SEAM, "record", "-o", name, *options, "--", PROGRAM, *program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(process.stdout.readline().strip(), "running", name)
    return process


def end(process, number=signal.SIGTERM):
    process.send_signal(number)
    return process.communicate(timeout=60)


@functools.lru_cache
def only_log(bundle):
    """The log, and {name: id}."""
    ((log, names),) = fdr_log.logs(bundle).values()
    return log, {name: i for i, name in names.items()}


def check_depth(calls):
    """Entries and exits match, but for what was entered before the first."""
    stack = []
    for call in calls:
        if call.kind in (ENTRY, ENTRY_ARGS):
            stack.append(call.function)
        elif stack:
            equal(stack.pop(), call.function, "an exit's function")
    times = [call.tsc for call in calls]
    for i in range(1, len(times)):
        check(times[i - 1] <= times[i], f"call {i} of {len(times)} is before "
              f"the one that precedes it: {times[i - 3:i + 3]}")


def check_numbers(calls):
    """Each entry has the number after the one before it."""
    numbers = [call.argument for call in calls if call.argument is not None]
    equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))),
          "numbers of calls")
    return len(numbers)


def snapshots(text):
    return re.findall(r"snapshot in '([^']*)'", text)


# ---- all layers around one moment ----

def stacks(*words):
    """Of a snapshot: records may be lost while rings are copied."""
    return folded(*words, statuses=(0, 3))


def test_a_snapshot_has_the_slow_call_its_samples_and_its_waits():
    result = record("locked.seam", ("--flight-recorder=1M", "--trigger",
                                    "locked>50ms", "--off-cpu"), "locked")
    (waited,) = map(int, re.findall(r"waited (\d+)", result.stdout))
    (bundle,) = snapshots(result.stderr)
    (trigger,) = fdr_log.manifest(bundle)["triggers"]
    # the calls
    log, ids = only_log(bundle)
    calls = [call for thread in log.threads.values() for call in thread.calls
             if call.function == ids["locked"]]
    equal(len(calls), 2, "entry and exit")
    took = (calls[1].tsc - calls[0].tsc) / log.hz
    check(abs(took - trigger["duration_ns"] / 1e9) < 1e-4, (took, trigger))
    # samples, with whole stacks
    end_ns = trigger["time_ns"]
    begin, end = (f"@{ns // 10**9}.{ns % 10**9:09}" for ns in
                  (end_ns - trigger["duration_ns"], end_ns))
    inside = f"--time={begin},{end}", f"--thread={trigger['tid']}", bundle
    samples = [(frames, n) for frames, n in stacks("--event", "cpu-clock",
               "--layer", "native", *inside) if "compute" in frames]
    check(sum(n for _, n in samples) >= 10, samples)
    for frames, _ in samples:
        at = frames.index("locked")
        check("main" in frames[:at] and "compute" in frames[at:], frames)
    # its wait, with its stack
    waits = {}
    for event in "off-cpu", "preempted":
        if event not in run(SEAM, "report", bundle).stdout:
            continue
        for frames, ns in stacks("--weight", "--event", event, *inside):
            if "take_lock" in frames:
                check("locked" in frames[:frames.index("take_lock")], frames)
                waits[event] = waits.get(event, 0) + ns
    check(waits["off-cpu"] > 0 and
          0.98 * waited <= sum(waits.values()) <= 1.02 * waited + 1e6,
          (waits, waited))


def test_calls_are_divided_as_the_clocks_of_the_program_divide_them():
    """4 calls of dive() are open at once: none counts twice."""
    n, depth, nap_ns = 20, 4, 4_000_000
    result = record("split.seam", ("--trace", "--off-cpu"), "split", str(n))
    equal(result.returncode, 0, result.stderr)
    logged = {name: (int(wall), int(cpu)) for name, wall, cpu in
              re.findall(r"^(\w+) (\d+) (\d+)$", result.stdout, re.M)}
    rows = {row["name"]: row for row in
            json.loads(seam("calls", "--json", "split.seam"))["functions"]}
    outer, dive, crowded = rows["outer"], rows["dive"], rows["crowded"]
    equal([outer["count"], dive["count"], crowded["count"]],
          [n, n * depth, n], rows)
    for row, (wall, cpu) in (outer, logged["outer"]), (crowded,
                                                     logged["crowded"]):
        off = row["blocked_ns"] + row["preempted_ns"]
        check(0.98 * wall <= row["total_ns"] <= wall, (row, wall))
        check(0.98 * (wall - cpu) <= off <= 1.02 * (wall - cpu) + 1e6,
              (row, wall, cpu))
    # what outer() does, dive() does
    for key in "blocked_ns", "preempted_ns", "total_ns":
        check(0 <= outer[key] - dive[key] <= 0.02 * outer["total_ns"],
              (key, outer, dive))
    for row, what in (dive, "total_ns"), (crowded, "total_ns"):
        for key in "blocked_ns", "preempted_ns":
            equal(row[f"self_{key}"], row[key], row)
        equal(row["self_ns"], row[what], row)
    check(outer["self_blocked_ns"] <= 0.02 * outer["blocked_ns"], outer)
    check(dive["blocked_ns"] >= n * depth * nap_ns, dive)
    # a CPU that others want is not waited for asleep
    check(crowded["preempted_ns"] > 50 * crowded["blocked_ns"], crowded)
    # the slowest call: self times and their parts add up to its total
    (trees,) = re.findall(r"^--event.*?\n(.*)", seam(
        "calls", "--stacks=1", "--filter", "outer", "split.seam"), re.M | re.S)
    equal(len(re.findall(r"\bdive$", trees, re.M)), depth, trees)


# ---- triggers ----

def test_what_separates_triggers_is_escaped_in_them():
    texts = ("f<int, char>>1ms", "calls:a;b", "calls:c\\,d", "calls:e\\")
    options = [word for text in texts for word in ("--trigger", text)]
    result = run(SEAM, "record", "-o", "escaped.seam", "--flight-recorder",
                 *options, "--", "env")
    check("trigger=f<int\\, char>>1ms,calls:a\\;b,calls:c\\,d,calls:e\\\\;\n" in
          result.stdout, result.stdout + result.stderr)


# On a busy machine a call that is not slow may take 30 ms, and be a trigger.
LIMIT_MS, SLOW_US = (200, 300000) if "--measure" in sys.argv else (30, 50000)
SLOW = ("--flight-recorder=1M", "--trigger", f"handle>{LIMIT_MS}ms",
        "--trace-args=1")


class Slow:
    """A call of handle() as a snapshot has it."""

    def __init__(self, bundle, number):
        log, ids = only_log(bundle)
        handle, step = ids["handle"], ids.get("step")
        (thread,) = log.threads.values()
        calls = self.calls = thread.calls
        self.log, self.begin, self.end, depth = log, None, None, 0
        self.n_steps = sum(call.function == step and call.argument == number
                           for call in calls)
        for i, call in enumerate(calls):
            if self.begin is None:
                if call.function != handle or call.argument != number:
                    continue
                self.begin = i
            depth += 1 if call.kind in (ENTRY, ENTRY_ARGS) else -1
            if depth == 0:
                self.end = i
                break

    def is_whole(self):
        """From its entry over all of its steps to its return."""
        return self.end is not None and self.n_steps == N_STEPS

    def seconds(self, start, end):
        return (self.calls[end].tsc - self.calls[start].tsc) / self.log.hz


def check_slow(bundles, number, trigger_text=SLOW[2]):
    """The snapshot that has the slow call, whole; by which of its triggers."""
    for bundle in bundles:
        slow = Slow(bundle, number)
        for trigger in fdr_log.manifest(bundle)["triggers"]:
            late = slow.is_whole() and (
                trigger["tsc"] - slow.calls[slow.end].tsc) / slow.log.hz
            if late is False or abs(late) > 0.001:
                continue
            check_depth(slow.calls[slow.begin:slow.end + 1])
            took = slow.seconds(slow.begin, slow.end)
            check(abs(took - trigger["duration_ns"] / 1e9) < 1e-4,
                  f"{took} s, and by the trigger {trigger['duration_ns']} ns")
            equal(trigger["trigger"], trigger_text)
            check(slow.begin > 1000, f"{slow.begin} calls before it")
            return slow, late
    raise AssertionError(f"none of {bundles} has call {number} whole")


def slow_calls(name, n, limit_ms, slow_us, *how):
    """The slow calls as (number, time), the snapshots.

    A busy machine has more of both that are slow.
    """
    how, gap_us, *options = how
    result = record(name, ("--flight-recorder=1M", "--trigger",
                           f"handle>{limit_ms}ms", "--trace-args=1",
                           "--max-snapshots", str(4 * n), *options),
                    how, str(n), "100000", str(slow_us), str(gap_us))
    said = re.findall(r"slow (\d+) tid \d+ at (\d+)", result.stdout)
    equal(len(said), n, result.stderr)
    bundles = snapshots(result.stderr)
    return ([(int(number), int(time_ns)) for number, time_ns in said],
            bundles, result)


def is_disturbed(said, bundles):
    """Whether the machine let another call wait until it was a trigger too."""
    times = [time_ns for _, time_ns in said]
    return any(min(abs(trigger["time_ns"] - time_ns) for time_ns in times) >
               1_000_000 for bundle in bundles
               for trigger in fdr_log.manifest(bundle)["triggers"])


def captured_by(name, n, *how, limit_ms=LIMIT_MS, slow_us=SLOW_US):
    """All N slow calls are captured: each, and how late its trigger was.

    Where other calls are triggers too, what is next may be left out, or the
    time after it is over sooner: then again.
    """
    for attempt in range(5):
        said, bundles, result = slow_calls(f"{name}{attempt}.seam", n,
                                           limit_ms, slow_us, *how)
        try:
            check(len(bundles) >= n, result.stderr)
            return [check_slow(bundles, number, f"handle>{limit_ms}ms")
                    for number, _ in said], result
        except AssertionError:
            if attempt == 4 or not is_disturbed(said, bundles):
                raise
    return None


def captured(name, n):
    """How late the triggers of N slow calls were."""
    slow, result = captured_by(name, n, "slow", 150000)
    return [abs(late) for _, late in slow], result


def test_a_call_that_is_slow_once_in_100000_is_captured_with_its_subtree():
    """20 of 20."""
    _, result = captured("slow", 20)
    check(re.search(r"snapshot in 'slow\d.1.seam' \(trigger 'handle>30ms': "
                    r"[\d.]+ ms in thread \d+, [\d.]+ s after the start\)",
                    result.stderr), result.stderr)


def test_what_follows_a_trigger_is_recorded_for_so_long():
    # so slow as a machine makes no other call
    ((slow, _),), result = captured_by("after", 1, "busy", 500000, "--after",
                                       "300", limit_ms=500, slow_us=750000)
    # all that the thread came to in 0.2 s, however long it waited for a CPU
    last = int(re.search(r"busy (\d+)", result.stdout)[1])
    check(any(call.argument == last for call in slow.calls[slow.end:]),
          f"call {last} is not in {slow.calls[slow.end:][-3:]}")


def test_readers_name_the_trigger():
    result = record("named.seam", SLOW, "slow", "1", "1000", "50000", "1000")
    bundle = snapshots(result.stderr)[-1]
    for words in (("calls", bundle), ("report", "-i", bundle)):
        said = run(SEAM, *words)
        check("trigger 'handle>30ms': " in said.stderr + said.stdout.replace(
            "--trigger", ""), said)
    check("step" in run(SEAM, "calls", "--stacks=1", bundle).stdout)


def test_a_call_of_a_function_is_a_trigger():
    result = record("calls.seam", ("--trigger", "calls:rare"), "rare", "1",
                    "50000")
    (bundle,) = snapshots(result.stderr)
    log, ids = only_log(bundle)
    (trigger,) = fdr_log.manifest(bundle)["triggers"]
    equal(trigger["function"], ids["rare"])
    calls = log.threads[trigger["tid"]].calls
    check_depth(calls)
    check(any(call.function == ids["rare"] for call in calls), "the call")


def test_no_more_snapshots_than_allowed_are_made():
    result = record("most.seam", ("--trigger", "calls:rare",
                                  "--max-snapshots", "2"),
                    # for longer than two snapshots take
                    "rare", "20", "1000000")
    equal(len(snapshots(result.stderr)), 2, result.stderr)
    check("after the last of 2 snapshots" in result.stderr, result.stderr)
    check(not os.path.exists("most.3.seam"), "a third one")
    log, ids = only_log("most.seam")
    (thread,) = log.threads.values()
    check(any(call.function == ids["rare"] for call in thread.calls),
          "the program was not resumed")


def test_no_snapshot_has_calls_of_before_and_after_what_was_left_out():
    result = record("gaps.seam", ("--flight-recorder=256K", "--trigger",
                                  "calls:rare", "--max-snapshots", "30",
                                  "--trace-args=1"),
                    "rare", "30", "100000")
    bundles = snapshots(result.stderr)
    # where the program waited for the last copy until it ended
    if "none came after the last snapshot" in result.stderr:
        # its log, where there is one, has marks of what was left out
        equal(sum(fdr_log.entries("gaps.seam").values()), 0)
    else:
        bundles.append("gaps.seam")
    for bundle in bundles:
        log, ids = only_log(bundle)
        (thread,) = log.threads.values()
        check_depth(thread.calls)
        check_numbers([call for call in thread.calls
                       if call.function == ids["handle"]])


def test_a_trigger_without_a_function_is_named():
    result = record("none.seam", ("--trigger", "no_such_function>1ms",
                                  "--trigger", "calls:rare"), "rare", "1", "9")
    check("trigger 'no_such_function>1ms': no function" in result.stderr,
          result.stderr)
    check("trigger 'calls:rare'" not in result.stderr.replace(
        "(trigger 'calls:rare'", ""), result.stderr)


def test_options_that_mean_nothing_are_refused():
    for options, cause in (
            (("--trigger", "f>10"), "no trigger"),
            (("--trigger", "f"), "no trigger"),
            (("--trigger", "signal:SEGV"), "kill -USR2"),
            (("--after", "5"), "--after needs --trigger"),
            (("--max-snapshots", "5"), "--max-snapshots needs --trigger"),
            (("--flight-recorder=2G",), "a size such as"),
            (("--flight-recorder", "--after", "99999999", "--trigger",
              "calls:f"), "60000")):
        result = record("refused.seam", options, "load", "1", "0")
        equal(result.returncode, 2, result.stderr)
        check(cause in result.stderr, result.stderr)
    result = run(SEAM, "record", "--flight-recorder", "-p", "1")
    equal(result.returncode, 2, result.stderr)
    check("needs a COMMAND" in result.stderr, result.stderr)
    check(not os.path.exists("refused.seam"))


# ---- requests ----

def test_four_threads_at_full_speed_are_copied_whole():
    """Each thread's calls are numbered: none is torn, missing or twice."""
    process = start("load.seam", ("--flight-recorder=256K", "--trace-args=1"),
                    "load", "4", "60")
    bundles = []
    for _ in range(10):
        made = run(SEAM, "snapshot", "load.seam")
        equal(made.returncode, 0, made.stderr)
        bundles.append(made.stdout.strip())
    _, said = end(process)
    equal(said.count("snapshot in"), 10, said)
    newest = {}
    for bundle in [*bundles, "load.seam"]:
        log, _ = only_log(bundle)
        busy = [thread for thread in log.threads.values()
                if len(thread.calls) > 1000]
        equal(len(busy), 4, bundle)
        for thread in busy:
            check_depth(thread.calls)
            check_numbers(thread.calls)
            # a thread that did not run meanwhile has the same calls
            check(thread.calls[-1].tsc >= newest.get(thread.tid, 0),
                  "each snapshot is newer")
            newest[thread.tid] = thread.calls[-1].tsc
        for tid, n in log.n_blocks.items():
            check(n <= 16, f"{n} blocks of thread {tid}")


def test_a_program_and_a_signal_request_a_snapshot():
    process = start("asked.seam", ("--flight-recorder",), "end", "wait")
    by_pid = run(SEAM, "snapshot", str(fdr_log.program_of(process, PROGRAM)))
    equal(by_pid.stdout.strip(), os.path.abspath("asked.1.seam"),
          by_pid.stderr)
    process.send_signal(signal.SIGUSR2)
    for _ in range(600):
        if os.path.exists("asked.2.seam"):
            break
        time.sleep(0.05)
    end(process)
    for bundle in ("asked.1.seam", "asked.2.seam", "asked.seam"):
        check_last_words(bundle)
        check("triggers" not in fdr_log.manifest(bundle))


def test_snapshots_come_at_intervals():
    result = record("every.seam", ("--flight-recorder=256K",
                                   "--snapshot-every", "0.1"),
                    "load", "1", "1")
    bundles = snapshots(result.stderr)
    # those that were made before the program's first call have none
    begun = [bundle for bundle in bundles
             if glob.glob(f"{bundle}/xray/*.xray")]
    check(len(begun) > 2 and begun == bundles[-len(begun):], result.stderr)
    for bundle in begun[1:]:
        log, _ = only_log(bundle)
        check(max(len(thread.calls) for thread in log.threads.values()) > 1000)


# ---- ends ----

def check_last_words(bundle):
    """The last call of both threads, and what was before it."""
    log, ids = only_log(bundle)
    words = [thread for thread in log.threads.values()
             if thread.calls and thread.calls[-1].function ==
             ids["last_words"]]
    equal(len(words), 2, f"{bundle}: threads with their last call")
    check(max(len(thread.calls) for thread in words) > 1000, bundle)
    for thread in words:
        check_depth(thread.calls)


def test_each_end_of_a_program_leaves_its_last_calls():
    for how, status in (("exit", 0), ("_exit", 0), ("abort", 128 + 6),
                        ("segv", 128 + 11)):
        name = f"{how}.seam"
        result = record(name, ("--flight-recorder",), "end", how)
        equal(result.returncode, status, result.stderr)
        check_last_words(name)


def test_a_killed_program_and_recorder_leave_the_last_calls():
    process = start("killed.seam", ("--flight-recorder",), "end", "wait")
    os.kill(fdr_log.program_of(process, PROGRAM), signal.SIGKILL)
    process.communicate(timeout=60)
    equal(process.returncode, 128 + 9)
    check_last_words("killed.seam")
    end(start("ended.seam", ("--flight-recorder",), "end", "wait"))
    check_last_words("ended.seam")


def test_threads_that_ended_have_their_last_calls():
    """Each one, but for those that found no buffer, which are counted."""
    n, records = 2000, 62       # of a thread: 10 times three calls, and one
    result = record("threads.seam", ("--flight-recorder=256K",), "threads",
                    str(n))
    lost = int((re.findall(r"(\d+) records of calls lost: no buffer for "
                           "their thread", result.stderr) or [0])[0])
    equal(lost % records, 0, result.stderr)
    equal(result.returncode, 3 if lost else 0, result.stderr)
    # on a busy machine threads begin faster than the recorder runs
    check(lost < n * records / 2, result.stderr)
    log, ids = only_log("threads.seam")
    # a thread id may come again
    calls = sum(call.function == ids["last_words"] and call.kind == ENTRY
                for thread in log.threads.values() for call in thread.calls)
    equal(calls, n - lost // records, "last calls of threads")


# ---- measured ----

def measure(n):
    """N slow calls: captured with their subtrees, and how late."""
    late = []
    for done in range(0, n, 20):
        late += captured(f"m{done}-", min(20, n - done))[0]
    print(f"{len(late)} of {n} captured with their subtrees; trigger after "
          f"the return: at most {max(late) * 1e9:.0f} ns")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        sys.exit(run_tests({"test_measure": lambda: measure(
            int(sys.argv[-1]))}))
    sys.exit(run_tests({name: test for name, test in globals().items()
                        if len(sys.argv) < 4 or sys.argv[3] in name}))
