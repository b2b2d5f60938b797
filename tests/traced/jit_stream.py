#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""JITs that stream their code into a recording: jit_stream.py SEAM JIT TARGET

The records of a program with libseam-jitdump under 'seam record' are in the
recording's jit/ as ordinary jitdumps, whatever becomes of the program, and
the program makes no file.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (SEAM, check, equal, manifest, perf,  # noqa: E402
                        record, run, run_tests)

JIT, TARGET = (os.path.abspath(path) for path in sys.argv[2:4])
LINE = re.compile(r"pid (\d+) offered (\d+) lost (\d+) path (.*)")


def records(path):
    """All records of a jitdump; it must be whole and as specified."""
    result = run(SEAM, "dump", "--json", path)
    equal(result.returncode, 0, result.stderr)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    check(not any(line.get("damaged") or line["type"] == "note"
                  for line in lines), f"not clean: {path}")
    return lines


def names(path):
    return [line["name"] for line in records(path)
            if line["type"] == "JIT_CODE_LOAD"]


def dump_of(name, pid):
    return os.path.join(name, "jit", f"jit-{pid}.dump")


def stream(mode, n, *options, name="s.seam", status=0, environment=None):
    """Record the target; the lines it printed, and the manifest's counts."""
    env = dict(os.environ, **(environment or {}))
    result = record(*options, "-o", name, "--", TARGET, mode, str(n), env=env)
    if status is None:          # depends on which is faster
        check(result.returncode in (0, 3), result.stderr)
    else:
        equal(result.returncode, status, result.stderr)
    printed = [(int(m[1]), int(m[2]), int(m[3]), m[4])
            for m in LINE.finditer(result.stdout)]
    return printed, manifest(name).get("jit"), result


def no_file_of(pid):
    for folder in ("/tmp", os.environ.get("HOME", "/"), "."):
        path = os.path.join(folder, f"jit-{pid}.dump")
        check(not os.path.exists(path), f"{path} was made")


def test_the_example_is_named_and_makes_no_file():
    result = record("-o", "e.seam", "--", JIT, "100")
    equal(result.returncode, 0, result.stderr)
    check("dump: streamed to the recorder" in result.stdout, result.stdout)
    files = os.listdir("e.seam/jit")
    equal(len(files), 1)
    no_file_of(int(re.search(r"\d+", files[0])[0]))
    report = run(SEAM, "report", "e.seam").stdout
    for name in ("triangle", "countdown"):
        check(re.search(rf"jit +{name} +\[jit\]", report), report)
    check("[unknown]" not in report, report)
    annotated = run(SEAM, "annotate", "countdown", "e.seam")
    check("countdown.bf" in annotated.stdout, annotated.stdout +
          annotated.stderr)


def test_the_target_opens_no_file_for_writing():
    result = run("strace", "-f", "-e", "trace=open,openat,creat", "-o",
                 "calls", SEAM, "record", "-o", "t.seam", "--", TARGET,
                 "load", "10")
    equal(result.returncode, 0, result.stderr)
    pid = LINE.search(result.stdout)[1]
    with open("calls", encoding="utf-8", errors="replace") as lines:
        wrote = [line for line in lines if line.startswith(pid + " ") and
                 re.search("O_WRONLY|O_RDWR|O_CREAT|creat", line)]
    equal(wrote, [])


def check_by_perf(data):
    """perf names the example's code, with lines and unwinding tables."""
    os.environ["HOME"] = os.getcwd()    # perf caches what it makes there
    for name in glob.glob("**/jitted-*", recursive=True):
        os.remove(name)
    perf("inject", "--jit", "-i", data, "-o", "p.data")
    text = perf("script", "-i", "p.data", "-F", "ip,sym,dso", silent=False)
    equal({line.split()[1].split("+")[0] for line in text.splitlines()
           if "/jitted-" in line}, {"triangle", "countdown"})
    text = perf("script", "-i", "p.data", "-F", "ip,sym,srcline",
                silent=False)
    for name in "triangle", "countdown":
        check(f"{name}.bf:3" in text, text)
    files = glob.glob("**/jitted-*", recursive=True)
    equal(len(files), 3)
    tables = run("readelf", "-wf", *files).stdout
    check("DW_CFA_def_cfa_register: r6 (rbp)" in tables, tables)


def test_plain_perf_reads_what_was_streamed():
    record("-o", "p.seam", "--", JIT, "100")
    check_by_perf("p.seam/data")


