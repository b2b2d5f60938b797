#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record of PMUs with an AUX area; the PMU is simulated_pmu.c"""
import collections
import json
import os
import signal
import struct
import subprocess
import sys

from aux_lib import (TRUNCATED, WAIT, Data, bytes_at, check_bytes, environment,
                     perf_opens, record, recorded)
from record_lib import IS_ROOT, SEAM, check, equal, run, run_tests


# What a user may: the CPU as far as COMMAND runs on it.
ONE_CPU = ("-C", "0", "-a") if IS_ROOT else ("-C", "0")


def online():
    """The CPUs that are recorded, whichever this test itself may run on."""
    with open("/sys/devices/system/cpu/online", encoding="ascii") as text:
        ranges = [part.split("-") for part in text.read().split(",")]
    return [cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)]


def cpus():
    return len(online())


def check_areas(name, n, tids, wanted_cpus, total=100000):
    areas = Data(name).areas()
    equal(len(areas), n, f"areas of {name}")
    equal(sorted({cpu for _, _, cpu in areas}), wanted_cpus)
    for (_, tid, _), chunks in areas.items():
        check(tids(tid), f"tid {tid}")
        check_bytes(chunks, 0, total)


def test_aux_buffers_of_cpus_are_drained_byte_for_byte():
    # of one CPU an odd number: the last bytes are written all the same
    for name, words, wanted, total in (("cpus", (), online(), 100000),
                                       ("all", ("-a",), online(), 100000),
                                       ("cpu0", ONE_CPU, [0], 99997)):
        result = record(name, "-e", "intel_pt//u", "-m", ",16K", *words,
                        BYTES=total)
        if "-a" in words and not IS_ROOT:
            equal(result.returncode, 1)
            check("of all processes" in result.stderr, result.stderr)
            continue
        equal(result.returncode, 0, result.stderr)
        check(f"{len(wanted) * total / 1024:.1f} KiB of 'intel_pt//u'" in
              result.stderr, result.stderr)
        check_areas(name, len(wanted), lambda tid: tid == -1, wanted, total)
        data = Data(name)
        for _, _, flags, _ in data.aux():
            equal(flags, 0)
        equal(sum(size for _, size, _, _ in data.aux()), len(wanted) * total)
        check("PERF_RECORD_AUXTRACE " in perf_opens(name), "no AUXTRACE")


def test_a_thread_has_its_own_aux_buffer():
    result = record("thread", "-e", "intel_pt//", "-m", ",16K",
                    "--per-thread")
    check(result.returncode in (0, 3), result.stderr)
    areas = Data("thread").areas()
    check(areas and all(tid > 0 and cpu == -1 for _, tid, cpu in areas),
          f"{areas.keys()}")
    first = min(areas)
    check_bytes(areas[first], 0, 100000)
    perf_opens("thread")


def test_samples_have_a_ring_of_their_own_beside_areas():
    result = recorded("beside", "-e", "intel_pt//u", "-e", "cpu-clock", "-m",
                      ",16K", "-F", "10000", "--call-graph", "fp")
    check_areas("beside", cpus(), lambda tid: tid == -1, online())
    with open("beside/meta.json", encoding="ascii") as text:
        told = json.load(text)
    kinds = collections.Counter((ring["kind"], ring.get("area_bytes"))
                                for ring in told["rings"])
    equal(kinds, dict.fromkeys([("sideband", None), ("samples", None),
                                ("area", 16384)], cpus()))
    check(told["samples"] > 0, "no samples")
    equal(told["clock"], "perf")
    features = struct.unpack_from("<Q", Data("beside").bytes, 72)[0]
    equal(features >> 23 & 1, 0, "CLOCKID, which perf would believe")
    equal(told["areas"], {"bytes": cpus() * 100000, "truncated": 0,
                          "partial": 0, "collision": 0})


