# SPDX-License-Identifier: MIT
"""A folder as the store of a fleet: what is pushed is what queries answer.

What is compared with: the recordings' own reports and folded stacks, and the
rows of the batch files, read by a decoder of this tree's tests
(tests/fleet/batch_rows.py).
"""
import collections
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import record_lib
import tap

sys.path.append(str(pathlib.Path(__file__).parent.parent / "fleet"))
import batch_rows  # noqa: E402

SEAM = record_lib.SEAM
CORPUS = os.environ.get("SEAM_CORPUS", "")
STORE = os.path.join(record_lib.FOLDER, "store")
# name: service, host, label, command, options
RECORDINGS = {
    "spin": ("web-1", "h1", "version=1", ["./spin", "30000000"], ["-g"]),
    "sh": ("web-2", "h2", "version=1",
           ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"],
           []),
    "wait": ("db", "h1", "version=2",
             ["sh", "-c",
              "./spin 20000000; for i in 1 2 3 4; do sleep 0.05; done"],
             ["--off-cpu"]),
    "two": ("db", "h2", "version=2", ["./spin", "9000000"], ["-g"]),
}


def seam(*words, status=0):
    done = subprocess.run([SEAM, *words], capture_output=True, timeout=60,
                          check=False, text=True)
    statuses = status if isinstance(status, tuple) else (status,)
    assert done.returncode in statuses, (words, done.returncode, done.stderr)
    return done


def fleet(verb, *words, store=STORE, status=0):
    return seam("fleet", verb, "--from", store, *words, status=status)


def folded(text):
    """{stack: value}; addresses of the kernel are none of a fleet's."""
    sums = collections.Counter()
    for line in text.splitlines():
        stack, _, value = line.rpartition(" ")
        sums[re.sub(r"\[(kernel[^+\]]*)\+0x[0-9a-f]+\]", r"[\1]", stack)] += \
            int(value)
    return sums


def stacks_of(*names, words=()):
    """What the recordings say by themselves, added up."""
    sums = collections.Counter()
    for name in names:
        sums += folded(seam("convert", "-t", "folded", *words,
                            f"{name}.seam", status=(0, 3)).stdout)
    return sums


def stacks_from(*words, store=STORE):
    return folded(fleet("convert", "-t", "folded", *words, store=store,
                        status=(0, 3)).stdout)


def push(name, *words, store=STORE):
    service, host, label = RECORDINGS[name][:3]
    return seam("push", "--to", store, "--service", service, "--host", host,
                "--label", label, *words, f"{name}.seam")


def batches(store=STORE):
    return [batch_rows.read_file(path.read_bytes())
            for path in sorted(pathlib.Path(store).glob("*.batch"))]


def set_up():
    for name, (_, _, _, command, options) in RECORDINGS.items():
        seam("record", "-q", *options, "-o", f"{name}.seam", "--", *command,
             status=(0, 3))
        push(name)


# -- queries ------------------------------------------------------------------

def test_the_stacks_of_each_service_are_those_of_its_recordings():
    for service, names in (("web-1", ["spin"]), ("web-2", ["sh"]),
                           ("db", ["wait", "two"])):
        own = stacks_of(*names, words=("--event", "cpu-clock"))
        assert own, service
        assert stacks_from("--service", service,
                           "--event", "cpu-clock") == own, service


def test_globs_hosts_and_labels_select():
    for words, names in ((("--service", "web-*"), ["spin", "sh"]),
                         (("--service", "*[13]"), ["spin"]),
                         (("--host", "h2"), ["sh", "two"]),
                         (("--label", "version=1"), ["spin", "sh"]),
                         (("--label", "version=2", "--host", "h1"), ["wait"]),
                         (("--service", "none"), [])):
        own = stacks_of(*names, words=("--event", "cpu-clock"))
        # a query without an answer has no event
        event = ("--event", "cpu-clock") if names else ()
        assert stacks_from(*words, *event) == own, words


