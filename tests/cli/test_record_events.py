#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: the kinds of events, what samples hold, how it is stored"""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SEAM, as_nobody, check, compile_c, dumped,
                        end_group, equal, manifest, own_folder_for_nobody,
                        perf, perf_samples, record, recorded, refused, run,
                        run_tests, running, samples_told, wait_for)
from tap import Skip

CALLS_C = r"""
#include <stdio.h>
#include <stdlib.h>
volatile int watched;
__attribute__((noinline)) int called(int i) { return i + watched; }
int main(int c, char **v)
{
	int n = atoi(v[1]), sum = 0;
	if (c > 2) {
		printf("%p\n", (void *)&watched);
		fflush(stdout);
		getchar();
	}
	for (int i = 0; i < n; i++) {
		sum += called(i);
		watched = i;
	}
	return sum == 1;
}
"""


def build_calls():
    return compile_c("calls", CALLS_C)


def whole(result, path):
    """All went well, and everybody counts the same."""
    equal(result.returncode, 0, result.stderr)
    told = samples_told(result)
    equal(dumped(path), told, "dump:")
    by_event = manifest(path)["lost_by_event"]
    equal(sum(e["samples"] for e in by_event), told, "by event:")
    return told


DD = ("dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000")


def needs_root(*words):
    """True for root.  A user is told what is missing instead."""
    if not IS_ROOT:
        told = refused(*words)
        check("CAP_PERFMON" in told or
              re.search("'mount .*gid=GROUP,mode=750 .*tracing'", told), told)
    return IS_ROOT


def test_tracepoints_bring_their_formats_along():
    if not needs_root("-e", "raw_syscalls:sys_enter", "true"):
        return
    result = record(
        "-e", "raw_syscalls:sys_enter,raw_syscalls:sys_exit", "-o", "t.seam",
        *DD)
    told = whole(result, "t.seam")
    check(told > 4000, f"{told} system calls")
    # by now perf may have nothing but the recording to go by
    text = perf("script", "-i", "t.seam")
    equal(len(text.splitlines()), told)
    check("raw_syscalls:sys_enter: NR 0 (" in text, text[:300])
    check(re.search(r"sys_exit: NR 1 = 1$", text, re.M), text[:300])


def test_a_filter_is_the_kernels():
    if not needs_root("-e", "raw_syscalls:sys_enter", "--filter", "id == 1",
                      "true"):
        return
    result = record(
        "-e", "raw_syscalls:sys_enter", "--filter", "id == 1", "-o",
        "f.seam", *DD)
    told = whole(result, "f.seam")
    text = perf("script", "-i", "f.seam")
    equal(text.count("NR 1 ("), told)
    check(1000 <= told < 1100, f"{told} writes")
    bad = record(
        "-e", "raw_syscalls:sys_enter", "--filter", "nosuch == 1", "-o",
        "g.seam", "true")
    equal(bad.returncode, 1)
    check("cannot use filter 'nosuch == 1' for" in bad.stderr, bad.stderr)


def test_a_filter_of_events_without_fields_is_refused():
    result = record("-e", "cpu-clock,page-faults", "--filter", "cpu == 0",
                    "-o", "g.seam", "true")
    equal(result.returncode, 1, result.stderr)
    check("--filter needs a tracepoint or a probe" in result.stderr,
          result.stderr)
    check(not os.path.exists("g.seam/data"), "recorded")


def test_a_pattern_takes_all_that_match():
    if not needs_root("-e", "sched:sched_process_*", "true"):
        return
    result = record(
        "-e", "sched:sched_process_*", "-o", "p.seam", "sh", "-c",
        "true; true | true")
    whole(result, "p.seam")
    names = perf("evlist", "-i", "p.seam").split()
    check({"sched:sched_process_fork", "sched:sched_process_exit",
           "sched:sched_process_exec"} <= set(names), f"{names}")
    text = perf("script", "-i", "p.seam")
    check("sched:sched_process_exec: filename=" in text, text[:300])
    bad = record("-e", "sched:nosuch_*", "true")
    equal(bad.returncode, 1)
    check("no tracepoint 'sched:nosuch_*'" in bad.stderr, bad.stderr)


def test_a_tracepoint_takes_terms():
    if not needs_root("-e", "sched:sched_process_exec/name=run/", "true"):
        return
    result = record(
        "-e", "sched:sched_process_exec/name=run/", "-e",
        "sched:sched_process_exit/period=1/", "-o", "terms.seam", "true")
    whole(result, "terms.seam")
    text = perf("script", "-i", "terms.seam")
    check(" run: filename=" in text, text[:300])
    check("sched:sched_process_exit/period=1/: comm=" in text, text[:300])


