#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""seam top and report --tui: the samples of a recording, on time, by keys."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

from record_lib import (FOLDER, IS_ROOT, SEAM, as_nobody, check, compile_c,
                        equal, record, run, run_tests)

# Two functions, and the CPU time of each by the thread's own clock.
TWO_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long x;
static double cpu(void)
{ struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) void heavy(void)
{ for (int i = 0; i < 7000000; i++) x += i; }
__attribute__((noinline)) void light(void)
{ for (int i = 0; i < 3000000; i++) x += i; }
int main(int n, char **words)
{
	double spent[2] = { 0, 0 }, end = atof(words[1]);
	while (spent[0] + spent[1] < end) {
		double a = cpu(), b;
		heavy();
		b = cpu();
		light();
		spent[1] += cpu() - b;
		spent[0] += b - a;
	}
	printf("%f %f\n", spent[0], spent[1]);
	return 5;
}
"""
PAGES_C = r"""
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) void touch(volatile char *m)
{ for (int i = 0; i < 20000; i++) m[i * 4096] = 1; }
int main(void)
{
	char *m = mmap(0, 20000 * 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(m, 20000 * 4096, MADV_NOHUGEPAGE);
	touch(m);
	return 0;
}
"""

# A hundred waits, and how long they were by its clock.
NAPS_C = r"""
#include <stdio.h>
#include <time.h>
static double now(void)
{ struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noinline)) double waiting_here(void)
{
	struct timespec nap = { 0, 20000000 };
	double begin = now();
	nanosleep(&nap, 0);
	return now() - begin;
}
int main(void)
{
	double sum = 0;
	for (int i = 0; i < 100; i++) sum += waiting_here();
	printf("%.9f\n", sum);
	return 0;
}
"""
# Two pieces of code, 0.6 s each, which it names one after the other: in a perf
# map, or ("dump") in a jitdump that it announces by its marker.
COMPILES_C = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
static const unsigned char code[] = {
	0xb9, 0x40, 0x42, 0x0f, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
enum { MACHINE = 62 };
#else
static const unsigned code[] = { 0x52a00200, 0x71000400, 0x54ffffe1, 0xd65f03c0 };
enum { MACHINE = 183 };
#endif
static uint64_t now(clockid_t id)
{ struct timespec t; clock_gettime(id, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void name(FILE *f, char *at, const char *text, int dump)
{
	struct { uint32_t id, total; uint64_t ns; uint32_t pid, tid;
		 uint64_t vma, addr, size, index; } load = {
		0, sizeof(load) + strlen(text) + 1 + sizeof(code),
		now(CLOCK_MONOTONIC), getpid(), getpid(), (uintptr_t)at,
		(uintptr_t)at, sizeof(code), (uintptr_t)at };
	if (dump) {
		fwrite(&load, sizeof(load), 1, f);
		fwrite(text, strlen(text) + 1, 1, f);
		fwrite(code, sizeof(code), 1, f);
	} else {
		fprintf(f, "%lx %zx %s\n", (long)at, sizeof(code), text);
	}
	fflush(f);
}
int main(int n, char **words)
{
	int dump = n > 1;
	struct { uint32_t magic, version, size, machine, pad, pid;
		 uint64_t ns, flags; } head = { 0x4a695444, 1, sizeof(head),
		MACHINE, 0, getpid(), now(CLOCK_MONOTONIC), 0 };
	char path[64], *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE |
		PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f;
	if (dump) snprintf(path, sizeof(path), "%s/jit-%d.dump", words[1], getpid());
	else snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (!(f = fopen(path, "w+"))) return 1;
	if (dump) {
		fwrite(&head, sizeof(head), 1, f);
		fflush(f);
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
	}
	for (int i = 0; i < 2; i++) {
		char *at = page + 4096 * i;
		uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + 600000000;
		memcpy(at, code, sizeof(code));
		__builtin___clear_cache(at, at + sizeof(code));
		name(f, at, i ? "second_name" : "first_name", dump);
		while (now(CLOCK_PROCESS_CPUTIME_ID) < end) ((void (*)(void))at)();
	}
	unlink(path);
	return 0;
}
"""


def top(*words, status=0, prepare=None):
    """The objects of seam top --json and what the program printed."""
    log = open("top.json", "w+", encoding="utf-8")
    with log:
        os.chmod("top.json", 0o666)
        result = subprocess.run([SEAM, "top", "--json", "--top", "0", *words],
                                stdin=subprocess.DEVNULL, stdout=log,
                                stderr=subprocess.PIPE, text=True, timeout=60,
                                check=False, preexec_fn=prepare)
        check(status is None or result.returncode == status,
              f"status {result.returncode}: {result.stderr}")
        log.seek(0)
        lines = log.read().splitlines()
    objects = [json.loads(line) for line in lines if line.startswith("{")]
    for one in objects:
        equal(one["schema"], "seam.top/1")
        equal(sum(row["self"] for row in one["rows"]), one["samples"])
    return objects, "\n".join(line for line in lines
                              if not line.startswith("{"))


