#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings with copies of stacks: the frames that perf has, where it is right.

    test_stack_dumps.py SEAM PRINT_STACKS PRINT_LIVE_STACKS

Programs without frame pointers are recorded by perf.  A stack of perf's counts
as right where it reaches the program's entry.  All differences that were met,
of perf 6.1 with libunwind:

 - it finds no caller in some programs (1,692 of 1,718 stacks of cc1plus), and
   none in static ones;
 - where its look-up fails, it takes a word of the stack for the caller;
 - an address without a mapping, or ~0, is a frame of it;
 - the end of a function with inlined calls is shown twice, the trampoline of a
   signal handler one byte early;
 - of a file that is not here it shows no frame, Seam the innermost.
"""
import collections
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import corpus
import tap

SEAM = os.path.abspath(sys.argv[1])
PRINT_STACKS = os.path.abspath(sys.argv[2])
PRINT_LIVE = os.path.abspath(sys.argv[3])
ROOTS = {"_start", "__clone3", "clone3", "clone", "__clone"}
ENTRY = re.compile(r"^(_start|__clone3?|clone3?)(\+|$)")

C_PROGRAM = r"""
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

volatile unsigned long sink;

#define KEPT __attribute__((noipa))
KEPT static void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
KEPT static void recurse(int depth)
{
	volatile char here[48];

	here[0] = (char)depth;
	if (depth)
		recurse(depth - 1);
	else
		leaf(20000);
	sink += here[0];
}
KEPT static void clocks(int n)
{
	struct timespec t;

	for (int i = 0; i < n; i++)
		clock_gettime(CLOCK_MONOTONIC, &t);
	sink += t.tv_nsec;
}
KEPT static void variable(int n)
{
	volatile char *room = __builtin_alloca(n);

	room[n - 1] = 1;
	leaf(20000);
	sink += room[n - 1];
}
static int compare(const void *a, const void *b)
{
	leaf(50);
	return *(const int *)a - *(const int *)b;
}
static void on_signal(int number)
{
	leaf(20000);
	sink += number;
}
KEPT static void round_of_all(int k)
{
	static int v[300];

	recurse(k % 50);
	clocks(500);
	variable(16 + k % 200);
	raise(SIGUSR1);
	for (int i = 0; i < 300; i++)
		v[i] = rand();
	qsort(v, 300, sizeof(*v), compare);
}
static void *thread(void *n)
{
	for (int k = 0; k < *(int *)n; k++)
		round_of_all(k);
	return NULL;
}
int main(int argc, char **argv)
{
	static char alternate[65536];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction action = { .sa_flags = argc > 2 ? SA_ONSTACK : 0 };
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	pthread_t id;

	action.sa_handler = on_signal;
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&id, NULL, thread, &n);
	pthread_join(id, NULL);
	thread(&n);
	return 0;
}
"""

CXX_PROGRAM = r"""
#include <stdexcept>
#include <vector>
#include <cstdlib>
volatile unsigned long sink;
#define KEPT __attribute__((noipa))
struct Guard { int n; ~Guard() { for (int i = 0; i < n; i++) sink += i; } };
KEPT static void thrower(int depth)
{
	Guard guard = { 2000 };

	if (depth == 0)
		throw std::runtime_error("as planned");
	thrower(depth - 1);
	sink += guard.n;
}
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;

	for (int k = 0; k < n; k++)
		try {
			thrower(k % 30);
		} catch (const std::exception &) {
			sink++;
		}
	return 0;
}
"""


def run(*words, allowed=(0,), **more):
    done = subprocess.run(words, check=False, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, **more)
    assert done.returncode in allowed, (words, done.returncode, done.stderr)
    return done


def report(data, *options):
    """Status 3: on a busy machine perf loses samples."""
    return json.loads(run(SEAM, "report", "--json", *options, data,
                          allowed=(0, 3)).stdout)


def build(name, source, *flags):
    compiler, suffix = ("g++", ".cc") if "<vector>" in source else ("gcc",
                                                                    ".c")
    with open(name + suffix, "w") as out:
        out.write(source)
    run(compiler, "-O2", "-fomit-frame-pointer", "-pthread", *flags, "-o",
        name, name + suffix)
    return os.path.abspath(name)


def record(data, *words, size=8192, options=()):
    # without its pass over build ids, in which perf 6.1 ends now and then
    run("perf", "record", "-q", "-B", "--call-graph", f"dwarf,{size}", "-F",
        "1500", "-e", "cpu-clock:u", "-o", data, *options, *words,
        env=dict(os.environ, LC_ALL="C"))
    return data


class Loaded:
    """The samples of @data by Seam, and how their stacks ended."""

    def __init__(self, data, symfs="", *jit):
        done = run(PRINT_STACKS, data, symfs, *jit)
        self.samples = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            if line[0] != " ":
                tid, time = line.split()
                frames = []
                self.samples[int(tid), int(time) // 1000].append(frames)
                continue
            addr, path, layer, name = line[1:].split("\t", 3)
            if layer != "kernel":
                frames.append((int(addr, 16), path, name))
        self.ends = collections.Counter()
        self.modules = []
        for line in done.stderr.splitlines():
            kind, *words = line.split(" ")
            if kind == "module":
                self.modules.append((words[-3], words[-2]))
            else:
                self.ends[kind] = int(words[-1])

    def all(self):
        return [s for of_time in self.samples.values() for s in of_time]


HEAD = re.compile(r"\S.*?\s(\d+)(?:/(\d+))?\s+(?:\[\d+\]\s+)?(\d+)\.(\d{6}):")
FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")


def perf_stacks(lines):
    """{(tid, microsecond): [[(address, path, symbol), ...], ...]}

    Inlined calls are left out.  Their function itself is sometimes shown twice.
    """
    samples = collections.defaultdict(list)
    frames = inlined = None
    for line in lines:
        head, frame = HEAD.match(line), FRAME.match(line.rstrip())
        if head and "PERF_RECORD" not in line:
            frames, inlined = [], None
            samples[int(head[2] or head[1]),
                    int(head[3] + head[4])].append(frames)
        elif frame and frames is not None:
            addr = int(frame[1], 16)
            if inlined and inlined[0] != addr:
                frames.append(inlined)
            inlined = (addr, frame[3], frame[2])
            if frame[3] != "inlined":
                frames.append(inlined)
                inlined = None
        elif "PERF_RECORD" in line:
            frames = None
    return samples


def perf_script(data):
    """Empty where perf 6.1 ends by a signal, as it does now and then."""
    words = ["perf", "script", "--no-inline", "--max-stack", "4096", "-i",
             data, "-F", "comm,pid,tid,time,ip,sym,dso"]
    for _ in range(3):
        done = subprocess.run(words, stdout=subprocess.PIPE, errors="replace",
                              stderr=subprocess.DEVNULL, text=True,
                              timeout=120, check=False)
        if done.returncode >= 0:
            return perf_stacks(done.stdout.splitlines())
    return {}


def is_same(theirs, ours):
    """perf shows a return address minus one or, older, as it is.

    Of a signal's trampoline too, which is none.
    """
    return len(theirs) == len(ours) and all(
        abs(a[0] - b[0]) <= 1 for a, b in zip(theirs, ours))


def runs(frames):
    """Without repetitions of an address."""
    return [f for i, f in enumerate(frames)
            if i == 0 or frames[i - 1][0] != f[0]]


def compare(data, loaded):
    """(right of perf's, of these the same, the first that differs)"""
    n_right = n_same = 0
    first = None
    for key, stacks in perf_script(data).items():
        for theirs, ours in zip(stacks, loaded.samples.get(key, [])):
            theirs = [f for f in theirs if f[0] < 2**63]
            # clone3() alone may be the thread that creates another one
            if len(theirs) < 2 or not ENTRY.match(theirs[-1][2]):
                continue
            n_right += 1
            if is_same(theirs, ours):
                n_same += 1
            else:
                first = first or (theirs, ours)
    return n_right, n_same, first


def check_program(program, *words, size=8192, complete=0.98):
    data = record("program.data", program, *words, size=size)
    loaded = Loaded(data)
    stacks = loaded.all()
    whole = sum(s[-1][2] in ROOTS for s in stacks if s)
    assert len(stacks) > 50, len(stacks)
    assert whole >= complete * len(stacks), (whole, len(stacks), loaded.ends,
                                             loaded.modules)
    n_right, n_same, first = compare(data, loaded)
    print(f"# {len(stacks)} stacks, {whole} complete; perf {n_right}, same "
          f"{n_same}")
    assert n_same == n_right, first
    return {name for s in stacks for _, _, name in s}


def test_c_with_signals_alloca_qsort_threads_and_the_vdso():
    names = check_program(build("c_program", C_PROGRAM), "700")
    assert {"leaf", "recurse", "variable", "compare", "on_signal",
            "round_of_all", "thread", "main"} <= names, names
    assert any("clock_gettime" in name for name in names), names


def test_a_handler_on_another_stack_leads_to_what_it_interrupted():
    """The copy is of the handler's stack alone: there the stack ends."""
    data = record("other.data", build("other", C_PROGRAM), "500",
                  "on another stack")
    loaded = Loaded(data)
    cut = [names for names in ([name for _, _, name in stack]
                               for stack in loaded.all())
           if names[-1] not in ROOTS or "[joined]" in names]
    assert len(cut) > 0 and len(cut) == \
        loaded.ends["other_stack"] + loaded.ends["joined"], (loaded.ends, cut)
    for names in cut:
        interrupted = names[names.index("__restore_rt") + 1:]
        # what is interrupted was read; callers are those of other samples
        assert interrupted[1:2] in ([], ["[joined]"]), names


def test_a_static_program():
    check_program(build("static_program", C_PROGRAM, "-static"), "500")


def test_debug_frame_in_the_file_compressed_and_in_a_debug_file():
    flags = ("-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    own = build("in_the_file", C_PROGRAM, *flags)
    packed = build("packed", C_PROGRAM, *flags, "-gz=zlib")
    apart = build("apart", C_PROGRAM, *flags)
    run("objcopy", "--only-keep-debug", apart, apart + ".debug")
    run("strip", "-s", apart)
    run("objcopy", "--add-gnu-debuglink=apart.debug", apart)
    for program in own, packed, apart:
        assert "eh_frame_hdr" in run("readelf", "-SW", program).stdout
        data = record("debug.data", program, "300")
        loaded = Loaded(data)
        n = len(loaded.all())
        assert n > 20 and loaded.ends["complete"] >= 0.98 * n, \
            (program, n, loaded.ends, loaded.modules)
    os.unlink(apart + ".debug")
    assert Loaded(data).ends["without_cfi"] > n / 2


def test_cxx_exceptions():
    # while libgcc goes to a handler, registers are of neither frame
    names = check_program(build("cxx_program", CXX_PROGRAM), "3000",
                          complete=0.94)
    assert any("thrower" in name for name in names), names
    assert any("_Unwind" in name for name in names), names


JS_PROGRAM = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = Date.now() + 800;
let sum = 0;
while (Date.now() < end) {
	sum += fib(18);
	for (let i = 0; i < 200; i++)
		sum += JSON.stringify({ i, list: [1, 2, 3] }).length;
}
"""


def test_code_of_v8_with_and_without_its_own_tables():
    """Its builtins and its JIT code have frame pointers, or tables."""
    if not shutil.which("node"):
        raise tap.Skip("no node")
    with open("w.js", "w") as out:
        out.write(JS_PROGRAM)
    for more in [], ["--perf-prof-unwinding-info"]:
        data = record("v8.data", "node", "--perf-prof", *more, "w.js",
                      size=16384, options=["-k", "mono"])
        dumps = [f for f in os.listdir() if f.startswith("jit-")]
        loaded = Loaded(data, "", dumps[0])
        stacks = loaded.all()
        assert len(stacks) > 30 and loaded.ends["complete"] >= \
            0.97 * len(stacks), (more, loaded.ends, loaded.modules)
        assert any("fib" in name for s in stacks for _, _, name in s)
        os.unlink(dumps[0])


def test_a_compressed_recording_and_one_from_a_pipe():
    program = build("c_small", C_PROGRAM)
    for options in (["-z"], ["-z", "--buildid-mmap"], ["--buildid-mmap"]):
        loaded = Loaded(record("small.data", program, "300", options=options))
        stacks = loaded.all()
        assert len(stacks) > 30 and loaded.ends["complete"] >= \
            0.98 * len(stacks), (options, len(stacks), loaded.ends)
    with open("pipe.data", "wb") as out:
        subprocess.run(["perf", "record", "-q", "-B", "--call-graph", "dwarf",
                        "-F", "1500", "-e", "cpu-clock:u", "-o", "-", program,
                        "300"], stdout=out, stderr=subprocess.PIPE,
                       check=True, timeout=60)
    loaded = Loaded("pipe.data")
    assert loaded.ends["complete"] >= 0.98 * len(loaded.all()) > 30, \
        loaded.ends


def test_a_file_that_was_replaced_ends_the_stack():
    program = build("replaced", C_PROGRAM)
    data = record("replaced.data", program, "300", options=["--buildid-mmap"])
    build("replaced", C_PROGRAM + "int other(void) { return 4711; }")
    loaded = Loaded(data)
    # those in the dynamic linker, before the program began
    assert loaded.ends["complete"] < 5 < loaded.ends["no_file"], loaded.ends
    assert (program, "no_file") in loaded.modules, loaded.modules
    notes = report(data)["notes"]
    assert any("not here, or of another build" in note
               for note in notes), notes


def test_any_number_of_cores_gives_the_same():
    data = record("cores.data", build("cores", C_PROGRAM), "400")
    one, all_of_them = (run(*words, PRINT_STACKS, data)
                        for words in (["taskset", "-c", "0"], []))
    assert one.stdout == all_of_them.stdout != ""
    assert one.stderr == all_of_them.stderr


def test_inject_keeps_registers_and_stacks():
    data = record("inject.data", build("injected", C_PROGRAM), "200")
    run(SEAM, "inject", "-q", "-o", "injected.seam", data)
    before, after = perf_script(data), perf_script("injected.seam/data")
    if not before or not after:
        raise tap.Skip("perf script ended by a signal")
    assert len(before) > 20 and before == after


def test_names_of_a_dump_follow_the_recorded_callchain():
    data = record("names.data", build("named", C_PROGRAM), "200")
    done = run(SEAM, "dump", "--json", "--symbols", data)
    samples = [json.loads(line) for line in done.stdout.splitlines()]
    samples = [s for s in samples if s["type"] == "SAMPLE"]
    assert len(samples) > 20
    for sample in samples:
        chain = sample["callchain"]
        assert chain[-1]["unwound"], chain
    whole = [s for s in samples if s["callchain"][-1]["symbol"] in ROOTS]
    assert len(whole) >= 0.98 * len(samples), (len(whole), len(samples))


class Mappings:
    """Places in files of the addresses of a recording of one process."""

    def __init__(self, data):
        lines = run(SEAM, "dump", "--json", data).stdout.splitlines()
        self.all = [r for r in map(json.loads, lines)
                    if r["type"] == "MMAP2" and r["pid"] > 0]

    def place(self, pc, time):
        found = None
        for m in self.all:
            if m["sample_id"]["time"] <= time and \
                    0 <= pc - m["addr"] < m["len"]:
                found = m
        return found and (pc - found["addr"] + found["pgoff"],
                          found["filename"])


def live_stacks(data):
    """As the recorder unwinds them: {(tid, microsecond): [[place, ...]]}"""
    mappings, samples = Mappings(data), collections.defaultdict(list)
    done = run(PRINT_LIVE, data)
    for _ in range(5):
        # a recorder gives a file up that takes too long on a busy machine
        if "no_file 0\n" in done.stderr and \
                "not_ready 0\n" in done.stderr:
            break
        done = run(PRINT_LIVE, data)
    for line in done.stdout.splitlines():
        if line[0] != " ":
            tid, time = map(int, line.split())
            frames = []
            samples[tid, time // 1000].append(frames)
        else:
            frames.append(mappings.place(int(line, 16), time))
    return samples, done.stderr


def test_the_recorder_finds_the_same_frames():
    """A call's return address is shown at the call: one less, but once."""
    for source, words in (C_PROGRAM, ["400"]), (CXX_PROGRAM, ["2500"]):
        data = record("same.data", build("same", source), *words, size=4096)
        loaded, n_all = Loaded(data), 0
        live, ends = live_stacks(data)
        assert live.keys() == loaded.samples.keys()
        for key, stacks in live.items():
            for recorder, reader in zip(stacks, loaded.samples[key]):
                n_all += 1
                # the reader joins those that the recorder writes as cut
                known = [frame[2] for frame in reader]
                if "[joined]" in known:
                    reader = reader[:known.index("[joined]")]
                assert len(recorder) == len(reader) and all(
                    a[1] == b[1] and 0 <= a[0] - b[0] <= 1
                    for a, b in zip(recorder, reader)), (ends, recorder, reader)
        assert n_all > 30, n_all


def with_copies_of(size, data, cut):
    """Write @cut: @data, as if at most @size bytes of a stack were copied."""
    with open(data, "rb") as whole:
        content = bytearray(whole.read())
    attr_size, attr, _, at, size_of_data = struct.unpack_from("<5Q", content,
                                                              16)
    # sample_type, sample_stack_user; the copy is last, or before DATA_SRC
    last = 8 * (content[attr + 24 + 1] >> 7 & 1)
    struct.pack_into("<I", content, attr + 88, size)
    end = at + size_of_data
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", content, at)
        used_at = at + length - 8 - last
        used, = struct.unpack_from("<Q", content, used_at)
        if kind == 9 and used > size:
            struct.pack_into("<Q", content, used_at, size)
        at += length
    with open(cut, "wb") as out:
        out.write(content)


def test_stacks_that_the_copy_cuts_are_joined_with_others_of_the_thread():
    data = record("deep.data", build("deep", C_PROGRAM), "4000", size=16384)
    with_copies_of(1024, data, "short.data")
    whole, cut = Loaded(data).all(), Loaded("short.data")
    pairs = list(zip(whole, cut.all()))
    names = [[frame[2] for frame in stack] for _, stack in pairs]
    joined = [(a, b) for (a, b), known in zip(pairs, names)
              if "[joined]" in known]
    # frames that are the sample's own are right, and the others likely
    wrong = [(a, b) for a, b in joined
             if a != [frame for frame in b if frame[2] != "[joined]"]]
    own = [stack[:known.index("[joined]")] if "[joined]" in known else stack
           for (_, stack), known in zip(pairs, names)]
    short = [(a, b) for (a, _), b in zip(pairs, own) if a[:len(b)] != b]
    ended = report("short.data", "--stats")["user_stacks"]["ended"]
    assert len(pairs) > 200 and len(joined) > 10, (len(pairs), ended)
    assert ended["joined"] == len(joined), (ended, len(joined))
    assert len(wrong) <= 0.003 * len(pairs) + 1 and not short, (wrong, short)


def find_build_id(path):
    done = subprocess.run(["readelf", "-n", path], capture_output=True,
                          text=True, check=False)
    match = re.search(r"Build ID: ([0-9a-f]+)", done.stdout)
    return match and match[1]


def test_the_corpus_has_the_frames_of_perf():
    data = corpus.ROOT / "perf" / "dwarf.data"
    if not data.exists():
        raise tap.Skip("no dwarf.data")
    os.makedirs("root/opt/workload/perf/cap")
    shutil.copy(corpus.ROOT / "perf" / "stress.bin",
                "root/opt/workload/perf/cap/stress")
    # the C library of Debian 12.12, whose build id was not recorded
    libc = "/usr/lib/x86_64-linux-gnu/libc.so.6"
    has_libc = find_build_id(libc) == \
        "93ac61ec5a8eb1396f9fbd350e3169a558528a40"
    if has_libc:
        os.makedirs("root" + os.path.dirname(libc))
        os.symlink(libc, "root" + libc)
    loaded = Loaded(str(data), "root")
    with gzip.open(str(data) + ".script.txt.gz", "rt") as lines:
        oracle = perf_stacks(lines)
    assert len(oracle) == 24
    for key, stacks in oracle.items():
        for theirs, ours in zip(stacks, loaded.samples[key]):
            if not has_libc:
                theirs = [f for f in theirs if "stress" in f[1]]
                ours = [f for f in ours if "stress" in f[1]]
            assert is_same(runs(theirs), runs(ours)), (theirs, ours)


CPP_INLINING = corpus.ROOT / "perf-ext" / "perfparser" / "cpp-inlining"


def precise_events():
    """Registers are those after a call or, and then no caller is known, a ret."""
    folder = CPP_INLINING
    place = "precise/home/lieven/KDAB/hotspot/3rdparty/perfparser/tests/" \
        "auto/perfdata/cpp-inlining/"
    os.makedirs(place)
    shutil.move(corpus.unpacked(folder / "cpp-inlining.xz", "."), place)
    loaded = Loaded(str(folder / "cpp-inlining.perf.data"), "precise")
    ends = {k: n for k, n in loaded.ends.items() if n}
    # unreadable: the stack pointer is that of the kernel's entry code, while
    # the address is the program's; the kernel copied no byte for it
    assert ends == {"complete": 520, "lost_register": 18, "unreadable": 1}, ends
    cut = [len(s) for s in loaded.all() if s[-1][2] not in ROOTS]
    assert cut == [1] * 19, cut


if __name__ == "__main__":
    folder = tempfile.mkdtemp(prefix="seam-dumps-")
    os.chdir(folder)
    try:
        # in a larger corpus only what is not in tests/corpus
        sys.exit(tap.run([("precise events of the corpus", precise_events)]
                         if CPP_INLINING.exists() else
                         tap.promises(globals())))
    finally:
        os.chdir("/")
        shutil.rmtree(folder)
