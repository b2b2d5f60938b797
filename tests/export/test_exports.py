#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports of whole profiles, read back by readers that share nothing with
Seam: for each thread and event their stacks and weights are those of folded
files, line by line.

test_exports.py SEAM EXPORT_MADE
"""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.environ["SEAM_SOURCE"]
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

import read_exports
import tap
import viewers

SEAM, MADE = sys.argv[1:3]
CORPUS = os.environ["SEAM_CORPUS"]
FOLDER = tempfile.mkdtemp(prefix="seam-exports-")
FORMATS = list(read_exports.READERS)


def run(*words, status=(0, 3)):
    done = subprocess.run(words, capture_output=True, check=False, timeout=120)
    assert done.returncode in status, done.stderr.decode(errors="replace")
    return done


def read(form, path):
    return read_exports.READERS[form](path)


def compare(form, got, wanted):
    lines = []
    for event in got.keys() | wanted.keys():
        mine = got.get(event, {})
        if mine or wanted.get(event):
            lines += [f"{form}: {event}: {line}" for line in
                      read_exports.differences(mine, wanted.get(event, {}))]
    assert not lines, "\n".join(sorted(lines)[:20])


# -- profiles made up ------------------------------------------------------

def made(name):
    """(folder, {event: {thread: stacks}}) of a profile of export_made.c."""
    folder = os.path.join(FOLDER, name)
    if not os.path.isdir(folder):
        os.mkdir(folder)
        run(MADE, name, folder, status=(0,))
    with open(f"{folder}/events.txt", encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    wanted = {}
    for i, event in enumerate(events):
        texts = []
        for kind in ("samples", "weights"):
            with open(f"{folder}/{i}.{kind}", encoding="utf-8") as file:
                texts.append(file.read())
        wanted[read_exports.plain(event)] = read_exports.folded(*texts)
    return folder, wanted


def equal_of_made(name, form):
    def test():
        folder, wanted = made(name)
        got, _ = read(form, f"{folder}/{form}")
        compare(form, got, wanted)
    return f"{form} of the profile '{name}' has the stacks of folded", test


MADE_NAMES = ("all", "random", "calls", "hostile", "no_stacks", "only_waits",
              "empty")


def test_broken_calls_are_still_a_file_that_readers_open():
    folder, _ = made("broken_calls")
    for form in FORMATS:
        read(form, f"{folder}/{form}")


# -- facts that folded stacks do not have ----------------------------------

BUILD_ID = bytes(range(0xa0, 0xa0 + 20))


def test_pprof_has_build_ids_threads_times_and_losses():
    folder, _ = made("all")
    _, profile = read("pprof", f"{folder}/pprof")
    strings = profile.string_table
    first = profile.mapping[0]
    assert strings[first.build_id] == BUILD_ID.hex() or any(
        strings[m.build_id] == BUILD_ID.hex() for m in profile.mapping)
    assert profile.time_nanos == 1700000000000000000 + 1000000
    labels = {(strings[label.key], strings[label.str] or label.num)
              for s in profile.sample for label in s.label}
    for label in (("thread", "worker 1"), ("tid", 101), ("pid", 200),
                  ("process", "app")):
        assert label in labels, label
    assert "lost: 12 records, ring full (cpu-clock)" in [
        strings[i] for i in profile.comment]
    assert ("off-cpu", "nanoseconds") in [
        (strings[t.type], strings[t.unit]) for t in profile.sample_type]
    assert strings[profile.default_sample_type] == "cpu-clock"


def test_pprof_has_inlined_calls_at_their_callers_place():
    folder, _ = made("all")
    _, profile = read("pprof", f"{folder}/pprof")
    names = [[profile.string_table[profile.function[line.function_id - 1].name]
              for line in place.line] for place in profile.location]
    assert ["leaf", "tiny", "run"] in names, names
    assert all(m.has_inline_frames for m in profile.mapping)


def test_firefox_has_build_ids_life_times_and_losses():
    folder, _ = made("all")
    _, profile = read("firefox", f"{folder}/firefox")
    lib = next(lib for lib in profile["libs"] if lib["name"] == "app")
    assert (lib["codeId"], lib["arch"]) == (BUILD_ID.hex(), "aarch64")
    assert lib["breakpadId"] == "A3A2A1A0A5A4A7A6A8A9AAABACADAEAF0"
    assert profile["meta"]["startTime"] == 1700000000001
    worker = next(t for t in profile["threads"] if t["tid"] == 101)
    assert (worker["registerTime"], worker["unregisterTime"]) == (0.5, 8.0)
    assert {"label": "Lost", "format": "string",
            "value": "12 records, ring full (cpu-clock)"} in \
        profile["meta"]["extra"][0]["entries"]
    assert {t["pid"] for t in profile["threads"]} == {"100", "200"}


def firefox_markers(profile, tid):
    thread = next(t for t in profile["threads"] if t["tid"] == tid)
    markers, strings = thread["markers"], profile["shared"]["stringArray"]
    return [(strings[name], start, end, data) for name, start, end, data in
            zip(markers["name"], markers["startTime"], markers["endTime"],
                markers["data"])]


def test_firefox_has_waits_as_idle_samples_and_markers():
    folder, _ = made("all")
    _, profile = read("firefox", f"{folder}/firefox")
    strings = profile["shared"]["stringArray"]
    reasons = [strings[m[3]["text"]] for m in firefox_markers(profile, 100)
               if m[0] == "off-cpu"]
    assert reasons == ["do_poll, ended by worker 1"], reasons
    assert [m[0] for m in firefox_markers(profile, 201)] == ["off-cpu"], \
        "a sum of short waits has no interval"
    markers = [m[:3] for m in firefox_markers(profile, 100)]
    assert ("off-cpu", 1.1, 1.8) in markers, markers
    assert ("preempted", 1.9, 1.99) in markers
    assert ("records lost", 3, None) in markers
    samples = profile["threads"][0]["samples"]
    at = samples["time"].index(1.1)
    assert samples["time"][at + 1] == 1.8 and samples["weight"][at:at + 2] == \
        [0.7, 0] and samples["threadCPUDelta"][at:at + 2] == [0, 0]


def test_firefox_has_calls_as_markers_with_arguments():
    folder, _ = made("calls")
    _, profile = read("firefox", f"{folder}/firefox")
    strings = profile["shared"]["stringArray"]
    markers = [(*m[:3], strings[m[3].get("text", 0)], m[3].get("records"))
               for m in firefox_markers(profile, 100)]
    for marker in (("outer", 0, 0.001, "42, 43", None),
                   ("custom event", 0.00015, None, 'a "note"', None),
                   ("records lost", 0.00035, None, "", 7)):
        assert marker in markers, markers


def test_speedscope_shows_the_busiest_thread_and_names_losses():
    folder, _ = made("all")
    _, content = read("speedscope", f"{folder}/speedscope")
    assert content["name"] == "app --fast, 12 records lost"
    active = content["profiles"][content["activeProfileIndex"]]
    assert active["name"] == "app (100): cpu-clock", active["name"]
    _, content = read("speedscope", f"{made('calls')[0]}/speedscope")
    assert [p["type"] for p in content["profiles"]] == ["sampled", "evented"]


def annotations(trace):
    return [(p.timestamp, p.track_event.name, a.name,
             a.string_value or a.uint_value)
            for p in trace.packet for a in p.track_event.debug_annotations]


def test_perfetto_has_clocks_life_times_losses_and_arguments():
    folder, _ = made("all")
    _, trace = read("perfetto", f"{folder}/perfetto")
    clocks = [p.clock_snapshot for p in trace.packet
              if p.has("clock_snapshot")]
    assert [(c.clock_id, c.timestamp) for c in clocks[0].clocks] == \
        [(3, 1000000), (1, 1700000000001000000)]
    assert clocks[0].primary_trace_clock == read_exports.CLOCK_MONOTONIC
    assert all(p.trace_packet_defaults.timestamp_clock_id ==
               read_exports.CLOCK_MONOTONIC for p in trace.packet
               if p.has("trace_packet_defaults"))
    lost = [p for p in trace.packet if p.perf_sample.kernel_records_lost]
    assert [(p.timestamp, p.perf_sample.kernel_records_lost,
             p.perf_sample.has("pid")) for p in lost] == [(4000000, 12, False)]
    timebases = [p.trace_packet_defaults.perf_sample_defaults.timebase
                 for p in trace.packet
                 if p.trace_packet_defaults.has("perf_sample_defaults")]
    assert [(t.name, t.counter) for t in timebases] == [
        ("cpu-clock", 1), ("page-faults", read_exports.ABSENT)]
    assert (1000000, "lost", "what", "12 records, ring full (cpu-clock)") in \
        annotations(trace)
    assert (2100000, "off-cpu", "reason", "do_poll") in annotations(trace)
    assert (7000000, "off-cpu", "waits", 40) in annotations(trace)
    ids = [e.str.encode(errors="surrogateescape") for p in trace.packet
           for e in p.interned_data.build_ids]
    assert BUILD_ID in ids
    names = {(p.track_descriptor.thread.tid,
              p.track_descriptor.thread.thread_name) for p in trace.packet
             if p.track_descriptor.has("thread")}
    assert names == {(100, "app"), (101, "worker 1"), (201, "app")}
    _, trace = read("perfetto", f"{made('calls')[0]}/perfetto")
    found = annotations(trace)
    assert (1000, "", "0", 42) in found and (1000, "", "1", 43) in found
    assert (1150, "custom event", "data", 'a "note"') in found
    assert (1350, "records lost", "records", 7) in found


# -- recordings ------------------------------------------------------------

RECORDINGS = ("bundle/lua.seam", "bundle/jit.seam", "bundle/events.seam",
              "bundle/kernel.seam")
SELECTIONS = ((), ("--layer", "kernel,native"), ("--time", "20%,70%"),
              ("--no-inline",))


def events_of(path):
    done = run(SEAM, "report", "--json", path)
    return [e["event"] for e in json.loads(done.stdout)["events"]]


def wanted_of(path, words):
    wanted = {}
    for event in events_of(path):
        texts = [run(SEAM, "convert", "--to", "folded", "--by", "thread",
                     "--event", event, *more, *words, path).stdout.decode()
                 for more in ((), ("--weight",))]
        wanted[event] = read_exports.folded(*texts)
        for stacks in wanted[event].values() if texts[0] == texts[1] else ():
            for counts in stacks.values():
                counts[0] = None    # of calls and waits, folded has the time
    return wanted


def equal_of_recording(name, words):
    def test():
        path = os.path.join(CORPUS, name)
        if not os.path.exists(path):
            raise tap.Skip("the corpus is not unpacked")
        wanted = wanted_of(path, words)
        for form in FORMATS:
            out = os.path.join(FOLDER, "out")
            run(SEAM, "convert", "--to", form, "-o", out, *words, path)
            compare(form, read(form, out)[0], wanted)
    return f"{name} {' '.join(words)}: all formats have its stacks", test


def xray_logs():
    folder = os.path.join(CORPUS, "xray")
    return sorted(os.path.relpath(os.path.join(at, name), CORPUS)
                  for at, _, names in os.walk(folder) for name in names
                  if name.endswith(".xray"))[:6]


def test_a_recording_of_waits_has_them_in_all_formats():
    path = os.path.join(FOLDER, "waits.seam")
    run(SEAM, "record", "--off-cpu", "-o", path, "--", "sh", "-c",
        "for i in 1 2 3; do sleep 0.02; done; : | cat")
    assert "off-cpu" in events_of(path), events_of(path)
    equal_of_recording(path, ())[1]()


def test_a_recording_that_is_still_written_has_its_waits_in_all_formats():
    live, copy = (os.path.join(FOLDER, n) for n in ("live.seam", "copy.seam"))
    with subprocess.Popen(
            [SEAM, "record", "-q", "--off-cpu", "-o", live, "--", "sh", "-c",
             "while sleep 0.01; do : | cat; done"]) as recorder:
        try:
            for _ in range(1000):
                time.sleep(0.02)
                if b'"off-cpu"' in run(SEAM, "report", "--json", live,
                                       status=(0, 1, 3)).stdout:
                    break
            for form in FORMATS:
                out = os.path.join(FOLDER, "out")
                run(SEAM, "convert", "--to", form, "-o", out, live,
                    status=(3,))
                stacks, _ = read(form, out)
                assert stacks["off-cpu"], form
            shutil.copytree(live, copy,     # it grows no more
                            ignore=shutil.ignore_patterns("*.part"))
        finally:
            recorder.send_signal(signal.SIGINT)
    equal_of_recording(copy, ())[1]()


def test_one_event_or_thread_is_selected():
    path = os.path.join(CORPUS, "bundle/events.seam")
    if not os.path.exists(path):
        raise tap.Skip("the corpus is not unpacked")
    event = events_of(path)[0]
    for form in FORMATS:
        out = os.path.join(FOLDER, "out")
        run(SEAM, "convert", "--to", form, "--event", event, "-o", out, path)
        assert set(read(form, out)[0]) == {read_exports.plain(event)}, form


def test_what_a_format_cannot_hold_is_one_line():
    path = os.path.join(CORPUS, "bundle/lua.seam")
    if not os.path.exists(path):
        raise tap.Skip("the corpus is not unpacked")
    for form in FORMATS:
        done = run(SEAM, "convert", "--to", form, "-o", "/dev/null", path)
        left = [line for line in done.stderr.decode().splitlines()
                if "left out" in line]
        assert len(left) <= 1, left
        assert left or form in ("firefox", "perfetto", "page"), form


def test_a_binary_file_is_not_written_to_a_terminal():
    for form in FORMATS:
        ours, terminal = pty.openpty()
        done = subprocess.run([SEAM, "convert", "--to", form, "nowhere"],
                              stdout=terminal, stderr=subprocess.PIPE,
                              check=False)
        os.close(terminal)
        os.close(ours)
        is_binary = form in ("pprof", "perfetto")
        assert (b"give -o FILE" in done.stderr) == is_binary, done.stderr
        assert done.returncode == (2 if is_binary else 1)


def go_reads(name):
    def test():
        if not shutil.which("go"):
            raise tap.Skip("go is not installed")
        folder, wanted = made(name)
        compare("go tool pprof", viewers.read_go_pprof(f"{folder}/pprof"),
                wanted)
    return f"go tool pprof reads the stacks of the profile '{name}'", test


def main():
    tests = [equal_of_made(name, form) for name in MADE_NAMES
             for form in FORMATS]
    tests += [equal_of_recording(name, words) for name in RECORDINGS
              for words in (SELECTIONS if "lua" in name else ((),))]
    tests += [equal_of_recording(name, ()) for name in xray_logs()]
    tests += [go_reads(name) for name in MADE_NAMES]
    status = tap.run(tests + tap.promises(globals()))
    shutil.rmtree(FOLDER, ignore_errors=True)
    return status


sys.exit(main())
