#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traced programs do what they do alone: unhindered.py SEAM LIBRARY PROGRAM

PROGRAM is unhindered_program.c, built with -fxray-instrument.  It says "done"
where it came to its end, and each way is first gone without a recorder.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import fdr_log                                                 # noqa: E402
from record_lib import FOLDER, SEAM, equal, run, run_tests     # noqa: E402

LIBRARY = shutil.copy(sys.argv[2], FOLDER)
PROGRAM = shutil.copy(sys.argv[3], FOLDER)
BUNDLE = "u.seam"
LOADED = """
void while_loading(void);
__attribute__((constructor)) static void begin(void) { while_loading(); }
"""


def is_done(result, why="", may_lose=False):
    """Status 3: records were lost."""
    status = 0 if may_lose and result.returncode == 3 else result.returncode
    equal((status, result.stdout), (0, "done\n"), f"{why} {result.stderr}")
    return result


def alone(*words, before=(), program=PROGRAM):
    """Without us the program gets there."""
    is_done(run(*before, program, *words, timeout=20), "alone:")


def recorded(*words, options=(), before=(), program=PROGRAM, may_lose=False):
    shutil.rmtree(BUNDLE, ignore_errors=True)
    return is_done(run(SEAM, "record", "-o", BUNDLE, "--trace", *options, "--",
                       *before, program, *words, timeout=60), options,
                   may_lose)


def own(*words, options="", before=(), program=PROGRAM):
    """With a bundle of its own."""
    shutil.rmtree(BUNDLE, ignore_errors=True)
    done = is_done(run(*before, program, *words, timeout=60,
                       env={**os.environ, "LD_PRELOAD": LIBRARY,
                            "SEAM_TRACE": f"out={BUNDLE};{options}"}), options)
    fdr_log.wait_until_complete(BUNDLE)
    return done


def n_calls():
    return sum(len(thread.calls) for log, _ in fdr_log.logs(BUNDLE).values()
               for thread in log.threads.values())


# ---- system calls that a program has restricted ----

def test_no_system_call_of_ours_kills_a_sandboxed_program():
    for end in ("exit", "return"):
        alone("sandbox", end)
        for options in ((), ("--flight-recorder",), ("--trace-min=1us",)):
            # perhaps no call took so long: status 3
            recorded("sandbox", end, options=options, may_lose=True)
        own("sandbox", end)
        own("sandbox", end, options="flight=1")


def test_nor_one_that_has_left_itself_write_and_exit():
    alone("alone")
    recorded("alone")
    recorded("alone", options=("--flight-recorder",))
    own("alone")


def test_a_question_for_filters_ends_no_recording():
    alone("probe")
    recorded("probe")
    equal(n_calls(), 400)


def test_filters_of_a_vfork_child_and_those_that_are_refused_end_nothing():
    for how, n in (("elsewhere", 400), ("refused", 600)):
        alone(how)
        for options in ((), ("--flight-recorder",)):
            recorded(how, options=options)
            equal(n_calls(), n, how)
        own(how)
        equal(n_calls(), n, how)


# ---- descriptors ----

def check_descriptors(how, limit):
    """All calls of both processes are there, and nothing in other files."""
    equal(n_calls(), 2 * 140000, (how, limit))
    for path in glob.glob("theirs.*"):
        equal(os.path.getsize(path), 0, (how, limit))
        os.unlink(path)


def test_descriptors_that_the_program_closes_and_opens_are_its_own():
    for limit, how in ((16, "none"), (16, "loop"), (64, "range"),
                       (1024, "from"), (1024, "none")):
        limited = ("sh", "-c", f'ulimit -S -n {limit}; exec "$0" "$@"')
        alone("descriptors", how, before=limited)
        recorded("descriptors", how, before=limited)
        check_descriptors(how, limit)
        own("descriptors", how, before=limited)
        check_descriptors(how, limit)


# ---- a recorder that is stopped ----

def many_functions():
    """LIBRARY0 to LIBRARY39, whose functions do not fit into a ring."""
    source = "".join(f"void f{i}(void) {{ }}\n" for i in range(10000))
    run("cc", "-shared", "-fPIC", "-fpatchable-function-entry=16", "-o",
        "many.so0", "-xc", "-", input=source + "void last(void) { }")
    for i in range(1, 40):
        shutil.copy("many.so0", f"many.so{i}")
    return os.path.abspath("many.so")


def wait_for_calls():
    for _ in range(3000):
        if sum(map(os.path.getsize, glob.glob(f"{BUNDLE}/xray/*.xray"))) > 9999:
            return
        time.sleep(0.01)
    raise AssertionError("no calls came")


