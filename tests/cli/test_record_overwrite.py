#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record --overwrite and seam snapshot: the newest samples, each whole"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, check, compile_c, end_group, equal,
                        manifest, perf_read, record, recorded, run, run_tests,
                        running, wait_for)


def cpu_seconds(process):
    """CPU time of the command that this recorder records."""
    try:
        with open(f"/proc/{process.pid}/task/{process.pid}/children",
                  encoding="ascii") as children:
            command = children.read().split()[0]
        with open(f"/proc/{command}/stat", encoding="ascii") as stat:
            ticks = stat.read().rpartition(")")[2].split()[11:13]
    except (FileNotFoundError, IndexError):
        return 0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def let_it_run(process, seconds):
    """Until the command has used CPU time, whatever else the machine does."""
    wanted = cpu_seconds(process) + seconds
    while process.poll() is None and cpu_seconds(process) < wanted:
        time.sleep(0.005)


def overwriting(name, *words):
    """A recorder with overwritten rings, of a program of two threads, until it samples."""
    process = subprocess.Popen(
        [SEAM, "record", "--overwrite", "-F", "20000", "-m", "8", "-g", "-o",
         name, *words, "./spin", "10000000000"],
        stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_for(f"{name}/meta.json")
    let_it_run(process, 0.3)    # for the rings to go round more than once
    return process


def end(process):
    """By an interrupt to the recorder, which passes it on; what it said."""
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=30)
    equal(process.returncode, 128 + signal.SIGINT, text)
    return text


def times(path):
    """Of all samples, seconds, by perf, which sorts them."""
    text = perf_read(path, "script", "-F", "time", "-G")
    return [float(t) for t in re.findall(r"^ *([\d.]+):", text, re.M)]


def in_file_order(path):
    """(cpu, ns) of each sample in the file, by seam dump --json or text."""
    text = run(SEAM, "dump", path).stdout
    return [line for line in text.splitlines()
            if line.split()[1:2] == ["SAMPLE"]]


def check_snapshot(path):
    told = manifest(path)
    check(told["complete"] and told["overwrite"], f"{told}")
    text = perf_read(path, "script", "-F", "comm,tid,time,event,ip", "-G")
    equal(len(text.splitlines()), told["samples"], path)
    equal(len(in_file_order(path)), told["samples"], path)
    check(told["samples"] > 20, f"{told['samples']} samples in {path}")
    names = perf_read(path, "script", "-F", "comm", "-G").split()
    equal(set(names), {"spin"})
    text = perf_read(path, "report", "--stdio", "--no-children", "-g", "none",
                     "-F", "overhead,sym")
    check("leaf" in text, text)
    return times(path)


def test_a_snapshot_is_requested_by_name_and_by_process():
    process = overwriting("n.seam")
    try:
        first = run(SEAM, "snapshot", "n.seam")
        equal(first.returncode, 0, first.stderr)
        equal(first.stdout.strip(), os.path.abspath("n.1.seam"))
        let_it_run(process, 0.05)
        second = run(SEAM, "snapshot", str(process.pid))
        equal(second.stdout.strip(), os.path.abspath("n.2.seam"))
        let_it_run(process, 0.05)
        end(process)
    finally:
        end_group(process)
    one, two, last = (check_snapshot(f"n{i}.seam") for i in (".1", ".2", ""))
    check(max(one) < max(two) < max(last), "each holds what is newest")
    for ring in manifest("n.1.seam")["rings"]:
        check(ring["drained_bytes"] <= ring["bytes"] == 8 * 4096 or
              ring["kind"] == "sideband", f"more than it holds: {ring}")


def test_snapshots_leave_no_descriptor_open():
    """After the first one, whose copy of the kernel's symbols is kept open."""
    process = overwriting("d.seam")
    n_open = []
    for _ in range(3):
        equal(run(SEAM, "snapshot", "d.seam").returncode, 0)
        n_open.append(len(os.listdir(f"/proc/{process.pid}/fd")))
    end(process)
    equal(n_open[1:], n_open[:1] * 2)


def test_a_snapshot_needs_no_other():
    process = overwriting("m.seam")
    try:
        equal(run(SEAM, "snapshot", "m.seam").returncode, 0)
    finally:
        end_group(process)      # killed: only the snapshot is left
    run("rm", "-r", "m.seam")
    check_snapshot("m.1.seam")


def test_a_loss_that_stays_in_the_ring_is_counted_once():
    """Each snapshot reads the LOST records of those before it again."""
    record("--overwrite", "--snapshot-every", "0.02", "-m", "64", "-F",
           "20000", "-o", "l.seam", "./spin", "1500000000")
    counts = manifest("l.seam")
    check(sum(ring["lost"] for ring in counts["rings"]) <=
          counts["lost"]["paused"] + counts["lost"]["ring_full"],
          f"{counts['rings']}: {counts['lost']}")


def test_snapshots_come_at_intervals_and_the_last_is_the_recording():
    result = record("--overwrite", "--snapshot-every", "0.05", "-m", "4",
                    "-F", "20000", "-o", "i.seam", "./spin", "300000000")
    # a sample may come while the rings are paused, for no other reason
    lost = re.search(r"lost (\d+) records?.* (\d+) while snapshots were copied",
                     result.stderr)
    if lost:
        equal(lost[1], lost[2], result.stderr)
    equal(result.returncode, 3 if lost else 0, result.stderr)
    made = re.findall(r"snapshot in '(i\.\d+\.seam)'", result.stderr)
    check_paused(made + ["i.seam"])
    check(len(made) >= 2, result.stderr)
    ends = [max(times(path)) for path in made + ["i.seam"]]
    equal(ends, sorted(ends), "the newest sample of each:")