def test_weights_are_added_up_too():
    for name in RECORDINGS:
        words = ("--weight", "--event", "cpu-clock")
        service, host = RECORDINGS[name][:2]
        assert stacks_from("--service", service, "--host", host, *words) == \
            stacks_of(name, words=words), name


def test_waits_are_there_with_their_time():
    words = ("--event", "off-cpu", "--weight")
    own = stacks_of("wait", words=words)
    assert sum(own.values()) > 150_000_000, own
    assert stacks_from("--service", "db", "--host", "h1", *words) == own


def test_report_has_the_rows_of_the_recordings():
    rows = collections.Counter()
    for name in ("spin", "sh"):
        doc = json.loads(seam("report", "--json", f"{name}.seam").stdout)
        for row in doc["rows"]:
            key = row["symbol"] if "kernel+" not in row["symbol"] else "k"
            rows[key, row["layer"], "self"] += row["self_weight"]
    doc = json.loads(fleet("report", "--json", "--service", "web-*").stdout)
    answer = collections.Counter()
    for row in doc["rows"]:
        key = row["symbol"] if "kernel+" not in row["symbol"] else "k"
        answer[key, row["layer"], "self"] += row["self_weight"]
    assert +rows == +answer
    assert doc["schema"] == "seam.report/1"


def test_rows_by_host_and_service_are_the_recordings():
    doc = json.loads(fleet("report", "--json", "--by", "host,service",
                           "--event", "cpu-clock").stdout)
    got = {(row["host"], row["service"]): row["self"] for row in doc["rows"]}
    own = {RECORDINGS[name][1::-1]: sum(stacks_of(
        name, words=("--event", "cpu-clock")).values()) for name in RECORDINGS}
    assert got == own, (got, own)


def test_a_row_of_the_files_is_what_the_decoder_of_the_tests_reads():
    """The files are read without Seam: sums by event and host."""
    sums = collections.Counter()
    for rows in batches():
        frames = {row["frame_id"] for row in rows["frames"]}
        stacks = {row["stack_id"]: row["frames"] for row in rows["stacks"]}
        for row in rows["samples"]:
            assert row["stack_id"] == 0 or row["stack_id"] in stacks
            assert set(stacks.get(row["stack_id"], ())) <= frames
            assert row["ts_ns"] % batch_rows.WINDOW == 0
            assert row["day"] == row["ts_ns"] // batch_rows.DAY_NS
            sums[row["event"], row["host"]] += row["count"]
    doc = json.loads(fleet("report", "--json", "--by", "host",
                           "--event", "cpu-clock").stdout)
    assert {row["host"]: row["self"] for row in doc["rows"]} == {
        host: n for (event, host), n in sums.items() if event == "cpu-clock"}


def test_a_push_again_changes_nothing():
    before = sorted(os.listdir(STORE))
    own = stacks_from("--event", "cpu-clock")
    for name in RECORDINGS:
        push(name)
    assert sorted(os.listdir(STORE)) == before
    assert stacks_from("--event", "cpu-clock") == own


def test_a_batch_file_is_a_recording_of_every_command():
    path = str(next(pathlib.Path(STORE).glob("*.batch")))
    for words in (("report",), ("report", "--tree"), ("flamegraph", "-o", "-"),
                  ("convert", "-t", "pprof", "-o", "x.pb"),
                  ("convert", "-t", "firefox", "-o", "x.json"),
                  ("convert", "-t", "speedscope", "-o", "x.json"),
                  ("view", "-o", "x.html"), ("diff", "--all", path)):
        seam(*words, path)
    seam("report", STORE)
    seam("view", "--from", STORE, "--service", "db", "-o", "x.html")


def test_two_queries_are_compared():
    done = fleet("diff", "--service", "db", "--host", "h2",
                 "--with-service", "web-1", "--with-host", "h1",
                 "--event", "cpu-clock", "--json")
    doc = json.loads(done.stdout)
    assert doc["schema"].startswith("seam.diff/"), doc["schema"]
    for side, name in (("a", "two"), ("b", "spin")):
        own = sum(stacks_of(name, words=("--event", "cpu-clock")).values())
        assert doc[side]["runs"][0]["samples"] == own, (side, doc[side])
    fleet("diff", "--service", "db", status=2)