def summed(objects, key="symbol"):
    rows = {}
    for one in objects:
        for row in one["rows"]:
            rows[row[key]] = rows.get(row[key], 0) + row["self"]
    return rows


def check_share(part, whole, wanted, text):
    """Samples of a clock are a binomial at the most: 5 sigma, and 1 %."""
    sigma = (wanted * (1 - wanted) / whole) ** 0.5
    check(abs(part / whole - wanted) <= 5 * sigma + 0.01,
          f"{text}: {part} of {whole}, not {wanted:.3f}")


def check_sums(prepare=None):
    objects, told = top("./two", "2", status=5, prepare=prepare)
    heavy, light = (float(word) for word in told.split())
    rows = summed(objects)
    n = rows["heavy"] + rows["light"]
    check(len(objects) >= 2, f"{len(objects)} objects")
    check_share(rows["heavy"], n, heavy / (heavy + light), "top")
    # one sample a ms: none left out, none counted twice
    check(0.9 < n / (1000 * (heavy + light)) < 1.05,
          f"{n} samples of {heavy + light} s")
    times = [one["time_ns"] for one in objects]
    equal(times, sorted(times))
    return rows, n


def test_the_sum_of_all_seconds_is_what_a_recording_has():
    rows, n = check_sums()
    record("-F", "1000", "-o", "two.seam", "./two", "2")
    report = json.loads(run(SEAM, "report", "--json", "two.seam").stdout)
    recorded = {row["symbol"]: row["self"] for row in report["rows"]}
    m = recorded["heavy"] + recorded["light"]
    check_share(rows["heavy"], n, recorded["heavy"] / m, "a recording")


def test_an_ordinary_user_has_the_same_sums():
    if IS_ROOT:
        check_sums(as_nobody)


def test_samples_and_losses_are_what_the_kernel_counted():
    """A fault for each of 20,000 pages, within a few ms."""
    objects, _ = top("-e", "page-faults", "-c", "1", "-i", "100ms", "./pages")
    touched = sum(row["total"] for one in objects for row in one["rows"]
                  if row["symbol"] == "touch")
    lost = sum(one["lost"] for one in objects)
    check(20000 - lost <= touched <= 20000, f"{touched}, lost {lost}")
    check(lost < 20000, "all of them lost")


def test_a_process_that_has_ended_has_no_row():
    objects, _ = top("-i", "250ms", "sh", "-c", "./one 0.5; ./two 0.5; exit 0")
    rows = summed(objects)
    check(rows.get("heavy", 0) > 100 and rows.get("first", 0) > 100, f"{rows}")
    seen = [{row["symbol"] for row in one["rows"] if row["self"]}
            for one in objects]
    begun = next(i for i, names in enumerate(seen) if "heavy" in names)
    check(all("first" not in names for names in seen[begun + 1:]), f"{seen}")


def test_seam_does_not_show_itself():
    if not IS_ROOT:
        return
    with subprocess.Popen(["./two", "60"]) as busy:
        try:
            with subprocess.Popen([SEAM, "top", "-a", "--by", "process",
                                   "--top", "0", "--json"], text=True,
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE) as process:
                lines = [process.stdout.readline() for _ in range(2)]
                own = [process.pid, *children(process.pid)]
                process.terminate()
        finally:
            busy.kill()
    ids = [row["id"] for line in lines for row in json.loads(line)["rows"]]
    check(busy.pid in ids, f"{ids}")
    check(len(own) >= 3, f"{own}")
    equal([pid for pid in own if pid in ids], [])


def test_a_process_that_does_nothing_is_idle():
    with subprocess.Popen(["sleep", "60"]) as idle:
        try:
            text = run(SEAM, "top", "--once", "-p", str(idle.pid)).stdout
        finally:
            idle.kill()
    check("idle" in text and "0 samples" in text, text)


def check_waits(prepare=None):
    by_thread, told = top("--off-cpu", "--by", "thread", "./naps",
                          prepare=prepare)
    own = float(told) * 1e9
    off = sum(row["off_ns"] + row["preempted_ns"] for one in by_thread
              for row in one["rows"] if row["thread"] == "naps")
    # preempted is also what was before and after a wait
    check(0.98 * own <= off <= 1.02 * own + 5e7,
          f"off {off}, by its clock {own}")
    by_symbol, told = top("--off-cpu", "./naps", prepare=prepare)
    own = float(told) * 1e9
    here, nowhere = (sum(row["off_ns"] for one in by_symbol
                         for row in one["rows"] if row["symbol"] == name)
                     for name in ("waiting_here", "[stack not recorded]"))
    check(0.9 * own <= here + nowhere <= 1.02 * own + 1e7,
          f"off {here} and {nowhere}, by its clock {own}")
    # on a busy machine the recorder is late to read stacks from outside
    check(here > 0.3 * own, f"off {here} of {own}")


