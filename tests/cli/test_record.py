#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record, on real programs; perf is the oracle of what it wrote."""
import collections
import ctypes
import errno
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from record_lib import (IS_ROOT, LOST_SAMPLES, NOBODY, SAMPLE, SEAM, as_nobody,
                        build_id, check, check_no_sysctl_that_holds, data_of,
                        end_group, end_private_mounts, equal, manifest,
                        need_strace, own_folder_for_nobody, perf, perf_samples,
                        private_mounts, record, recorded, refused, run,
                        run_tests, running, samples_told, starved, tells_loss,
                        types_of, wait_for, wait_for_samples)


def opens_in_perf_with_the_same_samples(*words):
    result = recorded("-o", "a.seam", *words)
    told = samples_told(result)
    check(told > 0, "no samples")
    equal(perf_samples("a.seam"), told, "samples in perf script:")
    # the event alone: functions have the word in their names too
    check("of event 'dummy" not in perf("report", "-i", "a.seam", "--stdio"))
    equal(manifest("a.seam")["samples"], told)
    check(manifest("a.seam")["complete"])
    return told


def test_perf_opens_a_recording_of_a_c_program_in_silence():
    opens_in_perf_with_the_same_samples("-g", "--", "./spin")
    text = perf("report", "-i", "a.seam", "--stdio", "--no-children",
                "-g", "none", "-F", "overhead,sym")
    check("leaf" in text, text)


def test_perf_opens_a_recording_of_a_compiler_and_all_it_starts():
    opens_in_perf_with_the_same_samples("-g", "cc", "-O1", "-pthread", "-c",
                                        "-o", "spin.o", "spin.c")
    names = perf("report", "-i", "a.seam", "--stdio", "-s", "comm",
                 "--no-children", "-g", "none")
    check("cc1" in names, names)
    # the command has our name until its exec; nobody is without one
    check(" :" not in names, names)


def test_perf_opens_a_recording_of_several_events():
    opens_in_perf_with_the_same_samples(
        "-e", "cpu-clock:u,page-faults", "-e", "cs", "-c", "1000000",
        "--call-graph", "fp", "./spin")
    text = perf("evlist", "-i", "a.seam")
    equal(text.split(), ["cpu-clock:u", "page-faults", "cs", "dummy:HG"])
    counted = collections.Counter(perf("script", "-i", "a.seam", "-F",
                                       "event").split())
    equal({f"{e['event']}:": e["samples"]
           for e in manifest("a.seam")["lost_by_event"] if e["samples"]},
          counted)


def test_perf_shows_the_machine_of_the_recording():
    record("-q", "-o", "a.seam", "--", "./spin", "1000")
    text = perf("report", "-i", "a.seam", "--header-only")
    for word in ("hostname : ", "os release : ", "perf version : seam ",
                 "arch : ", "nrcpus online : ", "cmdline : seam record",
                 "name = cpu-clock", "clockid: monotonic (1)",
                 "pmu mappings: "):
        check(word in text, f"'{word}' is not in: {text}")


def test_the_header_has_the_times_of_the_first_and_the_last_sample():
    # rings of two CPUs, which are drained one after the other
    equal(record("-e", "cpu-clock,page-faults", "-o", "times.seam",
                 "./spin").returncode, 0)
    text = perf("report", "-i", "times.seam", "--header-only")
    told = re.findall(r"time of (?:first|last) sample : ([\d.]+)", text)
    times = [float(t.rstrip(":")) for t in perf(
        "script", "-i", "times.seam", "-F", "time", "-G").split()]
    equal([float(t) for t in told], [min(times), max(times)])


FINISHED_ROUND, FINISHED_INIT = 68, 82

# A sample each time round: 1.6 MiB of them, however fast the machine is.  A
# ring alone holds more than the small disks below, so late draining fills
# them too.
FAULTS = ("-e", "page-faults", "-c", "1", "--", sys.executable, "-c",
          "import mmap\npage = mmap.mmap(-1, 4096)\nfor i in range(20000):\n"
          "    page[0] = 1\n    page.madvise(mmap.MADV_DONTNEED)")


def check_killed(path):
    """Whole batches only, and perf sees every sample in them."""
    if not os.path.exists(os.path.join(path, "data")):
        return 0
    types = types_of(path)
    # the command may have ended first: then loss is told behind the rounds
    check(types[-1] in (LOST_SAMPLES, FINISHED_ROUND, FINISHED_INIT),
          f"the last record has type {types[-1]}")
    # of a ring that was full perf tells, and rightly
    equal(perf_samples(path, silent=not tells_loss(path)),
          types.count(SAMPLE), "samples:")
    return types.count(SAMPLE)


