#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: the n-th descriptor, allocation or system call fails

A part of all n by default, every one with SEAM_SWEEP=all (./dev soak sweep).
"""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import sys

from record_lib import (FOLDER, SEAM, check, compile_c, equal, need_strace,
                        run, run_tests, running)
from tap import Skip

FAIL_NTH = os.path.abspath(sys.argv[2])
ALL = os.environ.get("SEAM_SWEEP") == "all"
IS_ASAN = b"__asan_init" in open(SEAM, "rb").read()
STATUS = 5      # of the command, where it runs
DICE = random.Random(7)

TARGET_C = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned long x;
static void *work(void *a)
{ for (unsigned long i = 0; i < 3000000; i++) x += i; return a; }
int main(int n, char **words)
{
	pthread_t t;
	close(open("ran", O_CREAT | O_WRONLY, 0600));
	if (n > 2)
		pause();
	pthread_create(&t, 0, work, 0);
	work(0);
	pthread_join(t, 0);
	return atoi(words[1]);
}
"""
COMMAND = ("--", "./target", str(STATUS))

# What is recorded, and how many n are tried of each kind of failure.
MODES = {
    "launched": COMMAND,
    "attached": ("-p", "PID", "--duration", "0.02"),
    "system-wide": ("-a", *COMMAND),
    "per-thread": ("--per-thread", *COMMAND),
    "tracepoints": ("-e", "sched:sched_process_*", "-e", "cpu-clock",
                    *COMMAND),
    "overwrite": ("--overwrite", "--snapshot-every", "0.005", *COMMAND),
    "compressed": ("-z", *COMMAND),
}
if len(sys.argv) > 3:   # libseam-fdr is built; it is found beside seam
    shutil.copy(sys.argv[3], FOLDER)
    MODES["calls"] = ("--trace", *COMMAND)
    MODES["flight"] = ("--flight-recorder", "--trigger=work>1us", *COMMAND)
if os.geteuid() != 0:   # refused to such a user, whatever fails
    del MODES["system-wide"], MODES["tracepoints"]

# Calls, and what they may fail with.
CALLS = {
    "openat": "EMFILE", "mkdir": "ENOSPC", "mkdirat": "EACCES",
    "rename": "EACCES", "renameat": "EIO", "perf_event_open": "EMFILE",
    "mmap": "ENOMEM", "ioctl": "EINVAL", "read": "EIO",
    "pread64": "EIO", "pwrite64": "ENOSPC", "pwritev": "EIO",
    "write": "ENOSPC", "fallocate": "ENOSPC", "ftruncate": "EIO",
    "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM", "signalfd4": "EMFILE",
    "socket": "EMFILE", "bind": "EACCES", "listen": "EADDRINUSE",
    "clone": "EAGAIN", "pipe2": "EMFILE", "pidfd_open": "EMFILE",
    "fstat": "EIO", "newfstatat": "EACCES", "getdents64": "EIO",
    "copy_file_range": "EIO", "unlinkat": "EACCES", "rmdir": "EACCES",
    "readlink": "EACCES", "dup": "EMFILE", "fcntl": "EMFILE",
    "prlimit64": "EPERM", "sched_getaffinity": "EINVAL",
}
TEXTS = {name: os.strerror(getattr(__import__("errno"), name))
         for name in set(CALLS.values())}


def build_target():
    if os.path.exists("target"):
        return
    compile_c("target", TARGET_C, "-finstrument-functions")
    # what is recorded over: the old one
    run(SEAM, "record", "-q", "-o", "old.seam", "true")
    check(os.path.exists("old.seam/meta.json"), "the old recording")


def prepare():
    """w.seam is a recording that is whole; returns what tells it."""
    for name in os.listdir("."):
        if name.startswith(("w.", ".seam-")):
            shutil.rmtree(name)
    if os.path.exists("ran"):
        os.unlink("ran")
    shutil.copytree("old.seam", "w.seam")
    return os.stat("w.seam/data").st_ino


def is_whole(path):
    if not os.path.exists(f"{path}/meta.json"):
        return False
    with open(f"{path}/meta.json", encoding="utf-8") as text:
        complete = json.load(text)["complete"]
    dump = run(SEAM, "dump", path)
    check(dump.returncode in (0, 3), f"{path}: {dump.stderr}")
    return complete


def check_outcome(where, result, inode, cause, mode):
    """What must hold, whatever it was that failed."""
    text = f"{where}: {result.returncode} {result.stderr}"
    ran = os.path.exists("ran")
    check(0 <= result.returncode < 128, text)
    for word in ("Sanitizer", "runtime error", "free():", "corrupted"):
        check(word not in result.stderr, text)
    if ran and "PID" not in MODES[mode]:
        equal(result.returncode, STATUS, text)
    places = [place for place in ("w.seam", "w.seam.old", "w.seam.older")
              if os.path.exists(f"{place}/data") and
              os.stat(f"{place}/data").st_ino == inode]
    check(places, f"the old recording is gone: {text}")
    check(is_whole(places[0]), f"the old one is not whole: {text}")
    if places == ["w.seam"]:
        check(result.returncode not in (0, STATUS), text)
    elif not is_whole("w.seam"):
        check("cut short" in result.stderr, text)
    if result.returncode in (1, 126):
        check("out of memory" not in result.stderr or
              "ENOMEM" in where, f"another cause: {text}")
        check(cause in result.stderr or ("EMFILE" in where and
              "ulimit -n" in result.stderr), f"not the cause, {cause}: {text}")
    left = [name for name in os.listdir(".") if name.startswith(".seam-")]
    check(not left or "unlinkat" in where or "rmdir" in where or
          "getdents" in where, f"{left} is left of {text}")