def test_waits_are_those_of_the_programs_clock():
    check_waits()


def test_an_ordinary_user_has_the_same_waits():
    """Stacks are read from outside, while it waits."""
    if IS_ROOT:
        check_waits(as_nobody)


def check_names(objects):
    rows = summed(objects)
    named = rows.get("first_name", 0), rows.get("second_name", 0)
    # what ran before its name was read, in the step of its begin, has none
    check(min(named) > 200, f"{rows}")
    seen = [{row["symbol"] for row in one["rows"] if row["self"]} &
            {"first_name", "second_name"} for one in objects]
    equal([names for names in seen if names][-1], {"second_name"})


def test_compiled_code_has_its_names_as_they_are_written():
    for words in ((), ("/tmp",)):
        check_names(top("-i", "100ms", "./compiles", *words)[0])
        if IS_ROOT:
            check_names(top("-i", "100ms", "./compiles", *words,
                            prepare=as_nobody)[0])


def test_root_does_not_read_names_of_other_users():
    """A file system of theirs may never answer."""
    if not IS_ROOT:
        return
    with subprocess.Popen(["./compiles"], preexec_fn=as_nobody) as other:
        objects, _ = top("-i", "100ms", "-p", str(other.pid))
    names = summed(objects)
    check("[jit]" in names and not {"first_name", "second_name"} & set(names),
          f"{names}")