def test_a_kill_at_any_write_leaves_a_file_that_opens():
    need_strace()
    for call, counts in (("pwritev", (1, 2, 3, 6)),
                         ("pwrite64", (1, 2, 3, 4, 5, 6, 7, 9)),
                         ("write", (1, 2)), ("renameat", (1, 2)),
                         ("openat", (8, 20))):
        for n in counts:
            run("strace", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                f"inject={call}:signal=KILL:when={n}", SEAM, "record", "-q",
                "-F", "20000", "-m", "8", "-o", "s.seam", "./spin",
                "10000000")
            if os.path.exists("s.seam"):
                check_killed("s.seam")


def status_of(*command):
    return record("-q", "-o", "a.seam", "--", *command).returncode


def test_the_status_is_that_of_the_command():
    equal(status_of("true"), 0)
    equal(status_of("sh", "-c", "exit 42"), 42)
    equal(status_of("sh", "-c", "kill -9 $$"), 128 + 9)
    equal(status_of("sh", "-c", "kill -TERM $$"), 128 + 15)


def test_the_end_of_the_command_is_seen_where_children_are_ignored():
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    result = record("-q", "-o", "a.seam", "sh", "-c", "exit 7",
                    preexec_fn=ignore, timeout=30)
    equal(result.returncode, 7)


def test_a_command_that_cannot_start_leaves_the_old_recordings():
    record("-q", "-o", "b.seam", "./spin", "1000000")
    first = data_of("b.seam")[0]
    record("-q", "-o", "b.seam", "./spin", "1000000")
    second = data_of("b.seam")[0]
    missing = record("-o", "b.seam", "--", "./no-such-file")
    equal(missing.returncode, 127)
    check("cannot start './no-such-file': No such file" in missing.stderr,
          missing.stderr)
    equal(record("-o", "b.seam", "--", "./spin.c").returncode, 126)
    equal(data_of("b.seam")[0], second)
    equal(data_of("b.seam.old")[0], first)
    record("-q", "-o", "b.seam", "./spin", "1000000")
    equal(data_of("b.seam.old")[0], second)
    check(not os.path.exists("b.seam.older"), "what came before is left over")


def test_usage_errors_are_reported_and_start_nothing():
    for words in ((), ("--per-thread", "-C", "0")):
        equal(record("-o", "u.seam", *words).returncode, 2, words)
    for words in (("-F", "x"), ("-m", "0"), ("-a", "-p", "1"), ("--nosuch",),
                  ("-F", "9", "-c", "9"), ("-o", "-"), ("-o-",),
                  ("--call-graph", "lbr"), ("--per-thread", "-a"),
                  ("-C", "x"), ("-p", "1,"),
                  ("-t", "0"), ("-C", ""), ("--duration", "0"),
                  ("--max-size", "1X"), ("--watermark", "-1"),
                  ("--per-thread", "--overwrite"), ("-z0",), ("-z23",),
                  ("-zx",)):
        result = record("-o", "u.seam", *words, "touch", "t")
        equal(result.returncode, 2, f"{words}: {result.stderr}")
        check(result.stderr.startswith("seam"), result.stderr)
    for words in (("-C", "4000", "touch", "t"), ("-t", "4194300")):
        equal(record("-o", "u.seam", *words).returncode, 1, words)
    check(not os.path.exists("t") and not os.path.exists("u.seam"))


def test_the_size_printed_is_that_of_the_folder():
    result = record("-g", "-o", "size.seam", "./spin", "100000000")
    told = re.search(r"s, ([\d.]+) (KiB|MiB) in 'size.seam'", result.stderr)
    check(told, result.stderr)
    size = sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk("size.seam") for name in names)
    equal(told[1], f"{size / {'KiB': 1024, 'MiB': 1 << 20}[told[2]]:.1f}")


def test_an_event_that_is_not_there_is_named_with_a_way_out():
    result = record("-e", "nosuch", "-o", "e.seam", "touch", "t")
    equal(result.returncode, 1)
    check("no event is named 'nosuch'" in result.stderr, result.stderr)
    doctor = json.loads(run(SEAM, "doctor", "--json").stdout)
    gone = [e["name"] for e in doctor["events"] if not e["available"]]
    if gone:
        result = record("-e", gone[0], "-o", "e.seam", "touch", "t")
        equal(result.returncode, 1)
        check("cpu-clock" in result.stderr, result.stderr)
    check(not os.path.exists("t") and not os.path.exists("e.seam"))


