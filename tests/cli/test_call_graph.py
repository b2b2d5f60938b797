#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record --call-graph: what is opened, what fits, what is said of it."""
import json
import os
import re
import subprocess
import sys

from record_lib import (FOLDER, IS_ROOT, SEAM, check, compile_c, equal,
                        manifest, perf, record, recorded, refused, run,
                        run_tests)

# Frames of 1 KiB, so many as the first argument says; no frame pointers.
DEEP_C = r"""
#include <stdlib.h>
#include <string.h>
volatile unsigned long x;
__attribute__((noinline)) void leaf(unsigned long n)
{ for (unsigned long i = 0; i < n; i++) x += i; }
__attribute__((noinline)) void mid(int d, unsigned long n)
{
	char room[1000];
	memset(room, d, sizeof(room));
	if (d) mid(d - 1, n); else leaf(n);
	__asm__ volatile("" :: "r"(room) : "memory");
}
int main(int c, char **v)
{ mid(atoi(v[1]), strtoul(v[2], 0, 10)); return c == 9; }
"""
# Code without call frame information, called with a stack that no frame
# pointer leads out of.
BARE_C = r"""
extern volatile unsigned long x;
volatile unsigned long x;
__attribute__((noinline)) void bare(unsigned long n, void (*f)(void))
{
	for (unsigned long i = 0; i < n; i++) x += i;
	if (f) f();
	__asm__ volatile("" ::: "memory");
}
"""
MAIN_C = r"""
#include <stdlib.h>
void bare(unsigned long n, void (*f)(void));
int main(int c, char **v) { bare(strtoul(v[1], 0, 10), 0); return c == 9; }
"""
COUNT = "300000000"
COPIES = ("REGS_USER", "STACK_USER")


def build():
    flags = ("-O2", "-fomit-frame-pointer")
    compile_c("deep", DEEP_C, *flags)
    compile_c("bare.o", BARE_C, *flags, "-fno-asynchronous-unwind-tables",
              "-fno-unwind-tables", "-c")
    compile_c("bare", MAIN_C, *flags, "bare.o")


def attr(name):
    """The first event's, as perf shows it."""
    text = perf("evlist", "-v", "-i", name).splitlines()[0]
    hz = re.search(r"sample_freq \}: (\d+)", text)
    copy = re.search(r"sample_stack_user: (\d+)", text)
    kinds = re.search(r"sample_type: ([^,]+)", text)[1].split("|")
    return kinds, int(hz[1]), int(copy[1]) if copy else 0


def stats(name):
    done = run(SEAM, "report", "--stats", "--json", name)
    return json.loads(done.stdout)["user_stacks"]


def stacks(name):
    """The functions of each sample's stack, as perf reads them."""
    text = perf("script", "--no-inline", "-i", name, "-F", "ip,sym")
    return [[line.split()[1] for line in block.splitlines() if line.strip()]
            for block in text.split("\n\n") if block.strip()]


def test_stacks_without_frame_pointers_are_complete_by_default():
    result = recorded("-o", "d.seam", "./deep", "5", COUNT)
    check("frame pointers" not in result.stderr, result.stderr)
    kinds, hz, copy = attr("d.seam")
    equal((hz, copy), (1000, 0))
    check("CALLCHAIN" in kinds and not set(COPIES) & set(kinds), kinds)
    counts = stats("d.seam")
    check(counts["stacks"] > 50 and counts["percent"] > 95, counts)
    equal(manifest("d.seam")["stacks"]["ended"], counts["ended"])
    table = run(SEAM, "report", "--stats", "d.seam").stdout
    check(re.search(r"\nuser stacks: [\d,]+\n +[\d,]+ +[\d.]+%  complete\n",
                    table), table)


def test_each_way_opens_what_it_says():
    ways = {"fp": (False, 4000, 0), "none": (False, 4000, 0),
            "dwarf": (True, 1000, 8192), "dwarf,64K": (True, 1000, 65528),
            "dwarf,20000": (True, 1000, 20000), "auto": (False, 1000, 0),
            "auto,16K": (False, 1000, 0)}
    for way, (is_kept, hz, copy) in ways.items():
        result = recorded("--call-graph", way, "-o", "w.seam", "./deep", "5",
                          "3000000")
        kinds, *rest = attr("w.seam")
        equal(rest, [hz, copy], way)
        equal(set(COPIES) <= set(kinds), is_kept, f"{way}: {kinds}")
        equal("CALLCHAIN" in kinds, way != "none", f"{way}: {kinds}")
    record("-g", "-F", "4000", "-e", "cpu-clock", "-e",
           "cpu-clock/call-graph=no,name=bare/", "-e",
           "cpu-clock/call-graph=dwarf,freq=99,name=kept/", "-o", "w.seam",
           "./deep", "5", "3000000")
    events = dict(re.findall(r"^(\w[\w-]*): .*sample_type: ([^,]+)",
                             perf("evlist", "-v", "-i", "w.seam"), re.M))
    check("CALLCHAIN" not in events["bare"], events)
    check("STACK_USER" in events["kept"], events)
    check("STACK_USER" not in events["cpu-clock"], events)


