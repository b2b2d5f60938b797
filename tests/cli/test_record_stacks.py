#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam record: complete stacks of programs without frame pointers."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from record_lib import (IS_ROOT, SAMPLE, SEAM, as_nobody, build_id, check,
                        compile_c, end_group, equal, in_order, manifest,
                        own_folder_for_nobody, perf, record, run, run_tests,
                        types_of)
from tap import Skip

# Without frame pointers, and with every call a real one.
FLAGS = ("-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls",
         "-fno-ipa-icf", "-fno-inline", "-w")
# outer() to inner(), each with a frame of another size, use CPU time.
CODE_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long x;
static double used(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}
void inner(double s)
{
	double end = used() + s;
	while (used() < end)
		for (int i = 0; i < 20000; i++)
			x += i;
}
void middle(double s)
{ volatile char a[500]; a[9] = 1; inner(s); x += a[9]; }
void outer(double s)
{ volatile char *a = __builtin_alloca(64 + (x & 63)); a[3] = 1;
  middle(s); x += a[3]; }
static void clocks(double s)
{
	double end = used() + s;
	struct timespec t;
	while (used() < end)
		for (int i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &t);
}
static void deep(int d, double s)
{ volatile char a[200]; a[d & 127] = 1;
  if (d) deep(d - 1, s); else outer(s); x += a[d & 127]; }
/* a frame larger than the copy, in which the time is */
static void large(double s)
{ volatile char a[90000]; a[9] = 1; inner(s); x += a[9]; }
/* a frame of pages that nothing writes to, but for its ends */
static volatile int zero;
static void holed(double s)
{ volatile char a[16000]; a[15990 + zero] = 1; inner(s);
  x += a[15991 + zero]; }