def test_plain_perf_reads_a_dump_that_is_a_file():
    perf("record", "-q", "-B", "-k", "mono", "-g", "-e", "cpu-clock", "-F",
         "999", "-o", "perf.data", JIT, "100", os.getcwd())
    check_by_perf("perf.data")


def test_all_that_was_loaded_is_there_in_order():
    printed, counts, _ = stream("load", 5000)
    pid, offered, lost, path = printed[0]
    equal((offered, lost, path), (5000, 0, ""))
    equal(names(dump_of("s.seam", pid)), [f"f_{pid}_{i}" for i in range(5000)])
    equal(counts, {"streams": 1, "records": 5000, "lost": 0,
                   "refused_groups": 0, "refused_rings": 0})


def test_what_a_killed_program_streamed_is_there():
    printed, counts, _ = stream("kill", 3000, status=128 + signal.SIGKILL)
    pid = printed[0][0]
    # The ring holds all of them, so none depends on timing.
    equal(names(dump_of("s.seam", pid)), [f"f_{pid}_{i}" for i in range(3000)])
    equal((counts["records"], counts["lost"]), (3000, 0))


def test_a_flood_through_a_tiny_ring_is_counted_exactly():
    for mode, ending in ("flood", 3), ("flood-kill", 128 + signal.SIGKILL):
        name = mode + ".seam"
        printed, counts, result = stream(mode, 50000, "--jit-ring", "4K",
                                      name=name, status=ending)
        pid = printed[0][0]
        loads = names(dump_of(name, pid))
        # 4 KiB of records of some 150 bytes.
        check(15 < counts["records"] < 40, counts)
        equal(counts["records"] + counts["lost"], 50000)
        equal(len(loads), counts["records"])
        # In order, and the end is missing: nothing was lost in between.
        equal(loads, [f"f_{pid}_{i}" for i in range(len(loads))])
        check(f"{counts['lost']} pieces of JIT code lost" in
              result.stderr, result.stderr)
        report = run(SEAM, "report", name)
        equal(report.returncode, 3, report.stdout)
        check(f"{counts['lost']} pieces of JIT code lost" in
              report.stdout + report.stderr, report.stdout + report.stderr)


def test_a_child_has_a_stream_of_its_own_with_the_live_code():
    printed, counts, _ = stream("fork", 100)
    (parent, parent_n, _, _), (child, child_n, _, path) = printed
    equal(path, "")
    own = names(dump_of("s.seam", parent))
    equal(len(own), 102)
    loads = [r for r in records(dump_of("s.seam", child))
             if r["type"] == "JIT_CODE_LOAD"]
    equal([r["name"] for r in loads],
          [f"moved_{parent}_1001"] +
          [f"f_{parent}_{i}" for i in range(100)] + [f"child_{child}_2000"])
    equal(loads[0]["code_addr"], 0x900000)
    equal({r["pid"] for r in loads}, {child})
    equal(counts["records"], parent_n + child_n)
    equal(counts["lost"], 0)


def children_of(printed):
    """The children's functions in the recording; they print nothing."""
    parent = printed[0][0]
    return sorted(int(name.rsplit("_", 1)[1])
                  for file in os.listdir("s.seam/jit")
                  for name in names(f"s.seam/jit/{file}")
                  if file != f"jit-{parent}.dump")


def test_children_that_end_at_once_are_verified():
    printed, counts, _ = stream("many", 3)     # as many rings are ready
    equal(children_of(printed), [0, 1, 2])
    equal((counts["records"], counts["lost"]), (3, 0))


def test_a_fork_in_the_middle_of_a_call_is_survived():
    printed, _, _ = stream("busy-many", 8, status=None)
    parent = printed[0][0]
    for file in os.listdir("s.seam/jit"):
        loads = names(f"s.seam/jit/{file}")
        if file != f"jit-{parent}.dump":
            equal(loads[0], f"stays_{parent}_0")
            check(loads[-1].startswith("child_"), loads)
            # besides them what the thread had loaded just then
            check(len(loads) <= 3, loads)