def test_top_prints_the_newest_windows_once():
    doc = json.loads(fleet("top", "--once", "--json", "--since", "1h").stdout)
    assert doc["samples"] > 0
    doc = json.loads(fleet("top", "--once", "--json", "--since",
                           "2001-01-01..2001-01-02").stdout)
    assert doc["samples"] == 0


# -- time ---------------------------------------------------------------------

def date(ns):
    return datetime.datetime.fromtimestamp(
        ns // 10 ** 9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def test_a_time_of_whole_windows_is_that_of_the_recording():
    # the recording begins before the end of a window, and lasts beyond it
    time.sleep(max(0, 9.3 - time.time() % 10))
    seam("record", "-q", "-g", "-o", "window.seam", "--", "sh", "-c",
         "./spin 60000000; sleep 0.7; ./spin 60000000")
    store = os.path.join(record_lib.FOLDER, "windows")
    seam("push", "--to", store, "--service", "w", "window.seam")
    starts = sorted({row["ts_ns"] for rows in batches(store)
                     for row in rows["samples"]})
    with open("window.seam/meta.json", encoding="utf-8") as f:
        start = json.load(f)["start"]
    for at in starts:
        own = (at - start["wall_ns"] + start["monotonic_ns"]) / 1e9
        query = f"{date(at)}..{date(at + batch_rows.WINDOW)}"
        assert stacks_from("--since", query, store=store) == folded(seam(
            "convert", "-t", "folded", "--time", f"@{own:.9f},@{own + 10:.9f}",
            "window.seam").stdout), query
    assert stacks_from(store=store) == stacks_of("window")
    assert not stacks_from("--since", f"..{date(starts[0])}", store=store)


def test_times_that_are_none_are_refused():
    for text in ("1x", "h", "2026-13-01", "yesterday", "1h..2h",
                 "2026-01-02..2026-01-01", "99999999999999999999d"):
        done = fleet("report", "--since", text, status=2)
        assert "--since" in done.stderr, done.stderr
    for text in ("1d", "2d..", "..0s", "2001-01-01..2100-01-01T10:00:30Z"):
        fleet("report", "--since", text)


# -- calls --------------------------------------------------------------------

FIGURES = ("count", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns",
           "sum_ns", "total_ns", "self_ns")


def figures(text):
    return {row["name"]: [row[key] for key in FIGURES]
            for row in json.loads(text)["functions"]}


def test_histograms_of_calls_have_the_figures_of_the_log():
    folder = os.path.join(CORPUS, "xray", "rec")
    if not os.path.isdir(folder):
        raise tap.Skip("no corpus")
    n = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".xray") or "crash" in name:
            continue
        path = os.path.join(folder, name)
        own = seam("calls", "--json", path, status=(0, 3))
        store = os.path.join(record_lib.FOLDER, "calls-" + name)
        if own.returncode or seam("push", "--to", store, "--service", "x",
                                  path, status=(0, 1)).returncode:
            continue
        got = fleet("calls", "--json", store=store, status=(0, 3))
        assert figures(got.stdout) == figures(own.stdout), name
        n += 1
    assert n >= 5, n


# -- what is lost or damaged --------------------------------------------------