def record(mode, target, *before, **options):
    words = [str(target.pid) if word == "PID" else word
             for word in MODES[mode]]
    return run(*before, SEAM, "record", "-F", "2000", "-m", "16", "-o",
               "w.seam", *words, **options)


def numbers(most, few):
    """Some of 1 to most: the first and last, and others by chance."""
    if ALL or most <= few:
        return range(1, most + 1)
    some = set(DICE.sample(range(1, most + 1), few - 1)) | {most}
    return sorted(some)


def try_one(failures, *what):
    """check_outcome(); in the long run the first failure is not the last."""
    try:
        check_outcome(*what)
    except AssertionError as failure:
        if not ALL:
            raise
        failures.append(str(failure))


def target_of(mode):
    """A program to attach to, where the mode wants one."""
    return running("./target", "0", "wait") if "PID" in MODES[mode] else \
        contextlib.nullcontext()


def sweep_descriptors(mode, few):
    def limit(n):
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))
    failures = []
    with target_of(mode) as target:
        for n in numbers(90 if ALL else 40, few):
            if n < 4:
                continue    # those of the program that starts it
            inode = prepare()
            result = record(mode, target, preexec_fn=limit(n))
            if result.returncode == 127 and "shared libraries" in \
                    result.stderr:
                continue    # it was not even loaded
            try_one(failures, f"{mode}: EMFILE, RLIMIT_NOFILE {n}", result, inode,
                    TEXTS["EMFILE"], mode)
    return failures


def sweep_allocations(mode, few, goes_on):
    if IS_ASAN:
        raise Skip("the sanitizer's allocator is in the way")
    env = {**os.environ, "LD_PRELOAD": FAIL_NTH, "MALLOC_PERTURB_": "165",
           "FAIL_COUNT": os.path.abspath("n_calls")}
    if goes_on:
        env["FAIL_ON"] = "1"
    failures = []
    with target_of(mode) as target:
        prepare()
        record(mode, target, env=env)
        with open("n_calls", encoding="ascii") as text:
            most = int(text.read())
        for n in numbers(most, few):
            inode = prepare()
            result = record(mode, target, env={**env, "FAIL_AT": str(n)})
            try_one(failures, f"{mode}: ENOMEM at {n} of {most}"
                    f"{' and on' if goes_on else ''}", result, inode, "",
                    mode)
    return failures


def inject(mode, target, call, error, n):
    result = record(mode, target, "strace", "-o", "trace", "-e",
                    f"trace={call}", "-e",
                    f"inject={call}:error={error}:when={n}",
                    env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    with open("trace", encoding="utf-8", errors="replace") as text:
        trace = text.read()
    return result, "(INJECTED)" in trace, trace.count(f"{call}(")


def sweep_call(mode, target, call, few, failures):
    error = CALLS[call]
    # those of the loader come first, and are none of ours
    _, _, loader = count_calls(call)
    prepare()
    _, _, most = inject(mode, target, call, error, 100000)
    for n in numbers(max(most - loader, 0), few):
        inode = prepare()
        result, injected, _ = inject(mode, target, call, error, n + loader)
        if injected:
            cause = TEXTS[error] if error in ("EMFILE", "ENOSPC") else ""
            try_one(failures, f"{mode}: {error} at {call} {n + loader}",
                    result, inode, cause, mode)


def count_calls(call):
    """Of a program that does nothing: what its start takes."""
    result = run("strace", "-o", "trace", "-e", f"trace={call}", SEAM,
                 "--version")
    with open("trace", encoding="utf-8", errors="replace") as text:
        return result, False, text.read().count(f"{call}(")


def sweep_calls(mode, few, calls):
    need_strace()
    failures = []
    with target_of(mode) as target:
        for call in calls:
            sweep_call(mode, target, call, few, failures)
    return failures


def sweep(few, one):
    """one(mode, few) in each mode: a failure does not hide the others."""
    build_target()
    failures = []
    for mode in os.environ.get("SEAM_SWEEP_MODES", ",".join(MODES)).split(","):
        try:
            failures += one(mode, few)
        except AssertionError as failure:
            failures.append(f"{failure}")
    check(not failures, "\n".join(failures))


def test_a_descriptor_that_is_not_to_be_had_is_reported():
    sweep(4, sweep_descriptors)


def test_an_allocation_that_fails_is_reported():
    sweep(5, lambda mode, few: sweep_allocations(mode, few, False))


def test_when_no_more_memory_is_to_be_had_it_is_reported():
    sweep(3, lambda mode, few: sweep_allocations(mode, few, True))


def test_a_system_call_that_fails_is_reported():
    # each call in some mode; in the long run all in all
    modes = list(MODES)

    def one(mode, few):
        mine = [call for i, call in enumerate(CALLS)
                if ALL or modes[i % len(modes)] == mode]
        return sweep_calls(mode, few, mine)
    sweep(1, one)


if ALL and re.fullmatch("[0-9]+", os.environ.get("SEAM_SWEEP_SEED", "")):
    DICE.seed(int(os.environ["SEAM_SWEEP_SEED"]))
sys.exit(run_tests(globals()))
