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
import io
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parent),
                str(pathlib.Path(__file__).parents[1] / "cli")]
(seam, library, program, runtime, calls, jumps, gcc_library,
 clang_jumps) = map(os.path.abspath, sys.argv[1:])
import fdr_log                                          # noqa: E402
from record_lib import (FOLDER as folder, check,        # noqa: E402
                        equal as same, run_tests)


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
    return {int(name.split(".")[0]): log
            for name, log in fdr_log.logs(bundle).items()}


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


def counted_log(bundle, wanted):
    """Its only log, where each function has so many entries and exits."""
    log, names = one_log(bundle)
    entries, exits = count(log, names)
    for name, n in wanted.items():
        same((entries[name], exits[name]), (n, n), name)
    return log, names


def run_seam(*words):
    return subprocess.run([seam, *words], capture_output=True, text=True,
                          check=False)


def seam_calls(bundle, *options, status=0):
    ran = run_seam("calls", "--json", "-n", "0", *options, bundle)
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


def test_seam_and_llvm_xray_count_what_a_thread_called():
    bundle, wanted = run_mode("chunks")
    log, names = counted_log(bundle, wanted)
    check(max(log.n_blocks.values()) <= 16, log.n_blocks)
    found = seam_calls(bundle)
    same(found, wanted, "seam calls")
    same(llvm_account(bundle, names), wanted, "llvm-xray account")
    same(fdr_log.manifest(bundle)["calls"]["not_written"], 0)


def test_threads_have_16_blocks_at_most_and_all_their_calls_in_order():
    bundle, wanted = run_mode("threads")
    log, _ = counted_log(bundle, wanted)
    check_times(log)
    same(len(log.threads), 4)
    check(max(log.n_blocks.values()) <= 16, log.n_blocks)
    same(seam_calls(bundle), wanted)


def test_events_have_their_payloads_of_any_length_cut_at_4096():
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
    ran = run_seam("dump", log_path)
    check('event="request "x""' in ran.stdout, ran.stdout[:600])


def check_builtins(name, binary):
    bundle, wanted = run_mode("builtins", binary=binary, name=name)
    same(wanted, {"leaf": 10, "sum": 140000})
    log, names = one_log(bundle)
    same(log.events, 10 * [(fdr_log.CUSTOM, 0, b'{"n":7}'),
                           (fdr_log.TYPED, 1, b'{"n":7}'),
                           (fdr_log.CUSTOM, 0, b"12345")])
    same(count(log, names)[0]["leaf_event"], 10)


def test_events_of_clangs_builtins_without_llvms_runtime_and_in_its_place():
    check_builtins("builtins", program)
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


def test_a_forked_child_has_a_log_of_its_own_whoever_had_the_loaders_lock():
    for mode in ("forked", "locked"):
        check_forked(mode)


def test_sigkill_abort_exit_and_closed_descriptors_lose_nothing():
    for mode, status in (("kill", -9), ("abort", -6), ("_exit", 0),
                         ("closed", 0)):
        bundle, wanted = run_mode(mode, status=status)
        fdr_log.wait_until_complete(bundle)
        log, names = one_log(bundle)
        same(count(log, names)[0]["leaf"], wanted["leaf"], mode)
        check_times(log)
        same(seam_calls(bundle)["leaf"], wanted["leaf"], mode)


def test_after_chroot_and_setuid_a_programs_calls_are_still_written():
    if not os.geteuid():
        bundle, wanted = run_mode("jailed")
        same(count(*one_log(bundle))[0]["leaf"], wanted["leaf"])


def test_a_program_that_uses_all_descriptors_has_its_log_and_its_numbers():
    bundle, wanted = run_mode("crowded")
    log, names = one_log(bundle)
    same((wanted["first"], wanted["lost"]), (3, 0))
    same(count(log, names)[0]["leaf"], wanted["leaf"])


def test_a_limit_of_file_sizes_does_not_hold_for_the_recorder():
    env = dict(os.environ, SEAM_TRACE=f"out={bundle_of('full')};start=0")
    ran = subprocess.run(
        [program, "threads"], env=env, capture_output=True, text=True,
        cwd=folder, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY)))
    same(ran.returncode, 0, ran.stderr)
    same(seam_calls(bundle_of("full"))["leaf"], 4 * 60000)


def test_a_flight_recorder_has_the_newest_calls_at_snapshots_and_ends():
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


def test_its_trigger_keeps_what_led_up_to_a_slow_call():
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


def test_under_a_recorder_that_takes_no_calls_its_bundle_is_as_without():
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


def test_calls_that_the_program_records_have_their_names_and_arguments():
    check_registered(*run_mode("registered"))


def test_under_a_recorder_too_with_the_names_of_types_of_events():
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


def test_a_program_in_c_or_cplusplus_is_built_with_the_flags_of_pkg_config():
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


def test_calls_of_the_programs_own_fentry_are_put_back_at_the_end():
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