def test_the_exit_status_is_that_of_the_program():
    for words, status in ((("sh", "-c", "exit 9"), 9), (("not-there",), 127),
                          (("/etc/passwd",), 126), ((), 2),
                          (("-i", "1ns", "true"), 2), (("--by", "x"), 2)):
        result = run(SEAM, "top", *words)
        equal(result.returncode, status, f"{words}: {result.stderr}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def test_losses_are_those_of_their_second_and_make_status_3():
    """The recorder is stopped until its rings are full."""
    with subprocess.Popen([SEAM, "top", "--json", "-i", "500ms", "sh", "-c",
                           "./two 6; exit 0"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True) as process:
        first = process.stdout.readline()
        recorder = next(pid for pid in children(process.pid)
                        if children(pid))
        os.kill(recorder, signal.SIGSTOP)
        time.sleep(2)
        os.kill(recorder, signal.SIGCONT)
        lines = process.communicate(timeout=60)[0].splitlines()
    objects = [json.loads(line) for line in [first, *lines]
               if line.startswith("{")]
    lost = [one["lost"] for one in objects]
    equal(process.returncode, 3, f"lost {lost}")
    check(sum(lost) > 100, f"lost {lost}")
    equal(objects[0]["lost"], 0)
    equal(objects[-1]["lost"], 0, f"lost {lost}")


# ---- the screen, in a terminal of tmux ----

servers = 0


def tmux(*words):
    return run("tmux", "-L", f"seam-{os.getpid()}-{servers}", "-f",
               "/dev/null", *words)


def screen():
    return tmux("capture-pane", "-p").stdout


def wait_for_text(*texts, absent=()):
    for _ in range(1200):
        now = screen()
        if (all(text in now for text in texts) and
                not any(text in now for text in absent)):
            return now
        time.sleep(0.05)
    raise AssertionError(f"no {texts} (or {absent}) in:\n{now}")


@contextlib.contextmanager
def terminal(command):
    """A terminal with a shell that runs @command, then tells its status."""
    global servers
    servers += 1
    script = f"trap : INT; cd {FOLDER}; {command}; echo status $?; stty -a; sleep 60"
    tmux("new-session", "-d", "-x", "110", "-y", "30",
         "env", "-u", "NO_COLOR", "sh", "-c", script)
    try:
        yield
    finally:
        tmux("kill-server")


def press(*keys):
    tmux("send-keys", *keys)


def check_restored():
    text = wait_for_text("status", " echo ", " icanon ")
    check("SELF" not in text, text)
    return text


def test_the_screen_of_top_follows_its_keys():
    with terminal(f"{SEAM} top ./two 60"):
        wait_for_text("heavy", "light", "main", "SELF", "by symbol")
        press("Enter")
        wait_for_text("heavy", "%  main")
        press("t")
        wait_for_text("by thread", " two", absent=["heavy"])
        press("Enter")
        wait_for_text("; thread ", "heavy")
        press("BSpace")
        wait_for_text("by symbol", absent=["; thread "])
        press("s")
        wait_for_text("sorted by total")
        press("/")
        press("l", "i", "g", "h")
        wait_for_text("rows with: ligh")
        press("Enter")
        wait_for_text("light", absent=["heavy"])
        press("c")
        wait_for_text("callers of light", "main")
        press("BSpace")
        press("BSpace")
        wait_for_text("heavy")
        press("w")
        wait_for_text("all so far")
        time.sleep(1.5)
        # the samples of all, in the header and in the row that has them all
        lines = screen().splitlines()
        row = next(line for line in lines if line.split()[3:4] == ["main"])
        told = re.search(r"([\d,]+) samples", lines[1])[1]
        equal(row.split()[1:3], ["100.00%", told], "\n".join(lines))
        press("Space")
        paused = wait_for_text("PAUSED").splitlines()[1]
        time.sleep(1.5)
        equal(screen().splitlines()[1], paused)
        press("Space")
        wait_for_text("all so far", absent=["PAUSED", paused])
        press("h")
        wait_for_text("this help")
        tmux("resize-window", "-x", "80", "-y", "20")
        wait_for_text("this help")
        press("BSpace")
        check(len(wait_for_text("heavy").splitlines()) <= 20, screen())
        press("q")
        check("status 0" in check_restored(), screen())


def test_the_screen_of_top_has_waits():
    with terminal(f"{SEAM} top --off-cpu ./naps"):
        wait_for_text("OFF, ms", "waiting_here", "event cpu-clock")
        press("t")
        wait_for_text("by thread", " naps", "OFF, ms")
        press("e")
        wait_for_text("event off-cpu", absent=["OFF, ms"])


def test_top_can_be_stopped_and_gone_on_with():
    with terminal(f"set -m; {SEAM} top ./two 60; echo stopped; sleep 1; fg"):
        wait_for_text("heavy")
        press("C-z")
        wait_for_text("stopped")
        wait_for_text("heavy", "SELF")
        press("q")
        check_restored()


def test_the_terminal_is_restored_however_top_ends():
    with terminal(f"{SEAM} top sh -c './two 2; exit 7'"):
        wait_for_text("SELF")
        check("status 7" in check_restored(), screen())
    with terminal(f"{SEAM} top ./two 60"):
        wait_for_text("heavy")
        press("C-c")
        check_restored()
    with terminal(f"sh -c 'echo $$ >pid; exec {SEAM} top ./two 60'"):
        wait_for_text("heavy")
        with open("pid", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGTERM)
        check_restored()


def test_messages_of_the_recorder_are_printed_after_the_screen():
    with terminal(f"{SEAM} top -F 90000000 ./two 1"):
        wait_for_text("SELF")
        check("machine allows" not in screen(), screen())
        check("this machine allows" in check_restored(), screen())


def test_what_the_program_prints_is_not_on_the_screen():
    with terminal(f"{SEAM} top sh -c 'while :; do printf NO%s ISE; ./two 0.1; "
                  f"done'"):
        wait_for_text("heavy")
        check("NOISE" not in screen(), screen())
        press("q")
        check_restored()


def test_the_screen_of_a_recording_follows_its_keys():
    record("-o", "t.seam", "sh", "-c", "./two 0.5; ./one 0.5; true")
    with terminal(f"{SEAM} report --tui t.seam"):
        wait_for_text("heavy", "light", "first", "samples over")
        press("a")
        wait_for_text("code of", "add rax")
        press("BSpace")
        press("d")
        wait_for_text("callees of")
        press("BSpace", "m")
        wait_for_text("by module", "/one", "/two")
        press("Down", "Enter")
        wait_for_text("; with ", "main")
        press("BSpace", "z")
        press("0", ",", "4", "0", "%", "Enter")
        wait_for_text("time 0,40%", "heavy", absent=["first"])
        press("z", "x", "Enter")
        wait_for_text("x")
        press("BSpace", "p")
        wait_for_text("by process")
        press("q")
        check("status 0" in check_restored(), screen())


def test_without_a_terminal_the_screen_is_refused():
    record("-o", "r.seam", "./two", "0.1")
    result = run(SEAM, "report", "--tui", "r.seam")
    equal(result.returncode, 1)
    check("terminal" in result.stderr, result.stderr)
    with terminal(f"TERM=none {SEAM} top ./two 60"):
        text = wait_for_text("status 1")
        check("TERM=none" in text, text)


os.chdir(FOLDER)
compile_c("two", TWO_C)
compile_c("one", TWO_C.replace("heavy", "first").replace("light", "second"))
compile_c("pages", PAGES_C)
compile_c("compiles", COMPILES_C)
compile_c("naps", NAPS_C)
sys.exit(run_tests(globals()))
