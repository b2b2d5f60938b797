#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Views of a recording with a VM's stacks: test_guest_views.py SEAM GENERATOR

guest_recording.c describes the program that the recording is of, and what its
samples are; every number here follows from that.  Prints TAP.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys

import record_lib
from record_lib import FOLDER, run, run_tests, seam
from tap import Skip

GENERATOR = os.path.abspath(sys.argv[2])
FILE = "app.data"
LUA = "\n".join(["-- app", "local function lua_payload(n)", "  local a = n",
                 "  return a > 0 and lua_payload(a - 1)", "end"]) + "\n"


def rows(*words):
    return json.loads(seam("report", "--json", "--top", "0", *words,
                           FILE))["rows"]


def folded(*words):
    counts = collections.Counter()
    for stack, n in record_lib.folded(*words, FILE):
        counts[";".join(stack)] += n
    return counts


def test_guest_and_native_functions_are_of_one_stack():
    root = "luajit;main"
    vm = f"{root};lua_pcall;app.lua:0_[g]"
    payload = f"{vm};lua_payload app.lua:2_[g]"
    assert folded() == {
        root: 40, f"{payload};lua_payload app.lua:2_[g]": 40,
        f"{vm};c_payload": 25, f"{payload};lj_gc_step": 4,
        f"{payload};TRACE [7] started at app.lua:4_[j]": 5,
        f"{vm};function 4 of pid 100_[g]": 1,
    }, folded()


def test_weights_are_the_cpu_time_of_the_ticks():
    weights = folded("--weight")
    assert sum(weights.values()) == 105_000_000, weights
    assert sum(n for stack, n in weights.items()
               if stack.endswith("lua_payload app.lua:2_[g]")) == 60_000_000
    events = json.loads(seam("report", "--json", FILE))["events"]
    assert [(e["event"], e["weight"]) for e in events] == \
        [("cpu-clock", 105_000_000)], events


def test_states_of_the_vm_are_rows():
    assert "VM STATE" in seam("report", "--by", "vmstate", FILE)
    assert {row["vmstate"]: row["self"] for row in rows("--by", "vmstate")} \
        == {"LFUNC": 41, "CFUNC": 25, "TRACE": 5, "GC": 4, "none": 40}


def test_states_of_the_vm_are_roots():
    roots = collections.Counter()
    for stack, n in folded("--by", "vmstate").items():
        roots[stack.split(";")[0]] += n
    assert roots == {"LFUNC": 41, "CFUNC": 25, "TRACE": 5, "GC": 4,
                     "none": 40}, roots


def test_layers_select_frames():
    assert folded("--layer", "guest") == {
        "luajit;app.lua:0_[g]": 25,
        "luajit;app.lua:0_[g];function 4 of pid 100_[g]": 1,
        "luajit;app.lua:0_[g];lua_payload app.lua:2_[g]": 9,
        "luajit;app.lua:0_[g];lua_payload app.lua:2_[g];"
        "lua_payload app.lua:2_[g]": 40,
    }, folded("--layer", "guest")
    assert {row["layer"] for row in rows("--layer", "guest,jit")} == \
        {"guest", "jit"}


def test_lines_are_those_that_ran():
    selves = {(row.get("file"), row.get("line")): row["self"]
              for row in rows("--by", "line")}
    assert selves[("app.lua", 3)] == 20, selves
    assert selves[("app.lua", 4)] == 15, selves


def test_a_chunk_is_a_module():
    modules = {row["module"]: row for row in rows("--by", "module")}
    assert modules["app.lua"]["self"] == 40, modules
    assert modules["app.lua"]["total"] == 75, modules


def test_a_recursive_function_counts_once():
    row, = [r for r in rows() if r["symbol"] == "lua_payload app.lua:2"]
    assert (row["self"], row["total"]) == (40, 49), row


def test_the_flame_graph_has_a_colour_for_each_layer():
    seam("flamegraph", "-o", "app.svg", FILE)
    svg = open("app.svg").read()
    looks = {name: re.search(r'class="f (\w)\d*"[^>]*><title>' +
                             re.escape(name), svg)
             for name in ("lua_payload app.lua:2", "c_payload", "TRACE [7]")}
    assert all(looks.values()), looks
    assert [look[1] for look in looks.values()] == ["g", "n", "j"], looks


def test_annotate_shows_the_source_of_a_guest_function():
    name = "lua_payload app.lua:2"
    function, = json.loads(seam("annotate", "--json", "-i", FILE,
                                name))["functions"]
    assert [(line["line"], line["samples"]) for line in function["lines"]] \
        == [(3, 20), (4, 15)], function
    assert function["samples_outside"] == 5, function
    text = seam("annotate", "-i", FILE, name)
    assert re.search(r"33.33% +20 +3: +local a = n\n", text), text
    assert "5 samples are in no line that is known" in text, text
    text = seam("annotate", "-i", FILE, "function 4 of pid 100", status=1)
    assert "no source: its lines are not known" in text, text
    text = seam("annotate", "--total", "-i", FILE, "app.lua:0")
    assert re.search(r" 50 +9: *\n.* 25 +10: *\n", text), text


def test_stats_count_ends_and_ticks():
    stats = json.loads(seam("report", "--stats", "--json", FILE))
    guest = stats["guest_stacks"]
    assert (guest["stacks"], guest["complete"], guest["ticks"]) == \
        (75, 75, 95), guest
    for half in "guest_ended", "host_ended":
        ends = guest[half]
        assert ends.pop("complete") == 75 and not any(ends.values()), guest
    text = seam("report", "--stats", FILE)
    assert "VM stacks: 75" in text and "75 complete in both" in text, text
    assert "native stacks below them: 75" in text, text


def test_a_lost_symbol_is_noted():
    notes = json.loads(seam("report", "--json", FILE))["notes"]
    assert any("symbol records were lost: 1" in note for note in notes), notes


def test_dump_shows_the_records():
    lines = [json.loads(line) for line in
             seam("dump", "--json", FILE).splitlines()]
    guest = [line["guest"] for line in lines if "guest" in line]
    assert len(guest) == 75
    assert sum(record["n_ticks"] for record in guest) == 95
    names = [line["symbol"]["name"] for line in lines if "symbol" in line]
    assert names == ["", "lua_payload", ""], names
    assert all("damaged" not in record for record in guest)


def test_a_bundle_is_read_as_its_data_is():
    os.mkdir("app.seam")
    shutil.copy(FILE, "app.seam/data")
    assert seam("convert", "--to", "folded", "app.seam") == \
        seam("convert", "--to", "folded", FILE)


def test_perf_shows_the_native_half():
    if not shutil.which("perf"):
        raise Skip("no perf")
    done = run("perf", "report", "-i", FILE, "--stdio", "--no-children",
               "-g", "none")
    assert done.returncode == 0, done.stderr
    samples = re.findall(r"# Samples: (\d+) .* of event '([^']*)'",
                         done.stdout) or \
        re.findall(r"# Samples: (\d+) +of event '([^']*)'", done.stdout)
    assert ("40", "cpu-clock") in samples, done.stdout[:2000]
    assert ("75", "seam:guest") in samples, done.stdout[:2000]


os.chdir(FOLDER)
open("app.lua", "w").write(LUA)
subprocess.run([GENERATOR, FILE], check=True)
sys.exit(run_tests(globals()))
