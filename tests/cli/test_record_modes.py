#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: who is watched, where and when; which ring a sample is from."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, as_nobody, check, compile_c, dumped,
                        equal, manifest, own_folder_for_nobody, perf,
                        perf_read, perf_samples, record, recorded, refused,
                        run, run_tests, running, samples_told, wait_for,
                        wait_for_samples)
from tap import Skip

PINNED_C = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
/* Threads: one a CPU, each says its tid, its CPU and its CPU time. */
static double seconds;
static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
static void *run(void *a)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((int)(long)a, &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (used() < seconds)
		for (volatile int i = 0; i < 20000; i++)
			;
	printf("%d %d %f\n", (int)syscall(SYS_gettid), (int)(long)a, used());
	return a;
}
int main(int c, char **v)
{
	pthread_t t[64];
	int n = c > 2 ? atoi(v[2]) : 2;
	seconds = atof(v[1]);
	for (long i = 0; i < n; i++)
		pthread_create(&t[i], 0, run, (void *)(i % 2));
	for (int i = 0; i < n; i++)
		pthread_join(t[i], 0);
	return 0;
}
"""


def build_pinned():
    if os.path.exists("pinned"):
        return
    if os.cpu_count() < 2:
        raise Skip("needs two CPUs")
    compile_c("pinned", PINNED_C)


def samples_of(path):
    """(tid, cpu) of each sample, by perf; the tid of the dead is -1."""
    text = perf_read(path, "script", "-F", "tid,cpu,ip", "-G")
    return [(int(tid), int(cpu)) for tid, cpu in
            re.findall(r"^ *(-?\d+) \[(\d+)\]", text, re.M)]


def threads_told(result):
    """tid -> (cpu, CPU seconds), from what the program printed."""
    return {int(tid): (int(cpu), float(used)) for tid, cpu, used in
            re.findall(r"^(\d+) (\d) ([\d.]+)$", result.stdout, re.M)}


HZ = 1000


def record_pinned(path, *flags, n=2, seconds="0.3"):
    build_pinned()
    result = record("-o", path, "-F", str(HZ), *flags, "./pinned", seconds,
                    str(n))
    # other programs of the machine may lose records, or have no proper jitdump
    check(result.returncode in (0, 3 if "-a" in flags else 0), result.stderr)
    found = samples_of(path)
    equal(len(found), samples_told(result), "perf and the summary:")
    equal(dumped(path), samples_told(result), "dump and the summary:")
    return threads_told(result), found, result


# They read clocks all the time; the kernel's part may be hidden.
with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as text:
    SLACK = 0.1 if os.geteuid() == 0 or int(text.read()) < 2 else 0.3


def check_each(threads, found, late=0.0, slack=SLACK):
    """Of each thread as many samples as its CPU time is worth."""
    for tid, (cpu, used) in threads.items():
        cpus = {c for t, c in found if t == tid}
        check(cpu in cpus, f"{tid} ran on {cpu}, and not on {cpus}")
        wrong = sum(1 for t, c in found if t == tid and c != cpu)
        n = sum(1 for t, c in found if t == tid)
        # it starts where its parent is, until it has pinned itself
        check(wrong < 20, f"{wrong} of {n} samples of {tid} elsewhere")
        wanted = HZ * (used - late)
        check((0.95 - slack) * wanted - 5 <= n <=
              (1 + slack) * HZ * used + 5,
              f"{n} samples of {tid} in {used} s, {late} s late")


def rings(path, kind="samples"):
    return [r for r in manifest(path)["rings"] if r["kind"] == kind]


def test_by_default_each_cpu_has_a_ring_and_every_thread_is_in_it():
    threads, found, _ = record_pinned("d.seam")
    check_each(threads, found)
    for ring in rings("d.seam"):
        check("tid" not in ring and ring["records"] > 0, f"{ring}")


def test_per_thread_each_thread_has_a_ring_and_lateness_is_reported():
    threads, found, result = record_pinned("t.seam", "--per-thread")
    late = manifest("t.seam")["late"]
    equal(late["threads"], len(threads))
    check(late["ns"] / len(threads) <= late["longest_ns"] <= late["ns"],
          f"{late}")
    check_each(threads, found, late["longest_ns"] / 1e9)
    by_ring = {ring["tid"]: ring for ring in rings("t.seam")}
    for tid in threads:
        n = sum(1 for t, _ in found if t == tid)
        check("cpu" not in by_ring[tid], f"{by_ring[tid]}")
        equal(by_ring[tid]["records"], n, f"records in the ring of {tid}:")
    check("not sampled at first, for" in result.stderr, result.stderr)


def test_per_thread_on_one_cpu_sees_that_cpu_only():
    threads, found, _ = record_pinned("u.seam", "--per-thread", "-C", "1")
    equal({cpu for _, cpu in found}, {1})
    tids = {tid for tid, (cpu, _) in threads.items() if cpu == 1}
    check({tid for tid, _ in found} >= tids, f"{found[:9]}")
    for ring in rings("u.seam"):
        check(ring["cpu"] == 1 and ring["tid"] > 0, f"{ring}")


def test_many_threads_one_after_another_are_followed_one_by_one():
    script = "for i in 1 2 3 4 5 6 7 8 9 10; do ./spin 20000000; done"
    result = recorded("-o", "m.seam", "--per-thread", "sh", "-c", script)
    found = samples_of("m.seam")
    equal(len(found), samples_told(result))
    check(len({tid for tid, _ in found}) >= 10, "threads are missing")
    equal({t for t, _ in found} - {r["tid"] for r in rings("m.seam")},
          set(), "samples from nowhere:")


def test_a_list_of_cpus_limits_the_samples_of_a_command():
    threads, found, _ = record_pinned("c.seam", "-C", "0")
    equal({cpu for _, cpu in found}, {0})
    check_each({t: v for t, v in threads.items() if v[0] == 0}, found)
    equal([ring["cpu"] for ring in rings("c.seam")], [0])
    # perf samples all that runs there; the help says so, and how
    told = " ".join(run(SEAM, "help", "--man", "record").stdout.split())
    check("that is \\-a \\-C CPUS here" in told, told[:100])


def system_wide(path, *flags):
    threads, found, result = record_pinned(path, *flags)
    check(set(threads) <= {t for t, _ in found} or "-C" in flags,
          "threads are missing")
    # whoever else is sampled has a name, also when it ran before
    names = perf_read(path, "script", "-F", "comm", "-G").split("\n")
    # but for those that were about to end when we looked for their names
    nameless = sum(1 for name in names if name.strip().startswith(":"))
    check(nameless <= len(names) // 50, f"{nameless} of {len(names)}")
    return threads, found, result


def may_see_the_machine(*words):
    """True for root.  A user is told what is missing instead."""
    if not IS_ROOT:
        told = refused(*words)
        check("of all processes" in told and "CAP_PERFMON" in told, told)
    return IS_ROOT


def test_the_whole_machine_is_seen_while_a_command_runs():
    if not may_see_the_machine("-a", "true"):
        return
    threads, found, _ = system_wide("a.seam", "-a")
    # A CPU's timer goes off while a thread runs, or just before it does: where
    # others take turns with it, each turn counts a sample more or less.
    check_each(threads, found, slack=0.3)
    _, found, _ = system_wide("b.seam", "-a", "-C", "1")
    equal({cpu for _, cpu in found}, {1})


def test_cpus_alone_mean_all_that_runs_on_them_for_so_long():
    if not may_see_the_machine("-C", "0", "--duration", "0.3"):
        return
    with running("taskset", "-c", "0", "./spin", "10000000000") as spin:
        result = record("-o", "e.seam", "-C", "0", "--duration", "0.3")
    equal(result.returncode, 0, result.stderr)
    found = samples_of("e.seam")
    equal({cpu for _, cpu in found}, {0})
    check(spin.pid in {tid for tid, _ in found}, "the process is not there")


def attach(name, *flags):
    process = subprocess.Popen([SEAM, "record", "-o", name, *flags],
                               stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    wait_for_samples(name)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    equal(process.returncode, 0, text)
    return samples_of(name)


def tasks(pid):
    while True:
        tids = {int(t) for t in os.listdir(f"/proc/{pid}/task")}
        if len(tids) > 1:
            return tids
        time.sleep(0.01)


def test_processes_of_a_list_are_attached_with_all_their_threads():
    with running("./spin", "10000000000") as first, \
            running("./spin", "10000000000") as other:
        one = tasks(first.pid)
        equal({t for t, _ in attach("l.seam", "-p",
                                    f"{first.pid},{other.pid}")},
              one | tasks(other.pid))
        equal({t for t, _ in attach("k.seam", "--per-thread", "-p",
                                    str(first.pid))}, one)
        single = max(one)
        equal({t for t, _ in attach("j.seam", "-t", str(single))}, {single})


def test_a_command_beside_a_process_reports_how_long_and_is_not_recorded():
    for i, flags in enumerate((("-p",), ("--per-thread", "-p"), ("-t",))):
        with running("./spin", "10000000000") as spin:
            wanted = tasks(spin.pid)
            watched = max(wanted) if flags == ("-t",) else spin.pid
            result = record("-o", f"h{i}.seam", *flags, str(watched), "--",
                            "./spin", "100000000", timeout=60)
            # 3: on a busy machine samples may be lost
            check(result.returncode in (0, 3), result.stderr)
            check(spin.poll() is None, "the process was ended")
            found = {t for t, _ in samples_of(f"h{i}.seam")}
        check(found and found <= wanted, f"{flags}: {found} of {wanted}")
    result = record("-o", "h.seam", "-p", str(os.getpid()), "sh", "-c",
                    "exit 5")
    equal(result.returncode, 5, result.stderr)


def test_a_process_that_ends_ends_the_command_beside_it():
    spin = subprocess.Popen(["./spin", "200000000"])
    result = record("-o", "e.seam", "-p", str(spin.pid), "sleep", "1000",
                    timeout=60)
    spin.wait()
    equal(result.returncode, 0, result.stderr)


def test_a_thread_that_comes_after_the_attachment_is_followed():
    script = ("import subprocess, sys\nsys.stdin.readline()\n"
              "subprocess.run(['./spin', '60000000'])\n")
    for i, flags in enumerate(((), ("--per-thread",))):
        parent = subprocess.Popen([sys.executable, "-c", script],
                                  stdin=subprocess.PIPE, text=True)
        recorder = subprocess.Popen(
            [SEAM, "record", "-o", f"f{i}.seam", *flags, "-p",
             str(parent.pid)], stderr=subprocess.PIPE, text=True)
        wait_for(f"f{i}.seam/meta.json")
        parent.communicate("go\n")
        _, text = recorder.communicate(timeout=30)
        equal(recorder.returncode, 0, text)
        others = {t for t, _ in samples_of(f"f{i}.seam")} - {parent.pid}
        check(len(others) >= 2, f"{flags}: only {others}")


def test_a_delay_comes_before_the_first_sample():
    build_pinned()
    start_ns = time.monotonic_ns()
    result = recorded("-o", "w.seam", "-D", "200", "-F", str(HZ), "./pinned",
                      "0.3", "1")
    check(samples_told(result) > 0)
    # by the clock, because the CPU time of 200 ms may be none
    rows = map(json.loads, run(SEAM, "dump", "--json",
                               "w.seam").stdout.splitlines())
    first_ns = min(r["time"] for r in rows if r["type"] == "SAMPLE")
    check(first_ns - start_ns >= 200e6, f"{(first_ns - start_ns) / 1e6} ms")
    names = perf("script", "-i", "w.seam", "-F", "comm", "-G")
    equal(set(names.split()), {"pinned"})


def test_a_duration_ends_the_recording_and_not_the_command():
    # the command goes on until it sees that the recording is whole
    result = record("-o", "x.seam", "--duration", "0.2", "sh", "-c",
                    "until grep -q 'complete\": true' x.seam/meta.json; do "
                    "./spin 1000000; done; exit 5", timeout=60)
    equal(result.returncode, 5, result.stderr)
    equal(perf_samples("x.seam"), samples_told(result))


def test_a_size_ends_the_recording_and_not_the_command():
    result = record("-o", "y.seam", "--max-size", "100K", "-F", "20000",
                    "-m", "4", "sh", "-c", "./spin 300000000; exit 6")
    equal(result.returncode, 6, result.stderr)
    size = os.path.getsize("y.seam/data")
    check(100 << 10 <= size < 200 << 10, f"{size} bytes")


def test_real_time_is_the_recorders_alone():
    result = record("-q", "-r", "5", "-o", "r.seam", sys.executable, "-c",
                    "import os; print(os.sched_getscheduler(0))")
    if IS_ROOT:
        equal((result.returncode, result.stdout), (0, "0\n"), result.stderr)
    folder = own_folder_for_nobody()
    poor = record("-r", "5", "-o", os.path.join(folder, "r.seam"), "true",
                  preexec_fn=as_nobody)
    equal(poor.returncode, 1)
    check("CAP_SYS_NICE" in poor.stderr, poor.stderr)


sys.exit(run_tests(globals()))
