#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Streams of LuaJIT's sysprof: sysprof.py SEAM

The oracles are what LuaJIT wrote beside each stream: its counters (.report) and
the output of its own parser (.parsed.txt).
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import tap

SEAM = os.path.abspath(sys.argv[1])
PARSE = os.path.join(os.path.dirname(SEAM), "luajit-parse-sysprof")
CORPUS = pathlib.Path(os.environ["SEAM_CORPUS"]) / "sysprof"
# In the larger corpus only.
DECODER = CORPUS / "scripts" / "refdump.py"
STATES = ("INTERP LFUNC FFUNC CFUNC GC EXIT RECORD OPT ASM TRACE").split()
# Streams in which LuaJIT's parser joins Lua frames, but for those in which
# calls are nested, and which it joins wrongly or not at all.
JOINED = "_emb"


def run(*words, program=SEAM, status=0, **more):
    done = subprocess.run([program, *map(str, words)], timeout=60, check=False,
                          capture_output=True, text=True,
                          input=more.pop("input", "") or "", **more)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


def streams():
    found = sorted(CORPUS.glob("*.bin")) + sorted(CORPUS.glob("v1/*.bin"))
    if not found:
        raise tap.Skip("no corpus of sysprof streams")
    return found


def report(path, *words, **more):
    return json.loads(run("report", "--json", *words, path, **more).stdout)


def by_state(path, **more):
    rows = report(path, "--by", "vmstate", **more)["rows"]
    return {row["vmstate"]: row["self"] for row in rows}


def folded(text):
    """{(frames): count} of folded stacks."""
    stacks = collections.Counter()
    for line in text.splitlines():
        stack, count = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";")) if stack else ()] += int(count)
    return stacks


def own_name(frame):
    """A frame of LuaJIT's parser as ours: no address, no @, its layer."""
    c = re.fullmatch(r"(.+):0x[0-9a-f]+", frame)
    if c:
        return c[1]
    if re.fullmatch(r"CFUNC 0x[0-9a-f]+", frame):
        return frame
    return frame.removeprefix("@") + "_[g]"


def parsed(path):
    """The stacks that LuaJIT's parser printed, with our names."""
    stacks = collections.Counter()
    for line in path.read_text(encoding="latin1").splitlines():
        stack, count = re.fullmatch(r"(.*?)[\t ](\d+)", line).groups()
        stack = stack.removesuffix(";")
        frames = stack.split(";") if stack else []
        stacks[tuple(map(own_name, frames))] += int(count)
    return stacks


def without_traces(stacks):
    kept = collections.Counter()
    for stack, count in stacks.items():
        is_trace = stack and stack[-1].startswith("TRACE [")
        kept[() if is_trace else stack] += count
    return kept


def difference(ours, theirs):
    return [*(("ours", s, n) for s, n in (ours - theirs).items()),
            *(("theirs", s, n) for s, n in (theirs - ours).items())][:4]


def test_samples_by_state_are_the_counters_of_the_vm():
    for path in streams():
        counters = dict(re.findall(r"(\w+)=(\d+)", pathlib.Path(
            f"{path}.report").read_text()))
        counts = by_state(path)
        for state in STATES:
            assert counts.get(state, 0) == int(counters[state]), \
                (path.name, state, counts)
        assert sum(counts.values()) == int(counters["samples"]), path


def test_stacks_are_those_of_luajit_s_parser():
    n = 0
    for path in streams():
        # LEAF streams have no host frame: there the parser prints nothing
        if JOINED not in path.name or "_L_" in path.name:
            continue
        ours = without_traces(folded(run(path, program=PARSE).stdout))
        theirs = parsed(path.with_suffix(".parsed.txt"))
        assert ours == theirs, (path.name, difference(ours, theirs))
        n += 1
    assert n == 15, n


def test_stacks_of_version_1_are_those_of_its_parser():
    for path in streams():
        if path.parent.name != "v1":
            continue
        # its VM has no symbols, from which the name would come
        ours = folded(run(path, program=PARSE).stdout.replace(
            "ffid 170_", "ffi.meta.__call_"))
        theirs = parsed(path.with_suffix(".parsed.txt"))
        assert ours == theirs, difference(ours, theirs)
        ours = folded(run("--split", path, program=PARSE).stdout.replace(
            "ffid 170_", "ffi.meta.__call_"))
        theirs = collections.Counter()
        for stack, count in parsed(path.with_suffix(".split.txt")).items():
            theirs[(stack[0].removesuffix("_[g]"), *stack[1:])] += count
        assert ours == theirs, difference(ours, theirs)


