#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program in Lua and C, recorded: test_guest_program.py SEAM SAMPLER

The program of the sysprof RFC: fib() in Lua and fib() in C, called by FFI, with
the CPU time of each, which the program measures itself.  Prints TAP.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from record_lib import FOLDER, SEAM, compile_c, folded, run_tests, seam

shutil.copy(sys.argv[2], FOLDER)    # where 'seam record' finds it
C = """
__attribute__((noinline)) int c_payload(int n)
{ return n <= 1 ? n : c_payload(n - 1) + c_payload(n - 2); }
"""
LUA = """\
local ffi = require "ffi"
ffi.cdef "int c_payload(int n);"
local C = ffi.load("./libpayload.so")

local function lua_payload(n)
  if n <= 1 then return n end
  return lua_payload(n - 1) + lua_payload(n - 2)
end

local function timed(f, n)
  local before = os.clock()
  f(n)
  return os.clock() - before
end

-- An argument with which it takes many times as long as a tick.
local function long(f)
  local n = 20
  while timed(f, n) < 0.02 do n = n + 1 end
  return n
end

local function payload(seconds, n, m)
  local lua, c = 0, 0
  while lua + c < seconds do
    lua = lua + timed(lua_payload, n)
    c = c + timed(C.c_payload, m)
  end
  print(("lua %.6f c %.6f"):format(lua, c))
end

payload(tonumber(arg[1]), long(lua_payload), long(C.c_payload))
"""
LUA_PAYLOAD, PAYLOAD = "lua_payload rfc.lua:5", "payload rfc.lua:23"


def record(*options):
    """The recording, and the CPU time of both payloads in seconds."""
    name = f"rfc{''.join(options)}.seam"
    out = seam("record", "-q", "-F", "1000", "--layers", "guest", "-o", name,
               "--", "luajit", *options, "rfc.lua", "1")
    lua, c = map(float, re.search(r"lua (\S+) c (\S+)", out).groups())
    return name, lua, c


def check(*options):
    """All that is promised about a recording of the program."""
    name, lua, c = record(*options)
    stacks = folded("--weight", name)
    total = sum(n for _, n in stacks)
    under = [(stack, n) for stack, n in stacks if PAYLOAD + "_[g]" in stack]
    in_c = sum(n for stack, n in under if "c_payload" in stack)
    in_lua = sum(n for stack, n in under if LUA_PAYLOAD + "_[g]" in stack)
    # one flame graph, under one root: from the entry to both payloads
    roots = {tuple(stack[:stack.index(PAYLOAD + "_[g]")])
             for stack, _ in under}
    assert len(roots) == 1, roots
    root, = roots
    assert root[1] == "_start" and "lua_pcall" in root and \
        root[-1] == "rfc.lua:0_[g]", root
    events = json.loads(seam("report", "--json", name))["events"]
    assert [e["unit"] for e in events if e["samples"]] == ["ns"], events
    # shares, of the CPU time that the program measured
    for what, weight, seconds in ("lua", in_lua, lua), ("c", in_c, c):
        share, measured = weight / total, seconds / (lua + c)
        assert abs(weight / (in_lua + in_c) - measured) <= 0.02, \
            f"{what}: {share:.4f} of the samples, {measured:.4f} of the time"
    assert abs((in_lua + in_c) / 1e9 / (lua + c) - 1) <= 0.03, \
        f"{(in_lua + in_c) / 1e9} s sampled, {lua + c} s measured"
    stats = json.loads(seam("report", "--stats", "--json",
                            name))["guest_stacks"]
    assert stats["complete"] >= 0.995 * stats["stacks"] > 0, stats
    return name


def test_interpreted_functions_have_their_share_under_one_root():
    name = check("-joff")
    rows = {row["vmstate"]: row["self"] for row in json.loads(
        seam("report", "--by", "vmstate", "--json", name))["rows"]}
    assert rows["LFUNC"] + rows["CFUNC"] > 0.95 * sum(rows.values()), rows
    assert "TRACE" not in rows, rows
    # the VM's own function between both has the name that vmdef.lua gives it
    chains = [stack for stack, _ in folded("--weight", name) if "c_payload" in stack and
              PAYLOAD + "_[g]" in stack]
    calls = {stack[stack.index(PAYLOAD + "_[g]") + 1] for stack in chains}
    assert calls == {"timed rfc.lua:10_[g]"}, calls
    assert any("ffi.meta.__call_[g]" in stack for stack in chains), chains[:3]


def test_compiled_functions_have_their_share_under_one_root():
    name = check()
    rows = {row["vmstate"]: row["self"] for row in json.loads(
        seam("report", "--by", "vmstate", "--json", name))["rows"]}
    assert rows["TRACE"] > 0.1 * sum(rows.values()), rows
    traces = [row["symbol"] for row in json.loads(
        seam("report", "--top", "0", "--json", name))["rows"]
        if row["layer"] == "jit"]
    assert any(re.fullmatch(r"TRACE \[\d+\] started at rfc.lua:\d+", trace)
               for trace in traces), traces


def comm_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):     # it has ended
        return None


def child_of(recorder, name):
    """The process of that name that the recorder started, when it runs."""
    while recorder.poll() is None:
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children") as f:
            for pid in f.read().split():
                if comm_of(pid) == name:
                    return int(pid)
    raise AssertionError("the program did not start")


def test_a_thread_that_waits_in_a_handler_is_sampled_on():
    recorder = subprocess.Popen(
        [SEAM, "record", "-q", "-F", "10000", "--layers", "guest", "-o",
         "stopped.seam", "--", "luajit", "-joff", "rfc.lua", "0.6"],
        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    pid = child_of(recorder, "luajit")
    # some of the stops are in a handler: that is no CPU time
    for _ in range(50):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.03)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.003)
    assert recorder.wait() == 0
    ticks = [json.loads(line)["guest"]["n_ticks"] for line in
             seam("dump", "--json", "stopped.seam").splitlines()
             if '"guest":' in line]
    assert max(ticks) < 200, sorted(ticks)[-5:]


os.chdir(FOLDER)
open("rfc.lua", "w").write(LUA)
compile_c("libpayload.so", C, "-g", "-shared", "-fPIC")
sys.exit(run_tests(globals()))
