#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that write their own bundle: own_bundle.py SEAM LIBRARY PROGRAM
RUNTIME CALLS JUMPS GCC_LIBRARY CLANG_JUMPS

PROGRAM is own_program.c, RUNTIME the same linked with LLVM's runtime, CALLS and
JUMPS are built by gcc with -finstrument-functions, CLANG_JUMPS by clang with
-finstrument-functions-after-inlining.  The logs are read by
fdr_log.py, by seam and by llvm-xray.  Prints TAP.
"""
import collections
import csv
import errno
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import fdr_log

(seam, library, program, runtime, calls, jumps, gcc_library,
 clang_jumps) = map(os.path.abspath, sys.argv[1:])
folder = tempfile.mkdtemp(prefix="seam-own-")
tests = []


def test(promise):
    def add(function):
        tests.append((promise, function))
        return function
    return add


def check(is_so, what):
    if not is_so:
        raise AssertionError(what)


def same(got, wanted, what=""):
    check(got == wanted, f"{what}: {str(got)[:300]} is not "
          f"{str(wanted)[:300]}")


def bundle_of(name):
    return f"{folder}/{name}.seam"


def run(words, name, options="", status=0, preload=True):
    """Run a program; its own bundle, and the lines of its output."""
    env = dict(os.environ, SEAM_TRACE=f"out={bundle_of(name)}{options}")
    env.pop("SEAM_LINK", None)
    if preload:
        env["LD_PRELOAD"] = library
    ran = subprocess.run(words, env=env, capture_output=True, text=True,
                         timeout=100, cwd=folder)
    same(ran.returncode, status, f"{words}: {ran.stderr}")
    return bundle_of(name), ran.stdout.splitlines()


def run_mode(mode, options="", status=0, binary=program, name=None):
    bundle, lines = run([binary, mode], name or mode,
                        ";start=0" + options, status, preload=False)
    return bundle, {key: int(value) for key, value in
                    (line.split(" ") for line in lines)}


def logs_of(bundle):
    """Of each process: its log and the names of its functions."""
    logs = {}
    for path in sorted(pathlib.Path(bundle, "xray").glob("*.xray")):
        yaml = path.with_suffix(".yaml")
        logs[int(path.stem.split(".")[0])] = (
            fdr_log.Log(path), fdr_log.names(yaml) if yaml.exists() else {})
    return logs


def one_log(bundle):
    logs = logs_of(bundle)
    same(len(logs), 1, "logs")
    return next(iter(logs.values()))


def count(log, names):
    """Entries and exits by name, over all threads."""
    entries, exits = collections.Counter(), collections.Counter()
    for thread in log.threads.values():
        for call in thread.calls:
            name = names.get(call.function, call.function)
            is_entry = call.kind in (fdr_log.ENTRY, fdr_log.ENTRY_ARGS)
            (entries if is_entry else exits)[name] += 1
    return entries, exits


def seam_calls(bundle, *options, status=0):
    ran = subprocess.run([seam, "calls", "--json", "-n", "0", *options, bundle],
                         capture_output=True, text=True)
    same(ran.returncode, status, ran.stderr)
    return {row["name"]: row["count"]
            for row in json.loads(ran.stdout)["functions"]}


def llvm_account(bundle, names):
    """Calls by name, as llvm-xray counts them."""
    log, = pathlib.Path(bundle, "xray").glob("*.xray")
    # its own map of a program with typed events is none that it reads
    ran = subprocess.run(["llvm-xray", "account", log, "-f", "csv", "-m",
                          log.with_suffix(".yaml")], capture_output=True,
                         text=True)
    same(ran.returncode, 0, ran.stderr)
    return {names[int(row["funcid"])]: int(row["count"])
            for row in csv.DictReader(io.StringIO(ran.stdout))}


def check_times(log):
    for tid, thread in log.threads.items():
        times = [call.tsc for call in thread.calls]
        check(times == sorted(times), f"times of {tid} go back")


@test("seam and llvm-xray count what a thread called")
def chunks():
    bundle, wanted = run_mode("chunks")
    log, names = one_log(bundle)
    entries, exits = count(log, names)
    for name, n in wanted.items():
        same((entries[name], exits[name]), (n, n), name)
    check(max(log.n_blocks.values()) <= 16, log.n_blocks)
    found = seam_calls(bundle)
    same(found, wanted, "seam calls")
    same(llvm_account(bundle, names), wanted, "llvm-xray account")
    same(fdr_log.manifest(bundle)["calls"]["not_written"], 0)


@test("threads have 16 blocks at most, and all their calls, in order")
def threads():
    bundle, wanted = run_mode("threads")
    log, names = one_log(bundle)
    entries, exits = count(log, names)
    for name, n in wanted.items():
        same((entries[name], exits[name]), (n, n), name)
    check_times(log)
    same(len(log.threads), 4)
    check(max(log.n_blocks.values()) <= 16, log.n_blocks)
    same(seam_calls(bundle), wanted)


def check_leaf(mode):
    bundle, wanted = run_mode(mode)
    log, names = one_log(bundle)
    same(count(log, names)[0]["leaf"], wanted["leaf"])


@test("a thread with a stack of 16 KiB opens the log and writes its chunks")
def small_stack():
    check_leaf("small_stack")


@test("the header has the machine's frequency within 50 ppm of its ties")
def frequency():
    bundle, _ = run_mode("events", name="frequency")
    log, _ = one_log(bundle)
    (tsc, ns), *_, (tsc_end, ns_end) = fdr_log.manifest(bundle)["xray"]["ties"]
    hz = (tsc_end - tsc) * 1e9 / (ns_end - ns)
    check(abs(log.hz - hz) < hz * 50e-6, f"{log.hz} {hz}")
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        is_constant = "constant_tsc" in info.read()
    same(log.flags, 3 if is_constant else 0)


@test("events have their payloads, of any length, cut at 4096")
def events():
    bundle, wanted = run_mode("events")
    log, _ = one_log(bundle)
    data = bytes(ord("a") + i % 26 for i in range(5000))
    same(log.events, [
        (kind, number, data[:min(size, 4096)])
        for size in (0, 1, 7, 8, 13, 4096, 5000)
        for kind, number in ((fdr_log.CUSTOM, 0),
                             (fdr_log.TYPED, wanted["type"]))])
    log_path, = pathlib.Path(bundle, "xray").glob("*.xray")
    same(log_path.with_suffix(".events").read_text(encoding="utf-8"),
         f'{wanted["type"]} "request \\"x\\""\n')
    ran = subprocess.run([seam, "dump", log_path], capture_output=True,
                         text=True)
    check('event="request "x""' in ran.stdout, ran.stdout[:600])


def check_builtins(name, binary):
    bundle, wanted = run_mode("builtins", binary=binary, name=name)
    same(wanted, {"leaf": 10, "sum": 140000})
    log, names = one_log(bundle)
    same(log.events, 10 * [(fdr_log.CUSTOM, 0, b'{"n":7}'),
                           (fdr_log.TYPED, 1, b'{"n":7}'),
                           (fdr_log.CUSTOM, 0, b"12345")])
    same(count(log, names)[0]["leaf_event"], 10)


@test("__xray_customevent and __xray_typedevent work without LLVM's runtime")
def builtins():
    check_builtins("builtins", program)


@test("and with it: the sleds call us in its place")
def builtins_with_runtime():
    check_builtins("runtime", runtime)


def check_forked(mode):
    bundle, wanted = run_mode(mode)
    logs = logs_of(bundle)
    same(len(logs), 2)
    by_count = {}
    for pid, (log, names) in logs.items():
        same([thread.pid for thread in log.threads.values()], [pid])
        by_count[count(log, names)[0]["leaf"]] = names
    same(sorted(by_count), sorted([wanted["leaf"], wanted["child"]]))
    same(seam_calls(bundle)["leaf"], wanted["leaf"] + wanted["child"])


@test("a forked child has a log of its own, without its parent's calls")
def forked():
    check_forked("forked")


@test("it ends where another thread had the loader's lock when it was forked")
def locked():
    check_forked("locked")


def wait_until_complete(bundle):
    """By its recorder, which goes on after the program."""
    for _ in range(500):
        if fdr_log.manifest(bundle)["complete"]:
            return
        time.sleep(0.02)
    check(False, "the bundle is not complete after 10 s")


def check_ended(mode, status):
    bundle, wanted = run_mode(mode, status=status)
    wait_until_complete(bundle)
    log, names = one_log(bundle)
    same(count(log, names)[0]["leaf"], wanted["leaf"])
    check_times(log)
    same(seam_calls(bundle)["leaf"], wanted["leaf"])


@test("SIGKILL loses nothing")
def killed():
    check_ended("kill", -9)


@test("so does abort()")
def aborted():
    check_ended("abort", -6)


@test("so does _exit()")
def exited():
    check_ended("_exit", 0)


@test("nor does a program that closes all descriptors")
def closed():
    check_ended("closed", 0)


@test("after chroot() and setuid() a program's calls are still written")
def jailed():
    if not os.geteuid():
        check_leaf("jailed")


@test("a program that uses all of its descriptors has its log, and its numbers")
def crowded():
    bundle, wanted = run_mode("crowded")
    log, names = one_log(bundle)
    same((wanted["first"], wanted["lost"]), (3, 0))
    same(count(log, names)[0]["leaf"], wanted["leaf"])


@test("a limit of file sizes does not hold for the recorder")
def full():
    env = dict(os.environ, SEAM_TRACE=f"out={bundle_of('full')};start=0")
    ran = subprocess.run(
        [program, "threads"], env=env, capture_output=True, text=True,
        cwd=folder, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY)))
    same(ran.returncode, 0, ran.stderr)
    same(seam_calls(bundle_of("full"))["leaf"], 4 * 60000)


@test("no write of a flight recorder past such a limit raises its signal")
def limited():
    """Manifest, log, names and a snapshot, each the first that is too large;
    and what failed is replaced the next time."""
    for kib in (0, 1, 2, 4, 64, 400):
        env = dict(os.environ, SEAM_TRACE=f"out={bundle_of('limited')};"
                   f"start=0;flight=1")
        ran = subprocess.run(
            [program, "flight"], env=env, capture_output=True, text=True,
            cwd=folder, preexec_fn=lambda kib=kib: resource.setrlimit(
                resource.RLIMIT_FSIZE, (kib << 10, kib << 10)))
        check(ran.returncode in (0, 1), f"{kib} KiB: status {ran.returncode}")
        check(ran.returncode == 0 or "File too large" in ran.stderr or
              "Connection refused" in ran.stderr, f"{kib} KiB: {ran.stderr}")


@test("a flight recorder has the newest calls, at a snapshot and at the end")
def flight():
    bundle, _ = run_mode("flight", ";flight=1")
    log, names = one_log(f"{bundle}.snapshot")
    entries, _ = count(log, names)
    same(entries["maybe_slow"], 1)
    check(20000 < entries["leaf"] < 200000, entries)
    last = [names[call.function] for thread in log.threads.values()
            for call in thread.calls][-2:]
    same(last, ["leaf", "maybe_slow"])
    check_times(log)
    # a million calls later the slow one is overwritten
    log, names = one_log(bundle)
    entries, _ = count(log, names)
    same(entries["maybe_slow"], 0)
    check(20000 < entries["leaf"] < 200000, entries)


@test("its trigger keeps what led up to a slow call")
def trigger():
    bundle, _ = run_mode("flight", ";trigger=maybe_slow>10ms", name="trigger")
    log, names = one_log(bundle)
    entries, _ = count(log, names)
    same(entries["maybe_slow"], 2)
    # what came later than half of the memory was left out, not lost
    same(seam_calls(bundle)["maybe_slow"], 2)
    meta = json.loads(pathlib.Path(bundle, "meta.json").read_text())
    check(meta["calls"]["frozen"] > 1000, meta["calls"])
    same(meta["calls"]["not_written"], 0)


def check_registered(bundle, said):
    found = {}
    for log, names in logs_of(bundle).values():
        thread, = log.threads.values()
        # functions with sleds come first, as in the map of the executable
        check(all((names[call.function] == "leaf") ==
                  (call.function <= said["functions"])
                  for call in thread.calls), (names, said))
        found[len(thread.calls)] = [
            (call.kind, names[call.function].strip("'\"").replace("''", "'"),
             call.argument) for call in thread.calls
            if names[call.function] != "leaf"]
    name = "request 'é"
    same(found[max(found)], 10 * [(fdr_log.ENTRY_ARGS, name, 11),
                                  (fdr_log.EXIT, name, None)])
    same(found[4], [(fdr_log.ENTRY, "in child", None),
                    (fdr_log.ENTRY, name, None), (fdr_log.EXIT, name, None),
                    (fdr_log.EXIT, "in child", None)])
    same(seam_calls(bundle)["request 'é'"], 11)


@test("under a recorder that takes no calls it writes its bundle as without")
def not_traced():
    bundle = bundle_of("not_traced")
    for recorded in ("seam record", "its end"):
        words = [seam, "record", "-o", f"{folder}/samples.seam", "--"]
        later = [*words, "sh", "-c", "echo $SEAM_LINK"]
        env = dict(os.environ, SEAM_TRACE=f"out={bundle};start=0")
        if recorded == "its end":
            env["SEAM_LINK"] = subprocess.run(
                later, capture_output=True, text=True,
                check=True).stdout.strip()
            words = []
        ran = subprocess.run([*words, program, "forked"], env=env,
                             capture_output=True, text=True, timeout=100,
                             cwd=folder)
        same(ran.returncode, 0, f"{recorded}: {ran.stderr}")
        same(seam_calls(bundle)["leaf"], 127, recorded)


@test("calls that the program records have their names and arguments")
def registered():
    check_registered(*run_mode("registered"))


@test("under a recorder too, with the names of types of events")
def registered_recorded():
    bundle, lines = record([program, "registered"], "registered_recorded")
    check_registered(bundle, {key: int(value) for key, value in
                              (line.split(" ") for line in lines)})
    bundle, _ = record([program, "events"], "events_recorded")
    path, = pathlib.Path(bundle, "xray").glob("*.events")
    same(path.read_text(encoding="utf-8"), '1 "request \\"x\\""\n')
    log, _ = one_log(bundle)
    same(len(log.events), 14)


SMALL = """#include <seam/fdr.h>
static int leaf(int n) { return n + 1; }
int main(void)
{
	int r = seam_fdr_start(0);
	int n = leaf(1);

	return r || n != 2 || seam_fdr_stop();
}
"""


@test("a program in C or C++ is built with the flags of pkg-config")
def built():
    beside = pathlib.Path(library).parents[3] / "meson-uninstalled"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "seam-fdr"],
        env=dict(os.environ, PKG_CONFIG_PATH=str(beside)),
        capture_output=True, text=True, check=True).stdout.split()
    pathlib.Path(folder, "small.c").write_text(SMALL, encoding="utf-8")
    for compiler, language, standard in (
            ("gcc", "c", "c99"), ("g++", "c++", "c++98"),
            ("clang", "c", "c99"), ("clang++", "c++", "c++98")):
        subprocess.run([compiler, "-x", language, f"-std={standard}",
                        "-pedantic", "-Wall", "-Wextra", "-Werror",
                        "-finstrument-functions", "small.c", "-o", "small",
                        *flags, f"-Wl,-rpath,{os.path.dirname(library)}"],
                       cwd=folder, check=True)
        bundle, _ = run(["./small"], "small", ";start=0", preload=False)
        same(sum(seam_calls(bundle).values()), 1)


# A profiler of the program's own, which counts calls.
FENTRY = """volatile unsigned n;
__asm__(".text; .globl __fentry__; .type __fentry__, @function;"
	"__fentry__: pushq %rax; movq n@GOTPCREL(%rip), %rax; incl (%rax);"
	"popq %rax; ret; .size __fentry__, . - __fentry__");