def test_the_rings_of_programs_that_ended_are_freed():
    # Each new program wakes the recorder, which then finds those that ended.
    script = (f"for i in $(seq 60); do {TARGET} load 10; done; "
              "ls -l /proc/$PPID/fd | grep memfd:seam-rings | wc -l")
    result = record("-o", "l.seam", "--", "sh", "-c", script)
    n = int(result.stdout.splitlines()[-1])
    check(n <= 10, f"{n} of 60 programs that ended still have their rings")
    # On a busy machine one may give up waiting for its ring: it has a file.
    printed = LINE.findall(result.stdout)
    equal(len(printed), 60, result.stdout)
    files = [path for *_, path in printed if path]
    for path in files:
        equal(len(names(path)), 10, path)
        os.remove(path)
    check(len(files) < 20, f"{len(files)} of 60 programs did not stream")
    check(result.returncode in (0, 3 if files else 0), result.stderr)
    n_streams = 60 - len(files)
    counts = manifest("l.seam")["jit"]
    equal((counts["streams"], counts["records"], counts["lost"]),
          (n_streams, 10 * n_streams, 0))


def test_children_without_a_ring_are_counted():
    name = "f.seam"
    result = record("-o", name, "--", TARGET, "many", "40")
    check(result.returncode in (0, 3), result.stderr)
    counts = manifest(name)["jit"]
    equal(counts["records"] + counts["lost"], 40)
    equal(counts["refused_rings"], 0)


def test_a_process_that_becomes_another_keeps_one_dump():
    for mode in "exec", "reopen":
        printed, counts, _ = stream(mode, 10)
        loads = [r for r in records(dump_of("s.seam", printed[0][0]))
                 if r["type"] == "JIT_CODE_LOAD"]
        equal(len(loads), 20, mode)
        equal(len({r["code_index"] for r in loads}), 20, mode)
        equal((counts["streams"], counts["records"]), (2, 20), mode)


def test_code_that_is_freed_does_not_fill_memory():
    # 200,000 functions are 40 MB of records; the limit is on all the memory.
    result = record("-o", "c.seam", "--", "sh", "-c",
                    f"ulimit -v 300000; {TARGET} churn 200000")
    counts = manifest("c.seam")["jit"]
    printed = LINE.search(result.stdout)
    check(printed, result.stdout + result.stderr)
    equal(counts["records"] + counts["lost"], 200000)
    equal(printed[3], "0")


def test_live_code_is_found_among_freed_code():
    printed, counts, _ = stream("keep", 300, status=None)
    child = printed[-1][0]
    loads = names(dump_of("s.seam", child))
    equal(loads, [f"live_{printed[0][0]}_{i}" for i in range(300)] +
          [f"child_{child}_0"])
    equal(counts["records"] + counts["lost"], printed[0][1] + 301)


def test_a_child_without_memory_leaves_its_parent_alone():
    printed, counts, _ = stream("no-memory", 100, status=3)
    pid, offered, lost, _ = printed[0]
    equal((offered, lost), (101, 0))
    equal(names(dump_of("s.seam", pid)),
          [f"first_{pid}_0"] + [f"f_{pid}_{i}" for i in range(100)])
    # What the child inherits needs no memory; only the large one is lost.
    equal((counts["records"], counts["lost"]), (103, 1))


def test_losses_of_a_program_whose_ring_was_closed_are_counted():
    printed, counts, _ = stream("closed-ring", 100, status=3)
    equal(printed[0][1:3], (200, 100))
    equal(len(names(dump_of("s.seam", printed[0][0]))), 100)
    equal((counts["records"], counts["lost"]), (100, 100))


def test_a_file_beside_a_stream_is_kept_too():
    printed, counts, _ = stream("two-dumps", 3)
    pid, path = printed[0][0], printed[1][3]
    equal(names(dump_of("s.seam", pid)), ["streamed"])
    equal(names(f"s.seam/jit/jit-{pid}-{pid}.dump"), ["filed"])
    equal((counts["records"], counts["lost"]), (1, 0))
    os.unlink(path)
    if os.uname().machine not in ("x86_64", "aarch64"):
        return
    report = run(SEAM, "report", "s.seam")
    equal(report.returncode, 0, report.stdout)
    for name in "streamed", "filed":
        equal(len(re.findall(rf"{name} +\[jit\]", report.stdout)), 1,
              report.stdout)
    check("[anon" not in report.stdout, report.stdout)


def test_a_function_larger_than_the_ring_comes_in_parts():
    size = 3 << 20
    printed, counts, _ = stream("big", size, "--jit-ring", "64K")
    loads = [r for r in records(dump_of("s.seam", printed[0][0]))
             if r["type"] == "JIT_CODE_LOAD"]
    equal([r["name"] for r in loads], ["big", "small"])
    equal(bytes.fromhex(loads[0]["code"]),
          bytes(i * 7 % 251 for i in range(size)))
    equal((counts["records"], counts["lost"]), (2, 0))


