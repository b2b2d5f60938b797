#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam stat: a program's own clocks and counts, as any user."""
import json
import os
import signal
import subprocess
import sys
import time

from record_lib import (FOLDER, IS_ROOT, SEAM, as_nobody, check, compile_c,
                        equal, run, run_tests)

# 1,000 sleeps, 1,000 pages, 10 children of 50 ms; prints its CPU time and
# theirs, by their own clocks.
COUNTED_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double cpu(void)
{ struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
volatile unsigned long x;
int main(void)
{
	struct timespec nap = { 0, 100000 };
	int up[2];
	double sum = 0, one;
	char *m = mmap(0, 1000 * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(m, 1000 * 4096, MADV_NOHUGEPAGE);
	if (pipe(up)) return 1;
	for (int i = 0; i < 1000; i++) nanosleep(&nap, 0);
	for (int i = 0; i < 1000; i++) m[i * 4096] = 1;
	for (int i = 0; i < 10; i++)
		if (fork() == 0) {
			while ((one = cpu()) < 0.05)
				for (int k = 0; k < 10000; k++) x++;
			_exit(write(up[1], &one, sizeof(one)) != sizeof(one));
		}
	for (int i = 0; i < 10; i++) wait(0);
	for (int i = 0; i < 10; i++) {
		if (read(up[0], &one, sizeof(one)) != sizeof(one)) return 1;
		sum += one;
	}
	printf("%.9f\n", sum + cpu());
	return 7;
}
"""
# Two threads of one process on one CPU, which never wait.
SPINNERS_C = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <time.h>
static void *spin(void *a)
{
	struct timespec t;
	do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (!t.tv_sec && t.tv_nsec < 300000000);
	return a;
}
int main(void)
{
	cpu_set_t set;
	pthread_t t;
	CPU_ZERO(&set); CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	pthread_create(&t, 0, spin, 0);
	spin(0);
	pthread_join(t, 0);
}
"""

# Once there is a line in "go", 0.2 s with many waits; writes what was used, by
# its clock.  With an argument at once, and it ends.
BURNS_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double cpu(void)
{ struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
volatile unsigned long x;
int main(int n, char **words)
{
	struct timespec nap = { 0, 100000 };
	char line[9];
	double begin;
	FILE *f;
	if (n == 1 && (!(f = fopen("go", "r")) || !fgets(line, 9, f))) return 1;
	begin = cpu();
	while (cpu() - begin < 0.2) {
		for (int k = 0; k < 100000; k++) x++;
		nanosleep(&nap, 0);
	}
	if (!(f = fopen("spent", "w"))) return 1;
	fprintf(f, "%.9f\n", cpu() - begin);
	fclose(f);
	if (n == 1) pause();
	return 0;
}
"""


def counted(*words, prepare=None, status=0):
    """The JSON of seam stat and what the program printed."""
    with open("stat.json", "w", encoding="ascii"):
        os.chmod("stat.json", 0o666)
    result = subprocess.run([SEAM, "stat", "--json", "-o", "stat.json",
                             *words], stdout=subprocess.PIPE, preexec_fn=prepare,
                            timeout=60, check=False)
    equal(result.returncode, status, "exit status")
    with open("stat.json", encoding="utf-8") as file:
        return json.load(file), result.stdout.decode()


def value(counts, key):
    found = counts["counters"][key]
    return found and found["median"]


def check_counts(prepare=None):
    counts, told = counted("--by", "process", "./counted", prepare=prepare,
                           status=7)
    own_ns = float(told) * 1e9
    # 10 children, their pipe, their ends
    blocked = value(counts, "blocked_switches")
    check(1000 <= blocked <= 1030, f"{blocked} blocked switches")
    faults = value(counts, "minor_faults")
    check(1000 <= faults <= 2500, f"{faults} minor faults")
    used = value(counts, "user_ns") + value(counts, "system_ns")
    for text, ns in (("task-clock", value(counts, "task_clock_ns")),
                     ("user and system", used)):
        check(abs(ns - own_ns) <= 0.02 * own_ns,
              f"{text} {ns}, by the program's clocks {own_ns}")
    # each sleeps at least 0.1 ms
    check(value(counts, "blocked_ns") >= 1e8, "blocked time")
    rows = counts["processes"]
    equal(len(rows), 11, "processes")
    for key in ("blocked_ns", "preempted_ns", "blocked_switches"):
        equal(sum(row[key] for row in rows), value(counts, key), key)
    spun = sorted(row["on_cpu_ns"] for row in rows)[-10:]
    check(min(spun) > 45e6 and max(spun) < 65e6, f"children: {spun}")
    on_ns = sum(row["on_cpu_ns"] for row in rows)
    # each switch costs some microseconds on either side, and this has the
    # time that a hypervisor takes
    check(0.8 * own_ns < on_ns < 1.5 * own_ns, f"on a CPU {on_ns} by "
          f"switches, {own_ns} by the program's clocks")
    first = max(rows, key=lambda row: row["blocked_ns"])
    life = sum(first[key] for key in ("on_cpu_ns", "blocked_ns",
                                      "preempted_ns"))
    elapsed = value(counts, "elapsed_ns")
    check(abs(life - elapsed) <= elapsed / 1000,
          f"on, blocked and preempted {life}, elapsed {elapsed}")
    for key in ("migrations", "major_faults", "max_rss_bytes"):
        check(value(counts, key) is not None, key)


def test_counts_are_those_of_the_program_itself():
    check_counts()


def test_an_ordinary_user_has_the_same_counts():
    """At the machine's own perf_event_paranoid, 2 or below."""
    if IS_ROOT:
        check_counts(as_nobody)


def test_threads_that_never_wait_are_preempted_and_not_blocked():
    counts, _ = counted("./spinners")
    # the join at the end
    check(value(counts, "blocked_switches") <= 4, "blocked switches")
    check(value(counts, "blocked_ns") < 0.05 * value(counts, "elapsed_ns"),
          f"blocked {value(counts, 'blocked_ns')}")
    check(value(counts, "preempted_ns") > 2e8, "preempted")


def test_runs_have_a_median_and_a_range():
    counts, _ = counted("-r", "3", "sh", "-c", "sleep 0.05")
    elapsed = counts["counters"]["elapsed_ns"]
    equal(counts["runs"], 3)
    check(5e7 <= elapsed["min"] <= elapsed["median"] <= elapsed["max"],
          f"{elapsed}")
    text = run(SEAM, "stat", "-r", "3", "true").stderr
    check("3 runs" in text and ".." in text, text)


def test_a_run_inherits_nothing_of_the_run_before():
    show = "grep -E '^Sig(Ign|Blk)' /proc/self/status; ulimit -n"
    alone = run("sh", "-c", show).stdout
    equal(run(SEAM, "stat", "-r", "3", "-o", "out", "sh", "-c", show).stdout,
          3 * alone)


def test_what_is_not_known_is_null_and_a_dash():
    counts, _ = counted("true")
    if counts["counters"]["cycles"] is not None:
        return
    equal(counts["counters"]["instructions_per_cycle"], None)
    text = run(SEAM, "stat", "true").stderr
    line = next(line for line in text.splitlines() if "hardware" in line)
    check(" - " in line, line)


def test_the_exit_status_is_that_of_the_program():
    for words, status in ((("sh", "-c", "exit 9"), 9),
                          (("sh", "-c", "kill -9 $$"), 137),
                          (("/etc/passwd",), 126), (("not-there",), 127),
                          (("--by", "x", "true"), 2), (("-r2", "-p1"), 2),
                          ((), 2)):
        equal(run(SEAM, "stat", *words).returncode, status, f"{words}")


def test_a_process_that_runs_is_counted_until_the_command_ends():
    with subprocess.Popen(["sh", "-c", "while :; do sleep 0.02; done"]) as busy:
        try:
            counts, _ = counted("--by", "process", "-p", str(busy.pid), "--",
                                "sleep", "1")
        finally:
            busy.kill()
    rows = {row["name"] for row in counts["processes"]}
    check({"sh", "sleep"} <= rows, f"{rows}")
    check(value(counts, "blocked_switches") > 10, "switches")
    check(value(counts, "minor_faults") > 100, "faults of children")
    elapsed = value(counts, "elapsed_ns")
    check(9e8 < elapsed < 1e10, f"{elapsed}")
    shell = next(row for row in counts["processes"]
                 if row["pid"] == busy.pid)
    life = sum(shell[key] for key in ("on_cpu_ns", "blocked_ns",
                                      "preempted_ns"))
    check(abs(life - elapsed) < elapsed / 50, f"{life} of {elapsed}")


def test_a_process_that_runs_has_the_time_of_its_clock():
    for name in ("go", "spent"):
        os.mkfifo(name)
    with subprocess.Popen(["./burns"]) as busy:
        try:
            counts, told = counted("-p", str(busy.pid), "--", "sh", "-c",
                                   "echo >go; cat spent")
        finally:
            busy.kill()
    task, own = value(counts, "task_clock_ns"), float(told) * 1e9
    check(abs(task - own) <= 0.02 * own,
          f"task-clock {task}, by the program's clock {own}")


def test_processes_that_nobody_waits_for_are_counted():
    """Their parent has ended, or has the kernel discard them."""
    for script in ("(./burns 0.2 & ); cat spent",
                   "trap '' CHLD; ./burns 0.2 & cat spent"):
        counts, told = counted("sh", "-c", script)
        task, own = value(counts, "task_clock_ns"), float(told) * 1e9
        # by switches: all but the time of the switches themselves
        check(0.7 * own < task < 1.5 * own + 2e7,
              f"{script}: task-clock {task}, by the program's clock {own}")


def test_a_signal_goes_to_the_program_and_ends_the_runs():
    with subprocess.Popen([SEAM, "stat", "-r", "9", "-o", "out", "sh", "-c",
                           "trap 'exit 5' TERM; touch it; sleep 9 & wait"],
                          ) as stat:
        while not os.path.exists("it"):
            time.sleep(0.01)
        time.sleep(0.2)
        stat.send_signal(signal.SIGTERM)
        equal(stat.wait(30), 5, "exit status")
    with open("out", encoding="utf-8") as file:
        check("runs" not in file.read(), "more than one run")


os.chdir(FOLDER)
compile_c("counted", COUNTED_C)
compile_c("spinners", SPINNERS_C)
compile_c("burns", BURNS_C)
sys.exit(run_tests(globals()))
