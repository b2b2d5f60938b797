#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The snapshot of a trigger has the slow request's calls, samples and waits.

moments.py SEAM SERVER ORDERS LIBRARY...: SERVER is examples/layers/server.c,
whose slow requests are lines of its log, by its own clocks: the oracle; LIBRARY
is what SEAM preloads.  Root makes the test as nobody, too.  With --runs N: N
snapshots, each of a request that is slow for a reason drawn by a seed; with
--rare, of one in 100,000 requests.

Other programs that take the CPU would be a reason too: root's server runs
before them (SCHED_FIFO).  Where that cannot be, the reason is the log's.
"""
import json
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from record_lib import (FOLDER, IS_ROOT, SEAM, as_nobody, check,  # noqa: E402
                        equal, folded, manifest, own_folder_for_nobody, run,
                        run_tests)
from tap import Skip                                        # noqa: E402

SERVER, ORDERS, *_ = (shutil.copy(path, FOLDER) for path in sys.argv[2:6])
FIRST = ("chrt", "-f", "10")
if run(*FIRST, "true").returncode:
    FIRST = ()
SLACK_NS, SLACK = 1_000_000, 0.05
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
# The function of the server in which a request is slow.
PLACES = {"lua": "call_lua", "lock": "take_stock", "faults": "render",
          "preempt": "handle_request"}


def near(got, wanted):
    return abs(got - wanted) <= max(SLACK_NS, SLACK * wanted)


class Slow:
    """A line of the server's log, in ns."""

    def __init__(self, line):
        (self.reason, self.tid, self.begin, self.end, self.cpu,
         self.lock) = re.match(r"slow (\w+) thread (\d+) from (\d+) to (\d+) "
                               r"cpu (\d+) lock (\d+)", line).groups()
        for key in "begin", "end", "cpu", "lock":
            setattr(self, key, int(getattr(self, key)))
        self.preempted = self.end - self.begin - self.cpu - self.lock

    def strongest(self):
        """The reason by the log, which is not the drawn one where others took
        the CPU; None: two are about as strong."""
        parts = {"lock": self.lock, "preempt": self.preempted,
                 self.reason if self.reason in ("lua", "faults") else "cpu":
                 self.cpu}
        second, first = sorted(parts, key=parts.get)[1:]
        return first if parts[first] > 1.5 * parts[second] else None