def test_a_hostile_program_harms_no_other():
    script = f"{TARGET} hostile 5000; {TARGET} load 10"
    result = record("-o", "h.seam", "--", "sh", "-c", script)
    check(result.returncode in (0, 3), result.stderr)
    liar = int(re.search(r"hostile (\d+)", result.stdout)[1])
    pid = int(LINE.search(result.stdout)[1])
    equal(len(names(dump_of("h.seam", pid))), 10)
    lies = dump_of("h.seam", liar)
    if os.path.exists(lies):
        lines = records(lies)
        start = manifest("h.seam")["start"]["monotonic_ns"]
        for line in lines[1:]:
            check(line.get("pid", liar) == liar, line)
            check(start <= line["timestamp"] < start + 120 * 10**9, line)
    check(manifest("h.seam")["jit"]["refused_groups"] > 0)
    equal(run(SEAM, "report", "h.seam").returncode, result.returncode)


def test_a_file_is_written_without_a_recorder():
    for link in ("/nowhere/at/all", "@nobody", "x" * 300, ""):
        result = run(TARGET, "load", "10", env=dict(
            os.environ, SEAM_LINK=link, JITDUMPDIR=os.getcwd()))
        equal(result.returncode, 0, result.stderr)
        path = LINE.search(result.stdout)[4]
        equal(len(names(path)), 10, link)
        os.unlink(path)


def test_a_folder_in_the_options_means_a_file():
    os.mkdir("named")
    result = record("-o", "n.seam", "--", JIT, "10", "named")
    check("dump: named/jit-" in result.stdout, result.stdout)
    equal(len(os.listdir("named")), 1)
    equal(len(os.listdir("n.seam/jit")), 1)
    # sometimes it ends before the recorder opens its file
    for _ in range(8):
        shutil.rmtree("named")
        os.mkdir("named")
        record("-q", "-o", "n.seam", "--", JIT, "10", "named")
        equal(len(os.listdir("n.seam/jit")), 1)


def test_other_programs_do_not_notice():
    plain = run("sh", "-c", "ls /proc/self/fd | wc -l").stdout
    result = record("-o", "o.seam", "--", "sh", "-c",
                    "ls /proc/self/fd | wc -l; echo $SEAM_LINK")
    equal(result.returncode, 0, result.stderr)
    fds, link = result.stdout.splitlines()
    equal(fds, plain.strip())
    check(link.startswith(("/", "@")), link)
    check(not os.path.exists(link), "the socket was not removed")
    check("jit" not in manifest("o.seam"))


def test_a_program_goes_on_when_its_recorder_is_killed():
    recorder = subprocess.Popen(
        [SEAM, "record", "-o", "k.seam", "--", TARGET, "hold", "1000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    first = LINE.match(recorder.stdout.readline())
    recorder.kill()
    recorder.wait()
    recorder.stdin.write("go on\n")
    recorder.stdin.close()
    second = LINE.match(recorder.stdout.readline())
    recorder.stdout.close()
    check(first and second and second[2] == "2000", "it did not go on")


def test_a_snapshot_has_what_was_streamed_until_then():
    recorder = subprocess.Popen(
        [SEAM, "record", "--overwrite", "-o", "o.seam", "--", TARGET, "hold",
         "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True)
    pid = LINE.match(recorder.stdout.readline())[1]
    equal(run(SEAM, "snapshot", "o.seam").returncode, 0)
    recorder.communicate("go on\n", timeout=60)
    equal(names(dump_of("o.1.seam", pid)),
          [f"f_{pid}_{i}" for i in range(1000)])
    equal(manifest("o.1.seam")["jit"]["records"], 1000)
    equal(len(names(dump_of("o.seam", pid))), 2000)


def end_without_waiting(recorder):
    """The first signal is for the command, a second one ends us at once."""
    while recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            pass


def test_a_program_that_outlives_the_recording_counts_its_losses():
    recorder = subprocess.Popen(
        [SEAM, "record", "-o", "m.seam", "--", "sh", "-c",
         f"trap '' INT; exec {TARGET} hold 1000"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    first = LINE.match(recorder.stdout.readline())
    end_without_waiting(recorder)
    recorder.stdin.write("go on\n")
    recorder.stdin.close()
    second = LINE.match(recorder.stdout.readline())
    recorder.stdout.close()
    check(first and second, "it did not go on")
    equal((first[3], second[3], second[4]), ("0", "1000", ""))
    equal(manifest("m.seam")["jit"]["records"], 1000)


sys.exit(run_tests(globals()))