"""
COUNTED = """#include <seam/fdr.h>
#define PLAIN __attribute__((no_instrument_function, noinline))
extern volatile unsigned n;
__attribute__((noinline)) void counted(void) { __asm__ volatile(""); }
PLAIN static unsigned calls(void)
{
	unsigned before = n;

	for (int i = 0; i < 5; i++)
		counted();
	return n - before;
}
PLAIN int main(void)
{
	unsigned before = calls(), bad = 0;

	for (int i = 0; i < 3; i++) {
		bad |= seam_fdr_start(0) != 0;
		calls();
		bad |= seam_fdr_stop() != 0 || calls() != 5;
	}
	return bad || before != 5;
}
"""


@test("calls of the program's own __fentry__() are put back at the end")
def fentry():
    pathlib.Path(folder, "counted.c").write_text(COUNTED, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libfentry.so", "-xc",
                    "-"], input=FENTRY, text=True, cwd=folder, check=True)
    subprocess.run(["gcc", "-O1", "-pg", "-mfentry", "-fno-pie", "-no-pie",
                    "counted.c", "-o", "counted", "./libfentry.so", library,
                    "-I",
                    pathlib.Path(__file__).parents[2] / "include",
                    f"-Wl,-rpath,{os.path.dirname(library)}"],
                   cwd=folder, check=True)
    bundle, _ = run(["./counted"], "counted", ";start=0", preload=False)
    same(count(*one_log(bundle))[0]["counted"], 5)


@test("functions are patched and unpatched by name and id while it records")
def selected():
    bundle, wanted = run_mode("selected")
    log, names = one_log(bundle)
    entries, exits = count(log, names)
    same((entries, exits), (wanted, wanted))


@test("each function returns the errors that the header names")
def errors():
    _, wanted = run_mode("errors")
    check(wanted["expected"] > 60000, wanted)
    _, wanted = run_mode("flight_errors", ";flight=1")
    same(wanted, {"expected": 7})


@test("options that cannot be used are reported; the program runs on")
def reported():
    for options, why in ((";nonsense=1", "nonsense"),
                         (";out=/proc/x.seam", "'/proc/x.seam'")):
        env = dict(os.environ, SEAM_TRACE=options[1:], LD_PRELOAD=library)
        ran = subprocess.run([jumps, gcc_library], env=env,
                             capture_output=True, text=True, cwd=folder)
        same(ran.returncode, 0)
        check("calls are not recorded" in ran.stderr and why in ran.stderr,
              ran.stderr)
        check(len(ran.stdout.splitlines()) > 1000, "it did not run")


@test("without seam nothing is recorded, and the reason is told")
def without_seam():
    alone = shutil.copy(library, f"{folder}/libseam-fdr.so")
    for options in ("", "flight=1;"):
        env = dict(os.environ, LD_PRELOAD=alone, PATH="relative:/nowhere",
                   SEAM_TRACE=f"{options}out={bundle_of('none')}")
        env.pop("LD_LIBRARY_PATH", None)
        ran = subprocess.run([jumps, gcc_library], env=env,
                             capture_output=True, text=True, cwd=folder)
        same(ran.returncode, 0)
        check("'seam', which writes the bundle, is not beside" in ran.stderr,
              ran.stderr)


@test("that nobody reads the report does not end the program")
def unread():
    end, stderr = os.pipe()
    os.close(end)
    env = dict(os.environ, SEAM_TRACE="nonsense=1", LD_PRELOAD=library)
    ran = subprocess.run([jumps, gcc_library], env=env, stderr=stderr,
                         stdout=subprocess.DEVNULL)
    os.close(stderr)
    same(ran.returncode, 0)


@test("of a bundle without calls each command says that")
def without_calls():
    run([jumps, gcc_library], "empty", ";functions=none")
    same(logs_of(bundle_of("empty")), {})
    for command in ("calls", "report", "flamegraph", "dump"):
        ran = subprocess.run([seam, command, bundle_of("empty")],
                             capture_output=True, text=True, check=False)
        same(ran.returncode, 1, command)
        check(ran.stderr.endswith("no calls were recorded in it\n"),
              ran.stderr)


@test("report, flamegraph and trace-json read such a bundle")
def views():
    bundle, wanted = run_mode("forked", name="views")
    ran = subprocess.run([seam, "report", "--json", bundle],
                         capture_output=True, text=True)
    same(ran.returncode, 0, ran.stderr)
    rows = {row["symbol"]: row["self"]
            for row in json.loads(ran.stdout)["rows"]}
    same(rows["leaf"], wanted["leaf"] + wanted["child"])
    for words in (["flamegraph", "-o", f"{folder}/v.svg"],
                  ["convert", "--to", "trace-json", "-o", f"{folder}/v.json"]):
        ran = subprocess.run([seam, *words, bundle], capture_output=True,
                             text=True)
        same(ran.returncode, 0, ran.stderr)


@test("a bundle becomes NAME.old; a folder with anything else is left alone")
def folders():
    bundle, _ = run_mode("registered", name="again")
    run_mode("registered", name="again")
    same([len(logs_of(name)) for name in (bundle, f"{bundle}.old")], [2, 2])
    pathlib.Path(bundle, "mine.txt").write_text("mine", encoding="utf-8")
    before = sorted(os.listdir(f"{bundle}/xray"))
    run([program, "registered"], "again", ";start=0", 1, preload=False)
    same(sorted(os.listdir(f"{bundle}/xray")), before)


PADDED = {f"padded_{i}": 1 for i in (0, 1, 2, 3, 5, 7)}
# What a start with these options has of a call of padded(): {name: entries}.
OF_PADDED = {"": {"padded": 1, "leaf": 6, **PADDED}, ";depth=1": {"padded": 1},
             ";min=1000s": {}, ";args=1": {"padded": 1, "leaf": 6, **PADDED},
             ";depth=2;min=1us": None}


def check_second(first, second, wanted):
    os.environ["SECOND"] = f"out={bundle_of('second')}{second}"
    shutil.rmtree(bundle_of("second"), ignore_errors=True)
    run_mode("again", first, name="first")
    for log, names in logs_of(bundle_of("second")).values():
        entries, exits = count(log, names)
        same(entries, exits, f"{first} then {second}")
        if wanted is not None:
            same(dict(entries), wanted, f"{first} then {second}")
        kinds = {call.kind for thread in log.threads.values()
                 for call in thread.calls}
        same(fdr_log.ENTRY_ARGS in kinds, second == ";args=1", second)


@test("a second start has its own options in all functions")
def again():
    for first in OF_PADDED:
        for second, wanted in OF_PADDED.items():
            check_second(first, second, wanted)
    for first in ("", ";depth=1", ";trigger=leaf>1000s"):
        for second in ("", ";trigger=padded*>1000s"):
            check_second(";flight=1" + first, ";flight=1" + second,
                         OF_PADDED[""])


@test("a program that is started by a recorded one adds its log")
def programs():
    bundle, _ = run([program, "programs"], "programs", preload=False)
    wait_until_complete(bundle)
    found = {}
    for path in pathlib.Path(bundle, "xray").glob("*.xray"):
        names = fdr_log.names(path.with_suffix(".yaml"))
        found[path.name] = count(fdr_log.Log(path), names)[0]["leaf"]
    # in the place of one that had called 3
    second, = (name for name in found if name.endswith(".2.xray"))
    same(found.pop(second), 120)
    same(sorted(found.values()), [3, 7, 120])


def compare_with_own_log(bundle, lines):
    """Call for call, order for order."""
    own, thread = {}, None
    for line in lines:
        sign, name = line.split(" ")
        if sign == "thread":
            thread = own.setdefault(int(name), [])
        else:
            thread.append((sign == "-", name))
    found = {}
    for log, names in logs_of(bundle).values():
        for tid, of_thread in log.threads.items():
            found[tid] = [(call.kind == fdr_log.EXIT, names[call.function])
                          for call in of_thread.calls
                          if "GLOBAL__" not in names[call.function] and
                          "static_init" not in names[call.function]]
    same(sorted(found), sorted(own), "threads")
    for tid, wanted in own.items():
        check(len(wanted) > 1000, "an empty test")
        same(len(found[tid]), len(wanted), f"records of {tid}")
        for i, (got, expected) in enumerate(zip(found[tid], wanted)):
            same(got, expected, f"record {i} of {tid}")


@test("gcc, C++: each call, with exceptions, threads and a child")
def gcc_calls():
    for seed in (1, 7, 1000):
        compare_with_own_log(*run([calls, str(seed)], f"gcc{seed}"))


@test("gcc, C: longjmp() has no exits; handlers, a library loaded later")
def gcc_jumps():
    compare_with_own_log(*run([jumps, gcc_library], "jumps"))


@test("so it is with clang's, after inlining")
def clang_calls():
    compare_with_own_log(*run([clang_jumps, gcc_library], "clang"))


@test("and so does one that is preloaded")
def not_traced_preloaded():
    env = dict(os.environ, SEAM_TRACE=f"out={bundle_of('beside')}")
    ran = subprocess.run([seam, "record", "-o", bundle_of("sampled"), "--",
                          "env", f"LD_PRELOAD={library}", jumps, gcc_library],
                         env=env, capture_output=True, text=True, timeout=100,
                         cwd=folder)
    same(ran.returncode, 0, ran.stderr)
    compare_with_own_log(bundle_of("beside"), ran.stdout.splitlines())


def record(words, name):
    bundle = bundle_of(name)
    env = {key: value for key, value in os.environ.items()
           if key not in ("SEAM_TRACE", "SEAM_LINK")}
    ran = subprocess.run([seam, "record", "--trace", "-o", bundle, "--",
                          *words], env=env, capture_output=True, text=True,
                         timeout=100, cwd=folder)
    same(ran.returncode, 0, ran.stderr)
    for word in ("invalid", "lost", "without a name", "not recorded"):
        check(word not in ran.stderr, ran.stderr)
    return bundle, ran.stdout.splitlines()


@test("gcc under a recorder: the same, and names are known as they are met")
def gcc_recorded():
    compare_with_own_log(*record([calls, "11"], "recorded"))
    bundle, lines = record([jumps, gcc_library], "recorded_jumps")
    compare_with_own_log(bundle, lines)
    ran = subprocess.run([seam, "report", "--json", "--by", "module", bundle],
                         capture_output=True, text=True)
    check(f'"{gcc_library}"' in ran.stdout, ran.stdout[:1000] + ran.stderr)


def text_beside(bundle, suffix):
    """The names beside the log of the program; pids differ."""
    first, *_ = sorted(pathlib.Path(bundle, "xray").glob(f"*.{suffix}"))
    return first.read_text(encoding="utf-8")


def shown_names(bundle):
    """Of each function: its file, and what seam shows."""
    ran = subprocess.run([seam, "calls", "--json", bundle],
                         capture_output=True, text=True)
    return sorted((f["module"], f["name"])
                  for f in json.loads(ran.stdout)["functions"])


@test("with a recorder and without: the same names, in the same words")
def same_names():
    for name, words in (("gcc", [jumps, gcc_library]),
                        ("sleds", [program, "events"])):
        own, _ = run(words, f"own-{name}")
        recorded, _ = record(words, f"recorded-{name}")
        check(len(shown_names(own)) > 1, shown_names(own))
        same(shown_names(own), shown_names(recorded), name)
        if name == "sleds":
            text = text_beside(own, "events")
            check("\n" in text, text)
            same(text, text_beside(recorded, "events"))


def names_of(bundle):
    return {name for log, names in logs_of(bundle).values()
            for name in count(log, names)[0]}


@test("gcc: functions=, except= and a trigger select by names")
def gcc_selected():
    for name, options, wanted in (
            ("one", ";functions=catch*", {"catcher"}),
            ("two", ";functions=catcher,recursive", {"catcher", "recursive"}),
            ("three", ";except=local,*GLOBAL__*,*static_init*",
             {"catcher", "recursive", "thrower"}),
            ("four", ";functions=catcher;flight=1;trigger=calls:thrower",
             {"catcher", "thrower"})):
        bundle, lines = run([calls, "2"], f"select-{name}", options)
        same(names_of(bundle), wanted)
        if name != "two":
            continue
        # and each of their calls
        n = collections.Counter(line for line in lines)
        total = collections.Counter()
        for log, names in logs_of(bundle).values():
            total.update(count(log, names)[0])
        same(total, {key: n[f"+ {key}"] for key in wanted})


@test("gcc: calls shorter than min= are taken back, with their names")
def gcc_min():
    bundle, lines = run([calls, "3"], "min", ";min=1ms")
    for log, names in logs_of(bundle).values():
        entries, exits = count(log, names)
        check(sum(entries.values()) < len(lines) // 100, entries)
        same(entries, exits)


print(f"1..{len(tests)}")
failed = False
for number, (promise, function) in enumerate(tests, 1):
    try:
        function()
        print(f"ok {number} - {promise}", flush=True)
    except Exception as error:
        failed = True
        print(f"not ok {number} - {promise}\n# {type(error).__name__}: "
              f"{str(error)[:600]}", flush=True)
shutil.rmtree(folder)
sys.exit(failed)
