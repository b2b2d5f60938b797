#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Perf maps are followed: a name is that of its time.

The programs here run code at one address under several names, one after the
other, and print when they ran which: that is the truth that a recording is
held against.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import time

from record_lib import (FOLDER, IS_ROOT, SEAM, check, end_group, manifest,
                        end_private_mounts, equal, private_mounts, record,
                        run, run_tests)
from tap import Skip

# reuse N MS [late]: N names for MS of CPU time each, at one address.  late:
# all names are written at the end; mute: none is.  A line on stdin (with
# "wait") begins it.
REUSE_C = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now(clockid_t id)
{ struct timespec t; clock_gettime(id, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
#if defined(__x86_64__)
static const unsigned char code[] = {
	0xb9, 0x40, 0x42, 0x0f, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
#else
static const unsigned code[] = { 0x52a00200, 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#endif
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), ms = atoi(argv[2]);
	const char *mode = argc > 3 ? argv[3] : "";
	char path[64];
	void *page;
	FILE *map;

	printf("pid %d\n", getpid());
	fflush(stdout);
	if (!strcmp(mode, "wait"))
		(void)!getchar();
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof(code));
	__builtin___clear_cache(page, (char *)page + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(strcmp(mode, "mute") ? path : "/dev/null", "w");
	for (int i = 0; i < n; i++) {
		double began, end;

		fprintf(map, "%lx 40 phase_%d\n", (long)page, i);
		if (strcmp(mode, "late"))
			fflush(map);
		began = now(CLOCK_MONOTONIC);
		end = now(CLOCK_PROCESS_CPUTIME_ID) + ms * 1e6;
		while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
			((void (*)(void))page)();
		printf("phase_%d %.0f %.0f\n", i, began, now(CLOCK_MONOTONIC));
		fflush(stdout);
	}
	fclose(map);
	if (!strcmp(mode, "copy"))
		rename(path, "the.map");
	else if (strcmp(mode, "mute"))
		unlink(path);
	return 0;
}
"""
SLACK_NS = 30_000_000   # of an edge: file times are of ticks, machines stall


def build():
    source = os.path.join(FOLDER, "reuse.c")
    with open(source, "w", encoding="ascii") as out:
        out.write(REUSE_C)
    subprocess.run(["cc", "-O1", "-o", os.path.join(FOLDER, "reuse"), source],
                   check=True)


def report(name, *options):
    result = run(SEAM, "report", "--json", *options, name)
    check(result.returncode in (0, 3), result.stderr)
    return json.loads(result.stdout)


def rows(name, *options):
    return {row["symbol"]: row["self"]
            for row in report(name, *options)["rows"]
            if row["layer"] == "jit" and row["self"]}


def expect_truth(name, stdout, n):
    """In the middle of each phase there is no name but its own."""
    told = re.findall(r"(phase_\d+) (\d+) (\d+)", stdout)
    equal(len(told), n)
    start = report(name)["start_ns"]
    seen = 0
    for phase, began, ended in told:
        began, ended = int(began) + SLACK_NS, int(ended) - SLACK_NS
        if began < start:
            continue
        found = rows(name, "--time", f"{(began - start) / 1e9:.6f},"
                     f"{(ended - start) / 1e9:.6f}")
        equal(set(found), {phase}, told)
        seen += 1
    check(seen >= n - 1, f"only {seen} phases were in the recording")


def test_an_address_used_again_has_the_name_of_its_time():
    result = record("-o", "r.seam", "--", "./reuse", "5", "120")
    equal(result.returncode, 0, result.stderr)
    expect_truth("r.seam", result.stdout, 5)
    files = sorted(os.listdir("r.seam/jit"))
    equal(len(files), 2, files)
    check(files[1] == files[0] + ".times", files)
    with open("r.seam/jit/" + files[0], encoding="ascii") as text:
        equal(re.findall(r"phase_\d", text.read()),
              [f"phase_{i}" for i in range(5)])
    check(not any("reused" in row for row in rows("r.seam")), rows("r.seam"))


def attach(name, *command, before=0.0):
    """Record what runs already, and let it begin then."""
    target = subprocess.Popen(command, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
    try:
        pid = re.search(r"\d+", target.stdout.readline())[0]
        time.sleep(before)
        with subprocess.Popen([SEAM, "record", "-o", name, "-p", pid],
                              stderr=subprocess.PIPE, text=True) as recorder:
            while not os.path.exists(f"{name}/meta.json"):
                check(recorder.poll() is None, "the recorder has ended")
                time.sleep(0.01)
            out, _ = target.communicate("\n", timeout=60)
            errors = recorder.communicate(timeout=60)[1]
            equal(recorder.returncode, 0, errors)
    finally:
        end_group(target)
    return out


def test_so_has_one_of_a_program_that_ran_already():
    expect_truth("a.seam", attach("a.seam", "./reuse", "5", "120", "wait"), 5)


def test_the_inner_pid_of_a_namespace_names_the_map():
    unshare = ["unshare", "--pid", "--fork", "--mount", "--propagation",
               "unchanged"] + ([] if IS_ROOT else ["-r"])
    if run(*unshare, "true").returncode != 0:
        return          # nor is there such a process to be recorded
    result = record("-o", "ns.seam", "--", *unshare, "sh", "-c",
                    "mount --make-rprivate /proc && mount -t proc proc /proc"
                    " && exec ./reuse 4 120")
    equal(result.returncode, 0, result.stderr)
    expect_truth("ns.seam", result.stdout, 4)


def test_a_map_of_another_mount_namespace_is_followed():
    unshare = private_mounts("/tmp")
    if not unshare:
        return          # nor is there such a process to be recorded
    result = record("-o", "mnt.seam", "--", *unshare, "sh", "-c",
                    "mount -t tmpfs none /tmp && exec \"$0\" 4 120",
                    os.path.abspath("reuse") if not
                    os.getcwd().startswith("/tmp") else
                    shutil.copy("reuse", "/var/tmp/seam-test-reuse"))
    end_private_mounts("/tmp")
    if os.path.exists("/var/tmp/seam-test-reuse"):
        os.unlink("/var/tmp/seam-test-reuse")
    equal(result.returncode, 0, result.stderr)
    expect_truth("mnt.seam", result.stdout, 4)


def test_names_written_late_are_used_and_marked():
    result = record("-o", "l.seam", "--", "./reuse", "3", "100", "late")
    equal(result.returncode, 0, result.stderr)
    found = rows("l.seam")
    equal(set(found), {"phase_2 [address reused]"})


def test_a_map_without_times_is_marked_and_counted():
    shutil.copytree("r.seam", "u.seam")
    for name in os.listdir("u.seam/jit"):
        if name.endswith(".times"):
            os.unlink("u.seam/jit/" + name)
    found = rows("u.seam")
    equal(set(found), {"phase_4 [address reused]"})
    # of the stacks, whose leaf may be in the kernel or in a library
    note = re.compile(r"(\d+) samples at addresses that a perf map names more "
                      "than once")
    for words in (["report"], ["report", "--json"], ["report", "--tree"],
                  ["convert", "--to", "folded", "-o", "-"]):
        result = run(SEAM, *words, "u.seam")
        if result.returncode == 2:      # spelt otherwise here
            continue
        counted = note.search(result.stdout + result.stderr)
        check(counted and sum(found.values()) <= int(counted[1]) <=
              manifest("u.seam")["samples"],
              words + [result.stdout[:300], result.stderr[:300]])


def test_a_snapshot_has_the_maps_and_their_times():
    with subprocess.Popen([SEAM, "record", "--overwrite", "-o", "f.seam", "--",
                           "./reuse", "8", "120"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as recorder:
        for line in recorder.stdout:
            if "phase_3" in line:
                break
        run(SEAM, "snapshot", "f.seam")
        recorder.communicate(timeout=60)
    made = [name for name in os.listdir(".") if re.match(r"f\..*1.*seam|"
                                                         r"f-1.seam", name)]
    made = made or [name for name in os.listdir(".")
                    if name.startswith("f") and name.endswith(".seam") and
                    name != "f.seam"]
    equal(len(made), 1, os.listdir("."))
    equal(len(os.listdir(made[0] + "/jit")), 2)
    found = rows(made[0])
    check(len(found) > 1 and not any("reused" in name for name in found),
          found)


HOSTILE = {
    "a fifo": "mkfifo",
    "a link": "ln -s /etc/shadow",
    "a folder": "mkdir",
}


def test_what_is_no_map_of_the_process_is_left_alone():
    for what, command in HOSTILE.items():
        script = (f"rm -rf /tmp/perf-$$.map; {command} /tmp/perf-$$.map; "
                  "exec ./reuse 1 200 mute")
        result = record("-o", "h.seam", "--", "sh", "-c", script, timeout=60)
        check(result.returncode in (0, 3), what + result.stderr)
        check(not os.path.isdir("h.seam/jit") or not os.listdir("h.seam/jit"),
              what)
        check(re.search("maps? ", result.stderr), what + result.stderr)
        pid = re.search(r"pid (\d+)", result.stdout)[1]
        run("rm", "-rf", f"/tmp/perf-{pid}.map")


def test_node_reuses_addresses_and_no_name_is_marked():
    if not shutil.which("node"):
        raise Skip("no node")
    script = """
let k = 0, until = Date.now() + 1000;
while (Date.now() < until) {
  const f = new Function('a', `let s = 0; for (let i = 0; i < 30000; i++)
      s += a * i; return s + ${k++}`);
  for (let j = 0; j < 4; j++) f(j);
}
"""
    with open("gc.js", "w", encoding="ascii") as out:
        out.write(script)
    result = record("-o", "node.seam", "--", "node", "--perf-basic-prof",
                    "--max-semi-space-size=1", "gc.js")
    equal(result.returncode, 0, result.stderr)
    files = sorted(os.listdir("node.seam/jit"))
    equal(len(files), 2, files)
    # V8 leaves its map: the copy is that, byte for byte.
    left = "/tmp/" + files[0]
    with open(left, "rb") as theirs, open("node.seam/jit/" + files[0],
                                          "rb") as ours:
        check(theirs.read() == ours.read(), "the copy differs")
    os.unlink(left)
    found = rows("node.seam")
    # V8 10 says LazyCompile and Function, V8 11 JS
    check(any(re.match("JS:|LazyCompile:|Function:", name) for name in found),
          found)
    total = sum(found.values())
    marked = sum(n for name, n in found.items() if "reused" in name)
    check(marked < total / 20, f"{marked} of {total} are marked")


if __name__ == "__main__":
    build()
    sys.exit(run_tests(globals()))