static void calls_large(double s)
{ for (int i = 0; i < 20; i++) { middle(s / 60); large(s / 20); } x++; }
static void *thread(void *s) { outer(*(double *)s); return s; }
static void go_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}
static void *map_code(const char *path, const void *code, size_t n, long size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
	void *at;
	if (write(fd, code, n) < 0 || ftruncate(fd, size) < 0)
		exit(9);
	at = mmap(0, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return at;
}
static void hostile(double s)
{
	/* mov %rdi,%rcx; 1: dec %rcx; jnz 1b; ret */
	static const char spin[] = "\x48\x89\xf9\x48\xff\xc9\x75\xfb\xc3";
	void (*code)(long) = map_code("mapped", spin, sizeof(spin), 4096);
	double end;
	unlink("mapped");
	mkfifo("mapped", 0666);
	mmap(0, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE,
	     open("/dev/zero", O_RDONLY), 0);
	map_code("shrunk", "\177ELF\2\1\1", 7, 1 << 20);
	truncate("shrunk", 5);
	for (end = used() + s; used() < end; )
		code(1000000);
}
int main(int c, char **v)
{
	const char *how = v[1];
	double s = atof(v[2]);
	pthread_t t;
	void (*in_library)(void (*)(double), double);
	if (strcmp(how, "plain") == 0)
		outer(s);
	else if (strcmp(how, "deepest first") == 0)
		for (int i = 0; i < 6; i++)
			deep((3 - i % 4) * 70 + 10, s / 6);
	else if (strcmp(how, "large") == 0)
		calls_large(s);
	else if (strcmp(how, "holed") == 0)
		holed(s);
	else if (strcmp(how, "deep") == 0)
		/* less deep first, as programs are that recurse */
		for (int i = 0; i < 40; i++)
			deep(i % 4 * 70 + 10, s / 40);
	else if (strcmp(how, "thread") == 0) {
		pthread_create(&t, 0, thread, &s);
		pthread_join(t, 0);
	} else if (strcmp(how, "fork") == 0) {
		if (fork() == 0) { outer(s); _exit(0); }
		wait(0);
	} else if (strcmp(how, "clocks") == 0)
		clocks(s);
	else if (strcmp(how, "unlinked") == 0) {
		unlink(v[0]);
		outer(s);
	} else if (strcmp(how, "library") == 0) {
		in_library = dlsym(dlopen("./library", RTLD_NOW), "in_library");
		in_library(outer, s);
	} else if (strcmp(how, "hop") == 0 && atoi(v[3]) > 0) {
		char left[16], *args[] = { v[0], "hop", v[2], left, 0 };
		sprintf(left, "%d", atoi(v[3]) - 1);
		/* the exec is on one CPU, what is mapped then on the other */
		go_to(atoi(v[3]) & 1);
		in_library = dlsym(dlopen("./library", RTLD_NOW), "in_library");
		in_library(outer, s);
		execv(v[0], args);
	} else if (strcmp(how, "many") == 0)
		for (int i = 0; i < atoi(v[3]); i++) {
			char path[32];
			sprintf(path, "./many/%d.so", i);
			in_library = dlsym(dlopen(path, RTLD_NOW),
					   "in_library");
			in_library(outer, s / atoi(v[3]));
		}
	else if (strcmp(how, "hostile") == 0)
		hostile(s);
	return 0;
}
"""
LIBRARY_C = r"""
void in_library(void (*fn)(double), double s)
{ volatile char a[300]; a[1] = 1; fn(s); a[2] = 1; }
"""
# A program of 32 bits that needs no library.
CODE_32_C = r"""
static volatile unsigned x;
__attribute__((noinline)) static void inner32(unsigned n)
{ for (unsigned i = 0; i < n; i++) x += i; }
__attribute__((noinline)) static void outer32(unsigned n)
{ inner32(n); x++; }
void _start(void)
{
	outer32(300000000);
	__asm__ volatile("int $0x80" :: "a"(1), "b"(0));
}
"""
ROOTS = ("_start", "clone3", "__clone", "_dl_start_user")


def build():
    if os.path.exists("code"):
        return
    compile_c("library", LIBRARY_C, *FLAGS, "-shared", "-fPIC")
    compile_c("code", CODE_C, *FLAGS)


def stacks_of(path, *options):
    """User frames of each sample, innermost first, as perf reads them."""
    text = perf("script", "-f", "-i", f"{path}/data", "-F", "ip,sym,dso",
                "--max-stack", "2000", *options, silent=False)
    stacks = []
    for sample in text.split("\n\n"):
        frames = [line.split(None, 1)[1] for line in sample.splitlines()
                  if line.strip() and not line.lstrip().startswith("ffffffff")]
        if frames:
            stacks.append(frames)
    return stacks


def counts(path):
    return manifest(path)["stacks"]


def check_complete(path, percent=97, least=20):
    """By the recorder's count and by the frames that perf sees."""
    ended = counts(path)["ended"]
    total = sum(ended.values())
    check(total >= least, f"{total} stacks only")
    check(ended["complete"] >= total * percent / 100, f"{path}: {ended}")
    return ended


def recorded(name, *words, options=(), **more):
    build()
    path = f"{name}.seam"
    result = record("-o", path, *options, "--", *words, **more)
    equal(result.returncode, 0, result.stderr)
    return path


def check_frames(path, wanted, percent=90):
    """That most stacks have the functions @wanted, innermost first."""
    stacks = stacks_of(path)
    in_order = re.compile(".*".join(rf"\n{name} " for name in wanted), re.S)
    n = sum(1 for frames in stacks
            if in_order.search("\n" + "\n".join(frames) + " "))
    check(n >= len(stacks) * percent / 100,
          f"{n} of {len(stacks)}: {stacks[len(stacks) // 2]}")


CHAIN = ("outer", "main", "_start")


def test_stacks_without_frame_pointers_are_complete_as_perf_reads_them():
    path = recorded("plain", "./code", "plain", "0.4")
    check_complete(path)
    check_frames(path, ("inner", "middle", *CHAIN))
    # plain callchains, no copies of stacks: in attr and in size
    data, samples = os.path.getsize(f"{path}/data"), manifest(path)["samples"]
    check(data < samples * 400 + 40000, f"{data} bytes, {samples} samples")
    check("STACK_USER" not in perf("evlist", "-v", "-i", f"{path}/data",
                                   silent=False))


def test_seam_report_has_the_callers_too():
    path = recorded("report", "./code", "plain", "0.2")
    text = run(SEAM, "report", path).stdout
    for name in ("main", "outer", "middle", "_start"):
        check(re.search(rf"\b{name}\b", text), text)


def folded(path):
    """How many samples each stack of user code has."""
    stacks = collections.Counter()
    for line in run(SEAM, "convert", "--to", "folded", path).stdout.split("\n"):
        if line:
            stack, n = line.rsplit(None, 1)
            stacks[stack] += int(n)
    return stacks


def test_copies_kept_for_readers_give_the_same_stacks():
    build()
    live = folded(recorded("live", "./code", "thread", "0.3"))
    kept = folded(recorded("kept", "./code", "thread", "0.3",
                           options=("--call-graph", "dwarf")))
    for one, other in ((live, kept), (kept, live)):
        stack, n = one.most_common(1)[0]
        check(stack.count(";") > 4, stack)
        check(n > 0.4 * one.total() and other[stack] > 0.4 * other.total(),
              f"{stack}: {n} of {one.total()}, {other.most_common(2)}")


def test_threads_forks_and_the_vdso():
    for how, wanted in (("thread", ("inner", "middle", "outer", "thread",
                                    "start_thread", r"_*clone3?")),
                        ("fork", ("inner", "middle", *CHAIN)),
                        ("clocks", ("clocks", "main", "_start"))):
        path = recorded(how, "./code", how, "0.3")
        check_complete(path)
        check_frames(path, wanted)
    check(any("[vdso]" in frames[0] for frames in stacks_of("clocks.seam")),
          "no sample in the vdso")


def test_a_library_loaded_at_run_time():
    path = recorded("library", "./code", "library", "0.3")
    check_complete(path)
    check_frames(path, ("inner", "middle", "outer", "in_library", "main"))


def test_rules_that_only_debug_frame_has():
    build()
    compile_c("in_it", CODE_C, *FLAGS, "-g",
              "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    for words in (("objcopy", "--compress-debug-sections", "in_it", "packed"),
                  ("objcopy", "--only-keep-debug", "in_it", "apart.debug"),
                  ("objcopy", "--strip-all", "--add-gnu-debuglink=apart.debug",
                   "in_it", "apart")):
        subprocess.run(words, check=True)
    for name in ("in_it", "packed", "apart"):
        check_complete(recorded(f"debug_{name}", f"./{name}", "plain", "0.2"))
    if IS_ROOT:         # the debug file of another author is not used
        os.chown("apart.debug", 65533, -1)
        ended = counts(recorded("other", "./apart", "plain", "0.2"))["ended"]
        check(ended["complete"] < sum(ended.values()) / 4, str(ended))


def test_a_program_that_removes_its_file():
    build()
    for who in (None, as_nobody):
        folder = own_folder_for_nobody()
        os.chmod(folder, 0o777)
        shutil.copy("code", folder)
        path = f"{folder}/unlinked.seam"
        result = record("-o", path, "--", f"{folder}/code", "unlinked", "0.3",
                        preexec_fn=who)
        equal(result.returncode, 0, result.stderr)
        check(not os.path.exists(f"{folder}/code"))
        check_complete(path)


def test_what_is_mapped_after_an_exec_on_another_cpu():
    if os.cpu_count() < 2:
        raise Skip("one CPU")
    path = recorded("hop", "./code", "hop", "0.03", "14")
    check_complete(path)
    # the last frames of samples in main() itself are fewer
    check_frames(path, ("outer", "in_library", "main", "_start"), 70)


def test_a_process_with_400_libraries():
    build()
    os.makedirs("many")
    with open("library", "rb") as built:
        content = built.read()
    own_id = bytes.fromhex(build_id("library"))
    for i in range(400):
        with open(f"many/{i}.so", "wb") as out:
            out.write(content.replace(own_id, own_id[:-2] +
                                      i.to_bytes(2, "big")))
    path = recorded("many", "./code", "many", "1.2", "400")
    ended = check_complete(path)
    check(not ended["no_file"] and not ended["not_ready"], str(ended))
    check_frames(path, ("inner", "middle", "outer", "in_library", "main"), 80)
    text = perf("script", "-f", "-i", f"{path}/data", "-F", "ip,sym,dso")
    libraries = set(re.findall(r"in_library .*/many/(\d+)\.so", text))
    check(len(libraries) > 200, f"{len(libraries)} libraries only")


def test_tasks_of_32_bits_have_the_kernels_chain_and_are_counted():
    build()
    compile_c("code32", CODE_32_C, "-m32", "-nostdlib", "-static",
              "-ffreestanding", "-fno-pie", "-no-pie",
              "-fno-omit-frame-pointer")
    try:
        subprocess.run(["./code32"], check=True)
    except OSError as error:    # a kernel without CONFIG_IA32_EMULATION
        raise Skip(f"no program of 32 bits runs: {error}") from error
    path = recorded("code32", "sh", "-c", "./code32; ./code plain 0.3")
    stacks = counts(path)
    check(stacks["of_32_bit"] > 20, str(stacks))
    check_complete(path)
    check_frames(path, ("outer", "main", "_start"), 30)
    check_frames(path, ("inner32", "_start"), 20)
    shown = run(SEAM, "report", "--stats", path).stdout
    check("32-bit tasks: by frame pointers" in shown, shown)
    # alone, it is no lack of this recording
    shown = run(SEAM, "report", recorded("only32", "./code32")).stdout
    check("--call-graph auto" not in shown and "of 32-bit tasks" in shown,
          shown)


def test_many_short_programs():
    path = recorded("short", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 "
                    "11 12 13 14 15 16 17 18 19 20; do /bin/true; "
                    "./code plain 0.003; done")
    ended = check_complete(path, 95)
    equal(sum(ended.values()) + counts(path)["empty"],
          manifest(path)["samples"], "a sample without user stack:")


def stats(path, *options):
    return json.loads(run(SEAM, "report", "--stats", "--json", *options,
                          path).stdout)["user_stacks"]


def test_stacks_deeper_than_the_copy_are_joined_by_readers():
    path = recorded("deep", "./code", "deep", "1.2")
    # as they were recorded, and for perf
    told, left = counts(path)["ended"], stats(path, "--no-joins")["ended"]
    check(told["truncated"] > 20, str(told))
    equal(told, left)
    depths = (11, 81, 151, 221)
    for frames in stacks_of(path):
        names = [frame.split()[0] for frame in frames]
        check(names[-1] not in ROOTS or "outer" not in names or
              names.count("deep") in depths, str(names))
    ended = stats(path)["ended"]
    check(ended["joined"] > 0 and ended["complete"] == told["complete"],
          f"{ended} {told}")
    n_joined = 0
    for stack, n in folded(path).items():
        names = stack.split(";")
        if "[joined]" not in names:
            continue
        n_joined += n
        # frames of a recursion are all there
        check(names[1] in ROOTS and "outer" not in names or
              names.count("deep") in depths, stack)
    equal(n_joined, ended["joined"])
    for view in (("report",), ("report", "--tree"),
                 ("report", "--json", "--top", "0"), ("flamegraph", "-o", "-")):
        check("[joined]" in run(SEAM, *view, path).stdout, str(view))
        check("[joined]" not in run(SEAM, *view, "--no-joins", path).stdout,
              str(view))


def test_a_recorder_that_is_killed_has_written_its_cut_samples():
    path = recorded("falling", "sh", "-c", "./code plain 0.6 & "
                    "./code 'deepest first' 1.2; wait")
    lines = [json.loads(line) for line in
             run(SEAM, "dump", "--json", path).stdout.splitlines()]
    check(in_order(lines), "no round was finished")
    equal(sum(line["type"] == "SAMPLE" for line in lines),
          manifest(path)["samples"])
    data = "gone.seam/data"
    with subprocess.Popen([SEAM, "record", "-q", "-o", "gone.seam", "--",
                           "./code", "deepest first", "9"],
                          start_new_session=True) as recorder:
        for _ in range(600):
            if os.path.exists(data) and os.path.getsize(data) > 1 << 17:
                break
            time.sleep(0.02)
        recorder.kill()
        recorder.wait()
        end_group(recorder)
    folder = os.path.dirname(data)
    ended = stats(folder)["ended"]
    check(ended["truncated"] + ended["joined"] > 10, str(ended))
    text = run(SEAM, "report", folder).stdout
    check("no frame pointers" not in text, text)


def test_stacks_are_complete_in_every_mode():
    for name, how, options in (("over", "plain", ("--overwrite",)),
                               ("overt", "thread", ("--overwrite",)),
                               ("each", "plain", ("--per-thread",)),
                               ("eacht", "thread", ("--per-thread",))):
        path = recorded(name, "./code", how, "0.4", options=options)
        check_complete(path)
        check_frames(path, ("inner", "middle", "outer"))
    equal(manifest("over.seam")["left_out"].count("stack-copies"), 0)


def test_a_snapshot_has_no_stack_by_mappings_that_came_later():
    # programs that one process has left by exec(), and one that runs last
    path = recorded("hops", "sh", "-c", "./code hop 0.2 3; ./code plain 0.2",
                    options=("--overwrite",))
    ended = counts(path)["ended"]
    check(ended["complete"] >= 20 and ended["no_mapping"] >= 20, ended)
    wanted = re.compile("inner middle outer (in_library )?main .*_start")
    for frames in stacks_of(path):
        names = " ".join(frame.split()[0].partition("+")[0]
                         for frame in frames)
        check("inner" not in names or wanted.search(names) or
              len(frames) == 1, names)


def test_pages_of_a_frame_that_were_never_written_end_few_stacks():
    path = recorded("holed", "./code", "holed", "0.6")
    ended = check_complete(path, percent=60)
    check(0 < ended.get("truncated", 0), ended)


def test_a_frame_larger_than_the_copy_is_told():
    path = recorded("large", "./code", "large", "1.2")
    ended = counts(path)["ended"]
    check(ended["beyond"] > 500, str(ended))
    told = run(SEAM, "report", path).stdout
    check("above the 64 KiB that the kernel copies" in told and
          "--call-graph" not in told, told)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record_running(path, program, *options, **more):
    """For 0.3 s of the program's CPU time, however long these take."""
    def wait_for(condition, what):
        for _ in range(6000):
            if condition():
                return
            time.sleep(0.01)
        raise AssertionError(f"{what}, in a minute")

    wait_for(lambda: cpu_seconds(program.pid) >= 0.05, "it does not run")
    with subprocess.Popen([SEAM, "record", "-o", path, *options],
                          stderr=subprocess.PIPE, text=True,
                          **more) as recorder:
        try:
            wait_for(lambda: os.path.exists(f"{path}/meta.json") and
                     SAMPLE in types_of(path), "no sample")
            end = cpu_seconds(program.pid) + 0.3
            wait_for(lambda: cpu_seconds(program.pid) >= end, "no CPU time")
            recorder.send_signal(signal.SIGINT)
            _, text = recorder.communicate(timeout=60)
        finally:
            recorder.kill()
            program.kill()
    # of a whole machine that is busy, records may be lost
    check(recorder.returncode in (0, 3 if "-a" in options else 0), text)


def attached(name, how, *options):
    build()
    path = f"{name}.seam"
    with subprocess.Popen(["./code", how, "60"]) as program:
        record_running(path, program, *options, *(
            () if "-a" in options else ("-p", str(program.pid))))
    return path


def test_a_program_that_ran_before():
    for name, how, options in (("p", "plain", ()), ("t", "thread", ()),
                               ("per_thread", "thread",
                                ("--per-thread", "--call-graph", "auto"))):
        path = attached(name, how, *options)
        check_complete(path)
        check_frames(path, ("inner", "middle", "outer"))


def test_a_program_without_a_build_id():
    build()
    compile_c("no_id", CODE_C, *FLAGS, "-Wl,--build-id=none")
    for who in (None, as_nobody):
        folder = own_folder_for_nobody()
        path = f"{folder}/no_id.seam"
        with subprocess.Popen(["./no_id", "plain", "60"],
                              preexec_fn=who) as program:
            record_running(path, program, "-p", str(program.pid),
                           preexec_fn=who)
        check_complete(path)
        check_frames(path, ("inner", "middle", *CHAIN))


def test_all_programs_of_the_machine():
    if not IS_ROOT:     # test_record_modes has what a user is told
        return
    path = attached("a", "plain", "-a")
    stacks = [frames for frames in stacks_of(path)
              if frames[0].startswith("inner ")]
    check(len(stacks) > 10, f"{len(stacks)} stacks")
    whole = [frames for frames in stacks if frames[-1].startswith("_start ")]
    check(len(whole) >= 0.97 * len(stacks), f"{len(whole)} {len(stacks)}")


def test_a_forged_build_id_changes_the_stacks_of_its_own_program_only():
    if not IS_ROOT:     # an ordinary user's programs are all of one author
        return
    build()
    folder = own_folder_for_nobody()
    for name, flags in (("real", ()), (f"{folder}/forged", (
            "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"))):
        compile_c(name, CODE_C, *FLAGS, *flags,
                  "-Wl,--build-id=0x" + "5e" * 20)
    os.chown(f"{folder}/forged", 65534, -1)
    become = "setpriv --clear-groups --reuid"
    # of a third user, and of root
    for owner in (65533, 0):
        os.chown("real", owner, -1)
        path = f"forged{owner}.seam"
        record("-a", "-o", path, "--", "sh", "-c",
               f"{become} 65534 {folder}/forged plain 30 & sleep 0.3;"
               f"{become} {owner} ./real plain 0.4; kill $!")
        stacks = stacks_of(path, "--comm", "real")
        stacks = [frames for frames in stacks if "inner " in frames[0]]
        whole = [frames for frames in stacks
                 if re.search("outer .*main .*_start ", " ".join(frames))]
        check(len(stacks) > 50, f"{len(stacks)} stacks")
        check(len(whole) >= 0.97 * len(stacks),
              f"owner {owner}: {len(whole)} of {len(stacks)}")
        check("outer " not in str(stacks_of(path, "--comm", "forged")),
              "it was not forged")


def test_files_for_which_descriptors_do_not_suffice_are_reported():
    build()
    reported = 0
    for n in range(16, 40):
        done = run("sh", "-c", f"ulimit -n {n}; exec \"$@\"", "sh", SEAM,
                   "record", "-o", "few.seam", "./code", "plain", "0.05")
        if done.returncode == 1:
            continue
        counts = manifest("few.seam")["stacks"]["ended"]
        wants = counts["no_file"] > 0
        said = "files for stacks could not be opened: Too many" in done.stderr
        check(said or not wants, done.stderr)
        reported += said
    check(reported, "each number of descriptors sufficed, or none did")


def test_an_ordinary_user_and_compressed_data():
    build()
    folder = own_folder_for_nobody()
    path = f"{folder}/user.seam"
    result = record("-z", "-o", path, "--", "./code", "plain", "0.3",
                    preexec_fn=as_nobody)
    equal(result.returncode, 0, result.stderr)
    check_complete(path)
    check_frames(path, ("inner", "middle", *CHAIN))
    equal(manifest(path)["lost"]["ring_full"], 0)


MARKS = 0xfffffffffffff000       # of contexts: PERF_CONTEXT_MAX and above
# The programs that the table in doc/guide/stacks.md begins with.
DEBIANS = {
    "python3": ("/usr/bin/python3", "-c", "import json\nfor i in range(8000):"
                " json.loads(json.dumps([{'a': i}] * 20))"),
    "sqlite3": ("sqlite3", ":memory:", "with recursive c(x) as (values(1) "
                "union all select x+1 from c where x<1500000) "
                "select sum(x*3) from c;"),
    "perl": ("perl", "-e", "for (1..9000) { my $s = join ',', sort "
             "map { $_ * 7 } 1..100; $s =~ s/(1)(2)/$2$1/g }"),
    "ruby": ("ruby", "-e", "h = {}; 80000.times { |i| h[i.to_s] = "
             "[i, i.to_s * 3].hash }; h.keys.sort.size"),
    "php": ("php", "-r", "for ($i = 0; $i < 200000; $i++) $a[] = md5($i); "
            "sort($a);"),
    "g++": ("sh", "-c", "echo '#include <map>\nint f() { std::map<int, int> m;"
            " return m[3]; }' | g++ -O2 -x c++ -c -o /dev/null -"),
    "git": ("git", "-C", "repo", "log", "-p", "--stat"),
    "node": ("node", "-e", "let o = {}; for (let i = 0; i < 2e5; i++) "
             "o['k' + i % 5000] = JSON.stringify({ i, a: [i] });"),
}


def make_repo():
    done = run("sh", "-c", "git init -q repo && cd repo && for i in $(seq 120);"
               " do seq $i $((i * 99)) > f$((i % 9)); git add -A; git -c "
               "user.name=n -c user.email=e commit -qm $i; done")
    equal(done.returncode, 0, done.stderr)


def frames_by_perf(path):
    """(thread, time in us) -> the frames of its samples as perf names them.

    A frame is its place in a page, which perf's addresses in files have in
    common with those in memory, and its name.
    """
    text = perf("script", "-f", "-i", f"{path}/data", "--no-inline",
                "--max-stack", "2000", "-F", "tid,time,ip,sym", silent=False)
    samples = collections.defaultdict(list)
    for sample in text.split("\n\n"):
        lines = sample.split("\n")
        head = re.match(r"\s*(\d+)\s+([\d.]+):", lines[0])
        if head:
            samples[int(head[1]), int(head[2].replace(".", ""))].append(
                [(int(frame[0], 16) % 4096, frame[1]) for frame in
                 (line.split(None, 1) for line in lines[1:] if line)])
    return samples


def frames_by_seam(path):
    samples = collections.defaultdict(list)
    for line in run(SEAM, "dump", "--json", "--symbols", "--no-inline",
                    path).stdout.splitlines():
        record = json.loads(line)
        if record["type"] == "SAMPLE":
            samples[record["tid"], record["time"] // 1000].append(
                [(frame["ip"] % 4096, frame.get("symbol", ""))
                 for frame in record["callchain"]
                 if frame["ip"] < MARKS])
    return samples


def plain(name):
    """The name of a function without what the two write in other ways."""
    name = re.sub(r"\(.*|@.*|\[clone .*|\.(isra|part|cold|constprop).*", "",
                  name).strip()
    return "" if name.startswith("[") or not name else name


def check_perf_has_the_frames(path):
    theirs, ours = frames_by_perf(path), frames_by_seam(path)
    equal(sorted(theirs), sorted(ours), "samples")
    n = n_named = n_other = 0
    for key, samples in ours.items():
        for one, other in zip(samples, theirs[key]):
            equal([ip for ip, _ in one], [ip for ip, _ in other], str(key))
            names = [(plain(a[1]), plain(b[1])) for a, b in zip(one, other)]
            n += len(names)
            n_named += sum(bool(a and b) for a, b in names)
            n_other += sum(a != b for a, b in names if a and b)
    check(n_named > n / 8 and n_other <= n * 0.01,
          f"{path}: {n_other} of {n} names differ, {n_named} by both")


def check_report_has_the_frames(path):
    """The stacks of a profile are those of the dump, with as many samples."""
    names = collections.Counter()
    for samples in frames_by_seam(path).values():
        for frames in samples:
            names[tuple(plain(name) for _, name in frames)] += 1
    profile = collections.Counter()
    for line in run(SEAM, "convert", "--to", "folded", "--no-inline",
                    path).stdout.splitlines():
        stack, n = line.rsplit(None, 1)
        frames = re.sub(r"_\[k\](;|$)", r"\1", stack).split(";")[:0:-1]
        profile[tuple(map(plain, frames))] += int(n)
    equal(profile - names, names - profile)


def test_debians_programs_are_complete_with_the_frames_of_perf_script():
    """A start on a busy machine may be 5 of 150 samples, in page faults in
    _init(), which has no call frame information; of all programs it is little.
    """
    make_repo()
    ends = collections.Counter()
    for name, words in DEBIANS.items():
        check(shutil.which(words[0]), f"no {words[0]}")
        path = recorded(f"debian-{name}", *words)
        ends.update(check_complete(path, percent=94))
        check_perf_has_the_frames(path)
        check_report_has_the_frames(path)
        shutil.rmtree(path)
    check(ends["complete"] >= 0.99 * sum(ends.values()), str(ends))


def test_files_of_a_hostile_program_are_not_opened():
    begin = time.monotonic()
    path = recorded("hostile", "./code", "hostile", "0.3", timeout=30)
    check(time.monotonic() - begin < 20, "it took too long")
    ended = counts(path)["ended"]
    check(sum(ended.values()) > 20, str(ended))
    # the mapped file itself is no ELF file
    files = [f["path"] for f in counts(path)["files"]]
    check(all("zero" not in f for f in files), str(files))
    check(json.dumps(manifest(path)))


def test_the_recorder_rests_when_one_of_several_programs_has_ended():
    build()
    programs = [subprocess.Popen(["./code", "plain", "0.05"]),
                subprocess.Popen(["sleep", "20"])]
    pids = ",".join(str(p.pid) for p in programs)
    recorder = subprocess.Popen(
        [SEAM, "record", "-q", "-o", "rest.seam", "-p", pids,
         "--duration", "1.5"], stderr=subprocess.DEVNULL)
    programs[0].wait()
    _, status, usage = os.wait4(recorder.pid, 0)
    recorder.returncode = os.waitstatus_to_exitcode(status)
    programs[1].kill()
    programs[1].wait()
    used = usage.ru_utime + usage.ru_stime
    check(used < 0.3, f"{used} s of CPU in 1.5 s")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