def test_the_kernels_symbols_are_one_file_for_all_snapshots():
    result = record("--overwrite", "--snapshot-every", "0.05", "-m", "4",
                    "-F", "20000", "-o", "k.seam", "dd", "if=/dev/zero",
                    "of=/dev/null", "bs=1", "count=200000")
    made = re.findall(r"snapshot in '(k\.\d+\.seam)'", result.stderr)
    check(made, result.stderr)
    paths = [f"{path}/kernel.sym.zst" for path in made + ["k.seam"]]
    paths = [path for path in paths if os.path.exists(path)]
    if not IS_ROOT and "kernel" in manifest("k.seam")["left_out"]:
        equal(paths, [], "of a user who may not see the kernel:")
        return
    equal(len({os.stat(path).st_ino for path in paths}), 1, f"{paths}")
    # each is whole without the others
    shutil.rmtree("k.seam")
    for path in made[1:]:
        shutil.rmtree(path)
    os.rename(made[0], "elsewhere.seam")
    check(os.path.getsize("elsewhere.seam/kernel.sym.zst") > 1000)
    check(run(SEAM, "report", "elsewhere.seam").returncode in (0, 3))


TOUCH_C = r"""
#include <sys/mman.h>
int main(void)
{
	char *p = mmap(0, 1 << 22, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 100; i++) {
		for (int at = 0; at < 1 << 22; at += 4096)
			p[at] = 1;
		madvise(p, 1 << 22, MADV_DONTNEED);
	}
	return 0;
}
"""


def test_each_snapshot_counts_what_snapshots_lost():
    compile_c("touch", TOUCH_C)
    result = record("--overwrite", "--snapshot-every", "0.02", "-m", "64",
                    "-e", "page-faults", "-c", "1", "-o", "t.seam", "./touch")
    made = re.findall(r"snapshot in '(t\.\d+\.seam)'", result.stderr)
    check_paused(made + ["t.seam"])


def check_paused(paths):
    """Each tells of what was lost until then, and why; never of less."""
    paused = [manifest(path)["lost"]["paused"] for path in paths]
    equal(paused, sorted(paused))
    for path in paths:
        told = manifest(path)
        # FORMAT_LOST counts what LOST records in its rings tell of, and more
        equal(told["lost"]["ring_full"], 0, path)
        report = run(SEAM, "report", path).stdout
        check("ring full" not in report, report[:500])
        equal("paused for a snapshot" in report, told["lost"]["paused"] > 0,
              report[:500])


def test_samples_of_a_ring_are_oldest_first():
    record("-q", "--overwrite", "-m", "8", "-F", "20000", "-C", "0", "-o",
           "o.seam", "taskset", "-c", "0", "./spin", "100000000")
    text = run(SEAM, "dump", "--json", "o.seam").stdout
    stamps = [int(t) for t in re.findall(
        r'"type": ?"SAMPLE".*?"time": ?"?(\d+)', text, re.S)]
    if not stamps:      # the text form has it too
        stamps = [float(t) for line in in_file_order("o.seam")
                  for t in re.findall(r"time=(\d+)", line)[:1]]
    check(len(stamps) > 20, text[:200])
    equal(stamps, sorted(stamps))


def test_a_small_recording_keeps_all():
    faults = ("-e", "page-faults:u", "-c", "1", "./spin", "1000")
    result = recorded("--overwrite", "-o", "s.seam", *faults)
    equal(record("-o", "p.seam", *faults).returncode, 0)
    kept, all_ = (manifest(p)["samples"] for p in ("s.seam", "p.seam"))
    check(all_ > 20 and abs(kept - all_) <= all_ // 5, f"{kept} of {all_}")


def test_who_does_not_overwrite_is_left_alone():
    process = subprocess.Popen([SEAM, "record", "-q", "-o", "w.seam",
                                "./spin", "10000000000"],
                               start_new_session=True)
    with running("sleep", "60") as other:
        wait_for("w.seam/meta.json")
        result = run(SEAM, "snapshot", "w.seam")
        equal(result.returncode, 1)
        check("--overwrite" in result.stderr, result.stderr)
        for who in (str(other.pid), "nosuch.seam", "1"):
            equal(run(SEAM, "snapshot", who).returncode, 1)
        process.send_signal(signal.SIGUSR2)
        time.sleep(0.05)
        check(process.poll() is None and other.poll() is None, "it ended")
    end_group(process)


def test_a_snapshot_that_cannot_be_made_is_reported_and_survived():
    os.makedirs("full", exist_ok=True)
    process = overwriting("full/f.seam")
    with open("full/f.1.seam", "w", encoding="ascii") as way:
        way.write("a file of somebody's")
    try:
        process.send_signal(signal.SIGUSR2)
        time.sleep(0.2)
        text = end(process)
    finally:
        end_group(process)
    check("no snapshot in 'full/f.1.seam'" in text and
          "not a recording" in text, text)
    check_snapshot("full/f.seam")


sys.exit(run_tests(globals()))
