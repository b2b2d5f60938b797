#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs with libseam-sampler

sampler.py SEAM SAMPLER PROGRAM ASAN LATE LUAJIT

Each program prints the CPU time of its threads, which is what all counts are
compared with: a tick is due for each period of it.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cli"))
from record_lib import (FOLDER, IS_ROOT, SEAM, check, equal,  # noqa: E402
                        manifest, perf, record, run, run_tests, samples_told)
from tap import Skip  # noqa: E402

SAMPLER = shutil.copy(sys.argv[2], FOLDER)
PROGRAM, ASAN, LATE = (shutil.copy(path, FOLDER) for path in sys.argv[3:6])
LUAJIT = sys.argv[6]
LIBLUAJIT = re.search(r"libluajit\S* => (\S+)",
                      run("ldd", PROGRAM).stdout)[1]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "sampler_program.c")
PRELOADED = "libseam-sampler.so, preloaded for LuaJIT"
# Otherwise a tick in the kernel has no sample, and is in the next one's weight.
with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as text:
    SEES_KERNEL = IS_ROOT or int(text.read()) < 2
# All ticks; and no leaks of a program that ends by exec or _exit.
os.environ["SEAM_SAMPLER_UNTHROTTLED"] = "1"
os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
# Where a tick is a SIGTRAP: see seam_tick_signal().
HAS_TRAPS = tuple(int(n) for n in
                  re.findall(r"\d+", os.uname().release)[:2]) >= (6, 15)
URGENT = {**os.environ, "SEAM_SAMPLER_SIGURG": "1"}


def cpu_ms(output):
    return sum(int(ns) for ns in
               re.findall(r"^cpu \d+ (\d+)$", output, re.M)) / 1e6


def sampled(*words, hz=1000, options=(), **more):
    """Record; what the program printed, and the manifest's counts."""
    result = record("-v", "-o", "a.seam", "-F", str(hz), *options, "--",
                    *words, **more)
    guest = manifest("a.seam").get("guest", {})
    # at 10 kHz, on a busy machine, the rings of the kernel may be full
    only_kernels = (hz >= 10000 and result.returncode == 3 and
                    "cpu-clock: lost" in result.stderr and
                    not guest.get("lost"))
    check(result.returncode == 0 or only_kernels,
          f"{words}: {result.returncode}: {result.stderr}")
    return result, guest


def check_all_sampled(result, guest, hz=1000, share=0.7, startup_ms=30):
    """Each tick has a sample or a cause; the weights are the CPU time.

    A busy machine merges ticks, a fifth of them where others remove large
    folders, so the share is not what './dev bench guest' measures.
    """
    due = cpu_ms(result.stdout) * hz / 1000
    check(due > 0, f"no CPU time in {result.stdout}")
    equal(guest["samples"] + guest["merged"] + guest["ended"],
          guest["ticks_due"], f"{guest}")
    if not SEES_KERNEL:
        share *= 0.4    # some of these programs are half in the kernel
    check(guest["samples"] >= share * guest["ticks_due"], f"{guest}")
    # what the loader used before the sampler was there is the recorder's
    startup = startup_ms * hz / 1000
    check(-startup - 0.02 * due <= guest["ticks"] - due <= 0.02 * due,
          f"weights {guest['ticks']}, due {due:.0f}: {guest}")
    equal(guest["ticks"] + guest["ended"], guest["ticks_due"], f"{guest}")
    equal([guest[key] for key in ("lost", "refused", "without_ring",
                                  "throttled", "no_stack")], [0] * 5,
          f"{guest}")


def test_a_program_is_sampled_at_1_khz():
    result, guest = sampled(PROGRAM, "busy")
    check(PRELOADED in result.stderr, result.stderr)
    check_all_sampled(result, guest)
    check("{ticks_due} ticks of CPU time were due, {ticks} are in samples; "
          "{merged} were merged; {superseded} samples of the recorder are "
          "superseded".format(**guest) in result.stderr, result.stderr)


def test_a_program_is_sampled_at_10_khz():
    result, guest = sampled(PROGRAM, "busy", hz=10000)
    check_all_sampled(result, guest, hz=10000)