def cut_short_for(cause, path, **options):
    """A recording that ends so; what was written until then is whole."""
    result = record("-o", path, *FAULTS, **options)
    equal(result.returncode, 3, result.stderr)
    check("pwritev at offset" in result.stderr and cause in result.stderr and
          "cut short" in result.stderr, result.stderr)
    equal(check_killed(path), samples_told(result))
    told = manifest(path)
    check(told["complete"] and told["lost"]["not_written"] > 0, f"{told}")
    equal(told["samples"], samples_told(result))
    equal(sum(event["samples"] for event in told["lost_by_event"]),
          told["samples"], "samples by event")


def test_a_full_disk_ends_the_recording_and_not_the_command():
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    cut_short_for("File too large", "f.seam", preexec_fn=limit)
    if not IS_ROOT:     # who cannot mount
        return
    os.makedirs("small", exist_ok=True)
    equal(run("mount", "-t", "tmpfs", "-o", "size=256k", "none",
              "small").returncode, 0)
    try:
        cut_short_for("No space left on device", "small/a.seam")
    finally:
        run("umount", "small")


def test_who_ended_the_recording_is_reported():
    for option, value in (("--duration", "0.05"), ("--max-size", "1K")):
        result = record(option, value, "-o", "l.seam", "--", "./spin",
                        "100000000")
        check(f"{option} ended the recording; COMMAND continues" in
              result.stderr, result.stderr)
    check("ended the recording" not in
          record("-o", "l.seam", "./spin", "1000").stderr)


def test_a_recording_that_was_not_ended_reports_it():
    process = subprocess.Popen([SEAM, "record", "-q", "-o", "u.seam",
                                "./spin", "10000000000"],
                               start_new_session=True)
    wait_for("u.seam/meta.json")
    process.kill()
    process.wait()
    end_group(process)
    report = run(SEAM, "report", "u.seam")
    equal(report.returncode, 3, report.stdout)
    check("nothing lost" not in report.stdout and
          "its recorder was killed, or still runs" in report.stdout,
          report.stdout)


def test_a_recording_whose_name_was_taken_is_found_again():
    first = subprocess.Popen([SEAM, "record", "-o", "t.seam", "sh", "-c",
                              "./spin 40000000; sleep 1"],
                             stderr=subprocess.PIPE, text=True)
    wait_for("t.seam/meta.json")
    record("-o", "t.seam", "true")
    _, text = first.communicate(timeout=30)
    check("in 't.seam.old'; next: seam report t.seam.old" in text, text)


def test_a_folder_that_cannot_be_written_is_named():
    os.makedirs("locked", exist_ok=True)
    os.chmod("locked", 0o555)
    options = {"preexec_fn": as_nobody} if os.geteuid() == 0 else {}
    result = record("-o", "locked/a.seam", "true", **options)
    equal(result.returncode, 1)
    check("cannot create folder 'locked/a.seam': Permission denied" in
          result.stderr, result.stderr)


def test_a_user_without_rights_records_user_code():
    folder = own_folder_for_nobody()
    path = os.path.join(folder, "a.seam")
    with open("/proc/sys/kernel/perf_event_paranoid",
              encoding="ascii") as text:
        level = int(text.read())
    if level > 2:       # as Debian and Ubuntu have it: not even that
        check("sysctl kernel.perf_event_paranoid=2" in
              refused("-g", "./spin"))
        return
    result = record("-g", "-o", path, "./spin", preexec_fn=as_nobody)
    if level < 2:
        equal((result.returncode, manifest(path)["left_out"]), (0, []))
        return
    equal(result.returncode, 0, result.stderr)
    notes = [line for line in result.stderr.splitlines()
             if "user code only" in line]
    equal(len(notes), 1, result.stderr)
    check("kernel.perf_event_paranoid=1" in notes[0] and
          "CAP_PERFMON" in notes[0], notes[0])
    shown = run("perf", "script", "-i", path, "-F", "comm,ip", "-G",
                preexec_fn=as_nobody)
    equal(shown.stderr, "")
    equal(len(shown.stdout.split("\n")) - 1, samples_told(result))
    check(samples_told(result) > 0)
    equal(manifest(path)["left_out"], ["kernel"])
    noted = run(SEAM, "report", path, preexec_fn=as_nobody)
    check("samples of user code only: the user who recorded has no right to "
          "samples of the kernel" in noted.stdout + noted.stderr, noted.stdout)
    kernel = record("-e", "cpu-clock:k", "-o", path, "./spin",
                    preexec_fn=as_nobody)
    equal(kernel.returncode, 1)
    check("CAP_PERFMON" in kernel.stderr, kernel.stderr)


