#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: what was not recorded is reported, and nothing else is touched"""
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from record_lib import (NOBODY, SAMPLE, SEAM, as_nobody, check, compile_c,
                        end_group, equal, manifest, perf, record, recorded,
                        run, run_tests, running, samples_told, types_of,
                        wait_for)
from tap import Skip

KILLS = int(os.environ.get("SEAM_KILLS", "1000")) // 40


def told_in_every_view(path, *words):
    """Lossy, in the table, in JSON, and on stderr of what has no place."""
    report = run(SEAM, "report", path)
    equal(report.returncode, 3, report.stdout + report.stderr)
    check("nothing lost" not in report.stdout, report.stdout)
    for word in words:
        check(word in report.stdout, f"{word}: {report.stdout}")
    text = run(SEAM, "report", "--json", path)
    equal(text.returncode, 3)
    check(json.loads(text.stdout)["lost"]["causes"], text.stdout)
    folded = run(SEAM, "convert", "--to", "folded", path, "-o", "/dev/null")
    equal(folded.returncode, 3, folded.stderr)
    for word in words:
        check(word in folded.stderr, f"{word}: {folded.stderr}")


# --- what is replaced ---


def test_a_folder_of_another_owner_is_never_replaced():
    for name in ("thesis", "a.seam.old"):
        os.mkdir(name)
        with open(f"{name}/data", "w", encoding="ascii") as out:
            out.write("years of work")
    for _ in range(3):
        for output in ("thesis", "a.seam", "a.seam"):
            result = record("-o", output, "true")
            if output == "thesis":
                equal(result.returncode, 1, result.stderr)
                check("'thesis' exists and is not a recording of yours" in
                      result.stderr, result.stderr)
    for name in ("thesis", "a.seam.old"):
        with open(f"{name}/data", encoding="ascii") as text:
            equal(text.read(), "years of work")
        shutil.rmtree(name)


def test_what_prevented_the_check_is_the_cause():
    with open("file", "w", encoding="ascii"):
        pass
    os.symlink("loop", "loop")
    for output, cause in (("file/a.seam", "Not a directory"),
                          ("loop/a.seam", "Too many levels of symbolic"),
                          ("n" * 300, "File name too long"),
                          ("nowhere/a.seam", "No such file or directory")):
        result = record("-o", output, "true")
        equal(result.returncode, 1, result.stderr)
        check(cause in result.stderr and "exists" not in result.stderr,
              result.stderr)


def test_what_prevents_connections_is_the_cause():
    for call, n, error, cause in (
            ("socket", 1, "EMFILE", "make a socket for programs: Too many op"),
            ("epoll_create1", 2, "ENOMEM", "make a socket for programs: Can"),
            ("epoll_ctl", 2, "ENOSPC", "socket for programs: No space left"),
            ("bind", 1, "EACCES", "': Permission denied")):
        result = run("strace", "-o", "/dev/null", "-e",
                     f"inject={call}:error={error}:when={n}", SEAM, "record",
                     "-v", "-o", "l.seam", "true")
        equal(result.returncode, 0, result.stderr)
        check("JITs write files: cannot " in result.stderr and
              cause in result.stderr, result.stderr)


def test_a_recording_that_was_moved_meanwhile_is_named_where_it_is():
    result = recorded("-o", "m.seam", "sh", "-c", "mv m.seam elsewhere.seam")
    check("in 'elsewhere.seam'" in result.stderr, result.stderr)
    check(manifest("elsewhere.seam")["complete"])


def test_a_recording_that_was_removed_meanwhile_is_reported():
    for what, status in (("exit 0", 3), ("exit 4", 4)):
        for gone in ("r.seam", "r.seam/data"):
            shutil.rmtree("r.seam", ignore_errors=True)
            result = record("-o", "r.seam", "sh", "-c",
                            f"rm -r {gone}; {what}")
            equal(result.returncode, status, result.stderr)
            check("was removed while it was written" in result.stderr,
                  result.stderr)
            check("samples in" not in result.stderr, result.stderr)


# --- signals ---