def test_the_rate_is_that_of_the_event():
    for options, hz in ((["-c", "500000", "-e", "cpu-clock"], 2000),
                        (["-e", "cpu-clock/freq=500/"], 500),
                        (["-e", "page-faults,task-clock/period=5000000/"],
                         200)):
        result = record("-v", "-o", "a.seam", *options, "--", PROGRAM, "busy")
        check(result.returncode == 0, result.stderr)
        guest = manifest("a.seam")["guest"]
        due = cpu_ms(result.stdout) * hz / 1000
        check(0.8 * due - 30 * hz / 1000 <= guest["ticks"] <= 1.02 * due,
              f"{options}: {due:.0f} due, {guest}")


def test_other_events_are_recorded_alone():
    for options, why in ((["-e", "page-faults"], "without an event of CPU "
                          "time, such as cpu-clock, or --layers=guest"),
                         (["-F", "10001"], "at more than 10000 Hz")):
        result = record("-o", "a.seam", *options, "--", PROGRAM, "busy")
        check(f"no Lua stacks {why}" in result.stderr, result.stderr)
        check("guest" not in manifest("a.seam"), result.stderr)
    result = record("-o", "a.seam", "-e", "page-faults", "--layers=guest",
                    "--", PROGRAM, "busy")
    check(manifest("a.seam")["guest"]["samples"] > 0, result.stderr)
    result = record("-o", "a.seam", "-e", "nonsense", "--", PROGRAM, "busy")
    check("no Lua stacks" not in result.stderr, result.stderr)


def test_luajit_itself_is_sampled():
    with open("spin.lua", "w", encoding="ascii") as lua:
        lua.write("local x, t = 0, os.clock() while os.clock() - t < 0.2 do "
                  "for i = 1, 1000 do x = x + i % 7 end end "
                  "print(('cpu 1 %d'):format(os.clock() * 1e9))")
    result, guest = sampled(LUAJIT, "spin.lua")
    # the recorder's few samples before the sampler are not all of the stacks
    check("end early" not in result.stderr, result.stderr)
    check_all_sampled(result, guest)
    report = perf("report", "--stdio", "-i", "a.seam/data", silent=True)
    check("event 'seam:guest'" in report, report)
    # those of seam:guest_symtab are names
    equal(samples_told(result), len(periods()))


def test_deep_stacks_are_throttled_and_counted():
    with open("deep.lua", "w", encoding="ascii") as lua:
        lua.write("local function deep(n) if n > 0 then return 1 + "
                  "deep(n - 1) end local x = 0 for i = 1, 20000 do "
                  "x = x + i % 7 end return x end local t = os.clock() "
                  "while os.clock() - t < 0.2 do deep(1500) end")
    env = {**os.environ}
    del env["SEAM_SAMPLER_UNTHROTTLED"]
    result, guest = sampled(LUAJIT, "-joff", "deep.lua", hz=10000, env=env)
    check(guest["throttled"] > 0 and
          f"skipped: {guest['throttled']} because sampling took too much time"
          in result.stderr, f"{guest}: {result.stderr}")
    equal(guest["samples"] + guest["merged"] + guest["throttled"] +
          guest["ended"], guest["ticks_due"], f"{guest}")
    check(guest["ticks"] >= 0.95 * guest["ticks_due"], f"{guest}")


def test_no_sample_is_before_the_delay():
    env = {**os.environ, "SECONDS_OF_CPU": "0.3"}
    sampled(PROGRAM, "busy", options=["-D", "100"], env=env)
    begin = manifest("a.seam")["start"]["monotonic_ns"] / 1e9
    script = perf("script", "-i", "a.seam/data", "-F", "time,event",
                  silent=True)
    times = [float(time) for time in
             re.findall(r"([\d.]+): +seam:guest: *$", script, re.M)]
    check(times and min(times) >= begin + 0.1,
          f"{times[:3]}, the recording began at {begin}")


def test_a_thread_is_sampled_once():
    for options in (), ("--overwrite",):
        result, guest = sampled(PROGRAM, "threads", options=options)
        check_all_sampled(result, guest)
        told = samples_told(result)
        own = told - guest["samples"]
        # the recorder's own: the loader and the sampler's start
        check(own <= 60, f"{own} samples of the recorder besides {guest}")
        # of a user who may not see the kernel, fewer: half of it is there
        check(guest["superseded"] >=
              (0.9 if SEES_KERNEL else 0.6) * guest["samples"], f"{guest}")


