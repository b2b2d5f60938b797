#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record -e uprobe: the probed program runs as it does without probes"""
import os
import re
import signal
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, check, equal, manifest, perf_samples,
                        private_mounts, record, refused, run, run_tests,
                        samples_told)
from tap import Skip

# Each way to start a thread or a process, with calls of its own number.
STARTS_C = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
__attribute__((noinline)) void probed(void) { __asm__ volatile(""); }
static void call(int n) { while (n--) probed(); }
static void *thread(void *p) { call(2); return p; }
static int cloned(void *p) { call(16); (void)p; return 0; }
static void ended(const char *how, int code, int pid)
{
	if (code || (pid >= 0 && waitpid(pid, 0, __WALL) != pid))
		printf("%s: %s\n", how, strerror(code ? code : errno));
}
static char stack[65536] __attribute__((aligned(16)));
int main(int n, char **v)
{
	char *spawned[] = { v[0], "32", 0 }, *again[] = { v[0], "64", 0 };
	pthread_t t;
	int pid = -1, r;
	if (n > 1 && strcmp(v[1], "wait") != 0) {
		call(atoi(v[1]));
		return 0;
	}
	if (n > 1 && getchar() == EOF)
		return 1;
	call(1);
	ended("pthread_create", pthread_create(&t, 0, thread, 0), -1);
	pthread_join(t, 0);
	pid = fork();
	if (pid == 0) {
		call(4);
		_exit(0);
	}
	ended("fork", pid < 0 ? errno : 0, pid);
	pid = vfork();
	if (pid == 0) {
		call(8);
		_exit(0);
	}
	ended("vfork", pid < 0 ? errno : 0, pid);
	pid = clone(cloned, stack + sizeof(stack), CLONE_VM | SIGCHLD, 0);
	ended("clone", pid < 0 ? errno : 0, pid);
	r = posix_spawn(&pid, v[0], 0, 0, spawned, environ);
	ended("posix_spawn", r, r ? -1 : pid);
	puts("done");
	fflush(stdout);
	execv(v[0], again);
	return 1;
}
"""
ALL, FIRST_THREAD = 1 + 2 + 4 + 8 + 16 + 32 + 64, 1 + 64

TWICE_C = r"""
static __attribute__((noinline)) int twice(int i)
{ __asm__ volatile(""); return i + PART; }
int CALLER(int n)
{ int sum = 0; for (int i = 0; i < n; i++) sum += twice(i); return sum; }
"""
MAIN_C = r"""
int first(int n), second(int n);
int main(void) { return first(30) + second(12) == 0; }
"""


def build(name, *words, **texts):
    for part, text in texts.items():
        with open(part + ".c", "w", encoding="ascii") as out:
            out.write(text)
    built = run("cc", "-O1", "-g", "-pthread", "-o", name, *words)
    equal(built.returncode, 0, built.stderr)
    return os.path.abspath(name)


def starts():
    if os.path.exists("starts"):
        return os.path.abspath("starts")
    return build("starts", "starts.c", starts=STARTS_C)


def probe(path=None):
    return f"uprobe:{path or starts()}:probed"


def test_a_probed_program_may_start_threads_and_processes():
    path = starts()
    if not IS_ROOT:
        return check("probes need root" in refused("-e", probe(), path))
    for words, wanted in (((), ALL), (("-a",), ALL), (("-i",), FIRST_THREAD),
                          (("--per-thread",), None), (("-g",), ALL)):
        result = record("-e", probe(), *words, "-o", "s.seam", path)
        equal((result.returncode, result.stdout), (0, "done\n"),
              f"{words}: {result.stderr}")
        if wanted:
            equal(samples_told(result), wanted, f"{words}:")
    equal(perf_samples("s.seam"), ALL)


def test_a_program_that_is_attached_to_may_start_them_too():
    if not IS_ROOT:
        return
    for option in ("-p", "-t"):
        target = subprocess.Popen([starts(), "wait"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        recorder = subprocess.Popen(
            [SEAM, "record", "-e", probe(), "-o", "at.seam", option,
             str(target.pid)], stderr=subprocess.PIPE, text=True)
        while not os.path.exists("at.seam/meta.json"):
            equal(recorder.poll(), None, "the recorder ended:")
            time.sleep(0.01)
        shown, _ = target.communicate("go\n", timeout=60)
        _, text = recorder.communicate(timeout=60)
        equal((recorder.returncode, shown), (0, "done\n"), text)
        equal(manifest("at.seam")["samples"], ALL, option)
        run("rm", "-r", "at.seam")


def test_all_functions_of_a_name_are_probed():
    for part, caller in enumerate(("first", "second")):
        build(caller + ".o", "-c", f"-DCALLER={caller}", f"-DPART={part}",
              "twice.c", twice=TWICE_C)
    path = build("two", "main.c", "first.o", "second.o", main=MAIN_C)
    if not IS_ROOT:
        return
    for end in ("", "%return"):
        result = record("-e", f"uprobe:{path}:twice{end}", "-o", "two.seam",
                        path)
        equal((result.returncode, samples_told(result)), (0, 42),
              result.stderr)
    equal(perf_samples("two.seam"), 42)


def test_a_path_with_spaces_can_be_probed():
    os.makedirs("a folder", exist_ok=True)
    path = os.path.abspath("a folder/starts: of all")
    os.replace(build("starts", "starts.c", starts=STARTS_C), path)
    if not IS_ROOT:
        return
    result = record("-e", probe(path=path), "-o", "sp.seam", path, "5")
    equal((result.returncode, samples_told(result)), (0, 5), result.stderr)


def defined():
    """The probes that recorders have in tracefs: name and pid."""
    folder = os.path.abspath("tracefs")
    os.makedirs(folder, exist_ok=True)
    words = private_mounts(folder)
    text = run(*words, "sh", "-c", f"mount -t tracefs none {folder} && "
               f"cat {folder}/uprobe_events")
    if not words or text.returncode:
        raise Skip("tracefs cannot be mounted here")
    return re.findall(r"\w:seam/(p(\d+)_\w+) ", text.stdout)


def test_no_probe_is_left_in_the_kernel():
    if not IS_ROOT:
        return
    sleeping = subprocess.Popen(["sleep", "60"])
    killed = subprocess.Popen([SEAM, "record", "-q", "-e", probe(), "-o",
                               "k.seam", "-p", str(sleeping.pid)])
    try:
        while not os.path.exists("k.seam/meta.json"):
            equal(killed.poll(), None, "the recorder ended:")
            time.sleep(0.01)
        left = [name for name, pid in defined() if int(pid) == killed.pid]
        equal(len(left), 1, "of a recorder that runs:")
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        sleeping.kill()
        sleeping.wait()
    recorder = subprocess.Popen([SEAM, "record", "-q", "-e", probe(), "-o",
                                 "n.seam", starts(), "3"])
    equal(recorder.wait(60), 0)
    check(not {killed.pid, recorder.pid} & {int(pid) for _, pid in defined()},
          f"{defined()}")


sys.exit(run_tests(globals()))