def test_rings_shrink_to_what_the_user_may_lock():
    folder = own_folder_for_nobody()

    def poor():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
        as_nobody()

    result = recorded("-m", "64M", "-o", os.path.join(folder, "a.seam"),
                      "./spin", preexec_fn=poor)
    check("perf_event_mlock_kb" in result.stderr, result.stderr)
    check(samples_told(result) > 0)


def test_descriptors_are_raised_when_they_run_out():
    def few():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (14, hard))

    result = recorded("-o", "a.seam", "sh", "-c", "ulimit -n", preexec_fn=few)
    equal(result.stdout, "14\n", "the command's own limit:")


def test_the_command_inherits_nothing_of_ours():
    script = ("import os,re\n"
              "print(sorted(os.listdir('/proc/self/fd'), key=int))\n"
              "s = open('/proc/self/status').read()\n"
              "print(re.findall(r'Sig(?:Blk|Ign):\\s*(\\w+)', s))\n")
    plain = run(sys.executable, "-c", script)
    ours = record("-q", "-o", "a.seam", sys.executable, "-c", script)
    equal(ours.stdout, plain.stdout)


def test_an_interrupt_from_the_terminal_ends_command_and_recording():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(SEAM, [SEAM, "record", "-o", "c.seam", "./spin",
                        "10000000000"])
    wait_for_samples("c.seam")
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    equal(os.waitstatus_to_exitcode(status), 128 + signal.SIGINT)
    check(manifest("c.seam")["complete"])
    equal(perf_samples("c.seam"), manifest("c.seam")["samples"])