def test_a_snapshot_has_the_newest_samples_and_their_functions():
    """Of 8 MiB; the name of a function was announced long before."""
    with open("rounds.lua", "w", encoding="ascii") as lua:
        lua.write("local function deep(n) if n > 0 then return 1 + "
                  "deep(n - 1) end local x = 0 for i = 1, 2000 do "
                  "x = x + i % 7 end return x end local t = os.clock() "
                  "while os.clock() - t < 1 do deep(300) end")
    result = record("--overwrite", "--snapshot-every", "0.25", "-F", "10000",
                    "-o", "a.seam", "--", LUAJIT, "-joff", "rounds.lua")
    bundles = [*re.findall(r"snapshot in '([^']*)'", result.stderr), "a.seam"]
    ends = []
    for bundle in bundles:
        guest = manifest(bundle)["guest"]
        script = perf("script", "-i", f"{bundle}/data", "-F",
                      "time,event,period", silent=False)
        times = [float(time) for time in
                 re.findall(r"([\d.]+): +\d+ +seam:guest: *$", script, re.M)]
        check(times == sorted(times), "in order")
        ends += times[-1:]
        if guest["from_ns"]:
            check(min(times) >= guest["from_ns"] / 1e9 - 1e-6,
                  f"{times[:2]}, {guest}")
        check((len(times) == guest["samples"]) == (not guest["from_ns"]),
              f"{len(times)} of {guest}")
        names = run(SEAM, "report", bundle).stdout
        check("deep rounds.lua:1" in names, names)
    equal(ends, sorted(ends))
    # the bound: 8 MiB, of which no record is larger than 64 KiB
    check(guest["from_ns"], f"all {guest['samples']} samples were kept")
    size = os.path.getsize("a.seam/data")
    check(size > 8 << 20, f"{size} bytes")


def periods():
    """Of the samples of a.seam: command, event and period."""
    script = perf("script", "-i", "a.seam/data", "-F", "comm,event,period",
                  silent=True)
    return [(comm, event, int(period)) for comm, period, event in
            re.findall(r"^ *(\S+) +(\d+) +(\S+): *$", script, re.M)
            if event != "seam:guest_symtab"]


def test_the_recorder_leaves_the_sampling_to_the_sampler():
    env = {**os.environ, "SECONDS_OF_CPU": "2"}
    result, guest = sampled(PROGRAM, "busy", env=env)
    check_all_sampled(result, guest)
    check(guest["superseded"] <= 0.5 * guest["ticks_due"], f"{guest}")


def test_programs_that_are_executed_have_the_full_rate():
    script = ("local s = 0 for i = 1, 5e7 do s = s + i % 7 end "
              "os.execute('awk \"BEGIN { while (i < 2e7) i++ }\"')")
    sampled(LUAJIT, "-joff", "-e", script)
    found = [period for comm, _, period in periods() if "awk" in comm]
    check(len(found) > 50, f"{found}")
    equal(set(found), {1000000})


def test_threads_with_all_signals_blocked_are_sampled():
    check_all_sampled(*sampled(PROGRAM, "blocked"))


def test_threads_with_small_stacks_are_sampled():
    check_all_sampled(*sampled(PROGRAM, "small_stacks"))


def test_a_coroutine_with_6_kib_is_sampled():
    check_all_sampled(*sampled(PROGRAM, "coroutine"))


def test_a_forked_child_goes_on_under_its_own_pid():
    result, guest = sampled(PROGRAM, "forks")
    check_all_sampled(result, guest)
    script = perf("script", "-i", "a.seam/data", "-F", "tid,event",
                  silent=True)
    tids = set(re.findall(r"^ *(\d+) +seam:guest: *$", script, re.M))
    equal(tids, set(re.findall(r"^cpu (\d+)", result.stdout, re.M)))


def test_a_handler_may_fork_while_the_program_forks():
    sampled("timeout", "20", PROGRAM, "forks_in_handlers",
            options=["--layers=guest"])


def test_a_child_without_the_sampler_is_not_disturbed():
    check_all_sampled(*sampled(PROGRAM, "clones"))


def test_a_process_outlives_its_first_thread():
    check_all_sampled(*sampled(PROGRAM, "exit_of_main"))


def test_a_chain_of_execs_does_not_die_of_a_signal():
    result, guest = sampled(PROGRAM, "execs", "60", hz=10000)
    check(guest["samples"] > 60 * 10, f"{guest}")
    equal(len(re.findall("^cpu", result.stdout, re.M)), 61)