def ignore(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


def started(path, *words, until="", **options):
    until = until or f"{path}/meta.json"
    process = subprocess.Popen([SEAM, "record", "-o", path, *words],
                               stderr=subprocess.PIPE, text=True, **options)
    wait_for(until, process)
    return process


def test_an_interrupt_ends_what_a_script_put_into_the_background():
    with running("./spin", "100000000000") as target:
        for number in (signal.SIGINT, signal.SIGTERM):
            process = started("i.seam", "-p", str(target.pid),
                              preexec_fn=ignore(number))
            process.send_signal(number)
            _, text = process.communicate(timeout=30)
            equal(process.returncode, 0, text)
            check(manifest("i.seam")["complete"], text)
            shutil.rmtree("i.seam")


def test_a_command_in_the_background_does_not_keep_its_recorder():
    process = started("i.seam", "sleep", "100", preexec_fn=ignore(
        signal.SIGINT), start_new_session=True)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    end_group(process)
    equal(process.returncode, 128 + signal.SIGINT)
    check(manifest("i.seam")["complete"])


def test_nohup_is_respected():
    process = started("n.seam", "sleep", "100", preexec_fn=ignore(
        signal.SIGHUP), start_new_session=True)
    process.send_signal(signal.SIGHUP)
    with open(f"/proc/{process.pid}/status", encoding="ascii") as text:
        fields = dict(line.split(":", 1) for line in text)
    check(int(fields["SigBlk"], 16) >> signal.SIGHUP - 1 & 1 == 0, "blocked")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    end_group(process)
    equal(process.returncode, 128 + signal.SIGTERM)


# --- tracepoints ---

SCHED = ("-e", "sched:sched_switch", "-m", "8")


def has_tracepoints():
    """Else the refusal names what would help, and nothing is left."""
    if os.geteuid() == 0:
        return True
    result = record(*SCHED, "-o", "t.seam", "true")
    equal(result.returncode, 1, result.stderr)
    check("tracefs" in result.stderr or "CAP_PERFMON" in result.stderr,
          result.stderr)
    check(not os.path.exists("t.seam"), "left behind")
    return False


def formats_of(path):
    """What the table behind the data, as long as it is now, leads to."""
    with open(f"{path}/data", "rb") as file:
        content = file.read()
    end = sum(struct.unpack_from("<QQ", content, 40))
    check(content[72] & 2, "no formats")
    at, size = struct.unpack_from("<QQ", content, end)
    check(content[at:].startswith(b"\x17\x08Dtracing"), "not their place")
    return content[at:at + size]


def test_perf_reads_tracepoints_of_a_recorder_that_was_killed():
    if not has_tracepoints():
        return
    dice = random.Random(13)
    seen = 0
    for _ in range(KILLS):
        shutil.rmtree("k.seam", ignore_errors=True)
        process = subprocess.Popen(
            [SEAM, "record", "-q", *SCHED, "-o", "k.seam", "sh", "-c",
             "while :; do sleep 0.001; done"], start_new_session=True,
            stderr=subprocess.DEVNULL)
        wait_for("k.seam")
        time.sleep(dice.random() * 0.05)
        process.kill()
        end_group(process)
        check(b"sched_switch" in formats_of("k.seam"), "which")
        seen += types_of("k.seam").count(SAMPLE)
    check(seen > 0, "no event in all")
    perf("script", "-i", "k.seam", "-F", "time,event")


def test_perf_reads_tracepoints_of_a_full_disk():
    if not has_tracepoints():
        return
    for call in ("pwritev", "pwrite64"):
        for n in (16, 2, 5, 9, 13):
            shutil.rmtree("f.seam", ignore_errors=True)
            result = run("strace", "-o", "/dev/null", "-e", "inject="
                         f"{call}:error=ENOSPC:when={n}+", SEAM, "record",
                         *SCHED, "-o", "f.seam", "sh", "-c",
                         "for i in 1 2 3; do sleep 0.01; done")
            if os.path.exists("f.seam"):
                formats_of("f.seam")
                if n == 16:
                    perf("script", "-i", "f.seam", "-F", "event",
                         silent=False)
                check(result.returncode in (0, 3), result.stderr)
            else:
                equal(result.returncode, 1, result.stderr)


def test_a_format_that_cannot_be_read_is_reported_before_anything_runs():
    if not has_tracepoints():
        return
    for error in ("EMFILE", "EACCES", "EIO"):
        result = run("strace", "-o", "trace", "-P",
                     "events/sched/sched_switch/format", "-e",
                     f"inject=openat:error={error}", SEAM, "record",
                     "-e", "sched:sched_switch", "-o", "e.seam", "touch",
                     "ran")
        equal(result.returncode, 1, result.stderr)
        check("cannot read 'events/sched/sched_switch/format' of tracefs" in
              result.stderr, result.stderr)
        check(not os.path.exists("ran") and not os.path.exists("e.seam"))


# --- nothing lost, they said ---


def test_a_program_with_another_user_s_rights_is_reported():
    if os.geteuid() != 0:
        return          # nor can such a user make a program that is setuid
    compile_c("setuid", "int main(void) { volatile int i; "
              "for (i = 0; i < 30000000; i++) ; return 0; }")
    os.chmod("setuid", 0o4755)
    folder = tempfile.mkdtemp(dir=".", prefix="nobody-")
    os.chown(folder, NOBODY, NOBODY)
    if os.statvfs(".").f_flag & os.ST_NOSUID:
        raise Skip("nothing is setuid here")
    for words, n in ((("../setuid",), 1), (("sh", "-c", "../setuid; true"), 1),
                     (("sh", "-c", "../setuid; ../setuid; ../spin 1000"), 2),
                     (("--per-thread", "sh", "-c", "../setuid; true"), 1)):
        result = record("-o", "s.seam", *words, cwd=folder,
                        preexec_fn=as_nobody)
        path = f"{folder}/s.seam"
        equal(result.returncode, 3, result.stderr)
        check("'setuid'" in result.stderr, result.stderr)
        equal(manifest(path)["not_recorded"]["programs"], n)
        told_in_every_view(path, "another user's rights")
    result = recorded("-q", "-o", "s.seam", "sh", "-c", "../spin 1000; true",
                      cwd=folder, preexec_fn=as_nobody)


THREADS_C = """
#include <pthread.h>
#include <unistd.h>
static void *wait_(void *a) { usleep(300000); return a; }
int main(void)
{
	pthread_t t[60];
	for (int i = 0; i < 60; i++) {
		pthread_create(&t[i], 0, wait_, 0);
		usleep(1000);
	}
	for (int i = 0; i < 60; i++)
		pthread_join(t[i], 0);
	return 0;
}
"""


def test_threads_for_which_descriptors_do_not_suffice_are_reported():
    compile_c("threads", THREADS_C)
    result = record("--per-thread", "-m", "2", "-o", "t.seam", "./threads",
                    preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_NOFILE, (120, 120)))
    equal(result.returncode, 3, result.stderr)
    check("threads not sampled: cannot open the events: Too many open "
          "files" in result.stderr, result.stderr)
    check("ended before" not in result.stderr, result.stderr)
    check(manifest("t.seam")["not_recorded"]["threads"] > 10)
    told_in_every_view("t.seam", "threads not sampled")


def test_a_recording_that_its_program_cut_is_reported():
    compile_c("cut", """
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
int main(int n, char **words)
{
	struct stat st;
	long size = atol(words[1]);
	volatile unsigned long x = 0;
	/* until there are records to cut */
	do {
		for (int i = 0; i < 20000000; i++) x += i;
		if (stat("c.seam/data", &st)) return 8;
	} while (st.st_size < 4096 && clock() < 10 * CLOCKS_PER_SEC);
	if (truncate("c.seam/data", size + (size < 0 ? st.st_size : 0)))
		return 9;
	for (int i = 0; i < 20000000; i++) x += i;
	return n - 2;
}
""")
    for size in ("0", "100", "600", "-60"):
        result = record("-F", "10000", "-m", "4", "-o", "c.seam", "./cut",
                        size)
        equal(result.returncode, 3, result.stderr)
        check("by another process" in result.stderr, result.stderr)
        check("lost" in result.stderr, result.stderr)
        equal(samples_told(result), 0, size)
        check(manifest("c.seam")["lost"]["not_written"] > 0, size)
        # its header is left, and whole records after it
        if size not in ("0", "100"):
            told_in_every_view("c.seam", "not written")


sys.exit(run_tests(globals()))