# What is wrong in each crafted stream: (status of report, whole samples, words).
# Those that are not here are valid, as odd as they are.
BAD = {
    "bad_ljp_magic": (1, 0, "profile at byte 125999"),
    "bad_ljs_magic": (1, 0, "at byte 0, with 6b6a73"),
    "bad_vmstate13": (3, 0, "at byte 126006 (0x0d)"),
    "ljs_version2": (1, 0, "symbol at byte 2470"),
    "min_bad_frame0": (3, 0, "Lua frame at byte 16 (0x00)"),
    "min_epilogue_ff": (3, 0, "at byte 15 (0xff)"),
    "min_frame_hdr_ff": (3, 0, "Lua frame at byte 19 (0xff)"),
    "min_symtype3": (1, 0, "symbol at byte 7 (0x03)"),
    "no_epilogue": (3, 154, "cut off at byte 145346, before its epilogue"),
    "prologue_only": (1, 0, "cut off at byte 7"),
    "short3": (1, 0, "cut off at byte 3"),
    "trailing_garbage": (3, 154, "7 bytes after the epilogue, from byte 1453"),
    "trunc_sample": (3, 150, "cut off at byte 145147"),
    "trunc_symtab": (1, 0, "cut off at byte 60000"),
}


def test_a_damaged_stream_is_shown_up_to_the_damage_and_says_where():
    streams()
    found = {path.stem: path for path in CORPUS.glob("bad/*.bin")}
    assert set(BAD) < set(found), set(BAD) - set(found)
    for name, path in found.items():
        status, samples, words = BAD.get(name, (0, None, ""))
        told = run("report", "--json", path, status=status)
        if status != 1:
            shown = json.loads(told.stdout)
            counted = sum(row["self"] for row in shown["rows"])
            assert counted == shown["samples"], name
            assert samples in (None, counted), (name, counted)
            assert bool(shown["lost"]["causes"]) == (status == 3), name
            told.stderr += " ".join(shown["notes"])
        assert words in told.stderr, (name, told.stderr)
        told = run(path, program=PARSE, status=status)
        assert words in told.stderr, (name, told.stderr)
        told = run("dump", path, status=3 if status and name !=
                   "bad_ljs_magic" else status)
        assert words in told.stderr, (name, told.stderr)


def dumped(path, status=0):
    return [json.loads(line) for line in
            run("dump", "--json", path, status=status).stdout.splitlines()]


def samples_of(path):
    return [item for item in dumped(path) if item["type"] == "sample"]


def test_no_frame_is_lost_and_all_are_in_their_order():
    for path in streams():
        n = collections.Counter()
        for sample in samples_of(path):
            if sample["vmstate"] != "TRACE":
                n["frames"] += sum("cfunc" not in f for f in sample["lua"])
                n["frames"] += len(sample["host"])
                n["guest"] += sum("cfunc" not in f for f in sample["lua"])
                c = sum("cfunc" in f for f in sample["lua"])
                n["c"] += c
                # the unwinder stopped at once in some of the VM's code
                n["cut"] += c * (len(sample["host"]) == 1)
            else:
                n["guest"] += 1
                n["frames"] += 2
        stacks = folded(run("convert", "--to", "folded", "--by", "all",
                            path).stdout)
        guest = sum(sum(f.endswith("_[g]") for f in stack) * count
                    for stack, count in stacks.items())
        frames = sum((len(stack) - 1) * count
                     for stack, count in stacks.items())
        assert guest == n["guest"], (path.name, guest, n)
        assert n["frames"] <= frames <= n["frames"] + n["c"], path.name
        # C functions are found in the host's stack where that is whole
        if re.search("_bt|" + JOINED, path.name) and "_L_" not in path.name:
            assert frames <= n["frames"] + n["cut"], (path.name, frames, n)


def test_calls_from_lua_to_c_to_lua_are_in_turn():
    streams()
    path = CORPUS / "deepc_C_joff_emb.bin"
    stacks = folded(run("convert", "--to", "folded", "--by", "all",
                        path).stdout)
    n = 0
    for stack in stacks:
        for caller, callee in zip(stack, stack[1:]):
            # l_apply is called by line 28 through the VM, and calls line 28
            if caller == "l_apply" and callee.endswith("_[g]"):
                assert callee.endswith("work.lua:28_[g]"), stack
                n += 1
            assert callee != "l_apply" or caller == "lj_BC_FUNCC", stack
    assert n > 1000, n


def test_a_copy_of_a_stream_is_equal():
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.bin")
        for path in streams():
            run("convert", "--to", "sysprof", "-o", copy, path)
            old, new = path.read_bytes(), pathlib.Path(copy).read_bytes()
            if path.parent.name == "v1":
                def items(of):
                    return [{k: v for k, v in item.items() if k not in
                             ("offset", "version")} for item in dumped(of)]
                assert items(path) == items(copy), path
            else:
                assert old == new, path
        damaged = CORPUS / "bad" / "trunc_sample.bin"
        run("convert", "--to", "sysprof", "-o", copy, damaged, status=3)
        assert len(samples_of(copy)) == 150
        run("convert", "--to", "sysprof", "--layer", "guest", "-o", copy,
            streams()[0], status=1)


