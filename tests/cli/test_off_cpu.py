#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What threads wait for, beside a program that logs its own waits."""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import record_lib
import tap
from record_lib import (IS_ROOT, SEAM, as_nobody, check, compile_c, equal,
                        folded, own_folder_for_nobody, record, recorded, run,
                        seam)

N = 20          # waits of each kind
N_STOPS = 8

# Each wait is nine calls deep, at a place of its own, and between two readings
# of both clocks: what is not CPU time of the thread is a wait.  Symbols are
# those of dynamic linking: the program is stripped.
WAITS_C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, visibility("default")))
static const struct timespec while_3ms = { 0, 3000000 };
static int word, ends[2];
static atomic_int is_reading, waiter_tid;
static const volatile char *file_page;	/* the next; NULL: there is no file */
struct log { long long wall, cpu; int n; };
static struct log *logs;

static long long now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

KEEP void wait_sleep(void) { nanosleep(&while_3ms, 0); __asm__(""); }
KEEP void wait_poll(void) { poll(0, 0, 3); __asm__(""); }
KEEP void wait_futex(void)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, &while_3ms, 0, 0);
	__asm__("");
}
KEEP void wait_pipe(void)
{
	char c;
	atomic_store(&is_reading, 1);
	if (read(ends[0], &c, 1) != 1) abort();
	__asm__("");
}
KEEP void wait_stop(void) { raise(SIGSTOP); __asm__(""); }
KEEP void wait_fault(void) { (void)*file_page; __asm__(""); }

typedef void wait_fn(void);
static wait_fn *const kinds[] = {
	wait_sleep, wait_poll, wait_futex, wait_pipe, wait_stop, wait_fault,
};