def test_losses_of_a_recording_are_in_the_answer():
    shutil.copytree("spin.seam", "cut.seam")
    size = os.path.getsize("cut.seam/data")
    os.truncate("cut.seam/data", size * 2 // 3)
    own = json.loads(seam("report", "--json", "cut.seam", status=3).stdout)
    store = os.path.join(record_lib.FOLDER, "losses")
    seam("push", "--to", store, "--service", "w", "cut.seam")
    doc = json.loads(fleet("report", "--json", store=store, status=3).stdout)
    assert own["lost"]["causes"] and \
        doc["lost"]["causes"] == own["lost"]["causes"], doc["lost"]
    assert stacks_from(store=store) == stacks_of("cut")


def test_what_is_no_batch_is_named_and_the_rest_answers():
    store = os.path.join(record_lib.FOLDER, "hostile")
    shutil.copytree(STORE, store)
    good = stacks_from("--event", "cpu-clock")
    path = pathlib.Path(store)
    data = next(pathlib.Path(STORE).glob("*.batch")).read_bytes()
    (path / "a-cut.batch").write_bytes(data[:-20])
    (path / "b-flipped.batch").write_bytes(
        data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    (path / "c-empty.batch").write_bytes(b"")
    (path / "d-text\033[1m.batch").write_bytes(b"no batch" * 100)
    (path / "e-folder.batch").mkdir()
    os.mkfifo(path / "f-fifo.batch")
    (path / "g-link.batch").symlink_to(path / "nothing")
    (path / "h-passwd.batch").symlink_to("/etc/passwd")
    (path / "notes.txt").write_text("not a batch, and not read")
    done = fleet("convert", "-t", "folded", "--event", "cpu-clock",
                 store=store, status=3)
    assert folded(done.stdout) == good
    for name in ("a-cut", "b-flipped", "c-empty", "d-text", "e-folder",
                 "f-fifo", "g-link", "h-passwd"):
        assert done.stderr.count(name) == 1, (name, done.stderr)
    assert "\033" not in done.stderr and "notes" not in done.stderr
    done = seam("report", store, status=3)
    assert "a-cut" in done.stdout + done.stderr


def test_a_file_that_has_the_name_of_a_batch_is_not_replaced():
    store = os.path.join(record_lib.FOLDER, "taken")
    os.mkdir(store)
    name = None
    for path in pathlib.Path(STORE).glob("*.batch"):
        if b"spin.seam" in subprocess.run(
                ["zstd", "-qdc", path], capture_output=True,
                check=True).stdout[:600]:
            name = path.name
    target = pathlib.Path(store) / name
    target.write_bytes(b"mine")
    service, host, label = RECORDINGS["spin"][:3]
    done = seam("push", "--to", store, "--service", service, "--host", host,
                "--label", label, "spin.seam", status=1)
    assert "another file has that name" in done.stderr, done.stderr
    assert target.read_bytes() == b"mine"
    assert os.listdir(store) == [name]


def test_a_query_makes_no_folder_and_says_when_it_selects_nothing():
    slip = os.path.join(record_lib.FOLDER, "slip")
    said = fleet("report", store=slip, status=1).stderr
    assert "No such file or directory" in said, said
    assert not os.path.exists(slip)
    said = fleet("report", "--service", "no such", status=(0, 3)).stderr
    assert f"nothing in '{STORE}' is selected" in said, said


def test_stores_and_names_that_cannot_be_are_refused():
    for words, cause in (
            (("push", "--to", "s", "spin.seam"), "--service"),
            (("push", "--service", "x", "spin.seam"), "--to"),
            (("fleet", "report"), "--from"),
            (("fleet",), "report"),
            (("fleet", "reprot", "--from", "s"), "reprot"),
            (("fleet", "report", "--from", STORE, "--label", "x"),
             "KEY=VALUE"),
            (("view", "--service", "x"), "--from"),
            (("fleet", "report", "--from", STORE, "--with-host", "x"),
             "diff")):
        done = seam(*words, status=2)
        assert cause in done.stderr, (words, done.stderr)
    for words, cause in (
            (("push", "--to", "s", "--service", "a\nb", "spin.seam"),
             "service"),
            (("push", "--to", "s", "--service", "x", "--label", "v",
              "spin.seam"), "KEY=VALUE"),
            (("push", "--to", "no/such/folder", "--service", "x",
              "spin.seam"), "no/such/folder"),
            (("fleet", "report", "--from", "spin.c"), "spin.c"),
            (("fleet", "report", "--from", "gopher://x"), "gopher")):
        done = seam(*words, status=1)
        assert cause in done.stderr, (words, done.stderr)


if __name__ == "__main__":
    os.chdir(record_lib.FOLDER)
    record_lib.build_spin()
    set_up()
    sys.exit(record_lib.run_tests(globals()))