def test_a_recording_with_guest_frames_becomes_a_stream():
    """What the recording has is in guest_recording.c."""
    maker = os.path.join(os.path.dirname(SEAM), "tests/cli/guest_recording")
    with tempfile.TemporaryDirectory() as folder:
        data, stream = (os.path.join(folder, name) for name in ("d", "s.bin"))
        run(data, program=maker)
        told = run("convert", "--to", "sysprof", "-o", stream, data,
                   status=3).stderr
        for words in ("samples without a VM state (40)",
                      "has no Lua stack (13)", "has no stack (10)",
                      "are chunk and line in a stream (1)", "times, threads"):
            assert words in told, (words, told)
        stacks = folded(run("convert", "--to", "folded", "--by", "vmstate",
                            stream).stdout)
        lua = "main", "lua_pcall", "app.lua:0_[g]"
        assert stacks == {
            ("CFUNC", *lua, "c_payload"): 25,
            ("GC", "main", "lua_pcall", "lj_gc_step"): 4,
            ("LFUNC", *lua, "app.lua:2_[g]", "app.lua:2_[g]"): 40,
            ("LFUNC", *lua, "function 4 of pid 100:0_[g]"): 1,
            ("TRACE", "app.lua:2_[g]",
             "TRACE [7] started at app.lua:4_[j]"): 5}, stacks


def the_reference_decoder_reads_the_same():
    sys.path.insert(0, str(DECODER.parent))
    import refdump
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "copy.bin")
        for path in streams():
            run("convert", "--to", "sysprof", "-o", copy, path)
            theirs = [line for line in refdump.main(copy)
                      if "|" in line or line.startswith("TRACE T")]
            ours = []
            for s in samples_of(path):
                if s["vmstate"] == "TRACE":
                    ours.append(f"TRACE T{s['traceno']}:{s['addr']:#x}:"
                                f"{s['line']}")
                    continue
                lua = [f"L{f['proto']:#x}:{f['line']}" if "proto" in f else
                       f"C{f['cfunc']:#x}" if "cfunc" in f else
                       f"F{f['ffid']}" for f in s["lua"]]
                ours.append(" ".join([s["vmstate"], *lua, "|",
                                      *map(hex, s["host"])]))
            assert ours == theirs, path


def test_memory_profiles_are_refused_by_name():
    streams()
    for path in CORPUS.glob("memprof/*.bin"):
        for words in ("report",), ("flamegraph", "-o", "-"), ("dump",):
            assert "memprof" in run(*words, path, status=1).stderr
        assert "memprof" in run(path, program=PARSE, status=1).stderr


def test_names_from_a_stream_cannot_act():
    def string(text):
        return bytes([len(text)]) + text

    evil = b"@a\x1b[31m;\n\xe2\x80\xae\xff.lua"
    stream = b"ljs\3\0\0\0" + b"\0\x10" + string(evil) + b"\5" + \
        b"\1\x20" + string(b"lua_call\x1b]0;x\7 <b>") + b"\x80" + \
        b"ljp\2\0\0\0" + b"\1\1\x10\5\x80\x28\0" + b"\x80"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.bin")
        pathlib.Path(path).write_bytes(stream)
        for words, program in ((("report",), SEAM), (("dump",), SEAM),
                               (("report", "--json"), SEAM), ((), PARSE),
                               (("flamegraph", "-o", "-"), SEAM),
                               (("convert", "--to", "folded"), SEAM)):
            text = run(*words, path, program=program).stdout
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]",
                                 text), (words, text)
        text = run(path, program=PARSE).stdout
        assert text.count("\n") == 1 and text.count(";") == 1, text


def test_the_parser_s_command_line_is_the_rfc_s():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.bin")
        pathlib.Path(path).write_bytes(
            b"ljs\3\0\0\0\0\x10\6@a.lua\0\1\x20\x09l"
            b"ua_pcall\x80ljp\2\0\0\0\1\1\x10\0\x80\x28\0\0\0"
            b"\x80")
        assert run(path, program=PARSE).stdout == \
            " 1\nlua_pcall;a.lua:0_[g] 1\n"
        split = run("--split", path, program=PARSE).stdout
        assert split == "VMST_INTERP 1\nVMST_LFUNC;lua_pcall;a.lua:0_[g] 1\n"
        assert run("--split", "-", program=PARSE, input=None,
                   status=1).stdout == ""
        text = run("--help", program=PARSE).stdout
        assert "luajit-parse-sysprof" in text and "--split" in text
        assert "seam luajit" not in text
        assert "FILE is missing" in run(program=PARSE, status=2).stderr
        assert "one FILE" in run(path, path, program=PARSE, status=2).stderr
        missing = run(path + "x", program=PARSE, status=1).stderr
        assert "No such file" in missing, missing
        assert missing.startswith("luajit-parse-sysprof: cannot"), missing
        page = run("help", "--man", "luajit-parse-sysprof").stdout
        assert ".Nm luajit" in page and "split" in page


promises = tap.promises(globals())
if DECODER.exists():
    promises.append(("the reference decoder reads the same",
                     the_reference_decoder_reads_the_same))
sys.exit(tap.run(promises))