def test_a_program_keeps_its_own_handlers():
    check_all_sampled(*sampled(PROGRAM, "profiled"))
    # The kernel would merge signals of the program's with ticks.
    result, guest = sampled(PROGRAM, "handlers", env=URGENT)
    check("handler of SIGURG of its own" in result.stderr, result.stderr)
    check(guest["samples"] < 60, f"{guest}")
    result, guest = sampled(PROGRAM, "handlers")
    equal("handler of SIGURG of its own" in result.stderr, not HAS_TRAPS)


def test_a_handler_is_not_called_where_its_signal_is_blocked():
    sampled(PROGRAM, "blocked_handler")
    sampled(PROGRAM, "blocked_handler", env=URGENT)


def shown(*command, **more):
    """What "sampler_program shows" prints, without threads' ids and times."""
    result = subprocess.run(command, capture_output=True, text=True,
                            check=False, timeout=60, **more)
    # 3: a busy machine's rings may be full at this rate
    check(result.returncode in (0, 3), f"{command}: {result}")
    return [line for line in result.stdout.splitlines()
            if not line.startswith("cpu ")]


def test_masks_and_pending_signals_and_dispositions_are_as_without_it():
    """Also those that programs inherit, which it executes in all ways."""
    for number in signal.SIGTRAP, signal.SIGURG:
        words = [PROGRAM, "shows", str(int(number))]
        alone = shown(*words)
        check(len(alone) > 60, f"{alone}")
        for env in None, URGENT:
            # The kernel keeps one signal of a number, so a tick by SIGURG
            # beside the program's own is lost; and sigwait() gets such ticks.
            tick = "a thread waited for 23"
            for _ in range(5 if env else 1):
                recorded = shown(SEAM, "record", "-q", "-F", "9000", "-o",
                                 "a.seam", "--", *words, env=env)
                if env and recorded.count(tick) > alone.count(tick):
                    recorded.remove(tick)
                if recorded == alone:
                    break
            equal([(i, line, other) for i, (line, other)
                   in enumerate(zip(recorded, alone)) if line != other], [],
                  f"{number!r}")
            equal(len(recorded), len(alone))


def test_no_blocking_call_ends_early():
    result, guest = sampled(PROGRAM, "sleeps", "10000", hz=10000)
    check(guest["samples"] > 300, f"{guest}")
    if HAS_TRAPS:
        check("ended 0 of 10000" in result.stdout, result.stdout)


def test_a_breakpoint_is_the_programs():
    _, guest = sampled(PROGRAM, "traps")
    check(guest["samples"] > 100, f"{guest}")
    for how in "default", "blocked", "ignored":
        alone = subprocess.run([PROGRAM, "traps", how], check=False,
                               capture_output=True).returncode
        equal(alone, -signal.SIGTRAP)
        result = record("-o", "a.seam", "--", PROGRAM, "traps", how)
        equal(result.returncode, 128 + signal.SIGTRAP, f"{how}")


def test_under_a_debugger_no_tick_stops_the_program():
    _, guest = sampled(PROGRAM, "traced")
    check(guest["samples"] > 50, f"{guest}")


def test_no_tick_is_pending_in_a_program_that_a_handler_executes():
    for env in None, URGENT:
        result, _ = sampled(PROGRAM, "executes", hz=10000, env=env)
        check("unblocked" in result.stdout, result.stdout)


def test_a_thread_has_one_mapping_and_threads_have_a_limit():
    for n, most in (200, 200), (4300, 4096):
        before, after = (
            int(re.search(r"mappings (\d+)", run(*prefix, PROGRAM, "many",
                                                 str(n)).stdout)[1])
            for prefix in ((), (SEAM, "record", "-q", "-o", "a.seam", "--")))
        check(after - before <= most + 60, f"{n}: {before}, {after}")
    # the last of the threads used 20 ms, and had no tick
    check(manifest("a.seam")["guest"]["without_ring"] >= 15,
          manifest("a.seam")["guest"])


def test_a_program_with_an_sampler_has_some_megabytes_of_addresses_more():
    with open("peak.lua", "w", encoding="ascii") as lua:
        lua.write("local x, t = 0, os.clock() while os.clock() - t < 0.05 do "
                  "for i = 1, 1000 do x = x + i % 7 end end "
                  "for line in io.lines('/proc/self/status') do "
                  "local n = line:match('^VmPeak:%s*(%d+)') "
                  "if n then print(n) end end")
    alone = int(run(LUAJIT, "peak.lua").stdout)
    for hz in 1000, 10000:
        result, guest = sampled(LUAJIT, "peak.lua", hz=hz)
        check(guest["samples"] > 0, f"{guest}")
        check(int(result.stdout) - alone < 24 << 10,
              f"{hz}: {alone}, {result.stdout}")


