#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What no program with libseam-fdr sends: trace_forged.py SEAM LIBRARY FORGER"""
import glob
import json
import os
import re
import resource
import shutil
import sys
import xml.dom.minidom

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import fdr_log                                                 # noqa: E402
from record_lib import (FOLDER, SEAM, check, equal, manifest,  # noqa: E402
                        record, run, run_tests)

shutil.copy(sys.argv[2], FOLDER)    # where 'seam record' finds it
FORGER = os.path.abspath(sys.argv[3])
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
# and what a terminal or a browser does not show as it is
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e"
                    "\u2066-\u2069\ufffe\uffff]")


def forged(*mode, options=("--trace",)):
    """The counts and the result, after all commands have read the log."""
    for bundle in glob.glob("t*.seam"):
        shutil.rmtree(bundle)
    result = record("-o", "t.seam", *options, "--", FORGER, *mode)
    check(result.returncode in (0, 3), result.stderr)
    check(not CONTROL.search(result.stderr), result.stderr)
    for command in (("calls",), ("calls", "--stacks"), ("report",),
                    ("dump",), ("convert", "--to", "folded")):
        read = run(SEAM, *command, "t.seam")
        check(read.returncode in (0, 1, 3), f"{command}: {read.stderr}")
        check(not CONTROL.search(read.stdout + read.stderr),
              f"{command}: {read.stdout!r}")
    return result, manifest("t.seam")["calls"]


def test_garbage_is_counted_and_what_is_valid_stays():
    result, calls = forged("garbage")
    equal(result.returncode, 3, result.stderr)
    check(calls["damaged_bytes"] > 0 and calls["refused"] > 0 and
          calls["records"] > 1000, f"{calls}")
    (path,) = glob.glob("t.seam/xray/*.xray")
    log = fdr_log.Log(path)     # its own reader, which refuses what is damaged
    check(sum(len(thread.calls) for thread in log.threads.values()) > 500)


def build_secret():
    """A file that no program maps, and the address of its function."""
    with open("secret.c", "w", encoding="ascii") as source:
        source.write("void secret_name(void) { }\n")
    run("cc", "-shared", "-fPIC", "-o", "secret.so", "secret.c")
    address = re.search(r"^([0-9a-f]+) T secret_name$",
                        run("nm", "secret.so").stdout, re.M)[1]
    return os.path.abspath("secret.so"), "0x" + address


def nothing_is_named(*mode):
    result, calls = forged(*mode)
    equal(calls["functions"], 1, result.stderr)
    shown = run(SEAM, "calls", "--json", "t.seam")
    (function,) = json.loads(shown.stdout)["functions"]
    check(function["name"].startswith("0x"), function)
    check("1 function of '" in shown.stderr and "neither its build id nor "
          "its contents are known" in shown.stderr, shown.stderr)


def test_a_file_that_is_not_mapped_names_no_function():
    secret, address = build_secret()
    for path in ("/etc/shadow", secret):
        nothing_is_named("shadow", path, address)


def test_names_are_escaped_in_files_and_on_terminals():
    result, calls = forged("names")
    equal(calls["functions"], 6, result.stderr)
    (names,) = glob.glob("t.seam/xray/*.yaml")
    equal(sorted(fdr_log.names(names)), list(range(1, 7)))
    (types,) = glob.glob("t.seam/xray/*.events")
    for path in (names, types):
        with open(path, encoding="utf-8") as text:
            check(not CONTROL.search(text.read()), path)
    with open(types, encoding="utf-8") as text:
        equal(len(text.readlines()), 6)


def hostile_names():
    """Of all characters that mean something somewhere, and of none."""
    return [bytes(range(1, 128)), bytes(range(128, 256)), b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80", b"\xc3", b"\xc0\xaf", b"%s%n", b"-->",
            b"</script><script>x", b"]]>", b"a;b;c 7", b"...", b"---",
            b"- { id: 1 }", b"# image 1 \"x\"", b"'", b"\\", b"\\\"",
            b"&amp;<b>", b"{{x}}", b" ", b"~", b"null", b"!tag", b"*x", b"|",
            b"x" * 255, "\u202e\u2066\u2028\u2029\x85\ufeff\ufffe".encode(),
            *("".join(chr(c) for c in range(at, at + 60)
                      if not 0xd800 <= c < 0xe000).encode()
              for at in (0x80, 0x2000, 0x2040, 0xd7f0, 0xdff0, 0xfec0,
                         0xfff0, 0x1ffe0, 0x10ffc0))]


def test_function_names_are_escaped_in_all_views_and_one_to_all_readers():
    os.environ["NAMES"] = "\n".join(n.hex() for n in hostile_names())
    forged("functions")
    del os.environ["NAMES"]
    (path,) = glob.glob("t.seam/xray/*.yaml")
    with open(path, encoding="utf-8") as text:
        wanted = {int(i): json.loads(name) for i, name in re.findall(
            '{ id: (\\d+), .* function-name: (".*"), version', text.read())}
    equal(list(wanted.values()), [
        "".join("\ufffd" if "\udc80" <= c <= "\udcff" else c
                for c in name.decode(errors="surrogateescape"))
        for name in hostile_names()], path)
    got = json.loads(run(SEAM, "calls", "--json", "t.seam").stdout)
    equal({f["id"]: f["name"] for f in got["functions"]}, wanted)
    for command in (("report", "--json"), ("dump", "--json"), ("flamegraph",
                    "--event=xray", "-o", "-"), ("convert", "--to",
                    "trace-json"), ("convert", "--to", "xray-yaml")):
        read = run(SEAM, *command, "t.seam")
        equal(read.returncode, 0, f"{command}: {read.stderr}")
        check(not HIDDEN.search(read.stdout + read.stderr), command)
        if command[0] == "flamegraph":
            xml.dom.minidom.parseString(read.stdout)
        if command[-1] == "trace-json":
            json.loads(read.stdout)
    (log,) = glob.glob("t.seam/xray/*.xray")
    llvm = run("llvm-xray", "account", "-instr_map", path, "-format=csv", log)
    equal(llvm.returncode, 0, llvm.stderr)
    equal(len(llvm.stdout.splitlines()), 1 + len(wanted))


def test_triggers_that_were_not_met_make_a_few_snapshots():
    result, _ = forged("hits", options=(
        "--flight-recorder=1M", "--max-snapshots=2", "--trigger=f>1ms",
        "--trigger=g>1ms"))
    equal(sorted(glob.glob("t.*.seam")), ["t.1.seam", "t.2.seam"],
          result.stderr)
    for bundle in ("t.1.seam", "t.2.seam"):
        read = run(SEAM, "report", bundle)
        check(read.returncode in (0, 1, 3), read.stderr)
        check(not CONTROL.search(read.stdout + read.stderr), read.stdout)


def test_claims_that_lie_end():
    for options in (("--trace",), ("--flight-recorder=1M",)):
        result, calls = forged("claims", options=options)
        equal(calls["records"], 0, result.stderr)
        check(calls["threads"] < 50e6, calls)


def test_ids_all_over_take_little_memory():
    _, calls = forged("ids")
    equal(calls["records"], 4098)
    check(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400 << 10,
          "memory")


def test_names_of_many_functions_are_within_the_limit_of_a_recording():
    """300 bytes each, for 8 of records."""
    _, calls = forged("many", options=("--trace", "--max-size=10M"))
    equal(calls["records"], 409600)
    (path,) = glob.glob("t.seam/xray/*.yaml")
    check(8 << 20 < os.path.getsize(path) <= 64 << 20, os.path.getsize(path))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