def test_tracefs_need_not_be_mounted():
    """Root records tracepoints without it, and nothing is mounted then."""
    if not needs_root("-e", "sched:sched_switch", "true"):
        return
    away = ("unshare", "-m", "--propagation", "unchanged", "sh", "-c",
            'mount --make-rprivate /sys || exit 77; '
            'for m in tracing debug/tracing debug; do umount /sys/kernel/$m; '
            'done 2>/dev/null; exec "$@"', "sh")
    if run("grep", "-Eq", "tracefs|debugfs", "/proc/self/mounts").returncode:
        away = ()
    result = run(*away, "sh", "-c", f"{SEAM} record -o n.seam -e "
                 "sched:sched_process_exec true && cat /proc/self/mounts")
    if result.returncode == 77:
        raise Skip(result.stderr)
    equal(result.returncode, 0, result.stderr)
    check("tracefs" not in result.stdout, result.stdout)
    equal(samples_told(result), 1)


def test_a_probe_fires_at_each_call_and_each_return():
    path = build_calls()
    if not needs_root("-e", f"uprobe:{path}:called", path, "500"):
        return
    for event in (f"uprobe:{path}:called", f"uprobe:{path}:called%return",
                  f"uretprobe:{path}:called",
                  f"uprobe:./{os.path.relpath(path)}:called"):
        result = record("-e", event, "-g", "-o", "u.seam", path, "500")
        equal(whole(result, "u.seam"), 500, event)
        equal(perf_samples("u.seam"), 500, event)
    once = record("-e", f"uprobe:{path}:main", "-o", "u.seam", path, "5")
    check("seam: 1 sample in " in once.stderr and
          "; next: seam report u.seam" in once.stderr, once.stderr)
    bad = record("-e", f"uprobe:{path}:nosuch", "-o", "u.seam", path, "5")
    equal(bad.returncode, 1)
    check("has no function 'nosuch'" in bad.stderr, bad.stderr)
    symbols = run("readelf", "-Ws", path).stdout
    address = int(re.search(r"([0-9a-f]{16}) .* called$", symbols, re.M)[1],
                  16)
    result = record("-e", f"uprobe:{path}:{address:#x}", "-o", "u.seam", path,
                    "77")
    equal(whole(result, "u.seam"), 77, "by offset:")


def test_how_a_probe_is_written_is_reported():
    path = os.path.abspath(build_calls())
    name = os.path.relpath(path)
    for event, wanted in (
            (f"uprobe:./{name}:nosuch",
             f"cannot probe './{name}': it has no function 'nosuch'"),
            ("uprobe:./nope:x", "'./nope': No such file"),
            ("uprobe:/nope:x", "'/nope': No such file"),
            ("uprobe:/:x", "'/': not a regular file"),
            (f"uprobe:{path}", "written uprobe:/path:symbol"),
            ("kprobe:do exit", "written kprobe:function"),
            ("kretprobe:do_exit+4", "kretprobe:function")):
        result = record("-e", event, "-o", "u.seam", "true")
        equal(result.returncode, 1, event)
        told = result.stderr.replace("\n  caused by: ", ": ")
        check(wanted in told, f"{event}: {told}")


def test_a_probe_of_the_kernel_fires_or_the_reason_is_reported():
    path = build_calls()
    event = "kprobe:do_sys_openat2"
    if not needs_root("-e", event, path, "5"):
        return
    if not os.path.exists("/sys/bus/event_source/devices/kprobe"):
        for kind in ("kprobe", "kretprobe"):
            result = record("-e", f"{kind}:do_sys_openat2", "-o", "k.seam",
                            path, "5")
            equal(result.returncode, 1)
            check("CONFIG_KPROBE_EVENTS" in result.stderr, result.stderr)
        return
    for event in ("kprobe:do_sys_openat2", "kretprobe:do_sys_openat2"):
        result = record("-e", event, "-o", "k.seam", "cat", "/dev/null")
        check(whole(result, "k.seam") > 0, event)
    bad = record("-e", "kprobe:no_such_function", "-o", "k.seam", path, "5")
    equal(bad.returncode, 1)
    check("has no function 'no_such_function'" in bad.stderr, bad.stderr)


def test_the_probe_that_the_help_shows_is_hit():
    shown = run(SEAM, "record", "--help").stdout
    words = re.search(r"record -e (uprobe:(/\S+?):\S+)", shown)
    if not os.path.exists(words[2]):
        raise Skip(f"no {words[2]}")
    if not needs_root("-e", words[1], words[2], "-c", "true"):
        return
    result = record("-e", words[1], "-o", "u.seam", words[2], "-c", "true")
    check(whole(result, "u.seam") > 0, result.stderr)