def test_what_finds_its_aux_buffer_full_is_reported_and_goes_on():
    result = record("flood", "-e", "intel_pt//", "-m", ",8K", FLOOD=1)
    equal(result.returncode, 3, result.stderr)
    data = Data("flood")
    full = [(offset + size, sample_id)
            for offset, size, flags, sample_id in data.aux()
            if flags & TRUNCATED]
    check(len(full) >= 100000 // 8192, f"{len(full)} were truncated")
    check(f"{len(full)} times an AUX buffer was full" in result.stderr,
          result.stderr)
    # full: a whole area lies between the end and what had been drained
    drained = {0}
    for chunks in data.areas().values():
        drained |= {offset + len(payload) for offset, payload in chunks}
    for end, _ in full:
        check(any(0 <= end - 8192 - d < 8 for d in drained) or
              end - 8192 in drained, f"{end} was not full")
    for chunks in data.areas().values():
        check_bytes(chunks, 0, 100000)
    perf_opens("flood")
    report = run(SEAM, "report", "flood").stdout
    check(f"a hardware trace of {cpus() * 100000} bytes" in report and
          f"its AUX buffer was full {len(full)} times" in report, report)


def check_newest(chunk, end, n):
    equal(chunk[0], (end - n) % 2 ** 64, "the snapshot begins")
    check(chunk[1][:n] == bytes_at(end - n, n), "the newest bytes")
    check(len(chunk[1]) - n < 8, "padding")


def snapshot_of(name, total, **settings):
    """The one that is made at the end."""
    result = recorded(name, "-e", "intel_pt//", "-S", "-m", ",8K",
                      *ONE_CPU, BYTES=total, **settings)
    data = Data(name)
    equal(list(data.aux()), [], "AUX records of a snapshot")
    equal(data.info()[9], 1, "snapshot_mode")
    chunks = [c for chunks in data.areas().values() for c in chunks]
    perf_opens(name)
    return chunks


def test_snapshots_hold_the_newest_bytes():
    for total in (1, 8191, 8192, 8193, 100000):
        (chunk,) = snapshot_of(f"shot{total}", total)
        check_newest(chunk, total, min(total, 8192))
    # where the head is an offset in the buffer
    for total in (8191, 8193):
        (chunk,) = snapshot_of(f"offset{total}", total, OFFSET=1)
        check_newest(chunk, total, min(total, 8192))


def test_positions_may_go_round_the_end_of_all_numbers():
    start = 2 ** 64 - 4000
    result = recorded("round", "-e", "intel_pt//", *ONE_CPU, "-m", ",8K",
                      START=start)
    (chunks,) = Data("round").areas().values()
    check_bytes(chunks, start, 100000)
    # behind more than a round the head could be an offset as well
    for total in (3999, 4000, 4001):
        (chunk,) = snapshot_of(f"round{total}", total, START=start)
        check_newest(chunk, start + total, 8192)


def test_a_snapshot_holds_no_more_than_requested():
    result = recorded("small", "-e", "intel_pt//", "-S3000", *ONE_CPU)
    ((chunk,),) = Data("small").areas().values()
    check_newest(chunk, 100000, 3000)


def live(name, *words, **settings):
    """A recorder that goes on until NAME.end is there, its areas written."""
    script = f": > {name}.go; {WAIT.format(name + '.end')}"
    process = subprocess.Popen(
        [SEAM, "record", "-o", name, "-e", "intel_pt//", *words, "--", "sh",
         "-c", script], env=environment(name, **settings),
        stderr=subprocess.PIPE, text=True)
    subprocess.run(["sh", "-c", WAIT.format(name + ".done")], check=True)
    return process


def end(process, name):
    with open(f"{name}.end", "w", encoding="ascii"):
        pass
    _, text = process.communicate(timeout=60)
    equal(process.returncode, 0, text)
    return text


def test_a_snapshot_is_made_on_request():
    process = live("asked", "-S", "-m", ",8K", *ONE_CPU,
                   AGAIN="asked.again")
    asked = run(SEAM, "snapshot", "asked")
    equal(asked.stdout.strip(), os.path.abspath("asked.1.seam"), asked.stderr)
    subprocess.run(["sh", "-c", WAIT.format("asked.again")], check=True)
    end(process, "asked")
    for name, total in (("asked.1.seam", 100000), ("asked", 200000)):
        ((chunk,),) = Data(name).areas().values()
        check_newest(chunk, total, 8192)
        perf_opens(name)


def live_with_a_snapshot(name, *words):
    process = live(name, *words, "-m", "8,2", "--call-graph", "fp")
    process.send_signal(signal.SIGUSR2)
    line = process.stderr.readline()
    if "user code only" in line:
        line = process.stderr.readline()
    check(f"{name}.1.seam" in line, line)
    end(process, name)


def test_a_snapshot_beside_samples_reports_how_many_of_each_event():
    live_with_a_snapshot("counted", "-S", "-e", "cpu-clock,page-faults")
    for name in ("counted.1.seam", "counted"):
        with open(f"{name}/meta.json", encoding="utf-8") as text:
            told = json.load(text)
        by_event = {e["event"]: e["samples"] for e in told["lost_by_event"]}
        equal(sum(by_event.values()), told["samples"], name)
        check(by_event["page-faults"] > 0, f"{name}: {by_event}")


def test_a_snapshot_of_overwritten_rings_has_its_areas():
    live_with_a_snapshot("flight", "--overwrite", "-e", "cpu-clock")
    for name in ("flight.1.seam", "flight"):
        areas = Data(name).areas()
        equal(len(areas), cpus(), name)
        for (chunk,) in areas.values():
            check_newest(chunk, 100000, 8192)
        perf_opens(name)


def test_a_thread_that_has_ended_leaves_its_snapshot():
    result = record("ended", "-e", "intel_pt//", "-S", "-m", ",8K",
                    "--per-thread")
    check(result.returncode in (0, 3), result.stderr)
    areas = Data("ended").areas()
    first = min(areas)
    check_newest(areas[first][-1], 100000, 8192)
    perf_opens("ended")


def test_a_snapshot_does_not_begin_what_is_delayed():
    process = subprocess.Popen(
        [SEAM, "record", "-o", "late", "-e", "intel_pt//", "-S", "-m", ",8K",
         "--delay", "60000", "--", "sh", "-c",
         f": > late.go; {WAIT.format('late.end')}"],
        env=environment("late"), stderr=subprocess.PIPE, text=True)
    subprocess.run(["sh", "-c", WAIT.format("late.go")], check=True)
    equal(run(SEAM, "snapshot", "late").returncode, 0)
    equal(run(SEAM, "snapshot", "late").returncode, 0)
    end(process, "late")
    for name in ("late.1.seam", "late.2.seam", "late"):
        equal(Data(name).areas(), {}, name)


def test_areas_are_made_smaller_where_the_user_may_not_lock_them():
    result = recorded("less", "-e", "intel_pt//u", "-m", ",1M", MAX=65536)
    check("AUX buffers of 64 KiB in place of 1 MiB" in result.stderr,
          result.stderr)
    check_areas("less", cpus(), lambda tid: tid == -1, online())


def test_decoders_learn_what_perf_writes_for_them():
    """As of the machine that the corpus' Intel PT file is from."""
    record("info", "-e", "intel_pt//", *(["-a"] if IS_ROOT else []),
           BYTES=100)
    data = Data("info")
    kind, config = data.attrs[0][0], data.attrs[0][2]
    equal((kind, hex(config)), (77, "0x300e601"), "tsc,mtc,psb,pt,branch")
    equal(data.attrs[0][3], 1, "period")
    info = data.info()
    equal([hex(word) for word in info[:13]],
          [hex(word) for word in (1, 77, 0x1f, 0x6aaaaaaa, 0xfffffff86343cb91,
                                  1, 0x400, 0x800, 3 if IS_ROOT else 2, 0, 1,
                                  0x200, 0x3c000)])
    equal(info[15:], (2, 12, 0, 0))
    for flags in data.flags:
        equal(flags >> 25 & 1, 0, "use_clockid")
    check(data.flags[0] >> 26 & 1, "context_switch")
    record("info2", "-e", "intel_pt/tsc=0,mtc=0,psb_period=0/u", BYTES=100)
    equal(hex(Data("info2").attrs[0][2]), hex(0xe001), "the user's terms")
    equal(Data("info2").info()[8], 0, "no switches without a clock")
    record("info3", "-e", "intel_pt/name=mine/u", BYTES=100)
    equal(hex(Data("info3").info()[6]), "0x400", "its PMU's bits")


def test_coresight_and_spe_are_described():
    record("etm", "-e", "cs_etm/@tmc_etr0/u", BYTES=100)
    info = Data("etm").info()
    equal(info[:4], (3, 1, 77 << 32 | cpus(), 0))
    unit = (0x4040404040404040, 0, 7, 0x40, 0x10, 0x28000ea1, 0x4100f422,
            0x20001088, 0, 0x8c)
    for i, cpu in enumerate(online()):
        equal(info[4 + 10 * i:14 + 10 * i],
              (unit[0], cpu, *unit[2:4], 0x10 + 2 * cpu, *unit[5:]))
    config2 = struct.unpack_from("<Q", Data("etm").bytes,
                                 Data("etm").bytes.index(b"\x4d\0\0\0\x80") +
                                 64)[0]
    equal(config2, 0x1234, "the sink")
    # each option of the kernel's cs_etm that TRCCONFIGR has
    record("etm2", "-e", "cs_etm/config=0x3000d100/u", BYTES=100)
    equal(hex(Data("etm2").info()[7]), "0x98d8", "TRCCONFIGR")
    record("spe", "-e", "arm_spe_0//", BYTES=100)
    equal(Data("spe").info(), (4, 77, 1))
    equal(Data("spe").attrs[0][2:4], (1, 256), "ts_enable, interval")
    record("spe2", "-e", "arm_spe_0//", "-c", "1000", BYTES=100)
    equal(Data("spe2").attrs[0][2:4], (1, 1000), "the user's interval")


def refused(*words):
    result = run(SEAM, "record", "-o", "no", *words, "--", "true",
                 env=environment("no"))
    check(result.returncode in (1, 2), result.stderr)
    check(not os.path.exists("no"), "something was recorded")
    return result.stderr


def test_a_kernel_without_build_ids_is_told_so():
    for old in {"OLD": 1}, {}:
        done = run(SEAM, "doctor", "--json", env=environment("no", **old))
        (ids,) = [c for c in json.loads(done.stdout)["checks"]
                  if c["check"] == "build-ids"]
        equal((ids["verdict"], ids["needs"]),
              ("no", "Linux 5.12") if old else ("yes", ""))
        done = run(SEAM, "record", "-o", "old", "--", "true",
                   env=environment("no", **old))
        equal(done.returncode, 0, done.stderr)
        equal("no build ids of mapped files: they need Linux 5.12" in
              done.stderr, bool(old))


def test_what_cannot_be_is_refused_with_the_reason():
    check("no event with an AUX buffer" in refused("-S", "-e", "cpu-clock"), "")
    check("two kinds" in refused("-e", "intel_pt//", "-e", "cs_etm//"), "")
    check("no sink 'x'" in refused("-e", "cs_etm/@x/"), "")
    check("larger than an AUX buffer" in
          refused("-e", "intel_pt//", "-S64K", "-m", ",32K"), "")
    check("no PMU 'hisi_ptt0'" in refused("-e", "hisi_ptt0//"), "")


sys.exit(run_tests(globals()))