static long n_blocked(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

KEEP void deep(int depth, int kind)
{
	if (depth)
		deep(depth - 1, kind);
	else
		kinds[kind]();
	__asm__ volatile("");
}

KEEP void one(int kind)
{
	long long cpu = now(CLOCK_THREAD_CPUTIME_ID);
	long n = n_blocked();
	long long wall = now(CLOCK_MONOTONIC);
	deep(8, kind);
	logs[kind].wall += now(CLOCK_MONOTONIC) - wall;
	logs[kind].cpu += now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	logs[kind].n += (int)(n_blocked() - n);
}

/* Pages of a disk that nobody else reads. */
enum { PAGE = 4096, APART = 100 * PAGE };
static void wait_for_disk(int n)
{
	static const char page[PAGE] = "x";
	int fd = open(".", O_TMPFILE | O_RDWR, 0600);
	char *map;
	if (fd < 0)
		return;
	for (int i = 0; i < n; i++)
		if (pwrite(fd, page, PAGE, (off_t)i * APART) != PAGE)
			return;
	map = mmap(0, (size_t)n * APART, PROT_READ, MAP_SHARED, fd, 0);
	if (fsync(fd) || map == MAP_FAILED ||
	    madvise(map, (size_t)n * APART, MADV_RANDOM) ||
	    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return;
	for (int i = 0; i < n; i++) {
		file_page = map + (size_t)i * APART;
		one(5);
	}
}

static void *feed(void *n)
{
	cpu_set_t one;
	for (int i = (int)(long)n; i > 0; i--) {
		while (!atomic_exchange(&is_reading, 0))
			nanosleep(&while_3ms, 0);
		nanosleep(&while_3ms, 0);
		/* it wakes up on another CPU, whose ring has its "in" */
		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		sched_setaffinity(waiter_tid, sizeof(one), &one);
		if (write(ends[1], "x", 1) != 1) abort();
	}
	return 0;
}

static void *run_waits(void *n)
{
	waiter_tid = (int)syscall(SYS_gettid);
	for (int i = 0; i < (int)(long)n; i++)
		for (int kind = 0; kind < 4; kind++)
			one(kind);
	wait_for_disk((int)(long)n);
	return 0;
}

int main(int argc, char **argv)
{
	long n = atol(argv[1]), n_stops = atol(argv[2]);
	pthread_t feeder, waiter;
	pid_t child;
	int status;

	(void)argc;
	logs = mmap(0, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(ends)) return 1;
	child = fork();
	if (child == 0) {
		for (int i = 0; i < n_stops; i++)
			one(4);
		_exit(0);
	}
	pthread_create(&feeder, 0, feed, (void *)n);
	pthread_create(&waiter, 0, run_waits, (void *)n);
	pthread_join(waiter, 0);
	pthread_join(feeder, 0);
	while (waitpid(child, &status, WUNTRACED) == child &&
	       WIFSTOPPED(status)) {
		nanosleep(&while_3ms, 0);
		kill(child, SIGCONT);
	}
	for (int i = 0; i < 6; i++)
		printf("%d %lld %lld\n", logs[i].n, logs[i].wall, logs[i].cpu);
	return 0;
}
"""
NAMES = "wait_sleep", "wait_poll", "wait_futex", "wait_pipe", "wait_stop"
REASONS = {
    "wait_sleep": r"do_nanosleep", "wait_poll": r"poll_schedule_timeout",
    "wait_futex": r"futex_\w*wait\w*", "wait_pipe": r"\w*pipe_\w+",
    "wait_stop": r"do_signal_stop",
}
CALLS = {
    "wait_sleep": "clock_nanosleep()", "wait_poll": "poll()",
    "wait_futex": "futex()", "wait_pipe": "read()",
}

# Two threads of one CPU hand each other a byte; a third one sleeps.
HAND_OVER_C = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
enum { N = 60000 };
static int there[2], back[2];
static void *answer(void *a)
{
	char c;
	for (int i = 0; i < N; i++)
		if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
			return a;
	return a;
}
static volatile int must_end;
__attribute__((noinline)) void long_nap(void) { usleep(5000); __asm__(""); }
static void *sleep_long(void *a)
{
	while (!must_end)
		long_nap();
	return a;
}
int main(void)
{
	pthread_t t, u;
	cpu_set_t one;
	char c = 'x';
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(there) || pipe(back) || pthread_create(&t, 0, answer, 0))
		return 1;
	puts("ready");
	fflush(stdout);
	getchar();
	if (pthread_create(&u, 0, sleep_long, 0))
		return 1;
	for (int i = 0; i < N; i++)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			return 1;
	must_end = 1;
	pthread_join(u, 0);
	puts("done");
	fflush(stdout);
	pthread_join(t, 0);
	return 0;
}
"""

SPIN2_C = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static double end;
static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static void *run(void *unused)
{
	double wall = seconds(CLOCK_MONOTONIC);
	double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	while (seconds(CLOCK_MONOTONIC) < end)
		;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%ld %.0f %.0f\n", syscall(SYS_gettid), 1e9 * wall,
	       1e9 * (wall - cpu));
	return unused;
}
int main(void)
{
	pthread_t t[2];
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	end = seconds(CLOCK_MONOTONIC) + 0.8;
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], 0, run, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
"""


def events_of(path, *words, status=0):
    """Rows by event: {event: {symbol: row}}."""
    text = json.loads(seam("report", "--json", *words, path, status=status))
    result = {}
    for event in text["events"]:
        rows = event.get("rows", text["rows"])
        result[event["event"]] = {row.get("symbol", row.get("wait")): row
                                  for row in rows}
    return result


def stats_of(path, status=0):
    return json.loads(seam("report", "--stats", "--json", path,
                           status=status))


class Recording:
    """The waits of the program and its own log, made once."""
    made = None

    def __init__(self):
        self.path = "waits.seam"
        result = recorded("--off-cpu=10us", "-o", self.path, "--", "./waits",
                          str(N), str(N_STOPS))
        self.log, self.wall = {}, {}
        for name, line in zip((*NAMES, "wait_fault"),
                              result.stdout.splitlines(), strict=True):
            n, wall, cpu = map(int, line.split())
            self.wall[name] = wall
            self.log[name] = n, wall - cpu

    @classmethod
    def get(cls):
        if not cls.made:
            cls.made = cls()
        return cls.made


def switches(path):
    """(time, tid, what) of each SWITCH, FORK and EXIT, in the order of time."""
    found = []
    for line in seam("dump", "--json", path).splitlines():
        r = json.loads(line)
        at = r.get("sample_id", {})
        if r["type"] == "SWITCH":
            misc = r["misc"]
            found.append((at["time"], at["tid"], "in" if not misc & 0x2000
                          else "runnable" if misc & 0x4000 else "out"))
        elif r["type"] == "EXIT":
            found.append((at["time"], r["tid"], "exit"))
    return sorted(found)


def slow_times(path):
    """The times of threads, by another replay: {tid: {what: ns}}."""
    states, times = {}, {}
    records = switches(path)
    # the first of all records but those of tasks and mappings
    begin = min([time for time, _, _ in records] + [
        r["time"] for r in map(json.loads, seam("dump", "--json",
                                                path).splitlines())
        if r["type"] == "SAMPLE"])
    for time, tid, what in records:
        state, since = states.get(tid, (None, None))
        if state is None and what != "in":
            state, since = "in", begin
        if state and state != "exit":
            total = times.setdefault(tid, dict.fromkeys(
                ("in", "out", "runnable"), 0))
            total[state] += time - since
        if state != "exit":
            states[tid] = what, time
    return times


# -- the oracle: a log of the program's own ----------------------------------

def test_waits_are_as_many_as_the_program_logs():
    if not IS_ROOT:
        raise tap.Skip("stacks at switches need root")
    made = Recording.get()
    rows = events_of(made.path)["off-cpu"]
    for name in NAMES:
        n, _ = made.log[name]
        equal(n, N_STOPS if name == "wait_stop" else N, name)
        equal(rows[name]["total"], n, name)


def test_waits_last_as_long_as_the_program_logs_within_2_percent():
    if not IS_ROOT:
        raise tap.Skip("stacks at switches need root")
    made = Recording.get()
    events = events_of(made.path)
    for name in NAMES:
        # what is not CPU time is blocked, or waits for a CPU
        seen = sum(event[name]["total_weight"]
                   for kind, event in events.items()
                   if kind in ("off-cpu", "preempted") and name in event)
        _, logged = made.log[name]
        check(0.98 * logged <= seen <= 1.02 * logged,
              f"{name}: {seen} ns, logged {logged}")


def test_all_waits_of_a_place_have_one_stack_nine_calls_deep():
    if not IS_ROOT:
        raise tap.Skip("stacks at switches need root")
    stacks = [frames for frames, _ in
              folded("--event", "off-cpu", "--layer", "native",
                     Recording.get().path)]
    for name in NAMES:
        mine = [frames for frames in stacks if name in frames]
        equal(len(mine), 1, f"{name}: {mine}")
        equal(mine[0].count("deep"), 9, name)
        check("one" in mine[0] and mine[0].index("one") <
              mine[0].index("deep") < mine[0].index(name), mine[0])


def test_the_reason_of_a_wait_is_the_caller_of_the_scheduler():
    if not IS_ROOT:
        raise tap.Skip("stacks at switches need root")
    text = json.loads(seam("report", "--json", "--by", "wait,symbol",
                           "--event", "off-cpu", Recording.get().path))
    for row in text["rows"]:
        if row["symbol"] in REASONS:
            check(re.fullmatch(REASONS[row["symbol"]], row["wait"]), row)


def test_waits_for_a_disk_are_those_that_the_kernel_counts():
    """Of pages that were dropped from memory; one may be there in no time."""
    if not IS_ROOT:
        raise tap.Skip("stacks at switches need root")
    made = Recording.get()
    n, logged = made.log["wait_fault"]
    if not n:
        raise tap.Skip("no file system here has a disk that faults wait for")
    events = events_of(made.path)
    equal(events["off-cpu"]["wait_fault"]["total"], n, "waits")
    seen = sum(events[kind]["wait_fault"]["total_weight"]
               for kind in ("off-cpu", "preempted")
               if "wait_fault" in events.get(kind, ()))
    # of some 100 us each: the way out of the CPU and back is CPU time too
    check(0.98 * logged - 3000 * n <= seen <= made.wall["wait_fault"],
          (seen, logged, made.wall))
    stacks = [frames for frames, _ in folded("--event", "off-cpu", "--layer",
                                             "native", made.path)
              if "wait_fault" in frames]
    equal([frames.count("deep") for frames in stacks], [9], stacks)
    rows = json.loads(seam("report", "--json", "--by", "wait,symbol",
                           "--event", "off-cpu", made.path))["rows"]
    for row in rows:
        if row["symbol"] == "wait_fault":
            check(re.fullmatch(r"folio_\w+|\w*fault\w*|\w*lock_page\w*",
                               row["wait"]), row)


def test_the_times_of_a_thread_are_those_of_a_slow_replay():
    made = Recording.get()
    wanted = slow_times(made.path)
    threads = {t["tid"]: t for t in stats_of(made.path)["threads"]}
    equal(set(threads), set(wanted), "threads")
    for tid, times in wanted.items():
        t = threads[tid]
        equal(t["unknown_ns"], 0, t)
        equal([t["running_ns"], t["blocked_ns"], t["preempted_ns"]],
              [times["in"], times["out"], times["runnable"]], t)


def test_waits_add_up_to_the_times_of_threads():
    path = Recording.get().path
    threads = {t["tid"]: t for t in stats_of(path)["threads"]}
    text = json.loads(seam("report", "--json", "--by", "thread", path))
    for event in text["events"]:
        for row in event["rows"]:
            key = {"off-cpu": "blocked_ns",
                   "preempted": "preempted_ns"}.get(event["event"])
            if key:
                equal(row["total_weight"], threads[row["tid"]][key], row)


def stolen_ns():
    """What the host has taken of CPU 0, to a tick."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [line.split()[8] for line in stat if line.startswith("cpu0 ")]
    return int(ticks[0]) * 1e9 / os.sysconf("SC_CLK_TCK")


def test_two_pinned_spinners_are_preempted_half_of_the_time():
    """Or longer: other programs run on that CPU too."""
    before = stolen_ns()
    result = recorded("--off-cpu", "-o", "spinners.seam", "--", "./spin2")
    # a thread whose CPU the host takes has none, and is not switched out
    stolen = stolen_ns() - before + 1e9 / os.sysconf("SC_CLK_TCK")
    threads = {t["tid"]: t for t in stats_of("spinners.seam")["threads"]}
    for line in result.stdout.splitlines():
        tid, wall, logged = map(int, line.split())
        t = threads[tid]
        life = sum(t[key] for key in t if key.endswith("_ns"))
        equal(t["unknown_ns"], 0, t)
        check(t["blocked_ns"] < life / 50, t)
        check(t["preempted_ns"] > 0.44 * life, t)
        # beside what came before and after its log
        check(0.98 * logged - stolen <= t["preempted_ns"] <=
              1.02 * logged + max(life - wall, 0), (t, logged, stolen))


# -- what is added up, and what is left out ----------------------------------

def test_short_waits_are_one_row_a_thread_and_none_is_dropped():
    recorded("--off-cpu=1s", "-o", "short.seam", "--", "./waits", "5", "0")
    long = json.loads(seam("report", "--json", "short.seam"))
    off = [e for e in long["events"] if e["event"] == "off-cpu"][0]
    equal({row["symbol"] for row in off["rows"]},
          {"[waits shorter than 1s]"}, off)
    counts = stats_of("short.seam")["waits"][0]
    equal(counts["short"]["waits"], off["samples"], counts)
    outs = [s for s in switches("short.seam") if s[2] == "out"]
    equal(counts["short"]["waits"] + counts["open"], len(outs), counts)
    threads = stats_of("short.seam")["threads"]
    equal(off["weight"], sum(t["blocked_ns"] for t in threads), off)


def test_all_waits_are_short_or_have_their_own_row():
    recorded("--off-cpu=1ns", "-o", "all.seam", "--", "./waits", "5", "0")
    counts = stats_of("all.seam")["waits"][0]
    equal(counts["short"]["waits"], 0, counts)
    outs = [s for s in switches("all.seam") if s[2] == "out"]
    equal(sum(counts[k]["waits"] for k in ("recorded", "read", "unknown")),
          len(outs), counts)


def test_a_lost_switch_makes_no_wait_up():
    """Without every tenth record, as a full ring would leave them out."""
    shutil.copytree(Recording.get().path, "dropped.seam", dirs_exist_ok=True)
    drop_switches("dropped.seam", 10)
    stats = json.loads(run(SEAM, "report", "--stats", "--json",
                           "dropped.seam").stdout)
    unknown = sum(t["unknown_ns"] for t in stats["threads"])
    check(unknown > 0, stats["threads"])
    check(any("switches are missing" in note for note in stats["notes"]),
          stats["notes"])
    equal(run(SEAM, "report", "dropped.seam").returncode, 3, "status")
    for t in stats["threads"]:
        own = slow_times(Recording.get().path)[t["tid"]]
        # an "in" and the "out" after it, both without a trace, join two waits
        check(t["blocked_ns"] <= own["out"] + own["in"], (t, own))


def drop_switches(path, nth):
    """Turn each @nth SWITCH record into one of a type that is not known."""
    with open(f"{path}/data", "r+b") as file:
        content = bytearray(file.read())
        at = int.from_bytes(content[40:48], "little")
        end = at + int.from_bytes(content[48:56], "little")
        n = 0
        while at < end:
            kind = int.from_bytes(content[at:at + 4], "little")
            size = int.from_bytes(content[at + 6:at + 8], "little")
            if kind == 14:
                n += 1
                if n % nth == 0:
                    content[at:at + 4] = (60).to_bytes(4, "little")
            at += size
        file.seek(0)
        file.write(content)
    check(n > nth, f"{n} SWITCH records")


# -- views -------------------------------------------------------------------

def test_several_events_of_one_unit_are_one_picture():
    path = Recording.get().path
    whole = sum(n for _, n in folded(
        "--by", "thread", "--event", "cpu-clock,off-cpu,preempted", path))
    parts = [sum(n for _, n in folded("--weight", "--event", event, path))
             for event in ("cpu-clock", "off-cpu", "preempted")
             if event in seam("report", path)]
    equal(whole, sum(parts), parts)
    # its main thread waits, the others run, also by samples of user code
    recorded("--off-cpu", "-o", "life.seam", "--", "./spin2")
    seam("flamegraph", "--by", "thread", "-o", "life.svg", "--event",
         "off-cpu,cpu-clock", "life.seam")
    with open("life.svg", encoding="utf-8") as picture:
        check("cpu-clock + off-cpu:" in picture.read(), "no subtitle")
    result = run(SEAM, "report", "--event", "off-cpu,nix", path)
    equal(result.returncode, 1, result.stderr)


def test_latency_shares_a_sample_among_the_threads_that_ran():
    recorded("--off-cpu", "-o", "both.seam", "--", "./spin")
    by = json.loads(seam("report", "--json", "--by", "parallelism",
                         "--event", "cpu-clock", "both.seam"))
    shared = json.loads(seam("report", "--json", "--latency", "--by",
                             "parallelism", "both.seam"))
    wanted = {row["parallelism"]: row["total_weight"] / row["parallelism"]
              for row in by["rows"]}
    got = {row["parallelism"]: row["total_weight"]
           for row in shared["events"][0].get("rows", shared["rows"])}
    equal(set(got), set(wanted), "rows")
    for n, weight in wanted.items():
        check(abs(got[n] - weight) <= by["samples"], (got, wanted))
    equal([e["event"] for e in shared["events"]], ["cpu-clock"], "events")
    recorded("-o", "without.seam", "--", "./spin", "1000000")
    result = run(SEAM, "report", "--latency", "without.seam")
    equal(result.returncode, 1, result.stderr)
    check("--off-cpu" in result.stderr, result.stderr)


def test_a_recording_of_waits_is_a_perf_data_file():
    events = record_lib.perf("evlist", "-i", f"{Recording.get().path}/data")
    check("seam:switches" in events, events)
    text = record_lib.perf("script", "-i", f"{Recording.get().path}/data",
                           "--show-switch-events", "-F", "tid,time,event")
    check(text.count("PERF_RECORD_SWITCH OUT") >= 4 * N, text[:500])


def test_a_wait_has_the_thread_that_ended_it():
    if not IS_ROOT:
        raise tap.Skip("wakings of all threads need root")
    result = recorded("--off-cpu", "--wakers", "-o", "wakers.seam", "--",
                      "./waits", "10", "4")
    if "no wakers" in result.stderr:
        raise tap.Skip("no tracefs here")
    text = json.loads(seam("report", "--json", "--by", "waker,symbol",
                           "--event", "off-cpu", "wakers.seam"))
    wakers = {}
    for row in text["rows"]:
        wakers.setdefault(row["symbol"], {})[row["waker"]] = row["total"]
    tids = {t["tid"] for t in stats_of("wakers.seam")["threads"]}
    # timers interrupt; the feeder writes; the main thread sends SIGCONT.
    # Kernels of some virtual machines have no sample of a waking by a timer
    # of an idle CPU, for perf record -a neither.
    for name in "wait_sleep", "wait_poll", "wait_futex":
        equal(sum(wakers[name].values()), 10, wakers[name])
        check(set(wakers[name]) <= {"[interrupt]", "not known"}, wakers[name])
    by_timers = re.findall(r"^ *0 .*waking", record_lib.perf(
        "script", "-i", "wakers.seam/data", "-F", "tid,event"), re.M)
    # others that a timer interrupts have such wakings too
    check(any("[interrupt]" in of for of in wakers.values()) or
          not by_timers, wakers)
    for name, n in ("wait_pipe", 10), ("wait_stop", 4):
        equal(sum(wakers[name].values()), n, wakers[name])
        (waker,) = wakers[name]
        check(re.fullmatch(r"waits \d+", waker) and
              int(waker.split()[1]) in tids, wakers[name])
    # of all others' wakings, none is in the recording
    woken = re.findall(r" pid=(\d+) prio=", record_lib.perf(
        "script", "-i", "wakers.seam/data", "-F", "event,trace",
        silent=False))
    check(woken and {int(tid) for tid in woken} <= tids, (woken, tids))


def test_a_loss_may_be_reported_with_the_id_of_wakings():
    """They share a ring: the kernel writes LOST with the next record."""
    if not IS_ROOT:
        raise tap.Skip("wakings of all threads need root")
    recorded("--off-cpu", "--wakers", "-o", "lost.seam", "--", "./waits", "5",
             "2")
    wakings = [r for r in map(json.loads, seam("dump", "--json", "lost.seam")
                              .splitlines()) if r.get("event") == "seam:waking"]
    if not wakings:
        raise tap.Skip("no tracefs here")
    one = wakings[len(wakings) // 2]
    with open("lost.seam/data", "r+b") as file:
        file.seek(one["offset"] + 6)
        size = int.from_bytes(file.read(2), "little")
        file.seek(one["offset"])
        file.write(struct.pack("<IHHQQiiQIIQ", 2, 0, 56, one["id"], 3, 0, 0,
                               one["time"], one["cpu"], 0, one["id"]))
        file.write(struct.pack("<IHH", 60, 0, size - 56))
    threads = stats_of("lost.seam", status=3)["threads"]
    check(sum(t["unknown_ns"] for t in threads) > 0, threads)


def test_long_waits_among_many_short_ones_have_stacks():
    # both CPUs are busy: the recorder may be late for some of the stacks
    status = record("--off-cpu", "-o", "flood.seam", "--", "./hand_over",
                    input="go").returncode
    check(status in (0, 3), status)
    with open("flood.seam/meta.json", encoding="utf-8") as file:
        limited = json.load(file)["off_cpu"].get("limited", 0)
    waits = stats_of("flood.seam", status)["waits"][0]
    known = waits["recorded"]["ns"] + waits["read"]["ns"]
    check(waits["unknown"]["ns"] < known, waits)
    if IS_ROOT:
        check(limited > 0 and waits["read"]["waits"] > 0, (limited, waits))
    rows = events_of("flood.seam", status=status)["off-cpu"]
    check(rows["long_nap"]["total"] > 0, rows)


def test_losses_at_the_end_of_a_ring_leave_the_time_unknown():
    """No record follows with which the kernel would report them."""
    process = subprocess.Popen([SEAM, "record", "--off-cpu", "-o", "end.seam",
                                "--", "./hand_over"], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    equal(process.stdout.readline(), "ready\n")
    process.send_signal(signal.SIGSTOP)
    process.stdin.write("go\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "done\n")
    process.send_signal(signal.SIGCONT)
    _, text = process.communicate(timeout=60)
    equal(process.returncode, 3, text)
    threads = {t["tid"]: t for t in stats_of("end.seam", 3)["threads"]}
    check(len(threads) >= 2, threads)
    check(sum(t["unknown_ns"] > 0 for t in threads.values()) >= 2, threads)
    with open("end.seam/meta.json", encoding="utf-8") as file:
        meta = json.load(file)
    records = [json.loads(line) for line in
               seam("dump", "--json", "end.seam").splitlines()]
    ids = {r["sample_id"]["id"] for r in records if r["type"] == "SWITCH"}
    lost = [r for r in records if r["type"] == "LOST" and r["id"] in ids]
    of_switches = sum(e["lost"] for e in meta["lost_by_event"]
                      if e["event"] == "seam:switches")
    equal(sum(r["lost"] for r in lost), of_switches, lost)


# -- without rights ----------------------------------------------------------

def test_a_user_without_rights_has_the_times_of_all_waits():
    folder = own_folder_for_nobody()
    path = f"{folder}/w.seam"
    result = record("--off-cpu", "--wakers", "-o", path, "--", "./waits", "5",
                    "2", preexec_fn=as_nobody)
    equal(result.returncode, 0, result.stderr)
    if "those at their begin need" not in result.stderr:
        raise tap.Skip("this user may sample the kernel")
    check("kernel.perf_event_paranoid=1" in result.stderr, result.stderr)
    check("no wakers: " in result.stderr, result.stderr)
    record_lib.check_no_sysctl_that_holds(result.stderr)
    wanted = slow_times(path)
    for t in stats_of(path)["threads"]:
        equal(t["blocked_ns"], wanted[t["tid"]]["out"], t)
    logged = sum(int(line.split()[0]) for line in result.stdout.splitlines())
    counts = stats_of(path)["waits"][0]
    check(sum(counts[k]["waits"] for k in
              ("recorded", "read", "unknown", "short")) >= logged, counts)
    # of stacks that were read, the reason is the system call
    text = json.loads(seam("report", "--json", "--by", "wait,symbol",
                           "--event", "off-cpu", path))
    for row in text["rows"]:
        if row["symbol"] in CALLS:
            equal(row["wait"], CALLS[row["symbol"]], row)


# -- rings that overwrite ----------------------------------------------------

def check_overwritten(folder, **options):
    path = f"{folder}/newest.seam"
    # 20 ms are recorded in their order of time too: once the rings are copied
    result = record("--off-cpu", "--overwrite", "-o", path, "--", "./waits",
                    "10", "2", **options)
    check(result.returncode in (0, 3), result.stderr)
    wanted = slow_times(path)
    for t in stats_of(path, result.returncode)["threads"]:
        times = wanted[t["tid"]]
        equal([t["running_ns"], t["blocked_ns"], t["preempted_ns"],
               t["unknown_ns"]],
              [times["in"], times["out"], times["runnable"], 0], t)
    return path, result


def test_with_overwrite_all_switches_are_in_a_snapshot():
    path, result = check_overwritten(".")
    if not IS_ROOT:
        return
    rows = json.loads(seam("report", "--json", "--event", "off-cpu", path,
                           status=result.returncode))["rows"]
    rows = {row["symbol"]: row["total"] for row in rows}
    for name in NAMES:
        n = 2 if name == "wait_stop" else 10
        check(0.9 * n <= rows[name] <= n, (name, rows[name]))


def test_with_overwrite_stacks_are_read_while_threads_wait():
    folder = own_folder_for_nobody()
    path, result = check_overwritten(folder, preexec_fn=as_nobody)
    if "those at their begin need" not in result.stderr:
        raise tap.Skip("this user may sample the kernel")
    counts = stats_of(path, result.returncode)["waits"][0]
    check(counts["read"]["waits"] > 0, counts)


# -- threads that wait already -----------------------------------------------

SLEEP_C = r"""
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) void *wait_for_ever(void *a)
{ for (;;) pause(); return a; }
int main(void)
{
	pthread_t t;
	pthread_create(&t, 0, wait_for_ever, 0);
	pthread_detach(t);
	for (volatile int i = 0; i < 100000000; i++)
		;
	wait_for_ever(0);
}
"""


def wait_until_asleep(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        for _ in range(3000):
            with open(f"/proc/{pid}/task/{tid}/syscall",
                      encoding="ascii") as now:
                if now.read().split()[0] not in ("running", "-1"):
                    break
            time.sleep(0.01)


def attached(folder, *words, **options):
    """A recording of two threads that sleep; its stats by tid."""
    path = f"{folder}/a.seam"
    with record_lib.running("./sleep", **options) as process:
        while len(os.listdir(f"/proc/{process.pid}/task")) < 2:
            time.sleep(0.01)
        wait_until_asleep(process.pid)
        tids = {int(t) for t in os.listdir(f"/proc/{process.pid}/task")}
        recorded("--off-cpu", "-p", str(process.pid), "-o", path, *words,
                 **options)
    return path, tids


def check_attached(path, tids, least_ns):
    stats = stats_of(path)
    equal({t["tid"] for t in stats["threads"]}, tids, stats)
    for t in stats["threads"]:
        check(t["blocked_ns"] >= least_ns, t)
        equal([t["running_ns"], t["preempted_ns"], t["unknown_ns"]],
              [0, 0, 0], t)
    counts = stats["waits"][0]
    equal([counts["open"], counts["open_ns"]],
          [2, sum(t["blocked_ns"] for t in stats["threads"])], counts)
    equal(counts["read"]["waits"], 2, counts)
    rows = events_of(path)["off-cpu"]
    equal(rows["wait_for_ever"]["total"], 2, rows)
    check("0 samples, 2 waits over 0 ns" not in seam("report", path), "time")


def test_a_thread_that_sleeps_all_the_time_is_one_open_wait():
    path, tids = attached(".", "--duration", "0.3")
    check_attached(path, tids, 300e6)


def test_a_user_without_rights_has_the_waits_from_before_too():
    path, tids = attached(own_folder_for_nobody(), "--duration", "0.3",
                          preexec_fn=as_nobody)
    check_attached(path, tids, 300e6)


def test_waits_from_before_count_from_the_end_of_the_delay_on():
    os.mkdir("delayed")
    path, tids = attached("delayed", "--delay", "400", "--duration", "0.7")
    check_attached(path, tids, 1)
    with open(f"{path}/meta.json", encoding="utf-8") as file:
        lasted_ns = json.load(file)["duration_ns"]
    for t in stats_of(path)["threads"]:
        check(t["blocked_ns"] <= lasted_ns - 400e6, (t, lasted_ns))


def test_an_event_that_would_count_nothing_is_refused():
    for event in "cs", "migrations", "cpu-clock,cs":
        result = record("-e", event, "-o", "nothing.seam", "--", "true",
                        preexec_fn=as_nobody)
        if result.returncode == 0:
            raise tap.Skip("this user may sample the kernel")
        equal(result.returncode, 1, result.stderr)
        check("kernel.perf_event_paranoid=1" in result.stderr, result.stderr)
    result = record("-e", "cs:u", "-o", "nothing.seam", "--", "true")
    equal(result.returncode, 1, result.stderr)
    check("never occurs in user code" in result.stderr, result.stderr)
    check(not os.path.exists("nothing.seam"), "a recording was left")


def test_what_cannot_be_combined_is_refused():
    equal(record("--wakers", "--", "true").returncode, 2, "no --off-cpu")
    equal(record("--off-cpu=soon", "--", "true").returncode, 2, "a time")


if __name__ == "__main__":
    os.chdir(record_lib.FOLDER)
    compile_c("waits", WAITS_C, "-O2", "-fomit-frame-pointer", "-rdynamic",
              "-fno-optimize-sibling-calls", "-s")
    compile_c("spin2", SPIN2_C, "-O2")
    compile_c("sleep", SLEEP_C, "-O2")
    compile_c("hand_over", HAND_OVER_C, "-O2")
    sys.exit(record_lib.run_tests(globals()))