def test_threads_that_end_by_a_system_call_are_forgotten():
    sampled("timeout", "-s", "KILL", "30", PROGRAM, "exits",
            options=["--layers=guest"])


def test_errno_and_fp_state_and_mask_are_as_they_were():
    # 10,000 samples
    _, guest = sampled(PROGRAM, "state", "2", hz=10000)
    check(guest["samples"] > 9000, f"{guest}")


def test_a_sandbox_ends_the_sampling_and_not_the_program():
    result, guest = sampled(PROGRAM, "seccomp")
    equal(len(re.findall("^cpu", result.stdout, re.M)), 4)
    check("it installs a seccomp filter" in result.stderr, result.stderr)
    check(180 <= guest["ticks"] <= 220, f"{guest}")
    weights = sum(period for _, _, period in periods())
    share = 0.9 if SEES_KERNEL else 0.5
    check(weights >= share * cpu_ms(result.stdout) * 1e6,
          f"the samples weigh {weights} ns: {result.stdout}")


def test_a_filter_that_is_refused_does_not_end_the_sampling():
    result, guest = sampled(PROGRAM, "refused")
    # a thread that has used more tells once more
    cpu_ns = sum(int(ns) for ns in dict(
        re.findall(r"^cpu (\d+) (\d+)$", result.stdout, re.M)).values())
    check(guest["ticks_due"] >= 0.9 * cpu_ns / 1e6, f"{guest}")
    # merged: those of an ordinary user in the kernel
    check(guest["samples"] + guest["merged"] >= 0.9 * guest["ticks_due"],
          f"{guest}")


def test_no_system_call_is_made_in_a_sandbox():
    result, guest = sampled(PROGRAM, "sandbox")
    check("done" in result.stdout, result.stdout)
    check(150 <= guest["ticks"] <= 220, f"{guest}")
    equal(guest["samples"] + guest["merged"] + guest["ended"],
          guest["ticks_due"], f"{guest}")


def test_a_sandbox_of_a_child_does_not_end_the_sampling():
    result, guest = sampled(PROGRAM, "vforks")
    check("end early" not in result.stderr, result.stderr)
    check(guest["samples"] + guest["merged"] >= 180, f"{guest}")


def test_a_program_that_closes_all_descriptors_is_sampled():
    check_all_sampled(*sampled(PROGRAM, "closed"))


def test_a_program_gains_one_descriptor_at_most():
    sampled(PROGRAM, "descriptors")


def test_chroot_and_another_user_do_not_end_the_sampling():
    if not IS_ROOT:
        raise Skip("needs root")
    result, guest = sampled(PROGRAM, "jailed")
    # threads of that user do not see the kernel: its ticks are merged
    check_all_sampled(result, guest, share=0.4)


def test_a_set_user_id_program_has_no_sampler():
    if not IS_ROOT:
        raise Skip("needs root")
    shutil.copy(PROGRAM, "setuid")
    os.chown("setuid", 65534, 65534)
    os.chmod("setuid", 0o4755)
    result = record("-o", "a.seam", "--", "./setuid", "busy")
    check(cpu_ms(result.stdout) > 0, result.stdout)
    equal(manifest("a.seam").get("guest", {}).get("samples", 0), 0)


def test_nor_has_a_set_group_id_program_that_is_linked_with_it():
    if not IS_ROOT:
        raise Skip("needs root")
    # the loader has no LD_PRELOAD for such a program
    flags = run("pkg-config", "--cflags", "--libs", "luajit").stdout.split()
    subprocess.run(["cc", "-D_GNU_SOURCE", "-o", "linked", SOURCE, SAMPLER,
                    f"-Wl,--no-as-needed,-rpath,{FOLDER}", *flags, "-lm",
                    "-pthread"], check=True)
    _, guest = sampled("./linked", "busy")
    check(guest["samples"] > 100, f"{guest}")
    os.chown("linked", 0, 65534)
    os.chmod("linked", 0o2755)
    result = record("-o", "a.seam", "--", "./linked", "busy")
    check(cpu_ms(result.stdout) > 0, result.stdout)
    equal(manifest("a.seam").get("guest", {}).get("samples", 0), 0)


NO_EVENTS = ("env", "-u", "LD_PRELOAD", f"SAMPLER={SAMPLER}", PROGRAM,
             "no_events")