def test_what_does_not_fit_is_refused_with_what_would():
    for way in ("auto", "dwarf", "auto,16K"):
        why = refused("--call-graph", way, "-F", "3500", "-m", "256K", "true")
        hz = re.search(r"at 3500 Hz do not fit rings of 256 KiB: -F (\d+)",
                       why)
        check(hz, why)
        result = recorded("--call-graph", way, "-F", hz[1], "-m", "256K", "-o",
                          "f.seam", "true")
    for words in (("fp,8K",), ("dwarf,",), ("auto,1",), ("dwarf,1M",),
                  ("dwarf,8K,fp",), ("",)):
        equal(record("--call-graph", *words, "true").returncode, 2, words)
    check("do not fit rings of 64 KiB (-m)" in
          refused("--call-graph", "auto", "--overwrite", "-m", "16", "true"))


def test_the_default_goes_on_by_frame_pointers_with_a_line():
    result = recorded("-F", "3500", "-m", "256K", "-o", "p.seam", "./spin",
                      "1000000")
    equal(result.stderr.count("by frame pointers only"), 1, result.stderr)
    check("-F 2181 or larger" in result.stderr, result.stderr)
    kinds, hz, copy = attr("p.seam")
    equal((hz, copy, "CALLCHAIN" in kinds), (3500, 0, True))
    check("stack-copies" in manifest("p.seam")["left_out"])
    for words in (("--overwrite", "-m", "16"), ("-c", "1000000")):
        result = recorded(*words, "-o", "p.seam", "./spin", "1000000")
        equal("by frame pointers only: copies of" in result.stderr,
              words[0] != "-c", result.stderr)
        check("CALLCHAIN" in attr("p.seam")[0], words)
        equal(manifest("p.seam").get("stacks"), None)


def test_copies_are_not_advised_where_there_can_be_none():
    record("--overwrite", "-m", "16", "-F", "2000", "-o", "o.seam", "./deep",
           "5", "100000000")
    equal(re.findall(r"% of stacks are cut: no frame pointers (.*)",
                     run(SEAM, "report", "o.seam").stdout),
          ["(copies of stacks need rings of 256K or more: -m)"])


def test_occurrences_have_call_chains_on_request():
    event = "minor-faults/period=1/"
    record("-e", event, "-g", "-o", "o.seam", "./deep", "5", "1000")
    check(stats("o.seam")["stacks"] > 10, stats("o.seam"))
    if IS_ROOT:
        tracepoint = "sched:sched_process_exit"
        for flag, has in (((), False), (("-c", "1"), False),
                          (("-c", "2"), True),
                          (("-g",), True)):
            record("-e", tracepoint, *flag, "-o", "o.seam", "true")
            equal("CALLCHAIN" in attr("o.seam")[0], has)


def test_the_summary_says_why_stacks_are_incomplete():
    result = record("-o", "s.seam", "./deep", "200", COUNT)
    check(re.search(r"of the user stacks are complete.*deeper than the copy "
                    r"of the stack .*--call-graph auto,SIZE", result.stderr),
          result.stderr)
    counts = stats("s.seam")
    check(counts["ended"]["truncated"] > 50, counts)
    rings = manifest("s.seam")["rings"][-1]["bytes"]
    equal(counts["dump_bytes"], {1 << 22: 49152, 1 << 21: 32768,
                                 1 << 20: 32768, 1 << 19: 16384}[rings])
    notes = run(SEAM, "report", "s.seam").stdout
    check("note: " in notes and "deeper than the copy" in notes, notes[-500:])
    result = record("-o", "s.seam", "./bare", COUNT)
    check(re.search(r"code without call frame information and frame pointers, "
                    r"most in \S*/bare \(for C and C\+\+: "
                    r"-fasynchronous-unwind-tables\)", result.stderr),
          result.stderr)
    files = stats("s.seam")["files"]
    check(files[0]["path"].endswith("/bare"), files)


def test_perf_unwinds_the_copies_of_dwarf():
    """Also of a process that ran before: perf reads .eh_frame by mappings."""
    with subprocess.Popen(["./deep", "5", "1200000000"]) as before:
        result = record("--call-graph", "dwarf", "-p", str(before.pid), "-o",
                        "k.seam")
    equal(result.returncode, 0, result.stderr)
    leaf = [names for names in stacks("k.seam") if names[0] == "leaf"]
    whole = [names for names in leaf if "main" in names]
    check(len(leaf) > 20 and len(whole) > 0.9 * len(leaf),
          f"{len(whole)} of {len(leaf)}")


def test_doctor_says_what_a_program_needs():
    with open("script", "w", encoding="ascii") as out:
        out.write("#!/usr/bin/env bash\n")
    os.chmod("script", 0o755)
    done = run(SEAM, "doctor", "--json", "./deep", "./spin", "./script")
    equal(done.returncode, 0, done.stderr)
    deep, spin, script = json.loads(done.stdout)["programs"]
    check(deep["cfi_bytes"] > 0 and deep["call_graph"] == "auto", deep)
    check(deep["frame_pointer_percent"] < spin["frame_pointer_percent"],
          f"{deep} {spin}")
    check(script["path"].endswith("/bash") and not script["go"], script)
    text = run(SEAM, "doctor", "./deep").stdout
    check("call frame information" in text and "--call-graph auto" in text)
    for name in ("nosuch", "./deep.c", "/dev/null", "/"):
        done = run(SEAM, "doctor", name)
        equal(done.returncode, 1, name)
        check(os.path.basename(name) in done.stderr, done.stderr)
    line = [l for l in run(SEAM, "doctor").stdout.splitlines()
            if "stacks without frame pointers" in l]
    check(line and "copies of" in line[0], line)


if __name__ == "__main__":
    os.chdir(FOLDER)
    build()
    sys.exit(run_tests(globals()))