def stolen_ns():
    """What the host has taken of all CPUs: a thread has none then, and is not
    switched out."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) * 1e9 / os.sysconf("SC_CLK_TCK")


def between(begin, end):
    return "--time=" + ",".join(f"@{ns // 10**9}.{ns % 10**9:09}"
                                for ns in (begin, end))


class Moment:
    """What a snapshot has of one call of handle_request()."""

    def __init__(self, bundle, slow, is_first):
        self.bundle = bundle
        begin, end = self.find(slow, is_first)
        self.inside = [between(begin, end), f"--thread={slow.tid}", bundle]
        self.events = run(SEAM, "report", bundle).stdout
        row = self.calls(between(begin, begin + 1))
        self.ns, others = end - begin, self.calls()
        equal([row["count"], row["total_ns"]], [1, self.ns])
        self.off = row["blocked_ns"] + row["preempted_ns"]
        # a mean call that is another
        self.fast = ((others["total_ns"] - self.ns) /
                     max(1, others["count"] - 1))

    def calls(self, *words):
        text = run(SEAM, "calls", "--json", "--filter", "handle_request",
                   *words, self.bundle).stdout
        return json.loads(text)["functions"][0]

    def find(self, slow, is_first):
        """Begin and end of the slow request, by its call."""
        text = run(SEAM, "calls", "--stacks=20", "--filter", "handle_request",
                   self.bundle).stdout
        for tid, *times, tree in re.findall(
                r"^--event=xray --thread=(\d+) --time=@(\d+)\.(\d+),"
                r"@(\d+)\.(\d+)\n((?:.*\n)*?)(?=[^\n]* at |\Z)", text, re.M):
            begin, end = (int(times[i]) * 10**9 + int(times[i + 1])
                          for i in (0, 2))
            if tid == slow.tid and slow.begin <= end and begin <= slow.end:
                check(PLACES[slow.reason] in tree, tree)
                # the server reads its clocks just before and after it
                around = slow.end - slow.begin - (end - begin)
                check(slow.begin <= begin and end <= slow.end and
                      around <= SLACK_NS + (0 if is_first else slow.preempted),
                      f"{begin}, {end}, {slow.__dict__}")
                self.tree = tree
                return begin, end
        raise AssertionError(f"no such call in {self.bundle}: {text}")

    def waits_of(self, function):
        """Blocked and preempted, ns, of its call in the slow one."""
        row = re.search(f"^ *(.*) {function}$", self.tree, re.M)[1]
        return [float(text.split()[0]) * UNITS[text.split()[1]]
                for text in re.split("  +", row)[2:4] if text != "-"]

    def stacks(self, event, *words):
        """(frames, ns) of the samples or waits in the call.

        Waits that are added up have no place in time.
        """
        if not re.search(f"^{event}: ", self.events, re.M):
            return []
        return [([frame.split(" ")[0] for frame in frames], ns)
                for frames, ns in folded("--weight", "--event", event, *words,
                                         *self.inside, statuses=(0, 3))
                if not frames[-1].startswith("[waits shorter")]


def total(stacks, *functions):
    """Of the stacks with all of the functions, in this order."""
    return sum(ns for frames, ns in stacks if [
        name for name in frames if name in functions] == [*functions])


def named(moment, sees_kernel):
    """The reason, by what the slow call has and a fast one has not."""
    samples = moment.stacks("cpu-clock")
    waits = {event: sum(ns for _, ns in moment.stacks(event))
             for event in ("off-cpu", "preempted")}
    in_lua = total(samples, "handle_request", "call_lua", "discount")
    all_ns = sum(ns for _, ns in samples) or 1
    running = moment.ns - moment.off
    parts = {"lua": running * in_lua / all_ns,
             "lock": waits["off-cpu"], "preempt": waits["preempted"]}
    if sees_kernel:
        parts["faults"] = running * sum(
            ns for frames, ns in samples
            if "render" in frames and "fault" in " ".join(frames)) / all_ns
    reason = max(parts, key=parts.get)
    check(parts[reason] > 10 * moment.fast, f"{parts}")
    return reason


def check_moment(bundle, slow, is_first, stolen):
    """The slow request, in a snapshot, beside the log."""
    sees_kernel = "kernel" not in manifest(bundle)["left_out"]
    moment = Moment(bundle, slow, is_first)
    # waits inside: what is not CPU time
    off = moment.ns - slow.cpu
    check(near(moment.off, off) or off - stolen <= moment.off <= off,
          f"{moment.off}, {stolen} stolen: {slow.__dict__}")
    if slow.reason == "lock":
        check(near(sum(moment.waits_of("take_stock")), slow.lock),
              f"{moment.tree} {slow.__dict__}")
        waits = moment.stacks("off-cpu") + moment.stacks("preempted")
        # which a recorder that had no CPU could not read while it waited
        unread = sum(ns for frames, ns in waits
                     if frames[-1].startswith("[stack"))
        known = total(waits, "handle_request", "take_stock")
        check(near(known + unread, slow.lock), f"{waits} {slow.__dict__}")
    # samples inside: a tick is 0.5 ms
    samples = moment.stacks("cpu-clock")
    ran, spare = sum(ns for _, ns in samples), max(2e6, 0.15 * slow.cpu)
    check((ran <= slow.cpu + spare or not is_first) and
          (ran >= slow.cpu - spare or not sees_kernel),
          f"{ran} {slow.__dict__}")
    if slow.reason == "lua":
        in_lua = total(moment.stacks("cpu-clock", "--layer", "guest,native"),
                       "work", "handle_request", "call_lua", "discount")
        check(in_lua > 0.7 * slow.cpu, f"{in_lua} {slow.__dict__} {samples}")
    if slow.strongest():
        equal(named(moment, sees_kernel), slow.strongest(), f"{slow.__dict__}")


def snapshot(name, reason, seed, requests=800, first=FIRST, **how):
    """A recording of requests of which one is slow, and its check."""
    before = stolen_ns()
    result = run(SEAM, "record", "-F", "2000", "--flight-recorder", "--trigger",
                 "handle_request>15ms", "--max-snapshots", "40", "--after", "2",
                 "--off-cpu", "--layers=guest", "-o", name, "--", *first,
                 SERVER, reason, str(requests), str(requests), str(seed),
                 timeout=300, **how)
    check(result.returncode in (0, 3), result.stderr)
    slow = Slow(result.stdout)
    bundles = [bundle for bundle in
               re.findall(r"snapshot in '([^']*)'", result.stderr)
               if any(abs(trigger["time_ns"] - slow.end) < 3_000_000
                      for trigger in manifest(bundle)["triggers"])]
    check(bundles, f"no snapshot of {slow.__dict__}: {result.stderr}")
    check_moment(bundles[0], slow, bool(first), stolen_ns() - before +
                 2e9 / os.sysconf("SC_CLK_TCK"))
    return slow


def test_a_slow_request_in_lua_and_one_that_waits_for_a_lock():
    for reason in "lua", "lock":
        snapshot(f"{reason}.seam", reason, 1)


def test_the_same_as_nobody():
    if not IS_ROOT:
        raise Skip("the test before was made as such a user")
    folder = own_folder_for_nobody()
    shutil.copy(ORDERS, folder)
    os.chdir(folder)
    try:
        for reason in "lua", "lock":
            snapshot(f"{reason}.seam", reason, 1, first=(),
                     preexec_fn=as_nobody)
    finally:
        os.chdir(FOLDER)


def soak(n, requests):
    def make(seed):
        slow = snapshot("soak.seam", "random", seed, requests)
        equal(slow.strongest(), slow.reason, f"disturbed: {slow.__dict__}")
        print(f"# seed {seed}: {slow.reason}, "
              f"{(slow.end - slow.begin) / 1e6:.1f} ms", flush=True)
        for name in os.listdir("."):
            if name.endswith(".seam"):
                shutil.rmtree(name)
    return {f"test_the_slow_request_of_seed_{seed}": lambda seed=seed:
            make(seed) for seed in range(1, n + 1)}


if __name__ == "__main__":
    if "--runs" in sys.argv:
        sys.exit(run_tests(soak(int(sys.argv[sys.argv.index("--runs") + 1]),
                                100_000 if "--rare" in sys.argv else 800)))
    sys.exit(run_tests(globals()))