def test_without_events_a_timer_is_used_and_reported():
    result, guest = sampled(*NO_EVENTS, options=["--layers=guest"])
    check("sampled by a timer, 250 times a second at most: perf_event_open: "
          "Function not implemented" in result.stderr, result.stderr)
    due = cpu_ms(result.stdout)
    check(0.9 * due <= guest["ticks"] <= 1.05 * due, f"{due}: {guest}")
    check(guest["samples"] >= 0.1 * due, f"{due}: {guest}")
    equal(guest["samples"] + guest["merged"] + guest["ended"],
          guest["ticks_due"], f"{guest}")


def test_without_a_timer_the_recorder_has_the_samples():
    result, guest = sampled(*NO_EVENTS, "timers",
                            options=["--layers=guest"])
    check("cannot be sampled: no event and no timer" in result.stderr,
          result.stderr)
    equal(guest.get("samples", 0), 0)
    told = int(re.search(r"seam: (\d+) samples? in", result.stderr)[1])
    share = 0.9 if SEES_KERNEL else 0.4     # it reads clocks all the time
    check(told >= share * cpu_ms(result.stdout), result.stderr)


def test_a_handler_that_is_replaced_ends_the_sampling():
    result, guest = sampled(PROGRAM, "replaced", env=URGENT)
    check("end early: it has replaced the handler of the tick" in
          result.stderr, result.stderr)
    check(guest["samples"] < 100, f"{guest}")


def test_a_handler_before_the_vm_forbids_the_sampling():
    result, guest = sampled(LATE, LIBLUAJIT, "handler",
                            options=["--layers=guest"], env=URGENT)
    check("Lua stacks are not recorded: it has a handler of SIGURG of its own"
          in result.stderr, result.stderr)
    equal(guest.get("samples", 0), 0)


def test_a_program_that_handles_sigtrap_is_sampled_by_the_other_signal():
    check_all_sampled(*sampled(LATE, LIBLUAJIT, "trap",
                               options=["--layers=guest"]))


def test_a_thread_that_blocked_all_before_is_sampled_when_it_unblocks():
    for env in None, URGENT:
        _, guest = sampled(LATE, LIBLUAJIT, "blocked",
                           options=["--layers=guest"], env=env)
        # 300 of the first thread; at most 150 of the other
        check(guest["samples"] > (380 if SEES_KERNEL else 150), f"{guest}")
        check(guest["ticks"] < 480, f"{guest}")


def test_a_program_that_begins_with_all_signals_blocked_is_sampled():
    _, guest = sampled(
        sys.executable, "-c", "import os, signal, sys; signal.pthread_sigmask("
        "signal.SIG_BLOCK, range(1, 65)); os.execv(sys.argv[1], sys.argv[1:])",
        PROGRAM, "busy", options=["--layers=guest"])
    check(guest["samples"] > (150 if SEES_KERNEL else 60), f"{guest}")


def test_calls_that_a_filter_traps_are_the_programs_in_a_handler_too():
    """Also where the next tick is due before the handler is done."""
    for env in None, URGENT:
        result, guest = sampled(LATE, LIBLUAJIT, "filter", options=[
            "--layers=guest", "-F", "10000"], env=env)
        equal(len(re.findall("^cpu", result.stdout, re.M)), 2)
        check(guest["samples"] > 100, f"{guest}")


def test_ticks_on_a_small_signal_stack_are_counted():
    result, guest = sampled(PROGRAM, "small_signal_stack")
    check(guest["no_stack"] >= (100 if SEES_KERNEL else 5) and
          f"skipped: {guest['no_stack']} because signal stacks are small"
          in result.stderr, f"{guest}: {result.stderr}")
    # the next sample has their weight
    check(guest["ticks"] + guest["ended"] == guest["ticks_due"], f"{guest}")


def test_programs_with_asan_are_sampled():
    result, guest = sampled(ASAN, "threads")
    check_all_sampled(result, guest, startup_ms=60)
    result, guest = sampled("sh", "-c", f"{ASAN} busy",
                            options=["--layers=guest"])
    check_all_sampled(result, guest, share=0.85)


def test_programs_with_asan_start_where_the_sampler_is_for_others():
    shell = f"{PROGRAM} busy && {ASAN} busy"
    for words in (("sh", "-c", shell), ("./asan",)):
        subprocess.run(["cc", "-fsanitize=address", "-o", "asan", "-xc", "-"],
                       input="int main(void) { return 0; }", text=True,
                       check=True)
        result, _ = sampled(*words, options=["--layers=guest"])
        check("ASan runtime" not in result.stderr, result.stderr)


