#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sysprof on a LuaJIT that was built without it.

Usage: sysprof_live.py SEAM FAST_HOST HIDDEN_HOST FOLDER

FAST_HOST embeds LuaJIT, and has 10 ticks for one; HIDDEN_HOST has LuaJIT in
it, without symbols; FOLDER has seam.so, for the luajit of this machine.
"""
import collections
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "cli"))
import tap  # noqa: E402

SEAM, FAST, HIDDEN, FOLDER = map(os.path.abspath, sys.argv[1:])
SCRIPTS = HERE / "scripts"
LUAJIT = "luajit"

os.environ["LUA_CPATH"] = f"{FOLDER}/?.so;;"
os.chdir(tempfile.mkdtemp())


def run(program, *words, status=0):
    done = subprocess.run([program, *map(str, words)], timeout=60, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done


@functools.cache
def profile(program, script, jit, seconds, mode="C"):
    """Run it with and without; ({state: n}, [(frames, n)], output)."""
    path = f"{script}-{jit}-{mode}.bin"
    done = run(program, SCRIPTS / f"{script}.lua", path, jit, seconds, mode)
    words = done.stderr.split()
    states = dict(zip(words[::2], map(int, words[1::2])))
    return states, folded(path), done.stdout


def folded(path, status=0):
    stacks = []
    done = run(SEAM, "convert", "--to", "folded", path, status=status)
    for line in done.stdout.splitlines():
        stack, n = line.rsplit(" ", 1)
        stacks.append((stack.split(";"), int(n)))
    return stacks


def total(stacks, *frames):
    """Samples with all of the frames, in this order."""
    n = 0
    for stack, count in stacks:
        rest = iter(stack)
        n += count * all(any(frame in name for name in rest)
                         for frame in frames)
    return n


def at(script, text):
    """The frame of the function that begins in the line with the text."""
    lines = (SCRIPTS / script).read_text().splitlines()
    (line,) = [i for i, line in enumerate(lines, 1) if text in line]
    return f"{script}:{line}_[g]"


def check_counts(path, states):
    """What the stream has is what the counters have."""
    text = run(SEAM, "report", "--json", "--by", "vmstate", path).stdout
    rows = {row["vmstate"]: row["self"] for row in json.loads(text)["rows"]}
    wanted = collections.Counter(states)
    n = wanted.pop("samples")
    assert rows == dict(+wanted), (rows, wanted)
    assert n == sum(rows.values())


def test_the_rfcs_program_is_one_flame_graph_of_both_languages():
    states, stacks, output = profile(FAST, "rfc", "off", 1)
    n, work = states["samples"], at("rfc.lua", "profile(function")
    assert 9500 <= n <= 10600, n
    in_c = total(stacks, "main", work, "c_payload")
    in_lua = total(stacks, "main", work, at("rfc.lua", "lua_payload(n)"))
    # the rest reads the clock: more where the machine is busy
    assert in_c + in_lua >= 0.96 * n, (in_c, in_lua, n)
    share = float(output.split()[1])
    assert abs(in_c / n - share) <= 0.02, (in_c / n, share)
    # both stacks are complete
    assert total(stacks, "main", work) >= 0.995 * n, stacks
    check_counts("rfc-off-C.bin", states)


def test_with_the_jit_traces_are_named():
    states, stacks, _ = profile(FAST, "rfc", "on", 0.5)
    assert states["TRACE"] > 0.5 * states["samples"], states
    named = total(stacks, "rfc.lua:", "TRACE [")
    assert named == states["TRACE"], (named, states)
    check_counts("rfc-on-C.bin", states)


def test_leaf_mode_has_the_top_frame_of_each_stack():
    states, stacks, _ = profile(LUAJIT, "rfc", "off", 0.3, "L")
    # the root is the program's name
    assert all(len(stack) <= 3 for stack, _ in stacks), stacks
    n = total(stacks, at("rfc.lua", "lua_payload(n)"))
    assert n > 0.3 * states["samples"], stacks
    assert total(stacks, "c_payload") > 0.05 * states["samples"], stacks
    check_counts("rfc-off-L.bin", states)


def survives(script, *frames):
    """The two defects that end the original, at 10 kHz."""
    for jit in "off", "on":
        wanted = run(FAST, SCRIPTS / f"{script}.lua", "none", jit, 0.01).stdout
        states, stacks, output = profile(FAST, script, jit, 1)
        assert output == wanted, output
        assert states["samples"] >= 9000, states
        check_counts(f"{script}-{jit}-C.bin", states)
        if jit == "off":
            n = total(stacks, "main", *frames)
            assert n > 200, (n, states)


def test_coroutines_that_switch_are_sampled():
    survives("coroutines", "coroutines.lua:0_[g]", "coroutine.wrap_aux_[g]",
             at("coroutines.lua", "coroutine.wrap("),
             at("coroutines.lua", "local function leaf"))


def test_returns_from_c_into_lua_are_sampled():
    nest = at("returns.lua", "local function nest")
    survives("returns", nest, "call", nest, "call", nest)


def test_lua_called_by_c_called_by_lua_is_nested_as_it_was():
    _, stacks, _ = profile(FAST, "returns", "off", 1)
    sort = total(stacks, at("returns.lua", "rounds("), "table.sort_[g]",
                 "lj_cf_table_sort", at("returns.lua", "table.sort(list"),
                 "call", at("returns.lua", "local function add"))
    assert sort > 5, (sort, stacks)


def test_a_stripped_vm_has_names_for_its_own_functions():
    script = pathlib.Path("fast.lua")
    script.write_text("""
        jit.off()
        local sysprof = require "seam.sysprof"
        assert(sysprof.start{ mode = "C", interval = 1, path = "fast.bin" })
        local t = os.clock()
        while os.clock() - t < 0.4 do
          ("x"):rep(100):gsub("x", function()
            local s = tostring(1)
            return s
          end)
        end
        assert(sysprof.stop())""")
    run(LUAJIT, script)
    stacks = folded("fast.bin")
    nested = total(stacks, "fast.lua:0", "string.gsub_[g]",
                   "lj_cf_string_gsub", "fast.lua:7_[g]")
    assert nested > 50, (nested, stacks)
    assert total(stacks, "ffid") == 0, stacks


def test_methods_of_the_vms_own_objects_have_names():
    script = pathlib.Path("methods.lua")
    script.write_text("""
        local ffi, sysprof = require "ffi", require "seam.sysprof"
        assert(sysprof.start{ mode = "C", path = "methods.bin" })
        local t = os.clock()
        while os.clock() - t < 0.02 do end
        assert(sysprof.stop())""")
    run(LUAJIT, script)
    listed = run(SEAM, "dump", "methods.bin").stdout
    for name in "io_method_seek", "ffi_clib___index", "ffi_meta___index":
        assert f'name="lj_cf_{name}"' in listed, name


def test_names_of_a_vm_do_not_need_its_globals():
    script = pathlib.Path("strict.lua")
    script.write_text("""
        jit.off()
        local sysprof, clock = require "seam.sysprof", os.clock
        local assert = assert
        local strict = { __index = function(_, key) error(key) end }
        setmetatable(package.loaded, strict)
        require, io, package.loaded.io = nil, nil, nil
        setmetatable(_G, strict)
        assert(sysprof.start{ mode = "C", interval = 1, path = "strict.bin" })
        local t = clock()
        while clock() - t < 0.2 do
          ("x"):rep(100):gsub("x", function() return "y" end)
        end
        assert(sysprof.stop())""")
    run(LUAJIT, script)
    stacks = folded("strict.bin")
    # without jit.vmdef it is a module's C function like any other
    n = total(stacks, "strict.lua:0", "lj_vm_asm_begin", "string.gsub")
    assert n > 20, (n, stacks)


def test_a_library_that_is_loaded_later_has_names_and_stacks():
    states, stacks, _ = profile(LUAJIT, "late", "off", 0.5)
    n = total(stacks, "main", at("late.lua", "profile(function"), "c_payload")
    assert n > 0.7 * states["samples"], stacks


def test_the_example_profiles_a_script_as_it_stands():
    examples = HERE.parent.parent / "examples"
    done = run(LUAJIT, examples / "sysprof" / "profile.lua", "example.bin",
               examples / "mixed" / "mixed.lua", os.environ["PAYLOAD"], 0.3)
    assert "ms in example.bin: " in done.stderr, done.stderr
    stacks = folded("example.bin")
    assert total(stacks, "mixed.lua:0", "mixed.lua:17") > 100, stacks
    # C is one part of 25
    assert total(stacks, "mixed.lua:0", "c_payload") > 0, stacks
    wrong = run(LUAJIT, examples / "sysprof" / "profile.lua", "example.bin",
                "/dev/null/none", status=1)
    assert "/dev/null/none" in wrong.stderr, wrong.stderr


def test_a_run_that_is_not_stopped_is_whole_when_its_program_ends():
    for how, status in ("exit", 0), ("close", 0), ("end", 0), ("error", 1):
        path = f"{how}.bin"
        run(LUAJIT, SCRIPTS / "ends.lua", path, "off", how, status=status)
        assert pathlib.Path(path).read_bytes()[-1] == 0x80, how
        n = sum(n for _, n in folded(path))
        assert 270 <= n <= 360, (how, n)


def test_what_a_killed_program_leaves_ends_with_a_whole_sample():
    run(FAST, SCRIPTS / "ends.lua", "kill.bin", "off", "kill", status=-9)
    size = os.path.getsize("kill.bin")
    assert size > 256 << 10, size
    done = run(SEAM, "dump", "kill.bin", status=3)
    # nothing is missing but the end
    assert f"byte {size}" in done.stderr, done.stderr
    assert sum(n for _, n in folded("kill.bin", status=3)) > 500


def test_a_file_that_cannot_grow_is_an_error_and_no_signal():
    script = pathlib.Path("limit.lua")
    script.write_text("""
        local sysprof = require "seam.sysprof"
        assert(sysprof.start{ mode = "C", interval = 1, path = arg[1] })
        print "started"
        io.flush()
        io.read()
        local start = os.clock()
        while os.clock() - start < 0.1 do end
        print(sysprof.stop())""")
    done = run("sh", "-c", f"ulimit -f 1; exec {LUAJIT} {script} limit.bin")
    assert done.stdout.endswith("nil\tFile too large\t27\n"), done
    # nobody reads the FIFO any more
    os.mkfifo("fifo")
    reader = os.open("fifo", os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([LUAJIT, script, "fifo"], text=True,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == "started\n"
        os.close(reader)
        output, _ = program.communicate("\n", timeout=60)
    assert output == "nil\tBroken pipe\t32\n", output
    assert program.returncode == 0, program.returncode


def test_it_does_not_start_beside_the_sampler_of_a_recorder():
    script = pathlib.Path("beside.lua")
    script.write_text("""
        print(require("seam.sysprof").start{ mode = "D" })""")
    done = run(SEAM, "record", "-o", "sampler.seam", "--layers=guest", "--",
               LUAJIT, script)
    assert "nil\tprofiler is running already\t22" in done.stdout, done
    # and the same program without it
    assert run(LUAJIT, script).stdout == "true\n"


def test_of_two_copies_of_the_library_one_runs():
    script = pathlib.Path("copies.lua")
    script.write_text(f"""
        local linked = require "seam.sysprof"
        local loaded = package.loadlib("{FOLDER}/seam.so",
                                       "luaopen_seam_sysprof")()
        for _, pair in ipairs {{ {{ linked, loaded }}, {{ loaded, linked }} }} do
          assert(pair[1].start{{ mode = "D" }})
          print(pair[2].start{{ mode = "D" }})
          assert(pair[1].stop())
          print(pair[2].start{{ mode = "D" }})
          assert(pair[2].stop())
        end""")
    lines = run(FAST, script).stdout.splitlines()
    assert lines == ["nil\tprofiler is running already\t22", "true"] * 2, lines


def test_a_vm_whose_symbols_are_hidden_is_refused_with_the_reason():
    script = pathlib.Path("hidden.lua")
    script.write_text("""
        local sysprof = require "seam.sysprof"
        local file = assert(io.open("hidden.bin", "w"))
        file:write("precious")
        file:close()
        print(sysprof.start{ mode = "C", path = "hidden.bin" })
        print(sysprof.stop())""")
    lines = run(HIDDEN, script).stdout.splitlines()
    assert lines[0].startswith("nil\t") and "LuaJIT" in lines[0], lines
    assert lines[0].endswith("\t95"), lines
    assert lines[1] == "nil\tprofiler is not running\t22", lines
    assert pathlib.Path("hidden.bin").read_text() == "precious"


sys.exit(tap.run(tap.promises(globals())))