def test_a_stopped_recorder_stops_no_program_and_has_all_names_later():
    library = many_functions()
    shutil.rmtree(BUNDLE, ignore_errors=True)
    process = subprocess.Popen(
        (SEAM, "record", "-o", BUNDLE, "--trace", "--", PROGRAM, "stopped",
         library), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    wait_for_calls()
    output, text = process.communicate("\n", timeout=60)
    # of the samples, in smaller rings, some are lost
    equal(output, "done\n", text)
    (path,) = glob.glob(f"{BUNDLE}/xray/*.yaml")
    names = list(fdr_log.names(path).values())
    equal((names.count("last"), len(names)), (40, 41), text)


# ---- limits ----

def test_a_limit_of_addresses_is_the_programs():
    for mib in (100, 600, 4700):
        limited = ("sh", "-c", f'ulimit -v {mib << 10}; exec "$0" "$@"')
        alone("memory", before=limited)
        own("memory", before=limited)
        result = recorded("memory", before=limited, may_lose=True)
        # each of 21 threads has 100 calls; some may have no buffer
        lost = re.findall(r"(\d+) records of calls lost", result.stderr)
        equal(n_calls() + sum(map(int, lost)), 21 * 200, result.stderr)
        equal((result.returncode, n_calls() >= 200), (3 if lost else 0, True),
              result.stderr)


def test_and_so_is_one_of_locked_memory():
    alone("locked")
    recorded("locked", may_lose=True)
    equal(n_calls() >= 200, True)


# ---- libc's functions that are others' ----

CLOBBER = r"""
#define CLEAR __asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1" \
                               ::: "xmm0", "xmm1")
long syscall(long number, ...);
int fstat64(int fd, void *st)
{ long r = syscall(5, fd, st); CLEAR; return r < 0 ? -1 : 0; }
long sendto(int fd, const void *p, unsigned long n, int flags, const void *to,
            unsigned to_bytes)
{ long r = syscall(44, fd, p, n, flags, to, to_bytes); CLEAR; return r; }
"""


def test_results_stay_where_preloaded_functions_use_vector_registers():
    run("cc", "-O1", "-shared", "-fPIC", "-o", "clobber.so", "-xc", "-",
        input=CLOBBER)
    preload = ("sh", "-c", 'LD_PRELOAD="$PWD/clobber.so:$LD_PRELOAD" '
                           'exec "$0" "$@"')
    alone("results", before=preload)
    recorded("results", before=preload, may_lose=True)
    recorded("results", before=preload, may_lose=True,
             options=("--flight-recorder", "--trigger=calls:twice",
                      "--trigger=twice>1ns"))


def test_a_program_with_memcpy_and_mmap_of_its_own_ends():
    run("clang", "-O1", "-fxray-instrument", "-fxray-instruction-threshold=99",
        "-rdynamic", "-o", "own_memcpy", os.path.join(HERE, "own_memcpy.c"))
    program = os.path.abspath("own_memcpy")
    alone(program=program)
    # calls of mmap() for an area have no area
    recorded(program=program, may_lose=True)
    equal(names_of_calls()["leaf"] >= 200000, True)
    for options in ("", "flight=1"):
        own(program=program, options=options)
        equal(n_calls() > 100, True, options)
    own(program=program, options="min=1us")
    equal(names_of_calls()["sleep_1_ms"], 1)


# ---- the loader ----

def test_a_thread_may_begin_while_another_one_loads_a_library():
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "loaded.so", "-xc", "-"],
                   input=LOADED, text=True, check=True)
    library = os.path.abspath("loaded.so")
    alone("loading", library)
    own("loading", library, options="start=0")
    equal(n_calls(), 200)


# ---- plugins ----

def plugins():
    """Of gcc's -finstrument-functions: [path, function]..."""
    run("gcc", "-O1", "-fno-builtin", "-rdynamic", "-o", "reused",
        os.path.join(HERE, "reused_memory.c"), "-ldl")
    words = []
    for i in range(6):
        run("gcc", "-finstrument-functions", "-shared", "-fPIC", "-o",
            f"plugin{i}.so", "-xc", "-",
            input=f"int plugin{i}(int i) {{ return i + 1; }}")
        words += [os.path.abspath(f"plugin{i}.so"), f"plugin{i}"]
    return words


def names_of_calls():
    """{name: entries} of the only log."""
    ((_, names),) = fdr_log.logs(BUNDLE).values()
    counts = collections.Counter()
    for (_, number), n in fdr_log.entries(BUNDLE).items():
        counts[names.get(number)] += n
    return counts


def test_plugins_in_memory_that_is_used_again_have_their_own_names():
    words = plugins()
    every = {name: 10 for name in words[1::2]}
    reused = os.path.abspath("reused")
    alone(*words, program=reused)
    recorded(*words, program=reused)
    equal(names_of_calls(), every)
    recorded(*words, program=reused, options=("--trace=plugin*",))
    equal(names_of_calls(), every)
    own(*words, program=reused)
    equal(names_of_calls(), every)


sys.exit(run_tests(globals()))