def start_long_one(name, *command):
    """Record into @name, which no test before has used, until it is going."""
    process = subprocess.Popen([SEAM, "record", "-o", name, *command],
                               stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    wait_for_samples(name)
    return process


def test_a_request_to_end_is_passed_to_the_command():
    process = start_long_one("t.seam", "./spin", "10000000000")
    process.terminate()
    process.communicate(timeout=30)
    equal(process.returncode, 128 + signal.SIGTERM)
    check(manifest("t.seam")["complete"])
    check(perf_samples("t.seam") > 0)


def wait_until_read(pid, number):
    """Two signals that nobody has read yet are one signal."""
    pending = 1 << (number - 1)
    while pending >> (number - 1) & 1:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            pending = int(re.search(r"ShdPnd:\t(\w+)", status.read())[1], 16)


def test_a_second_interrupt_does_not_wait_and_loses_nothing():
    process = start_long_one(
        "i.seam", sys.executable, "-c",
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "end = time.time() + 20\nwhile time.time() < end: pass")
    try:
        wait_for_samples("i.seam", 1000)    # it ignores interrupts by now
        process.send_signal(signal.SIGINT)
        wait_until_read(process.pid, signal.SIGINT)
        time.sleep(0.2)     # within 0.1 s a second one repeats the first
        check(process.poll() is None, "the first one is the command's")
        process.send_signal(signal.SIGINT)
        process.wait(timeout=15)
        equal(process.returncode, 128 + signal.SIGINT)
        check(manifest("i.seam")["complete"])
        equal(perf_samples("i.seam"), manifest("i.seam")["samples"])
    finally:
        end_group(process)


def test_a_process_that_runs_is_recorded_until_the_interrupt():
    with running("./spin", "10000000000") as spin:
        time.sleep(0.05)    # for its second thread
        process = start_long_one("p.seam", "-g", "-p", str(spin.pid))
        process.send_signal(signal.SIGINT)
        _, text = process.communicate(timeout=30)
        equal(process.returncode, 0, text)
        check(spin.poll() is None, "the process must go on")
    text = perf("script", "-i", "p.seam", "-F", "tid,ip,sym", "-G")
    lines = [line for line in text.splitlines() if "leaf" in line]
    check(len(lines) > 100, text[:300])
    equal(len({line.split()[0] for line in lines}), 2, "threads:")


def test_attaching_ends_with_the_process():
    with running("./spin", "10000000000") as spin:
        process = start_long_one("q.seam", "-p", str(spin.pid))
    process.communicate(timeout=30)
    equal(process.returncode, 0)
    equal(record("-p", "4194304", "-o", "p.seam").returncode, 1)


def test_files_that_vanish_are_kept_by_build_id():
    result = record("-q", "-o", "d.seam", "sh", "-c",
                    "cp spin gone; ./gone 400000000 & sleep 0.4; rm gone; "
                    "wait")
    equal(result.stderr, "")
    with open(f"d.seam/elf/{build_id('spin')}", "rb") as kept, \
            open("spin", "rb") as spin:
        equal(kept.read(), spin.read())
    vdso = manifest("d.seam")["vdso"]["build_id"]
    with open(f"d.seam/elf/{vdso}", "rb") as kept:
        equal(kept.read(4), b"\x7fELF")


def test_files_of_another_mount_namespace_are_kept():
    hidden = tempfile.mkdtemp(dir=".", prefix="hidden")
    unshare = private_mounts(hidden)
    if not unshare:
        return          # nor is there such a process to be recorded
    script = (f"mount -t tmpfs none {hidden} && cp spin {hidden}/inside && "
              f"{hidden}/inside 200000000")
    # another program of that name is what our own path leads to
    with open(f"{hidden}/inside", "wb") as out, open("/bin/true", "rb") as it:
        out.write(it.read())
    result = record("-o", "m.seam", *unshare, "sh", "-c", script)
    end_private_mounts(hidden)
    shutil.rmtree(hidden)
    equal(result.returncode, 0, result.stderr)
    check(os.path.exists(f"m.seam/elf/{build_id('spin')}"),
          f"{os.listdir('m.seam')}")


def test_a_flood_of_samples_costs_no_name():
    result = record("-m", "1", "-F", "20000", "-g", "-o", "n.seam", "sh", "-c",
                    "for i in 1 2 3 4 5 6 7 8 9 10; do ./spin 2000000; done")
    check(result.returncode in (0, 3), result.stderr)
    names = perf("report", "-i", "n.seam", "--stdio", "-s", "comm",
                 "--no-children", "-g", "none", silent=False)
    check(" :" not in names, names)
    rings = manifest("n.seam")["rings"]
    equal(sum(r["lost"] for r in rings if r["kind"] == "sideband"), 0)


def test_loss_is_counted_to_the_record_of_each_event_and_reported():
    result = record("-m", "1", "-e", "cpu-clock,page-faults,cs", "-F",
                    "20000", "-g", "-o", "l.seam",
                    *starved("./spin 100000000"))
    lost = manifest("l.seam")["lost"]["ring_full"]
    check(lost > 0, "nothing was lost")
    equal(result.returncode, 3)
    check(re.search(rf"lost {lost} records \([\d.]+ %\): {lost} because rings "
                    r"were full \(larger ones: -m\)$", result.stderr, re.M),
          result.stderr)
    by_event = manifest("l.seam")["lost_by_event"]
    equal(sum(e["lost"] for e in by_event), lost)
    for event in by_event:
        line = f"{event['event']}: lost {event['lost']} "
        equal(line in result.stderr, event["lost"] > 0, result.stderr)
    text = perf("report", "-i", "l.seam", "--stdio", silent=False)
    told = re.findall(r"# Total Lost Samples: (\d+)\n", text)
    equal(int(told[0]), lost, text[:300])
    in_rings = sum(r["lost"] for r in manifest("l.seam")["rings"])
    check(in_rings <= lost, f"{in_rings} of {lost}")
    records = map(json.loads, run(SEAM, "dump", "--json",
                                  "l.seam").stdout.splitlines())
    equal(in_rings, sum(r["lost"] for r in records if r["type"] == "LOST"))
    equal(perf_samples("l.seam", silent=False), samples_told(result))


def test_whose_process_it_is_is_why_it_is_refused():
    ours = (("-p", os.getpid()), ("-t", os.getpid())) if IS_ROOT else ()
    for option, number in *ours, ("-p", 1):
        told = refused(option, str(number))
        check(f"process {number} belongs to user 'root'" in told and
              "CAP_PERFMON or CAP_SYS_PTRACE" in told and
              "sysctl" not in told, told)


def test_rights_that_no_sysctl_gives_are_reported():
    told = refused("-e", f"uprobe:{os.path.abspath('spin')}:leaf", "./spin")
    check("probes need root" in told and "sysctl" not in told, told)
    told = refused("-a")
    check("of all processes" in told and "perf_event_paranoid=0" in told, told)
    refused("-e", "cpu-clock:k", "./spin")


def test_doctor_reports_what_would_help():
    result = run(SEAM, "doctor", "--json")
    equal((result.returncode, result.stderr), (0, ""))
    report = json.loads(result.stdout)
    equal(report["schema"], "seam.doctor/1")
    checks = {c["check"]: c for c in report["checks"]}
    equal(checks["user-samples"]["verdict"], "yes")
    for one in checks.values():
        check(one["verdict"] in ("yes", "limited", "no"), f"{one}")
        check(one["verdict"] == "yes" or one["needs"], f"{one}")
    check(run(SEAM, "doctor").stdout.count("\n") > len(checks))
    for one in checks.values():
        check_no_sysctl_that_holds(one["needs"])
    if os.geteuid() == 0:
        poor = json.loads(run(SEAM, "doctor", "--json",
                              preexec_fn=as_nobody).stdout)
        equal(poor["uid"], NOBODY)
        poor = {c["check"]: c for c in poor["checks"]}
        for one in poor.values():
            check_no_sysctl_that_holds(one["needs"])
        if poor["kernel-samples"]["verdict"] == "no":
            check("perf_event_paranoid=1" in
                  poor["kernel-samples"]["needs"], f"{poor}")


def test_doctor_says_what_hides_the_kernels_names():
    words = private_mounts(".")
    if len(words) != 2:
        return          # no mounts of its own: the test above has the rest
    with open("kallsyms", "w", encoding="ascii") as names:
        names.write("0000000000000000 T _text\n")
    script = ("echo $1 > kptr; echo $2 > paranoid; "
              "mount --bind kallsyms /proc/kallsyms && "
              "mount --bind kptr /proc/sys/kernel/kptr_restrict && "
              "mount --bind paranoid /proc/sys/kernel/perf_event_paranoid && "
              'exec "$0" doctor --json')
    for kptr, paranoid, needs in (
            (0, 1, "CAP_SYSLOG"),
            (0, 2, "sysctl kernel.perf_event_paranoid=1, or CAP_SYSLOG"),
            (1, 1, "sysctl kernel.kptr_restrict=0, or CAP_SYSLOG"),
            (2, 2, "sysctl kernel.kptr_restrict=0 "
                   "kernel.perf_event_paranoid=1")):
        done = run(*words, "sh", "-c", script, SEAM, str(kptr), str(paranoid))
        equal(done.returncode, 0, done.stderr)
        (check_,) = [c for c in json.loads(done.stdout)["checks"]
                     if c["check"] == "kernel-symbols"]
        equal((check_["verdict"], check_["needs"]), ("no", needs))


def refuse_filters():
    """A system call filter under which no further one can be installed."""
    load, equals, give = 0x20, 0x15, 0x06   # BPF_LD|W|ABS, JMP|JEQ|K, RET
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EINVAL
    no_new_privs, set_seccomp, filter_mode = 38, 22, 2
    code = [(load, 0, 0, 0),                    # the call's number (x86-64)
            (equals, 4, 0, 317),                # seccomp
            (equals, 0, 2, 157),                # prctl
            (load, 0, 0, 16),                   # its first argument
            (equals, 1, 0, set_seccomp),
            (give, 0, 0, allow), (give, 0, 0, refuse)]
    text = b"".join(struct.pack("HBBI", *one) for one in code)
    instructions = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("HxxxxxxQ", len(code),
                          ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((no_new_privs, 1, 0, 0, 0),
                      (set_seccomp, filter_mode, program, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


def test_doctor_reports_what_the_reader_of_files_lacks():
    def isolation(**how):
        report = json.loads(run(SEAM, "doctor", "--json", **how).stdout)
        return next(c for c in report["checks"] if c["check"] == "isolation")

    whole = isolation()
    equal((whole["verdict"], whole["needs"]), ("yes", ""))
    # A container whose own filter refuses another one.
    filtered = isolation(preexec_fn=refuse_filters)
    equal(filtered["verdict"], "limited")
    check("system calls" in filtered["found"], f"{filtered}")
    check("seccomp" in filtered["needs"], f"{filtered}")


sys.exit(run_tests(globals()))