def test_a_library_that_is_loaded_late_begins_all_threads():
    result, guest = sampled(LATE, LIBLUAJIT, options=["--layers=guest"])
    check_all_sampled(result, guest)


def test_libraries_that_the_program_loads_are_in_its_stacks():
    with open("load.lua", "w", encoding="ascii") as lua:
        lua.write("local ffi = require 'ffi' ffi.cdef[[unsigned long crc32("
                  "unsigned long, const char *, unsigned);]] "
                  "local z, s, x = ffi.load('z'), ('x'):rep(1e5), 0 "
                  "local t = os.clock() while os.clock() - t < 0.2 do "
                  "x = z.crc32(x, s, #s) end "
                  "print(('cpu 1 %d'):format(os.clock() * 1e9))")
    result, guest = sampled(LUAJIT, "load.lua")
    check_all_sampled(result, guest)
    check(guest["incomplete"] <= 0.05 * guest["samples"], f"{guest}")
    check(guest["with_guest"] >= 0.9 * guest["samples"], f"{guest}")


def test_a_program_without_a_vm_is_left_alone():
    result, guest = sampled("./spin", "20000000",
                            options=["--layers=guest"])
    equal(guest.get("samples", 0), 0)
    equal(guest.get("superseded", 0), 0)
    result, guest = sampled("./spin", "20000000")
    equal(guest, {})
    check("libseam-sampler" not in result.stderr, result.stderr)


def test_an_sampler_that_cannot_connect_is_reported():
    said = set()
    for n in range(3, 9):
        result = record("--layers=guest", "-o", "a.seam", "--", "sh", "-c",
                        f"ulimit -n {n}; exec {LUAJIT} spin.lua")
        said |= set(re.findall("Lua stacks are not recorded: .*|no Lua stacks"
                               "|[1-9][0-9]* samples with Lua stacks",
                               result.stderr)) or {f"{n}: nothing"}
    check(not any("nothing" in text for text in said), f"{said}")
    check(any("Too many open files" in text for text in said), f"{said}")


def test_nor_one_of_another_user():
    if not IS_ROOT:
        raise Skip("another user needs root")
    result = record("--layers=guest", "-o", "a.seam", "--", "setpriv",
                    "--reuid", "65534", "--clear-groups", LUAJIT, "-v")
    check("as one of another user cannot" in result.stderr, result.stderr)


def test_nor_one_in_another_pid_namespace():
    words = ["unshare", "-p", "-f", "--mount-proc"]
    if subprocess.run([*words, "true"], check=False).returncode:
        raise Skip("a pid namespace needs root")
    result = record("--layers=guest", "-o", "a.seam", "--", *words, LUAJIT,
                    "spin.lua")
    check("not recorded: it is in another pid namespace" in result.stderr,
          result.stderr)


def test_a_program_in_valgrind_has_no_sampler_and_no_noise():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    result = record("--layers=guest", "-o", "a.seam", "--", "valgrind", "-q",
                    LUAJIT, "-v")
    check("not recorded: it runs under valgrind" in result.stderr and
          "sigprocmask" not in result.stderr, result.stderr)


def test_a_running_process_cannot_be_forced_to_have_an_sampler():
    with subprocess.Popen(["sleep", "100"]) as running:
        result = record("-o", "a.seam", "--layers=guest", "--duration=0.1",
                        "-p", str(running.pid))
        running.kill()
    check("no Lua stacks: a process that runs cannot have libseam-sampler.so"
          in result.stderr, result.stderr)


def test_the_vm_is_found_by_its_name_in_a_library_and_in_a_script():
    for name, line in (("app", "#!/usr/bin/env luajit"),
                       ("direct", f"#!{LUAJIT}"), ("start", "#!/bin/sh")):
        with open(name, "w", encoding="ascii") as script:
            script.write(f"{line}\n")
        os.chmod(name, 0o755)
    subprocess.run(["cc", "-shared", "-o", "libmiddle.so",
                    "-Wl,--no-as-needed", LIBLUAJIT], check=True)
    subprocess.run(["cc", "-o", "linked_far", "-xc", "-", "-L.",
                    "-Wl,--no-as-needed,-rpath,$ORIGIN", "-lmiddle"],
                   input="int main(void) { return 0; }", text=True, check=True)
    folder = os.path.dirname(LUAJIT)
    path = {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}
    for words in (("luajit", "-v"), (LUAJIT, "-v"), ("./app",), ("./direct",),
                  ("./linked_far",)):
        result = record("-o", "a.seam", "--", *words, env=path)
        check(PRELOADED in result.stderr, f"{words}: {result.stderr}")
    for words in (("true",), ("./start",), ("sh", "-c", "luajit -v")):
        result = record("-o", "a.seam", "--", *words, env=path)
        check(PRELOADED not in result.stderr, f"{words}: {result.stderr}")