def test_without_samples_the_report_names_no_selection():
    result = record("-e", "alignment-faults:u", "-o", "n.seam", "true")
    equal((result.returncode, samples_told(result)), (0, 0), result.stderr)
    check("next:" not in result.stderr, result.stderr)
    for words in ([], ["--tree"]):
        shown = run(SEAM, "report", *words, "n.seam").stdout
        check("The recording has no samples." in shown and
              "selected" not in shown, shown)


def test_a_watched_address_is_seen_at_each_write():
    path = build_calls()
    target = subprocess.Popen([path, "300", "wait"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    address = target.stdout.readline().strip()
    recorder = subprocess.Popen(
        [SEAM, "record", "-e", f"mem:{address}/4:w", "-o", "b.seam", "-p",
         str(target.pid)], stderr=subprocess.PIPE, text=True)
    wait_for("b.seam/meta.json", recorder)
    if recorder.poll() is not None:
        target.kill()
        raise Skip("no breakpoints here: " + recorder.stderr.read())
    target.communicate("go\n")
    _, text = recorder.communicate(timeout=30)
    equal(recorder.returncode, 0, text)
    equal(manifest("b.seam")["samples"], 300)
    shown = perf("script", "-i", "b.seam", "-F", "addr,sym")
    check(address[2:] in shown, shown[:200])
    many = record(*("-e", "mem:0x1000/4:w") * 20, "-o", "b.seam", "true")
    check(many.returncode == 1 and "no hardware breakpoint is free" in
          many.stderr, many.stderr)


def test_a_group_is_read_whole_at_each_sample_of_its_first():
    # often enough for one before the last page fault
    result = recorded("-F", "4000", "-e", "{cpu-clock,page-faults}:S,cs", "-o",
                      "g.seam", "./spin", "40000000")
    check("not inherited" in result.stderr, result.stderr)
    whole(result, "g.seam")
    check("{cpu-clock,page-faults}" in perf("evlist", "-g", "-i", "g.seam"))
    text = perf("script", "-i", "g.seam", "-F", "event,period,ip", "-G")
    check("page-faults:" in text and "cpu-clock:" in text, text[:200])


def test_an_event_of_a_group_samples_with_its_own_period():
    touch = ("python3", "-c", "bytearray(1 << 24)")
    result = recorded("-e", "page-faults/period=4/", "-o", "p.seam", *touch)
    found = json.loads(run(SEAM, "report", "--json", "p.seam").stdout)
    event = found["events"][0]
    check(event["samples"] > 100, event)
    equal(event["weight"], 4 * event["samples"])
    # of the first alone 1 sample: an event never counts 2^40
    result = recorded("-e", "{cpu-clock/period=1099511627776/,"
                      "page-faults/period=4/,minor-faults}:S", "-o", "r.seam",
                      *touch)
    check(samples_told(result) >= event["samples"] // 2, result.stderr)
    found = json.loads(run(SEAM, "report", "--json", "r.seam").stdout)
    for event in found["events"][1:]:
        check(event["samples"] > 100, event)
        check(event["weight"] < 8 * event["samples"], event)


def attrs(path):
    """Of each event: what perf evlist says of it."""
    found = {}
    for line in perf("evlist", "-v", "-i", path).splitlines():
        name, _, rest = line.partition(": type: ")
        rest = "type: " + rest.replace("{ sample_period, sample_freq }",
                                       "rate")
        found[name] = dict(field.split(": ", 1)
                           for field in rest.split(", ") if ": " in field)
    return found


def test_events_have_terms_of_their_own():
    result = recorded("-e", "cpu-clock/period=1000000,name=mine,call-graph=fp,"
                      "max-stack=7/u,"
                      "cpu-clock/freq=99,call-graph=no,no-inherit/",
                      "-e", "page-faults/name=touched/,cs",
                      "-o", "e.seam", "./spin", "40000000")
    whole(result, "e.seam")
    has = attrs("e.seam/data")
    equal(list(has)[:4], ["mine", "cpu-clock/freq=99,call-graph=no,no-inherit/",
                          "touched", "cs"])
    equal((has["mine"]["rate"], has["mine"]["exclude_kernel"]),
          ("1000000", "1"))
    check("CALLCHAIN" in has["mine"]["sample_type"], has)
    equal(has["mine"]["sample_max_stack"], "7")
    second = has["cpu-clock/freq=99,call-graph=no,no-inherit/"]
    equal((second["rate"], second.get("inherit")), ("99", None))
    check("CALLCHAIN" not in second["sample_type"], has)
    text = run(SEAM, "report", "--event", "mine", "e.seam").stdout
    check("\nmine: " in text and "leaf" in text, text)


def test_a_bare_group_samples_each_of_its_events():
    result = recorded("-e", "{cpu-clock,page-faults}:u", "-o", "b.seam",
                      "./spin", "40000000")
    check("not inherited" not in result.stderr, result.stderr)
    whole(result, "b.seam")
    check("{cpu-clock,page-faults}" in perf("evlist", "-g", "-i", "b.seam"))
    for event in manifest("b.seam")["lost_by_event"]:
        check(event["samples"] > 0, f"{event}")
    threads = set(perf("script", "-i", "b.seam", "-F", "tid", "-G").split())
    equal(len(threads), 2, "threads of the group:")


def test_attrs_are_those_of_perf():
    """What is counted, and what samples hold, beside perf's own dump."""
    for words in (("cpu-clock",), ("cpu-clock:u",), ("page-faults:k",),
                  ("-d", "cpu-clock"), ("software/config=0/",),
                  ("cpu-clock:H",), ("cpu-clock:G",), ("cpu-clock:HG",),
                  ("mem:0x1000/8:rw:u",), ("mem:0x1000:x",),
                  ("{cpu-clock,cs}",), ("{cpu-clock,cs}:k",), ("cs:I",), ("-i", "cpu-clock"),
                  ("cs/call-graph=fp,name=x/",)):
        *flags, event = words
        if not IS_ROOT and event.endswith(":k"):
            check("CAP_PERFMON" in refused("-e", event, "true"), event)
            continue
        call_graph = ("--call-graph", "none") if "fp" not in event else ()
        result = record(*flags, *call_graph, "-e", event, "-o", "o.seam",
                        "true")
        equal(result.returncode, 0, f"{words}: {result.stderr}")
        perf("record", "-B", *flags, "-e", event, "-o", "o.perf", "true",
             silent=False)
        ours = attrs("o.seam/data")
        mine = list(ours.values())[0]
        his = list(attrs("o.perf").values())[0]
        for name in ("type", "config", "exclude_user", "exclude_kernel",
                     "exclude_hv", "exclude_guest", "exclude_host",
                     "inherit", "disabled", "freq", "bp_type", "bp_len"):
            equal(mine.get(name), his.get(name), f"{words}: {name}:")
        for bit in ("ADDR", "DATA_SRC", "CALLCHAIN"):
            if bit == "ADDR" and event.startswith("mem:"):
                continue    # where it was written is worth more than perf's
            equal(bit in mine["sample_type"].split("|"),
                  bit in his["sample_type"].split("|"), f"{words}: {bit}:")


def test_no_inherit_samples_the_command_alone():
    for words in ((), ("--per-thread",)):
        result = recorded("-i", *words, "-o", "i.seam", "./spin", "100000000")
        threads = set(perf("script", "-i", "i.seam", "-F", "tid",
                           "-G").split())
        equal(len(threads), 1, f"threads, {words}:")


def test_a_pmu_of_the_kernel_is_described_in_its_own_terms():
    result = record("-e", "software/config=0/", "-c", "1000000", "-o",
                    "s.seam", "./spin", "40000000")
    if "no PMU" in result.stderr:
        raise Skip("no PMU 'software' in sysfs")
    whole(result, "s.seam")


def records_of(path, name):
    return run(SEAM, "dump", path).stdout.count(f" {name} ")


def test_switches_namespaces_and_cgroups_are_recorded_on_request():
    may = ("--namespaces",) if needs_root("--namespaces", "true") else ()
    result = record("--switch-events", *may, "--cgroups", "-d", "-o",
                    "x.seam", *(("unshare", "-i") if may else ()), "sh", "-c",
                    "./spin 20000000; sleep 0.01")
    whole(result, "x.seam")
    check(records_of("x.seam", "SWITCH") > 2)
    equal(records_of("x.seam", "NAMESPACES") > 0, bool(may))
    equal(perf_samples("x.seam"), samples_told(result))
    record("-q", "-o", "y.seam", "./spin", "1000")
    equal(records_of("y.seam", "SWITCH"), 0)


def test_namespaces_of_the_command_itself_are_recorded():
    if not needs_root("--namespaces", "true"):
        return
    equal(record("--namespaces", "-o", "c.seam", "true").returncode, 0)
    told = re.findall(r"NAMESPACES .*pid=(\d+) tid=(\d+) .*?ino=(0x\w+)",
                      run(SEAM, "dump", "c.seam").stdout)
    equal(len(told), 1, f"{told}")
    equal((told[0][0], int(told[0][2], 16)),
          (told[0][1], os.stat("/proc/self/ns/net").st_ino))


def hierarchy():
    """Where the cgroups are that samples have the numbers of."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        rows = [line.split() for line in mounts]
    own = [row[1] for row in rows
           if row[2] == "cgroup" and "perf_event" in row[3].split(",")]
    return (own + [row[1] for row in rows if row[2] == "cgroup2"] + [None])[0]


def test_namespaces_and_cgroups_that_stand_are_reported():
    if not needs_root("--namespaces", "--cgroups", "true"):
        return
    with contextlib.ExitStack() as stack:
        root = hierarchy()
        if not root:        # a bare chroot has none
            os.mkdir("cgroups")
            equal(run("mount", "-t", "cgroup2", "none", "cgroups").returncode,
                  0)
            stack.callback(run, "umount", "-l", "cgroups")
            root = os.path.abspath("cgroups")
        expect_a_task_in_its_group(os.path.join(root,
                                                f"seam-test-{os.getpid()}"))


def expect_a_task_in_its_group(group):
    os.mkdir(group)
    with contextlib.ExitStack() as stack:
        stack.callback(os.rmdir, group)
        target = stack.enter_context(running("./spin", "10000000000"))
        with open(f"{group}/cgroup.procs", "w", encoding="ascii") as out:
            out.write(str(target.pid))
        number = os.stat(group).st_ino
        inode = os.stat(f"/proc/{target.pid}/ns/net").st_ino
        result = recorded("--namespaces", "--cgroups", "-o", "st.seam", "-p",
                          str(target.pid), "--duration", "0.5")
    text = run(SEAM, "dump", "st.seam").stdout
    at_start = re.findall(r"NAMESPACES .*pid=(\d+) tid=(\d+) .*?ino=(0x\w+)",
                          text)
    equal({pid for pid, _, _ in at_start}, {str(target.pid)})
    equal(len(at_start), 2, "threads")
    equal({int(ino, 16) for _, _, ino in at_start}, {inode})
    told = dict(re.findall(r"CGROUP .*id=(0x\w+) path=\"([^\"]*)\"", text))
    equal(told[hex(number)], "/" + os.path.basename(group))
    equal(told["0x1"], "/")
    sampled = set(re.findall(r" SAMPLE .* cgroup=(\d+)", text))
    equal(sampled, {str(number)}, "of the samples")
    perf("script", "-i", "st.seam", "--show-namespace-events",
         "--show-cgroup-events")


def test_a_compressed_recording_is_smaller_and_the_same_to_all():
    # level 22 takes too long for copies of stacks at this frequency
    words = ("--call-graph", "fp", "-F", "20000")
    plain = record(*words, "-o", "k.seam", "./spin", "200000000")
    equal(plain.returncode, 0)
    for level in ("-z", "-z9", "--compression-level=22"):
        result = record(level, "-m", "4M", *words, "-o", "z.seam", "./spin",
                        "200000000")
        told = whole(result, "z.seam")
        equal(perf_samples("z.seam"), told, level)
        small, large = (os.path.getsize(p + ".seam/data") for p in "zk")
        check(small < large / 2, f"{level}: {small} of {large} bytes")


def test_a_killed_compressed_recording_is_read_to_its_last_batch():
    process = subprocess.Popen(
        [SEAM, "record", "-q", "-z", "-g", "-F", "20000", "-m", "4", "-o",
         "q.seam", "./spin", "10000000000"], start_new_session=True)
    time.sleep(0.5)
    end_group(process)
    result = run(SEAM, "report", "--json", "q.seam")
    check(result.returncode in (0, 3), result.stderr)
    check(dumped("q.seam") > 100, "nothing was read")


def test_auto_takes_what_may_be_locked_and_reports_it():
    result = recorded("-m", "auto", "-o", "a.seam", "./spin", "1000")
    told = re.search(r"rings of (\d+) ([KM])iB", result.stderr)
    check(told, result.stderr)
    told_bytes = int(told[1]) << (20 if told[2] == "M" else 10)
    check(told[2] == "M" or told_bytes % (1 << 20), told[0])
    sizes = {r["bytes"] for r in manifest("a.seam")["rings"]
             if r["kind"] == "samples"}
    equal(sizes, {told_bytes})
    folder = own_folder_for_nobody()
    poor = record("-m", "auto", "-o", os.path.join(folder, "a.seam"),
                  os.path.abspath("spin"), "1000", preexec_fn=as_nobody)
    equal(poor.returncode, 0, poor.stderr)
    check(re.search(r"rings of \d+ [KM]iB", poor.stderr), poor.stderr)


sys.exit(run_tests(globals()))