def test_functions_are_patched_and_unpatched_by_name_and_id_meanwhile():
    bundle, wanted = run_mode("selected")
    log, names = one_log(bundle)
    entries, exits = count(log, names)
    same((entries, exits), (wanted, wanted))


def test_each_function_returns_the_errors_that_the_header_names():
    _, wanted = run_mode("errors")
    check(wanted["expected"] > 60000, wanted)
    _, wanted = run_mode("flight_errors", ";flight=1")
    same(wanted, {"expected": 7})


def test_options_that_cannot_be_used_are_reported_the_program_runs_on():
    for options, why in ((";nonsense=1", "nonsense"),
                         (";out=/proc/x.seam", "'/proc/x.seam'")):
        env = dict(os.environ, SEAM_TRACE=options[1:], LD_PRELOAD=library)
        ran = subprocess.run([jumps, gcc_library], env=env,
                             capture_output=True, text=True, cwd=folder)
        same(ran.returncode, 0)
        check("calls are not recorded" in ran.stderr and why in ran.stderr,
              ran.stderr)
        check(len(ran.stdout.splitlines()) > 1000, "it did not run")


def test_without_seam_nothing_is_recorded_and_the_reason_is_told():
    os.makedirs(f"{folder}/alone")      # without seam beside it
    alone = shutil.copy(library, f"{folder}/alone")
    for options in ("", "flight=1;"):
        env = dict(os.environ, LD_PRELOAD=alone, PATH="relative:/nowhere",
                   SEAM_TRACE=f"{options}out={bundle_of('none')}")
        env.pop("LD_LIBRARY_PATH", None)
        ran = subprocess.run([jumps, gcc_library], env=env,
                             capture_output=True, text=True, cwd=folder)
        same(ran.returncode, 0)
        check("'seam', which writes the bundle, is not beside" in ran.stderr,
              ran.stderr)


def test_that_nobody_reads_the_report_does_not_end_the_program():
    end, stderr = os.pipe()
    os.close(end)
    env = dict(os.environ, SEAM_TRACE="nonsense=1", LD_PRELOAD=library)
    ran = subprocess.run([jumps, gcc_library], env=env, stderr=stderr,
                         stdout=subprocess.DEVNULL)
    os.close(stderr)
    same(ran.returncode, 0)


def test_of_a_bundle_without_calls_each_command_says_that():
    run([jumps, gcc_library], "empty", ";functions=none")
    same(logs_of(bundle_of("empty")), {})
    for command in ("calls", "report", "flamegraph", "dump"):
        ran = run_seam(command, bundle_of("empty"))
        same(ran.returncode, 1, command)
        check(ran.stderr.endswith("no calls were recorded in it\n"),
              ran.stderr)


def test_a_bundle_becomes_name_old_and_another_folder_is_left_alone():
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


def test_a_second_start_has_its_own_options_in_all_functions():
    for first in OF_PADDED:
        for second, wanted in OF_PADDED.items():
            check_second(first, second, wanted)
    for first in ("", ";depth=1", ";trigger=leaf>1000s"):
        for second in ("", ";trigger=padded*>1000s"):
            check_second(";flight=1" + first, ";flight=1" + second,
                         OF_PADDED[""])


def test_a_program_that_is_started_by_a_recorded_one_adds_its_log():
    bundle, _ = run([program, "programs"], "programs", preload=False)
    fdr_log.wait_until_complete(bundle)
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


def test_finstrument_functions_has_each_call_of_random_programs():
    for seed in (1, 7, 1000):
        compare_with_own_log(*run([calls, str(seed)], f"gcc{seed}"))
    for binary in (jumps, clang_jumps):
        compare_with_own_log(*run([binary, gcc_library], "jumps"))


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


def test_gcc_under_a_recorder_the_same_and_names_are_known_as_they_are_met():
    compare_with_own_log(*record([calls, "11"], "recorded"))
    bundle, lines = record([jumps, gcc_library], "recorded_jumps")
    compare_with_own_log(bundle, lines)
    ran = run_seam("report", "--json", "--by", "module", bundle)
    check(f'"{gcc_library}"' in ran.stdout, ran.stdout[:1000] + ran.stderr)


def text_beside(bundle, suffix):
    """The names beside the log of the program; pids differ."""
    first, *_ = sorted(pathlib.Path(bundle, "xray").glob(f"*.{suffix}"))
    return first.read_text(encoding="utf-8")


def shown_names(bundle):
    """Of each function: its file, and what seam shows."""
    ran = run_seam("calls", "--json", bundle)
    return sorted((f["module"], f["name"])
                  for f in json.loads(ran.stdout)["functions"])


def test_with_a_recorder_and_without_the_same_names_in_the_same_words():
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


def test_gcc_functions_except_and_a_trigger_select_by_names():
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


def test_gcc_calls_shorter_than_min_are_taken_back_with_their_names():
    bundle, lines = run([calls, "3"], "min", ";min=1ms")
    for log, names in logs_of(bundle).values():
        entries, exits = count(log, names)
        check(sum(entries.values()) < len(lines) // 100, entries)
        same(entries, exits)


sys.exit(run_tests(globals()))