def test_of_a_vm_that_was_not_found_the_report_says_how_to_record_it():
    record("-o", "a.seam", "--", "nice", LUAJIT, "-joff", "-e",
           "for i = 1, 3e7 do local s = i % 7 end")
    result = run(SEAM, "report", "a.seam")
    check("runs LuaJIT without Lua stacks" in result.stdout + result.stderr and
          "--layers=guest" in result.stdout + result.stderr, result.stdout)


def test_options_without_lua_stacks_say_so():
    for option, value in ("-C", ("0",)), ("-i", ()):
        result = record(option, *value, "-o", "a.seam", "--", LUAJIT, "-v")
        check(f"no Lua stacks with {option}" in result.stderr, result.stderr)
        equal(manifest("a.seam").get("guest", {}), {})
    result = record("--layers=native", "-o", "a.seam", "--", LUAJIT, "-v")
    check(PRELOADED not in result.stderr, result.stderr)
    equal(record("--layers=lua", "true").returncode, 2)


def test_nginx_has_an_sampler_if_its_lua_module_is_installed():
    os.makedirs("sbin", exist_ok=True)
    os.makedirs("modules", exist_ok=True)
    shutil.copy("/bin/true", "sbin/nginx")
    for has in False, True:
        if has:
            shutil.copy("/bin/true", "modules/ngx_http_lua_module.so")
        result = record("-o", "a.seam", "--", "sbin/nginx")
        equal(PRELOADED in result.stderr, has, result.stderr)


def test_a_library_of_another_user_is_not_preloaded():
    if not IS_ROOT:
        raise Skip("needs root")
    mode = os.stat(FOLDER).st_mode
    for spoil, mend in (
            (lambda: os.chown(SAMPLER, 65534, -1),
             lambda: os.chown(SAMPLER, 0, -1)),
            (lambda: os.chmod(SAMPLER, 0o777),
             lambda: os.chmod(SAMPLER, 0o755)),
            (lambda: os.chown(FOLDER, 65534, -1),
             lambda: os.chown(FOLDER, 0, -1)),
            (lambda: os.chmod(FOLDER, 0o777),
             lambda: os.chmod(FOLDER, mode & 0o7777))):
        spoil()
        result = record("-o", "a.seam", "--", LUAJIT, "-v")
        mend()
        check("cannot find libseam-sampler.so" in result.stderr, result.stderr)
    result = record("-o", "a.seam", "--", LUAJIT, "-v")
    check(PRELOADED in result.stderr, result.stderr)


def test_what_the_user_preloads_stays():
    users = "/lib/x86_64-linux-gnu/libm.so.6"
    env = {**os.environ, "LD_PRELOAD": users}
    result = record("--layers=guest", "-o", "a.seam", "--", "sh", "-c",
                    "echo $LD_PRELOAD", env=env)
    equal(result.stdout, f"{SAMPLER}:{users}\n")
    # the recorder's own environment, and what it starts later, is as before
    equal(env["LD_PRELOAD"], users)


def test_a_killed_recorder_does_not_disturb_the_program():
    recorder = subprocess.Popen(
        [SEAM, "record", "-F", "10000", "--layers=guest", "-o", "k.seam",
         "--", "sh", "-c",
         f"{PROGRAM} rounds 4; echo status $?"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    # a thread was sampled; others run, and some are to begin
    first = recorder.stdout.readline()
    check(first.startswith("cpu"), first)
    os.kill(recorder.pid, signal.SIGKILL)
    output = recorder.stdout.read()
    recorder.wait()
    equal(len(re.findall("^cpu", output, re.M)), 4 * 3 - 1, output)
    check("status 0" in output, output)
    rows = json.loads(run(SEAM, "report", "--json", "k.seam").stdout)["rows"]
    check(any(row["layer"] == "guest" for row in rows), f"{rows[:3]}")


sys.exit(run_tests(globals()))
